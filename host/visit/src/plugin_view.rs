//! The view that plugins have of a URI: the frontier's records converted to the types of the plugin contract.

use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{Candidate as Seed, Issue, KeptValues, SiteRecord, UriRecord, VisitUpdate};
use opilio_sandbox::{Candidate, Notes, SharedKeptValues, Signal, Visit};
use opilio_uri::Uri;

use crate::extraction::Outlink;
use crate::link_attributes;
use crate::site_figures::{DocumentTraits, SiteFigures};

/// A URI with its record.
#[derive(Clone, Copy)]
pub struct KnownUri<'a> {
    /// The URI.
    pub uri: &'a Uri,
    /// Its record.
    pub record: &'a UriRecord,
    /// Time by which the visit is overdue.
    pub overdue: Duration,
}

impl<'a> KnownUri<'a> {
    /// Returns the URI as the frontier issued it.
    pub fn of(issue: &'a Issue) -> KnownUri<'a> {
        KnownUri {
            uri: &issue.uri,
            record: &issue.record,
            overdue: issue.overdue,
        }
    }
}

/// The values that the plugins of one visit share. Clones share them too.
#[derive(Clone, Default)]
pub struct PluginMemory {
    /// Notes that plugins leave for later plugins.
    pub notes: Notes,
    /// Values that plugins keep from visit to visit.
    pub kept: SharedKeptValues,
    /// Figures on the site's documents.
    pub site: SiteFigures,
}

impl PluginMemory {
    /// Creates the shared values at the beginning of a visit, from the values kept with the URI and the state of its site.
    pub fn new(uri: &KeptValues, site: &SiteRecord) -> PluginMemory {
        PluginMemory {
            notes: Notes::new(),
            kept: SharedKeptValues::new(uri.clone(), site.kept.clone()),
            site: SiteFigures(site.figures.clone()),
        }
    }
}

/// Returns a known URI as a candidate, as filters saw it at discovery.
pub fn candidate(uri: &Uri, record: &UriRecord) -> Candidate {
    Candidate {
        uri: uri.as_str().to_owned(),
        surt: uri.surt(),
        hop_path: record.hop_path.as_str().to_owned(),
        via_surt: record
            .via
            .as_deref()
            .and_then(|via| Uri::parse(via).ok())
            .map(|via| via.surt()),
        via: record.via.clone(),
        context: record.context.clone(),
        seed: record.seed,
        source: record.source.clone(),
        address: None,
        attributes: link_attributes::of(record),
    }
}

/// Returns a seed as a candidate, as precedence plugins see it.
pub fn seed(seed: &Seed) -> Candidate {
    Candidate {
        source: seed.source.clone(),
        ..Candidate::seed(seed.uri.as_str().to_owned(), seed.uri.surt())
    }
}

/// Returns a link found on the page `via` as a candidate.
pub fn outlink_candidate(
    via: &Uri,
    via_surt: &str,
    record: &UriRecord,
    link: &Outlink,
) -> Candidate {
    Candidate {
        uri: link.uri.as_str().to_owned(),
        surt: link.uri.surt(),
        hop_path: record.hop_path.then(link.hop).as_str().to_owned(),
        via: Some(via.as_str().to_owned()),
        via_surt: Some(via_surt.to_owned()),
        context: link.context.clone(),
        seed: record.seed && link.hop == opilio_uri::Hop::Redirect,
        source: record.source.clone(),
        address: None,
        attributes: link.attributes.clone(),
    }
}

/// Returns the visit after the headers have arrived.
pub fn visit(
    issue: &Issue,
    now: Timestamp,
    status: i32,
    media_type: Option<String>,
    memory: &PluginMemory,
) -> Visit {
    let media_type = media_type.unwrap_or_default();
    let shared = DocumentTraits::of(&issue.uri, &issue.record, &media_type, None);
    let neighbourhood = memory.site.neighbourhood(&shared);
    Visit {
        status,
        media_type,
        neighbourhood,
        ..before(KnownUri::of(issue), now, memory)
    }
}

/// Returns the visit before any response.
fn before(known: KnownUri<'_>, now: Timestamp, memory: &PluginMemory) -> Visit {
    let record = known.record;
    let validators = [
        ("etag", &record.validators.etag),
        ("last-modified", &record.validators.last_modified),
    ];
    Visit {
        last_wait: record.wait.filter(|_| record.visits > 0),
        overdue: if record.visits > 0 {
            known.overdue
        } else {
            Duration::ZERO
        },
        visits: record.visits + 1,
        versions: record.versions,
        history: record.history.clone(),
        validators: validators
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect(),
        outlinks: record.outlinks,
        inlinks: record.referrers.into(),
        signals: record.signals.iter().map(signal).collect(),
        notes: memory.notes.clone(),
        kept: memory.kept.clone(),
        ..Visit::of(candidate(known.uri, record), now)
    }
}

fn signal(signal: &opilio_frontier::Signal) -> Signal {
    let instant = |at: Timestamp| u64::try_from(at.as_millisecond()).unwrap_or(0);
    Signal {
        at: instant(signal.at),
        source: signal.source.name().to_owned(),
        modified: Some(instant(signal.modified)),
    }
}

/// Returns the visit after the comparison of its content, as wait evaluators see it.
pub fn after(
    known: KnownUri<'_>,
    now: Timestamp,
    update: &VisitUpdate,
    memory: &PluginMemory,
) -> Visit {
    let new_version = update.state.is_version();
    let shared = DocumentTraits::of(known.uri, known.record, &update.media_type, Some(update));
    Visit {
        status: update.status,
        media_type: update.media_type.clone(),
        neighbourhood: memory.site.neighbourhood(&shared),
        state: update.state,
        size: update.size,
        versions: known.record.versions + u64::from(new_version),
        outlinks: update.outlinks.unwrap_or(known.record.outlinks),
        ..before(known, now, memory)
    }
}
