//! A crawl without sockets, clock and archive: the frontier, the profile and the plugins of a real one, told what servers
//! answer and what time it is. For simulations, which live through a year in minutes.
//!
//! What a visit goes through is what [`crate::chain`] has it go through, by the same functions: robots.txt, pre-fetch
//! filters, conditional requests, mid-fetch filters, decoding, strippers, change evaluators, extractors, scope, precedence,
//! archive filters, signals, what plugins keep, the neighbourhood, wait evaluators, and one batch for the frontier. Left out
//! are DNS, which costs a server nothing, and cookies, logins and records, which nobody judges by.

mod leave;
mod play;
mod response;
mod said;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_fetch::ResponseHead;
use opilio_fetch::robots::{ROBOTS_BYTES_MAX, Robots};
use opilio_frontier::{
    Candidate, ContentState, Directive, Frontier, Issue, KeptValues, Next, Outcome, Refused,
    Success, Transfer, UNTIL_CHANGED,
};
use opilio_profile::{Profile, RobotsPolicy, Settings, Strategy};
use opilio_sandbox::{Candidates, Engine, EngineConfig, Stage, Verdict, Visit as Turn};
use opilio_uri::{Hop, HopPath, Uri};

use crate::crawl::{self, CrawlError};
use crate::tables::TableKeeper;
use opilio_stacks::Stacks;
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;
use opilio_visit::around::{Earlier, Shared};
use opilio_visit::budget::{Answered, Budget, Place};
use opilio_visit::consideration::Consideration;
use opilio_visit::found;
pub use opilio_visit::found::OddWait;
use opilio_visit::policy;
use opilio_visit::precedence;
use opilio_visit::scope;
use opilio_visit::standing::{self, Known, Memory};
use opilio_visit::status;
use opilio_visit::synthetic::exchange;
pub use play::{Answer, Asked, Came, Ended, Leave};
use response::{Response, is_archived_whole, remembered};

/// Seeds given to the frontier at once.
const SEEDS_BATCH: usize = 10_000;

/// A crawl that is rehearsed.
pub struct Rehearsal {
    profile: Arc<Profile>,
    frontier: Frontier,
    budget: Budget,
    /// What prices share out.
    visits_a_day: Option<u64>,
    stacks: Arc<Stacks>,
    robots: HashMap<String, (Arc<Robots>, Timestamp)>,
    /// What is kept for sites, by authority. Many visits to few sites in no time leave so many versions of these values in the
    /// store's memory that reading them there would take longest of all.
    sites: HashMap<String, KeptValues>,
    clock: Arc<AtomicI64>,
    faults: u64,
    first_fault: Option<String>,
    /// Plugins run with these for as long as there is a rehearsal.
    _tables: TableKeeper,
    _engine: Engine,
}

impl Rehearsal {
    /// Loads the profile's plugins and makes an empty frontier in `dir`. Seeds are those that [`Rehearsal::seed`] is given;
    /// `prefixes` is what the scope takes for theirs, SURT prefixes.
    ///
    /// # Errors
    /// [`CrawlError::Profile`] with every fault of the plugins at its place; where the store cannot be made.
    pub fn open(
        profile: Profile,
        dir: &Path,
        component_cache: Option<PathBuf>,
        prefixes: &[String],
        now: Timestamp,
    ) -> Result<Self, CrawlError> {
        let config = EngineConfig::default();
        let engine = Engine::new(EngineConfig {
            cache_dir: component_cache,
            remember: true,
            log_sink: said::first_of_each_kind(config.log_sink.clone()),
            ..config
        })?;
        let (tables, plugins) =
            crawl::load(&engine, &profile, prefixes, &crawl::sources(dir), None)?;
        let profile = Arc::new(profile);
        let clock = Arc::new(AtomicI64::new(now.as_millisecond()));
        let hands = clock.clone();
        let config = policy::frontier_config_at(&profile, move || {
            Timestamp::from_millisecond(hands.load(Ordering::Relaxed)).unwrap_or_default()
        });
        let config = opilio_frontier::Config {
            // Nobody goes on with a rehearsal.
            survives: false,
            ..config
        };
        let frontier = Frontier::open(&dir.join("state"), config)?;
        let budget = Budget::open(&frontier, now)?;
        Ok(Self {
            visits_a_day: profile.settings().revisit.budget,
            budget,
            profile,
            frontier,
            stacks: plugins.stacks,
            robots: HashMap::new(),
            sites: HashMap::new(),
            clock,
            faults: 0,
            first_fault: None,
            _tables: tables,
            _engine: engine,
        })
    }

