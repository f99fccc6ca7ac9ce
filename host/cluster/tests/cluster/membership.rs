//! Members over a real server: deaths, a stopped process, outages, and two processes of one name.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use opilio_cluster::control::{SessionEnd, SessionState};
use opilio_cluster::{
    Availability, Cluster, ClusterConnection, ClusterError, Member, MemberEvent, MemberEvents,
    MemberScope, MemberStatus, TakeoverScope,
};
use opilio_test_nats::{NatsNetwork, NatsProxy};
use tokio::sync::{mpsc, watch};

use crate::server::{NatsServer, ServerMembers as _, open, signal_process};

/// Time limit of each wait in these tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member and its events.
struct Joined {
    member: Member,
    events: MemberEvents,
    status: watch::Receiver<MemberStatus>,
}

impl Joined {
    async fn join(cluster: &Cluster) -> Self {
        let (member, events) = Member::join(cluster, "test").await.unwrap();
        let status = member.status();
        Self {
            member,
            events,
            status,
        }
    }

    async fn wait(
        &mut self,
        what: &str,
        is_reached: impl Fn(&MemberStatus) -> bool,
    ) -> MemberStatus {
        let reached = tokio::time::timeout(PATIENCE, self.status.wait_for(is_reached)).await;
        let reached = reached.map(|status| status.unwrap().clone());
        reached.unwrap_or_else(|_| panic!("{what} was not reached: {:?}", *self.status.borrow()))
    }

    async fn wait_for_availability(&mut self, wanted: Availability) {
        let what = format!("{wanted:?}");
        self.wait(&what, |status| status.availability == wanted)
            .await;
    }

    async fn event(&mut self, matches: impl Fn(&MemberEvent) -> bool) {
        let found = tokio::time::timeout(PATIENCE, async {
            while !matches(&self.events.recv().await.unwrap()) {}
        });
        found.await.unwrap();
    }

