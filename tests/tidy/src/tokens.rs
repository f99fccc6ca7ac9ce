//! Words and punctuation of Rust code, as far as the checks need them.

/// Returns the words and punctuation marks of a file. `::` is one mark. Blanks, comments, strings, characters and lifetimes are
/// omitted.
pub(crate) fn tokens(code: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), code);
    while let Some(first) = rest.chars().next() {
        let left_out = left_out(rest, first);
        let length = left_out.unwrap_or_else(|| match first {
            ':' if rest.starts_with("::") => 2,
            _ => word_length(rest).max(first.len_utf8()),
        });
        if left_out.is_none() {
            tokens.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of the blank, comment or literal at the start of a text.
fn left_out(text: &str, first: char) -> Option<usize> {
    match first {
        '/' if text.starts_with("//") => Some(text.find('\n').unwrap_or(text.len())),
        '/' if text.starts_with("/*") => Some(text.find("*/")? + 2),
        '"' | '\'' | 'b' | 'c' | 'r' => literal(text),
        _ => first.is_whitespace().then(|| first.len_utf8()),
    }
}

/// Returns the length of the string, character or lifetime at the start of a text.
fn literal(text: &str) -> Option<usize> {
    let quoted = text.trim_start_matches(['b', 'c', 'r']);
    let (prefix, _) = text.split_at(text.len() - quoted.len());
    let raw = quoted.trim_start_matches('#');
    let length = if prefix.ends_with('r') && raw.starts_with('"') {
        let hashes = quoted.len() - raw.len();
        let end = format!("\"{}", "#".repeat(hashes));
        hashes + 1 + raw[1..].find(&end)? + end.len()
    } else if quoted.starts_with('"') || quoted.starts_with("'\\") {
        let (quote, mut is_escaped) = (&quoted[..1], false);
        let close = quoted[1..].find(|character| {
            let is_close = !is_escaped && quote.contains(character);
            is_escaped = !is_escaped && character == '\\';
            is_close
        });
        close? + 2
    } else {
        let character = quoted.strip_prefix('\'')?;
        let length = character.chars().next()?.len_utf8();
        let is_lifetime = !character[length..].starts_with('\'');
        1 + if is_lifetime {
            word_length(character)
        } else {
            length + 1
        }
    };
    Some(prefix.len() + length)
}

fn word_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    end.unwrap_or(text.len())
}

/// Returns the number of tokens up to the end of an item: its `;` or the end of its block.
pub(crate) fn item_length(tokens: &[&str]) -> usize {
    let (mut brackets, mut braces) = (0, 0);
    let end = tokens.iter().position(|token| {
        match *token {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets -= 1,
            "{" => braces += 1,
            "}" => braces -= 1,
            _ => {}
        }
        brackets == 0 && braces <= 0 && [";", "}"].contains(token)
    });
    // The test-only field or variant ends before the brace that closes its type.
    end.map_or(tokens.len(), |at| at + usize::from(braces == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_left_out() {
        for (code, expected) in [
            ("a::b // c\n/* d */ e", "a :: b e"),
            (
                r##"a("b\"c", r#"d"e"#, b'"', '\'', '\\', 'f') g"##,
                "a ( , , , , , ) g",
            ),
            ("fn a<'b>(c: &'b str) -> r", "fn a < > ( c : & str ) - > r"),
        ] {
            assert_eq!(tokens(code).join(" "), expected);
        }
    }

    #[test]
    fn an_item_ends_with_its_semicolon_or_block() {
        for item in [
            "mod a;",
            "fn a<B, C>(d: [u8; 2]) -> E { { f(); } }",
            "#[b(c)] impl D {}",
        ] {
            assert_eq!(
                item_length(&tokens(&format!("{item} x; {{}}"))),
                tokens(item).len(),
                "{item}"
            );
        }
        assert_eq!(item_length(&["field", ":", "Type", "}"]), 3);
    }
}
