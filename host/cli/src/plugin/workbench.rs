//! Components as named on a command line, loaded and configured.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use opilio_build::{Language, in_shell};
use opilio_profile::{
    ComponentReference, DurationWritten, PluginLimitsFile, StacksFile, complete_settings,
    parse_duration,
};
use opilio_sandbox::{
    COMPONENT_BYTES_MAX, Case, Component, Description, Engine, EngineConfig, Limits, Plugin,
    PluginConfig, Tables,
};
use opilio_source::{ComponentConditions, ResolvedComponent, Sources, SourcesConfig};
use serde_json::{Value, json};

use super::{note, sources};
use crate::crawl::component_cache;

/// The prefix of a built-in plugin in a profile.
const BUILTIN: &str = "builtin:";
/// The prefix of a component in a registry.
const REGISTRY: &str = "oci://";

/// The engine.
pub(super) struct Workbench {
    engine: Engine,
}

/// A component, and the plugin of it that was named.
pub(super) struct Subject {
    pub(super) component: Component,
    pub(super) bytes: Vec<u8>,
    /// The name of the plugin; `None` stands for all plugins.
    chosen: Option<String>,
    /// The file from which it was read; `None` for built-in components.
    pub(super) file: Option<PathBuf>,
}

impl Workbench {
    /// Creates the engine, with the crawls' cache of compiled components.
    pub(super) fn new() -> Result<Self> {
        let engine = Engine::new(EngineConfig {
            cache_dir: component_cache(),
            ..EngineConfig::default()
        })?;
        Ok(Self { engine })
    }

    /// Loads a component: a built-in one, one in a registry, a file, or the folder of a crate that has been built.
    pub(super) fn load(&self, written: &str) -> Result<Subject> {
        let builtin = written
            .strip_prefix(BUILTIN)
            .filter(|name| !name.contains('#'));
        if let Some(name) = builtin.or_else(|| is_bare(written).then_some(written)) {
            return self.load_builtin(name);
        }
        if written.starts_with(REGISTRY) || is_in_a_folder(written) {
            return self.load_from_sources(written);
        }
        if let Some((whole, name)) = written.split_once('#')
            && let Some(whole) = whole
                .strip_prefix(BUILTIN)
                .or_else(|| is_bare(whole).then_some(whole))
        {
            let mut subject = self.load_builtin(whole)?;
            subject.chosen = Some(name.to_owned());
            return subject.with_its_plugin(whole);
        }
        let (path, chosen) = match written.rsplit_once('#') {
            Some((path, name)) if !Path::new(written).exists() => (path, Some(name.to_owned())),
            _ => (written, None),
        };
        let file = component_file(Path::new(path))?;
        let bytes = read(&file)?;
        let component = self.load_bytes(&bytes, &file.display().to_string())?;
        let subject = Subject {
            component,
            bytes,
            chosen,
            file: Some(file),
        };
        subject.with_its_plugin(path)
    }

    /// Loads a component from the store or its registry, or from the file of a folder that contains the plugin.
    fn load_from_sources(&self, written: &str) -> Result<Subject> {
        let named = ComponentReference::parse(written, Path::new(""))
            .map_err(|problem| anyhow!("{problem}"))?;
        let sources = Sources::new(SourcesConfig::standard()?);
        let mut plugins_of = |found: &ResolvedComponent| {
            let component = self
                .engine
                .load(&found.bytes, &found.origin)
                .map_err(|problem| problem.to_string())?;
            let plugins = component.plugins().iter();
            Ok(plugins.map(|plugin| plugin.name.clone()).collect())
        };
        let found = sources.resolve(&named, &ComponentConditions::default(), &mut plugins_of)?;
        if let Some(text) = &found.note {
            note(text);
        }
        let file = PathBuf::from(&found.origin);
        let subject = Subject {
            component: self.load_bytes(&found.bytes, &found.origin)?,
            bytes: found.bytes.to_vec(),
            chosen: found.plugin,
            file: file.is_file().then_some(file),
        };
        subject.with_its_plugin(&found.origin)
    }

