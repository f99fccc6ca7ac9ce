//! A recording: a call that was made, in one file, with its arguments, settings, limits and outcome. With the file and a version
//! of the plugin, the call can be repeated without the crawl, its pages or its tables.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::answer::{CallResult, Difference};
use super::call::Call;
use super::perform::Refused;
use super::problem::{CallProblem, tables};
use super::{Case, is_empty_object, no_settings};
use crate::{
    Component, ConfigureError, Fault, FaultKind, Limits, LogLevel, Plugin, PluginConfig, TableFacts,
};

/// Longest part of a URI in the name of a file, in bytes.
const SUBJECT_BYTES_MAX: usize = 60;

/// One recorded call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Recording {
    /// Format mark at the head of each file, which identifies the file without its name.
    format: Format,
    /// Time of the call.
    pub at: Timestamp,
    /// The URI or queue that the call was about, for readers; `None` for reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The plugin's name in its component.
    pub plugin: String,
    /// The name that the profile gave it.
    pub instance: String,
    /// The plugin's version.
    pub version: String,
    /// Origin of its component.
    pub component: String,
    /// The digest of its component.
    pub component_sha256: String,
    /// The contract of the component.
    pub contract: String,
    /// The version of Opilio.
    pub opilio: String,
    /// Settings, with defaults filled in.
    #[serde(default = "no_settings", skip_serializing_if = "is_empty_object")]
    pub settings: Value,
    /// The limits of the call.
    pub limits: LimitsWritten,
    /// Rows of the host's tables that it looked up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, TableFacts>,
    /// The call.
    pub call: Call,
    /// The outcome of the call.
    pub outcome: CallOutcome,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Format {
    #[serde(rename = "opilio-recording-1")]
    One,
}

/// The outcome of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallOutcome {
    /// An answer.
    Answer(CallResult),
    /// A plugin error.
    Fault(FaultWritten),
}

/// A plugin error, in the form of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FaultWritten {
    /// The kind of the error.
    pub kind: FaultKind,
    /// The message.
    pub message: String,
    /// The guest's frames, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// Its log lines: level, colon, message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

impl From<&Fault> for FaultWritten {
    fn from(fault: &Fault) -> Self {
        let log = fault.log.iter();
        Self {
            kind: fault.kind,
            message: fault.message.clone(),
            backtrace: fault.backtrace.to_vec(),
            log: log
                .map(|line| format!("{}: {}", level(line.level), line.message))
                .collect(),
        }
    }
}

impl fmt::Display for FaultWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// Limits that influence the outcome of a call, in bytes and milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitsWritten {
    memory: u64,
    time: u64,
    output: usize,
    links: usize,
    fragments: usize,
    fingerprint: usize,
    observer_memory: usize,
    files: usize,
}

impl From<&Limits> for LimitsWritten {
    fn from(limits: &Limits) -> Self {
        Self {
            memory: limits.memory,
            time: u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX),
            output: limits.output_bytes,
            links: limits.links,
            fragments: limits.fragments,
            fingerprint: limits.fingerprint_bytes,
            observer_memory: limits.observer_memory_bytes,
            files: limits.files,
        }
    }
}

impl From<&LimitsWritten> for Limits {
    fn from(written: &LimitsWritten) -> Self {
        Self {
            memory: written.memory,
            time: std::time::Duration::from_millis(written.time),
            output_bytes: written.output,
            links: written.links,
            fragments: written.fragments,
            fingerprint_bytes: written.fingerprint,
            observer_memory_bytes: written.observer_memory,
            files: written.files,
            ..Self::default()
        }
    }
}

/// Reason for which a recording cannot be written, read or repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// `read` or `write`.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A file is not a recording.
    #[error("{} is not a recording of a plugin call: {problem}", path.display())]
    Format {
        /// The path.
        path: PathBuf,
        /// Position and cause of the error.
        problem: String,
    },
    /// The component does not accept the settings, or has no such plugin.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// The arguments are invalid.
    #[error(transparent)]
    Call(#[from] CallProblem),
}

/// The outcome of a repeated call, compared with the first.
#[derive(Clone, Debug)]
pub enum Replay {
    /// The same answer, or a plugin error of the same kind.
    Same(CallOutcome),
    /// Another answer.
    Differs(Difference),
    /// An answer in place of an error, an error in place of an answer, or an error of another kind.
    Turned(CallOutcome),
}

impl Recording {
    /// Makes a recording. `call` was recorded before it was made, `tables` are its look-ups, and `outcome` is its result.
    pub fn new(
        plugin: &Plugin,
        at: Timestamp,
        call: Call,
        tables: BTreeMap<String, TableFacts>,
        outcome: Result<CallResult, &Fault>,
    ) -> Self {
        Self {
            format: Format::One,
            at,
            subject: call.subject().map(str::to_owned),
            plugin: plugin.name().to_owned(),
            instance: plugin.instance().to_owned(),
            version: plugin.version().to_owned(),
            component: plugin.origin().to_owned(),
            component_sha256: plugin.component_sha256().to_owned(),
            contract: plugin.contract().to_owned(),
            opilio: env!("CARGO_PKG_VERSION").to_owned(),
            // The settings are valid JSON: `configure` serialised them.
            settings: serde_json::from_str(plugin.settings()).unwrap_or_default(),
            limits: plugin.limits().into(),
            tables,
            call,
            outcome: match outcome {
                Ok(answer) => CallOutcome::Answer(answer),
                Err(fault) => CallOutcome::Fault(fault.into()),
            },
        }
    }

