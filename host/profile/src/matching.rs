//! Conditions by which an override matches.

use jiff::Timestamp;
use opilio_uri::{Uri, surt_prefix_from_line};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::check::{Part, quote};
use crate::frontier::QueueKey;
use crate::queue::is_queue_name;
use crate::schema_check::toml_text;
use crate::setting_stages::SettingStage;
use crate::time_of_day::TimeOfDay;

/// Largest compiled pattern in bytes.
const REGEX_COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// Longest pattern in bytes.
const REGEX_BYTES_MAX: usize = 4096;

/// Ports that a queue's name does not distinguish: those of http, https and ftp.
const SCHEMES_PORTS: [u16; 3] = [80, 443, 21];

/// Conditions of an override. All conditions have to match; of a list any item is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct MatchFile {
    /// SURT prefixes, such as `"http://(org,example,"`, or URIs that imply one.
    #[schemars(extend("examples" = [["http://(org,example,"]]))]
    pub surt: Vec<String>,
    /// Host names: only these hosts.
    #[schemars(extend("examples" = [["www.example.org"]]))]
    pub host: Vec<String>,
    /// Domains, with all hosts below them.
    #[schemars(extend("examples" = [["example.org"]]))]
    pub domain: Vec<String>,
    /// A regular expression that is searched in the URI; `^` and `$` are its start and end.
    pub regex: Option<String>,
    /// Ports, including that of the scheme if the URI has none.
    pub port: Vec<u16>,
    /// Queues, by name: names that `queue.name` forces, or keys.
    #[schemars(extend("examples" = [["news"]]))]
    pub queue: Vec<String>,
    /// Seeds: URIs that were found from them.
    #[schemars(extend("examples" = [["https://www.example.org/"]]))]
    pub source: Vec<String>,
    /// Media types of the response, such as `"text/html"` or `"image/*"`.
    #[schemars(extend("examples" = [["text/html"]]))]
    pub media_type: Vec<String>,
    /// A part of the day, which may reach over midnight: in UTC, or in a zone named after it.
    #[schemars(extend("examples" = ["22:00-06:00", "22:00-06:00 Europe/Copenhagen"]))]
    pub time: Option<String>,
}

/// Conditions of an override, ready for matching. An empty list matches everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    pub(crate) surt: Vec<String>,
    /// Host names, lower-case, without the root's dot, as are domains.
    pub(crate) host: Vec<String>,
    pub(crate) domain: Vec<String>,
    pub(crate) regex: Option<Regex>,
    port: Vec<u16>,
    pub(crate) queue: Vec<String>,
    source: Vec<String>,
    media_type: Vec<String>,
    time: Option<TimeOfDay>,
}

/// A URI or a queue, with the facts known about it.
#[derive(Debug)]
pub(crate) struct Subject<'s> {
    /// The URI as written; `None` for a queue.
    pub(crate) uri: Option<&'s str>,
    pub(crate) surt: String,
    /// Its host, lower-case, without the root's dot; `None` if it has none.
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
    pub(crate) queue: Option<&'s str>,
    pub(crate) source: Option<&'s str>,
    pub(crate) media_type: Option<&'s str>,
    pub(crate) now: Option<Timestamp>,
}

impl<'s> Subject<'s> {
    /// Makes a subject from a URI without further facts. A `dns:` URI counts as the home page of its host.
    pub(crate) fn of_uri(uri: &Uri) -> Self {
        let home_page = (uri.scheme() == "dns")
            .then(|| Uri::parse(&format!("http://{}/", uri.host()?)).ok())
            .flatten();
        let uri = home_page.as_ref().unwrap_or(uri);
        Self {
            uri: None,
            surt: uri.surt(),
            host: uri.host().map(plain_host),
            port: uri.port_or_default(),
            queue: None,
            source: None,
            media_type: None,
            now: None,
        }
    }

    /// Makes a subject from a queue that belongs to no host.
    pub(crate) fn of_queue(queue: &'s str) -> Self {
        Self {
            uri: None,
            surt: String::new(),
            host: None,
            port: 0,
            queue: Some(queue),
            source: None,
            media_type: None,
            now: None,
        }
    }
}

