//! Crawls with plugins of every language: fragments go from one to another, the examples archive a small site, and what
//! goes wrong is said with the plugin's name and version, the URI and the guest's own words.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_test_web::{Reply, Web};
use serde_json::Value;

use super::steps::{Steps, quietly};
use crate::repository::root;

/// Languages in the order in which they hand a page on; each has a project in `tests/languages`.
const RELAY: [&str; 5] = ["c", "go", "js", "ts", "python"];

/// What each is made to do wrong, by the content of a page, and what it says then.
const WRONGS: [(&str, &str, &str); 10] = [
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
];

/// The examples that archive a site: what the profile calls each, the stack it stands in, its project, its settings.
const LIBRARY: [(&str, &str, &str, &str); 8] = [
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
];

/// Folders of the examples that are the same extractor.
const SCANS: [&str; 6] = ["rust", "c", "go", "javascript", "typescript", "python"];

/// The exit code of a crawl that a limit of its profile has ended, and of one that could not begin.
const LIMIT_REACHED: i32 = 4;
const NOT_BEGUN: i32 = 2;

/// The components that only crawls need.
pub(super) fn components(steps: &mut Steps, opilio: &Path, home: &Path) {
    for language in RELAY {
        let (opilio, component) = (opilio.to_owned(), relay(home, language));
        steps.add("crawls", format!("relay-{language}"), move || {
            let mut build = Command::new(&opilio);
            build.args(["plugin", "build"]);
            build.arg(root().join("tests/languages").join(language));
            quietly(build.arg("--out").arg(&component))
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
        home: home.to_owned(),
        folder: home.join("crawls").join(name),
    };
    let (five, wrong, library, settings) = (
        crawl("relay"),
        crawl("wrong"),
        crawl("library"),
        crawl("settings"),
    );
    steps.add("crawls", "five languages read a page", move || {
        five_languages(&five)
    });
    steps.add("crawls", "what goes wrong is said", move || wrongs(&wrong));
    steps.add("crawls", "the examples archive a site", move || {
        archive(&library)
    });
    steps.add("crawls", "settings that do not fit", move || {
        misfits(&settings)
    });
}

/// A crawl in a folder of its own.
struct Crawl {
    opilio: PathBuf,
    /// Where the components of the relay are.
    home: PathBuf,
    folder: PathBuf,
}

/// What a crawl has said and left.
struct Told {
    job: PathBuf,
    code: Option<i32>,
    said: String,
}

impl Crawl {
    /// Runs it to its end. The profile is the same for all, with these lines besides.
    fn run(&self, seeds: &[String], lines: &str) -> Result<Told> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        fs::create_dir_all(&self.folder)?;
        let profile = self.folder.join("profile.toml");
        let text = format!(
            "name = \"examples\"\nseeds = {seeds:?}\n{lines}\n[politeness]\ndelay-factor = 0.0\nmin-delay = \"0s\"\n\
             max-delay = \"0s\"\n\n[fetch]\nallow-addresses = [\"loopback\"]\n"
        );
        fs::write(&profile, text)?;
        let job = self.folder.join("job");
        let mut crawl = Command::new(&self.opilio);
        crawl.arg("crawl").arg(&profile).arg("--job").arg(&job);
        let ended = crawl.output()?;
        let said =
            [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(Told {
            job,
            code: ended.status.code(),
            said: said.join("\n"),
        })
    }

    /// The lines of a profile that load the relay.
    fn relay(&self) -> String {
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
                    relay(&self.home, language)
                )
            })
            .collect();
        format!("strategy = \"snapshot\"\nstacks.extract = {stack:?}\n{tables}")
    }
}

impl Told {
    fn ended_with(&self, code: i32) -> Result<()> {
        ensure!(
            self.code == Some(code),
            "the crawl ended with {:?}:\n{}",
            self.code,
            self.said
        );
        Ok(())
    }

    fn file(&self, name: &str) -> Result<String> {
        let file = self.job.join(name);
        fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
    }

    /// The lines of the crawl log about a URI, in their order.
    fn log_of(&self, uri: &str) -> Result<Vec<String>> {
        let log = self.file("logs/crawl.log")?;
        let of_uri = log
            .lines()
            .filter(|line| line.split_whitespace().nth(3) == Some(uri));
        Ok(of_uri.map(str::to_owned).collect())
    }

    /// What a plugin's figures are.
    fn figures(&self, plugin: &str) -> Result<Value> {
        let all: Vec<Value> = serde_json::from_str(&self.file("reports/plugins.json")?)?;
        let of = all.into_iter().find(|one| one["name"] == plugin);
        of.with_context(|| format!("the report on plugins has no {plugin}"))
    }
}

fn asked(web: &Web) -> Vec<String> {
    web.requests().into_iter().map(|seen| seen.target).collect()
}

/// Five extractors in five languages, each of which reads a line of a page and hands the rest to the next.
fn five_languages(crawl: &Crawl) -> Result<()> {
    let lines: Vec<String> = RELAY
        .iter()
        .map(|language| format!("/read-by-{language}"))
        .collect();
    let mut web = Web::builder();
    let site = web.site("relay.localhost");
    site.page("/", Reply::html("<a href=/page>the page</a>"));
    site.page(
        "/page",
        Reply::ok("application/x-relay-c", lines.join("\n")),
    );
    for line in &lines {
        site.page(line, Reply::html("found"));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    let told = crawl.run(&[web.url("relay.localhost", "/")], &crawl.relay())?;
    told.ended_with(0)?;
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
fn wrongs(crawl: &Crawl) -> Result<()> {
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
    let told = crawl.run(&[web.url("wrong.localhost", "/")], &crawl.relay())?;
    told.ended_with(0)?;
    let log = told.file("logs/runtime-errors.log")?;
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
        let faults = told.figures(&plugin)?["faults"].clone();
        let count: u64 = faults
            .as_object()
            .map_or(0, |all| all.values().filter_map(Value::as_u64).sum());
        ensure!(
            count == 2,
            "{plugin} has gone wrong twice, and its figures say {faults}"
        );
        ensure!(
            told.said.contains(&plugin),
            "the summary does not name {plugin}:\n{}",
            told.said
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
             <a href=/blob>6</a><a href=/on-climate>7</a>",
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
    let mut lines = String::from(
        "strategy = \"revisit\"\nlimits.documents = 60\nrevisit.min-wait = \"10ms\"\nrevisit.default-wait = \"100ms\"\n\
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
    let told = crawl.run(&[web.url(SITE, "/")], &lines)?;
    told.ended_with(LIMIT_REACHED)?;
    for (name, _, _, _) in LIBRARY {
        let figures = told.figures(name)?;
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
        let log = told.log_of(&web.url(SITE, path))?;
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
    let wall = told.log_of(&web.url(SITE, "/wall"))?;
    ensure!(
        wall.iter()
            .any(|line| line.contains(" -5001 ") && line.contains("walls:consent_wall")),
        "the wall passes for a page: {wall:?}"
    );
    let broken = told.file("observers/broken/broken-links.csv")?;
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
            let told = crawl.run(&["http://127.0.0.1/".to_owned()], &lines)?;
            told.ended_with(NOT_BEGUN)?;
            // The line of the profile says which plugin it is about.
            let says = told.said.contains("profile.toml:") && told.said.contains(words);
            ensure!(
                says,
                "{language}, {settings}: it says neither place nor {words:?}, but:\n{}",
                told.said
            );
            ensure!(!told.job.exists(), "{language}, {settings}: a job was made");
        }
    }
    Ok(())
}
