//! The time of a document's next visit.

use std::sync::Arc;
use std::time::Duration;

use opilio_frontier::{Oscillation, Outcome, VisitUpdate};
use opilio_profile::{EffectiveSettings, Strategy};
use opilio_stacks::Stacks;

use crate::driver::{Driver, Lane, Step};
use crate::evaluation::evaluate;
use crate::pipeline::Pipeline;
use crate::plugin_view::{self, KnownUri, PluginMemory};
use crate::reading::Reading;
use crate::reconsider::Reconsideration;

/// The wait until the next visit.
pub(crate) struct ChosenWait {
    pub(crate) until_next: Duration,
    /// Time until the evaluators reconsider the wait, without a visit.
    pub(crate) until_reconsidered: Option<Duration>,
    /// State of oscillating answers, which the record keeps.
    pub(crate) oscillation: Option<Oscillation>,
    /// The evaluator that answered, by its name in the profile; `None` if the profile's own wait applies.
    pub(crate) by: Option<Arc<str>>,
}

/// The profile's rule for the wait until the next visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRule {
    /// The URI is not visited again.
    Never,
    /// The wait is always the same.
    Fixed(Duration),
    /// Wait evaluators decide.
    Evaluators,
}

impl Pipeline {
    /// Returns the rule that `settings` set for the URI.
    pub fn wait_rule(&self, settings: &EffectiveSettings) -> WaitRule {
        match settings.strategy {
            // A prerequisite is requested again when it has expired.
            _ if self.is_prerequisite() => WaitRule::Never,
            Strategy::Snapshot => WaitRule::Never,
            Strategy::Fixed => WaitRule::Fixed(settings.revisit.fixed_wait),
            Strategy::Revisit => WaitRule::Evaluators,
        }
    }
}

/// Decides the wait until the next visit. Under the strategy `revisit`, it is the first answer of an evaluator, within the limits
/// of the profile. Returns `None` if the URI is not visited again.
pub(crate) async fn wait<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    visit: &VisitUpdate,
    (settings, stacks): (&EffectiveSettings, Arc<Stacks>),
    reading: &mut Reading,
    memory: &PluginMemory,
) -> Result<Option<ChosenWait>, D::Error> {
    let record = &pipeline.issue.record;
    match pipeline.wait_rule(settings) {
        WaitRule::Never => return Ok(None),
        WaitRule::Fixed(until_next) => {
            return Ok(Some(ChosenWait {
                until_next,
                until_reconsidered: None,
                oscillation: record.oscillation,
                by: None,
            }));
        }
        WaitRule::Evaluators => {}
    }
    let known = KnownUri::of(&pipeline.issue);
    let mut view = plugin_view::after(known, pipeline.started, visit, memory);
    view.measures = driver.measures()?;
    let media_type = visit.media_type.clone();
    let document = reading.document.clone();
    // The guards' answers are not needed later.
    let guards = std::mem::take(&mut reading.guards);
    let evaluation = move || evaluate(&stacks.wait, &media_type, &view, &document, &guards);
    let answer = driver.run(Lane::Header, evaluation).await?;
    driver.failed(&answer.failures)?;
    let decision = answer.decide_wait(record, visit.state, &settings.revisit);
    driver.wait_answered(answer.wait.is_some(), &decision.corrections);
    answer.note_corrections(decision.corrections);
    driver.wait_decided(decision.until_next, true)?;
    Ok(Some(ChosenWait {
        until_next: decision.until_next,
        until_reconsidered: decision.until_reconsidered,
        oscillation: decision.oscillation,
        by: answer.answered_by().cloned(),
    }))
}

impl ChosenWait {
    /// Returns the annotations of a visit after which the URI waits.
    pub(crate) fn annotations(&self, pipeline: &Pipeline, visit: &VisitUpdate) -> Vec<String> {
        let record = &pipeline.issue.record;
        let new_version = visit.state.is_version();
        let versions = record.versions + u64::from(new_version);
        let (by, overdue) = (self.by.as_deref(), pipeline.issue.overdue);
        revisit_annotations(self.until_next, by, record.visits + 1, versions, overdue)
    }
}

