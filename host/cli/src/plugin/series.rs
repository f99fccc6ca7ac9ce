//! Documents as visits, in the order archived. Each visit has what a crawl would know of the URI from earlier captures. Filters,
//! change evaluators and wait evaluators therefore get the same questions as in a crawl.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use opilio_crawl::sample::{Links, Sample};
use opilio_sandbox::{Candidate, Candidates, ContentState, PastVisit, Visit};
use opilio_uri::{Hop, HopPath, Uri};

use super::material::Material;

/// Earlier visits that a visit includes, as in the default profile.
const HISTORY_MAX: usize = 10;

/// The history of the URIs so far.
#[derive(Default)]
pub(super) struct Series(HashMap<Uri, Past>);

#[derive(Default)]
struct Past {
    content: u64,
    visits: u64,
    versions: u64,
    history: Vec<PastVisit>,
    validators: Vec<(String, String)>,
}

impl Series {
    /// Returns the visit at which a document was captured, after the fetch. Each visit is remembered for the next one.
    pub(super) fn visit(&mut self, material: &Material) -> Visit {
        let Material { sample, at, .. } = material;
        let mut hasher = DefaultHasher::new();
        sample.content.hash(&mut hasher);
        let content = hasher.finish();
        let past = self.0.entry(sample.uri.clone()).or_default();
        let state = match past.visits {
            0 => ContentState::New,
            _ if past.content == content => ContentState::Unchanged,
            _ => ContentState::Changed,
        };
        let last_wait = past
            .history
            .first()
            .map(|last| Duration::try_from(*at - last.at).unwrap_or_default());
        past.visits += 1;
        past.versions += u64::from(state != ContentState::Unchanged);
        let size = sample.content.len() as u64;
        let visit = Visit {
            status: i32::from(sample.head.status),
            media_type: sample.head.media_type().unwrap_or_default(),
            state,
            size: Some(size),
            last_wait,
            visits: past.visits,
            versions: past.versions,
            history: past.history.clone(),
            validators: past.validators.iter().cloned().collect(),
            ..Visit::of(seed(&sample.uri), *at)
        };
        past.content = content;
        past.history.insert(
            0,
            PastVisit {
                at: *at,
                status: visit.status,
                state,
                size: Some(size),
                digest: None,
                wait: None,
            },
        );
        past.history.truncate(HISTORY_MAX);
        if state != ContentState::Unchanged {
            let header = |name: &str| Some((name.to_owned(), sample.head.first(name)?.to_owned()));
            past.validators = ["etag", "last-modified"]
                .into_iter()
                .filter_map(header)
                .collect();
        }
        visit
    }
}

/// Returns a document's URI as a seed, since its discovery is not known.
fn seed(uri: &Uri) -> Candidate {
    Candidate::seed(uri.as_str().to_owned(), uri.surt())
}

/// Returns the links of a document as candidates, with this hop path of the document.
pub(super) fn candidates(sample: &Sample, links: &Links, hop_path: &HopPath) -> Candidates {
    let via_surt = sample.uri.surt();
    links
        .links
        .iter()
        .map(|link| Candidate {
            uri: link.uri.as_str().to_owned(),
            surt: link.uri.surt(),
            hop_path: hop_path.then(link.hop).as_str().to_owned(),
            via: Some(sample.uri.as_str().to_owned()),
            via_surt: Some(via_surt.clone()),
            context: link.context.clone(),
            // The default profile counts redirects of seeds in the same way.
            seed: hop_path.is_empty() && link.hop == Hop::Redirect,
            source: None,
            address: None,
            attributes: link.attributes.clone(),
        })
        .collect()
}
