//! The profile's policy for plugin errors, single and repeated.
//!
//! Every call of a plugin goes through [`Staged::call`](crate::Staged::call), by way of `calls.rs`. A plugin that failed too
//! often among its last calls is left out for a while (its breaker is open), pauses the crawl, or ends it, as the profile sets.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use opilio_profile::{BreakerAction, BreakerSettings, OnFault, Stage};
use opilio_sandbox::Fault;

/// The breaker of one instance, shared by all its settings and stages.
#[derive(Debug)]
pub struct Breaker {
    rule: BreakerSettings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last calls, the newest last: true for an error.
    calls: VecDeque<bool>,
    faults: u32,
    /// Time until which the plugin is left out.
    open_until: Option<Instant>,
    /// `true` if it has ended the crawl.
    has_halted: bool,
    /// Number of times the plugin has failed too often.
    trips: u64,
}

/// The state of a breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BreakerState {
    /// Remaining time for which the plugin is left out.
    pub open_for: Option<Duration>,
    /// Number of times the plugin has failed too often, in this process.
    pub trips: u64,
}

/// The profile's policy for errors of a plugin at its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPolicy {
    /// The substitute for a filter's missing answer: true for accept.
    pub stands_for: Option<bool>,
    /// `true` if each error pauses the crawl.
    pub pauses: bool,
    /// The action after too many errors.
    pub then: BreakerAction,
}

/// A call that failed, and its consequence.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The error, under the name that the profile gives the plugin.
    pub fault: Fault,
    /// The consequence that the profile sets.
    pub consequence: Option<Consequence>,
}

/// The consequence of an error for the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The plugin is left out for this long.
    LeftOut(Duration),
    /// The crawl pauses.
    Pause {
        /// `true` if it pauses for each error, rather than for too many.
        each: bool,
    },
    /// The crawl ends.
    Halt,
}

/// A call without an answer.
#[derive(Debug)]
pub struct UnansweredCall {
    /// The failed call; `None` if the plugin was not called because its breaker is open.
    failure: Option<Box<Failure>>,
    stands_for: Option<bool>,
}

impl FaultPolicy {
    /// Returns the policy for a plugin at a stage.
    pub fn at(stage: Stage, on_fault: Option<OnFault>, rule: &BreakerSettings) -> FaultPolicy {
        let default = OnFault::default_at(stage);
        let pauses = on_fault == Some(OnFault::Pause);
        let stands_for = match on_fault.filter(|_| !pauses).unwrap_or(default) {
            OnFault::Reject => Some(false),
            OnFault::Accept => Some(true),
            OnFault::Skip | OnFault::Pause => None,
        };
        FaultPolicy {
            stands_for,
            pauses,
            then: rule.action_at(stage),
        }
    }

    /// Returns the policy for the guard of a plugin at a stage. Without a setting, an error of the guard has no substitute
    /// answer: it counts as if the plugin itself could not be asked.
    pub fn of_guard(
        stage: Stage,
        on_fault: Option<OnFault>,
        rule: &BreakerSettings,
    ) -> FaultPolicy {
        FaultPolicy {
            stands_for: match on_fault {
                Some(OnFault::Accept) => Some(true),
                Some(OnFault::Reject) => Some(false),
                Some(OnFault::Skip | OnFault::Pause) | None => None,
            },
            pauses: on_fault == Some(OnFault::Pause),
            then: rule.action_at(stage),
        }
    }
}

impl Breaker {
    /// Creates a breaker that has seen no calls.
    pub fn new(rule: BreakerSettings) -> Breaker {
        Breaker {
            rule,
            state: Mutex::default(),
        }
    }

    /// Returns its state.
    pub fn state(&self) -> BreakerState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        BreakerState {
            open_for: state
                .open_until
                .filter(|until| *until > now)
                .map(|until| until - now),
            trips: state.trips,
        }
    }

    /// Makes a call of the plugin, unless the breaker is open. `policy` is that of its stage.
    pub(crate) fn call<T>(
        &self,
        policy: FaultPolicy,
        call: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, UnansweredCall> {
        let stands_for = policy.stands_for;
        if self.state().open_for.is_some() {
            return Err(UnansweredCall {
                failure: None,
                stands_for,
            });
        }
        let each = Some(Consequence::Pause { each: true });
        let answer = call();
        let consequence = self.count(answer.is_err(), policy.then);
        answer.map_err(|fault| UnansweredCall {
            failure: Some(Box::new(Failure {
                fault,
                consequence: consequence.or(each.filter(|_| policy.pauses)),
            })),
            stands_for,
        })
    }

    /// Counts a call. If the plugin has now failed too often, returns the consequence and leaves the plugin out if set so.
    fn count(&self, is_fault: bool, then: BreakerAction) -> Option<Consequence> {
        let max = self.rule.faults?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Calls that were in flight, or that belong to the same batch, carry no new information.
        if state.has_halted || state.open_until.is_some_and(|until| until > Instant::now()) {
            return None;
        }
        state.calls.push_back(is_fault);
        state.faults += u32::from(is_fault);
        if state.calls.len() > self.rule.calls as usize && state.calls.pop_front() == Some(true) {
            state.faults -= 1;
        }
        if !is_fault || state.faults < max {
            return None;
        }
        // Counting starts afresh: only calls after the pause count.
        state.calls.clear();
        state.faults = 0;
        state.trips += 1;
        Some(match then {
            BreakerAction::Skip => {
                state.open_until = Some(Instant::now() + self.rule.skip_for);
                Consequence::LeftOut(self.rule.skip_for)
            }
            BreakerAction::Pause => Consequence::Pause { each: false },
            BreakerAction::Halt => {
                state.has_halted = true;
                Consequence::Halt
            }
        })
    }
}

