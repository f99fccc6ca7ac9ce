//! CSS selectors that can be decided at a start tag, from the tag and its ancestors:
//!
//! - types, `*`, `#id`, `.class`
//! - `[attr]` with `=`, `~=`, `|=`, `^=`, `$=`, `*=` and the flag `i`
//! - `:not(…)` with compounds separated by commas
//! - descendants (blank), children (`>`), and several selectors separated by commas
//!
//! Selectors that need siblings or later content (`+`, `~`, `:nth-child`, `:has`) are rejected with an error that names them.

/// A selector: its compounds from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    /// Relation to the compound before this one.
    combinator: Combinator,
    compound: Compound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combinator {
    Descendant,
    Child,
}

/// Conditions on one element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Compound {
    /// Lower-case name of the element. `None` matches every element.
    name: Option<String>,
    tests: Vec<Test>,
    not: Vec<Compound>,
}

/// Condition on an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    /// Lower-case name of the attribute.
    attribute: String,
    relation: Relation,
    value: String,
    ignores_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Present,
    Equals,
    Word,
    Dash,
    Begins,
    Ends,
    Contains,
}

/// The part of an element that selectors examine: its name, and the attributes that at least one selector names. Names are
/// lower-case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

/// Parses selectors separated by commas.
pub(crate) fn parse(text: &str) -> Result<Vec<Selector>, String> {
    let mut reader = Reader { rest: text };
    let mut selectors = Vec::new();
    loop {
        selectors.push(reader.selector()?);
        reader.skip_blanks();
        match reader.take() {
            None => return Ok(selectors),
            Some(',') => {}
            Some(other) => return Err(format!("unexpected `{other}`")),
        }
    }
}

impl Selector {
    /// Returns `true` if the selector matches the last of these elements. Each element is a child of the one before it.
    pub(crate) fn matches(&self, open: &[Element]) -> bool {
        let mut steps = self.0.as_slice();
        let mut ancestors = open;
        while let Some(last) = steps.iter().rposition(is_descendant) {
            // Compounds joined by `>` must match consecutive elements.
            let (before, chain) = steps.split_at(last);
            let is_last = steps.len() == self.0.len();
            let nearest = (chain.len()..=ancestors.len()).rev();
            // The nearest match leaves the most elements for the compounds before it, so no other match is tried.
            let found = nearest
                .take(if is_last { 1 } else { usize::MAX })
                .find(|&end| chain_matches(chain, &ancestors[end - chain.len()..end]));
            let Some(end) = found else {
                return false;
            };
            ancestors = &ancestors[..end - chain.len()];
            steps = before;
        }
        true
    }

    /// Names of the attributes that the selector examines.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|step| {
            let not = step.compound.not.iter().flat_map(|not| &not.tests);
            let tests = step.compound.tests.iter().chain(not);
            tests.map(|test| test.attribute.as_str())
        })
    }
}

fn is_descendant(step: &Step) -> bool {
    step.combinator == Combinator::Descendant
}

fn chain_matches(chain: &[Step], elements: &[Element]) -> bool {
    let mut pairs = chain.iter().zip(elements);
    pairs.all(|(step, element)| step.compound.matches(element))
}

impl Compound {
    fn matches(&self, element: &Element) -> bool {
        self.name.as_ref().is_none_or(|name| *name == element.name)
            && self.tests.iter().all(|test| test.holds(element))
            && !self.not.iter().any(|not| not.matches(element))
    }
}

