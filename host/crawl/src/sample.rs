//! Visits outside of a crawl: documents from an archive, a file or a single fetch, in the form in which plugins see them in a
//! crawl. Tools for plugin authors call plugins on them.
//!
//! The stages of `opilio_visit` make every document, visit and candidate, by the default profile under the strategy `revisit`.
//! Captures of one URI are successive visits: history, validators, digests, fingerprints, kept values and figures of the site are
//! those that a crawl would have. These differences from a crawl are intended:
//!
//! - One plugin is called, without guards and breaker, and each of its answers is shown. So no answer ends a visit, an error is not
//!   followed by calls for single links, and the limits of waits do not apply.
//! - Every response of any status is a visit, and every document is extracted, even if it is unchanged. Records without content,
//!   such as revisit records, do not count as visits.
//! - The plugin judges all links of a page, also those that `nofollow` or the redirect limit would remove. There are no overrides
//!   for the targets of links. Precedence plugins rank all links, because no scope has judged them.
//! - A document counts as a seed, or has the hop path that the user gives. An archive has no discovery data for it.
//! - The wait before a visit is the time since the previous capture, and no visit is overdue. No host is looked up, and there are
//!   neither prices nor signals. Links are counted only if a plugin is called on them.
//! - Payload digests decide the content state, then the change evaluator, if one is called. Strippers have no influence.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_archive::{BodyPart, HttpPayload};
use opilio_fetch::{Exchange, ResponseHead};
use opilio_frontier::{Candidate, Fingerprint, Issue, SiteRecord, UriRecord, WarcLocation};
use opilio_profile::{BreakerAction, BreakerSettings, Diagnostics, Profile, ProfileContext};
use opilio_sandbox::{
    Candidates, Comparison, Difference, Document, Finished, NamedValue, Plugin, Stage, Visit,
};
use opilio_stacks::breaker::{Breaker, FaultPolicy};
use opilio_stacks::guards::Guards;
use opilio_stacks::{Stacks, Staged, builtin_plugins, hash_of};
use opilio_uri::{HopPath, Uri};
use opilio_visit::extraction::{self, ExtractionInput};
use opilio_visit::plugin_view::{self, KnownUri, PluginMemory};
use opilio_visit::reading::Reading;
use opilio_visit::{Body, EarlierCapture, Pipeline, Response, notes_of, policy, synthetic};

pub use opilio_frontier::ContentState;
pub use opilio_visit::extraction::{ExtractionResult, Outlink, RefusedLink};

/// The profile of these visits: the default profile with the strategy `revisit`.
const PROFILE: &str = "seeds = [\"http://example.com/\"]\nstrategy = \"revisit\"\n";

/// Identity of the evaluator that made a fingerprint. There is only one evaluator.
const EVALUATOR: u64 = 0;

/// A response.
#[derive(Clone, Debug)]
pub struct SampleResponse {
    /// URI of the response.
    pub uri: Uri,
    head: ResponseHead,
    exchange: Arc<Exchange>,
}

impl SampleResponse {
    /// Reads a recorded HTTP response, as a WARC record holds it. Returns `None` if the message is not a response.
    pub fn of_message(uri: Uri, message: &[u8]) -> Option<Self> {
        let mut machine = HttpPayload::new();
        let mut payload = Vec::new();
        machine.feed(message, |part| {
            if let BodyPart::Payload(bytes) = part {
                payload.extend_from_slice(bytes);
            }
        });
        let head = ResponseHead::of_recording(machine.head())?;
        Some(Self::of_payload(uri, head, payload.into()))
    }

    /// Converts the response of an exchange; `None` if there was no response.
    pub fn of_exchange(uri: Uri, exchange: Exchange) -> Option<Self> {
        Some(Self {
            uri,
            head: exchange.head.clone()?,
            exchange: Arc::new(exchange),
        })
    }

    /// Makes a response with this status and media type from the content of a file.
    pub fn of_content(uri: Uri, status: u16, content_type: Option<&str>, content: Bytes) -> Self {
        let header = |content_type: &str| ("Content-Type".to_owned(), content_type.to_owned());
        let headers = content_type.map(header).into_iter().collect();
        Self::of_payload(uri, synthetic::head(status, headers), content)
    }

