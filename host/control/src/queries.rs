//! Queries of operators: queues, their URIs, all URIs, and explanations of a URI's state.

use std::cmp::Reverse;

use data_encoding::{Encoding, HEXLOWER_PERMISSIVE};
use jiff::Timestamp;
use opilio_frontier::{FetchExplanation, QueueReport, StrippedDigest, UriRecord};
use opilio_profile::{EffectiveSettings, Stage, UriContext};
use opilio_uri::Uri;
use serde_json::json;

use super::admin::PART_PAUSE;
use super::answer::{Respond, listened};
use super::{
    CommandResponse, ControlError, ErrorKind, JobAdmin, JobState, LastRefusal, ListedUri,
    QueueSort, QueueState, UriSelection, WhyAnswer,
};
use opilio_crawl::JobPart;
use opilio_job::transfer::{queue_as_json, uri_as_json};
use opilio_stacks::{KnownStack, KnownStacks};
use opilio_visit::reading::NOT_EXTRACTED;

/// Encoding of cursors. They appear in addresses and command lines, where other characters would need quoting.
const HEXADECIMAL: Encoding = HEXLOWER_PERMISSIVE;

/// Number of URIs after which a list reports its progress.
const LIST_TELL: u64 = 10_000;

/// Maximum number of queues, or URIs of a queue, that are read while the frontier is locked.
const LIST_PART: usize = 500;

