//! The canonical form: one text for the many URIs of one document. It is an index for the seen test and is never fetched.
//!
//! A canonicaliser is a list of rules, each of which rewrites the text. The profile sets the rules and their order. The default is
//! that of Heritrix, so documents keep their canonical forms when a job is imported from Heritrix.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::regex_rule::{RegexRule, RegexRuleError};
use crate::uri::Uri;

/// One rewriting of a URI's text.
#[derive(Clone, Debug)]
pub enum Rule {
    /// Makes the whole text lower-case, path and query included.
    Lowercase,
    /// Removes `user:password@` from the authority.
    StripUserinfo,
    /// Removes every `www.` from the start of the host.
    StripWww,
    /// Removes every `www.`, `www2.`, `www12.` … from the start of the host.
    StripWwwN,
    /// Removes session ids: `jsessionid` and `sid` with 32 letters and digits, `phpsessid` with 22 to 256, ASP's
    /// `aspsessionid…`, `;jsessionid=…` in the path, and ASP.NET's `/(S(…))/` before an `.aspx`.
    StripSessionIds,
    /// Removes ColdFusion's `cfid` and the `cftoken` beside it.
    StripSessionCfids,
    /// Removes the remains of an empty query: `?` and `&` at the end, `&` at the start.
    FixupQuery,
    /// Replaces runs of slashes in the path by one slash.
    StripExtraSlashes,
    /// Replaces a text that a pattern matches as a whole.
    Regex(RegexRule),
}

/// Error of a rule in a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// No rule has this name.
    #[error("no canonicalisation rule is called {0:?}")]
    Name(String),
    /// A regex rule cannot be made.
    #[error(transparent)]
    Regex(#[from] RegexRuleError),
}

/// The effect of one rule on the text. It shows operators why two URIs count as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleEffect {
    /// The rule, as [`Rule`] displays itself: its name in profiles, or `regex` and the pattern.
    pub rule: String,
    /// The text before the rule.
    pub before: String,
    /// The text after the rule.
    pub after: String,
}

impl RuleEffect {
    /// Returns `true` if the rule changed the text.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.before != self.after
    }
}

/// An ordered list of rules.
#[derive(Clone, Debug)]
pub struct Canonicaliser {
    rules: Vec<Rule>,
}

impl Default for Canonicaliser {
    /// Heritrix's list and order: lower-case, userinfo, www, session ids, ColdFusion ids, query.
    fn default() -> Canonicaliser {
        Canonicaliser::new(vec![
            Rule::Lowercase,
            Rule::StripUserinfo,
            Rule::StripWwwN,
            Rule::StripSessionIds,
            Rule::StripSessionCfids,
            Rule::FixupQuery,
        ])
    }
}

impl Canonicaliser {
    /// A canonicaliser of these rules, applied in this order. Without rules the canonical form is the URI.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Canonicaliser {
        Canonicaliser { rules }
    }

    /// The rules in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The canonical form.
    #[must_use]
    pub fn apply(&self, uri: &Uri) -> String {
        let mut text = Cow::Borrowed(uri.as_str());
        for rule in &self.rules {
            if let Cow::Owned(changed) = rule.apply(&text) {
                text = Cow::Owned(changed);
            }
        }
        text.into_owned()
    }

    /// The effect of each rule on a URI, in order. The text after the last rule is the canonical form. Without rules the list is
    /// empty, and the canonical form is the URI.
    #[must_use]
    pub fn explain(&self, uri: &Uri) -> Vec<RuleEffect> {
        let mut text = uri.as_str().to_owned();
        let mut effects = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let after = rule.apply(&text).into_owned();
            effects.push(RuleEffect {
                rule: rule.to_string(),
                before: std::mem::replace(&mut text, after.clone()),
                after,
            });
        }
        effects
    }
}

