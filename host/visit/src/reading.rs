//! Reading of a response: decoding, post-fetch filters, comparison, extraction, archive filters. Everything here blocks and runs on
//! a plugin lane.

mod comparison;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use opilio_fetch::{Exchange, ResponseHead, charset};
use opilio_frontier::{ContentState, Digests, Fingerprint, StrippedDigest};
use opilio_profile::Render;
use opilio_sandbox::{Document, DocumentParts, Header, Stage, Verdict, Visit};
use opilio_uri::Uri;

use crate::document_filters::{FilterRejection, RetryWanted, judge_document};
use crate::extraction::{self, ExtractionResult};
use crate::plugin_view::PluginMemory;
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;
use opilio_stacks::{Stacks, Staged};

/// Value in place of the hash of an extractor stack, if no stack has extracted the document in full.
pub const NOT_EXTRACTED: u64 = 0;

/// The work of reading one response.
pub struct ReadingTask {
    /// The plugins for the media type of the response.
    pub stacks: Arc<Stacks>,
    /// The exchange with the response.
    pub exchange: Arc<Exchange>,
    /// The status and headers of the response.
    pub head: ResponseHead,
    /// The URI of the visit.
    pub uri: String,
    /// The base for relative references.
    pub base: String,
    /// The visit as plugins see it.
    pub visit: Visit,
    /// Digests of the last archived version.
    pub last: Option<Digests>,
    /// The fingerprint of the last archived version, made by a change evaluator.
    pub last_fingerprint: Option<Fingerprint>,
    /// Hash of the extractor stack that last extracted the document.
    pub last_extractor: Option<u64>,
    /// The setting that selects pages to render. It is "never" if there is no browser or a browser cannot show this response as a
    /// page.
    pub render: Render,
    /// `true` if the response has no body because nothing has changed: status 304, or a mid-fetch filter took the headers as proof.
    pub bodyless: bool,
    /// Maximum of bytes of content that plugins see.
    pub content_max: u64,
    /// Maximum of links that are kept of one document.
    pub links_max: usize,
    /// The values that the plugins of the visit share.
    pub memory: PluginMemory,
}

/// A page that is to be rendered before its reading continues.
pub(crate) struct ToRender {
    task: ReadingTask,
    /// `true` if the plain document is complete.
    whole: bool,
}

/// A response that was read.
pub struct Reading {
    /// The content state.
    pub state: ContentState,
    /// The digest of the content without the parts that strippers removed.
    pub stripped: Option<StrippedDigest>,
    /// The fingerprint to keep with this version, if it is archived in full.
    pub fingerprint: Option<Fingerprint>,
    /// The change evaluator that decided the state; `None` if the digests decided.
    pub compared_by: Option<Arc<str>>,
    /// Its reason; may be empty.
    pub compared_because: String,
    /// The document as plugins saw it.
    pub document: Document,
    /// The answers of guards about the document.
    pub guards: Guards,
    /// Size of the payload in bytes; `None` if no body was received.
    pub size: Option<u64>,
    /// The links found in the document.
    pub extracted: ExtractionResult,
    /// Hash of the extractor stack, if the document was extracted.
    pub extracted_by: Option<u64>,
    /// `true` if archive filters accept the response.
    pub archive: bool,
    /// The retry that a post-fetch filter requested.
    pub retry: Option<RetryWanted>,
    /// The refusal by a post-fetch filter.
    pub rejected: Option<FilterRejection>,
    /// The page that a browser renders before the document is compared, extracted and judged further.
    pub(crate) to_render: Option<Box<ToRender>>,
    /// `true` if the content state is that of the page as a browser showed it.
    pub is_rendered: bool,
    /// Encoding of the text and the source of this information, for the metadata record.
    pub charset: Option<String>,
    /// Annotations.
    pub annotations: Vec<String>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
}

/// Expected bytes of content for each byte of a coded payload. Text is seldom compressed to less than a tenth.
const DECODED_BYTES: u64 = 16;
/// Minimum of bytes of content expected of a coded payload.
const DECODED_BYTES_MIN: u64 = 1 << 20;

impl ReadingTask {
    /// Bytes of content to expect, for which memory is reserved.
    pub fn content_expected(&self) -> u64 {
        let length = self.exchange.payload.length();
        let expected = match self.head.content_codings().is_empty() {
            true => length,
            false => length.saturating_mul(DECODED_BYTES).max(DECODED_BYTES_MIN),
        };
        expected.min(self.content_max)
    }

    /// Reads the response if its content has at most `bytes` bytes. `decoded` receives the number of bytes before plugins see
    /// them.
    ///
    /// # Errors
    /// Returns the task if there is more content and more may be read: memory for the whole allowed content must be reserved.
    pub fn run_within(
        self,
        bytes: u64,
        decoded: impl FnOnce(u64),
    ) -> Result<Reading, Box<ReadingTask>> {
        let read = content(&self.exchange, &self.head, bytes);
        if bytes < self.content_max && read.0.len() as u64 >= bytes && self.is_coded() {
            return Err(Box::new(self));
        }
        decoded(read.0.len() as u64);
        Ok(self.read(read))
    }

