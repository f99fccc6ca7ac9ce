//! Nodes of a cluster: daemons over a real `nats-server`, and `opilio node`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use opilio_stories::until;
use opilio_test_nats::{NatsServer, free_port};
use serde_json::{Value, json};

use crate::command::{Home, WWW, tree};
use crate::serve::{Daemon, make};

/// Writes a daemon's configuration for a node.
fn configure(home: &Home, port: u16, node: &str, more: &str) {
    let text = format!(
        "[cluster]\nservers = [\"nats://127.0.0.1:{port}\"]\nnode = \"{node}\"\npartitions = 16\ntime-to-live = \"10s\"\n{more}"
    );
    home.file("opilio.toml", text);
}

fn join(home: &Home) -> Daemon {
    Daemon::start(home, &["--no-auth"])
}

/// Returns the nodes as `opilio node list` shows them.
#[track_caller]
fn listed(home: &Home) -> Vec<Value> {
    let ended = home.run(&["node", "list", "--json"]).code(0);
    let lines = ended.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[track_caller]
fn names_and_states(home: &Home) -> Vec<String> {
    let words = listed(home).into_iter().map(|node| {
        let word = |name: &str| node[name].as_str().unwrap().to_owned();
        format!("{} {}", word("name"), word("state"))
    });
    words.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_listed_drained_and_removed() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (home_a, home_b) = (Home::new(), Home::new());
    configure(&home_a, server.port, "a", "");
    configure(&home_b, server.port, "b", "");
    let ended = home_a.run(&["node", "list"]).code(1);
    assert!(
        ended.err.contains("no node has joined a cluster at nats:"),
        "{ended:?}"
    );

    let mut a = join(&home_a);
    let mut b = join(&home_b);
    assert_eq!(names_and_states(&home_a), ["a live", "b live"]);
    until("one of them is the leader", || {
        let is_leader = |node: &Value| node["is_leader"] == true;
        listed(&home_b)
            .iter()
            .filter(|node| is_leader(node))
            .count()
            == 1
    })
    .await;
    let nodes = b.get("/nodes");
    assert_eq!(nodes["own"], "b");
    assert_eq!(nodes["nodes"][0]["name"], "a");
    assert_eq!(nodes["nodes"][0]["version"], env!("CARGO_PKG_VERSION"));
    let metrics = a.call("GET", "/metrics", None, "").body;
    assert!(
        metrics.contains("opilio_nodes{state=\"live\"} 2"),
        "{metrics}"
    );
    let shown = home_a.run(&["node", "show", "b"]).code(0);
    assert!(shown.out.contains("drained   no"), "{shown:?}");
    let ended = home_a.run(&["node", "show", "nobody"]).code(1);
    assert!(ended.err.contains("no node \"nobody\""), "{ended:?}");

    for (more, answer) in [(None, "drained"), (Some("--undo"), "undrained")] {
        let arguments = ["node", "drain", "b", "--json"];
        let arguments: Vec<&str> = arguments.into_iter().chain(more).collect();
        let done = home_a.run(&arguments).code(0).out;
        let done: Value = serde_json::from_str(&done).unwrap();
        let expected = json!({ "answer": answer, "name": "b", "is_drained": more.is_none() });
        assert_eq!(done, expected);
    }

    // A drained node starts no crawl. Another node still does.
    let drained = home_a.run(&["node", "drain", "b"]).code(0);
    assert_eq!(
        drained.out,
        "node \"b\" is drained: its daemon starts no crawls\n"
    );
    until("b is drained", || {
        b.get("/daemon")["node"]["is_drained"] == true
    })
    .await;
    let web = tree(3, 10).await;
    for (home, daemon) in [(&home_b, &b), (&home_a, &a)] {
        make(home, "jobs/one", &web.url(WWW, "/"));
        daemon.post("/jobs/one/start", None, 202);
    }
    until("a has crawled", || a.state("one") == "finished").await;
    assert_eq!(b.state("one"), "waiting");
    let answer = a.call("DELETE", "/api/v1/nodes/b/drain", None, "");
    assert_eq!(answer.status, 200, "{answer:?}");
    until("b has crawled", || b.state("one") == "finished").await;

    // A live node cannot be removed. A node that has left can be.
    let answer = a.call("DELETE", "/api/v1/nodes/b", None, "");
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.body.contains("is alive: drain it"), "{answer:?}");
    b.end();
    assert_eq!(names_and_states(&home_b), ["a live", "b left"]);
    let answer = a.call("DELETE", "/api/v1/nodes/b", None, "");
    assert_eq!(answer.status, 204, "{answer:?}");
    let answer = a.call("POST", "/api/v1/nodes/b/drain", None, "");
    assert_eq!(answer.status, 404, "{answer:?}");

    // No other node is left to notice that the last node is gone; `node remove` waits for its time to live.
    a.kill();
    assert_eq!(names_and_states(&home_b), ["a live"]);
    let removed = home_b.run(&["node", "remove", "a", "--json"]).code(0).out;
    let removed: Value = serde_json::from_str(&removed).unwrap();
    assert_eq!(removed, json!({ "answer": "removed", "name": "a" }));
    assert_eq!(names_and_states(&home_b), [""; 0]);
    // The name can be used again.
    drop(join(&home_a));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_shown_as_gone() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (home_a, home_b) = (Home::new(), Home::new());
    configure(&home_a, server.port, "a", "");
    configure(&home_b, server.port, "b", "");
    let mut a = join(&home_a);
    let b = join(&home_b);
    a.kill();
    until("b notices", || {
        names_and_states(&home_b) == ["a gone", "b live"]
    })
    .await;
    let ended = home_b.run(&["doctor", "--json", "--resolve", "localhost"]);
    let finding = ended
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|finding| finding["check"] == "cluster")
        .unwrap();
    assert_eq!(finding["state"], "warning", "{finding}");
    drop(b);
}

