//! A response that counts: what it holds, how it is kept, where it leads, when to come back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use opilio_archive::{Location, StoredPayload};
use opilio_fetch::robots_tag::RobotsTag;
use opilio_fetch::{Exchange, ResponseHead};
use opilio_frontier::{
    Candidate, ContentState, Digests, KeptChange, Outcome, Refused, Success, Validators, Visit,
};
use opilio_profile::{ArchiveFormat, Settings, Strategy, StrippedEqual};
use opilio_sandbox::{Candidates, Stage};
use opilio_uri::{Hop, Uri};

use crate::around::Earlier;
use crate::context::Halt;
use crate::crawl_log::revisit_annotations;
use crate::duplicates::{Held, PayloadDigests};
use crate::extraction::FoundLink;
use crate::lanes::Lane;
use crate::policy;
use crate::records::{self, About, Keep, Previous};
use crate::redirect;
use crate::scope;
use crate::stacks::Stacks;
use crate::standing::{self, Memory};
use crate::swings::Swings;
use crate::{found, precedence};

use super::exchange::HeaderVerdict;
use super::preconditions::redirect_of;
use super::{Chain, Entry, Turn, disregarded, status, transfer};

/// The note under which extractors leave what `<meta name=robots>` says.
const ROBOTS_META: &str = "robots-meta";

/// A link, and what decides about it.
struct Found {
    link: FoundLink,
    /// The same as plugins see it.
    seen: opilio_sandbox::Candidate,
    /// The plugins that hold for its target.
    stacks: Arc<Stacks>,
}

/// What became of the links of a page.
#[derive(Default)]
struct Outlinks {
    accepted: Vec<Candidate>,
    /// What plugins have ranked them, in the same order.
    ranks: Vec<Option<u8>>,
    refused: Vec<Refused>,
    /// Filters of the scope that could not be asked, and about how many links.
    unjudged: BTreeMap<Arc<str>, u64>,
}

