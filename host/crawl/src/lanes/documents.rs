//! Document lanes: the choice of the next document, and the memory for it.
//!
//! Lanes are few, and a document may occupy a lane for the sum of its plugins' time limits. So sites share the lanes by time
//! (start-time fair queueing): the site whose documents have had the least lane time is next. Sites with slow documents leave one
//! lane to other sites. A document begins when its content and the data that plugins derive from it fit within the crawl's memory
//! limit. Documents that are in lanes or being written count for the limit as well. A document of any size may begin if no other
//! document has memory.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Work;

/// Mean time above which a site's documents count as slow. Large pages take about 50 ms.
const SLOW: Duration = Duration::from_secs(1);
/// Maximum of sites without waiting documents whose figures are kept.
const SITES_MAX: usize = 4_096;
/// Maximum of documents that may begin before an earlier document for which there was no memory. After these, the earlier document
/// is next.
const PASSED_OVER_MAX: u32 = 64;
/// Memory of a plugin's instance beside the content, in bytes. It is reserved for each document that begins.
const INSTANCE_BYTES: u64 = 8 << 20;

/// Memory of the document lanes.
pub(crate) struct DocumentMemory {
    /// Maximum for content, text and the memories of plugins together, in bytes.
    pub(crate) max: u64,
    /// Function that returns the memory that plugins use now, in bytes.
    pub(crate) plugins: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// Work that waits for a document lane, and the reserved memory.
pub(super) struct Documents {
    state: Mutex<State>,
    changed: Condvar,
    memory: DocumentMemory,
}

/// Memory of one document, reserved until it is dropped.
pub(crate) struct Reserved {
    documents: Arc<Documents>,
    bytes: u64,
}

/// Work that a lane has taken.
pub(super) struct NextWork {
    pub(super) work: Work,
    site: Arc<str>,
    began: Instant,
}

struct State {
    sites: HashMap<Arc<str>, Site>,
    /// Sites with waiting work. They are few, while `sites` may have thousands.
    waiting: BTreeSet<Arc<str>>,
    /// Minimum of lane time that is assumed for every waiting site.
    clock: Duration,
    lanes: usize,
    /// Number of lanes that work on documents of slow sites.
    slow: usize,
    reserved: u64,
    /// Number of work items so far.
    number: u64,
    closed: bool,
}

#[derive(Default)]
struct Site {
    waiting: VecDeque<WaitingWork>,
    /// Lane time of the site, starting from the clock at the time of its first waiting work.
    had: Duration,
    /// Mean time of the site's documents.
    mean: Duration,
    /// Number of the site's work items in lanes.
    running: usize,
    /// Of these, work items that count as slow.
    counts_as_slow: usize,
}

struct WaitingWork {
    number: u64,
    /// Memory in bytes that is reserved when the work begins; 0 for work without a document.
    bytes: u64,
    passed_over: u32,
    work: Work,
}

/// Returns the memory in bytes for a document with this much content while plugins read it. It covers the bytes, the text, the copy
/// in an instance, and the instance.
pub(crate) fn bytes_for(content: u64) -> u64 {
    content.saturating_mul(3).saturating_add(INSTANCE_BYTES)
}

impl Documents {
    pub(super) fn new(lanes: usize, memory: DocumentMemory) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                sites: HashMap::new(),
                waiting: BTreeSet::new(),
                clock: Duration::ZERO,
                lanes,
                slow: 0,
                reserved: 0,
                number: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            memory,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues work for a lane. The work is called with its reserved memory.
    pub(super) fn push(
        self: &Arc<Self>,
        site: &str,
        bytes: u64,
        work: impl FnOnce(Reserved) + Send + 'static,
    ) {
        let reserved = Reserved {
            documents: self.clone(),
            bytes: 0,
        };
        let work = Box::new(move || {
            let mut reserved = reserved;
            reserved.bytes = bytes;
            work(reserved);
        });
        self.state().push(site, bytes, work);
        self.changed.notify_one();
    }