impl JobAdmin<'_> {
    /// Returns the report of a queue.
    pub(super) fn report(&self, queue: &str) -> Result<QueueReport, ControlError> {
        let report = self.frontier().queue(queue, Timestamp::now())?;
        report.ok_or_else(|| no_queue(queue))
    }

    pub(super) fn queues(
        &self,
        state: Option<QueueState>,
        mut after: Option<String>,
        limit: u64,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let mut left = limit;
        while left > 0 {
            let now = Timestamp::now();
            let part = self.frontier().queues(after.as_deref(), LIST_PART, now)?;
            let is_last = part.len() < LIST_PART;
            for report in part {
                after = Some(report.queue.clone());
                if state.is_some_and(|state| state != report.state) {
                    continue;
                }
                if left == 0 {
                    return Ok(String::new());
                }
                left -= 1;
                listened(respond(CommandResponse::Queue {
                    queue: queue_as_json(&report),
                }))?;
                if left == 0 {
                    break;
                }
            }
            if is_last && left > 0 {
                return Ok(String::new());
            }
            std::thread::sleep(PART_PAUSE);
        }
        let behind = self
            .frontier()
            .queues(after.as_deref(), 1, Timestamp::now())?;
        if let Some(after) = after.filter(|_| !behind.is_empty()) {
            respond(CommandResponse::More { after });
        }
        Ok(String::new())
    }

    /// Lists the first queues in an order that the store does not have.
    pub(super) fn sorted_queues(
        &self,
        state: Option<QueueState>,
        sort: QueueSort,
        limit: u64,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut first: Vec<QueueReport> = Vec::new();
        let mut after = None;
        let mut meant = 0;
        loop {
            let now = Timestamp::now();
            let part = self.frontier().queues(after.as_deref(), LIST_PART, now)?;
            after = part.last().map(|report| report.queue.clone());
            let is_last = part.len() < LIST_PART;
            let held = first.len();
            first.extend(
                part.into_iter()
                    .filter(|report| state.is_none_or(|state| state == report.state)),
            );
            meant += first.len() - held;
            // Each part is sorted together with the best queues so far, so that at most one part more than the requested number is
            // in memory.
            sort.apply(&mut first);
            first.truncate(limit);
            if is_last {
                break;
            }
            std::thread::sleep(PART_PAUSE);
        }
        for report in first {
            listened(respond(CommandResponse::Queue {
                queue: queue_as_json(&report),
            }))?;
        }
        if meant > limit {
            respond(CommandResponse::More {
                after: String::new(),
            });
        }
        Ok(String::new())
    }

    pub(super) fn uris(
        &self,
        queue: &str,
        after: Option<&str>,
        limit: u64,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        self.report(queue)?;
        let mut after = after.map(|text| from_cursor(queue, text)).transpose()?;
        let mut left = limit;
        while left > 0 {
            let most = LIST_PART.min(usize::try_from(left).unwrap_or(LIST_PART));
            let part = self.frontier().queue_uris(queue, after.as_deref(), most)?;
            if part.is_empty() {
                return Ok(String::new());
            }
            left -= part.len() as u64;
            for queued in part {
                after = Some(queued.cursor);
                listened(respond(CommandResponse::Uri(ListedUri {
                    uri: uri_as_json(&queued.record),
                    is_ready: Some(queued.is_ready),
                    in_process: Some(queued.in_process),
                })))?;
            }
            std::thread::sleep(PART_PAUSE);
        }
        let behind = self.frontier().queue_uris(queue, after.as_deref(), 1)?;
        if let Some(after) = after.filter(|_| !behind.is_empty()) {
            respond(CommandResponse::More {
                after: to_cursor(queue, &after),
            });
        }
        Ok(String::new())
    }

    pub(super) fn list(
        &self,
        which: &UriSelection,
        after: Option<&str>,
        limit: u64,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let selection = which.selection()?;
        // The list reads the store's present state without locking the frontier.
        let after = match after {
            Some(text) => HEXADECIMAL
                .decode(text.as_bytes())
                .ok()
                .and_then(|key| String::from_utf8(key).ok())
                .ok_or_else(|| no_cursor(text))?,
            None => String::new(),
        };
        let records = self
            .frontier()
            .records_behind(selection.key_prefix(), &after);
        let (mut listed, mut last) = (0, String::new());
        for (examined, record) in (1..).zip(records) {
            let (key, record) = record?;
            if examined % LIST_TELL == 0 {
                // The client of a rare match may have disconnected long ago.
                listened(respond(CommandResponse::Progress {
                    examined,
                    meant: listed,
                }))?;
            }
            if !selection.takes(&record) {
                continue;
            }
            if listed == limit {
                respond(CommandResponse::More {
                    after: HEXADECIMAL.encode(last.as_bytes()),
                });
                break;
            }
            listed += 1;
            last = key;
            listened(respond(CommandResponse::Uri(ListedUri {
                uri: uri_as_json(&record),
                is_ready: None,
                in_process: None,
            })))?;
        }
        Ok(String::new())
    }

    pub(super) fn why(&self, uri: &Uri, respond: Respond<'_>) -> Result<String, ControlError> {
        let canonical = self.profile.canonical(uri);
        let why = self.frontier().explain(uri, &canonical, Timestamp::now())?;
        let sentence = why.to_string();
        let mut answer = WhyAnswer {
            asked: uri.as_str().to_owned(),
            part: JobPart::read(self.job).ok().flatten().map(|part| part.part),
            canonical,
            known: String::new(),
            sentence,
            uri: None,
            queue: None,
            is_ready: None,
            in_process: None,
            refused: None,
            last_refusal: None,
            read_by: None,
            stripped_by: None,
        };
        let (known, reason) = match why {
            FetchExplanation::Unknown => ("unknown", None),
            FetchExplanation::Refused(rejection) => {
                if rejection.reason.is_empty() {
                    // No filter gave a reason. A URI that no filter accepts is out of scope.
                    answer.sentence = format!(
                        "refused, because no scope filter accepted it, when it was found on {} at {}",
                        rejection.via, rejection.at
                    );
                }
                answer.refused = Some(json!({
                    "reason": rejection.reason,
                    "via": rejection.via,
                    "at": rejection.at,
                }));
                ("refused", None)
            }
            FetchExplanation::SameAs(reason) => ("same-as", Some(reason)),
            FetchExplanation::Known(reason) => ("known", Some(reason)),
        };
        known.clone_into(&mut answer.known);
        if let Some(reason) = reason {
            answer.is_ready = Some(reason.is_ready);
            answer.in_process = Some(reason.in_process);
            let is_paused = self
                .running
                .is_some_and(|it| it.live.crawl_state() != JobState::Running);
            if is_paused && !reason.in_process {
                answer.sentence += "; the job is paused, so nothing is fetched until it is resumed";
            }
            answer.queue = reason.queue.as_ref().map(queue_as_json);
            self.name_plugins(&reason.record, &mut answer)?;
            answer.uri = Some(uri_as_json(&reason.record));
        }
        respond(CommandResponse::Why(Box::new(answer)));
        Ok(String::new())
    }

    /// Adds the plugins that the record refers to.
    fn name_plugins(&self, record: &UriRecord, answer: &mut WhyAnswer) -> Result<(), ControlError> {
        let Ok(uri) = Uri::parse(&record.uri) else {
            return Ok(());
        };
        let settings = self.profile.effective_with(&UriContext {
            source: record.source.as_deref(),
            media_type: Some(record.media_type.as_str()).filter(|known| !known.is_empty()),
            now: Some(Timestamp::now()),
            ..UriContext::of(&uri)
        });
        let has = |name: &str| self.profile.plugins.contains_key(name);
        answer.last_refusal = refusal(&record.reason, &settings, has);
        let in_force = self.running.map(|running| {
            let stacks = running.context.stacks();
            stacks.selected(&settings, self.profile.settings())
        });
        let known = |stage, hash: Option<u64>, now: Option<u64>| {
            let Some(hash) = hash else { return Ok(None) };
            let found = KnownStacks::find(self.job, stage, hash)
                .map_err(|problem| ControlError::file(&KnownStacks::file(self.job), &problem))?;
            Ok::<_, ControlError>(found.map(|found| KnownStack {
                is_in_force: now.map(|now| now == hash),
                ..found.of_document(&record.media_type, &record.uri)
            }))
        };
        let now = in_force.as_ref();
        let extractor = record.extractor.filter(|hash| *hash != NOT_EXTRACTED);
        let stripper = record.digests.stripped;
        let stripper = stripper.map(|stripped| StrippedDigest::stripper_of(stripped.stripper));
        let digest_hash = now.map(|now| StrippedDigest::stripper_of(now.digest_hash));
        answer.read_by = known(Stage::Extract, extractor, now.map(|now| now.extract_hash))?;
        answer.stripped_by = known(Stage::Digest, stripper, digest_hash)?;
        Ok(())
    }
}

