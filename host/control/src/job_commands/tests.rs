//! Commands of a log, carried out in a directory that no process runs. Tests with a log need a `nats-server`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::Timestamp;
use opilio_cluster::partition::PartitionCount;
use opilio_cluster::{JobCommand, JobStorage, StoredFile};
use opilio_frontier::{Frontier, SharedFrontier};
use opilio_job::changes::{self, ADDED_SEEDS};
use opilio_job::directory::{self, Copies, Job};
use opilio_job::fetched_files::FetchedFiles;
use opilio_job::history::{self, Changed};
use opilio_job::job_log::JobLog;
use opilio_job::profile::frozen_profile;
use opilio_profile::{MatchFile, Profile};
use opilio_test_nats::NatsServer;
use opilio_uri::{HopPath, Uri};
use opilio_visit::policy;
use tokio::runtime::Handle;
use tokio::sync::Barrier;

use super::command_log::LoggedCommand;
use super::*;
use crate::QueueAction;

/// A job directory with the only part of a job.
pub(super) struct OnlyPart {
    _home: tempfile::TempDir,
    directory: PathBuf,
    profile: Arc<Profile>,
    log: JobLog,
    frontier: SharedFrontier,
}

fn only_part() -> JobPart {
    JobPart {
        job: "news".to_owned(),
        parts: vec!["a".to_owned()],
        part: "a".to_owned(),
        partitions: PartitionCount::default(),
        config: "/etc/opilio.toml".into(),
        epoch: 0,
    }
}

fn lena() -> Author {
    Author {
        user: "lena".to_owned(),
        pid: 7,
    }
}

fn add_seed() -> Command {
    Command::AddSeeds {
        seeds: vec!["http://b.localhost/".to_owned()],
    }
}

pub(super) fn set(setting: &str, matching: Option<MatchFile>) -> Command {
    Command::Set {
        set: vec![setting.to_owned()],
        matching,
        only_check: false,
        reason: None,
    }
}

impl OnlyPart {
    pub(super) fn new() -> OnlyPart {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("job");
        let seeds = ["http://a.localhost/".to_owned()];
        let copies = Copies {
            profile: "name = \"news\"\nfetch.allow-addresses = [\"loopback\"]\n",
            name: "news",
            seeds: &seeds,
            base: Path::new("/"),
            layers: &[],
            origin: None,
            files: &FetchedFiles::default(),
        };
        drop(Job::open(&directory, &copies, Timestamp::UNIX_EPOCH).unwrap());
        only_part().write(&directory).unwrap();
        let profile = Arc::new(frozen_profile(&directory).unwrap());
        let config = policy::frontier_config(&profile, Timestamp::now);
        let frontier = Frontier::open(&directory.join("state"), config).unwrap();
        OnlyPart {
            log: JobLog::open(&directory.join("logs")).unwrap(),
            frontier: SharedFrontier::new(frontier),
            profile,
            directory,
            _home: home,
        }
    }

