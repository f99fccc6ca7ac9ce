//! `cargo xtask contract`: checks the plugin contract. Components of other authors are compiled against `wit/`. So a published
//! version must not change, and a new version must not break them if its version number promises compatibility.
//!
//! `wit/published/VERSION/` holds each published version, `wit/published/SHA256SUMS` the digests of its files (as `sha256sum`
//! writes them). The command checks that
//! - no published file was changed, added or removed,
//! - `wit/` is a valid contract, and is later than every published version or identical to the published one of its version,
//! - a component made for the last published version of the same track (`0.2`, `1`) runs with `wit/`. The check compares world by
//!   world, with the standard tools for WIT.
//!
//! `--publish` copies `wit/` to the published versions if all this is true.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use semver::Version;
use sha2::{Digest, Sha256};
use wit_component::semver_check;
use wit_parser::{PackageId, Resolve};

use crate::repository;

/// The folder of published versions in `wit/`, and the list of digests in it.
const PUBLISHED: &str = "published";
const DIGESTS: &str = "SHA256SUMS";

/// Options of `cargo xtask contract`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Copy wit/ to wit/published under its version. This cannot be undone.
    #[arg(long)]
    publish: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let wit = repository::root().join("wit");
    let verdict = if options.publish {
        publish(&wit)?
    } else {
        check(&wit)?.to_string()
    };
    report(&verdict);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the command's answer")]
fn report(text: &str) {
    println!("{text}");
}

/// A contract that passed the check.
#[derive(Debug, PartialEq)]
struct CheckedContract {
    version: Version,
    state: VersionState,
}

#[derive(Debug, PartialEq)]
enum VersionState {
    /// The contract is identical to the published one of its version.
    Published,
    /// The contract may follow this version, because its components run with it.
    Follows(Version),
    /// No version of this track has been published, so the contract may still change in any way.
    FirstOfItsTrack,
}

impl std::fmt::Display for CheckedContract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "contract {}: ", self.version)?;
        match &self.state {
            VersionState::Published => f.write_str("as published"),
            VersionState::Follows(last) => {
                write!(f, "not yet published; components for {last} run with it")
            }
            VersionState::FirstOfItsTrack => write!(
                f,
                "not yet published, and nothing of {} is, so it may still change in any way",
                track(&self.version)
            ),
        }
    }
}

/// Compares the contract in this folder with its published versions.
fn check(wit: &Path) -> Result<CheckedContract> {
    let published = check_published(wit)?;
    let (mut resolve, current) = parse(wit)?;
    let version = version(&resolve, current, wit)?;

    if published.contains_key(&version) {
        let frozen = wit.join(PUBLISHED).join(version.to_string());
        ensure!(
            files(wit)? == files(&frozen)?,
            "wit/ differs from contract {version}, which is published and frozen: raise the version in wit/*.wit, to \
             {} if components for {version} run with it unchanged, else to {}",
            next_compatible(&version),
            next_track(&version)
        );
        return Ok(CheckedContract {
            version,
            state: VersionState::Published,
        });
    }
    if let Some(latest) = published.keys().next_back() {
        ensure!(
            version > *latest,
            "wit/ has version {version}, but {latest} is published already: raise it in wit/*.wit"
        );
    }
    let before = published
        .iter()
        .rev()
        .find(|(published, _)| track(published) == track(&version));
    let Some((last, folder)) = before else {
        return Ok(CheckedContract {
            version,
            state: VersionState::FirstOfItsTrack,
        });
    };
    let (last_package, _) = resolve.push_dir(folder)?;
    for (name, world) in resolve.packages[last_package].worlds.clone() {
        let what_to_do = || {
            format!(
                "world `{name}`: a component for contract {last} does not run with wit/ as it is, although {version} \
                 promises that it does: take the change back (functions may be added to what plugins import; records, \
                 variants, enums and what plugins export stay as they are), or raise the version in wit/*.wit to {}",
                next_track(&version)
            )
        };
        let Some(new) = resolve.packages[current].worlds.get(&name) else {
            bail!("{}: the world is missing", what_to_do());
        };
        semver_check(resolve.clone(), world, *new).with_context(what_to_do)?;
    }
    Ok(CheckedContract {
        version,
        state: VersionState::Follows(last.clone()),
    })
}