impl Test {
    fn holds(&self, element: &Element) -> bool {
        // The first of repeated attributes counts.
        let mut named = element.attributes.iter();
        let Some((_, value)) = named.find(|(name, _)| *name == self.attribute) else {
            return false;
        };
        let lower;
        let value = match self.ignores_case {
            true => {
                lower = value.to_ascii_lowercase();
                &lower
            }
            false => value,
        };
        let wanted = self.value.as_str();
        match self.relation {
            Relation::Present => true,
            Relation::Equals => value == wanted,
            Relation::Word => value.split_ascii_whitespace().any(|word| word == wanted),
            Relation::Dash => value
                .strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
            // Every value contains the empty text, but it selects nothing (Selectors 4, 6.2).
            Relation::Begins => !wanted.is_empty() && value.starts_with(wanted),
            Relation::Ends => !wanted.is_empty() && value.ends_with(wanted),
            Relation::Contains => !wanted.is_empty() && value.contains(wanted),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let taken = chars.next();
        self.rest = chars.as_str();
        taken
    }

    fn skip(&mut self, mark: char) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Skips blanks. Returns whether there were any.
    fn skip_blanks(&mut self) -> bool {
        let rest = self.rest.trim_start();
        let had_blanks = rest.len() < self.rest.len();
        self.rest = rest;
        had_blanks
    }

    fn selector(&mut self) -> Result<Selector, String> {
        let mut steps = Vec::new();
        let mut combinator = Combinator::Descendant;
        self.skip_blanks();
        loop {
            let compound = self.compound(true)?;
            steps.push(Step {
                combinator,
                compound,
            });
            // A combinator is stored with the compound after it.
            let blank = self.skip_blanks();
            combinator = match self.rest.chars().next() {
                None | Some(',') => return Ok(Selector(steps)),
                Some('>') => {
                    self.take();
                    self.skip_blanks();
                    Combinator::Child
                }
                Some(mark @ ('+' | '~')) => {
                    return Err(format!(
                        "`{mark}` selects siblings, which is not supported; use a blank or `>`"
                    ));
                }
                Some(_) if blank => Combinator::Descendant,
                Some(other) => return Err(format!("unexpected `{other}`")),
            };
        }
    }

    fn compound(&mut self, may_negate: bool) -> Result<Compound, String> {
        let mut compound = Compound::default();
        let before = self.rest;
        if !self.skip('*') && self.rest.starts_with(is_name_character) {
            compound.name = Some(self.name("an element name")?.to_ascii_lowercase());
        }
        loop {
            if self.skip('#') {
                let id = self.name("an id")?;
                compound.tests.push(Test::of("id", Relation::Equals, id));
            } else if self.skip('.') {
                let class = self.name("a class")?;
                compound
                    .tests
                    .push(Test::of("class", Relation::Word, class));
            } else if self.skip('[') {
                compound.tests.push(self.attribute()?);
            } else if let Some(rest) = self.rest.strip_prefix(":not(").filter(|_| may_negate) {
                self.rest = rest;
                loop {
                    self.skip_blanks();
                    compound.not.push(self.compound(false)?);
                    self.skip_blanks();
                    if self.skip(')') {
                        break;
                    }
                    if !self.skip(',') {
                        return Err("`:not(` takes simple selectors without blanks, separated by commas, and ends in `)`".to_owned());
                    }
                }
            } else if let Some(rest) = self.rest.strip_prefix(':') {
                let name = rest.split(|c| !is_name_character(c) && c != ':').next();
                let name = name.unwrap_or_default();
                return Err(format!(
                    "`:{name}` is not supported; use types, `*`, `#id`, `.class`, `[attribute]` and `:not(…)`"
                ));
            } else if before.len() == self.rest.len() {
                return Err(match self.rest.chars().next() {
                    None => "a selector is missing here; write one such as `div.ad`".to_owned(),
                    Some(mark) => format!("`{mark}` cannot begin a selector"),
                });
            } else {
                return Ok(compound);
            }
        }
    }

    fn attribute(&mut self) -> Result<Test, String> {
        self.skip_blanks();
        let name = self.name("an attribute name")?;
        self.skip_blanks();
        if self.skip(']') {
            return Ok(Test::of(&name, Relation::Present, String::new()));
        }
        let relation = match self.take() {
            Some('=') => Relation::Equals,
            Some(mark) => {
                let relation = match mark {
                    '~' => Relation::Word,
                    '|' => Relation::Dash,
                    '^' => Relation::Begins,
                    '$' => Relation::Ends,
                    '*' => Relation::Contains,
                    other => return Err(format!("`{other}` cannot follow `[{name}`")),
                };
                if !self.skip('=') {
                    return Err(format!("`=` is missing after `[{name}{mark}`"));
                }
                relation
            }
            None => return Err(format!("`[{name}` has no end")),
        };
        self.skip_blanks();
        let value = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                self.take();
                let (value, rest) = self
                    .rest
                    .split_once(quote)
                    .ok_or_else(|| format!("the value of `[{name}` has no end"))?;
                self.rest = rest;
                value.to_owned()
            }
            _ => self.name("a value or a quoted text")?,
        };
        self.skip_blanks();
        let ignores_case = self.skip('i') || self.skip('I');
        self.skip_blanks();
        if !self.skip(']') {
            return Err(format!("`]` is missing after the value of `[{name}`"));
        }
        let mut test = Test::of(&name, relation, value);
        if ignores_case {
            test.ignores_case = true;
            test.value.make_ascii_lowercase();
        }
        Ok(test)
    }

    /// Parses an identifier. A backslash makes any character part of it.
    fn name(&mut self, what: &str) -> Result<String, String> {
        let mut name = String::new();
        loop {
            if self.skip('\\') || self.rest.starts_with(is_name_character) {
                name.extend(self.take());
            } else if name.is_empty() {
                return Err(match self.rest.chars().next() {
                    None => format!("expected {what}, found the end"),
                    Some(mark) => format!("expected {what}, found `{mark}`"),
                });
            } else {
                return Ok(name);
            }
        }
    }
}