    fn is_coded(&self) -> bool {
        !self.head.content_codings().is_empty()
    }

    /// Reads the response without a limit on memory.
    pub fn run(self) -> Reading {
        let content = content(&self.exchange, &self.head, self.content_max);
        self.read(content)
    }

    fn read(self, (content, problem): (Bytes, Option<String>)) -> Reading {
        let cut = content.len() as u64 >= self.content_max;
        let unread = content.is_empty() && !self.exchange.payload.is_empty();
        let whole = problem.is_none() && !cut && !unread;
        let mut annotations = Vec::from_iter(problem);
        let (document, charset) = self.decode(content, &mut annotations);
        let mut reading = Reading {
            state: ContentState::Unchanged,
            stripped: None,
            fingerprint: None,
            compared_by: None,
            compared_because: String::new(),
            document: document.clone(),
            guards: Guards::default(),
            size: (!self.bodyless).then(|| self.exchange.payload.length()),
            extracted: ExtractionResult::default(),
            extracted_by: None,
            archive: true,
            retry: None,
            rejected: None,
            to_render: None,
            is_rendered: false,
            charset,
            annotations,
            failures: Vec::new(),
        };
        if !self.post_fetch(&document, &mut reading) {
            if self.is_to_be_rendered(&document, &mut reading) {
                reading.to_render = Some(Box::new(ToRender { task: self, whole }));
            } else {
                self.finish_reading(&document, whole, None, &mut reading);
            }
        }
        let guards = reading.guards.take_failures();
        reading.failures.extend(guards);
        reading
    }

    /// Reads the rest of a response that post-fetch filters accept: comparison, extraction, archive filters. `shown` is the page as
    /// a browser showed it.
    fn finish_reading(
        &self,
        document: &Document,
        whole: bool,
        shown: Option<&Document>,
        reading: &mut Reading,
    ) {
        let mut visit = self.visit.clone();
        visit.size = reading.size;
        match shown {
            _ if self.bodyless => {}
            Some(shown) => self.judge_rendered_state(shown, whole, &visit, reading),
            None => self.judge_state(document, whole, &visit, reading),
        }
        let visit = judged(visit, reading.state);
        self.extract(document, &visit, reading);
        reading.archive = self.allowed(
            &self.stacks.archive,
            &Stage::Archive,
            document,
            &visit,
            reading,
        );
    }

    /// Returns the page as a browser showed it, for plugins.
    fn shown(&self, content: Bytes) -> Document {
        let (uri, base) = (&self.uri, &self.base);
        document(uri, base, &self.head, content, Some(UTF_8), &self.memory)
    }

    /// Returns the document as plugins see it, and its encoding with its source.
    fn decode(&self, content: Bytes, annotations: &mut Vec<String>) -> (Document, Option<String>) {
        let media_type = self.head.media_type().unwrap_or_default();
        let document = |content, encoding| {
            document(
                &self.uri,
                &self.base,
                &self.head,
                content,
                encoding,
                &self.memory,
            )
        };
        if self.bodyless || !is_text(&media_type) {
            return (document(content, None), None);
        }
        let host = Uri::parse(&self.uri)
            .ok()
            .and_then(|uri| uri.host().map(str::to_owned));
        let clues = charset::CharsetHints {
            content_type: self.head.first("content-type"),
            host: host.as_deref(),
        };
        let decided = charset::decide(clues, &content);
        let label = decided.label();
        annotations.extend(decided.annotations);
        (document(content, Some(decided.encoding)), Some(label))
    }

    /// Returns `true` if post-fetch filters end the visit here.
    fn post_fetch(&self, document: &Document, reading: &mut Reading) -> bool {
        if self.stacks.post_fetch.is_empty() {
            return false;
        }
        let judged = judge_document(
            &self.stacks.post_fetch,
            &Stage::PostFetch,
            document,
            &self.visit,
            &reading.guards,
        );
        reading.failures.extend(judged.failures);
        match judged.verdict {
            Verdict::Retry(after) => {
                reading.retry = Some(RetryWanted {
                    after: Duration::from_millis(after),
                    because: judged.reason,
                });
            }
            Verdict::Reject => {
                reading.rejected = Some(FilterRejection {
                    status: judged.status,
                    because: judged.reason,
                });
            }
            _ => return false,
        }
        true
    }

    /// Calls the filters of the stack `render`, if the settings leave the decision to them. The page is rendered only if a filter
    /// accepts it.
    fn is_to_be_rendered(&self, document: &Document, reading: &mut Reading) -> bool {
        match self.render {
            Render::Never => return false,
            Render::Always => return true,
            Render::Auto => {}
        }
        let judged = judge_document(
            &self.stacks.render,
            &Stage::Render,
            document,
            &self.visit,
            &reading.guards,
        );
        reading.failures.extend(judged.failures);
        let is_accepted = judged.verdict == Verdict::Accept;
        if is_accepted {
            reading
                .annotations
                .push(format!("render:{}", judged.reason));
        }
        is_accepted
    }

