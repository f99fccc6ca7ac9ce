//! A profile that has been checked, and the one door to it.

mod plugin_settings;
mod reading;

pub(crate) use reading::read;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_uri::{Canonicaliser, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::Actions;
use crate::alerts::Alerts;
use crate::archive::Archive;
use crate::checkpoint::PeriodicCheckpoints;
use crate::credentials::{Credential, Login};
use crate::dns::Dns;
use crate::document::{Document, Spot};
use crate::effective::{Context, QueueSettings, Settings};
use crate::fault::{Faults, Level};
use crate::file::ProfileFile;
use crate::frontier::Frontier;
use crate::group::Group;
use crate::layer::Layer;
use crate::limits::Limits;
use crate::logs::Logs;
use crate::matching::Subject;
use crate::operator::Operator;
use crate::overrides::Overrides;
use crate::plugins::Instance;
use crate::queue_name;
use crate::ready;
use crate::record::Record;
use crate::relations;
use crate::seeds::{Seed, Seeds};
use crate::tables::Table;
use crate::telemetry::Telemetry;

/// A profile that code may use: every value is checked, every default filled in.
///
/// What belongs to the job as a whole stands here; what may differ from URI to URI is asked for with
/// [`Profile::effective`].
#[derive(Debug, Clone)]
pub struct Profile {
    /// What the crawl is called; the file's name where none is written. One line.
    pub name: String,
    /// What the crawl is for.
    pub description: Option<String>,
    /// Where it begins: seeds of the profile, of its seeds file and of the command line. Empty only where
    /// [`Given::seeds_elsewhere`] was said.
    pub seeds: Seeds,
    /// How many URIs are fetched at the same time; at least 1.
    pub workers: usize,
    /// Who answers for the crawl, a contact URL of the command line included.
    pub operator: Operator,
    /// The User-Agent header, version and contact URL filled in.
    pub user_agent: String,
    /// Every plugin instance by name: those with a table, and built-in ones that a stack names.
    pub plugins: BTreeMap<String, Instance>,
    /// Lists that plugins look things up in, by name.
    pub tables: BTreeMap<String, Table>,
    /// Which calls of plugins are kept as files.
    pub record: Record,
    /// How long an address is good for, and which are not looked up.
    pub dns: Dns,
    /// User names and passwords for servers that ask for them.
    pub credentials: Vec<Credential>,
    /// Forms to be sent before a site is crawled.
    pub logins: Vec<Login>,
    /// Which queue a URI stands in, and what goes first. Identity: frozen when the job is made.
    pub frontier: Frontier,
    /// What a server group allows its queues together.
    pub group: Group,
    /// Which URIs count as the same where no override says otherwise; [`Profile::canonical`] knows of those. Identity:
    /// frozen when the job is made.
    pub canonicaliser: Canonicaliser,
    /// How WARC files are named, sized and kept safe.
    pub archive: Archive,
    /// Where logs are written, which, and when they go on in a new file.
    pub logs: Logs,
    /// When the operator is told that something is wrong, and how.
    pub alerts: Alerts,
    /// Checkpoints that a running crawl makes by itself.
    pub checkpoint: PeriodicCheckpoints,
    /// Where traces go, and of how much.
    pub telemetry: Telemetry,
    /// When the crawl has had enough.
    pub limits: Limits,
    /// Files that operators drop into the job's folder `action`.
    pub actions: Actions,
    /// What was found but does not refuse the profile: notes, and warnings that [`Profile::check_job`] refuses.
    pub notices: Faults,
    pub(crate) settings: Arc<Settings>,
    pub(crate) queue_settings: Arc<QueueSettings>,
    pub(crate) overrides: Arc<Overrides>,
    settings_hash: u64,
    /// What was written, with defaults where nothing was.
    written: Arc<Value>,
    document: Arc<Document>,
    extended: Arc<[Layer]>,
}

/// Whether documents are fetched once or again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Each document once; the crawl ends when none is left.
    Snapshot,
    /// Each document again and again, as wait evaluators say; the crawl ends when it is told to.
    Revisit,
    /// Each document again every `revisit.fixed-wait`, whatever wait evaluators say; the crawl ends when it is told to.
    Fixed,
}