/// Copies the contract to the published versions.
fn publish(wit: &Path) -> Result<String> {
    let CheckedContract { version, state } = check(wit)?;
    ensure!(
        state != VersionState::Published,
        "contract {version} is published already"
    );
    let folder = wit.join(PUBLISHED).join(version.to_string());
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, content) in files(wit)? {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let list = wit.join(PUBLISHED).join(DIGESTS);
    let mut digests = String::new();
    for (path, digest) in digests_of_published(wit)? {
        // Writing to a string cannot fail.
        let _ = writeln!(digests, "{digest}  {path}");
    }
    fs::write(&list, digests).with_context(|| format!("cannot write {}", list.display()))?;
    Ok(format!(
        "contract {version} is published in {}: commit it, and it stays as it is",
        folder.display()
    ))
}

/// The published versions and their folders. Fails if a file differs from the list of digests.
fn check_published(wit: &Path) -> Result<BTreeMap<Version, PathBuf>> {
    let list = wit.join(PUBLISHED).join(DIGESTS);
    let text =
        fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let listed: BTreeMap<String, String> = text
        .lines()
        .map(|line| {
            let (digest, path) = line.split_once("  ").with_context(|| {
                format!("{}: `{line}` is not a line of sha256sum", list.display())
            })?;
            Ok((path.to_owned(), digest.to_owned()))
        })
        .collect::<Result<_>>()?;
    let found = digests_of_published(wit)?;
    for (path, digest) in &found {
        match listed.get(path) {
            Some(listed) => ensure!(
                listed == digest,
                "wit/published/{path} was changed after its publication: take the change back, and make it in wit/ \
                 under a new version"
            ),
            None => bail!(
                "wit/published/{path} is not in wit/published/{DIGESTS}: versions are published by \
                 `cargo xtask contract --publish` alone"
            ),
        }
    }
    if let Some(gone) = listed.keys().find(|path| !found.contains_key(*path)) {
        bail!(
            "wit/published/{gone} is missing: restore it, because components built for it are in use"
        );
    }
    let mut published = BTreeMap::new();
    for path in found.keys() {
        if let Some((folder, _)) = path.split_once('/') {
            let version = folder
                .parse()
                .with_context(|| format!("wit/published/{folder} is named after no version"))?;
            published.insert(version, wit.join(PUBLISHED).join(folder));
        }
    }
    for (named, folder) in &published {
        let (resolve, package) = parse(folder)?;
        let version = version(&resolve, package, folder)?;
        ensure!(
            version == *named,
            "{} holds contract {version}: a folder of wit/published is named after the version that it holds",
            folder.display()
        );
    }
    Ok(published)
}

/// Paths below `wit/published`, with forward slashes, and the digests of their files.
fn digests_of_published(wit: &Path) -> Result<BTreeMap<String, String>> {
    let published = wit.join(PUBLISHED);
    let mut digests = BTreeMap::new();
    for version in
        fs::read_dir(&published).with_context(|| format!("cannot read {}", published.display()))?
    {
        let version = version?;
        if !version.file_type()?.is_dir() {
            continue;
        }
        for (name, content) in files(&version.path())? {
            let digest = Sha256::digest(&content);
            let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            digests.insert(
                format!("{}/{name}", version.file_name().to_string_lossy()),
                digest,
            );
        }
    }
    Ok(digests)
}

/// The files of a folder by name, without subfolders.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let content = fs::read(entry.path())
                .with_context(|| format!("cannot read {}", entry.path().display()))?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), content);
        }
    }
    Ok(files)
}

fn parse(folder: &Path) -> Result<(Resolve, PackageId)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder)?;
    Ok((resolve, package))
}

fn version(resolve: &Resolve, package: PackageId, folder: &Path) -> Result<Version> {
    let name = &resolve.packages[package].name;
    name.version
        .clone()
        .with_context(|| format!("{}: package {name} has no version", folder.display()))
}