    fn load_builtin(&self, name: &str) -> Result<Subject> {
        let Some(builtin) = opilio_builtin::find(name) else {
            let names: Vec<&str> = opilio_builtin::all().map(|one| one.plugin).collect();
            bail!(
                "no shipped plugin is named `{name}`; shipped plugins: {} (write a file with its path, such as ./{name}.wasm)",
                names.join(", ")
            );
        };
        Ok(Subject {
            component: self.load_bytes(builtin.component, &format!("{BUILTIN}{name}"))?,
            bytes: builtin.component.to_vec(),
            chosen: Some(name.to_owned()),
            file: None,
        })
    }

    /// Loads a component from its bytes. `origin` names it in errors.
    pub(super) fn load_bytes(&self, bytes: &[u8], origin: &str) -> Result<Component> {
        Ok(self.engine.load(bytes, origin)?)
    }

    /// Returns the extractors of a default crawl, in their order, with their defaults. Other built-in ones, such as `universal`,
    /// are in no stack unless a profile adds them.
    pub(super) fn extractors(&self) -> Result<Vec<Plugin>> {
        let mut extractors = Vec::new();
        for name in StacksFile::default().extract {
            let subject = self.load_builtin(&name)?;
            extractors.push(subject.configure(subject.sole()?, &json!({}), limits())?);
        }
        Ok(extractors)
    }
}

impl Subject {
    /// Returns the component if it contains the named plugin.
    fn with_its_plugin(self, place: &str) -> Result<Self> {
        if let Some(name) = &self.chosen {
            ensure!(
                !self.plugins().is_empty(),
                "no plugin `{name}` in {place}; its plugins: {}",
                self.names()
            );
        }
        Ok(self)
    }

    /// Returns the named plugin, or all plugins of the component if none was named.
    pub(super) fn plugins(&self) -> Vec<&Description> {
        let all = self.component.plugins().iter();
        match &self.chosen {
            Some(name) => all.filter(|one| one.name == *name).collect(),
            None => all.collect(),
        }
    }

    /// Returns the named plugin, or the only one.
    pub(super) fn sole(&self) -> Result<&Description> {
        match self.plugins().as_slice() {
            [sole] => Ok(sole),
            _ => bail!(
                "{} holds several plugins; select one with {}#NAME: {}",
                self.component.origin(),
                self.component.origin(),
                self.names()
            ),
        }
    }