impl Chain<'_> {
    /// A response that counts: digest, state, links, archive, wait.
    pub(super) async fn settle(
        &self,
        exchange: Arc<Exchange>,
        verdict: Option<HeaderVerdict>,
        memory: Memory,
    ) -> Result<Turn, Halt> {
        let Some(head) = exchange.head.clone() else {
            return Ok(Turn::failed(exchange.status(), String::new()));
        };
        let not_modified = head.status == 304 && self.issue.record.archived.is_some();
        let by_header = match verdict {
            Some(HeaderVerdict::Unchanged(reason)) => Some(reason),
            _ => None,
        };
        let bodyless = not_modified || by_header.is_some();
        let mut annotations = exchange.annotations.clone();
        // Which filter, and why.
        annotations.extend(by_header);

        // A 304 seldom names a type; it is that of the version it stands for.
        let media_type = head
            .media_type()
            .unwrap_or_else(|| self.issue.record.media_type.clone());
        let (settings, stacks) = self.for_response(&media_type);
        let mut reading = self
            .read(&exchange, &head, stacks.clone(), bodyless, &memory)
            .await?;
        annotations.extend(reading.annotations.iter().cloned());
        self.context.failures(&reading.failures)?;
        if let Some(reason) = reading.rejected {
            annotations.push(reason.clone());
            let entry = Entry {
                status: status::BLOCKED,
                size: Some(exchange.payload.length()),
                media_type: head.media_type(),
                fetch: Some((exchange.started, exchange.duration)),
                annotations,
                notes: notes_of(&memory),
                ..Entry::default()
            };
            let outcome = disregarded(status::BLOCKED, reason, Some(transfer(&exchange)));
            return Ok(Turn { outcome, entry });
        }
        if let Some(after) = reading.retry {
            let entry = Entry {
                status: exchange.status(),
                annotations,
                ..Entry::default()
            };
            let outcome = Outcome::Retry {
                status: entry.status,
                after: Some(after),
                transfer: Some(transfer(&exchange)),
            };
            return Ok(Turn { outcome, entry });
        }
        self.heed_page(
            &head,
            &settings.robots,
            &memory,
            &mut reading,
            &mut annotations,
        );
        self.end_redirects(&mut reading, &mut annotations);
        if !settings.revisit.signals {
            // This list's dates are not believed.
            let links = reading.extracted.links.iter_mut();
            links.for_each(|link| link.modified = None);
        }
        let Outlinks {
            accepted,
            ranks,
            refused,
            unjudged,
        } = self.outlinks(&reading).await?;
        for (plugin, links) in &unjudged {
            self.context.scope_fault(plugin);
            annotations.push(format!("scope-fault:{plugin}:{links}"));
            // What it would have let in is not known: the next visit finds the links again, changed or not.
            reading.extracted_by = Some(found::NOT_EXTRACTED);
        }
        self.context
            .logs
            .uri_errors(self.issue.uri.as_str(), &reading.extracted.refused)?;
        self.context.counters.out_of_scope(refused.len() as u64);

        let refresh_embeds =
            settings.revisit.refresh_embeds && reading.state == ContentState::Changed;
        let payload = self.context.payload_digests(&exchange).await?;
        let keep = self.keep(&exchange, &reading, bodyless)?;
        let held = self.hold(&exchange, &keep, payload).await?;
        let keep = match held.as_ref().and_then(|held| held.found.clone()) {
            Some(stored) => Keep::Duplicate(records::previous_of(stored)),
            None => keep,
        };
        annotations.extend(memory.notes.annotations());
        self.annotate(&mut annotations, &reading, &keep, not_modified);
        let record = &self.issue.record;
        let about = About {
            payload: Some(payload),
            via: record.via.as_deref(),
            hop_path: record.hop_path.as_str(),
            source: record.source.as_deref(),
            charset: reading.charset.clone(),
            annotations: &annotations,
            notes: notes_of(&memory).into_iter().collect(),
            links: &reading.extracted.links,
        };
        let records = records::of_exchange(&self.issue.uri, &exchange, &keep, &about);
        let location = self.context.archive(records).await?.into_iter().next();
        if let (Some(held), Some(location), Keep::Response) = (&held, &location, &keep) {
            held.keep(&StoredPayload {
                uri: self.issue.uri.as_str().to_owned(),
                date: records::date_of(&exchange),
                record_id: Some(location.record_id.to_string()),
                file: location.file.clone(),
                offset: location.offset,
            })?;
        }
        drop(held);

        let mut visit = self.to_remember(&exchange, &head, &reading, &keep, location);
        let earlier = Earlier::of(&self.issue.record);
        let around = memory
            .around
            .after(&self.issue.uri, earlier, &visit, self.started);
        let waits = self
            .wait(&visit, &settings, stacks, reading, &memory)
            .await?;
        let wait = waits.as_ref().map(|waits| waits.until_next);
        let ask_again = waits.as_ref().and_then(|waits| waits.until_asked);
        // Wait evaluators are the last who may keep anything.
        let kept = memory.kept.changes();
        visit.kept = standing::changes(kept.uri);
        visit.kept.extend(waits.and_then(|waits| waits.swings));
        let target = redirect_of(&self.issue.uri, &exchange);
        visit
            .kept
            .extend(redirect::remember(&self.issue.record, &exchange, target));
        let entry = Entry {
            status: exchange.status(),
            size: Some(exchange.payload.length()),
            media_type: head.media_type(),
            fetch: Some((exchange.started, exchange.duration)),
            digest: (!bodyless).then(|| exchange.payload_digest.to_string()),
            annotations: self.final_annotations(annotations, &visit, wait),
            state: visit.state,
            notes: notes_of(&memory),
            ranks,
        };
        let success = Success {
            visit,
            wait,
            ask_again,
            strategy: (!self.is_prerequisite()).then(|| policy::strategy(settings.strategy)),
            // Asked again before the fetch, where it had changed.
            scope: Some(self.stacks.scope_hash),
            outlinks: accepted,
            refresh_embeds,
            refused,
            kept_for_site: self.for_site(kept.site, around),
            transfer: transfer(&exchange),
        };
        Ok(Turn {
            outcome: Outcome::Succeeded(Box::new(success)),
            entry,
        })
    }

    /// What is kept for the site: what plugins have set and, where documents are visited again, what is known of them all.
    fn for_site(
        &self,
        kept: Vec<opilio_sandbox::KeptChange>,
        around: Vec<KeptChange>,
    ) -> Vec<KeptChange> {
        let mut changes = standing::changes(kept);
        if !self.is_prerequisite() && self.settings.strategy != Strategy::Snapshot {
            changes.extend(around);
        }
        changes
    }

    /// A redirect that would be one too many in a row is noted and not followed.
    fn end_redirects(&self, reading: &mut found::Reading, annotations: &mut Vec<String>) {
        let hops = self.issue.record.hop_path.hops().rev();
        let before = hops.take_while(|hop| *hop == Hop::Redirect).count();
        let links = &mut reading.extracted.links;
        let is_redirect = |link: &FoundLink| link.hop == Hop::Redirect;
        if before >= self.settings.fetch.redirects_max && links.iter().any(is_redirect) {
            links.retain(|link| !is_redirect(link));
            annotations.push(format!("redirectsTrunc:{before}"));
        }
    }

    /// What the page says to robots: noted, and heeded where the profile wants that.
    fn heed_page(
        &self,
        head: &ResponseHead,
        robots: &opilio_profile::Robots,
        memory: &Memory,
        reading: &mut found::Reading,
        annotations: &mut Vec<String>,
    ) {
        let notes = memory.notes.all();
        let meta = notes.get(ROBOTS_META).map(String::as_str);
        let user_agent = &self.context.profile.user_agent;
        let said = RobotsTag::of_headers(head.all("x-robots-tag"), user_agent)
            .and(RobotsTag::of_meta(meta.unwrap_or_default()));
        if said == RobotsTag::default() {
            return;
        }
        let words: Vec<_> = said.words().collect();
        annotations.push(format!("robotsTag:{}", words.join("+")));
        if !robots.policy.heeds_pages() {
            return;
        }
        if said.nofollow {
            // Where the server sends us is no link of the page.
            let stays = |link: &FoundLink| matches!(link.hop, Hop::Redirect | Hop::Inferred);
            reading.extracted.links.retain(stays);
        }
        if said.noarchive && robots.noarchive && reading.archive {
            reading.archive = false;
            annotations.push("unwritten:noarchive".to_owned());
        }
    }

    /// Decodes, asks post-fetch filters, digests, judges the state and extracts: everything that wants the content,
    /// on a document lane.
    pub(super) async fn read(
        &self,
        exchange: &Arc<Exchange>,
        head: &ResponseHead,
        stacks: Arc<Stacks>,
        bodyless: bool,
        memory: &Memory,
    ) -> Result<found::Reading, Halt> {
        let mut visit = standing::visit(
            self.issue,
            self.started,
            i32::from(head.status),
            head.media_type(),
            memory,
        );
        visit.candidate.address = exchange.peer.as_ref().map(ToString::to_string);
        let task = found::Task {
            stacks,
            exchange: exchange.clone(),
            head: head.clone(),
            uri: self.issue.uri.as_str().to_owned(),
            base: self.base(head),
            visit,
            last: self
                .issue
                .record
                .archived
                .is_some()
                .then_some(self.issue.record.digests),
            last_fingerprint: self.issue.record.fingerprint.clone(),
            last_extractor: self.issue.record.extractor,
            bodyless,
            content_max: self.context.current().limits.plugin_content.bytes(),
            links_max: self.context.current().limits.outlinks,
            memory: memory.clone(),
        };
        Ok(self
            .context
            .lanes
            .run(Lane::Document, move || task.run())
            .await?)
    }

    /// Links as candidates for the frontier, and those out of scope.
    async fn outlinks(&self, reading: &found::Reading) -> Result<Outlinks, Halt> {
        let mut links = reading.extracted.links.clone();
        if self.is_robots() {
            // They have been followed already, and lead nowhere else.
            links.retain(|link| link.hop != Hop::Redirect);
        }
        if links.is_empty() {
            return Ok(Outlinks::default());
        }
        let record = &self.issue.record;
        if let Some(redirect) = links
            .iter()
            .find(|link| link.hop == Hop::Redirect && record.seed)
        {
            let seed = record.source.as_deref().unwrap_or(self.issue.uri.as_str());
            self.context.seed_moved(seed, &redirect.uri).await?;
        }
        let via_surt = self.issue.uri.surt();
        let found = links.into_iter().map(|link| Found {
            seen: standing::found_candidate(&self.issue.uri, &via_surt, record, &link),
            stacks: self.stacks_for(&link.uri),
            link,
        });
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        let mut unjudged = BTreeMap::new();
        // Nearly always one group of all: filters are asked once about the links of a page.
        for group in grouped(found.collect(), |one, other| {
            one.stacks.scope_hash == other.stacks.scope_hash
        }) {
            let judged = self
                .ask_about(&group, |stacks, candidates| {
                    scope::judge(&stacks.scope, &Stage::Scope, candidates, false)
                })
                .await?;
            self.context.failures(&judged.failures)?;
            for (plugin, links) in judged.unjudged {
                *unjudged.entry(plugin).or_default() += links;
            }
            if self.context.logs.has_scope() {
                let because: Vec<String> = judged.decisions.iter().map(|it| it.because()).collect();
                let judged = group.iter().zip(&judged.decisions).zip(&because);
                let lines = judged.map(|((found, decision), because)| {
                    (found.link.uri.as_str(), decision.accepted, because.as_str())
                });
                self.context.logs.scope(self.issue.uri.as_str(), lines)?;
            }
            for (found, decision) in group.into_iter().zip(&judged.decisions) {
                if decision.accepted {
                    accepted.push(found);
                } else {
                    refused.push(Refused {
                        reason: decision.because(),
                        uri: found.link.uri,
                    });
                }
            }
        }
        let mut outlinks = Outlinks {
            refused,
            unjudged,
            ..Outlinks::default()
        };
        for group in grouped(accepted, |one, other| {
            Arc::ptr_eq(&one.stacks, &other.stacks)
        }) {
            outlinks.ranks.extend(self.ranks(&group, reading).await?);
            outlinks
                .accepted
                .extend(group.into_iter().map(|found| Candidate {
                    scope: found.stacks.scope_hash,
                    ..self.candidate(found.link)
                }));
        }
        for (candidate, rank) in outlinks.accepted.iter_mut().zip(&outlinks.ranks) {
            candidate.precedence = rank.unwrap_or(candidate.precedence);
        }
        Ok(outlinks)
    }

    /// The plugins that hold for a link's target.
    fn stacks_for(&self, target: &Uri) -> Arc<Stacks> {
        let settings = self
            .context
            .current()
            .effective_with(&opilio_profile::Context {
                source: self.issue.record.source.as_deref(),
                now: Some(self.started),
                ..opilio_profile::Context::of(target)
            });
        self.stacks_of(&settings)
    }

    /// What precedence plugins say of links for which the same ones hold.
    async fn ranks(
        &self,
        group: &[Found],
        reading: &found::Reading,
    ) -> Result<Vec<Option<u8>>, Halt> {
        if group.iter().all(|found| found.stacks.precedence.is_empty()) {
            return Ok(vec![None; group.len()]);
        }
        let page = reading.document.clone();
        let ranked = self
            .ask_about(group, move |stacks, candidates| {
                precedence::rank(&stacks.precedence, candidates, Some(&page))
            })
            .await?;
        self.context.failures(&ranked.failures)?;
        Ok(ranked.ranks)
    }

    /// Asks plugins about links, on a document lane: those that hold for the first of them.
    async fn ask_about<T: Send + 'static>(
        &self,
        group: &[Found],
        ask: impl FnOnce(&Stacks, &Candidates) -> T + Send + 'static,
    ) -> Result<T, Halt> {
        let stacks = match group.first() {
            Some(first) => first.stacks.clone(),
            None => self.stacks.clone(),
        };
        let candidates: Candidates = group.iter().map(|found| found.seen.clone()).collect();
        let answer = self
            .context
            .lanes
            .run(Lane::Document, move || ask(&stacks, &candidates))
            .await?;
        Ok(answer)
    }

    pub(super) fn candidate(&self, link: FoundLink) -> Candidate {
        let record = &self.issue.record;
        Candidate {
            context: link.context,
            modified: link.modified,
            seed: record.seed && link.hop == Hop::Redirect,
            ..policy::candidate(
                &self.context.current(),
                link.uri,
                record.hop_path.then(link.hop),
                Some(self.issue.uri.as_str()),
                record.source.as_deref(),
            )
        }
    }

    /// A payload that is to be stored whole, so that nobody else stores the same meanwhile; where it is stored already
    /// the answer says where. None: it is not looked up.
    async fn hold(
        &self,
        exchange: &Exchange,
        keep: &Keep,
        payload: PayloadDigests,
    ) -> Result<Option<Held<'_>>, Halt> {
        let is_complete = exchange.truncated.is_none() && exchange.failure.is_none();
        match &self.context.duplicates {
            Some(duplicates)
                if *keep == Keep::Response
                    && is_complete
                    && duplicates.wants(exchange.payload.length()) =>
            {
                Ok(Some(duplicates.hold(payload).await?))
            }
            _ => Ok(None),
        }
    }

    /// The capture that has the payload of the version that was archived last: that one, or one of another URI.
    fn previous(&self) -> Result<Option<Previous>, Halt> {
        let record = &self.issue.record;
        let Some(at) = record.archived.clone() else {
            return Ok(None);
        };
        let original = match (&self.context.duplicates, record.digests.payload) {
            (Some(duplicates), Some(payload)) => duplicates.original(&record.uri, payload)?,
            _ => None,
        };
        let own = || Previous {
            uri: record.uri.clone(),
            at,
        };
        Ok(Some(original.map_or_else(own, records::previous_of)))
    }

    /// How the capture is kept.
    pub(super) fn keep(
        &self,
        exchange: &Exchange,
        reading: &found::Reading,
        bodyless: bool,
    ) -> Result<Keep, Halt> {
        let record = &self.issue.record;
        let previous = self.previous()?;
        let identical = record.digests.payload == Some(exchange.payload_digest.0);
        let is_arc = self.context.profile.archive.format == ArchiveFormat::Arc;
        Ok(match (previous, reading.state) {
            _ if !reading.archive => Keep::Nothing,
            // ARC can say nothing of a payload that is not there.
            _ if is_arc && bodyless => Keep::Nothing,
            _ if is_arc => Keep::Response,
            (Some(previous), ContentState::Unchanged) if bodyless => Keep::NotModified(previous),
            (Some(previous), ContentState::Unchanged) if identical => Keep::Identical(previous),
            (Some(previous), ContentState::Unchanged) => match self.settings.revisit.stripped_equal
            {
                StrippedEqual::Archive => Keep::Response,
                StrippedEqual::Note => Keep::Note(previous),
                StrippedEqual::Drop => Keep::Nothing,
            },
            _ => Keep::Response,
        })
    }

    pub(super) fn annotate(
        &self,
        annotations: &mut Vec<String>,
        reading: &found::Reading,
        keep: &Keep,
        not_modified: bool,
    ) {
        if self.issue.record.attempts > 0 {
            annotations.push(format!("{}t", self.issue.record.attempts + 1));
        }
        if reading.state == ContentState::Unchanged {
            annotations.push("unchanged".to_owned());
        }
        if not_modified {
            annotations.push("duplicate:server-not-modified".to_owned());
        }
        match keep {
            Keep::Identical(_) => {
                annotations.push("duplicate:digest".to_owned());
                annotations.push("warcRevisit:digest".to_owned());
            }
            Keep::Duplicate(_) => {
                annotations.push("duplicate:digest".to_owned());
                annotations.push("warcRevisit:uriAgnosticDigest".to_owned());
            }
            Keep::NotModified(_) => annotations.push("warcRevisit:notModified".to_owned()),
            Keep::Response | Keep::Note(_) | Keep::Nothing => {}
        }
        if reading.extracted.dropped > 0 {
            annotations.push(format!("dol:{}", reading.extracted.dropped));
        }
        for (plugin, problem) in &reading.extracted.problems {
            tracing::debug!(uri = %self.issue.uri, plugin, problem, "could not be read in full");
        }
    }

    pub(super) fn to_remember(
        &self,
        exchange: &Exchange,
        head: &ResponseHead,
        reading: &found::Reading,
        keep: &Keep,
        location: Option<Location>,
    ) -> Visit {
        let duplicate = matches!(keep, Keep::Duplicate(_));
        let kept = (*keep == Keep::Response || duplicate) && location.is_some();
        let complete = kept && exchange.truncated.is_none() && exchange.failure.is_none();
        let validators = Validators {
            etag: head.first("etag").map(str::to_owned),
            last_modified: head.first("last-modified").map(str::to_owned),
        };
        let digests = Digests {
            payload: Some(exchange.payload_digest.0),
            stripped: reading.stripped,
        };
        Visit {
            status: exchange.status(),
            state: reading.state,
            duplicate,
            size: reading.size,
            // A 304 seldom names a type; it is that of the version it stands for.
            media_type: head
                .media_type()
                .unwrap_or_else(|| self.issue.record.media_type.clone()),
            digests: kept.then_some(digests),
            // Only a complete body may stand behind a 304.
            validators: kept.then(|| {
                if complete && head.status == 200 {
                    validators
                } else {
                    Validators::default()
                }
            }),
            archived: location
                .filter(|_| kept)
                .map(|location| self.location(location, records::date_of(exchange))),
            extractor: reading.extracted_by,
            outlinks: reading
                .extracted_by
                .filter(|by| *by != found::NOT_EXTRACTED)
                .map(|_| reading.extracted.links.len() as u64),
            fingerprint: reading.fingerprint.clone().filter(|_| kept),
            kept: Vec::new(),
        }
    }

    /// The wait until the next visit: under revisit what the first evaluator with an answer says, within the limits of
    /// the profile.
    pub(super) async fn wait(
        &self,
        visit: &Visit,
        settings: &Settings,
        stacks: Arc<Stacks>,
        reading: found::Reading,
        memory: &Memory,
    ) -> Result<Option<Waits>, Halt> {
        let record = &self.issue.record;
        match settings.strategy {
            // What others depend on is asked for again when it has expired.
            _ if self.is_prerequisite() => return Ok(None),
            Strategy::Snapshot => return Ok(None),
            Strategy::Fixed => {
                return Ok(Some(Waits {
                    until_next: settings.revisit.fixed_wait,
                    until_asked: None,
                    swings: None,
                }));
            }
            Strategy::Revisit => {}
        }
        let mut asked = standing::after(self.issue, self.started, visit, memory);
        asked.measures = self.measures()?;
        let media_type = visit.media_type.clone();
        let answer = self
            .context
            .lanes
            .run(Lane::Header, move || {
                let found::Reading {
                    document, guards, ..
                } = reading;
                found::evaluate(&stacks.wait, &media_type, &asked, &document, &guards)
            })
            .await?;
        self.context.failures(&answer.failures)?;
        let limits = &settings.revisit;
        let wait = answer.until_next(record.wait, limits);
        let last = record.history.first().map(|past| past.state);
        let mut swings = Swings::of(last.zip(record.wait), &record.kept);
        let oscillates = swings.note(visit.state, wait);
        if let Some(answered) = answer.wait {
            answer.note_odd(answered, oscillates, limits);
        }
        self.promised(wait, true)?;
        Ok(Some(Waits {
            until_next: wait,
            until_asked: answer.until_asked(wait, limits),
            swings: Some(swings.kept()),
        }))
    }

    pub(super) fn final_annotations(
        &self,
        mut annotations: Vec<String>,
        visit: &Visit,
        wait: Option<Duration>,
    ) -> Vec<String> {
        let record = &self.issue.record;
        if wait.is_some() {
            let new_version = matches!(visit.state, ContentState::New | ContentState::Changed);
            let versions = record.versions + u64::from(new_version);
            annotations.extend(revisit_annotations(
                wait,
                record.visits + 1,
                versions,
                self.issue.overdue,
            ));
        }
        annotations
    }
}

/// What wait evaluators made of a visit.
pub(super) struct Waits {
    until_next: Duration,
    /// To ask before, without a visit.
    until_asked: Option<Duration>,
    /// Of the answers so far.
    swings: Option<KeptChange>,
}

/// In groups of those that are alike, in order.
fn grouped(all: Vec<Found>, is_alike: impl Fn(&Found, &Found) -> bool) -> Vec<Vec<Found>> {
    let mut groups: Vec<Vec<Found>> = Vec::new();
    for found in all {
        let alike = groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| is_alike(first, &found)));
        match alike {
            Some(group) => group.push(found),
            None => groups.push(vec![found]),
        }
    }
    groups
}

fn notes_of(memory: &Memory) -> BTreeMap<String, String> {
    memory.notes.all().into_iter().collect()
}
