//! Alerts about a crawl that several nodes share. Each process watches its own part. One process also watches the other parts and
//! the storage of NATS, so that each problem has one alert.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use opilio_profile::Alerts;

use super::units::{duration_text, size_text};
use super::{Alert, AlertAction, AlertKind, CLEARED_AT, Severity};
use crate::part_status::{FailedTakeover, IdlePart, OtherPart, PartStatus, PartTakeover};

/// Period in which lost sessions are counted. A single lost session a day is harmless.
const SESSIONS_WINDOW: Duration = Duration::from_secs(3_600);

/// Subjects of the alert about links that wait.
const INBOX: &str = "inbox";
const OUTBOX: &str = "outbox";

/// State between two observations.
pub(super) struct SharedCrawlWatch {
    /// Active alerts, with their subjects.
    holding: BTreeSet<(AlertKind, String)>,
    /// Parts without a process, each with the time since which this is known.
    missing: BTreeMap<String, Instant>,
    /// Time since which NATS does not answer, so that nothing is known about other parts.
    unseen_since: Option<Instant>,
    sessions_lost: u64,
    /// Times of the sessions that were lost in the last period.
    losses: VecDeque<Instant>,
}

impl SharedCrawlWatch {
    /// Creates the watch of a crawl in which the alerts `held` are active already.
    pub(super) fn new(held: &[Alert]) -> Self {
        let kinds = [
            AlertKind::PartGone,
            AlertKind::LinksWaiting,
            AlertKind::JetstreamLow,
            AlertKind::Lease,
        ];
        let held = held.iter().filter(|alert| kinds.contains(&alert.kind));
        Self {
            holding: held
                .map(|alert| (alert.kind, alert.subject.clone()))
                .collect(),
            missing: BTreeMap::new(),
            unseen_since: None,
            sessions_lost: 0,
            losses: VecDeque::new(),
        }
    }

    /// Adds the actions that follow from the state of a part. `holds` is `true` if the crawl is paused on all nodes, or is ending.
    pub(super) fn look(
        &mut self,
        settings: &Alerts,
        part: &PartStatus,
        holds: bool,
        now: Instant,
        actions: &mut Vec<AlertAction>,
    ) {
        self.parts(settings, part, holds, now, actions);
        self.links(settings, part, actions);
        self.jetstream(settings, part, actions);
        self.lease(settings, part, now, actions);
    }

    fn parts(
        &mut self,
        settings: &Alerts,
        part: &PartStatus,
        holds: bool,
        now: Instant,
        actions: &mut Vec<AlertAction>,
    ) {
        if !part.nats_answers {
            self.unseen_since.get_or_insert(now);
            return;
        }
        if let Some(since) = self.unseen_since.take() {
            let unseen = now.saturating_duration_since(since);
            self.missing.values_mut().for_each(|since| *since += unseen);
        }
        let others = part.others.as_deref().unwrap_or_default();
        let missing: Vec<&OtherPart> = others.iter().filter(|other| other.is_missing()).collect();
        let is_missing = |name: &str| missing.iter().any(|other| other.name == name);
        // An operator who pauses or stops the crawl expects that parts do nothing.
        self.missing.retain(|name, _| !holds && is_missing(name));
        let limit = settings.part_gone_after;
        let over = self
            .holding
            .iter()
            .filter(|(kind, name)| *kind == AlertKind::PartGone && !is_missing(name))
            .cloned()
            .collect::<Vec<_>>();
        for (kind, name) in over {
            self.update_alert(kind, &name, false, true, String::new(), actions);
        }
        if holds {
            return;
        }
        for other in missing {
            let since = *self.missing.entry(other.name.clone()).or_insert(now);
            let waited = now.saturating_duration_since(since);
            let is_over = limit.is_some_and(|limit| waited >= limit);
            let message = missing_part_message(other, waited, part.takeovers.is_some());
            let (kind, is_well) = (AlertKind::PartGone, limit.is_none());
            self.update_alert(kind, &other.name, is_over, is_well, message, actions);
        }
    }

    fn links(&mut self, settings: &Alerts, part: &PartStatus, actions: &mut Vec<AlertAction>) {
        let limit = settings.links_waiting_after;
        for (subject, seconds) in [(INBOX, part.inbox_wait_s), (OUTBOX, part.outbox_wait_s)] {
            let waited = Duration::from_secs(seconds);
            let is_over = limit.is_some_and(|limit| waited >= limit);
            let is_well = limit.is_none_or(|limit| waited < limit.mul_f64(CLEARED_AT));
            let waited = duration_text(waited);
            let message = match subject {
                INBOX => format!(
                    "links from other parts have waited in NATS for {waited}, and {} messages are in the inbox: this part does not receive them; see job.log and diagnostics for the cause, and check the load of the machine and its disk",
                    part.inbox
                ),
                _ => format!(
                    "links to other parts have waited in the frontier for {waited}: NATS does not store them; check nats-server, the network, and the free storage of JetStream"
                ),
            };
            self.update_alert(
                AlertKind::LinksWaiting,
                subject,
                is_over,
                is_well,
                message,
                actions,
            );
        }
    }

