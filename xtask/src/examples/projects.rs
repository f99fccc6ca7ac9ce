//! New projects from `opilio plugin new`: in each language one of every kind and one of a single kind. Each is built, tested and
//! used in a crawl, with the commands of its own README.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_build::Language;
use opilio_test_web::{Reply, Web};
use serde_json::json;

use super::crawl::{Crawl, make_empty_folder, requested_paths};
use super::crawls::LIMIT_REACHED;
use super::documented_commands::{block, shell};
use super::steps::{Steps, run_quietly};
use super::{build_and_test, native};
use crate::repository::root;

const KINDS: [&str; 8] = [
    "extractor",
    "filter",
    "digest-stripper",
    "change-evaluator",
    "wait-evaluator",
    "precedence",
    "observer",
    "page-behavior",
];

/// A language of `plugin new`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template {
    word: &'static str,
    pub(super) language: Language,
    /// The kind of the project of a single kind. Each kind is tested in one language.
    sole_kind: &'static str,
}

pub(super) const TEMPLATES: [Template; 7] = [
    Template::new("rust", Language::Rust, "precedence"),
    Template::new("c", Language::C, "digest-stripper"),
    Template::new("cpp", Language::C, "wait-evaluator"),
    Template::new("go", Language::Go, "observer"),
    Template::new("js", Language::JavaScript, "filter"),
    Template::new("ts", Language::TypeScript, "change-evaluator"),
    Template::new("python", Language::Python, "extractor"),
];

/// The page that the templates' plugins read.
const PAGE: &str = "<p x-story=\"three.html\"> <a href=other.html>other</a>\n";

/// Counter of each kind that a template's plugin increases when it finds its word. Page behaviours need a browser: see
/// `browser.rs`.
const ANSWERS: [(&str, &str); 7] = [
    ("extractor", "links"),
    ("filter", "reject"),
    ("digest-stripper", "spans"),
    ("change-evaluator", "unchanged"),
    ("wait-evaluator", "waits"),
    ("precedence", "ranks"),
    ("observer", "reports"),
];

/// A new project.
#[derive(Clone, Debug)]
pub(super) struct Project {
    name: String,
    pub(super) folder: PathBuf,
    template: &'static str,
    kinds: Vec<&'static str>,
}

impl Template {
    const fn new(word: &'static str, language: Language, sole_kind: &'static str) -> Self {
        Self {
            word,
            language,
            sole_kind,
        }
    }
}

impl Project {
    /// A project with all kinds.
    fn of_every_kind(home: &Path, template: Template) -> Self {
        let name = format!("every-kind-{}", template.word);
        Self {
            folder: home.join("new").join(&name),
            name,
            template: template.word,
            kinds: KINDS.to_vec(),
        }
    }

    /// A project of one kind, in a folder whose name has a blank.
    fn of_one_kind(home: &Path, template: Template) -> Self {
        let name = format!("one-kind-{}", template.word);
        Self {
            folder: folder_with_blank(home).join(&name),
            name,
            template: template.word,
            kinds: vec![template.sole_kind],
        }
    }

    /// An extractor whose SDK is installed as a package in its folder.
    pub(super) fn for_packed(home: &Path, template: &'static str) -> Self {
        let name = format!("packed-{template}");
        Self {
            folder: home.join(&name),
            name,
            template,
            kinds: vec!["extractor"],
        }
    }

    /// Creates the project, replacing an existing one.
    pub(super) fn make(&self, opilio: &Path) -> Result<()> {
        // The command itself creates the folder.
        make_empty_folder(&self.folder)?;
        fs::remove_dir(&self.folder)?;
        let mut new = Command::new(opilio);
        new.args(["plugin", "new", "--lang", self.template, "--dir"]);
        new.arg(&self.folder);
        for kind in &self.kinds {
            new.args(["--kind", kind]);
        }
        run_quietly(new.arg(&self.name))?;
        if self.template == "rust" {
            // With the locked versions of an example, its dependencies need not be compiled again.
            let lock = root().join("plugins/examples/rust/page-language/Cargo.lock");
            fs::copy(lock, self.folder.join("Cargo.lock")).map(drop)?;
        }
        Ok(())
    }

    /// The lines for a profile in its README: the plugin's table, and the entries of the stacks.
    fn profile_lines(&self) -> Result<(String, String)> {
        let readme = fs::read_to_string(self.folder.join("README.md"))?;
        let profile = block(&readme, "toml")?;
        let (plugin, stacks) = profile
            .split_once("[stacks]\n")
            .context("the README of a new project names no stack")?;
        Ok((plugin.to_owned(), stacks.to_owned()))
    }
}

/// A folder whose name must be quoted in a shell.
fn folder_with_blank(home: &Path) -> PathBuf {
    home.join("new ones")
}

/// Tests a project of every kind: its cases natively, its component, and the cases with the component.
pub(super) fn of_every_kind(steps: &mut Steps, opilio: &Path, home: &Path, template: Template) {
    let opilio = opilio.to_owned();
    let project = Project::of_every_kind(home, template);
    steps.add(template.language.name(), project.name.clone(), move || {
        project.make(&opilio)?;
        native::cases(&project.folder)?;
        build_and_test(&opilio, &project.folder)
    });
}

/// Tests a project of one kind, in a folder whose name has a blank. The commands of its README are run as printed: they install
/// dependencies, run the cases, and build, try and check the component.
pub(super) fn of_one_kind(steps: &mut Steps, opilio: &Path, home: &Path, template: Template) {
    let opilio = opilio.to_owned();
    let project = Project::of_one_kind(home, template);
    let language = template.language;
    let name = format!("{}, {} alone", project.name, template.sole_kind);
    steps.add(language.name(), name, move || {
        project.make(&opilio)?;
        fs::write(project.folder.join("page.html"), PAGE)?;
        let readme = fs::read_to_string(project.folder.join("README.md"))?;
        run_quietly(shell(&opilio, block(&readme, "sh")?).current_dir(&project.folder))?;
        is_formatted(&project.folder, language)
    });
}

