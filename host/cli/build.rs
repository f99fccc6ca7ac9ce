//! Embeds the templates of new plugins: those of each SDK (`sdk/LANGUAGE/templates`), and those of all languages
//! (`sdk/templates`). Template files have the extension `.txt`, so that tools do not take them for source files. The extension is
//! removed from the embedded paths.

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
            // Paths of templates have slashes on every system.
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
