//! `opilio plugin list`, `pull`, `push` and `prune`: distribution of plugins by a registry.

use opilio_stories::{asked, sound, until};
use opilio_test_registry::{Guard, Registry};
use opilio_test_web::Gate;
use serde_json::Value;

use crate::command::{Ended, Home, WWW, held_tree};

/// Writes a shipped component to a file. Returns its path.
fn shipped(home: &Home, plugin: &str) -> String {
    let name = plugin.rsplit('/').next().unwrap();
    let builtin = opilio_builtin::find(name).unwrap();
    let path = home.file(&format!("{plugin}.wasm"), builtin.component);
    path.display().to_string()
}

/// Parses the output, which has one object per line.
fn objects(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the plugins in the store.
fn stored_plugins(home: &Home, more: &[&str]) -> Vec<Value> {
    let list = ["plugin", "list", "--json"];
    let mut listed = objects(&home.run(&[&list[..], more].concat()).code(0));
    listed.retain(|plugin| plugin["built_in"] == false);
    listed
}

/// Asserts exit code 2 and one message on standard error that contains these parts.
#[track_caller]
fn assert_refused(ended: Ended, parts: &[&str]) {
    let ended = ended.code(2);
    for part in parts {
        assert!(
            ended.err.contains(part),
            "{part:?} is not in: {}",
            ended.err
        );
    }
    assert_eq!(ended.sentences().count(), 1, "{}", ended.err);
}

#[test]
fn a_pushed_component_is_pulled_with_its_digest() {
    let registry = Registry::open();
    let (author, operator) = (Home::new(), Home::new());
    let image = registry.image("plugins/css:1.0");
    let file = shipped(&author, "css");
    let pushed = author.run(&["plugin", "push", &file, &image]).code(0);
    assert!(
        pushed.out.contains(&format!("is now {image}")),
        "{}",
        pushed.out
    );

    let pulled = operator
        .run(&["plugin", "pull", &image, "-o", "got.wasm"])
        .code(0);
    let digest = opilio_builtin::find("css").unwrap().sha256;
    for line in [
        "[plugins.css]".to_owned(),
        format!("component = \"{image}@sha256:"),
        format!("sha256 = \"{digest}\""),
    ] {
        assert!(
            pushed.out.contains(&line),
            "{line} is not in: {}",
            pushed.out
        );
        assert!(
            pulled.out.contains(&line),
            "{line} is not in: {}",
            pulled.out
        );
    }
    let got = std::fs::read(operator.path().join("got.wasm")).unwrap();
    assert_eq!(got, opilio_builtin::find("css").unwrap().component);
    let again = operator.run(&["plugin", "pull", &image]).code(0);
    assert!(
        again.out.contains("is already in the store"),
        "{}",
        again.out
    );
}

#[test]
fn the_list_shows_shipped_and_pulled_plugins() {
    let registry = Registry::open();
    let home = Home::new();
    let empty = home.run(&["plugin", "list"]).code(0);
    assert!(
        empty.out.contains(" is empty; `opilio plugin pull`"),
        "{}",
        empty.out
    );
    let image = registry.image("plugins/css:1.0");
    let file = shipped(&home, "css");
    home.run(&["plugin", "push", &file, &image]).code(0);
    home.run(&["plugin", "pull", &image, "--store", "mine"])
        .code(0);

    let list = objects(&home.run(&["plugin", "list", "--json"]).code(0));
    let html = list.iter().find(|plugin| plugin["name"] == "html").unwrap();
    assert_eq!(html["kinds"][0], "extractor");
    let users = html["profiles"].as_array().unwrap();
    assert!(users.contains(&"default".into()), "{html}");
    let stored_plugins = stored_plugins(&home, &["--store", "mine"]);
    assert_eq!(stored_plugins.len(), 1, "{stored_plugins:?}");
    assert_eq!(stored_plugins[0]["name"], "css");
    assert_eq!(stored_plugins[0]["images"][0], image);
    assert_eq!(
        stored_plugins[0]["sha256"],
        opilio_builtin::find("css").unwrap().sha256
    );
    let text = home.run(&["plugin", "list", "--store", "mine"]).code(0);
    assert!(text.out.contains(&image), "{}", text.out);
}

#[test]
fn prune_removes_components_without_a_tag() {
    let registry = Registry::open();
    let home = Home::new();
    let image = registry.image("p:latest");
    for plugin in ["css", "js"] {
        let file = shipped(&home, plugin);
        home.run(&["plugin", "push", &file, &image]).code(0);
        home.run(&["plugin", "pull", &image]).code(0);
    }
    let would = home.run(&["plugin", "prune", "--dry-run", "--json"]);
    let would = objects(&would.code(0));
    assert_eq!(would.len(), 1, "{would:?}");
    assert_eq!(would[0]["dry_run"], true);
    assert_eq!(
        would[0]["sha256"],
        opilio_builtin::find("css").unwrap().sha256
    );
    let would = home.run(&["plugin", "prune", "--dry-run"]).code(0);
    assert!(
        would.out.contains("Would remove 1 component"),
        "{}",
        would.out
    );
    let done = home.run(&["plugin", "prune"]).code(0);
    assert!(done.out.contains("Removed 1 component"), "{}", done.out);
    let left = home.run(&["plugin", "prune", "--unused-for", "1d", "--json"]);
    assert_eq!(left.code(0).out, "");
    let stored_plugins = stored_plugins(&home, &[]);
    assert_eq!(stored_plugins.len(), 1, "{stored_plugins:?}");
    assert_eq!(
        stored_plugins[0]["sha256"],
        opilio_builtin::find("js").unwrap().sha256
    );
    assert_refused(
        home.run(&["plugin", "prune", "--unused-for", "long"]),
        &["such as 90d"],
    );
}

#[test]
fn failed_pulls_and_pushes_are_one_error() {
    let registry = Registry::open();
    let home = Home::new();
    let image = registry.image("p:1");
    assert_refused(
        home.run(&["plugin", "pull", &image]),
        &["is not in its registry"],
    );
    assert_refused(
        home.run(&["plugin", "pull", "oci://r.example/p"]),
        &["neither tag nor digest"],
    );
    let page = home
        .file("page.wasm", "<!doctype html>")
        .display()
        .to_string();
    assert_refused(home.run(&["plugin", "push", &page, &image]), &["page.wasm"]);
    assert_refused(home.run(&["plugin", "push", ".", &image]), &["is a folder"]);
    let file = shipped(&home, "css");
    home.run(&["plugin", "push", &file, &image]).code(0);
    let other = "0".repeat(64);
    let pinned = home.run(&["plugin", "pull", &image, "--sha256", &other]);
    assert_refused(
        pinned,
        &[&other, opilio_builtin::find("css").unwrap().sha256],
    );
    registry.guard(Guard::Tokens("reader", "secret"));
    assert_refused(
        home.run(&["plugin", "pull", &image]),
        &["was refused", "--credentials"],
    );
    let missing = home.run(&["plugin", "pull", &image, "--credentials", "none.json"]);
    assert_refused(missing, &["credentials file none.json not found"]);
    let pair = "cmVhZGVyOnNlY3JldA==";
    let credentials = format!(
        r#"{{"auths":{{"{}":{{"auth":"{pair}"}}}}}}"#,
        registry.host()
    );
    home.file("config.json", credentials);
    home.run(&["plugin", "pull", &image, "--credentials", "config.json"])
        .code(0);
}

/// A moved tag, a stopped registry and an empty store change nothing in a job that has started.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_keeps_the_plugin_that_it_started_with() {
    const PAGES: usize = 200;
    let registry = Registry::open();
    let gate = Gate::closed();
    let (home, web) = (Home::new(), held_tree(PAGES, 0, &[(30, &gate)]).await);
    let image = registry.image("plugins/links:latest");
    let (html, css) = (shipped(&home, "html"), shipped(&home, "css"));
    home.run(&["plugin", "push", &html, &image]).code(0);
    home.profile(&format!(
        "name = 'tree'\nworkers = 2\nstacks = {{ extract = ['http', 'links'] }}\n\
         [plugins.links]\ncomponent = '{image}#html'"
    ));
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    let mut running = home.start(&command);
    until("twenty pages are requested", || asked(&web).len() >= 20).await;
    running.signal("INT");
    running.wait_for_line("stopping: current fetches finish");
    gate.open();
    assert_eq!(running.wait(), 0);
    assert!(asked(&web).len() < PAGES, "stopped too late for this test");
    let stored_plugins = stored_plugins(&home, &[]);
    let jobs = &stored_plugins[0]["jobs"];
    assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{stored_plugins:?}");

    // Style sheets have no links to pages.
    home.run(&["plugin", "push", &css, &image]).code(0);
    drop(registry);
    std::fs::remove_dir_all(home.path().join("data")).unwrap();
    home.run(&command).code(0);
    sound(&home.job());
    let fetched = asked(&web);
    assert!(fetched.len() >= PAGES - 1, "{} fetched", fetched.len());
}

