//! Plugins' answers, and their checks against the question and the limits. The policy is the same for every kind of plugin and every
//! contract version.

use std::time::Duration;

use crate::bindings::exports::opilio::plugin::extractor;
use crate::document::Document;
use crate::fault::Problem;
use crate::handles::is_media_type;
use crate::notes::clip;
use crate::{
    Comparison, Fragment, Limits, Link, NamedValue, Observation, Report, Ruling, Span, Stage,
    Verdict,
};

/// Bytes kept of a link's or fragment's context, as the contract defines.
const CONTEXT_BYTES_MAX: usize = 200;
/// Bytes kept of the reason of a ruling or comparison and of an extraction's problem.
const REASON_BYTES_MAX: usize = 500;
/// Longest name of an observer's file, in bytes.
const FILE_NAME_BYTES_MAX: usize = 64;
/// Longest ending of such a name, as the contract defines.
const FILE_ENDING_BYTES_MAX: usize = 8;

/// Results of an extractor in one document. Spans and media types of fragments have been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// In document order, at most [`Limits::links`].
    pub links: Vec<Link>,
    /// Links past the limit.
    pub links_dropped: u64,
    /// Parts with a media type of their own, at most [`Limits::fragments`]; see [`Document::fragment_of`].
    pub fragments: Vec<Fragment>,
    /// Fragments past the limit.
    pub fragments_dropped: u64,
    /// The base that the document declares: a reference that the host resolves.
    pub base: Option<String>,
    /// `true` if extractors of last resort are skipped.
    pub finished: bool,
    /// Description of the unreadable part, for the log.
    pub problem: Option<String>,
}

/// The wait that a wait evaluator proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Time from now until the next visit. The host keeps it within the profile's limits.
    pub next_visit: Duration,
    /// Time from now until a reconsideration without a visit; at most `next_visit`.
    pub ask_again: Option<Duration>,
}

pub(crate) fn check_aligned(answers: usize, questions: usize) -> Result<(), Problem> {
    if answers == questions {
        Ok(())
    } else {
        Err(Problem::Nonsense(format!(
            "answered {answers} times to {questions} questions"
        )))
    }
}

pub(crate) fn checked_extraction(
    answer: extractor::Extraction,
    document: &Document,
    limits: &Limits,
) -> Result<Extraction, Problem> {
    let extractor::Extraction {
        mut links,
        mut fragments,
        base,
        finished,
        mut problem,
    } = answer;
    let links_dropped = truncate_list(&mut links, limits.links);
    let fragments_dropped = truncate_list(&mut fragments, limits.fragments);
    for link in &mut links {
        clean_text(&mut link.context, CONTEXT_BYTES_MAX);
    }
    for fragment in &mut fragments {
        clean_text(&mut fragment.context, CONTEXT_BYTES_MAX);
        if !is_media_type(&fragment.media_type) {
            let media_type = clip(&fragment.media_type, CONTEXT_BYTES_MAX);
            return Err(Problem::Nonsense(format!(
                "a fragment's media type is `{media_type}`"
            )));
        }
        document
            .check_fragment(fragment)
            .map_err(|problem| Problem::Nonsense(problem.to_string()))?;
    }
    if let Some(problem) = &mut problem {
        clean_text(problem, REASON_BYTES_MAX);
    }
    Ok(Extraction {
        links,
        links_dropped,
        fragments,
        fragments_dropped,
        base,
        finished,
        problem,
    })
}

/// Checks that the ruling's verdict exists at its stage, and cuts its reason to a bounded length.
pub(crate) fn checked_ruling(mut ruling: Ruling, stage: &Stage) -> Result<Ruling, Problem> {
    clean_text(&mut ruling.reason, REASON_BYTES_MAX);
    let problem = match (&ruling.verdict, stage) {
        (Verdict::Accept | Verdict::Reject | Verdict::Pass, _)
        | (Verdict::Unchanged, Stage::MidFetch)
        | (Verdict::Retry(_), Stage::PostFetch) => return Ok(ruling),
        (Verdict::Unchanged, _) => "ruled `unchanged`, which belongs to mid-fetch".to_owned(),
        (Verdict::Retry(_), _) => "ruled `retry`, which belongs to post-fetch".to_owned(),
        (Verdict::Other(name), _) => {
            format!(
                "ruled `{}`, a verdict that this version does not know",
                clip(name, CONTEXT_BYTES_MAX)
            )
        }
    };
    Err(Problem::Nonsense(problem))
}

