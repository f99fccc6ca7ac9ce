//! What came, as plugins see it: decoded, judged, digested, extracted. Everything here blocks and runs on a lane.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use encoding_rs::Encoding;
use opilio_fetch::{Exchange, ResponseHead, charset};
use opilio_frontier::{ContentState, Digests, StrippedDigest};
use opilio_sandbox::{Document, DocumentParts, Fault, Header, Kept, Notes, Stage, Verdict, Visit};

use opilio_uri::Uri;

use crate::digest::{self, Stripped};
use crate::extraction::{self, Extracted};
use crate::stacks::{Stacks, Staged};
use crate::standing::plugin_state;

/// In place of the hash of an extractor stack: no stack has extracted it, or not in full.
pub(crate) const NOT_EXTRACTED: u64 = 0;

/// Reading one response.
pub(crate) struct Task {
    pub stacks: Arc<Stacks>,
    pub exchange: Arc<Exchange>,
    pub head: ResponseHead,
    pub uri: String,
    /// What relative references resolve against.
    pub base: String,
    pub visit: Visit,
    /// Digests of the last archived version.
    pub last: Option<Digests>,
    /// The extractor stack that last extracted it.
    pub last_extractor: Option<u64>,
    /// No body came, and none was to come: 304, or the headers say that nothing has changed.
    pub bodyless: bool,
    /// Bytes of content that plugins see.
    pub content_max: u64,
    pub links_max: usize,
    pub notes: Notes,
}

/// What reading came to.
pub(crate) struct Reading {
    pub state: ContentState,
    pub stripped: Option<StrippedDigest>,
    /// Size of the payload; none where no body came.
    pub size: Option<u64>,
    pub extracted: Extracted,
    /// Hash of the extractor stack, where it was extracted.
    pub extracted_by: Option<u64>,
    /// Archive filters let it be archived.
    pub archive: bool,
    /// A post-fetch filter wants it fetched again.
    pub retry: Option<Duration>,
    /// A post-fetch filter wants nothing of it.
    pub rejected: Option<String>,
    /// Encoding of the text, and where that was said, for the metadata record.
    pub charset: Option<String>,
    pub annotations: Vec<String>,
    pub faults: Vec<Fault>,
}

/// What document filters made of a response.
pub(crate) struct Judged {
    pub verdict: Verdict,
    pub reason: String,
    pub faults: Vec<Fault>,
}

/// What wait evaluators made of a visit.
pub(crate) struct Evaluated {
    pub wait: Option<Duration>,
    pub faults: Vec<Fault>,
}

impl Task {
    /// Reads the response.
    pub(crate) fn run(self) -> Reading {
        let mut reading = Reading {
            state: ContentState::Unchanged,
            stripped: None,
            size: (!self.bodyless).then(|| self.exchange.payload.length()),
            extracted: Extracted::default(),
            extracted_by: None,
            archive: true,
            retry: None,
            rejected: None,
            charset: None,
            annotations: Vec::new(),
            faults: Vec::new(),
        };
        let (document, whole) = self.open(&mut reading);
        if self.post_fetch(&document, &mut reading) {
            return reading;
        }
        if !self.bodyless {
            self.judge_state(&document, whole, &mut reading);
        }
        let mut visit = self.visit.clone();
        visit.state = plugin_state(reading.state);
        visit.size = reading.size;
        self.extract(&document, &visit, &mut reading);
        reading.archive = self.allowed(
            &self.stacks.archive,
            &Stage::Archive,
            &document,
            &visit,
            &mut reading,
        );
        reading
    }

    /// The document as plugins see it, and whether that is all of it.
    fn open(&self, reading: &mut Reading) -> (Document, bool) {
        let (content, problem) = content(&self.exchange, &self.head, self.content_max);
        let cut = content.len() as u64 >= self.content_max;
        let unread = content.is_empty() && !self.exchange.payload.is_empty();
        let whole = problem.is_none() && !cut && !unread;
        reading.annotations.extend(problem);
        (self.decode(content, reading), whole)
    }

    fn decode(&self, content: Bytes, reading: &mut Reading) -> Document {
        let media_type = self.head.media_type().unwrap_or_default();
        if self.bodyless || !is_text(&media_type) {
            return document(
                &self.uri,
                &self.base,
                &self.head,
                content,
                None,
                &self.notes,
            );
        }
        let host = Uri::parse(&self.uri)
            .ok()
            .and_then(|uri| uri.host().map(str::to_owned));
        let clues = charset::Clues {
            content_type: self.head.first("content-type"),
            host: host.as_deref(),
        };
        let decided = charset::decide(clues, &content);
        reading.charset = Some(decided.label());
        reading.annotations.extend(decided.annotations);
        document(
            &self.uri,
            &self.base,
            &self.head,
            content,
            Some(decided.encoding),
            &self.notes,
        )
    }

    /// Whether post-fetch filters end the visit here.
    fn post_fetch(&self, document: &Document, reading: &mut Reading) -> bool {
        if self.stacks.post_fetch.is_empty() {
            return false;
        }
        let judged = judge_document(
            &self.stacks.post_fetch,
            &Stage::PostFetch,
            document,
            &self.visit,
        );
        reading.faults.extend(judged.faults);
        match judged.verdict {
            Verdict::Retry(after) => reading.retry = Some(Duration::from_millis(after)),
            Verdict::Reject => reading.rejected = Some(judged.reason),
            _ => return false,
        }
        true
    }

