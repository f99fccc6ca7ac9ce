//! The checked profile. [`Profile::load`] and its siblings are the only way to get one.

mod plugin_settings;
mod reading;
mod relations;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_model::{GroupSettings, QueueSettings};
use opilio_uri::{Canonicaliser, Uri};
use serde_json::Value;

use crate::actions::Actions;
use crate::alerts::Alerts;
use crate::archive::Archive;
use crate::builtin_profiles;
use crate::checkpoint::PeriodicCheckpoints;
use crate::credentials::{Credential, Login};
use crate::diagnostic::{Diagnostics, Level};
use crate::dns::Dns;
use crate::document::Document;
use crate::effective::{EffectiveSettings, UriContext};
use crate::file::ProfileFile;
use crate::fnv::fnv;
use crate::frontier::FrontierSettings;
use crate::layer::Layer;
use crate::limits::CrawlLimits;
use crate::logs::Logs;
use crate::matching::Subject;
use crate::operator::Operator;
use crate::overrides::Overrides;
use crate::plugins::Instance;
use crate::queue::ServerGroup;
use crate::queue_name;
use crate::quotas::JobQuotas;
use crate::record::RecordingSettings;
use crate::seeds::Seeds;
use crate::streams::EventStream;
use crate::tables::TableSettings;
use crate::telemetry::Telemetry;
use crate::webhooks::Webhook;

/// A checked profile: every value is valid, and every default filled in.
///
/// Settings of the job as a whole are fields. [`Profile::effective`] returns the settings that may differ from URI to URI.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Name of the crawl; the file's name if none is written. One line.
    pub name: String,
    /// Purpose of the crawl.
    pub description: Option<String>,
    /// Seeds of the profile, of its seeds file and of the command line. Empty only with [`ProfileContext::seeds_elsewhere`].
    pub seeds: Seeds,
    /// URIs that are fetched at the same time; at least 1.
    pub workers: usize,
    /// Operator of the crawl, with the contact URL of the command line if there is one.
    pub operator: Operator,
    /// The User-Agent header, version and contact URL filled in.
    pub user_agent: String,
    /// Every plugin instance by name: those with a table, and built-in ones that a stack names.
    pub plugins: BTreeMap<String, Instance>,
    /// Lists for look-ups by plugins, by name.
    pub tables: BTreeMap<String, TableSettings>,
    /// Plugin calls that are recorded as files.
    pub record: RecordingSettings,
    /// Lifetime of addresses, and addresses that are not looked up.
    pub dns: Dns,
    /// User names and passwords for servers that require them.
    pub credentials: Vec<Credential>,
    /// Forms that are sent before a site is crawled.
    pub logins: Vec<Login>,
    /// Assignment of URIs to queues, and order of the queues. Identity: frozen when the job is made.
    pub frontier: FrontierSettings,
    /// Limits of a server group for its queues together.
    pub group: GroupSettings,
    /// Quotas of seeds and of the crawl. [`Profile::queue_settings`] has those of queues, hosts and domains.
    pub quotas: JobQuotas,
    /// Rules by which URIs count as the same, without overrides; [`Profile::canonical`] includes overrides. Identity: frozen when
    /// the job is made.
    pub canonicaliser: Canonicaliser,
    /// Names, sizes and safety of the archive files.
    pub archive: Archive,
    /// Logs: their folder, their kinds, and their rotation.
    pub logs: Logs,
    /// Alerts about problems of the crawl.
    pub alerts: Alerts,
    /// URLs that get events of the crawl.
    pub webhooks: Vec<Webhook>,
    /// Subjects of NATS that get events.
    pub streams: Vec<EventStream>,
    /// Checkpoints that a running crawl makes by itself.
    pub checkpoint: PeriodicCheckpoints,
    /// Target of traces, and the share of URIs that is traced.
    pub telemetry: Telemetry,
    /// Limits at which the crawl ends.
    pub limits: CrawlLimits,
    /// Settings of the job's folder `action`.
    pub actions: Actions,
    /// Notes, and warnings that [`Profile::check_job`] refuses. They do not refuse the profile.
    pub notices: Diagnostics,
    pub(crate) settings: Arc<EffectiveSettings>,
    pub(crate) queue_settings: Arc<QueueSettings>,
    pub(crate) overrides: Arc<Overrides>,
    settings_hash: u64,
    /// The profile as written, with defaults for missing values.
    written: Arc<Value>,
    document: Arc<Document>,
    extended: Arc<[Layer]>,
}

