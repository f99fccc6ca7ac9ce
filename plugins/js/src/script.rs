//! Reads a script in one pass over its tokens: enough of ECMA-262 to distinguish strings, comments, regular expressions and
//! code. Other text (JSON, a snippet, truncated code) is read in the same way.

use std::borrow::Cow;

use crate::likely::{self, Concatenation};
use crate::literal::unescape;
use crate::markup;

/// Longest string that is searched for markup and for nested strings, in bytes.
const SEARCHED_BYTES_MAX: usize = 1024 * 1024;

/// Deepest nesting of strings in strings, such as JSON in an attribute in a string.
const NESTING_MAX: u32 = 3;

/// Deepest nesting of template literals in each other's `${}`. Deeper template literals are read as code.
const TEMPLATES_MAX: u32 = 16;

/// Most open brackets that are tracked. Beyond them, no regular expression is expected after `)`.
const BRACKETS_MAX: usize = 10_000;

/// Placeholder for a template's `${}`. No reference contains it.
const PLACEHOLDER: char = '\u{0}';

/// A reference in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundReference {
    /// The reference with decoded escapes.
    pub uri: String,
    /// The syntax of the reference.
    pub syntax: Syntax,
}

/// Syntax of a reference in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// A string.
    String,
    /// A template literal without placeholders.
    Template,
    /// `import` or `export … from`.
    Import,
    /// `sourceMappingURL`.
    SourceMap,
    /// An attribute of markup in a string.
    Markup,
    /// A path after webpack's public path.
    PublicPath,
}

impl Syntax {
    /// The text for the link's context.
    #[must_use]
    pub fn context(self) -> &'static str {
        match self {
            Self::String => "js/string",
            Self::Template => "js/template",
            Self::Import => "js/import",
            Self::SourceMap => "js/source-map",
            Self::Markup => "js/markup",
            Self::PublicPath => "js/public-path",
        }
    }

    /// Returns `true` if the reference resolves against the URI of the script instead of that of the page.
    #[must_use]
    pub fn resolves_against_script(self) -> bool {
        matches!(self, Self::Import | Self::SourceMap)
    }
}

impl FoundReference {
    /// Returns `true` if the reference is neither absolute nor from the root.
    #[must_use]
    pub fn is_relative(&self) -> bool {
        !self.uri.starts_with('/') && !self.uri.contains("://")
    }
}

/// Finds strings that look like references, in order.
#[must_use]
pub fn read(text: &str) -> Vec<FoundReference> {
    let mut reader = Reader::new(text, 0);
    reader.code(false);
    reader.finish()
}

