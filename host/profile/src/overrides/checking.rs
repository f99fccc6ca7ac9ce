//! Checks of overrides: their settings by themselves, against their conditions, and together with the profile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Override, Overrides};
use crate::canonicalization::CanonicalizationFile;
use crate::check::{Check, Part, quote};
use crate::diagnostic::{Diagnostics, Level};
use crate::document::{Document, KeyOrValue, child, dotted, in_override};
use crate::effective::Overridable;
use crate::effective::relations::of_settings;
use crate::fetch::FetchFile;
use crate::file;
use crate::frontier::QueueKey;
use crate::match_index::MatchIndex;
use crate::matching::{Conditions, MatchFile};
use crate::override_file::OverrideFile;
use crate::plugin_settings;
use crate::plugins::{self, Instances, PluginFile};
use crate::politeness::PolitenessFile;
use crate::precedence_file::Files;
use crate::queue::QueueFile;
use crate::queue_name::looks_like_key;
use crate::quotas::QuotasFile;
use crate::retry::RetryFile;
use crate::revisit::RevisitFile;
use crate::robots::RobotsFile;
use crate::setting_stages::{SettingStage, is_overridable, setting_stage};
use crate::stack_edit::{self, StacksOverrideFile};
use crate::stacks::StackSettings;
use crate::uri::UriFile;

/// Most overrides of a profile.
const OVERRIDES_MAX: usize = 100_000;

/// Most forced queues that are checked for overrides without effect, since each is compared with all overrides.
const FORCED_CHECKED_MAX: usize = 100;

/// Pointer to the overrides in the document.
const AT: &str = "/override";

/// The parts of the profile that the check of overrides needs.
pub(crate) struct OverrideContext<'s, 'b> {
    pub(crate) queue_key: QueueKey,
    pub(crate) base: &'s Overridable,
    pub(crate) plugins: &'s BTreeMap<String, PluginFile>,
    pub(crate) instances: &'s mut Instances<'b>,
    pub(crate) folder: &'s Path,
    pub(crate) files: Files,
}

/// Removes settings from the overrides that cannot be overridden, and reports them.
pub(crate) fn remove_fixed_settings(document: &Document, value: &mut Value) -> Diagnostics {
    let mut faults = Diagnostics::default();
    let tables = value.get_mut("override").and_then(Value::as_array_mut);
    for (number, table) in tables.into_iter().flatten().enumerate() {
        let Some(table) = table.as_object_mut() else {
            continue;
        };
        let known = |pointer: &str| file::has_setting(pointer);
        let mut refuse = |pointer: &str| {
            let at = format!("{AT}/{number}{pointer}");
            let (problem, suggestion) = fixed_setting_error(pointer);
            let mut fault = document.fault(&at, KeyOrValue::Key, Level::Error, problem);
            fault.suggestion = Some(suggestion);
            faults.push(fault);
        };
        table.retain(|key, value| {
            let pointer = child("", key);
            if key == "match" || !known(&pointer) {
                return true;
            }
            if !is_overridable(&pointer) {
                refuse(&pointer);
                return false;
            }
            if key == "plugins" {
                let tables = value.as_object_mut().into_iter().flatten();
                for (name, table) in tables {
                    let Some(table) = table.as_object_mut() else {
                        continue;
                    };
                    table.retain(|key, _| {
                        let stays = key == "settings" || !plugins::has_key(key);
                        if !stays {
                            refuse(&child(&child("/plugins", name), key));
                        }
                        stays
                    });
                }
                return true;
            }
            if let Value::Object(inner) = value {
                inner.retain(|key, _| {
                    let pointer = child(&pointer, key);
                    let stays = !known(&pointer) || is_overridable(&pointer);
                    if !stays {
                        refuse(&pointer);
                    }
                    stays
                });
            }
            true
        });
    }
    faults
}

fn fixed_setting_error(pointer: &str) -> (String, String) {
    let name = dotted(pointer);
    if pointer == "/override" {
        return (
            "an override cannot contain overrides".to_owned(),
            "write another override with the conditions of both".to_owned(),
        );
    }
    (
        format!(
            "{name} is needed {} and cannot be overridden",
            SettingStage::Job
        ),
        "set it for the whole job, outside of overrides".to_owned(),
    )
}

