//! `opilio plugin new`: the crate of a plugin that works as it stands, to be changed into what is wanted.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use opilio_profile::{Stacks, Stage};
use serde_json::{Value, json};

use super::trial::KindName;
use super::{note, say};
use crate::{exit, profile};

/// The checkout that this binary was built from, where the SDK lies as long as nobody moves it.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/rust");

const CARGO_TOML: &str = include_str!("../../templates/rust/Cargo.toml.txt");
const GITIGNORE: &str = include_str!("../../templates/rust/gitignore.txt");
const LIB_RS: &str = include_str!("../../templates/rust/lib.rs.txt");
const CASES_RS: &str = include_str!("../../templates/rust/cases.rs.txt");
const README_MD: &str = include_str!("../../templates/rust/README.md.txt");

/// Words that mean something in Rust, now or some day (the Rust Reference, "Keywords").
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
/// Crates of the template and of Rust. Another of that name cannot be built beside them.
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
/// Types that the template names beside its own.
const TYPES: [&str; 36] = [
    "CandidateView",
    "ChangeEvaluator",
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
    /// Its name: lower-case words joined by hyphens. A folder of that name is made here.
    #[arg(value_name = "NAME")]
    name: String,
    /// The language. So far it is Rust: for C, JavaScript, TypeScript, Python and Go, their SDKs are not there yet.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    lang: Language,
    /// What it shall do; may be given often.
    #[arg(long, value_enum, required = true, value_name = "KIND")]
    kind: Vec<KindName>,
    /// The folder, where it shall not be ./NAME.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The SDK: the folder sdk/rust of a checkout of Opilio [default: that of the checkout this binary was built from].
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

/// Languages that plugins are written in.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// Rust.
    Rust,
    /// Not there yet.
    #[value(hide = true)]
    C,
    /// Not there yet.
    #[value(hide = true)]
    Js,
    /// Not there yet.
    #[value(hide = true)]
    Ts,
    /// Not there yet.
    #[value(hide = true)]
    Python,
    /// Not there yet.
    #[value(hide = true)]
    Go,
}

/// Runs the command.
pub(super) fn run(args: &NewArgs) -> Result<u8> {
    if !matches!(args.lang, Language::Rust) {
        bail!(
            "there is no SDK for {:?} yet, only for rust (for C, JavaScript, TypeScript, Python and Go, their SDKs are not \
             there yet); a component of the contract in wit/ can be written in any language that makes WebAssembly \
             components, and `plugin inspect`, `check`, `test` and `run` take it",
            args.lang
        );
    }
    ensure!(
        is_name(&args.name),
        "{:?} is no name of a plugin: write lower-case words joined by hyphens, such as news-dates",
        args.name
    );
    ensure!(
        !KEYWORDS.contains(&args.name.as_str()),
        "{} is a word of Rust's own, which no crate can be called; add to it, such as {}-plugin",
        args.name,
        args.name
    );
    ensure!(
        !CRATES.contains(&args.name.as_str()),
        "{} is the name of a crate that every plugin is built with; add to it, such as my-{}",
        args.name,
        args.name
    );
    let sdk = sdk(args.sdk.as_deref())?;
    let folder = args
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(&args.name));
    ensure!(!folder.exists(), "{} is there already", folder.display());
    let mut kinds = args.kind.clone();
    kinds.sort_by_key(|kind| kind.word());
    kinds.dedup();
    let profile = profile::load("default").map_err(|faults| anyhow!("{faults}"))?;
    let stacks = &profile.settings().stacks;
    let plugin = NewPlugin {
        name: &args.name,
        kinds: &kinds,
        sdk: &sdk,
        stacks: kinds
            .iter()
            .map(|kind| stack_line(stacks, *kind, &args.name))
            .collect(),
    };
    if opilio_builtin::find(&args.name).is_some() {
        note(&format!(
            "note: a plugin that ships is called {0}, too; where no file {0} is at hand, commands take the bare name for that one",
            args.name
        ));
    }
    for (path, content) in plugin.files() {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, content))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let here = folder.display();
    say(&format!(
        "made {here}\n\n  cd {here}\n  cargo test              # its cases, natively\n  opilio plugin build     # to {}.wasm\n  \
         opilio plugin test      # its cases, put to the component\n  opilio plugin run . FILE\n",
        args.name
    ))?;
    Ok(exit::OK)
}

/// The SDK's folder, as crates name it.
fn sdk(given: Option<&Path>) -> Result<PathBuf> {
    let folder = given.unwrap_or(Path::new(BUILT_FROM));
    let found = folder
        .canonicalize()
        .ok()
        .filter(|folder| folder.join("Cargo.toml").is_file());
    match (found, given) {
        (Some(found), _) => {
            // The bindings are made from the contract, which lies two folders up.
            ensure!(
                found.join("../../wit").is_dir(),
                "{} stands alone: the SDK needs the folder wit/ of its checkout, at ../../wit",
                found.display()
            );
            Ok(found)
        }
        (None, Some(given)) => bail!("{} is not the SDK: it holds no Cargo.toml", given.display()),
        (None, None) => bail!(
            "the checkout that opilio was built from is gone, and the SDK with it: clone the repository and name its folder \
             sdk/rust with --sdk"
        ),
    }
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

/// What the plugin's type is called: none that the template needs, whatever the plugin's name.
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

/// A plugin to be made.
struct NewPlugin<'a> {
    name: &'a str,
    kinds: &'a [KindName],
    sdk: &'a Path,
    /// Lines of a profile, one a kind.
    stacks: Vec<String>,
}