/// What a profile is checked against and does not say itself.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Names of the plugins that are embedded in the binary.
    pub builtins: Vec<String>,
    /// What the crawl is called where the profile does not say; none: the profile's file name. For a copy that a job has
    /// frozen under another name.
    pub name: Option<String>,
    /// More seeds, from the command line; each may hold several lines.
    pub seeds: Vec<String>,
    /// The contact URL of the command line; it replaces the profile's.
    pub contact_url: Option<String>,
    /// The job knows its seeds already: it is taken up again.
    pub seeds_elsewhere: bool,
    /// The folder that relative paths start from; none: that of the profile. For a copy that a job has frozen.
    pub base: Option<PathBuf>,
}

impl Profile {
    /// What the profile extends, in the order applied: with the text of the profile itself all that it is made of.
    pub fn extended(&self) -> &[Layer] {
        &self.extended
    }

    /// The names of the profiles that ship.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        ready::names()
    }

    /// The text of a profile that ships, to copy and change.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        ready::text(name)
    }

    /// The JSON Schema of a profile, for editors.
    pub fn schema() -> Value {
        ProfileFile::schema()
    }

    /// Refuses what a profile may have and a job may not: warnings. To be asked before a job is made.
    ///
    /// # Errors
    /// The warnings.
    pub fn check_job(&self) -> Result<(), Faults> {
        let warnings: Faults = self
            .notices
            .iter()
            .filter(|fault| fault.level >= Level::Warning)
            .cloned()
            .collect();
        if warnings.is_empty() {
            Ok(())
        } else {
            Err(warnings)
        }
    }

    /// What is to be said of seeds that come to a job of this profile: warnings, with which the job would not begin again
    /// and which are to refuse them, and notes.
    pub fn check_seeds(&self, seeds: &[Seed]) -> Faults {
        let faults = relations::of_seeds(self, seeds).map(|remark| {
            let problem = remark.problem;
            let mut fault = self
                .document
                .fault(remark.pointer, Spot::Key, remark.level, problem);
            fault.suggestion = Some(remark.suggestion.to_owned());
            fault
        });
        faults.collect()
    }

    /// The settings that hold for a URI of which nothing else is known. Cheap; to be asked anew for each URI rather than
    /// kept, since overrides and changes while running come in here.
    pub fn effective(&self, uri: &Uri) -> Arc<Settings> {
        self.effective_with(&Context::of(uri))
    }

    /// The settings that hold for a response: like [`Profile::effective`], with what its media type brings.
    pub fn effective_response(&self, uri: &Uri, media_type: &str) -> Arc<Settings> {
        self.effective_with(&Context {
            media_type: Some(media_type),
            ..Context::of(uri)
        })
    }

    /// The settings that hold for a URI, by all that is known of it.
    pub fn effective_with(&self, context: &Context<'_>) -> Arc<Settings> {
        let (of_uris, of_queues) = self.matching(context);
        self.resolve(of_uris, of_queues).0
    }

    /// The settings that hold for a queue, resolved from its name alone, as [`Profile::queue_name`] makes it. What
    /// overrides say for a time of day does not hold; see [`Profile::queue_settings_at`].
    pub fn queue_settings(&self, queue: &str) -> Arc<QueueSettings> {
        self.resolve(Vec::new(), self.matching_queue(queue, None)).1
    }

    /// The settings that hold for a queue at this time.
    pub fn queue_settings_at(&self, queue: &str, now: Timestamp) -> Arc<QueueSettings> {
        self.resolve(Vec::new(), self.matching_queue(queue, Some(now)))
            .1
    }

    /// The queue a URI stands in: its key, or what an override forces; then `##N` where a key is spread over several and it
    /// is not in the first. `dns:` URIs stand with the host asked about, all `whois` URIs in `whois`.
    pub fn queue_name(&self, uri: &Uri) -> String {
        if !self.overrides.is_empty()
            && let Some(forced) = self.overrides.queue_name(&Subject {
                uri: Some(uri.as_str()),
                ..Subject::of_place(uri)
            })
        {
            return forced.to_owned();
        }
        let key = queue_name::key_of(uri, self.frontier.queue_key);
        queue_name::spread(key, uri, self.frontier.parallel_queues)
    }

    /// What the names of a URI's queues begin with, whatever its path and wherever an override has it stand.
    pub fn queue_key(&self, uri: &Uri) -> String {
        queue_name::key_of(uri, self.frontier.queue_key)
    }

    /// The names of queues that overrides force.
    pub fn forced_queues(&self) -> impl Iterator<Item = &str> {
        self.overrides.forced()
    }

    /// The canonical form of a URI, by the rules that hold for its site: the index of the seen test.
    pub fn canonical(&self, uri: &Uri) -> String {
        self.canonicaliser_for(uri).apply(uri)
    }

    /// The rules that make the canonical form of a URI.
    pub fn canonicaliser_for(&self, uri: &Uri) -> &Canonicaliser {
        if self.overrides.is_empty() {
            return &self.canonicaliser;
        }
        self.overrides
            .canonicaliser(&Subject::of_place(uri))
            .unwrap_or(&self.canonicaliser)
    }

    /// A number that changes when any setting does, overrides and files of precedences included: for a frontier that keeps
    /// settings with its queues. The same in every process; seeds, name, description and operator do not count.
    pub fn settings_hash(&self) -> u64 {
        self.settings_hash
    }

    /// Like [`Profile::settings_hash`], for [`Profile::queue_settings_at`]: changes also when overrides for a part of the
    /// day begin or cease to hold.
    pub fn settings_hash_at(&self, now: Timestamp) -> u64 {
        let hash = self.settings_hash;
        self.overrides
            .for_time(now)
            .fold(hash, |hash, number| fnv(hash, &number.to_le_bytes()))
    }

    /// The overrides that hold for a URI, and those that hold for its queue.
    pub(crate) fn matching(&self, context: &Context<'_>) -> (Vec<u32>, Vec<u32>) {
        if self.overrides.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let queue = self.queue_name(context.uri);
        let of_uris = self.overrides.for_uri(&Subject {
            uri: Some(context.uri.as_str()),
            queue: Some(queue_name::key_in(&queue)),
            source: context.source,
            media_type: context.media_type,
            now: context.now,
            ..Subject::of_place(context.uri)
        });
        (of_uris, self.matching_queue(&queue, context.now))
    }

    fn matching_queue(&self, queue: &str, now: Option<Timestamp>) -> Vec<u32> {
        if self.overrides.is_empty() {
            return Vec::new();
        }
        let name = queue_name::key_in(queue);
        let is_word = self.overrides.forces(name) && !queue_name::looks_like_key(name);
        let place = Some(name)
            .filter(|_| !is_word)
            .and_then(|name| queue_name::place_of(name, self.frontier.queue_key));
        let subject = match &place {
            Some(place) => Subject::of_place(place),
            None => Subject::of_queue(name),
        };
        self.overrides.for_queue(&Subject {
            queue: Some(name),
            now,
            ..subject
        })
    }

    fn resolve(
        &self,
        of_uris: Vec<u32>,
        of_queues: Vec<u32>,
    ) -> (Arc<Settings>, Arc<QueueSettings>) {
        let base = || (Arc::clone(&self.settings), Arc::clone(&self.queue_settings));
        if of_uris.is_empty() && of_queues.is_empty() {
            return base();
        }
        self.overrides
            .resolve(&self.document, of_uris, of_queues)
            .unwrap_or_else(base)
    }

    /// What the profile says, defaults included, with what these overrides make of it.
    pub(crate) fn written_with(&self, of_uris: &[u32], of_queues: &[u32]) -> Value {
        self.overrides.apply(&self.written, of_uris, of_queues)
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// All that says which URIs count as the same and which queue they stand in, as JSON: what must not change once a job
    /// has been made.
    pub fn identity(&self) -> String {
        let written = |pointer: &str| self.written.pointer(pointer).cloned().unwrap_or_default();
        let overrides = written("/override");
        let naming: Vec<Value> = overrides
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| {
                let name = one.pointer("/queue/name").filter(|name| !name.is_null());
                let canonicalization = one.get("canonicalization");
                (name.is_some() || canonicalization.is_some()).then(|| {
                    serde_json::json!({
                        "match": one.get("match"),
                        "queue": name,
                        "canonicalization": canonicalization,
                    })
                })
            })
            .collect();
        serde_json::json!({
            "queue-key": written("/frontier/queue-key"),
            "parallel-queues": written("/frontier/parallel-queues"),
            "canonicalization": written("/canonicalization"),
            "overrides": naming,
        })
        .to_string()
    }

    /// The settings that hold where no override says otherwise: for what is done once for the whole job, such as loading
    /// the plugins of every stack.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The profile's text, byte for byte as it was read: what a job copies and the archive records.
    pub fn source_text(&self) -> &str {
        &self.document.text
    }

    /// What faults call the profile: the path it was read from.
    pub fn file(&self) -> &str {
        &self.document.file
    }
}

/// FNV-1a of 64 bits, begun from another hash: the same in every process and every build.
pub(crate) fn fnv(from: u64, bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET ^ from, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}
