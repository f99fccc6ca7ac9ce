//! Runs the commands of the book and the READMEs as printed, so that they stay correct.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_build::Language;
use opilio_test_web::{Reply, Web};

use super::crawl::{CrawlOutput, LOOPBACK_SETTINGS, make_empty_folder, requested_paths};
use super::sharing_crates;
use super::steps::{Steps, run_quietly};
use crate::repository::root;

/// The SDKs whose README has a line with the command of their tests. JavaScript's tests are run file by file instead, several at
/// once, and Rust's with the workspace.
const OWN_TESTS: [Language; 3] = [Language::C, Language::Go, Language::Python];

/// Prefix of that line, before the command.
const OWN_TESTS_LABEL: &str = "- **Tests of the SDK:** `";

/// The example site in the book's profile, which readers replace by their own.
const SITE_OF_THE_BOOK: &str = "https://example.org/";

/// The first code block of a language in a page of Markdown.
pub(super) fn block<'t>(page: &'t str, language: &str) -> Result<&'t str> {
    let begin = format!("```{language}\n");
    let (_, behind) = page
        .split_once(&begin)
        .with_context(|| format!("no block of {language}"))?;
    let (block, _) = behind.split_once("```").context("a block without an end")?;
    Ok(block)
}

/// A shell that runs these lines with `opilio` in `PATH`.
pub(super) fn shell(opilio: &Path, lines: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = opilio.parent().map(Path::to_owned).into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)));
    let mut shell = Command::new("sh");
    shell.args(["-ec", lines]).env("OPILIO", opilio);
    sharing_crates(&mut shell);
    if let Ok(path) = path {
        shell.env("PATH", path);
    }
    shell
}

/// Runs the SDKs' own tests with the commands of their READMEs.
pub(super) fn own_tests(steps: &mut Steps, opilio: &Path, which: impl Fn(Language) -> bool) {
    for language in OWN_TESTS.into_iter().filter(|language| which(*language)) {
        let opilio = opilio.to_owned();
        steps.add(language.name(), "the SDK's tests", move || {
            let sdk = root().join("sdk").join(language.sdk());
            let readme = sdk.join("README.md");
            let text = fs::read_to_string(&readme)?;
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(OWN_TESTS_LABEL)?.split('`').next())
                .with_context(|| format!("no line {OWN_TESTS_LABEL}…` in {}", readme.display()))?;
            run_quietly(shell(&opilio, line).current_dir(&sdk))
        });
    }
}

/// Runs the book's five commands, from a new folder to a plugin in a crawl.
pub(super) fn first_plugin(steps: &mut Steps, opilio: &Path, home: &Path) {
    let (opilio, folder) = (opilio.to_owned(), home.join("first-plugin"));
    steps.add("Python", "the book's first plugin", move || {
        let book = fs::read_to_string(root().join("docs/PLUGINS.md"))?;
        let (_, chapter) = book
            .split_once("## A first plugin\n")
            .context("docs/PLUGINS.md has no first plugin")?;
        let mut web = Web::builder();
        let site = web.site("first.localhost");
        site.page("/", Reply::html("<p x-story=\"three.html\">"));
        site.page("/three.html", Reply::html("found"));
        let runtime = tokio::runtime::Runtime::new()?;
        let web = runtime.block_on(web.serve())?;

        make_empty_folder(&folder)?;
        let profile = block(chapter, "toml")?;
        ensure!(
            profile.contains(SITE_OF_THE_BOOK),
            "the book's profile does not name {SITE_OF_THE_BOOK}"
        );
        let profile = profile.replace(SITE_OF_THE_BOOK, &web.url("first.localhost", "/"));
        fs::write(
            folder.join("profile.toml"),
            format!("{profile}\n{LOOPBACK_SETTINGS}"),
        )?;
        let lines = block(chapter, "sh")?;
        let output = CrawlOutput::by(
            shell(&opilio, lines).current_dir(&folder),
            folder.join("jobs"),
        )?;
        output.ended_with(0)?;
        ensure!(
            requested_paths(&web)
                .iter()
                .any(|path| path == "/three.html"),
            "the book's plugin found nothing:\n{}",
            output.text
        );
        let plugins = CrawlOutput::by(
            shell(&opilio, "opilio job plugins jobs/stories").current_dir(&folder),
            folder.join("jobs"),
        )?;
        ensure!(
            plugins
                .text
                .lines()
                .any(|line| line.starts_with("stories ")),
            "the table of plugins has no row of it:\n{}",
            plugins.text
        );
        let source = fs::read_to_string(folder.join("story-links/plugin.py"))?;
        for line in block(chapter, "python")?.lines() {
            ensure!(
                source.contains(line.trim()),
                "the book shows {line:?}, which the new project has not"
            );
        }
        Ok(())
    });
}
