//! Cases: what a plugin is called with and what it must answer, as JSON. The same case runs natively in the plugin's
//! own tests (`sdk/rust`) and here, on the built component. The format is in `docs/PLUGINS.md`.
//!
//! A [`Recording`] is the same told of a call that a crawl has made, with all that is needed to make it again.

mod answer;
mod call;
mod lookups;
mod recording;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use self::answer::{Answer, Difference};
pub use self::call::{
    Call, CallProblem, CandidateFacts, DocumentFacts, FinishedFacts, KeptFacts, QueueFacts,
    StageName, VisitFacts,
};
pub use self::lookups::{TableFacts, looking_up};
pub(crate) use self::lookups::{note_kind, note_row, note_rows};
pub use self::recording::{
    FaultWritten, LimitsWritten, Outcome, Recording, RecordingError, Replay,
};

use crate::{Component, ConfigureError, Fault, Plugin, PluginConfig};

/// One case of a file, which is a list of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// Unique in its folder.
    pub id: String,
    /// Name of the plugin.
    pub plugin: String,
    /// What it is configured with, defaults filled in where left out.
    #[serde(default = "no_settings", skip_serializing_if = "is_empty_object")]
    pub settings: Value,
    /// The host's tables, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, TableFacts>,
    /// What is asked.
    pub call: Call,
    /// What must be answered.
    pub expected: Answer,
    /// Why it must, where that is not plain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

fn no_settings() -> Value {
    json!({})
}

fn is_empty_object(settings: &Value) -> bool {
    settings.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Why a case could not be put to its plugin, or what became of it there.
#[derive(Debug, thiserror::Error)]
pub enum CaseProblem {
    /// The plugin does not take the settings.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// The arguments are none.
    #[error(transparent)]
    Call(#[from] CallProblem),
    /// The call went wrong.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// The answer is not the one expected.
    #[error("{0}")]
    Differs(Difference),
}

/// Puts cases to a component. Many share their settings, and a plugin is configured once for all of them.
#[derive(Debug)]
pub struct Examiner {
    component: Component,
    plugins: HashMap<(String, String), Plugin>,
}

impl Examiner {
    /// Of this component.
    pub fn new(component: &Component) -> Self {
        Self {
            component: component.clone(),
            plugins: HashMap::new(),
        }
    }

    /// Configures the plugin with the case's settings and asks it.
    ///
    /// # Errors
    /// Everything but an answer.
    pub fn ask(&mut self, case: &Case) -> Result<Answer, CaseProblem> {
        let plugin = match (self.plugin(case), &case.call) {
            (
                Err(CaseProblem::Configure(ConfigureError::Settings { faults, .. })),
                Call::Configure {},
            ) => {
                return Ok(Answer::settings_faults(&faults));
            }
            (configured, _) => configured?,
        };
        plugin.perform(&case.call).map_err(|problem| match problem {
            call::Refused::Call(problem) => CaseProblem::Call(problem),
            call::Refused::Fault(fault) => CaseProblem::Fault(fault),
        })
    }

    /// Asks, and compares.
    ///
    /// # Errors
    /// What differs, or why there is no answer.
    pub fn check(&mut self, case: &Case) -> Result<(), CaseProblem> {
        let answer = self.ask(case)?;
        case.compare(&answer).map_err(CaseProblem::Differs)
    }

    fn plugin(&mut self, case: &Case) -> Result<Plugin, CaseProblem> {
        let key = (case.plugin.clone(), case.settings.to_string());
        // Tables are given to a plugin when it is configured.
        if let Some(plugin) = self.plugins.get(&key).filter(|_| case.tables.is_empty()) {
            return Ok(plugin.clone());
        }
        let config = PluginConfig {
            plugin: Some(case.plugin.clone()),
            settings: case.settings.clone(),
            tables: lookups::tables(&case.tables)?,
            ..PluginConfig::default()
        };
        // As in a crawl: a plugin's first settings get a snapshot, variants of them begin at once. Compiling one for each
        // of a hundred cases takes minutes.
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
    /// Whether this is the answer that the case expects: whole, fields that are left out having their defaults, except
    /// that reasons and words of faults count only where they are given, and spans may be given in any order.
    ///
    /// # Errors
    /// What differs.
    pub fn compare(&self, answer: &Answer) -> Result<(), Difference> {
        self.expected.compare(answer, &self.call)
    }
}

/// A folder of cases cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CasesError {
    /// A file or folder.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file that is no list of cases.
    #[error("{} is no list of cases: {problem}", path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// Where, and what is wrong.
        problem: String,
    },
    /// Two cases of one folder have one id.
    #[error("{}: two cases are called {id}", folder.display())]
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
    /// Its cases, the contents of documents that stand in files of their own read in.
    pub cases: Vec<Case>,
}

impl CaseFile {
    /// Reads one file.
    ///
    /// # Errors
    /// It cannot be read or is none.
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
        let beside = path.parent().unwrap_or(path);
        for document in cases.iter_mut().flat_map(|case| case.call.documents_mut()) {
            if let Some(file) = document.file().map(|file| beside.join(file)) {
                document.set_content(read(&file)?);
            }
        }
        Ok(Self {
            path: path.to_owned(),
            cases,
        })
    }

    /// Every `*.json` of a folder, by name.
    ///
    /// # Errors
    /// One of them cannot be read or is none, or an id is given twice.
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
        let twice = files
            .iter()
            .flat_map(|file| &file.cases)
            .find(|case| !ids.insert(case.id.as_str()));
        match twice {
            Some(case) => Err(CasesError::Twice {
                folder: folder.to_owned(),
                id: case.id.clone(),
            }),
            None => Ok(files),
        }
    }

    /// Writes new answers into the file, for the cases of these ids. All else in it stays as it was written, byte for byte.
    ///
    /// # Errors
    /// It cannot be read or written, or is no list of cases any more.
    pub fn bless(path: &Path, answers: &[(String, Answer)]) -> Result<(), CasesError> {
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

/// The text of a file of cases with these answers in the places of those that were expected.
fn blessed(text: &str, answers: &[(String, Answer)]) -> serde_json::Result<String> {
    #[derive(Deserialize)]
    struct Written<'a> {
        id: String,
        #[serde(borrow)]
        expected: &'a RawValue,
    }
    let written: Vec<Written<'_>> = serde_json::from_str(text)?;
    let mut blessed = String::new();
    let mut done = 0;
    for Written { id, expected } in &written {
        let Some((_, answer)) = answers.iter().find(|(name, _)| name == id) else {
            continue;
        };
        // It is borrowed from the text, so this is where it stands there.
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
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn blessing_changes_what_is_expected_and_nothing_else() {
        let text = r#"[
    { "id": "a",  "plugin": "p", "call": {"configure": {}},
      "expected": [ ], "note": "odd   blanks stay" },
    {"expected": null, "id": "b", "plugin": "p", "call": {"configure": {}}}
]
"#;
        let fault = |pointer: &str| {
            Answer::settings_faults(&[crate::SettingsFault {
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
