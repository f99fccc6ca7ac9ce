//! Access control: tokens with roles, browser sessions, and limits on wrong tokens.
//!
//! A token is random, so its hash needs neither a salt nor a slow function. The token file is read again when it has changed, so
//! that changes by `opilio token` apply at once.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::http::{HeaderMap, header};
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;
use uuid::Uuid;

/// Time without a request after which a session ends.
const SESSION_IDLE: Duration = Duration::from_secs(12 * 3600);
/// Maximum sessions. A further one ends the session that has been idle longest.
const SESSIONS_MAX: usize = 1_000;
/// Maximum wrong tokens from one address within [`GUESS_SPAN`].
const GUESSES_MAX: u32 = 10;
/// Maximum wrong tokens from all addresses within [`GUESS_SPAN`].
const GUESSES_OF_ALL_MAX: u32 = 200;
const GUESS_SPAN: Duration = Duration::from_secs(60);
/// Maximum addresses whose wrong tokens are counted.
const ADDRESSES_MAX: usize = 10_000;
/// The beginning of each token, by which secret scanners recognise tokens that were published by mistake.
const PREFIX: &str = "opilio";

/// The name of the session cookie.
pub(crate) const COOKIE: &str = "opilio-session";

/// Role of a user: the actions that a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// View jobs.
    Viewer,
    /// Create, run and change jobs.
    Operator,
    /// Delete jobs, load plugins from registries, replace plugins, read the audit log.
    Admin,
}

impl Role {
    /// All roles, each with its name.
    pub const NAMED: [(Role, &str); 3] = [
        (Role::Viewer, "viewer"),
        (Role::Operator, "operator"),
        (Role::Admin, "admin"),
    ];
}

/// A token as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Name of its owner, used in the logs.
    pub user: String,
    /// Its role.
    pub role: Role,
    /// SHA-256 of the token, in hexadecimal.
    pub sha256: String,
    /// Time of its creation.
    pub made: Timestamp,
    /// Time of its expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// All tokens, by their public part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens(BTreeMap<String, TokenRecord>);

impl Tokens {
    /// Reads the file; a missing one has no tokens.
    ///
    /// # Errors
    /// The file cannot be read, or is invalid.
    pub fn read(file: &Path) -> io::Result<Tokens> {
        match fs::read(file) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(Tokens::default()),
            Err(problem) => Err(problem),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        crate::own_file::write(file, &serde_json::to_vec_pretty(self)?)
    }

    /// Creates a token and stores its hash. The returned token is shown once and not stored.
    pub fn make(&mut self, user: &str, role: Role, until: Option<Timestamp>) -> String {
        let id = Uuid::new_v4().simple().to_string()[..8].to_owned();
        let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let token = format!("{PREFIX}_{id}_{secret}");
        let record = TokenRecord {
            user: user.to_owned(),
            role,
            sha256: hash(&token),
            made: Timestamp::now(),
            until,
        };
        self.0.insert(id, record);
        token
    }

    /// Removes the token with this public part. Returns whether it existed.
    pub fn revoke(&mut self, id: &str) -> bool {
        self.0.remove(id).is_some()
    }

    /// All tokens, by their public part.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &TokenRecord)> {
        self.0.iter().map(|(id, record)| (id.as_str(), record))
    }

    /// Returns `true` if there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, token: &str, now: Timestamp) -> Option<(&str, &TokenRecord)> {
        let id = token
            .strip_prefix(PREFIX)?
            .strip_prefix('_')?
            .split('_')
            .next()?;
        let (id, record) = self.0.get_key_value(id)?;
        let is_right: bool = hash(token)
            .as_bytes()
            .ct_eq(record.sha256.as_bytes())
            .into();
        let is_good = record.until.is_none_or(|until| now < until);
        (is_right && is_good).then_some((id, record))
    }
}

fn hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

/// The authenticated sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub user: String,
    pub role: Role,
}

/// Authenticates requests.
pub(crate) struct Access {
    file: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tokens: Tokens,
    stamp: Option<SystemTime>,
    /// The file is damaged or missing: no token can be checked.
    is_unreadable: bool,
    /// Sessions by the hash of the cookie's value.
    sessions: HashMap<String, Session>,
    guesses: HashMap<IpAddr, (u32, Instant)>,
    guesses_of_all: Option<(u32, Instant)>,
}

struct Session {
    token: String,
    last: Instant,
}

/// The reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The token is not known.
    Wrong,
    /// The token file cannot be read, so no token is known.
    Unreadable,
    /// Too many tokens were wrong; a retry is possible after this many seconds.
    TooMany(u64),
}

impl Access {
    pub(crate) fn new(file: PathBuf) -> io::Result<Access> {
        let access = Access {
            file,
            state: Mutex::default(),
        };
        // An invalid file must be found now, not at the first request.
        Tokens::read(&access.file)?;
        Ok(access)
    }

