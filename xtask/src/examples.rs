//! `cargo xtask examples`: everything that is said of plugins in other languages, built and tried.
//!
//! Fetches toolchains from package registries into `target/toolchains` (Go's comes with the machine), runs the SDKs' own
//! tests, builds every example and a new plugin of every kind in every language, puts their golden cases to the components,
//! and has five languages read one page, each what the one before handed on. `--measure` prints the table in
//! `docs/PLUGINS.md` instead: the same extractor in all of them on the same pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_build::Language;
use opilio_test_web::{Reply, Web};

use crate::command::{output, status};
use crate::repository::root;

mod measured;

/// Versions that were tried, as the SDKs name them.
const ZIG: &str = "ziglang==0.15.2";
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";
const NODE_PACKAGES: [&str; 3] = [
    "componentize-qjs@0.4.5",
    "esbuild@0.25.12",
    "typescript@5.9.3",
];

/// Languages as `plugin new` knows them, Rust aside: its template is built by the tests.
const LANGUAGES: [&str; 5] = ["c", "go", "js", "ts", "python"];
const KINDS: [&str; 7] = [
    "extractor",
    "filter",
    "digest-stripper",
    "change-evaluator",
    "wait-evaluator",
    "precedence",
    "observer",
];

/// Options of `cargo xtask examples`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the table that compares the languages, and nothing else.
    #[arg(long)]
    measure: bool,
    /// A program to build and measure with, such as a release build, instead of one made for it.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(crate) fn run(options: &Options) -> Result<()> {
    let opilio = match &options.opilio {
        Some(file) => file
            .canonicalize()
            .with_context(|| format!("no program {}", file.display()))?,
        None => crate::judges::build_opilio()?,
    };
    toolchains()?;
    if options.measure {
        println!("{}", measured::table(&opilio)?);
        return Ok(());
    }
    sdk_tests(&opilio)?;
    let examples = examples()?;
    for folder in &examples {
        build_and_test(&opilio, folder)?;
    }
    // C++ on the SDK of C; and two that reach for clocks, files, sockets: their cases say that nothing is there.
    for project in ["cpp", "inert-c", "inert-go"] {
        build_and_test(&opilio, &root().join("tests/languages").join(project))?;
    }
    for language in LANGUAGES {
        new_plugin(&opilio, language)?;
    }
    relay(&opilio)?;
    println!(
        "examples: {} built and their cases hold; new plugins of every kind in {} languages build and hold theirs; a page was \
         read by {} languages, each what the one before left",
        examples.len(),
        LANGUAGES.len(),
        LANGUAGES.len(),
    );
    Ok(())
}

/// What the examples are built with, where it is not there yet.
fn toolchains() -> Result<()> {
    let home = root().join("target/toolchains");
    fs::create_dir_all(&home)?;
    for (name, package, program) in [
        ("c", ZIG, "python-zig"),
        ("python", COMPONENTIZE_PY, "componentize-py"),
    ] {
        let environment = home.join(name);
        if environment.join("bin").join(program).is_file() {
            continue;
        }
        status(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment),
        )?;
        let mut install = Command::new(environment.join("bin/python"));
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            package,
        ]);
        status(&mut install)?;
    }
    let node = home.join("js");
    fs::create_dir_all(&node)?;
    if NODE_PACKAGES
        .iter()
        .any(|package| !node.join("node_modules").join(name(package)).is_dir())
    {
        let mut install = Command::new("npm");
        install.args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--save-exact",
            "--prefix",
        ]);
        status(install.arg(&node).args(NODE_PACKAGES))?;
    }
    Ok(())
}

/// The package without its version.
fn name(package: &str) -> &str {
    package.rsplit_once('@').map_or(package, |(name, _)| name)
}

