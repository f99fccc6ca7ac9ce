//! The driver of a simulated visit. It answers every question at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::Exchange;
use opilio_fetch::robots::Robots;
use opilio_frontier::{
    Candidate, ContentState, Disposition, FinishResult, Outcome, SiteRecord, Transfer, WarcLocation,
};
use opilio_stacks::breaker::Failure;
use opilio_uri::Uri;
use opilio_visit::budget::{EvaluatedWait, UriInQueue};
use opilio_visit::evaluation::WaitCorrection;
use opilio_visit::precedence::{RankChange, raise, rank_queue};
use opilio_visit::reading::{Reading, ReadingTask};
use opilio_visit::robots::answer_of;
use opilio_visit::{
    Addresses, CaptureForm, Driver, Lane, LogEntry, OutcomeKind, PendingCapture, Pipeline,
    RobotsAnswer, StoredCapture,
};

use super::{EndKind, SimulatedCrawl, SimulationError, State, VisitEnd};

/// One visit: the data for the answers to its questions.
pub(super) struct SimulatedVisit<'c> {
    crawl: &'c SimulatedCrawl,
    pipeline: Arc<Pipeline>,
    now: Timestamp,
    transfer: Transfer,
    pub(super) end: RefCell<VisitEnd>,
}

impl<'c> SimulatedVisit<'c> {
    pub(super) fn new(
        crawl: &'c SimulatedCrawl,
        pipeline: &Arc<Pipeline>,
        now: Timestamp,
        transfer: Transfer,
    ) -> Self {
        Self {
            crawl,
            pipeline: pipeline.clone(),
            now,
            transfer,
            end: RefCell::new(VisitEnd {
                state: ContentState::Unknown,
                body: false,
                archived: false,
                answered: false,
                corrections: Vec::new(),
                wait: None,
                kind: EndKind::Unfinished,
                entry: LogEntry::default(),
            }),
        }
    }
}

