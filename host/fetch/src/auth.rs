//! HTTP authentication: what a server asks for with 401, and the `Authorization` header that answers (RFC 7617 basic,
//! RFC 7616 digest).
//!
//! Which user name and password to answer with is the crawl's to say. A [`Space`] remembers a challenge that was met, so
//! that later requests for the same protection space bring their answer along.

use std::fmt;

use http_auth::{ChallengeRef, PasswordClient, PasswordParams};
use opilio_uri::Uri;

use crate::head::ResponseHead;

/// Longest WWW-Authenticate header that is read; servers write some hundred bytes.
const CHALLENGE_BYTES_MAX: usize = 8 * 1024;

/// A password, or what else nobody may read in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What a server asks for.
#[derive(Debug)]
pub struct Challenge {
    realm: String,
    is_basic: bool,
    client: PasswordClient,
}

/// A protection space: where a challenge was met, and what answers it.
#[derive(Debug)]
pub struct Space {
    origin: String,
    /// Paths that begin so belong to it.
    directory: String,
    realm: String,
    user: String,
    password: Secret,
    client: PasswordClient,
}

impl Secret {
    /// Keeps it.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for whom it is meant.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What the `WWW-Authenticate` headers of a response ask for, as far as it can be answered with a password: the safest
/// scheme first.
pub fn challenges(head: &ResponseHead) -> Vec<Challenge> {
    let mut found = Vec::new();
    for value in head.all("www-authenticate") {
        if value.len() > CHALLENGE_BYTES_MAX {
            continue;
        }
        let Ok(challenges) = http_auth::parse_challenges(value) else {
            continue;
        };
        found.extend(challenges.iter().filter_map(Challenge::of));
    }
    found.sort_by_key(|challenge| challenge.is_basic);
    found
}

impl Challenge {
    fn of(challenge: &ChallengeRef<'_>) -> Option<Challenge> {
        let realm = challenge
            .params
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("realm"))
            .map(|(_, value)| value.to_unescaped());
        Some(Challenge {
            realm: realm.unwrap_or_default(),
            is_basic: challenge.scheme.eq_ignore_ascii_case("basic"),
            client: PasswordClient::try_from(challenge).ok()?,
        })
    }

    /// The realm.
    pub fn realm(&self) -> &str {
        &self.realm
    }

    /// Whether the password would go over the wire as it is.
    pub fn is_basic(&self) -> bool {
        self.is_basic
    }

    /// The protection space that it was met in at `uri`, to be entered with this user name and password. Of basic
    /// authentication that is the directory (RFC 7617 §2.2), of digest the server (RFC 7616 §3.3).
    pub fn space(self, uri: &Uri, user: &str, password: &Secret) -> Space {
        let path = uri.path();
        let directory = match (self.is_basic, path.rfind('/')) {
            (true, Some(end)) => &path[..=end],
            _ => "/",
        };
        Space {
            origin: origin(uri),
            directory: directory.to_owned(),
            realm: self.realm,
            user: user.to_owned(),
            password: password.clone(),
            client: self.client,
        }
    }
}

impl Space {
    /// Whether a request for `uri` should bring its answer along.
    pub fn covers(&self, uri: &Uri) -> bool {
        uri.path().starts_with(&self.directory) && self.origin == origin(uri)
    }

    /// Whether it is the same one, met anew: with another nonce, or from another of its pages.
    pub fn is_again(&self, other: &Space) -> bool {
        self.origin == other.origin && self.realm == other.realm
    }

    /// The `Authorization` header for a request without a body that is counted; none where the server asks for what
    /// cannot be given. Each is good for one request.
    pub fn authorization(&mut self, method: &str, uri: &Uri) -> Option<String> {
        let answer = self.client.respond(&PasswordParams {
            username: &self.user,
            password: self.password.reveal(),
            uri: uri.path_and_query(),
            method,
            body: None,
        });
        answer.ok()
    }

    /// How far up a directory it is, to prefer the closest.
    pub fn depth(&self) -> usize {
        self.directory.len()
    }
}