    /// Waits for the next work and returns it; `None` once the lanes are closed.
    pub(super) fn take(&self) -> Option<NextWork> {
        let mut state = self.state();
        loop {
            let taken = state.take(self.memory.max, (self.memory.plugins)());
            if taken.is_some() || state.closed {
                return taken;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a lane has finished its work.
    pub(super) fn done(&self, site: &Arc<str>, began: Instant) {
        let mut state = self.state();
        state.done(site, began.elapsed());
        self.wake_all(state);
    }

    /// Wakes the lanes for work that waited for memory, or for a lane of slow documents, if there is any.
    fn wake_all(&self, state: MutexGuard<'_, State>) {
        let is_waited = !state.waiting.is_empty();
        drop(state);
        if is_waited {
            self.changed.notify_all();
        }
    }

    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }
}

impl NextWork {
    /// Runs the work; the lane is free again when this returns.
    pub(super) fn run(self, documents: &Documents) {
        (self.work)();
        documents.done(&self.site, self.began);
    }
}

impl Reserved {
    /// Releases reserved memory that is not needed.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let back = self.bytes.saturating_sub(bytes);
        if back > 0 {
            self.bytes -= back;
            let mut state = self.documents.state();
            state.reserved -= back;
            self.documents.wake_all(state);
        }
    }
}

#[cfg(test)]
impl Reserved {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl State {
    fn push(&mut self, site: &str, bytes: u64, work: Work) {
        self.number += 1;
        let waiting = WaitingWork {
            number: self.number,
            bytes,
            passed_over: 0,
            work,
        };
        let site: Arc<str> = site.into();
        self.waiting.insert(site.clone());
        self.sites
            .entry(site)
            .or_default()
            .waiting
            .push_back(waiting);
    }

    /// Takes the next work that may begin.
    fn take(&mut self, memory_max: u64, plugins: u64) -> Option<NextWork> {
        let free = match self.reserved {
            0 => u64::MAX,
            reserved => memory_max.saturating_sub(reserved.saturating_add(plugins)),
        };
        let passed_over = |waiting: &&WaitingWork| waiting.passed_over >= PASSED_OVER_MAX;
        let sites = self.waiting.iter();
        let all = sites.filter_map(|name| Some(&self.sites.get(name)?.waiting));
        let all = all.flatten();
        let urgent = all.filter(passed_over).map(|waiting| waiting.number).min();
        let may_begin = |waiting: &WaitingWork| {
            waiting.bytes == 0
                || waiting.bytes <= free && urgent.is_none_or(|urgent| waiting.number <= urgent)
        };
        // A single lane serves all sites.
        let lane_is_left = self.slow + 1 < self.lanes.max(2);
        let mut first: Option<((Duration, u64), Arc<str>, usize)> = None;
        for name in &self.waiting {
            let Some(site) = self.sites.get(name) else {
                continue;
            };
            if site.is_slow() && !lane_is_left {
                continue;
            }
            if let Some(at) = site.waiting.iter().position(may_begin) {
                let order = (site.had.max(self.clock), site.waiting[at].number);
                if first.as_ref().is_none_or(|(before, ..)| order < *before) {
                    first = Some((order, name.clone(), at));
                }
            }
        }
        let ((time, number), name, at) = first?;
        for other in &self.waiting {
            let Some(site) = self.sites.get_mut(other) else {
                continue;
            };
            for waiting in &mut site.waiting {
                let is_passed_over = waiting.bytes > free && waiting.number < number;
                waiting.passed_over += u32::from(is_passed_over);
            }
        }
        let site = self.sites.get_mut(&name)?;
        let waiting = site.waiting.remove(at)?;
        if site.waiting.is_empty() {
            self.waiting.remove(&name);
        }
        site.running += 1;
        if site.is_slow() {
            site.counts_as_slow += 1;
            self.slow += 1;
        }
        site.had = time;
        self.clock = time;
        self.reserved = self.reserved.saturating_add(waiting.bytes);
        Some(NextWork {
            work: waiting.work,
            site: name,
            began: Instant::now(),
        })
    }