impl Conditions {
    /// Returns `true` if the conditions name sites.
    pub(crate) fn names_sites(&self) -> bool {
        let Self {
            surt,
            host,
            domain,
            port,
            ..
        } = self;
        !(surt.is_empty() && host.is_empty() && domain.is_empty() && port.is_empty())
    }

    /// Returns `true` if both may match the same URI, judged by the hosts and domains that they name.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        let names = |conditions: &'_ Self| conditions.host.len() + conditions.domain.len();
        if names(self) == 0 || names(other) == 0 {
            return true;
        }
        let is_in = |one: &Self, other: &Self| {
            let mut names = one.host.iter().chain(&one.domain);
            names.any(|name| {
                other.host.contains(name)
                    || other.domain.iter().any(|domain| is_within(name, domain))
            })
        };
        is_in(self, other) || is_in(other, self)
    }

    pub(crate) fn matches(&self, subject: &Subject<'_>) -> bool {
        let host = subject.host.as_deref();
        any(&self.queue, |queue| subject.queue == Some(queue.as_str()))
            && any(&self.host, |name| host == Some(name.as_str()))
            && any(&self.domain, |domain| {
                host.is_some_and(|host| is_within(host, domain))
            })
            && any(&self.surt, |prefix| {
                subject.surt.starts_with(prefix.as_str())
            })
            && any(&self.port, |port| *port == subject.port)
            && any(&self.source, |seed| subject.source == Some(seed.as_str()))
            && any(&self.media_type, |wanted| {
                subject
                    .media_type
                    .is_some_and(|found| is_of_type(found, wanted))
            })
            && (self.time.is_none() || subject.now.is_some_and(|now| self.includes_time(now)))
            && self
                .regex
                .as_ref()
                .is_none_or(|regex| subject.uri.is_some_and(|uri| regex.is_match(uri)))
    }

    /// Returns `true` if they name no part of the day, or `now` is in it.
    pub(crate) fn includes_time(&self, now: Timestamp) -> bool {
        self.time.as_ref().is_none_or(|time| time.contains(now))
    }

    /// Returns `true` if they name a part of the day, and `now` is in it.
    pub(crate) fn is_its_time(&self, now: Timestamp) -> bool {
        self.time.as_ref().is_some_and(|time| time.contains(now))
    }

    /// The condition that cannot be decided at a stage, and the conditions that can; `None` if all can.
    pub(crate) fn unknown_at(
        &self,
        stage: SettingStage,
        key: QueueKey,
    ) -> Option<(&'static str, &'static str)> {
        if !self.media_type.is_empty() && stage != SettingStage::Response {
            return Some(("media-type", "it is known only when the response has come"));
        }
        if stage != SettingStage::Queue {
            return None;
        }
        if self.regex.is_some() {
            return Some(("regex", OF_A_QUEUE));
        }
        if !self.source.is_empty() {
            return Some(("source", OF_A_QUEUE));
        }
        let hint = match key {
            QueueKey::SurtAuthority => OF_A_QUEUE,
            QueueKey::Host => {
                "queues are named by host: match host, domain, queue, or a SURT prefix that ends before \")\""
            }
            QueueKey::Domain => {
                "queues are named by registered domain: match domain, queue, or a SURT prefix of whole domains"
            }
        };
        if key != QueueKey::SurtAuthority && !self.port.is_empty() {
            return Some(("port", hint));
        }
        if self.port.iter().any(|port| SCHEMES_PORTS.contains(port)) {
            return Some((
                "port",
                "http and https of one host share a queue: match other ports, or host",
            ));
        }
        if key == QueueKey::Domain && !self.host.is_empty() {
            return Some(("host", hint));
        }
        if key == QueueKey::Domain && !self.domain.iter().all(|domain| is_whole_domain(domain)) {
            return Some(("domain", hint));
        }
        if !self
            .surt
            .iter()
            .all(|prefix| is_known_of_queue(prefix, key))
        {
            return Some(("surt", hint));
        }
        None
    }

    /// A condition on which names may not depend, because the same URI must always have the same name.
    pub(crate) fn unfit_for_identity(&self) -> Option<&'static str> {
        if !self.source.is_empty() {
            Some("source")
        } else if self.time.is_some() {
            Some("time")
        } else if !self.queue.is_empty() {
            Some("queue")
        } else {
            None
        }
    }

    /// A condition on which the canonical form may not depend.
    pub(crate) fn unfit_for_canonical_form(&self) -> Option<&'static str> {
        let unfit = [
            (self.regex.is_some(), "regex"),
            (!self.port.is_empty(), "port"),
        ];
        let unfit = unfit
            .iter()
            .find(|(is_set, _)| *is_set)
            .map(|(_, key)| *key);
        self.unfit_for_identity().or(unfit)
    }
}