impl NewPlugin<'_> {
    /// Every file, by its path in the folder.
    fn files(&self) -> Vec<(String, String)> {
        vec![
            ("Cargo.toml".to_owned(), self.filled(CARGO_TOML)),
            (".gitignore".to_owned(), GITIGNORE.to_owned()),
            ("README.md".to_owned(), self.filled(README_MD)),
            ("src/lib.rs".to_owned(), self.filled(LIB_RS)),
            ("tests/cases.rs".to_owned(), self.filled(CASES_RS)),
            (format!("cases/{}.json", self.name), self.cases()),
        ]
    }

    fn filled(&self, template: &str) -> String {
        let join = |of: fn(KindName) -> &'static str, by: &str| {
            let parts = self.kinds.iter().map(|kind| of(*kind));
            parts.collect::<Vec<_>>().join(by)
        };
        let type_name = type_name(self.name);
        let exports: Vec<String> = self
            .kinds
            .iter()
            .map(|kind| format!("{}: [{type_name}]", export(*kind)))
            .collect();
        // Of other kinds it is asked about everything.
        let handles = match self.kinds.contains(&KindName::Extractor) {
            true => {
                "\n    fn handles() -> Handles {\n        Handles::media_types(&[\"text/html\"])\n    }\n"
            }
            false => "",
        };
        // Last, since the parts have places of their own.
        let with_parts = template
            .replace("{{impls}}", &join(part, ""))
            .replace("{{stacks}}", &self.stacks.join("\n"));
        let places = [
            ("{{handles}}", handles),
            ("{{exports}}", &exports.join(", ")),
            ("{{kinds}}", &join(KindName::word, ", ")),
            ("{{type}}", &type_name),
            ("{{crate}}", &self.name.replace('-', "_")),
            (
                "{{summary}}",
                "Says what this plugin does, in a sentence for operators.",
            ),
            ("{{setting}}", "word"),
            ("{{setting_key}}", "word"),
            ("{{setting_type}}", "String"),
            ("{{setting_default}}", "\"x-story\".to_owned()"),
            ("{{setting_toml}}", "\"x-story\""),
            ("{{setting_doc}}", "The word that it looks for."),
            ("{{example}}", "page.html"),
            (
                "{{sdk}}",
                &self.sdk.display().to_string().replace('\\', "/"),
            ),
            ("{{name}}", self.name),
        ];
        places.iter().fold(with_parts, |text, (place, value)| {
            text.replace(place, value)
        })
    }

    fn cases(&self) -> String {
        let mut cases: Vec<Value> = self.kinds.iter().map(|kind| self.case(*kind)).collect();
        cases.push(json!({
            "id": format!("{}-empty-word", self.name),
            "plugin": self.name,
            "settings": {"word": ""},
            "call": {"configure": {}},
            "expected": [{"pointer": "/word"}],
        }));
        format!("{:#}\n", Value::from(cases))
    }

    fn case(&self, kind: KindName) -> Value {
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
        };
        json!({
            "id": format!("{}-{}", self.name, kind.word()),
            "plugin": self.name,
            "call": call,
            "expected": expected,
        })
    }
}

/// What it does as one of its kinds.
fn part(kind: KindName) -> &'static str {
    match kind {
        KindName::Extractor => include_str!("../../templates/rust/extractor.txt"),
        KindName::Filter => include_str!("../../templates/rust/filter.txt"),
        KindName::DigestStripper => include_str!("../../templates/rust/digest-stripper.txt"),
        KindName::ChangeEvaluator => include_str!("../../templates/rust/change-evaluator.txt"),
        KindName::WaitEvaluator => include_str!("../../templates/rust/wait-evaluator.txt"),
        KindName::Precedence => include_str!("../../templates/rust/precedence.txt"),
        KindName::Observer => include_str!("../../templates/rust/observer.txt"),
    }
}

/// What `export!` calls plugins of a kind.
fn export(kind: KindName) -> &'static str {
    match kind {
        KindName::Extractor => "extractors",
        KindName::Filter => "filters",
        KindName::DigestStripper => "digest_strippers",
        KindName::ChangeEvaluator => "change_evaluators",
        KindName::WaitEvaluator => "wait_evaluators",
        KindName::Precedence => "precedences",
        KindName::Observer => "observers",
    }
}

/// The stack that plugins of a kind stand in.
fn stage(kind: KindName) -> Stage {
    match kind {
        KindName::Extractor => Stage::Extract,
        KindName::Filter => Stage::Scope,
        KindName::DigestStripper => Stage::Digest,
        KindName::ChangeEvaluator => Stage::Change,
        KindName::WaitEvaluator => Stage::Wait,
        KindName::Precedence => Stage::Precedence,
        KindName::Observer => Stage::Observe,
    }
}

/// A line of a profile: the default stack with the plugin at its end, or before those where the first that answers decides.
fn stack_line(stacks: &Stacks, kind: KindName, name: &str) -> String {
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
    fn a_plugin_is_called_no_type_that_it_needs() {
        assert_eq!(type_name("news-dates"), "NewsDates");
        assert_eq!(type_name("filter"), "FilterPlugin");
        assert_eq!(type_name("wait-evaluator"), "WaitEvaluatorPlugin");
    }
}
