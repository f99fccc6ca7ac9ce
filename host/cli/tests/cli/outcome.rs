//! The end of a crawl: seeds that could not be fetched, counts by outcome, errors of plugins; and names of jobs.

use opilio_stories::{CLOSED_PORT, Misdeed, extractor, html, site};
use opilio_test_web::Reply;
use serde_json::Value;

use crate::command::{Home, WWW, tree};

/// Returns the URL of a server that is down.
fn down() -> String {
    format!("http://down.localhost:{CLOSED_PORT}/")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_fetches_no_seed_prints_reasons_and_has_its_own_exit_code() {
    let (home, web) = (Home::new(), site(WWW).page("/", html("")).serve().await);
    home.profile("name = 'down'");
    let (down, missing) = (down(), web.url(WWW, "/missing.html"));
    let crawl = ["crawl", "p.toml", "--seed", &down, "--seed", &missing];
    let ended = home.run(&[&crawl[..], &["--job", "job"]].concat()).code(5);
    for expected in [
        "no seed could be fetched",
        "0 of 2 fetched",
        &format!("{down}  "),
        "cannot connect to ",
        &format!("{missing}  status 404; correct or remove the seed"),
    ] {
        assert!(ended.out.contains(expected), "{expected}: {ended:?}");
    }
    let status = home.run(&["job", "status", "job"]).code(0);
    assert!(
        status
            .out
            .contains("finished without a result: none of the 2 seeds"),
        "{status:?}"
    );
    // `job seeds` prints the same reasons without a process of the job.
    let listed = home.run(&["job", "seeds", "job", "--json"]).code(0).out;
    let whys: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["why"].to_string())
        .collect();
    assert_eq!(whys.len(), 2, "{listed}");
    assert!(whys[0].contains(": cannot connect to "), "{listed}");
    assert!(whys[0].contains("check the server"), "{listed}");
    let remedy = "\"status 404; correct or remove the seed\"";
    assert_eq!(whys[1], remedy, "{listed}");
    // The next start finds nothing to fetch and prints the same reasons.
    let again = home.run(&["crawl", "job", "--json"]).code(5);
    let summary: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(summary["seeds"]["fetched"], 0, "{summary}");
    let failed = summary["seeds"]["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 2, "{summary}");
    let why = failed[0]["why"].as_str().unwrap();
    assert!(why.contains(": cannot connect to "), "{why}");
    // The run time of this process is in its summary.
    let status = home.run(&["job", "status", "job", "--json"]).code(0).out;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(
        summary["progress"]["statistics"]["run_time_s"],
        status["statistics"]["run_time_s"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fetched_seed_is_enough_and_the_others_are_listed() {
    let home = Home::new();
    let web = site(WWW)
        .page(
            "/",
            html("<a href='/a.html'>a</a><a href='/gone.html'>b</a>"),
        )
        .page("/a.html", html("a"))
        .page("/gone.html", Reply::status(410))
        .serve()
        .await;
    home.profile("name = 'half'");
    let (down, up) = (down(), web.url(WWW, "/"));
    let crawl = ["crawl", "p.toml", "--seed", &down, "--seed", &up];
    let ended = home.run(&[&crawl[..], &["--job", "job"]].concat()).code(0);
    assert!(ended.out.contains("1 of 2 fetched"), "{ended:?}");
    assert!(ended.out.contains(&format!("{down}  ")), "{ended:?}");
    // DNS look-ups, robots.txt files and error responses are not documents.
    assert!(
        ended
            .out
            .contains("visits  2 documents, 3 failed (1 error response),"),
        "{ended:?}"
    );
    let status = home.run(&["job", "status", "job"]).code(0);
    assert!(
        status
            .out
            .contains("visits  2 documents, 3 failed (1 error response),"),
        "{status:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_explained_in_words() {
    let home = Home::new();
    home.profile("name = 'down'");
    let down = down();
    home.run(&["crawl", "p.toml", "--seed", &down, "--job", "job"])
        .code(5);
    let robots = format!("{down}robots.txt");
    let why = home.run(&["frontier", "why", "job", &robots]).code(0);
    assert!(
        why.out
            .contains("last visit: no connection to the server (status -2)"),
        "{why:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_plugin_are_printed_a_few_times_and_then_counted() {
    let (home, web) = (Home::new(), tree(40, 0).await);
    home.file("bad.wasm", extractor(Misdeed::Traps));
    home.profile(
        "name = 'bad'\nstacks.extract = ['http', 'html', 'bad']\n[plugins.bad]\ncomponent = './bad.wasm'",
    );
    let seed = web.url(WWW, "/");
    let ended = home
        .run(&["crawl", "p.toml", "--seed", &seed, "--job", "job"])
        .code(0);
    let errors = |what: &str| ended.err.lines().filter(|line| line.contains(what)).count();
    assert_eq!(errors("details are in runtime-errors.log"), 3, "{ended:?}");
    assert_eq!(errors("10 errors so far"), 1, "{ended:?}");
    // Two further lines are possible: the component is not pinned, and the plugin is left out.
    let about_plugin = ended.sentences().filter(|line| line.contains("bad"));
    assert!(about_plugin.count() <= 7, "{ended:?}");
    // The plugin is left out after 25 errors. Calls that other workers have begun before then fail, too.
    let (_, counted) = ended.out.split_once("plugin  bad: ").expect("a line");
    let count: u32 = counted.split(' ').next().unwrap().parse().unwrap();
    assert!((25..40).contains(&count), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_the_same_name_in_every_command() {
    let (home, web) = (Home::new(), tree(4, 0).await);
    home.profile("name = 'tree'");
    let seed = web.url(WWW, "/");
    let new = ["job", "new", "news", "--profile", "p.toml", "--seed", &seed];
    home.run(&new).code(0);
    assert!(home.path().join("jobs/news/job.json").exists());
    for job in ["news", "jobs/news"] {
        let ended = home.run(&["crawl", job]).code(0);
        assert!(ended.err.contains("resuming jobs/news"), "{ended:?}");
        let status = home.run(&["job", "status", job]).code(0);
        assert!(status.out.contains("job  jobs/news"), "{status:?}");
        home.run(&["frontier", "queues", job]).code(0);
    }
    home.run(&["job", "clone", "news", "one"]).code(0);
    home.run(&["job", "clone", "jobs/news", "jobs/two"]).code(0);
    let elsewhere = home.run(&["job", "clone", "news", "other/three"]).code(2);
    assert!(
        elsewhere.err.contains("pass only its name"),
        "{elsewhere:?}"
    );
    let all = home.run(&["job", "list"]).code(0);
    assert_eq!(all.out.lines().count(), 3, "{all:?}");
    let one = home.run(&["job", "list", "news"]).code(0);
    assert!(one.out.starts_with("news  finished"), "{one:?}");
    assert_eq!(one.out.lines().count(), 1, "{one:?}");
    let again = home.run(&["job", "start", "news"]).code(0);
    assert!(
        again
            .err
            .contains("the job is finished: nothing is left to fetch"),
        "{again:?}"
    );
    home.run(&["job", "start", "one"]).code(0);
    let refused = home.run(&["crawl", "jobs"]).code(2);
    assert!(refused.err.contains("without a job"), "{refused:?}");
}

/// The summary prints the command that resumes the job.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_that_resumes_a_limited_crawl_works_as_printed() {
    let (home, web) = (Home::new(), tree(8, 0).await);
    home.profile("name = 'tree'\nlimits.documents = 5");
    let seed = web.url(WWW, "/");
    let ended = home.run(&["crawl", "p.toml", "--seed", &seed]).code(4);
    let mut lines = ended.out.lines();
    let resume = lines.find_map(|line| line.trim_start().strip_prefix("resume  opilio "));
    let resume: Vec<&str> = resume.unwrap().split(' ').collect();
    assert_eq!(resume, ["crawl", "jobs/tree"]);
    home.run(&resume).code(0);
}