    /// Writes it into a folder, which is made if it is missing. The name has plugin, call, URI and a digest of the whole, so the
    /// same recording twice is one file. Returns the file's path.
    ///
    /// # Errors
    /// The error of the system.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, RecordingError> {
        let path = folder.join(self.file_name());
        let unfinished = path.with_extension("new");
        fs::create_dir_all(folder)
            .and_then(|()| self.write_to(&unfinished))
            .and_then(|()| fs::rename(&unfinished, &path))
            .map_err(|source| RecordingError::File {
                doing: "write",
                path: path.clone(),
                source,
            })?;
        Ok(path)
    }

    /// Writes the file in pieces, because a document as JSON may be six times its size.
    fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut file = io::BufWriter::new(fs::File::create(path)?);
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.flush()
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// The file cannot be read, or is not a recording.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let text = fs::read(path).map_err(|source| RecordingError::File {
            doing: "read",
            path: path.to_owned(),
            source,
        })?;
        serde_json::from_slice(&text).map_err(|problem| RecordingError::Format {
            path: path.to_owned(),
            problem: problem.to_string(),
        })
    }

    /// Repeats the call of the plugin of that name in this component, with the recorded settings and limits.
    ///
    /// # Errors
    /// The call cannot be made.
    pub fn repeat_call(&self, component: &Component) -> Result<CallOutcome, RecordingError> {
        let tables = tables(&self.tables)?;
        let plugin = component.configure(PluginConfig {
            plugin: Some(self.plugin.clone()),
            instance: Some(self.instance.clone()),
            settings: self.settings.clone(),
            limits: (&self.limits).into(),
            tables,
        })?;
        match plugin.perform(&self.call) {
            Ok(answer) => Ok(CallOutcome::Answer(answer)),
            Err(Refused::Fault(fault)) => Ok(CallOutcome::Fault((&*fault).into())),
            Err(Refused::Call(problem)) => Err(problem.into()),
        }
    }

    /// Repeats the call, and compares the outcomes.
    ///
    /// # Errors
    /// The call cannot be made.
    pub fn replay(&self, component: &Component) -> Result<Replay, RecordingError> {
        let outcome = self.repeat_call(component)?;
        Ok(match (&self.outcome, outcome) {
            (CallOutcome::Answer(then), CallOutcome::Answer(now)) => {
                match then.compare(&now, &self.call) {
                    Ok(()) => Replay::Same(CallOutcome::Answer(now)),
                    Err(difference) => Replay::Differs(difference),
                }
            }
            (CallOutcome::Fault(then), CallOutcome::Fault(now)) if then.kind == now.kind => {
                Replay::Same(CallOutcome::Fault(now))
            }
            (_, now) => Replay::Turned(now),
        })
    }

    /// The case that expects this answer. Contents that are not text are returned separately. Write them into the files that the
    /// case names, next to it.
    pub fn case(&self, id: &str, expected: CallResult) -> (Case, Vec<(PathBuf, Vec<u8>)>) {
        let mut case = Case {
            id: id.to_owned(),
            plugin: self.plugin.clone(),
            settings: self.settings.clone(),
            tables: self.tables.clone(),
            call: self.call.clone(),
            expected: expected.shortened(),
            note: format!("recorded {}", self.at),
        };
        let mut files = Vec::new();
        for (number, document) in case.call.documents_mut().into_iter().enumerate() {
            if document.is_text() {
                continue;
            }
            let content = document.content().unwrap_or_default().to_vec();
            let name = match number {
                0 => PathBuf::from(format!("{id}.bin")),
                _ => PathBuf::from(format!("{id}-{number}.bin")),
            };
            files.push((name.clone(), content));
            document.refer_to(name);
        }
        (case, files)
    }

    fn file_name(&self) -> String {
        let subject: String = self
            .subject
            .as_deref()
            .unwrap_or_default()
            .rsplit("://")
            .next()
            .unwrap_or_default()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(SUBJECT_BYTES_MAX)
            .collect();
        let mut digested = DigestWriter(Sha256::new());
        // Writing to a digest cannot fail.
        let _ = serde_json::to_writer(&mut digested, self);
        let digest = HEXLOWER.encode(&digested.0.finalize());
        let Self { instance, call, .. } = self;
        format!(
            "{instance}.{}.{}.{}.json",
            call.name(),
            subject.trim_matches('-'),
            &digest[..8]
        )
    }
}

/// A writer that computes the digest of its input.
struct DigestWriter(Sha256);

impl io::Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}