    fn names(&self) -> String {
        let names = self.component.plugins().iter().map(|one| one.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Configures a plugin with settings. They are checked against its schema first.
    pub(super) fn configure(
        &self,
        description: &Description,
        settings: &Value,
        limits: Limits,
    ) -> Result<Plugin> {
        let plugin = self.component.configure(PluginConfig {
            plugin: Some(description.name.clone()),
            instance: None,
            settings: complete(description, settings)?,
            limits,
            tables: Tables::default(),
        })?;
        Ok(plugin)
    }

    /// Prints a note if a source of the component has changed since it was built.
    pub(super) fn note_if_stale(&self) {
        let Some(file) = self
            .file
            .as_deref()
            .filter(|file| sources::is_newer_than(file))
        else {
            return;
        };
        let folder = file.parent().filter(|folder| *folder != Path::new(""));
        note(&format!(
            "note: {} is older than its sources; `opilio plugin build {}` rebuilds it",
            file.display(),
            in_shell(folder.unwrap_or(Path::new(".")))
        ));
    }

    /// Returns the folder of its cases if it can be found: the folder `cases` next to the component.
    pub(super) fn cases(&self) -> Option<PathBuf> {
        let beside = self.file.as_ref()?.parent()?.join("cases");
        beside.is_dir().then_some(beside)
    }
}

/// Adds the defaults of the schema to settings.
pub(super) fn complete(description: &Description, settings: &Value) -> Result<Value> {
    let schema: Value = serde_json::from_str(&description.settings_schema)
        .with_context(|| format!("the settings schema of {} is not JSON", description.name))?;
    complete_settings(&schema, settings.clone()).map_err(|problems| {
        let problems = problems.join("; ");
        let Description { name, version, .. } = description;
        anyhow!("settings of {name} {version}: {problems}")
    })
}

/// Returns the case with settings as a crawl would pass them, defaults filled in. Invalid settings are left alone: such a case is
/// about the plugin's answer to them.
pub(super) fn as_in_a_crawl(component: &Component, case: &Case) -> Case {
    let mut case = case.clone();
    let mut plugins = component.plugins().iter();
    if let Some(description) = plugins.find(|plugin| plugin.name == case.plugin)
        && let Ok(settings) = complete(description, &case.settings)
    {
        case.settings = settings;
    }
    case
}

/// Returns the limits of a profile without limits of its own (docs/PROFILE.md), except links. A crawl counts links after it has
/// removed repeats.
pub(super) fn limits() -> Limits {
    let time = match PluginLimitsFile::default().time {
        DurationWritten::Text(text) => parse_duration(&text).ok(),
        DurationWritten::Number(_) => None,
    };
    let limits = Limits::default();
    Limits {
        memory: 64 << 20,
        time: time.unwrap_or(limits.time),
        output_bytes: 16 << 20,
        ..limits
    }
}

/// Parses settings from a command line: JSON, or `@FILE`.
pub(super) fn settings(written: Option<&str>) -> Result<Value> {
    let text = match written {
        None => return Ok(json!({})),
        Some(written) => match written.strip_prefix('@') {
            Some(file) => {
                fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?
            }
            None => written.to_owned(),
        },
    };
    let settings: Value = serde_json::from_str(&text)
        .context("invalid JSON in --settings; write an object such as '{\"max\": 3}', or @FILE")?;
    ensure!(
        settings.is_object(),
        "--settings is not a JSON object such as '{{\"max\": 3}}'"
    );
    Ok(settings)
}

/// Returns `true` if an argument has the form `FOLDER#NAME`.
fn is_in_a_folder(written: &str) -> bool {
    let folder = written.rsplit_once('#').map(|(folder, _)| folder);
    folder.is_some_and(|folder| Path::new(folder).is_dir()) && !Path::new(written).exists()
}

/// Returns a component's reference in the form of profiles: the bare name of a built-in plugin gets its prefix.
pub(super) fn as_reference(written: &str) -> Cow<'_, str> {
    let (whole, part) = written.split_once('#').unwrap_or((written, written));
    let holds_it = |part: &str| {
        let (whole, part) = (opilio_builtin::find(whole), opilio_builtin::find(part));
        whole
            .zip(part)
            .is_some_and(|(whole, part)| whole.sha256 == part.sha256)
    };
    match is_bare(whole) && (whole == written || holds_it(part)) {
        true => format!("{BUILTIN}{part}").into(),
        false => written.into(),
    }
}

/// Returns `true` if an argument is a plugin name, and no file of that name exists.
fn is_bare(written: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !written.is_empty() && written.chars().all(word) && !Path::new(written).exists()
}

/// Returns the component's file: the path itself, or the only one in the folder of a project.
pub(super) fn component_file(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let mut files: Vec<PathBuf> = fs::read_dir(path)
        .with_context(|| format!("cannot read {}", path.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|ending| ending == "wasm"))
        .collect();
    files.sort();
    match files.as_slice() {
        [sole] => Ok(sole.clone()),
        [] if Language::of(path).is_some() => bail!(
            "{} has not been built; run opilio plugin build {}",
            path.display(),
            path.display()
        ),
        [] => bail!("no component (.wasm file) in {}", path.display()),
        _ => {
            let names = files.iter().map(|file| file.display().to_string());
            bail!(
                "{} holds several components; name one of {}",
                path.display(),
                names.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let unreadable = || format!("cannot read component {}", file.display());
    let length = fs::metadata(file).with_context(unreadable)?.len();
    ensure!(
        length <= COMPONENT_BYTES_MAX as u64,
        "{} has {length} bytes; components have at most {COMPONENT_BYTES_MAX}: pass the .wasm file that `opilio plugin build` \
         writes, or build a smaller one (in Rust: opt-level = \"s\", strip)",
        file.display()
    );
    fs::read(file).with_context(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_names_mean_shipped_plugins() {
        assert_eq!(as_reference("html"), "builtin:html");
        assert_eq!(as_reference("html#html"), "builtin:html");
        assert_eq!(as_reference("html#css"), "html#css");
        assert_eq!(as_reference("./p.wasm#html"), "./p.wasm#html");
        assert_eq!(as_reference("builtin:html"), "builtin:html");
        // A later step reports that no built-in plugin has this name.
        assert_eq!(as_reference("no-such"), "builtin:no-such");
    }
}