/// The error has the line of the profile that names the missing component, and no job is created.
#[test]
fn a_component_missing_in_its_registry_is_an_error_of_the_profile() {
    let registry = Registry::open();
    let home = Home::new();
    let image = registry.image("plugins/links:1");
    home.profile(&format!(
        "seeds = ['http://a.localhost/']\n[plugins.links]\ncomponent = '{image}'"
    ));
    let ended = home.run(&["crawl", "p.toml", "--job", "job"]).code(2);
    assert!(
        ended.err.contains("is not in its registry"),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("p.toml:8:13"), "{}", ended.err);
    assert!(!home.job().exists());
}

#[test]
fn other_commands_accept_images_and_folders() {
    let registry = Registry::open();
    let home = Home::new();
    let image = registry.image("plugins/css:1.0");
    std::fs::create_dir(home.path().join("plugins")).unwrap();
    let (css, _js) = (shipped(&home, "plugins/css"), shipped(&home, "plugins/js"));
    home.run(&["plugin", "push", &css, &image]).code(0);
    for (named, digest) in [
        (image.as_str(), "css"),
        ("plugins#css", "css"),
        ("plugins#js", "js"),
    ] {
        let ended = home.run(&["plugin", "inspect", named]).code(0);
        let digest = opilio_builtin::find(digest).unwrap().sha256;
        assert!(ended.out.contains(digest), "{named}: {}", ended.out);
    }
    let other = format!("{image}#other");
    assert_refused(
        home.run(&["plugin", "inspect", &other]),
        &["no plugin `other` in "],
    );
    assert_refused(
        home.run(&["plugin", "inspect", "plugins#other"]),
        &["css.wasm holds css"],
    );
}
