//! A rule of the operator: a pattern for the whole URI, and a template for its replacement.
//!
//! Patterns are those of the `regex` crate. They match in time linear in the text, so no URI can delay a crawl. Features that
//! the crate lacks (look-around, back-references) are refused when the rule is made. Patterns are ASCII, as URIs are: `\w` is a
//! Latin letter, a digit or `_`. This keeps them small.

use std::borrow::Cow;

use regex::bytes::{Captures, Regex, RegexBuilder};

/// Longest pattern and longest replacement, in bytes.
pub const REGEX_RULE_BYTES_MAX: usize = 4096;

/// Largest compiled pattern in bytes: some thousands of literal characters, or some hundreds of repetitions of a group.
/// Matching time is proportional to the sizes of pattern and text. The worst pattern of this size that we found takes 0.7 s
/// for a URI of 64 KiB, ordinary ones a millisecond.
pub const REGEX_COMPILED_BYTES_MAX: usize = 128 * 1024;

/// Longest result of a rule in bytes: that of a URI. If the result would be longer, the rule leaves the text unchanged.
/// Otherwise a list of rules that double the text could fill the memory.
pub const REGEX_RESULT_BYTES_MAX: usize = crate::URI_BYTES_MAX;

/// A pattern that must match the whole text, and the template of its replacement.
#[derive(Clone, Debug)]
pub struct RegexRule {
    pattern: String,
    replacement: String,
    regex: Regex,
    template: Vec<Piece>,
}

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The match of the group with this number; empty if the group took no part in the match.
    Group(usize),
}

/// The reason why a regex rule cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RegexRuleError {
    /// The pattern, or the replacement, has more than [`REGEX_RULE_BYTES_MAX`] bytes.
    #[error("the {what} of a regex rule has {length} bytes, more than {REGEX_RULE_BYTES_MAX}")]
    TooLong {
        /// `pattern` or `replacement`.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
    },
    /// The pattern is invalid, or needs more than [`REGEX_COMPILED_BYTES_MAX`] bytes.
    #[error("{pattern:?} cannot be used as a pattern")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The parser's error, over several lines if it marks the place.
        #[source]
        source: regex::Error,
    },
    /// The replacement names a group that the pattern does not have.
    #[error(
        "the replacement {replacement:?} asks for group {group:?}, and pattern {pattern:?} has no such group"
    )]
    Group {
        /// The replacement.
        replacement: String,
        /// The group: a number or a name.
        group: String,
        /// The pattern.
        pattern: String,
    },
    /// The replacement has `${` without a `}` after it.
    #[error(
        "the replacement {replacement:?} has a \"${{\" without a \"}}\" (a dollar sign itself is written \"$$\")"
    )]
    Brace {
        /// The replacement.
        replacement: String,
    },
}

impl RegexRule {
    /// Creates a rule that replaces a text by `replacement` if `pattern` matches it as a whole.
    ///
    /// In the replacement `${1}`, `${name}` and `$1` mean the match of a group (`${0}` the whole text), and `$$` and `\$` a
    /// dollar sign. `$12` is group 12 if the pattern has it, otherwise group 1 and a `2`.
    ///
    /// # Errors
    /// [`RegexRuleError`], with the reason.
    pub fn new(pattern: &str, replacement: &str) -> Result<RegexRule, RegexRuleError> {
        for (what, text) in [("pattern", pattern), ("replacement", replacement)] {
            if text.len() > REGEX_RULE_BYTES_MAX {
                return Err(RegexRuleError::TooLong {
                    what,
                    length: text.len(),
                });
            }
        }
        let regex = anchored(pattern).map_err(|source| RegexRuleError::Pattern {
            pattern: pattern.to_owned(),
            source,
        })?;
        let template = template(replacement, &regex, pattern)?;
        Ok(RegexRule {
            pattern: pattern.to_owned(),
            replacement: replacement.to_owned(),
            regex,
            template,
        })
    }

    /// The pattern as written.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The replacement as written.
    #[must_use]
    pub fn replacement(&self) -> &str {
        &self.replacement
    }

    /// Rewrites `text`. It is borrowed if the pattern does not match all of it, or if the result would be empty, longer than
    /// [`REGEX_RESULT_BYTES_MAX`], or invalid UTF-8.
    #[must_use]
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let groups = self.regex.captures(text.as_bytes());
        match groups.and_then(|groups| self.expand(&groups)) {
            Some(written) => Cow::Owned(written),
            None => Cow::Borrowed(text),
        }
    }

    fn expand(&self, groups: &Captures<'_>) -> Option<String> {
        let mut out = Vec::new();
        for piece in &self.template {
            out.extend_from_slice(match piece {
                Piece::Text(text) => text.as_bytes(),
                Piece::Group(number) => groups.get(*number).map_or(b"", |group| group.as_bytes()),
            });
            if out.len() > REGEX_RESULT_BYTES_MAX {
                return None;
            }
        }
        String::from_utf8(out).ok().filter(|text| !text.is_empty())
    }
}

/// Compiles a pattern so that it only matches whole texts.
fn anchored(pattern: &str) -> Result<Regex, regex::Error> {
    let compile = |text: &str| {
        RegexBuilder::new(text)
            .unicode(false)
            .size_limit(REGEX_COMPILED_BYTES_MAX)
            .build()
    };
    // Compiled alone first: errors then quote the original, and `a)|(b` cannot escape the anchors.
    compile(pattern)?;
    // The line end is needed if the last line is a comment of an `(?x)` pattern.
    compile(&format!(r"\A(?:{pattern})\z")).or_else(|_| compile(&format!("\\A(?:{pattern}\n)\\z")))
}