    fn done(&mut self, name: &Arc<str>, took: Duration) {
        if let Some(site) = self.sites.get_mut(name) {
            site.running -= 1;
            if site.counts_as_slow > 0 {
                site.counts_as_slow -= 1;
                self.slow -= 1;
            }
            // Work of the crawl itself belongs to no site.
            if !name.is_empty() {
                site.had += took;
                site.mean = (site.mean + took) / 2;
            }
        }
        if self.sites.len() > SITES_MAX {
            let clock = self.clock;
            self.sites
                .retain(|_, site| !site.is_idle() || site.had > clock && site.is_slow());
        }
        if self.sites.len() > SITES_MAX {
            self.sites.retain(|_, site| !site.is_idle());
        }
    }
}

impl Site {
    fn is_slow(&self) -> bool {
        self.mean > SLOW
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn documents(lanes: usize) -> Arc<Documents> {
        let plugins = Box::new(|| 0);
        Documents::new(
            lanes,
            DocumentMemory {
                max: 100 * MIB,
                plugins,
            },
        )
    }

    fn push(documents: &Documents, site: &str, bytes: u64) {
        documents.state().push(site, bytes, Box::new(|| {}));
    }

    /// Runs the next work for this time, and returns its site.
    fn next(documents: &Documents, took: Duration) -> Option<String> {
        let taken = take(documents, 0)?;
        documents.state().done(&taken.site, took);
        Some(taken.site.to_string())
    }

    fn take(documents: &Documents, plugins: u64) -> Option<NextWork> {
        documents.state().take(documents.memory.max, plugins)
    }

    #[test]
    fn sites_share_the_lanes_by_time_and_not_by_number_of_documents() {
        let documents = documents(1);
        (0..4).for_each(|_| push(&documents, "greedy", 0));
        assert_eq!(
            next(&documents, Duration::from_millis(900)).unwrap(),
            "greedy"
        );
        // This site came later, and queues one document at a time.
        for _ in 0..9 {
            push(&documents, "polite", 0);
            assert_eq!(
                next(&documents, Duration::from_millis(100)).unwrap(),
                "polite"
            );
        }
        assert_eq!(
            next(&documents, Duration::from_millis(900)).unwrap(),
            "greedy"
        );
        // A site without work for a while does not accumulate a right to lane time.
        push(&documents, "new", 0);
        assert_eq!(next(&documents, Duration::from_millis(100)).unwrap(), "new");
        assert_eq!(next(&documents, Duration::ZERO).unwrap(), "greedy");
    }

    #[test]
    fn sites_with_slow_documents_leave_one_lane_to_other_sites() {
        let documents = documents(3);
        for site in ["a", "b", "c"] {
            push(&documents, site, 0);
            next(&documents, 10 * SLOW).unwrap();
            push(&documents, site, 0);
        }
        let (one, _other) = (take(&documents, 0).unwrap(), take(&documents, 0).unwrap());
        assert!(take(&documents, 0).is_none());
        push(&documents, "polite", 0);
        assert_eq!(next(&documents, Duration::ZERO).unwrap(), "polite");
        documents.done(&one.site, one.began);
        assert!(take(&documents, 0).is_some());
        // A new site does not count as slow until its documents were slow.
        push(&documents, "d", 0);
        next(&documents, 3 * SLOW).unwrap();
        push(&documents, "d", 0);
        assert!(take(&documents, 0).is_none());
    }

    #[test]
    fn documents_begin_while_memory_is_free_and_a_single_document_always_begins() {
        let documents = documents(4);
        push(&documents, "a", 300 * MIB);
        push(&documents, "b", 60 * MIB);
        push(&documents, "c", 60 * MIB);
        push(&documents, "d", 0);
        let large = take(&documents, 0).unwrap();
        assert_eq!(&*large.site, "a");
        // Work without a document needs no memory.
        assert_eq!(next(&documents, Duration::ZERO).unwrap(), "d");
        assert!(take(&documents, 0).is_none());
        documents.state().reserved = 0;
        assert_eq!(&*take(&documents, 0).unwrap().site, "b");
        assert!(take(&documents, 0).is_none());
        documents.state().reserved = 30 * MIB;
        // The memories of plugins count as well.
        assert!(take(&documents, 20 * MIB).is_none());
        assert_eq!(&*take(&documents, 0).unwrap().site, "c");
    }

    #[test]
    fn memory_is_reserved_until_the_document_is_dropped() {
        let documents = documents(1);
        let (sender, receiver) = std::sync::mpsc::channel();
        documents.push("a", 40 * MIB, move |reserved| {
            sender.send(reserved).unwrap()
        });
        documents.take().unwrap().run(&documents);
        let mut reserved = receiver.recv().unwrap();
        assert_eq!(documents.state().reserved, 40 * MIB);
        reserved.shrink_to(10 * MIB);
        assert_eq!(documents.state().reserved, 10 * MIB);
        drop(reserved);
        assert_eq!(documents.state().reserved, 0);
    }

    #[test]
    fn a_large_document_is_delayed_by_a_limited_number_of_others() {
        let documents = documents(4);
        let small = || push(&documents, "small", 30 * MIB);
        small();
        take(&documents, 0).unwrap();
        push(&documents, "large", 90 * MIB);
        for _ in 0..PASSED_OVER_MAX {
            small();
            let taken = take(&documents, 0).unwrap();
            assert_eq!(&*taken.site, "small");
            documents.state().reserved -= 30 * MIB;
            documents.state().done(&taken.site, Duration::ZERO);
        }
        small();
        assert!(take(&documents, 0).is_none());
        documents.state().reserved = 0;
        assert_eq!(&*take(&documents, 0).unwrap().site, "large");
    }
}
