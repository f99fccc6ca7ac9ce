//! Decisions about a capture, for its metadata record: which filter of the scope accepted the URI and why, and on whose
//! word the next visit is due; with the hashes of these plugins.

use opilio_archive::PluginInForce;

use super::Chain;
use super::waiting::Waits;
use crate::context::Halt;
use opilio_stacks::{Stacks, Staged};
use opilio_visit::found::Reading;
use opilio_visit::scope::Decision;

/// Fields of the metadata record, in order.
pub(super) type Fields = Vec<(&'static str, String)>;

impl Chain<'_> {
    /// The decisions about a capture whose content was judged and whose next visit is known, where there is one.
    pub(super) async fn decisions(
        &self,
        stacks: &Stacks,
        reading: &Reading,
        waits: Option<&Waits>,
    ) -> Result<Fields, Halt> {
        let mut fields = Fields::new();
        let mut deciders: Vec<&Staged> = Vec::new();
        if self.issue.record.seed {
            fields.push(("acceptedAs", "seed".to_owned()));
        } else if self.is_prerequisite() {
            fields.push(("acceptedAs", "prerequisite".to_owned()));
        } else if let Some(decision) = self.accepted_by().await?
            && let Some(by) = &decision.by
        {
            fields.push(("acceptedBy", words(by, &decision.reason)));
            deciders.extend(named(&self.stacks.scope, by));
        }
        if let Some(by) = &reading.compared_by {
            fields.push(("comparedBy", words(by, &reading.compared_because)));
            deciders.extend(named(&stacks.change, by));
        }
        if let Some(waits) = waits {
            fields.push(("waitMs", waits.until_next.as_millis().to_string()));
            if let Some(by) = &waits.by {
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

    /// The scope's decision on the URI, by the filters in force now; none where it does not accept the URI (tables may
    /// have changed since) or cannot be asked. The decision made when the URI was found is not kept: 8 bytes a record say
    /// which filters made it.
    async fn accepted_by(&self) -> Result<Option<Decision>, Halt> {
        let judged = self.judged_by_scope().await?;
        let decision = judged.decisions.into_iter().next();
        Ok(decision.filter(|decision| decision.accepted && !decision.failed))
    }
}

/// The plugin that stands in a stack under this name.
fn named<'s>(stack: &'s [Staged], name: &str) -> Option<&'s Staged> {
    stack.iter().find(|staged| *staged.name == *name)
}

fn words(name: &str, reason: &str) -> String {
    match reason {
        "" => name.to_owned(),
        reason => format!("{name} {reason}"),
    }
}
