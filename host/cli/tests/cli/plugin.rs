//! `opilio plugin`: inspecting, running, testing, comparing and creating plugins, and replaying recorded calls.

use serde_json::{Value, json};

use crate::command::{Ended, Home, WWW, tree, uris_of_tree};

const PAGE: &str =
    "<a href='two.html'>two</a><img src='i.png'><script>var u = '/api/x.json'</script>";

/// A case that the filter `hops` passes, and one that it fails.
const CASES: &str = r#"[
  { "id": "near",  "plugin": "hops", "settings": {"max": 1},
    "call": {"judge-candidates": {"stage": "scope", "candidates": [{"uri": "http://a.example/", "hop-path": "L"}]}},
    "expected": [ {"verdict": "pass"} ] },
  { "id": "far", "plugin": "hops", "settings": {"max": 1},
    "call": {"judge-candidates": {"stage": "scope", "candidates": [{"uri": "http://a.example/", "hop-path": "LL"}]}},
    "expected": [ {"verdict": "pass"} ] }
]
"#;

#[test]
fn inspect_shows_the_metadata_of_a_plugin() {
    let home = Home::new();
    let ended = home.run(&["plugin", "inspect", "hops"]).code(0);
    for expected in [
        "builtin:hops\n",
        "  contract  0.3.0\n",
        "  kinds        filter\n",
        "from a snapshot",
        "  max                   whole number from 0            20       overridable  Most hops of any type from the seed",
    ] {
        assert!(
            ended.out.contains(expected),
            "{expected:?} in {}",
            ended.out
        );
    }
    let ended = home.run(&["plugin", "inspect", "hops", "--json"]).code(0);
    let inspected: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(inspected["plugins"][0]["settings"][0]["default"], 20);
}

#[test]
fn plugins_run_in_little_address_space_or_the_limit_is_reported() {
    let home = Home::new();
    let inspect = |limit: &str| {
        let limit = format!("ulimit -v {limit}");
        Ended::of(
            &home
                .opilio_after(&limit, &["plugin", "inspect", "hops"])
                .output()
                .unwrap(),
        )
    };
    // In KiB: 60 GB. Twelve concurrent plugins would reserve 207 GB.
    let ended = inspect("60000000").code(0);
    assert!(ended.out.contains("builtin:hops"), "{ended:?}");
    let ended = inspect("10000000").code(2);
    assert!(ended.err.contains("ulimit -v unlimited"), "{ended:?}");
}

#[test]
fn run_prints_the_resolved_links_of_a_page() {
    let home = Home::new();
    home.file("page.html", PAGE);
    let uri = "https://a.example/dir/page.html";
    let ended = home
        .run(&["plugin", "run", "html", "page.html", "--uri", uri])
        .code(0);
    assert_eq!(
        ended.out,
        "\
200 https://a.example/dir/page.html  text/html
  L         https://a.example/dir/two.html  a/@href
  E         https://a.example/dir/i.png     img/@src
  fragment  text/javascript, text 51+21     script
"
    );
    let ended = home
        .run(&[
            "plugin",
            "run",
            "html",
            "page.html",
            "--uri",
            uri,
            "--fragments",
            "--json",
        ])
        .code(0);
    let answer: Value = serde_json::from_str(&ended.out).unwrap();
    let links = &answer["answers"][0]["found"]["links"];
    assert_eq!(links[2]["uri"], "https://a.example/api/x.json", "{links:#}");
    assert_eq!(links[2]["hop"], "X");
}

#[test]
fn standard_input_gets_a_type_that_the_plugin_handles() {
    let home = Home::new();
    let page = std::fs::File::open(home.file("page", PAGE)).unwrap();
    let mut run = home.opilio(&["plugin", "run", "html", "-"]);
    let ended = Ended::of(&run.stdin(page).output().unwrap()).code(0);
    assert!(
        ended.out.contains("http://example.com/two.html"),
        "{ended:?}"
    );
    let first = ended.sentences().next().unwrap_or_default();
    assert!(
        first.starts_with("standard input is read as text/html, "),
        "{ended:?}"
    );
}

#[test]
fn filters_judge_the_links_of_a_page() {
    let home = Home::new();
    home.file("page.html", PAGE);
    let judged = |path: &str| {
        let run = [
            "plugin",
            "run",
            "hops",
            "page.html",
            "--settings",
            r#"{"max": 1}"#,
        ];
        let arguments = [&run[..], &["--hop-path", path]].concat();
        home.run(&arguments).code(0).out
    };
    assert!(judged("").contains("pass  http://example.com/two.html"));
    assert!(judged("L").contains("reject  http://example.com/two.html"));
}