/// Checks that the code of a new project is formatted as the language's own formatter does it.
fn is_formatted(folder: &Path, language: Language) -> Result<()> {
    match language {
        Language::Rust => {
            let mut check = opilio_build::cargo();
            run_quietly(check.args(["fmt", "--check"]).current_dir(folder))
        }
        Language::Go => {
            let mut list = Command::new("gofmt");
            let listed = crate::command::output(list.args(["-d", "."]).current_dir(folder))?;
            ensure!(listed.is_empty(), "{}: {listed}", folder.display());
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Projects of each kind and of all kinds, with short and long names, must be formatted.
pub(super) fn formatted(steps: &mut Steps, opilio: &Path, home: &Path) {
    let formatters = [Language::Rust, Language::Go];
    let templates = TEMPLATES.into_iter();
    for template in templates.filter(|template| formatters.contains(&template.language)) {
        let Template { language, word, .. } = template;
        let (opilio, home) = (opilio.to_owned(), home.join("formatted"));
        steps.add(language.name(), "new projects are formatted", move || {
            let long = "a-name-that-is-as-long-as-that-of-any-plugin-may-ever-become-now";
            for name in ["ab", long] {
                for kinds in KINDS.chunks(1).chain([KINDS.as_slice()]) {
                    let project = Project {
                        name: name.to_owned(),
                        folder: home.join(word).join(name),
                        template: word,
                        kinds: kinds.to_vec(),
                    };
                    project.make(&opilio)?;
                    is_formatted(&project.folder, language)?;
                }
            }
            Ok(())
        });
    }
}

/// Crawls with each project and the profile lines of its README: projects of every kind one by one, projects of one kind together.
pub(super) fn crawls(steps: &mut Steps, opilio: &Path, home: &Path) {
    let crawl = |name: &str| Crawl {
        opilio: opilio.to_owned(),
        folder: home.join("crawls").join(name),
    };
    for template in TEMPLATES {
        let project = Project::of_every_kind(home, template);
        let crawl = crawl(&project.name);
        steps.add("crawls", project.name.clone(), move || {
            crawl_with(&crawl, &[project], |_| "x-story".to_owned())
        });
    }
    let projects: Vec<Project> = TEMPLATES
        .map(|template| Project::of_one_kind(home, template))
        .into();
    let crawl = crawl("one-kind");
    steps.add("crawls", "one-kind plugins together", move || {
        crawl_with(&crawl, &projects, |project| {
            format!("x-{}", project.kinds[0])
        })
    });
}

/// Crawls a site with content for each kind, where every plugin looks for a word of its own.
fn crawl_with(
    crawl: &Crawl,
    projects: &[Project],
    word: impl Fn(&Project) -> String,
) -> Result<()> {
    const SITE: &str = "new.localhost";
    let mut web = Web::builder();
    let site = web.site(SITE);
    let words: Vec<String> = projects.iter().map(&word).collect();
    // Links and attributes with the word, and a page whose bytes change while its content does not.
    let page: String = words
        .iter()
        .map(|word| format!("<a href=/{word}>1</a> <p {word}=\"three.html\">"))
        .collect();
    site.page("/", Reply::html(page + "<a href=/changing>2</a>"));
    site.answer("/changing", |seen| {
        Reply::html(format!("<p>{}", seen.visit))
    });
    site.page("/three.html", Reply::html("found"));
    for word in &words {
        site.page(
            &format!("/{word}"),
            Reply::html("a page with the word in its name"),
        );
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;

    let mut plugins = String::new();
    let mut stacks = String::from("[stacks]\n");
    for project in projects {
        let (table, lines) = project.profile_lines()?;
        let component = format!("./{0}/{0}.wasm", project.name);
        ensure!(table.contains(&component), "no {component} in {table:?}");
        let built = project.folder.join(&project.name).with_extension("wasm");
        plugins += &table
            .replace(&component, &built.display().to_string())
            .replace("x-story", &word(project));
        stacks += &lines;
    }
    let output = crawl.run(
        &[web.url(SITE, "/")],
        &format!(
            "strategy = \"revisit\"\nlimits.documents = 40\nlimits.time = \"5m\"\nrevisit.min-wait = \"10ms\"\n\
             revisit.default-wait = \"100ms\"\nrevisit.max-wait = \"200ms\"\n{plugins}{stacks}"
        ),
    )?;
    output.ended_with(LIMIT_REACHED)?;
    for project in projects {
        let figures = output.figures(&project.name)?;
        ensure!(
            figures["faults"] == json!({}),
            "{} had plugin errors: {figures}",
            project.name
        );
        for (kind, answer) in ANSWERS {
            // Documents that the filter rejects are not passed to the other kinds of the plugin.
            let is_hidden = project.kinds.len() > 1 && ["waits", "ranks"].contains(&answer);
            let answer = if is_hidden { "pass" } else { answer };
            ensure!(
                !project.kinds.contains(&kind) || figures["outputs"][answer].as_u64() > Some(0),
                "{} as {kind} has not counted {answer}: {figures}",
                project.name
            );
        }
    }
    let requested = requested_paths(&web);
    ensure!(
        requested.iter().any(|path| path == "/three.html"),
        "a link that an extractor found was not requested: {requested:?}"
    );
    Ok(())
}