impl Rule {
    /// A rule without arguments by the name that profiles use: `lowercase`, `strip-userinfo`, `strip-www`, `strip-www-n`,
    /// `strip-session-ids`, `strip-session-cfids`, `fixup-query`, `strip-extra-slashes`.
    ///
    /// # Errors
    /// [`RuleError::Name`].
    pub fn named(name: &str) -> Result<Rule, RuleError> {
        Ok(match name {
            "lowercase" => Rule::Lowercase,
            "strip-userinfo" => Rule::StripUserinfo,
            "strip-www" => Rule::StripWww,
            "strip-www-n" => Rule::StripWwwN,
            "strip-session-ids" => Rule::StripSessionIds,
            "strip-session-cfids" => Rule::StripSessionCfids,
            "fixup-query" => Rule::FixupQuery,
            "strip-extra-slashes" => Rule::StripExtraSlashes,
            other => return Err(RuleError::Name(other.to_owned())),
        })
    }

    /// A [`Rule::Regex`]: see [`RegexRule::new`].
    ///
    /// # Errors
    /// [`RegexRuleError`], with the reason.
    pub fn regex(pattern: &str, replacement: &str) -> Result<Rule, RegexRuleError> {
        RegexRule::new(pattern, replacement).map(Rule::Regex)
    }

    /// The name that profiles use; `regex` for every [`Rule::Regex`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Rule::Lowercase => "lowercase",
            Rule::StripUserinfo => "strip-userinfo",
            Rule::StripWww => "strip-www",
            Rule::StripWwwN => "strip-www-n",
            Rule::StripSessionIds => "strip-session-ids",
            Rule::StripSessionCfids => "strip-session-cfids",
            Rule::FixupQuery => "fixup-query",
            Rule::StripExtraSlashes => "strip-extra-slashes",
            Rule::Regex(_) => "regex",
        }
    }

    /// Rewrites `text`; borrowed if the rule changes nothing.
    #[must_use]
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Rule::Lowercase => lowercase(text),
            Rule::StripUserinfo => strip_userinfo(text),
            Rule::StripWww => strip_www(text, Www::Plain),
            Rule::StripWwwN => strip_www(text, Www::Numbered),
            Rule::StripSessionIds => strip_session_ids(text),
            Rule::StripSessionCfids => strip_cfids(text),
            Rule::FixupQuery => fixup_query(text),
            Rule::StripExtraSlashes => strip_extra_slashes(text),
            Rule::Regex(rule) => rule.apply(text),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Regex(rule) => write!(f, "regex {}", rule.pattern()),
            named => f.write_str(named.name()),
        }
    }
}

fn lowercase(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_uppercase) {
        Cow::Owned(text.to_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// The parts of a text for the rules: `scheme://`, authority, path, `?query` (with its question mark).
struct Parts<'t> {
    scheme: &'t str,
    authority: &'t str,
    path: &'t str,
    query: &'t str,
}

impl<'t> Parts<'t> {
    /// Splits a text; `None` if it has no authority.
    fn of(text: &'t str) -> Option<Parts<'t>> {
        let start = text.find("://")? + 3;
        let end = text[start..]
            .find(['/', '?', '#'])
            .map_or(text.len(), |at| start + at);
        let query = text[end..].find('?').map_or(text.len(), |at| end + at);
        Some(Parts {
            scheme: &text[..start],
            authority: &text[start..end],
            path: &text[end..query],
            query: &text[query..],
        })
    }
}

fn strip_userinfo(text: &str) -> Cow<'_, str> {
    match Parts::of(text) {
        Some(parts) => match parts.authority.rsplit_once('@') {
            Some((_, server)) => {
                Cow::Owned([parts.scheme, server, parts.path, parts.query].concat())
            }
            None => Cow::Borrowed(text),
        },
        None => Cow::Borrowed(text),
    }
}

/// The labels that count as `www`.
#[derive(Clone, Copy)]
enum Www {
    /// `www` alone.
    Plain,
    /// `www`, and `www` with a number.
    Numbered,
}

impl Www {
    fn is(self, label: &str) -> bool {
        let Some((www, number)) = label.split_at_checked(3) else {
            return false;
        };
        www.eq_ignore_ascii_case("www")
            && match self {
                Www::Plain => number.is_empty(),
                Www::Numbered => number.bytes().all(|b| b.is_ascii_digit()),
            }
    }
}

/// Removes `www` labels from the start of the host. `www.com` stays, because the rest would not be a host.
fn strip_www(text: &str, www: Www) -> Cow<'_, str> {
    let Some(parts) = Parts::of(text) else {
        return Cow::Borrowed(text);
    };
    let is_web = |scheme: &str| parts.scheme.eq_ignore_ascii_case(scheme);
    if !is_web("http://") && !is_web("https://") {
        return Cow::Borrowed(text);
    }
    let at = parts.authority.rfind('@').map_or(0, |at| at + 1);
    let (userinfo, server) = parts.authority.split_at(at);
    let mut rest = server;
    while let Some((label, shorter)) = rest.split_once('.')
        && www.is(label)
        && shorter.contains('.')
    {
        rest = shorter;
    }
    if rest.len() == server.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned([parts.scheme, userinfo, rest, parts.path, parts.query].concat())
}

