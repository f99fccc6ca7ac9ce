//! Delivery of alerts to a webhook and to a command. The crawl never waits for either. A failed delivery is repeated a few times.
//! If there are too many alerts, some are not sent, with a warning in the log.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_profile::{Alerts, Profile};
use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Alert, Event};
use crate::directory::name_of;

/// Maximum number of waiting notices. Further notices are not sent; `alerts.log` has them.
const WAITING_MAX: usize = 100;

/// Pauses between the attempts to reach a webhook.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(25),
];

/// Maximum time for notices after the end of the crawl.
const GRACE: Duration = Duration::from_secs(5);

/// Notice that is sent: a change of one alert.
#[derive(Clone, Debug, Serialize)]
pub struct Notice {
    /// Directory of the job.
    pub job: PathBuf,
    /// Name of the job, also used in metrics and reports.
    pub name: String,
    /// Name of the job's profile. It identifies crawls of one kind, such as all crawls of a calendar entry.
    pub profile: String,
    /// Time at which the notice was sent.
    pub at: Timestamp,
    /// Change of the alert.
    pub event: Event,
    /// The alert.
    pub alert: Alert,
}

impl Notice {
    /// Creates a notice about a change of one of this job's alerts, with the present time.
    pub fn new(job: &Path, profile: &Profile, event: Event, alert: Alert) -> Notice {
        Notice {
            job: job.to_owned(),
            name: name_of(job),
            profile: profile.name.clone(),
            at: Timestamp::now(),
            event,
            alert,
        }
    }
}

/// Sender of notices, one after another, in a separate task.
pub struct Notifier {
    notices: mpsc::Sender<(Notice, Alerts)>,
    sending: JoinHandle<()>,
}

/// Destinations of a job's notices.
pub(super) struct Destinations {
    webhook: Option<(reqwest::Client, String)>,
    command: Vec<String>,
    command_timeout: Duration,
    job: PathBuf,
}

impl Notifier {
    /// Starts the sender for the job in this directory.
    pub fn start(job: &Path) -> Notifier {
        let job = job.to_owned();
        let (notices, mut waiting) = mpsc::channel::<(Notice, Alerts)>(WAITING_MAX);
        let sending = tokio::spawn(async move {
            let mut last: Option<(Alerts, Option<Destinations>)> = None;
            while let Some((notice, settings)) = waiting.recv().await {
                let known = last.take().filter(|(known, _)| *known == settings);
                let destinations = known.map_or_else(
                    || Destinations::of(&settings, &job),
                    |(_, destinations)| destinations,
                );
                if let Some(destinations) = &destinations {
                    destinations.send(&notice).await;
                }
                last = Some((settings, destinations));
            }
        });
        Notifier { notices, sending }
    }

    /// Queues a notice for the destinations of these settings. Sends nothing if they have no destination.
    pub fn send(&self, notice: Notice, settings: &Alerts) {
        if settings.webhook.is_none() && settings.command.is_empty() {
            return;
        }
        if self.notices.try_send((notice, settings.clone())).is_err() {
            tracing::warn!("more than {WAITING_MAX} alerts wait to be sent; dropped one");
        }
    }

    /// Sends the waiting notices, up to a time limit.
    pub async fn finish(self) {
        let Notifier {
            notices,
            mut sending,
        } = self;
        drop(notices);
        if tokio::time::timeout(GRACE, &mut sending).await.is_err() {
            tracing::warn!("dropped alerts that could not be sent in time");
            sending.abort();
        }
    }
}

impl Destinations {
    /// Returns the destinations; `None` if the settings have no destination.
    pub(super) fn of(settings: &Alerts, job: &Path) -> Option<Destinations> {
        if settings.webhook.is_none() && settings.command.is_empty() {
            return None;
        }
        let webhook = settings.webhook.clone().and_then(|address| {
            let client = http_client(&address, settings.webhook_timeout);
            let client = client.inspect_err(|problem| {
                tracing::error!("cannot send alerts to {address}: {problem}")
            });
            Some((client.ok()?, address))
        });
        Some(Destinations {
            webhook,
            command: settings.command.clone(),
            command_timeout: settings.command_timeout,
            job: job.to_owned(),
        })
    }