impl Test {
    fn of(attribute: &str, relation: Relation, value: String) -> Self {
        Self {
            attribute: attribute.to_ascii_lowercase(),
            relation,
            value,
            ignores_case: false,
        }
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_' || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// Elements are written as `name|attribute=value|…`, outermost first.
    #[track_caller]
    fn check(selector: &str, open: &[&str], expected: bool) {
        let open: Vec<_> = open
            .iter()
            .map(|element| {
                let mut words = element.split('|');
                Element {
                    name: words.next().unwrap().to_owned(),
                    attributes: words
                        .map(|word| word.split_once('=').unwrap_or((word, "")))
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .collect(),
                }
            })
            .collect();
        let selectors = parse(selector).unwrap();
        let matches = selectors.iter().any(|selector| selector.matches(&open));
        assert_eq!(matches, expected, "{selector} {open:?}");
    }

    #[test]
    fn compounds_match_names_ids_and_classes() {
        check("div", &["div"], true);
        check("DIV", &["div"], true);
        check("div", &["p"], false);
        check("*", &["p"], true);
        check("#top", &["p|id=top"], true);
        check("#Top", &["p|id=top"], false);
        check(".ad", &["p|class=big ad"], true);
        check(".ad", &["p|class=bad"], false);
        check("p.big.ad#a[x]", &["p|class=ad big|id=a|x"], true);
        check("p.big.ad#a[x]", &["p|class=ad big|id=a"], false);
        check(r".a\:b", &["p|class=a:b"], true);
    }

    #[test]
    fn attributes_match_by_operator() {
        check("[x=y]", &["p|x=y"], true);
        check("[x=y]", &["p|x=yy"], false);
        check("[ X = 'y z' ]", &["p|x=y z"], true);
        check("[x~=y]", &["p|x=a y"], true);
        check("[lang|=en]", &["p|lang=en-GB"], true);
        check("[lang|=en]", &["p|lang=eng"], false);
        check("[id^=google_ads]", &["p|id=google_ads_1"], true);
        check("[id$='-ad']", &["p|id=top-ad"], true);
        check("[src*=\"ads.\"]", &["p|src=//ads.example/"], true);
        check("[src*='']", &["p|src=x"], false);
        check("[x=Y i]", &["p|x=yY"], false);
        check("[x=Yy i]", &["p|x=yY"], true);
        check("[x=y]", &["p|x=y|x=z"], true);
        check("[x=z]", &["p|x=y|x=z"], false);
    }

    #[test]
    fn combinators_and_lists_match() {
        check("div p", &["div", "b", "p"], true);
        check("div > p", &["div", "b", "p"], false);
        check("div>p", &["b", "div", "p"], true);
        check("p", &["p", "b"], false);
        check("a b > c d", &["a", "b", "x", "b", "c", "y", "d"], true);
        check("a > b > c d", &["a", "b", "x", "b", "c", "y", "d"], false);
        check("a > b c", &["a", "b", "a", "x", "c"], true);
        check("x, p", &["p"], true);
    }

    #[test]
    fn negations_exclude_compounds() {
        check("p:not(.keep)", &["p|class=x"], true);
        check("p:not(.keep)", &["p|class=keep"], false);
        check(":not(p, .keep)", &["b"], true);
        check(":not(p, .keep)", &["p"], false);
        check("p:not([x]):not(#y)", &["p|id=y"], false);
    }

    #[test]
    fn errors_name_the_unsupported_part() {
        for (selector, word) in [
            ("", "missing"),
            ("p,", "missing"),
            ("p + b", "siblings"),
            ("p:nth-child(2)", ":nth-child"),
            ("p::before", "::before"),
            ("p:not(a b)", ":not("),
            ("p:not(:not(a))", ":not"),
            ("[x", "no end"),
            ("[x=", "value"),
            ("[x=y", "`]`"),
            ("[x!=y]", "`!`"),
            (".", "class"),
            ("p$", "`$`"),
            ("> p", "`>`"),
        ] {
            let problem = parse(selector).unwrap_err();
            assert!(problem.contains(word), "{selector}: {problem}");
        }
    }
}
