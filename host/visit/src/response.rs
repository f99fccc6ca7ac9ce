//! A response that is not retried: the work of reading it, and its part of the URI's record.

use std::collections::BTreeMap;
use std::sync::Arc;

use opilio_fetch::robots_tag::RobotsTag;
use opilio_fetch::{Exchange, ResponseHead};
use opilio_frontier::{ContentState, Digests, GroupFigures, KeptChange, Validators, VisitUpdate};
use opilio_profile::{EffectiveSettings, Render, Strategy};
use opilio_sandbox::Visit;
use opilio_stacks::Stacks;

use crate::capture::{Body, CaptureForm};
use crate::pipeline::{LogEntry, Pipeline};
use crate::plugin_view::{self, PluginMemory};
use crate::reading::{self, Reading, ReadingTask};
use crate::site_figures::{DocumentTraits, EarlierVisits};

/// Name of the note in which extractors leave the content of `<meta name=robots>`.
const ROBOTS_META: &str = "robots-meta";

/// A response that is not retried, with the settings and plugins for its media type.
pub struct Response {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) head: ResponseHead,
    pub(crate) body: Body,
    pub(crate) settings: Arc<EffectiveSettings>,
    pub(crate) stacks: Arc<Stacks>,
}

/// Changes of the values that are kept after a visit.
pub struct KeptValueChanges {
    /// Values kept with the URI.
    pub uri: Vec<KeptChange>,
    /// Values kept with the site.
    pub site: Vec<KeptChange>,
    /// Figures of the site's groups of documents.
    pub figures: BTreeMap<String, GroupFigures>,
}

impl Response {
    /// Selects the settings and plugins for a response.
    pub fn new(
        pipeline: &Pipeline,
        exchange: &Arc<Exchange>,
        head: ResponseHead,
        body: Body,
    ) -> Response {
        // A 304 seldom has a media type. The type of the archived version applies.
        let media_type = head.media_type();
        let media_type = media_type.unwrap_or_else(|| pipeline.issue.record.media_type.clone());
        let (settings, stacks) = pipeline.for_response(&media_type);
        Response {
            exchange: exchange.clone(),
            head,
            body,
            settings,
            stacks,
        }
    }

    /// Returns the exchange with the response.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Returns the work of reading the response, without a browser.
    pub fn task(&self, pipeline: &Pipeline, memory: &PluginMemory) -> ReadingTask {
        let (issue, head) = (&pipeline.issue, &self.head);
        let visit = self.plugin_visit(pipeline, memory);
        let record = &issue.record;
        let limits = &pipeline.profile.limits;
        ReadingTask {
            stacks: self.stacks.clone(),
            exchange: self.exchange.clone(),
            head: head.clone(),
            uri: issue.uri.as_str().to_owned(),
            base: pipeline.base(head),
            visit,
            last: record.archived.is_some().then_some(record.digests),
            last_fingerprint: record.fingerprint.clone(),
            last_extractor: record.extractor,
            render: Render::Never,
            bodyless: self.body != Body::Fetched,
            content_max: limits.plugin_content.bytes(),
            links_max: limits.outlinks,
            memory: memory.clone(),
        }
    }

    /// Returns the visit as plugins see it when the headers have arrived.
    pub(crate) fn plugin_visit(&self, pipeline: &Pipeline, memory: &PluginMemory) -> Visit {
        let (issue, head) = (&pipeline.issue, &self.head);
        let (status, media_type) = (i32::from(head.status), head.media_type());
        let mut visit = plugin_view::visit(issue, pipeline.started, status, media_type, memory);
        visit.candidate.address = self.exchange.peer.as_ref().map(ToString::to_string);
        visit
    }

    /// The log entry of a response that was read.
    pub(crate) fn entry(&self, annotations: Vec<String>, memory: &PluginMemory) -> LogEntry {
        let exchange = &self.exchange;
        let is_fetched = self.body == Body::Fetched;
        LogEntry {
            status: exchange.status(),
            size: Some(exchange.payload.length()),
            media_type: self.head.media_type(),
            fetch: Some((exchange.started, exchange.duration)),
            digest: is_fetched.then(|| exchange.payload_digest.to_string()),
            annotations,
            notes: notes_of(memory),
            ..LogEntry::default()
        }
    }