impl UnansweredCall {
    /// Returns the substitute for a filter's missing answer: `true` for accept; `None` if the filter does not decide.
    pub fn stands_for(&self) -> Option<bool> {
        self.stands_for
    }

    /// Returns `true` if the plugin was called, and failed.
    pub fn was_called(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the reason for the missing answer.
    pub fn reason(&self) -> String {
        match &self.failure {
            Some(failure) => format!("plugin error: {}", failure.fault.message),
            None => "left out after too many errors".to_owned(),
        }
    }

    /// Returns the failed call, if there was one.
    pub fn failure(self) -> Option<Failure> {
        self.failure.map(|failure| *failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(faults: Option<u32>, calls: u32, skip_for: Duration) -> Breaker {
        Breaker::new(BreakerSettings {
            faults,
            calls,
            then: None,
            skip_for,
        })
    }

    /// Checks calls given as text, `x` for an error, against the index of the call that trips the breaker.
    #[track_caller]
    fn check(faults: Option<u32>, of: u32, calls: &str, expected: Option<usize>) {
        let breaker = breaker(faults, of, Duration::from_secs(1));
        let tripped = calls
            .chars()
            .position(|call| breaker.count(call == 'x', BreakerAction::Pause).is_some());
        assert_eq!(tripped, expected, "{calls}");
    }

    #[test]
    fn too_many_errors_among_the_last_calls_trip_the_breaker() {
        check(Some(3), 5, "xx.x", Some(3));
        check(Some(3), 5, "xx....x.x", None);
        check(Some(3), 5, "x....xx..x", Some(9));
        check(Some(1), 1, "..x", Some(2));
        check(Some(3), 3, "xx.xx.xx.", None);
        check(None, 5, "xxxxxxxx", None);
    }

    #[test]
    fn an_open_breaker_does_not_trip_again() {
        let skip_for = Duration::from_secs(3600);
        for (then, consequence) in [
            (BreakerAction::Skip, Consequence::LeftOut(skip_for)),
            (BreakerAction::Halt, Consequence::Halt),
        ] {
            let breaker = breaker(Some(1), 10, skip_for);
            assert_eq!(breaker.count(true, then), Some(consequence));
            assert_eq!(breaker.count(true, then), None);
            assert_eq!(breaker.state().trips, 1);
        }
    }

    #[test]
    fn a_plugin_is_called_again_after_its_pause_and_errors_are_counted_from_zero() {
        let breaker = breaker(Some(2), 10, Duration::from_millis(1));
        assert_eq!(breaker.state(), BreakerState::default());
        breaker.count(true, BreakerAction::Skip);
        let left_out = Consequence::LeftOut(Duration::from_millis(1));
        assert_eq!(breaker.count(true, BreakerAction::Skip), Some(left_out));
        while breaker.state().open_for.is_some() {
            std::thread::yield_now();
        }
        assert_eq!(breaker.count(true, BreakerAction::Skip), None);
        assert_eq!(breaker.count(true, BreakerAction::Skip), Some(left_out));
        assert_eq!(breaker.state().trips, 2);
    }

    #[test]
    fn a_failed_scope_filter_rejects_and_other_filters_do_not_decide() {
        #[track_caller]
        fn check(stage: Stage, on_fault: Option<OnFault>, stands_for: Option<bool>) {
            let rule = breaker(Some(1), 1, Duration::from_secs(1)).rule;
            let policy = FaultPolicy::at(stage, on_fault, &rule);
            assert_eq!(policy.stands_for, stands_for, "{stage} {on_fault:?}");
        }
        check(Stage::Scope, None, Some(false));
        check(Stage::Scope, Some(OnFault::Pause), Some(false));
        check(Stage::Scope, Some(OnFault::Skip), None);
        check(Stage::Archive, None, None);
        check(Stage::Archive, Some(OnFault::Reject), Some(false));
        check(Stage::PostFetch, Some(OnFault::Accept), Some(true));
    }
}
