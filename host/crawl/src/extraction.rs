//! Links out of a document: every extractor of the stack, on the document and on the fragments it is made of.
//!
//! Extractors return parts of a document that have a media type of their own (an inline script, a style attribute);
//! those go to the extractors that handle that type, all fragments of a type in one call, whatever languages the
//! plugins are written in. Links come back as written; here they are resolved and normalised.

use std::collections::BTreeMap;

use opilio_sandbox::{Document, Fault, Fragment, Hop as PluginHop, Link, NamedValue};
use opilio_uri::{Hop, Uri, UriError};

use crate::stacks::Staged;

/// Fragments within fragments are followed this deep: srcdoc in srcdoc in a page, with a script in it. What is nested
/// deeper was made by a machine.
const FRAGMENT_DEPTH_MAX: usize = 4;

/// Longest context kept, in bytes.
const CONTEXT_BYTES_MAX: usize = 200;

/// References that are no URI kept for the log, of one document.
const REFUSED_MAX: usize = 200;

/// What a document gave.
#[derive(Debug, Default)]
pub(crate) struct Extracted {
    /// Links in the order found, each URI and hop once.
    pub links: Vec<FoundLink>,
    /// References that are no URI, with the reason; at most [`REFUSED_MAX`].
    pub refused: Vec<RefusedLink>,
    /// Links past the limit of the profile.
    pub dropped: u64,
    /// Extractors that failed; what they would have found is missing.
    pub faults: Vec<Fault>,
    /// What extractors said they could not read: plugin and problem.
    pub problems: Vec<(String, String)>,
}

/// A link, resolved.
#[derive(Clone, Debug)]
pub(crate) struct FoundLink {
    pub uri: Uri,
    pub hop: Hop,
    pub context: String,
    pub attributes: Vec<NamedValue>,
}

/// A reference that is no URI.
#[derive(Clone, Debug)]
pub(crate) struct RefusedLink {
    pub reference: String,
    pub problem: UriError,
}

/// Runs the stack on a document. Blocks; call it on a document lane.
pub(crate) fn extract(stack: &[Staged], document: &Document, links_max: usize) -> Extracted {
    let mut gathered = Gathered {
        extracted: Extracted::default(),
        seen: std::collections::HashSet::new(),
        links_max,
    };
    let mut level = vec![document.clone()];
    for _ in 0..=FRAGMENT_DEPTH_MAX {
        let fragments = gathered.run_level(stack, &level);
        if fragments.is_empty() {
            break;
        }
        level = fragments;
    }
    gathered.extracted
}

struct Gathered {
    extracted: Extracted,
    seen: std::collections::HashSet<(Uri, char)>,
    links_max: usize,
}

impl Gathered {
    /// Every extractor on the documents of one nesting level, a call for each media type. Gives the next level.
    fn run_level(&mut self, stack: &[Staged], documents: &[Document]) -> Vec<Document> {
        let mut by_type: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
        for document in documents {
            by_type
                .entry(document.media_type())
                .or_default()
                .push(document);
        }
        let mut fragments = Vec::new();
        for (media_type, documents) in by_type {
            let mut understood = false;
            for staged in stack {
                let handles = documents
                    .first()
                    .is_some_and(|first| staged.plugin.handles(media_type, first.uri()));
                if !handles || (understood && staged.last_resort) {
                    continue;
                }
                let batch: Vec<Document> =
                    documents.iter().map(|&document| document.clone()).collect();
                match staged.plugin.extract(batch) {
                    Ok(extractions) => {
                        for (document, extraction) in documents.iter().zip(extractions) {
                            understood |= extraction.finished;
                            self.take_base(document, extraction.base.as_deref());
                            self.extracted.dropped += extraction.links_dropped;
                            if let Some(problem) = extraction.problem {
                                self.extracted
                                    .problems
                                    .push((staged.name.to_string(), problem));
                            }
                            for link in extraction.links {
                                self.take_link(document, link);
                            }
                            for fragment in extraction.fragments {
                                fragments.extend(self.take_fragment(
                                    &staged.name,
                                    document,
                                    &fragment,
                                ));
                            }
                        }
                    }
                    Err(fault) => self.extracted.faults.push(fault),
                }
            }
        }
        fragments
    }

    /// A base that is no URI is as good as none, as browsers have it.
    fn take_base(&mut self, document: &Document, base: Option<&str>) {
        if let Some(base) = base.and_then(|base| Uri::parse(&document.base()).ok()?.join(base).ok())
        {
            document.set_base(base.as_str().to_owned());
        }
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

    fn take_link(&mut self, document: &Document, link: Link) {
        if self.extracted.links.len() >= self.links_max {
            self.extracted.dropped += 1;
            return;
        }
        match resolve(document, &link) {
            Ok(uri) => {
                let hop = hop_of(&link.hop);
                if !self.seen.insert((uri.clone(), hop.letter())) {
                    return;
                }
                let mut context = link.context;
                context.truncate(context.floor_char_boundary(CONTEXT_BYTES_MAX));
                let attributes = link
                    .details
                    .map(|details| details.attributes)
                    .unwrap_or_default();
                self.extracted.links.push(FoundLink {
                    uri,
                    hop,
                    context,
                    attributes,
                });
            }
            // A scheme that is not crawled is no fault of anybody's: mailto:, tel:, javascript:.
            Err(UriError::Scheme(_)) => {}
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

fn resolve(document: &Document, link: &Link) -> Result<Uri, UriError> {
    let base = Uri::parse(&document.base())?;
    let base = match &link.base {
        Some(other) => base.join(other)?,
        None => base,
    };
    // The standard has the query of a link in the page's own encoding; everything else is UTF-8.
    match document.charset() {
        Some(charset) if charset.output_encoding() != encoding_rs::UTF_8 => {
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
        PluginHop::Prerequisite => Hop::Prerequisite,
        PluginHop::Inferred => Hop::Inferred,
        PluginHop::Manifest => Hop::Manifest,
        PluginHop::Submit => Hop::Submit,
        // A hop type of a later contract is treated as speculative, as the contract says.
        PluginHop::Speculative | PluginHop::Other(_) => Hop::Speculative,
    }
}
