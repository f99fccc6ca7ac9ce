//! Link extraction: every extractor of the stack runs on the document and on its fragments.
//!
//! Extractors return parts of a document that have a media type of their own, such as an inline script or a style attribute. These
//! fragments are passed to the extractors that handle that type, all fragments of a type in one call. Extractors return links as
//! written. This module resolves and normalises them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use opilio_sandbox::{
    DateSignal, Document, Extraction, Fragment, Hop as PluginHop, Link, NamedValue, Visit,
};
use opilio_uri::{Hop, Uri, UriError};

use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;

/// Maximum depth of fragments within fragments, such as a script in a srcdoc in a srcdoc of a page. Deeper nesting is
/// machine-generated.
const FRAGMENT_DEPTH_MAX: usize = 4;

/// Errors of one extractor on single documents of a batch, after which the rest of the batch is given up. Each error may take the
/// extractor's time limit.
const FAULTS_ALONE_MAX: usize = 8;

/// Longest context kept, in bytes.
const CONTEXT_BYTES_MAX: usize = 200;

/// Most invalid references of one document that are kept for the log.
const REFUSED_MAX: usize = 200;

/// The result of extraction from a document.
#[derive(Debug, Default)]
pub struct ExtractionResult {
    /// Links in the order found, each URI and hop once.
    pub links: Vec<Outlink>,
    /// Invalid references, with the reason; at most [`REFUSED_MAX`].
    pub refused: Vec<RefusedLink>,
    /// Number of links and fragments beyond the limits.
    pub dropped: u64,
    /// `true` if a call of an extractor failed. The links that it would have found are missing.
    pub incomplete: bool,
    /// Calls that failed.
    pub failures: Vec<Failure>,
    /// Problems that extractors reported, each with the plugin's name.
    pub problems: Vec<(String, String)>,
}

/// A link of a document, resolved to a URI.
#[derive(Clone, Debug)]
pub struct Outlink {
    /// The target URI.
    pub uri: Uri,
    /// The kind of link.
    pub hop: Hop,
    /// The element and attribute that contained the link.
    pub context: String,
    /// Attributes of the link, such as `rel`.
    pub attributes: Vec<NamedValue>,
    /// Time of the target's last change, as the document states it: a feed's item, a sitemap's lastmod.
    pub modified: Option<Timestamp>,
}

/// A reference that the crawl cannot follow.
#[derive(Clone, Debug)]
pub struct RefusedLink {
    /// The reference as written.
    pub reference: String,
    /// The reason.
    pub problem: LinkProblem,
}

/// The reason why a reference cannot be followed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LinkProblem {
    /// The reference is not a URI.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The reference is the target of a form that is not submitted by GET. A GET of the target would be another request.
    #[error("form not submitted: its method is {0}, and the crawl submits forms only by GET")]
    Method(String),
}

/// The subject of a call of extractors.
pub struct ExtractionInput<'a> {
    /// The document.
    pub document: &'a Document,
    /// The visit of the document.
    pub visit: &'a Visit,
    /// Answers of guards about the whole document, which apply to its fragments as well.
    pub guards: &'a Guards,
}

/// Runs the stack on a document. Blocks; call it on a document lane.
pub fn extract(
    stack: &[Staged],
    input: &ExtractionInput<'_>,
    links_max: usize,
) -> ExtractionResult {
    let mut gathered = ExtractionState {
        extracted: ExtractionResult::default(),
        seen: std::collections::HashSet::new(),
        links_max,
    };
    let mut level = vec![input.document.clone()];
    for _ in 0..=FRAGMENT_DEPTH_MAX {
        level = gathered.run_level(stack, input, &level);
        if level.is_empty() {
            break;
        }
    }
    gathered.extracted.dropped += level.len() as u64;
    gathered.extracted
}

struct ExtractionState {
    extracted: ExtractionResult,
    seen: std::collections::HashSet<(Uri, char)>,
    links_max: usize,
}

/// A document that the extractors of a stack are called on.
struct PendingDocument {
    document: Document,
    /// URI against which a declared base is resolved. Bases that earlier extractors declared do not change it.
    declared_against: String,
    /// `true` if an extractor has handled the document. Then the extractors of last resort are skipped.
    understood: bool,
}