/// Conditions that a queue's name under the default key can decide.
const OF_A_QUEUE: &str =
    "match host, domain, port, queue, or a SURT prefix no longer than the authority";

/// Returns `true` if a list has a match; an empty list matches everything.
fn any<T>(list: &[T], is_met: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(is_met)
}

/// Returns `true` if a host is the domain or below it.
fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_of_type(found: &str, wanted: &str) -> bool {
    let found = found.split(';').next().unwrap_or_default().trim();
    match wanted.strip_suffix('*') {
        // The type with its slash.
        Some(kind) => found
            .get(..kind.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(kind)),
        None => found.eq_ignore_ascii_case(wanted),
    }
}

/// Returns `true` if either every URI of a queue begins with the prefix or none does.
pub(crate) fn is_known_of_queue(prefix: &str, key: QueueKey) -> bool {
    let Some(authority) = prefix.strip_prefix("http://(") else {
        return "http://(".starts_with(prefix);
    };
    let (server, whole) = match authority.split_once(')') {
        Some((server, "" | "/")) => (server, true),
        Some(_) => return false,
        None => (authority, false),
    };
    match key {
        QueueKey::SurtAuthority => true,
        // The host may have a port or none.
        QueueKey::Host => !server.contains(':') && !whole,
        QueueKey::Domain => {
            let labels: Vec<&str> = server.trim_end_matches(',').rsplit(',').collect();
            !server.contains(':') && !whole && is_whole_domain(&labels.join("."))
        }
    }
}

/// Returns `true` if a domain is registered itself, or is a public suffix. All URIs of a queue that is named by registered domain
/// are below such a domain, or none of them.
fn is_whole_domain(domain: &str) -> bool {
    let uri = Uri::parse(&format!("http://{domain}/"));
    uri.is_ok_and(|uri| {
        uri.registrable_domain()
            .is_none_or(|registered| Some(registered) == uri.host())
    })
}

fn plain_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

impl MatchFile {
    /// SURT prefixes of all URIs that can match; `None` if the conditions name no sites. URIs with these prefixes do not all match.
    pub fn surt_prefixes(&self) -> Option<Vec<String>> {
        let of_site = |name: &String| {
            let surt = Uri::parse(&format!("http://{name}/")).ok()?.surt();
            Some(surt.trim_end_matches(")/").to_owned())
        };
        let (surt, host, domain) = (&self.surt, &self.host, &self.domain);
        let prefixes: Option<Vec<String>> = match (&**host, &**domain, &**surt) {
            ([], [], []) => None,
            ([], [], surt) => surt
                .iter()
                .map(|line| surt_prefix_from_line(line).ok()?)
                .collect(),
            ([], domain, _) => domain.iter().map(of_site).collect(),
            (host, ..) => host.iter().map(of_site).collect(),
        };
        prefixes
    }

    /// Formats the conditions in the form of a profile, on one line and without empty conditions: `match = { domain =
    /// ["example.org"] }`.
    pub fn toml(&self) -> String {
        format!("match = {}", toml_text(&Value::Object(self.conditions())))
    }

