//! `/engine`: the API of Heritrix 3 for jobs. `cargo xtask judges heritrix` tests it with clients of Heritrix.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use opilio_stories::until;

use crate::command::{Home, WWW, tree};
use crate::serve::{Answer, Daemon, kill, process};

/// Returns a home with a configuration for clients of Heritrix, whose jobs may crawl this machine.
fn home() -> Home {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    std::fs::create_dir(home.path().join("profiles")).unwrap();
    std::fs::rename(home.profile(""), home.path().join("profiles/here.toml")).unwrap();
    let password = home.file("password", "lily\n");
    std::fs::set_permissions(password, std::fs::Permissions::from_mode(0o600)).unwrap();
    home.file(
        "opilio.toml",
        "profiles = \"profiles\"\n[heritrix]\nuser = \"nas\"\npassword-file = \"password\"\nprofile = \"here\"\n[restart]\npause = \"100ms\"\n",
    );
    home
}

fn cxml(seed: &str, more: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans">
 <bean id="metadata" class="org.archive.modules.CrawlMetadata"><property name="operatorContactUrl" value="https://archive.kb.nl/crawl"/></bean>
 <bean id="disposition" class="org.archive.crawler.postprocessor.DispositionProcessor">
  <property name="delayFactor" value="0"/><property name="minDelayMs" value="0"/>
 </bean>
 <bean id="seeds" class="org.archive.modules.seeds.TextSeedModule">
  <property name="textSource"><bean class="org.archive.spring.ConfigString"><property name="value"><value>{seed}</value></property></bean></property>
 </bean>
 {more}
</beans>
"#
    )
}

#[track_caller]
fn post(daemon: &Daemon, path: &str, form: &str, status: u16) -> Answer {
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = daemon.send("POST", path, form, kind);
    assert_eq!(answer.status, status, "{path} {form}: {answer:?}");
    answer
}

fn get(daemon: &Daemon, path: &str) -> Answer {
    daemon.send("GET", path, "", "")
}

