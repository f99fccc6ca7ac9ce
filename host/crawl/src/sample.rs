//! Documents outside of a crawl, as plugins see them in one: from an archive, a file, a single fetch. What tools for
//! plugin authors try plugins on, so that what they show is what a crawl would do.

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

/// A response, its content decoded.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Where it came from.
    pub uri: Uri,
    /// Status and headers.
    pub head: ResponseHead,
    /// Transfer and content codings removed, as far as that could be done.
    pub content: Bytes,
    /// Annotations that the crawl log would have of its reading.
    pub annotations: Vec<String>,
}

/// What extractors found in a document.
#[derive(Debug, Default)]
pub struct Links {
    /// Resolved, each URI and hop once, in the order found.
    pub links: Vec<Link>,
    /// References that the crawl cannot follow, and why.
    pub refused: Vec<(String, String)>,
    /// Links and fragments past the limits.
    pub dropped: u64,
    /// Calls that failed.
    pub faults: Vec<Fault>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// A link, resolved.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where it leads.
    pub uri: Uri,
    /// How.
    pub hop: Hop,
    /// Where it stood.
    pub context: String,
    /// What else the extractor says of it.
    pub attributes: Vec<NamedValue>,
    /// When what it leads to changed, as the document says.
    pub modified: Option<Timestamp>,
}

impl Sample {
    /// From a recorded HTTP response, as a WARC record holds it. None where it is no response. At most `content_max`
    /// bytes of content are kept, as plugins see no more of it.
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

    /// From an exchange; none where no response came.
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

    /// From a file: a response with this status and media type.
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

    /// What plugins are handed, notes and kept values its own. Every call gives another document.
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

/// Runs extractors on a document as a crawl does: all in order, those that handle it, on the document and on the
/// fragments that they return; links come back resolved. Blocks; call it on a thread with room for plugins.
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

/// A plugin that no profile says anything of: no guards, and no number of faults that would put it out.
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

/// Of a document that nothing is known of but where it is.
fn candidate(uri: &str) -> Candidate {
    Candidate {
        uri: uri.to_owned(),
        surt: opilio_uri::surt_of(uri),
        hop_path: String::new(),
        via: None,
        via_surt: None,
        context: String::new(),
        seed: true,
        source: None,
        address: None,
        attributes: Vec::new(),
    }
}
