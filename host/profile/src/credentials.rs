//! `[credentials.NAME]` and `[logins.NAME]`: credentials of the crawl for sites that need them.
//!
//! A profile is copied into the job and into the archive, so it has no passwords. It names the places from which they are read
//! when a crawl begins.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use opilio_uri::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::dns::HostPattern;
use crate::duration::DurationWritten;
use crate::secret::{SecretFile, SecretSource};

/// User name and password for servers that require basic or digest authentication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CredentialFile {
    /// The hosts to which they apply: a name, or `*.` and a domain for all hosts below it.
    #[schemars(extend("examples" = [["intranet.example.org"]]))]
    pub hosts: Vec<String>,

    /// The realm to which they apply, as the server names it. No default: they apply to every realm of those hosts.
    #[serde(default)]
    pub realm: Option<String>,

    /// The user name.
    pub user: String,

    /// The place of the password.
    pub password: SecretFile,
}

/// A form that is sent before a site is crawled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoginFile {
    /// The page with the form. It is fetched first, for its hidden fields and its cookies.
    #[schemars(extend("examples" = ["https://www.example.org/login"]))]
    pub page: String,

    /// The URL to which the form is sent, by POST. No default: the form's `action`.
    #[serde(default)]
    pub action: Option<String>,

    /// The hosts that need the login: a name, or `*.` and a domain for all hosts below it. Default `[]`: the host of the page.
    #[serde(default)]
    pub hosts: Vec<String>,

    /// Fields to fill in, by name. Default `{}`: there are only secret fields.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,

    /// Fields to fill in, by name, with the places of their values. Default `{}`: there are no secret fields.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretFile>,

    /// A text that the answer contains when the login was refused. No default: a status of 400 or above means refusal.
    #[serde(default)]
    pub refused: Option<String>,

    /// Time after which the form is sent again; `"none"` for never. Default `"none"`: it is sent again when the site redirects
    /// to the page with the form, or answers 401.
    #[serde(default = "again")]
    pub again: DurationWritten,
}

fn again() -> DurationWritten {
    "none".into()
}

/// User name and password for servers that require them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its name in the profile.
    pub name: String,
    /// The hosts to which they apply.
    pub hosts: Vec<HostPattern>,
    /// The realm to which they apply; `None`: every realm.
    pub realm: Option<String>,
    /// The user name.
    pub user: String,
    /// The place of the password.
    pub password: SecretSource,
}

/// A form that is sent before a site is crawled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Its name in the profile.
    pub name: String,
    /// The page with the form.
    pub page: Uri,
    /// The URL to which it is sent; `None`: the action of the page's form.
    pub action: Option<Uri>,
    /// The hosts that need the login.
    pub hosts: Vec<HostPattern>,
    /// Fields to fill in.
    pub fields: BTreeMap<String, String>,
    /// Fields to fill in, with the places of their values.
    pub secrets: BTreeMap<String, SecretSource>,
    /// A text of answers that refuse the login.
    pub refused: Option<String>,
    /// Time after which it is sent again.
    pub again: Option<Duration>,
}

impl Credential {
    /// Returns `true` if it applies to this realm of this host.
    pub fn is_for(&self, host: &str, realm: &str) -> bool {
        is_one_of(&self.hosts, host) && self.realm.as_deref().is_none_or(|ours| ours == realm)
    }
}

impl Login {
    /// Returns `true` if pages of this host need the login.
    pub fn is_for(&self, host: &str) -> bool {
        is_one_of(&self.hosts, host)
    }
}

fn is_one_of(patterns: &[HostPattern], host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    patterns.iter().any(|pattern| pattern.matches(&host))
}

pub(crate) fn check_credentials(
    written: &BTreeMap<String, CredentialFile>,
    mut part: Part<'_, '_>,
    folder: &Path,
) -> Vec<Credential> {
    let each = written.iter().map(|(name, file)| {
        let mut part = part.part(name);
        if file.hosts.is_empty() {
            part.refuse(
                "hosts",
                "credentials without a host".to_owned(),
                "name at least one",
            );
        }
        if file.user.contains(|c: char| c.is_control() || c == ':') {
            let problem = format!("not a user name: {}", quote(&file.user));
            part.refuse(
                "user",
                problem,
                "leave out colons and control characters (RFC 7617 §2)",
            );
        }
        Credential {
            name: name.clone(),
            hosts: hosts(&file.hosts, &mut part),
            realm: file.realm.clone(),
            user: file.user.clone(),
            password: file.password.check("password", &mut part, folder),
        }
    });
    each.collect()
}

pub(crate) fn check_logins(
    written: &BTreeMap<String, LoginFile>,
    mut part: Part<'_, '_>,
    folder: &Path,
) -> Vec<Login> {
    written
        .iter()
        .filter_map(|(name, file)| file.check(name, part.part(name), folder))
        .collect()
}

impl LoginFile {
    fn check(&self, name: &str, mut part: Part<'_, '_>, folder: &Path) -> Option<Login> {
        let page = web_uri("page", &self.page, &mut part);
        let action = self.action.as_ref();
        let action = action.map(|action| web_uri("action", action, &mut part));
        if self.fields.is_empty() && self.secrets.is_empty() {
            part.refuse_whole(
                "no field is filled in".to_owned(),
                "write fields = { user = \"…\" } and secrets = { password = { env = \"…\" } }",
            );
        }
        let secrets = self.secrets.iter().map(|(field, secret)| {
            let source = secret.check(field, &mut part.part("secrets"), folder);
            (field.clone(), source)
        });
        let secrets = secrets.collect();
        let mut hosts = hosts(&self.hosts, &mut part);
        if self.refused.as_deref() == Some("") {
            part.refuse(
                "refused",
                "every answer contains it".to_owned(),
                "leave it out",
            );
        }
        let again = part.duration_limit("again", &self.again);
        let page = page?;
        if hosts.is_empty() {
            hosts.extend(page.host().and_then(HostPattern::parse));
        }
        Some(Login {
            name: name.to_owned(),
            page,
            action: action.flatten(),
            hosts,
            fields: self.fields.clone(),
            secrets,
            refused: self.refused.clone(),
            again,
        })
    }
}

fn hosts(written: &[String], part: &mut Part<'_, '_>) -> Vec<HostPattern> {
    let mut patterns = Vec::new();
    for (place, name) in written.iter().enumerate() {
        match HostPattern::parse(name) {
            Some(pattern) => patterns.push(pattern),
            None => {
                let problem = format!("not a host name: {}", quote(name));
                part.part("hosts").refuse(
                    &place.to_string(),
                    problem,
                    "write \"www.example.org\", or \"*.example.org\" for all below it",
                );
            }
        }
    }
    patterns
}

fn web_uri(key: &str, text: &str, part: &mut Part<'_, '_>) -> Option<Uri> {
    let uri = Uri::parse(text).ok().filter(Uri::is_http);
    if uri.is_none() {
        let problem = format!("not an http or https URI: {}", quote(text));
        part.refuse(
            key,
            problem,
            "write one such as \"https://www.example.org/login\"",
        );
    }
    uri
}