    /// Returns the owner of a token. A right token is accepted even after too many wrong ones. Otherwise, others at the client's
    /// address could lock it out. A token is too long to be guessed by any number of attempts.
    pub(crate) fn by_token(&self, token: &str, from: IpAddr) -> Result<Caller, Refusal> {
        let mut state = self.state();
        if let Some((_, record)) = state.tokens.find(token, Timestamp::now()) {
            return Ok(record.caller());
        }
        if state.is_unreadable {
            return Err(Refusal::Unreadable);
        }
        state.may_guess(from)?;
        state.guessed(from);
        Err(Refusal::Wrong)
    }

    /// Checks the result of another authentication. Wrong guesses count like those of tokens.
    pub(crate) fn by_other(&self, is_right: bool, from: IpAddr) -> Result<(), Refusal> {
        let mut state = self.state();
        state.may_guess(from)?;
        if !is_right {
            state.guessed(from);
            return Err(Refusal::Wrong);
        }
        Ok(())
    }

    /// Begins a session, and returns the value of its cookie.
    pub(crate) fn sign_in(&self, token: &str, from: IpAddr) -> Result<(String, Caller), Refusal> {
        let mut state = self.state();
        state.may_guess(from)?;
        let Some((id, record)) = state.tokens.find(token, Timestamp::now()) else {
            if state.is_unreadable {
                return Err(Refusal::Unreadable);
            }
            state.guessed(from);
            return Err(Refusal::Wrong);
        };
        let (id, caller) = (id.to_owned(), record.caller());
        if state.sessions.len() >= SESSIONS_MAX
            && let Some(oldest) = state
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.last)
                .map(|(key, _)| key.clone())
        {
            state.sessions.remove(&oldest);
        }
        let cookie = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let session = Session {
            token: id,
            last: Instant::now(),
        };
        state.sessions.insert(hash(&cookie), session);
        Ok((cookie, caller))
    }

    /// Returns the owner of a session. Revoking a token ends its sessions.
    pub(crate) fn by_session(&self, cookie: &str) -> Option<Caller> {
        let mut state = self.state();
        state
            .sessions
            .retain(|_, session| session.last.elapsed() < SESSION_IDLE);
        let session = state.sessions.get_mut(&hash(cookie))?;
        session.last = Instant::now();
        let token = session.token.clone();
        let record = state.tokens.0.get(&token)?;
        let is_good = record.until.is_none_or(|until| Timestamp::now() < until);
        is_good.then(|| record.caller())
    }

    /// Ends a session.
    pub(crate) fn sign_out(&self, cookie: &str) {
        self.state().sessions.remove(&hash(cookie));
    }

    /// Returns `true` if there is any token.
    pub(crate) fn has_tokens(&self) -> bool {
        Tokens::read(&self.file).is_ok_and(|tokens| !tokens.is_empty())
    }

    /// Returns `true` if no token can be checked because the file cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.state().is_unreadable
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = fs::metadata(&self.file)
            .and_then(|metadata| metadata.modified())
            .ok();
        if stamp != state.stamp || stamp.is_none() || state.is_unreadable {
            let read = match stamp {
                Some(_) => Tokens::read(&self.file),
                None => Err(io::ErrorKind::NotFound.into()),
            };
            match read {
                Ok(tokens) => (state.tokens, state.is_unreadable) = (tokens, false),
                // The tokens read before are not used, because the operator may have just revoked some of them.
                Err(problem) => {
                    if !state.is_unreadable {
                        tracing::error!(
                            "cannot read tokens, so all tokens are refused: {}: {problem}",
                            self.file.display()
                        );
                    }
                    (state.tokens, state.is_unreadable) = (Tokens::default(), true);
                }
            }
            state.stamp = stamp;
        }
        state
    }
}

impl TokenRecord {
    fn caller(&self) -> Caller {
        Caller {
            user: self.user.clone(),
            role: self.role,
        }
    }
}

impl State {
    fn may_guess(&mut self, from: IpAddr) -> Result<(), Refusal> {
        let left = |(count, since): &(u32, Instant), max: u32| {
            let rest = GUESS_SPAN.saturating_sub(since.elapsed());
            (*count >= max && !rest.is_zero()).then(|| rest.as_secs() + 1)
        };
        let of_one = self.guesses.get(&from).and_then(|it| left(it, GUESSES_MAX));
        let of_all = self
            .guesses_of_all
            .as_ref()
            .and_then(|it| left(it, GUESSES_OF_ALL_MAX));
        match of_one.or(of_all) {
            Some(seconds) => Err(Refusal::TooMany(seconds)),
            None => Ok(()),
        }
    }

