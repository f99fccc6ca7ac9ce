//! Crawls with plugins of every language: fragments go from one to another, the examples archive a small site, and what
//! goes wrong is said with the plugin's name and version, the URI and the guest's own words.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_test_web::{Reply, Web};
use serde_json::Value;

use super::crawl::{Crawl, asked};
use super::steps::{Steps, quietly};
use crate::repository::root;

/// Languages in the order in which they hand a page on; each has a project in `tests/languages`.
const RELAY: [&str; 7] = ["c", "go", "js", "ts", "python", "rust", "cpp"];

/// Plugins that read one page: fragments within fragments are followed four deep.
const RELAY_LENGTH: usize = 5;

/// Faults that a page's content makes each plugin commit, and the expected errors.
const WRONGS: [(&str, &str, &str); 14] = [
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
        "TypeError: links[0].uri must be a text, not number 7",
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

/// Folders of the examples that are the same extractor.
const SCANS: [&str; 6] = ["rust", "c", "go", "javascript", "typescript", "python"];

/// The exit code of a crawl that a limit of its profile has ended, and of one that could not begin.
pub(super) const LIMIT_REACHED: i32 = 4;
const NOT_BEGUN: i32 = 2;

/// The components that only crawls need.
pub(super) fn components(steps: &mut Steps, opilio: &Path, home: &Path) {
    for language in RELAY {
        let (opilio, component) = (opilio.to_owned(), relay(home, language));
        steps.add("crawls", format!("relay-{language}"), move || {
            let mut build = Command::new(&opilio);
            build.args(["plugin", "build"]);
            build.arg(root().join("tests/languages").join(language));
            quietly(
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

/// The crawls.
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
    let of_relay = home.to_owned();
    steps.add(
        "crawls",
        "every language reads a part of a page",
        move || every_language(&relay, &of_relay),
    );
    let of_relay = home.to_owned();
    steps.add("crawls", "what goes wrong is said", move || {
        wrongs(&wrong, &of_relay)
    });
    steps.add("crawls", "the examples archive a site", move || {
        archive(&library)
    });
    steps.add("crawls", "settings that do not fit", move || {
        misfits(&settings)
    });
}

/// The lines of a profile that load the relay.
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

/// An extractor in every language, each of which reads a line of a page and hands the rest to the next.
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
    let asked = asked(&web);
    for line in &lines {
        ensure!(
            asked.contains(line),
            "{line} was not found: a language before has not handed it on; asked for were {asked:?}"
        );
    }
    Ok(())
}

/// Every language is made to fail, and every fault is in the log and in the figures.
fn wrongs(crawl: &Crawl, home: &Path) -> Result<()> {
    let path = |language: &str, how: &str| format!("/{language}/{how}");
    let links: String = WRONGS
        .iter()
        .map(|(language, how, _)| format!("<a href={}>{how}</a>", path(language, how)))
        .collect();
    let mut web = Web::builder();
    let site = web.site("wrong.localhost");
    site.page("/", Reply::html(links));
    for (language, how, _) in WRONGS {
        let media_type = format!("application/x-relay-{language}");
        site.page(&path(language, how), Reply::ok(&media_type, how));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    let output = crawl.run(&[web.url("wrong.localhost", "/")], &relay_lines(home))?;
    output.ended_with(0)?;
    let log = output.file("logs/runtime-errors.log")?;
    for (language, how, words) in WRONGS {
        let uri = web.url("wrong.localhost", &path(language, how));
        let plugin = format!("relay-{language}");
        // A fault is a line and those below it that are indented.
        let faults = log
            .split("\n20")
            .filter(|fault| fault.contains(&format!(" {plugin} ")) && fault.contains(&uri));
        ensure!(
            faults
                .clone()
                .any(|fault| fault.contains("1.0.0") && fault.contains(words)),
            "{plugin} {how}: nothing says its version, {uri} and {words:?}, but:\n{log}"
        );
        let faults = output.figures(&plugin)?["faults"].clone();
        let count: u64 = faults
            .as_object()
            .map_or(0, |all| all.values().filter_map(Value::as_u64).sum());
        ensure!(
            count == 2,
            "{plugin} has gone wrong twice, and its figures say {faults}"
        );
        ensure!(
            output.text.contains(&plugin),
            "the summary does not name {plugin}:\n{}",
            output.text
        );
    }
    Ok(())
}

/// The examples at work on a site that has something for each.
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
    // Long enough for everything to be visited once on a busy machine: what may be a link comes after all that is due.
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
            "{name} was never asked: {figures}"
        );
        ensure!(
            figures["faults"] == serde_json::json!({}),
            "{name} has gone wrong: {figures}"
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
    let asked = asked(&web);
    let place = |path: &str| {
        asked
            .iter()
            .position(|one| one == path)
            .with_context(|| format!("{path} was not found: {asked:?}"))
    };
    place("/static/main.js")?;
    place("/in-a-blob")?;
    ensure!(
        place("/on-climate")? < place("/tokens")?,
        "what is about the subject does not come first: {asked:?}"
    );
    ensure!(
        !asked.iter().any(|path| path == "/behind"),
        "a wall was read for links"
    );
    ensure!(
        asked.iter().any(|path| path == "/auf-deutsch")
            && !asked.iter().any(|path| path == "/nur-von-dort"),
        "a page in another language was read for links: {asked:?}"
    );
    let wall = output.log_of(&web.url(SITE, "/wall"))?;
    ensure!(
        wall.iter()
            .any(|line| line.contains(" -5002 ") && line.contains("walls:consent_wall")),
        "the wall passes for a page: {wall:?}"
    );
    let broken = output.file("observers/broken/broken-links.csv")?;
    ensure!(
        broken.contains("404") && broken.contains("/gone"),
        "the broken link is not in {broken:?}"
    );
    Ok(())
}

/// Settings that the schema refuses, and that the plugin itself refuses, in every language: no crawl begins, and it says why.
fn misfits(crawl: &Crawl) -> Result<()> {
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
            output.ended_with(NOT_BEGUN)?;
            // Whichever way it fits not, the plugin is named as it calls itself.
            let says = output.text.contains("profile.toml:")
                && output.text.contains("link-scan 0.1.0: ")
                && output.text.contains(words);
            ensure!(
                says,
                "{language}, {settings}: it says not place, plugin, version and {words:?}, but:\n{}",
                output.text
            );
            ensure!(
                !output.job.exists(),
                "{language}, {settings}: a job was made"
            );
        }
    }
    Ok(())
}
