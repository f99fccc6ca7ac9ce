//! `opilio plugin new`: creates the project of a plugin. It works without changes, as a base for the author's own code.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args, ValueEnum};
use opilio_build::{Language, SDK_VERSION, in_shell};
use opilio_profile::{StackSettings, Stage};
use serde_json::{Value, json};

use super::template::Template;
use super::trial::KindName;
use super::{note, say};
use crate::{exit, profile};

/// Keywords of Rust, including reserved ones (the Rust Reference, "Keywords").
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
/// Crates of the template and of Rust. A crate of the same name cannot be built next to them.
const CRATES: [&str; 8] = [
    "alloc",
    "core",
    "opilio-plugin",
    "proc-macro",
    "schemars",
    "serde",
    "std",
    "test",
];
/// Names of types that the template uses.
const TYPES: [&str; 42] = [
    "Action",
    "ActionResult",
    "CandidateView",
    "ChangeEvaluator",
    "Click",
    "Comparison",
    "Default",
    "Deserialize",
    "Difference",
    "DigestStripper",
    "Document",
    "Extraction",
    "Extractor",
    "Filter",
    "Finished",
    "Handles",
    "Hop",
    "JsonSchema",
    "Link",
    "Observation",
    "Observer",
    "Option",
    "Page",
    "PageBehavior",
    "Plugin",
    "Precedence",
    "Report",
    "Result",
    "Ruling",
    "Serialize",
    "Settings",
    "SettingsFault",
    "Some",
    "Span",
    "Stage",
    "StepPlan",
    "String",
    "StripProblem",
    "Vec",
    "Visit",
    "Wait",
    "WaitEvaluator",
];

/// The command line.
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// Name of the plugin: lower-case words joined by hyphens. The command creates a folder of this name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Language of the plugin.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    lang: LanguageName,
    /// Kind of the plugin; may be repeated.
    #[arg(long, value_enum, required = true, value_name = "KIND")]
    kind: Vec<KindName>,
    /// Folder of the project [default: ./NAME].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Languages of plugins, as values on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LanguageName {
    /// Rust.
    Rust,
    /// JavaScript.
    Js,
    /// TypeScript.
    Ts,
    /// Python.
    Python,
    /// C.
    C,
    /// C++, with the SDK of C.
    Cpp,
    /// Go.
    Go,
}

impl LanguageName {
    fn language(self) -> Language {
        match self {
            Self::Rust => Language::Rust,
            Self::Js => Language::JavaScript,
            Self::Ts => Language::TypeScript,
            Self::Python => Language::Python,
            Self::C | Self::Cpp => Language::C,
            Self::Go => Language::Go,
        }
    }

    /// Returns the name of its template folder.
    fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Js => "js",
            Self::Ts => "ts",
            Self::Python => "python",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Go => "go",
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &NewArgs) -> Result<u8> {
    ensure!(
        is_name(&args.name),
        "invalid plugin name {:?}: write lower-case words joined by hyphens, such as news-dates",
        args.name
    );
    if args.lang == LanguageName::Rust {
        check_crate_name(&args.name)?;
    }
    let folder = args
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(&args.name));
    ensure!(
        !folder.exists(),
        "{} already exists; choose another folder with --dir",
        folder.display()
    );
    let mut kinds = args.kind.clone();
    kinds.sort_by_key(|kind| kind.word());
    kinds.dedup();
    let profile = profile::load("default").map_err(|faults| anyhow!("{faults}"))?;
    let stacks = &profile.settings().stacks;
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
    let lines: Vec<String> = kinds
        .iter()
        .map(|kind| stack_line(stacks, *kind, &args.name))
        .collect();
    let template = Template {
        language: args.lang.word(),
        kinds: &kinds,
        places: vec![
            ("stacks", lines.join("\n")),
            ("kinds", words.join(", ")),
            ("type", type_name(&args.name)),
            ("snake", args.name.replace('-', "_")),
            (
                "summary",
                "Says what this plugin does, in a sentence for operators.".to_owned(),
            ),
            ("name", args.name.clone()),
        ],
    };
    if opilio_builtin::find(&args.name).is_some() {
        note(&format!(
            "note: a shipped plugin is also named {0}; the bare name means the shipped plugin unless a file {0} exists",
            args.name
        ));
    }
    let mut files = template.files();
    files.push((
        format!("cases/{}.json", args.name),
        cases(&args.name, &kinds),
    ));
    for (path, content) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, content))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    opilio_build::write_sdk(args.lang.language(), &folder)?;
    let place = folder.display().to_string();
    if args.json {
        let object = json!({
            "answer": "created",
            "name": args.name,
            "folder": place,
            "language": args.lang.word(),
            "kinds": words,
            "sdk_version": SDK_VERSION,
        });
        say(&format!("{object}\n"))?;
        return Ok(exit::OK);
    }
    let here = in_shell(&folder);
    let next: String = template
        .next()
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect();
    say(&format!("created {place}\n\n  cd {here}\n{next}"))?;
    Ok(exit::OK)
}

