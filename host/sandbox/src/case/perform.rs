//! Performs a recorded call.

use super::answer::CallResult;
use super::call::Call;
use super::document::DocumentFacts;
use super::finished::FinishedFacts;
use super::problem::{CallProblem, at};
use super::visit::{CandidateFacts, VisitFacts};
use crate::{Candidates, Document, Fault, Finished, Plugin, Visit};

/// Reason for which a call has no answer.
#[derive(Debug)]
pub(crate) enum Refused {
    Call(CallProblem),
    Fault(Box<Fault>),
}

impl From<CallProblem> for Refused {
    fn from(problem: CallProblem) -> Self {
        Self::Call(problem)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(Box::new(fault))
    }
}

impl Plugin {
    /// Performs a recorded call.
    pub(crate) fn perform(&self, call: &Call) -> Result<CallResult, Refused> {
        let own = self.instance();
        let candidates =
            |facts: &[CandidateFacts]| facts.iter().map(CandidateFacts::candidate).collect();
        Ok(match call {
            Call::Configure {} => CallResult::settings_faults(&[]),
            Call::Extract { documents } => {
                let documents = documents.iter().map(|facts| facts.document(own));
                CallResult::extractions(&self.extract(documents.collect::<Result<_, _>>()?)?)
            }
            Call::JudgeCandidates {
                stage,
                candidates: facts,
            } => {
                let candidates: Candidates = candidates(facts);
                CallResult::rulings(&self.judge_candidates((*stage).into(), &candidates)?)
            }
            Call::JudgeDocument {
                stage,
                document,
                visit,
            } => {
                let (document, visit) = document_and_visit(document, visit, own)?;
                CallResult::ruling(&self.judge_document((*stage).into(), &document, &visit)?)
            }
            Call::Strip { document } => {
                CallResult::stripped(&self.strip(&document.document(own)?)?)
            }
            Call::Compare {
                document,
                visit,
                last,
            } => {
                let (document, visit) = document_and_visit(document, visit, own)?;
                CallResult::comparison(&self.compare(&document, &visit, last.as_deref())?)
            }
            Call::Evaluate { visit } => CallResult::wait(self.evaluate(&visit.visit(own)?)?),
            Call::RankCandidates {
                candidates: facts,
                document,
            } => {
                let document = document.as_ref().map(|facts| facts.document(own));
                let candidates: Candidates = candidates(facts);
                CallResult::ranks(
                    &self.rank_candidates(&candidates, document.transpose()?.as_ref())?,
                )
            }
            Call::RankQueue { queue } => CallResult::rank(self.rank_queue(&queue.queue()?)?),
            Call::Observe { memory, events } => {
                let events: Vec<Finished> = events.iter().map(FinishedFacts::finished).collect();
                CallResult::observation(&self.observe(memory, &events)?)
            }
            Call::Report { memory, now } => CallResult::reports(&self.report(memory, at(*now)?)?),
            Call::Step {
                page,
                visit,
                memory,
            } => CallResult::step_plan(&self.step(&page.page(), &visit.visit(own)?, memory)?),
        })
    }
}

/// Makes a document and its visit, which share kept values and notes.
fn document_and_visit(
    document: &DocumentFacts,
    visit: &VisitFacts,
    own: &str,
) -> Result<(Document, Visit), CallProblem> {
    let document = document.document(own)?;
    let mut visit = visit.visit(own)?;
    visit.notes = document.notes().clone();
    if !document.kept().is_empty() {
        visit.kept = document.kept().clone();
    }
    Ok((document, visit))
}
