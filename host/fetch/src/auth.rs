//! HTTP authentication: the challenge of a 401 response, and the `Authorization` header that answers it (RFC 7617 basic,
//! RFC 7616 digest).
//!
//! This module does not choose user names and passwords: the crawl does. A [`Space`] remembers a challenge, so that later
//! requests for the same protection space carry their answer.

use std::fmt;

use http_auth::{ChallengeRef, PasswordClient, PasswordParams};
use opilio_uri::Uri;

use crate::head::ResponseHead;

/// Longest WWW-Authenticate header that is parsed; servers send some hundred bytes.
const CHALLENGE_BYTES_MAX: usize = 8 * 1024;

/// A password, or another text that must not appear in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// An authentication challenge of a server.
#[derive(Debug)]
pub struct Challenge {
    realm: String,
    is_basic: bool,
    client: PasswordClient,
}

/// A protection space: the origin and directory of a challenge, with the credentials that answer it.
#[derive(Debug)]
pub struct Space {
    origin: String,
    /// Prefix of the paths in the space.
    directory: String,
    realm: String,
    user: String,
    password: Secret,
    client: PasswordClient,
}

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for its recipient.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Parses the challenges in the `WWW-Authenticate` headers of a response that a password can answer. The safest scheme comes
/// first.
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

    /// Returns `true` if the password would be sent unencrypted by the scheme (basic authentication).
    pub fn is_basic(&self) -> bool {
        self.is_basic
    }

    /// The protection space of this challenge, met at `uri`, with this user name and password. For basic authentication the
    /// space is the directory (RFC 7617 §2.2), for digest the server (RFC 7616 §3.3).
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
    /// Returns `true` if a request for `uri` should carry the answer.
    pub fn covers(&self, uri: &Uri) -> bool {
        uri.path().starts_with(&self.directory) && self.origin == origin(uri)
    }

    /// Returns `true` if `other` is the same protection space, met again with another nonce or at another page.
    pub fn is_same_space(&self, other: &Space) -> bool {
        self.origin == other.origin && self.realm == other.realm
    }

    /// The `Authorization` header for a request without a hashed body. `None` if the server asks for something that cannot be
    /// given. Each header is valid for one request.
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

    /// Depth of the directory in bytes; the deepest space that covers a URI is preferred.
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
    fn challenges_are_sorted_by_safety() {
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

    /// Checks the response to a challenge of RFC 7616 §3.9, with the client nonce given there.
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
    fn digests_match_the_examples_of_the_standard() {
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
        // Erratum 4897 corrects §3.9.2.
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
    fn debug_output_hides_secrets() {
        let challenge = challenges(&head(&[r#"Basic realm="a""#])).remove(0);
        let at = Uri::parse("http://a.example/").unwrap();
        let space = challenge.space(&at, "me", &Secret::new("hush"));
        assert!(!format!("{space:?}").contains("hush"));
    }
}
