//! Compares the facts with the needs: each check returns a finding with figures, and a remedy if one is needed.

mod cluster;
pub(super) mod daemon;
mod folders;
mod process;
mod services;

use super::environment::Environment;
use super::finding::{Finding, Needs, ok};

/// All checks.
pub(super) fn all(environment: &Environment, needs: &Needs) -> Vec<Finding> {
    let Environment {
        limits, processors, ..
    } = environment;
    let mut findings = vec![
        process::open_files(limits, needs),
        process::processes(limits, *processors, needs),
        process::address_space(limits, *processors),
        process::file_size(limits),
        process::memory(&environment.memory, needs),
        folders::jobs(&environment.jobs, needs),
        folders::cache(environment.cache.as_ref()),
        services::names(&environment.lookup),
        services::clock(&environment.clock),
        services::certificates(&environment.certificates),
        services::chromium(&environment.chromium),
    ];
    findings.push(match &environment.daemon {
        Some(daemon) => daemon::configured(daemon),
        None => ok(
            "daemon",
            "not configured here: --config FILE checks its configuration and port",
        ),
    });
    findings.extend(environment.cluster.as_ref().map(cluster::nodes));
    findings
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opilio_console::{ListedNode, NodeState};

    use super::daemon::running;
    use super::*;
    use crate::doctor::environment::{
        Answer, Certificates, Chromium, Clock, Daemon, FileSystem, Folder, Limits, Lookup, Memory,
        NatsCluster, Port,
    };
    use crate::doctor::finding::State;

    const NEEDS: Needs = Needs {
        crawls: 4,
        open_files: (175, 1_600),
        memory: 1 << 30,
        disk_pause: 10 << 30,
        disk_warn: 20 << 30,
    };

    /// A machine on which every check passes.
    fn good() -> Environment {
        let folder = Folder {
            path: "/var/lib/opilio/jobs".into(),
            free: Some(500 << 30),
            free_inodes: Some(1_000_000),
            file_system: None,
            no_exec: false,
            sync: Ok(Duration::from_millis(3)),
        };
        Environment {
            limits: Limits {
                open_files: Some(65_536),
                processes: Some(8_192),
                ..Limits::default()
            },
            memory: Memory {
                total: Some(16 << 30),
                available: Some(12 << 30),
                cgroup: None,
            },
            processors: 4,
            jobs: folder.clone(),
            cache: Some(folder),
            lookup: Lookup {
                host: "example.org".to_owned(),
                servers: vec!["192.0.2.53".to_owned()],
                answer: Ok(Answer {
                    addresses: vec!["192.0.2.1".parse().unwrap()],
                    time: Duration::from_millis(20),
                }),
            },
            clock: Clock {
                is_synchronised: Some(true),
                since_program: Some(jiff::SignedDuration::from_hours(1)),
            },
            certificates: Certificates {
                roots: 140,
                problems: Vec::new(),
            },
            chromium: Chromium {
                is_needed: false,
                found: Err("no Chromium found".to_owned()),
            },
            daemon: Some(Daemon {
                file: "/etc/opilio/opilio.toml".into(),
                problem: None,
                address: "127.0.0.1:8470".parse().unwrap(),
                tokens: Some(Ok(1)),
                port: Port::Free,
            }),
            cluster: Some(NatsCluster {
                servers: "nats://192.0.2.7:4222".to_owned(),
                nodes: Ok(vec![node("a"), node("b")]),
            }),
        }
    }

    fn node(name: &str) -> ListedNode {
        ListedNode {
            name: name.to_owned(),
            state: NodeState::Live,
            is_drained: false,
            is_leader: false,
            version: "1.0.0".to_owned(),
            since: jiff::Timestamp::UNIX_EPOCH,
            renewed: jiff::Timestamp::UNIX_EPOCH,
            clock_skew_s: 0.003,
        }
    }

    /// Asserts that this change to a good machine gives the named check this state, with `words` in its finding or remedy, and that
    /// all other checks pass.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Environment), name: &str, state: State, words: &str) {
        let mut environment = good();
        change(&mut environment);
        let findings = all(&environment, &NEEDS);
        let of_name = findings
            .iter()
            .find(|finding| finding.check == name)
            .unwrap();
        assert_eq!(of_name.state, state, "{of_name:?}");
        let text = format!(
            "{} {}",
            of_name.found,
            of_name.remedy.as_deref().unwrap_or_default()
        );
        assert!(text.contains(words), "{text}");
        assert_eq!(of_name.remedy.is_none(), state == State::Ok, "{of_name:?}");
        let others: Vec<_> = findings
            .iter()
            .filter(|it| it.check != name && it.state != State::Ok)
            .collect();
        assert!(others.is_empty(), "{others:?}");
    }

    #[test]
    fn limits_of_the_process_are_compared_with_the_needs() {
        use State::{Error, Ok, Warning};
        check(
            |it| it.limits.open_files = Some(1_024),
            "open-files",
            Warning,
            "ulimit -n 1600",
        );
        check(
            |it| it.limits.open_files = Some(100),
            "open-files",
            Error,
            "100 open files allowed",
        );
        let hard = |it: &mut Environment| {
            it.limits = Limits {
                open_files: Some(512),
                open_files_hard: Some(512),
                ..it.limits
            };
        };
        check(hard, "open-files", Warning, "LimitNOFILE");
        check(
            |it| it.limits.open_files = None,
            "open-files",
            Ok,
            "unlimited",
        );
        check(
            |it| it.limits.processes = Some(200),
            "processes",
            Warning,
            "4 concurrent crawls may use about 192",
        );
        check(
            |it| it.limits.processes = Some(30),
            "processes",
            Error,
            "TasksMax",
        );
        check(
            |it| it.limits.address_space = Some(8 << 30),
            "address-space",
            Error,
            "ulimit -v unlimited",
        );
        check(
            |it| it.limits.address_space = Some(100 << 30),
            "address-space",
            Warning,
            "reserves up to 272",
        );
        check(
            |it| it.limits.file_size = Some(1 << 20),
            "file-size",
            Error,
            "1.00 MiB",
        );
    }

    #[test]
    fn memory_is_limited_by_machine_and_cgroup() {
        check(
            |it| it.memory.available = Some(3 << 30),
            "memory",
            State::Warning,
            "4 concurrent crawls may use up to 4.00 GiB",
        );
        check(
            |it| it.memory.cgroup = Some(512 << 20),
            "memory",
            State::Error,
            "512.00 MiB allowed by the cgroup",
        );
        check(
            |it| it.memory.cgroup = Some(8 << 30),
            "memory",
            State::Ok,
            "8.00 GiB allowed",
        );
    }

    #[test]
    fn folders_need_space_permissions_and_a_permanent_disk() {
        use State::{Error, Warning};
        check(
            |it| it.jobs.free = Some(5 << 30),
            "jobs-folder",
            Error,
            "crawls pause below 10.00 GiB",
        );
        check(
            |it| it.jobs.free = Some(15 << 30),
            "jobs-folder",
            Warning,
            "15.00 GiB free",
        );
        check(
            |it| it.jobs.free_inodes = Some(5_000),
            "jobs-folder",
            Warning,
            "5,000 inodes free",
        );
        check(
            |it| it.jobs.free_inodes = Some(3),
            "jobs-folder",
            Error,
            "3 inodes free",
        );
        let refused = || Err("cannot lock a file: not supported".to_owned());
        check(
            |it| it.jobs.sync = refused(),
            "jobs-folder",
            Error,
            "cannot lock a file",
        );
        check(
            |it| it.jobs.sync = Ok(Duration::from_secs(1)),
            "jobs-folder",
            Warning,
            "1000 ms",
        );
        check(
            |it| it.jobs.file_system = Some(FileSystem::Network("NFS")),
            "jobs-folder",
            Warning,
            "on NFS",
        );
        check(
            |it| it.jobs.file_system = Some(FileSystem::Overlay),
            "jobs-folder",
            Warning,
            "mount a volume",
        );
        check(
            |it| it.cache = None,
            "cache-folder",
            Warning,
            "XDG_CACHE_HOME",
        );
        check(
            |it| it.cache.as_mut().unwrap().no_exec = true,
            "cache-folder",
            Warning,
            "noexec",
        );
        check(
            |it| it.cache.as_mut().unwrap().free = Some(1),
            "cache-folder",
            Warning,
            "640.00 MiB",
        );
        check(
            |it| it.cache.as_mut().unwrap().sync = refused(),
            "cache-folder",
            Warning,
            "compiled at every start",
        );
    }

    #[test]
    fn names_clock_and_certificates_have_remedies() {
        use State::{Error, Ok, Warning};
        check(
            |it| it.lookup.answer = Err("no answer after 10 s".to_owned()),
            "dns",
            Error,
            "/etc/resolv.conf",
        );
        let slow =
            |it: &mut Environment| it.lookup.answer.as_mut().unwrap().time = Duration::from_secs(3);
        check(slow, "dns", Warning, "3000 ms");
        check(
            |it| it.clock.is_synchronised = Some(false),
            "clock",
            Warning,
            "chrony",
        );
        let behind = Some(jiff::SignedDuration::from_hours(-48));
        check(
            |it| it.clock.since_program = behind,
            "clock",
            Error,
            "behind by 2 days",
        );
        check(
            |it| it.clock.is_synchronised = None,
            "clock",
            Ok,
            "not reported",
        );
        check(
            |it| it.certificates.roots = 0,
            "certificates",
            Error,
            "ca-certificates",
        );
        check(
            |it| it.certificates.problems.push("bad.pem".to_owned()),
            "certificates",
            Warning,
            "1 cannot be read: bad.pem",
        );
        check(
            |it| it.chromium.is_needed = true,
            "chromium",
            Error,
            "no Chromium found",
        );
    }

    #[test]
    fn a_daemon_needs_a_valid_file_a_token_and_its_port() {
        use State::{Error, Ok};
        let with = |change: fn(&mut Daemon)| {
            move |it: &mut Environment| change(it.daemon.as_mut().unwrap())
        };
        check(
            with(|it| it.problem = Some("opilio.toml:2:1: unknown field".to_owned())),
            "daemon",
            Error,
            "opilio.toml:2:1",
        );
        check(
            with(|it| it.tokens = Some(Result::Ok(0))),
            "daemon",
            Error,
            "opilio token new",
        );
        check(with(|it| it.tokens = None), "daemon", Ok, "no token needed");
        check(
            with(|it| it.port = Port::Answers(200)),
            "daemon",
            Ok,
            "running and ready",
        );
        check(
            with(|it| it.port = Port::Answers(503)),
            "daemon",
            Error,
            "status 503",
        );
        check(
            with(|it| it.port = Port::Refused("another program has it".to_owned())),
            "daemon",
            Error,
            "change listen",
        );
        check(|it| it.daemon = None, "daemon", Ok, "--config FILE");
    }

    #[test]
    fn a_cluster_needs_nats_equal_versions_and_equal_clocks() {
        use State::{Error, Ok, Warning};
        let with = |change: fn(&mut NatsCluster)| {
            move |it: &mut Environment| change(it.cluster.as_mut().unwrap())
        };
        check(with(|_| {}), "cluster", Ok, "2 nodes: a, b");
        check(
            with(|it| it.nodes = Result::Ok(Vec::new())),
            "cluster",
            Ok,
            "no node has joined yet",
        );
        check(
            with(|it| it.nodes = Err("no NATS server answers".to_owned())),
            "cluster",
            Error,
            "does not start",
        );
        check(
            with(|it| it.nodes.as_mut().unwrap()[1].version = "2.0.0".to_owned()),
            "cluster",
            Warning,
            "1.0.0, 2.0.0",
        );
        check(
            with(|it| it.nodes.as_mut().unwrap()[1].clock_skew_s = -9.0),
            "cluster",
            Warning,
            "the clock of b differs from that of NATS by -9000 ms",
        );
        check(
            with(|it| it.nodes.as_mut().unwrap()[0].state = NodeState::Gone),
            "cluster",
            Warning,
            "opilio node remove a",
        );
    }

    #[test]
    fn a_health_check_needs_a_daemon_that_runs() {
        let mut daemon = good().daemon;
        assert_eq!(running(&daemon).state, State::Error);
        daemon.as_mut().unwrap().port = Port::Answers(200);
        assert_eq!(running(&daemon).state, State::Ok);
        daemon.as_mut().unwrap().port = Port::Answers(503);
        assert_eq!(running(&daemon).state, State::Error);
        assert_eq!(running(&None).state, State::Error);
    }
}
