//! Authentication for `/engine`: the user of `[heritrix]`, by HTTP digest authentication (RFC 7616), as Heritrix's clients
//! expect.
//!
//! Only a server that knows the password can check a digest. Therefore tokens, of which only hashes are stored, do not work here.
//! The algorithm is MD5, because clients of Heritrix support no other. The password is never sent, and the digests are sent only
//! within TLS or on loopback.

use std::io;
use std::net::IpAddr;

use data_encoding::HEXLOWER;
use http_auth::parse_challenges;
use jiff::Timestamp;
use md5::{Digest as _, Md5};
use opilio_control::read_secret_file;
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::access::{Access, Caller, Refusal, Role};
use crate::config::HeritrixFile;

/// Validity of a challenge in seconds. After it the client gets another one, without asking its user for the password again.
const NONCE_SECONDS: i64 = 300;

/// Base path of the interface.
pub(crate) const BASE: &str = "/engine";

const REALM: &str = "opilio";

/// The user of `[heritrix]`.
pub(crate) struct HeritrixAccount {
    user: String,
    /// Digest of user, realm and password.
    digest: String,
    /// Secret of the challenges, created at each start of the daemon.
    secret: String,
    /// Base profile of all jobs made here.
    pub profile: Option<String>,
}

/// A client's answer to a challenge.
struct Answer {
    user: String,
    nonce: String,
    uri: String,
    nc: String,
    cnonce: String,
    response: String,
}

/// The reason why an answer is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The challenge is too old, or from another process of the daemon. The client gets a new one.
    Stale,
    Refused(Refusal),
}

impl HeritrixAccount {
    /// Reads the password.
    pub(crate) fn open(file: &HeritrixFile) -> io::Result<HeritrixAccount> {
        let password = read_secret_file(&file.password_file)?;
        Ok(HeritrixAccount {
            digest: md5(&format!("{}:{REALM}:{password}", file.user)),
            user: file.user.clone(),
            secret: Uuid::new_v4().to_string(),
            profile: file.profile.clone(),
        })
    }

    /// The challenge for a client.
    pub(crate) fn challenge(&self, is_stale: bool) -> String {
        let nonce = self.nonce(Timestamp::now().as_second());
        let stale = match is_stale {
            true => ", stale=true",
            false => "",
        };
        format!("Digest realm=\"{REALM}\", nonce=\"{nonce}\", qop=\"auth\", algorithm=MD5{stale}")
    }

    /// Checks an answer and returns the caller. `uri` is that of the request.
    pub(crate) fn admit(
        &self,
        header: &str,
        method: &str,
        uri: &str,
        from: IpAddr,
        access: &Access,
    ) -> Result<Caller, NoAnswer> {
        let now = Timestamp::now().as_second();
        let is_right = match Answer::read(header) {
            Some(answer) => {
                let is_right = self.is_right(&answer, method, uri);
                if is_right && !self.is_fresh(&answer.nonce, now) {
                    return Err(NoAnswer::Stale);
                }
                is_right
            }
            None => false,
        };
        access.by_other(is_right, from).map_err(NoAnswer::Refused)?;
        Ok(Caller {
            user: self.user.clone(),
            role: Role::Operator,
        })
    }

    fn is_right(&self, answer: &Answer, method: &str, uri: &str) -> bool {
        let request = md5(&format!("{method}:{}", answer.uri));
        let expected = md5(&format!(
            "{}:{}:{}:{}:auth:{request}",
            self.digest, answer.nonce, answer.nc, answer.cnonce
        ));
        let is_right: bool = expected.as_bytes().ct_eq(answer.response.as_bytes()).into();
        is_right && answer.user == self.user && answer.uri == uri
    }

    fn is_fresh(&self, nonce: &str, now: i64) -> bool {
        let made = nonce.split('-').next().and_then(|at| at.parse().ok());
        made.is_some_and(|at: i64| {
            self.nonce(at) == nonce && (0..NONCE_SECONDS).contains(&now.saturating_sub(at))
        })
    }

