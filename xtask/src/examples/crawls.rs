//! Crawls with plugins of every language. Fragments pass from one language to the next, and the examples archive a small site.
//! Plugin errors must be reported with the plugin's name and version, the URI and the guest's message.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_test_web::{Reply, Web};
use serde_json::Value;

use super::crawl::{Crawl, requested_paths};
use super::steps::{Steps, run_quietly};
use crate::repository::root;

/// Languages in the order in which they pass on a page. Each has a project in `tests/languages`.
const RELAY: [&str; 7] = ["c", "go", "js", "ts", "python", "rust", "cpp"];

/// Number of plugins that read one page. Nested fragments are extracted four levels deep.
const RELAY_LENGTH: usize = 5;

/// Plugin errors that the content of a page triggers in each plugin, and the expected messages.
const PLUGIN_ERRORS: [(&str, &str, &str); 14] = [
    ("c", "fail", "relay-c was told to fail"),
    ("c", "wrong", "out of bounds memory access"),
    ("go", "fail", "panic: relay-go was told to fail"),
    ("go", "wrong", "index out of range [5] with length 1"),
    ("js", "fail", "RangeError: relay-js was told to fail"),
    ("js", "wrong", "TypeError: links must be"),
    ("ts", "fail", "RangeError: relay-ts was told to fail"),
    (
        "ts",
        "wrong",
        "TypeError: links[0].uri must be a string, not number 7",
    ),
    (
        "python",
        "fail",
        "ValueError: relay-python was told to fail",
    ),
    (
        "python",
        "wrong",
        "WrongType: links[0].uri must be a str, not int 7",
    ),
    ("rust", "fail", "relay-rust was told to fail"),
    ("rust", "wrong", "the len is 5 but the index is 5"),
    ("cpp", "fail", "relay-cpp was told to fail"),
    ("cpp", "wrong", "vector"),
];

/// The examples that archive a site: name in the profile, stack, project, settings.
const LIBRARY: [(&str, &str, &str, &str); 9] = [
    ("routes", "extract", "javascript/route-manifest", ""),
    ("anything", "extract", "c/universal-scan", ""),
    ("walls", "post-fetch", "typescript/consent-wall", ""),
    ("tokens", "digest", "c/hex-tokens", ""),
    ("words", "change", "python/visible-text", ""),
    (
        "office",
        "wait",
        "go/publishing-hours",
        "busy = '100ms', quiet = '100ms'",
    ),
    (
        "subject",
        "precedence",
        "python/keyword-precedence",
        "keywords = ['climate']",
    ),
    ("broken", "observe", "go/broken-links", ""),
    (
        "written",
        "pre-extract",
        "rust/page-language",
        "languages = ['en'], words-min = 5",
    ),
];

/// Folders of the examples that implement the same extractor.
const SCANS: [&str; 6] = ["rust", "c", "go", "javascript", "typescript", "python"];

/// Exit codes of a crawl that was ended by a limit of its profile, and of a crawl that could not start.
pub(super) const LIMIT_REACHED: i32 = 4;
const NOT_STARTED: i32 = 2;

/// The components that only these crawls need.
pub(super) fn components(steps: &mut Steps, opilio: &Path, home: &Path) {
    for language in RELAY {
        let (opilio, component) = (opilio.to_owned(), relay(home, language));
        steps.add("crawls", format!("relay-{language}"), move || {
            let mut build = Command::new(&opilio);
            build.args(["plugin", "build"]);
            build.arg(root().join("tests/languages").join(language));
            run_quietly(
                super::sharing_crates(&mut build)
                    .arg("--out")
                    .arg(&component),
            )
        });
    }
}

fn relay(home: &Path, language: &str) -> PathBuf {
    home.join(format!("relay-{language}.wasm"))
}

/// Adds the crawls to the steps.
pub(super) fn crawls(steps: &mut Steps, opilio: &Path, home: &Path) {
    let crawl = |name: &str| Crawl {
        opilio: opilio.to_owned(),
        folder: home.join("crawls").join(name),
    };
    let (relay, wrong, library, settings) = (
        crawl("relay"),
        crawl("wrong"),
        crawl("library"),
        crawl("settings"),
    );
    let components_folder = home.to_owned();
    steps.add(
        "crawls",
        "every language reads a part of a page",
        move || every_language(&relay, &components_folder),
    );
    let components_folder = home.to_owned();
    steps.add("crawls", "plugin errors are reported", move || {
        plugin_errors(&wrong, &components_folder)
    });
    steps.add("crawls", "the examples archive a site", move || {
        archive(&library)
    });
    steps.add("crawls", "settings that do not fit", move || {
        refused_settings(&settings)
    });
}

