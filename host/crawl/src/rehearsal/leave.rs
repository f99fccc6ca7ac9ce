//! What stands before a request.

use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::robots::{Reason, Verdict};
use opilio_frontier::{Candidate, Directive, Issue, Outcome, UNTIL_CHANGED};
use opilio_profile::RobotsPolicy;
use opilio_sandbox::{Candidates, Stage};
use opilio_uri::{Hop, Uri};

use super::{Asked, Leave, Rehearsal};
use opilio_stacks::Staged;
use opilio_visit::scope;
use opilio_visit::standing;
use opilio_visit::status;

impl Rehearsal {
    /// What stands before a request: quotas, robots.txt and pre-fetch filters, which see no address. Calls plugins: on a thread of
    /// [`Rehearsal::on_a_thread`].
    ///
    /// # Errors
    /// Where the store fails.
    pub fn leave(
        &mut self,
        issue: &Issue,
        now: Timestamp,
    ) -> Result<Leave, opilio_frontier::Error> {
        if issue.visit_after.is_some() {
            self.consider(issue, now)?;
            return Ok(Leave::Settled);
        }
        let (settings, before) = self.stacks_for(issue, None, now);
        if let Some(over) = &issue.over_quota {
            let reason = format!("quota:{}:{}", over.kind.name(), over.limit);
            return self.disregard(issue, status::QUOTA, reason, None, now);
        }
        if let Some(robots) = issue.uri.robots_txt()
            && robots != issue.uri
        {
            let known = self.robots.get(robots.as_str());
            let known = known.filter(|(_, until)| *until > now);
            let Some((rules, until)) = known else {
                let prerequisite = Self::prerequisite(issue, robots);
                let outcome = Outcome::Deferred {
                    prerequisites: vec![prerequisite],
                };
                self.frontier.finished(issue.ticket, outcome, now)?;
                return Ok(Leave::Settled);
            };
            let is_heeded = !matches!(
                settings.robots.policy,
                RobotsPolicy::Ignore | RobotsPolicy::Audit
            );
            let agent = self.profile.user_agent.as_str();
            let verdict = rules.verdict(agent, issue.uri.path_and_query());
            if is_heeded && let Verdict::Refused(Reason::Unreachable(_)) = verdict {
                let outcome = Outcome::Failed {
                    status: status::ROBOTS_FAILED,
                    transfer: None,
                };
                self.frontier.finished(issue.ticket, outcome, now)?;
                return Ok(Leave::Settled);
            }
            if is_heeded && let Verdict::Refused(reason) = verdict {
                let why = format!("robotExcluded: {reason}");
                let good_for = Duration::try_from(*until - now).ok();
                return self.disregard(issue, status::ROBOTS, why, good_for, now);
            }
        }
        if let Some((status, reason)) = self.pre_fetch(issue, &before.pre_fetch) {
            // A fault may be gone at any time.
            let wait = (status != status::RUNTIME).then_some(UNTIL_CHANGED);
            return self.disregard(issue, status, reason, wait, now);
        }
        let record = &issue.record;
        let stacks = self.stacks_for(issue, Some(&record.media_type), now).1;
        let is_conditional = settings.fetch.conditional
            && record.archived.is_some()
            && record.extractor == Some(stacks.extract_hash);
        let validators = &record.validators;
        Ok(Leave::Ask(Asked {
            if_none_match: validators.etag.clone().filter(|_| is_conditional),
            if_modified_since: validators.last_modified.clone().filter(|_| is_conditional),
        }))
    }

    /// Status and reason, where pre-fetch filters hold something against a visit.
    fn pre_fetch(&mut self, issue: &Issue, filters: &[Staged]) -> Option<(i32, String)> {
        let is_prerequisite = issue.record.hop_path.last() == Some(Hop::Prerequisite);
        if filters.is_empty() || is_prerequisite {
            return None;
        }
        let candidate = standing::candidate(&issue.uri, &issue.record);
        let candidates = Candidates::new(vec![candidate]);
        let judged = scope::judge(filters, &Stage::PreFetch, &candidates, true);
        self.note(judged.failures);
        let decision = judged.decisions.into_iter().next()?;
        let status = match decision.failed {
            true => status::RUNTIME,
            false => status::BLOCKED,
        };
        (!decision.accepted).then(|| (status, decision.because()))
    }

    fn disregard(
        &mut self,
        issue: &Issue,
        status: i32,
        reason: String,
        wait: Option<Duration>,
        now: Timestamp,
    ) -> Result<Leave, opilio_frontier::Error> {
        let outcome = Outcome::Disregarded {
            status,
            reason,
            wait,
            transfer: None,
        };
        self.frontier.finished(issue.ticket, outcome, now)?;
        Ok(Leave::Settled)
    }

    fn prerequisite(issue: &Issue, uri: Uri) -> Candidate {
        let record = &issue.record;
        let strategy = opilio_frontier::Strategy::Snapshot;
        Candidate {
            queue: issue.queue.clone(),
            via: Some(issue.uri.as_str().to_owned()),
            source: record.source.clone(),
            directive: Directive::Highest,
            force: true,
            ..Candidate::new(uri, record.hop_path.then(Hop::Prerequisite), strategy)
        }
    }
}
