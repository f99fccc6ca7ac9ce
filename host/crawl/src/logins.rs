//! Logins: forms that are sent before a site is crawled. This module has the state of each login, and its next step.
//!
//! The crawl fetches login page and form as prerequisites, through the frontier like any other URI. The frontier's store records
//! that a login was sent, beside the resulting cookies. A login in progress is in memory only. It starts again if the crawl was
//! stopped meanwhile.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::RequestBody;
use opilio_fetch::auth::Secret;
use opilio_fetch::forms::{FORM_TYPE, encode, login_form};
use opilio_frontier::SharedFrontier;
use opilio_profile::{Login, Profile};
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::credentials::MissingSecret;
use crate::servers::{keep, stored};

/// Time for which a refused login is not tried again, because an operator has to fix it.
const REFUSED: Duration = Duration::from_secs(3600);

/// Maximum of stored URIs whose responses were those of a client without login.
const PAGES_WITHOUT_LOGIN_MAX: usize = 10_000;

/// Maximum of repetitions of a login in a row, if responses remain those of a client without login.
const IN_VAIN_MAX: u32 = 3;

/// The logins of a profile.
#[derive(Default)]
pub(crate) struct Logins {
    known: Vec<(Login, BTreeMap<String, Secret>)>,
    states: Mutex<HashMap<String, LoginState>>,
    pages_without_login: Mutex<HashSet<String>>,
}

/// State of a login.
#[derive(Clone, Debug, Default)]
struct LoginState {
    step: Step,
    /// Number of repetitions in a row without success.
    in_vain: u32,
}

#[derive(Clone, Debug, Default)]
enum Step {
    /// Not tried yet.
    #[default]
    Out,
    /// The login page is to be fetched.
    Page,
    /// The form is to be sent.
    Form { action: Uri, body: Secret },
    /// Sent at this time, and not refused.
    In { since: Timestamp },
    /// Refused; not tried again before this time.
    Refused { until: Timestamp },
}

/// State of a login that outlives the process.
#[derive(Serialize, Deserialize)]
enum StoredLogin {
    /// Milliseconds since 1970.
    In(i64),
    Refused(i64),
    Out,
}

/// Requirement that must be met before a URI is fetched.
pub(crate) enum LoginRequirement {
    /// The URI has no requirement.
    Nothing,
    /// This URI must be fetched first.
    First(Uri),
    /// The login of this name is required, and it was refused.
    Refused(String),
}

/// Role of a URI in a login.
#[derive(Clone, Debug)]
pub(crate) enum LoginPart {
    /// The URI is the page with the form.
    Page(String),
    /// The URI is the target of the form.
    Form { name: String, body: Secret },
}

impl LoginPart {
    /// Returns the request body.
    pub(crate) fn body(&self) -> Option<RequestBody> {
        match self {
            LoginPart::Page(_) => None,
            LoginPart::Form { body, .. } => Some(RequestBody {
                content_type: FORM_TYPE.to_owned(),
                content: body.reveal().to_owned().into(),
            }),
        }
    }
}

/// Outcome of a login's page or form.
pub(crate) enum LoginResult {
    /// The page was fetched; its form is next.
    PageFetched,
    /// Logged in.
    LoggedIn(String),
    /// The login failed, with the reason.
    Refused(String, &'static str),
}

impl Logins {
    /// Reads the secrets that the profile names.
    pub(crate) fn read(profile: &Profile) -> Result<Logins, MissingSecret> {
        let mut known = Vec::new();
        for login in &profile.logins {
            let mut secrets = BTreeMap::new();
            for (field, source) in &login.secrets {
                let secret = source.read();
                let secret = secret.map_err(|it| MissingSecret::new("logins", &login.name, it))?;
                secrets.insert(field.clone(), Secret::new(secret));
            }
            known.push((login.clone(), secrets));
        }
        Ok(Logins {
            known,
            ..Logins::default()
        })
    }

    /// Returns the role of a URI in a login that is in progress.
    pub(crate) fn part_of(&self, uri: &Uri) -> Option<LoginPart> {
        if self.known.is_empty() {
            return None;
        }
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        self.known.iter().find_map(|(login, _)| {
            let name = login.name.clone();
            match &states.get(&login.name)?.step {
                Step::Page if login.page == *uri => Some(LoginPart::Page(name)),
                Step::Form { action, body } if action == uri => Some(LoginPart::Form {
                    name,
                    body: body.clone(),
                }),
                _ => None,
            }
        })
    }

    /// Returns the requirement that must be met before the URI is fetched.
    pub(crate) fn needs(
        &self,
        frontier: &SharedFrontier,
        uri: &Uri,
        now: Timestamp,
    ) -> LoginRequirement {
        let Some(host) = uri.host() else {
            return LoginRequirement::Nothing;
        };
        for (login, _) in self.known.iter().filter(|(login, _)| login.is_for(host)) {
            let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
            let state = states
                .entry(login.name.clone())
                .or_insert_with(|| LoginState::stored(frontier, &login.name));
            match &state.step {
                Step::In { since } => {
                    let over = login.again.is_some_and(|again| *since + again <= now);
                    if over {
                        state.step = Step::Page;
                        return LoginRequirement::First(login.page.clone());
                    }
                }
                Step::Refused { until } if *until > now => {
                    return LoginRequirement::Refused(login.name.clone());
                }
                Step::Out | Step::Refused { .. } => {
                    state.step = Step::Page;
                    return LoginRequirement::First(login.page.clone());
                }
                Step::Page => return LoginRequirement::First(login.page.clone()),
                Step::Form { action, .. } => return LoginRequirement::First(action.clone()),
            }
        }
        LoginRequirement::Nothing
    }