/// The previous token, if it affects the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// The start of the script.
    Start,
    /// An identifier or keyword.
    Word(&'a str),
    /// A number, string, template or regular expression.
    Value,
    /// Any other character: punctuation or an operator.
    Mark(u8),
    /// `)`. `statement`: whether a statement follows, as after `if (…)`.
    Closed { statement: bool },
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The last three tokens, newest last.
    previous: [Token<'a>; 3],
    /// For each open `(`: whether it belongs to `if`, `while`, `for` or `with`.
    open: Vec<bool>,
    /// No regular expression ends before this position. This keeps the search for ends linear.
    no_regex_until: usize,
    /// The same for strings in `'` and in `"`.
    no_string_until: [usize; 2],
    /// `true` if a template without an end was found. Later templates are then read as code.
    no_templates: bool,
    /// Number of open template literals.
    templates: u32,
    /// Number of strings around this text.
    nesting: u32,
    /// The first public path of webpack that the script sets.
    public_path: Option<String>,
    found: Vec<FoundReference>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, nesting: u32) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            previous: [Token::Start; 3],
            open: Vec::new(),
            no_regex_until: 0,
            no_string_until: [0; 2],
            no_templates: false,
            templates: 0,
            nesting,
            public_path: None,
            found: Vec::new(),
        }
    }

    fn finish(mut self) -> Vec<FoundReference> {
        if let Some(path) = self.public_path {
            for found in &mut self.found {
                if found.syntax == Syntax::PublicPath {
                    found.uri.insert_str(0, &path);
                }
            }
        }
        self.found
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn token(&mut self, token: Token<'a>) {
        self.previous = [self.previous[1], self.previous[2], token];
    }

    fn mark(&mut self, byte: u8) {
        self.at += 1;
        self.token(Token::Mark(byte));
    }

    /// Reads code to the end, or to the `}` that ends a template's placeholder. Returns whether this `}` was found.
    fn code(&mut self, in_template: bool) -> bool {
        let mut braces = 0_usize;
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'#' | 0x80.. => self.word(),
                b'0'..=b'9' => {
                    while self.peek(0).is_some_and(|b| is_word(b) || b == b'.') {
                        self.at += 1;
                    }
                    self.token(Token::Value);
                }
                b'"' | b'\'' => self.strings(),
                b'`' if !self.no_templates && self.templates < TEMPLATES_MAX => self.template(),
                b'/' => self.slash(),
                b'<' if self.bytes[self.at..].starts_with(b"<!--") => self.line_comment(),
                b'(' => {
                    let statement = matches!(
                        self.previous[2],
                        Token::Word("if" | "while" | "for" | "with")
                    );
                    if self.open.len() < BRACKETS_MAX {
                        self.open.push(statement);
                    }
                    self.mark(b'(');
                }
                b')' => {
                    let statement = self.open.pop().unwrap_or(false);
                    self.at += 1;
                    self.token(Token::Closed { statement });
                }
                b'{' => {
                    braces += 1;
                    self.mark(b'{');
                }
                b'}' => {
                    if braces == 0 && in_template {
                        self.at += 1;
                        return true;
                    }
                    braces = braces.saturating_sub(1);
                    self.mark(b'}');
                }
                b'\\' => self.escaped_quote(),
                _ => self.mark(byte),
            }
        }
        false
    }

    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
        // The `#` of a private name or of a `#!` line.
        self.at = self.at.max(start + 1);
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        self.token(Token::Word(&self.text[start..self.at]));
    }

    fn slash(&mut self) {
        match self.peek(1) {
            Some(b'/') => self.line_comment(),
            Some(b'*') => {
                let start = self.at + 2;
                let end = memchr::memmem::find(&self.bytes[start..], b"*/").map(|n| start + n);
                self.comment(start, end.unwrap_or(self.bytes.len()));
                self.at = end.map_or(self.bytes.len(), |end| end + 2);
            }
            _ if self.may_begin_regex() && self.regex() => self.token(Token::Value),
            _ => self.mark(b'/'),
        }
    }

    fn line_comment(&mut self) {
        let start = self.at + 2;
        let end = memchr::memchr2(b'\n', b'\r', &self.bytes[start..])
            .map_or(self.bytes.len(), |n| start + n);
        self.comment(start, end);
        self.at = end;
    }

    /// Reads `# sourceMappingURL=…`; other text in comments is ignored.
    fn comment(&mut self, start: usize, end: usize) {
        let text = &self.text[start..end];
        let Some(rest) = text.trim_start().strip_prefix(['#', '@']) else {
            return;
        };
        let Some(uri) = rest.trim_start().strip_prefix("sourceMappingURL=") else {
            return;
        };
        let uri = uri.split_ascii_whitespace().next().unwrap_or_default();
        let is_data = uri
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        if !uri.is_empty()
            && !is_data
            && uri.len() <= likely::REFERENCE_BYTES_MAX
            && !uri.contains(['\'', '"', '`', '{', '$', '+'])
        {
            self.found.push(FoundReference {
                uri: uri.to_owned(),
                syntax: Syntax::SourceMap,
            });
        }
    }

    /// Returns `true` if a regular expression may begin here. After a value, a slash is a division.
    fn may_begin_regex(&self) -> bool {
        match self.previous[2] {
            Token::Value => false,
            Token::Word(word) => matches!(
                word,
                "return"
                    | "typeof"
                    | "case"
                    | "in"
                    | "of"
                    | "delete"
                    | "void"
                    | "throw"
                    | "new"
                    | "else"
                    | "do"
                    | "instanceof"
                    | "yield"
                    | "await"
            ),
            Token::Closed { statement } => statement,
            Token::Mark(b']') => false,
            Token::Start | Token::Mark(_) => true,
        }
    }

    /// Reads a regular expression; `false` if its line ends first.
    fn regex(&mut self) -> bool {
        if self.at < self.no_regex_until {
            return false;
        }
        let mut in_class = false;
        let mut at = self.at + 1;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\n' | b'\r' => break,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    at += 1;
                    while self.bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
                        at += 1;
                    }
                    self.at = at;
                    return true;
                }
                _ => {}
            }
            at += 1;
        }
        self.no_regex_until = at;
        false
    }

    /// Reads `\'…\'`: a string in code that is itself an escaped string.
    fn escaped_quote(&mut self) {
        let start = self.at;
        while self.peek(0) == Some(b'\\') {
            self.at += 1;
        }
        let backslashes = &self.text[start..self.at];
        let Some(quote @ (b'"' | b'\'')) = self.peek(0) else {
            return;
        };
        self.at += 1;
        let body = self.at;
        let Some(close) = memchr::memchr(quote, &self.bytes[body..]).map(|n| body + n) else {
            return;
        };
        let Some(value) = self.text[body..close].strip_suffix(backslashes) else {
            return;
        };
        if !value.ends_with('\\') && !value.contains('\n') {
            self.at = close + 1;
            self.value(&unescape(value), Concatenation::default(), Syntax::String);
            self.token(Token::Value);
        }
    }

    /// Reads a string, and the strings that `+` concatenates to it.
    fn strings(&mut self) {
        let previous = self.previous;
        let Some(first) = self.string() else {
            self.mark(b'"');
            return;
        };
        let mut value = unescape(first);
        let mut continued = false;
        loop {
            let after = self.skip_blanks(self.at);
            if self.bytes.get(after) != Some(&b'+')
                || matches!(self.bytes.get(after + 1), Some(b'+' | b'='))
            {
                break;
            }
            let next = self.skip_blanks(after + 1);
            let end = self.at;
            self.at = next;
            match self.bytes.get(next) {
                Some(b'"' | b'\'') if value.len() <= SEARCHED_BYTES_MAX => match self.string() {
                    Some(raw) => value.to_mut().push_str(&unescape(raw)),
                    None => {
                        self.at = end;
                        continued = true;
                        break;
                    }
                },
                _ => {
                    self.at = end;
                    continued = true;
                    break;
                }
            }
        }
        self.token(Token::Value);
        let after = self.skip_blanks(self.at);
        let concatenation = Concatenation {
            before: previous[2] == Token::Mark(b'+'),
            after: continued,
        };
        match (previous[0], previous[1], previous[2]) {
            (_, _, Token::Word("from" | "import"))
            | (_, Token::Word("import"), Token::Mark(b'(')) => {
                if !continued && likely::is_module(&value) {
                    self.found.push(FoundReference {
                        uri: value.into_owned(),
                        syntax: Syntax::Import,
                    });
                }
            }
            // `require` of CommonJS and bundlers names modules, not files.
            (_, Token::Word("require" | "_dereq_" | "__webpack_require__"), Token::Mark(b'(')) => {}
            (_, _, Token::Mark(b'{' | b',')) if self.bytes.get(after) == Some(&b':') => {
                // A key. Keys are references only in a map by URI.
                if value.contains("://") {
                    self.value(&value, concatenation, Syntax::String);
                }
            }
            (Token::Mark(b'.'), Token::Word("p"), Token::Mark(b'+'))
            | (_, Token::Word("__webpack_public_path__"), Token::Mark(b'+')) => {
                if !continued && likely::is_asset(&value) {
                    self.found.push(FoundReference {
                        uri: value.into_owned(),
                        syntax: Syntax::PublicPath,
                    });
                }
            }
            (Token::Mark(b'.'), Token::Word("p"), Token::Mark(b'='))
            | (_, Token::Word("__webpack_public_path__"), Token::Mark(b'='))
                if !continued && is_public_path(&value) =>
            {
                self.public_path.get_or_insert_with(|| value.into_owned());
            }
            _ => self.value(&value, concatenation, Syntax::String),
        }
    }

    /// Reads the text between quotes on one line; `None` if the string has no end.
    fn string(&mut self) -> Option<&'a str> {
        let quote = self.bytes[self.at];
        let memo = usize::from(quote == b'"');
        if self.at < self.no_string_until[memo] {
            return None;
        }
        let start = self.at + 1;
        let mut at = start;
        loop {
            match self.bytes.get(at) {
                Some(&byte) if byte == quote => {
                    self.at = at + 1;
                    return Some(&self.text[start..at]);
                }
                Some(b'\\') => {
                    at += if self.bytes[at + 1..].starts_with(b"\r\n") {
                        3
                    } else {
                        2
                    };
                }
                None | Some(b'\n' | b'\r') => {
                    self.no_string_until[memo] = at.min(self.bytes.len());
                    return None;
                }
                Some(_) => at += 1,
            }
        }
    }

    /// Reads a template literal and the code in it. A template literal without an end is read as code.
    fn template(&mut self) {
        let (start, found) = (self.at, self.found.len());
        self.templates += 1;
        let value = self.template_value();
        self.templates -= 1;
        match value {
            Some((value, false)) => {
                self.token(Token::Value);
                let concatenation = Concatenation {
                    before: self.previous[1] == Token::Mark(b'+'),
                    after: self.is_concatenated(),
                };
                self.value(&value, concatenation, Syntax::Template);
            }
            Some((value, true)) => {
                self.token(Token::Value);
                self.search(&value);
            }
            None => {
                self.no_templates = true;
                self.found.truncate(found);
                self.at = start + 1;
                self.token(Token::Mark(b'`'));
            }
        }
    }

    /// The text of a template, and whether it has placeholders.
    fn template_value(&mut self) -> Option<(Cow<'a, str>, bool)> {
        self.at += 1;
        let previous = self.previous;
        let mut value = Cow::Borrowed("");
        let mut has_placeholders = false;
        loop {
            let start = self.at;
            loop {
                match self.peek(0)? {
                    b'`' => break,
                    b'$' if self.peek(1) == Some(b'{') => break,
                    b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                    _ => self.at += 1,
                }
            }
            // The end of a skipped escape may be inside a character.
            let part = unescape(self.text.get(start..self.at)?);
            if value.is_empty() {
                value = part;
            } else {
                value.to_mut().push_str(&part);
            }
            if self.bytes[self.at] == b'`' {
                self.at += 1;
                self.previous = previous;
                return Some((value, has_placeholders));
            }
            has_placeholders = true;
            value.to_mut().push(PLACEHOLDER);
            self.at += 2;
            self.previous = [Token::Start; 3];
            if !self.code(true) {
                return None;
            }
        }
    }

    /// Returns `true` if `+` follows the token.
    fn is_concatenated(&self) -> bool {
        self.bytes.get(self.skip_blanks(self.at)) == Some(&b'+')
    }

    fn skip_blanks(&self, mut at: usize) -> usize {
        while self.bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    }

    /// Reads the value of a string: a reference, or text that may contain references.
    fn value(&mut self, value: &str, concatenation: Concatenation, syntax: Syntax) {
        match likely::reference(value, concatenation) {
            Some(uri) => self.found.push(FoundReference { uri, syntax }),
            None => self.search(value),
        }
    }

    /// Looks for references in markup or nested strings in `value`, which is not itself a reference.
    fn search(&mut self, value: &str) {
        /// Shortest string that is searched, in bytes. Quoted references are longer.
        const SEARCHED_BYTES_MIN: usize = 6;
        if value.len() < SEARCHED_BYTES_MIN || value.len() > SEARCHED_BYTES_MAX {
            return;
        }
        if markup::is_markup(value) {
            self.found.extend(
                markup::references(value)
                    .into_iter()
                    .map(|uri| FoundReference {
                        uri,
                        syntax: Syntax::Markup,
                    }),
            );
        } else if self.nesting < NESTING_MAX
            && value.contains(['"', '\''])
            && value.contains(['/', '.'])
        {
            let mut inner = Reader::new(value, self.nesting + 1);
            inner.quoted_strings();
            self.found.append(&mut inner.found);
        }
    }

    /// Reads only the quoted strings of a text that is not code.
    fn quoted_strings(&mut self) {
        while let Some(next) = memchr::memchr3(b'"', b'\'', b'\\', &self.bytes[self.at..]) {
            self.at += next;
            if self.bytes[self.at] == b'\\' {
                self.escaped_quote();
            } else if let Some(raw) = self.string() {
                let after = self.bytes.get(self.skip_blanks(self.at)).copied();
                // A key of JSON.
                if after != Some(b':') {
                    let value = unescape(raw);
                    let continued = after == Some(b'+');
                    self.value(
                        &value,
                        Concatenation {
                            before: false,
                            after: continued,
                        },
                        Syntax::String,
                    );
                }
            } else {
                self.at += 1;
            }
        }
    }
}