#[test]
fn cases_are_run_and_blessed() {
    let home = Home::new();
    // A shipped plugin has no folder beside it.
    let refused = home.run(&["plugin", "test", "hops"]).code(2);
    let remedy = "the folder hops/cases of the cases is missing; name another with --cases";
    assert!(refused.err.contains(remedy), "{}", refused.err);
    std::fs::create_dir(home.path().join("cases")).unwrap();
    let file = home.file("cases/hops.json", CASES);
    let test = ["plugin", "test", "hops", "--cases", "cases"];
    let ended = home.run(&test).code(1);
    assert!(ended.out.contains("FAIL     far"), "{}", ended.out);
    assert!(
        ended.out.contains("-    \"verdict\": \"pass\""),
        "{}",
        ended.out
    );
    assert!(
        ended.out.contains("+    \"verdict\": \"reject\""),
        "{}",
        ended.out
    );
    assert!(
        ended.out.ends_with("1 case passed, 1 case failed\n"),
        "{}",
        ended.out
    );
    let only = [&test[..], &["--only", "near"]].concat();
    assert_eq!(home.run(&only).code(0).out, "1 case passed\n");
    let unknown = [&test[..], &["--only", "nowhere"]].concat();
    home.run(&unknown).code(2);

    let bless = [&test[..], &["--bless"]].concat();
    assert_eq!(
        home.run(&bless).code(0).out,
        "blessed  far\n1 case passed, 1 case blessed\n"
    );
    assert_eq!(home.run(&test).code(0).out, "2 cases passed\n");
    let blessed = std::fs::read_to_string(file).unwrap();
    let (first, second) = blessed.split_once("\"far\"").unwrap();
    assert_eq!(
        first,
        CASES.split_once("\"far\"").unwrap().0,
        "byte for byte"
    );
    assert!(second.contains("\"reject\""));
}

