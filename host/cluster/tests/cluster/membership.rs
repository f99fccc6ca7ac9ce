//! Members over a real server: shares of the partitions, deaths, a zombie, outages.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use opilio_cluster::control::SessionState;
use opilio_cluster::partition::Partition;
use opilio_cluster::{
    Availability, Cluster, ClusterConnection, ClusterError, LeaseGuard, Member, MemberEvent,
    MemberScope, MemberStatus,
};
use opilio_test_nats::{NatsNetwork, NatsProxy};
use tokio::sync::{mpsc, watch};

use crate::server::{NatsServer, ServerMembers as _, open, signal_process};

/// Longest time for anything in these tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member whose partitions load and stop at once.
struct Worker {
    status: watch::Receiver<MemberStatus>,
    events: mpsc::UnboundedReceiver<MemberEvent>,
    guards: watch::Receiver<BTreeMap<Partition, LeaseGuard>>,
    stop: mpsc::Sender<()>,
}

impl Worker {
    async fn join(cluster: &Cluster) -> Self {
        let (member, mut received) = Member::join(cluster, "test").await.unwrap();
        let status = member.status();
        let (sender, events) = mpsc::unbounded_channel();
        let (stop, mut stopped) = mpsc::channel(1);
        let (held, guards) = watch::channel(BTreeMap::new());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    event = received.recv() => {
                        let Some(event) = event else { return };
                        match &event {
                            MemberEvent::Claimed(guard) => {
                                held.send_modify(|held| {
                                    held.insert(guard.partition(), guard.clone());
                                });
                                member.set_ready(guard.partition()).await;
                            }
                            MemberEvent::Release(guard) => member.release(guard.partition()).await,
                            MemberEvent::Lost(guard) => held.send_modify(|held| {
                                held.remove(&guard.partition());
                            }),
                            _ => {}
                        }
                        sender.send(event).ok();
                    }
                    stop = stopped.recv() => match stop {
                        Some(()) => member.leave().await,
                        None => return,
                    },
                }
            }
        });
        Self {
            status,
            events,
            guards,
            stop,
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

    async fn holds(&mut self, count: usize) -> MemberStatus {
        self.wait(&format!("{count} partitions"), |status| {
            status.partitions.len() == count
        })
        .await
    }

    /// The guards of so many partitions.
    async fn guards(&mut self, count: usize) -> Vec<LeaseGuard> {
        let held =
            tokio::time::timeout(PATIENCE, self.guards.wait_for(|held| held.len() == count)).await;
        held.unwrap().unwrap().values().cloned().collect()
    }

    async fn event(&mut self, matches: impl Fn(&MemberEvent) -> bool) -> MemberEvent {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let event = self.events.recv().await.unwrap();
                if matches(&event) {
                    return event;
                }
            }
        });
        found.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_share_partitions_and_hand_them_over() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let mut a = Worker::join(&cluster).await;
    a.holds(16).await;
    let mut b = Worker::join(&server.cluster("b").await).await;
    b.holds(8).await;
    a.holds(8).await;
    let nodes = cluster.nodes().await.unwrap();
    let list: Vec<_> = nodes
        .iter()
        .map(|node| (node.name.as_str(), node.partitions, node.is_leader))
        .collect();
    assert_eq!(list, [("a", 8, true), ("b", 8, false)]);
    assert!(
        nodes.iter().all(|node| node.clock_skew_ms.abs() < 1_000),
        "{nodes:?}"
    );

    cluster.drain("a").await.unwrap();
    b.holds(16).await;
    a.holds(0).await;
    cluster.undrain("a").await.unwrap();
    a.holds(8).await;

    // A node that leaves needs no time to live to pass.
    b.stop.send(()).await.unwrap();
    b.event(|event| matches!(event, MemberEvent::Left)).await;
    a.holds(16).await;
    cluster.remove("b").await.unwrap();
    assert_eq!(cluster.nodes().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_has_members_and_leases_of_its_own() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let connection = ClusterConnection::open(server.config("a")).await.unwrap();
    let nodes = Cluster::find(connection.clone(), &MemberScope::Nodes).await;
    assert!(nodes.unwrap().is_none(), "finding creates nothing");
    let nodes = Cluster::open(connection.clone(), &MemberScope::Nodes)
        .await
        .unwrap();
    let mut daemon = Worker::join(&nodes).await;
    let job = |name: &str| {
        let (connection, scope) = (connection.clone(), MemberScope::Job(name.to_owned()));
        async move { Cluster::open(connection, &scope).await }
    };
    let mut first = Worker::join(&job("one").await.unwrap()).await;
    let mut second = Worker::join(&job("two").await.unwrap()).await;
    first.holds(16).await;
    second.holds(16).await;
    let status = daemon.wait("the lead", |status| status.is_leading).await;
    assert_eq!(status.partitions.len(), 0, "daemons share no partitions");
    nodes.drain("a").await.unwrap();
    daemon.wait("draining", |status| status.is_drained).await;
    let found = Cluster::find(connection.clone(), &MemberScope::Nodes).await;
    let listed = found.unwrap().unwrap().nodes().await.unwrap();
    assert!(listed[0].is_drained && listed[0].is_leader, "{listed:?}");
    let error = job("a.b").await.unwrap_err().to_string();
    assert!(error.contains("invalid name of a job"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_node_can_be_removed_though_nobody_notices_its_death() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let mut a = Worker::join(&cluster).await;
    a.holds(16).await;
    cluster.drain("a").await.unwrap();
    // Its member is dropped, as in a process that is killed.
    drop(a.stop);
    while a.events.recv().await.is_some() {}
    assert_eq!(
        cluster.nodes().await.unwrap()[0].state,
        SessionState::Live,
        "as far as anybody knows"
    );
    cluster.remove("a").await.unwrap();
    assert_eq!(cluster.nodes().await.unwrap(), []);
    let mut a = Worker::join(&cluster).await;
    assert!(!a.holds(16).await.is_drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_pauses_members_and_moves_nothing() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let mut a = Worker::join(&server.cluster("a").await).await;
    let mut b = Worker::join(&server.cluster("b").await).await;
    a.holds(8).await;
    let held = b.holds(8).await.partitions;
    let mut guards = b.guards(8).await;
    server.kill();
    b.wait("riding", |status| {
        status.availability == Availability::Riding
    })
    .await;
    assert!(guards.iter().all(|guard| guard.time_left().is_some()));
    b.wait("a pause", |status| {
        status.availability == Availability::Paused
    })
    .await;
    assert!(guards.iter().all(|guard| guard.time_left().is_none()));
    a.wait("a pause", |status| {
        status.availability == Availability::Paused
    })
    .await;
    server.begin();
    let status = b
        .wait("work", |status| {
            status.availability == Availability::Working
        })
        .await;
    assert_eq!(
        status.partitions, held,
        "the same partitions, in the same epochs"
    );
    a.wait("work", |status| {
        status.availability == Availability::Working
    })
    .await;
    guards.retain(|guard| guard.time_left().is_some());
    assert_eq!(guards.len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_an_outage_too() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut a = Worker::join(&server.cluster("a").await).await;
    let held = a.holds(16).await.partitions;
    server.signal("-STOP");
    a.wait("a pause", |status| {
        status.availability == Availability::Paused
    })
    .await;
    server.signal("-CONT");
    let status = a
        .wait("work", |status| {
            status.availability == Availability::Working
        })
        .await;
    assert_eq!(status.partitions, held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_loses_its_partitions_and_joins_again() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = NatsProxy::start(server.port).await;
    let mut a = Worker::join(&server.cluster("a").await).await;
    let servers = vec![format!("127.0.0.1:{}", proxy.port)];
    let behind = open(opilio_cluster::ClusterConfig {
        servers,
        ..server.config("b")
    })
    .await
    .unwrap();
    let mut b = Worker::join(&behind).await;
    let guards = b.guards(8).await;
    proxy.set(NatsNetwork::Cut);
    a.event(|event| matches!(event, MemberEvent::NodeGone(node) if node == "b"))
        .await;
    assert!(
        guards.iter().all(|guard| guard.time_left().is_none()),
        "b has stopped before a takes over"
    );
    a.holds(16).await;
    for taken in a.guards(16).await {
        let mut old = guards
            .iter()
            .filter(|old| old.partition() == taken.partition());
        assert!(
            old.all(|old| old.epoch() < taken.epoch()),
            "a new owner has a greater epoch"
        );
    }
    proxy.set(NatsNetwork::Open(Duration::ZERO));
    b.event(|event| matches!(event, MemberEvent::SessionLost))
        .await;
    b.holds(8).await;
    assert!(
        guards.iter().all(|guard| !guard.is_held()),
        "an old lease does not come back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_has_a_rival_while_another_process_works_under_its_name() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = NatsProxy::start(server.port).await;
    let mut a = Worker::join(&server.cluster("a").await).await;
    let behind = open(opilio_cluster::ClusterConfig {
        servers: vec![format!("127.0.0.1:{}", proxy.port)],
        ..server.config("b")
    });
    let mut first = Worker::join(&behind.await.unwrap()).await;
    proxy.set(NatsNetwork::Cut);
    a.event(|event| matches!(event, MemberEvent::NodeGone(node) if node == "b"))
        .await;
    let second = Worker::join(&server.cluster("b").await).await;
    assert!(!second.status.borrow().has_rival);
    proxy.set(NatsNetwork::Open(Duration::ZERO));
    let status = first.wait("a rival", |status| status.has_rival).await;
    assert_eq!(status.availability, Availability::Outside);
    second.stop.send(()).await.unwrap();
    first
        .wait("the membership", |status| {
            status.availability == Availability::Working && !status.has_rival
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_nats_is_told_and_work_goes_on() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = NatsProxy::start(server.port).await;
    let servers = vec![format!("127.0.0.1:{}", proxy.port)];
    let cluster = open(opilio_cluster::ClusterConfig {
        servers,
        ..server.config("a")
    })
    .await
    .unwrap();
    let mut a = Worker::join(&cluster).await;
    let guards = a.guards(16).await;
    a.wait("work", |status| {
        status.availability == Availability::Working
    })
    .await;
    // Renewals are sent every 400 ms, and take this twice.
    proxy.set(NatsNetwork::Open(Duration::from_millis(100)));
    a.wait("slowness", |status| {
        status.availability == Availability::Slow
    })
    .await;
    assert!(guards.iter().all(|guard| guard.time_left().is_some()));
    proxy.set(NatsNetwork::Open(Duration::ZERO));
    a.wait("work", |status| {
        status.availability == Availability::Working
    })
    .await;
    assert!(guards.iter().all(|guard| guard.is_held()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_of_one_name_is_refused() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let mut a = Worker::join(&cluster).await;
    a.holds(16).await;
    let error = Member::join(&server.cluster("a").await, "test")
        .await
        .unwrap_err();
    assert!(matches!(error, ClusterError::NameInUse { .. }), "{error}");
    assert!(error.to_string().contains("node \"a\""), "{error}");
    let error = cluster.remove("a").await.unwrap_err();
    assert!(matches!(error, ClusterError::NodeAlive { .. }), "{error}");
    assert_eq!(
        a.status.borrow().partitions.len(),
        16,
        "the first one is not disturbed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_died_can_start_again_under_its_name() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut child = Zombie::start(&server);
    child.expect("holds 16");
    child.process.kill().unwrap();
    let mut again = Worker::join(&server.cluster("zombie").await).await;
    again.holds(16).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_issues_nothing_when_it_goes_on() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut child = Zombie::start(&server);
    child.expect("holds 16");
    let mut a = Worker::join(&server.cluster("a").await).await;
    a.holds(8).await;
    child.expect("holds 8");
    child.send("issue");
    child.expect("may issue");
    signal_process(child.process.id(), "-STOP");
    a.event(|event| matches!(event, MemberEvent::NodeGone(node) if node == "zombie"))
        .await;
    a.holds(16).await;
    // What it is told while it is stopped is the first that it does afterwards.
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

    /// Waits for this line. A line that says the contrary fails.
    #[track_caller]
    fn expect(&mut self, expected: &str) {
        loop {
            let line = self
                .output
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("{expected:?} was not said"));
            let line = line.rsplit("zombie: ").next().unwrap_or_default();
            if line == expected {
                return;
            }
            let is_contrary = ["may issue", "may not issue"].contains(&line);
            assert!(!is_contrary, "{line:?} instead of {expected:?}");
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
    let say = |line: &str| {
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
    let mut guards: BTreeMap<_, LeaseGuard> = BTreeMap::new();
    loop {
        tokio::select! {
            // A zombie that has not noticed anything: what it is told comes before what it hears.
            biased;
            command = commands.recv() => match command.as_deref() {
                Some("issue") => {
                    let may_issue = guards.values().any(|guard| guard.time_left().is_some());
                    say(if may_issue { "may issue" } else { "may not issue" });
                }
                _ => return,
            },
            event = events.recv() => match event.unwrap() {
                MemberEvent::Claimed(guard) => {
                    member.set_ready(guard.partition()).await;
                    guards.insert(guard.partition(), guard);
                    say(&format!("holds {}", guards.len()));
                }
                MemberEvent::Release(guard) => member.release(guard.partition()).await,
                MemberEvent::Lost(guard) => {
                    guards.remove(&guard.partition());
                    say(&format!("holds {}", guards.len()));
                }
                MemberEvent::SessionLost => say("session lost"),
                _ => {}
            },
        }
    }
}