    /// Sends a notice, with a few attempts.
    pub(super) async fn send(&self, notice: &Notice) {
        if let Some((client, address)) = &self.webhook
            && let Err(problem) = post(client, address, notice).await
        {
            tracing::warn!("{address} did not accept an alert: {problem}");
        }
        if !self.command.is_empty()
            && let Err(problem) = self.run(notice).await
        {
            tracing::warn!("{} did not accept an alert: {problem}", self.command[0]);
        }
    }

    async fn run(&self, notice: &Notice) -> Result<(), String> {
        let mut words = self.command.iter().map(|word| filled(word, notice));
        let program = words.next().unwrap_or_default();
        let describe = |problem: std::io::Error| problem.to_string();
        let mut child = Command::new(&program)
            .args(words)
            .current_dir(&self.job)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(describe)?;
        let text = serde_json::to_vec(notice).map_err(|problem| problem.to_string())?;
        let stdin = child.stdin.take();
        let ended = async {
            if let Some(mut stdin) = stdin {
                // A command need not read its input.
                let _ = stdin.write_all(&text).await;
            }
            child.wait().await
        };
        match tokio::time::timeout(self.command_timeout, ended).await {
            Err(_) => Err(format!("killed after {} s", self.command_timeout.as_secs())),
            Ok(Err(problem)) => Err(describe(problem)),
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("exited with {status}")),
        }
    }
}

/// Replaces the placeholders in an argument of the command.
fn filled(word: &str, notice: &Notice) -> String {
    let alert = &notice.alert;
    let job = notice.job.display().to_string();
    // Text is replaced in one pass, so that inserted values are not searched for placeholders.
    let places = [
        ("{job}", job.as_str()),
        ("{name}", &notice.name),
        ("{profile}", &notice.profile),
        ("{event}", notice.event.name()),
        ("{kind}", alert.kind.name()),
        ("{severity}", alert.severity.name()),
        ("{subject}", &alert.subject),
        ("{message}", &alert.message),
    ];
    let mut text = String::new();
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        match places.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, value)) => {
                // Arguments cannot have NUL, and subjects of messages cannot have line ends.
                text.extend(value.chars().filter(|c| !c.is_control()));
                rest = &rest[place.len()..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text + rest
}

async fn post(client: &reqwest::Client, address: &str, notice: &Notice) -> Result<(), String> {
    let body = serde_json::to_vec(notice).map_err(|problem| problem.to_string())?;
    let mut pauses = PAUSES.into_iter();
    loop {
        let request = client
            .post(address)
            .header("content-type", "application/json")
            .body(body.clone());
        let problem = match request.send().await {
            Ok(response) if response.status().is_success() => return Ok(()),
            Ok(response) => {
                let status = response.status();
                // A repeated request would get the same answer.
                if status.is_client_error() && status.as_u16() != 429 {
                    return Err(format!("status {status}"));
                }
                format!("status {status}")
            }
            Err(problem) => opilio_stacks::chain(&problem.without_url()),
        };
        match pauses.next() {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(problem),
        }
    }
}

/// Creates a client for an address that an operator has configured, such as that of a webhook or a trace collector. It uses the
/// machine's root certificates, and bypasses the proxy for addresses of this machine. It follows no redirects: data is sent only to
/// the configured address.
///
/// # Errors
/// A message, if the system does not provide what the client needs.
pub fn http_client(address: &str, timeout: Duration) -> Result<reqwest::Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|problem| problem.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = reqwest::Client::builder();
    let host = opilio_uri::Uri::parse(address).ok();
    let host = host.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
    if host.ends_with("localhost") || host.starts_with("127.") || host == "[::1]" {
        client = client.no_proxy();
    }
    client
        .tls_backend_preconfigured(tls)
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("opilio/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|problem| opilio_stacks::chain(&problem))
}

#[cfg(test)]
mod tests {
    use super::super::{AlertKind, Severity};
    use super::*;

    #[test]
    fn placeholders_in_inserted_values_are_not_replaced() {
        let notice = Notice {
            job: "jobs/a".into(),
            name: "a".to_owned(),
            profile: "national".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            event: Event::Raised,
            alert: Alert {
                kind: AlertKind::Plugin,
                subject: "html".to_owned(),
                severity: Severity::Warning,
                message: "says {job}\nand\0 more".to_owned(),
                since: Timestamp::UNIX_EPOCH,
                until: None,
                acknowledged: None,
            },
        };
        let word = "{event} {kind} of {job}, {name} as {profile}: {message} {}{";
        assert_eq!(
            filled(word, &notice),
            "raised plugin of jobs/a, a as national: says {job}and more {}{"
        );
    }
}