fn origin(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    format!("{}://{host}:{}", uri.scheme(), uri.port_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn head(values: &[&str]) -> ResponseHead {
        let mut text = "HTTP/1.1 401 Unauthorized\r\n".to_owned();
        for value in values {
            text.push_str(&format!("WWW-Authenticate: {value}\r\n"));
        }
        ResponseHead::of_recording(format!("{text}\r\n").as_bytes()).unwrap()
    }

    #[track_caller]
    fn check(values: &[&str], expected: &[&str]) {
        let found = challenges(&head(values));
        let found: Vec<_> = found
            .iter()
            .map(|one| {
                format!(
                    "{} {}",
                    if one.is_basic() { "basic" } else { "digest" },
                    one.realm()
                )
            })
            .collect();
        assert_eq!(found, expected, "{values:?}");
    }

    #[test]
    fn challenges_are_found_the_safest_first() {
        check(&[r#"Basic realm="Staff area""#], &["basic Staff area"]);
        check(
            &[r#"Basic realm="a", Digest realm="b", nonce="n", qop="auth""#],
            &["digest b", "basic a"],
        );
        check(
            &[r#"Basic realm="a""#, r#"DIGEST realm="b", nonce="n""#],
            &["digest b", "basic a"],
        );
        check(
            &[r#"Basic realm="a \"quoted\" name""#],
            &["basic a \"quoted\" name"],
        );
        check(&["Negotiate", "Bearer realm=\"x\""], &[]);
        check(
            &["", ",,,", "Basic realm=\"open", "Digest realm=\"b\""],
            &[],
        );
        check(&[&format!("Basic realm=\"{}\"", "x".repeat(9000))], &[]);
    }

    #[test]
    fn basic_covers_the_directory_and_below() {
        let at = Uri::parse("http://www.example.org/private/index.html").unwrap();
        let challenge = challenges(&head(&[r#"Basic realm="a""#])).remove(0);
        let mut space = challenge.space(&at, "Aladdin", &Secret::new("open sesame"));
        let covers = |uri: &str| space.covers(&Uri::parse(uri).unwrap());
        assert!(covers("http://www.example.org/private/"));
        assert!(covers("http://www.example.org:80/private/deep/er?x"));
        assert!(!covers("http://www.example.org/"));
        assert!(!covers("http://www.example.org/privateer"));
        assert!(!covers("https://www.example.org/private/"));
        assert!(!covers("http://www.example.org:81/private/"));
        assert!(!covers("http://example.org/private/"));
        // RFC 7617 §2.
        assert_eq!(
            space.authorization("GET", &at).unwrap(),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
    }

    #[test]
    fn digest_counts_its_requests() {
        let at = Uri::parse("http://www.example.org/dir/index.html?a=b").unwrap();
        let challenge =
            r#"Digest realm="r", nonce="abc", qop="auth", algorithm=SHA-256, opaque="o""#;
        let challenge = challenges(&head(&[challenge])).remove(0);
        let mut space = challenge.space(&at, "user", &Secret::new("pass"));
        assert!(space.covers(&Uri::parse("http://www.example.org/").unwrap()));
        for count in ["nc=00000001", "nc=00000002"] {
            let header = space.authorization("GET", &at).unwrap();
            for part in [
                count,
                "uri=\"/dir/index.html?a=b\"",
                "SHA-256",
                "opaque=\"o\"",
                "qop=auth",
            ] {
                assert!(header.contains(part), "{part}: {header}");
            }
            assert!(!header.contains("pass"));
        }
    }

    /// The response to a challenge of RFC 7616 §3.9, with the client nonce that stands there.
    #[track_caller]
    fn check_standard(challenge: &str, user: &str, password: &str, cnonce: &str, response: &str) {
        let PasswordClient::Digest(mut client) = challenges(&head(&[challenge])).remove(0).client
        else {
            panic!("no digest: {challenge}");
        };
        let asked = PasswordParams {
            username: user,
            password,
            uri: match user {
                "Mufasa" => "/dir/index.html",
                _ => "/doe.json",
            },
            method: "GET",
            body: None,
        };
        let header = client.respond_with_testing_cnonce(&asked, cnonce).unwrap();
        assert!(
            header.contains(&format!("response=\"{response}\"")),
            "{header}"
        );
    }

    #[test]
    fn digests_are_those_of_the_standards_examples() {
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (
                "SHA-256",
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let challenge = format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={algorithm}, \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            );
            check_standard(&challenge, "Mufasa", "Circle of Life", cnonce, response);
        }
        // As erratum 4897 has it: what stands in §3.9.2 is wrong.
        check_standard(
            "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, \
             nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", \
             opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\", charset=UTF-8, userhash=true",
            "J\u{e4}s\u{f8}n Doe",
            "Secret, or not?",
            "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
            "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5",
        );
    }

    #[test]
    fn secrets_do_not_show() {
        let challenge = challenges(&head(&[r#"Basic realm="a""#])).remove(0);
        let at = Uri::parse("http://a.example/").unwrap();
        let space = challenge.space(&at, "me", &Secret::new("hush"));
        assert!(!format!("{space:?}").contains("hush"));
    }
}
