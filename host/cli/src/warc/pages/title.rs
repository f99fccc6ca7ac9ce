//! The title of a page, for lists of pages. It is for people only.

use anyhow::Result;
use opilio_archive::StoredRecord;
use opilio_fetch::charset::{self, CharsetHints};

use crate::warc::payload;

/// Length of the beginning of a page that is searched for its title, decoded. It is large, because generated pages may have an
/// inlined library before the title.
const LOOKED_THROUGH_BYTES: usize = 256 * 1024;

/// Longest title, in characters; the rest becomes an ellipsis.
const TITLE_CHARS_MAX: usize = 300;

/// Returns the title of the page in a record. `start` is the part of its block that was read already.
pub(super) fn of(
    record: &mut StoredRecord<'_>,
    start: &[u8],
    content_type: Option<&str>,
) -> Result<Option<String>> {
    let mut beginning = Vec::new();
    payload::each_piece(record, start, false, &mut |bytes| {
        let room = LOOKED_THROUGH_BYTES.saturating_sub(beginning.len());
        beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    })?;
    let clues = CharsetHints {
        content_type,
        ..CharsetHints::default()
    };
    let text = charset::decide(clues, &beginning);
    Ok(find(&text.decode(&beginning)))
}

/// Returns the first title element of an HTML text, as a browser shows it.
fn find(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let mut from = 0;
    let begin = loop {
        let at = from + lower[from..].find("<title")?;
        from = at + "<title".len();
        match lower[from..].chars().next()? {
            '>' => break from + 1,
            c if c.is_whitespace() || c == '/' => break from + lower[from..].find('>')? + 1,
            // Another element with the same beginning.
            _ => {}
        }
    };
    let end = lower[begin..].find("</title").map(|at| begin + at)?;
    let text = htmlize::unescape(&html[begin..end]);
    let mut title = String::new();
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            title.push(' ');
        }
        title.push_str(word);
    }
    if let Some((cut, _)) = title.char_indices().nth(TITLE_CHARS_MAX) {
        title.truncate(cut);
        title.push('…');
    }
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &str, expected: Option<&str>) {
        assert_eq!(find(html).as_deref(), expected);
    }

    #[test]
    fn titles_equal_those_in_browsers() {
        check("<html><head><title>A page</title>", Some("A page"));
        check(
            "<TITLE lang=de>\n Caf&eacute; &amp;\tBar &#8211; x\n</Title>",
            Some("Café & Bar – x"),
        );
        check("<titles>no</titles><title>yes</title>", Some("yes"));
        check("<title></title>", None);
        check("<title>never ends", None);
        check("no title", None);
        check("<title", None);
        // Letters whose lower case is longer do not shift the result.
        check("İİİ<title>İ</title>", Some("İ"));
        let long = "x".repeat(400);
        let shown = format!("{}…", "x".repeat(300));
        check(&format!("<title>{long}</title>"), Some(&shown));
    }
}
