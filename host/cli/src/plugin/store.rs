//! `opilio plugin list`, `pull`, `push` and `prune`: the available plugins, and transfers of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use indicatif::HumanBytes;
use jiff::{SignedDuration, Timestamp};
use opilio_profile::{ComponentReference, Image, Profile};
use opilio_sandbox::{Description, Engine, EngineConfig};
use opilio_source::{
    ComponentConditions, Prune, PruneResult, ResolvedComponent, Sha256, Sources, SourcesConfig,
    StoredComponent,
};
use serde_json::{Value, json};

use super::inspect::kinds;
use super::{count, note, say, table};
use crate::crawl::component_cache;
use crate::{exit, profile, terminal};

/// Digits of a digest that are shown; they suffice to distinguish components. `--json` has all digits.
const DIGEST_SHOWN: usize = 12;

/// The commands about the store.
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// List shipped plugins and plugins in the store: version, kinds, size, digest, and the images, jobs or profiles that name
    /// them.
    List(ListArgs),
    /// Download a component from a registry into the store, from which crawls load it.
    #[command(after_help = "\
The command asks the registry for the current digest of the tag. It does not download a component that is already in the
store. It prints the lines for a profile, pinned to the digest.

Credentials are those of `docker login` or `podman login`. The command uses HTTPS; for registries on this machine, and for
others with --insecure, it uses plain HTTP. Registries in private networks are allowed.")]
    Pull(PullArgs),
    /// Upload a component to a registry, as a Wasm artifact that `wkg` and other tools read.
    Push(PushArgs),
    /// Remove components from the store that no image names any more and no job started with.
    Prune(PruneArgs),
}

