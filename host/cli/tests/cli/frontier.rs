//! `opilio frontier`: inspecting and changing the frontier of a running or stopped crawl.

use std::io::Read as _;

use opilio_stories::{lines, sound, until};
use serde_json::Value;

use crate::command::{Home, Running};
use crate::job::{Gate, job_log, paused, state, waiting};

/// Returns the name of the queue of a gate.
fn queue(gate: &Gate) -> String {
    opilio_uri::Uri::parse(&gate.url("/"))
        .unwrap()
        .surt_authority()
}

fn resume(home: &Home, running: &mut Running) {
    home.run(&["job", "resume", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    sound(&home.job());
}

/// Returns the output of `opilio frontier why`.
fn why(home: &Home, uri: &str) -> String {
    home.run(&["frontier", "why", "job", uri]).code(0).out
}

fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_uris_stay_known_and_forgotten_ones_may_be_found_again() {
    let links =
        "<a href='/drop/1'>1</a><a href='/drop/2'>2</a><a href='/again'>3</a><a href='/keep'>4</a>";
    let found_again = "<a href='/drop/1'>1</a><a href='/again'>3</a>";
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[("/", links), ("/keep", found_again), ("/again", "")]),
    );
    let mut running = paused(&home, &gate).await;
    let prefix = gate.surt("/drop/");
    let dry = home
        .run(&["frontier", "delete", "job", "--surt", &prefix])
        .code(0);
    assert!(
        dry.out
            .starts_with("2 URIs would be deleted; run the command again with --yes"),
        "{dry:?}"
    );
    let done = home
        .run(&["frontier", "delete", "job", "--surt", &prefix, "--yes"])
        .code(0);
    assert!(done.out.starts_with("2 URIs deleted; "), "{done:?}");
    let done = home
        .run(&["frontier", "forget", "job", "--regex", "/again$", "--yes"])
        .code(0);
    assert!(done.out.starts_with("1 URI forgotten"), "{done:?}");
    let list = home
        .run(&["frontier", "list", "job", "--surt", &prefix, "--json"])
        .code(0);
    let states: Vec<Value> = objects(&list.out)
        .into_iter()
        .map(|uri| uri["state"].clone())
        .collect();
    assert_eq!(states, ["deleted", "deleted"]);
    // The pages of the list together are the same list.
    let page = |after: &[&str]| {
        let command = ["frontier", "list", "job", "--surt", &prefix, "--limit", "1"];
        let command = [&command[..], &["--json"], after].concat();
        objects(&home.run(&command).code(0).out)
    };
    let first = page(&[]);
    assert_eq!(first[0], objects(&list.out)[0]);
    assert_eq!(first[1]["answer"], "more", "{first:?}");
    let second = page(&["--after", first[1]["after"].as_str().unwrap()]);
    assert_eq!(second, objects(&list.out)[1..], "this is the last page");
    home.run(&["frontier", "delete", "job", "--yes"]).code(2);
    let bad = home
        .run(&["frontier", "count", "job", "--regex", "a(b"])
        .code(2);
    assert!(bad.err.contains("unclosed group"), "{bad:?}");

    resume(&home, &mut running);
    let mut requests = gate.requests();
    requests.sort();
    assert_eq!(requests, ["/", "/again", "/keep"]);
    let output = why(&home, &gate.url("/drop/1"));
    assert!(output.contains("deleted by an operator"), "{output}");
    let log = job_log(&home);
    assert!(
        log.contains(&format!(
            " delete --surt {prefix:?} => 2 deleted, 0 in process left out"
        )),
        "{log}"
    );

    // Each deleted URI has exactly one line in crawl.log, written by the process that deleted it.
    let lines = || {
        let log = std::fs::read_to_string(home.job().join("logs/crawl.log")).unwrap();
        let lines = log.lines().filter(|line| line.contains(" -6000 "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let logged = lines();
    assert_eq!(logged.len(), 2, "{logged:?}");
    for (line, target) in logged.iter().zip(["/drop/1", "/drop/2"]) {
        assert!(
            line.contains(&format!(" {} L {} ", gate.url(target), gate.url("/"))),
            "{line}"
        );
        assert!(line.contains(" deletedBy:"), "{line}");
    }
    for _ in 0..2 {
        home.run(&[
            "frontier",
            "delete",
            "job",
            "--regex",
            "/(keep|drop/1)$",
            "--yes",
        ])
        .code(0);
        assert_eq!(lines().len(), 3, "{:?}", lines());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_if_it_cannot_be_logged() {
    let (home, gate) = (Home::new(), Gate::serve(&[("/", "<a href='/a'>a</a>")]));
    let mut running = paused(&home, &gate).await;
    home.run(&["job", "stop", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    let state = || {
        let list = ["frontier", "list", "job", "--regex", "/a$", "--json"];
        objects(&home.run(&list).code(0).out)[0]["state"].clone()
    };
    let before = state();
    let log = home.job().join("logs/crawl.log");
    let kept = log.with_extension("kept");
    std::fs::rename(&log, &kept).unwrap();
    std::fs::create_dir(&log).unwrap();
    let delete = ["frontier", "delete", "job", "--regex", "/a$", "--yes"];
    let refused = home.run(&delete).code(1);
    assert!(refused.err.contains("directory"), "{refused:?}");
    assert_eq!(state(), before);

    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&kept, &log).unwrap();
    home.run(&delete).code(0);
    assert_eq!(state(), "deleted");
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.matches(" -6000 ").count(), 1, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_fetch_fails_with_status_minus_7000() {
    let (home, gate) = (Home::new(), Gate::serve(&[("/", "")]));
    let mut running = waiting(&home, &gate, "").await;
    let seed = gate.url("/");
    let other = home
        .run(&["frontier", "cancel", "job", &gate.url("/other")])
        .code(1);
    assert!(other.err.contains("is not being fetched"), "{other:?}");
    // The report shows the worker and the step of the visit.
    let threads = home.run(&["job", "report", "job", "threads", "--json"]);
    let threads = objects(&threads.code(0).out);
    let [facts, row] = &threads[..] else {
        panic!("{threads:?}");
    };
    assert_eq!(facts["at_work"], 1, "{facts}");
    assert_eq!(
        (&row["uri"], &row["step"]),
        (&seed.as_str().into(), &"fetch".into())
    );
    assert!(row["worker"].as_u64() >= Some(1), "{row}");
    let text = home.run(&["job", "report", "job", "threads"]).code(0).out;
    let head = "[worker] [step] [step-seconds] [since] [seconds] [uri]";
    assert!(text.lines().any(|line| line == head), "{text}");
    home.run(&["frontier", "cancel", "job", &seed]).code(0);
    assert_eq!(running.wait(), 5);
    let log = lines(&home.job());
    let line = log.iter().find(|line| line.uri == seed).unwrap();
    assert_eq!(line.status, -7000, "{log:#?}");
    assert_eq!(gate.requests(), ["/"]);
    sound(&home.job());
    let statistics = home.run(&["frontier", "statistics", "job"]).code(0);
    assert!(statistics.out.contains("1 failed"), "{statistics:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_retired_and_reactivated_and_why_shows_it() {
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[
            (
                "/",
                "<a href='/a'>a</a><a href='http://elsewhere.org/x'>x</a>",
            ),
            ("/a", ""),
        ]),
    );
    let mut running = paused(&home, &gate).await;
    let queue = queue(&gate);
    let output = why(&home, &gate.url("/a"));
    assert!(output.contains("ready since"), "{output}");
    let output = why(&home, &gate.url("/"));
    assert!(
        output.contains("done since") && output.contains("200"),
        "{output}"
    );
    assert!(output.contains("  extracted by  http 0."), "{output}");
    let output = why(&home, "http://elsewhere.org/x");
    assert!(output.contains("no scope filter accepted it"), "{output}");
    assert!(output.contains(&gate.url("/")), "{output}");
    let output = why(&home, "http://never.org/");
    assert!(output.contains("not known"), "{output}");

    let done = home.run(&["frontier", "freeze", "job", &queue]).code(0);
    assert!(done.out.contains("is frozen"), "{done:?}");
    home.run(&["frontier", "thaw", "job", &queue]).code(0);
    let done = home.run(&["frontier", "retire", "job", &queue]).code(0);
    assert!(done.out.contains("is retired by operator"), "{done:?}");
    let output = why(&home, &gate.url("/a"));
    assert!(output.contains("retired by operator"), "{output}");
    let unknown = home
        .run(&["frontier", "retire", "job", "org,none,"])
        .code(1);
    assert!(unknown.err.contains("not found"), "{unknown:?}");
    let retired = home
        .run(&["frontier", "queues", "job", "--state", "retired", "--json"])
        .code(0);
    assert_eq!(objects(&retired.out)[0]["queue"], queue.as_str());

    resume(&home, &mut running);
    assert_eq!(gate.requests(), ["/"]);
    // The same commands work on a job without a process.
    let done = home.run(&["frontier", "unretire", "job", &queue]).code(0);
    assert!(done.out.contains("is ready"), "{done:?}");
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    assert_eq!(gate.requests(), ["/", "/a"]);
    let log = job_log(&home);
    for wanted in [" freeze ", " thaw ", " retire ", " unretire "] {
        assert!(log.contains(wanted), "{wanted} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_that_are_too_long_are_shortened_in_all_queues() {
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "")]),
    );
    let mut running = paused(&home, &gate).await;
    let wake = ["frontier", "wake", "job", "--all"];
    let none = home.run(&wake).code(0);
    assert!(none.out.contains("0 of 1 queues had"), "{none:?}");
    home.run(&[&wake[..], &[&queue(&gate)]].concat()).code(2);
    home.run(&wake[..3]).code(2);
    resume(&home, &mut running);
    assert!(job_log(&home).contains(" wake --all => 0 of 1 queues"));
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_uris_are_fetched_even_if_known_or_out_of_scope() {
    let elsewhere = Gate::serve(&[("/far", "")]);
    elsewhere.open();
    let (home, gate) = (Home::new(), Gate::serve(&[("/", "")]));
    let mut running = paused(&home, &gate).await;
    home.run(&["frontier", "force", "job", &gate.url("/")])
        .code(0);
    home.run(&["frontier", "force", "job", &elsewhere.url("/far")])
        .code(0);
    let no = home
        .run(&["frontier", "force", "job", "mailto:a@b.org"])
        .code(2);
    assert!(no.err.contains("mailto"), "{no:?}");
    resume(&home, &mut running);
    assert_eq!(gate.requests_for("/"), 2);
    assert_eq!(elsewhere.requests_for("/far"), 1);
    home.run(&["frontier", "force", "job", &gate.url("/")])
        .code(0);
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    assert_eq!(gate.requests_for("/"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn precedence_decides_the_order() {
    let links = "<a href='/a'>a</a><a href='/b'>b</a><a href='/c'>c</a>";
    let (home, gate) = (Home::new(), Gate::serve(&[("/", links)]));
    let mut running = paused(&home, &gate).await;
    let queue = queue(&gate);
    home.run(&[
        "frontier",
        "precedence",
        "job",
        "--uri",
        &gate.url("/c"),
        "0",
    ])
    .code(0);
    let uris = home
        .run(&["frontier", "uris", "job", &queue, "--limit", "2", "--json"])
        .code(0);
    let page = objects(&uris.out);
    assert_eq!(page[0]["uri"], gate.url("/c").as_str());
    assert_eq!(page[1]["uri"], gate.url("/a").as_str());
    let after = page[2]["after"].as_str().unwrap();
    let uris = home
        .run(&["frontier", "uris", "job", &queue, "--after", after])
        .code(0);
    assert!(uris.out.contains(&gate.url("/b")), "{uris:?}");
    assert!(!uris.out.contains(&gate.url("/a")), "{uris:?}");

    let done = home
        .run(&["frontier", "precedence", "job", "--queue", &queue, "9"])
        .code(0);
    assert!(done.out.contains("precedence 9"), "{done:?}");
    home.run(&["frontier", "floor", "job", "9"]).code(0);
    let shown = home.run(&["frontier", "queue", "job", &queue]).code(0);
    assert!(shown.out.contains("ineligible"), "{shown:?}");
    home.run(&["frontier", "floor", "job", "none"]).code(0);
    home.run(&[
        "frontier",
        "precedence",
        "job",
        "--queue",
        &queue,
        "default",
    ])
    .code(0);
    home.run(&[
        "frontier",
        "precedence",
        "job",
        "--uri",
        &gate.url("/a"),
        "300",
    ])
    .code(2);
    resume(&home, &mut running);
    assert_eq!(gate.requests(), ["/", "/c", "/a", "/b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn freezing_or_retiring_a_queue_takes_effect_after_its_current_fetch() {
    let (home, gate) = (Home::new(), Gate::serve(&[("/", "")]));
    let mut running = waiting(&home, &gate, "").await;
    let queue = queue(&gate);
    let change = |action: &str| home.run(&["frontier", action, "job", &queue]).code(0).out;
    let frozen = change("freeze");
    let once = "once current fetches have finished, precedence";
    assert!(frozen.contains(&format!("is frozen {once}")), "{frozen}");
    let thawed = change("thaw");
    assert!(thawed.contains("is in-process, precedence"), "{thawed}");
    let retired = change("retire");
    assert!(
        retired.contains(&format!("is retired by operator {once}")),
        "{retired}"
    );
    gate.open();
    assert_eq!(running.wait(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_floor_set_by_an_operator_keeps_the_crawl_waiting() {
    let elsewhere = Gate::serve(&[("/far", "")]);
    elsewhere.open();
    let links = "<a href='/a'>a</a>";
    let (home, gate) = (Home::new(), Gate::serve(&[("/", links), ("/a", "")]));
    let mut running = paused(&home, &gate).await;
    let far = elsewhere.url("/far");
    home.run(&["frontier", "force", "job", &far]).code(0);
    let queue = queue(&gate);
    home.run(&["frontier", "precedence", "job", "--queue", &queue, "9"])
        .code(0);
    let floor = home.run(&["frontier", "floor", "job", "9"]).code(0);
    assert!(floor.out.contains("the crawl waits for them"), "{floor:?}");
    home.run(&["job", "resume", "job"]).code(0);
    let is_done = || why(&home, &far).contains("done since");
    until("the URI above the floor is fetched", is_done).await;
    assert_eq!(state(&home).as_deref(), Some("running"));

    home.run(&["frontier", "floor", "job", "none"]).code(0);
    assert_eq!(running.wait(), 0);
    assert_eq!(gate.requests(), ["/", "/a"]);
    let log = job_log(&home);
    assert_eq!(log.matches("crawl begin").count(), 1, "{log}");

    // The crawl does not wait for queues below the precedence floor of the profile.
    let profile = "name = 'passed-over'\n[frontier]\nprecedence-floor = 1";
    home.profile(profile);
    let seed = gate.url("/b");
    let crawl = ["crawl", "p.toml", "--seed", &seed, "--job", "passed-over"];
    home.run(&crawl).code(0);
    assert_eq!(gate.requests_for("/b"), 0);
}

/// The seed is in the profile. After its removal, pages of another seed link to its site.
#[tokio::test(flavor = "multi_thread")]
async fn a_seed_is_removed_with_the_queued_uris_found_only_through_it() {
    let home = Home::new();
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a><a href='/b'>b</a>"), ("/z", "")]);
    let link = format!("<a href='{}'>z</a>", gate.url("/z"));
    let other = Gate::serve(&[
        ("/", "<a href='/o'>o</a>"),
        ("/o", &link),
        ("/p", &link),
        ("/q", &link),
    ]);
    let (seed, stays) = (gate.url("/"), other.url("/"));
    home.profile(&format!("name = 'gate'\nseeds = ['{seed}', '{stays}']"));
    let mut running = home.start(&["crawl", "p.toml", "--job", "job"]);
    until("both seeds are requested", || {
        gate.requests_for("/") + other.requests_for("/") == 2
    })
    .await;
    home.run(&["job", "pause", "job"]).code(0);
    gate.open();
    other.open();
    until("the crawl is paused", || {
        state(&home).as_deref() == Some("paused")
    })
    .await;

    let no = home
        .run(&["frontier", "remove-seed", "job", &gate.url("/a")])
        .code(1);
    assert!(no.err.contains("is not a seed"), "{no:?}");
    let done = home.run(&["frontier", "remove-seed", "job", &seed]).code(0);
    assert!(done.out.contains("2 queued URIs"), "{done:?}");
    // The command can be repeated, for URIs that were queued again meanwhile.
    let again = home.run(&["frontier", "remove-seed", "job", &seed]).code(0);
    assert!(again.out.contains("0 queued URIs"), "{again:?}");
    let seeds = std::fs::read_to_string(home.job().join("seeds.txt")).unwrap();
    assert!(seeds.contains(&stays) && !seeds.contains(&seed), "{seeds}");
    resume(&home, &mut running);
    // Links to the site of the seed are out of scope now, in this process and in the next.
    home.run(&["frontier", "force", "job", &other.url("/p")])
        .code(0);
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    assert_eq!(gate.requests(), ["/"]);
    assert_eq!(other.requests(), ["/", "/o", "/p"]);

    // The seed can be added again.
    home.run(&["frontier", "force", "job", &other.url("/q")])
        .code(0);
    home.run(&["crawl", "p.toml", "--job", "job", "--seed", &seed])
        .code(0);
    assert_eq!(gate.requests(), ["/", "/z"]);
    let removed = std::fs::read_to_string(home.job().join("removed-seeds.txt")).unwrap();
    assert_eq!(removed, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_uris_are_imported_into_another_job() {
    let links = "<a href='/a'>a</a><a href='/b'>b</a>";
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[("/", links), ("/a", ""), ("/b", "")]),
    );
    let mut running = paused(&home, &gate).await;
    home.run(&["frontier", "export", "job", "-o", "uris.jsonl"])
        .code(0);
    let index = home.run(&["frontier", "export", "job", "--cdxj"]).code(0);
    assert!(index.out.contains(&gate.url("/")), "{index:?}");
    let exported = std::fs::read_to_string(home.path().join("uris.jsonl")).unwrap();
    assert!(objects(&exported).len() >= 3, "{exported}");
    home.run(&[
        "frontier",
        "export",
        "job",
        "--journal",
        "-o",
        "j.recover.gz",
    ])
    .code(0);
    let packed = std::fs::File::open(home.path().join("j.recover.gz")).unwrap();
    let mut journal = String::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut journal)
        .unwrap();
    let line = |tag, target| format!("{tag} {} ", gate.url(target));
    for beginning in [line("Fs", "/"), line("F+", "/a"), line("F+", "/b")] {
        let is_there = journal.lines().any(|line| line.starts_with(&beginning));
        assert!(is_there, "{beginning}: {journal}");
    }
    resume(&home, &mut running);
    assert_eq!(gate.requests().len(), 3);
    let sound = home.run(&["frontier", "check", "job"]).code(0);
    assert!(sound.out.contains("sound"), "{sound:?}");

    // Another job with another seed imports the done and the queued URIs.
    let other = Gate::serve(&[("/", "")]);
    other.open();
    home.run(&["crawl", "p.toml", "--seed", &other.url("/"), "--job", "new"])
        .code(0);
    let taken = home
        .run(&["frontier", "import", "new", "uris.jsonl"])
        .code(0);
    assert!(taken.out.contains("to be fetched"), "{taken:?}");
    let new = home
        .run(&[
            "frontier",
            "list",
            "new",
            "--surt",
            &gate.surt("/"),
            "--json",
        ])
        .code(0);
    let mut states: Vec<String> = objects(&new.out)
        .iter()
        .map(|uri| format!("{} {}", uri["uri"].as_str().unwrap(), uri["state"]))
        .collect();
    states.sort();
    assert_eq!(
        states,
        [
            format!("{} \"done\"", gate.url("/")),
            format!("{} \"queued\"", gate.url("/a")),
            format!("{} \"queued\"", gate.url("/b")),
        ]
    );
    let again = home
        .run(&["frontier", "import", "new", "j.recover.gz"])
        .code(0);
    assert!(again.out.contains("known before"), "{again:?}");
    let bad = home.run(&["frontier", "import", "new", "p.toml"]).code(2);
    assert!(bad.err.contains("is not a recovery journal"), "{bad:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uris_are_selected_by_status_type_and_outcome() {
    let links = "<a href='/page'>1</a><a href='/gone'>2</a><a href='/lost'>3</a>";
    let gate = Gate::serve(&[("/", links), ("/page", "")]);
    gate.open();
    let home = Home::new();
    home.profile("name = 'gate'");
    let seed = gate.url("/");
    home.run(&[
        "crawl", "p.toml", "--quiet", "--seed", &seed, "--job", "job",
    ])
    .code(0);
    let list = |more: &[&str]| -> Vec<String> {
        let list = [
            &["frontier", "list", "job", "--json", "--regex", "^http"],
            more,
        ]
        .concat();
        let found = objects(&home.run(&list).code(0).out);
        let path = |uri: &Value| uri["uri"].as_str().unwrap().replace(&seed, "/");
        let mut paths: Vec<String> = found.iter().map(path).collect();
        paths.retain(|path| path != "/robots.txt");
        paths
    };
    assert_eq!(list(&["--status", "404"]), ["/gone", "/lost"]);
    assert_eq!(
        list(&["--status", "2xx", "--type", "text/*"]),
        ["/", "/page"]
    );
    assert_eq!(
        list(&["--status", "-9--1,404", "--surt", &gate.surt("/g")]),
        ["/gone"]
    );
    let text = home.run(&["frontier", "list", "job", "--status", "404"]);
    assert!(text.out.contains("  404 not found  "), "{text:?}");
    assert_eq!(list(&["--state", "succeeded"]), ["/", "/page"]);
    assert_eq!(
        list(&["--status", "404", "--state", "failed"]),
        ["/gone", "/lost"]
    );
    assert_eq!(
        list(&["--host", "gate.localhost", "--status", "200"]),
        ["/", "/page"]
    );
    assert_eq!(list(&["--host", "localhost"]), [""; 0]);
    let refused = home
        .run(&["frontier", "list", "job", "--status", "none"])
        .code(2);
    assert!(refused.err.contains("such as 404, 5xx"), "{refused:?}");
    let gone = [
        "frontier",
        "forget",
        "job",
        "--status",
        "404",
        "--host",
        "gate.localhost",
        "--yes",
    ];
    let gone = home.run(&gone).code(0);
    // The two pages and robots.txt.
    assert!(gone.out.starts_with("3 URIs forgotten"), "{gone:?}");
    assert!(job_log(&home).contains("forget --host \"gate.localhost\" --status \"404\""));
    assert_eq!(list(&[]), ["/", "/page"]);
}