    /// Annotates the page's robots directives, and obeys them if the profile sets that. Returns whether links of the page may be
    /// followed.
    pub(crate) fn apply_robots_directives(
        &self,
        pipeline: &Pipeline,
        memory: &PluginMemory,
        reading: &mut Reading,
        annotations: &mut Vec<String>,
    ) -> bool {
        let robots = &self.settings.robots;
        let notes = memory.notes.all();
        let meta = notes.get(ROBOTS_META).map(String::as_str);
        let agent = &pipeline.profile.user_agent;
        let tag = RobotsTag::of_headers(self.head.all("x-robots-tag"), agent)
            .and(RobotsTag::of_meta(meta.unwrap_or_default()));
        if tag == RobotsTag::default() {
            return true;
        }
        let words: Vec<_> = tag.words().collect();
        annotations.push(format!("robotsTag:{}", words.join("+")));
        if !robots.policy.obeys_pages() {
            return true;
        }
        if tag.noarchive && robots.noarchive && reading.archive {
            reading.archive = false;
            annotations.push("unwritten:noarchive".to_owned());
        }
        !tag.nofollow
    }

    /// Returns the visit for the frontier's record, without the archive location.
    pub fn visit(&self, pipeline: &Pipeline, reading: &Reading, keep: &CaptureForm) -> VisitUpdate {
        let (exchange, head) = (&self.exchange, &self.head);
        let is_stored = *keep == CaptureForm::Response;
        // A rendered page that differs is another version, although its payload is stored already.
        let shows_anew = reading.is_rendered
            && reading.state != ContentState::Unchanged
            && matches!(keep, CaptureForm::Identical(_));
        let kept = is_stored || shows_anew;
        let complete = is_stored && exchange.truncated.is_none() && exchange.failure.is_none();
        let validators = Validators {
            etag: head.first("etag").map(str::to_owned),
            last_modified: head.first("last-modified").map(str::to_owned),
        };
        let digests = Digests {
            payload: Some(exchange.payload_digest.0),
            stripped: reading.stripped,
        };
        let media_type = head.media_type();
        VisitUpdate {
            status: exchange.status(),
            state: reading.state,
            duplicate: false,
            size: reading.size,
            media_type: media_type.unwrap_or_else(|| pipeline.issue.record.media_type.clone()),
            digests: kept.then_some(digests),
            // Only a complete body may be the basis of a 304.
            validators: is_stored.then(|| match complete && head.status == 200 {
                true => validators,
                false => Validators::default(),
            }),
            archived: None,
            extractor: reading.extracted_by,
            outlinks: reading
                .extracted_by
                .filter(|by| *by != reading::NOT_EXTRACTED)
                .map(|_| reading.extracted.links.len() as u64),
            fingerprint: reading.fingerprint.clone().filter(|_| kept),
            kept: Vec::new(),
            oscillation: None,
            redirect_target: None,
        }
    }
}

impl Pipeline {
    /// Returns the values to keep after a visit: those that plugins have set and, if documents are revisited, figures on the
    /// documents of the site.
    pub fn kept_after(&self, visit: &VisitUpdate, memory: &PluginMemory) -> KeptValueChanges {
        let kept = memory.kept.changes();
        let figures = match self.settings.strategy {
            Strategy::Snapshot => BTreeMap::new(),
            _ if self.is_prerequisite() => BTreeMap::new(),
            _ => {
                let (uri, record) = (&self.issue.uri, &self.issue.record);
                let shared = DocumentTraits::of(uri, record, &visit.media_type, Some(visit));
                let earlier = EarlierVisits::of(record);
                memory.site.after(&shared, earlier, visit, self.started)
            }
        };
        KeptValueChanges {
            uri: kept.uri,
            site: kept.site,
            figures,
        }
    }
}

/// Returns the notes of plugins, for observers.
pub fn notes_of(memory: &PluginMemory) -> BTreeMap<String, String> {
    memory.notes.all().into_iter().collect()
}
