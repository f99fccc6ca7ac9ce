//! Runs the cases in `plugins/*/cases` against the built-in components. The plugins' own tests run the same cases natively. Here
//! they run through the sandbox, so that components of another toolchain (`OPILIO_COMPONENTS`, see `plugins/builtin/build.rs`) are
//! tested too. A file in those folders that no test reads is an error.

mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use opilio_sandbox::{Case, CaseFile, ConfigureError, Examiner, Limits, Plugin, spawn_lane};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::builtin::components;
use crate::support::config_of;

/// Plugins configured so far. Many cases share their settings, and each snapshot is compiled.
#[derive(Default)]
struct Bench(BTreeMap<(String, String, String), Plugin>);

impl Bench {
    /// The plugin of this component with these settings.
    fn plugin(
        &mut self,
        folder: &str,
        plugin: &str,
        settings: &Value,
    ) -> Result<Plugin, ConfigureError> {
        let key = (folder.to_owned(), plugin.to_owned(), settings.to_string());
        if let Some(ready) = self.0.get(&key) {
            return Ok(ready.clone());
        }
        let component = &components()[folder];
        let ready = component.configure(config_of(plugin, settings.clone(), Limits::default()))?;
        self.0.insert(key, ready.clone());
        Ok(ready)
    }
}

/// The cases of a file. Each format has its own runner.
enum Cases {
    /// Calls and expected answers, for plugins in any language. `docs/PLUGINS.md` documents the format.
    Golden(Vec<Case>),
    /// A document and the URIs that all extractors together find in it.
    Pages(Vec<pages::Case>),
}

impl Cases {
    /// The first case determines the format of the file.
    fn parse(text: &str) -> Result<Self, String> {
        let cases: Vec<Value> = list(text)?;
        match cases.first() {
            None => Err("it is an empty list".to_owned()),
            Some(first) if first.get("call").is_some() => list(text).map(Self::Golden),
            Some(first) if first.get("input").is_some() => list(text).map(Self::Pages),
            Some(_) => Err("its first case has neither `call` nor `input`".to_owned()),
        }
    }
}

fn list<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Results of the files of one folder.
#[derive(Default)]
struct Report {
    faults: Vec<String>,
    held: usize,
    /// Plugins that have at least one golden case.
    asked: BTreeSet<String>,
    /// Files that hold the content of a case's document.
    contents: BTreeSet<PathBuf>,
    /// Files without cases, with the parse error.
    others: Vec<(PathBuf, String)>,
}

impl Report {
    fn read(&mut self, bench: &mut Bench, examiner: &mut Examiner, folder: &str, file: &Path) {
        let cases = match fs::read_to_string(file).map_err(|error| error.to_string()) {
            Ok(text) => Cases::parse(&text),
            Err(problem) => Err(problem),
        };
        match cases {
            Ok(Cases::Golden(cases)) => {
                let beside = file.parent().unwrap_or(file);
                let documents = cases.iter().flat_map(|case| case.call.documents());
                let contents = documents.filter_map(|document| document.file());
                self.contents
                    .extend(contents.map(|content| beside.join(content)));
                // Read the file again, now with the contents of its documents.
                match CaseFile::read(file) {
                    Ok(whole) => self.put(examiner, whole),
                    Err(problem) => self.faults.push(problem.to_string()),
                }
            }
            Ok(Cases::Pages(cases)) => {
                for case in cases {
                    let outcome = case.check(bench, folder);
                    self.note(file, &case.id, outcome);
                }
            }
            Err(problem) => self.others.push((file.to_owned(), problem)),
        }
    }

    fn put(&mut self, examiner: &mut Examiner, file: CaseFile) {
        for case in file.cases {
            let outcome = examiner.check(&case).map_err(|problem| problem.to_string());
            self.note(&file.path, &case.id, outcome);
            self.asked.insert(case.plugin);
        }
    }

    fn note(&mut self, file: &Path, id: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.held += 1,
            Err(fault) => self
                .faults
                .push(format!("{}, case {id}: {fault}", shown(file))),
        }
    }

    /// Adds an error for each file that was not understood and for each plugin without a case.
    fn finish(mut self, folder: &str) -> Self {
        for (file, problem) in &self.others {
            if !self.contents.contains(file) {
                self.faults.push(format!(
                    "{}: no test understands this file: {problem}",
                    shown(file)
                ));
            }
        }
        for description in components()[folder].plugins() {
            if !self.asked.contains(&description.name) {
                self.faults.push(format!(
                    "plugins/{folder}/cases: no case asks the plugin {}",
                    description.name
                ));
            }
        }
        self
    }
}

fn plugins_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins")
}

fn shown(file: &Path) -> String {
    let shown = file.strip_prefix(plugins_folder()).unwrap_or(file);
    format!("plugins/{}", shown.display())
}

/// All files in a folder and its subfolders, sorted by name. Empty if the folder does not exist.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let files = entries.into_iter().map(|path| match path.is_dir() {
        true => files_in(&path),
        false => vec![path],
    });
    files.flatten().collect()
}

#[test]
fn components_answer_every_case_of_their_plugins() {
    // Compiling the snapshots takes most of the time, so each folder has its own thread.
    let lanes = components().keys().map(|folder| {
        spawn_lane(&format!("cases of {folder}"), move || {
            let (mut bench, mut report) = (Bench::default(), Report::default());
            let mut examiner = Examiner::new(&components()[folder]);
            for file in files_in(&plugins_folder().join(folder).join("cases")) {
                report.read(&mut bench, &mut examiner, folder, &file);
            }
            report.finish(folder)
        })
        .unwrap()
    });
    let (mut faults, mut held) = (Vec::new(), 0);
    for lane in lanes.collect::<Vec<_>>() {
        let report = lane.join().unwrap();
        held += report.held;
        faults.extend(report.faults);
    }
    assert!(
        faults.is_empty(),
        "{held} cases hold, and these do not:\n{}",
        faults.join("\n")
    );
}

#[test]
fn every_folder_with_cases_has_a_builtin_component() {
    for entry in fs::read_dir(plugins_folder()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(
            !folder.join("cases").is_dir() || components().contains_key(name),
            "plugins/{name} has cases, and no component to ask: cargo xtask plugins {name}"
        );
    }
}

#[test]
fn files_of_unknown_formats_are_not_parsed_as_cases() {
    #[track_caller]
    fn check(text: &str, understood: bool) {
        let cases = Cases::parse(text);
        assert_eq!(cases.is_ok(), understood, "{text}: {:?}", cases.err());
    }
    check(
        r#"[{"id": "a", "plugin": "p", "call": {"configure": {}}, "expected": []}]"#,
        true,
    );
    check(
        r#"[{"id": "a", "input": "", "base": "http://example.org/", "content_type": "text/html", "expected": [], "match": "set"}]"#,
        true,
    );
    check("[]", false);
    check("{}", false);
    check("<p>", false);
    check(r#"[{"id": "a"}]"#, false);
    check(
        r#"[{"id": "a", "plugin": "p", "call": {"guess": {}}, "expected": []}]"#,
        false,
    );
    check(
        r#"[{"id": "a", "plugin": "p", "call": {"configure": {}}, "expect": []}]"#,
        false,
    );
    check(
        r#"[{"id": "a", "input": "", "base": "", "content_type": "text/html", "expected": [], "match": "most"}]"#,
        false,
    );
}

#[test]
fn a_plugin_without_cases_is_an_error() {
    for (folder, component) in components() {
        let faults = Report::default().finish(folder).faults;
        assert_eq!(faults.len(), component.plugins().len(), "{faults:?}");
    }
}