    /// There are so many visits a day, or fewer where `revisit.budget` says so: an operator who knows that his crawl may make
    /// no more would have written it there.
    pub fn allow(&mut self, visits_a_day: u64) {
        let wanted = self.visits_a_day.unwrap_or(u64::MAX);
        self.visits_a_day = Some(visits_a_day.min(wanted));
    }

    /// The profile in force.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The frontier, for questions.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Calls of plugins that failed, and what the first failed with.
    pub fn faults(&self) -> (u64, Option<&str>) {
        (self.faults, self.first_fault.as_deref())
    }

    /// Schedules seeds, each with its own URI as source.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn seed(&mut self, seeds: Vec<Uri>, now: Timestamp) -> Result<(), opilio_frontier::Error> {
        let mut seeds = seeds.into_iter().peekable();
        while seeds.peek().is_some() {
            let profile = &self.profile;
            let candidates = seeds.by_ref().take(SEEDS_BATCH).map(|uri| {
                let source = uri.as_str().to_owned();
                let candidate =
                    policy::candidate(profile, uri, HopPath::new(), None, Some(&source));
                Candidate {
                    seed: true,
                    directive: Directive::Medium,
                    ..candidate
                }
            });
            self.frontier.schedule(candidates.collect(), now)?;
        }
        Ok(())
    }

    /// [`Frontier::next`].
    ///
    /// # Errors
    /// Where the store fails.
    pub fn next(&mut self, now: Timestamp) -> Result<Next, opilio_frontier::Error> {
        self.clock.store(now.as_millisecond(), Ordering::Relaxed);
        self.frontier.next(now)
    }

    /// Takes in what a server answered to a request that was sent at `started`, and hands the URI back to the frontier.
    /// Calls plugins: on a thread of [`Rehearsal::on_a_thread`].
    ///
    /// # Errors
    /// Where the store fails.
    pub fn finish(
        &mut self,
        issue: &Issue,
        answer: Answer,
        started: Timestamp,
        ended: Timestamp,
    ) -> Result<Came, opilio_frontier::Error> {
        self.clock.store(ended.as_millisecond(), Ordering::Relaxed);
        let took = Duration::try_from(ended - started).unwrap_or_default();
        let Answer::Response {
            status,
            headers,
            content,
            size,
        } = answer
        else {
            return self.failed(issue, took, (started, ended));
        };
        let transfer = Transfer {
            duration: took,
            bytes: size,
        };
        let is_robots = issue.uri.robots_txt().as_ref() == Some(&issue.uri);
        let settings = self.settings(issue, None, started);
        let retry = &settings.retry;
        let is_wanted_again = retry.statuses.contains(&status) || is_robots && status >= 500;
        if is_wanted_again && issue.record.attempts < retry.max_retries {
            let after = headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
            let after = after.and_then(|(_, value)| value.parse().ok());
            let outcome = Outcome::Retry {
                status: status.into(),
                queue_after: match status == 429 || after.is_some() {
                    true => 1,
                    false => retry.queue_after,
                },
                after: after.map(Duration::from_secs),
                transfer: Some(transfer),
            };
            self.frontier.finished(issue.ticket, outcome, ended)?;
            return Ok(Came::nothing(Ended::Retry));
        }
        if is_robots {
            let text = &content[..content.len().min(ROBOTS_BYTES_MAX)];
            let rules = Robots::from_response(i32::from(status), text);
            let agent = self.profile.user_agent.as_str();
            let crawl_delay = match settings.robots.policy {
                RobotsPolicy::Ignore => None,
                _ => rules.crawl_delay(agent),
            };
            let queue = issue.queue.clone();
            self.frontier.set_crawl_delay(&queue, crawl_delay, ended)?;
            self.keep_robots(&issue.uri, rules, &settings, ended);
        }
        let head = ResponseHead {
            version: "HTTP/1.1".to_owned(),
            status,
            reason: String::new(),
            headers,
            length: 0,
        };
        let mut response = Response {
            exchange: exchange(head.clone(), &content, (started, took)),
            head,
            size,
            transfer,
            is_robots,
        };
        response.exchange.duration = took;
        self.settle(issue, response, started, ended)
    }

    /// No connection: tried again, as the profile has it, or given up.
    fn failed(
        &mut self,
        issue: &Issue,
        took: Duration,
        (started, ended): (Timestamp, Timestamp),
    ) -> Result<Came, opilio_frontier::Error> {
        let settings = self.settings(issue, None, started);
        let retry = &settings.retry;
        let status = status::CONNECT_FAILED;
        let transfer = Some(Transfer {
            duration: took,
            bytes: 0,
        });
        let (outcome, end) = if retry.has_error(status) && issue.record.attempts < retry.max_retries
        {
            let outcome = Outcome::Retry {
                status,
                queue_after: 1,
                after: None,
                transfer,
            };
            (outcome, Ended::Retry)
        } else {
            if issue.uri.robots_txt().as_ref() == Some(&issue.uri) {
                let rules = Robots::from_response(status, b"");
                self.keep_robots(&issue.uri, rules, &settings, ended);
            }
            (Outcome::Failed { status, transfer }, Ended::Nothing)
        };
        self.frontier.finished(issue.ticket, outcome, ended)?;
        Ok(Came::nothing(end))
    }

    fn keep_robots(&mut self, uri: &Uri, rules: Robots, settings: &Settings, now: Timestamp) {
        let until = now + settings.robots.expires.min(rules.lifetime());
        let key = uri.as_str().to_owned();
        self.robots.insert(key, (Arc::new(rules), until));
    }

    fn settle(
        &mut self,
        issue: &Issue,
        response: Response,
        started: Timestamp,
        ended: Timestamp,
    ) -> Result<Came, opilio_frontier::Error> {
        let record = &issue.record;
        let memory = self.memory(issue)?;
        let head = &response.head;
        let status = i32::from(head.status);
        let turn = standing::visit(issue, started, status, head.media_type(), &memory);
        let unchanged = match self.mid_fetch(issue, head, &turn, &memory) {
            Some(Verdict::Reject) => {
                let outcome = Outcome::Disregarded {
                    status: status::BLOCKED,
                    reason: "mid-fetch".to_owned(),
                    wait: Some(UNTIL_CHANGED),
                    transfer: Some(response.transfer),
                };
                self.frontier.finished(issue.ticket, outcome, ended)?;
                return Ok(Came::nothing(Ended::Nothing));
            }
            verdict => verdict.is_some(),
        };
        let bodyless = unchanged || head.status == 304 && record.archived.is_some();
        let media_type = head
            .media_type()
            .unwrap_or_else(|| record.media_type.clone());
        let (settings, stacks) = self.stacks_for(issue, Some(&media_type), started);
        let payload = response.exchange.payload_digest.0;
        let mut reading = found::Task {
            stacks: stacks.clone(),
            exchange: Arc::new(response.exchange),
            head: head.clone(),
            uri: issue.uri.as_str().to_owned(),
            base: issue.uri.as_str().to_owned(),
            visit: turn,
            last: record.archived.is_some().then_some(record.digests),
            last_fingerprint: record.fingerprint.clone(),
            last_extractor: record.extractor,
            bodyless,
            content_max: self.profile.limits.plugin_content.bytes(),
            links_max: self.profile.limits.outlinks,
            memory: memory.clone(),
        }
        .run();
        reading.size = reading.size.map(|_| response.size);
        self.note(std::mem::take(&mut reading.failures));
        if reading.rejected.is_some() || reading.retry.is_some() {
            let transfer = Some(response.transfer);
            let (outcome, end) = match reading.retry {
                Some(_) if record.attempts >= settings.retry.max_retries => (
                    Outcome::Failed {
                        status: status::TOO_MANY_RETRIES,
                        transfer,
                    },
                    Ended::Nothing,
                ),
                Some(wanted) => (
                    Outcome::Retry {
                        status: head.status.into(),
                        queue_after: settings.retry.queue_after,
                        after: Some(wanted.after),
                        transfer,
                    },
                    Ended::Retry,
                ),
                None => (
                    Outcome::Disregarded {
                        status: status::BLOCKED,
                        reason: reading.rejected.map_or_else(String::new, |it| it.because),
                        wait: Some(UNTIL_CHANGED),
                        transfer,
                    },
                    Ended::Nothing,
                ),
            };
            self.frontier.finished(issue.ticket, outcome, ended)?;
            return Ok(Came::nothing(end));
        }
        if !settings.revisit.signals {
            let links = reading.extracted.links.iter_mut();
            links.for_each(|link| link.modified = None);
        }
        let (outlinks, refused) = self.outlinks(issue, &reading, started);
        let same_bytes = bodyless || record.digests.payload == Some(payload);
        let is_whole = is_archived_whole(issue, &reading, same_bytes, &settings);
        let mut visit = remembered(issue, head, &reading, payload, is_whole);
        let earlier = Earlier::of(record);
        let shared = Shared::of(&issue.uri, record, &visit.media_type, Some(&visit));
        let around = memory.around.after(&shared, earlier, &visit, started);
        let is_prerequisite = record.hop_path.last() == Some(Hop::Prerequisite);
        let state = reading.state;
        let refresh_embeds = settings.revisit.refresh_embeds && state == ContentState::Changed;
        let (mut answered, mut odd, mut swings) = (false, Vec::new(), None);
        let (wait, ask_again) = match settings.strategy {
            _ if is_prerequisite => (None, None),
            Strategy::Snapshot => (None, None),
            Strategy::Fixed => (Some(settings.revisit.fixed_wait), None),
            Strategy::Revisit => {
                let mut seen = standing::after(Known::of(issue), started, &visit, &memory);
                let place = Place::of(issue);
                seen.measures = self.budget.measures(&self.frontier, place, started)?;
                let found::Reading {
                    document, guards, ..
                } = reading;
                let answer =
                    found::evaluate(&stacks.wait, &visit.media_type, &seen, &document, &guards);
                let settled = answer.settle(record, state, &settings.revisit);
                answered = answer.wait.is_some();
                odd = settled.odd;
                swings = Some(settled.swings);
                self.note(answer.failures);
                let wait = settled.until_next;
                self.promised(issue, wait, response.transfer.duration, true, ended)?;
                (Some(wait), settled.until_asked)
            }
        };
        let kept = memory.kept.changes();
        visit.kept = standing::changes(kept.uri);
        visit.kept.extend(swings);
        let mut kept_for_site = standing::changes(kept.site);
        if !is_prerequisite && settings.strategy != Strategy::Snapshot {
            kept_for_site.extend(around);
        }
        let known = self.sites.entry(issue.uri.surt_authority()).or_default();
        for change in kept_for_site {
            known.apply(change);
        }
        let success = Success {
            visit,
            wait,
            ask_again,
            strategy: (!is_prerequisite).then(|| policy::strategy(settings.strategy)),
            scope: Some(self.stacks.scope_hash),
            outlinks,
            refresh_embeds,
            refused,
            // Nobody would read them there: they are in `sites`.
            kept_for_site: Vec::new(),
            transfer: response.transfer,
        };
        let outcome = Outcome::Succeeded(Box::new(success));
        self.frontier.finished(issue.ticket, outcome, ended)?;
        Ok(Came {
            state,
            body: !bodyless,
            archived: is_whole,
            answered,
            odd,
            wait,
            end: if response.is_robots {
                Ended::Robots
            } else {
                Ended::Success
            },
        })
    }

    /// What plugins have kept with a URI and its site.
    fn memory(&mut self, issue: &Issue) -> Result<Memory, opilio_frontier::Error> {
        let site = match self.sites.entry(issue.uri.surt_authority()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(self.frontier.site_values(&issue.uri)?),
        };
        Ok(Memory::new(&issue.record.kept, site))
    }

    /// A URI whose wait evaluator wanted to be asked again.
    fn consider(&mut self, issue: &Issue, now: Timestamp) -> Result<(), opilio_frontier::Error> {
        let media_type = issue.record.media_type.clone();
        let (settings, stacks) = self.stacks_for(issue, Some(&media_type), now);
        let memory = self.memory(issue)?;
        let place = Place::of(issue);
        let measures = self.budget.measures(&self.frontier, place, now)?;
        let answer = Consideration::of(issue, now, measures, &memory).evaluate(&stacks.wait);
        let judged = Consideration::judge(issue, now, &answer, &settings.revisit);
        self.note(answer.failures);
        let outcome = match judged {
            Some(considered) => {
                self.promised(issue, considered.in_all, Duration::ZERO, false, now)?;
                considered.outcome()
            }
            None => Outcome::Considered {
                wait: None,
                ask_again: None,
            },
        };
        self.frontier.finished(issue.ticket, outcome, now)?;
        Ok(())
    }

    /// Takes note of a wait in the prices.
    fn promised(
        &mut self,
        issue: &Issue,
        wait: Duration,
        took: Duration,
        is_visit: bool,
        now: Timestamp,
    ) -> Result<(), opilio_frontier::Error> {
        let answered = Answered {
            now,
            wait,
            is_visit,
            pace: self.frontier.pace(&issue.queue, took)?,
            queued: self.frontier.statistics().queued,
            budget: self.visits_a_day,
        };
        self.budget.answered(&self.frontier, issue, answered)
    }

    /// What mid-fetch filters make of the headers, where they do not let it go on.
    fn mid_fetch(
        &mut self,
        issue: &Issue,
        head: &ResponseHead,
        visit: &Turn,
        memory: &Memory,
    ) -> Option<Verdict> {
        let stacks = self.stacks_for(issue, None, visit.now).1;
        if stacks.mid_fetch.is_empty() {
            return None;
        }
        let record = &issue.record;
        let uri = issue.uri.as_str();
        let document = found::document(uri, uri, head, Bytes::new(), None, memory);
        let guards = Guards::default();
        let stage = Stage::MidFetch;
        let judged = found::judge_document(&stacks.mid_fetch, &stage, &document, visit, &guards);
        self.note(judged.failures);
        self.note(guards.take_failures());
        let of_type = self
            .stacks_for(issue, Some(&record.media_type), visit.now)
            .1;
        let is_extracted = record.extractor == Some(of_type.extract_hash);
        match judged.verdict {
            Verdict::Reject => Some(Verdict::Reject),
            Verdict::Unchanged if record.archived.is_some() && is_extracted => {
                Some(Verdict::Unchanged)
            }
            _ => None,
        }
    }

    /// Links as candidates for the frontier, and those out of scope.
    fn outlinks(
        &mut self,
        issue: &Issue,
        reading: &found::Reading,
        started: Timestamp,
    ) -> (Vec<Candidate>, Vec<Refused>) {
        let links = &reading.extracted.links;
        if links.is_empty() {
            return Default::default();
        }
        let record = &issue.record;
        let via_surt = issue.uri.surt();
        let seen = links
            .iter()
            .map(|link| standing::found_candidate(&issue.uri, &via_surt, record, link));
        let candidates: Candidates = seen.collect();
        let stacks = self.stacks_for(issue, None, started).1;
        let judged = scope::judge(&stacks.scope, &Stage::Scope, &candidates, false);
        self.note(judged.failures);
        let (mut accepted, mut refused) = (Vec::new(), Vec::new());
        for (link, decision) in links.iter().zip(&judged.decisions) {
            if !decision.accepted {
                refused.push(Refused {
                    uri: link.uri.clone(),
                    reason: decision.because(),
                });
                continue;
            }
            let candidate = policy::candidate(
                &self.profile,
                link.uri.clone(),
                record.hop_path.then(link.hop),
                Some(issue.uri.as_str()),
                record.source.as_deref(),
            );
            accepted.push(Candidate {
                context: link.context.clone(),
                modified: link.modified,
                seed: record.seed && link.hop == Hop::Redirect,
                scope: stacks.scope_hash,
                ..candidate
            });
        }
        if !stacks.precedence.is_empty() {
            let in_scope = links.iter().zip(&judged.decisions);
            let in_scope = in_scope.filter(|(_, decision)| decision.accepted);
            let seen = in_scope
                .map(|(link, _)| standing::found_candidate(&issue.uri, &via_surt, record, link));
            let seen: Candidates = seen.collect();
            let ranked = precedence::rank(&stacks.precedence, &seen, Some(&reading.document));
            self.note(ranked.failures);
            for (candidate, rank) in accepted.iter_mut().zip(ranked.ranks) {
                candidate.precedence = rank.unwrap_or(candidate.precedence);
            }
        }
        (accepted, refused)
    }

    fn settings(&self, issue: &Issue, media_type: Option<&str>, now: Timestamp) -> Arc<Settings> {
        self.profile.effective_with(&opilio_profile::Context {
            source: issue.record.source.as_deref(),
            now: Some(now),
            media_type,
            uri: &issue.uri,
        })
    }

    fn stacks_for(
        &self,
        issue: &Issue,
        media_type: Option<&str>,
        now: Timestamp,
    ) -> (Arc<Settings>, Arc<Stacks>) {
        let settings = self.settings(issue, media_type, now);
        let stacks = self.stacks.selected(&settings, self.profile.settings());
        (settings, stacks)
    }

    fn note(&mut self, failures: Vec<Failure>) {
        for Failure { fault, .. } in failures {
            self.faults += 1;
            if self.first_fault.is_none() {
                self.first_fault = Some(format!("{}: {}", fault.plugin, fault.message));
            }
        }
    }

    /// Runs `work` on a thread with room for plugins, and waits for it.
    ///
    /// # Errors
    /// Where there is no thread for it, or it panicked, in words.
    pub fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
        opilio_stacks::on_plugin_thread("rehearsal", work)
    }
}
