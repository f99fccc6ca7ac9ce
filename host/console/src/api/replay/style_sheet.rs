//! Rewrites a style sheet: inserts the images, fonts and sheets that it refers to.

use cssparser::{ParseError, Parser, Token};
use opilio_uri::Uri;

use super::Parts;

/// Maximum depth of nested blocks. Deeper ones are left unchanged, and the policy blocks their loads.
const DEPTH_MAX: usize = 64;

/// Replacement for a part that is not archived.
const NOTHING: &str = "data:,";

/// A reference in a sheet, with its position.
struct Named {
    from: usize,
    to: usize,
    reference: String,
}

/// Inserts images, fonts and imported sheets into a sheet or into the value of a `style` attribute.
pub(super) fn rewrite(css: &str, base: &Uri, parts: &mut Parts<'_>) -> String {
    let mut named = Vec::new();
    read(&mut Parser::new(css), 0, &mut named);
    let mut written = String::with_capacity(css.len());
    let mut at = 0;
    for Named {
        from,
        to,
        reference,
    } in named
    {
        // A fragment refers to the same page, for example to a gradient.
        if reference.starts_with('#') {
            continue;
        }
        let data = parts.data(base, &reference);
        written.push_str(&css[at..from]);
        written.push_str("url(\"");
        written.push_str(data.as_deref().unwrap_or(NOTHING));
        written.push_str("\")");
        at = to;
    }
    written.push_str(&css[at..]);
    written
}

fn read(parser: &mut Parser<'_>, depth: usize, named: &mut Vec<Named>) {
    let mut is_imported = false;
    loop {
        let from = parser.position().byte_index();
        let Ok(token) = parser.next_including_whitespace_and_comments() else {
            return;
        };
        let token = token.clone();
        let to = parser.position().byte_index();
        match &token {
            Token::WhiteSpace(_) | Token::Comment(_) => continue,
            Token::UnquotedUrl(reference) => named.push(Named {
                from,
                to,
                reference: reference.to_string(),
            }),
            Token::QuotedString(reference) if is_imported => named.push(Named {
                from,
                to,
                reference: reference.to_string(),
            }),
            Token::Function(name) if name.eq_ignore_ascii_case("url") => {
                let reference = inside(parser, |block| {
                    let reference = block.expect_string_cloned().ok();
                    reference.map(|reference| reference.to_string())
                });
                if let Some(reference) = reference {
                    named.push(Named {
                        from,
                        to: parser.position().byte_index(),
                        reference,
                    });
                }
            }
            Token::Function(_)
            | Token::ParenthesisBlock
            | Token::SquareBracketBlock
            | Token::CurlyBracketBlock => {
                inside(parser, |block| {
                    if depth < DEPTH_MAX {
                        read(block, depth + 1, named);
                    }
                    Some(())
                });
            }
            _ => {}
        }
        is_imported =
            matches!(&token, Token::AtKeyword(name) if name.eq_ignore_ascii_case("import"));
    }
}

/// Reads the block that has just begun. Afterwards the parser is at its end.
fn inside<T>(
    parser: &mut Parser<'_>,
    read: impl FnOnce(&mut Parser<'_>) -> Option<T>,
) -> Option<T> {
    let mut found = None;
    let _ = parser.parse_nested_block(|block| {
        found = read(block);
        while block.next().is_ok() {}
        Ok::<(), ParseError<()>>(())
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(css: &str, expected: &[&str]) {
        let mut named = Vec::new();
        read(&mut Parser::new(css), 0, &mut named);
        let found: Vec<String> = named
            .iter()
            .map(|one| format!("{} {}", &css[one.from..one.to], one.reference))
            .collect();
        assert_eq!(found, expected, "{css}");
    }

    #[test]
    fn references_are_found_with_their_positions() {
        check(
            "@import \"a.css\" screen; b { background: #fff url( c.png ) }",
            &["\"a.css\" a.css", "url( c.png ) c.png"],
        );
        check(
            "@media print { a::after { content: \"x.png\" url('y.png' ) } }",
            &["url('y.png' ) y.png"],
        );
        check(
            "/* url(no.png) */ @import url(b.css)",
            &["url(b.css) b.css"],
        );
        check("a { b: url(\"cut.png", &["url(\"cut.png cut.png"]);
    }
}
