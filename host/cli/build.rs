//! Embeds the templates of new plugins: every SDK holds its own, in `templates`. Those in `sdk/templates` are for all languages.
//! A file ends in `.txt`, which is left off, so that no tool takes a template for the thing.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Languages, and where their templates are in `sdk/`.
const LANGUAGES: [(&str, &str); 7] = [
    ("c", "c/templates"),
    ("cpp", "c/templates-cpp"),
    ("go", "go/templates"),
    ("js", "js/templates"),
    ("python", "python/templates"),
    ("rust", "rust/templates"),
    ("ts", "js/templates-typescript"),
];

/// Templates for all languages.
const COMMON: &str = "templates";

fn main() -> Result<(), Box<dyn Error>> {
    let sdk = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../sdk");
    let mut table = String::from("static FILES: &[(&str, &str, &str)] = &[\n");
    let common = LANGUAGES.map(|(language, _)| (language, COMMON));
    for (language, folder) in LANGUAGES.into_iter().chain(common) {
        let folder = sdk.join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, &mut files)?;
        files.sort();
        for file in files {
            let path = file.strip_prefix(&folder)?.with_extension("");
            // Templates are named the same on every system.
            let path = path
                .to_str()
                .ok_or("a name that is not text")?
                .replace('\\', "/");
            writeln!(table, "({language:?}, {path:?}, include_str!({file:?})),")?;
        }
    }
    table.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("templates.rs"), table)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "txt") {
            files.push(path);
        }
    }
    Ok(())
}