/// Checks all overrides.
pub(crate) fn check(
    written: &[OverrideFile],
    check: &mut Check<'_>,
    mut context: OverrideContext<'_, '_>,
) -> Overrides {
    if written.len() > OVERRIDES_MAX {
        let problem = format!("more than {OVERRIDES_MAX} overrides: {}", written.len());
        check.report(AT, KeyOrValue::Key, Level::Error, problem, None);
    }
    let edits: Vec<StacksOverrideFile> = written
        .iter()
        .take(OVERRIDES_MAX)
        .map(|file| file.table("stacks"))
        .collect();
    let added = edits.iter().flat_map(StacksOverrideFile::additions);
    let earliest = plugin_settings::earliest(&context.base.stacks, added, context.plugins);
    let mut named = Vec::new();
    let mut of_plugins = Vec::new();
    let list: Vec<Override> = (0..)
        .zip(written.iter().take(OVERRIDES_MAX))
        .map(|(number, file)| {
            let tables = file.plugins().into_keys();
            of_plugins.extend(tables.map(|name| (number, name)));
            file.check(number as usize, check, &mut context, &earliest, &mut named)
        })
        .collect();
    stack_edit::check_anchors(&edits, &context.base.stacks, check);
    note_forced_queues(&list, check);
    let mut index = |is_indexed: fn(&Override) -> bool| {
        let those = (0..).zip(&list).filter(|(_, one)| is_indexed(one));
        MatchIndex::new(those.map(|(number, one)| (number, &one.conditions))).unwrap_or_else(|| {
            let problem = "the patterns of the overrides are too large together".to_owned();
            let suggestion = "match host, domain or surt in addition to regex".to_owned();
            check.report(AT, KeyOrValue::Key, Level::Error, problem, Some(suggestion));
            MatchIndex::default()
        })
    };
    Overrides {
        of_queues: index(|one| !is_empty(&one.of_queues)),
        of_uris: index(|one| !is_empty(&one.of_uris)),
        of_names: index(|one| one.queue_name.is_some()),
        of_forms: index(|one| one.canonicaliser.is_some()),
        forced: list
            .iter()
            .filter_map(|one| one.queue_name.clone())
            .collect(),
        list,
        named,
        of_plugins,
        // A tree of texts and numbers always has a JSON form.
        base: serde_json::to_value(context.base).unwrap_or_default(),
        folder: context.folder.to_owned(),
        files: context.files,
        resolved: Mutex::default(),
    }
}

/// Reports settings without effect. Only its name decides which settings apply to a queue. An override may force a queue with a
/// plain name. Queue settings in overrides for sites do not reach that queue, even if it holds URIs of these sites.
fn note_forced_queues(list: &[Override], check: &mut Check<'_>) {
    let forced = (0..).zip(list).filter_map(|(number, one)| {
        let name = one.queue_name.as_ref()?;
        (!looks_like_key(name)).then_some((number, one, name))
    });
    for (number, one, name) in forced.take(FORCED_CHECKED_MAX) {
        let of_queue = list
            .iter()
            .filter(|other| other.conditions.queue.contains(name));
        let set_for_queue: BTreeSet<String> = of_queue.flat_map(Override::queue_settings).collect();
        let elsewhere = list.iter().filter(|other| {
            let (conditions, forced) = (&other.conditions, &one.conditions);
            conditions.queue.is_empty()
                && conditions.names_sites()
                && conditions.may_overlap(forced)
        });
        let without_effect: BTreeSet<String> =
            elsewhere.flat_map(Override::queue_settings).collect();
        let without_effect: Vec<String> =
            without_effect.difference(&set_for_queue).cloned().collect();
        if without_effect.is_empty() {
            continue;
        }
        let problem = format!(
            "settings of other overrides for sites do not apply to the queue {}: {}",
            quote(name),
            without_effect.join(", ")
        );
        let suggestion = format!("set it for match.queue = [{}], too", quote(name));
        let at = in_override(number, "/queue/name");
        check.report(
            &at,
            KeyOrValue::Value,
            Level::Info,
            problem,
            Some(suggestion),
        );
    }
}

impl Override {
    /// Its settings of queues in dotted form: `politeness.min-delay`.
    fn queue_settings(&self) -> impl Iterator<Item = String> {
        let tables = self.of_queues.as_object().into_iter().flatten();
        tables.flat_map(|(table, override_value)| {
            let keys = override_value.as_object().into_iter().flat_map(Map::keys);
            keys.map(move |key| format!("{table}.{key}"))
        })
    }
}

impl OverrideFile {
    fn check(
        &self,
        number: usize,
        check: &mut Check<'_>,
        context: &mut OverrideContext<'_, '_>,
        earliest: &HashMap<&str, SettingStage>,
        named: &mut Vec<(String, String)>,
    ) -> Override {
        let key = number.to_string();
        let matching: MatchFile = self.table("match");
        let conditions = matching.check(check.part("override").part(&key).part("match"));
        self.check_stages(number, &conditions, context.queue_key, earliest, check);
        let mut whole = check.part("override");
        let mut part = whole.part(&key);
        if self.says.keys().all(|key| key == "match") {
            part.note_whole(Level::Info, "the override has no settings".to_owned());
        }
        self.check_values(&mut part, context);
        let stacks: StacksOverrideFile = self.table("stacks");
        named.extend(stacks.check(part.part("stacks"), context.instances));
        let mut tables = part.part("plugins");
        for name in self.plugins().keys() {
            context.instances.check_name(&mut tables, name, name);
        }
        let queue: QueueFile = self.table("queue");
        queue.check_name(part.part("queue"));
        let canonicaliser = self.says.contains_key("canonicalization").then(|| {
            let file: CanonicalizationFile = self.table("canonicalization");
            file.check(part.part("canonicalization"))
        });
        self.check_relations(number, check, context);
        let (mut of_uris, mut of_queues) = (Map::new(), Map::new());
        for (pointer, value) in self.leaves() {
            let into = if setting_stage(&pointer) == SettingStage::Queue {
                &mut of_queues
            } else {
                &mut of_uris
            };
            insert(into, &pointer, value);
        }
        Override {
            conditions,
            of_uris: Value::Object(of_uris),
            of_queues: Value::Object(of_queues),
            queue_name: queue.name,
            canonicaliser,
        }
    }