    /// Extracts the document unless it is unchanged. An unchanged document is extracted if the extractors have changed since the
    /// last extraction.
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
        let input = extraction::ExtractionInput {
            document,
            visit,
            guards: &reading.guards,
        };
        reading.extracted = extraction::extract(stack, &input, self.links_max);
        // If an extractor failed, links are missing: the next visit extracts again, changed or not.
        let complete = !reading.extracted.incomplete;
        reading.failures.append(&mut reading.extracted.failures);
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
        let judged = judge_document(stack, stage, document, visit, &reading.guards);
        reading.failures.extend(judged.failures);
        let what = match stage {
            Stage::Archive => "unwritten",
            _ => "unextracted",
        };
        if judged.verdict == Verdict::Reject {
            reading
                .annotations
                .push(format!("{what}:{}", judged.reason));
        }
        judged.verdict != Verdict::Reject
    }
}

impl Reading {
    /// Continues the reading of a page after the attempt to render it. `shown` is the page as a browser showed it; `None` if there
    /// is nothing to compare. Blocks; call it on a document lane.
    pub(crate) fn after_rendering(mut self, shown: Option<Bytes>) -> Reading {
        let Some(ToRender { task, whole }) = self.to_render.take().map(|it| *it) else {
            return self;
        };
        let document = self.document.clone();
        let shown = shown.map(|content| task.shown(content));
        task.finish_reading(&document, whole, shown.as_ref(), &mut self);
        let guards = self.guards.take_failures();
        self.failures.extend(guards);
        self
    }
}

/// Returns a response as plugins see it.
pub fn document(
    uri: &str,
    base: &str,
    head: &ResponseHead,
    content: Bytes,
    charset: Option<&'static Encoding>,
    memory: &PluginMemory,
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
        notes: memory.notes.clone(),
        kept: memory.kept.clone(),
    })
}

/// Returns the content with its codings removed, at most `max` bytes, and an annotation if a coding could not be removed in full. A
/// payload on disk that cannot be read counts as empty for plugins; the archive reports the error.
pub fn content(exchange: &Exchange, head: &ResponseHead, max: u64) -> (Bytes, Option<String>) {
    if head.content_codings().is_empty() {
        let max = usize::try_from(max.min(exchange.payload.length())).unwrap_or(usize::MAX);
        return (exchange.payload.read_at(0, max).unwrap_or_default(), None);
    }
    let decoded = exchange.content(max);
    let annotation = decoded.problem.map(|problem| problem.annotation());
    (decoded.content.into(), annotation)
}

/// Returns `true` if content of this type is text. Content without a type counts as text.
pub fn is_text(media_type: &str) -> bool {
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

/// Returns the visit with its content state. A new version is counted in it.
fn judged(visit: Visit, state: ContentState) -> Visit {
    Visit {
        state,
        versions: visit.versions + u64::from(state.is_version()),
        ..visit
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns the reading of a page of this many zeros, whose coded payload is very small.
    fn task(zeros: u64) -> ReadingTask {
        let mut coder = GzEncoder::new(Vec::new(), Compression::best());
        coder.write_all(&vec![0; zeros as usize]).unwrap();
        crate::synthetic::reading_task(coder.finish().unwrap().into())
    }

    #[test]
    fn decoding_stops_at_the_reserved_memory() {
        let task = task(20 * MIB);
        let expected = task.content_expected();
        assert_eq!(expected, MIB);
        let first = task.run_within(expected, |decoded| panic!("{decoded} bytes"));
        let Err(again) = first else {
            panic!("more was decoded than there was memory for")
        };
        let (all, mut decoded) = (again.content_max, 0);
        let Ok(reading) = again.run_within(all, |bytes| decoded = bytes) else {
            panic!("all that plugins may see was not enough")
        };
        assert_eq!(decoded, 20 * MIB);
        assert_eq!(reading.document.content().len() as u64, decoded);
    }

    #[test]
    fn plugins_called_after_the_comparison_see_the_new_version_counted() {
        let visit = Visit {
            versions: 3,
            ..task(1).visit
        };
        for (state, versions) in [
            (ContentState::New, 4),
            (ContentState::Changed, 4),
            (ContentState::Unchanged, 3),
            (ContentState::Unknown, 3),
        ] {
            let judged = judged(visit.clone(), state);
            assert_eq!((judged.state, judged.versions), (state, versions));
        }
    }

    #[test]
    fn an_uncoded_payload_reserves_its_length_up_to_the_limit_for_plugins() {
        let mut plain = task(3);
        plain.head.headers.truncate(1);
        let length = plain.exchange.payload.length();
        assert_eq!(plain.content_expected(), length);
        plain.content_max = 5;
        assert_eq!(plain.content_expected(), 5);
    }
}