#[test]
fn check_finds_errors_of_a_component() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("cases")).unwrap();
    home.file("cases/hops.json", CASES);
    let check = ["plugin", "check", "hops", "--cases", "cases"];
    let ended = home.run(&check).code(0);
    assert!(
        ended.out.contains("2 cases, each called twice"),
        "{}",
        ended.out
    );
    let others = ["plugin", "check", "css", "--cases", "cases"];
    let ended = home.run(&others).code(0);
    let none = "note  same answers   not checked: no case in cases is for css\n";
    assert!(ended.out.ends_with(none), "{}", ended.out);
    let trap = opilio_stories::extractor(opilio_stories::Misdeed::Traps);
    home.file("trap.wasm", trap);
    let case = json!([{
        "id": "one", "plugin": "guest", "expected": [{}],
        "call": {"extract": {"documents": [{"media-type": "text/html", "text": "<p>"}]}},
    }]);
    home.file("cases/hops.json", case.to_string());
    let ended = home
        .run(&["plugin", "check", "./trap.wasm", "--json"])
        .code(1);
    let findings = ended.out.lines();
    let findings: Vec<Value> = findings
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(findings.last(), Some(&json!({"ok": false})));
    let failed = |what: &str| {
        let of = findings.iter().filter(|one| one["what"] == what);
        of.into_iter().any(|one| one["weight"] == "fail")
    };
    // The settings schema of the plugin is `{}`, which accepts everything.
    assert!(failed("guest: settings"), "{findings:#?}");
    assert!(failed("same answers"), "{findings:#?}");
    assert!(!failed("imports"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_diff_and_bench_read_an_archive() {
    let home = Home::new();
    let web = tree(8, 100).await;
    let profile = home.profile(&format!("seeds = [{:?}]", web.url(WWW, "/")));
    let crawled = tokio::task::spawn_blocking(move || {
        let profile = profile.display().to_string();
        home.run(&["crawl", &profile, "--job", "job", "--quiet"])
            .code(0);
        home
    });
    let home = crawled.await.unwrap();
    // The 404 response for robots.txt is a document, too.
    let pages = uris_of_tree(&web, 8).len() + 1;
    tokio::task::spawn_blocking(move || check_archive_commands(&home, pages))
        .await
        .unwrap();
}

/// Checks the output of run, diff and bench on the archive of a crawl.
fn check_archive_commands(home: &Home, pages: usize) {
    let ended = home.run(&["plugin", "run", "html", "job/warcs"]).code(0);
    let total = ended.out.lines().last().unwrap();
    assert!(
        total.starts_with(&format!("{pages} documents")) && total.contains("links: 6"),
        "{total}"
    );
    let same = ["plugin", "diff", "html", "html", "--warc", "job/warcs"];
    let ended = home.run(&same).code(0);
    assert_eq!(ended.out, format!("no difference in {pages} documents\n"));

    let scope = ["plugin", "diff", "hops", "hops", "--warc", "job/warcs"];
    let settings = [
        "--settings",
        r#"{"max": 9}"#,
        "--new-settings",
        r#"{"max": 0}"#,
    ];
    let ended = home.run(&[&scope[..], &settings[..]].concat()).code(1);
    assert!(ended.out.contains("  -  pass    http://"), "{}", ended.out);
    assert!(ended.out.contains("  +  reject  http://"), "{}", ended.out);
    let total = ended.out.lines().last().unwrap();
    assert!(
        total.ends_with("; lost passed: 6; gained rejected: 6"),
        "{total}"
    );

    // Options may be between the arguments.
    let bench = [
        "plugin",
        "bench",
        "html",
        "--rounds",
        "1",
        "html",
        "--json",
        "job/warcs",
    ];
    let ended = home.run(&bench).code(0);
    let measured = ended.out.lines();
    let measured: Vec<Value> = measured
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(measured[1]["documents"], pages);
    assert!(measured[1]["median_s"].as_f64() > Some(0.0), "{measured:?}");
    assert!(
        measured[0]["memory_bytes"].as_u64() > Some(0),
        "{measured:?}"
    );
    check_damaged_archive(home);
}

/// Asserts that a damaged archive is reported and changes the exit code, even if diff finds no difference in the readable part.
fn check_damaged_archive(home: &Home) {
    let warcs = std::fs::read_dir(home.job().join("warcs")).unwrap();
    let mut warcs = warcs.map(|file| file.unwrap().path());
    let warc = warcs.find(|file| file.extension().is_some_and(|ending| ending == "gz"));
    let archived = std::fs::read(warc.unwrap()).unwrap();
    home.file("cut.warc.gz", &archived[..archived.len() - 40]);
    let ended = "; reading ended early: 1 damaged record\n";
    let run = home.run(&["plugin", "run", "html", "cut.warc.gz"]).code(1);
    assert!(run.out.ends_with(ended), "{run:?}");
    let same = ["plugin", "diff", "html", "html", "--warc", "cut.warc.gz"];
    let diff = home.run(&same).code(1);
    assert!(diff.out.starts_with("no difference in "), "{diff:?}");
    assert!(diff.out.ends_with(ended), "{diff:?}");
    assert!(
        diff.err.contains("damaged record in cut.warc.gz"),
        "{diff:?}"
    );
    let json = home.run(&[&same[..], &["--json"]].concat()).code(1);
    let totals: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(totals["reading"]["ended_early"], true, "{totals}");
}

/// Returns a recording in the current format.
fn recording(max: u64, verdict: &str) -> String {
    json!({
        "format": "opilio-recording-1",
        "at": "2026-11-21T12:00:00Z",
        "subject": "http://a.example/",
        "plugin": "hops",
        "instance": "near-enough",
        "version": "0.1.0",
        "component": "builtin:hops",
        "component-sha256": "0000000000000000000000000000000000000000000000000000000000000000",
        "contract": "0.2.0",
        "opilio": "0.1.0",
        "settings": {"max": max},
        "limits": {
            "memory": 67_108_864, "time": 2000, "output": 1_000_000, "links": 6000, "fragments": 6000,
            "fingerprint": 4096, "observer-memory": 4096, "files": 16,
        },
        "call": {"judge-candidates": {
            "stage": "scope",
            "candidates": [{"uri": "http://a.example/x", "hop-path": "LL", "via": "http://a.example/"}],
        }},
        "outcome": {"answer": [{"verdict": verdict}]},
    })
    .to_string()
}

#[test]
fn a_recorded_call_is_repeated_and_becomes_a_case() {
    let home = Home::new();
    home.file("same.json", recording(1, "reject"));
    let ended = home.run(&["plugin", "replay", "same.json"]).code(0);
    assert!(
        ended.out.contains("judge-candidates of hops 0.1.0"),
        "{}",
        ended.out
    );
    assert!(
        ended.out.contains("different component: sha256"),
        "{}",
        ended.out
    );
    assert!(ended.out.ends_with("  same answer\n"), "{}", ended.out);

    home.file("other.json", recording(2, "reject"));
    let replay = ["plugin", "replay", "other.json", "--bless", "cases"];
    let ended = home.run(&replay).code(1);
    assert!(
        ended.out.contains("+    \"verdict\": \"pass\""),
        "{}",
        ended.out
    );
    let test = ["plugin", "test", "hops", "--cases", "cases"];
    assert_eq!(home.run(&test).code(0).out, "1 case passed\n");

    let ended = home
        .run(&["plugin", "replay", "same.json", "--component", "html"])
        .code(2);
    assert!(ended.err.contains("has no plugin `hops`"), "{}", ended.err);
}

#[test]
fn invalid_arguments_are_one_error_with_exit_code_2() {
    #[track_caller]
    fn check(home: &Home, arguments: &[&str], expected: &str) {
        let ended = home.run(&[&["plugin"], arguments].concat()).code(2);
        assert!(ended.err.contains(expected), "{}", ended.err);
        assert_eq!(ended.sentences().count(), 1, "{}", ended.err);
    }
    let home = Home::new();
    home.file("page.html", PAGE);
    home.file("text.wasm", "hello");
    check(
        &home,
        &["inspect", "nothing"],
        "no shipped plugin is named `nothing`",
    );
    check(
        &home,
        &["inspect", "./nothing.wasm"],
        "cannot read component",
    );
    check(
        &home,
        &["inspect", "./text.wasm"],
        "is not a WebAssembly component",
    );
    check(
        &home,
        &["run", "html", "none.html"],
        "cannot read none.html",
    );
    check(
        &home,
        &["run", "html", "page.html", "--settings", "{"],
        "invalid JSON in --settings",
    );
    check(
        &home,
        &["run", "html", "page.html", "--settings", "{\"a\": 1}"],
        "settings of html 0.1.0: ",
    );
    check(
        &home,
        &[
            "run",
            "regex-strip",
            "page.html",
            "--settings",
            "{\"patterns\": [\"(\"]}",
        ],
        "regex-strip 0.1.0 refuses its settings: /patterns/0: not a regular expression",
    );
    check(
        &home,
        &["run", "html", "page.html", "--kind", "filter"],
        "its kinds: extractor",
    );
    check(
        &home,
        &["run", "html", "http://127.0.0.1:9/"],
        "cannot fetch http://127.0.0.1:9/robots.txt",
    );
    check(&home, &["replay", "page.html"], "is not a recording");
    check(
        &home,
        &["build", "."],
        "has no Cargo.toml (Rust), package.json",
    );
    check(
        &home,
        &["inspect", "html#x"],
        "no plugin `x` in html; its plugins: html",
    );
    let new = |name| ["new", "--lang", "rust", "--kind", "filter", name];
    check(&home, &new("crate"), "a keyword of Rust");
    check(&home, &new("opilio-plugin"), "is the name of a crate");
    check(
        &home,
        &["new", "--lang", "rust", "--kind", "filter", "Bad_Name"],
        "invalid plugin name",
    );
}

/// A new project of all kinds passes its own cases as a component. Its native tests are not run here, since cargo would have to
/// build the SDK again.
#[test]
fn a_new_plugin_of_every_kind_builds_and_passes_its_cases() {
    let home = Home::new();
    let kinds = [
        "extractor",
        "filter",
        "digest-stripper",
        "change-evaluator",
        "wait-evaluator",
        "precedence",
        "observer",
        "page-behavior",
    ];
    let mut new = vec!["plugin", "new", "--lang", "rust", "every-kind"];
    for kind in kinds {
        new.extend(["--kind", kind]);
    }
    home.run(&new).code(0);
    home.run(&new).code(2);
    let source = std::fs::read_to_string(home.path().join("every-kind/src/lib.rs")).unwrap();
    assert!(!source.contains("{{"), "{source}");

    let mut build = home.opilio(&["plugin", "build", "every-kind"]);
    let built = Ended::of(&build.output().unwrap());
    if opilio_build::Toolchain::detect().is_err() {
        assert!(built.err.contains("rustup target add"), "{}", built.err);
        assert_eq!(built.code, 2);
        return;
    }
    let built = built.code(0);
    assert!(built.out.contains("with every-kind\n"), "{}", built.out);
    let ended = home.run(&["plugin", "test", "every-kind"]).code(0);
    assert_eq!(ended.out, "9 cases passed\n");
    home.run(&["plugin", "check", "every-kind"]).code(0);
    home.file("page.html", "<p x-story='a'> <p x-story=\"three.html\">");
    let run = [
        "plugin",
        "run",
        "every-kind",
        "page.html",
        "--kind",
        "extractor",
    ];
    let ended = home.run(&run).code(0);
    assert!(
        ended
            .out
            .contains("L  http://example.com/three.html  @x-story"),
        "{}",
        ended.out
    );
}

#[test]
fn the_help_of_plugin_test_names_the_page_that_describes_cases() {
    let help = Home::new().run(&["plugin", "test", "--help"]).code(0).out;
    assert!(help.contains("docs/PLUGINS.md#cases"), "{help}");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/PLUGINS.md")).unwrap();
    assert!(page.contains("\n## Cases\n"));
}
