//! The settings of a job as they are in force: those of its profile with the changes of operators, and those of plugins that were replaced.

use opilio_crawl::settings::Effect;
use opilio_profile::{Origin, SettingEntry};
use opilio_stacks::components::{JobPlugins, LIST, ReplacementComponent};
use serde_json::json;

use super::answer::Respond;
use super::{CommandResponse, ControlError, JobAdmin, SettingInForce};

impl JobAdmin<'_> {
    /// Sends the settings of the job.
    pub(super) fn settings(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let kept = JobPlugins::read(self.job).map_err(|problem| ControlError::failure(&problem))?;
        let entries = self.profile.catalogue().into_iter();
        let mut settings: Vec<SettingInForce> = entries.map(of_entry).collect();
        for instance in self.profile.plugins.values() {
            let kept = kept.kept(instance);
            if let Some(replacement) = kept.and_then(|kept| kept.replacement.as_ref()) {
                replace_plugin(&mut settings, &instance.name, replacement);
            }
        }
        respond(CommandResponse::Settings { settings });
        Ok(String::new())
    }
}

fn of_entry(entry: SettingEntry) -> SettingInForce {
    let (file, line) = match &entry.place {
        Origin::Default => (None, None),
        Origin::Written { file, line } => (Some(file.clone()), Some(*line)),
    };
    SettingInForce {
        toml: entry.toml(),
        effect: Effect::of(&entry.pointer),
        key: entry.key,
        value: entry.value,
        file,
        line,
        stage: entry.stage.to_owned(),
        level: entry.level.as_str().to_owned(),
        expert: entry.expert,
        description: entry.description,
    }
}

/// Puts the component of a plugin that was replaced in the place of the profile's. So with its settings, if the replacement has its own.
fn replace_plugin(
    settings: &mut Vec<SettingInForce>,
    name: &str,
    replacement: &ReplacementComponent,
) {
    let own = format!("plugins.{name}.");
    let place = settings.iter().position(|one| one.key.starts_with(&own));
    let next = || settings.iter().position(|one| one.key > own);
    let place = place.or_else(next).unwrap_or(settings.len());
    settings.retain(|one| match one.key.strip_prefix(&own) {
        Some("component" | "sha256") => false,
        Some(key) => {
            replacement.settings.is_none() || key != "settings" && !key.starts_with("settings.")
        }
        None => true,
    });
    let mut table = json!({
        "component": replacement.component,
        "sha256": replacement.sha256.to_string(),
    });
    if let Some(written) = &replacement.settings {
        table["settings"] = written.clone();
    }
    let entries = SettingEntry::of_value(&format!("/plugins/{name}"), &table);
    let added = entries.into_iter().map(|entry| SettingInForce {
        file: Some(LIST.to_owned()),
        ..of_entry(entry)
    });
    drop(settings.splice(place..place, added));
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use opilio_source::Sha256;
    use serde_json::Value;

    use super::*;

    /// The settings of a profile with three plugins, of which the second was replaced with these settings. Returns names, values and files.
    fn replaced(settings: Option<Value>) -> Vec<(String, Value, Option<String>)> {
        let plugin = |level: u32| json!({ "component": "a.wasm", "settings": { "level": level } });
        let plugins = json!({ "a": plugin(1), "b": plugin(2), "b-c": plugin(3) });
        let entries = SettingEntry::of_value("/plugins", &plugins).into_iter();
        let mut found: Vec<SettingInForce> = entries.map(of_entry).collect();
        let replacement = ReplacementComponent {
            component: "b.wasm".to_owned(),
            sha256: Sha256::of(b"b"),
            plugin: None,
            settings,
            at: Timestamp::UNIX_EPOCH,
            by: "lena".to_owned(),
        };
        replace_plugin(&mut found, "b", &replacement);
        let found = found
            .into_iter()
            .filter(|one| one.key != "plugins.b.sha256");
        found.map(|one| (one.key, one.value, one.file)).collect()
    }

    #[test]
    fn a_plugin_that_was_replaced_has_its_new_component_and_settings() {
        let profile = |key: &str, value: Value| (format!("plugins.{key}"), value, None);
        let kept = |key: &str, value: Value| {
            let file = Some("plugins.json".to_owned());
            (format!("plugins.{key}"), value, file)
        };
        let (mut before, mut after) = (
            vec![
                profile("a.component", "a.wasm".into()),
                profile("a.settings.level", 1.into()),
                kept("b.component", "b.wasm".into()),
            ],
            vec![
                profile("b-c.component", "a.wasm".into()),
                profile("b-c.settings.level", 3.into()),
            ],
        );
        // It keeps the settings of the profile.
        let own = profile("b.settings.level", 2.into());
        let expected = [&before[..], &[own], &after[..]].concat();
        assert_eq!(replaced(None), expected);
        // It came with settings of its own.
        before.push(kept("b.settings.depth", 5.into()));
        before.append(&mut after);
        assert_eq!(replaced(Some(json!({ "depth": 5 }))), before);
    }
}
