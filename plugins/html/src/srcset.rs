//! `srcset`: image candidates, split as in the HTML standard (§4.8.4.2.2 "parsing a srcset attribute").

/// The references of a `srcset`, in order. A reference may contain commas. It ends at blanks, at trailing commas, or at the
/// comma after its descriptors.
pub(crate) fn candidates(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| is_blank(c) || c == ',');
        if rest.is_empty() {
            return None;
        }
        let (word, after) = rest.split_at(rest.find(is_blank).unwrap_or(rest.len()));
        let uri = word.trim_end_matches(',');
        rest = if uri.len() < word.len() {
            after
        } else {
            &after[descriptors(after)..]
        };
        Some(uri)
    })
}

/// Returns `true` if a value is a list of references that satisfy `is_likely`: several, or one with a descriptor (`a.jpg 2x`).
/// Attributes for one reference contain such lists if a script reads them.
pub(crate) fn is_list(value: &str, is_likely: impl Fn(&str) -> bool) -> bool {
    let is_descriptor = |word: &str| {
        word.strip_suffix(['w', 'x', 'h'])
            .is_some_and(|number| number.parse::<f32>().is_ok())
    };
    let value = value.trim_matches(is_blank);
    value.contains(is_blank)
        && value.split(',').all(|part| {
            let mut words = part.split(is_blank).filter(|word| !word.is_empty());
            words.next().is_some_and(&is_likely) && words.all(is_descriptor)
        })
}

/// Length of the descriptors up to the comma that ends them. Commas in parentheses do not count.
fn descriptors(text: &str) -> usize {
    let mut in_parentheses = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => in_parentheses = true,
            b')' => in_parentheses = false,
            b',' if !in_parentheses => return at,
            _ => {}
        }
    }
    text.len()
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0C')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        assert_eq!(candidates(value).collect::<Vec<_>>(), expected, "{value:?}");
    }

    #[test]
    fn candidates_are_split_as_in_the_standard() {
        check("a.jpg", &["a.jpg"]);
        check("a.jpg 1x, b.jpg 2x", &["a.jpg", "b.jpg"]);
        check("a.jpg, b.jpg", &["a.jpg", "b.jpg"]);
        check("a.jpg,b.jpg 2x", &["a.jpg,b.jpg"]);
        check("a.jpg 1x,b.jpg 2x", &["a.jpg", "b.jpg"]);
        check(" ,\n a.jpg\t100w ,, b.jpg", &["a.jpg", "b.jpg"]);
        check(
            "data:image/gif;base64,AA== 1x, b.jpg",
            &["data:image/gif;base64,AA==", "b.jpg"],
        );
        check("a.jpg 480w(x, y), b.jpg 96w(z", &["a.jpg", "b.jpg"]);
        check("a,b,c,,, d.jpg", &["a,b,c", "d.jpg"]);
        check("", &[]);
        check(" , ,", &[]);
    }

    #[test]
    fn lists_are_distinguished_from_other_values() {
        let is_list = |value| is_list(value, |word| word.contains('.'));
        for value in [
            "a.jpg 2x",
            "a.jpg, b.jpg",
            " a.jpg 1x,\nb.jpg 1.5x ",
            "a.jpg 100w 50h",
        ] {
            assert!(is_list(value), "{value:?}");
        }
        for value in [
            "",
            "a.jpg",
            " a.jpg ",
            "a.jpg,b.jpg",
            "a.jpg b.jpg",
            "my photo.jpg",
            "a.jpg, x",
            "a.jpg,",
        ] {
            assert!(!is_list(value), "{value:?}");
        }
    }
}
