//! What becomes of a plugin that fails, once or again and again: the profile's fault policy, at work.
//!
//! Every call of a plugin goes through [`Staged::ask`], by way of `ask.rs`. A plugin that has failed too often among its
//! last calls is left out for a while (its breaker is open), pauses the crawl, or ends it, as the profile says.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use opilio_profile::{Breaker as Rule, BreakerAction, OnFault, Stage};
use opilio_sandbox::{Fault, Plugin};

use crate::Staged;

/// The breaker of one instance, whatever its settings and wherever it stands.
#[derive(Debug)]
pub struct Breaker {
    rule: Rule,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Its last calls, the newest last: true for a fault.
    calls: VecDeque<bool>,
    faults: u32,
    /// It is left out until then.
    open_until: Option<Instant>,
    /// It has ended the crawl.
    has_halted: bool,
    /// Times it has failed too often.
    trips: u64,
}

/// How a breaker stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BreakerState {
    /// The plugin is left out for so long still.
    pub open_for: Option<Duration>,
    /// Times the plugin has failed too often, in this process.
    pub trips: u64,
}

/// What the profile wants where a plugin fails at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPolicy {
    /// What a filter's missing answer stands for: true for accept.
    pub stands_for: Option<bool>,
    /// Each fault pauses the crawl.
    pub pauses: bool,
    /// What is done about too many.
    pub then: BreakerAction,
}

/// A call that failed, and what follows from it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What happened, under the name that the profile gives the plugin.
    pub fault: Fault,
    /// What the profile wants now.
    pub consequence: Option<Consequence>,
}

/// What the profile wants of the crawl after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The plugin is left out for this long.
    LeftOut(Duration),
    /// The crawl pauses.
    Pause {
        /// As it does for each fault, rather than for too many.
        each: bool,
    },
    /// The crawl ends.
    Halt,
}

/// A plugin gave no answer.
#[derive(Debug)]
pub struct Unanswered {
    /// None: it was not called, its breaker is open.
    failure: Option<Box<Failure>>,
    stands_for: Option<bool>,
}

impl FaultPolicy {
    /// What holds for a plugin at a stage.
    pub fn at(stage: Stage, on_fault: Option<OnFault>, rule: &Rule) -> FaultPolicy {
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

    /// What holds for the guard of a plugin at a stage. Where nothing is said of its faults, they stand for nothing: it is
    /// as if the plugin itself could not be asked.
    pub fn of_guard(stage: Stage, on_fault: Option<OnFault>, rule: &Rule) -> FaultPolicy {
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
    /// A breaker that has seen no call yet.
    pub fn new(rule: Rule) -> Breaker {
        Breaker {
            rule,
            state: Mutex::default(),
        }
    }

    /// How it stands.
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

    /// Counts a call. Whether the plugin has now failed too often: then it is left out, where that is what is wanted.
    fn count(&self, is_fault: bool, then: BreakerAction) -> Option<Consequence> {
        let max = self.rule.faults?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Calls that were on their way, or that belong to the same batch, say nothing new.
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
        // It begins anew: what it does when it is asked again is what counts then.
        state.calls.clear();
        state.faults = 0;
        state.trips += 1;
        Some(match then {
            BreakerAction::Skip => {
                state.open_until = Some(Instant::now() + self.rule.rest);
                Consequence::LeftOut(self.rule.rest)
            }
            BreakerAction::Pause => Consequence::Pause { each: false },
            BreakerAction::Halt => {
                state.has_halted = true;
                Consequence::Halt
            }
        })
    }
}

impl Staged {
    /// Calls the plugin, unless its breaker is open.
    pub fn ask<T>(&self, call: impl FnOnce(&Plugin) -> Result<T, Fault>) -> Result<T, Unanswered> {
        let stands_for = self.policy.stands_for;
        if self.breaker.state().open_for.is_some() {
            return Err(Unanswered {
                failure: None,
                stands_for,
            });
        }
        let each = Some(Consequence::Pause { each: true });
        let answer = tracing::info_span!("plugin", opilio.plugin = &*self.name)
            .in_scope(|| call(&self.plugin));
        let consequence = self.breaker.count(answer.is_err(), self.policy.then);
        answer.map_err(|fault| Unanswered {
            failure: Some(Box::new(Failure {
                fault: self.named(fault),
                consequence: consequence.or(each.filter(|_| self.policy.pauses)),
            })),
            stands_for,
        })
    }
}

impl Unanswered {
    /// What a filter's missing answer stands for: true for accept; none where it has no say.
    pub fn stands_for(&self) -> Option<bool> {
        self.stands_for
    }

    /// It was called, and failed.
    pub fn was_called(&self) -> bool {
        self.failure.is_some()
    }

    /// Why there is no answer.
    pub fn reason(&self) -> String {
        match &self.failure {
            Some(failure) => format!("fault: {}", failure.fault.message),
            None => "left out after too many faults".to_owned(),
        }
    }

    /// The call that failed, if there was one.
    pub fn failure(self) -> Option<Failure> {
        self.failure.map(|failure| *failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(faults: Option<u32>, calls: u32, rest: Duration) -> Breaker {
        Breaker::new(Rule {
            faults,
            calls,
            then: None,
            rest,
        })
    }

    /// Calls as a text, `x` for a fault; the place of the call that was one too many.
    #[track_caller]
    fn check(faults: Option<u32>, of: u32, calls: &str, expected: Option<usize>) {
        let breaker = breaker(faults, of, Duration::from_secs(1));
        let tripped = calls
            .chars()
            .position(|call| breaker.count(call == 'x', BreakerAction::Pause).is_some());
        assert_eq!(tripped, expected, "{calls}");
    }

    #[test]
    fn too_many_faults_among_the_last_calls_are_too_many() {
        check(Some(3), 5, "xx.x", Some(3));
        check(Some(3), 5, "xx....x.x", None);
        check(Some(3), 5, "x....xx..x", Some(9));
        check(Some(1), 1, "..x", Some(2));
        check(Some(3), 3, "xx.xx.xx.", None);
        check(None, 5, "xxxxxxxx", None);
    }

    #[test]
    fn what_has_failed_too_often_does_so_once_until_it_has_rested() {
        let rest = Duration::from_secs(3600);
        for (then, consequence) in [
            (BreakerAction::Skip, Consequence::LeftOut(rest)),
            (BreakerAction::Halt, Consequence::Halt),
        ] {
            let breaker = breaker(Some(1), 10, rest);
            assert_eq!(breaker.count(true, then), Some(consequence));
            assert_eq!(breaker.count(true, then), None);
            assert_eq!(breaker.state().trips, 1);
        }
    }

    #[test]
    fn what_is_left_out_is_asked_again_after_its_rest_and_judged_anew() {
        let breaker = breaker(Some(2), 10, Duration::from_millis(1));
        assert_eq!(breaker.state(), BreakerState::default());
        breaker.count(true, BreakerAction::Skip);
        let rest = Consequence::LeftOut(Duration::from_millis(1));
        assert_eq!(breaker.count(true, BreakerAction::Skip), Some(rest));
        while breaker.state().open_for.is_some() {
            std::thread::yield_now();
        }
        assert_eq!(breaker.count(true, BreakerAction::Skip), None);
        assert_eq!(breaker.count(true, BreakerAction::Skip), Some(rest));
        assert_eq!(breaker.state().trips, 2);
    }

    #[test]
    fn the_scope_fails_closed_and_others_have_no_say() {
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
