//! `Link` headers (RFC 8288 §3), parsed as in its appendix B.3: tolerant, with quoted strings.

/// One link of a `Link` header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkValue {
    /// The text between `<` and `>`.
    pub target: String,
    /// The first `rel`; empty if the link has no `rel`.
    pub rel: String,
}

/// Most links read from one header.
const LINKS_MAX: usize = 1_000;

/// The links in a header's value, in order. Parsing ends at the first invalid link.
#[must_use]
pub fn parse(value: &str) -> Vec<LinkValue> {
    let mut links = Vec::new();
    let mut rest = value;
    while links.len() < LINKS_MAX {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((target, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        else {
            break;
        };
        let (rel, after) = parameters(after);
        links.push(LinkValue {
            target: target.trim().to_owned(),
            rel: rel.unwrap_or_default(),
        });
        rest = after;
    }
    links
}

/// The first `rel` among the parameters of a link, and the text from the comma that ends them.
fn parameters(text: &str) -> (Option<String>, &str) {
    let mut rel = None;
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() || rest.starts_with(',') {
            return (rel, rest);
        }
        let name_end = rest.find([' ', '\t', '=', ';', ',']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(name_end);
        let after = after.trim_start_matches([' ', '\t']);
        let (value, after) = match after.strip_prefix('=') {
            Some(value) => parameter_value(value.trim_start_matches([' ', '\t'])),
            None => (String::new(), after),
        };
        // The first `rel` counts (RFC 8288 §3.3). An empty name comes from a stray `=`, whose value has been consumed.
        if name.eq_ignore_ascii_case("rel") && rel.is_none() {
            rel = Some(value);
        }
        rest = after;
    }
}

/// A token or a quoted string, and the text after it.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, after) = text.split_at(text.find([';', ',']).unwrap_or(text.len()));
        return (value.trim_end().to_owned(), after);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &[(&str, &str)]) {
        let links = parse(value);
        let found: Vec<_> = links
            .iter()
            .map(|link| (link.target.as_str(), link.rel.as_str()))
            .collect();
        assert_eq!(found, expected, "{value}");
    }

    #[test]
    fn examples_of_the_standard() {
        check(
            "<http://example.com/TheBook/chapter2>; rel=\"previous\"; title=\"previous chapter\"",
            &[("http://example.com/TheBook/chapter2", "previous")],
        );
        check(
            "</>; rel=\"http://example.net/foo\"",
            &[("/", "http://example.net/foo")],
        );
        check(
            "</terms>; rel=\"copyright\"; anchor=\"#foo\"",
            &[("/terms", "copyright")],
        );
        check(
            "</TheBook/chapter2>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, </TheBook/chapter4>; rel=\"next\"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel",
            &[
                ("/TheBook/chapter2", "previous"),
                ("/TheBook/chapter4", "next"),
            ],
        );
        check(
            "<http://example.org/>; rel=\"start http://example.net/relation/other\"",
            &[(
                "http://example.org/",
                "start http://example.net/relation/other",
            )],
        );
    }

    #[test]
    fn quotes_and_commas() {
        check("<a>; title=\"x, <b>; rel=y\"; rel=next", &[("a", "next")]);
        check("<a>; title=\"x \\\" y\"; rel=next", &[("a", "next")]);
        check(
            "<a,b;c>;rel=next,<d>;REL=prev",
            &[("a,b;c", "next"), ("d", "prev")],
        );
        check("<a>; rel=next; rel=prev", &[("a", "next")]);
        check(" , <a>, ,<b> ; ; rel = \"x\" ;", &[("a", ""), ("b", "x")]);
    }

    #[test]
    fn links_before_an_error_are_returned() {
        check("", &[]);
        check("a; rel=next", &[]);
        check("<a; rel=next", &[]);
        check("<a>; rel=\"next", &[("a", "next")]);
        check("<a>; =x; rel", &[("a", "")]);
        check("<a>; rel=next <b>; rel=x", &[("a", "next <b>")]);
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in "[<>;,=\"\\\\ a-cé]{0,60}") {
            for link in parse(&value) {
                prop_assert!(value.contains(&link.target));
            }
        }
    }
}
