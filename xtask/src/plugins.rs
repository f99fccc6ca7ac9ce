//! `cargo xtask plugins`: builds the plugins in `plugins/` into components, updates the committed components in `plugins/builtin`
//! and their manifest, and lists stale ones.
//!
//! A component is stale if the hash of its sources differs from the manifest's (see `sources`). Only stale components are
//! rewritten, so that git does not store a copy for each toolchain. `--check` compares hashes and needs no Wasm toolchain.
//! `--rebuild-check` builds everything into `target/plugins/rebuilt`, in the layout of `plugins/builtin`.
//! `OPILIO_COMPONENTS=target/plugins/rebuilt cargo test` then runs all tests with the result.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use opilio_build::{Remap, TARGET, Toolchain, cargo, encode, plugin_names};
use serde::Deserialize;

use self::manifest::{Entry, Manifest};

mod manifest;
mod sources;

/// Options of `cargo xtask plugins`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Compare the committed components with their sources, and build nothing.
    #[arg(long, conflicts_with_all = ["rebuild_check", "force"])]
    check: bool,
    /// Build into target/plugins/rebuilt and do not change the committed components.
    #[arg(long)]
    rebuild_check: bool,
    /// Rewrite components even if their sources have not changed.
    #[arg(long, conflicts_with = "rebuild_check")]
    force: bool,
    /// Folders in plugins/ [default: all].
    names: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = root()?;
    let committed = root.join("plugins/builtin");
    let plugins = plugins(&root, &options.names)?;
    if options.check {
        check(&root, &committed, &plugins, options.names.is_empty())
    } else if options.rebuild_check {
        let rebuilt = root.join("target/plugins/rebuilt");
        build(&root, &rebuilt, &plugins, true)?;
        report(&format!(
            "test them with OPILIO_COMPONENTS={} cargo test",
            rebuilt.display()
        ));
        Ok(())
    } else {
        build(&root, &committed, &plugins, options.force)?;
        if options.names.is_empty() {
            drop_orphans(&committed, &plugins)?;
        }
        Ok(())
    }
}

/// A plugin crate: a workspace member in `plugins/` that builds a cdylib.
struct Plugin {
    /// Name of the folder, and of the component.
    name: String,
    package: String,
    folder: PathBuf,
    /// `package.metadata.opilio.opt-level`: `"s"`, or 3 if speed is worth the size.
    opt_level: Option<String>,
}

fn root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(xtask
        .parent()
        .context("xtask is not in a workspace")?
        .to_owned())
}

/// The plugin crates with these names, or all.
fn plugins(root: &Path, names: &[String]) -> Result<Vec<Plugin>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        manifest_path: PathBuf,
        targets: Vec<Target>,
        #[serde(default)]
        metadata: serde_json::Value,
    }
    #[derive(Deserialize)]
    struct Target {
        crate_types: Vec<String>,
    }

    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;

    let mut plugins = Vec::new();
    for package in metadata.packages {
        let folder = package
            .manifest_path
            .parent()
            .context("a manifest in no folder")?
            .to_owned();
        let is_plugin = folder.parent() == Some(&root.join("plugins"))
            && package
                .targets
                .iter()
                .any(|target| target.crate_types.iter().any(|kind| kind == "cdylib"));
        let Some(name) = folder
            .file_name()
            .and_then(|name| name.to_str())
            .filter(|_| is_plugin)
        else {
            continue;
        };
        let opt_level = match &package.metadata["opilio"]["opt-level"] {
            serde_json::Value::String(level) => Some(level.clone()),
            serde_json::Value::Number(level) => Some(level.to_string()),
            _ => None,
        };
        plugins.push(Plugin {
            name: name.to_owned(),
            package: package.name,
            folder,
            opt_level,
        });
    }
    plugins.sort_by(|one, other| one.name.cmp(&other.name));
    if !names.is_empty() {
        for name in names {
            ensure!(
                plugins.iter().any(|plugin| plugin.name == *name),
                "plugins/{name} is not a plugin crate (one with crate-type cdylib)"
            );
        }
        plugins.retain(|plugin| names.contains(&plugin.name));
    }
    Ok(plugins)
}