fn strip_session_ids(text: &str) -> Cow<'_, str> {
    let mut text = strip_path_jsessionid(text);
    if let Some(stripped) = strip_aspx_session(&text) {
        text = Cow::Owned(stripped);
    }
    if let Some(stripped) = strip_parameters(&text, is_session_id) {
        text = Cow::Owned(stripped);
    }
    text
}

/// Removes path segments `(24 letters and digits)`, or `(X(24 letters and digits)…)`, before an `.aspx`. ASP.NET uses them for
/// sessions without cookies.
fn strip_aspx_session(text: &str) -> Option<String> {
    const PAGE: &[u8] = b".aspx";
    let (path, query) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let page = path
        .as_bytes()
        .windows(PAGE.len())
        .rposition(|window| window.eq_ignore_ascii_case(PAGE))?;
    let mut kept = String::new();
    let mut start = 0;
    for segment in path[..page].split_inclusive('/') {
        let is_session = segment
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(")/"))
            .is_some_and(is_aspx_session);
        if !is_session {
            kept.push_str(segment);
        }
        start += segment.len();
    }
    (kept.len() < start).then(|| [&kept, &path[page..], query].concat())
}

fn is_aspx_session(inner: &str) -> bool {
    let is_id = |id: &str| id.len() == 24 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_lettered = |part: &str| {
        part.split_once('(').is_some_and(|(letter, id)| {
            letter.len() == 1 && letter.bytes().all(|b| b.is_ascii_alphabetic()) && is_id(id)
        })
    };
    is_id(inner)
        || inner
            .strip_suffix(')')
            .is_some_and(|parts| parts.split(')').all(is_lettered))
}

/// Removes `;jsessionid=…` up to the next `;`, `/`, `?` or `#` (a path parameter, Servlet specification 3.1 §7.1.3).
fn strip_path_jsessionid(text: &str) -> Cow<'_, str> {
    const NAME: &str = ";jsessionid=";
    let (path, query) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let mut kept = String::new();
    let mut rest = path;
    while let Some(at) = rest
        .as_bytes()
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME.as_bytes()))
    {
        kept.push_str(&rest[..at]);
        let value = &rest[at + NAME.len()..];
        rest = &value[value.find([';', '/']).unwrap_or(value.len())..];
    }
    if rest.len() == path.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned([&kept, rest, query].concat())
}

/// Returns `true` if name and value of a query parameter are those of a session id.
fn is_session_id(name: &str, value: &str) -> bool {
    let named = |wanted: &str| name.eq_ignore_ascii_case(wanted);
    if named("jsessionid") || named("sid") {
        return value.len() == 32 && value.bytes().all(|b| b.is_ascii_alphanumeric());
    }
    if named("phpsessid") {
        // `session.sid_length` is 22 to 256, by default 26 since PHP 7.1. Six bits a character add `,` and `-`.
        return (22..=256).contains(&value.len())
            && value
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b',' | b'-'));
    }
    const ASP: &str = "aspsessionid";
    name.len() == ASP.len() + 8
        && name
            .get(..ASP.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(ASP))
        && name.bytes().all(|b| b.is_ascii_alphabetic())
        && value.len() == 24
        && value.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Removes ColdFusion's ids. ColdFusion writes both, side by side; a `cfid` alone may have another meaning.
fn strip_cfids(text: &str) -> Cow<'_, str> {
    let named = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
    let Some((_, query)) = text.split_once('?') else {
        return Cow::Borrowed(text);
    };
    let has = |wanted: &str| {
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .any(|(name, value)| named(name, wanted) && !value.is_empty())
    };
    if !has("cfid") || !has("cftoken") {
        return Cow::Borrowed(text);
    }
    let is_id = |name: &str, value: &str| {
        !value.is_empty() && (named(name, "cfid") || named(name, "cftoken"))
    };
    match strip_parameters(text, is_id) {
        Some(stripped) => Cow::Owned(stripped),
        None => Cow::Borrowed(text),
    }
}

