//! A response that counts: what it holds, how it is kept, where it leads, when to come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use opilio_fetch::robots_tag::RobotsTag;
use opilio_fetch::{Exchange, ResponseHead};
use opilio_frontier::{ContentState, Digests, KeptChange, Outcome, Success, Validators, Visit};
use opilio_profile::{Stage, Strategy};
use opilio_uri::Hop;

use crate::context::Halt;
use crate::control::Step;
use crate::crawl_log::ExtraInfo;
use crate::lanes::{LanePanic, Lanes, Reserved, bytes_for};
use crate::records::{self, Keep};
use opilio_stacks::Stacks;
use opilio_visit::around::{Earlier, Shared};
use opilio_visit::extraction::FoundLink;
use opilio_visit::found::{self, Rejected, RetryWanted};
use opilio_visit::policy;
use opilio_visit::redirect;
use opilio_visit::standing::{self, Memory};

use super::exchange::HeaderVerdict;
use super::keeping::{Body, Capture, Stored};
use super::outlinks::Outlinks;
use super::preconditions::redirect_of;
use super::{Chain, Entry, Turn, disregarded, status, transfer};

/// The note under which extractors leave what `<meta name=robots>` says.
const ROBOTS_META: &str = "robots-meta";

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
        let body = match &by_header {
            _ if not_modified => Body::NotModified,
            Some(_) => Body::LeftAlone,
            None => Body::Fetched,
        };
        let mut annotations = exchange.annotations.clone();
        // Which filter, and why.
        annotations.extend(by_header);

        // A 304 seldom names a type; it is that of the version it stands for.
        let media_type = head
            .media_type()
            .unwrap_or_else(|| self.issue.record.media_type.clone());
        let (settings, stacks) = self.for_response(&media_type);
        // Its memory is given back once the capture is stored.
        let (mut reading, _reserved) = self
            .read(&exchange, &head, stacks.clone(), body, &memory)
            .await?;
        annotations.extend(reading.annotations.iter().cloned());
        self.context.failures(&reading.failures)?;
        self.note_stacks(&stacks, &reading)?;
        if let Some(Rejected { status, because }) = reading.rejected {
            annotations.push(because.clone());
            let entry = Entry {
                status,
                size: Some(exchange.payload.length()),
                media_type: head.media_type(),
                fetch: Some((exchange.started, exchange.duration)),
                annotations,
                notes: notes_of(&memory),
                ..Entry::default()
            };
            let outcome = disregarded(status, because, Some(transfer(&exchange)));
            return Ok(Turn { outcome, entry });
        }
        if let Some(RetryWanted { after, because }) = reading.retry.take() {
            if !self.attempts_left() {
                annotations.push(format!("retriesExhausted:{because}"));
                return self
                    .give_up(&exchange, reading, body, &memory, annotations)
                    .await;
            }
            annotations.push(because);
            let entry = Entry {
                status: exchange.status(),
                annotations,
                ..Entry::default()
            };
            let outcome = Outcome::Retry {
                status: entry.status,
                queue_after: self.settings.retry.queue_after,
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
        let keep = self.keep(&exchange, &reading, body, &settings.revisit)?;
        let mut visit = self.to_remember(&exchange, &head, &reading, &keep);
        // Before the archive, whose metadata record says when the next visit is due.
        self.flight.step(Step::Wait);
        let waits = self
            .wait(&visit, &settings, stacks.clone(), &mut reading, &memory)
            .await?;
        let decisions = match keep {
            Keep::Nothing => Vec::new(),
            _ => self.decisions(&stacks, &reading, waits.as_ref()).await?,
        };
        let capture = Capture {
            exchange: &exchange,
            reading: &reading,
            body,
            memory: &memory,
            annotations,
            decisions,
        };
        let Stored {
            keep,
            location,
            annotations,
        } = self.store(capture, keep).await?;
        let extra = ExtraInfo::of(exchange.wire.length(), location.as_ref());
        visit.duplicate = matches!(keep, Keep::Duplicate(_));
        visit.archived = location
            .filter(|_| visit.digests.is_some())
            .map(|location| self.location(location, records::date_of(&exchange)));
        let record = &self.issue.record;
        let earlier = Earlier::of(record);
        let shared = Shared::of(&self.issue.uri, record, &visit.media_type, Some(&visit));
        let around = memory.around.after(&shared, earlier, &visit, self.started);
        let wait = waits.as_ref().map(|waits| waits.until_next);
        let ask_again = waits.as_ref().and_then(|waits| waits.until_asked);
        // Wait evaluators are the last who may keep anything.
        let kept = memory.kept.changes();
        visit.kept = standing::changes(kept.uri);
        let target = redirect_of(&self.issue.uri, &exchange);
        visit
            .kept
            .extend(redirect::remember(&self.issue.record, &exchange, target));
        let entry = Entry {
            status: exchange.status(),
            size: Some(exchange.payload.length()),
            media_type: head.media_type(),
            fetch: Some((exchange.started, exchange.duration)),
            digest: (body == Body::Fetched).then(|| exchange.payload_digest.to_string()),
            annotations: self.final_annotations(annotations, &visit, waits.as_ref()),
            state: visit.state,
            notes: notes_of(&memory),
            ranks,
            extra,
        };
        visit.kept.extend(waits.and_then(|waits| waits.swings));
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

    /// A response that a post-fetch filter wants fetched again, after the last attempt: it is archived, so that people can see
    /// what came, and the URI has failed. It is no version of the document: digests and validators stay those of the last.
    async fn give_up(
        &self,
        exchange: &Arc<Exchange>,
        reading: found::Reading,
        body: Body,
        memory: &Memory,
        mut annotations: Vec<String>,
    ) -> Result<Turn, Halt> {
        let head = exchange.head.as_ref();
        annotations.extend(head.map(|head| format!("os{}", head.status)));
        let reading = found::Reading {
            // Nobody has judged it. A 304 stands for what is archived.
            state: match body {
                Body::Fetched => ContentState::Unknown,
                Body::NotModified | Body::LeftAlone => ContentState::Unchanged,
            },
            ..reading
        };
        let keep = self.keep(exchange, &reading, body, &self.settings.revisit)?;
        let decisions = self.decisions(&self.stacks, &reading, None).await?;
        let capture = Capture {
            exchange,
            reading: &reading,
            body,
            memory,
            annotations,
            decisions,
        };
        let stored = self.store(capture, keep).await?;
        let entry = Entry {
            status: status::TOO_MANY_RETRIES,
            size: Some(exchange.payload.length()),
            media_type: head.and_then(ResponseHead::media_type),
            fetch: Some((exchange.started, exchange.duration)),
            digest: (body == Body::Fetched).then(|| exchange.payload_digest.to_string()),
            annotations: stored.annotations,
            extra: ExtraInfo::of(exchange.wire.length(), stored.location.as_ref()),
            notes: notes_of(memory),
            ..Entry::default()
        };
        let outcome = Outcome::Failed {
            status: entry.status,
            transfer: Some(transfer(exchange)),
        };
        Ok(Turn { outcome, entry })
    }

    /// Keeps what the stacks were whose hashes the record is to have.
    fn note_stacks(&self, stacks: &Stacks, reading: &found::Reading) -> Result<(), Halt> {
        let known = &self.context.known_stacks;
        if reading.extracted_by == Some(stacks.extract_hash) {
            known.note(Stage::Extract, stacks.extract_hash, &stacks.extract)?;
        }
        if reading.stripped.is_some() {
            known.note(Stage::Digest, stacks.digest_hash, &stacks.digest)?;
        }
        Ok(())
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
        let profile = self.context.current();
        let said = RobotsTag::of_headers(head.all("x-robots-tag"), &profile.user_agent)
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
        body: Body,
        memory: &Memory,
    ) -> Result<(found::Reading, Reserved), Halt> {
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
            bodyless: body != Body::Fetched,
            content_max: self.context.current().limits.plugin_content.bytes(),
            links_max: self.context.current().limits.outlinks,
            memory: memory.clone(),
        };
        Ok(read_within_memory(&self.context.lanes, self.site(), task).await?)
    }

    /// The visit as the frontier is to remember it, but for where it is archived.
    fn to_remember(
        &self,
        exchange: &Exchange,
        head: &ResponseHead,
        reading: &found::Reading,
        keep: &Keep,
    ) -> Visit {
        let kept = *keep == Keep::Response;
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
            duplicate: false,
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
            archived: None,
            extractor: reading.extracted_by,
            outlinks: reading
                .extracted_by
                .filter(|by| *by != found::NOT_EXTRACTED)
                .map(|_| reading.extracted.links.len() as u64),
            fingerprint: reading.fingerprint.clone().filter(|_| kept),
            kept: Vec::new(),
        }
    }
}

/// Reads a response on a document lane, once there is memory for its content. The memory is held until it is dropped.
async fn read_within_memory(
    lanes: &Lanes,
    site: &str,
    mut task: found::Task,
) -> Result<(found::Reading, Reserved), LanePanic> {
    let mut content = task.content_expected();
    loop {
        let read = move |mut reserved: Reserved| {
            let decoded = |bytes| reserved.shrink_to(bytes_for(bytes));
            let reading = task.run_within(content, decoded)?;
            // Its bytes and its text, until the visit is written.
            reserved.shrink_to(2 * reading.document.content().len() as u64);
            Ok((reading, reserved))
        };
        match lanes.document(site, bytes_for(content), read).await? {
            Ok(read) => return Ok(read),
            Err(more) => {
                let more: Box<found::Task> = more;
                content = more.content_max;
                task = *more;
            }
        }
    }
}

fn notes_of(memory: &Memory) -> BTreeMap<String, String> {
    memory.notes.all().into_iter().collect()
}
