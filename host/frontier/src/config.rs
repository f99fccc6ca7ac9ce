//! What the operator may turn: politeness, retries, revisiting. The frontier reads no profile; whoever does builds a
//! [`Config`] from it. Nothing here is written to the store except the settings of a queue, so every value may differ
//! when the store is opened again.

use std::time::Duration;

use opilio_uri::Uri;

use crate::{GroupSettings, QueueSettings, Quota, Resolver, UriRecord, WaitLimits, WaitResolver};

/// Everything the frontier is told at [`Frontier::open`](crate::Frontier::open).
#[derive(Debug, Clone)]
pub struct Config {
    /// For every queue about which no resolver says otherwise.
    pub queue: QueueSettings,
    /// Says what is set for each queue; none: [`Config::queue`] holds for all.
    pub resolver: Option<Resolver>,
    /// Differs whenever what the resolver answers may differ. A queue whose settings were resolved under another hash is
    /// resolved anew with its next change; [`Frontier::resolve_queues`](crate::Frontier::resolve_queues) does it for all.
    pub settings_hash: u64,
    /// For every server group.
    pub group: GroupSettings,
    /// What the URIs of each source seed may bring in all. Needs [`Candidate::source`](crate::Candidate::source).
    pub source_quota: Quota,
    /// How often a URI may be put back for its prerequisites, one time after the other, before it fails with
    /// [`PREREQUISITE_FAILED`](crate::PREREQUISITE_FAILED).
    pub max_deferrals: u32,
    /// A URI under snapshot found by this many embeds in a row, or fewer, goes before the links of its queue (directive
    /// medium). 0 lets embeds queue up like any link.
    pub embed_preference_hops: u32,
    /// The same for URIs that are visited again. Due times rule there: embeds that go before the links of their queue
    /// would be fetched right after their page, whatever their own wait (thesis, preference-embed-hops).
    pub embed_preference_hops_of_revisits: u32,
    /// How long a URI under revisit may wait: one that failed is probed again after the shorter wait, later after longer ones;
    /// one that was refused after the longer one.
    pub waits: WaitLimits,
    /// Says how long each URI may wait; none: [`Config::waits`] holds for all.
    pub wait_resolver: Option<WaitResolver>,
    /// How many past visits a record keeps.
    pub history_length: usize,
    /// Queues of this precedence or a higher number collect URIs and give none; none: all give.
    pub precedence_floor: Option<u8>,
    /// A queue that has been ready for so long counts as one precedence better, for each such time; none: a queue of a
    /// better precedence always goes first.
    pub ageing: Option<Duration>,
    /// Cost that a queue may spend before it lets inactive queues of its precedence go first; none: no queue is inactive.
    pub session_budget: Option<u32>,
    /// Added to the cost of a URI that failed.
    pub error_penalty: u32,
    /// Bytes a second that all fetches together may average. Overshoots by as much as is in flight.
    pub bandwidth: Option<u64>,
    /// An embed on another registrable domain that its referrers have not linked to for so many of their visits is not
    /// visited again; 0: it always is.
    pub fade_after: u32,
    /// How many refused URIs are remembered with the reason, for [`Frontier::why`](crate::Frontier::why).
    pub refusals_max: u64,
    /// Bytes of the store's blocks held in memory.
    pub cache_bytes: u64,
    /// Whether what has been acknowledged survives a process that dies suddenly. No, where nobody will open the store again:
    /// then changes are handed to the operating system many at once, and the latest would be lost.
    pub survives: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queue: QueueSettings::default(),
            resolver: None,
            settings_hash: 0,
            group: GroupSettings::default(),
            source_quota: Quota::default(),
            // DNS, robots.txt, a login, each expiring once on the way, and room for what plugins add.
            max_deferrals: 10,
            embed_preference_hops: 1,
            embed_preference_hops_of_revisits: 0,
            waits: WaitLimits::default(),
            wait_resolver: None,
            history_length: 10,
            precedence_floor: None,
            ageing: Some(Duration::from_secs(24 * 3600)),
            session_budget: None,
            // The predecessor's.
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

impl Config {
    pub(crate) fn waits(&self, uri: &Uri, record: &UriRecord) -> WaitLimits {
        let resolver = self.wait_resolver.as_ref();
        resolver.map_or(self.waits, |resolver| resolver.resolve(uri, record))
    }
}