/// Removes the query parameters that match `unwanted`, each with the `&` after it. The `?` and the `&` before stay for
/// [`Rule::FixupQuery`]. `None` if no parameter matches.
fn strip_parameters(text: &str, unwanted: impl Fn(&str, &str) -> bool) -> Option<String> {
    let (before, query) = text.split_once('?')?;
    let mut out: Option<String> = None;
    let mut start = 0;
    while start <= query.len() {
        let end = query[start..]
            .find('&')
            .map_or(query.len(), |at| start + at);
        let pair = &query[start..end];
        let next = (end + 1).min(query.len());
        if pair
            .split_once('=')
            .is_some_and(|(name, value)| unwanted(name, value))
        {
            out.get_or_insert_with(|| format!("{before}?{}", &query[..start]));
        } else if let Some(out) = &mut out {
            out.push_str(&query[start..next]);
        }
        start = end + 1;
    }
    out
}

fn fixup_query(text: &str) -> Cow<'_, str> {
    let Some((before, query)) = text.split_once('?') else {
        return Cow::Borrowed(text);
    };
    match query.trim_matches('&') {
        "" => Cow::Owned(before.to_owned()),
        same if same.len() == query.len() => Cow::Borrowed(text),
        shorter => Cow::Owned([before, "?", shorter].concat()),
    }
}

