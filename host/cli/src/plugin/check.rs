//! `opilio plugin check`: checks whether a component is fit for publication. Errors of the sandbox at load appear in the same
//! words. The other checks find problems that only show later.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use indicatif::HumanBytes;
use opilio_sandbox::{CONTRACT, CaseFile, Description, Examiner, PluginConfig, Start};
use serde_json::{Value, json};

use super::component_parts::ComponentInterfaces;
use super::settings_table::{open_objects, settings};
use super::workbench::{Subject, Workbench, as_in_a_crawl, complete};
use super::{count, say, table};
use crate::exit;

/// Size above which a note is printed: components stay in the repositories of archives for ever.
const BYTES_NOTED: usize = 4 << 20;
/// The dialect of settings schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The command line.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Component to check.
    #[arg(default_value = ".", value_name = "PLUGIN")]
    component: String,
    /// Folder of cases; the same call must give the same answer [default: `cases` next to the component].
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Print JSON: one object per line for each finding, then one for the result.
    #[arg(long)]
    json: bool,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Good,
    Note,
    Bad,
}

impl Weight {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "FAIL",
        }
    }
}

/// The subject of a check, and its result.
#[derive(Debug)]
struct Finding {
    weight: Weight,
    what: String,
    message: String,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, weight: Weight, what: &str, message: impl Into<String>) {
        self.0.push(Finding {
            weight,
            what: what.to_owned(),
            message: message.into(),
        });
    }
}

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> Result<u8> {
    let subject = Workbench::new()?.load(&args.component)?;
    let interfaces = ComponentInterfaces::of(&subject.bytes)?;
    let mut findings = Findings::default();
    check_component(&subject, &interfaces, &mut findings);
    for description in subject.plugins() {
        check_schema(description, &mut findings);
        check_start(&subject, description, &mut findings);
    }
    let cases = args.cases.clone().or_else(|| subject.cases());
    check_answers(&subject, cases, &mut findings)?;
    let failed = findings.0.iter().any(|one| one.weight == Weight::Bad);
    say(&match args.json {
        true => as_json(&findings, failed),
        false => as_text(&subject, &findings),
    })?;
    Ok(if failed { exit::FAILED } else { exit::OK })
}

fn check_component(subject: &Subject, interfaces: &ComponentInterfaces, findings: &mut Findings) {
    match interfaces.contract() {
        Some(CONTRACT) => findings.add(Weight::Good, "contract", CONTRACT),
        other => {
            let version = other.unwrap_or("none");
            let message = format!(
                "made for {version}; this version of opilio uses {CONTRACT} and supports {version}"
            );
            findings.add(Weight::Note, "contract", message);
        }
    }
    let foreign: Vec<&str> = interfaces.foreign().collect();
    match foreign.is_empty() {
        true => findings.add(Weight::Good, "imports", "only those of the contract"),
        // The sandbox has accepted the component, so these imports are provided without effect.
        false => findings.add(
            Weight::Note,
            "imports",
            format!("{}; they are inert", foreign.join(", ")),
        ),
    }
    let size = HumanBytes(subject.bytes.len() as u64);
    let (weight, more) = match subject.bytes.len() > BYTES_NOTED {
        true => (
            Weight::Note,
            "; above 4 MiB: every job that uses the component keeps a copy (in Rust: opt-level = \"s\", regex without Unicode tables)",
        ),
        false => (Weight::Good, ""),
    };
    findings.add(weight, "size", format!("{size}{more}"));
}

