//! The session of this node: joining, renewing, and the time until which the session is valid.
//!
//! A renewal that was sent at `t` and stored allows work until `t + time_to_live - margin`. Other nodes observe it after `t`, and
//! wait for `time_to_live` before they end the session. So the node stops working before another process can have its name. This
//! does not depend on the network or on wall clocks.

use std::time::Duration;

use super::member_event::MemberEvent;
use super::records::{
    ClusterKey, ClusterRecord, KeyWrite, NodeRecord, SessionEnd, SessionState, SessionTimings,
};

/// The session of this node.
#[derive(Debug)]
pub(super) struct Session {
    name: String,
    version: String,
    timings: SessionTimings,
    seed: String,
    generation: u64,
    beat: u64,
    /// Number of the last renewal that was sent, and its time.
    attempt: Option<(u64, Duration)>,
    is_in_flight: bool,
    next: Duration,
    since_ms: i64,
    /// State of the record that this session has replaced, or the next one will replace; `None` without a record.
    before: Option<SessionState>,
    /// Number of the first write that requested the end of the session.
    ending: Option<u64>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Not a member. `rival` is a live session of the same name: its last revision, and the time at which it was observed.
    Joining { rival: Option<(u64, Duration)> },
    /// A member until `guard_until`, or longer after a renewal.
    Live { guard_until: Duration },
    /// Left, and does not join again.
    Left,
}

