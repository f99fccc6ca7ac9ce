//! Streams: subjects of NATS that get events of crawls. A profile has them for its crawls, and the daemon's configuration for all
//! jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::secret::{SecretFile, SecretSource};
use crate::webhooks::EventKind;

/// A subject of NATS that gets events as JSON, one message for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventStreamFile {
    /// Addresses of servers of one NATS system: `"nats://HOST:PORT"`, or `"tls://HOST:PORT"` with encryption.
    #[schemars(extend("examples" = [["nats://127.0.0.1:4222"]]))]
    pub servers: Vec<String>,

    /// Beginning of the subject. The kind of the event follows: `opilio.events.job`. Default `"opilio.events"`: one stream may
    /// have the events of all crawls, as each names its job.
    #[serde(default = "subject")]
    pub subject: String,

    /// Kinds of events, as for webhooks. Default `["job", "alert"]`: a crawl has millions of captures.
    #[serde(default = "kinds")]
    pub events: Vec<EventKind>,

    /// Place of the credentials (a `.creds` file of NATS, or its text). No default: the servers require no login.
    #[serde(default)]
    pub credentials: Option<SecretFile>,

    /// `true` if a stream of JetStream has to acknowledge each event. Default `true`: without it, events that no subscriber
    /// receives at that moment are lost.
    #[serde(default = "acknowledged")]
    pub acknowledged: bool,
}

/// A subject of NATS that gets events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventStream {
    /// Its name in the profile.
    pub name: String,
    /// Addresses of the servers; at least one.
    pub servers: Vec<String>,
    /// Beginning of the subject.
    pub subject: String,
    /// Kinds of events.
    pub events: BTreeSet<EventKind>,
    /// Place of the credentials; `None`: no login.
    pub credentials: Option<SecretSource>,
    /// `true` if a stream of JetStream has to acknowledge each event.
    pub acknowledged: bool,
}

fn subject() -> String {
    "opilio.events".to_owned()
}

fn kinds() -> Vec<EventKind> {
    vec![EventKind::Job, EventKind::Alert]
}

fn acknowledged() -> bool {
    true
}

pub(crate) fn check_streams(
    written: &BTreeMap<String, EventStreamFile>,
    mut part: Part<'_, '_>,
    folder: &Path,
) -> Vec<EventStream> {
    let each = written.iter().map(|(name, file)| {
        let mut part = part.part(name);
        for (key, problem, remedy) in file.faults() {
            part.refuse(key, problem, remedy);
        }
        let credentials = file.credentials.as_ref();
        let credentials = credentials.map(|it| it.check("credentials", &mut part, folder));
        file.stream(name, credentials)
    });
    each.collect()
}

impl EventStreamFile {
    /// Checks a stream that is not part of a profile. The path of its credentials is used as it is.
    ///
    /// # Errors
    /// The key that has an error, the error, and a remedy.
    pub fn checked(&self, name: &str) -> Result<EventStream, String> {
        if let Some((key, problem, remedy)) = self.faults().into_iter().next() {
            return Err(format!("{key}: {problem}; {remedy}"));
        }
        let credentials = self.credentials.as_ref().map(|credentials| {
            let place = credentials.place();
            place.ok_or("credentials: write { file = \"nats.creds\" } or { env = \"NAME\" }")
        });
        Ok(self.stream(name, credentials.transpose()?))
    }

    /// Returns the errors of single keys, each with a remedy.
    fn faults(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut faults = Vec::new();
        if self.servers.is_empty() {
            let problem = "no server".to_owned();
            faults.push(("servers", problem, "name at least one"));
        }
        for server in self.servers.iter().filter(|server| !is_server(server)) {
            let problem = format!("not an address of a NATS server: {}", quote(server));
            let remedy = "write one such as \"nats://127.0.0.1:4222\"; a login is in credentials";
            faults.push(("servers", problem, remedy));
        }
        if !is_subject(&self.subject) {
            let problem = format!("not a subject of NATS: {}", quote(&self.subject));
            let remedy = "write words with dots between them, such as \"opilio.events\"";
            faults.push(("subject", problem, remedy));
        }
        if self.events.is_empty() {
            let problem = "no event would be sent".to_owned();
            faults.push(("events", problem, "name at least one kind"));
        }
        faults
    }

    fn stream(&self, name: &str, credentials: Option<SecretSource>) -> EventStream {
        EventStream {
            name: name.to_owned(),
            servers: self.servers.clone(),
            subject: self.subject.clone(),
            events: self.events.iter().copied().collect(),
            credentials,
            acknowledged: self.acknowledged,
        }
    }
}

fn is_server(text: &str) -> bool {
    let schemes = ["nats://", "tls://"];
    let Some(place) = schemes.iter().find_map(|scheme| text.strip_prefix(scheme)) else {
        return false;
    };
    let place = place.strip_suffix('/').unwrap_or(place);
    // A colon within brackets belongs to an address.
    let host = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => match port.parse::<u16>() {
            Ok(_) => host,
            Err(_) => return false,
        },
        _ => place,
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    !host.is_empty() && host.chars().all(is_part)
}

/// Returns `true` if a text is a subject for messages: words without wildcards.
fn is_subject(text: &str) -> bool {
    let is_word = |word: &str| {
        let is_part = |c: char| c.is_ascii_graphic() && !"*>".contains(c);
        !word.is_empty() && word.chars().all(is_part)
    };
    !text.starts_with('$') && text.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_subjects_are_those_of_nats() {
        for (server, is_one) in [
            ("nats://127.0.0.1:4222", true),
            ("tls://nats.example.org", true),
            ("nats://[::1]:4222/", true),
            ("nats://[::1]", true),
            ("http://a.org:4222", false),
            ("nats://", false),
            ("nats://user:secret@a.org", false),
            ("nats://a.org:port", false),
            ("nats://a.org/path", false),
        ] {
            assert_eq!(is_server(server), is_one, "{server}");
        }
        for (subject, is_one) in [
            ("opilio.events", true),
            ("a", true),
            ("", false),
            ("a..b", false),
            ("a.>", false),
            ("a b", false),
            ("$SYS.a", false),
        ] {
            assert_eq!(is_subject(subject), is_one, "{subject}");
        }
    }
}
