//! Finds Chromium on this machine and reads its version, without opening a page.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::BrowserError;
use crate::settings::BrowserSettings;

/// Names of Chromium in `PATH`, in order of preference.
pub const EXECUTABLES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Oldest supported major version. The headless mode with the whole browser is complete since 112. The events of blocked windows
/// and downloads, which are needed to observe pages, were added later.
pub const CHROMIUM_MIN: u32 = 120;

/// Time limit of `--version`.
const VERSION_TIME_MAX: Duration = Duration::from_secs(20);

/// Maximum length of another program's output in an error.
const ANSWER_CHARS_MAX: usize = 300;

/// A Chromium that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserExecutable {
    /// Path of the executable.
    pub path: PathBuf,
    /// Version as reported by Chromium, such as `156.0.8078.108`.
    pub version: String,
    /// Major version.
    pub major: u32,
}

impl BrowserExecutable {
    /// Finds Chromium and checks its version.
    ///
    /// # Errors
    /// [`BrowserError::NotFound`], [`BrowserError::NotChromium`], [`BrowserError::TooOld`].
    pub async fn find(settings: &BrowserSettings) -> Result<Self, BrowserError> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let path = match &settings.executable {
            Some(path) => existing_file(path)?,
            None => search(std::env::split_paths(&folders))?,
        };
        // The path is made absolute, because browsers run in their profile folders.
        let path = std::path::absolute(&path).unwrap_or(path);
        let answer = read_version(&path).await?;
        let (version, major) = parse_version(&answer).ok_or_else(|| BrowserError::NotChromium {
            path: path.clone(),
            answer: answer.chars().take(ANSWER_CHARS_MAX).collect(),
        })?;
        if major < CHROMIUM_MIN {
            return Err(BrowserError::TooOld {
                path,
                version,
                version_min: CHROMIUM_MIN,
            });
        }
        Ok(BrowserExecutable {
            path,
            version,
            major,
        })
    }
}

/// Returns the path if the file exists. Chromium may be removed while it is in use.
pub(crate) fn existing_file(path: &Path) -> Result<PathBuf, BrowserError> {
    match path.is_file() {
        true => Ok(path.to_owned()),
        false => Err(BrowserError::NotFound {
            looked: format!("{} is not a file", path.display()),
        }),
    }
}

fn search(folders: impl Iterator<Item = PathBuf>) -> Result<PathBuf, BrowserError> {
    let folders: Vec<PathBuf> = folders.collect();
    let places = EXECUTABLES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = places.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| BrowserError::NotFound {
        looked: format!("none of {} in PATH", EXECUTABLES.join(", ")),
    })
}

async fn read_version(path: &Path) -> Result<String, BrowserError> {
    let mut command = tokio::process::Command::new(path);
    command
        .arg("--version")
        .stdin(std::process::Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    let not_chromium = |answer: String| BrowserError::NotChromium {
        path: path.to_owned(),
        answer,
    };
    let output = tokio::time::timeout(VERSION_TIME_MAX, command.output()).await;
    let output = output
        .map_err(|_| not_chromium(format!("no answer after {VERSION_TIME_MAX:?}")))?
        .map_err(|problem| not_chromium(problem.to_string()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last: String = stderr.trim().chars().take(ANSWER_CHARS_MAX).collect();
        return Err(not_chromium(format!("{}: {last}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Parses `Chromium 156.0.8078.108 built on Debian` and `Google Chrome 156.0.8078.108`.
fn parse_version(answer: &str) -> Option<(String, u32)> {
    if !answer.contains("Chrom") {
        return None;
    }
    let mut words = answer.split_whitespace();
    words.find_map(|word| {
        let (major, rest) = word.split_once('.')?;
        rest.starts_with(|letter: char| letter.is_ascii_digit())
            .then_some(())?;
        Some((word.to_owned(), major.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, major: Option<u32>) {
        assert_eq!(parse_version(answer).map(|(_, major)| major), major);
    }

    #[test]
    fn versions_of_chromium_are_read() {
        check(
            "Chromium 156.0.8078.108 built on Debian GNU/Linux 12 (bookworm)",
            Some(156),
        );
        check("Google Chrome 120.0.6099.71 ", Some(120));
        check("Mozilla Firefox 128.0", None);
        check("Chromium", None);
    }

    #[test]
    fn a_folder_without_chromium_is_named_in_the_error() {
        let error = search([PathBuf::from("/nonexistent")].into_iter());
        let text = error.map_err(|error| error.to_string());
        let text = text.expect_err("there is nothing");
        assert!(
            text.contains("chromium-browser") && text.contains("apt-get"),
            "{text}"
        );
    }
}