fn template(replacement: &str, regex: &Regex, pattern: &str) -> Result<Vec<Piece>, RegexRuleError> {
    let groups = regex.captures_len();
    let no_group = |group: &str| RegexRuleError::Group {
        replacement: replacement.to_owned(),
        group: group.to_owned(),
        pattern: pattern.to_owned(),
    };
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = replacement;
    while let Some(at) = rest.find(['$', '\\']) {
        text.push_str(&rest[..at]);
        let escape = rest[at..].starts_with('\\');
        rest = &rest[at + 1..];
        let group = if escape || rest.starts_with('$') {
            // An escape: the next character stays unchanged.
            let next = rest.chars().next();
            text.extend(next);
            rest = &rest[next.map_or(0, char::len_utf8)..];
            continue;
        } else if let Some(braced) = rest.strip_prefix('{') {
            let (name, after) = braced
                .split_once('}')
                .ok_or_else(|| RegexRuleError::Brace {
                    replacement: replacement.to_owned(),
                })?;
            rest = after;
            let number = match name.parse::<usize>() {
                Ok(number) => Some(number).filter(|number| *number < groups),
                Err(_) => regex.capture_names().position(|known| known == Some(name)),
            };
            number.ok_or_else(|| no_group(name))?
        } else {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                text.push('$');
                continue;
            }
            let number =
                |length: usize| rest[..length].parse::<usize>().ok().filter(|n| *n < groups);
            // The longest sequence of digits that is the number of a group.
            let (length, number) = (1..=digits)
                .rev()
                .find_map(|length| Some((length, number(length)?)))
                .ok_or_else(|| no_group(&rest[..digits]))?;
            rest = &rest[length..];
            number
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Group(group));
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, replacement: &str, text: &str, expected: &str) {
        let rule = RegexRule::new(pattern, replacement).unwrap();
        assert_eq!(rule.apply(text), expected, "{pattern} {replacement} {text}");
    }

    #[track_caller]
    fn check_refused(pattern: &str, replacement: &str, message: &str) {
        let error = RegexRule::new(pattern, replacement).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn a_pattern_matches_the_whole_text_or_nothing() {
        check(
            r"(.*)/print(\d+)",
            "${1}/$2",
            "http://a/print12",
            "http://a/12",
        );
        check(
            r"(.*)/print(\d+)",
            "${1}/$2",
            "http://a/print12/",
            "http://a/print12/",
        );
        check("a|ab", "x", "ab", "x");
        check(
            r"(.*[?&])t=\d+&?(.*)",
            "${1}${2}",
            "http://a.org/b?t=17&c",
            "http://a.org/b?c",
        );
        check("a|b", "x", "xb", "xb");
        check("(?x) (a+) # letters", "<$1>", "aa", "<aa>");
        check("(?m)^a$", "x", "a\nb", "a\nb");
        check(r"(\w+)-\w{2,30}", "$1", "a1_-bcd", "a1_");
        check(r"(\w+)", "x", "ä", "ä");
        check("(.)(.)", "$2", "ä", "ä");
    }

    #[test]
    fn a_replacement_names_groups() {
        check("(?<site>.*)/(.)", "${site}-${2}-$0", "a/b", "a-b-a/b");
        check("(.)", "$12", "a", "a2");
        check("(.)", "${1}2", "a", "a2");
        check("(.)", r"$$1\$1\\$ $", "a", r"$1$1\$ $");
        check("(.)", "end\\", "a", "end");
        check("(a)|(b)", "<$1$2>", "b", "<b>");
        check(
            "(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)",
            "$10$1",
            "abcdefghij",
            "ja",
        );
    }

    #[test]
    fn a_result_is_neither_empty_nor_longer_than_a_uri() {
        check(".*", "", "abc", "abc");
        let long = "a".repeat(REGEX_RESULT_BYTES_MAX);
        check("(.*)", "$1", &long, &long);
        check("(.*)", "$1$1", &long, &long);
        check("(.*)", "$1$1", "ab", "abab");
    }

    #[test]
    fn an_invalid_rule_is_refused_with_the_reason() {
        check_refused("(", "", r#""(" cannot be used as a pattern"#);
        check_refused("a)|(?:b", "", r#""a)|(?:b" cannot be used as a pattern"#);
        check_refused("(?=a)", "", r#""(?=a)" cannot be used as a pattern"#);
        check_refused(
            "(?:abcdefghij){1000}",
            "",
            r#""(?:abcdefghij){1000}" cannot be used as a pattern"#,
        );
        check_refused(
            "(a)",
            "$2",
            r#"the replacement "$2" asks for group "2", and pattern "(a)" has no such group"#,
        );
        check_refused(
            "(a)",
            "${b}",
            r#"the replacement "${b}" asks for group "b", and pattern "(a)" has no such group"#,
        );
        check_refused(
            "(a)",
            "${1",
            r#"the replacement "${1" has a "${" without a "}" (a dollar sign itself is written "$$")"#,
        );
        check_refused(
            &"a".repeat(4097),
            "",
            "the pattern of a regex rule has 4097 bytes, more than 4096",
        );
        check_refused(
            "a",
            &"b".repeat(5000),
            "the replacement of a regex rule has 5000 bytes, more than 4096",
        );
    }
}
