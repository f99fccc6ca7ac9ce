//! A profile that has been checked, and the one door to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_uri::{Canonicaliser, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::Actions;
use crate::alerts::Alerts;
use crate::archive::Archive;
use crate::check::{Check, nearest, quote};
use crate::credentials::{self, Credential, Login};
use crate::dns::Dns;
use crate::document::{Document, Spot, child};
use crate::effective::{Context, Overridable, QueueSettings, Settings};
use crate::fault::{Fault, Faults, Level};
use crate::file::ProfileFile;
use crate::frontier::Frontier;
use crate::group::Group;
use crate::layer::{Layer, Layers, fault_of_file};
use crate::limits::Limits;
use crate::logs::Logs;
use crate::matching::Subject;
use crate::operator::Operator;
use crate::overrides::{self, Overrides, Surroundings};
use crate::plugins::{self, Implied, Instance};
use crate::precedence_file;
use crate::queue_name;
use crate::ready;
use crate::record::Record;
use crate::relations;
use crate::seeds::{self, Seed, Seeds};
use crate::shape::{Shape, broken_schema};
use crate::stacks::Stage;
use crate::tables::{self, Table};
use crate::telemetry::Telemetry;

/// Largest profile. Seeds in greater numbers have a file of their own.
const PROFILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Marks a setting, in a plugin's schema, that names tables of the profile: a text or a list of texts.
const TABLE: &str = "x-opilio-table";

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
    /// Reads and checks a profile.
    ///
    /// # Errors
    /// Every fault of it, should one be of [`Level::Error`]; also where it cannot be read.
    pub fn load(path: &Path, given: &Given) -> Result<Self, Faults> {
        let file = path.display().to_string();
        let text = read(path).map_err(|problem| unreadable(&file, problem))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let base = given.base.as_deref().unwrap_or(folder);
        Self::follow(&file, text, base, given)
    }

    /// Checks a profile that is in memory. `file` is what faults call it; relative paths start from [`Given::base`],
    /// or the current folder.
    ///
    /// # Errors
    /// Every fault of it, should one be of [`Level::Error`].
    pub fn parse(file: &str, text: &str, given: &Given) -> Result<Self, Faults> {
        let base = given.base.as_deref().unwrap_or(Path::new(""));
        Self::follow(file, text.to_owned(), base, given)
    }

    fn follow(file: &str, text: String, base: &Path, given: &Given) -> Result<Self, Faults> {
        let own = Layer {
            file: file.to_owned(),
            text,
            base: base.to_owned(),
        };
        let layers = Layers::follow(own.clone()).map_err(|mut faults| {
            faults.append(faults_whatever_is_extended(&own));
            faults.sort();
            faults
        })?;
        Self::check(layers, given)
    }

    /// Checks a profile whose layers are at hand: what it extends and what was changed since come from here, and `extends`
    /// is not followed. For jobs, which keep copies of all.
    ///
    /// # Errors
    /// Every fault of them, should one be of [`Level::Error`].
    pub fn layered(
        below: Vec<Layer>,
        own: Layer,
        above: Vec<Layer>,
        given: &Given,
    ) -> Result<Self, Faults> {
        Self::check(Layers { below, own, above }, given)
    }

    /// What the profile extends, in the order applied: with the text of the profile itself all that it is made of.
    pub fn extended(&self) -> &[Layer] {
        &self.extended
    }

    /// A profile that ships, by name: `default` is what a crawl without a profile runs on.
    ///
    /// # Errors
    /// Every fault, as for [`Profile::load`]; no profile of that name among them.
    pub fn builtin(name: &str, given: &Given) -> Result<Self, Faults> {
        let Some(text) = ready::text(name) else {
            let names: Vec<&str> = ready::names().collect();
            let suggestion = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean {}?", quote(near)),
                None => format!("there are: {}", names.join(", ")),
            };
            let mut fault = fault_of_file(name, format!("no built-in profile {}", quote(name)));
            fault.suggestion = Some(suggestion);
            return Err(fault.into());
        };
        Self::parse(&format!("{name}.toml"), text, given)
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

    /// The settings of a plugin instance, checked against the plugin's schema, its defaults filled in.
    ///
    /// # Errors
    /// Every fault of them, at its place in the profile; also where the schema itself is none.
    pub fn check_settings(&self, instance: &str, schema: &Value) -> Result<Value, Faults> {
        let table = child("/plugins", instance);
        let shape = Shape::new(schema).map_err(|problem| {
            let pointer = self.present(&format!("{table}/component"));
            Faults::from(broken_schema(&self.document, &pointer, instance, &problem))
        })?;
        let written = self
            .plugins
            .get(instance)
            .map(|instance| instance.settings.clone());
        let mut settings = written.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        shape.fill_in(&mut settings);
        let mut faults = shape.check(
            &self.document,
            &format!("{table}/settings"),
            &mut settings.clone(),
        );
        faults.append(self.unknown_tables(schema, &settings, &format!("{table}/settings")));
        faults.sort();
        if faults.is_empty() {
            return Ok(settings);
        }
        // An instance without a table is named in a stack, and nowhere else.
        let place = |fault: Fault| Fault {
            place: self.fault_at(&fault.pointer, "").place,
            ..fault
        };
        if self.document.has(&table) {
            Err(faults)
        } else {
            Err(faults.into_iter().map(place).collect())
        }
    }

    /// Every override that says something of a plugin's settings, by its number, with the plugin's name.
    pub fn overridden_settings(&self) -> impl Iterator<Item = (u32, &str)> {
        self.overrides.of_plugins()
    }

    /// What an override alone makes of a plugin's settings, checked against the plugin's schema, its defaults filled in.
    /// `settings` are those without the override, as they are in force.
    ///
    /// # Errors
    /// Every fault, at its place in the override: settings that the plugin does not let be overridden, and what its schema
    /// refuses.
    pub fn check_overridden_settings(
        &self,
        (number, instance): (u32, &str),
        settings: &Value,
        schema: &Value,
    ) -> Result<Value, Faults> {
        let shape = Shape::new(schema).map_err(|problem| {
            let pointer = self.present(&format!("{}/component", child("/plugins", instance)));
            Faults::from(broken_schema(&self.document, &pointer, instance, &problem))
        })?;
        let at = overridden(number, instance, "");
        let said = self
            .document
            .value
            .pointer(&at)
            .cloned()
            .unwrap_or_default();
        let mut faults = Faults::default();
        for (pointer, others) in shape.fixed(&said) {
            let problem = format!(
                "plugin {} does not let {} be overridden",
                quote(instance),
                overrides::dotted(&pointer)
            );
            let at = format!("{at}{pointer}");
            let mut fault = self.document.fault(&at, Spot::Key, Level::Error, problem);
            fault.suggestion = Some(match others.as_slice() {
                [] => "give the plugin a second table under [plugins] and override the stack"
                    .to_owned(),
                others => format!("it lets these: {}", others.join(", ")),
            });
            faults.push(fault);
        }
        let said = self.overrides.plugin_settings(number);
        let mut settings = said
            .over(instance, settings)
            .unwrap_or_else(|| settings.clone());
        shape.fill_in(&mut settings);
        faults.append(shape.check(&self.document, &at, &mut settings.clone()));
        faults.append(self.unknown_tables(schema, &settings, &at));
        faults.sort();
        if faults.is_empty() {
            Ok(settings)
        } else {
            Err(faults)
        }
    }

    /// Names of tables that the profile does not have, in settings that the schema marks as such (`x-opilio-table`): a
    /// plugin would find nothing in them and nobody would be told.
    fn unknown_tables(&self, schema: &Value, settings: &Value, at: &str) -> Faults {
        let mut faults = Faults::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (property, described) in properties.into_iter().flatten() {
            if described.get(TABLE) != Some(&Value::Bool(true)) {
                continue;
            }
            let at = child(at, property);
            let named: Vec<(String, &Value)> = match settings.get(property) {
                Some(Value::Array(names)) => {
                    let at = |(index, name)| (format!("{at}/{index}"), name);
                    names.iter().enumerate().map(at).collect()
                }
                Some(name) => vec![(at, name)],
                None => Vec::new(),
            };
            for (at, name) in named {
                let Some(name) = name
                    .as_str()
                    .filter(|name| !self.tables.contains_key(*name))
                else {
                    continue;
                };
                let mut fault = self.fault_at(&at, format!("no table {}", quote(name)));
                let tables = || self.tables.keys().map(String::as_str);
                fault.suggestion = Some(match nearest(name, tables()) {
                    Some(table) => format!("did you mean {}?", quote(table)),
                    None if self.tables.is_empty() => format!("write it as [tables.{name}]"),
                    None => format!("there are: {}", tables().collect::<Vec<_>>().join(", ")),
                });
                faults.push(fault);
            }
        }
        faults
    }

    /// A fault of the caller's own at what an override says of a plugin's setting, named by a pointer within the settings.
    pub fn fault_in_override(
        &self,
        (number, instance): (u32, &str),
        pointer: &str,
        problem: impl Into<String>,
    ) -> Fault {
        self.fault_at(&overridden(number, instance, pointer), problem)
    }

    /// A fault of the caller's own at what a JSON Pointer names (`/plugins/html/component`,
    /// `/plugins/html/settings/patterns/0`), or at the nearest thing above it that is written.
    pub fn fault_at(&self, pointer: &str, problem: impl Into<String>) -> Fault {
        let present = self.present(pointer);
        let mut fault = self
            .document
            .fault(&present, Spot::Value, Level::Error, problem.into());
        pointer.clone_into(&mut fault.pointer);
        fault
    }

    /// Every plugin that a stack of an override names: the stage, the name, and a pointer to where, for
    /// [`Profile::fault_at`].
    pub fn named_by_overrides(&self) -> impl Iterator<Item = (Stage, &str, &str)> {
        self.overrides.named().filter_map(|(name, pointer)| {
            // /override/NUMBER/stacks/STAGE
            let key = pointer.split('/').nth(4)?;
            let stage = Stage::ALL.into_iter().find(|stage| stage.key() == key)?;
            Some((stage, name, pointer))
        })
    }

    /// The pointer itself, or for an instance without a table where a stack names it.
    fn present(&self, pointer: &str) -> String {
        let name = pointer
            .strip_prefix("/plugins/")
            .map(|rest| rest.split('/').next().unwrap_or_default());
        match name {
            Some(name) if !self.document.has(&format!("/plugins/{name}")) => self
                .settings
                .stacks
                .pointer_to(name)
                .or_else(|| self.overrides.pointer_to(name).map(str::to_owned))
                .or_else(|| self.guarding(name))
                .unwrap_or_else(|| pointer.to_owned()),
            _ => pointer.to_owned(),
        }
    }

    /// Where an instance is named as a filter of another plugin.
    pub(crate) fn guarding(&self, name: &str) -> Option<String> {
        self.plugins.values().find_map(|instance| {
            let at = instance.filters.iter().position(|filter| filter == name)?;
            let table = child("/plugins", &instance.name);
            Some(format!("{table}/filters/{at}"))
        })
    }

    /// The door between what was written and what may be used.
    fn check(layers: Layers, given: &Given) -> Result<Self, Faults> {
        let (document, syntax) = layers.document();
        let Layers { below, own, .. } = layers;
        let (file, base) = (own.file.as_str(), own.base.as_path());
        let (written, faults) = written(&document, syntax.clone())?;
        let faults = plugins::missing_components(faults, &given.builtins);
        let mut check = Check::new(&document, faults);

        let name = written
            .name
            .clone()
            .or_else(|| given.name.clone())
            .unwrap_or_else(|| stem(file));
        if name.trim().is_empty() {
            check.part("").refuse(
                "name",
                "the name is empty".to_owned(),
                "write a word, such as \"news\"",
            );
        }
        check.part("").line("name", &name);
        check
            .part("")
            .header_value("user-agent", &written.user_agent);
        let mut operator = written.operator.check(check.part("operator"));
        if let Some(url) = &given.contact_url {
            operator.contact_url = Some(url.clone());
        }
        let user_agent = user_agent(&written.user_agent, operator.contact_url.as_deref());
        let implied = Implied::new(check.part("plugins"));
        let mut plugins = plugins::check_all(
            &written.plugins,
            check.part("plugins"),
            base,
            &given.builtins,
        );
        let stacks =
            written
                .stacks
                .check(check.part("stacks"), &mut plugins, &given.builtins, implied);
        plugins::check_filters(
            &written.plugins,
            check.part("plugins"),
            &mut plugins,
            &given.builtins,
            implied,
        );
        let (seeds, of_seeds) = seeds::check(
            check.part(""),
            &written.seeds,
            written.seeds_file.as_deref(),
            base,
            &given.seeds,
        );
        check.faults.append(of_seeds);

        let mut files = precedence_file::Files::default();
        let overridable = Overridable::from(&written);
        if written.queue.name.is_some() {
            check.part("queue").refuse_key(
                "name",
                "every URI would stand in one queue".to_owned(),
                "write it in an [[override]], for those that match",
            );
        }
        let (settings, queue_settings) = overridable.check(&mut check, stacks, base, &mut files);
        let overrides = overrides::check(
            &written.overrides,
            &mut check,
            Surroundings {
                queue_key: written.frontier.queue_key,
                base: &overridable,
                instances: &mut plugins,
                builtins: &given.builtins,
                plugins: &written.plugins,
                implied,
                folder: base,
                files,
            },
        );
        let known = plugins.keys().map(String::as_str);
        let record = written.record.check(check.part("record"), known);
        let mut profile = Self {
            name,
            description: written.description.clone(),
            seeds,
            workers: written.workers as usize,
            operator,
            user_agent,
            plugins,
            tables: tables::check_all(&written.tables, check.part("tables"), base),
            record,
            dns: written.dns.check(check.part("dns")),
            credentials: credentials::check_credentials(
                &written.credentials,
                check.part("credentials"),
                base,
            ),
            logins: credentials::check_logins(&written.logins, check.part("logins"), base),
            frontier: written.frontier.check(check.part("frontier")),
            group: written.group.check(check.part("group")),
            canonicaliser: written
                .canonicalization
                .check(check.part("canonicalization")),
            archive: written.archive.check(check.part("archive"), base),
            logs: written.logs.check(check.part("logs")),
            alerts: written.alerts.check(check.part("alerts")),
            telemetry: written.telemetry.check(check.part("telemetry")),
            limits: written.limits.check(check.part("limits")),
            actions: written.actions.check(check.part("actions")),
            notices: Faults::default(),
            settings: Arc::new(settings),
            queue_settings: Arc::new(queue_settings),
            settings_hash: settings_hash(&written, &overrides),
            overrides: Arc::new(overrides),
            written: Arc::new(serde_json::to_value(&written).unwrap_or_default()),
            document: Arc::new(document.clone()),
            extended: below.into(),
        };
        // Where the text is no TOML, half of it may be missing: nothing is said of what is not there.
        if syntax.is_empty() {
            relations::check(&profile, given, &mut check);
        }
        let mut faults = check.faults;
        faults.sort();
        if faults.worst() == Some(Level::Error) {
            return Err(faults);
        }
        profile.notices = faults;
        Ok(profile)
    }
}

