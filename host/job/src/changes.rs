//! The settings of a job: the profiles that its profile extended when the job was made, and the changes since.
//!
//! ```text
//! JOB/layers.json          the profiles that the job's profile extends, as they were when the job was made
//! JOB/profile.toml         the profile as it was then
//! JOB/changes/000001.toml  changes since, one file for each, applied in their order
//! JOB/changes/overrides.json  live overrides, see `overrides.rs`
//! ```
//! Together these files are the job's profile.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opilio_profile::Layer;

use crate::text_file::write_text;

/// The file of the profiles that the job's profile extends.
pub const LAYERS: &str = "layers.json";
/// The folder of changes.
pub const CHANGES: &str = "changes";

/// Seeds added after the job was made, in lines as in `seeds.txt`. That file does not change.
pub const ADDED_SEEDS: &str = "added-seeds.txt";

/// Seeds that the operator has removed, one a line. They count as removed even if the profile names them.
pub const REMOVED_SEEDS: &str = "removed-seeds.txt";

/// SURT prefixes of the targets of redirected seeds, one a line, each followed by ` # ` and the seed.
pub const REDIRECTED_SEEDS: &str = "redirected-seeds.txt";

/// File with the position in the command log of a shared crawl up to which this directory has carried out the commands.
pub const SHARED_COMMANDS: &str = "cluster-commands.json";

/// Reads the profiles that the profile of the job extends.
pub fn layers(job: &Path) -> io::Result<Vec<Layer>> {
    match fs::read(job.join(LAYERS)) {
        Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}

/// Writes the profiles that the profile of a new job extends.
pub fn keep_layers(job: &Path, layers: &[Layer]) -> io::Result<()> {
    if layers.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(layers)?;
    write_text(&job.join(LAYERS), format!("{text}\n"))
}

/// Reads the changes of the job, in the order applied. `base` is the folder against which their paths are resolved.
pub fn changes(job: &Path, base: &Path) -> io::Result<Vec<Layer>> {
    let mut files = Vec::new();
    match fs::read_dir(job.join(CHANGES)) {
        Ok(entries) => {
            for entry in entries {
                let path = entry?.path();
                if path
                    .extension()
                    .is_some_and(|extension| extension == "toml")
                {
                    files.push(path);
                }
            }
        }
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
        Err(problem) => return Err(problem),
    }
    // The file names sort by number, because the numbers have leading zeros.
    files.sort();
    let layer = |path: PathBuf| {
        let text = fs::read_to_string(&path)?;
        Ok(Layer {
            file: path.display().to_string(),
            text,
            base: base.to_owned(),
            files: BTreeMap::new(),
        })
    };
    files.into_iter().map(layer).collect()
}

/// Writes a change of settings to disk. It applies to every later start, even if this process dies.
pub fn keep_change(job: &Path, number: u64, text: &str) -> io::Result<()> {
    let folder = job.join(CHANGES);
    fs::create_dir_all(&folder)?;
    write_text(&folder.join(format!("{number:06}.toml")), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_in_the_order_written() {
        let job = tempfile::tempdir().unwrap();
        assert!(changes(job.path(), Path::new("")).unwrap().is_empty());
        for number in [2, 10, 9] {
            keep_change(job.path(), number, &format!("workers = {number}\n")).unwrap();
        }
        let layers = changes(job.path(), Path::new("/base")).unwrap();
        let texts: Vec<&str> = layers.iter().map(|layer| layer.text.trim()).collect();
        assert_eq!(texts, ["workers = 2", "workers = 9", "workers = 10"]);
        assert_eq!(layers[0].base, Path::new("/base"));
    }
}