impl Session {
    pub(super) fn new(name: &str, version: &str, seed: &str, timings: SessionTimings) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            timings,
            seed: seed.to_owned(),
            generation: 1,
            beat: 0,
            attempt: None,
            is_in_flight: false,
            next: Duration::ZERO,
            since_ms: 0,
            before: None,
            ending: None,
            phase: Phase::Joining { rival: None },
        }
    }

    /// Returns the identifier of the session. While the node is not a member, it is the identifier of the next session.
    pub(super) fn id(&self) -> String {
        format!("{}-{}", self.seed, self.generation)
    }

    pub(super) fn is_member(&self) -> bool {
        matches!(self.phase, Phase::Live { .. })
    }

    /// Returns the time until which the node may work, if it is a member.
    pub(super) fn guard_until(&self) -> Option<Duration> {
        match self.phase {
            Phase::Live { guard_until } => Some(guard_until),
            Phase::Joining { .. } | Phase::Left => None,
        }
    }

    /// Processes the record under the node's key, from the watch or from an accepted write. Returns the resulting event.
    pub(super) fn observe(
        &mut self,
        record: Option<&NodeRecord>,
        revision: u64,
        now: Duration,
    ) -> Option<MemberEvent> {
        let state = record.map(|record| record.state);
        let is_live = state == Some(SessionState::Live);
        let is_own = record.is_some_and(|record| record.session == self.id());
        let beat = record.map_or(0, |record| record.beat);
        // If another node ends the session, the number of the last renewal stays in the record.
        let has_left = is_own && self.ending.is_some_and(|first| beat >= first);
        if !is_own || !is_live {
            self.before = state;
        }
        match (&mut self.phase, is_own, is_live) {
            (Phase::Left, ..) => None,
            (_, true, true) => {
                let reached = self.attempt.filter(|(sent, _)| *sent == beat);
                let until =
                    reached.map(|(_, at)| at + self.timings.time_to_live - self.timings.margin);
                let before = self.guard_until().unwrap_or_default();
                let guard_until = before.max(until.unwrap_or_default());
                self.phase = Phase::Live { guard_until };
                None
            }
            (_, true, false) if has_left => {
                self.phase = Phase::Left;
                Some(MemberEvent::Left)
            }
            (Phase::Joining { rival }, false, true) => {
                let is_renewed = rival.is_some_and(|(known, _)| known < revision);
                if rival.is_none_or(|(known, _)| known < revision) {
                    *rival = Some((revision, now));
                }
                is_renewed.then_some(MemberEvent::NameInUse)
            }
            (Phase::Joining { rival }, ..) => {
                *rival = None;
                None
            }
            (Phase::Live { .. }, ..) => {
                self.generation += 1;
                self.attempt = None;
                self.next = now;
                self.phase = Phase::Joining {
                    rival: is_live.then_some((revision, now)),
                };
                Some(MemberEvent::SessionLost)
            }
        }
    }

    /// Returns the next write of the node's own record if it is due. `current` is the record's last known revision.
    pub(super) fn due_write(
        &mut self,
        current: u64,
        now: Duration,
        clock_ms: i64,
    ) -> Option<KeyWrite> {
        if self.is_in_flight || now < self.next {
            return None;
        }
        let is_blocked = match self.phase {
            Phase::Left => true,
            Phase::Live { .. } => false,
            Phase::Joining { rival } => rival.is_some_and(|(_, at)| {
                now.saturating_sub(at) <= self.timings.time_to_live + self.timings.renewal
            }),
        };
        if is_blocked {
            return None;
        }
        if !self.is_member() {
            self.since_ms = clock_ms;
        }
        self.next = now + self.timings.renewal;
        Some(self.write(SessionState::Live, current, now, clock_ms))
    }

    /// Returns the write that ends the session. `current` is the record's last known revision.
    pub(super) fn leave(
        &mut self,
        end: SessionEnd,
        current: u64,
        now: Duration,
        clock_ms: i64,
    ) -> Option<KeyWrite> {
        if !self.is_member() || self.is_in_flight {
            return None;
        }
        let was_left = self.before == Some(SessionState::Left);
        let state = match end {
            SessionEnd::Left => SessionState::Left,
            SessionEnd::AsBefore if was_left => SessionState::Left,
            SessionEnd::Expired | SessionEnd::AsBefore => SessionState::Expired,
        };
        self.ending = self.ending.or(Some(self.beat + 1));
        Some(self.write(state, current, now, clock_ms))
    }

    /// Records that a write has a result. A failed write is retried soon.
    pub(super) fn finish_write(&mut self, is_accepted: bool, now: Duration) {
        self.is_in_flight = false;
        if !is_accepted {
            self.next = now + self.timings.renewal / 3;
        }
    }

    fn write(
        &mut self,
        state: SessionState,
        current: u64,
        now: Duration,
        clock_ms: i64,
    ) -> KeyWrite {
        self.beat += 1;
        self.attempt = Some((self.beat, now));
        self.is_in_flight = true;
        KeyWrite {
            key: ClusterKey::Node(self.name.clone()),
            record: ClusterRecord::Node(NodeRecord {
                session: self.id(),
                state,
                version: self.version.clone(),
                beat: self.beat,
                clock_ms,
                since_ms: self.since_ms,
            }),
            expected: current,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn session() -> Session {
        Session::new("a", "1", "s", SessionTimings::of(10 * SECOND))
    }

    fn record(write: KeyWrite) -> NodeRecord {
        match write.record {
            ClusterRecord::Node(record) => record,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_renewal_is_valid_from_the_time_it_was_sent() {
        let mut session = session();
        let first = record(session.due_write(0, 5 * SECOND, 0).unwrap());
        session.finish_write(true, 9 * SECOND);
        session.observe(Some(&first), 1, 9 * SECOND);
        assert_eq!(session.guard_until(), Some(13 * SECOND));
    }

    #[test]
    fn a_renewal_without_an_answer_takes_effect_when_it_is_observed() {
        let mut session = session();
        let first = record(session.due_write(0, Duration::ZERO, 0).unwrap());
        session.finish_write(true, Duration::ZERO);
        session.observe(Some(&first), 1, Duration::ZERO);
        let second = record(session.due_write(1, 4 * SECOND, 0).unwrap());
        session.finish_write(false, 5 * SECOND);
        assert_eq!(session.guard_until(), Some(8 * SECOND));
        session.observe(Some(&second), 2, 6 * SECOND);
        assert_eq!(session.guard_until(), Some(12 * SECOND));
    }

    #[test]
    fn after_a_lost_session_the_next_one_has_another_identifier() {
        let mut session = session();
        let first = record(session.due_write(0, Duration::ZERO, 0).unwrap());
        session.finish_write(true, Duration::ZERO);
        session.observe(Some(&first), 1, Duration::ZERO);
        let ended = NodeRecord {
            state: SessionState::Expired,
            ..first
        };
        let change = session.observe(Some(&ended), 2, 30 * SECOND);
        assert_eq!(
            (change, session.guard_until()),
            (Some(MemberEvent::SessionLost), None)
        );
        let next = record(session.due_write(2, 30 * SECOND, 0).unwrap());
        assert_ne!(next.session, ended.session);
    }

    /// The record of another process.
    fn other(state: SessionState) -> NodeRecord {
        NodeRecord {
            session: "other".to_owned(),
            state,
            version: String::new(),
            beat: 7,
            clock_ms: 0,
            since_ms: 0,
        }
    }

    /// A session that has begun at 20 s. It follows a session in the state `before`; its own record has revision 2.
    fn after(before: Option<SessionState>) -> Session {
        let mut session = session();
        if let Some(state) = before {
            session.observe(Some(&other(state)), 1, Duration::ZERO);
        }
        let first = record(session.due_write(1, 20 * SECOND, 0).unwrap());
        session.finish_write(true, 20 * SECOND);
        session.observe(Some(&first), 2, 20 * SECOND);
        assert!(session.is_member());
        session
    }

    #[test]
    fn a_session_ends_in_the_requested_state() {
        let (live, gone, left) = (
            SessionState::Live,
            SessionState::Expired,
            SessionState::Left,
        );
        for (before, end, expected) in [
            (None, SessionEnd::Left, left),
            (Some(gone), SessionEnd::Left, left),
            (None, SessionEnd::Expired, gone),
            (Some(left), SessionEnd::Expired, gone),
            (None, SessionEnd::AsBefore, gone),
            (Some(gone), SessionEnd::AsBefore, gone),
            // The other session was silent.
            (Some(live), SessionEnd::AsBefore, gone),
            (Some(left), SessionEnd::AsBefore, left),
        ] {
            let mut session = after(before);
            let last = session.leave(end, 2, 21 * SECOND, 0).unwrap();
            assert_eq!(session.leave(end, 2, 21 * SECOND, 0), None, "in flight");
            let last = record(last);
            assert_eq!(last.state, expected, "{before:?} {end:?}");
            session.finish_write(true, 21 * SECOND);
            let event = session.observe(Some(&last), 3, 21 * SECOND);
            assert_eq!(event, Some(MemberEvent::Left));
            assert_eq!(session.guard_until(), None);
        }
    }

    #[test]
    fn a_session_that_another_node_ended_counts_as_lost_and_not_as_left() {
        let mut session = after(Some(SessionState::Left));
        let renewal = record(session.due_write(2, 22 * SECOND, 0).unwrap());
        session.finish_write(true, 22 * SECOND);
        session.observe(Some(&renewal), 3, 22 * SECOND);
        // NATS does not store the end of the session.
        session
            .leave(SessionEnd::Expired, 3, 23 * SECOND, 0)
            .unwrap();
        session.finish_write(false, 25 * SECOND);
        let ended = NodeRecord {
            state: SessionState::Expired,
            ..renewal
        };
        let event = session.observe(Some(&ended), 4, 40 * SECOND);
        assert_eq!(event, Some(MemberEvent::SessionLost));
        let again = session.leave(SessionEnd::Expired, 4, 40 * SECOND, 0);
        assert_eq!(again, None, "it is not a member");
    }

    #[test]
    fn an_end_that_was_stored_without_an_answer_takes_effect() {
        let mut session = after(None);
        let leave = |session: &mut Session| {
            let last = session.leave(SessionEnd::Expired, 2, 21 * SECOND, 0);
            session.finish_write(false, 21 * SECOND);
            record(last.unwrap())
        };
        let first = leave(&mut session);
        leave(&mut session);
        let event = session.observe(Some(&first), 3, 22 * SECOND);
        assert_eq!(event, Some(MemberEvent::Left));
    }

    #[test]
    fn a_silent_session_of_the_same_name_is_replaced_and_a_renewed_one_is_not() {
        let rival = other(SessionState::Live);
        let mut silent = session();
        silent.observe(Some(&rival), 5, Duration::ZERO);
        assert_eq!(silent.due_write(5, 12 * SECOND, 0), None);
        assert_eq!(
            silent
                .due_write(5, 13 * SECOND, 0)
                .map(|write| write.expected),
            Some(5)
        );
        let mut renewed = session();
        renewed.observe(Some(&rival), 5, Duration::ZERO);
        let change = renewed.observe(Some(&rival), 6, 3 * SECOND);
        assert_eq!(change, Some(MemberEvent::NameInUse));
        assert_eq!(renewed.due_write(6, 13 * SECOND, 0), None);
    }
}
