//! Packs the SDKs into the program: for each SDK a table of its files, and the contents of all files in one deflated blob.
//!
//! A packed SDK is complete. It holds the contract, which is in `wit/` of the checkout, and the licence. Its manifests name no file
//! outside its folder. Projects get this form, and registries too.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::DeflateEncoder;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Source code of the packages, as registries show it.
const REPOSITORY: &str = "https://github.com/opilio/opilio";

/// Folders in `sdk/`, and the files and folders that belong to the packed SDK.
const SDKS: [(&str, &[&str]); 5] = [
    ("c", &["README.md", "bindings", "include", "src", "testing"]),
    (
        "go",
        &[
            "README.md",
            "actions.go",
            "bindings",
            "component-type.wasm",
            "exports_wasip1.go",
            "go.mod",
            "host.go",
            "host_wasip1.go",
            "internal",
            "log.go",
            "native.go",
            "opiliotest",
            "plugin.go",
            "records.go",
            "settings.go",
        ],
    ),
    (
        "js",
        &[
            "README.md",
            "bin",
            "build",
            "package.json",
            "recipe.json",
            "src",
            "types/contract",
        ],
    ),
    (
        "python",
        &[
            "README.md",
            "opilio-plugin.py",
            "opilio_plugin",
            "pyproject.toml",
            "recipe.json",
        ],
    ),
    ("rust", &["Cargo.toml", "README.md", "src"]),
];

/// A file of a packed SDK.
struct Packed {
    path: String,
    content: Vec<u8>,
}

fn main() -> Outcome<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let contract = contract(&root)?;
    let version = version(&contract)?;
    let mut table =
        format!("const VERSION: &str = {version:?};\nstatic FILES: &[(&str, &str, usize)] = &[\n");
    let mut contents = Vec::new();
    for (sdk, parts) in SDKS {
        for Packed { path, content } in packed(&root, sdk, parts, &contract, &version)? {
            writeln!(table, "({sdk:?}, {path:?}, {}),", content.len())?;
            contents.extend(content);
        }
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("sdks.rs"), table)?;
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
    deflated.write_all(&contents)?;
    fs::write(out.join("sdks.deflate"), deflated.finish()?)?;
    Ok(())
}