/// Returns a record's reason for its last refusal, and the stages of the filter that gave it.
fn refusal(
    reason: &str,
    settings: &EffectiveSettings,
    has_plugin: impl Fn(&str) -> bool,
) -> Option<LastRefusal> {
    if reason.is_empty() {
        return None;
    }
    let name = reason.split_once(':').map_or(reason, |(name, _)| name);
    let filter = Some(name.to_owned()).filter(|name| has_plugin(name));
    let stages = [
        Stage::Scope,
        Stage::PreFetch,
        Stage::MidFetch,
        Stage::PostFetch,
    ]
    .into_iter()
    .filter(|stage| {
        let names = settings.stacks.stage(*stage);
        filter.is_some() && names.iter().any(|one| one == name)
    });
    Some(LastRefusal {
        stages: stages.map(|stage| stage.key().to_owned()).collect(),
        reason: reason.to_owned(),
        filter,
    })
}

pub(super) fn no_queue(queue: &str) -> ControlError {
    ControlError::new(
        ErrorKind::Unknown,
        format!("queue {queue:?} not found; `opilio frontier queues JOB` lists the queues"),
    )
}

/// Formats a queue's cursor without the queue's name, which the client knows.
fn to_cursor(queue: &str, cursor: &[u8]) -> String {
    let (order, key) = cursor.split_first().map_or((0, cursor), |(o, k)| (*o, k));
    let key = key.get(queue.len() + 1..).unwrap_or_default();
    HEXADECIMAL.encode(&[&[order], key].concat())
}

fn from_cursor(queue: &str, text: &str) -> Result<Vec<u8>, ControlError> {
    let bytes = HEXADECIMAL.decode(text.as_bytes()).ok();
    match bytes.as_deref().and_then(<[u8]>::split_first) {
        Some((order @ (0 | 1), key)) => {
            let mut cursor = vec![*order];
            cursor.extend(queue.as_bytes());
            cursor.push(0);
            cursor.extend(key);
            Ok(cursor)
        }
        _ => Err(no_cursor(text)),
    }
}

fn no_cursor(text: &str) -> ControlError {
    ControlError::new(
        ErrorKind::Unknown,
        format!("invalid cursor {text:?}; pass the cursor that an earlier page ended with"),
    )
}

impl QueueSort {
    pub(super) fn apply(self, queues: &mut [QueueReport]) {
        match self {
            Self::Name => {}
            Self::Size => queues.sort_by_key(|queue| Reverse(queue.ready + queue.waiting)),
            Self::Due => queues.sort_by_key(|queue| (queue.wake.is_none(), queue.wake)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip() {
        for (queue, cursor) in [
            ("org,a,", &b"\x00org,a,\0\x03\x01\xff"[..]),
            ("q", b"\x01q\0\x00"),
        ] {
            let text = to_cursor(queue, cursor);
            assert_eq!(from_cursor(queue, &text).unwrap(), cursor, "{text}");
        }
        for bad in ["", "0", "zz", "07aa", "é0", "00é"] {
            assert_eq!(
                from_cursor("q", bad).unwrap_err().kind,
                ErrorKind::Unknown,
                "{bad}"
            );
        }
    }
}
