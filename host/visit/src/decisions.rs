//! The decisions about a capture, for its metadata record: the scope filter that accepted the URI, the change evaluator and the
//! wait evaluator, with their reasons and the hashes of these plugins.

use std::sync::Arc;

use opilio_archive::PluginInForce;
use opilio_stacks::{Stacks, Staged};

use crate::admission::judged_by_scope;
use crate::capture::DecisionFields;
use crate::driver::Driver;
use crate::pipeline::Pipeline;
use crate::reading::Reading;
use crate::scope::ScopeDecision;
use crate::waits::ChosenWait;

/// Lists the decisions about a capture after the comparison of its content. `wait` is the wait until the next visit, if there is
/// one.
pub(crate) async fn decisions<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    stacks: &Stacks,
    reading: &Reading,
    wait: Option<&ChosenWait>,
) -> Result<DecisionFields, D::Error> {
    let mut fields = DecisionFields::new();
    let mut deciders: Vec<&Staged> = Vec::new();
    if pipeline.issue.record.seed {
        fields.push(("acceptedAs", "seed".to_owned()));
    } else if pipeline.is_prerequisite() {
        fields.push(("acceptedAs", "prerequisite".to_owned()));
    } else if let Some(decision) = accepted_by(pipeline, driver).await?
        && let Some(by) = &decision.by
    {
        fields.push(("acceptedBy", name_and_reason(by, &decision.reason)));
        deciders.extend(named(&pipeline.stacks.scope, by));
    }
    if let Some(by) = &reading.compared_by {
        fields.push(("comparedBy", name_and_reason(by, &reading.compared_because)));
        deciders.extend(named(&stacks.change, by));
    }
    if let Some(wait) = wait {
        fields.push(("waitMs", wait.until_next.as_millis().to_string()));
        if let Some(by) = &wait.by {
            fields.push(("waitBy", by.to_string()));
            deciders.extend(named(&stacks.wait, by));
        }
    }
    let mut hashes: Vec<String> = deciders
        .into_iter()
        .map(|decider| PluginInForce::from(decider).to_string())
        .collect();
    hashes.dedup();
    fields.extend(hashes.into_iter().map(|plugin| ("plugin", plugin)));
    Ok(fields)
}

/// Returns the scope's decision on the URI, by the current filters. Returns `None` if they do not accept the URI (tables may have
/// changed) or fail. The decision made at discovery is not stored. The record has only a hash (8 bytes) of the filters that made
/// it.
async fn accepted_by<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
) -> Result<Option<Arc<ScopeDecision>>, D::Error> {
    let (decision, _) = judged_by_scope(pipeline, driver).await?;
    Ok(decision.filter(|decision| decision.accepted && !decision.failed))
}

/// Returns the plugin with this name in a stack.
fn named<'s>(stack: &'s [Staged], name: &str) -> Option<&'s Staged> {
    stack.iter().find(|staged| *staged.name == *name)
}

fn name_and_reason(name: &str, reason: &str) -> String {
    match reason {
        "" => name.to_owned(),
        reason => format!("{name} {reason}"),
    }
}
