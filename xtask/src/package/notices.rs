//! Licences and notices of the crates in the program, which most licences require to accompany binaries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::command::{cargo, output};

/// The crates whose dependencies are included: the command line, and the plugins in the embedded components.
fn is_shipped(package: &Package) -> bool {
    package.source.is_none()
        && (package.name == "opilio" || package.manifest_path.contains("/plugins/"))
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for a dependency of the program, `dev` or `build` for others.
    kind: Option<String>,
}

/// Returns one text with all notices. A text that several crates share appears once.
pub(super) fn third_party() -> Result<String> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked"]);
    metadata.args(["--filter-platform", &host()?]);
    let metadata: Metadata = serde_json::from_str(&output(&mut metadata)?)?;
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::from("Crates of other projects in opilio, and their licences.\n\n");
    for package in shipped(&metadata) {
        let name = format!("{} {}", package.name, package.version);
        let license = package.license.as_deref().unwrap_or("see its notice");
        writeln!(list, "{name}: {license}")?;
        let folder = Path::new(&package.manifest_path).parent();
        for text in notices(folder.context("a manifest's folder")?)? {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    ensure!(
        !by_text.is_empty(),
        "no notices found in the crates' sources"
    );
    for (text, names) in by_text {
        write!(
            list,
            "\n{}\n{}\n\n{text}\n",
            "=".repeat(80),
            names.join(", ")
        )?;
    }
    Ok(list)
}

/// The target of the binary: this machine.
fn host() -> Result<String> {
    let version = output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV has no line host")?.to_owned())
}

/// The third-party packages in the program, by name.
fn shipped(metadata: &Metadata) -> Vec<&Package> {
    let packages: BTreeMap<_, _> = metadata.packages.iter().map(|it| (&it.id, it)).collect();
    let nodes: BTreeMap<_, _> = metadata
        .resolve
        .nodes
        .iter()
        .map(|it| (&it.id, it))
        .collect();
    let own = metadata
        .packages
        .iter()
        .filter(|package| is_shipped(package));
    let mut next: Vec<&String> = own.map(|package| &package.id).collect();
    let mut known = BTreeSet::new();
    while let Some(id) = next.pop() {
        if known.insert(id)
            && let Some(node) = nodes.get(id)
        {
            let used = |dependency: &&Dependency| {
                dependency.dep_kinds.iter().any(|kind| kind.kind.is_none())
            };
            next.extend(
                node.deps
                    .iter()
                    .filter(used)
                    .map(|dependency| &dependency.pkg),
            );
        }
    }
    let mut shipped: Vec<&Package> = known
        .into_iter()
        .filter_map(|id| packages.get(id).copied())
        .filter(|package| package.source.is_some())
        .collect();
    shipped.sort_by_key(|package| (&package.name, &package.version));
    shipped
}

/// The licences, notices and copyrights in a crate's folder.
fn notices(folder: &Path) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_uppercase();
        let is_notice = ["LICEN", "NOTICE", "COPYING", "COPYRIGHT", "UNLICENSE"]
            .iter()
            .any(|beginning| name.starts_with(beginning));
        if is_notice && path.is_file() {
            texts.insert(String::from_utf8_lossy(&fs::read(path)?).trim().to_owned());
        }
    }
    Ok(texts)
}