/// Sorts spans, removes empty ones and joins overlapping ones. Touching spans are not joined, because each is replaced by a blank.
pub(crate) fn sorted_spans(mut spans: Vec<Span>, length: u64) -> Result<Vec<Span>, Problem> {
    for Span {
        offset,
        length: bytes,
    } in &spans
    {
        if offset.checked_add(*bytes).is_none_or(|end| end > length) {
            return Err(Problem::Nonsense(format!(
                "span {offset}+{bytes} reaches past the document's {length} bytes"
            )));
        }
    }
    spans.retain(|span| span.length > 0);
    spans.sort_unstable_by_key(|span| span.offset);
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.offset < last.offset + last.length => {
                last.length = last.length.max(span.offset + span.length - last.offset);
            }
            _ => joined.push(span),
        }
    }
    Ok(joined)
}

/// Cuts a list, and returns the number of dropped items.
fn truncate_list<T>(list: &mut Vec<T>, max: usize) -> u64 {
    let dropped = list.len().saturating_sub(max);
    list.truncate(max);
    dropped as u64
}

/// Cuts a text for logs and records to its length. Control characters become blanks, since they would break the line or control a
/// terminal.
fn clean_text(text: &mut String, bytes_max: usize) {
    text.truncate(clip(text, bytes_max).len());
    if text.contains(char::is_control) {
        *text = text.replace(char::is_control, " ");
    }
}

/// Checks that the host can keep the fingerprint of a comparison.
pub(crate) fn checked_comparison(
    mut comparison: Comparison,
    limits: &Limits,
) -> Result<Comparison, Problem> {
    clean_text(&mut comparison.reason, REASON_BYTES_MAX);
    match &comparison.fingerprint {
        Some(fingerprint) if fingerprint.len() > limits.fingerprint_bytes => {
            Err(Problem::Excess(format!(
                "made a fingerprint of {} bytes; {} are allowed",
                fingerprint.len(),
                limits.fingerprint_bytes
            )))
        }
        _ => Ok(comparison),
    }
}

/// Checks that a precedence is at least 1.
pub(crate) fn checked_rank(rank: Option<u8>) -> Result<Option<u8>, Problem> {
    match rank {
        Some(0) => Err(Problem::Nonsense(
            "ranked 0; precedences go from 1, the highest, to 255".to_owned(),
        )),
        _ => Ok(rank),
    }
}

/// Checks that the host can keep the memory and files of an observation.
pub(crate) fn checked_observation(
    observation: Observation,
    limits: &Limits,
) -> Result<Observation, Problem> {
    let bytes = observation.memory.len();
    if bytes > limits.observer_memory_bytes {
        return Err(Problem::Excess(format!(
            "wants {bytes} bytes remembered; {} are allowed",
            limits.observer_memory_bytes
        )));
    }
    let files = observation.lines.iter().map(|line| line.file.as_str());
    check_files(files, limits)?;
    Ok(observation)
}

/// Checks that the host can keep the reports, and that each has a different name.
pub(crate) fn checked_reports(
    reports: Vec<Report>,
    limits: &Limits,
) -> Result<Vec<Report>, Problem> {
    let files = || reports.iter().map(|report| report.file.as_str());
    check_files(files(), limits)?;
    for (at, file) in files().enumerate() {
        if files().take(at).any(|other| other == file) {
            return Err(Problem::Nonsense(format!("reports `{file}` twice")));
        }
    }
    Ok(reports)
}

fn check_files<'a>(files: impl Iterator<Item = &'a str>, limits: &Limits) -> Result<(), Problem> {
    let mut known: Vec<&str> = Vec::new();
    for file in files {
        if known.contains(&file) {
            continue;
        }
        if !is_file_name(file) {
            return Err(Problem::Nonsense(format!(
                "names a file `{}`; names are lower-case words joined by hyphens, with an ending such as `.csv`",
                clip(file, CONTEXT_BYTES_MAX)
            )));
        }
        if known.len() >= limits.files {
            return Err(Problem::Excess(format!(
                "names more than {} files",
                limits.files
            )));
        }
        known.push(file);
    }
    Ok(())
}

