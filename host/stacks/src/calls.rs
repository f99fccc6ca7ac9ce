//! Calls of plugins, one method for each function of the contract. Every call passes the breaker and the recorder.

use jiff::Timestamp;
use opilio_sandbox::{
    Call, CallResult, Candidates, Comparison, Document, Extraction, Fault, Finished, LoadedPage,
    Observation, Plugin, Queue, Report, Ruling, Span, Stage, StepPlan, StripProblem, Visit, Wait,
};

use crate::Staged;
use crate::breaker::UnansweredCall;
use crate::recorder::{Question, Subject};

impl Staged {
    /// Asks an extractor for the links and fragments of documents.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn extract(&self, documents: Vec<Document>) -> Result<Vec<Extraction>, UnansweredCall> {
        let given = documents.clone();
        let subject = given
            .first()
            .map_or(Subject::None, |first| Subject::Uri(first.uri()));
        self.put(
            subject,
            |plugin| Call::extract(plugin, &given),
            |answers: &Vec<Extraction>| CallResult::extractions(answers),
            |plugin| plugin.extract(documents),
        )
    }

    /// Asks a filter about candidates at a stage.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn judge_candidates(
        &self,
        stage: &Stage,
        candidates: &Candidates,
    ) -> Result<Vec<Ruling>, UnansweredCall> {
        self.put(
            Subject::Candidates(candidates),
            |_| Call::judge_candidates(stage, candidates),
            |answers: &Vec<Ruling>| CallResult::rulings(answers),
            |plugin| plugin.judge_candidates(stage.clone(), candidates),
        )
    }

    /// Asks a filter about a document at a stage.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn judge_document(
        &self,
        stage: &Stage,
        document: &Document,
        visit: &Visit,
    ) -> Result<Ruling, UnansweredCall> {
        self.put(
            Subject::Uri(document.uri()),
            |plugin| Call::judge_document(plugin, stage, document, visit),
            CallResult::ruling,
            |plugin| plugin.judge_document(stage.clone(), document, visit),
        )
    }

    /// Asks a digest stripper which parts of a document do not count.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn strip(
        &self,
        document: &Document,
    ) -> Result<Result<Vec<Span>, StripProblem>, UnansweredCall> {
        self.put(
            Subject::Uri(document.uri()),
            |plugin| Call::strip(plugin, document),
            CallResult::stripped,
            |plugin| plugin.strip(document),
        )
    }

    /// Asks a change evaluator to compare a document with its last version.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn compare(
        &self,
        document: &Document,
        visit: &Visit,
        last: Option<&[u8]>,
    ) -> Result<Comparison, UnansweredCall> {
        self.put(
            Subject::Uri(document.uri()),
            |plugin| Call::compare(plugin, document, visit, last),
            CallResult::comparison,
            |plugin| plugin.compare(document, visit, last),
        )
    }

    /// Asks a wait evaluator when to visit again.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn evaluate(&self, visit: &Visit) -> Result<Option<Wait>, UnansweredCall> {
        self.put(
            Subject::Uri(&visit.candidate.uri),
            |plugin| Call::evaluate(plugin, visit),
            |wait: &Option<Wait>| CallResult::wait(*wait),
            |plugin| plugin.evaluate(visit),
        )
    }

    /// Asks a precedence plugin to rank candidates, found on a page or given as seeds.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn rank_candidates(
        &self,
        candidates: &Candidates,
        page: Option<&Document>,
    ) -> Result<Vec<Option<u8>>, UnansweredCall> {
        self.put(
            Subject::Candidates(candidates),
            |plugin| Call::rank_candidates(plugin, candidates, page),
            |ranks: &Vec<Option<u8>>| CallResult::ranks(ranks),
            |plugin| plugin.rank_candidates(candidates, page),
        )
    }

    /// Asks a precedence plugin to rank a queue.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn rank_queue(&self, queue: &Queue) -> Result<Option<u8>, UnansweredCall> {
        self.put(
            Subject::None,
            |_| Call::rank_queue(queue),
            |rank: &Option<u8>| CallResult::rank(*rank),
            |plugin| plugin.rank_queue(queue),
        )
    }

    /// Passes finished visits to an observer.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn observe(
        &self,
        memory: &[u8],
        events: &[Finished],
    ) -> Result<Observation, UnansweredCall> {
        self.put(
            Subject::None,
            |_| Call::observe(memory, events),
            CallResult::observation,
            |plugin| plugin.observe(memory, events),
        )
    }

    /// Asks an observer for its reports.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn report(&self, memory: &[u8], now: Timestamp) -> Result<Vec<Report>, UnansweredCall> {
        self.put(
            Subject::None,
            |_| Call::report(memory, now),
            |reports: &Vec<Report>| CallResult::reports(reports),
            |plugin| plugin.report(memory, now),
        )
    }

    /// Asks a page behaviour for its next actions on a page.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn step(
        &self,
        page: &LoadedPage,
        visit: &Visit,
        memory: &[u8],
    ) -> Result<StepPlan, UnansweredCall> {
        self.put(
            Subject::Uri(&visit.candidate.uri),
            |plugin| Call::step(plugin, page, visit, memory),
            CallResult::step_plan,
            |plugin| plugin.step(page, visit, memory),
        )
    }

    fn put<T>(
        &self,
        subject: Subject<'_>,
        call: impl Fn(&Plugin) -> Call,
        answer: impl FnOnce(&T) -> CallResult,
        make: impl FnOnce(&Plugin) -> Result<T, Fault>,
    ) -> Result<T, UnansweredCall> {
        self.call(|plugin| match &self.recorder {
            None => make(plugin),
            Some(recorder) => {
                let question = Question {
                    name: &self.name,
                    subject,
                    call,
                    answer,
                };
                recorder.call(plugin, question, make)
            }
        })
    }
}
