//! SURT forms of text, implied SURT prefixes of seeds, and sets of prefixes (glossary, "SURT" and "SURT prefix").

use crate::host::push_reversed;
use crate::uri::{Uri, UriError, trim, with_scheme};

/// The SURT form of a text that looks like a URI, valid or not: authority reversed, lower-case, `https` read as `http`. All
/// other parts stay as written, including userinfo (`(org,example,@user:pass)`), fragment and a missing slash. Text without
/// `://` is only made lower-case. For a parsed URI use [`Uri::surt`].
#[must_use]
pub fn surt_of(text: &str) -> String {
    let mut surt = String::with_capacity(text.len() + 4);
    match text.split_once("://") {
        None => surt.push_str(text),
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let (userinfo, server) = match authority.rsplit_once('@') {
                Some((userinfo, server)) => (Some(userinfo), server),
                None => (None, authority),
            };
            let (host, port) = match server.rsplit_once(':') {
                Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
                _ => (server, ""),
            };
            surt.push_str(if scheme.eq_ignore_ascii_case("https") {
                "http"
            } else {
                scheme
            });
            surt.push_str("://(");
            push_reversed(&mut surt, host);
            if !port.is_empty() {
                surt.push(':');
                surt.push_str(port);
            }
            if let Some(userinfo) = userinfo {
                surt.push('@');
                surt.push_str(userinfo);
            }
            surt.push(')');
            surt.push_str(path);
        }
    }
    lower(surt)
}

/// The SURT prefix that a seed implies, from the seed as written (glossary, "SURT prefix").
///
/// The slash decides: `http://example.org` means the domain with all hosts below it (`http://(org,example,`),
/// `http://example.org/` only that host (`http://(org,example,)/`), and a path is cut after its last slash.
/// `example.org` means `http://example.org`. The result is normalised, so that it compares with [`Uri::surt`].
///
/// # Errors
/// [`UriError`] if the seed is not a URI.
pub fn implied_surt_prefix(seed: &str) -> Result<String, UriError> {
    let seed = with_scheme(trim(seed));
    let mut prefix = Uri::parse_seed(&seed)?.surt();
    if ends_with_its_authority(&seed) && prefix.ends_with(")/") {
        prefix.truncate(prefix.len() - 1);
    }
    if prefix.bytes().filter(|b| *b == b'/').count() >= 3
        && let Some(last) = prefix.rfind('/')
    {
        prefix.truncate(last + 1);
    }
    if prefix.ends_with(')') {
        prefix.pop();
    }
    Ok(prefix)
}

/// The prefix of a line of a SURT file or a seed list; `None` for a blank line or a comment (`#`).
///
/// A leading `+` changes nothing. A line with `(` is a prefix already (`http://(org,example,`, `(org,example,`). Another line
/// is a URI and means its implied prefix. Text after a blank is a comment.
///
/// # Errors
/// [`UriError`] if the line has an invalid URI.
pub fn surt_prefix_from_line(line: &str) -> Result<Option<String>, UriError> {
    let line = trim(line);
    let line = trim(line.strip_prefix('+').unwrap_or(line));
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.split_whitespace().next().unwrap_or_default();
    match line.split_once('(') {
        Some((before, after)) if before.is_empty() || before.ends_with("//") => {
            let scheme = before.trim_end_matches('/').trim_end_matches(':');
            let scheme = match scheme {
                "" => "http",
                scheme if scheme.eq_ignore_ascii_case("https") => "http",
                scheme => scheme,
            };
            Ok(Some(lower(format!("{scheme}://({after}"))))
        }
        _ => implied_surt_prefix(line).map(Some),
    }
}

/// A set of SURT prefixes. One binary search finds the prefix with which a SURT form begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurtPrefixSet {
    /// Sorted. No prefix begins another, because the longer one would be redundant.
    prefixes: Vec<Box<str>>,
}

impl SurtPrefixSet {
    /// Parses a SURT file, line by line as [`surt_prefix_from_line`] does.
    ///
    /// # Errors
    /// The first invalid line, with its number from 1.
    pub fn parse(file: &str) -> Result<SurtPrefixSet, (usize, UriError)> {
        let mut prefixes = Vec::new();
        for (index, line) in file.lines().enumerate() {
            match surt_prefix_from_line(line) {
                Ok(prefix) => prefixes.extend(prefix),
                Err(error) => return Err((index + 1, error)),
            }
        }
        Ok(prefixes.into_iter().collect())
    }

    /// Returns `true` if a prefix begins `surt`, a text as from [`Uri::surt`].
    #[must_use]
    pub fn covers(&self, surt: &str) -> bool {
        self.prefix_of(surt).is_some()
    }