/// Returns `true` if a text is a file name: lower-case words joined by hyphens, a full stop, and an ending of letters and digits.
fn is_file_name(text: &str) -> bool {
    let is_ending = |ending: &str| {
        (1..=FILE_ENDING_BYTES_MAX).contains(&ending.len())
            && ending
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    text.len() <= FILE_NAME_BYTES_MAX
        && text
            .split_once('.')
            .is_some_and(|(name, ending)| crate::describe::is_name(name) && is_ending(ending))
}

/// A named value of the contract.
impl NamedValue {
    /// Makes the pair `name` = `value`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_in_order_with_overlaps_joined() {
        #[track_caller]
        fn check(spans: &[(u64, u64)], expected: &[(u64, u64)]) {
            let spans = spans
                .iter()
                .map(|&(offset, length)| Span { offset, length })
                .collect();
            let joined = sorted_spans(spans, 100).map(|spans| {
                spans
                    .iter()
                    .map(|s| (s.offset, s.length))
                    .collect::<Vec<_>>()
            });
            assert!(
                joined.as_ref().is_ok_and(|joined| joined == expected),
                "{joined:?}"
            );
        }
        check(&[], &[]);
        check(&[(50, 10), (10, 10)], &[(10, 10), (50, 10)]);
        check(&[(10, 10), (15, 10)], &[(10, 15)]);
        check(&[(10, 20), (15, 5), (29, 2)], &[(10, 21)]);
        check(&[(10, 10), (20, 10)], &[(10, 10), (20, 10)]);
        check(&[(10, 10), (10, 10)], &[(10, 10)]);
        check(&[(10, 0), (100, 0), (99, 1)], &[(99, 1)]);
    }

    #[test]
    fn spans_past_the_end_are_nonsense() {
        for (offset, length) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let joined = sorted_spans(vec![Span { offset, length }], 100);
            assert!(
                matches!(joined, Err(Problem::Nonsense(_))),
                "{offset}+{length}: {joined:?}"
            );
        }
    }

    #[test]
    fn verdicts_are_checked_against_the_stage() {
        #[track_caller]
        fn check(verdict: Verdict, stage: Stage, fits: bool) {
            let ruling = Ruling {
                verdict,
                reason: String::new(),
            };
            let fitted = checked_ruling(ruling, &stage);
            assert_eq!(fitted.is_ok(), fits, "{fitted:?}");
        }
        check(Verdict::Pass, Stage::Scope, true);
        check(Verdict::Unchanged, Stage::MidFetch, true);
        check(Verdict::Unchanged, Stage::PostFetch, false);
        check(Verdict::Retry(1), Stage::PostFetch, true);
        check(Verdict::Retry(1), Stage::Archive, false);
        check(Verdict::Other("maybe".into()), Stage::Scope, false);
    }

    #[test]
    fn file_names_are_checked() {
        #[track_caller]
        fn check(name: &str, fits: bool) {
            assert_eq!(is_file_name(name), fits, "{name}");
        }
        check("titles.csv", true);
        check("by-host.jsonl", true);
        check("titles", false);
        check("titles.", false);
        check(".csv", false);
        check("../titles.csv", false);
        check("a/b.csv", false);
        check("Titles.csv", false);
        check("titles.tar.gz", false);
        check("titles.ninecharz", false);
        check(&format!("{}.csv", "a".repeat(61)), false);
    }

    #[test]
    fn precedence_0_is_refused() {
        assert!(matches!(checked_rank(Some(0)), Err(Problem::Nonsense(_))));
        assert!(matches!(checked_rank(Some(1)), Ok(Some(1))));
        assert!(matches!(checked_rank(None), Ok(None)));
    }

    #[test]
    fn memories_and_fingerprints_over_the_limit_are_refused() {
        let limits = Limits {
            fingerprint_bytes: 2,
            observer_memory_bytes: 2,
            files: 1,
            ..Limits::default()
        };
        let comparison = |bytes: usize| Comparison {
            difference: None,
            fingerprint: Some(vec![0; bytes]),
            reason: String::new(),
        };
        assert!(checked_comparison(comparison(2), &limits).is_ok());
        assert!(matches!(
            checked_comparison(comparison(3), &limits),
            Err(Problem::Excess(_))
        ));
        let observation = |bytes: usize, files: &[&str]| Observation {
            memory: vec![0; bytes],
            lines: files
                .iter()
                .map(|file| crate::Line {
                    file: (*file).to_owned(),
                    text: String::new(),
                })
                .collect(),
        };
        assert!(checked_observation(observation(2, &["a.csv", "a.csv"]), &limits).is_ok());
        for (bytes, files) in [(3, &["a.csv"][..]), (0, &["a.csv", "b.csv"])] {
            let refused = checked_observation(observation(bytes, files), &limits);
            assert!(matches!(refused, Err(Problem::Excess(_))), "{refused:?}");
        }
        let report = |file: &str| Report {
            file: file.to_owned(),
            content: String::new(),
        };
        assert!(checked_reports(vec![report("a.txt")], &limits).is_ok());
        for files in [&["a.txt", "a.txt"][..], &["a"]] {
            let reports = files.iter().map(|file| report(file)).collect();
            let refused = checked_reports(reports, &limits);
            assert!(matches!(refused, Err(Problem::Nonsense(_))), "{refused:?}");
        }
    }
}
