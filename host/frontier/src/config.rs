//! The frontier's settings: politeness, retries, revisiting. The frontier does not read profiles; its caller builds a
//! [`FrontierConfig`] from one. Only the settings of a queue are written to the store, so every value may differ when the store
//! is opened again.

use std::time::Duration;

use opilio_uri::Uri;

use crate::{
    CrawlPart, GroupSettings, QueueSettings, Quota, Resolver, UriRecord, WaitLimits, WaitResolver,
};

/// All settings that the frontier gets at [`Frontier::open`](crate::Frontier::open).
#[derive(Debug, Clone)]
pub struct FrontierConfig {
    /// Settings of every queue for which the resolver gives no others.
    pub queue: QueueSettings,
    /// Resolver of the settings of each queue. `None`: [`FrontierConfig::queue`] applies to all.
    pub resolver: Option<Resolver>,
    /// Hash that differs whenever the resolver's answers may differ. A queue whose settings were resolved under another hash is
    /// resolved anew with its next change. [`Frontier::resolve_queues`](crate::Frontier::resolve_queues) resolves all queues.
    pub settings_hash: u64,
    /// The part of the crawl that this frontier has. Candidates of other parts go into its [outbox](crate::Frontier::outbox).
    /// `None`: all of it.
    pub part: Option<CrawlPart>,
    /// Settings of every server group.
    pub group: GroupSettings,
    /// Quota of the URIs of each source seed. Needs [`Candidate::source`](crate::Candidate::source).
    pub source_quota: Quota,
    /// Times in a row that a URI may be put back for its prerequisites. Then it fails with
    /// [`PREREQUISITE_FAILED`](crate::PREREQUISITE_FAILED).
    pub max_deferrals: u32,
    /// Most embeds at the end of the hop path of a URI under snapshot that goes before the links of its queue (directive medium).
    /// 0 treats embeds like links.
    pub embed_preference_hops: u32,
    /// The same for URIs that are visited again. There due times should rule: embeds that go before links would be fetched right
    /// after their page, whatever their own wait (thesis, preference-embed-hops).
    pub embed_preference_hops_of_revisits: u32,
    /// Wait limits of URIs under revisit. A URI that failed is probed again after the shortest wait, later after longer ones. A
    /// URI that was refused is probed after the longest wait.
    pub waits: WaitLimits,
    /// Resolver of the wait limits of each URI. `None`: [`FrontierConfig::waits`] applies to all.
    pub wait_resolver: Option<WaitResolver>,
    /// Past visits that a record keeps.
    pub history_length: usize,
    /// Floor: queues of this precedence or a higher number collect URIs and issue none. `None`: all issue.
    pub precedence_floor: Option<u8>,
    /// Time after which a ready queue counts as one precedence better, for each such time. `None`: a queue of a better precedence
    /// always goes first.
    pub ageing: Option<Duration>,
    /// Cost that a queue may spend before it lets inactive queues of its precedence go first. `None`: no queue becomes inactive.
    pub session_budget: Option<u32>,
    /// Added to the cost of a URI that failed.
    pub error_penalty: u32,
    /// Bytes a second that all fetches together may average. The bytes in flight may exceed it.
    pub bandwidth: Option<u64>,
    /// Visits of its referrers without a link to an embed on another registrable domain, after which the embed fades. 0: embeds
    /// never fade.
    pub fade_after: u32,
    /// Refused URIs that are remembered with the reason, for [`Frontier::explain`](crate::Frontier::explain).
    pub refusals_max: u64,
    /// Bytes of the store's blocks that are held in memory.
    pub cache_bytes: u64,
    /// `true` if acknowledged changes survive the sudden death of the process. `false` is for stores that are never opened again:
    /// changes go to the operating system many at once, and the latest would be lost.
    pub survives: bool,
}

/// For tests and tools that use a frontier without a profile. A crawl takes every value from its profile, except those that no
/// profile has: `part`, `max_deferrals`, `refusals_max` and `survives`.
impl Default for FrontierConfig {
    fn default() -> Self {
        Self {
            queue: QueueSettings::default(),
            resolver: None,
            settings_hash: 0,
            part: None,
            group: GroupSettings::default(),
            source_quota: Quota::default(),
            // DNS, robots.txt and a login, each expiring once on the way, and room for those that plugins add.
            max_deferrals: 10,
            embed_preference_hops: 1,
            embed_preference_hops_of_revisits: 0,
            waits: WaitLimits::default(),
            wait_resolver: None,
            history_length: 10,
            precedence_floor: None,
            ageing: Some(Duration::from_secs(24 * 3600)),
            session_budget: None,
            // The default of Heritrix.
            error_penalty: 100,
            bandwidth: None,
            fade_after: 3,
            // About 100 MB on disk.
            refusals_max: 1_000_000,
            cache_bytes: 128 * 1024 * 1024,
            survives: true,
        }
    }
}

impl FrontierConfig {
    pub(crate) fn waits(&self, uri: &Uri, record: &UriRecord) -> WaitLimits {
        let resolver = self.wait_resolver.as_ref();
        resolver.map_or(self.waits, |resolver| resolver.resolve(uri, record))
    }
}
