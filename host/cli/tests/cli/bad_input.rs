//! Invalid input: all errors are listed with their places, and nothing is created.

use opilio_stories::{Misdeed, asked, asks_for_the_network, scope_filter, until};
use opilio_test_web::Gate;

use crate::command::{Ended, Home, WWW, held_tree};
use crate::serve::make;

const SEED: &str = "http://www.story.localhost:9/";

/// Asserts that a crawl with these arguments ends with exit code 2 and these words on standard error, and creates nothing.
#[track_caller]
fn check_refused(home: &Home, arguments: &[&str], words: &[&str]) -> Ended {
    let before = home.names();
    let ended = home
        .run(&[&["crawl"], arguments, &["--job", "job"]].concat())
        .code(2);
    for word in words {
        assert!(
            ended.err.contains(word),
            "{word:?} is not in\n{}",
            ended.err
        );
    }
    assert_eq!(ended.out, "");
    assert_eq!(home.names(), before, "a file was created");
    ended
}

#[test]
fn every_error_of_a_profile_is_reported_with_its_place() {
    let home = Home::new();
    home.file("p.toml", "wrokers = 25\nstrategy = 'snapshots'\n[politeness]\nmin-delay = '2 parsecs'\n[stacks]\nscope = ['hobs']\n");
    check_refused(
        &home,
        &["p.toml", "--seed", SEED],
        &[
            "p.toml:1:1: unknown key \"wrokers\" (did you mean \"workers\"?)",
            "p.toml:2:12: ",
            "p.toml:4:13: ",
            "p.toml:6:10: no plugin \"hobs\" (did you mean \"hops\"?)",
        ],
    );
}

#[test]
fn errors_in_plugin_settings_are_reported_together() {
    let home = Home::new();
    home.profile(
        "[plugins.hops]\ncomponent = 'builtin:hops'\nsettings = { max = 'many' }\n[plugins.path-depth]\ncomponent = 'builtin:path-depth'\nsettings = { maximum = 3 }",
    );
    check_refused(
        &home,
        &["p.toml", "--seed", SEED],
        &["p.toml:8:20: ", "p.toml:11:14: "],
    );
}

#[test]
fn a_missing_profile_is_reported() {
    check_refused(
        &Home::new(),
        &["missing.toml", "--seed", SEED],
        &["missing.toml"],
    );
    check_refused(
        &Home::new(),
        &["continous", "--seed", SEED],
        &[
            "continous: no profile, file or job named \"continous\"",
            "did you mean \"continuous\"?",
        ],
    );
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let home = Home::new();
    home.file("p.toml", "name = 'a'\nthis is not TOML\n");
    check_refused(&home, &["p.toml", "--seed", SEED], &["p.toml:2:"]);
}

#[test]
fn an_invalid_seed_is_reported() {
    let home = Home::new();
    home.profile("");
    check_refused(
        &home,
        &["p.toml", "--seed", "mailto:a@b.c"],
        &["not a seed: \"mailto:a@b.c\""],
    );
    check_refused(
        &home,
        &["p.toml", "--seed", "http://"],
        &["not a seed: \"http://\""],
    );
    check_refused(
        &home,
        &["p.toml", "--seed", "http://[::1/"],
        &["not a seed"],
    );
    check_refused(&home, &["p.toml"], &["there are no seeds"]);
    check_refused(&home, &["http://[::1/"], &["invalid URL http://[::1/: "]);
}

#[test]
fn an_unusable_component_is_reported_at_its_place_in_the_profile() {
    let home = Home::new();
    let profile = |path: &str| {
        home.profile(&format!(
            "stacks = {{ pre-fetch = ['mine'] }}\n[plugins.mine]\ncomponent = '{path}'"
        ))
    };
    profile("missing.wasm");
    check_refused(
        &home,
        &["p.toml", "--seed", SEED],
        &["p.toml:8:13: ", "missing.wasm"],
    );
    home.file("text.wasm", "not Wasm");
    profile("text.wasm");
    check_refused(
        &home,
        &["p.toml", "--seed", SEED],
        &["p.toml:8:13: ", "is not a WebAssembly component"],
    );
    home.file("nosy.wasm", asks_for_the_network());
    profile("nosy.wasm");
    check_refused(
        &home,
        &["p.toml", "--seed", SEED],
        &["p.toml:8:13: ", "wasi:http/outgoing-handler@0.2.0"],
    );
    std::fs::create_dir(home.path().join("folder.wasm")).unwrap();
    profile("folder.wasm");
    check_refused(
        &home,
        &["p.toml", "--seed", SEED],
        &["p.toml:8:13: ", "folder.wasm"],
    );
}