    fn may_work(&self) -> bool {
        self.member.time_left().is_some()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_each_other_leave_and_are_drained() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let mut a = Joined::join(&cluster).await;
    a.wait("the lead", |status| status.is_leading).await;
    let mut b = Joined::join(&server.cluster("b").await).await;
    assert!(a.may_work() && b.may_work());
    let nodes = cluster.nodes().await.unwrap();
    let list: Vec<_> = nodes
        .iter()
        .map(|node| (node.name.as_str(), node.state, node.is_leader))
        .collect();
    let live = SessionState::Live;
    assert_eq!(list, [("a", live, true), ("b", live, false)]);
    assert!(
        nodes.iter().all(|node| node.clock_skew_ms.abs() < 1_000),
        "{nodes:?}"
    );

    cluster.drain("b").await.unwrap();
    b.wait("draining", |status| status.is_drained).await;
    assert!(!a.status.borrow().is_drained);
    cluster.undrain("b").await.unwrap();
    b.wait("the end of draining", |status| !status.is_drained)
        .await;

    // The name of a node that leaves is free at once.
    b.member.leave(SessionEnd::Left).await;
    b.event(|event| *event == MemberEvent::Left).await;
    assert!(!b.may_work());
    // The name is also free at once if another process is to continue.
    for (end, expected) in [
        (SessionEnd::AsBefore, SessionState::Left),
        (SessionEnd::Expired, SessionState::Expired),
    ] {
        let mut next = Joined::join(&server.cluster("b").await).await;
        assert!(next.may_work());
        next.member.leave(end).await;
        next.event(|event| *event == MemberEvent::Left).await;
        assert_eq!(cluster.nodes().await.unwrap()[1].state, expected);
    }
    let of_b = server.cluster("b").await;
    let scope = TakeoverScope { crawls: Vec::new() };
    of_b.publish_takeover_scope(&scope).await.unwrap();
    cluster.remove("b").await.unwrap();
    assert_eq!(cluster.nodes().await.unwrap().len(), 1);
    assert_eq!(cluster.takeover_scopes().await.unwrap(), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_tell_each_other_of_which_crawls_they_take_parts_over() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (a, b) = (server.cluster("a").await, server.cluster("b").await);
    let mut expected = BTreeMap::new();
    assert_eq!(a.takeover_scopes().await.unwrap(), expected);
    for (node, crawls) in [
        (&a, &["*"][..]),
        (&b, &["news-*", "museum"][..]),
        (&b, &[][..]),
    ] {
        let scope = TakeoverScope {
            crawls: crawls.iter().map(|crawl| (*crawl).to_owned()).collect(),
        };
        node.publish_takeover_scope(&scope).await.unwrap();
        expected.insert(node.config().node.clone(), scope);
        assert_eq!(a.takeover_scopes().await.unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_has_members_of_its_own() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let connection = ClusterConnection::open(server.config("a")).await.unwrap();
    let nodes = Cluster::find(connection.clone(), &MemberScope::Nodes).await;
    assert!(nodes.unwrap().is_none(), "finding creates nothing");
    let nodes = Cluster::open(connection.clone(), &MemberScope::Nodes)
        .await
        .unwrap();
    let mut daemon = Joined::join(&nodes).await;
    let job = |name: &str| {
        let (connection, scope) = (connection.clone(), MemberScope::Job(name.to_owned()));
        async move { Cluster::open(connection, &scope).await }
    };
    // All three members have the same name.
    let mut first = Joined::join(&job("one").await.unwrap()).await;
    let mut second = Joined::join(&job("two").await.unwrap()).await;
    for member in [&mut daemon, &mut first, &mut second] {
        member.wait("the lead", |status| status.is_leading).await;
    }
    nodes.drain("a").await.unwrap();
    daemon.wait("draining", |status| status.is_drained).await;
    assert!(!first.status.borrow().is_drained);
    let found = Cluster::find(connection.clone(), &MemberScope::Nodes).await;
    let listed = found.unwrap().unwrap().nodes().await.unwrap();
    assert!(listed[0].is_drained && listed[0].is_leader, "{listed:?}");
    let error = job("a.b").await.unwrap_err().to_string();
    assert!(error.contains("invalid name of a job"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_node_can_be_removed_although_no_other_notices_its_death() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let a = Joined::join(&cluster).await;
    cluster.drain("a").await.unwrap();
    // The member is dropped, as in a process that is killed.
    drop(a);
    assert_eq!(
        cluster.nodes().await.unwrap()[0].state,
        SessionState::Live,
        "no other node has noticed the death"
    );
    cluster.remove("a").await.unwrap();
    assert_eq!(cluster.nodes().await.unwrap(), []);
    let a = Joined::join(&cluster).await;
    assert!(a.may_work() && !a.status.borrow().is_drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_pauses_members_and_ends_no_session() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let mut a = Joined::join(&server.cluster("a").await).await;
    let mut b = Joined::join(&server.cluster("b").await).await;
    server.kill();
    b.wait_for_availability(Availability::Riding).await;
    assert!(b.may_work());
    b.wait_for_availability(Availability::Paused).await;
    assert!(!b.may_work());
    a.wait_for_availability(Availability::Paused).await;
    server.begin();
    b.wait_for_availability(Availability::Working).await;
    a.wait_for_availability(Availability::Working).await;
    assert!(a.may_work() && b.may_work());
    let lost = [&a, &b].map(|joined| joined.member.sessions_lost());
    assert_eq!(lost, [0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_an_outage_too() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut a = Joined::join(&server.cluster("a").await).await;
    server.signal("-STOP");
    a.wait_for_availability(Availability::Paused).await;
    server.signal("-CONT");
    a.wait_for_availability(Availability::Working).await;
    assert_eq!(a.member.sessions_lost(), 0);
}

/// Opens the members of the test job for a node behind a proxy.
async fn open_behind_proxy(server: &NatsServer, proxy: &NatsProxy, node: &str) -> Cluster {
    let config = opilio_cluster::ClusterConfig {
        servers: vec![format!("127.0.0.1:{}", proxy.port)],
        ..server.config(node)
    };
    open(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_stops_before_it_is_gone_and_joins_again() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = NatsProxy::start(server.port).await;
    let mut a = Joined::join(&server.cluster("a").await).await;
    let mut b = Joined::join(&open_behind_proxy(&server, &proxy, "b").await).await;
    proxy.set(NatsNetwork::Cut);
    a.event(|event| *event == MemberEvent::NodeGone("b".to_owned()))
        .await;
    assert!(
        !b.may_work(),
        "b has stopped before another can have its name"
    );
    assert_eq!(b.member.sessions_lost(), 0);
    proxy.set(NatsNetwork::Open(Duration::ZERO));
    b.event(|event| *event == MemberEvent::SessionLost).await;
    assert_eq!(b.member.sessions_lost(), 1);
    b.wait_for_availability(Availability::Working).await;
    assert!(b.may_work());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rival_is_reported_while_another_process_works_under_the_name() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = NatsProxy::start(server.port).await;
    let mut a = Joined::join(&server.cluster("a").await).await;
    let mut first = Joined::join(&open_behind_proxy(&server, &proxy, "b").await).await;
    proxy.set(NatsNetwork::Cut);
    a.event(|event| *event == MemberEvent::NodeGone("b".to_owned()))
        .await;
    let second = Joined::join(&server.cluster("b").await).await;
    assert!(!second.status.borrow().has_rival);
    proxy.set(NatsNetwork::Open(Duration::ZERO));
    let status = first.wait("a rival", |status| status.has_rival).await;
    assert_eq!(status.availability, Availability::Outside);
    second.member.leave(SessionEnd::Left).await;
    first
        .wait("the membership", |status| {
            status.availability == Availability::Working && !status.has_rival
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_nats_is_reported_and_work_continues() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = NatsProxy::start(server.port).await;
    let mut a = Joined::join(&open_behind_proxy(&server, &proxy, "a").await).await;
    a.wait_for_availability(Availability::Working).await;
    // Renewals are sent every 400 ms, and take this twice.
    proxy.set(NatsNetwork::Open(Duration::from_millis(100)));
    a.wait_for_availability(Availability::Slow).await;
    assert!(a.may_work());
    proxy.set(NatsNetwork::Open(Duration::ZERO));
    a.wait_for_availability(Availability::Working).await;
    assert_eq!(a.member.sessions_lost(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_of_one_name_is_refused() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let a = Joined::join(&cluster).await;
    let error = Member::join(&server.cluster("a").await, "test")
        .await
        .unwrap_err();
    assert!(matches!(error, ClusterError::NameInUse { .. }), "{error}");
    assert!(error.to_string().contains("node \"a\""), "{error}");
    let error = cluster.remove("a").await.unwrap_err();
    assert!(matches!(error, ClusterError::NodeAlive { .. }), "{error}");
    assert!(a.may_work(), "the first one is not disturbed");
    assert_eq!(a.member.sessions_lost(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_died_can_start_again_under_its_name() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut child = Zombie::start(&server);
    child.expect("joined");
    child.process.kill().unwrap();
    let again = Joined::join(&server.cluster("zombie").await).await;
    assert!(again.may_work());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_issues_nothing_when_it_resumes() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut child = Zombie::start(&server);
    child.expect("joined");
    let mut a = Joined::join(&server.cluster("a").await).await;
    child.send("issue");
    child.expect("may issue");
    signal_process(child.process.id(), "-STOP");
    a.event(|event| *event == MemberEvent::NodeGone("zombie".to_owned()))
        .await;
    // A command that is sent while the process is stopped is the first one that it carries out afterwards.
    child.send("issue");
    signal_process(child.process.id(), "-CONT");
    child.expect("may not issue");
    child.expect("session lost");
}

/// A node in a process of its own: this test program, which runs [`zombie`] alone.
struct Zombie {
    process: Child,
    input: ChildStdin,
    output: std::sync::mpsc::Receiver<String>,
}

/// Address of the server, for the process of a [`Zombie`].
const ZOMBIE_PORT: &str = "OPILIO_TEST_ZOMBIE_PORT";

impl Zombie {
    fn start(server: &NatsServer) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "membership::zombie", "--nocapture"])
            .env(ZOMBIE_PORT, server.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, output) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                sender.send(line).ok();
            }
        });
        Self {
            process,
            input,
            output,
        }
    }

    fn send(&mut self, command: &str) {
        writeln!(self.input, "{command}").unwrap();
    }

    /// Waits for this line. Fails if the opposite line is printed.
    #[track_caller]
    fn expect(&mut self, expected: &str) {
        loop {
            let line = self
                .output
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("{expected:?} was not printed"));
            let line = line.rsplit("zombie: ").next().unwrap_or_default();
            if line == expected {
                return;
            }
            let is_opposite = ["may issue", "may not issue"].contains(&line);
            assert!(!is_opposite, "{line:?} instead of {expected:?}");
        }
    }
}

impl Drop for Zombie {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The process of a [`Zombie`]. In other runs of the tests it does nothing.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "the parent process reads it")]
async fn zombie() {
    let Ok(port) = std::env::var(ZOMBIE_PORT) else {
        return;
    };
    let print_line = |line: &str| {
        println!("zombie: {line}");
        std::io::stdout().flush().unwrap();
    };
    let mut config =
        opilio_cluster::ClusterConfig::new("zombie", vec![format!("127.0.0.1:{port}")]);
    config.time_to_live = Duration::from_secs(2);
    config.partitions = opilio_cluster::partition::PartitionCount::new(16).unwrap();
    let cluster = open(config).await.unwrap();
    let (member, mut events) = Member::join(&cluster, "test").await.unwrap();
    let (sender, mut commands) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            sender.send(line).ok();
        }
    });
    print_line("joined");
    loop {
        tokio::select! {
            // Commands come before events, so that the process has not noticed the loss of its session.
            biased;
            command = commands.recv() => match command.as_deref() {
                Some("issue") => {
                    let may_issue = member.time_left().is_some();
                    print_line(if may_issue { "may issue" } else { "may not issue" });
                }
                _ => return,
            },
            event = events.recv() => if event.unwrap() == MemberEvent::SessionLost {
                print_line("session lost");
            },
        }
    }
}