/// The files of one SDK.
fn packed(
    root: &Path,
    sdk: &str,
    parts: &[&str],
    contract: &[Packed],
    version: &str,
) -> Outcome<Vec<Packed>> {
    let folder = root.join("sdk").join(sdk);
    let mut files = Vec::new();
    for part in parts {
        collect(&folder, part, &mut files)?;
    }
    for file in &mut files {
        let text =
            |file: &Packed| -> Outcome<String> { Ok(String::from_utf8(file.content.clone())?) };
        match (sdk, file.path.as_str()) {
            (_, "README.md") => {
                let files = format!("]({REPOSITORY}/blob/main/");
                file.content = text(file)?.replace("](../../", &files).into_bytes();
            }
            ("rust", "Cargo.toml") => {
                file.content = manifest(root, &text(file)?, version)?.into_bytes()
            }
            ("js", "package.json") => {
                let text = without_objects(&text(file)?, &["scripts", "devDependencies"])?;
                file.content = text.into_bytes();
            }
            ("rust", "src/bindings.rs") => {
                let text = text(file)?;
                let alone = text.replace("path: \"../../wit\"", "path: \"wit\"");
                if alone == text {
                    return Err("sdk/rust/src/bindings.rs does not name ../../wit".into());
                }
                file.content = alone.into_bytes();
            }
            _ => {}
        }
    }
    let of_contract = match sdk {
        "js" | "rust" => Some("wit"),
        // Only what belongs to the Python package is installed with it.
        "python" => Some("opilio_plugin/wit"),
        _ => None,
    };
    if let Some(place) = of_contract {
        files.extend(contract.iter().map(|file| Packed {
            path: format!("{place}/{}", file.path),
            content: file.content.clone(),
        }));
    }
    files.push(Packed {
        path: "LICENSE".to_owned(),
        content: read(&root.join("LICENSE"))?,
    });
    files.push(Packed {
        path: "VERSION".to_owned(),
        content: format!("{version}\n").into_bytes(),
    });
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// The files of the contract, published versions left out.
fn contract(root: &Path) -> Outcome<Vec<Packed>> {
    let mut files = Vec::new();
    collect(root, "wit", &mut files)?;
    files.retain(|file| !file.path["wit/".len()..].contains('/'));
    for file in &mut files {
        file.path = file.path.replace("wit/", "");
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Version of the SDKs: that of the contract.
fn version(contract: &[Packed]) -> Outcome<String> {
    let types = contract.iter().find(|file| file.path == "types.wit");
    let text = String::from_utf8(types.ok_or("wit/types.wit is missing")?.content.clone())?;
    let version = text.lines().find_map(|line| {
        line.strip_prefix("package opilio:plugin@")?
            .strip_suffix(';')
    });
    Ok(version.ok_or("wit/types.wit names no version")?.to_owned())
}

/// The manifest of the Rust SDK. Values that it inherits from the workspace are written out.
fn manifest(root: &Path, text: &str, version: &str) -> Outcome<String> {
    let workspace = String::from_utf8(read(&root.join("Cargo.toml"))?)?;
    let value = |key: &str| -> Outcome<&str> {
        let begin = format!("{key} = ");
        let found = workspace.lines().find_map(|line| line.strip_prefix(&begin));
        found.ok_or_else(|| format!("Cargo.toml has no {key}").into())
    };
    let mut manifest = String::new();
    for line in text.lines() {
        match line.strip_suffix(".workspace = true") {
            Some("version") => writeln!(manifest, "version = {version:?}")?,
            Some(key) => writeln!(manifest, "{key} = {}", value(key)?)?,
            // The workspace's lints are those of this repository.
            None if ["[lints]", "workspace = true"].contains(&line) => {}
            None => writeln!(manifest, "{line}")?,
        }
        if line.starts_with("description = ") {
            writeln!(
                manifest,
                "repository = {REPOSITORY:?}\nreadme = \"README.md\"\nkeywords = [\"crawler\", \"plugin\", \"wasm\", \"web-archive\"]\n\
                 categories = [\"wasm\", \"web-programming\"]"
            )?;
        }
    }
    Ok(manifest)
}

/// Removes objects from a package.json: those that serve work on the SDK itself. npm would install the tools into every project.
/// The last object of the file cannot be removed.
fn without_objects(text: &str, names: &[&str]) -> Outcome<String> {
    let mut rest = text.to_owned();
    for name in names {
        let begin = format!("\n  \"{name}\": {{\n");
        let (before, behind) = rest
            .split_once(&begin)
            .ok_or_else(|| format!("sdk/js/package.json has no {name}"))?;
        let (_, behind) = behind
            .split_once("\n  },\n")
            .ok_or_else(|| format!("{name} comes last in sdk/js/package.json"))?;
        rest = format!("{before}\n{behind}");
    }
    Ok(rest)
}

/// Reads a file, or all files of a folder that are not tests of the SDK itself.
fn collect(folder: &Path, part: &str, files: &mut Vec<Packed>) -> Outcome<()> {
    let path = folder.join(part);
    println!("cargo:rerun-if-changed={}", path.display());
    if !path.is_dir() {
        let content = read(&path)?;
        files.push(Packed {
            path: part.to_owned(),
            content,
        });
        return Ok(());
    }
    for entry in fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))? {
        let name = entry?.file_name();
        let name = name.to_str().ok_or("a file name that is not UTF-8")?;
        // `wit` is a link to the contract, which is added under the name that the packed SDK has for it.
        let is_left_out = name == "__pycache__" || name.ends_with("_test.go");
        if !is_left_out && (name != "wit" || part == "internal") {
            collect(folder, &format!("{part}/{name}"), files)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    println!("cargo:rerun-if-changed={}", path.display());
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
