//! Plugins that are replaced while a crawl runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use opilio_control::{Command, CommandResponse, restore};
use opilio_stories::{Misdeed, Story, asked, crawl, html, scope_filter, site, until};
use opilio_test_web::{Gate, Web};
use serde_json::{Value, json};

use crate::revisits::visits;

const WWW: &str = "www.story.localhost";

/// Returns the shipped HTML extractor with an added section, so that each remark gives another digest.
pub(crate) fn html_extractor(remark: &str) -> Vec<u8> {
    let mut component = opilio_builtin::find("html").unwrap().component.to_vec();
    let name = b"remark";
    let length = 1 + name.len() + remark.len();
    component.extend([0, u8::try_from(length).unwrap(), 6]);
    component.extend(name);
    component.extend(remark.as_bytes());
    component
}

pub(crate) fn file(story: &Story, name: &str, component: &[u8]) -> PathBuf {
    let file = story.job().with_file_name(name);
    std::fs::write(&file, component).unwrap();
    file
}

pub(crate) fn replace(component: &Path) -> Command {
    Command::ReplacePlugin {
        plugin: "pages".to_owned(),
        component: format!("{}#html", component.display()),
        sha256: None,
        settings: None,
    }
}

pub(crate) fn with_pages(component: &[u8]) -> Story {
    crawl()
        .plugin("pages#html", component)
        .profile("[stacks]\nextract = ['http', 'pages']")
}

fn plugins_file(job: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(job.join("plugins.json")).unwrap()).unwrap()
}

