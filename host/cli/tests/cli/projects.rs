//! Plugin projects: creating, building and watching them. The tests need no toolchain: a shell script in the project replaces
//! Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use opilio_stories::until;
use serde_json::{Value, json};

use crate::command::Home;
use crate::job::{Gate, job_log};

const LANGUAGES: [&str; 7] = ["rust", "js", "ts", "python", "c", "cpp", "go"];

/// A replacement of Python, which copies `built.component` of the project as the built component.
const PYTHON: &str = "#!/bin/sh\n\
    if [ \"$1\" = --version ]; then echo Python 3.11.0; exit; fi\n\
    grep -q broken plugin.py && exit 1\n\
    cp built.component \"$5\"\n";

const STYLES: &str = "@import \"other.css\";";

fn shipped(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("plugins/builtin/components").join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

/// Creates a project `css` with a case. Its build gives the component of the shipped plugin.
fn project(home: &Home) {
    let new = ["plugin", "new", "--lang", "python", "--kind", "extractor"];
    home.run(&[&new[..], &["css"]].concat()).code(0);
    fs::copy(shipped("css.wasm"), home.path().join("css/built.component")).unwrap();
    home.file(
        "css/cases/css.json",
        r#"[{"id": "import", "plugin": "css",
             "call": {"extract": {"documents": [{"media-type": "text/css", "text": "@import 'a.css';"}]}},
             "expected": [{"links": [{"uri": "a.css", "hop": "embed", "context": "css/@import"}], "finished": true}]}]"#,
    );
    fs::create_dir_all(home.path().join("css/.venv/bin")).unwrap();
    // Another process writes the script: a file that this process has open for writing could not be run.
    let write = "printf %s \"$1\" > css/.venv/bin/python3 && chmod +x css/.venv/bin/python3";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", write, "sh", PYTHON])
        .current_dir(home.path());
    assert!(shell.status().unwrap().success());
}

#[test]
fn a_new_project_and_its_sdk_are_described_in_json() {
    let home = Home::new();
    let new = ["plugin", "new", "--lang", "js", "--kind", "filter"];
    let more = ["--kind", "extractor", "--dir", "here", "story", "--json"];
    let created = home.run(&[&new[..], &more].concat()).code(0);
    let created: Value = serde_json::from_str(&created.out).unwrap();
    assert_eq!(
        created,
        json!({
            "answer": "created",
            "name": "story",
            "folder": "here",
            "language": "js",
            "kinds": ["extractor", "filter"],
            "sdk_version": "0.3.0",
        })
    );
    assert!(home.path().join("here/opilio-sdk/VERSION").is_file());

    let sdk = ["plugin", "sdk", "here", "--json"];
    fs::write(home.path().join("here/opilio-sdk/VERSION"), "0.1.0\n").unwrap();
    let replaced = home.run(&sdk).code(0);
    let replaced: Value = serde_json::from_str(&replaced.out).unwrap();
    assert_eq!(
        replaced,
        json!({
            "answer": "written",
            "folder": "here/opilio-sdk",
            "sdk_version": "0.3.0",
            "version_before": "0.1.0",
        })
    );
    fs::remove_dir_all(home.path().join("here/opilio-sdk")).unwrap();
    let made = home.run(&sdk).code(0);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    assert_eq!(made["version_before"], Value::Null, "{made}");
}

