//! Which found URIs belong to the crawl: the scope stack, asked once for all outlinks of a page.
//!
//! The last ruling that is not `pass` decides; where all pass, the URI is out. The scope fails closed: a URI about
//! which a filter cannot be asked is not crawled, and a filter that keeps failing stops the crawl, since what it would
//! have let in cannot be known later.

use opilio_sandbox::{Candidate, Candidates, Fault, Stage, Verdict};

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

/// Candidates of one batch that a filter may fail on one by one before the rest is closed: each may cost its time limit.
const FAULTS_ALONE_MAX: usize = 8;

/// Decisions on a batch, and what went wrong on the way.
pub(crate) struct Judged {
    /// One for each candidate, in order.
    pub decisions: Vec<Decision>,
    /// Calls that failed.
    pub faults: Vec<Fault>,
    /// Some filter gave no answer at all, not even about single candidates.
    pub unanswered: bool,
}

/// Asks the stack about a batch. `accepts` is what holds where all pass: false at scope, true before a fetch.
pub(crate) fn judge(
    stack: &[Staged],
    stage: &Stage,
    candidates: &[Candidate],
    accepts: bool,
) -> Judged {
    // One batch for the whole stack, so that its columns are put together once.
    let candidates = Candidates::new(candidates.to_vec());
    let unasked = Decision {
        accepted: accepts,
        by: None,
        reason: String::new(),
    };
    let mut judged = Judged {
        decisions: vec![unasked; candidates.len()],
        faults: Vec::new(),
        unanswered: false,
    };
    for staged in stack {
        let handled: Vec<usize> = (0..candidates.len())
            .filter(|&place| {
                candidates
                    .get(place)
                    .is_some_and(|candidate| staged.plugin.handles_uri(&candidate.uri))
            })
            .collect();
        if handled.len() == candidates.len() {
            judged.ask(staged, stage, &handled, &candidates);
        } else if !handled.is_empty() {
            let some: Candidates = handled
                .iter()
                .filter_map(|&place| candidates.get(place).cloned())
                .collect();
            judged.ask(staged, stage, &handled, &some);
        }
    }
    judged
}

impl Judged {
    /// Asks one filter about `candidates`, which stand at `places`. Where it fails on all of them together, it is asked
    /// about each alone: one bad link must not cost a page all its links.
    fn ask(&mut self, staged: &Staged, stage: &Stage, places: &[usize], candidates: &Candidates) {
        let fault = match staged.plugin.judge_candidates(stage.clone(), candidates) {
            Ok(rulings) => {
                for (&place, ruling) in places.iter().zip(rulings) {
                    apply(
                        &mut self.decisions[place],
                        &staged.name,
                        &ruling.verdict,
                        ruling.reason,
                    );
                }
                return;
            }
            Err(fault) => fault,
        };
        let reason = format!("fault: {}", fault.message);
        self.faults.push(staged.named(fault));
        let mut answered = false;
        let mut failed = 0;
        for (&place, candidate) in places.iter().zip(candidates) {
            let decision = &mut self.decisions[place];
            if candidates.len() == 1 || failed >= FAULTS_ALONE_MAX {
                close(decision, &staged.name, &reason);
                continue;
            }
            match staged
                .plugin
                .judge_candidates(stage.clone(), &Candidates::new(vec![candidate.clone()]))
            {
                Ok(mut rulings) => {
                    answered = true;
                    if let Some(ruling) = rulings.pop() {
                        apply(decision, &staged.name, &ruling.verdict, ruling.reason);
                    }
                }
                Err(fault) => {
                    close(decision, &staged.name, &format!("fault: {}", fault.message));
                    self.faults.push(staged.named(fault));
                    failed += 1;
                }
            }
        }
        self.unanswered |= !answered;
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

/// Fails closed. A later filter may still accept: it has been asked and has answered.
fn close(decision: &mut Decision, name: &str, reason: &str) {
    *decision = Decision {
        accepted: false,
        by: Some(name.to_owned()),
        reason: reason.to_owned(),
    };
}
