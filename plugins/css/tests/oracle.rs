//! Compares the reader of style sheets with the tokenizer cssparser on random sheets. Also measures time: hostile input must take
//! linear time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use cssparser::{ParseError, Parser, Token};
use opilio_css::sheet;
use proptest::prelude::*;

/// Finds references in the tokens of cssparser, by the same rules.
#[derive(Default)]
struct CssparserReader {
    rule: &'static str,
    found: Vec<String>,
}

impl CssparserReader {
    fn report(&mut self, uri: &str) {
        let uri = uri.trim_matches(|c: char| c <= ' ');
        if !uri.is_empty() && !uri.starts_with('#') {
            self.found.push(uri.to_owned());
        }
    }

    /// Reads one level of tokens. `function`: the function whose brackets are being read, or an empty string. `at_top`: whether
    /// the position is outside of functions, parentheses and square brackets.
    fn read(&mut self, parser: &mut Parser<'_>, function: &str, at_top: bool) {
        let mut takes_string = matches!(function, "url" | "src");
        while let Ok(token) = parser.next().cloned() {
            match &token {
                Token::AtKeyword(name) => {
                    self.rule = match name.to_ascii_lowercase().as_str() {
                        "import" => "import",
                        "namespace" | "document" | "-moz-document" => "naming",
                        _ => "",
                    };
                }
                Token::Semicolon => self.rule = "",
                Token::UnquotedUrl(uri) => {
                    if self.rule != "naming" {
                        self.report(uri);
                    }
                    if self.rule == "import" {
                        self.rule = "";
                    }
                }
                Token::QuotedString(text) => {
                    let counts = match function {
                        "url" | "src" => takes_string,
                        "image-set" | "-webkit-image-set" | "image" => true,
                        _ => self.rule == "import" && at_top,
                    };
                    takes_string = false;
                    if counts && self.rule != "naming" {
                        self.report(text);
                        if self.rule == "import"
                            && !function.starts_with("image")
                            && !function.starts_with('-')
                        {
                            self.rule = "";
                        }
                    }
                }
                Token::Function(name) => {
                    let name = name.to_ascii_lowercase();
                    self.nested(parser, &name, false);
                }
                Token::ParenthesisBlock | Token::SquareBracketBlock => {
                    self.nested(parser, "", false)
                }
                Token::CurlyBracketBlock => {
                    self.rule = "";
                    self.nested(parser, "", true);
                    self.rule = "";
                }
                _ => {}
            }
        }
    }

    fn nested(&mut self, parser: &mut Parser<'_>, function: &str, at_top: bool) {
        let _: Result<(), ParseError<()>> = parser.parse_nested_block(|inner| {
            self.read(inner, function, at_top);
            Ok(())
        });
    }
}

fn cssparser_references(text: &str) -> Vec<String> {
    let mut reader = CssparserReader::default();
    reader.read(&mut Parser::new(text), "", true);
    reader.found
}

/// Sheets with matching brackets. After a mismatch this reader resumes at the next brace, and other tokenizers do not.
fn sheet() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "url(a)",
            "URL( b )",
            "url('c')",
            "url( \"d\" x)",
            "\\75 rl(e)",
            "u\\72 l(f)",
            "url(g\\)h)",
            "url(i j)",
            "url(k'l)",
            "url(m\\\nn)",
            "src('o')",
            "image-set('p' 1x, url(q))",
            "@import 'r';",
            "@import url(s);",
            "@import \"t\" x('u');",
            "@namespace url(v);",
            "@media x",
            "/* url(w) */",
            "/**/",
            "'x\\\ny'",
            "'z\\'",
            "\"",
            "'",
            "\n",
            "1url(",
            "1.5em",
            "-1e3url(",
            ".5url(",
            "--url(",
            "-url(",
            "-->",
            "<!--",
            "#url(",
            "#a",
            "@a",
            "\\",
            "/",
            "\\\n",
            "é",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            ";",
            ":",
            ",",
            " ",
            "5%",
            "a",
            "url",
            "1.url(aa)",
            "+.5e+3",
            "-",
            "--",
            "@-",
            "@--a",
            "url(ab",
            "url(\u{1})",
            "\\1F600 ",
            "url(\\",
            "type('ac')",
        ])
        .prop_map(str::to_owned),
        "[a-z0-9 '\"\\\\/*@#()-]{0,4}",
    ];
    prop::collection::vec(word, 0..16).prop_map(|words| words.concat())
}

fn is_balanced(text: &str) -> bool {
    let mut open = Vec::new();
    let mut parser = Parser::new(text);
    fn walk(parser: &mut Parser<'_>, open: &mut Vec<bool>) {
        while let Ok(token) = parser.next().cloned() {
            match token {
                Token::CloseParenthesis | Token::CloseSquareBracket | Token::CloseCurlyBracket => {
                    open.push(false)
                }
                Token::Function(_)
                | Token::ParenthesisBlock
                | Token::SquareBracketBlock
                | Token::CurlyBracketBlock => {
                    let _: Result<(), ParseError<()>> = parser.parse_nested_block(|inner| {
                        walk(inner, open);
                        Ok(())
                    });
                }
                _ => {}
            }
        }
    }
    walk(&mut parser, &mut open);
    open.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, max_global_rejects: 60_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn references_are_those_of_cssparser(text in sheet()) {
        prop_assume!(is_balanced(&text) && !text.contains('{') && !text.contains('}'));
        let found: Vec<String> = sheet::read(&text).into_iter().map(|found| found.uri).collect();
        prop_assert_eq!(found, cssparser_references(&text));
    }

    #[test]
    fn any_text_is_read(text in sheet(), other in "\\PC{0,40}") {
        sheet::read(&(text + &other));
    }
}

#[test]
fn hostile_input_takes_linear_time() {
    /// Size of an input. One takes about a second; in quadratic time it would take hours. Debug builds use less.
    const BYTES: usize = if cfg!(debug_assertions) {
        1024 * 1024
    } else {
        10 * 1024 * 1024
    };
    const TIME_MAX: Duration = Duration::from_secs(30);
    for piece in [
        "url(",
        "url('",
        "url(x",
        "/*",
        "'",
        "\"\n",
        "@import ",
        "((((",
        "\\",
        "image-set('x'",
        "url(\\",
        "a{",
        "u\\72 l(",
        "\\9",
        "url(x y ",
        "@",
        "#",
        "-",
        "1e",
    ] {
        let text = piece.repeat(BYTES / piece.len());
        let start = Instant::now();
        sheet::read(&text);
        assert!(start.elapsed() < TIME_MAX, "{piece}: {:?}", start.elapsed());
    }
}
