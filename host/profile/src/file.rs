//! The profile file: the keys that an operator writes. [`crate::Profile`] is the checked form.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use opilio_model::Strategy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actions::ActionsFile;
use crate::alerts::AlertsFile;
use crate::archive::ArchiveFile;
use crate::browser::BrowserFile;
use crate::canonicalization::CanonicalizationFile;
use crate::checkpoint::CheckpointFile;
use crate::cookies::CookiesFile;
use crate::credentials::{CredentialFile, LoginFile};
use crate::dns::DnsFile;
use crate::fetch::FetchFile;
use crate::frontier::FrontierFile;
use crate::group::GroupFile;
use crate::limits::LimitsFile;
use crate::logs::LogsFile;
use crate::operator::OperatorFile;
use crate::override_file::OverrideFile;
use crate::plugins::PluginFile;
use crate::politeness::PolitenessFile;
use crate::queue::QueueFile;
use crate::quotas::QuotasFile;
use crate::record::RecordFile;
use crate::retry::RetryFile;
use crate::revisit::RevisitFile;
use crate::robots::RobotsFile;
use crate::setting_marks;
use crate::stacks::StacksFile;
use crate::streams::EventStreamFile;
use crate::tables::TableFile;
use crate::telemetry::TelemetryFile;
use crate::uri::UriFile;
use crate::webhooks::WebhookFile;

/// A profile: the seeds of a crawl, its politeness, its plugins, and its archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[schemars(title = "Opilio profile")]
pub struct ProfileFile {
    /// Name of the crawl in reports and archive files. No default: the file's name without `.toml`.
    pub name: Option<String>,

    /// Profiles that this one extends: names of shipped profiles, or paths relative to this one, one or a list. Values written
    /// here override theirs, key by key; of several profiles the later one wins. No default: settings that are not written have
    /// their defaults.
    pub extends: Option<Extends>,

    /// Purpose of the crawl. No default: no purpose is recorded.
    pub description: Option<String>,

    /// Whether documents are fetched once or again and again. Overrides may change it for parts of a site.
    /// Default `"snapshot"`: such a crawl ends by itself.
    pub strategy: Strategy,

    /// Seeds of the crawl: URLs, and SURT prefixes after a `+`. Default `[]`: see `seeds-file` and the flag `--seed`.
    pub seeds: Vec<String>,

    /// A file with further seeds, one per line, relative to the profile. Opilio never writes it. No default: there are no
    /// further seeds.
    pub seeds_file: Option<String>,

    /// URIs that are fetched at the same time, of as many queues. Default `25`: suits the connection of a small institution.
    #[schemars(range(min = 1, max = 10_000))]
    pub workers: u32,

    /// The User-Agent header. `@VERSION@` and `@CONTACT-URL@` are replaced.
    /// Default `"Mozilla/5.0 (compatible; opilio/@VERSION@ +@CONTACT-URL@)"`: servers that expect a browser answer it, and
    /// webmasters can identify the crawler.
    pub user_agent: String,

    /// Operator of the crawl.
    pub operator: OperatorFile,

    /// Instances of plugins, by the names that stacks use. Default `{}`: built-in plugins need no table.
    pub plugins: BTreeMap<String, PluginFile>,

    /// Plugins of each stage.
    pub stacks: StacksFile,

    /// Lists for look-ups by plugins, by the names that their settings use. Default `{}`: the shipped plugins need no tables.
    pub tables: BTreeMap<String, TableFile>,

    /// Plugin calls that are recorded as files.
    pub record: RecordFile,

    /// Politeness delay of a queue between two fetches.
    pub politeness: PolitenessFile,

    /// Whether robots.txt is obeyed.
    pub robots: RobotsFile,

    /// Lifetime of addresses, and name servers.
    pub dns: DnsFile,

    /// Requests, timeouts and limits of fetches.
    pub fetch: FetchFile,

    /// Whether cookies are kept.
    pub cookies: CookiesFile,

    /// Rendering of pages in a browser.
    pub browser: BrowserFile,

    /// User names and passwords for servers that require them, under names that you choose. Default `{}`: no credentials are
    /// sent.
    pub credentials: BTreeMap<String, CredentialFile>,

    /// Forms that are sent before a site is crawled, under names that you choose. Default `{}`: the crawl sees the public part
    /// of sites.
    pub logins: BTreeMap<String, LoginFile>,

