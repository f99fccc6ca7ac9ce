//! What an operator writes, key by key.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actions::ActionsFile;
use crate::alerts::AlertsFile;
use crate::archive::ArchiveFile;
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
use crate::overrides::OverrideFile;
use crate::plugins::PluginFile;
use crate::politeness::PolitenessFile;
use crate::profile::Strategy;
use crate::queue::QueueFile;
use crate::quotas::QuotasFile;
use crate::record::RecordFile;
use crate::retry::RetryFile;
use crate::revisit::RevisitFile;
use crate::robots::RobotsFile;
use crate::stacks::StacksFile;
use crate::tables::TableFile;
use crate::telemetry::TelemetryFile;
use crate::uri::UriFile;

/// A profile: what to crawl, how politely, with which plugins, and where it goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[schemars(title = "Opilio profile")]
pub struct ProfileFile {
    /// What the crawl is called in reports and archive files. No default: it is then the file's name without `.toml`.
    pub name: Option<String>,

    /// Profiles that this one changes: the names of those that ship, or paths relative to this one, one or a list. What is
    /// written here holds instead of what they say, key by key; of several the later one holds. No default: what is not
    /// written has its default.
    pub extends: Option<Extends>,

    /// What the crawl is for. No default: it is then not recorded.
    pub description: Option<String>,

    /// Whether documents are fetched once or again and again. Overrides may say so of parts of a site. Default `"snapshot"`: it ends by itself.
    pub strategy: Strategy,

    /// Where the crawl begins: URLs, and SURT prefixes after a `+`. Default `[]`: see `seeds-file` and the flag `--seed`.
    pub seeds: Vec<String>,

    /// A file of more seeds, one a line, relative to the profile; it is read and never written. No default: there is none.
    pub seeds_file: Option<String>,

    /// How many URIs are fetched at the same time, of as many queues. Default `25`: what one line of a small
    /// institution carries.
    #[schemars(range(min = 1, max = 10_000))]
    pub workers: u32,

    /// The User-Agent header. `@VERSION@` and `@CONTACT-URL@` are replaced.
    /// Default `"Mozilla/5.0 (compatible; opilio/@VERSION@ +@CONTACT-URL@)"`: servers that look for a browser answer it,
    /// and webmasters find who it is.
    pub user_agent: String,

    /// Who answers for the crawl.
    pub operator: OperatorFile,

    /// Instances of plugins, by the names that stacks use. Default `{}`: built-in plugins need no table.
    pub plugins: BTreeMap<String, PluginFile>,

    /// Which plugins are asked at each stage.
    pub stacks: StacksFile,

    /// Lists that plugins look things up in, by the names that their settings use. Default `{}`: plugins bring what they need.
    pub tables: BTreeMap<String, TableFile>,

    /// Which calls of plugins are kept as files.
    pub record: RecordFile,

    /// How long a queue rests between two fetches.
    pub politeness: PolitenessFile,

    /// Whether robots.txt is obeyed.
    pub robots: RobotsFile,

    /// How long an address is good for.
    pub dns: DnsFile,

    /// How documents are asked for.
    pub fetch: FetchFile,

    /// Whether cookies are kept.
    pub cookies: CookiesFile,

    /// User names and passwords for servers that ask for them, under names of your own. Default `{}`: nobody is told who we
    /// are.
    pub credentials: BTreeMap<String, CredentialFile>,

    /// Forms to be sent before a site is crawled, under names of your own. Default `{}`: sites
    /// are seen as by anybody.
    pub logins: BTreeMap<String, LoginFile>,

    /// What is tried again.
    pub retry: RetryFile,

    /// When a document is visited again.
    pub revisit: RevisitFile,

    /// Which queue a URI stands in, and how queues take turns.
    pub frontier: FrontierFile,

    /// What holds for one queue.
    pub queue: QueueFile,

    /// What a server group allows its queues together.
    pub group: GroupFile,

    /// What goes first within a queue, and what it costs.
    pub uri: UriFile,

    /// How much is fetched of one queue, host, domain or seed.
    pub quotas: QuotasFile,

    /// Which URIs count as the same.
    pub canonicalization: CanonicalizationFile,

    /// How WARC files are named, sized and kept safe.
    pub archive: ArchiveFile,

    /// Where logs are written, which, and when they go on in a new file.
    pub logs: LogsFile,

    /// When the operator is told that something is wrong, and how.
    pub alerts: AlertsFile,

    /// Checkpoints that a running crawl makes by itself.
    pub checkpoint: CheckpointFile,

    /// Traces for OpenTelemetry, for whoever wants to see where time goes.
    pub telemetry: TelemetryFile,

    /// When the crawl has had enough.
    pub limits: LimitsFile,

    /// Files that operators drop into the job's folder `action`.
    pub actions: ActionsFile,

    /// Settings for what they match, one `[[override]]` table after the other; the last that matches wins, key by key.
    /// Default `[]`: the same for every site.
    #[serde(rename = "override")]
    pub overrides: Vec<OverrideFile>,
}

/// One profile or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Extends {
    /// One.
    One(String),
    /// Several, each over those before it.
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
            checkpoint: CheckpointFile::default(),
            telemetry: TelemetryFile::default(),
            limits: LimitsFile::default(),
            actions: ActionsFile::default(),
            overrides: Vec::new(),
        }
    }
}

impl ProfileFile {
    /// The JSON Schema of a profile, for editors. Plugins' own settings are open in it.
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Self).to_value();
        crate::catalogue::mark(&mut schema);
        schema
    }
}

/// Whether there is a setting, or a table of settings, at this pointer.
pub(crate) fn has_setting(pointer: &str) -> bool {
    static DEFAULT: OnceLock<serde_json::Value> = OnceLock::new();
    // A tree of texts and numbers always has a JSON form.
    let default =
        DEFAULT.get_or_init(|| serde_json::to_value(ProfileFile::default()).unwrap_or_default());
    default.pointer(pointer).is_some()
}