impl Driver for SimulatedVisit<'_> {
    type Error = SimulationError;
    type Reservation = ();

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn run<T: Send + 'static>(
        &self,
        _lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SimulationError> {
        Ok(work())
    }

    async fn read(&self, task: ReadingTask) -> Result<(Reading, ()), SimulationError> {
        let mut reading = task.run();
        reading.size = reading.size.map(|_| self.transfer.bytes);
        Ok((reading, ()))
    }

    fn failed(&self, failures: &[Failure]) -> Result<(), SimulationError> {
        let mut state = self.crawl.state();
        for Failure { fault, .. } in failures {
            state.faults += 1;
            let first = || format!("{}: {}", fault.plugin, fault.message);
            state.first_fault.get_or_insert_with(first);
        }
        Ok(())
    }

    fn site_record(&self, uri: &Uri) -> Result<SiteRecord, SimulationError> {
        let State {
            sites, frontier, ..
        } = &mut *self.crawl.state();
        Ok(match sites.entry(uri.surt_authority()) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => unknown.insert(frontier.site(uri)?).clone(),
        })
    }

    fn addresses(&self, _host: &str) -> Result<Addresses, SimulationError> {
        Ok(Addresses::NotNeeded)
    }

    fn robots(&self, uri: &Uri) -> Option<(Arc<Robots>, Duration)> {
        let state = self.crawl.state();
        let (robots, until) = state.robots.get(uri.robots_txt()?.as_str())?;
        let good_for = Duration::try_from(*until - self.pipeline.started).ok()?;
        (!good_for.is_zero()).then(|| (robots.clone(), good_for))
    }

    fn custom_robots(&self, text: &str) -> Arc<Robots> {
        let mut state = self.crawl.state();
        let parse = || Arc::new(Robots::parse(text.as_bytes()));
        let known = state.custom_robots.entry(text.to_owned());
        known.or_insert_with(parse).clone()
    }

    fn keep_robots(
        &self,
        uri: &Uri,
        (status, body): (i32, Vec<u8>),
        lifetime: Duration,
        from: Timestamp,
    ) -> Result<Arc<Robots>, SimulationError> {
        let robots = Arc::new(Robots::from_response(status, &body));
        let until = from + lifetime.min(robots.lifetime());
        let key = uri.as_str().to_owned();
        let mut state = self.crawl.state();
        state.robots.insert(key, (robots.clone(), until));
        Ok(robots)
    }

    async fn robots_answer(
        &self,
        exchange: &Arc<Exchange>,
    ) -> Result<RobotsAnswer, SimulationError> {
        let (status, body) = answer_of(exchange);
        Ok(RobotsAnswer::Received(status, body))
    }

    fn set_crawl_delay(&self, delay: Option<Duration>) -> Result<(), SimulationError> {
        let queue = &self.pipeline.issue.queue;
        let mut state = self.crawl.state();
        Ok(state.frontier.set_crawl_delay(queue, delay, self.now)?)
    }

    fn transfer(&self, _exchange: &Exchange) -> Transfer {
        self.transfer
    }

    async fn widen_scope(&self, _seed: &str, _target: &Uri) -> Result<(), SimulationError> {
        Ok(())
    }

    fn known_links(&self, links: &[&Candidate]) -> Result<Vec<bool>, SimulationError> {
        let links = links.iter().copied();
        Ok(self.crawl.state().frontier.changes_nothing(links)?)
    }

    fn wants_decisions(&self) -> bool {
        false
    }

    async fn store(
        &self,
        mut capture: PendingCapture<'_>,
        keep: CaptureForm,
    ) -> Result<StoredCapture, SimulationError> {
        capture.annotate(&self.pipeline, &keep);
        let at = WarcLocation {
            file: String::new(),
            offset: 0,
            record_id: String::new(),
            date: self.pipeline.started,
        };
        Ok(StoredCapture {
            at: (keep != CaptureForm::Nothing).then_some(at),
            keep,
            annotations: capture.annotations,
        })
    }

    fn measures(&self) -> Result<BTreeMap<String, f64>, SimulationError> {
        let State {
            budget, frontier, ..
        } = &mut *self.crawl.state();
        let place = UriInQueue::of(&self.pipeline.issue);
        Ok(budget.measures(frontier, place, self.pipeline.started)?)
    }

    fn wait_decided(&self, wait: Duration, is_visit: bool) -> Result<(), SimulationError> {
        let issue = &self.pipeline.issue;
        let State {
            budget, frontier, ..
        } = &mut *self.crawl.state();
        let answered = EvaluatedWait {
            now: self.now,
            wait,
            is_visit,
            pace: frontier.request_interval(&issue.queue, self.transfer.duration)?,
            queued: frontier.statistics().queued,
            budget: self.crawl.visits_a_day,
        };
        Ok(budget.answered(frontier, issue, answered)?)
    }

    fn wait_answered(&self, answered: bool, corrections: &[WaitCorrection]) {
        let mut end = self.end.borrow_mut();
        end.answered = answered;
        end.corrections = corrections.to_vec();
    }

    fn finish(&self, mut outcome: Outcome) -> Result<FinishResult, SimulationError> {
        let mut state = self.crawl.state();
        if let Outcome::Succeeded(success) = &mut outcome {
            let mut end = self.end.borrow_mut();
            end.state = success.visit.state;
            end.body = success.visit.size.is_some();
            end.archived = success.visit.digests.is_some();
            end.wait = success.wait;
            // The state in the store would never be read: it is in `sites`.
            let changes = std::mem::take(&mut success.kept_for_site);
            let site = self.pipeline.issue.uri.surt_authority();
            let known = state.sites.entry(site).or_default();
            changes
                .into_iter()
                .for_each(|change| known.kept.apply(change));
            known.figures.append(&mut success.site_figures);
        }
        let ticket = self.pipeline.issue.ticket;
        Ok(state.frontier.finished(ticket, outcome, self.now)?)
    }

    fn raise(&self, uri: &Uri, rank: u8) -> Result<(), SimulationError> {
        Ok(raise(
            &mut self.crawl.state().frontier,
            uri,
            rank,
            self.now,
        )?)
    }

    async fn rank_queues(
        &self,
        found: impl Iterator<Item = String>,
    ) -> Result<(), SimulationError> {
        let stack = &self.crawl.plugins.stacks.precedence;
        if stack.is_empty() {
            return Ok(());
        }
        let due = self
            .crawl
            .state()
            .ranks
            .due(&self.pipeline.issue.queue, found);
        for queue in due {
            let report = self.crawl.state().frontier.queue(&queue, self.now)?;
            let Some(report) = report else { continue };
            let (change, failures) = rank_queue(stack, &report, self.now);
            self.failed(&failures)?;
            if let RankChange::Set(rank) = change {
                let mut state = self.crawl.state();
                state.frontier.rank_queue(&queue, rank, self.now)?;
            }
        }
        Ok(())
    }

    fn keep_no_addresses(&self, _host: &str, _expires: Timestamp) -> Result<(), SimulationError> {
        Ok(())
    }

    async fn finished(
        &self,
        entry: LogEntry,
        kind: OutcomeKind,
        disposition: Disposition,
    ) -> Result<(), SimulationError> {
        let mut end = self.end.borrow_mut();
        end.entry = entry;
        end.kind = match kind {
            OutcomeKind::Succeeded if self.pipeline.is_robots() => EndKind::Robots,
            OutcomeKind::Succeeded => EndKind::Success,
            _ if opilio_visit::will_be_reissued(disposition) => EndKind::Unfinished,
            OutcomeKind::Unfinished | OutcomeKind::Failed => EndKind::Failed,
        };
        Ok(())
    }
}