/// The annotations of a revisit, as in the thesis on adaptive revisiting (§6.2; see the glossary): present wait, visits, versions,
/// and time by which the visit was overdue: `wt:45s0ms`, `3vis`, `1ver`, `ov:3ms`. The evaluator that answered follows the wait:
/// `wt-by:adaptive`.
fn revisit_annotations(
    wait: Duration,
    by: Option<&str>,
    visits: u64,
    versions: u64,
    overdue: Duration,
) -> Vec<String> {
    let mut annotations = vec![format!("wt:{}", format_as_heritrix(wait))];
    annotations.extend(by.map(|by| format!("wt-by:{by}")));
    annotations.push(format!("{visits}vis"));
    annotations.push(format!("{versions}ver"));
    annotations.push(format!("ov:{}", format_as_heritrix(overdue)));
    annotations
}

/// Calls the wait evaluators for a waiting URI, without a visit (a reconsideration). One of them had requested the call, because
/// prices and the site's figures change. The crawl sends and logs nothing, and kept values stay the same.
///
/// # Errors
/// Returns the errors of the driver.
pub async fn consider<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
) -> Result<Outcome, D::Error> {
    let issue = &pipeline.issue;
    let (settings, stacks) = pipeline.for_response(&issue.record.media_type);
    let unchanged = Outcome::Considered {
        wait: None,
        ask_again: None,
    };
    if settings.strategy != Strategy::Revisit {
        return Ok(unchanged);
    }
    driver.step(Step::Wait);
    let memory = memory(pipeline, driver)?;
    let reconsideration = Reconsideration::of(issue, pipeline.started, driver.measures()?, &memory);
    let answer = driver
        .run(Lane::Header, move || reconsideration.evaluate(&stacks.wait))
        .await?;
    driver.failed(&answer.failures)?;
    let considered = Reconsideration::judge(issue, pipeline.started, &answer, &settings.revisit);
    let Some(considered) = considered else {
        return Ok(unchanged);
    };
    driver.wait_decided(considered.in_all, false)?;
    Ok(considered.outcome())
}

/// Returns the values that plugins keep with the URI and its site, and the figures on the site.
///
/// # Errors
/// Returns the errors of the driver.
pub fn memory<D: Driver>(pipeline: &Pipeline, driver: &D) -> Result<PluginMemory, D::Error> {
    let site = driver.site_record(&pipeline.issue.uri)?;
    Ok(PluginMemory::new(&pipeline.issue.record.kept, &site))
}

/// Formats a duration as Heritrix does: the units from the largest that is not zero down to milliseconds, such as `1d12h0m0s0ms`.
pub fn format_as_heritrix(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let parts = [
        (milliseconds / 86_400_000, "d"),
        (milliseconds / 3_600_000 % 24, "h"),
        (milliseconds / 60_000 % 60, "m"),
        (milliseconds / 1_000 % 60, "s"),
        (milliseconds % 1_000, "ms"),
    ];
    let first = parts
        .iter()
        .position(|&(count, _)| count > 0)
        .unwrap_or(parts.len() - 1);
    parts[first..]
        .iter()
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_spelled(milliseconds: u64, expected: &str) {
        assert_eq!(
            format_as_heritrix(Duration::from_millis(milliseconds)),
            expected
        );
    }

    #[test]
    fn durations_are_spelled_as_in_the_thesis() {
        check_spelled(45_000, "45s0ms");
        check_spelled(3, "3ms");
        check_spelled(0, "0ms");
        check_spelled(86_400_000 + 12 * 3_600_000, "1d12h0m0s0ms");
    }

    #[test]
    fn revisits_have_the_annotations_of_the_thesis() {
        let (wait, overdue) = (Duration::from_secs(45), Duration::from_millis(3));
        let notes = revisit_annotations(wait, None, 3, 1, overdue);
        assert_eq!(notes.join(","), "wt:45s0ms,3vis,1ver,ov:3ms");
        let notes = revisit_annotations(wait, Some("adaptive"), 3, 1, overdue);
        assert_eq!(notes.join(","), "wt:45s0ms,wt-by:adaptive,3vis,1ver,ov:3ms");
    }
}