/// The pointer to what an override says of a plugin's setting.
fn overridden(number: u32, instance: &str, pointer: &str) -> String {
    let table = child("/plugins", instance);
    overrides::pointer_in(number, &format!("{table}/settings{pointer}"))
}

/// The document as its type, whatever is wrong with it taken out and reported.
fn written(document: &Document, mut faults: Faults) -> Result<(ProfileFile, Faults), Faults> {
    let schema = ProfileFile::schema();
    let broken =
        |problem: String| Faults::from(document.fault("", Spot::Key, Level::Error, problem));
    let shape = Shape::new(&schema).map_err(broken)?;
    let mut value = document.value.clone();
    let lines: Vec<usize> = faults
        .iter()
        .filter_map(|fault| Some(fault.place.as_ref()?.line))
        .collect();
    faults.append(overrides::take_out_what_is_fixed(document, &mut value));
    for fault in shape.check(document, "", &mut value) {
        // What stands on a line that is no TOML is a guess.
        if !fault
            .place
            .as_ref()
            .is_some_and(|place| lines.contains(&place.line))
        {
            faults.push(fault);
        }
    }
    match serde_json::from_value(value) {
        Ok(written) => Ok((written, faults)),
        Err(problem) => {
            if faults.worst() != Some(Level::Error) {
                faults.push(document.fault(
                    "",
                    Spot::Key,
                    Level::Error,
                    format!("cannot be used: {problem}"),
                ));
            }
            faults.sort();
            Err(faults)
        }
    }
}

