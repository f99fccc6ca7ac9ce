//! Documents made to break readers: memory may grow only with the document. The allocator counts it. The tokenizer's comment
//! states the same for time, and the fuzzer watches it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use opilio_plugin::testing::document;

/// Counts the allocated bytes, and their maximum.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all calls go to the system allocator; the counters are separate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Most bytes needed besides the document, and the number of allocations.
fn cost(plugin: &str, html: &str) -> (usize, usize) {
    let plugin = opilio_html::plugins().configure(plugin, "{}").unwrap();
    let page = document("http://e.org/").media_type("text/html").text(html);
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    CALLS.store(0, Ordering::Relaxed);
    let answer = plugin.extract(std::slice::from_ref(&page));
    let most = MOST.load(Ordering::Relaxed) - before;
    assert_eq!(answer.len(), 1);
    (most, CALLS.load(Ordering::Relaxed))
}

/// One test, because the counters belong to the program.
#[test]
fn memory_grows_with_the_document_alone() {
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
            "controls from afar",
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
        let of = |bytes: usize| format!("{start}{}{end}", repeated.repeat(bytes / repeated.len()));
        let (small, large) = (of(100_000), of(1_000_000));
        for plugin in ["html", "forms"] {
            let (small_bytes, small_calls) = cost(plugin, &small);
            let (large_bytes, large_calls) = cost(plugin, &large);
            assert!(
                large_bytes < small_bytes * 16 + 64 * 1024,
                "{plugin}, {name}: {small_bytes} bytes for one, {large_bytes} for ten times as much"
            );
            assert!(
                large_calls < small_calls * 12 + 1_000,
                "{plugin}, {name}: {small_calls} allocations for one, {large_calls} for ten times as much"
            );
        }
    }
    // The document, its copy as text, and almost nothing more.
    let huge = "<a".repeat(50_000_000);
    for plugin in ["html", "forms"] {
        let (bytes, _) = cost(plugin, &huge);
        assert!(bytes < huge.len() + 1024 * 1024, "{plugin}: {bytes}");
    }
}