    fn judge_state(&self, document: &Document, whole: bool, reading: &mut Reading) {
        let mut stripped = digest::stripped(&self.stacks.digest, self.stacks.digest_hash, document);
        if !whole && matches!(stripped, Stripped::Digest(_)) {
            // What lies behind the cut may have changed.
            stripped = Stripped::Unknown {
                why: "the content could not be read whole".into(),
                fault: None,
            };
        }
        reading.state = digest::state(
            self.last.as_ref(),
            self.exchange.payload_digest.0,
            &stripped,
        );
        match stripped {
            Stripped::Digest(digest) => reading.stripped = Some(digest),
            Stripped::Unknown { why, fault } => {
                tracing::debug!(uri = self.uri, %why, "no stripped digest");
                reading.faults.extend(fault.map(|fault| *fault));
            }
            Stripped::NotAsked => {}
        }
    }

    /// Everything but what is unchanged is extracted; that too, when the extractors have changed since.
    fn extract(&self, document: &Document, visit: &Visit, reading: &mut Reading) {
        let stack = &self.stacks.extract;
        let known = reading.state == ContentState::Unchanged
            && (self.bodyless || self.last_extractor == Some(self.stacks.extract_hash));
        if known
            || !self.allowed(
                &self.stacks.pre_extract,
                &Stage::Extract,
                document,
                visit,
                reading,
            )
        {
            return;
        }
        reading.extracted = extraction::extract(stack, document, self.links_max);
        // Where an extractor failed, links are missing: the next visit extracts again, changed or not.
        let complete = reading.extracted.faults.is_empty();
        reading.faults.append(&mut reading.extracted.faults);
        reading.extracted_by = Some(if complete {
            self.stacks.extract_hash
        } else {
            NOT_EXTRACTED
        });
    }

    fn allowed(
        &self,
        stack: &[Staged],
        stage: &Stage,
        document: &Document,
        visit: &Visit,
        reading: &mut Reading,
    ) -> bool {
        if stack.is_empty() {
            return true;
        }
        let judged = judge_document(stack, stage, document, visit);
        reading.faults.extend(judged.faults);
        if judged.verdict == Verdict::Reject && *stage == Stage::Archive {
            reading
                .annotations
                .push(format!("unwritten:{}", judged.reason));
        }
        judged.verdict != Verdict::Reject
    }
}

/// A response as plugins see it.
pub(crate) fn document(
    uri: &str,
    base: &str,
    head: &ResponseHead,
    content: Bytes,
    charset: Option<&'static Encoding>,
    notes: &Notes,
) -> Document {
    let headers = head.headers.iter().map(|(name, value)| Header {
        name: name.clone(),
        value: value.clone(),
    });
    Document::new(DocumentParts {
        uri: uri.to_owned(),
        base: base.to_owned(),
        status: i32::from(head.status),
        headers: headers.collect(),
        media_type: head
            .media_type()
            .unwrap_or_else(|| "application/octet-stream".to_owned()),
        charset,
        fragment: None,
        content,
        notes: notes.clone(),
        kept: Kept::default(),
    })
}

/// Content with its codings removed, at most `max` bytes, and an annotation where that could not be done in full.
/// A payload that is on disk and cannot be read is as good as none for plugins; the archive will say so.
pub(crate) fn content(
    exchange: &Exchange,
    head: &ResponseHead,
    max: u64,
) -> (Bytes, Option<String>) {
    if head.content_codings().is_empty() {
        let max = usize::try_from(max.min(exchange.payload.length())).unwrap_or(usize::MAX);
        return (exchange.payload.read_at(0, max).unwrap_or_default(), None);
    }
    let decoded = exchange.content(max);
    let annotation = decoded
        .problem
        .map(|problem| format!("unsatisfiableContentEncoding:{problem}"));
    (decoded.content.into(), annotation)
}

/// Whether content of this type is text. What a server sent without a type may be.
fn is_text(media_type: &str) -> bool {
    const ENDINGS: [&str; 6] = [
        "javascript",
        "ecmascript",
        "json",
        "xml",
        "x-sh",
        "manifest",
    ];
    media_type.is_empty()
        || media_type.starts_with("text/")
        || ENDINGS.iter().any(|ending| media_type.ends_with(ending))
}

/// Asks document filters. The last that does not pass decides; where all pass it is accepted. A filter that fails
/// has no say.
pub(crate) fn judge_document(
    stack: &[Staged],
    stage: &Stage,
    document: &Document,
    visit: &Visit,
) -> Judged {
    let mut judged = Judged {
        verdict: Verdict::Pass,
        reason: String::new(),
        faults: Vec::new(),
    };
    for staged in stack {
        if !staged.plugin.handles(document.media_type(), document.uri()) {
            continue;
        }
        match staged.plugin.judge_document(stage.clone(), document, visit) {
            Ok(ruling) if ruling.verdict != Verdict::Pass => {
                judged.verdict = ruling.verdict;
                judged.reason = format!("{}:{}", staged.name, ruling.reason);
            }
            Ok(_) => {}
            Err(fault) => judged.faults.push(staged.named(fault)),
        }
    }
    judged
}

/// Asks wait evaluators: the first that answers.
pub(crate) fn evaluate(stack: &[Staged], media_type: &str, visit: &Visit) -> Evaluated {
    let mut faults = Vec::new();
    for staged in stack {
        if !staged.plugin.handles(media_type, &visit.candidate.uri) {
            continue;
        }
        match staged.plugin.evaluate(visit) {
            Ok(Some(wait)) => {
                return Evaluated {
                    wait: Some(wait.next_visit),
                    faults,
                };
            }
            Ok(None) => {}
            Err(fault) => faults.push(staged.named(fault)),
        }
    }
    Evaluated { wait: None, faults }
}