/// Returns `true` if a string may be webpack's public path: the folder from which its files are served.
fn is_public_path(value: &str) -> bool {
    value.is_empty()
        || (value.ends_with('/')
            && value.len() <= likely::REFERENCE_BYTES_MAX
            && !value.contains(char::is_whitespace))
}

#[inline]
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: &[&str]) {
        let found: Vec<String> = read(script).into_iter().map(|found| found.uri).collect();
        assert_eq!(found, expected, "{script}");
    }

    #[test]
    fn strings_that_look_like_references() {
        check(
            r#"var foo = "http://www.example.com/outlink";"#,
            &["http://www.example.com/outlink"],
        );
        check(
            r#"fetch("/api/v1/items?page=1")"#,
            &["/api/v1/items?page=1"],
        );
        check(r#"x = '\/a\/b.html'"#, &["/a/b.html"]);
        check(r#"x.type="text/javascript""#, &[]);
        check(r#"_gaq.push(['_setDomainName', '.example.com']);"#, &[]);
        check("'a.png'\n\"b.png\"", &["a.png", "b.png"]);
    }

    #[test]
    fn concatenated_strings_are_one_value() {
        check(
            r#"x = "http://exa" + 'mple.org/a'"#,
            &["http://example.org/a"],
        );
        check(r#"x = "/item/" + id"#, &[]);
        check(r#"x = base + "/a.html""#, &[]);
        check(r#"x = "/js/a.js" + version"#, &["/js/a.js"]);
        check(r#"x = "http://e" + "x.org/" + "item/" + id"#, &[]);
        check(r#"i = "/a.html"; i++ + "/b.html""#, &["/a.html"]);
    }

    #[test]
    fn quotes_in_comments_and_regular_expressions_begin_no_strings() {
        check("// 'http://example.org/a'\n'/b.html'", &["/b.html"]);
        check("/* '/a.html' */ '/b.html' /* '/c.html'", &["/b.html"]);
        check(r#"x = /["']/; y = '/b.html'"#, &["/b.html"]);
        check(r#"x = /[/"]/g.test(y) ? "/b.html" : 0"#, &["/b.html"]);
        check(r#"if (x) /"/.test(y); z = "/b.html""#, &["/b.html"]);
        check(r#"x = (a) / b; y = "/b.html"; z = c / d"#, &["/b.html"]);
        check(r#"x = a[0] / 2, y = "/b.html", z = 1 / 2"#, &["/b.html"]);
        check(r#"return/"/.exec(x),"/b.html""#, &["/b.html"]);
        check(r#"r=/a\/b/; s="/b.html""#, &["/b.html"]);
        check("<!-- don't\n x = '/b.html'\n// -->", &["/b.html"]);
    }

    #[test]
    fn templates() {
        check("x = `/a/b.html`", &["/a/b.html"]);
        check("x = `/a/${id}/b.html`", &[]);
        check(
            "x = `${f(`/c.html`, {a: '/d.html'})}`, '/e.html'",
            &["/c.html", "/d.html", "/e.html"],
        );
        check(
            "x = html`<a href=\"/a\">${x}</a><a href=\"/b/${y}\">`",
            &["/a"],
        );
        check("x = ` unfinished; y = '/b.html'", &["/b.html"]);
        check("x = `${ unfinished; y = '/b.html'", &["/b.html"]);
        check("x = `\\`/a.html\\``", &[]);
    }

    #[test]
    fn imports() {
        let found = read(
            "import a from \"./a.js\"; import './b'; export * from '../c.js'; import(\"./d.mjs\"); import x from 'react'",
        );
        let uris: Vec<_> = found.iter().map(|found| found.uri.as_str()).collect();
        assert_eq!(uris, ["./a.js", "./b", "../c.js", "./d.mjs"]);
        assert!(found.iter().all(|found| found.syntax == Syntax::Import));
        check("require('./a.js'); _dereq_('./b.js')", &[]);
        check("import('./locale/' + name + '.js')", &[]);
    }

    #[test]
    fn source_maps() {
        check("x\n//# sourceMappingURL=app.js.map", &["app.js.map"]);
        check("//@ sourceMappingURL=a/b.map\n", &["a/b.map"]);
        check("/*# sourceMappingURL=a.css.map */", &["a.css.map"]);
        check(
            "//# sourceMappingURL=data:application/json;base64,e30=",
            &[],
        );
        check("s = '//# sourceMappingURL=' + x", &[]);
    }

    #[test]
    fn webpack_public_paths() {
        check(
            r#"e.exports=n.p+"static/media/logo.5d5d9eef.svg""#,
            &["static/media/logo.5d5d9eef.svg"],
        );
        check(
            r#"n.p="/assets/";e.exports=n.p+"logo.svg""#,
            &["/assets/logo.svg"],
        );
        check(
            r#"e.exports=n.p+"logo.svg";n.p="https://cdn.example.org/a/""#,
            &["https://cdn.example.org/a/logo.svg"],
        );
        check(r#"n.p+"x""#, &[]);
    }

    #[test]
    fn markup_in_strings() {
        check(
            r#"x = "<a href=\"http:\/\/www.example.com\/outlink\">y</a>""#,
            &["http://www.example.com/outlink"],
        );
        check(r#"document.write("<img src='a.gif'>")"#, &["a.gif"]);
        check(r#"document.write('<a href="' + x + '">')"#, &[]);
        check(r#"document.write('<a ' + 'href="/x">')"#, &["/x"]);
    }

    #[test]
    fn strings_in_strings() {
        check(
            r#"x = "{\"url\":\"http:\\/\\/example.org\\/a\"}""#,
            &["http://example.org/a"],
        );
        check(
            r#"scheme-less_\\\'example.org/outlink\\\'_with_extra_escaping"#,
            &["http://example.org/outlink"],
        );
        check(
            r#"setTimeout("window.open('/pop.html')", 1)"#,
            &["/pop.html"],
        );
        check(r#"x = "don't go to 'a' or b""#, &[]);
    }

    #[test]
    fn json() {
        check(
            r#"{"@context":"https://schema.org","url":"https://example.org/a","image":["/b.png","c.jpg"],"d.js":1}"#,
            &["https://example.org/a", "/b.png", "c.jpg"],
        );
        check(
            r#""FileRef": "\u002fsites\u002fprb\u002fPublic Comments\u002fa.pdf","#,
            &["/sites/prb/Public Comments/a.pdf"],
        );
    }

    #[test]
    fn unfinished_strings_end_with_their_line() {
        check("x = 'abc\ny = '/b.html'", &["/b.html"]);
        check("it's \"/b.html\"", &["/b.html"]);
        check("'", &[]);
        check("'\\", &[]);
        check("\"\\é", &[]);
    }
}
