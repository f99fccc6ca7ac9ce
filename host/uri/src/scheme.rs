//! The schemes that a crawl can fetch, and the detection of a scheme at the start of a text.

use std::borrow::Cow;

/// A scheme that the crawler can fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
    Ftp,
    Ftps,
    Dns,
    Whois,
}

impl Scheme {
    const ALL: [Scheme; 6] = [
        Scheme::Http,
        Scheme::Https,
        Scheme::Ftp,
        Scheme::Ftps,
        Scheme::Dns,
        Scheme::Whois,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ftp => "ftp",
            Scheme::Ftps => "ftps",
            Scheme::Dns => "dns",
            Scheme::Whois => "whois",
        }
    }

    /// The default port of this scheme (IANA).
    pub(crate) fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Ftp => 21,
            Scheme::Ftps => 990,
            Scheme::Dns => 53,
            Scheme::Whois => 43,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Scheme> {
        Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.as_str().eq_ignore_ascii_case(name))
    }
}

/// The beginning of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beginning<'t> {
    /// A scheme that the crawler fetches, and the text after its colon.
    Known(Scheme, &'t str),
    /// A scheme that the crawler does not fetch, such as `mailto`.
    Unknown(Cow<'t, str>),
    /// No scheme: a relative reference.
    Relative,
}

/// Examines the beginning of `text`. Tabs and line ends inside a scheme are ignored, as in browsers (WHATWG URL §4.4).
pub(crate) fn beginning(text: &str) -> Beginning<'_> {
    let mut broken = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b'\t' | b'\n' | b'\r' => broken = true,
            b':' if index > 0 => {
                let name = if broken {
                    Cow::Owned(text[..index].replace(['\t', '\n', '\r'], ""))
                } else {
                    Cow::Borrowed(&text[..index])
                };
                return match Scheme::named(&name) {
                    Some(scheme) => Beginning::Known(scheme, &text[index + 1..]),
                    None => Beginning::Unknown(name),
                };
            }
            _ => return Beginning::Relative,
        }
    }
    Beginning::Relative
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Beginning<'_>) {
        assert_eq!(beginning(text), *expected, "{text:?}");
    }

    #[test]
    fn a_scheme_is_letters_up_to_a_colon() {
        check("http://a/", &Beginning::Known(Scheme::Http, "//a/"));
        check("HTTPS:x", &Beginning::Known(Scheme::Https, "x"));
        check("ht\ntp://a/", &Beginning::Known(Scheme::Http, "//a/"));
        check("mailto:a@b", &Beginning::Unknown("mailto".into()));
        check("java\tscript:x", &Beginning::Unknown("javascript".into()));
    }

    #[test]
    fn anything_else_is_relative() {
        for text in [
            "", ":foo", "a/b:c", "?u=http:", "#a:b", "9a:b", "a;b=c:d", "päth:x", "http",
        ] {
            check(text, &Beginning::Relative);
        }
    }
}