    fn of_payload(uri: Uri, head: ResponseHead, payload: Bytes) -> Self {
        let times = (Timestamp::UNIX_EPOCH, Duration::ZERO);
        Self {
            uri,
            exchange: Arc::new(synthetic::exchange(head.clone(), payload, times)),
            head,
        }
    }

    /// The media type, as plugins select documents by it.
    pub fn media_type(&self) -> String {
        let media_type = self.head.media_type();
        media_type.unwrap_or_else(|| "application/octet-stream".to_owned())
    }
}

/// The URIs visited so far.
pub struct SampleVisits {
    profile: Arc<Profile>,
    stacks: Arc<Stacks>,
    hop_path: HopPath,
    records: HashMap<Uri, UriRecord>,
    sites: HashMap<String, SiteRecord>,
}

/// One visit, after its document was read.
pub struct SampleVisit {
    /// The time of the visit.
    pub at: Timestamp,
    pipeline: Pipeline,
    site: SiteRecord,
    response: Response,
    head: ResponseHead,
    /// The visit at the headers.
    begun: Visit,
    reading: Reading,
    memory: PluginMemory,
}

impl SampleVisits {
    /// Creates a series without visits. `extractors` find the links of documents whose hop path is `hop_path`.
    ///
    /// # Errors
    /// The default profile has an error.
    pub fn new(extractors: &[Plugin], hop_path: HopPath) -> Result<Self, Diagnostics> {
        let given = ProfileContext {
            builtins: builtin_plugins(),
            ..ProfileContext::default()
        };
        let mut stacks = Stacks::default();
        stacks.extract = extractors.iter().map(without_guards).collect();
        stacks.extract_hash = hash_of(&stacks.extract);
        Ok(Self {
            profile: Arc::new(Profile::parse("default", PROFILE, &given)?),
            stacks: Arc::new(stacks),
            hop_path,
            records: HashMap::new(),
            sites: HashMap::new(),
        })
    }

    /// Reads a response that was received at this time. Blocks; call it on a thread with a stack large enough for plugins.
    pub fn visit(&self, sample: SampleResponse, at: Timestamp) -> SampleVisit {
        let SampleResponse {
            uri,
            head,
            exchange,
        } = sample;
        let known = self.records.get(&uri).cloned();
        let mut record = known.unwrap_or_else(|| self.new_record(&uri, at));
        // The document is extracted in any content state.
        record.extractor = None;
        let last = record.history.first();
        record.wait = last.map(|last| Duration::try_from(at - last.at).unwrap_or_default());
        let site = self.sites.get(&uri.surt_authority());
        let site = site.cloned().unwrap_or_default();
        let memory = PluginMemory::new(&record.kept, &site);
        let body = match head.status {
            304 if record.archived.is_some() => Body::NotModified,
            _ => Body::Fetched,
        };
        let issue = Issue::unissued(uri, record, at);
        let pipeline = Pipeline::new(issue, self.profile.clone(), self.stacks.clone(), at);
        let response = Response::new(&pipeline, &exchange, head.clone(), body);
        let task = response.task(&pipeline, &memory);
        SampleVisit {
            at,
            begun: task.visit.clone(),
            reading: task.run(),
            pipeline,
            site,
            response,
            head,
            memory,
        }
    }

    /// Stores the outcome of a visit for later visits.
    pub fn finish(&mut self, visit: &SampleVisit) {
        let (issue, settings) = (&visit.pipeline.issue, &visit.pipeline.settings);
        let mut outcome = visit.outcome();
        let kept = visit.pipeline.kept_after(&outcome, &visit.memory);
        outcome.kept = kept.uri;
        let mut record = issue.record.clone();
        record.note_visit(outcome, visit.at, settings.revisit.history);
        self.records.insert(issue.uri.clone(), record);
        let site = self.sites.entry(issue.uri.surt_authority()).or_default();
        kept.site
            .into_iter()
            .for_each(|change| site.kept.apply(change));
        site.figures.extend(kept.figures);
    }

    fn new_record(&self, uri: &Uri, at: Timestamp) -> UriRecord {
        let hop_path = self.hop_path.clone();
        let seed = hop_path.is_empty();
        let found = policy::candidate(&self.profile, uri.clone(), hop_path, None, None);
        UriRecord::of(Candidate { seed, ..found }, at)
    }
}

impl SampleVisit {
    /// The URI.
    pub fn uri(&self) -> &Uri {
        &self.pipeline.issue.uri
    }