    fn nonce(&self, at: i64) -> String {
        format!("{at}-{}", md5(&format!("{at}:{}", self.secret)))
    }
}

impl Answer {
    fn read(header: &str) -> Option<Answer> {
        // Answers have the syntax of challenges.
        let parsed = parse_challenges(header).ok()?;
        let [parsed] = &parsed[..] else {
            return None;
        };
        let find = |wanted: &str| {
            let mut params = parsed.params.iter();
            params
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.to_unescaped())
        };
        (find("qop")? == "auth" && find("realm")? == REALM).then_some(())?;
        Some(Answer {
            user: find("username")?,
            nonce: find("nonce")?,
            uri: find("uri")?,
            nc: find("nc")?,
            cnonce: find("cnonce")?,
            response: find("response")?,
        })
    }
}

fn md5(text: &str) -> String {
    HEXLOWER.encode(&Md5::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use http_auth::{PasswordClient, PasswordParams};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn account(home: &std::path::Path, password: &str) -> io::Result<HeritrixAccount> {
        let file = home.join("password");
        crate::own_file::write(&file, password.as_bytes()).unwrap();
        HeritrixAccount::open(&HeritrixFile {
            user: "nas".to_owned(),
            password_file: file,
            profile: None,
        })
    }

    fn answer(challenge: &str, password: &str) -> String {
        let mut client = PasswordClient::try_from(challenge).unwrap();
        client
            .respond(&PasswordParams {
                username: "nas",
                password,
                uri: "/engine",
                method: "GET",
                body: None,
            })
            .unwrap()
    }

    #[test]
    fn an_answer_is_valid_for_its_request_only() {
        let home = tempfile::tempdir().unwrap();
        let account = account(home.path(), "tiger: lily\n").unwrap();
        let access = Access::new(home.path().join("tokens.json")).unwrap();
        let authorization = answer(&account.challenge(false), "tiger: lily");
        let caller = account
            .admit(&authorization, "GET", "/engine", HERE, &access)
            .unwrap();
        assert_eq!((caller.user.as_str(), caller.role), ("nas", Role::Operator));
        for (header, method, uri) in [
            (authorization.as_str(), "POST", "/engine"),
            (&authorization, "GET", "/engine/job/a"),
            (
                &answer(&account.challenge(false), "tiger"),
                "GET",
                "/engine",
            ),
            ("Digest", "GET", "/engine"),
            ("Digest username=\"nas\"", "GET", "/engine"),
        ] {
            let refused = account.admit(header, method, uri, HERE, &access);
            let wrong = Err(NoAnswer::Refused(Refusal::Wrong));
            assert_eq!(refused, wrong, "{header} {method} {uri}");
        }
    }

    #[test]
    fn an_answer_to_an_old_challenge_gets_a_new_challenge() {
        let home = tempfile::tempdir().unwrap();
        let before = account(home.path(), "lily").unwrap();
        let account = account(home.path(), "lily").unwrap();
        let access = Access::new(home.path().join("tokens.json")).unwrap();
        let authorization = answer(&before.challenge(false), "lily");
        let refused = account.admit(&authorization, "GET", "/engine", HERE, &access);
        assert_eq!(refused, Err(NoAnswer::Stale));
        let old = Timestamp::now().as_second() - NONCE_SECONDS;
        assert!(!account.is_fresh(&account.nonce(old), old + NONCE_SECONDS));
        assert!(account.is_fresh(&account.nonce(old), old + NONCE_SECONDS - 1));
        assert!(account.challenge(true).contains("stale=true"));
    }

    #[test]
    fn empty_passwords_and_files_readable_by_others_are_refused() {
        let home = tempfile::tempdir().unwrap();
        assert!(account(home.path(), "\n").is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let file = home.path().join("password");
            fs::write(&file, "lily").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            let opened = HeritrixAccount::open(&HeritrixFile {
                user: "nas".to_owned(),
                password_file: file,
                profile: None,
            });
            assert!(opened.is_err_and(|problem| problem.to_string().contains("chmod 600")));
        }
    }
}