#[test]
fn a_component_of_the_wrong_kind_for_its_stack_is_refused() {
    let home = Home::new();
    home.file("filter.wasm", scope_filter(Misdeed::Traps));
    home.profile("stacks = { extract = ['mine'] }\n[plugins.mine]\ncomponent = 'filter.wasm'");
    check_refused(
        &home,
        &["p.toml", "--seed", SEED],
        &["p.toml:6:23: ", "plugin \"mine\" is not an extractor"],
    );
}

#[test]
fn a_component_with_another_digest_than_the_pinned_one_is_refused() {
    let home = Home::new();
    home.file("filter.wasm", scope_filter(Misdeed::Traps));
    let zeros = "0".repeat(64);
    home.profile(&format!("stacks = {{ scope = ['mine'] }}\n[plugins.mine]\ncomponent = 'filter.wasm'\nsha256 = '{zeros}'"));
    check_refused(&home, &["p.toml", "--seed", SEED], &["sha256", &zeros]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_use_by_a_process_is_refused() {
    let gate = Gate::closed();
    let (home, web) = (Home::new(), held_tree(4, 0, &[(2, &gate)]).await);
    home.profile("name = 'tree'\nworkers = 1");
    let seed = web.url(WWW, "/");
    let mut running = home.start(&["crawl", "p.toml", "--seed", &seed, "--job", "job"]);
    until("a page is requested", || !asked(&web).is_empty()).await;
    let ended = home.run(&["crawl", "p.toml", "--job", "job"]).code(3);
    let process = running.child.id();
    assert!(
        ended.err.contains(&format!(
            "in use by process {process}; stop it, or name another"
        )),
        "{ended:?}"
    );
    assert_eq!(
        ended
            .err
            .lines()
            .filter(|line| line.starts_with("opilio: "))
            .count(),
        1,
        "{ended:?}"
    );
    gate.open();
    assert_eq!(running.wait(), 0);
}

#[test]
fn a_job_of_another_layout_version_is_refused_and_not_changed() {
    let home = Home::new();
    home.profile("");
    std::fs::create_dir(home.job()).unwrap();
    let description = "{\"version\": 99, \"made\": \"2031-01-01T00:00:00Z\", \"engine\": \"warp\"}";
    home.file("job/job.json", description);
    let ended = home
        .run(&["crawl", "p.toml", "--seed", SEED, "--job", "job"])
        .code(1);
    assert!(ended.err.contains("layout version 99"), "{ended:?}");
    assert_eq!(
        std::fs::read_to_string(home.job().join("job.json")).unwrap(),
        description
    );
    assert_eq!(std::fs::read_dir(home.job()).unwrap().count(), 1);
}

#[test]
fn a_damaged_job_is_reported() {
    let home = Home::new();
    home.profile("");
    std::fs::create_dir(home.job()).unwrap();
    home.file("job/job.json", "{");
    let ended = home
        .run(&["crawl", "p.toml", "--seed", SEED, "--job", "job"])
        .code(1);
    assert!(ended.err.contains("job.json is damaged"), "{ended:?}");
}

#[test]
fn a_directory_with_other_files_is_refused_and_not_changed() {
    let home = Home::new();
    home.profile("");
    std::fs::create_dir(home.job()).unwrap();
    home.file("job/thesis.doc", "years of work");
    let ended = home
        .run(&["crawl", "p.toml", "--seed", SEED, "--job", "job"])
        .code(1);
    assert!(
        ended.err.contains("is not empty and not a job"),
        "{ended:?}"
    );
    assert_eq!(std::fs::read_dir(home.job()).unwrap().count(), 1);
}

#[test]
fn a_file_in_place_of_the_job_directory_is_refused() {
    let home = Home::new();
    home.profile("");
    home.file("job", "a file");
    let ended = home
        .run(&["crawl", "p.toml", "--seed", SEED, "--job", "job"])
        .code(1);
    assert!(ended.err.contains("job"), "{ended:?}");
    assert_eq!(std::fs::read_to_string(home.job()).unwrap(), "a file");
}

#[test]
fn errors_of_the_command_line_have_exit_code_2() {
    let home = Home::new();
    assert!(home.run(&[]).code(2).err.contains("Usage"));
    assert!(home.run(&["crawl"]).code(2).err.contains("PROFILE|URL|JOB"));
    home.run(&["crawl", "p.toml", "--quiet", "--json"]).code(2);
    home.run(&["crwal"]).code(2);
    let before = home.names();
    for (command, expected) in [
        (&["token", "new", " "][..], "invalid name \" \""),
        (
            &["token", "new", "lena", "--expires", "soon"],
            "such as 90d",
        ),
        (&["profile", "save", "-"], "--name NAME"),
        (&["profile", "show", "site@last"], "as in site@3"),
        (&["job", "list", "nowhere"], "folder nowhere not found"),
    ] {
        let ended = home.run(command).code(2);
        assert!(ended.err.contains(expected), "{command:?}: {ended:?}");
    }
    assert_eq!(home.names(), before, "a file was created");
}

/// `head` closes its input early, for example.
#[test]
fn a_closed_output_ends_a_command_with_success() {
    let home = Home::new();
    home.profile("");
    let make = ["job", "new", "jobs/one", "--profile", "p.toml"];
    home.run(&[&make[..], &["--seed", "http://localhost/"]].concat())
        .code(0);
    for command in [
        &["serve", "--openapi"][..],
        &["job", "list", "jobs"],
        &["job", "list", "jobs", "--json"],
        &["job", "metrics", "jobs/one"],
        &["job", "status", "jobs/one"],
        &["job", "report", "jobs/one", "crawl"],
        &["frontier", "export", "jobs/one"],
    ] {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let ended = home.opilio(command).stdout(write).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{command:?}: {errors}");
        assert_eq!(errors, "", "{command:?}");
    }
}

/// All commands have the same exit code for a file on the command line that cannot be read or has another format.
#[test]
fn unusable_files_on_the_command_line_have_exit_code_2() {
    let home = Home::new();
    make(&home, "jobs/one", SEED);
    home.file("text.txt", "some text\n");
    let redact = ["warc", "redact", "FILE", "--uri", SEED, "--reason", "x"];
    for command in [
        &["crawl", "FILE.toml"][..],
        &["job", "new", "jobs/two", "--profile", "FILE.toml"],
        &["job", "seeds", "jobs/one", "--add-file", "FILE"],
        &["job", "restore", "FILE", "jobs/two"],
        &["job", "compare", "jobs/one", "FILE"],
        &["frontier", "import", "jobs/one", "FILE"],
        &["uri", SEED, "--profile", "FILE.toml"],
        &["robots", "FILE", "/"],
        &["profile", "check", "FILE.toml"],
        &["profile", "import", "FILE"],
        &["profile", "save", "FILE"],
        &["warc", "check", "FILE"],
        &["warc", "ls", "FILE"],
        &["warc", "show", "0", "FILE"],
        &["warc", "cat", "FILE"],
        &["warc", "index", "FILE"],
        &["warc", "pages", "FILE"],
        &redact,
        &["package", "FILE", "-o", "new.wacz"],
        &["simulate", "FILE.toml"],
        &["simulate", "fit", "FILE"],
        &["serve", "--config", "FILE"],
        &["token", "list", "--config", "FILE"],
        &["node", "list", "--config", "FILE"],
        &["plugin", "inspect", "./FILE"],
        &["plugin", "run", "html", "./FILE"],
        &["plugin", "replay", "FILE"],
        &["plugin", "replace", "jobs/one", "html", "./FILE"],
    ] {
        let missing: Vec<String> = command
            .iter()
            .map(|it| it.replace("FILE", "none"))
            .collect();
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        let ended = home.run(&missing).code(2);
        let output = format!("{}{}", ended.out, ended.err);
        assert!(output.contains("none"), "{command:?}: {ended:?}");
    }
    for command in [
        &["crawl", "text.txt"][..],
        &["job", "restore", "text.txt", "jobs/two"],
        &["frontier", "import", "jobs/one", "text.txt"],
        &["profile", "check", "./text.txt"],
        &["profile", "import", "text.txt"],
        &["profile", "save", "text.txt"],
        &["simulate", "./text.txt"],
        &["simulate", "fit", "text.txt"],
        &["serve", "--config", "text.txt"],
        &["token", "list", "--config", "text.txt"],
        &["plugin", "inspect", "./text.txt"],
        &["plugin", "replay", "text.txt"],
        &["plugin", "replace", "jobs/one", "html", "./text.txt"],
    ] {
        let ended = home.run(command).code(2);
        let output = format!("{}{}", ended.out, ended.err);
        assert!(output.contains("text.txt"), "{command:?}: {ended:?}");
    }
    assert!(!home.path().join("jobs/two").exists());
}
