//! Cases: calls of a plugin with the expected answers, as JSON. The same case runs natively in the plugin's own tests
//! (`sdk/rust`), and here on the built component. The format is in `docs/PLUGINS.md`.
//!
//! A [`Recording`] is the same for a call that a crawl has made, with everything that is needed to repeat it.

mod answer;
mod call;
mod document;
mod finished;
mod page;
mod perform;
mod problem;
mod queue;
mod recording;
mod visit;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use self::answer::{CallResult, Difference};
pub use self::call::{Call, StageName};
pub use self::document::{DocumentFacts, KeptFacts};
pub use self::finished::FinishedFacts;
pub use self::page::PageFacts;
pub use self::problem::CallProblem;
pub use self::queue::QueueFacts;
pub use self::recording::{
    CallOutcome, FaultWritten, LimitsWritten, Recording, RecordingError, Replay,
};
pub use self::visit::{CandidateFacts, VisitFacts};

use self::perform::Refused;
use crate::{Component, ConfigureError, Fault, Plugin, PluginConfig, TableFacts};

/// One case of a case file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// Its id, unique in its folder.
    pub id: String,
    /// Name of the plugin.
    pub plugin: String,
    /// Settings of the plugin. Missing ones get their defaults.
    #[serde(default = "no_settings", skip_serializing_if = "is_empty_object")]
    pub settings: Value,
    /// The host's tables, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, TableFacts>,
    /// The call.
    pub call: Call,
    /// The expected answer.
    pub expected: CallResult,
    /// Reason for the expected answer, if it is not obvious.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

fn no_settings() -> Value {
    json!({})
}

fn is_empty_object(settings: &Value) -> bool {
    settings.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Reason for which a case could not be run or has failed.
#[derive(Debug, thiserror::Error)]
pub enum CaseProblem {
    /// The plugin does not accept the settings.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// The arguments are invalid.
    #[error(transparent)]
    Call(#[from] CallProblem),
    /// The call failed with a plugin error.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// The answer is not the expected one.
    #[error("{0}")]
    Differs(Difference),
}

/// Runs the cases of a component. Many cases share their settings, and a plugin is configured once for all of them.
#[derive(Debug)]
pub struct Examiner {
    component: Component,
    plugins: HashMap<(String, String), Plugin>,
}

impl Examiner {
    /// Makes an examiner for this component.
    pub fn new(component: &Component) -> Self {
        Self {
            component: component.clone(),
            plugins: HashMap::new(),
        }
    }

    /// Configures the plugin with the case's settings and calls it.
    ///
    /// # Errors
    /// Any result other than an answer.
    pub fn call(&mut self, case: &Case) -> Result<CallResult, CaseProblem> {
        let plugin = match (self.plugin(case), &case.call) {
            (
                Err(CaseProblem::Configure(ConfigureError::Settings { faults, .. })),
                Call::Configure {},
            ) => {
                return Ok(CallResult::settings_faults(&faults));
            }
            (configured, _) => configured?,
        };
        plugin.perform(&case.call).map_err(|problem| match problem {
            Refused::Call(problem) => CaseProblem::Call(problem),
            Refused::Fault(fault) => CaseProblem::Fault(fault),
        })
    }

    /// Runs the case and compares the answer.
    ///
    /// # Errors
    /// The difference, or the reason for which there is no answer.
    pub fn check(&mut self, case: &Case) -> Result<(), CaseProblem> {
        let answer = self.call(case)?;
        case.compare(&answer).map_err(CaseProblem::Differs)
    }

    fn plugin(&mut self, case: &Case) -> Result<Plugin, CaseProblem> {
        let key = (case.plugin.clone(), case.settings.to_string());
        // A plugin gets tables when it is configured.
        if let Some(plugin) = self.plugins.get(&key).filter(|_| case.tables.is_empty()) {
            return Ok(plugin.clone());
        }
        let config = PluginConfig {
            plugin: Some(case.plugin.clone()),
            settings: case.settings.clone(),
            tables: problem::tables(&case.tables)?,
            ..PluginConfig::default()
        };
        // As in a crawl, the plugin gets a snapshot for its first settings. Variants start without one, because compiling a
        // snapshot for each of a hundred cases would take minutes.
        let is_variant = self
            .plugins
            .keys()
            .any(|(plugin, _)| *plugin == case.plugin);
        let plugin = match is_variant {
            false => self.component.configure(config)?,
            true => self.component.configure_each_call(config)?,
        };
        if case.tables.is_empty() {
            self.plugins.insert(key, plugin.clone());
        }
        Ok(plugin)
    }
}

impl Case {
    /// Compares an answer with the expected one, as a whole. Missing fields have their defaults. Reasons and texts of errors
    /// count only if the case has them. Spans may be in any order.
    ///
    /// # Errors
    /// The difference.
    pub fn compare(&self, answer: &CallResult) -> Result<(), Difference> {
        self.expected.compare(answer, &self.call)
    }
}

/// Reason for which a folder of cases cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CasesError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A file is not a list of cases.
    #[error("{} is not a list of cases: {problem}", path.display())]
    Format {
        /// The path.
        path: PathBuf,
        /// Position and cause of the error.
        problem: String,
    },
    /// Two cases of one folder have one id.
    #[error("{}: duplicate case id {id}", folder.display())]
    Twice {
        /// The folder.
        folder: PathBuf,
        /// Their id.
        id: String,
    },
}

/// A file of cases.
#[derive(Clone, Debug)]
pub struct CaseFile {
    /// The file.
    pub path: PathBuf,
    /// Its cases. Contents of documents in separate files have been read.
    pub cases: Vec<Case>,
}

impl CaseFile {
    /// Reads one file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a list of cases.
    pub fn read(path: &Path) -> Result<Self, CasesError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| CasesError::Read {
                path: path.to_owned(),
                source,
            })
        };
        let format = |problem: String| CasesError::Format {
            path: path.to_owned(),
            problem,
        };
        let mut cases: Vec<Case> =
            serde_json::from_slice(&read(path)?).map_err(|problem| format(problem.to_string()))?;
        let folder = path.parent().unwrap_or(path);
        for document in cases.iter_mut().flat_map(|case| case.call.documents_mut()) {
            if let Some(file) = document.file().map(|file| folder.join(file)) {
                document.set_content(read(&file)?);
            }
        }
        Ok(Self {
            path: path.to_owned(),
            cases,
        })
    }

    /// Reads every `*.json` of a folder, by name.
    ///
    /// # Errors
    /// A file cannot be read or is not a list of cases, or an id occurs twice.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, CasesError> {
        let entries = fs::read_dir(folder).and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<Vec<PathBuf>>>()
        });
        let mut paths = entries.map_err(|source| CasesError::Read {
            path: folder.to_owned(),
            source,
        })?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        let files = paths
            .iter()
            .map(|path| Self::read(path))
            .collect::<Result<Vec<_>, _>>()?;
        let mut ids = HashSet::new();
        let duplicate = files
            .iter()
            .flat_map(|file| &file.cases)
            .find(|case| !ids.insert(case.id.as_str()));
        match duplicate {
            Some(case) => Err(CasesError::Twice {
                folder: folder.to_owned(),
                id: case.id.clone(),
            }),
            None => Ok(files),
        }
    }

    /// Writes new answers into the file, for the cases of these ids. The rest of the file stays as it was, byte for byte.
    ///
    /// # Errors
    /// The file cannot be read or written, or is no longer a list of cases.
    pub fn bless(path: &Path, answers: &[(String, CallResult)]) -> Result<(), CasesError> {
        let io = |source| CasesError::Read {
            path: path.to_owned(),
            source,
        };
        let text = fs::read_to_string(path).map_err(io)?;
        let blessed = blessed(&text, answers).map_err(|problem| CasesError::Format {
            path: path.to_owned(),
            problem: problem.to_string(),
        })?;
        let unfinished = path.with_extension("json.new");
        fs::write(&unfinished, blessed)
            .and_then(|()| fs::rename(&unfinished, path))
            .map_err(io)
    }
}