    fn guessed(&mut self, from: IpAddr) {
        if self.guesses.len() >= ADDRESSES_MAX {
            self.guesses
                .retain(|_, (_, since)| since.elapsed() < GUESS_SPAN);
        }
        let count = |it: &mut (u32, Instant)| match it.1.elapsed() < GUESS_SPAN {
            true => it.0 += 1,
            false => *it = (1, Instant::now()),
        };
        count(self.guesses.entry(from).or_insert((0, Instant::now())));
        count(self.guesses_of_all.get_or_insert((0, Instant::now())));
    }
}

/// The address of a request's sender.
#[derive(Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The user who has signed in by a request.
#[derive(Clone)]
pub(crate) struct SignedIn(pub(crate) String);

/// The value of the session cookie.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == COOKIE).then_some(value)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn access(home: &Path) -> (Access, String) {
        let file = home.join("tokens.json");
        let mut tokens = Tokens::default();
        let token = tokens.make("lena", Role::Operator, None);
        tokens.write(&file).unwrap();
        (Access::new(file).unwrap(), token)
    }

    #[test]
    fn only_the_hash_of_a_token_is_stored_and_only_the_whole_token_is_accepted() {
        let home = tempfile::tempdir().unwrap();
        let (access, token) = access(home.path());
        let kept = fs::read_to_string(home.path().join("tokens.json")).unwrap();
        assert!(!kept.contains(token.rsplit('_').next().unwrap()), "{kept}");
        let caller = access.by_token(&token, HERE).unwrap();
        assert_eq!(
            (caller.user.as_str(), caller.role),
            ("lena", Role::Operator)
        );
        for wrong in [
            "",
            "opilio",
            "opilio__",
            &token[..token.len() - 1],
            &format!("{token}0"),
        ] {
            assert_eq!(access.by_token(wrong, HERE), Err(Refusal::Wrong), "{wrong}");
        }
    }

    #[test]
    fn a_revoked_or_old_token_ends_its_sessions() {
        let home = tempfile::tempdir().unwrap();
        let (access, token) = access(home.path());
        let (cookie, _) = access.sign_in(&token, HERE).unwrap();
        assert_eq!(access.by_session(&cookie).unwrap().user, "lena");
        assert_eq!(access.by_session("made-up"), None);
        let file = home.path().join("tokens.json");
        let mut tokens = Tokens::read(&file).unwrap();
        let id = tokens.iter().next().unwrap().0.to_owned();
        tokens.0.get_mut(&id).unwrap().until = Some(Timestamp::now());
        tokens.write(&file).unwrap();
        assert_eq!(access.by_session(&cookie), None);
        assert!(access.by_token(&token, HERE).is_err());
        assert!(tokens.revoke(&id));
        assert!(!tokens.revoke(&id));
    }

    #[test]
    fn tokens_do_not_count_as_wrong_while_their_file_cannot_be_read() {
        let home = tempfile::tempdir().unwrap();
        let (access, token) = access(home.path());
        let (cookie, _) = access.sign_in(&token, HERE).unwrap();
        let file = home.path().join("tokens.json");
        let kept = fs::read(&file).unwrap();
        let elsewhere = home.path().join("elsewhere.json");
        for damage in [true, false] {
            match damage {
                true => fs::write(&file, "{").unwrap(),
                false => fs::rename(&file, &elsewhere).unwrap(),
            }
            for _ in 0..=GUESSES_MAX {
                assert_eq!(access.by_token(&token, HERE), Err(Refusal::Unreadable));
                assert_eq!(access.sign_in(&token, HERE), Err(Refusal::Unreadable));
            }
            assert!(access.is_unreadable() && access.by_session(&cookie).is_none());
            fs::write(&file, &kept).unwrap();
            assert_eq!(access.by_token(&token, HERE).unwrap().user, "lena");
            assert!(!access.is_unreadable() && access.by_session(&cookie).is_some());
        }
    }

    #[test]
    fn too_many_wrong_tokens_lock_out_guesses_but_not_the_right_token() {
        let home = tempfile::tempdir().unwrap();
        let (access, token) = access(home.path());
        for _ in 0..GUESSES_MAX {
            assert_eq!(access.sign_in("opilio_x_y", HERE), Err(Refusal::Wrong));
        }
        let wrong = access.by_token("opilio_x_y", HERE);
        assert!(matches!(wrong, Err(Refusal::TooMany(_))), "{wrong:?}");
        let signed_in = access.sign_in(&token, HERE);
        assert!(
            matches!(signed_in, Err(Refusal::TooMany(_))),
            "{signed_in:?}"
        );
        let elsewhere = "192.0.2.1".parse().unwrap();
        assert!(access.sign_in(&token, elsewhere).is_ok());
        assert!(access.by_token(&token, HERE).is_ok());
    }
}