/// Serves a page behind the gate, and a page with a link that is fetched after it. A visit ends with the plugins that it began
/// with, so the effect of a replacement shows in the second page.
async fn pages_in_turn(gate: &Gate) -> Web {
    site(WWW)
        .page("/", html("first").behind(gate))
        .page("/next.html", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await
}

/// Adds both pages as seeds in this order, with a long timeout.
fn in_turn(story: Story, web: &Web) -> Story {
    story
        .profile("fetch.response-timeout = '10m'")
        .seed(web.url(WWW, "/"))
        .seed(web.url(WWW, "/next.html"))
}

const HUBS: usize = 30;
const PAGES: usize = 8;
const SWAPS: usize = 100;

#[tokio::test]
async fn a_hundred_replacements_under_load_lose_nothing() {
    let gate = Gate::of(2);
    let hubs: String = (0..HUBS)
        .map(|hub| format!("<a href='/to/{hub}'>hub</a>"))
        .collect();
    let links: String = (0..PAGES)
        .map(|page| format!("<a href='{page}/'>page</a>"))
        .collect();
    let mut web = site(WWW)
        .page("/", html(&format!("{hubs}<a href='/last.html'>last</a>")))
        .page(
            "/last.html",
            html("<a href='/behind-the-last.html'>x</a>").behind(&gate),
        )
        .page("/behind-the-last.html", html("the end"));
    let mut expected =
        BTreeSet::from(["/", "/last.html", "/behind-the-last.html"].map(str::to_owned));
    for hub in 0..HUBS {
        let target = format!("/to/{hub}");
        web = web.page(
            &target,
            html(&links.replace("href='", &format!("href='/{hub}/"))),
        );
        expected.insert(target);
        for page in 0..PAGES {
            let target = format!("/{hub}/{page}/");
            web = web.page(&target, html("<a href='deep.html'>deep</a>"));
            web = web.page(&format!("{target}deep.html"), html("deep"));
            expected.insert(format!("{target}deep.html"));
            expected.insert(target);
        }
    }
    let web = web.serve().await;
    let versions = ["a", "b"].map(html_extractor);
    let story = with_pages(&versions[0])
        .profile("workers = 8\nqueue.valence = 8\nfetch.response-timeout = '10m'")
        .seed(web.url(WWW, "/"));
    let files = ["a.wasm", "b.wasm"];
    let files: Vec<PathBuf> = files
        .iter()
        .zip(&versions)
        .map(|(name, component)| file(&story, name, component))
        .collect();
    let operator = async {
        until("the crawl has begun", || !asked(&web).is_empty()).await;
        for swap in 1..=SWAPS {
            story.order(replace(&files[swap % 2])).await.unwrap();
        }
        gate.come();
    };
    let (result, ()) = story.run_with(operator).await;
    let result = result.finished();

    let found: BTreeSet<String> = expected.iter().map(|target| web.url(WWW, target)).collect();
    for uri in &found {
        assert_eq!(result.sole(uri).status, 200, "{uri}");
    }
    let pages = result
        .log
        .iter()
        .filter(|line| line.uri.starts_with("http") && !line.uri.ends_with("robots.txt"));
    assert_eq!(pages.count(), found.len());
    let pages = result.summary.plugins.iter();
    let pages = pages.filter(|plugin| plugin.name == "pages");
    let calls: u64 = pages.map(|plugin| plugin.calls).sum();
    // robots.txt is a document, too.
    let documents = found.len() as u64 + 1;
    assert_eq!(
        calls, documents,
        "one version of the plugin was called for each document"
    );
    assert_eq!(result.summary.progress.faults, 0);
    let log = result.log_file("job.log");
    let lines = log.lines().filter(|line| line.contains(" plugin replace "));
    assert_eq!(lines.count(), SWAPS, "{log}");
}

#[tokio::test]
async fn a_replacement_survives_a_restart_without_its_file() {
    let gate = Gate::of(2);
    let web = pages_in_turn(&gate).await;
    let story = in_turn(
        with_pages(&opilio_stories::html_extractor(Misdeed::Traps)),
        &web,
    );
    let better = file(&story, "better.wasm", &html_extractor("better"));
    let operator = async {
        until("the page is requested", || asked(&web).len() == 1).await;
        let answers = story.order(replace(&better)).await.unwrap();
        gate.come();
        answers
    };
    let (result, answers) = story.run_with(operator).await;
    let [CommandResponse::Done { result: message }] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert!(
        message.contains("pages was ") && message.contains(" is html "),
        "{message}"
    );
    let result = result.finished();
    let errors = result.log_file("runtime-errors.log");
    assert!(
        errors.contains(&web.url(WWW, "/: ")),
        "the visit began before the replacement: {errors}"
    );
    assert!(!errors.contains("/next.html"), "{errors}");
    assert_eq!(
        result.sole(&web.url(WWW, "/a.html")).status,
        200,
        "{errors}"
    );
    let log = result.log_file("job.log");
    let component = format!("{}#html", better.display());
    let line = format!(" plugin replace \"pages\" {component:?} => {message}");
    assert!(log.contains(" lena:") && log.contains(&line), "{log}");

    std::fs::remove_file(&better).unwrap();
    std::fs::remove_file(story.job().with_file_name("pages.wasm")).unwrap();
    let again = story
        .seed(web.url(WWW, "/again.html"))
        .run()
        .await
        .finished();
    let pages = again
        .summary
        .plugins
        .iter()
        .find(|plugin| plugin.name == "pages");
    let pages = pages.unwrap();
    let replacement = &plugins_file(again.job())["plugins"]["pages"]["replacement"];
    assert_eq!(replacement["sha256"], pages.component);
    assert_eq!(replacement["by"], "lena");
}

#[tokio::test]
async fn a_refused_replacement_changes_nothing_and_has_a_reason() {
    let gate = Gate::of(2);
    let web = pages_in_turn(&gate).await;
    let story = with_pages(&html_extractor("good"))
        .profile("[[override]]\nmatch.host = ['x.story.localhost']\nplugins.pages.settings = {}");
    let story = in_turn(story, &web);
    let rubbish = file(&story, "rubbish.wasm", b"\0asm rubbish");
    let filters = opilio_builtin::find("hops").unwrap().component;
    let filters = format!("{}#hops", file(&story, "filters.wasm", filters).display());
    let good = file(&story, "new.wasm", &html_extractor("new"));
    let with =
        |component: &str, sha256: Option<String>, settings: Option<Value>| Command::ReplacePlugin {
            plugin: "pages".to_owned(),
            component: component.to_owned(),
            sha256,
            settings,
        };
    let good = good.display().to_string();
    let operator = async {
        until("the page is requested", || asked(&web).len() == 1).await;
        let before = plugins_file(&story.job());
        for (command, why) in [
            (replace(&rubbish), "rubbish.wasm"),
            (
                replace(Path::new("/nowhere/at/all.wasm")),
                "cannot read component",
            ),
            (with(&filters, None, None), "is not an extractor"),
            (
                with(&good, Some("0".repeat(64)), None),
                "not the pinned 000",
            ),
            (
                with(&good, None, Some(json!({"nonsense": 1}))),
                "settings do not fit",
            ),
            (with(&good, None, Some(json!([]))), "JSON object"),
            (with(&good, Some("12".to_owned()), None), "invalid --sha256"),
            (with("https://a.org/x.wasm", None, None), "not a component"),
        ] {
            let refused = story.order(command.clone()).await.unwrap_err();
            assert!(refused.contains(why), "{command:?}: {refused}");
        }
        let unknown = Command::ReplacePlugin {
            plugin: "page".to_owned(),
            component: good.clone(),
            sha256: None,
            settings: None,
        };
        let refused = story.order(unknown).await.unwrap_err();
        assert!(
            refused.contains("no plugin \"page\"; it has: "),
            "{refused}"
        );
        assert_eq!(plugins_file(&story.job()), before);
        gate.come();
    };
    let (result, ()) = story.run_with(operator).await;
    let result = result.finished();
    assert_eq!(result.sole(&web.url(WWW, "/a.html")).status, 200);
    let log = result.log_file("job.log");
    assert_eq!(log.matches(" => refused: ").count(), 9, "{log}");
}

#[tokio::test]
async fn a_plugin_of_a_stopped_job_is_replaced_for_its_next_start() {
    let web = site(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await;
    let story = with_pages(&opilio_stories::html_extractor(Misdeed::Traps))
        .profile("limits.documents = 1")
        .seed(web.url(WWW, "/"));
    story.run().await;
    let better = file(&story, "better.wasm", &html_extractor("at rest"));
    let answers = story.order(replace(&better)).await.unwrap();
    let [CommandResponse::Done { result: message }] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert!(message.ends_with("when the job resumes"), "{message}");
    let (checkpoint, copy) = (
        story.job().with_file_name("checkpoint"),
        story.job().with_file_name("copy"),
    );
    let to = Some(checkpoint.clone());
    story.order(Command::Checkpoint { to }).await.unwrap();
    restore(&checkpoint, &copy).unwrap();
    assert_eq!(
        plugins_file(&copy),
        plugins_file(&story.job()),
        "a job made from a checkpoint has the replacement, too"
    );
    let components = |job: &Path| std::fs::read_dir(job.join("components")).unwrap().count();
    assert_eq!(
        components(&copy),
        2,
        "the first component and its replacement"
    );
    story.amend("limits.documents = 'none'");
    let result = story.seed(web.url(WWW, "/a.html")).run().await.finished();
    assert_eq!(result.sole(&web.url(WWW, "/a.html")).status, 200);
    let pages = result
        .summary
        .plugins
        .iter()
        .find(|plugin| plugin.name == "pages");
    // The counts are for the whole job: the first component failed, and its replacement works.
    let pages = pages.unwrap();
    assert!(pages.calls > pages.faults_all(), "{pages:?}");
}

#[tokio::test]
async fn a_resumed_job_uses_its_copy_of_a_component_and_notes_a_changed_file() {
    let web = site(WWW).page("/", html("a")).serve().await;
    let story = with_pages(&html_extractor("then")).seed(web.url(WWW, "/"));
    let first = story.run().await.finished();
    let digest = |result: &opilio_stories::FinishedCrawl| {
        let mut plugins = result.summary.plugins.iter();
        plugins
            .find(|plugin| plugin.name == "pages")
            .unwrap()
            .component
            .clone()
    };
    file(&story, "pages.wasm", b"anything");
    let notes = story.notes().join(" ");
    assert!(
        notes.contains("pages.wasm has changed since the job began")
            && notes.contains("opilio plugin replace JOB pages "),
        "{notes}"
    );
    let again = story.seed(web.url(WWW, "/b.html")).run().await.finished();
    assert_eq!(digest(&first), digest(&again));
    let log = again.log_file("job.log");
    assert!(
        log.contains(" crawl note => ") && log.contains("pages.wasm has changed"),
        "{log}"
    );
}

#[tokio::test]
async fn a_watched_plugin_is_replaced_when_its_file_changes_to_a_valid_component() {
    let gate = Gate::of(2);
    let web = pages_in_turn(&gate).await;
    let story = with_pages(&opilio_stories::html_extractor(Misdeed::Traps))
        .profile("plugins.pages.watch = true");
    let story = in_turn(story, &web);
    let log = || std::fs::read_to_string(story.job().join("logs/job.log")).unwrap_or_default();
    let operator = async {
        until("the page is requested", || asked(&web).len() == 1).await;
        file(&story, "pages.wasm", b"rubbish");
        until("the component is refused", || {
            log().contains("alert plugin pages => not replaced")
        })
        .await;
        file(&story, "pages.wasm", &html_extractor("watched"));
        until("the plugin is replaced", || {
            log().contains("replace plugin pages => pages was")
        })
        .await;
        gate.come();
    };
    let (result, ()) = story.run_with(operator).await;
    let result = result.finished();
    assert_eq!(
        result.sole(&web.url(WWW, "/a.html")).status,
        200,
        "{}",
        log()
    );
}

#[tokio::test]
async fn links_rejected_by_a_failing_scope_filter_are_found_again_after_its_replacement() {
    let web = site(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await;
    let story = crawl()
        .plugin("gate", &scope_filter(Misdeed::Traps))
        .profile(
            r#"
            strategy = "revisit"
            revisit = { default-wait = "50ms", min-wait = "50ms", max-wait = "50ms" }
            [stacks]
            scope = ["surt-scope", "gate"]
            [plugins.gate]
            breaker = { faults = 1000, calls = 1000 }
            "#,
        )
        .seed(web.url(WWW, "/"));
    let better = opilio_builtin::find("hops").unwrap().component;
    let better = format!("{}#hops", file(&story, "better.wasm", better).display());
    let result = story
        .run_until("two visits", || visits(&web, "/") >= 2)
        .await;
    let page = web.url(WWW, "/");
    assert!(
        result.of(&page)[0].notes("scope-fault:gate:1"),
        "{:?}",
        result.log
    );
    assert_eq!(visits(&web, "/a.html"), 0);
    let log = result.log_file("job.log");
    assert_eq!(
        log.matches("alert plugin gate => failed for some links")
            .count(),
        1,
        "{log}"
    );
    let replacement = Command::ReplacePlugin {
        plugin: "gate".to_owned(),
        component: better,
        sha256: None,
        settings: None,
    };
    story.order(replacement).await.unwrap();
    story
        .run_until("the link is visited", || visits(&web, "/a.html") >= 1)
        .await;
}

#[tokio::test]
async fn settings_of_an_earlier_replacement_are_kept_and_reported() {
    let web = site(WWW).page("/", html("a")).serve().await;
    let hops = opilio_builtin::find("hops").unwrap().component;
    let home = tempfile::tempdir().unwrap();
    let named = home.path().join("hops.wasm");
    std::fs::write(&named, hops).unwrap();
    let named = format!("{}#hops", named.display());
    let story = crawl()
        .profile(&format!(
            "[plugins.gate]\ncomponent = '{named}'\n[stacks]\nscope = ['surt-scope', 'gate']"
        ))
        .seed(web.url(WWW, "/"));
    story.run().await.finished();
    // The component holds several filters; the replacement keeps the filter of the profile.
    let same = file(&story, "same.wasm", hops);
    let replaced = async |settings: Option<Value>| {
        let command = Command::ReplacePlugin {
            plugin: "gate".to_owned(),
            component: same.display().to_string(),
            sha256: None,
            settings,
        };
        match story.order(command).await.unwrap().as_slice() {
            [CommandResponse::Done { result: message }] => message.clone(),
            other => panic!("{other:?}"),
        }
    };
    let is_named = r#"; its settings are {"max":3}, which are not the profile's"#;
    assert!(!replaced(None).await.contains("settings"));
    assert!(replaced(Some(json!({"max": 3}))).await.contains(is_named));
    assert!(replaced(None).await.contains(is_named));
}
