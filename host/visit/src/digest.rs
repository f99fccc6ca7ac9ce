//! The stripped digest: the digest of a document without the parts that do not count as content.
//!
//! The record keeps it beside the payload digest, which covers all bytes and is never replaced by it. For a rendered page, it is
//! the digest of the document that the browser showed. Only this digest is compared then: the payload of such a page may stay the
//! same forever.

use opilio_frontier::{ContentState, Digests, StrippedDigest};
use opilio_sandbox::{Document, Span, StripProblem, Visit};
use sha1::{Digest as _, Sha1};

use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;

/// The result of the strippers.
pub(crate) enum Stripped {
    /// No stripper handles this document. The payload digest decides.
    NotCalled,
    /// The digest of the remaining content.
    Digest(StrippedDigest),
    /// A stripper declined, or the content could not be read completely. The payload digest decides: the same bytes are unchanged,
    /// and different bytes count as changed, although the strippers might have found them equal.
    Declined {
        /// The stripper and its reason, for the crawl log.
        why: String,
    },
    /// The call of a stripper failed. The state of different bytes is unknown.
    Failed {
        /// The reason, for the log.
        why: String,
        /// The plugin error; `None` if the breaker has left the stripper out for a while.
        failure: Option<Box<Failure>>,
    },
}

/// Runs the strippers and digests the remaining content. Blocks; call it on a document lane.
///
/// A stripper whose guards reject the document is left out of the stack. The digest depends on the set of strippers that were left
/// out.
pub(crate) fn stripped(
    stack: &[Staged],
    stack_hash: u64,
    document: &Document,
    visit: &Visit,
    guards: &Guards,
) -> Stripped {
    let mut spans: Vec<Span> = Vec::new();
    let mut was_called = false;
    let mut kept_out = 0;
    for (place, staged) in stack.iter().enumerate() {
        if !staged.plugin.handles(document.media_type(), document.uri()) {
            continue;
        }
        if !guards.admit(staged, document, visit) {
            kept_out |= 1 << (place % 64);
            continue;
        }
        was_called = true;
        match staged.strip(document) {
            Ok(Ok(more)) => spans.extend(more),
            Ok(Err(problem)) => {
                return Stripped::Declined {
                    why: format!("{}:{}", staged.name, problem_text(&problem)),
                };
            }
            Err(unanswered) => {
                return Stripped::Failed {
                    why: format!("{}: {}", staged.name, unanswered.reason()),
                    failure: unanswered.failure().map(Box::new),
                };
            }
        }
    }
    if !was_called {
        return Stripped::NotCalled;
    }
    Stripped::Digest(StrippedDigest {
        digest: digest_without(document.content(), spans),
        // At the last visit, guards may have selected other strippers.
        stripper: StrippedDigest::stripper_of(stack_hash ^ kept_out),
    })
}

/// The digest of a page that a browser showed.
#[derive(Default)]
pub(crate) struct RenderedDigest {
    /// The digest; `None` if the call of a stripper failed.
    pub(crate) digest: Option<StrippedDigest>,
    /// The stripper that declined and its reason. In this case the digest covers the whole page.
    pub(crate) declined: Option<String>,
    /// The plugin error.
    pub(crate) failure: Option<Box<Failure>>,
}

/// Runs the strippers on a page that a browser showed, and digests the remaining content. Without strippers, all content is
/// digested.
pub(crate) fn rendered(
    stack: &[Staged],
    stack_hash: u64,
    document: &Document,
    visit: &Visit,
    guards: &Guards,
) -> RenderedDigest {
    let whole = |stripper| StrippedDigest {
        digest: digest_without(document.content(), Vec::new()),
        stripper: StrippedDigest::stripper_of_rendering(stripper),
    };
    match stripped(stack, stack_hash, document, visit, guards) {
        Stripped::NotCalled => RenderedDigest {
            digest: Some(whole(stack_hash)),
            ..RenderedDigest::default()
        },
        Stripped::Digest(StrippedDigest { digest, stripper }) => RenderedDigest {
            digest: Some(StrippedDigest {
                digest,
                stripper: StrippedDigest::stripper_of_rendering(stripper),
            }),
            ..RenderedDigest::default()
        },
        // At the next visit the page may be small enough for the strippers, and then its digest differs.
        Stripped::Declined { why } => RenderedDigest {
            digest: Some(whole(!stack_hash)),
            declined: Some(why),
            failure: None,
        },
        Stripped::Failed { failure, .. } => RenderedDigest {
            failure,
            ..RenderedDigest::default()
        },
    }
}