/// The lines of a profile that load the extractors of the chain.
fn relay_lines(home: &Path) -> String {
    let names: Vec<String> = RELAY
        .iter()
        .map(|language| format!("relay-{language}"))
        .collect();
    let stack: Vec<&str> = ["http", "html"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let tables: String = RELAY
        .iter()
        .map(|language| {
            format!(
                "plugins.relay-{language}.component = {:?}\n",
                relay(home, language)
            )
        })
        .collect();
    format!("strategy = \"snapshot\"\nstacks.extract = {stack:?}\n{tables}")
}

/// Crawls with an extractor in every language. Each reads a line of a page and passes the rest to the next.
fn every_language(crawl: &Crawl, home: &Path) -> Result<()> {
    let mut web = Web::builder();
    let site = web.site("relay.localhost");
    let mut lines = Vec::new();
    let mut links = String::new();
    for (first, language) in RELAY.iter().enumerate().step_by(RELAY_LENGTH - 1) {
        let others = RELAY.iter().cycle().skip(first).take(RELAY_LENGTH);
        let of_page: Vec<String> = others
            .map(|other| format!("/from-{language}/read-by-{other}"))
            .collect();
        let page = format!("/from-{language}");
        links += &format!("<a href={page}>a page</a>");
        let media_type = format!("application/x-relay-{language}");
        site.page(&page, Reply::ok(&media_type, of_page.join("\n")));
        lines.extend(of_page);
    }
    site.page("/", Reply::html(links));
    for line in &lines {
        site.page(line, Reply::html("found"));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    let output = crawl.run(&[web.url("relay.localhost", "/")], &relay_lines(home))?;
    output.ended_with(0)?;
    let requested = requested_paths(&web);
    for line in &lines {
        ensure!(
            requested.contains(line),
            "{line} was not found: an earlier plugin of the chain did not pass it on; requested were {requested:?}"
        );
    }
    Ok(())
}

/// Triggers every plugin error in every language, and checks that each is in the log and in the statistics.
fn plugin_errors(crawl: &Crawl, home: &Path) -> Result<()> {
    let path = |language: &str, how: &str| format!("/{language}/{how}");
    let links: String = PLUGIN_ERRORS
        .iter()
        .map(|(language, how, _)| format!("<a href={}>{how}</a>", path(language, how)))
        .collect();
    let mut web = Web::builder();
    let site = web.site("wrong.localhost");
    site.page("/", Reply::html(links));
    for (language, how, _) in PLUGIN_ERRORS {
        let media_type = format!("application/x-relay-{language}");
        site.page(&path(language, how), Reply::ok(&media_type, how));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    let output = crawl.run(&[web.url("wrong.localhost", "/")], &relay_lines(home))?;
    output.ended_with(0)?;
    let log = output.file("logs/runtime-errors.log")?;
    for (language, how, words) in PLUGIN_ERRORS {
        let uri = web.url("wrong.localhost", &path(language, how));
        let plugin = format!("relay-{language}");
        // An error is one line and the indented lines below it.
        let faults = log
            .split("\n20")
            .filter(|fault| fault.contains(&format!(" {plugin} ")) && fault.contains(&uri));
        ensure!(
            faults
                .clone()
                .any(|fault| fault.contains("1.0.0") && fault.contains(words)),
            "{plugin} {how}: no log line has its version, {uri} and {words:?}:\n{log}"
        );
        let faults = output.figures(&plugin)?["faults"].clone();
        let count: u64 = faults
            .as_object()
            .map_or(0, |all| all.values().filter_map(Value::as_u64).sum());
        ensure!(
            count == 2,
            "{plugin} caused two plugin errors, but its statistics have {faults}"
        );
        ensure!(
            output.text.contains(&plugin),
            "the summary does not name {plugin}:\n{}",
            output.text
        );
    }
    Ok(())
}

/// Crawls a site that has content for each of the examples.
fn archive(crawl: &Crawl) -> Result<()> {
    const SITE: &str = "library.localhost";
    let mut web = Web::builder();
    let site = web.site(SITE);
    site.page(
        "/",
        Reply::html(
            "<a href=/tokens>1</a><a href=/words>2</a><a href=/gone>3</a><a href=/wall>4</a><a href=/asset-manifest.json>5</a>\
             <a href=/blob>6</a><a href=/on-climate>7</a><a href=/auf-deutsch>8</a>",
        ),
    );
    site.page(
        "/auf-deutsch",
        Reply::html(
            "<p>Das ist eine Seite, die nicht auf Englisch ist. <a href=/nur-von-dort>x</a>",
        ),
    );
    site.answer("/tokens", |seen| {
        Reply::html(format!(
            "<p>the same</p><i id={:032x}></i>",
            0xfeed_beef_u128 << seen.visit
        ))
    });
    site.answer("/words", |seen| {
        Reply::html(format!("<p class=v{}>the same words</p>", seen.visit))
    });
    site.page("/gone", Reply::status(404));
    site.page(
        "/wall",
        Reply::html(
            "<form action='/collectConsent'><button>agree</button></form><a href=/behind>x</a>",
        ),
    );
    site.page(
        "/asset-manifest.json",
        Reply::ok(
            "application/json",
            r#"{"files": {"main.js": "/static/main.js"}, "entrypoints": []}"#,
        ),
    );
    site.answer("/blob", |seen| {
        let host = seen
            .headers
            .get("host")
            .and_then(|host| host.to_str().ok())
            .unwrap_or_default();
        Reply::ok(
            "application/x-disk-image",
            format!("\u{1}\u{2}\u{3}http://{host}/in-a-blob\u{0}\u{4}"),
        )
    });
    for path in ["/on-climate", "/static/main.js", "/in-a-blob"] {
        site.page(path, Reply::html("a page"));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    // Enough time for all documents to be visited once on a busy machine. Speculative links come after all due URIs.
    let mut lines = String::from(
        "strategy = \"revisit\"\nlimits.documents = 15\nrevisit.min-wait = \"10s\"\nrevisit.default-wait = \"10s\"\n\
         stacks.extract = [\"http\", \"html\", \"routes\", \"anything\"]\nstacks.last-resort = [\"anything\"]\n",
    );
    for (name, stack, project, settings) in LIBRARY {
        let folder = root().join("plugins/examples").join(project);
        let file = folder
            .join(folder.file_name().unwrap_or_default())
            .with_extension("wasm");
        lines +=
            &format!("plugins.{name} = {{ component = {file:?}, settings = {{ {settings} }} }}\n");
        if stack != "extract" {
            lines += &format!("stacks.{stack} = [{name:?}]\n");
        }
    }
    let output = crawl.run(&[web.url(SITE, "/")], &lines)?;
    output.ended_with(LIMIT_REACHED)?;
    for (name, _, _, _) in LIBRARY {
        let figures = output.figures(name)?;
        ensure!(
            figures["calls"].as_u64() > Some(0),
            "{name} was never called: {figures}"
        );
        ensure!(
            figures["faults"] == serde_json::json!({}),
            "{name} had plugin errors: {figures}"
        );
    }
    for path in ["/tokens", "/words"] {
        let log = output.log_of(&web.url(SITE, path))?;
        ensure!(log.len() > 1, "{path} was visited {} times", log.len());
        for line in &log[1..] {
            ensure!(
                line.contains("unchanged") && line.contains("1ver"),
                "{path} counts as changed: {line}"
            );
        }
    }
    let requested = requested_paths(&web);
    let place = |path: &str| {
        requested
            .iter()
            .position(|one| one == path)
            .with_context(|| format!("{path} was not found: {requested:?}"))
    };
    place("/static/main.js")?;
    place("/in-a-blob")?;
    ensure!(
        place("/on-climate")? < place("/tokens")?,
        "pages about the subject were not requested first: {requested:?}"
    );
    ensure!(
        !requested.iter().any(|path| path == "/behind"),
        "links were extracted from a consent wall"
    );
    ensure!(
        requested.iter().any(|path| path == "/auf-deutsch")
            && !requested.iter().any(|path| path == "/nur-von-dort"),
        "links were extracted from a page in another language: {requested:?}"
    );
    let wall = output.log_of(&web.url(SITE, "/wall"))?;
    ensure!(
        wall.iter()
            .any(|line| line.contains(" -5002 ") && line.contains("walls:consent_wall")),
        "the wall was taken for a page: {wall:?}"
    );
    let broken = output.file("observers/broken/broken-links.csv")?;
    ensure!(
        broken.contains("404") && broken.contains("/gone"),
        "the broken link is not in {broken:?}"
    );
    Ok(())
}

/// Settings that violate the schema, or that the plugin refuses, in every language. No crawl starts, and the message has the
/// reason.
fn refused_settings(crawl: &Crawl) -> Result<()> {
    for language in SCANS {
        let component = root()
            .join("plugins/examples")
            .join(language)
            .join("link-scan/link-scan.wasm");
        for (settings, words) in [
            ("attributes = 3", "expected a list, found the number 3"),
            (
                "attributes = [\"href\", \"\"]",
                "not a name of an attribute",
            ),
            ("attribute = []", "unknown key \"attribute\""),
        ] {
            let lines = format!(
                "strategy = \"snapshot\"\nstacks.extract = [\"http\", \"scan\"]\n\
                 plugins.scan = {{ component = {component:?}, settings = {{ {settings} }} }}\n"
            );
            let output = crawl.run(&["http://127.0.0.1/".to_owned()], &lines)?;
            output.ended_with(NOT_STARTED)?;
            // Whatever the reason, the message has the plugin's own name.
            let is_complete = output.text.contains("profile.toml:")
                && output.text.contains("link-scan 0.1.0: ")
                && output.text.contains(words);
            ensure!(
                is_complete,
                "{language}, {settings}: the message lacks place, plugin, version or {words:?}:\n{}",
                output.text
            );
            ensure!(
                !output.job.exists(),
                "{language}, {settings}: a job was created"
            );
        }
    }
    Ok(())
}