/// Writes the password file of the configuration, readable only by its user.
fn write_password(home: &Home, password: &str) {
    let file = home.file("password", password);
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Asserts that the daemon refuses to start with one message that has these parts.
#[track_caller]
fn assert_refused(home: &Home, parts: &[&str]) {
    let ended = home.run(&["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    assert_ne!(ended.code, 0, "{ended:?}");
    let mut messages = ended
        .err
        .lines()
        .filter(|line| line.starts_with("opilio: "));
    let message = messages.next().unwrap_or_else(|| panic!("{ended:?}"));
    assert!(messages.next().is_none(), "{ended:?}");
    for part in parts {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_cannot_join_reports_the_reason() {
    let home = Home::new();
    let port = free_port();
    configure(&home, port, "a", "replicas = 9\n");
    assert_refused(&home, &["cluster.replicas is 9", "write 1"]);
    configure(&home, port, "a.b", "");
    assert_refused(&home, &["invalid cluster.node \"a.b\""]);
    home.file("opilio.toml", "[cluster]\nservers = []\n");
    assert_refused(&home, &["opilio.toml:1:1", "missing field `node`"]);
    configure(&home, port, "a", "");
    assert_refused(
        &home,
        &[
            "no NATS server answers at nats://127.0.0.1",
            "start nats-server",
        ],
    );
    let ended = home.run(&["node", "list"]).code(1);
    assert!(ended.err.contains("no NATS server answers"), "{ended:?}");
    let ended = home.run(&["doctor", "--json", "--resolve", "localhost"]);
    assert!(ended.out.contains("no NATS server answers"), "{ended:?}");
    ended.code(1);

    let Some(server) = NatsServer::without_jetstream() else {
        return;
    };
    configure(&home, server.port, "a", "");
    assert_refused(&home, &["JetStream is disabled", "-js"]);
    let authorization = "authorization { user: u, password: right }\n";
    let Some(server) = NatsServer::start_with(authorization) else {
        return;
    };
    configure(&home, server.port, "a", "");
    assert_refused(
        &home,
        &[
            "refuses a client without credentials",
            "cluster.password-file",
        ],
    );
    let login = "user = \"u\"\npassword-file = \"password\"\n";
    configure(&home, server.port, "a", login);
    assert_refused(&home, &["cannot read", "check cluster.password-file"]);
    write_password(&home, "wrong");
    assert_refused(&home, &["refuses user \"u\"", "cluster.password-file"]);
    write_password(&home, "right\n");
    let first = join(&home);

    let other = Home::new();
    write_password(&other, "right");
    configure(&other, server.port, "a", login);
    assert_refused(
        &other,
        &[
            "another process is in the cluster as node \"a\"",
            "choose another name",
        ],
    );
    configure(&other, server.port, "b", login);
    let text = fs::read_to_string(other.path().join("opilio.toml")).unwrap();
    other.file(
        "opilio.toml",
        text.replace("partitions = 16", "partitions = 32"),
    );
    assert_refused(
        &other,
        &["cluster.partitions is 32", "created with 16", "write 16"],
    );
    assert_eq!(first.get("/nodes")["nodes"].as_array().unwrap().len(), 1);
}
