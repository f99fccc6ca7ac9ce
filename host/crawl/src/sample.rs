//! Documents outside of a crawl, as plugins see them in one: from an archive, a file, or a single fetch. Tools for plugin authors
//! run plugins on them, and so show what a crawl would do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_archive::{HttpPayload, Part};
use opilio_fetch::{Exchange, ResponseHead, charset, coding};
use opilio_profile::{Breaker as Rule, BreakerAction};
use opilio_sandbox::{Candidate, Document, Fault, NamedValue, Plugin, Visit};
use opilio_uri::{Hop, Uri};

use opilio_stacks::Staged;
use opilio_stacks::breaker::{Breaker, FaultPolicy};
use opilio_stacks::guards::Guards;
use opilio_visit::extraction::{self, Asked};
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::reading;

/// A response with decoded content.
#[derive(Clone, Debug)]
pub struct Sample {
    /// URI of the response.
    pub uri: Uri,
    /// Status and headers.
    pub head: ResponseHead,
    /// Content without transfer and content codings, as far as they could be removed.
    pub content: Bytes,
    /// Annotations of the reading, as `crawl.log` would have them.
    pub annotations: Vec<String>,
}

/// Links that extractors found in a document.
#[derive(Debug, Default)]
pub struct Links {
    /// Resolved links, each URI and hop once, in the order found.
    pub links: Vec<Link>,
    /// References that the crawl cannot follow, with the reason.
    pub refused: Vec<(String, String)>,
    /// Number of links and fragments beyond the limits.
    pub dropped: u64,
    /// Calls that failed.
    pub faults: Vec<Fault>,
    /// Parts that could not be read, with the plugin.
    pub problems: Vec<String>,
}

/// A resolved link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Target of the link.
    pub uri: Uri,
    /// Type of the hop.
    pub hop: Hop,
    /// Context of the link in the document.
    pub context: String,
    /// Further attributes that the extractor gives the link.
    pub attributes: Vec<NamedValue>,
    /// Time of the target's last change, according to the document.
    pub modified: Option<Timestamp>,
}

impl Sample {
    /// Reads a recorded HTTP response, as a WARC record holds it. Returns `None` if the message is not a response. Keeps at most
    /// `content_max` bytes of content, because plugins see no more of it.
    pub fn of_message(uri: Uri, message: &[u8], content_max: u64) -> Option<Self> {
        let mut machine = HttpPayload::new();
        let mut payload = Vec::new();
        machine.feed(message, |part| {
            if let Part::Payload(bytes) = part {
                payload.extend_from_slice(bytes);
            }
        });
        let head = ResponseHead::of_recording(machine.head())?;
        let decoded = coding::decode(&head.content_codings(), || payload.as_slice(), content_max);
        Some(Self {
            uri,
            head,
            content: decoded.content.into(),
            annotations: decoded
                .problem
                .map(|problem| problem.annotation())
                .into_iter()
                .collect(),
        })
    }

    /// Reads the response of an exchange; `None` if no response came.
    pub fn of_exchange(uri: Uri, exchange: &Exchange, content_max: u64) -> Option<Self> {
        let head = exchange.head.clone()?;
        let (content, problem) = reading::content(exchange, &head, content_max);
        Some(Self {
            uri,
            head,
            content,
            annotations: problem.into_iter().collect(),
        })
    }

    /// Makes a response with this status and media type from the content of a file.
    pub fn of_content(uri: Uri, status: u16, content_type: Option<&str>, content: Bytes) -> Self {
        let headers = content_type
            .map(|content_type| ("Content-Type".to_owned(), content_type.to_owned()))
            .into_iter()
            .collect();
        Self {
            uri,
            head: ResponseHead {
                version: "HTTP/1.1".to_owned(),
                status,
                reason: String::new(),
                headers,
                length: 0,
            },
            content,
            annotations: Vec::new(),
        }
    }

    /// Returns the document that plugins get, with notes and kept values of its own. Every call returns another document.
    pub fn document(&self) -> Document {
        let media_type = self.head.media_type().unwrap_or_default();
        let charset = reading::is_text(&media_type).then(|| {
            let clues = charset::Clues {
                content_type: self.head.first("content-type"),
                host: self.uri.host(),
            };
            charset::decide(clues, &self.content).encoding
        });
        let uri = self.uri.as_str();
        reading::document(
            uri,
            uri,
            &self.head,
            self.content.clone(),
            charset,
            &PluginMemory::default(),
        )
    }
}

/// Runs extractors on a document as a crawl does: in order, on the document and on the fragments that they return, if they handle
/// them. Returns resolved links. Blocks; call it on a thread with room for plugins.
pub fn links(extractors: &[Plugin], document: &Document, links_max: usize) -> Links {
    let stack: Vec<Staged> = extractors.iter().map(alone).collect();
    let visit = Visit::of(candidate(document.uri()), Timestamp::UNIX_EPOCH);
    let guards = Guards::default();
    let asked = Asked {
        document,
        visit: &visit,
        guards: &guards,
    };
    let extracted = extraction::extract(&stack, &asked, links_max);
    let links = extracted.links.into_iter();
    let refused = extracted.refused.into_iter();
    let failures = extracted.failures.into_iter();
    let problems = extracted.problems.into_iter();
    Links {
        links: links
            .map(|link| Link {
                uri: link.uri,
                hop: link.hop,
                context: link.context,
                attributes: link.attributes,
                modified: link.modified,
            })
            .collect(),
        refused: refused
            .map(|link| (link.reference, link.problem.to_string()))
            .collect(),
        dropped: extracted.dropped,
        faults: failures.map(|failure| failure.fault).collect(),
        problems: problems
            .map(|(plugin, problem)| format!("{plugin}: {problem}"))
            .collect(),
    }
}

/// Wraps a plugin without settings of a profile: no guards, and no number of errors after which it is left out.
fn alone(plugin: &Plugin) -> Staged {
    let never = Rule {
        faults: None,
        calls: 0,
        rest: Duration::ZERO,
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

/// Returns the candidate of a document of which only the URI is known.
fn candidate(uri: &str) -> Candidate {
    Candidate::seed(uri.to_owned(), opilio_uri::surt_of(uri))
}
