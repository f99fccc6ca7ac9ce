//! Embeds what the manifest names. `OPILIO_COMPONENTS` names another folder of the same layout (from the workspace's
//! root, or absolute), such as `target/plugins/rebuilt` after `cargo xtask plugins --rebuild-check`.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

#[derive(Deserialize)]
struct Manifest {
    components: Vec<Entry>,
}

/// The needed parts of `xtask`'s entries.
#[derive(Deserialize)]
struct Entry {
    name: String,
    file: String,
    sha256: String,
    plugins: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let shelf = match env::var_os("OPILIO_COMPONENTS") {
        Some(other) => here.join("../..").join(other),
        None => here,
    };
    let path = shelf.join("manifest.json");
    let json = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let manifest: Manifest =
        serde_json::from_slice(&json).map_err(|error| format!("{}: {error}", path.display()))?;

    println!("cargo:rerun-if-env-changed=OPILIO_COMPONENTS");
    println!("cargo:rerun-if-changed={}", path.display());
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("components.rs"),
        table(&shelf, &manifest)?,
    )?;
    Ok(())
}

/// One `Component` per entry.
fn table(shelf: &Path, manifest: &Manifest) -> Result<String, Box<dyn Error>> {
    let mut table = String::from("static COMPONENTS: &[Component] = &[\n");
    for Entry {
        name,
        file,
        sha256,
        plugins,
    } in &manifest.components
    {
        let file = shelf.join(file);
        println!("cargo:rerun-if-changed={}", file.display());
        writeln!(
            table,
            "Component {{ name: {name:?}, bytes: include_bytes!({file:?}), sha256: {sha256:?}, plugins: &{plugins:?} }},"
        )?;
    }
    table.push_str("];\n");
    Ok(table)
}