/// Returns the state of a job in the words of Heritrix.
fn description(daemon: &Daemon, job: &str) -> String {
    let body = get(daemon, &format!("/engine/job/{job}")).body;
    let rest = body.split("<statusDescription>").nth(1).unwrap_or_default();
    rest.split('<').next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_created_configured_built_launched_unpaused_torn_down_and_copied() {
    let web = tree(6, 10).await;
    let home = home();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let created = post(&daemon, "/engine", "action=create&createpath=one", 303);
    assert!(created.head.contains("/engine\r\n"), "{created:?}");
    let engine = get(&daemon, "/engine").body;
    assert!(engine.contains("<shortName>one</shortName>"), "{engine}");
    // A job needs a contact URL.
    let refused = post(&daemon, "/engine/job/one", "action=build", 422);
    assert!(refused.body.contains("contact-url"), "{refused:?}");
    assert_eq!(description(&daemon, "one"), "Unbuilt");

    let config = "/engine/job/one/jobdir/crawler-beans.cxml";
    let text = cxml(&web.url(WWW, "/"), "");
    let put = daemon.send("PUT", config, &text, "");
    assert_eq!(put.status, 200, "{put:?}");
    assert_eq!(get(&daemon, config).body, text);
    post(&daemon, "/engine/job/one", "action=build", 303);
    assert_eq!(description(&daemon, "one"), "Ready");
    assert_eq!(daemon.send("PUT", config, &text, "").status, 409);
    post(&daemon, "/engine/job/one", "action=teardown", 303);
    assert_eq!(daemon.send("PUT", config, &text, "").status, 200);

    post(&daemon, "/engine/job/one", "action=launch&checkpoint=", 303);
    until("the job is paused", || {
        description(&daemon, "one") == "Active: PAUSED"
    })
    .await;
    let first = process(&home, "jobs/one");
    kill(&first);
    until("the job is restarted and paused", || {
        process(&home, "jobs/one") != first && description(&daemon, "one") == "Active: PAUSED"
    })
    .await;
    assert!(web.requests().is_empty(), "{:?}", web.requests());
    post(&daemon, "/engine/job/one", "action=checkpoint", 303);
    assert!(home.path().join("jobs/one/checkpoints").exists());
    post(&daemon, "/engine/job/one", "action=unpause", 303);
    until("the crawl has ended", || {
        description(&daemon, "one") == "Finished: FINISHED"
    })
    .await;
    let job = daemon.send("GET", "/engine/job/one", "", "Accept: application/json\r\n");
    let job: serde_json::Value = serde_json::from_str(&job.body).unwrap();
    assert_eq!(job["isRunning"], false, "{job}");
    let checkpoints = std::fs::read_dir(home.path().join("jobs/one/checkpoints")).unwrap();
    let names: Vec<String> = checkpoints
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(job["checkpointFiles"], serde_json::json!(names), "{job}");
    let sizes = &job["sizeTotalsReport"];
    let count = |name: &str| sizes[name].as_u64().unwrap();
    // robots.txt and the DNS look-up are counted, too.
    assert!(count("novelCount") > 5, "{job}");
    let parts = count("novelCount") + count("notModifiedCount") + count("dupByHashCount");
    assert_eq!(parts, count("totalCount"), "{job}");
    let report = get(&daemon, "/api/v1/jobs/one/reports/crawl").body;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    for (heritrix, ours) in [
        ("total", "bytes"),
        ("novel", "novel_bytes"),
        ("novelCount", "novel_uris"),
        ("notModifiedCount", "not_modified_uris"),
        ("dupByHash", "duplicate_bytes"),
        ("dupByHashCount", "duplicate_uris"),
    ] {
        assert_eq!(sizes[heritrix], report["facts"][ours], "{ours}");
    }
    let log = get(&daemon, "/engine/job/one/jobdir/logs/crawl.log").body;
    assert!(log.contains(&web.url(WWW, "/")), "{log}");
    let latest = get(&daemon, "/engine/job/one/jobdir/latest/logs/crawl.log");
    assert_eq!(latest.body, log);
    let summary = get(&daemon, "/engine/job/one/report/CrawlSummaryReport");
    let report = get(&daemon, "/api/v1/jobs/one/reports/crawl?format=text").body;
    assert_eq!((summary.status, &summary.body), (200, &report));
    let unknown = get(&daemon, "/engine/job/one/report/NoReport");
    assert!(unknown.body.contains("ToeThreadsReport"), "{unknown:?}");
    assert_eq!(unknown.status, 404, "{unknown:?}");
    assert!(
        job["alertLogFilePath"]
            .as_str()
            .unwrap()
            .ends_with("/alerts.log"),
        "{job}"
    );
    let whole = home
        .path()
        .canonicalize()
        .unwrap()
        .join("jobs/one/logs/crawl.log");
    let any = format!("/engine/anypath/{}", whole.display());
    let part = daemon.send("GET", &any, "", "Range: bytes=5-9\r\n");
    assert_eq!((part.status, part.body.as_str()), (206, &log[5..10]));

    post(&daemon, "/engine/job/one", "action=launch", 409);
    post(&daemon, "/engine/job/one", "action=teardown", 303);
    assert_eq!(description(&daemon, "one"), "Unbuilt");
    post(&daemon, "/engine/job/one", "copyTo=two&asProfile=on", 303);
    post(&daemon, "/engine/job/two", "action=launch", 409);
    launch_from_checkpoint(&daemon, &web, &names[0]).await;
    post(&daemon, "/engine/job/two", "copyTo=three", 303);
    assert_eq!(description(&daemon, "three"), "Unbuilt");
}

/// Launches job `one` from a checkpoint that was made before its first fetch. The job has crawled the web and was torn down.
async fn launch_from_checkpoint(daemon: &Daemon, web: &opilio_test_web::Web, name: &str) {
    for (job, form, expected) in [
        (
            "one",
            "action=launch&checkpoint=nope",
            "checkpoint \\\"nope\\\" not found",
        ),
        ("one", "action=launch&checkpoint=..%2f..", "not found"),
        ("two", "action=launch&checkpoint=latest", "never built"),
    ] {
        let refused = post(daemon, &format!("/engine/job/{job}"), form, 404);
        assert!(refused.body.contains(expected), "{refused:?}");
        assert!(refused.body.contains("checkpointFiles"), "{refused:?}");
    }
    assert_eq!(description(daemon, "one"), "Unbuilt");
    let whole = get(daemon, "/engine/job/one").body;
    let listed = format!("<checkpointFiles><value>{name}</value></checkpointFiles>");
    assert!(whole.contains(&listed), "{whole}");
    let requests = web.requests().len();
    for checkpoint in ["latest", name] {
        let form = format!("action=launch&checkpoint={checkpoint}");
        post(daemon, "/engine/job/one", &form, 303);
        until("the job is paused at its checkpoint", || {
            description(daemon, "one") == "Active: PAUSED"
        })
        .await;
        let whole = get(daemon, "/engine/job/one").body;
        assert!(whole.contains("<downloadedUriCount>0<"), "{whole}");
        assert!(
            whole.contains("<checkpointFiles></checkpointFiles>"),
            "{whole}"
        );
        post(daemon, "/engine/job/one", &form, 409);
        post(daemon, "/engine/job/one", "action=unpause", 303);
        until("the crawl has ended", || {
            description(daemon, "one") == "Finished: FINISHED"
        })
        .await;
        let job = get(daemon, "/engine/job/one").body;
        assert!(job.contains("<downloadedUriCount>7<"), "{job}");
    }
    // Both launches crawled the whole web again.
    assert_eq!(web.requests().len(), 3 * requests);
    post(daemon, "/engine/job/one", "action=teardown", 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_written_into_the_folder_is_found_and_can_start_at_once() {
    let web = tree(3, 10).await;
    let home = home();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let folder = home.path().join("jobs/found");
    std::fs::create_dir(&folder).unwrap();
    let controller = r#"<bean id="crawlController" class="org.archive.crawler.framework.CrawlController"><property name="pauseAtStart" value="false"/></bean>"#;
    let text = cxml(&web.url(WWW, "/"), controller);
    std::fs::write(folder.join("crawler-beans.cxml"), text).unwrap();
    let path = folder.display();
    post(
        &daemon,
        "/engine",
        &format!("action=add&addpath={path}"),
        303,
    );
    post(&daemon, "/engine", "action=add&addpath=/etc", 403);
    post(&daemon, "/engine/job/found", "action=launch", 303);
    until("the crawl has ended", || {
        description(&daemon, "found") == "Finished: FINISHED"
    })
    .await;
    assert!(!web.requests().is_empty());
}

/// Asserts that a connection stays open after a challenge to a request with a body, so that the client can repeat the request.
fn assert_challenged_connection_stays_open(closed: &Daemon) {
    let head = format!(
        "POST /engine HTTP/1.1\r\nHost: {}\r\nContent-Length: 15\r\n\r\n",
        closed.address
    );
    let mut socket = TcpStream::connect(closed.address).unwrap();
    let mut answer = [0; 12];
    socket.write_all(head.as_bytes()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    // A server that does not wait for the body has answered by now.
    let _ = socket.peek(&mut answer);
    socket.set_read_timeout(None).unwrap();
    socket.write_all(b"action=rescan&x").unwrap();
    let again = format!(
        "GET /engine HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        closed.address
    );
    socket.write_all(again.as_bytes()).unwrap();
    let mut answers = String::new();
    socket.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 401").count(), 2, "{answers}");
}

#[test]
fn clients_are_authenticated_run_no_scripts_and_see_only_files_of_jobs() {
    let home = home();
    home.run(&["token", "new", "lena", "--role", "admin"])
        .code(0);
    let closed = Daemon::start(&home, &[]);
    let challenge = get(&closed, "/engine");
    assert_eq!(challenge.status, 401, "{challenge:?}");
    assert!(
        challenge
            .head
            .contains("www-authenticate: digest realm=\"opilio\""),
        "{challenge:?}"
    );
    let wrong = "Authorization: Digest username=\"nas\", realm=\"opilio\", nonce=\"1-a\", uri=\"/engine\", qop=auth, nc=00000001, cnonce=\"a\", response=\"b\"\r\n";
    assert_eq!(closed.send("GET", "/engine", "", wrong).status, 401);
    assert_challenged_connection_stays_open(&closed);
    drop(closed);

    let daemon = Daemon::start(&home, &["--no-auth"]);
    post(&daemon, "/engine", "action=create&createpath=one", 303);
    for (method, path, form, status) in [
        (
            "POST",
            "/engine/job/one/script",
            "engine=groovy&script=x",
            403,
        ),
        ("POST", "/engine", "action=exit+java+process", 403),
        ("POST", "/engine", "action=create&createpath=one", 409),
        ("POST", "/engine", "action=create&createpath=../one", 422),
        ("POST", "/engine", "action=dance", 422),
        ("POST", "/engine/job/none", "action=build", 404),
        ("POST", "/engine/job/one", "copyTo=../two", 422),
        ("POST", "/engine/job/one", "action=pause", 404),
        ("POST", "/engine/job/one", "action=terminate", 409),
        (
            "GET",
            "/engine/job/one/jobdir/..%2f..%2f..%2fpassword",
            "",
            404,
        ),
        ("GET", "/engine/anypath//etc/passwd", "", 403),
        ("GET", "/engine/anypath/etc/passwd", "", 403),
        ("PUT", "/engine/job/one/jobdir/a.sh", "", 403),
        ("PUT", "/engine/job/one/jobdir/..%2fa.txt", "", 403),
    ] {
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        let answer = daemon.send(method, path, form, kind);
        assert_eq!(answer.status, status, "{method} {path} {form}: {answer:?}");
    }
    let value = "<property name=\"value\"><value>http://a.example/</value></property>";
    // Clients that may only crawl must neither read a file of this machine nor find out whether it exists.
    home.file("outside.txt", "http://secret.example/\n");
    let outside = home.path().join("outside.txt").display().to_string();
    let config = "/engine/job/one/jobdir/crawler-beans.cxml";
    for path in [
        outside.as_str(),
        "../../../../outside.txt",
        &format!("file://{outside}"),
        "/etc/passwd",
        "/dev/zero",
        "none.txt",
    ] {
        let named = format!("<property name=\"path\" value=\"{path}\"/>");
        let text = cxml("http://a.example/", "").replace(value, &named);
        assert_eq!(daemon.send("PUT", config, &text, "").status, 200);
        let refused = post(&daemon, "/engine/job/one", "action=build", 403);
        assert!(refused.body.contains("seeds-file"), "{refused:?}");
        assert!(!refused.body.contains("secret"), "{refused:?}");
    }
    let cookies = format!(
        "<bean id=\"cookies\" class=\"org.archive.modules.fetcher.BdbCookieStore\"><property name=\"cookiesLoadFile\" value=\"{outside}\"/></bean>"
    );
    let text = cxml("http://a.example/", &cookies);
    assert_eq!(daemon.send("PUT", config, &text, "").status, 200);
    let refused = post(&daemon, "/engine/job/one", "action=build", 422);
    assert!(refused.body.contains("cookies.load"), "{refused:?}");
    let bare = Home::new();
    let none = Daemon::start(&bare, &["--no-auth"]);
    assert_eq!(get(&none, "/engine").status, 404);
}
