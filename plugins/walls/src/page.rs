//! Reads the parts of a page by which it is recognised: title, first heading and length of text. This is not a full HTML
//! parser, because such pages come from simple templates. A page that it reads wrongly is not recognised.

/// Returns the text of the first element with that name, in lower case.
pub(crate) fn element_text(html: &str, name: &str) -> Option<String> {
    /// Longest text of a title.
    const TEXT_BYTES_MAX: usize = 1_000;
    let open = find_tag(html, name, 0)?;
    let start = open + html[open..].find('>')? + 1;
    let rest = &html[start..];
    let rest = &rest[..rest.floor_char_boundary(TEXT_BYTES_MAX)];
    let end = find_end(rest, name)?;
    Some(plain_text(&rest[..end]))
}

/// Returns the position of `<name` followed by a character that ends a name.
fn find_tag(html: &str, name: &str, from: usize) -> Option<usize> {
    let bytes = html.as_bytes();
    memchr::memchr_iter(b'<', bytes.get(from..)?)
        .map(|at| from + at)
        .find(|at| starts_with_name(&bytes[at + 1..], name))
}

fn find_end(html: &str, name: &str) -> Option<usize> {
    let bytes = html.as_bytes();
    memchr::memchr_iter(b'<', bytes)
        .find(|at| bytes.get(at + 1) == Some(&b'/') && starts_with_name(&bytes[at + 2..], name))
}

fn starts_with_name(bytes: &[u8], name: &str) -> bool {
    bytes
        .get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        && bytes
            .get(name.len())
            .is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// Counts the bytes of visible text on a page up to `max`, without tags, scripts, styles and repeated whitespace.
pub(crate) fn text_length(html: &str, max: usize) -> usize {
    let mut length = 0;
    let mut rest = html;
    while length < max {
        let (text, from_tag) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        length += text
            .split_ascii_whitespace()
            .map(|word| word.len() + 1)
            .sum::<usize>();
        let Some(tag) = from_tag.get(1..) else {
            return length.min(max);
        };
        let hidden = ["script", "style", "noscript", "title"]
            .into_iter()
            .find(|name| starts_with_name(tag.as_bytes(), name));
        let end = match hidden {
            Some(name) => find_end(tag, name),
            None if tag.starts_with("!--") => tag.find("-->"),
            None => Some(0),
        };
        let Some(end) = end.and_then(|end| Some(end + tag[end..].find('>')? + 1)) else {
            return length.min(max);
        };
        rest = &tag[end..];
    }
    max
}

/// Removes tags, decodes character references, converts to lower case, and leaves one space between words.
fn plain_text(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for character in html.chars() {
        match character {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ if !is_tag => text.push(character),
            _ => {}
        }
    }
    let text = decode_references(&text).to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Decodes character references in titles: numbers, and the names common in European languages.
fn decode_references(text: &str) -> String {
    const NAMES: [(&str, char); 36] = [
        ("amp", '&'),
        ("quot", '"'),
        ("apos", '\''),
        ("lt", '<'),
        ("gt", '>'),
        ("nbsp", ' '),
        ("ndash", '–'),
        ("mdash", '—'),
        ("middot", '·'),
        ("bull", '•'),
        ("laquo", '«'),
        ("raquo", '»'),
        ("rsquo", '’'),
        ("hellip", '…'),
        ("agrave", 'à'),
        ("aacute", 'á'),
        ("acirc", 'â'),
        ("atilde", 'ã'),
        ("auml", 'ä'),
        ("aring", 'å'),
        ("aelig", 'æ'),
        ("ccedil", 'ç'),
        ("egrave", 'è'),
        ("eacute", 'é'),
        ("ecirc", 'ê'),
        ("iacute", 'í'),
        ("icirc", 'î'),
        ("ntilde", 'ñ'),
        ("oacute", 'ó'),
        ("ocirc", 'ô'),
        ("otilde", 'õ'),
        ("ouml", 'ö'),
        ("oslash", 'ø'),
        ("uacute", 'ú'),
        ("uuml", 'ü'),
        ("szlig", 'ß'),
    ];
    let mut parts = text.split('&');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let decoded = part.split_once(';').and_then(|(name, rest)| {
            let character = match name.strip_prefix('#') {
                Some(digits) => {
                    let code = match digits.strip_prefix(['x', 'X']) {
                        Some(digits) => u32::from_str_radix(digits, 16),
                        None => digits.parse(),
                    };
                    char::from_u32(code.ok()?)?
                }
                None => {
                    let name = name.to_ascii_lowercase();
                    NAMES.iter().find(|(known, _)| *known == name)?.1
                }
            };
            Some((character, rest))
        });
        match decoded {
            Some((character, rest)) => {
                result.push(character);
                result.push_str(rest);
            }
            None => {
                result.push('&');
                result.push_str(part);
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_decoded_and_normalised() {
        let title = |html: &str| element_text(html, "title");
        assert_eq!(
            title("<html><TITLE lang=fr>Page\n non trouv&eacute;e &#8211; <b>X</b></title>")
                .as_deref(),
            Some("page non trouvée – x")
        );
        assert_eq!(title("<titles>no</titles>"), None);
        assert_eq!(title("<title>never ends"), None);
        assert_eq!(title("<title"), None);
        assert_eq!(
            element_text("<h1 class=a>Ups</h1>", "h1").as_deref(),
            Some("ups")
        );
    }

    #[test]
    fn only_visible_text_counts() {
        let length = |html| text_length(html, 1_000);
        assert_eq!(
            length("<p>a  b</p><script>if (a < b) {}</script><!-- <p>c --> <style>d"),
            4
        );
        assert_eq!(length("<p>abc"), 4);
        assert_eq!(length("<"), 0);
        assert_eq!(text_length(&"<b>abcd".repeat(1_000_000), 1_000), 1_000);
    }
}