    fn jetstream(&mut self, settings: &Alerts, part: &PartStatus, actions: &mut Vec<AlertAction>) {
        let storage = part.jetstream.unwrap_or_default();
        let percent = storage.percent().filter(|_| part.others.is_some());
        let percent = percent.filter(|_| settings.jetstream_percent > 0);
        let limit = f64::from(settings.jetstream_percent);
        let is_over = percent.is_some_and(|percent| percent >= limit);
        let is_well = percent.is_none_or(|percent| percent < limit * CLEARED_AT.max(0.9));
        let message = format!(
            "{} of the {} that the account may store in JetStream are used, {:.0} percent; when it is full, links wait in the frontiers: raise max_file of the account, and start parts that are not at work, whose links wait there",
            size_text(storage.bytes),
            size_text(storage.limit.unwrap_or_default()),
            percent.unwrap_or_default()
        );
        self.update_alert(
            AlertKind::JetstreamLow,
            "",
            is_over,
            is_well,
            message,
            actions,
        );
    }

    fn lease(
        &mut self,
        settings: &Alerts,
        part: &PartStatus,
        now: Instant,
        actions: &mut Vec<AlertAction>,
    ) {
        for _ in self.sessions_lost..part.sessions_lost {
            self.losses.push_back(now);
        }
        self.sessions_lost = part.sessions_lost;
        let is_past = |at: &Instant| now.saturating_duration_since(*at) >= SESSIONS_WINDOW;
        while self.losses.front().is_some_and(is_past) {
            self.losses.pop_front();
        }
        if part.has_rival {
            let message = format!(
                "another process works under the name of part {:?}, and this one fetches nothing: stop one of the two, and give each directory a part of its own; a machine may have been copied",
                part.name
            );
            self.raise(AlertKind::Lease, "", Severity::Critical, message, actions);
            return;
        }
        let (lost, limit) = (self.losses.len() as u64, u64::from(settings.sessions_lost));
        let is_over = limit > 0 && lost >= limit;
        let message = format!(
            "the session of this process has ended {lost} times in the last hour, because NATS got no renewal for cluster.time-to-live; nothing is fetched meanwhile, and another process may get the part: check the load of the machine, its sleep, and the network to NATS"
        );
        self.update_alert(AlertKind::Lease, "", is_over, !is_over, message, actions);
    }

    /// Raises an alert if the figure is over its limit, and clears the alert if the figure is well below. In between, nothing
    /// changes.
    fn update_alert(
        &mut self,
        kind: AlertKind,
        subject: &str,
        is_over: bool,
        is_well: bool,
        message: String,
        actions: &mut Vec<AlertAction>,
    ) {
        if is_over {
            self.raise(kind, subject, Severity::Warning, message, actions);
        } else if is_well && self.holding.remove(&(kind, subject.to_owned())) {
            actions.push(AlertAction::Clear(kind, subject.to_owned()));
        }
    }

    fn raise(
        &mut self,
        kind: AlertKind,
        subject: &str,
        severity: Severity,
        message: String,
        actions: &mut Vec<AlertAction>,
    ) {
        self.holding.insert((kind, subject.to_owned()));
        actions.push(AlertAction::Raise(
            kind,
            subject.to_owned(),
            severity,
            message,
        ));
    }
}