/// The text of a case file with these answers in place of the expected ones.
fn blessed(text: &str, answers: &[(String, CallResult)]) -> serde_json::Result<String> {
    #[derive(Deserialize)]
    struct ExpectedAnswer<'a> {
        id: String,
        #[serde(borrow)]
        expected: &'a RawValue,
    }
    let written: Vec<ExpectedAnswer<'_>> = serde_json::from_str(text)?;
    let mut blessed = String::new();
    let mut done = 0;
    for ExpectedAnswer { id, expected } in &written {
        let Some((_, answer)) = answers.iter().find(|(name, _)| name == id) else {
            continue;
        };
        // The value is borrowed from the text, so its address gives its position.
        let start = expected.get().as_ptr() as usize - text.as_ptr() as usize;
        let line = &text[text[..start].rfind('\n').map_or(0, |at| at + 1)..start];
        let indent = line.len() - line.trim_start().len();
        blessed.push_str(&text[done..start]);
        blessed.push_str(&answer.written(indent));
        done = start + expected.get().len();
    }
    blessed.push_str(&text[done..]);
    Ok(blessed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blessing_changes_only_the_expected_answers() {
        let text = r#"[
    { "id": "a",  "plugin": "p", "call": {"configure": {}},
      "expected": [ ], "note": "odd   blanks stay" },
    {"expected": null, "id": "b", "plugin": "p", "call": {"configure": {}}}
]
"#;
        let fault = |pointer: &str| {
            CallResult::settings_faults(&[crate::SettingsFault {
                pointer: pointer.to_owned(),
                problem: String::new(),
            }])
        };
        let answers = [
            ("b".to_owned(), fault("/x")),
            ("c".to_owned(), fault("/none")),
        ];
        assert_eq!(
            blessed(text, &answers).unwrap(),
            text.replace("null", r#"[{"pointer":"/x"}]"#)
        );
        let long = format!("/{}", "x".repeat(200));
        let both = blessed(text, &[("a".to_owned(), fault(&long))]).unwrap();
        assert_eq!(
            both,
            text.replace(
                "[ ]",
                &format!("[\n        {{\n          \"pointer\": \"{long}\"\n        }}\n      ]")
            )
        );
        assert!(serde_json::from_str::<Vec<Case>>(&both).is_ok());
    }
}