    /// Processes the page of a login, or the response to its form.
    pub(crate) fn receive(
        &self,
        frontier: &SharedFrontier,
        part: &LoginPart,
        status: i32,
        text: &str,
        now: Timestamp,
    ) -> Result<LoginResult, opilio_frontier::FrontierError> {
        let (name, is_form) = match part {
            LoginPart::Page(name) => (name, false),
            LoginPart::Form { name, .. } => (name, true),
        };
        let found = self.known.iter().find(|(login, _)| login.name == *name);
        let Some((login, secrets)) = found else {
            return Ok(LoginResult::PageFetched);
        };
        let is_answer = (200..400).contains(&status);
        let refuses = || {
            let refusal = login.refused.as_deref();
            refusal.is_some_and(|refusal| text.contains(refusal))
        };
        if is_form {
            if !is_answer {
                return self.fail(frontier, name, "the response to the form is an error", now);
            }
            if refuses() {
                return self.fail(
                    frontier,
                    name,
                    "the response says that the login was refused",
                    now,
                );
            }
            self.set(name, Step::In { since: now });
            keep(frontier, &key(name), &StoredLogin::In(now.as_millisecond()))?;
            return Ok(LoginResult::LoggedIn(name.clone()));
        }
        if !is_answer {
            return self.fail(frontier, name, "cannot fetch the page", now);
        }
        let form = login_form(text, &login.page, login.action.as_ref());
        let (action, mut form) = match (form, &login.action) {
            (Some(form), Some(action)) => (action.clone(), form),
            (Some(form), None) => (form.action.clone(), form),
            // A script creates the form of this page, so only the profile's fields are known.
            (None, Some(action)) => (action.clone(), opilio_fetch::forms::Form::empty(action)),
            (None, None) => {
                return self.fail(frontier, name, "the page has no form with a password", now);
            }
        };
        let fields = login.fields.iter();
        form.fill_in(fields.map(|(field, value)| (field.as_str(), value.as_str())));
        form.fill_in(
            secrets
                .iter()
                .map(|(field, value)| (field.as_str(), value.reveal())),
        );
        let body = Secret::new(encode(&form.fields));
        self.set(name, Step::Form { action, body });
        Ok(LoginResult::PageFetched)
    }

    /// Records that a login failed: its page or form could not be fetched, or the response refuses the login.
    pub(crate) fn fail(
        &self,
        frontier: &SharedFrontier,
        name: &str,
        why: &'static str,
        now: Timestamp,
    ) -> Result<LoginResult, opilio_frontier::FrontierError> {
        let until = now + REFUSED;
        self.set(name, Step::Refused { until });
        keep(
            frontier,
            &key(name),
            &StoredLogin::Refused(until.as_millisecond()),
        )?;
        Ok(LoginResult::Refused(name.to_owned(), why))
    }

    /// Checks whether the response to a page that needs a login is that of a client without login. Returns the login page if the
    /// login is sent again and the page is fetched once more. That happens once for each page, and not after too many attempts
    /// without success.
    pub(crate) fn login_page_to_fetch(
        &self,
        frontier: &SharedFrontier,
        uri: &Uri,
        status: u16,
        target: Option<&Uri>,
    ) -> Result<Option<Uri>, opilio_frontier::FrontierError> {
        let Some((login, _)) = self.known.iter().find(|(login, _)| {
            uri.host().is_some_and(|host| login.is_for(host)) && login.page != *uri
        }) else {
            return Ok(None);
        };
        let to_page = target.is_some_and(|target| {
            target.authority() == login.page.authority() && target.path() == login.page.path()
        });
        let is_without_login = status == 401 || to_page;
        let is_second = {
            let mut known = self
                .pages_without_login
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if !is_without_login {
                if known.remove(uri.as_str()) {
                    self.change_state(&login.name, |state| state.in_vain = 0);
                }
                return Ok(None);
            }
            if known.len() >= PAGES_WITHOUT_LOGIN_MAX {
                known.clear();
            }
            !known.insert(uri.as_str().to_owned())
        };
        let mut sent_anew = false;
        self.change_state(&login.name, |state| match (&state.step, is_second) {
            (_, true) => state.in_vain += 1,
            (Step::In { .. }, false) if state.in_vain < IN_VAIN_MAX => {
                state.step = Step::Page;
                sent_anew = true;
            }
            // Another URI has already started the repetition of the login.
            (Step::Page | Step::Form { .. }, false) => sent_anew = true,
            _ => {}
        });
        if !sent_anew {
            return Ok(None);
        }
        keep(frontier, &key(&login.name), &StoredLogin::Out)?;
        Ok(Some(login.page.clone()))
    }

    fn set(&self, name: &str, step: Step) {
        self.change_state(name, |state| state.step = step);
    }

    fn change_state(&self, name: &str, how: impl FnOnce(&mut LoginState)) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        how(states.entry(name.to_owned()).or_default());
    }
}

impl LoginState {
    fn stored(frontier: &SharedFrontier, name: &str) -> LoginState {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap_or_default();
        let step = match stored::<StoredLogin>(frontier, &key(name)) {
            Some(StoredLogin::In(since)) => Step::In { since: at(since) },
            Some(StoredLogin::Refused(until)) => Step::Refused { until: at(until) },
            Some(StoredLogin::Out) | None => Step::Out,
        };
        LoginState { step, in_vain: 0 }
    }
}

fn key(name: &str) -> String {
    format!("login:{name}")
}