    /// The prefix that begins `surt`.
    #[must_use]
    pub fn prefix_of(&self, surt: &str) -> Option<&str> {
        // No prefix begins another, so the only candidate is the last one that sorts before or at `surt`.
        let after = self.prefixes.partition_point(|prefix| &**prefix <= surt);
        let candidate = &**self.prefixes.get(after.checked_sub(1)?)?;
        surt.starts_with(candidate).then_some(candidate)
    }

    /// Adds a prefix, and removes those that it makes redundant.
    pub fn insert(&mut self, prefix: &str) {
        if self.covers(prefix) {
            return;
        }
        let from = self.prefixes.partition_point(|kept| &**kept < prefix);
        let to = from + self.prefixes[from..].partition_point(|kept| kept.starts_with(prefix));
        self.prefixes.splice(from..to, [prefix.into()]);
    }

    /// The prefixes in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(|prefix| &**prefix)
    }

    /// Number of prefixes, without redundant ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Returns `true` if the set has no prefixes and so covers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }
}

impl<S: Into<String>> FromIterator<S> for SurtPrefixSet {
    fn from_iter<I: IntoIterator<Item = S>>(prefixes: I) -> SurtPrefixSet {
        let mut prefixes: Vec<Box<str>> = prefixes
            .into_iter()
            .map(|prefix| prefix.into().into_boxed_str())
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup_by(|later, kept| later.starts_with(&**kept));
        SurtPrefixSet { prefixes }
    }
}

/// Returns `true` if the seed ends with its authority, so that the slash of the normalised form is not the author's.
fn ends_with_its_authority(seed: &str) -> bool {
    let seed = seed.split('#').next().unwrap_or_default();
    let after = seed.split_once(':').map_or("", |(_, after)| after);
    !after
        .trim_start_matches(['/', '\\'])
        .contains(['/', '\\', '?'])
}

fn lower(mut text: String) -> String {
    text.make_ascii_lowercase();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_slash_of_a_seed_decides_its_prefix() {
        for (seed, prefix) in [
            ("http://www.example.org", "http://(org,example,www,"),
            ("http://www.example.org/", "http://(org,example,www,)/"),
            ("http://www.example.org#top", "http://(org,example,www,"),
            ("http://www.example.org?q", "http://(org,example,www,)/"),
            (
                "HTTPS://www.example.org/Main/sub",
                "http://(org,example,www,)/main/",
            ),
            (
                "https://www.example.org/main/sub/",
                "http://(org,example,www,)/main/sub/",
            ),
            ("example.org", "http://(org,example,"),
            ("example.org:8080", "http://(org,example,:8080"),
            ("https://example.org:443/a", "http://(org,example,)/"),
            ("http://u:p@example.org/a", "http://(org,example,)/"),
            ("http://127.0.0.1", "http://(127.0.0.1"),
            ("http://bücher.example/", "http://(example,xn--bcher-kva,)/"),
            ("ftp://example.org/pub", "ftp://(org,example,)/"),
        ] {
            assert_eq!(implied_surt_prefix(seed).unwrap(), prefix, "{seed}");
        }
        assert!(implied_surt_prefix("mailto:a@b").is_err());
        assert!(implied_surt_prefix("http//www.example.org").is_err());
    }

    #[test]
    fn lines_are_prefixes_uris_or_comments() {
        for (line, prefix) in [
            ("http://(org,Example,", Some("http://(org,example,")),
            ("+http://(org,example,", Some("http://(org,example,")),
            ("+https://(org,example,)/a", Some("http://(org,example,)/a")),
            ("(is,", Some("http://(is,")),
            ("http://(is,bok, # is redundant", Some("http://(is,bok,")),
            ("+ example.org/a/b", Some("http://(org,example,)/a/")),
            (
                "http://example.org/a(b)/",
                Some("http://(org,example,)/a(b)/"),
            ),
            ("  # comment", None),
            ("", None),
        ] {
            assert_eq!(
                surt_prefix_from_line(line).unwrap().as_deref(),
                prefix,
                "{line:?}"
            );
        }
        assert!(surt_prefix_from_line("+mailto:a@b").is_err());
    }

    #[test]
    fn a_set_drops_redundant_prefixes() {
        let set = SurtPrefixSet::parse("(org,archive,\n(is,bok,\n(is,\n#\n(is,bok,www\n").unwrap();
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            ["http://(is,", "http://(org,archive,"]
        );
        assert_eq!(set.prefix_of("http://(is,example,)/"), Some("http://(is,"));
        assert!(!set.covers("http://(org,archivf,)/"));
        assert!(!set.covers("http://(org,archive"));
        assert_eq!(SurtPrefixSet::parse("a.org\nmailto:x").unwrap_err().0, 2);
    }
}
