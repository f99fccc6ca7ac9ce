//! Which found URIs belong to the crawl: the scope stack, asked once for all outlinks of a page.
//!
//! The last ruling that is not `pass` decides; where all pass, the URI is out. The scope fails closed: a URI about
//! which a filter cannot be asked is not crawled, and a filter that keeps failing stops the crawl, since what it would
//! have let in cannot be known later.

use opilio_sandbox::{Candidate, Fault, Stage, Verdict};

use crate::stacks::Staged;

/// What the scope says of one candidate.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// It is in.
    pub accepted: bool,
    /// The filter that decided; none where all passed.
    pub by: Option<String>,
    /// Its reason; may be empty.
    pub reason: String,
}

impl Decision {
    /// Who decided and why, as an annotation.
    pub(crate) fn because(&self) -> String {
        match &self.by {
            Some(by) if self.reason.is_empty() => by.clone(),
            Some(by) => format!("{by}:{}", self.reason),
            None => String::new(),
        }
    }
}

/// Decisions on a batch, and what went wrong on the way.
pub(crate) struct Judged {
    /// One for each candidate, in order.
    pub decisions: Vec<Decision>,
    /// Calls that failed.
    pub faults: Vec<Fault>,
}

/// Asks the stack about a batch. `accepts` is what holds where all pass: false at scope, true before a fetch.
pub(crate) fn judge(
    stack: &[Staged],
    stage: &Stage,
    candidates: &[Candidate],
    accepts: bool,
) -> Judged {
    let unasked = Decision {
        accepted: accepts,
        by: None,
        reason: String::new(),
    };
    let mut judged = Judged {
        decisions: vec![unasked; candidates.len()],
        faults: Vec::new(),
    };
    for staged in stack {
        match staged.plugin.judge_candidates(stage.clone(), candidates) {
            Ok(rulings) => {
                for (decision, ruling) in judged.decisions.iter_mut().zip(rulings) {
                    apply(decision, &staged.name, &ruling.verdict, ruling.reason);
                }
            }
            // One bad candidate must not cost the page all its links: ask about each alone.
            Err(_) if candidates.len() > 1 => {
                for (decision, candidate) in judged.decisions.iter_mut().zip(candidates) {
                    judge_alone(staged, stage, candidate, decision, &mut judged.faults);
                }
            }
            Err(fault) => close(
                judged.decisions.first_mut(),
                &staged.name,
                fault,
                &mut judged.faults,
            ),
        }
    }
    judged
}

fn judge_alone(
    staged: &Staged,
    stage: &Stage,
    candidate: &Candidate,
    decision: &mut Decision,
    faults: &mut Vec<Fault>,
) {
    match staged
        .plugin
        .judge_candidates(stage.clone(), std::slice::from_ref(candidate))
    {
        Ok(mut rulings) => {
            if let Some(ruling) = rulings.pop() {
                apply(decision, &staged.name, &ruling.verdict, ruling.reason);
            }
        }
        Err(fault) => close(Some(decision), &staged.name, fault, faults),
    }
}

fn apply(decision: &mut Decision, name: &str, verdict: &Verdict, reason: String) {
    let accepted = match verdict {
        Verdict::Accept => true,
        Verdict::Reject => false,
        _ => return,
    };
    *decision = Decision {
        accepted,
        by: Some(name.to_owned()),
        reason,
    };
}

/// A later filter may still accept: it has been asked and has answered.
fn close(decision: Option<&mut Decision>, name: &str, fault: Fault, faults: &mut Vec<Fault>) {
    if let Some(decision) = decision {
        *decision = Decision {
            accepted: false,
            by: Some(name.to_owned()),
            reason: format!("fault: {}", fault.message),
        };
    }
    faults.push(fault);
}
