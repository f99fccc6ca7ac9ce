//! Webhooks: signed events of a crawl and of a daemon, in batches that are sent again after a failure.

use std::collections::BTreeSet;
use std::fs;

use opilio_stories::until;
use opilio_test_web::{Reply, Web};
use serde_json::{Value, json};

use crate::command::{Home, WWW, tree};
use crate::serve::Daemon;

const RECEIVER: &str = "127.0.0.1";

/// Starts a receiver that refuses the first request.
async fn receiver() -> Web {
    let mut web = Web::builder();
    web.site(RECEIVER).rest(|seen| match seen.visit {
        1 => Reply::status(503),
        _ => Reply::status(200),
    });
    web.serve().await.unwrap()
}

/// Returns the events of all requests that the receiver accepted.
fn accepted(web: &Web) -> Vec<Value> {
    let accepted = web.requests().into_iter().filter(|seen| seen.status == 200);
    let batches = accepted.map(|seen| serde_json::from_slice::<Value>(&seen.body).unwrap());
    batches
        .flat_map(|batch| batch["events"].as_array().unwrap().clone())
        .collect()
}

fn states(events: &[Value]) -> Vec<&str> {
    let states = events.iter().filter(|event| event["event"] == "job");
    states
        .map(|event| event["state"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_sends_events_about_its_states_files_and_captures() {
    const PAGES: usize = 30;
    let (home, web, hook) = (Home::new(), tree(PAGES, 100).await, receiver().await);
    home.file("secret", "lily of the valley\n");
    home.profile(&format!(
        "name = 'tree'\narchive.on-close = ['true']\n[webhooks.all]\nurl = '{}'\n\
         events = ['job', 'alert', 'file', 'capture']\nbatch-wait = '100ms'\nbatch-max = 20\n\
         secret = {{ file = 'secret' }}\n",
        hook.url(RECEIVER, "/events")
    ));
    let seed = web.url(WWW, "/");
    let crawl = [
        "crawl", "p.toml", "--seed", &seed, "--job", "job", "--quiet",
    ];
    home.run(&crawl).code(0);
    let events = accepted(&hook);
    assert_eq!(states(&events).first(), Some(&"running"), "{events:?}");
    assert_eq!(states(&events).last(), Some(&"finished"), "{events:?}");
    let of_kind = |kind: &str| {
        let of_kind = events.iter().filter(|event| event["event"] == kind);
        of_kind.cloned().collect::<Vec<_>>()
    };
    let log = fs::read_to_string(home.job().join("logs/crawl.log")).unwrap();
    let captures = of_kind("capture");
    assert_eq!(captures.len(), log.lines().count());
    for capture in &captures {
        let uri = capture["line"]["uri"].as_str().unwrap();
        assert!(log.contains(uri), "{capture}");
        assert_eq!(
            (&capture["job"], &capture["profile"]),
            (&json!("job"), &json!("tree"))
        );
    }
    let file = &of_kind("file")[0]["file"];
    assert!(
        file["digest"].as_str().unwrap().starts_with("sha256:"),
        "{file}"
    );

    let requests = hook.requests();
    let id = |at: usize| requests[at].headers["webhook-id"].clone();
    // The first request was repeated with the same id.
    assert_eq!((requests[0].status, id(0)), (503, id(1)));
    let ids: BTreeSet<_> = requests
        .iter()
        .map(|seen| seen.headers["webhook-id"].as_bytes())
        .collect();
    assert_eq!(ids.len(), requests.len() - 1);
    for seen in &requests {
        let signature = seen.headers["webhook-signature"].to_str().unwrap();
        assert!(signature.starts_with("v1,"), "{signature}");
        let batch: Value = serde_json::from_slice(&seen.body).unwrap();
        assert!(batch["events"].as_array().unwrap().len() <= 20, "{batch}");
        assert_eq!(batch["lost"], 0, "{batch}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_refuses_events_does_not_delay_the_crawl_and_the_loss_is_logged() {
    let (home, web) = (Home::new(), tree(5, 100).await);
    let mut hook = Web::builder();
    hook.site(RECEIVER).rest(|_| Reply::status(401));
    let hook = hook.serve().await.unwrap();
    home.profile(&format!(
        "[webhooks.all]\nurl = '{}'\nevents = ['capture']\n",
        hook.url(RECEIVER, "/events")
    ));
    let seed = web.url(WWW, "/");
    home.run(&[
        "crawl", "p.toml", "--seed", &seed, "--job", "job", "--quiet",
    ])
    .code(0);
    let log = fs::read_to_string(home.job().join("logs/job.log")).unwrap();
    assert!(log.contains("webhook all"), "{log}");
    let missing = format!(
        "[webhooks.all]\nurl = '{}'\nsecret = {{ env = 'NOT_SET' }}\n",
        hook.url(RECEIVER, "/events")
    );
    home.profile(&missing);
    let refused = home
        .run(&["crawl", "p.toml", "--seed", &seed, "--job", "other"])
        .code(2);
    assert!(refused.err.contains("NOT_SET"), "{refused:?}");
    assert!(!home.path().join("other").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_sends_events_about_the_states_of_all_jobs() {
    let (home, web, hook) = (Home::new(), tree(5, 100).await, receiver().await);
    home.file(
        "opilio.toml",
        format!(
            "profiles = \"profiles\"\n[webhooks.desk]\nurl = \"{}\"\nbatch-wait = \"10ms\"\n",
            hook.url(RECEIVER, "/desk")
        ),
    );
    let profile = fs::read_to_string(home.profile("")).unwrap();
    fs::create_dir(home.path().join("profiles")).unwrap();
    home.file("profiles/here.toml", profile);
    let daemon = Daemon::start(&home, &["--no-auth", "--config", "opilio.toml"]);
    until("the daemon is ready", || {
        daemon.call("GET", "/readyz", None, "").status == 200
    })
    .await;
    let seed = web.url(WWW, "/");
    let job = json!({"name": "tree", "profile": "here", "seeds": [seed], "start": true});
    let made = daemon.call("POST", "/api/v1/jobs", Some(job), "");
    assert_eq!(made.status, 201, "{made:?}");
    until("the end of the job was sent", || {
        let events = accepted(&hook);
        let last = states(&events)
            .last()
            .copied()
            .unwrap_or_default()
            .to_owned();
        ["finished", "failed"].contains(&&*last)
    })
    .await;
    let events = accepted(&hook);
    assert!(
        events.iter().all(|event| event["job"] == "tree"),
        "{events:?}"
    );
    drop(daemon);
    home.file(
        "opilio.toml",
        "[webhooks.desk]\nurl = \"http://127.0.0.1/\"\nevents = [\"capture\"]\n",
    );
    let refused = home
        .run(&["serve", "--no-auth", "--listen", "127.0.0.1:0"])
        .code(2);
    assert!(refused.err.contains("in profiles"), "{refused:?}");
}

/// Subjects and bodies of messages.
type Messages = std::sync::Arc<std::sync::Mutex<Vec<(String, Value)>>>;

/// Starts a server with the part of the NATS protocol that a publisher needs. Returns its address and the received messages.
fn nats() -> (String, Messages) {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("nats://{}", listener.local_addr().unwrap());
    let messages = Messages::default();
    let received = messages.clone();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let received = received.clone();
            std::thread::spawn(move || {
                let mut client = client.unwrap();
                let about = json!({"server_id": "a", "server_name": "a", "version": "2.11.0",
                    "go": "", "host": "127.0.0.1", "port": 4222, "headers": true, "proto": 1,
                    "max_payload": 1_048_576, "client_id": 1});
                write!(client, "INFO {about}\r\n").unwrap();
                let mut lines = BufReader::new(client.try_clone().unwrap());
                let mut line = String::new();
                while lines.read_line(&mut line).unwrap() > 0 {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    match words.as_slice() {
                        ["PING"] => client.write_all(b"PONG\r\n").unwrap(),
                        // The last two words are the sizes of the headers and of the whole message, in bytes.
                        ["HPUB", subject, .., headers, total] => {
                            let (headers, total): (usize, usize) =
                                (headers.parse().unwrap(), total.parse().unwrap());
                            let mut message = vec![0; total + 2];
                            lines.read_exact(&mut message).unwrap();
                            let body = serde_json::from_slice(&message[headers..total]).unwrap();
                            let subject = (*subject).to_owned();
                            received.lock().unwrap().push((subject, body));
                        }
                        _ => {}
                    }
                    line.clear();
                }
            });
        }
    });
    (address, messages)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_publishes_its_events_to_nats() {
    let (home, web, (address, messages)) = (Home::new(), tree(5, 100).await, nats());
    home.profile(&format!(
        "[streams.all]\nservers = ['{address}']\nsubject = 'crawls'\nacknowledged = false\n\
         events = ['job', 'capture']\n"
    ));
    let seed = web.url(WWW, "/");
    let crawl = [
        "crawl", "p.toml", "--seed", &seed, "--job", "job", "--quiet",
    ];
    home.run(&crawl).code(0);
    let messages = messages.lock().unwrap();
    let of_kind = |kind: &str| {
        let of_kind = messages
            .iter()
            .filter(|(subject, _)| *subject == format!("crawls.{kind}"));
        of_kind.map(|(_, event)| event).collect::<Vec<_>>()
    };
    let last = of_kind("job").pop().expect("a state");
    assert_eq!(last["state"], "finished", "{messages:?}");
    let log = fs::read_to_string(home.job().join("logs/crawl.log")).unwrap();
    assert_eq!(of_kind("capture").len(), log.lines().count());

    home.profile("[streams.all]\nservers = ['http://a.org']\nsubject = 'a.>'\n");
    let other = ["crawl", "p.toml", "--seed", &seed, "--job", "other"];
    let refused = home.run(&other).code(2);
    for problem in ["not an address of a NATS server", "not a subject of NATS"] {
        assert!(refused.err.contains(problem), "{refused:?}");
    }
}