impl ExtractionState {
    /// Runs every extractor on the documents of one nesting level, with a call for each media type. Returns the next level.
    fn run_level(
        &mut self,
        stack: &[Staged],
        about: &ExtractionInput<'_>,
        documents: &[Document],
    ) -> Vec<Document> {
        let mut by_type: BTreeMap<String, Vec<PendingDocument>> = BTreeMap::new();
        for document in documents {
            by_type
                .entry(document.media_type().to_owned())
                .or_default()
                .push(PendingDocument {
                    document: document.clone(),
                    declared_against: document.base(),
                    understood: false,
                });
        }
        let mut fragments = Vec::new();
        for (media_type, mut pending) in by_type {
            for staged in stack {
                let mut handled: Vec<&mut PendingDocument> = pending
                    .iter_mut()
                    .filter(|input| !(input.understood && staged.last_resort))
                    .filter(|input| staged.plugin.handles(&media_type, input.document.uri()))
                    .collect();
                if !handled.is_empty() && about.guards.admit(staged, about.document, about.visit) {
                    fragments.extend(self.run_extractor(staged, &mut handled));
                }
            }
        }
        fragments
    }

    /// Runs one extractor on documents of one type. If the call on the batch fails, the extractor is called on each document alone,
    /// so that one bad script does not remove the links of the others.
    fn run_extractor(
        &mut self,
        staged: &Staged,
        pending: &mut [&mut PendingDocument],
    ) -> Vec<Document> {
        let batch = pending.iter().map(|input| input.document.clone()).collect();
        let mut fragments = Vec::new();
        let unanswered = match staged.extract(batch) {
            Ok(extractions) => {
                for (input, extraction) in pending.iter_mut().zip(extractions) {
                    fragments.extend(self.take(&staged.name, input, extraction));
                }
                return fragments;
            }
            Err(unanswered) => unanswered,
        };
        self.extracted.incomplete = true;
        let mut left_alone = match unanswered.was_called() && pending.len() > 1 {
            true => FAULTS_ALONE_MAX,
            false => 0,
        };
        self.extracted.failures.extend(unanswered.failure());
        for input in pending {
            if left_alone == 0 {
                break;
            }
            match staged.extract(vec![input.document.clone()]) {
                Ok(extractions) => {
                    for extraction in extractions {
                        fragments.extend(self.take(&staged.name, input, extraction));
                    }
                }
                Err(unanswered) => {
                    left_alone = match unanswered.was_called() {
                        true => left_alone - 1,
                        false => 0,
                    };
                    self.extracted.failures.extend(unanswered.failure());
                }
            }
        }
        fragments
    }

    fn take(
        &mut self,
        plugin: &str,
        input: &mut PendingDocument,
        extraction: Extraction,
    ) -> Vec<Document> {
        input.understood |= extraction.finished;
        // An invalid base is ignored, as in browsers.
        let base = extraction.base.as_deref();
        let base = base.and_then(|base| Uri::parse(&input.declared_against).ok()?.join(base).ok());
        if let Some(base) = base {
            input.document.set_base(base.as_str().to_owned());
        }
        self.extracted.dropped += extraction.links_dropped + extraction.fragments_dropped;
        if let Some(problem) = extraction.problem {
            self.extracted.problems.push((plugin.to_owned(), problem));
        }
        let base = Uri::parse(&input.document.base());
        for link in extraction.links {
            self.take_link(&input.document, &base, link);
        }
        let fragments = extraction.fragments.iter();
        fragments
            .filter_map(|fragment| self.take_fragment(plugin, &input.document, fragment))
            .collect()
    }

    fn take_fragment(
        &mut self,
        plugin: &str,
        document: &Document,
        fragment: &Fragment,
    ) -> Option<Document> {
        match document.fragment_of(fragment) {
            Ok(inner) => {
                let base = fragment
                    .base
                    .as_deref()
                    .and_then(|base| Uri::parse(&document.base()).ok()?.join(base).ok());
                if let Some(base) = base {
                    inner.set_base(base.as_str().to_owned());
                }
                Some(inner)
            }
            Err(problem) => {
                self.extracted
                    .problems
                    .push((plugin.to_owned(), problem.to_string()));
                None
            }
        }
    }

    fn take_link(&mut self, document: &Document, base: &Result<Uri, UriError>, link: Link) {
        let resolved = resolve(document, base, &link).map_err(LinkProblem::Uri);
        match resolved.and_then(|uri| is_sent_by_get(&link).map(|()| uri)) {
            Ok(uri) => {
                // Passwords in URIs stay out of logs and records.
                let uri = uri.without_userinfo();
                let hop = hop_of(&link.hop);
                if !self.seen.insert((uri.clone(), hop.letter())) {
                    return;
                }
                if self.extracted.links.len() >= self.links_max {
                    self.extracted.dropped += 1;
                    return;
                }
                let mut context = link.context;
                context.truncate(context.floor_char_boundary(CONTEXT_BYTES_MAX));
                let (attributes, modified) = match link.details {
                    Some(details) => (details.attributes, details.dates.and_then(changed)),
                    None => (Vec::new(), None),
                };
                self.extracted.links.push(Outlink {
                    uri,
                    hop,
                    context,
                    attributes,
                    modified,
                });
            }
            // Schemes that are not crawled, such as mailto:, tel: and javascript:, are not errors.
            Err(LinkProblem::Uri(UriError::Scheme(_))) => {}
            Err(problem) if self.extracted.refused.len() < REFUSED_MAX => {
                self.extracted.refused.push(RefusedLink {
                    reference: link.uri,
                    problem,
                });
            }
            Err(_) => {}
        }
    }
}

