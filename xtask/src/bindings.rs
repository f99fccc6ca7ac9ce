//! `cargo xtask bindings`: generates the parts of the SDKs of C and Go that follow from the contract: bindings, the component type
//! section of the module, and the adapter for WASI preview 1. The files are committed, so that plugin authors need no generator. CI
//! runs `--check` to find outdated ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_component::{StringEncoding, embed_component_metadata};

use crate::repository;

/// The world of a component that exports all kinds, and the world of the WASI adapter. Both are in `sdk/plugin.wit`.
const PLUGIN: &str = "plugin";
const QUIET_WASI: &str = "quiet-wasi";

/// Folder of the generated files.
const C: &str = "sdk/c/bindings";
const GO: &str = "sdk/go/bindings";
const GO_TYPE: &str = "sdk/go/component-type.wasm";
const ADAPTER_SOURCE: &str = "host/build/wasi/quiet.wat";
const ADAPTER: &str = "host/build/wasi/quiet.wasm";

/// Generated Go bindings depend on packages that would have to be downloaded and linked past Go's checks. The SDK has its own.
const OURS: [(&str, &str); 2] = [
    (
        "go.bytecodealliance.org/pkg/wit/runtime",
        "github.com/opilio/opilio/sdk/go/internal/wit",
    ),
    (
        "go.bytecodealliance.org/pkg/wit/types",
        "github.com/opilio/opilio/sdk/go/internal/wit",
    ),
];

/// Options of `cargo xtask bindings`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail if a file is outdated, and write nothing.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = repository::root();
    let mut wanted = BTreeMap::new();
    c(&root, &mut wanted)?;
    go(&root, &mut wanted)?;
    adapter(&root, &mut wanted)?;
    let stale: Vec<&str> = wanted
        .iter()
        .filter(|(file, content)| fs::read(root.join(file)).ok().as_ref() != Some(content))
        .map(|(file, _)| file.as_str())
        .collect();
    if options.check && !stale.is_empty() {
        bail!("outdated: {}; run `cargo xtask bindings`", stale.join(", "));
    }
    for file in stale {
        let path = root.join(file);
        fs::create_dir_all(path.parent().context("a file in no folder")?)?;
        fs::write(&path, &wanted[file]).with_context(|| format!("writing {file}"))?;
    }
    Ok(())
}

/// The contract and the SDK's worlds.
fn worlds(root: &Path) -> Result<(wit_parser::Resolve, wit_parser::PackageId)> {
    let mut resolve = wit_parser::Resolve::default();
    resolve.push_dir(root.join("wit"))?;
    let package = resolve.push_file(root.join("sdk/plugin.wit"))?;
    Ok((resolve, package))
}

fn c(root: &Path, wanted: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    let mut generator = wit_bindgen_c::Opts::default().build();
    generate(root, &mut *generator, C, wanted)
}

fn go(root: &Path, wanted: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    let mut generator = wit_bindgen_go::Opts {
        pkg_name: Some("github.com/opilio/opilio/sdk/go/bindings".to_owned()),
        ..wit_bindgen_go::Opts::default()
    }
    .build();
    generate(root, &mut *generator, GO, wanted)?;
    // Go adds no custom sections to a module, so `plugin build` adds this module's section.
    let (resolve, package) = worlds(root)?;
    let world = resolve.select_world(&[package], Some(PLUGIN))?;
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    wanted.insert(GO_TYPE.to_owned(), module);
    Ok(())
}

fn adapter(root: &Path, wanted: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    let (resolve, package) = worlds(root)?;
    let world = resolve.select_world(&[package], Some(QUIET_WASI))?;
    let mut module = wat::parse_file(root.join(ADAPTER_SOURCE))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    wanted.insert(ADAPTER.to_owned(), module);
    Ok(())
}

/// The generators use a parser of their own.
fn generate(
    root: &Path,
    generator: &mut dyn WorldGenerator,
    folder: &str,
    wanted: &mut BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    let mut resolve = wit_bindgen_core::wit_parser::Resolve::default();
    resolve.push_dir(root.join("wit"))?;
    let package = resolve.push_file(root.join("sdk/plugin.wit"))?;
    let world = resolve.select_world(&[package], Some(PLUGIN))?;
    let mut files = Files::default();
    generator
        .generate(&mut resolve, world, &mut files)
        .map_err(|problem| anyhow!("{folder}: {problem:#}"))?;
    for (name, content) in files.iter() {
        let content = match String::from_utf8(content.to_vec()) {
            Ok(text) => OURS
                .iter()
                .fold(text, |text, (theirs, ours)| text.replace(theirs, ours))
                .into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        wanted.insert(format!("{folder}/{name}"), content);
    }
    Ok(())
}