/// The tests that SDKs have of their own.
fn sdk_tests(opilio: &Path) -> Result<()> {
    let sdk = root().join("sdk");
    let program = root().join("target/toolchains/sdk-c-tests");
    let mut compile = Command::new("cc");
    compile.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Iinclude",
        "-isystem",
        "bindings",
        "-o",
    ]);
    compile.arg(&program).current_dir(sdk.join("c"));
    for folder in ["src", "test"] {
        for file in sorted(&sdk.join("c").join(folder))? {
            if file.extension().is_some_and(|ending| ending == "c") {
                compile.arg(file);
            }
        }
    }
    status(&mut compile)?;
    status(&mut Command::new(program))?;
    status(
        Command::new("go")
            .args(["test", "./..."])
            .current_dir(sdk.join("go")),
    )?;
    let hours = root().join("plugins/examples/go/publishing-hours");
    status(
        Command::new("go")
            .args(["test", "./..."])
            .current_dir(hours),
    )?;
    // Those of JavaScript and Python build components of their own, which look for a way out and go wrong.
    let mut javascript = Command::new("node");
    javascript.args(["--test", "--test-reporter=spec"]);
    for file in sorted(&sdk.join("js/test"))? {
        if file.to_string_lossy().ends_with(".test.mjs") {
            javascript.arg(file);
        }
    }
    status(javascript.env("OPILIO", opilio))?;
    let mut python = Command::new("python3");
    python.args(["-m", "unittest", "discover", "--quiet"]);
    python.current_dir(sdk.join("python/tests"));
    status(python.env("PYTHONPATH", "..").env("OPILIO", opilio))
}

/// Folders in `plugins/examples/LANGUAGE` that hold a project.
fn examples() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for language in sorted(&root().join("plugins/examples"))? {
        if language.is_dir() {
            found.extend(sorted(&language)?);
        }
    }
    found.retain(|folder| Language::of(folder).is_some());
    Ok(found)
}

/// What a folder holds, by name.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}

fn build_and_test(opilio: &Path, folder: &Path) -> Result<()> {
    status(Command::new(opilio).args(["plugin", "build"]).arg(folder))?;
    status(Command::new(opilio).args(["plugin", "test"]).arg(folder))
}

/// A plugin of every kind as it is made, built, and held to its cases.
fn new_plugin(opilio: &Path, language: &str) -> Result<()> {
    let home = root().join("target/toolchains/new");
    fs::create_dir_all(&home)?;
    let folder = home.join(format!("every-kind-{language}"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut new = Command::new(opilio);
    new.args(["plugin", "new", "--lang", language, "--dir"]);
    new.arg(&folder);
    for kind in KINDS {
        new.args(["--kind", kind]);
    }
    output(new.arg(format!("every-kind-{language}")))?;
    build_and_test(opilio, &folder)
}

/// Five extractors in five languages, each of which reads a line of a page and hands the rest to the next.
fn relay(opilio: &Path) -> Result<()> {
    let home = root().join("target/toolchains/relay");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let mut plugins = String::new();
    for language in LANGUAGES {
        let component = home.join(format!("relay-{language}.wasm"));
        let mut build = Command::new(opilio);
        build.args(["plugin", "build"]);
        build.arg(root().join("tests/languages").join(language));
        status(build.arg("--out").arg(&component))?;
        plugins +=
            &format!("[plugins.relay-{language}]\ncomponent = \"./relay-{language}.wasm\"\n\n");
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let read = |language: &str| format!("/read-by-{language}");
        let lines: Vec<String> = LANGUAGES.into_iter().map(read).collect();
        let mut web = Web::builder();
        let site = web.site("relay.localhost");
        site.page("/", Reply::html("<a href=/page>the page</a>"));
        site.page("/page", Reply::ok("application/x-relay-c", lines.join("\n")));
        for line in &lines {
            site.page(line, Reply::html("found"));
        }
        let web = web.serve().await?;
        let names: Vec<String> = LANGUAGES
            .into_iter()
            .map(|language| format!("relay-{language}"))
            .collect();
        let extractors: Vec<&str> = ["http", "html"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .collect();
        let profile = home.join("profile.toml");
        fs::write(
            &profile,
            format!(
                r#"name = "relay"
strategy = "snapshot"
seeds = [{:?}]

[politeness]
delay-factor = 0.0
min-delay = "0s"
max-delay = "0s"

[fetch]
allow-addresses = ["loopback"]

[stacks]
extract = {extractors:?}

{plugins}"#,
                web.url("relay.localhost", "/"),
            ),
        )?;
        let mut crawl = tokio::process::Command::new(opilio);
        crawl.arg("crawl").arg(&profile).arg("--job").arg(home.join("job"));
        let ended = crawl.status().await?;
        ensure!(ended.success(), "the crawl of five languages ended with {ended}");
        let asked: Vec<String> = web.requests().into_iter().map(|seen| seen.target).collect();
        for line in &lines {
            ensure!(
                asked.contains(line),
                "{line} was not found: a language before has not handed it on; asked for were {asked:?}"
            );
        }
        Ok(())
    })
}
