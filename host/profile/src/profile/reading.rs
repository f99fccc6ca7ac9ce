//! Reading of a profile: its text is parsed, the profiles it extends are read, and every value is checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::Value;

use super::{Profile, ProfileContext, first_rendering, relations};
use crate::builtin_profiles;
use crate::check::{Check, nearest, quote};
use crate::credentials;
use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::document::{Document, KeyOrValue};
use crate::effective::Overridable;
use crate::file::ProfileFile;
use crate::fnv::fnv;
use crate::layer::{Layer, Layers, fault_of_file, read};
use crate::overrides::Overrides;
use crate::overrides::checking::{self, OverrideContext};
use crate::plugins::{self, Instances};
use crate::precedence_file;
use crate::schema_check::Shape;
use crate::seeds;
use crate::stack_edit::LAST_RESORT;
use crate::stacks::{StacksFile, leave_out_shipped};
use crate::stage::Stage;
use crate::streams;
use crate::tables;
use crate::webhooks;

impl Profile {
    /// Reads and checks a profile.
    ///
    /// # Errors
    /// All its errors, if one is of [`Level::Error`]. Also fails if it cannot be read.
    pub fn load(path: &Path, context: &ProfileContext) -> Result<Self, Diagnostics> {
        let file = path.display().to_string();
        let text = read(path).map_err(|problem| unreadable(&file, problem))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let base = context.base.as_deref().unwrap_or(folder);
        Self::follow(&file, text, base, context)
    }

    /// Checks a profile in memory. `file` is its name in errors. Relative paths start at [`ProfileContext::base`], or at the
    /// current folder.
    ///
    /// # Errors
    /// All its errors, if one is of [`Level::Error`].
    pub fn parse(file: &str, text: &str, context: &ProfileContext) -> Result<Self, Diagnostics> {
        let base = context.base.as_deref().unwrap_or(Path::new(""));
        Self::follow(file, text.to_owned(), base, context)
    }

    fn follow(
        file: &str,
        text: String,
        base: &Path,
        context: &ProfileContext,
    ) -> Result<Self, Diagnostics> {
        let own = own_layer(file, text, base);
        let layers = Layers::follow(own.clone()).map_err(|mut faults| {
            faults.append(faults_of_own_text(&own));
            faults.sort();
            faults
        })?;
        Self::check(layers, context)
    }

    /// Checks a profile from given layers: those that it extends and later changes. `extends` is not followed. It is for jobs,
    /// which keep copies of all layers.
    ///
    /// # Errors
    /// All their errors, if one is of [`Level::Error`].
    pub fn layered(
        below: Vec<Layer>,
        own: Layer,
        above: Vec<Layer>,
        context: &ProfileContext,
    ) -> Result<Self, Diagnostics> {
        Self::check(Layers { below, own, above }, context)
    }

    /// The plugins of each stage of a profile in memory, in the order of their calls, by the key of the stage in `[stacks]`. Errors
    /// in other parts do not matter. A stage is missing if its value is neither a list of names nor a valid edit. All stages are
    /// missing if a profile that it extends cannot be read.
    pub fn stacks_of(text: &str, context: &ProfileContext) -> BTreeMap<String, Vec<String>> {
        let base = context.base.as_deref().unwrap_or(Path::new(""));
        let Ok(layers) = Layers::follow(own_layer("profile.toml", text.to_owned(), base)) else {
            return BTreeMap::new();
        };
        let values = layers.document().0.value;
        let default = StacksFile::default();
        let keys = Stage::ALL.into_iter().map(Stage::key);
        let stacks = keys.chain([LAST_RESORT]).filter_map(|key| {
            // Edits of all layers are applied by now, except for invalid ones.
            let names = match values.pointer(&format!("/stacks/{key}")) {
                Some(written) => Vec::<String>::deserialize(written).ok()?,
                None => default.named(key)?.to_vec(),
            };
            Some((key.to_owned(), names))
        });
        let mut stacks: BTreeMap<String, Vec<String>> = stacks.collect();
        if renders_nothing(&values) {
            let tables = values.get("plugins").and_then(Value::as_object);
            let has_table = |name: &str| tables.is_some_and(|it| it.contains_key(name));
            for stage in [Stage::Render, Stage::Behave] {
                if let Some(stack) = stacks.get_mut(stage.key()) {
                    leave_out_shipped(stack, has_table, &context.builtins);
                }
            }
        }
        stacks
    }

