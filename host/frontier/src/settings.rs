//! Functions of the caller among the settings. They resolve the settings of a queue and the wait limits of a URI, and say which
//! queues belong to the part of the crawl.

use std::{fmt, sync::Arc, time::Duration};

use opilio_uri::Uri;

use crate::{Candidate, QueueSettings, UriRecord};

/// Resolves the settings of a queue from its name. The answer must be the same while
/// [`FrontierConfig::settings_hash`](crate::FrontierConfig::settings_hash) is the same.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(&str) -> QueueSettings + Send + Sync>);

impl Resolver {
    /// Makes a resolver from this function.
    pub fn new(resolve: impl Fn(&str) -> QueueSettings + Send + Sync + 'static) -> Self {
        Self(Arc::new(resolve))
    }

    pub(crate) fn resolve(&self, queue: &str) -> QueueSettings {
        (self.0)(queue)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Resolver")
    }
}

/// Limits of a URI's wait between two visits, and after a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimits {
    /// The wait after the first failure. It doubles with each further one in a row.
    pub min: Duration,
    /// Upper limit of the doubling. No wait is longer.
    pub max: Duration,
}

impl Default for WaitLimits {
    fn default() -> Self {
        Self {
            // An hour to four weeks: the profile's defaults.
            min: Duration::from_secs(3600),
            max: Duration::from_secs(28 * 24 * 3600),
        }
    }
}

/// Resolves the wait limits of a URI. It is called when a visit has failed.
#[derive(Clone)]
pub struct WaitResolver(Arc<ResolveWaits>);

type ResolveWaits = dyn Fn(&Uri, &UriRecord) -> WaitLimits + Send + Sync;

impl WaitResolver {
    /// Makes a resolver from this function.
    pub fn new(resolve: impl Fn(&Uri, &UriRecord) -> WaitLimits + Send + Sync + 'static) -> Self {
        Self(Arc::new(resolve))
    }

    pub(crate) fn resolve(&self, uri: &Uri, record: &UriRecord) -> WaitLimits {
        (self.0)(uri, record)
    }
}

impl fmt::Debug for WaitResolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WaitResolver")
    }
}

/// The part of a crawl that a frontier has.
#[derive(Clone)]
pub struct CrawlPart(Arc<HasQueue>);

type HasQueue = dyn Fn(&str, &Uri) -> bool + Send + Sync;

impl CrawlPart {
    /// Makes a part from a function that says whether a queue, with a URI of it, belongs to the part. The answer must be the same
    /// for all URIs of a queue, and must never change.
    pub fn new(has_queue: impl Fn(&str, &Uri) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(has_queue))
    }

    /// Returns `true` if the part has the queue of a candidate.
    #[must_use]
    pub fn has(&self, candidate: &Candidate) -> bool {
        (self.0)(&candidate.queue, &candidate.uri)
    }
}

impl fmt::Debug for CrawlPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CrawlPart")
    }
}