    /// The conditions by name, without empty ones.
    pub fn conditions(&self) -> Map<String, Value> {
        // Texts and numbers always have a JSON form.
        match serde_json::to_value(self).unwrap_or_default() {
            Value::Object(mut keys) => {
                keys.retain(|_, value| {
                    !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
                });
                keys
            }
            _ => Map::new(),
        }
    }

    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Conditions {
        let mut conditions = Conditions {
            port: self.port.clone(),
            ..Conditions::default()
        };
        each(
            &mut part,
            "surt",
            &self.surt,
            &mut conditions.surt,
            |text| match surt_prefix_from_line(text) {
                Ok(Some(prefix)) => Ok(prefix),
                Ok(None) => Err("the SURT prefix is empty".to_owned()),
                Err(problem) => Err(format!("not a SURT prefix: {}: {problem}", quote(text))),
            },
            "write \"http://(org,example,\" or a URI that implies one",
        );
        for (key, names, into) in [
            ("host", &self.host, &mut conditions.host),
            ("domain", &self.domain, &mut conditions.domain),
        ] {
            each(
                &mut part,
                key,
                names,
                into,
                host_name,
                "write it without scheme and path, such as \"example.org\"",
            );
        }
        each(
            &mut part,
            "queue",
            &self.queue,
            &mut conditions.queue,
            |name| {
                if is_queue_name(name) {
                    Ok(name.to_owned())
                } else {
                    Err(format!("not the name of a queue: {}", quote(name)))
                }
            },
            "write it as opilio profile explain shows it",
        );
        each(
            &mut part,
            "source",
            &self.source,
            &mut conditions.source,
            |seed| match Uri::parse_seed(seed) {
                Ok(uri) => Ok(uri.as_str().to_owned()),
                Err(problem) => Err(format!("not a seed: {}: {problem}", quote(seed))),
            },
            "write it as the seeds have it",
        );
        each(
            &mut part,
            "media-type",
            &self.media_type,
            &mut conditions.media_type,
            media_type,
            "write \"text/html\" or \"image/*\"",
        );
        if let Some(text) = &self.time {
            match TimeOfDay::parse(text) {
                Ok(time) => conditions.time = Some(time),
                Err(problem) => part.refuse(
                    "time",
                    format!("{problem}: {}", quote(text)),
                    "write \"22:00-06:00\"",
                ),
            }
        }
        if let Some(pattern) = &self.regex {
            match regex(pattern) {
                Ok(regex) => conditions.regex = Some(regex),
                Err(problem) => part.refuse("regex", problem, ""),
            }
        }
        if *self == Self::default() {
            part.refuse_whole(
                "the override has no conditions".to_owned(),
                "write its conditions, such as match = { domain = [\"example.org\"] }",
            );
        }
        conditions
    }
}

fn each(
    part: &mut Part<'_, '_>,
    key: &str,
    written: &[String],
    into: &mut Vec<String>,
    read: impl Fn(&str) -> Result<String, String>,
    suggestion: &str,
) {
    let mut list = part.part(key);
    for (index, text) in written.iter().enumerate() {
        match read(text) {
            Ok(value) => into.push(value),
            Err(problem) => list.refuse(&index.to_string(), problem, suggestion),
        }
    }
}

fn host_name(name: &str) -> Result<String, String> {
    let uri = Uri::parse(&format!("http://{name}/")).ok();
    let plain = uri.filter(|uri| {
        uri.path_and_query() == "/" && uri.port().is_none() && uri.userinfo().is_none()
    });
    plain
        .and_then(|uri| uri.host().map(plain_host))
        .ok_or_else(|| format!("not a host name: {}", quote(name)))
}

fn media_type(text: &str) -> Result<String, String> {
    let token = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
    };
    match text.split_once('/') {
        Some((kind, sort)) if token(kind) && (sort == "*" || token(sort)) => {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err(format!("not a media type: {}", quote(text))),
    }
}

/// Compiles a regular expression; the error is a sentence.
pub(crate) fn regex(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > REGEX_BYTES_MAX {
        return Err(format!("pattern longer than {REGEX_BYTES_MAX} bytes"));
    }
    let built = RegexBuilder::new(pattern)
        .size_limit(REGEX_COMPILED_BYTES_MAX)
        .build();
    // The parser's error has several lines, which mark the place. The last one has the message.
    built.map_err(|problem| {
        let text = problem.to_string();
        let last = text.lines().last().unwrap_or_default();
        let why = last.trim_start_matches("error: ");
        format!("not a regular expression: {}: {why}", quote(pattern))
    })
}