    /// Failures that are retried.
    pub retry: RetryFile,

    /// Times of revisits.
    pub revisit: RevisitFile,

    /// Assignment of URIs to queues, and order of the queues.
    pub frontier: FrontierFile,

    /// Settings of one queue.
    pub queue: QueueFile,

    /// Limits of a server group for its queues together.
    pub group: GroupFile,

    /// Order of URIs within a queue, and their costs.
    pub uri: UriFile,

    /// Quotas of a queue, host, domain or seed.
    pub quotas: QuotasFile,

    /// Rules by which URIs count as the same.
    pub canonicalization: CanonicalizationFile,

    /// Names, sizes and safety of the archive files.
    pub archive: ArchiveFile,

    /// Logs: their folder, their kinds, and their rotation.
    pub logs: LogsFile,

    /// Alerts about problems of the crawl.
    pub alerts: AlertsFile,

    /// URLs that get events of the crawl as JSON, under names that you choose. Default `{}`: no events are sent.
    pub webhooks: BTreeMap<String, WebhookFile>,

    /// Subjects of NATS that get events of the crawl as JSON, under names that you choose. Default `{}`: no events are sent.
    pub streams: BTreeMap<String, EventStreamFile>,

    /// Checkpoints that a running crawl makes by itself.
    pub checkpoint: CheckpointFile,

    /// Traces for OpenTelemetry, which show the time that each step takes.
    pub telemetry: TelemetryFile,

    /// Limits at which the crawl ends.
    pub limits: LimitsFile,

    /// Settings of the job's folder `action`.
    pub actions: ActionsFile,

    /// Settings for matching URIs, queues or times, one `[[override]]` table after the other. The last that matches wins, key
    /// by key. Default `[]`: all sites have the same settings.
    #[serde(rename = "override")]
    pub overrides: Vec<OverrideFile>,
}

/// One profile or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Extends {
    /// One.
    One(String),
    /// Several, each extending those before it.
    Several(Vec<String>),
}

impl Default for ProfileFile {
    fn default() -> Self {
        Self {
            name: None,
            extends: None,
            description: None,
            strategy: Strategy::Snapshot,
            seeds: Vec::new(),
            seeds_file: None,
            workers: 25,
            user_agent: "Mozilla/5.0 (compatible; opilio/@VERSION@ +@CONTACT-URL@)".to_owned(),
            operator: OperatorFile::default(),
            plugins: BTreeMap::new(),
            stacks: StacksFile::default(),
            tables: BTreeMap::new(),
            record: RecordFile::default(),
            politeness: PolitenessFile::default(),
            robots: RobotsFile::default(),
            dns: DnsFile::default(),
            fetch: FetchFile::default(),
            cookies: CookiesFile::default(),
            browser: BrowserFile::default(),
            credentials: BTreeMap::new(),
            logins: BTreeMap::new(),
            retry: RetryFile::default(),
            revisit: RevisitFile::default(),
            frontier: FrontierFile::default(),
            queue: QueueFile::default(),
            group: GroupFile::default(),
            uri: UriFile::default(),
            quotas: QuotasFile::default(),
            canonicalization: CanonicalizationFile::default(),
            archive: ArchiveFile::default(),
            logs: LogsFile::default(),
            alerts: AlertsFile::default(),
            webhooks: BTreeMap::new(),
            streams: BTreeMap::new(),
            checkpoint: CheckpointFile::default(),
            telemetry: TelemetryFile::default(),
            limits: LimitsFile::default(),
            actions: ActionsFile::default(),
            overrides: Vec::new(),
        }
    }
}

impl ProfileFile {
    /// The JSON Schema of a profile, for editors. It leaves plugins' own settings open.
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Self).to_value();
        setting_marks::mark(&mut schema);
        schema
    }
}

/// Returns `true` if there is a setting, or a table of settings, at this pointer.
pub(crate) fn has_setting(pointer: &str) -> bool {
    default_value(pointer).is_some()
}

/// The default of the setting at this pointer, in written form. `Null` if it has none.
pub(crate) fn default_value(pointer: &str) -> Option<&'static serde_json::Value> {
    static DEFAULT: OnceLock<serde_json::Value> = OnceLock::new();
    // A tree of texts and numbers always has a JSON form.
    let default =
        DEFAULT.get_or_init(|| serde_json::to_value(ProfileFile::default()).unwrap_or_default());
    default.pointer(pointer)
}