fn check_schema(description: &Description, findings: &mut Findings) {
    let what = format!("{}: settings", description.name);
    let before = findings.0.len();
    let mut bad = |message: String| findings.add(Weight::Bad, &what, message);
    let schema: Value = match serde_json::from_str(&description.settings_schema) {
        Ok(schema) => schema,
        Err(problem) => return bad(format!("the schema is not JSON: {problem}")),
    };
    if let Err(problem) = jsonschema::draft202012::meta::validate(&schema) {
        bad(format!(
            "the schema is not a JSON Schema of 2020-12: {problem}"
        ));
    }
    match schema.get("$schema").and_then(Value::as_str) {
        None | Some(DIALECT) => {}
        Some(other) => bad(format!("the schema has an unsupported dialect, {other}")),
    }
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        bad("the schema lacks \"type\": \"object\"; settings are an object".to_owned());
    }
    for open in open_objects(&schema) {
        bad(format!(
            "{open}: misspelt keys are accepted; add \"additionalProperties\": false (in Rust: #[serde(deny_unknown_fields)])"
        ));
    }
    let settings = settings(&schema);
    let required = settings
        .iter()
        .any(|one| one.required && one.default.is_none());
    match complete(description, &json!({})) {
        Err(problem) if !required => {
            bad(format!("the defaults do not fit the schema: {problem:#}"))
        }
        _ => {}
    }
    for setting in &settings {
        if setting.description.is_empty() {
            let message = format!("{} has no description for operators", setting.name);
            findings.add(Weight::Note, &what, message);
        }
    }
    if findings.0.len() == before {
        let n = settings.len() as u64;
        let message = format!(
            "{}, schema strict, defaults fit",
            count(n, "setting", "settings")
        );
        findings.add(Weight::Good, &what, message);
    }
}

fn check_start(subject: &Subject, description: &Description, findings: &mut Findings) {
    let what = format!("{}: start", description.name);
    let Ok(settings) = complete(description, &json!({})) else {
        let message = "not checked: some settings have no default";
        return findings.add(Weight::Note, &what, message);
    };
    let configured = subject.component.configure(PluginConfig {
        plugin: Some(description.name.clone()),
        settings,
        ..PluginConfig::default()
    });
    match configured {
        Ok(plugin) => match plugin.start() {
            Start::Snapshot { .. } => {
                findings.add(
                    Weight::Good,
                    &what,
                    "configured once, every call from a snapshot",
                );
            }
            Start::EachCall { why } => {
                let message = format!("configured for every call, which is slower: {why}");
                findings.add(Weight::Note, &what, message);
            }
        },
        Err(problem) => findings.add(
            Weight::Bad,
            &what,
            format!("the plugin rejects its defaults: {problem}"),
        ),
    }
}

/// Runs every case twice and compares the answers: an answer must depend only on the call.
fn check_answers(subject: &Subject, cases: Option<PathBuf>, findings: &mut Findings) -> Result<()> {
    const WHAT: &str = "same answers";
    let Some(folder) = cases else {
        let message = "not checked: no folder `cases` next to the component (--cases DIR)";
        findings.add(Weight::Note, WHAT, message);
        return Ok(());
    };
    let names: Vec<&str> = subject
        .plugins()
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let mut examiner = Examiner::new(&subject.component);
    let mut called = 0;
    for file in CaseFile::read_all(&folder)? {
        for case in &file.cases {
            if !names.contains(&case.plugin.as_str()) {
                continue;
            }
            called += 1;
            let case = &as_in_a_crawl(&subject.component, case);
            match (examiner.call(case), examiner.call(case)) {
                (Ok(first), Ok(second)) if first == second => {}
                (Ok(_), Ok(_)) => {
                    let message =
                        format!("case {} gets different answers to the same call", case.id);
                    findings.add(Weight::Bad, WHAT, message);
                }
                (Err(problem), _) | (_, Err(problem)) => {
                    findings.add(Weight::Bad, WHAT, format!("case {}: {problem}", case.id));
                }
            }
        }
    }
    if called == 0 {
        let message = format!(
            "not checked: no case in {} is for {}",
            folder.display(),
            names.join(", ")
        );
        findings.add(Weight::Note, WHAT, message);
    } else if findings.0.iter().all(|one| one.what != WHAT) {
        let message = format!("{}, each called twice", count(called, "case", "cases"));
        findings.add(Weight::Good, WHAT, message);
    }
    Ok(())
}

fn as_text(subject: &Subject, findings: &Findings) -> String {
    let row = |one: &Finding| {
        vec![
            one.weight.word().to_owned(),
            one.what.clone(),
            one.message.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = findings.0.iter().map(row).collect();
    format!("{}\n{}", subject.component.origin(), table(&rows, 2))
}

/// Formats the findings as JSON, one per line, and then the result.
fn as_json(findings: &Findings, failed: bool) -> String {
    let findings = findings.0.iter().map(
        |one| json!({"weight": one.weight.word().to_lowercase(), "what": one.what, "said": one.message}),
    );
    let objects = findings.chain([json!({ "ok": !failed })]);
    objects.map(|object| format!("{object}\n")).collect()
}