    /// Checks that its conditions are known at the stage at which each of its settings is needed.
    fn check_stages(
        &self,
        number: usize,
        conditions: &Conditions,
        key: QueueKey,
        earliest: &HashMap<&str, SettingStage>,
        check: &mut Check<'_>,
    ) {
        for (pointer, _) in self.leaves() {
            let at = format!("{AT}/{number}{pointer}");
            let name = dotted(&pointer);
            let plugin = pointer
                .strip_prefix("/plugins/")
                .and_then(|rest| rest.split('/').next());
            let stage = match plugin {
                Some(plugin) => earliest
                    .get(plugin)
                    .copied()
                    .unwrap_or(SettingStage::Response),
                None => setting_stage(&pointer),
            };
            let (problem, suggestion) = if plugin.is_some() && stage == SettingStage::Job {
                let problem = format!("{name} is needed {stage} and cannot be overridden");
                (problem, "observers get all URIs")
            } else if let Some((condition, hint)) = conditions.unknown_at(stage, key) {
                let problem =
                    format!("{name} is needed {stage}, when match.{condition} is not known");
                (problem, hint)
            } else if pointer == "/queue/name"
                && let Some(condition) = conditions.unfit_for_identity()
            {
                let problem = format!(
                    "{name} must be the same whenever a URI is found, so it cannot depend on match.{condition}"
                );
                (problem, "match surt, host, domain, port or regex")
            } else if pointer.starts_with("/canonicalization/")
                && let Some(condition) = conditions.unfit_for_canonical_form()
            {
                let problem = format!(
                    "{name} applies to whole sites, so it cannot depend on match.{condition}"
                );
                (problem, "match surt, host or domain")
            } else {
                continue;
            };
            check.report(
                &at,
                KeyOrValue::Key,
                Level::Error,
                problem,
                Some(suggestion.to_owned()),
            );
        }
    }

    /// Checks units and single values.
    fn check_values(&self, part: &mut Part<'_, '_>, context: &mut OverrideContext<'_, '_>) {
        self.table::<PolitenessFile>("politeness")
            .check(part.part("politeness"));
        self.table::<RobotsFile>("robots")
            .check(part.part("robots"));
        self.table::<FetchFile>("fetch")
            .check(part.part("fetch"), context.folder);
        self.table::<RetryFile>("retry").check(part.part("retry"));
        self.table::<RevisitFile>("revisit")
            .check(part.part("revisit"));
        self.table::<QueueFile>("queue").check(part.part("queue"));
        self.table::<QuotasFile>("quotas")
            .check_queue(part.part("quotas"));
        self.table::<UriFile>("uri")
            .check(part.part("uri"), context.folder, &mut context.files);
    }

    /// Checks the relations between its settings and those of the profile.
    fn check_relations(
        &self,
        number: usize,
        check: &mut Check<'_>,
        context: &mut OverrideContext<'_, '_>,
    ) {
        let related = ["politeness", "robots", "fetch", "retry", "revisit", "uri"];
        if !related.iter().any(|table| self.says.contains_key(*table)) {
            return;
        }
        let Ok(mut value) = serde_json::to_value(context.base) else {
            return;
        };
        for (pointer, override_value) in self
            .leaves()
            .into_iter()
            .filter(|(pointer, _)| !pointer.starts_with("/stacks"))
        {
            if let Some(table) = value.as_object_mut() {
                insert(table, &pointer, override_value);
            }
        }
        let Ok(written) = Overridable::deserialize(value) else {
            return;
        };
        let mut silent = Check::new(check.document, Diagnostics::default());
        let (settings, _) = written.check(
            &mut silent,
            StackSettings::default(),
            context.folder,
            &mut context.files,
        );
        let at = in_override(u32::try_from(number).unwrap_or(u32::MAX), "");
        of_settings(&settings, &at, check);
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

/// Inserts a value at a pointer, with the tables above it.
fn insert(table: &mut Map<String, Value>, pointer: &str, value: &Value) {
    let mut keys = pointer.trim_start_matches('/').split('/').peekable();
    let mut table = table;
    while let Some(key) = keys.next() {
        let key = key.replace("~1", "/").replace("~0", "~");
        if keys.peek().is_none() {
            table.insert(key, value.clone());
            return;
        }
        let inner = table
            .entry(key)
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = inner else { return };
        table = inner;
    }
}
