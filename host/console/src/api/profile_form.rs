//! Forms for profiles: converts a text to values, and changes of values to changes of the text. The text keeps its comments.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use opilio_crawl::shipped_plugins;
use opilio_profile::{
    ComponentReference, EditError, Profile, ProfileContext, SettingChange, edit_toml, toml_parts,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Shared;
use super::jobs::blocking;
use super::profile_check::stored_text;
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::Body;
use crate::problem::Problem;
use crate::reach;

/// Maximum changes of one request.
const CHANGES_MAX: usize = 1_000;

/// Text of a profile, and changes to it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filling {
    /// TOML text of the profile.
    #[schema(format = "profile")]
    toml: String,
    /// Changes, applied in this order.
    #[serde(default)]
    #[schema(max_items = 1000)]
    changes: Vec<ValueChange>,
    /// Name of the profile, if this is a new text of an existing one.
    profile: Option<String>,
}

/// Change of a setting.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValueChange {
    /// Names of the tables and of the setting, such as `["politeness", "min-delay"]`. The number of an item, from 0, selects it in
    /// a list of tables.
    #[schema(min_items = 1, max_items = 32)]
    path: Vec<String>,
    /// New value; not set or null: the setting is removed.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    value: Option<Value>,
}

/// Profile as values.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileForm {
    /// TOML text with the changes.
    toml: String,
    /// Values that the text sets.
    #[schema(value_type = Object)]
    written: Value,
    /// Values of settings that the text does not set: those of the profiles that it extends, or the defaults.
    #[schema(value_type = Object)]
    inherited: Value,
    /// Plugins of each stage in the order of their calls, by the key of the stage in `stacks`. Errors in other parts of the text do
    /// not matter. A stage is missing if an edit of it has an error. All stages are missing if a profile that the text extends
    /// cannot be read.
    stacks: BTreeMap<String, Vec<String>>,
    /// All values together; not set if the text has errors.
    #[schema(value_type = Option<Object>)]
    effective: Option<Value>,
    /// JSON Schema of the settings of each plugin whose component is a file, by the name of its table; empty if the text has
    /// errors.
    #[schema(value_type = Object)]
    schemas: Map<String, Value>,
}

/// Shipped plugins.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PluginCatalogue {
    /// Plugins, sorted by name.
    plugins: Vec<CataloguePlugin>,
}

/// Shipped plugin.
#[derive(Debug, Serialize, ToSchema)]
struct CataloguePlugin {
    /// Name, as in `builtin:NAME`.
    name: String,
    /// Purpose, in a sentence.
    summary: String,
    /// Stages whose stacks may have it.
    stages: Vec<&'static str>,
    /// JSON Schema of its settings.
    #[schema(value_type = Object)]
    schema: Value,
}

impl From<ValueChange> for SettingChange {
    fn from(ValueChange { path, value }: ValueChange) -> SettingChange {
        SettingChange { path, value }
    }
}

/// Applies changes to the text of a profile and returns the text with its values. Comments and layout stay. Saves nothing. A text
/// that is not TOML cannot be changed; the response lists its errors.
#[utoipa::path(post, path = "/profiles/form", operation_id = "fill_profile_form", tag = "profiles", request_body = Filling, responses((status = 200, body = ProfileForm)))]
pub(crate) async fn fill(
    State(daemon): Shared,
    caller: Caller,
    Body(filling): Body<Filling>,
) -> Result<Json<ProfileForm>, Problem> {
    let form = blocking(move || {
        let kept = stored_text(&daemon, filling.profile.as_deref())?;
        let toml = edited(&filling.toml, filling.changes)?;
        // A text with settings that reach beyond the crawl is shown, but the files that it names are not read.
        let is_safe = reach::check(&toml, kept.as_deref(), &caller).is_ok();
        Ok(form(&daemon, toml, is_safe))
    });
    Ok(Json(form.await?))
}

/// Describes the shipped plugins: purpose, stages, and the JSON Schema of their settings.
#[utoipa::path(get, path = "/plugin-catalogue", operation_id = "list_shipped_plugins", tag = "profiles", responses((status = 200, body = PluginCatalogue)))]
pub(crate) async fn catalogue(State(daemon): Shared) -> Result<Json<PluginCatalogue>, Problem> {
    let found = blocking(move || {
        let plugins = shipped_plugins(daemon.folder.component_cache());
        plugins.map_err(|problem| Problem::failure(problem.to_string()))
    });
    let plugins = found.await?.into_iter().map(|plugin| CataloguePlugin {
        name: plugin.name,
        summary: plugin.summary,
        stages: plugin.stages.iter().map(|stage| stage.key()).collect(),
        schema: plugin.schema,
    });
    Ok(Json(PluginCatalogue {
        plugins: plugins.collect(),
    }))
}

/// A text with changes.
pub(crate) fn edited(toml: &str, changes: Vec<ValueChange>) -> Result<String, Problem> {
    if changes.len() > CHANGES_MAX {
        return Err(Problem::unusable(format!(
            "{} changes in one request; at most {CHANGES_MAX} are allowed",
            changes.len()
        )));
    }
    let changes: Vec<SettingChange> = changes.into_iter().map(SettingChange::from).collect();
    edit_toml(toml, &changes).map_err(|problem| {
        let message = problem.to_string();
        match problem {
            EditError::Text(faults) => {
                let faults = faults.iter().map(Into::into).collect();
                Problem::unusable(message).with_faults(faults)
            }
            EditError::NotTable(_) | EditError::Change(_) => Problem::unusable(message),
        }
    })
}

fn form(daemon: &Daemon, toml: String, is_safe: bool) -> ProfileForm {
    let given = ProfileContext {
        builtins: opilio_crawl::builtin_plugins(),
        seeds_elsewhere: true,
        base: Some(daemon.profiles.folder().to_owned()),
        ..ProfileContext::default()
    };
    let read = |text: &str| Profile::parse("profile.toml", text, &given).ok();
    let written = toml_parts(&toml);
    let may_follow = is_safe || reach::extends_only_shipped(&written);
    let below = written
        .get("extends")
        .filter(|_| may_follow)
        .and_then(|below| {
            let change = SettingChange {
                path: vec!["extends".to_owned()],
                value: Some(below.clone()),
            };
            read(&edit_toml("", &[change]).ok()?)
        });
    let inherited = below.or_else(|| read("")).map(|below| below.values());
    let whole = Some(()).filter(|()| is_safe).and_then(|()| read(&toml));
    let stacks = match may_follow {
        true => Profile::stacks_of(&toml, &given),
        false => BTreeMap::new(),
    };
    ProfileForm {
        stacks,
        schemas: whole
            .as_ref()
            .map(|it| schemas(daemon, it))
            .unwrap_or_default(),
        effective: whole.map(|whole| whole.values()),
        inherited: inherited.unwrap_or_default(),
        written,
        toml,
    }
}

/// The schemas of plugins in files, whose components have to be loaded. No registry is contacted for a form.
fn schemas(daemon: &Daemon, profile: &Profile) -> Map<String, Value> {
    let is_left_out = |name: &str| {
        let instance = profile.plugins.get(name);
        !instance.is_some_and(|it| matches!(it.component, ComponentReference::File { .. }))
    };
    if profile.plugins.keys().all(|name| is_left_out(name)) {
        return Map::new();
    }
    let cache = daemon.folder.component_cache();
    // The check of the profile reports errors in loading.
    let schemas = opilio_crawl::settings_schemas(profile, cache).unwrap_or_default();
    let others = schemas.into_iter().filter(|(name, _)| !is_left_out(name));
    others.collect()
}
