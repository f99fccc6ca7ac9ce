//! Plugin settings of a profile: their check against plugins' schemas, and the places of their errors.

use serde_json::Value;

use super::Profile;
use crate::check::{nearest, quote};
use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::document::{KeyOrValue, child, dotted, in_override};
use crate::schema_check::{Shape, broken_schema};
use crate::stage::Stage;

/// Keyword in a plugin's schema for the level of a constraint on a setting: `info`, `warning` or `error`.
const LEVEL: &str = "x-opilio-level";

/// Keyword in a plugin's schema for a setting that names tables of the profile: a text or a list of texts.
const TABLE: &str = "x-opilio-table";

impl Profile {
    /// The settings of a plugin instance, checked against the plugin's schema, with its defaults filled in.
    ///
    /// # Errors
    /// All errors in them, at their places in the profile, if at least one is of [`Level::Error`]. Also fails if the schema
    /// itself is invalid.
    pub fn check_settings(&self, instance: &str, schema: &Value) -> Result<Value, Diagnostics> {
        refused(self.settings_and_faults(instance, schema)?)
    }

    /// Errors in an instance's settings that do not refuse the profile, including those of overrides: the plugin's schema gives
    /// them a lower level. A job does not start with one of [`Level::Warning`].
    ///
    /// # Errors
    /// Fails if the settings are refused.
    pub fn lesser_faults(
        &self,
        instance: &str,
        schema: &Value,
    ) -> Result<Diagnostics, Diagnostics> {
        let (settings, mut faults) = self.settings_and_faults(instance, schema)?;
        for place in self
            .overridden_settings()
            .filter(|(_, name)| *name == instance)
        {
            faults.append(self.overridden_and_faults(place, &settings, schema)?.1);
        }
        faults.sort();
        Ok(faults)
    }

    fn settings_and_faults(
        &self,
        instance: &str,
        schema: &Value,
    ) -> Result<(Value, Diagnostics), Diagnostics> {
        let table = child("/plugins", instance);
        let broken = |problem: String| {
            let pointer = self.present(&format!("{table}/component"));
            Diagnostics::from(broken_schema(&self.document, &pointer, instance, &problem))
        };
        let shape = Shape::new(schema).map_err(broken)?;
        let written = self
            .plugins
            .get(instance)
            .map(|instance| instance.settings.clone());
        let mut settings = written.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        shape.fill_in(&mut settings).map_err(broken)?;
        let mut faults = shape.check(
            &self.document,
            &format!("{table}/settings"),
            &mut settings.clone(),
        );
        faults.append(self.unknown_tables(schema, &settings, &format!("{table}/settings")));
        let mut faults = with_levels(faults, schema, &format!("{table}/settings"));
        faults.sort();
        // An instance without a table is named in a stack, and in no other place.
        let place = |fault: Diagnostic| Diagnostic {
            place: self.fault_at(&fault.pointer, "").place,
            ..fault
        };
        if !self.document.has(&table) {
            faults = faults.into_iter().map(place).collect();
        }
        Ok((settings, faults))
    }

    /// All overrides with settings of a plugin, by their numbers, with the plugin's name.
    pub fn overridden_settings(&self) -> impl Iterator<Item = (u32, &str)> {
        self.overrides.of_plugins()
    }

    /// The plugin settings of one override, checked against the plugin's schema, with its defaults filled in. `settings` are the
    /// effective settings without the override.
    ///
    /// # Errors
    /// All errors, at their places in the override, if at least one is of [`Level::Error`]: settings that the plugin does not
    /// allow to be overridden, and settings that its schema refuses.
    pub fn check_overridden_settings(
        &self,
        place: (u32, &str),
        settings: &Value,
        schema: &Value,
    ) -> Result<Value, Diagnostics> {
        refused(self.overridden_and_faults(place, settings, schema)?)
    }

    fn overridden_and_faults(
        &self,
        (number, instance): (u32, &str),
        settings: &Value,
        schema: &Value,
    ) -> Result<(Value, Diagnostics), Diagnostics> {
        let broken = |problem: String| {
            let pointer = self.present(&format!("{}/component", child("/plugins", instance)));
            Diagnostics::from(broken_schema(&self.document, &pointer, instance, &problem))
        };
        let shape = Shape::new(schema).map_err(broken)?;
        let at = overridden(number, instance, "");
        let written = self
            .document
            .value
            .pointer(&at)
            .cloned()
            .unwrap_or_default();
        let mut faults = Diagnostics::default();
        for (pointer, others) in shape.fixed(&written) {
            let problem = format!(
                "plugin {} does not allow overrides of {}",
                quote(instance),
                dotted(&pointer)
            );
            let at = format!("{at}{pointer}");
            let mut fault = self
                .document
                .fault(&at, KeyOrValue::Key, Level::Error, problem);
            fault.suggestion = Some(match others.as_slice() {
                [] => "give the plugin a second table under [plugins] and override the stack"
                    .to_owned(),
                others => format!("it allows overrides of {}", others.join(", ")),
            });
            faults.push(fault);
        }
        let written = self.overrides.plugin_settings(number);
        let mut settings = written
            .applied_to(instance, settings)
            .unwrap_or_else(|| settings.clone());
        shape.fill_in(&mut settings).map_err(broken)?;
        let mut further = shape.check(&self.document, &at, &mut settings.clone());
        further.append(self.unknown_tables(schema, &settings, &at));
        faults.append(with_levels(further, schema, &at));
        faults.sort();
        Ok((settings, faults))
    }

