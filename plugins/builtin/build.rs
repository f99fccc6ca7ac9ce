//! Embeds the components of the manifest. `OPILIO_COMPONENTS` sets another folder with the same layout, absolute or relative to
//! the workspace's root, such as `target/plugins/rebuilt` after `cargo xtask plugins --rebuild-check`.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

#[derive(Deserialize)]
struct Manifest {
    components: Vec<Entry>,
}

/// The fields of `xtask`'s entries that are used here.
#[derive(Deserialize)]
struct Entry {
    name: String,
    file: String,
    sha256: String,
    plugins: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let folder = match env::var_os("OPILIO_COMPONENTS") {
        Some(other) => package.join("../..").join(other),
        None => package,
    };
    let path = folder.join("manifest.json");
    let json = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let manifest: Manifest =
        serde_json::from_slice(&json).map_err(|error| format!("{}: {error}", path.display()))?;

    println!("cargo:rerun-if-env-changed=OPILIO_COMPONENTS");
    println!("cargo:rerun-if-changed={}", path.display());
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("components.rs"),
        table(&folder, &manifest)?,
    )?;
    Ok(())
}

/// Returns Rust code with one `Component` for each entry of the manifest.
fn table(folder: &Path, manifest: &Manifest) -> Result<String, Box<dyn Error>> {
    let mut table = String::from("static COMPONENTS: &[Component] = &[\n");
    for Entry {
        name,
        file,
        sha256,
        plugins,
    } in &manifest.components
    {
        let file = folder.join(file);
        println!("cargo:rerun-if-changed={}", file.display());
        writeln!(
            table,
            "Component {{ name: {name:?}, bytes: include_bytes!({file:?}), sha256: {sha256:?}, plugins: &{plugins:?} }},"
        )?;
    }
    table.push_str("];\n");
    Ok(table)
}
