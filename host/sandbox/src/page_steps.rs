//! A step of a page behaviour.

use std::sync::Arc;

use crate::describe::Callable;
use crate::fault::{Fault, Problem};
use crate::page::LoadedPage;
use crate::plugin::Plugin;
use crate::visit::Visit;
use crate::{Limits, StepPlan};

/// Actions of one step, and selectors that it may have counted, as the contract defines.
const LIST_MAX: usize = 100;

impl Plugin {
    /// Plans the next actions of a behaviour on a page. `memory` is that of its last step on this page, empty at the first.
    pub fn step(&self, page: &LoadedPage, visit: &Visit, memory: &[u8]) -> Result<StepPlan, Fault> {
        let uri = Arc::from(visit.candidate.uri.as_str());
        self.check_has(Callable::PageBehavior, &uri)?;
        let plan = self.call(uri, |exports, store, instance| {
            let plan = exports.step(store, &instance, page, visit, memory)?;
            bounded(plan, self.limits())
        })?;
        self.note(|statistics| {
            statistics.output("actions", plan.actions.len());
            statistics.output("finished", usize::from(plan.finished));
        });
        Ok(plan)
    }
}

/// Checks that the host can carry a plan out, and keep its memory.
fn bounded(plan: StepPlan, limits: &Limits) -> Result<StepPlan, Problem> {
    let lists = [
        ("actions", plan.actions.len()),
        ("selectors to count", plan.count.len()),
    ];
    for (what, number) in lists {
        if number > LIST_MAX {
            return Err(Problem::Excess(format!(
                "answered {number} {what}; {LIST_MAX} are allowed"
            )));
        }
    }
    let bytes = plan.memory.len();
    if bytes > limits.observer_memory_bytes {
        return Err(Problem::Excess(format!(
            "wants {bytes} bytes remembered; {} are allowed",
            limits.observer_memory_bytes
        )));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BehaviorAction;

    #[test]
    fn plans_that_the_host_cannot_carry_out_are_refused() {
        let limits = Limits {
            observer_memory_bytes: 2,
            ..Limits::default()
        };
        let plan = |actions: usize, selectors: usize, memory: usize| StepPlan {
            actions: vec![BehaviorAction::Screenshot; actions],
            count: vec!["a".to_owned(); selectors],
            memory: vec![0; memory],
            finished: false,
        };
        assert!(bounded(plan(100, 100, 2), &limits).is_ok());
        for (actions, selectors, memory) in [(101, 0, 0), (0, 101, 0), (0, 0, 3)] {
            let refused = bounded(plan(actions, selectors, memory), &limits);
            assert!(matches!(refused, Err(Problem::Excess(_))), "{refused:?}");
        }
    }
}