    fn admin(&self) -> JobAdmin<'_> {
        JobAdmin::new(&self.directory, &self.profile, &self.frontier, &self.log)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) async fn commands(&self, server: &NatsServer) -> JobCommands {
        let config = ClusterConfig::new("a", vec![format!("127.0.0.1:{}", server.port)]);
        let connection = ClusterConnection::open(config).await.unwrap();
        let scope = MemberScope::Job("news".to_owned());
        let cluster = Cluster::open(connection, &scope).await.unwrap();
        let job = ClusterJob::create(&cluster, "news", &[], JobStorage::default());
        let job = job.await.unwrap();
        JobCommands::new(job, only_part(), &self.directory, Handle::current())
    }

    /// Carries out a command as an operator gives it on this node. Returns its answers as text.
    pub(super) fn perform(&self, commands: &JobCommands, command: Command) -> String {
        let request = CommandRequest {
            by: lena(),
            command,
            only_here: false,
        };
        let mut answers = Vec::new();
        let admin = self.admin().sharing(Some(commands));
        admin.perform(&request, &mut |answer| {
            answers.push(answer);
            true
        });
        format!("{answers:?}")
    }

    /// Carries out a command of the log as a process does at a retry.
    fn carry_out_again(&self, command: &Command) {
        let profile = Arc::new(frozen_profile(&self.directory).unwrap());
        let origin = CommandOrigin::Log {
            sequence: 3,
            component: None,
            is_again: true,
        };
        let admin = self.admin();
        let admin = admin.with(&profile, origin);
        admin.carry_out(&lena(), command, &mut |_| true).unwrap();
    }

    fn has_new_seed(&self) -> bool {
        let uri = Uri::parse("http://b.localhost/").unwrap();
        self.frontier.lock().record(&uri).unwrap().is_some()
    }

    fn history(&self) -> Vec<Changed> {
        let changes = history::read(&self.directory).unwrap();
        changes.into_iter().map(|change| change.what).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_and_stops_do_not_wait_for_a_command_that_fails() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    let state = || CommandState {
        carried_out_ns: 0,
        ahead_ns: 0,
        ..CommandState::read(&part.directory).unwrap()
    };
    // A folder in the place of the file, as a full disk would do.
    let file = part.directory.join(ADDED_SEEDS);
    fs::create_dir(&file).unwrap();
    let refused = part.perform(&commands, add_seed());
    assert!(refused.contains("not carried out here yet"), "{refused}");
    assert_eq!(state(), CommandState::default());

    let paused = part.perform(&commands, Command::Pause);
    let waits = "command 1 of the job still waits here";
    assert!(paused.contains(waits) && paused.contains("End"), "{paused}");
    let expected = CommandState {
        ahead: 2,
        is_paused: true,
        ..CommandState::default()
    };
    assert_eq!(state(), expected);
    // Other commands keep their order.
    let refused = part.perform(&commands, set("workers=3", None));
    assert!(refused.contains("not carried out here yet"), "{refused}");
    assert_eq!(part.history(), []);
    let resumed = part.perform(&commands, Command::Resume);
    assert!(resumed.contains("resumed on all nodes"), "{resumed}");

    // After the cause is removed, all other commands are carried out, and the pause does not take effect again.
    fs::remove_dir(&file).unwrap();
    let stopped = part.perform(&commands, Command::Stop);
    assert!(!stopped.contains("waits here"), "{stopped}");
    let expected = CommandState {
        carried_out: 5,
        ahead: 4,
        ..CommandState::default()
    };
    assert_eq!(state(), expected);
    let history = part.history();
    assert!(
        matches!(history[..], [Changed::AddSeeds { .. }, Changed::Set { .. }]),
        "{history:?}"
    );
    assert!(part.has_new_seed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_not_reported_as_done_before_its_place_is_written() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    // A folder in the place of the file, as a full disk would do.
    let draft = part.directory.join("cluster-commands.draft");
    fs::create_dir(&draft).unwrap();
    let refused = part.perform(&commands, set("workers=3", None));
    let is_refused = refused.contains("not carried out here yet");
    assert!(is_refused && !refused.contains("End,"), "{refused}");
    fs::remove_dir(&draft).unwrap();
    part.perform(&commands, Command::Resume);
    assert_eq!(CommandState::read(&part.directory).unwrap().carried_out, 2);
    assert_eq!(part.history().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_before_the_process_began_takes_effect_only_after_a_death() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let mut commands = part.commands(&server).await;
    commands.given_before = AtomicU64::new(4);
    assert!(commands.is_past(4, &Command::Stop));
    assert!(!commands.is_past(5, &Command::Stop));
    assert!(!commands.is_past(4, &Command::Pause));
    commands.has_died.store(true, Ordering::Release);
    assert!(!commands.is_past(4, &Command::Stop));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_without_a_process_is_kept_only_after_a_death() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    let is_stopped = || CommandState::read(&part.directory).unwrap().is_stopped;
    part.perform(&commands, Command::Stop);
    assert!(!is_stopped());
    CommandState::note_death(&part.directory).unwrap();
    part.perform(&commands, Command::Stop);
    assert!(is_stopped());
}

#[test]
fn seeds_that_a_failed_command_has_kept_are_queued_at_the_retry() {
    let part = OnlyPart::new();
    directory::add_seeds(&part.directory, "http://b.localhost/\n").unwrap();
    part.carry_out_again(&add_seed());
    assert!(part.has_new_seed());
    let kept = directory::added_seeds(&part.directory);
    assert_eq!(kept, "http://b.localhost/\n");
}

#[test]
fn an_override_that_a_failed_command_has_kept_is_completed_at_the_retry() {
    let part = OnlyPart::new();
    let made = LiveOverride {
        id: 1,
        command: Some(3),
        by: "lena".to_owned(),
        at: Timestamp::UNIX_EPOCH,
        reason: None,
        toml: "[[override]]\nmatch = { host = [\"a.localhost\"] }\nretry.max-retries = 3\n"
            .to_owned(),
    };
    overrides::write(&part.directory, std::slice::from_ref(&made)).unwrap();
    let matching = MatchFile {
        host: vec!["a.localhost".to_owned()],
        ..MatchFile::default()
    };
    let command = set("retry.max-retries=3", Some(matching));
    for _ in 0..2 {
        part.carry_out_again(&command);
        let history = part.history();
        assert!(
            matches!(history[..], [Changed::Override { id: 1, .. }]),
            "{history:?}"
        );
        assert_eq!(
            overrides::read(&part.directory).unwrap(),
            std::slice::from_ref(&made)
        );
    }
}

#[test]
fn a_setting_that_a_failed_command_has_kept_is_not_kept_twice() {
    let part = OnlyPart::new();
    for _ in 0..2 {
        part.carry_out_again(&set("workers=3", None));
        let kept = changes::changes(&part.directory, Path::new("")).unwrap();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(part.history().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_has_lost_its_part_answers_no_question() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    let job = &commands.job;
    let mut questions = job.questions("a").await.unwrap();
    let has_part = &AtomicBool::new(true);
    let answering = questions::answer_while(
        &mut questions,
        || has_part.load(Ordering::Acquire),
        |question| async move {
            // The part is lost while the second question is answered.
            has_part.store(question != b"two", Ordering::Release);
            Ok::<_, ()>(question)
        },
    );
    let asking = async {
        let first = job.query_part("a", b"one".to_vec()).await;
        let second = job.query_part("a", b"two".to_vec()).await;
        (first, second)
    };
    let ((), (first, second)) = tokio::join!(answering, asking);
    assert_eq!(first.unwrap(), b"one");
    let is_silent = matches!(second, Err(ClusterError::PartSilent { .. }));
    assert!(is_silent, "{second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_about_a_queue_of_another_part_is_carried_out_there() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let mut commands = part.commands(&server).await;
    commands.part.parts.push("b".to_owned());
    let freeze = |queue: &str| Command::ChangeQueue {
        queue: queue.to_owned(),
        action: QueueAction::Freeze,
    };
    let refused = part.perform(&commands, freeze("elsewhere"));
    assert!(refused.contains("does not answer"), "{refused}");

    let mut questions = commands.job.questions("b").await.unwrap();
    let answering = tokio::spawn(async move {
        let answer_to = |question: Vec<u8>| async move {
            let question = String::from_utf8(question).unwrap();
            let unknown = CommandResponse::Refused {
                kind: ErrorKind::Unknown,
                message: "queue not found".to_owned(),
            };
            let done = CommandResponse::Done {
                result: "frozen by b".to_owned(),
            };
            let answers = match question.contains("elsewhere") {
                true => vec![done, CommandResponse::End],
                false => vec![unknown],
            };
            Ok::<_, ()>(serde_json::to_vec(&answers).unwrap())
        };
        questions::answer_while(&mut questions, || true, answer_to).await;
    });
    let answers = part.perform(&commands, freeze("elsewhere"));
    assert!(answers.contains("frozen by b"), "{answers}");
    let refused = part.perform(&commands, freeze("nowhere"));
    assert!(refused.contains("not found in any part"), "{refused}");
    answering.abort();

    // For a queue of this part, no other part is asked.
    part.carry_out_again(&add_seed());
    let uri = Uri::parse("http://b.localhost/").unwrap();
    let known = part.frontier.lock().record(&uri).unwrap();
    let own = known.unwrap().queue;
    let answers = part.perform(&commands, freeze(&own));
    assert!(answers.contains("is frozen"), "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_remembers_a_pause_that_a_full_disk_cannot_store() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    let paused = CommandState {
        carried_out: 5,
        is_paused: true,
        ..CommandState::default()
    };
    // The file can neither be written nor read, because there is a folder in its place.
    let file = part.directory.join(changes::SHARED_COMMANDS);
    fs::create_dir(&file).unwrap();
    assert!(commands.keep_place(false, &paused).is_err());
    assert!(commands.state().is_err());
    commands.keep_place(true, &paused).unwrap();
    assert_eq!(commands.state().unwrap(), paused);

    fs::remove_dir(&file).unwrap();
    let next = CommandState {
        carried_out: 6,
        ..paused
    };
    commands.write(&next).unwrap();
    assert_eq!(commands.state().unwrap(), next);
    assert_eq!(CommandState::read(&part.directory).unwrap(), next);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_was_not_reported_with_its_command_is_reported_later() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    let before = commands.state().unwrap();
    commands.note_place(&before).await.unwrap();
    let noted = commands.job.applied_commands().await.unwrap();
    assert!(noted.is_empty(), "{noted:?}");
    let state = CommandState {
        carried_out: 5,
        ..before
    };
    commands.note_place(&state).await.unwrap();
    assert_eq!(commands.job.applied_command("a").await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_parts_are_asked_for_a_queue_at_the_same_time() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let mut commands = part.commands(&server).await;
    // Neither part answers before both were asked.
    let asked = Arc::new(Barrier::new(2));
    let mut answering = Vec::new();
    for name in ["b", "c"] {
        commands.part.parts.push(name.to_owned());
        let mut questions = commands.job.questions(name).await.unwrap();
        let asked = asked.clone();
        answering.push(tokio::spawn(async move {
            let answer_to = |question: Vec<u8>| {
                let asked = asked.clone();
                async move {
                    let question: CommandRequest = serde_json::from_slice(&question).unwrap();
                    if matches!(question.command, Command::Queue { .. }) {
                        asked.wait().await;
                    }
                    let done = CommandResponse::Done {
                        result: "frozen by b".to_owned(),
                    };
                    let unknown = CommandResponse::Refused {
                        kind: ErrorKind::Unknown,
                        message: "queue not found".to_owned(),
                    };
                    let answers = match name {
                        "b" => vec![done, CommandResponse::End],
                        _ => vec![unknown],
                    };
                    Ok::<_, ()>(serde_json::to_vec(&answers).unwrap())
                }
            };
            questions::answer_while(&mut questions, || true, answer_to).await;
        }));
    }
    let freeze = Command::ChangeQueue {
        queue: "elsewhere".to_owned(),
        action: QueueAction::Freeze,
    };
    let answers = part.perform(&commands, freeze);
    assert!(answers.contains("frozen by b"), "{answers}");
    for task in answering {
        task.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uri_that_is_not_a_seed_is_refused_before_other_nodes_get_the_command() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    let remove = |uri: &str| Command::RemoveSeed {
        uri: uri.to_owned(),
    };
    let refused = part.perform(&commands, remove("http://c.localhost/"));
    assert!(refused.contains("is not a seed of the job"), "{refused}");
    assert_eq!(commands.job.last_command().await.unwrap(), 0);
    let removed = part.perform(&commands, remove("http://a.localhost/"));
    assert!(removed.contains("removed from seeds"), "{removed}");
    assert_eq!(CommandState::read(&part.directory).unwrap().carried_out, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disconnects_does_not_end_a_command_on_its_node() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let commands = part.commands(&server).await;
    let seed = "http://a.localhost/";
    let uri = |number: usize| Uri::parse(&format!("{seed}{number}")).unwrap();
    let found = |number: usize| {
        let hops = HopPath::new();
        policy::candidate(&part.profile, uri(number), hops, Some(seed), Some(seed))
    };
    // More than a sweep examines at once.
    let candidates = (0..5_000).map(found).collect();
    let now = Timestamp::now();
    part.frontier.lock().schedule(candidates, now).unwrap();
    let request = CommandRequest {
        by: lena(),
        command: Command::RemoveSeed {
            uri: seed.to_owned(),
        },
        only_here: false,
    };
    let admin = part.admin().sharing(Some(&commands));
    admin.perform(&request, &mut |_| false);
    let is_known = |number| part.frontier.lock().record(&uri(number)).unwrap().is_some();
    assert!((0..5_000).all(|number| !is_known(number)));
    assert_eq!(CommandState::read(&part.directory).unwrap().carried_out, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_whose_part_was_taken_over_gives_no_commands() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let part = OnlyPart::new();
    let mut commands = part.commands(&server).await;
    commands.part.epoch = commands.job.claim_part("a", 0, "one").await.unwrap();
    commands.must_have_part().unwrap();
    commands.job.claim_part("a", 1, "two").await.unwrap();
    assert!(commands.must_have_part().is_err());
    let refused = part.perform(&commands, Command::Stop);
    assert!(refused.contains("Refused"), "{refused}");
    assert_eq!(commands.job.last_command().await.unwrap(), 0);
}

#[test]
fn commands_in_the_log_are_read_again() {
    let logged = LoggedCommand {
        by: Author {
            user: "lena".to_owned(),
            pid: 7,
        },
        part: "a".to_owned(),
        command: Command::ReplacePlugin {
            plugin: "html".to_owned(),
            component: "/html.wasm".to_owned(),
            sha256: None,
            settings: None,
        },
        component: Some(StoredFile {
            sha256: "00".to_owned(),
            bytes: 3,
        }),
    };
    let json = serde_json::to_vec(&logged).unwrap();
    let read: LoggedCommand = serde_json::from_slice(&json).unwrap();
    assert_eq!(read, logged);

    let next = JobCommand {
        sequence: 12,
        stored_ns: 1,
        command: json,
    };
    let words = carry_out::described(&next);
    assert!(
        words.starts_with("command 12 of the job (plugin replace"),
        "{words}"
    );
    assert!(words.ends_with("by lena on a)"), "{words}");
    let of_later_version = JobCommand {
        command: b"{}".to_vec(),
        ..next
    };
    let words = carry_out::described(&of_later_version);
    assert_eq!(words, "command 12 of the job");
}