    /// HTTP status.
    pub fn status(&self) -> i32 {
        self.begun.status
    }

    /// Media type; empty if the server named none.
    pub fn media_type(&self) -> &str {
        &self.begun.media_type
    }

    /// Bytes of content.
    pub fn bytes(&self) -> usize {
        self.reading.document.content().len()
    }

    /// State of the content.
    pub fn state(&self) -> ContentState {
        self.reading.state
    }

    /// Discards the notes and kept values of plugins that have been called since the visit began.
    pub fn renew(&mut self) {
        self.memory = PluginMemory::new(&self.pipeline.issue.record.kept, &self.site);
    }

    /// Returns the document. Each call returns a new copy, without a base that extractors declared. All copies share the notes.
    pub fn document(&self) -> Document {
        let read = &self.reading.document;
        let (content, charset) = (read.content().clone(), read.charset());
        self.pipeline
            .document(&self.head, content, charset, &self.memory)
    }

    /// Returns the document and the visit as filters of a stage see them.
    pub fn before_filter(&self, stage: &Stage) -> (Document, Visit) {
        match stage {
            Stage::MidFetch => self.pipeline.at_head(&self.head, None, &self.memory),
            Stage::PostFetch | Stage::Render => (self.document(), self.begun()),
            _ => {
                let (document, visit) = self.before_comparison();
                let state = self.reading.state;
                (document, Visit { state, ..visit })
            }
        }
    }

    /// Returns the document and the visit as change evaluators see them.
    pub fn before_comparison(&self) -> (Document, Visit) {
        let size = self.reading.size;
        let begun = self.begun();
        (self.document(), Visit { size, ..begun })
    }

    /// Returns the visit as wait evaluators see it.
    pub fn before_wait(&self) -> Visit {
        let known = KnownUri::of(&self.pipeline.issue);
        plugin_view::after(known, self.at, &self.outcome(), &self.memory)
    }

    /// Returns the fingerprint of the last version, if the change evaluator made one.
    pub fn last_fingerprint(&self) -> Option<&[u8]> {
        let last = self.pipeline.issue.record.fingerprint.as_ref();
        last.map(|last| last.bytes.as_slice())
    }

    /// Applies the answer of the change evaluator; `None` if the call failed.
    pub fn compared(&mut self, comparison: Option<&Comparison>) {
        let difference = comparison.map(|comparison| comparison.difference);
        if self.reading.state == ContentState::Changed {
            self.reading.state = match difference {
                Some(Some(Difference::Unchanged)) => ContentState::Unchanged,
                Some(_) => ContentState::Changed,
                None => ContentState::Unknown,
            };
        }
        let bytes = comparison.and_then(|comparison| comparison.fingerprint.clone());
        self.reading.fingerprint = bytes.map(|bytes| Fingerprint {
            evaluator: EVALUATOR,
            bytes,
        });
    }

    /// Returns the links of the document, as filters and precedence plugins see them.
    pub fn candidates(&self) -> Candidates {
        let (uri, record) = (self.uri(), &self.pipeline.issue.record);
        let via_surt = uri.surt();
        let links = self.reading.extracted.links.iter();
        links
            .map(|link| plugin_view::outlink_candidate(uri, &via_surt, record, link))
            .collect()
    }

    /// Runs extractors on a document as a crawl does: in order, on the document and on the fragments that they return and handle.
    /// Blocks; call it on a thread with a stack large enough for plugins.
    pub fn extract(&self, extractors: &[Plugin], document: &Document) -> ExtractionResult {
        let stack: Vec<Staged> = extractors.iter().map(without_guards).collect();
        let input = ExtractionInput {
            document,
            visit: &self.begun(),
            guards: &Guards::default(),
        };
        extraction::extract(&stack, &input, self.pipeline.profile.limits.outlinks)
    }

    /// Returns the event that observers receive.
    pub fn event(&self) -> Finished {
        let record = &self.pipeline.issue.record;
        let exchange = self.response.exchange();
        let annotations = exchange.annotations.iter().chain(&self.reading.annotations);
        let notes = notes_of(&self.memory).into_iter();
        Finished {
            at: u64::try_from(self.at.as_millisecond()).unwrap_or(0),
            uri: self.uri().as_str().to_owned(),
            status: self.status(),
            media_type: self.media_type().to_owned(),
            size: self.reading.size,
            took: None,
            state: self.reading.state.into(),
            hop_path: record.hop_path.as_str().to_owned(),
            via: None,
            source: None,
            queue: record.queue.clone(),
            digest: Some(exchange.payload_digest.to_string()),
            annotations: annotations.cloned().collect(),
            attributes: notes
                .map(|(name, value)| NamedValue { name, value })
                .collect(),
        }
    }