fn strip_extra_slashes(text: &str) -> Cow<'_, str> {
    let Some(parts) = Parts::of(text).filter(|parts| parts.path.contains("//")) else {
        return Cow::Borrowed(text);
    };
    let mut path = String::with_capacity(parts.path.len());
    for character in parts.path.chars() {
        if character != '/' || !path.ends_with('/') {
            path.push(character);
        }
    }
    Cow::Owned([parts.scheme, parts.authority, &path, parts.query].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &str) {
        assert_eq!(
            Rule::named(name).unwrap().apply(text),
            expected,
            "{name} {text}"
        );
    }

    #[test]
    fn www_is_stripped_with_and_without_a_number() {
        check(
            "strip-www",
            "https://www.example.org/",
            "https://example.org/",
        );
        check(
            "strip-www",
            "http://www2.example.org/",
            "http://www2.example.org/",
        );
        check(
            "strip-www-n",
            "http://u@WWW12.example.org:81/www.x",
            "http://u@example.org:81/www.x",
        );
        check(
            "strip-www-n",
            "http://wwwx.example.org/",
            "http://wwwx.example.org/",
        );
        check("strip-www-n", "http://www.com/", "http://www.com/");
        check("strip-www-n", "http://www.www2.a.org/", "http://a.org/");
        check("strip-www", "http://www.www2.a.org/", "http://www2.a.org/");
        check("strip-www-n", "http://www.www.com/", "http://www.com/");
        check(
            "strip-www-n",
            "http://ww\u{fc}.a.org/",
            "http://ww\u{fc}.a.org/",
        );
        check(
            "strip-www-n",
            "ftp://www.example.org/",
            "ftp://www.example.org/",
        );
    }

    #[test]
    fn session_ids_are_removed_and_other_parameters_stay() {
        const ID: &str = "0123456789ABCDEFghijklmnopqrstuv";
        let strip = |text: &str| {
            Rule::StripSessionIds
                .apply(&text.replace("{}", ID))
                .into_owned()
        };
        assert_eq!(
            strip("http://a/b;jsessionid={}.node1?x=y"),
            "http://a/b?x=y"
        );
        assert_eq!(
            strip("http://a/b?mysid={}"),
            format!("http://a/b?mysid={ID}")
        );
        assert_eq!(
            strip("http://a/b?x&Sid={}&PHPSESSID={}&y"),
            "http://a/b?x&y"
        );
        assert_eq!(
            strip("http://a/b;JSessionID=1;x;jsessionid=2/c;jsessionid=3"),
            "http://a/b;x/c"
        );
        assert_eq!(
            strip("http://a/b?c=;jsessionid=1"),
            "http://a/b?c=;jsessionid=1"
        );
        assert_eq!(
            strip("http://a/b?PHPSESSID=jk3h4kjh5k43h5kj3h4jk5h3kj&c"),
            "http://a/b?c"
        );
        assert_eq!(
            strip("http://a/b?PHPSESSID=123&c"),
            "http://a/b?PHPSESSID=123&c"
        );
        let with_digit = "http://a/b?aspsessionidabcdefg1=ABCDEFGHIJKLMNOPQRSTUVWX";
        assert_eq!(strip(with_digit), with_digit);
        assert_eq!(
            strip("http://a/(S(4hqa0555fwsecu455xqckv45))/c.aspx?d"),
            "http://a/c.aspx?d"
        );
        assert_eq!(
            strip("http://a/(4hqa0555fwsecu455xqckv45)/c.aspx"),
            "http://a/c.aspx"
        );
        assert_eq!(
            strip("http://a/(4hqa0555fwsecu455xqckv45)/b/(S(4hqa0555fwsecu455xqckv45))/c.ASPX/d?e"),
            "http://a/b/c.ASPX/d?e"
        );
        assert_eq!(
            strip("http://a/b.aspx/(S(4hqa0555fwsecu455xqckv45))/c"),
            "http://a/b.aspx/(S(4hqa0555fwsecu455xqckv45))/c"
        );
        assert_eq!(
            strip("http://a/(S(4hqa0555fwsecu455xqckv45))/c"),
            "http://a/(S(4hqa0555fwsecu455xqckv45))/c"
        );
    }

    #[test]
    fn coldfusion_ids_are_removed_in_pairs() {
        check(
            "strip-session-cfids",
            "http://a/b?CFID=1&CFTOKEN=2-3",
            "http://a/b?",
        );
        check(
            "strip-session-cfids",
            "http://a/b?x=y&cfid=1&cftoken=2&z",
            "http://a/b?x=y&z",
        );
        check(
            "strip-session-cfids",
            "http://a/b?cfid=1",
            "http://a/b?cfid=1",
        );
    }

    #[test]
    fn the_remains_of_an_empty_query_are_removed() {
        for (text, expected) in [
            ("http://a/b?", "http://a/b"),
            ("http://a/b?&", "http://a/b"),
            ("http://a/b?&x&", "http://a/b?x"),
            ("http://a/b?x&&y", "http://a/b?x&&y"),
        ] {
            check("fixup-query", text, expected);
        }
    }

    #[test]
    fn repeated_slashes_are_merged_only_in_the_path() {
        check(
            "strip-extra-slashes",
            "http://a//b///c?d=http://e//f",
            "http://a/b/c?d=http://e//f",
        );
    }

    #[test]
    fn the_default_rules_give_variants_of_a_uri_one_form() {
        let canonical = Canonicaliser::default();
        for text in [
            "http://example.org/a",
            "http://WWW.example.org/A?",
            "http://u:p@www3.example.org:80/a?SID=0123456789abcdef0123456789abcdef",
            "http://example.org/a?CFID=1&CFTOKEN=2",
        ] {
            assert_eq!(
                canonical.apply(&Uri::parse(text).unwrap()),
                "http://example.org/a"
            );
        }
    }

    #[test]
    fn an_explanation_shows_every_rule() {
        let uri = Uri::parse("http://u@www.example.org/A").unwrap();
        let rules = vec![
            Rule::named("strip-userinfo").unwrap(),
            Rule::named("fixup-query").unwrap(),
            Rule::regex("(.*)/A", "${1}/b").unwrap(),
        ];
        let canonicaliser = Canonicaliser::new(rules);
        let shown: Vec<_> = canonicaliser
            .explain(&uri)
            .iter()
            .map(|effect| format!("{} {} {}", effect.rule, effect.changed(), effect.after))
            .collect();
        assert_eq!(
            shown,
            [
                "strip-userinfo true http://www.example.org/A",
                "fixup-query false http://www.example.org/A",
                "regex (.*)/A true http://www.example.org/b",
            ]
        );
        assert_eq!(canonicaliser.apply(&uri), "http://www.example.org/b");
        assert_eq!(
            Rule::named("lower").unwrap_err().to_string(),
            "no canonicalisation rule is called \"lower\""
        );
    }
}