/// Returns the message about a part without a process.
fn missing_part_message(part: &OtherPart, waited: Duration, can_move: bool) -> String {
    let (name, waited) = (&part.name, duration_text(waited));
    let idle = IdlePart {
        name,
        state: part.state,
        node: part.node.as_deref(),
        can_move,
    };
    let remedy = match &part.takeover {
        Some(PartTakeover { node, since }) => {
            format!("node {node:?} has been taking it over since {since:.0}")
        }
        None => idle.remedy(),
    };
    let failed = part.failed_takeover.as_ref();
    let failed = failed.map(|FailedTakeover { node, at, problem }| {
        format!("; node {node:?} failed to take it over at {at:.0}: {problem}")
    });
    let failed = failed.unwrap_or_default();
    let cause = idle.cause();
    format!("no process has worked on part {name:?} for {waited}: {cause}; {remedy}{failed}")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::tests::settings;
    use super::*;
    use crate::part_status::{JetStreamUse, PartState};

    /// A watch, and the state of the part that it observes.
    struct Trial {
        watch: SharedCrawlWatch,
        settings: Alerts,
        part: PartStatus,
        holds: bool,
        began: Instant,
        second: u64,
    }

    impl Trial {
        /// Creates a part that watches the parts `b` and `c`, and can be taken over.
        fn new(toml: &str) -> Trial {
            Trial {
                watch: SharedCrawlWatch::new(&[]),
                settings: settings(toml),
                part: PartStatus {
                    name: "a".to_owned(),
                    takeovers: Some(0),
                    nats_answers: true,
                    others: Some(vec![other("b"), other("c")]),
                    ..PartStatus::default()
                },
                holds: false,
                began: Instant::now(),
                second: 0,
            }
        }

        /// Observes after this many seconds, and returns a short text for each action.
        fn after(&mut self, seconds: u64) -> Vec<String> {
            self.second += seconds;
            let now = self.began + Duration::from_secs(self.second);
            let mut actions = Vec::new();
            let (settings, part) = (&self.settings, &self.part);
            self.watch
                .look(settings, part, self.holds, now, &mut actions);
            let texts = actions.into_iter().map(|act| match act {
                AlertAction::Raise(kind, subject, severity, _) => {
                    format!("{} {subject} {}", kind.name(), severity.name())
                }
                AlertAction::Clear(kind, subject) => format!("{} {subject} over", kind.name()),
                other => panic!("{other:?}"),
            });
            texts.collect()
        }

        fn other(&mut self, place: usize) -> &mut OtherPart {
            &mut self.part.others.as_mut().unwrap()[place]
        }
    }

    fn other(name: &str) -> OtherPart {
        OtherPart {
            name: name.to_owned(),
            state: PartState::Running,
            node: Some(format!("node-{name}")),
            is_done: false,
            takeover: None,
            failed_takeover: None,
        }
    }

    #[test]
    fn each_part_without_a_process_raises_an_alert_after_a_time() {
        let mut trial = Trial::new("part-gone-after = '2m'");
        assert_eq!(trial.after(0), [""; 0]);
        trial.other(0).state = PartState::Gone;
        assert_eq!(trial.after(5), [""; 0]);
        assert_eq!(trial.after(119), [""; 0]);
        assert_eq!(trial.after(1), ["part-gone b warning"]);
        // The part continues. Another part is stopped with something left to do, then with nothing.
        trial.other(0).state = PartState::Running;
        trial.other(1).state = PartState::Stopped;
        assert_eq!(trial.after(1), ["part-gone b over"]);
        assert_eq!(trial.after(120), ["part-gone c warning"]);
        trial.other(1).is_done = true;
        assert_eq!(trial.after(1), ["part-gone c over"]);
        // From now on, another part of the crawl watches the parts.
        trial.other(0).state = PartState::New;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(120), ["part-gone b warning"]);
        trial.part.others = None;
        assert_eq!(trial.after(1), ["part-gone b over"]);
    }

    #[test]
    fn parts_of_a_paused_crawl_raise_no_alert() {
        let mut trial = Trial::new("part-gone-after = '2m'");
        trial.other(0).state = PartState::Stopped;
        trial.holds = true;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(1_000), [""; 0]);
        trial.holds = false;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(120), ["part-gone b warning"]);
        trial.holds = true;
        assert_eq!(trial.after(1), [""; 0], "it is not over");
    }

    #[test]
    fn a_dead_part_with_nothing_left_to_do_raises_no_alert() {
        let mut trial = Trial::new("part-gone-after = '2m'");
        trial.other(0).state = PartState::Gone;
        trial.other(0).is_done = true;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(120), [""; 0]);
        // A link to it arrives.
        trial.other(0).is_done = false;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(120), ["part-gone b warning"]);
    }

    #[test]
    fn time_without_nats_does_not_count_against_other_parts() {
        let mut trial = Trial::new("part-gone-after = '2m'");
        trial.other(0).state = PartState::Gone;
        assert_eq!(trial.after(0), [""; 0]);
        assert_eq!(trial.after(100), [""; 0]);
        trial.part.nats_answers = false;
        assert_eq!(trial.after(0), [""; 0]);
        assert_eq!(trial.after(1_000), [""; 0]);
        trial.part.nats_answers = true;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(20), ["part-gone b warning"]);
        // An active alert stays active.
        trial.part.nats_answers = false;
        trial.part.others = None;
        assert_eq!(trial.after(1), [""; 0]);
        trial.part.nats_answers = true;
        assert_eq!(trial.after(1), ["part-gone b over"]);
    }

    #[test]
    fn the_message_about_a_part_names_its_node_and_the_remedy() {
        let minutes = Duration::from_secs(180);
        let gone = OtherPart {
            state: PartState::Gone,
            ..other("b")
        };
        assert_eq!(
            missing_part_message(&gone, minutes, true),
            "no process has worked on part \"b\" for 3 minutes: its process on node \"node-b\" has died or was terminated, or does not reach NATS; start its job again, or take the part over with --take-over b"
        );
        let new = OtherPart {
            state: PartState::New,
            node: None,
            ..other("b")
        };
        assert_eq!(
            missing_part_message(&new, minutes, false),
            "no process has worked on part \"b\" for 3 minutes: no node has begun it; start the crawl on its node"
        );
        // A daemon takes the part over, after another daemon has failed.
        let at = Timestamp::UNIX_EPOCH;
        let taken = OtherPart {
            takeover: Some(PartTakeover {
                node: "c".to_owned(),
                since: at,
            }),
            failed_takeover: Some(FailedTakeover {
                node: "d".to_owned(),
                at,
                problem: "the disk is full".to_owned(),
            }),
            ..gone
        };
        assert_eq!(
            missing_part_message(&taken, minutes, true),
            "no process has worked on part \"b\" for 3 minutes: its process on node \"node-b\" has died or was terminated, or does not reach NATS; node \"c\" has been taking it over since 1970-01-01T00:00:00Z; node \"d\" failed to take it over at 1970-01-01T00:00:00Z: the disk is full"
        );
    }

    #[test]
    fn links_that_wait_too_long_raise_an_alert_for_each_direction() {
        let mut trial = Trial::new("links-waiting-after = '10m'");
        for ((inbox, outbox), expected) in [
            ((599, 0), &[][..]),
            ((600, 0), &["links-waiting inbox warning"]),
            ((500, 700), &["links-waiting outbox warning"]),
            ((479, 500), &["links-waiting inbox over"]),
            ((0, 0), &["links-waiting outbox over"]),
        ] {
            (trial.part.inbox_wait_s, trial.part.outbox_wait_s) = (inbox, outbox);
            assert_eq!(trial.after(1), expected, "{inbox} {outbox}");
        }
        trial.settings.links_waiting_after = None;
        trial.part.inbox_wait_s = 10_000;
        assert_eq!(trial.after(1), [""; 0]);
    }

    #[test]
    fn nearly_full_storage_raises_an_alert_in_the_part_that_watches() {
        let mut trial = Trial::new("jetstream-percent = 80");
        let used = |bytes| {
            Some(JetStreamUse {
                bytes,
                limit: Some(1_000),
            })
        };
        for (bytes, expected) in [
            (799, &[][..]),
            (800, &["jetstream-low  warning"]),
            (730, &[]),
            (719, &["jetstream-low  over"]),
            (900, &["jetstream-low  warning"]),
        ] {
            trial.part.jetstream = used(bytes);
            assert_eq!(trial.after(1), expected, "{bytes}");
        }
        trial.part.others = None;
        assert_eq!(trial.after(1), ["jetstream-low  over"]);
        trial.part.others = Some(Vec::new());
        trial.part.jetstream = Some(JetStreamUse {
            bytes: 1 << 40,
            limit: None,
        });
        assert_eq!(trial.after(1), [""; 0], "the limit is not known");
    }

    #[test]
    fn repeated_session_losses_and_a_rival_process_raise_an_alert() {
        let mut trial = Trial::new("sessions-lost = 3");
        for (seconds, lost, expected) in [
            (0, 1, &[][..]),
            (1_000, 2, &[]),
            (1_000, 3, &["lease  warning"]),
            (1_599, 3, &["lease  warning"]),
            // The first was an hour ago.
            (1, 3, &["lease  over"]),
        ] {
            trial.part.sessions_lost = lost;
            assert_eq!(trial.after(seconds), expected, "{lost}");
        }
        trial.part.has_rival = true;
        assert_eq!(trial.after(1), ["lease  critical"]);
        trial.part.has_rival = false;
        assert_eq!(trial.after(1), ["lease  over"]);
    }

    #[test]
    fn a_process_clears_alerts_of_the_previous_process_after_its_own_observation() {
        let held = Alert {
            kind: AlertKind::PartGone,
            subject: "b".to_owned(),
            severity: Severity::Warning,
            message: String::new(),
            since: Timestamp::UNIX_EPOCH,
            until: None,
            acknowledged: None,
        };
        let mut trial = Trial::new("");
        trial.watch = SharedCrawlWatch::new(&[held]);
        trial.other(0).state = PartState::Gone;
        assert_eq!(trial.after(1), [""; 0]);
        trial.other(0).state = PartState::Running;
        assert_eq!(trial.after(1), ["part-gone b over"]);
    }
}