/// Checks that a link is followed by a GET of its URI. The crawl sends no other requests for links.
fn is_sent_by_get(link: &Link) -> Result<(), LinkProblem> {
    let details = link.details.as_ref();
    match details.and_then(|details| details.submission.as_ref()) {
        Some(submission) if !submission.method.eq_ignore_ascii_case("GET") => {
            Err(LinkProblem::Method(submission.method.clone()))
        }
        _ => Ok(()),
    }
}

fn resolve(
    document: &Document,
    base: &Result<Uri, UriError>,
    link: &Link,
) -> Result<Uri, UriError> {
    let document_base = base.as_ref().map_err(Clone::clone)?;
    let own = link.base.as_ref().map(|own| document_base.join(own));
    let own = own.transpose()?;
    let base = own.as_ref().unwrap_or(document_base);
    // By the URL standard, a link's query is in the page's encoding. Everything else, including a Location header, is UTF-8.
    match document.charset() {
        Some(charset)
            if link.hop != PluginHop::Redirect
                && charset.output_encoding() != encoding_rs::UTF_8 =>
        {
            base.join_encoded(&link.uri, &|query| charset.encode(query).0)
        }
        _ => base.join(&link.uri),
    }
}

fn hop_of(hop: &PluginHop) -> Hop {
    match hop {
        PluginHop::Link => Hop::Link,
        PluginHop::Embed => Hop::Embed,
        PluginHop::Redirect => Hop::Redirect,
        PluginHop::Inferred => Hop::Inferred,
        PluginHop::Manifest => Hop::Manifest,
        PluginHop::Submit => Hop::Submit,
        // A hop type of a later contract is treated as speculative, as the contract demands. Only the host creates prerequisites.
        // The scope accepts them without a check, so a page must not create one.
        PluginHop::Speculative | PluginHop::Prerequisite | PluginHop::Other(_) => Hop::Speculative,
    }
}

/// Time of a resource's last change, as the linking document states it; `None` if the date is out of range.
fn changed(dates: DateSignal) -> Option<Timestamp> {
    let millis = i64::try_from(dates.modified.or(dates.published)?).ok()?;
    Timestamp::from_millisecond(millis).ok()
}

#[cfg(test)]
mod tests {
    use opilio_sandbox::{LinkDetails, Submission};

    use super::*;

    #[test]
    fn plugins_cannot_create_prerequisites() {
        assert_eq!(hop_of(&PluginHop::Prerequisite), Hop::Speculative);
        assert_eq!(hop_of(&PluginHop::Embed), Hop::Embed);
    }

    #[test]
    fn the_target_of_a_post_form_is_not_requested_by_get() {
        let form = |method: Option<&str>| Link {
            uri: "/search".to_owned(),
            hop: PluginHop::Submit,
            context: "form/@action".to_owned(),
            base: None,
            details: method.map(|method| LinkDetails {
                submission: Some(Submission {
                    method: method.to_owned(),
                    content_type: String::new(),
                    body: Vec::new(),
                }),
                dates: None,
                attributes: Vec::new(),
            }),
        };
        for sent_by_get in [None, Some("GET"), Some("get")] {
            assert!(
                is_sent_by_get(&form(sent_by_get)).is_ok(),
                "{sent_by_get:?}"
            );
        }
        let problem = is_sent_by_get(&form(Some("POST"))).unwrap_err().to_string();
        assert!(problem.contains("its method is POST"), "{problem}");
    }

    #[test]
    fn a_date_of_change_takes_precedence_over_a_date_of_publication() {
        let changed = |published, modified| {
            changed(DateSignal {
                published,
                modified,
            })
            .map(|at| at.as_millisecond())
        };
        assert_eq!(changed(Some(5), None), Some(5));
        assert_eq!(changed(Some(5), Some(7)), Some(7));
        assert_eq!(changed(None, None), None);
        assert_eq!(changed(None, Some(u64::MAX)), None);
    }
}