    /// Returns the visit at the headers, with the present notes and kept values.
    fn begun(&self) -> Visit {
        Visit {
            notes: self.memory.notes.clone(),
            kept: self.memory.kept.clone(),
            ..self.begun.clone()
        }
    }

    /// Returns the visit in the form in which a frontier would store it.
    fn outcome(&self) -> opilio_frontier::VisitUpdate {
        let record = &self.pipeline.issue.record;
        let previous = record.archived.clone().map(|at| EarlierCapture {
            uri: record.uri.clone(),
            at,
        });
        let revisit = &self.pipeline.settings.revisit;
        let (pipeline, reading) = (&self.pipeline, &self.reading);
        let keep = self.response.keep(pipeline, reading, revisit, previous);
        let mut visit = self.response.visit(pipeline, reading, &keep);
        visit.archived = visit.digests.map(|_| WarcLocation {
            file: String::new(),
            offset: 0,
            record_id: String::new(),
            date: self.at,
        });
        visit
    }
}

/// Wraps a plugin without settings of a profile: no guards, and no number of errors after which it is left out.
fn without_guards(plugin: &Plugin) -> Staged {
    let never = BreakerSettings {
        faults: None,
        calls: 0,
        skip_for: Duration::ZERO,
        then: None,
    };
    Staged {
        name: plugin.instance().into(),
        plugin: plugin.clone(),
        last_resort: false,
        guards: Vec::new(),
        policy: FaultPolicy {
            stands_for: None,
            pauses: false,
            then: BreakerAction::Skip,
        },
        breaker: Arc::new(Breaker::new(never)),
        recorder: None,
    }
}

#[cfg(test)]
mod tests {
    use opilio_sandbox::{Engine, EngineConfig, Limits, PluginConfig, Tables};

    use super::*;

    const PAGE: &str = "http://a.example/page.html";

    fn captured(content: &str, etag: &str) -> SampleResponse {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: {etag}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let body = format!("{:x}\r\n{content}\r\n0\r\n\r\n", content.len());
        let message = [head, body].concat();
        SampleResponse::of_message(Uri::parse(PAGE).unwrap(), message.as_bytes()).unwrap()
    }

    /// Visits the page an hour after the last visit, or ten hours after the epoch.
    fn visit(visits: &SampleVisits, hour: i64, content: &str, etag: &str) -> SampleVisit {
        let at = Timestamp::from_second(hour * 3600).unwrap();
        visits.visit(captured(content, etag), at)
    }

    #[test]
    fn captures_of_one_uri_are_successive_visits() {
        let mut visits = SampleVisits::new(&[], HopPath::new()).unwrap();
        let first = visit(&visits, 10, "one", "\"a\"");
        assert_eq!(first.document().text(), "one");
        let view = first.before_wait();
        assert_eq!((view.visits, view.versions), (1, 1));
        assert_eq!(
            (first.state(), view.last_wait),
            (ContentState::New, None),
            "{view:?}"
        );
        visits.finish(&first);

        let second = visit(&visits, 11, "one", "\"b\"");
        let view = second.before_wait();
        assert_eq!(second.state(), ContentState::Unchanged);
        assert_eq!((view.visits, view.versions), (2, 1));
        assert_eq!(view.last_wait, Some(Duration::from_secs(3600)));
        visits.finish(&second);

        // Post-fetch filters are called before the comparison of the content, and see the validators of the last archived version.
        let third = visit(&visits, 12, "two!", "\"c\"");
        assert_eq!(third.state(), ContentState::Changed);
        let (_, view) = third.before_filter(&Stage::PostFetch);
        assert_eq!(view.state, ContentState::Unknown);
        assert_eq!((view.visits, view.versions), (3, 1));
        assert_eq!(
            view.validators.get("etag").map(String::as_str),
            Some("\"a\"")
        );
        let history: Vec<_> = view.history.iter().map(|past| past.size).collect();
        assert_eq!(history, [Some(3), Some(3)]);
        let (_, view) = third.before_comparison();
        assert_eq!((view.size, view.state), (Some(4), ContentState::Unknown));
    }

