//! Authentication: user names and passwords of the profile, and the protection spaces entered with them.
//!
//! The protection space of an answered challenge is kept for the life of the process, so that a server sends a challenge once and
//! not for every page. Passwords are read when a crawl begins and are never written.

use std::sync::{Mutex, PoisonError};

use opilio_fetch::ResponseHead;
use opilio_fetch::auth::{Secret, Space, challenges};
use opilio_profile::{Credential, Profile, SecretProblem};
use opilio_uri::Uri;

/// Maximum of protection spaces kept. Beyond it, the oldest half is dropped, and their servers send challenges again.
const SPACES_MAX: usize = 2_000;

/// User names, passwords, and the protection spaces that require them.
#[derive(Default)]
pub(crate) struct Credentials {
    known: Vec<(Credential, Secret)>,
    spaces: Mutex<Vec<Space>>,
}

/// An answer to a challenge.
pub(crate) struct Answer {
    /// The `Authorization` header.
    pub header: String,
    /// The table of the profile with the credential.
    pub name: String,
}

/// Error for a secret of the profile that is not available.
#[derive(Debug, thiserror::Error)]
#[error("{table}.{name}: {problem}")]
pub(crate) struct MissingSecret {
    table: &'static str,
    name: String,
    #[source]
    problem: SecretProblem,
}

impl MissingSecret {
    pub(crate) fn new(table: &'static str, name: &str, problem: SecretProblem) -> MissingSecret {
        MissingSecret {
            table,
            name: name.to_owned(),
            problem,
        }
    }

    /// Returns the JSON Pointer of its table in the profile.
    pub(crate) fn pointer(&self) -> String {
        format!("/{}/{}", self.table, self.name)
    }
}

impl Credentials {
    /// Reads the secrets that the profile names.
    pub(crate) fn read(profile: &Profile) -> Result<Credentials, MissingSecret> {
        let mut known = Vec::new();
        for credential in &profile.credentials {
            let secret = credential.password.read();
            let secret =
                secret.map_err(|it| MissingSecret::new("credentials", &credential.name, it))?;
            known.push((credential.clone(), Secret::new(secret)));
        }
        Ok(Credentials {
            known,
            spaces: Mutex::default(),
        })
    }

    /// Returns the `Authorization` header for a request with this method, if its URI is in a known protection space.
    pub(crate) fn authorization(&self, method: &str, uri: &Uri) -> Option<String> {
        if self.known.is_empty() {
            return None;
        }
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let covering = spaces.iter_mut().filter(|space| space.covers(uri));
        let closest = covering.max_by_key(|space| space.depth())?;
        closest.authorization(method, uri)
    }

    /// Returns user name and password for an FTP server. FTP has no realms, so only credentials for every realm of the host apply.
    pub(crate) fn login(&self, uri: &Uri) -> Option<(String, Secret)> {
        let host = uri.host().filter(|_| !uri.is_http())?;
        let of_host = |(credential, _): &&(Credential, Secret)| {
            credential.realm.is_none() && credential.is_for(host, "")
        };
        let (credential, secret) = self.known.iter().find(of_host)?;
        Some((credential.user.clone(), secret.clone()))
    }

    /// Returns the answer to a 401. Returns `None` if the profile has no credential for it, or if basic authentication has been
    /// answered already. The same answer to basic authentication would be refused again; digest authentication may have been
    /// refused only because the nonce was stale.
    pub(crate) fn answer(&self, uri: &Uri, head: &ResponseHead, answered: bool) -> Option<Answer> {
        if self.known.is_empty() || head.status != 401 {
            return None;
        }
        let host = uri.host()?;
        for challenge in challenges(head) {
            if answered && challenge.is_basic() {
                continue;
            }
            let ours = self
                .known
                .iter()
                .find(|(credential, _)| credential.is_for(host, challenge.realm()));
            let Some((credential, secret)) = ours else {
                continue;
            };
            let mut space = challenge.space(uri, &credential.user, secret);
            let Some(header) = space.authorization("GET", uri) else {
                continue;
            };
            self.add_space(space);
            return Some(Answer {
                header,
                name: credential.name.clone(),
            });
        }
        None
    }

    fn add_space(&self, space: Space) {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        // One realm in two directories has two spaces, because neither covers the other.
        spaces.retain(|known| !(known.is_same_space(&space) && known.depth() >= space.depth()));
        if spaces.len() >= SPACES_MAX {
            spaces.drain(..SPACES_MAX / 2);
        }
        spaces.push(space);
    }
}