/// The state of a page that a browser showed, against the last archived version. The state is unknown if only the payload digest of
/// that version was kept: a rendering cannot be compared with a payload.
pub(crate) fn rendered_state(last: Option<&Digests>, now: Option<StrippedDigest>) -> ContentState {
    let Some(last) = last.filter(|last| last.payload.is_some() || last.stripped.is_some()) else {
        return ContentState::New;
    };
    match (last.stripped, now) {
        (Some(then), Some(now)) if then.stripper == now.stripper => match then.digest == now.digest
        {
            true => ContentState::Unchanged,
            false => ContentState::Changed,
        },
        _ => ContentState::Unknown,
    }
}

/// Returns a stripper's reason for an annotation.
fn problem_text(problem: &StripProblem) -> &str {
    match problem {
        StripProblem::TooLarge(_) => "too-large",
        StripProblem::Other(reason) => reason,
    }
}

/// The state of a document's content, as a server sent it, against the last archived version.
pub(crate) fn state(
    last: Option<&Digests>,
    payload: [u8; 20],
    stripped: &Stripped,
) -> ContentState {
    let Some(last) = last.filter(|last| last.payload.is_some() || last.stripped.is_some()) else {
        return ContentState::New;
    };
    let same = |same: bool| {
        if same {
            ContentState::Unchanged
        } else {
            ContentState::Changed
        }
    };
    // Equal bytes are unchanged. The answers of strippers do not matter.
    if last.payload == Some(payload) {
        return ContentState::Unchanged;
    }
    match stripped {
        Stripped::Failed { .. } => ContentState::Unknown,
        // A browser showed the last version, so its payload is not a sufficient comparison.
        Stripped::Declined { .. } if last.is_of_rendering() => ContentState::Unknown,
        // Only bytes can be compared.
        Stripped::Declined { .. } if last.payload.is_some() => ContentState::Changed,
        Stripped::Declined { .. } => ContentState::Unknown,
        Stripped::NotCalled => match (last.payload, last.stripped) {
            (Some(last), None) => same(last == payload),
            // The last version has a stripped digest, but the strippers have been removed from the profile since.
            _ => ContentState::Unknown,
        },
        Stripped::Digest(now) => match last.stripped {
            Some(then) if then.stripper == now.stripper => same(then.digest == now.digest),
            _ => ContentState::Unknown,
        },
    }
}