    #[test]
    fn a_document_that_an_evaluator_finds_unchanged_is_no_new_version() {
        let mut visits = SampleVisits::new(&[], HopPath::new()).unwrap();
        let comparison = |difference, fingerprint: u8| Comparison {
            difference,
            reason: String::new(),
            fingerprint: Some(vec![fingerprint]),
        };
        let mut first = visit(&visits, 10, "one", "\"a\"");
        assert_eq!(first.last_fingerprint(), None);
        first.compared(Some(&comparison(None, 1)));
        visits.finish(&first);
        let mut second = visit(&visits, 11, "One", "\"a\"");
        assert_eq!(second.last_fingerprint(), Some(&[1][..]));
        second.compared(Some(&comparison(Some(Difference::Unchanged), 2)));
        assert_eq!(second.before_wait().versions, 1);
        visits.finish(&second);
        // By default a version with other bytes is archived.
        let mut third = visit(&visits, 12, "ONE", "\"a\"");
        assert_eq!(third.last_fingerprint(), Some(&[2][..]));
        assert_eq!(third.before_wait().versions, 2);
        third.compared(None);
        assert_eq!(third.state(), ContentState::Unknown);
    }

    #[test]
    fn figures_of_the_site_grow_with_its_visits() {
        let mut visits = SampleVisits::new(&[], HopPath::new()).unwrap();
        for hour in 10..13 {
            let next = visit(&visits, hour, &hour.to_string(), "\"a\"");
            visits.finish(&next);
        }
        let view = visit(&visits, 13, "13", "\"a\"").before_wait();
        let host = view.neighbourhood.iter().find(|one| one.shares == "host");
        let host = host.unwrap();
        assert_eq!((host.documents, host.visits, host.changes), (1, 2, 2));
    }

    /// The shipped extractor of HTML, with its defaults.
    fn html() -> Plugin {
        let builtin = opilio_builtin::find("html").unwrap();
        let engine = Engine::new(EngineConfig::default()).unwrap();
        let component = engine.load(builtin.component, "builtin:html").unwrap();
        let description = component.plugins().first().unwrap();
        let schema = serde_json::from_str(&description.settings_schema).unwrap();
        let settings = opilio_profile::complete_settings(&schema, serde_json::json!({})).unwrap();
        let config = PluginConfig {
            plugin: Some(description.name.clone()),
            instance: None,
            settings,
            limits: Limits::default(),
            tables: Tables::default(),
        };
        component.configure(config).unwrap()
    }

    #[test]
    fn links_are_extracted_as_in_a_crawl_even_from_unchanged_documents() {
        let page = "<base href='/dir/'><a href='two.html' rel=nofollow>two</a><img src='i.png'>";
        let asking = || {
            let path = HopPath::parse("L").unwrap();
            let mut visits = SampleVisits::new(&[html()], path).unwrap();
            for hour in 10..12 {
                let view = visit(&visits, hour, page, "\"a\"");
                let candidates = view.candidates();
                let links: Vec<_> = candidates
                    .iter()
                    .map(|link| (&*link.uri, &*link.hop_path, link.via.as_deref()))
                    .collect();
                let expected = [
                    ("http://a.example/dir/", "LL", Some(PAGE)),
                    ("http://a.example/dir/two.html", "LL", Some(PAGE)),
                    ("http://a.example/dir/i.png", "LE", Some(PAGE)),
                ];
                assert_eq!(links, expected, "at {hour}");
                // A base that an extractor declares applies only to the same call.
                assert_eq!(view.document().base(), PAGE);
                assert_eq!(view.before_wait().outlinks, 3);
                visits.finish(&view);
            }
        };
        opilio_stacks::on_plugin_thread("sample", asking).unwrap();
    }

    #[test]
    fn a_hop_path_makes_the_document_a_link() {
        let path = HopPath::parse("LE").unwrap();
        let visits = SampleVisits::new(&[], path).unwrap();
        let view = visit(&visits, 10, "one", "\"a\"").before_wait();
        assert_eq!(
            (&*view.candidate.hop_path, view.candidate.seed),
            ("LE", false)
        );
    }
}