/// Location of the store.
#[derive(Debug, Args)]
struct StoreArgs {
    /// Folder of the store [default: opilio/plugins in your data directory, such as ~/.local/share].
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// Access to registries.
#[derive(Debug, Args)]
struct RegistryArgs {
    /// File of credentials, as written by `docker login` and `podman login` [default: ~/.docker/config.json].
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Use plain HTTP. The registry is then not authenticated, and credentials are sent unencrypted.
    #[arg(long)]
    insecure: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PullArgs {
    /// Image to download: oci://registry/repository:tag, or …@sha256:DIGEST.
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Expected SHA-256 of the component.
    #[arg(long, value_name = "HEX")]
    sha256: Option<Sha256>,
    /// Write the component to this file, too.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    store: StoreArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PushArgs {
    /// Path of the component to upload.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Image to write: oci://registry/repository:tag. An image that has the tag now loses it.
    #[arg(value_name = "IMAGE")]
    image: String,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Also remove components that are named but have not been used for this time, such as 90d.
    #[arg(long, value_name = "TIME")]
    unused_for: Option<String>,
    /// Show the components that would be removed, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Returns the error of the command.
pub(super) fn run(command: StoreCommand) -> Result<u8> {
    match command {
        StoreCommand::List(args) => list(&args),
        StoreCommand::Pull(args) => pull(&args),
        StoreCommand::Push(args) => push(&args),
        StoreCommand::Prune(args) => prune(&args),
    }
}

/// A component in the list: built in or in the store.
struct Listed {
    /// Name, version and kinds of its plugins, or the reason that it cannot be loaded.
    plugins: Result<Vec<Description>, String>,
    sha256: String,
    bytes: u64,
    /// References to a component in the store: images, and the jobs that began with it.
    images: Vec<String>,
    jobs: Vec<String>,
    used: Option<Timestamp>,
    /// Built-in profiles, by the plugin that they name.
    profiles: BTreeMap<String, Vec<&'static str>>,
}

fn list(args: &ListArgs) -> Result<u8> {
    let sources = sources(&args.store, None)?;
    let engine = engine()?;
    let shipped = shipped(&engine)?;
    let mut kept = Vec::new();
    for component in sources.store().list()? {
        kept.push(listed(&engine, &sources, component)?);
    }
    let folder = sources.store().folder();
    let text = if args.json {
        lines(shipped.iter().chain(&kept).flat_map(Listed::objects))
    } else {
        as_text(&shipped, &kept, folder)
    };
    say(&text)?;
    Ok(exit::OK)
}

/// Returns the built-in components, each once, with the built-in profiles that name one of its plugins.
fn shipped(engine: &Engine) -> Result<Vec<Listed>> {
    let mut profiles = Vec::new();
    for name in Profile::builtin_names() {
        let profile = profile::load(name).map_err(|faults| anyhow::anyhow!("{faults}"))?;
        profiles.push((name, profile));
    }
    let naming = |plugin: &str| {
        let wanted = ComponentReference::Builtin(plugin.to_owned());
        let naming = profiles.iter().filter(|(_, profile)| {
            let mut instances = profile.plugins.values();
            instances.any(|instance| instance.component == wanted)
        });
        naming.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let mut listed: Vec<Listed> = Vec::new();
    for builtin in opilio_builtin::all() {
        if listed.iter().any(|listed| listed.sha256 == builtin.sha256) {
            continue;
        }
        let origin = format!("builtin:{}", builtin.plugin);
        let component = engine.load(builtin.component, &origin)?;
        let plugins = component.plugins().to_vec();
        let profiles = plugins.iter();
        let profiles = profiles.map(|plugin| (plugin.name.clone(), naming(&plugin.name)));
        listed.push(Listed {
            sha256: builtin.sha256.to_owned(),
            bytes: builtin.component.len() as u64,
            images: Vec::new(),
            jobs: Vec::new(),
            used: None,
            profiles: profiles.collect(),
            plugins: Ok(plugins),
        });
    }
    Ok(listed)
}

fn listed(engine: &Engine, sources: &Sources, kept: StoredComponent) -> Result<Listed> {
    let bytes = sources.store().get(kept.sha256);
    let plugins = match bytes {
        Ok(Some(bytes)) => match engine.load(&bytes, "the component") {
            Ok(component) => Ok(component.plugins().to_vec()),
            Err(problem) => Err(problem.to_string()),
        },
        // Another process has pruned the store meanwhile.
        Ok(None) => Err("removed from the store meanwhile".to_owned()),
        Err(problem) => Err(problem.to_string()),
    };
    Ok(Listed {
        plugins,
        sha256: kept.sha256.to_string(),
        bytes: kept.bytes,
        images: kept.images.iter().map(ToString::to_string).collect(),
        jobs: kept
            .jobs
            .iter()
            .map(|job| job.display().to_string())
            .collect(),
        used: Some(kept.used),
        profiles: BTreeMap::new(),
    })
}

impl Listed {
    /// Returns an object for each plugin, or one for a component that cannot be used.
    fn objects(&self) -> Vec<Value> {
        let of_component = |mut object: Value| {
            // The store notes when a component was used.
            object["built_in"] = json!(self.used.is_none());
            object["sha256"] = json!(self.sha256);
            object["bytes"] = json!(self.bytes);
            object["images"] = json!(self.images);
            object["jobs"] = json!(self.jobs);
            object["used"] = json!(self.used);
            object
        };
        let plugins = match &self.plugins {
            Ok(plugins) => plugins,
            Err(problem) => return vec![of_component(json!({ "problem": problem }))],
        };
        let of_plugin = |plugin: &Description| {
            let profiles = self.profiles.get(&plugin.name).map(Vec::as_slice);
            let mut object = of_component(plugin_as_json(plugin));
            object["profiles"] = json!(profiles.unwrap_or_default());
            object
        };
        plugins.iter().map(of_plugin).collect()
    }

    /// Returns the reason that it cannot be used.
    fn problem(&self) -> Option<String> {
        let problem = self.plugins.as_ref().err()?;
        let digest = &self.sha256[..DIGEST_SHOWN];
        Some(format!("\n  {digest} is unusable: {problem}\n"))
    }

    /// Returns a row for each plugin; common values are in the first.
    fn rows(&self) -> Vec<Vec<String>> {
        let plugins = match &self.plugins {
            Ok(plugins) => plugins
                .iter()
                .map(|plugin| {
                    let name = plugin.name.clone();
                    (name, plugin.version.clone(), kinds(plugin).join(", "))
                })
                .collect(),
            // The reason is printed below the table.
            Err(_) => vec![("?".to_owned(), "?".to_owned(), "unusable".to_owned())],
        };
        let mut rows = Vec::new();
        for (index, (name, version, kinds)) in plugins.into_iter().enumerate() {
            let (size, digest) = match index {
                0 => (size(self.bytes), self.sha256[..DIGEST_SHOWN].to_owned()),
                _ => (String::new(), String::new()),
            };
            let profiles = self.profiles.get(&name).into_iter().flatten();
            let mut named: Vec<String> = profiles.map(|name| (*name).to_owned()).collect();
            if index == 0 {
                named.extend(self.images.iter().chain(&self.jobs).cloned());
            }
            rows.push(vec![name, version, kinds, size, digest, named.join(", ")]);
        }
        rows
    }
}

fn as_text(shipped: &[Listed], kept: &[Listed], folder: &Path) -> String {
    let heading = ["plugin", "version", "kinds", "size", "sha256", "named by"];
    let section = |title: &str, list: &[Listed]| {
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(list.iter().flat_map(Listed::rows));
        let problems = list.iter().filter_map(Listed::problem);
        format!(
            "{title}\n{}{}",
            table(&rows, 2),
            problems.collect::<String>()
        )
    };
    let mut text = section("Built in", shipped);
    let place = folder.display();
    text += &match kept.is_empty() {
        true => {
            format!("\nThe store {place} is empty; `opilio plugin pull` adds components.\n")
        }
        false => format!("\n{}", section(&format!("In the store {place}"), kept)),
    };
    text
}

fn pull(args: &PullArgs) -> Result<u8> {
    let image = Image::parse(&args.image)?;
    let sources = sources(&args.store, Some(&args.registry))?;
    let terms = ComponentConditions {
        sha256: args.sha256,
        insecure: args.registry.insecure,
    };
    let what = format!("downloading {image}");
    let (found, was_there) = terminal::spinning(&what, || sources.pull(&image, &terms))?;
    let plugins = plugins(&found)?;
    if let Some(path) = &args.output {
        fs::write(path, &found.bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let bound = found.image.as_ref().unwrap_or(&image);
    if args.json {
        let text = json!({
            "image": bound,
            "sha256": found.sha256,
            "bytes": found.bytes.len(),
            "was_there": was_there,
            "plugins": plugins.iter().map(plugin_as_json).collect::<Vec<_>>(),
        });
        say(&format!("{text}\n"))?;
    } else {
        let what = match was_there {
            true => "is already in the store",
            false => "is now in the store",
        };
        let size = size(found.bytes.len() as u64);
        let mut text = format!("{image} {what}: {size}\n");
        text += &in_a_profile(bound, found.sha256, &plugins, args.registry.insecure);
        say(&text)?;
    }
    Ok(exit::OK)
}

fn push(args: &PushArgs) -> Result<u8> {
    let image = Image::parse(&args.image)?;
    let sources = sources(&StoreArgs { store: None }, Some(&args.registry))?;
    let component = ComponentReference::File {
        path: args.file.clone(),
        plugin: None,
    };
    if args.file.is_dir() {
        bail!("{} is a folder; pass one file", args.file.display());
    }
    // A component without plugins is refused here, rather than when it is pulled.
    let found = sources.resolve_all(&component, &ComponentConditions::default())?;
    let found = found.first().context("no component found")?;
    let plugins = plugins(found)?;
    let what = format!("uploading {image}");
    let pushed = terminal::spinning(&what, || {
        sources.push(&args.file, &image, args.registry.insecure)
    })?;
    if args.json {
        let text = json!({
            "image": pushed.image,
            "sha256": pushed.sha256,
            "bytes": found.bytes.len(),
            "plugins": plugins.iter().map(plugin_as_json).collect::<Vec<_>>(),
        });
        say(&format!("{text}\n"))?;
    } else {
        let size = size(found.bytes.len() as u64);
        let mut text = format!("{} is now {image}: {size}\n", args.file.display());
        text += &in_a_profile(
            &pushed.image,
            pushed.sha256,
            &plugins,
            args.registry.insecure,
        );
        say(&text)?;
    }
    Ok(exit::OK)
}

fn prune(args: &PruneArgs) -> Result<u8> {
    let unused_for = match &args.unused_for {
        None => None,
        Some(written) => {
            let Ok(time) = opilio_profile::parse_duration(written) else {
                bail!("invalid --unused-for {written:?}; write a number with a unit, such as 90d");
            };
            Some(SignedDuration::try_from(time)?)
        }
    };
    let sources = sources(&args.store, None)?;
    let prune = Prune {
        unused_for,
        dry_run: args.dry_run,
    };
    let pruned = sources.store().prune(prune, Timestamp::now())?;
    let text = match args.json {
        true => lines(pruned_objects(&pruned, args.dry_run)),
        false => pruned_as_text(&pruned, args.dry_run),
    };
    say(&text)?;
    Ok(exit::OK)
}

fn pruned_as_text(pruned: &PruneResult, dry_run: bool) -> String {
    let mut rows = Vec::new();
    for component in &pruned.components {
        let images = component.images.iter().map(ToString::to_string);
        let images = images.collect::<Vec<_>>().join(", ");
        rows.push(vec![
            component.sha256.to_string()[..DIGEST_SHOWN].to_owned(),
            size(component.bytes),
            match images.is_empty() {
                true => "named by no image".to_owned(),
                false => images,
            },
        ]);
    }
    let bytes = pruned.components.iter().map(|component| component.bytes);
    let verb = if dry_run { "Would remove" } else { "Removed" };
    let components = count(rows.len() as u64, "component", "components");
    let size = size(bytes.sum());
    let mut text = format!("{verb} {components}, {size}");
    if !pruned.partial.is_empty() {
        let files = count(
            pruned.partial.len() as u64,
            "unfinished file",
            "unfinished files",
        );
        text += &format!(", and {files}");
    }
    format!("{text}.\n{}", table(&rows, 2))
}

/// Returns an object for each component, and one for each unfinished file.
fn pruned_objects(pruned: &PruneResult, dry_run: bool) -> impl Iterator<Item = Value> {
    let components = pruned.components.iter().map(move |component| {
        json!({
            "dry_run": dry_run,
            "sha256": component.sha256,
            "bytes": component.bytes,
            "images": component.images,
            "used": component.used,
        })
    });
    let files = pruned.partial.iter();
    let files = files.map(
        move |file| json!({ "dry_run": dry_run, "unfinished_file": file.display().to_string() }),
    );
    components.chain(files)
}

/// Formats objects, one per line.
fn lines(objects: impl Iterator<Item = Value>) -> String {
    objects.map(|object| format!("{object}\n")).collect()
}

/// Returns the lines of a profile that name exactly this component.
fn in_a_profile(image: &Image, sha256: Sha256, plugins: &[Description], insecure: bool) -> String {
    let mut text = String::from("\nIn a profile:\n");
    for plugin in plugins {
        let name = &plugin.name;
        let hash = match plugins.len() {
            1 => String::new(),
            _ => format!("#{name}"),
        };
        text += &format!(
            "\n[plugins.{name}]    # {} ({})\ncomponent = \"{image}{hash}\"\nsha256 = \"{sha256}\"\n",
            plugin.version,
            kinds(plugin).join(", "),
        );
        if insecure {
            text += "insecure = true\n";
        }
    }
    text
}

fn plugin_as_json(plugin: &Description) -> Value {
    json!({ "name": plugin.name, "version": plugin.version, "kinds": kinds(plugin) })
}

/// Returns the plugins of a component, as the sandbox finds them.
fn plugins(found: &ResolvedComponent) -> Result<Vec<Description>> {
    if let Some(text) = &found.note {
        note(text);
    }
    let component = engine()?.load(&found.bytes, &found.origin)?;
    Ok(component.plugins().to_vec())
}

/// Formats a size as `plugin inspect` does.
fn size(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

fn engine() -> Result<Engine> {
    Ok(Engine::new(EngineConfig {
        cache_dir: component_cache(),
        ..EngineConfig::default()
    })?)
}

fn sources(store: &StoreArgs, registry: Option<&RegistryArgs>) -> Result<Sources> {
    let mut config = match &store.store {
        // With an explicit folder, no home directory is needed.
        Some(folder) => SourcesConfig::at(folder),
        None => SourcesConfig::standard()?,
    };
    if let Some(file) = registry.and_then(|registry| registry.credentials.as_ref()) {
        if !file.is_file() {
            bail!("credentials file {} not found", file.display());
        }
        config.credentials = Some(file.clone());
    }
    Ok(Sources::new(config))
}