    /// Names of tables that the profile does not have, in settings that the schema marks as such (`x-opilio-table`). Without this
    /// check a plugin would silently find nothing in them.
    fn unknown_tables(&self, schema: &Value, settings: &Value, at: &str) -> Diagnostics {
        let mut faults = Diagnostics::default();
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
                    None => format!("available: {}", tables().collect::<Vec<_>>().join(", ")),
                });
                faults.push(fault);
            }
        }
        faults
    }

    /// An error of the caller at a plugin setting in an override, named by a pointer within the settings.
    pub fn fault_in_override(
        &self,
        (number, instance): (u32, &str),
        pointer: &str,
        problem: impl Into<String>,
    ) -> Diagnostic {
        self.fault_at(&overridden(number, instance, pointer), problem)
    }

    /// An error of the caller at the value that a JSON Pointer names (`/plugins/html/component`,
    /// `/plugins/html/settings/patterns/0`), or at its nearest written parent.
    pub fn fault_at(&self, pointer: &str, problem: impl Into<String>) -> Diagnostic {
        let present = self.present(pointer);
        let mut fault =
            self.document
                .fault(&present, KeyOrValue::Value, Level::Error, problem.into());
        pointer.clone_into(&mut fault.pointer);
        fault
    }

    /// All plugins that stacks of overrides name: the stage, the name, and a pointer for [`Profile::fault_at`].
    pub fn named_by_overrides(&self) -> impl Iterator<Item = (Stage, &str, &str)> {
        self.overrides.named().filter_map(|(name, pointer)| {
            // /override/NUMBER/stacks/STAGE
            let key = pointer.split('/').nth(4)?;
            let stage = Stage::ALL.into_iter().find(|stage| stage.key() == key)?;
            Some((stage, name, pointer))
        })
    }

    /// The pointer itself. For an instance without a table it is the pointer at which a stack names it.
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

    /// The pointer at which an instance is named as a filter of another plugin.
    pub(crate) fn guarding(&self, name: &str) -> Option<String> {
        self.plugins.values().find_map(|instance| {
            let at = instance.filters.iter().position(|filter| filter == name)?;
            let table = child("/plugins", &instance.name);
            Some(format!("{table}/filters/{at}"))
        })
    }
}

/// The settings, unless an error refuses them.
fn refused((settings, faults): (Value, Diagnostics)) -> Result<Value, Diagnostics> {
    match faults.worst() {
        Some(Level::Error) => Err(faults),
        _ => Ok(settings),
    }
}

/// Gives the errors in settings at `at` the levels from the schema.
fn with_levels(faults: Diagnostics, schema: &Value, at: &str) -> Diagnostics {
    let faults = faults.into_iter().map(|fault| Diagnostic {
        level: match fault.pointer.strip_prefix(at) {
            Some(setting) => level_of(schema, setting),
            None => fault.level,
        },
        ..fault
    });
    faults.collect()
}

/// The level of the setting at a JSON Pointer: that of the innermost property with one, otherwise [`Level::Error`].
fn level_of(schema: &Value, pointer: &str) -> Level {
    let mut level = Level::Error;
    let mut node = schema;
    for key in pointer.split('/').skip(1) {
        let key = key.replace("~1", "/").replace("~0", "~");
        let inner = node.get("properties").and_then(|inner| inner.get(&key));
        let Some(inner) = inner.or_else(|| node.get("items")) else {
            break;
        };
        level = match inner.get(LEVEL).and_then(Value::as_str) {
            Some("info") => Level::Info,
            Some("warning") => Level::Warning,
            Some("error") => Level::Error,
            _ => level,
        };
        let target = inner.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| schema.pointer(target.strip_prefix('#')?));
        node = target.unwrap_or(inner);
    }
    level
}

/// The pointer to a plugin's setting in an override.
fn overridden(number: u32, instance: &str, pointer: &str) -> String {
    let table = child("/plugins", instance);
    in_override(number, &format!("{table}/settings{pointer}"))
}