/// Checks whether a crate may have this name.
fn check_crate_name(name: &str) -> Result<()> {
    ensure!(
        !KEYWORDS.contains(&name),
        "{name} is a keyword of Rust and cannot name a crate; choose another name, such as {name}-plugin"
    );
    ensure!(
        !CRATES.contains(&name),
        "{name} is the name of a crate that every plugin is built with; choose another name, such as my-{name}"
    );
    Ok(())
}

fn is_name(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(word)
}

/// Returns the name of the plugin's type. It never equals a type of the template, whatever the plugin's name.
fn type_name(name: &str) -> String {
    let words = name.split('-');
    let type_name: String = words
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect();
    match TYPES.contains(&type_name.as_str()) {
        true => type_name + "Plugin",
        false => type_name,
    }
}

/// Returns cases that the templates of every language pass: one for each kind, and one with an invalid setting.
fn cases(name: &str, kinds: &[KindName]) -> String {
    let mut cases: Vec<Value> = kinds.iter().map(|kind| case(name, *kind)).collect();
    cases.push(json!({
        "id": format!("{name}-empty-word"),
        "plugin": name,
        "settings": {"word": ""},
        "call": {"configure": {}},
        "expected": [{"pointer": "/word"}],
    }));
    format!("{:#}\n", Value::from(cases))
}

fn case(name: &str, kind: KindName) -> Value {
    let page = json!({"media-type": "text/html", "text": "<p x-story=\"three.html\">"});
    let uri = "http://example.com/x-story";
    let (call, expected) = match kind {
        KindName::Extractor => (
            json!({"extract": {"documents": [page]}}),
            json!([{"links": [{"uri": "three.html", "context": "@x-story"}]}]),
        ),
        KindName::Filter => (
            json!({"judge-candidates": {"stage": "scope", "candidates": [{"uri": uri}, {"uri": "http://example.com/"}]}}),
            json!([{"verdict": "reject"}, {"verdict": "pass"}]),
        ),
        KindName::DigestStripper => (
            json!({"strip": {"document": page}}),
            json!({"ok": [{"offset": 3, "length": 7}]}),
        ),
        KindName::ChangeEvaluator => (
            json!({"compare": {"document": page, "last": [b'1']}}),
            json!({"difference": "unchanged", "fingerprint": [b'1']}),
        ),
        KindName::WaitEvaluator => (
            json!({"evaluate": {"visit": {"candidate": {"uri": uri}}}}),
            json!({"next-visit": 86_400_000}),
        ),
        KindName::Precedence => (
            json!({"rank-candidates": {"candidates": [{"uri": uri}, {"uri": "http://example.com/"}]}}),
            json!([1, null]),
        ),
        KindName::Observer => (
            json!({"observe": {"events": [{
                "at": 0, "uri": uri, "status": 200, "media-type": "text/html", "state": "new", "hop-path": "",
                "queue": "com,example,",
            }]}}),
            json!({"memory": [b'1']}),
        ),
        KindName::PageBehavior => (
            json!({"step": {"page": {"uri": uri}}}),
            json!({"actions": [
                {"click": {"selector": "[x-story]", "at-most": 1, "only-new": true}},
                {"wait-for-network": 5_000},
            ]}),
        ),
    };
    json!({
        "id": format!("{}-{}", name, kind.word()),
        "plugin": name,
        "call": call,
        "expected": expected,
    })
}

/// Returns the stack for plugins of a kind.
fn stage(kind: KindName) -> Stage {
    match kind {
        KindName::Extractor => Stage::Extract,
        KindName::Filter => Stage::Scope,
        KindName::DigestStripper => Stage::Digest,
        KindName::ChangeEvaluator => Stage::Change,
        KindName::WaitEvaluator => Stage::Wait,
        KindName::Precedence => Stage::Precedence,
        KindName::Observer => Stage::Observe,
        KindName::PageBehavior => Stage::Behave,
    }
}

/// Returns a line of a profile: the default stack with the plugin at its end, or at its beginning in stacks in which the first
/// answer decides.
fn stack_line(stacks: &StackSettings, kind: KindName, name: &str) -> String {
    let stage = stage(kind);
    let mut names: Vec<&str> = stacks.stage(stage).iter().map(String::as_str).collect();
    match stage {
        Stage::Change | Stage::Wait | Stage::Precedence => names.insert(0, name),
        _ => names.push(name),
    }
    format!("{} = {}", stage.key(), json!(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_differ_from_the_types_of_the_template() {
        assert_eq!(type_name("news-dates"), "NewsDates");
        assert_eq!(type_name("filter"), "FilterPlugin");
        assert_eq!(type_name("wait-evaluator"), "WaitEvaluatorPlugin");
    }
}