    /// A built-in profile by name. A crawl without a profile uses `default`.
    ///
    /// # Errors
    /// All errors, as for [`Profile::load`]. An unknown name is one of them.
    pub fn builtin(name: &str, context: &ProfileContext) -> Result<Self, Diagnostics> {
        match builtin_profiles::text(name) {
            Some(text) => Self::parse(&format!("{name}.toml"), text, context),
            None => Err(Self::unknown(name, "built-in profile", &[])),
        }
    }

    /// The error about an unknown name. `what` is the kind of thing that was looked up, as the message names it. The error lists
    /// the operator's own profiles, `saved`, and the built-in ones.
    pub fn unknown(name: &str, what: &str, saved: &[String]) -> Diagnostics {
        let mut known: Vec<&str> = saved.iter().map(String::as_str).collect();
        builtin_profiles::names().for_each(|name| known.push(name));
        let suggestion = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean {}?", quote(near)),
            None => format!("profiles: {}", known.join(", ")),
        };
        let mut fault = fault_of_file(name, format!("no {what} {}", quote(name)));
        fault.suggestion = Some(suggestion);
        fault.into()
    }

    /// Turns the written profile into the usable one.
    fn check(layers: Layers, context: &ProfileContext) -> Result<Self, Diagnostics> {
        let (document, syntax) = layers.document();
        let Layers { below, own, .. } = layers;
        let (file, base) = (own.file.as_str(), own.base.as_path());
        let (mut written, faults) = as_profile_file(&document, syntax.clone())?;
        let faults = plugins::missing_components(faults, &context.builtins);
        if renders_nothing(&document.value) {
            let plugins = &written.plugins;
            for stack in [&mut written.stacks.render, &mut written.stacks.behave] {
                leave_out_shipped(stack, |name| plugins.contains_key(name), &context.builtins);
            }
        }
        let mut check = Check::new(&document, faults);

        let name = written
            .name
            .clone()
            .or_else(|| context.name.clone())
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
        if let Some(url) = &context.contact_url {
            operator.contact_url = Some(url.clone());
        }
        let user_agent = user_agent(&written.user_agent, operator.contact_url.as_deref());
        let mut instances = Instances::check(
            &written.plugins,
            check.part("plugins"),
            base,
            &context.builtins,
        );
        let stacks = written.stacks.check(check.part("stacks"), &mut instances);
        instances.check_filters(&written.plugins, check.part("plugins"));
        let (seeds, of_seeds) = seeds::check(
            check.part(""),
            &written.seeds,
            written.seeds_file.as_deref(),
            base,
            &context.seeds,
        );
        check.faults.append(of_seeds);

        let mut files = precedence_file::Files::default();
        let overridable = Overridable::from(&written);
        if written.queue.name.is_some() {
            check.part("queue").refuse_key(
                "name",
                "all URIs would be in one queue".to_owned(),
                "set it in an override, for the URIs that match",
            );
        }
        let (settings, queue_settings) = overridable.check(&mut check, stacks, base, &mut files);
        let overrides = checking::check(
            &written.overrides,
            &mut check,
            OverrideContext {
                queue_key: written.frontier.queue_key,
                base: &overridable,
                instances: &mut instances,
                plugins: &written.plugins,
                folder: base,
                files,
            },
        );
        let plugins = instances.by_name;
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
            quotas: written.quotas.check_job(check.part("quotas")),
            canonicaliser: written
                .canonicalization
                .check(check.part("canonicalization")),
            archive: written.archive.check(check.part("archive"), base),
            logs: written.logs.check(check.part("logs")),
            alerts: written.alerts.check(check.part("alerts")),
            webhooks: webhooks::check_webhooks(&written.webhooks, check.part("webhooks"), base),
            streams: streams::check_streams(&written.streams, check.part("streams"), base),
            checkpoint: written.checkpoint.check(check.part("checkpoint")),
            telemetry: written.telemetry.check(check.part("telemetry")),
            limits: written.limits.check(check.part("limits")),
            actions: written.actions.check(check.part("actions")),
            notices: Diagnostics::default(),
            settings: Arc::new(settings),
            queue_settings: Arc::new(queue_settings),
            settings_hash: settings_hash(&written, &overrides),
            overrides: Arc::new(overrides),
            written: Arc::new(serde_json::to_value(&written).unwrap_or_default()),
            document: Arc::new(document.clone()),
            extended: below.into(),
        };
        // If the text is not TOML, half of it may be missing. Then nothing is reported about missing values.
        if syntax.is_empty() {
            relations::check(&profile, context, &mut check);
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

fn own_layer(file: &str, text: String, base: &Path) -> Layer {
    Layer {
        file: file.to_owned(),
        text,
        base: base.to_owned(),
        files: BTreeMap::new(),
    }
}

/// Returns `true` if the behaviours and the filters of rendering are never called.
fn renders_nothing(values: &Value) -> bool {
    first_rendering(values).is_none() && !edits_behaviors(values)
}

/// Whether an override names page behaviours. Their names must then be in the stack, rendered or not.
fn edits_behaviors(values: &Value) -> bool {
    let overrides = values.get("override").and_then(Value::as_array);
    let mut overrides = overrides.into_iter().flatten();
    overrides.any(|it| it.pointer("/stacks/behave").is_some())
}

/// The document as its type. All invalid parts are removed and reported.
fn as_profile_file(
    document: &Document,
    mut faults: Diagnostics,
) -> Result<(ProfileFile, Diagnostics), Diagnostics> {
    let schema = ProfileFile::schema();
    let broken = |problem: String| {
        Diagnostics::from(document.fault("", KeyOrValue::Key, Level::Error, problem))
    };
    let shape = Shape::new(&schema).map_err(broken)?;
    let mut value = document.value.clone();
    let lines: Vec<usize> = faults
        .iter()
        .filter_map(|fault| Some(fault.place.as_ref()?.line))
        .collect();
    faults.append(checking::remove_fixed_settings(document, &mut value));
    for fault in shape.check(document, "", &mut value) {
        // Values on a line that is not TOML are guesses.
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
                    KeyOrValue::Key,
                    Level::Error,
                    format!("cannot be used: {problem}"),
                ));
            }
            faults.sort();
            Err(faults)
        }
    }
}

/// Errors in the text of a profile that do not depend on the layers below it. Those layers may have the keys that it lacks.
fn faults_of_own_text(own: &Layer) -> Diagnostics {
    let (document, syntax) = Layers::alone(own);
    let faults =
        as_profile_file(&document, syntax).map_or_else(|faults| faults, |(_, faults)| faults);
    let is_its_own = |fault: &Diagnostic| !fault.problem.starts_with("missing key");
    faults.into_iter().filter(is_its_own).collect()
}

/// The hash of the settings. Keys that only describe the crawl do not count.
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

fn user_agent(template: &str, contact_url: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let filled = template.replace("@VERSION@", version);
    match contact_url {
        Some(url) => filled.replace("@CONTACT-URL@", url),
        // A crawl of this machine needs no contact. The text before the contact is removed as well.
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

fn unreadable(file: &str, problem: String) -> Diagnostics {
    fault_of_file(file, problem).into()
}
