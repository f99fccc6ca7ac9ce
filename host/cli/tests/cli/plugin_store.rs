//! `opilio plugin list`, `pull`, `push` and `prune`: a plugin that goes from its author to an operator by a registry.

use opilio_stories::{asked, sound, until};
use opilio_test_registry::{Guard, Registry};
use opilio_test_web::Gate;
use serde_json::Value;

use crate::command::{Ended, Home, WWW, held_tree};

/// A component that ships, as a file: it is as good a plugin as any.
fn shipped(home: &Home, plugin: &str) -> String {
    let name = plugin.rsplit('/').next().unwrap();
    let builtin = opilio_builtin::find(name).unwrap();
    let path = home.file(&format!("{plugin}.wasm"), builtin.component);
    path.display().to_string()
}

/// One object per line.
fn objects(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The plugins in the store.
fn kept(home: &Home, more: &[&str]) -> Vec<Value> {
    let list = ["plugin", "list", "--json"];
    let mut listed = objects(&home.run(&[&list[..], more].concat()).code(0));
    listed.retain(|plugin| plugin["built_in"] == false);
    listed
}

/// One sentence on standard error that says this.
#[track_caller]
fn refused(ended: Ended, says: &[&str]) {
    let ended = ended.code(2);
    for part in says {
        assert!(
            ended.err.contains(part),
            "{part:?} is not in: {}",
            ended.err
        );
    }
    assert_eq!(ended.sentences().count(), 1, "{}", ended.err);
}

#[test]
fn what_an_author_pushes_an_operator_pulls_and_pins() {
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
fn the_list_shows_what_ships_and_what_was_pulled() {
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
    let kept = kept(&home, &["--store", "mine"]);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0]["name"], "css");
    assert_eq!(kept[0]["images"][0], image);
    assert_eq!(
        kept[0]["sha256"],
        opilio_builtin::find("css").unwrap().sha256
    );
    let text = home.run(&["plugin", "list", "--store", "mine"]).code(0);
    assert!(text.out.contains(&image), "{}", text.out);
}

#[test]
fn pruning_says_what_goes_and_takes_what_no_tag_names_any_more() {
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
    let kept = kept(&home, &[]);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(
        kept[0]["sha256"],
        opilio_builtin::find("js").unwrap().sha256
    );
    refused(
        home.run(&["plugin", "prune", "--unused-for", "long"]),
        &["such as 90d"],
    );
}

#[test]
fn what_cannot_be_pulled_or_pushed_is_told_in_one_sentence() {
    let registry = Registry::open();
    let home = Home::new();
    let image = registry.image("p:1");
    refused(
        home.run(&["plugin", "pull", &image]),
        &["is not in its registry"],
    );
    refused(
        home.run(&["plugin", "pull", "oci://r.example/p"]),
        &["neither tag nor digest"],
    );
    let page = home
        .file("page.wasm", "<!doctype html>")
        .display()
        .to_string();
    refused(home.run(&["plugin", "push", &page, &image]), &["page.wasm"]);
    refused(home.run(&["plugin", "push", ".", &image]), &["is a folder"]);
    let file = shipped(&home, "css");
    home.run(&["plugin", "push", &file, &image]).code(0);
    let other = "0".repeat(64);
    let pinned = home.run(&["plugin", "pull", &image, "--sha256", &other]);
    refused(
        pinned,
        &[&other, opilio_builtin::find("css").unwrap().sha256],
    );
    registry.guard(Guard::Tokens("reader", "secret"));
    refused(
        home.run(&["plugin", "pull", &image]),
        &["was refused", "--credentials"],
    );
    let missing = home.run(&["plugin", "pull", &image, "--credentials", "none.json"]);
    refused(missing, &["credentials file none.json not found"]);
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
async fn a_job_goes_on_with_the_plugin_that_it_began_with() {
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
    until("twenty pages are asked for", || asked(&web).len() >= 20).await;
    running.signal("INT");
    running.until_said("stopping: current fetches finish");
    gate.open();
    assert_eq!(running.wait(), 0);
    assert!(asked(&web).len() < PAGES, "stopped too late to tell");
    let kept = kept(&home, &[]);
    let jobs = &kept[0]["jobs"];
    assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{kept:?}");

    // Style sheets have no links to pages.
    home.run(&["plugin", "push", &css, &image]).code(0);
    drop(registry);
    std::fs::remove_dir_all(home.path().join("data")).unwrap();
    home.run(&command).code(0);
    sound(&home.job());
    let fetched = asked(&web);
    assert!(fetched.len() >= PAGES - 1, "{} fetched", fetched.len());
}

/// The one line of a profile that names what is not there is the place of the fault, and nothing is made.
#[test]
fn a_profile_whose_component_cannot_be_had_is_at_fault_there() {
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
fn other_commands_take_images_and_folders_too() {
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
    refused(
        home.run(&["plugin", "inspect", &other]),
        &["no plugin `other` in "],
    );
    refused(
        home.run(&["plugin", "inspect", "plugins#other"]),
        &["css.wasm holds css"],
    );
}
