//! A response that counts: what it holds, how it is kept, where it leads, when to come back.

use std::sync::Arc;
use std::time::Duration;

use opilio_archive::Location;
use opilio_fetch::{Exchange, ResponseHead};
use opilio_frontier::{
    Candidate, ContentState, Digests, Outcome, Refused, Success, Validators, Visit,
};
use opilio_profile::{Settings, Strategy, StrippedEqual};
use opilio_sandbox::{Notes, Stage};
use opilio_uri::Hop;

use crate::context::Halt;
use crate::crawl_log::revisit_annotations;
use crate::extraction::FoundLink;
use crate::lanes::Lane;
use crate::policy;
use crate::records::{self, About, Keep, Previous};
use crate::scope;
use crate::stacks::Stacks;
use crate::{found, standing};

use super::exchange::HeaderVerdict;
use super::{Chain, Entry, Turn, disregarded, status, transfer};

/// Links that the same scope is asked about, and the same as its filters see them.
struct Alike {
    stacks: Arc<Stacks>,
    links: Vec<FoundLink>,
    found: Vec<opilio_sandbox::Candidate>,
}

impl Chain<'_> {
    /// A response that counts: digest, state, links, archive, wait.
    pub(super) async fn settle(
        &self,
        exchange: Arc<Exchange>,
        verdict: Option<HeaderVerdict>,
        notes: Notes,
    ) -> Result<Turn, Halt> {
        let Some(head) = exchange.head.clone() else {
            return Ok(Turn::failed(exchange.status(), String::new()));
        };
        let not_modified = head.status == 304 && self.issue.record.archived.is_some();
        let by_header = matches!(verdict, Some(HeaderVerdict::Unchanged(_)));
        let bodyless = not_modified || by_header;
        let mut annotations = exchange.annotations.clone();

        // A 304 seldom names a type; it is that of the version it stands for.
        let media_type = head
            .media_type()
            .unwrap_or_else(|| self.issue.record.media_type.clone());
        let (settings, stacks) = self.for_response(&media_type);
        let reading = self
            .read(&exchange, &head, stacks.clone(), bodyless, &notes)
            .await?;
        annotations.extend(reading.annotations.iter().cloned());
        self.context.faults(&reading.faults)?;
        if let Some(reason) = reading.rejected {
            annotations.push(reason.clone());
            let entry = Entry {
                status: status::BLOCKED,
                size: Some(exchange.payload.length()),
                media_type: head.media_type(),
                fetch: Some((exchange.started, exchange.duration)),
                digest: None,
                annotations,
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
        let (candidates, refused) = self.outlinks(&reading).await?;
        self.context
            .logs
            .uri_errors(self.issue.uri.as_str(), &reading.extracted.refused)?;
        self.context.counters.out_of_scope(refused.len() as u64);

        let keep = self.keep(&exchange, &reading, bodyless);
        annotations.extend(notes.annotations());
        self.annotate(&mut annotations, &reading, not_modified);
        let record = &self.issue.record;
        let about = About {
            via: record.via.as_deref(),
            hop_path: record.hop_path.as_str(),
            source: record.source.as_deref(),
            charset: reading.charset.clone(),
            annotations: &annotations,
            notes: notes.all().into_iter().collect(),
            links: &reading.extracted.links,
        };
        let records = records::of_exchange(&self.issue.uri, &exchange, &keep, &about);
        let location = self.context.archive(records).await?.into_iter().next();

        let visit = self.to_remember(&exchange, &head, &reading, &keep, location);
        let wait = self.wait(&visit, &settings, stacks).await?;
        let entry = Entry {
            status: exchange.status(),
            size: Some(exchange.payload.length()),
            media_type: head.media_type(),
            fetch: Some((exchange.started, exchange.duration)),
            digest: (!bodyless).then(|| exchange.payload_digest.to_string()),
            annotations: self.final_annotations(annotations, &visit, wait),
        };
        let success = Success {
            visit,
            wait,
            strategy: (!self.is_prerequisite()).then(|| policy::strategy(settings.strategy)),
            // Asked again before the fetch, where it had changed.
            scope: Some(self.stacks.scope_hash),
            outlinks: candidates,
            kept_for_site: Vec::new(),
            refresh_embeds: settings.revisit.refresh_embeds
                && reading.state == ContentState::Changed,
            refused,
            transfer: transfer(&exchange),
        };
        Ok(Turn {
            outcome: Outcome::Succeeded(Box::new(success)),
            entry,
        })
    }

    /// Decodes, asks post-fetch filters, digests, judges the state and extracts: everything that wants the content,
    /// on a document lane.
    pub(super) async fn read(
        &self,
        exchange: &Arc<Exchange>,
        head: &ResponseHead,
        stacks: Arc<Stacks>,
        bodyless: bool,
        notes: &Notes,
    ) -> Result<found::Reading, Halt> {
        let task = found::Task {
            stacks,
            exchange: exchange.clone(),
            head: head.clone(),
            uri: self.issue.uri.as_str().to_owned(),
            base: self.base(head),
            visit: standing::visit(
                self.issue,
                self.started,
                i32::from(head.status),
                head.media_type(),
            ),
            last: self
                .issue
                .record
                .archived
                .is_some()
                .then_some(self.issue.record.digests),
            last_extractor: self.issue.record.extractor,
            bodyless,
            content_max: self.context.profile.limits.plugin_content.bytes(),
            links_max: self.context.profile.limits.outlinks,
            notes: notes.clone(),
        };
        Ok(self
            .context
            .lanes
            .run(Lane::Document, move || task.run())
            .await?)
    }

    /// Links as candidates for the frontier, and those out of scope.
    pub(super) async fn outlinks(
        &self,
        reading: &found::Reading,
    ) -> Result<(Vec<Candidate>, Vec<Refused>), Halt> {
        let mut links = reading.extracted.links.clone();
        if self.is_robots() {
            // They have been followed already, and lead nowhere else.
            links.retain(|link| link.hop != Hop::Redirect);
        }
        if links.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let record = &self.issue.record;
        let via_surt = self.issue.uri.surt();
        let found: Vec<_> = links
            .iter()
            .map(|link| standing::found_candidate(&self.issue.uri, &via_surt, record, link))
            .collect();
        if let Some(redirect) = links
            .iter()
            .find(|link| link.hop == Hop::Redirect && record.seed)
        {
            let seed = record.source.as_deref().unwrap_or(self.issue.uri.as_str());
            self.context.seed_moved(seed, &redirect.uri).await?;
        }
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        for group in self.by_scope(links, found) {
            let Alike {
                stacks,
                links,
                found,
            } = group;
            let scope = stacks.scope_hash;
            let judged = self
                .context
                .lanes
                .run(Lane::Document, move || {
                    scope::judge(&stacks.scope, &Stage::Scope, &found, false)
                })
                .await?;
            self.context.scope_faults(&judged)?;
            for (link, decision) in links.into_iter().zip(&judged.decisions) {
                if decision.accepted {
                    accepted.push(Candidate {
                        scope,
                        ..self.candidate(link)
                    });
                } else {
                    refused.push(Refused {
                        reason: decision.because(),
                        uri: link.uri,
                    });
                }
            }
        }
        Ok((accepted, refused))
    }

    /// Links by the scope that holds for them; nearly always one for all.
    fn by_scope(&self, links: Vec<FoundLink>, found: Vec<opilio_sandbox::Candidate>) -> Vec<Alike> {
        let mut groups: Vec<Alike> = Vec::new();
        for (link, found) in links.into_iter().zip(found) {
            let settings = self
                .context
                .profile
                .effective_with(&opilio_profile::Context {
                    source: self.issue.record.source.as_deref(),
                    now: Some(self.started),
                    ..opilio_profile::Context::of(&link.uri)
                });
            let stacks = self.context.stacks_of(&settings);
            let same = groups
                .iter_mut()
                .find(|group| group.stacks.scope_hash == stacks.scope_hash);
            match same {
                Some(group) => {
                    group.links.push(link);
                    group.found.push(found);
                }
                None => groups.push(Alike {
                    stacks,
                    links: vec![link],
                    found: vec![found],
                }),
            }
        }
        groups
    }

    pub(super) fn candidate(&self, link: FoundLink) -> Candidate {
        let record = &self.issue.record;
        Candidate {
            context: link.context,
            modified: link.modified,
            seed: record.seed && link.hop == Hop::Redirect,
            ..policy::candidate(
                &self.context.profile,
                link.uri,
                record.hop_path.then(link.hop),
                Some(self.issue.uri.as_str()),
                record.source.as_deref(),
            )
        }
    }

    /// How the capture is kept.
    pub(super) fn keep(
        &self,
        exchange: &Exchange,
        reading: &found::Reading,
        bodyless: bool,
    ) -> Keep {
        let record = &self.issue.record;
        let previous = record.archived.clone().map(|at| Previous {
            uri: record.uri.clone(),
            at,
        });
        let identical = record.digests.payload == Some(exchange.payload_digest.0);
        match (previous, reading.state) {
            _ if !reading.archive => Keep::Nothing,
            (Some(previous), ContentState::Unchanged) if bodyless => Keep::NotModified(previous),
            (Some(previous), ContentState::Unchanged) if identical => Keep::Identical(previous),
            (Some(previous), ContentState::Unchanged) => match self.settings.revisit.stripped_equal
            {
                StrippedEqual::Archive => Keep::Response,
                StrippedEqual::Note => Keep::Note(previous),
                StrippedEqual::Drop => Keep::Nothing,
            },
            _ => Keep::Response,
        }
    }

    pub(super) fn annotate(
        &self,
        annotations: &mut Vec<String>,
        reading: &found::Reading,
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
        let kept = *keep == Keep::Response && location.is_some();
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
            fingerprint: None,
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
    ) -> Result<Option<Duration>, Halt> {
        let record = &self.issue.record;
        match settings.strategy {
            // What others depend on is asked for again when it has expired.
            _ if self.is_prerequisite() => return Ok(None),
            Strategy::Snapshot => return Ok(None),
            Strategy::Fixed => return Ok(Some(settings.revisit.fixed_wait)),
            Strategy::Revisit => {}
        }
        let asked = standing::after(self.issue, self.started, visit);
        let media_type = visit.media_type.clone();
        let answer = self
            .context
            .lanes
            .run(Lane::Header, move || {
                found::evaluate(&stacks.wait, &media_type, &asked)
            })
            .await?;
        self.context.faults(&answer.faults)?;
        let limits = &settings.revisit;
        let wait = match answer.wait {
            Some(wait) => wait,
            // A fault leaves the previous wait.
            None if !answer.faults.is_empty() => record.wait.unwrap_or(limits.default_wait),
            None => limits.default_wait,
        };
        Ok(Some(wait.clamp(limits.min_wait, limits.max_wait)))
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