#[test]
fn a_new_project_refers_to_nothing_outside_its_folder() {
    let home = Home::new();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let checkout = checkout.canonicalize().unwrap().display().to_string();
    let here = home.path().canonicalize().unwrap().display().to_string();
    for language in LANGUAGES {
        let new = ["plugin", "new", "--lang", language, "--kind", "extractor"];
        home.run(&[&new[..], &[language]].concat()).code(0);
        let again = home.run(&[&new[..], &[language]].concat()).code(2);
        assert_eq!(
            again.err,
            format!("opilio: {language} already exists; choose another folder with --dir\n")
        );
        let folder = home.path().join(language);
        let version = fs::read_to_string(folder.join("opilio-sdk/VERSION")).unwrap();
        assert_eq!(version, "0.3.0\n", "{language}");
        for file in [
            ".editorconfig",
            ".vscode/tasks.json",
            ".vscode/settings.json",
        ] {
            assert!(folder.join(file).is_file(), "{language} has no {file}");
        }
        for file in files(&folder) {
            let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
            for outside in [&checkout, &here] {
                assert!(
                    !text.contains(outside),
                    "{} names {outside}",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn an_old_sdk_of_a_project_is_noted_and_replaced() {
    let home = Home::new();
    project(&home);
    fs::write(home.path().join("css/opilio-sdk/VERSION"), "0.1.0\n").unwrap();
    let built = home.run(&["plugin", "build", "css"]).code(0);
    assert!(
        built
            .err
            .contains("opilio-sdk has version 0.1.0, this program carries 0.3.0"),
        "{built:?}"
    );
    let replaced = home.run(&["plugin", "sdk", "css"]).code(0);
    assert_eq!(
        replaced.out,
        "css/opilio-sdk: version 0.3.0 in place of 0.1.0\n"
    );
    let built = home.run(&["plugin", "build", "css"]).code(0);
    assert!(!built.err.contains("note"), "{built:?}");
    let nothing = home.run(&["plugin", "sdk", "css/cases"]).code(2);
    assert!(
        nothing.err.contains("is not a plugin project"),
        "{nothing:?}"
    );
}

#[test]
fn a_component_that_is_older_than_its_sources_is_noted() {
    let home = Home::new();
    project(&home);
    home.file("page.css", STYLES);
    home.run(&["plugin", "build", "css"]).code(0);
    let run = ["plugin", "run", "./css", "page.css"];
    let diff = ["plugin", "diff", "html", "./css", "--warc", "page.css"];
    let ran = home.run(&run).code(0);
    assert!(ran.out.contains("http://example.com/other.css"), "{ran:?}");
    assert!(!ran.err.contains("older"), "{ran:?}");
    let source = fs::File::options()
        .write(true)
        .open(home.path().join("css/plugin.py"));
    let later = SystemTime::now() + Duration::from_secs(60);
    source.unwrap().set_modified(later).unwrap();
    for command in [&run[..], &diff[..]] {
        let errors = home.run(command).err;
        assert!(
            errors.contains(
                "css.wasm is older than its sources; `opilio plugin build ./css` rebuilds it"
            ),
            "{command:?}: {errors}"
        );
    }
}

#[test]
fn the_time_limit_of_a_call_can_be_set() {
    let home = Home::new();
    home.file("page.html", "<a href=/x>x</a>".repeat(200_000));
    let run = ["plugin", "run", "html", "page.html"];
    let short = home.run(&[&run[..], &["--time", "1ms"]].concat()).code(1);
    assert!(short.out.contains("ERROR timeout"), "{}", short.err);
    let wrong = home.run(&[&run[..], &["--time", "soon"]].concat()).code(2);
    assert!(wrong.err.contains("such as 500ms or 2s"), "{wrong:?}");
}

#[test]
fn a_watched_project_is_built_tested_and_compared_after_a_change() {
    let home = Home::new();
    project(&home);
    home.file("page.css", STYLES);
    let mut watch = home.start_following_both(&["plugin", "watch", "css", "--on", "page.css"]);
    watch.wait_for_line("1 case passed");
    watch.wait_for_line("http://example.com/other.css");
    watch.wait_for_line("watching css");

    // With another component, the case fails and the link is lost.
    watch.forget();
    fs::copy(shipped("js.wasm"), home.path().join("css/built.component")).unwrap();
    home.file("css/plugin.py", "# changed");
    watch.wait_for_line("changed: plugin.py");
    watch.wait_for_line("1 case failed");
    watch.wait_for_line("lost links: 1");
    watch.wait_for_line("watching css");

    watch.forget();
    home.file("css/plugin.py", "# broken");
    watch.wait_for_line("does not build");
    watch.wait_for_line("watching css");

    // After a change of a case, the cases are run without a build.
    watch.forget();
    fs::remove_file(home.path().join("css/cases/css.json")).unwrap();
    watch.wait_for_line("changed: cases/css.json");
    watch.wait_for_line("no cases");
}

#[test]
fn a_watched_project_is_reported_as_json() {
    let home = Home::new();
    project(&home);
    home.file("page.css", STYLES);
    let watch = ["plugin", "watch", "css", "--on", "page.css", "--json"];
    let mut watch = home.start_following_both(&watch);
    watch.wait_for_line("\"verdict\":\"holds\"");
    watch.wait_for_line("http://example.com/other.css");
    watch.wait_for_line("watching css");
    watch.forget();
    home.file("css/plugin.py", "# broken");
    watch.wait_for_line("{\"changed\":[\"plugin.py\"]}");
    watch.wait_for_line("{\"problem\":\"the project does not build");
    watch.wait_for_line("watching css");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_project_replaces_its_plugin_in_a_running_job_if_cases_pass() {
    let gate = Gate::serve(&[("/", "")]);
    let home = Home::new();
    project(&home);
    home.profile(
        "name = 'gate'\nplugins.styles.component = 'builtin:css'\nstacks.extract = ['styles']",
    );
    let mut running = home.start(&["crawl", "p.toml", "--job", "job", "--seed", &gate.url("/")]);
    until("the seed is requested", || gate.requests_for("/") == 1).await;

    let watch = [
        "plugin", "watch", "css", "--job", "job", "--plugin", "styles",
    ];
    let mut watch = home.start_following_both(&watch);
    watch.wait_for_line("1 case passed");
    watch.wait_for_line("styles was css ");
    watch.wait_for_line("watching css");
    watch.forget();
    fs::copy(shipped("js.wasm"), home.path().join("css/built.component")).unwrap();
    home.file("css/plugin.py", "# changed");
    watch.wait_for_line("1 case failed");
    watch.wait_for_line("the job keeps its plugin: cases fail");
    gate.open();
    assert_eq!(running.wait(), 0);
    assert_eq!(job_log(&home).matches("styles was css ").count(), 1);
}
