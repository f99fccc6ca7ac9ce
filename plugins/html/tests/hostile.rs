//! Hostile documents: memory may grow only in proportion to the document. The global allocator of this program counts it. The
//! tests of time are in `oracle.rs`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use opilio_plugin::testing::document;

/// Counts the allocated bytes, their peak, and the allocations.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all calls go to the system allocator; the counters are separate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allocated = ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(allocated, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Peak memory of a call besides the document, in bytes, and the number of allocations.
fn cost(plugin: &str, html: &str) -> (usize, usize) {
    let plugin = opilio_html::plugins().configure(plugin, "{}").unwrap();
    let page = document("http://e.org/").media_type("text/html").text(html);
    let before = ALLOCATED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    CALLS.store(0, Ordering::Relaxed);
    let answer = plugin.extract(std::slice::from_ref(&page));
    let peak = PEAK.load(Ordering::Relaxed) - before;
    assert_eq!(answer.len(), 1);
    (peak, CALLS.load(Ordering::Relaxed))
}

/// The only test of this program, because the counters count all its threads.
#[test]
fn memory_grows_only_with_the_document() {
    for (name, start, repeated, end) in [
        ("open tags", "", "<a", ""),
        ("tags", "", "<a>", ""),
        ("links", "", "<a href=b>", ""),
        ("nesting", "", "<div><svg><math>", ""),
        ("forms", "", "<form action=a><input name=b>", ""),
        ("controls", "<form>", "<input name=a value=b>", ""),
        ("options", "<form><select name=a>", "<option>b", ""),
        ("field sets", "<form>", "<fieldset disabled>", ""),
        (
            "controls with a form attribute",
            "<form id=f>",
            "<button form=f name=a>",
            "",
        ),
        ("attributes", "<a ", "href=b data-src=c.png ", ">"),
        ("one attribute", "<a href='", "b&amp;", "'>"),
        ("one value", "<form><input name=a value='", "b&amp;", "'>"),
        ("comments", "", "<!--[if IE]>", ""),
        ("scripts", "", "<script><!--<script>", ""),
        ("text areas", "<form>", "<textarea name=a>", ""),
    ] {
        let document_of =
            |bytes: usize| format!("{start}{}{end}", repeated.repeat(bytes / repeated.len()));
        let (small, large) = (document_of(100_000), document_of(1_000_000));
        for plugin in ["html", "forms"] {
            let (small_bytes, small_calls) = cost(plugin, &small);
            let (large_bytes, large_calls) = cost(plugin, &large);
            assert!(
                large_bytes < small_bytes * 16 + 64 * 1024,
                "{plugin}, {name}: {small_bytes} bytes for 100 kB, {large_bytes} bytes for 1 MB"
            );
            assert!(
                large_calls < small_calls * 12 + 1_000,
                "{plugin}, {name}: {small_calls} allocations for 100 kB, {large_calls} for 1 MB"
            );
        }
    }
    // Beyond the document, at most its copy as text and 1 MiB.
    let huge = "<a".repeat(50_000_000);
    for plugin in ["html", "forms"] {
        let (bytes, _) = cost(plugin, &huge);
        assert!(bytes < huge.len() + 1024 * 1024, "{plugin}: {bytes}");
    }
}