/// What is wrong with the text of a profile whatever the layers below it say. They may have the keys that it lacks.
fn faults_whatever_is_extended(own: &Layer) -> Faults {
    let (document, syntax) = Layers::alone(own);
    let faults = written(&document, syntax).map_or_else(|faults| faults, |(_, faults)| faults);
    let is_its_own = |fault: &Fault| !fault.problem.starts_with("missing key");
    faults.into_iter().filter(is_its_own).collect()
}

/// Of what counts as a setting. What only says what the crawl is does not.
fn settings_hash(written: &ProfileFile, overrides: &Overrides) -> u64 {
    let settings = ProfileFile {
        name: None,
        extends: None,
        description: None,
        seeds: Vec::new(),
        seeds_file: None,
        operator: crate::operator::OperatorFile::default(),
        ..written.clone()
    };
    // A tree of texts and numbers always has a JSON form.
    let text = serde_json::to_string(&settings).unwrap_or_default();
    fnv(overrides.files_hash(), text.as_bytes())
}

/// FNV-1a of 64 bits, begun from another hash: the same in every process and every build.
pub(crate) fn fnv(from: u64, bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET ^ from, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

fn user_agent(template: &str, contact_url: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let filled = template.replace("@VERSION@", version);
    match contact_url {
        Some(url) => filled.replace("@CONTACT-URL@", url),
        // A crawl of this machine needs no contact; what leads up to it goes as well.
        None => filled
            .replace(" +@CONTACT-URL@", "")
            .replace("@CONTACT-URL@", ""),
    }
}

fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(
        || "crawl".to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path)
        .map_err(|problem| format!("cannot be read: {problem}"))?
        .len();
    if length > PROFILE_BYTES_MAX {
        return Err(format!("larger than 16MiB: {length} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|problem| format!("cannot be read: {problem}"))?;
    String::from_utf8(bytes).map_err(|problem| format!("not UTF-8: {problem}"))
}

fn unreadable(file: &str, problem: String) -> Faults {
    fault_of_file(file, problem).into()
}