/// Digests the content. One blank replaces each span, or run of adjacent spans, so that words on both sides stay apart.
fn digest_without(content: &[u8], mut spans: Vec<Span>) -> [u8; 20] {
    spans.retain(|span| span.length > 0);
    spans.sort_by_key(|span| span.offset);
    let mut hash = Sha1::new();
    let mut at = 0;
    let mut previous_end = None;
    for span in spans {
        let start = usize::try_from(span.offset)
            .unwrap_or(usize::MAX)
            .min(content.len());
        let end = usize::try_from(span.offset.saturating_add(span.length))
            .unwrap_or(usize::MAX)
            .min(content.len());
        if end <= at {
            continue;
        }
        if previous_end != Some(start.max(at)) {
            hash.update(&content[at..start.max(at)]);
            hash.update(b" ");
        }
        at = end;
        previous_end = Some(end);
    }
    hash.update(&content[at..]);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, spans: &[(u64, u64)], left: &str) {
        let spans = spans
            .iter()
            .map(|&(offset, length)| Span { offset, length })
            .collect();
        let expected: [u8; 20] = Sha1::digest(left.as_bytes()).into();
        assert_eq!(
            digest_without(content.as_bytes(), spans),
            expected,
            "{content}"
        );
    }

    #[test]
    fn spans_become_one_blank_each() {
        check("a12:00b", &[(1, 5)], "a b");
        check("abc", &[], "abc");
        check("abcdef", &[(4, 1), (1, 1)], "a cd f");
        check("abc", &[(0, 3)], " ");
        check("abc", &[(1, 0)], "abc");
    }

    #[test]
    fn overlapping_and_touching_spans_count_once() {
        check("abcdef", &[(1, 3), (2, 3)], "a f");
        check("abcdef", &[(1, 2), (3, 2)], "a f");
        check("abcdef", &[(1, 4), (2, 1)], "a f");
    }

    #[test]
    fn states_against_the_last_version() {
        let stripped = |byte: u8, stripper: u64| StrippedDigest {
            digest: [byte; 20],
            stripper,
        };
        let last = |payload: Option<u8>, stripped| Digests {
            payload: payload.map(|byte| [byte; 20]),
            stripped,
        };
        #[track_caller]
        fn check(last: Option<Digests>, payload: u8, now: Stripped, expected: ContentState) {
            assert_eq!(state(last.as_ref(), [payload; 20], &now), expected);
        }
        let unknown = || Stripped::Failed {
            why: "html-strip: trap".into(),
            failure: None,
        };
        let declined = || Stripped::Declined {
            why: "html-strip:too-large".into(),
        };
        check(None, 1, declined(), ContentState::New);
        for before in [None, Some(stripped(7, 1))] {
            let last = Some(last(Some(1), before));
            check(last, 1, declined(), ContentState::Unchanged);
            check(last, 2, declined(), ContentState::Changed);
        }
        check(None, 1, Stripped::NotCalled, ContentState::New);
        check(Some(last(None, None)), 1, unknown(), ContentState::New);
        check(
            Some(last(Some(1), None)),
            1,
            Stripped::NotCalled,
            ContentState::Unchanged,
        );
        check(
            Some(last(Some(1), None)),
            2,
            Stripped::NotCalled,
            ContentState::Changed,
        );
        check(
            Some(last(Some(1), Some(stripped(7, 1)))),
            2,
            Stripped::NotCalled,
            ContentState::Unknown,
        );
        check(
            Some(last(Some(1), Some(stripped(7, 1)))),
            2,
            Stripped::Digest(stripped(7, 1)),
            ContentState::Unchanged,
        );
        check(
            Some(last(Some(1), Some(stripped(7, 1)))),
            2,
            Stripped::Digest(stripped(8, 1)),
            ContentState::Changed,
        );
        check(
            Some(last(Some(1), Some(stripped(7, 1)))),
            2,
            Stripped::Digest(stripped(7, 2)),
            ContentState::Unknown,
        );
        check(
            Some(last(Some(1), None)),
            2,
            Stripped::Digest(stripped(7, 1)),
            ContentState::Unknown,
        );
        check(
            Some(last(Some(1), Some(stripped(7, 1)))),
            2,
            unknown(),
            ContentState::Unknown,
        );
        check(
            Some(last(Some(1), Some(stripped(7, 1)))),
            1,
            unknown(),
            ContentState::Unchanged,
        );
    }

    #[test]
    fn a_rendering_is_compared_only_with_another_rendering() {
        let digest = |byte: u8, stripper: u64| StrippedDigest {
            digest: [byte; 20],
            stripper,
        };
        let shown = |byte, stack| digest(byte, StrippedDigest::stripper_of_rendering(stack));
        let sent = |byte, stack| digest(byte, StrippedDigest::stripper_of(stack));
        let last = |stripped| Digests {
            payload: Some([1; 20]),
            stripped,
        };
        #[track_caller]
        fn check(last: Option<Digests>, now: Option<StrippedDigest>, expected: ContentState) {
            assert_eq!(rendered_state(last.as_ref(), now), expected);
        }
        check(None, Some(shown(7, 1)), ContentState::New);
        check(Some(Digests::default()), None, ContentState::New);
        let rendered = Some(last(Some(shown(7, 1))));
        check(rendered, Some(shown(7, 1)), ContentState::Unchanged);
        check(rendered, Some(shown(8, 1)), ContentState::Changed);
        check(rendered, Some(shown(7, 2)), ContentState::Unknown);
        check(rendered, None, ContentState::Unknown);
        // From plain to rendered: the state is unknown, even if the bytes are equal.
        check(Some(last(None)), Some(shown(7, 1)), ContentState::Unknown);
        check(
            Some(last(Some(sent(7, 1)))),
            Some(shown(7, 1)),
            ContentState::Unknown,
        );

        // From rendered to plain: equal bytes are unchanged, and different bytes are not compared.
        let back = |payload: u8, now| state(rendered.as_ref(), [payload; 20], &now);
        let declined = || Stripped::Declined {
            why: "html-strip:too-large".into(),
        };
        for now in [
            Stripped::NotCalled,
            declined(),
            Stripped::Digest(sent(7, 1)),
        ] {
            assert_eq!(back(2, now), ContentState::Unknown);
        }
        assert_eq!(back(1, Stripped::NotCalled), ContentState::Unchanged);
    }
}
