//! `<meta http-equiv=refresh>`: the reference in its content (HTML standard, §4.2.5.3 "shared declarative refresh steps").

/// The reference, or `None` if the page only reloads itself or the value is malformed.
pub(crate) fn target(content: &str) -> Option<&str> {
    let rest = content.trim_start_matches(is_blank);
    let time = rest
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b'.')
        .count();
    if time == 0 {
        return None;
    }
    let after = &rest[time..];
    let rest = after.trim_start_matches(is_blank);
    let rest = match rest.strip_prefix([';', ',']) {
        Some(rest) => rest.trim_start_matches(is_blank),
        None if rest.len() < after.len() => rest,
        None => return None,
    };
    let rest = without_url_equals(rest).unwrap_or(rest);
    let target = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => rest,
    };
    Some(target.trim_matches(is_blank)).filter(|target| !target.is_empty())
}

/// The text after a leading `url =`.
fn without_url_equals(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(3)?;
    if !word.eq_ignore_ascii_case("url") {
        return None;
    }
    Some(
        rest.trim_start_matches(is_blank)
            .strip_prefix('=')?
            .trim_start_matches(is_blank),
    )
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0C')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, expected: Option<&str>) {
        assert_eq!(target(content), expected, "{content:?}");
    }

    #[test]
    fn references_are_found() {
        check("5; url=next.html", Some("next.html"));
        check("0;URL='a b.html'; x", Some("a b.html"));
        check(" 0.5 , url = \"x\"", Some("x"));
        check("0 url=x", Some("x"));
        check("0; x.html", Some("x.html"));
        check("0;urlx", Some("urlx"));
        check("0; url=\"x", Some("x"));
    }

    #[test]
    fn a_reload_has_no_reference() {
        check("5", None);
        check("5;", None);
        check("5; url=", None);
        check("5x; url=y", None);
        check("url=y", None);
        check("", None);
    }
}