/// The compatible part of a semantic version: `0.2` of 0.2.7, `1` of 1.2.3. For a pre-release it is the whole version.
fn track(version: &Version) -> String {
    match version {
        _ if !version.pre.is_empty() => version.to_string(),
        Version {
            major: 0, minor, ..
        } => format!("0.{minor}"),
        Version { major, .. } => major.to_string(),
    }
}

fn next_compatible(version: &Version) -> Version {
    match version.major {
        0 => Version::new(0, version.minor, version.patch + 1),
        major => Version::new(major, version.minor + 1, 0),
    }
}

fn next_track(version: &Version) -> Version {
    match version.major {
        0 => Version::new(0, version.minor + 1, 0),
        major => Version::new(major + 1, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: &str = "package opilio:plugin@0.2.0;
        interface documents {
            resource document { uri: func() -> string; }
            enum state { new, changed }
            record header { name: string, value: string }
            variant hop { link, embed, other(string) }
            status: func() -> state;
            how: func() -> hop;
        }
        interface filter {
            use documents.{document, header};
            judge: func(document: borrow<document>, headers: list<header>) -> bool;
        }
        world filter-plugin { import documents; export filter; }
        ";

    /// A folder with contract 0.2.0 published, whose current contract is 0.2.1 with one text replaced.
    fn changed(from: &str, to: &str) -> tempfile::TempDir {
        let folder = published();
        assert!(CONTRACT.contains(from), "{from}");
        write(
            &folder,
            &CONTRACT.replace("0.2.0", "0.2.1").replace(from, to),
        );
        folder
    }

    fn published() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(PUBLISHED)).unwrap();
        fs::write(folder.path().join(PUBLISHED).join(DIGESTS), "").unwrap();
        write(&folder, CONTRACT);
        publish(folder.path()).unwrap();
        folder
    }

    fn write(folder: &tempfile::TempDir, contract: &str) {
        fs::write(folder.path().join("plugin.wit"), contract).unwrap();
    }

    #[track_caller]
    fn check_follows(from: &str, to: &str) {
        let folder = changed(from, to);
        let passed = check(folder.path()).unwrap();
        assert_eq!(passed.state, VersionState::Follows(Version::new(0, 2, 0)));
    }

    #[track_caller]
    fn check_refused(folder: &tempfile::TempDir, expected: &str) {
        let refused = format!("{:#}", check(folder.path()).unwrap_err());
        assert!(refused.contains(expected), "{refused}");
    }

    #[track_caller]
    fn check_breaks(from: &str, to: &str) {
        check_refused(
            &changed(from, to),
            "raise the version in wit/*.wit to 0.3.0",
        );
    }

    #[test]
    fn publishing_freezes_a_first_contract() {
        let folder = published();
        let passed = check(folder.path()).unwrap();
        assert_eq!(passed.to_string(), "contract 0.2.0: as published");
        let error = publish(folder.path()).unwrap_err().to_string();
        assert_eq!(error, "contract 0.2.0 is published already");
    }

    #[test]
    fn functions_may_be_added_to_imports() {
        check_follows(
            "uri: func() -> string;",
            "uri: func() -> string; base: func() -> string;",
        );
        check_follows(
            "how: func() -> hop;",
            "how: func() -> hop; via: func() -> string;",
        );
        check_follows(
            "world filter-plugin {",
            "interface tables { size: func() -> u64; } world filter-plugin { import tables;",
        );
        check_follows(
            "world filter-plugin {",
            "world more { import documents; } world filter-plugin {",
        );
        check_follows(
            "interface filter {",
            "/// Says yes or no.\n interface filter {",
        );
    }

    #[test]
    fn changes_that_break_compiled_plugins_are_refused() {
        check_breaks("new, changed", "new, changed, unknown");
        check_breaks("new, changed", "new");
        check_breaks("link, embed,", "link, embed, redirect,");
        check_breaks("value: string", "value: string, received: u64");
        check_breaks("value: string", "value: option<string>");
        check_breaks("uri: func() -> string;", "");
        check_breaks(
            "uri: func() -> string;",
            "uri: func(canonical: bool) -> string;",
        );
        check_breaks("-> bool;", "-> bool; explain: func() -> string;");
        check_breaks("-> bool;", "-> option<bool>;");
        check_breaks(
            "world filter-plugin {",
            "interface setup { describe: func() -> string; } world filter-plugin { export setup;",
        );
        check_breaks("filter-plugin", "filters");
    }

    #[test]
    fn a_new_track_may_break_compiled_plugins() {
        let folder = published();
        write(
            &folder,
            &CONTRACT
                .replace("0.2.0", "0.3.0")
                .replace("new, changed", "new"),
        );
        let passed = check(folder.path()).unwrap();
        assert_eq!(passed.state, VersionState::FirstOfItsTrack);
        publish(folder.path()).unwrap();
        assert_eq!(check(folder.path()).unwrap().state, VersionState::Published);
    }

    #[test]
    fn versions_must_increase() {
        let folder = published();
        write(&folder, &CONTRACT.replace("0.2.0", "0.1.9"));
        check_refused(&folder, "0.2.0 is published already: raise it");
        write(&folder, &format!("{CONTRACT} // more"));
        check_refused(
            &folder,
            "to 0.2.1 if components for 0.2.0 run with it unchanged, else to 0.3.0",
        );
    }

    #[test]
    fn published_files_must_not_change() {
        let file = |folder: &tempfile::TempDir| folder.path().join("published/0.2.0/plugin.wit");
        let folder = published();
        fs::write(file(&folder), format!("{CONTRACT}\n")).unwrap();
        check_refused(
            &folder,
            "wit/published/0.2.0/plugin.wit was changed after its publication",
        );
        fs::remove_file(file(&folder)).unwrap();
        check_refused(&folder, "wit/published/0.2.0/plugin.wit is missing");
        let folder = published();
        fs::write(
            file(&folder).with_file_name("more.wit"),
            "interface more {}",
        )
        .unwrap();
        check_refused(
            &folder,
            "wit/published/0.2.0/more.wit is not in wit/published/SHA256SUMS",
        );
    }

    #[test]
    fn the_contract_of_this_repository_passes() {
        let wit = repository::root().join("wit");
        let passed = check(&wit).map(drop).map_err(|error| format!("{error:#}"));
        assert!(passed.is_ok(), "{passed:?}");
        // After any publication, an additional import function is compatible, but an additional case is not.
        let folder = tempfile::tempdir().unwrap();
        let copy = |name: &str, edit: &dyn Fn(&str) -> String| {
            let content = fs::read_to_string(wit.join(name)).unwrap();
            fs::write(folder.path().join(name), edit(&content)).unwrap();
        };
        let names: Vec<_> = files(&wit).unwrap().into_keys().collect();
        fs::create_dir(folder.path().join(PUBLISHED)).unwrap();
        fs::write(folder.path().join(PUBLISHED).join(DIGESTS), "").unwrap();
        for name in &names {
            copy(name, &str::to_owned);
        }
        publish(folder.path()).unwrap();
        let version = check(folder.path()).unwrap().version;
        let raise = |file: &str| {
            file.replace(
                &format!("@{version};"),
                &format!("@{};", next_compatible(&version)),
            )
        };
        for name in &names {
            copy(name, &|file| {
                raise(file).replace("interface log {", "interface log { flush: func();")
            });
        }
        let passed = check(folder.path()).unwrap();
        assert_eq!(passed.state, VersionState::Follows(version.clone()));
        for name in &names {
            copy(name, &|file| {
                raise(file).replace("enum content-state {", "enum content-state { gone,")
            });
        }
        let refused = check(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("take the change back"), "{refused}");
    }

    #[test]
    fn tracks_follow_semantic_versions() {
        #[track_caller]
        fn check(version: &str, expected: &str) {
            assert_eq!(track(&version.parse().unwrap()), expected);
        }
        check("0.2.7", "0.2");
        check("1.2.3", "1");
        check("1.0.0-rc.1", "1.0.0-rc.1");
    }
}