/// Lists stale components, and the command that updates them.
fn check(root: &Path, component_folder: &Path, plugins: &[Plugin], all: bool) -> Result<()> {
    let manifest = Manifest::read(component_folder)?;
    let mut stale: BTreeMap<&str, String> = BTreeMap::new();
    for plugin in plugins {
        let fault = match manifest.find(&plugin.name) {
            None => Some("has never been built".to_owned()),
            Some(entry) if entry.sources_sha256 != sources::sha256(root, &plugin.folder)? => {
                Some("is older than its sources, the SDK or wit/".to_owned())
            }
            Some(entry) => entry.fault(component_folder),
        };
        if let Some(fault) = fault {
            stale.insert(&plugin.name, fault);
        }
    }
    for entry in manifest.components.iter().filter(|_| all) {
        if !plugins.iter().any(|plugin| plugin.name == entry.name) {
            stale.insert(&entry.name, "has no crate any more".to_owned());
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    for (name, fault) in &stale {
        report(&format!("component {name} {fault}"));
    }
    let names: String = stale
        .keys()
        .filter(|_| !all)
        .map(|name| format!(" {name}"))
        .collect();
    bail!("build them with: cargo xtask plugins{names}")
}

/// Builds stale components, or all if `force`, into `component_folder`.
fn build(root: &Path, component_folder: &Path, plugins: &[Plugin], force: bool) -> Result<()> {
    let mut manifest = Manifest::read(component_folder)?;
    let mut toolchain = None;
    fs::create_dir_all(component_folder.join(manifest::COMPONENTS))?;
    for plugin in plugins {
        let sources_sha256 = sources::sha256(root, &plugin.folder)?;
        let current = manifest.find(&plugin.name).is_some_and(|entry| {
            entry.sources_sha256 == sources_sha256 && entry.fault(component_folder).is_none()
        });
        if current && !force {
            continue;
        }
        let toolchain = match &toolchain {
            Some(toolchain) => toolchain,
            None => toolchain.insert(Toolchain::detect()?),
        };
        let module = build_module(root, toolchain, plugin)?;
        let component = encode(&module)
            .with_context(|| format!("making a component of plugins/{}", plugin.name))?;
        let entry = Entry::write(
            component_folder,
            &plugin.name,
            &component,
            plugin_names(&module)?,
            sources_sha256,
            toolchain.to_string(),
        )?;
        report(&format!(
            "{}: {} KB, with {}",
            entry.file,
            component.len().div_ceil(1024),
            entry.plugins.join(", ")
        ));
        manifest.put(entry);
        // Written after each component, so that a later failure does not make this one stale.
        manifest.write(component_folder)?;
    }
    Ok(())
}

/// Compiles a plugin to a core module.
fn build_module(root: &Path, toolchain: &Toolchain, plugin: &Plugin) -> Result<Vec<u8>> {
    let target = root.join("target/plugins");
    let mut command = cargo();
    command.current_dir(root).args([
        "build",
        "--lib",
        "--profile",
        "plugin",
        "--target",
        TARGET,
        "--package",
        &plugin.package,
    ]);
    command.arg("--target-dir").arg(&target);
    let here = Remap {
        from: root.to_owned(),
        to: "opilio".to_owned(),
    };
    toolchain.prepare(&mut command, &[here]);
    if let Some(level) = &plugin.opt_level {
        command.env("CARGO_PROFILE_PLUGIN_OPT_LEVEL", level);
    }
    let status = command.status().context("cargo build")?;
    ensure!(
        status.success(),
        "plugins/{} does not build for {}",
        plugin.name,
        TARGET
    );
    let file = target
        .join(TARGET)
        .join("plugin")
        .join(plugin.package.replace('-', "_"))
        .with_extension("wasm");
    fs::read(&file).with_context(|| format!("reading {}", file.display()))
}

/// Removes components whose crate does not exist any more.
fn drop_orphans(component_folder: &Path, plugins: &[Plugin]) -> Result<()> {
    let mut manifest = Manifest::read(component_folder)?;
    let (kept, orphans): (Vec<_>, Vec<_>) = manifest
        .components
        .into_iter()
        .partition(|entry| plugins.iter().any(|plugin| plugin.name == entry.name));
    manifest.components = kept;
    for orphan in &orphans {
        report(&format!(
            "{}: removed, its crate does not exist any more",
            orphan.file
        ));
        fs::remove_file(component_folder.join(&orphan.file))?;
    }
    if orphans.is_empty() {
        Ok(())
    } else {
        manifest.write(component_folder)
    }
}

#[expect(clippy::print_stdout, reason = "a command's answer")]
fn report(line: &str) {
    println!("{line}");
}