/// Facts for the check of a profile that the profile itself does not have.
#[derive(Debug, Clone, Default)]
pub struct ProfileContext {
    /// Names of the plugins that are embedded in the binary.
    pub builtins: Vec<String>,
    /// Name of the crawl if the profile has none; `None`: the profile's file name. It is for a copy that a job has frozen under
    /// another name.
    pub name: Option<String>,
    /// Further seeds, from the command line or the API; each may hold several lines. Errors name them `seeds`, with their line.
    pub seeds: Vec<String>,
    /// The contact URL of the command line; it replaces the profile's.
    pub contact_url: Option<String>,
    /// `true` if the job has its seeds already, because it is resumed.
    pub seeds_elsewhere: bool,
    /// The folder of relative paths; `None`: that of the profile. It is for a copy that a job has frozen.
    pub base: Option<PathBuf>,
}

impl Profile {
    /// The layers that the profile extends, in the order applied. Together with the text of the profile itself they are the whole
    /// profile.
    pub fn extended(&self) -> &[Layer] {
        &self.extended
    }

    /// The names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        builtin_profiles::names()
    }

    /// The text of a built-in profile, to copy and change.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        builtin_profiles::text(name)
    }

    /// The JSON Schema of a profile, for editors.
    pub fn schema() -> Value {
        ProfileFile::schema()
    }

    /// Checks that a job may use this profile: a profile may have warnings, a job may not. Call it before a job is made.
    ///
    /// # Errors
    /// The warnings.
    pub fn check_job(&self) -> Result<(), Diagnostics> {
        let warnings: Diagnostics = self
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

    /// The settings of a URI without further facts. The call is cheap. Make it again for each URI and do not keep the result,
    /// since overrides and changes of a running job are applied here.
    pub fn effective(&self, uri: &Uri) -> Arc<EffectiveSettings> {
        self.effective_with(&UriContext::of(uri))
    }

    /// The settings of a response: as [`Profile::effective`], with overrides for its media type.
    pub fn effective_response(&self, uri: &Uri, media_type: &str) -> Arc<EffectiveSettings> {
        self.effective_with(&UriContext {
            media_type: Some(media_type),
            ..UriContext::of(uri)
        })
    }

    /// The settings of a URI, by all facts known about it.
    pub fn effective_with(&self, context: &UriContext<'_>) -> Arc<EffectiveSettings> {
        let (of_uris, of_queues) = self.matching(context);
        self.resolve(of_uris, of_queues).0
    }

    /// The settings of a queue, resolved only from its name, as [`Profile::queue_name`] makes it. Overrides for a time of day are
    /// left out; see [`Profile::queue_settings_at`].
    pub fn queue_settings(&self, queue: &str) -> Arc<QueueSettings> {
        self.resolve(Vec::new(), self.matching_queue(queue, None)).1
    }

    /// The settings of a queue at this time.
    pub fn queue_settings_at(&self, queue: &str, now: Timestamp) -> Arc<QueueSettings> {
        self.resolve(Vec::new(), self.matching_queue(queue, Some(now)))
            .1
    }

    /// The queues with which a queue is limited.
    pub fn server_group(&self, queue: &str) -> ServerGroup {
        let settings = self.resolve(Vec::new(), self.matching_queue(queue, None)).0;
        settings.server_group.clone()
    }

    /// The queue of a URI: its key, or the name that an override forces. If a key is spread over several queues, `##N` follows,
    /// except for the first. `dns:` URIs are in the queue of their host, all `whois` URIs in `whois`.
    pub fn queue_name(&self, uri: &Uri) -> String {
        if !self.overrides.is_empty()
            && let Some(forced) = self.overrides.queue_name(&Subject {
                uri: Some(uri.as_str()),
                ..Subject::of_uri(uri)
            })
        {
            return forced.to_owned();
        }
        let key = queue_name::key_of(uri, self.frontier.queue_key);
        queue_name::spread(key, uri, self.frontier.parallel_queues)
    }

    /// The prefix of the names of a URI's queues, whatever its path and whatever queue an override forces.
    pub fn queue_key(&self, uri: &Uri) -> String {
        queue_name::key_of(uri, self.frontier.queue_key)
    }

    /// The names of queues that overrides force.
    pub fn forced_queues(&self) -> impl Iterator<Item = &str> {
        self.overrides.forced()
    }

    /// The canonical form of a URI, by the rules of its site: the index of the seen test.
    pub fn canonical(&self, uri: &Uri) -> String {
        self.canonicaliser_for(uri).apply(uri)
    }

    /// The rules that make the canonical form of a URI.
    pub fn canonicaliser_for(&self, uri: &Uri) -> &Canonicaliser {
        if self.overrides.is_empty() {
            return &self.canonicaliser;
        }
        self.overrides
            .canonicaliser(&Subject::of_uri(uri))
            .unwrap_or(&self.canonicaliser)
    }

    /// A number that changes with any setting, including overrides and precedence files. It is for a frontier that keeps settings
    /// with its queues. It is the same in every process. Seeds, name, description and operator do not count.
    pub fn settings_hash(&self) -> u64 {
        self.settings_hash
    }

    /// The same as [`Profile::settings_hash`], for [`Profile::queue_settings_at`]. It also changes when overrides for a part of
    /// the day begin or end.
    pub fn settings_hash_at(&self, now: Timestamp) -> u64 {
        let hash = self.settings_hash;
        self.overrides
            .for_time(now)
            .fold(hash, |hash, number| fnv(hash, &number.to_le_bytes()))
    }

    /// The overrides that match a URI, and those that match its queue.
    pub(crate) fn matching(&self, context: &UriContext<'_>) -> (Vec<u32>, Vec<u32>) {
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
            ..Subject::of_uri(context.uri)
        });
        (of_uris, self.matching_queue(&queue, context.now))
    }

    fn matching_queue(&self, queue: &str, now: Option<Timestamp>) -> Vec<u32> {
        if self.overrides.is_empty() {
            return Vec::new();
        }
        let name = queue_name::key_in(queue);
        let is_forced_name = self.overrides.forces(name) && !queue_name::looks_like_key(name);
        let uri = Some(name)
            .filter(|_| !is_forced_name)
            .and_then(|name| queue_name::uri_of_key(name, self.frontier.queue_key));
        let subject = match &uri {
            Some(uri) => Subject::of_uri(uri),
            None => Subject::of_queue(name),
        };
        self.overrides.for_queue(&Subject {
            queue: Some(name),
            now,
            ..subject
        })
    }

    pub(crate) fn resolve(
        &self,
        of_uris: Vec<u32>,
        of_queues: Vec<u32>,
    ) -> (Arc<EffectiveSettings>, Arc<QueueSettings>) {
        let base = || (Arc::clone(&self.settings), Arc::clone(&self.queue_settings));
        if of_uris.is_empty() && of_queues.is_empty() {
            return base();
        }
        self.overrides
            .resolve(&self.document, of_uris, of_queues)
            .unwrap_or_else(base)
    }

    /// The profile in its written form, with defaults for missing values and without overrides.
    pub fn values(&self) -> Value {
        self.written_with(&[], &[])
    }

    /// The profile with defaults, and with these overrides applied.
    pub(crate) fn written_with(&self, of_uris: &[u32], of_queues: &[u32]) -> Value {
        self.overrides.apply(&self.written, of_uris, of_queues)
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// All settings that decide which URIs count as the same and in which queue they are, as JSON. They must not change once a
    /// job has been made.
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

    /// The settings without overrides. They are for tasks of the whole job, such as loading the plugins of every stack.
    pub fn settings(&self) -> &EffectiveSettings {
        &self.settings
    }

    /// The profile's text, byte for byte as it was read. A job copies it and the archive records it.
    pub fn source_text(&self) -> &str {
        &self.document.text
    }

    /// The profile's name in errors: the path it was read from.
    pub fn file(&self) -> &str {
        &self.document.file
    }

    /// The JSON Pointer of the first setting by which pages are rendered; `None` if no page is, whatever its URI.
    pub fn renders_by(&self) -> Option<String> {
        first_rendering(&self.values())
    }
}

/// The JSON Pointer of the first setting by which pages are rendered, in the values of a profile.
fn first_rendering(values: &Value) -> Option<String> {
    let overrides = values.get("override").and_then(Value::as_array);
    let overridden = (0..overrides.map_or(0, Vec::len))
        .map(|number| format!("/override/{number}/browser/render"));
    let mut pointers = std::iter::once("/browser/render".to_owned()).chain(overridden);
    pointers.find(|pointer| {
        let render = values.pointer(pointer).and_then(Value::as_str);
        render.is_some_and(|render| render != "never")
    })
}
