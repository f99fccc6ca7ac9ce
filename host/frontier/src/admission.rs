//! The seen test: unknown candidates become records, known ones stay as they are or move forward. It does not judge the scope.
//! `schedule`, outcomes and operator commands call it.

use jiff::Timestamp;
use opilio_uri::Hop;

use crate::{
    Candidate, Directive, FrontierConfig, RECORD_KEY_BYTES_MAX, Refusal, ScheduleResult, Signal,
    UriRecord, UriState,
    candidate::is_queue_name,
    change::{self, WriteBatch},
    instant::{self, Millis},
    keys::{self, Finder, Rank},
    memory::{CanonicalCache, Memory},
    reconsideration,
    record::CanonicalKey,
    store::{FrontierError, Store, encode},
};

/// Most redirects in a row to URIs of the same canonical form. A site may redirect every request to a new session.
const EQUAL_REDIRECTS_MAX: usize = 5;

/// Pause of a queue that depends on a URI in process in another queue.
const PREREQUISITE_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Furthest that a date of change may lie ahead of now. Local times that are given as UTC are up to 14 hours off.
const AHEAD_MAX: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// The origin of candidates.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin<'o> {
    /// Seeds, imports, an operator.
    Caller,
    /// The outlinks of a document.
    Document {
        /// The document's canonical form.
        canonical: CanonicalKey,
        /// `true` if the document's embeds are due now.
        refresh_embeds: bool,
    },
    /// Prerequisites of another URI of this queue.
    Prerequisites(&'o str),
    /// URIs known to another crawl. They change no existing record.
    Elsewhere,
}

/// Schedules candidates. The answers are in the same order.
pub(crate) fn admit(
    change: &mut WriteBatch<'_>,
    candidates: Vec<Candidate>,
    origin: Origin<'_>,
) -> Result<Vec<ScheduleResult>, FrontierError> {
    let memory = change.memory;
    let canonicals: Vec<_> = candidates
        .iter()
        .map(|candidate| keys::canonical(&candidate.canonical))
        .collect();

    // The look-ups go in the order of the keys: neighbours share blocks.
    let mut order: Vec<_> = (0..candidates.len()).collect();
    order.sort_unstable_by_key(|&index| canonicals[index]);
    let mut finders = vec![None; candidates.len()];
    for index in order {
        let key = &canonicals[index];
        finders[index] = match memory.seen.finder(key) {
            Some(finder) => Some(finder),
            None => {
                let finder = change.canonical(key)?.map(|value| keys::finder_of(&value));
                change.seen.extend(finder.map(|finder| (*key, finder)));
                finder
            }
        };
    }

    change.reserve(finders.iter().filter(|finder| finder.is_none()).count());
    let mut answers = Vec::with_capacity(candidates.len());
    // Candidates of one source come together.
    let mut last: Option<(Option<String>, Finder)> = None;
    for (index, mut candidate) in candidates.into_iter().enumerate() {
        let part = change.config.part.as_ref();
        let may_leave = !matches!(origin, Origin::Prerequisites(_));
        if may_leave && part.is_some_and(|part| !part.has(&candidate)) {
            answers.push(send(change, &candidate, canonicals[index], finders[index])?);
            continue;
        }
        if let Origin::Prerequisites(queue) = origin {
            queue.clone_into(&mut candidate.queue);
            candidate.directive = Directive::Highest;
            candidate.precedence = 0;
        } else {
            candidate.directive = change::directive(
                candidate.directive,
                &candidate.hop_path,
                candidate.strategy,
                change.config,
            );
        }
        let canonical = canonicals[index];
        let finder = match &last {
            Some((source, finder)) if *source == candidate.source => *finder,
            _ => {
                let finder = keys::finder(candidate.source.as_deref());
                last = Some((candidate.source.clone(), finder));
                finder
            }
        };
        let found_by = change.finder_put(&canonical).or(finders[index]);
        let is_known = found_by.is_some();
        if found_by.is_some_and(|other| other != keys::SHARED && other != finder) {
            change.share(canonical)?;
        }
        answers.push(admit_one(
            change, memory, candidate, canonical, is_known, origin,
        )?);
    }
    Ok(answers)
}

/// Puts a candidate of another part into the outbox, unless it was sent a short time ago and gives no reason to send it again.
fn send(
    change: &mut WriteBatch<'_>,
    candidate: &Candidate,
    canonical: CanonicalKey,
    found_by: Option<Finder>,
) -> Result<ScheduleResult, FrontierError> {
    let finder = keys::finder(candidate.source.as_deref());
    if found_by == Some(finder) && !has_reason(candidate, candidate.directive) {
        return Ok(ScheduleResult::Known);
    }
    let name = keys::outbox(change.counters.arrival());
    change
        .outbox
        .insert(name.into_bytes(), Some(encode(candidate)?));
    change.seen.push((canonical, finder));
    Ok(ScheduleResult::Sent)
}

/// Whether a link of a page would change nothing ([`crate::Frontier::changes_nothing`]).
pub(crate) fn changes_nothing(
    store: &Store,
    config: &FrontierConfig,
    seen: &mut CanonicalCache,
    link: &Candidate,
) -> Result<bool, FrontierError> {
    let directive = change::directive(link.directive, &link.hop_path, link.strategy, config);
    if link.hop_path.last() == Some(Hop::Embed)
        || !is_queue_name(&link.queue)
        || has_reason(link, directive)
    {
        return Ok(false);
    }
    let key = keys::canonical(&link.canonical);
    let finder = match seen.finder(&key) {
        Some(finder) => Some(finder),
        None => {
            let value = store.canonical_forms.get(key)?;
            let finder = value.map(|value| keys::finder_of(&value));
            if let Some(finder) = finder {
                seen.insert(key, finder);
            }
            finder
        }
    };
    Ok(finder.is_some_and(|finder| {
        finder == keys::SHARED || finder == keys::finder(link.source.as_deref())
    }))
}

/// Returns `true` if a candidate has a reason of its own to move a known URI.
fn has_reason(candidate: &Candidate, directive: Directive) -> bool {
    candidate.force
        || directive > Directive::Normal
        || candidate.seed
        || candidate.due.is_some()
        || candidate.modified.is_some()
}

fn admit_one(
    change: &mut WriteBatch<'_>,
    memory: &Memory,
    candidate: Candidate,
    canonical: CanonicalKey,
    is_known: bool,
    origin: Origin<'_>,
) -> Result<ScheduleResult, FrontierError> {
    if !is_queue_name(&candidate.queue) {
        return Ok(ScheduleResult::Refused(Refusal::QueueName));
    }
    // Most candidates are links to known URIs, and give no reason to move them. Their records need not be read.
    let may_move = has_reason(&candidate, candidate.directive) || is_refreshed(&candidate, origin);
    if is_known && !may_move {
        return Ok(ScheduleResult::Known);
    }
    let key = candidate.uri.key();
    if key.len() > RECORD_KEY_BYTES_MAX {
        return Ok(ScheduleResult::Refused(Refusal::UriTooLong));
    }

    // A record whose canonical form has been withdrawn still counts as known.
    let has_record = (is_known || change.counters.withdrawn > 0) && change.has_record(&key)?;
    if matches!(origin, Origin::Elsewhere) && (is_known || has_record) {
        return Ok(ScheduleResult::Known);
    }
    let known_key = if has_record {
        Some(key.clone())
    } else if is_known && !candidate.force && !is_redirect_to_equal(&candidate, canonical, origin) {
        let value = change.canonical(&canonical)?.unwrap_or_default();
        Some(keys::from_canonical_value(&value, &candidate.canonical).unwrap_or_default())
    } else {
        None
    };
    let Some(known_key) = known_key else {
        let is_forced = candidate.force;
        create(change, &key, candidate, canonical, is_known)?;
        return Ok(if is_known && is_forced {
            ScheduleResult::Forced
        } else {
            ScheduleResult::New
        });
    };

    let known = match known_key.len() {
        1..=RECORD_KEY_BYTES_MAX => change.record(&known_key)?,
        _ => None,
    };
    let Some(mut record) = known else {
        // Two canonical forms with one hash: the later one counts as known.
        return Ok(ScheduleResult::Known);
    };
    if candidate.seed && !record.seed {
        record.seed = true;
        change.put(&known_key, record.clone());
    }
    if memory.is_record_busy(&known_key) {
        if let Origin::Prerequisites(queue) = origin
            && queue != record.queue
        {
            change.delay_queue(queue, PREREQUISITE_PAUSE)?;
        }
        return Ok(ScheduleResult::Known);
    }
    raise(change, &known_key, record, &candidate, origin)
}

/// Moves a known URI forward, if the candidate has a reason to.
fn raise(
    change: &mut WriteBatch<'_>,
    key: &str,
    mut record: UriRecord,
    candidate: &Candidate,
    origin: Origin<'_>,
) -> Result<ScheduleResult, FrontierError> {
    let now = instant::floor(change.now);
    let rank = change::rank(&record);
    let is_prerequisite = candidate.directive == Directive::Highest;
    let is_faded = record.state == UriState::Faded;
    let new_rank = match rank {
        Some(rank) => {
            let is_ready = change.is_ready(&record.queue, rank)?;
            let is_higher = candidate.directive > rank.directive;
            let moves_here =
                matches!(origin, Origin::Prerequisites(queue) if queue != record.queue);
            // Only a forced or urgent candidate ends the wait of a URI. A further link to the URI does not.
            let is_pulled = is_higher && candidate.directive >= Directive::High;
            let news = news(candidate, &record, change.now);
            let signal = Signal::of(candidate, change.now).filter(|_| news.is_some());
            let is_new = signal.is_some_and(|signal| record.add_signal(signal));
            if is_new {
                change.put(key, record.clone());
            }
            // A URI that waits for reconsideration is reconsidered, once for each piece of news. Other URIs are visited.
            let visit_after = reconsideration::visit_after(&record, rank);
            let news = news.filter(|_| is_new || visit_after.is_none());
            let mut directive = rank.directive;
            if is_ready || is_pulled || candidate.force || moves_here {
                directive = directive.max(candidate.directive);
            }
            let due = if candidate.force
                || moves_here
                || is_refreshed(candidate, origin)
                || if is_ready { is_higher } else { is_pulled }
            {
                rank.due.min(now)
            } else {
                let times = [news, signalled(candidate, now)].into_iter().flatten();
                let due = times.fold(rank.due, Millis::min);
                if let Some(visit) = visit_after
                    && news == Some(due)
                {
                    reconsideration::hasten(&mut record, due, visit);
                    directive = directive.max(reconsideration::NEWS_DIRECTIVE);
                }
                due
            };
            if !moves_here && !candidate.force && due == rank.due && directive == rank.directive {
                return Ok(ScheduleResult::Known);
            }
            change.take_queued(&record)?;
            Rank {
                directive,
                due,
                ..rank
            }
        }
        None if is_faded
            || candidate.force
            || (is_prerequisite && record.state == UriState::Done) =>
        {
            change.counters.statistics.queued += 1;
            let arrival = change.counters.arrival();
            Rank {
                directive: candidate.directive,
                precedence: record.precedence,
                due: signalled(candidate, now)
                    .filter(|_| is_faded)
                    .unwrap_or(now),
                arrival,
            }
        }
        None => return Ok(ScheduleResult::Known),
    };

    if is_prerequisite {
        // Prerequisites go before all URIs that depend on them, whatever precedence they had.
        record.precedence = 0;
    }
    if let Origin::Prerequisites(queue) = origin {
        queue.clone_into(&mut record.queue);
    }
    let rank = Rank {
        precedence: record.precedence,
        ..new_rank
    };
    record.attempts = 0;
    record.deferrals = 0;
    record.state = change::state_of(rank);
    if is_faded && change.canonical(&record.canonical)?.is_none() {
        let value = keys::whole_canonical_value(key.as_bytes());
        change.put_canonical(record.canonical, value);
        record.owns_canonical = true;
    }
    change.put_queued(&record.queue, rank, key)?;
    change.put(key, record);
    Ok(if candidate.force {
        ScheduleResult::Forced
    } else {
        ScheduleResult::Raised(rank.directive)
    })
}

fn create(
    change: &mut WriteBatch<'_>,
    key: &str,
    candidate: Candidate,
    canonical: CanonicalKey,
    is_known: bool,
) -> Result<(), FrontierError> {
    let rank = Rank {
        directive: candidate.directive,
        precedence: candidate.precedence,
        due: signalled(&candidate, instant::floor(change.now))
            .unwrap_or(instant::floor(change.now)),
        arrival: change.counters.arrival(),
    };
    if !is_known {
        let finder = keys::finder(candidate.source.as_deref());
        let value = keys::to_canonical_value(finder, candidate.uri.as_str(), &candidate.canonical);
        change.put_canonical(canonical, value);
    }
    let record = UriRecord {
        // The key has the URI.
        uri: String::new(),
        state: change::state_of(rank),
        canonical,
        owns_canonical: !is_known,
        ..UriRecord::of(candidate, change.now)
    };
    change.put_queued(&record.queue, rank, key)?;
    change.put(key, record);
    change.counters.statistics.discovered += 1;
    change.counters.statistics.queued += 1;
    Ok(())
}

/// Returns `true` if a candidate is a redirect to a URI of the same canonical form. Such a redirect is followed: otherwise a crawl
/// of a site that redirects to `www` would end there.
fn is_redirect_to_equal(
    candidate: &Candidate,
    canonical: CanonicalKey,
    origin: Origin<'_>,
) -> bool {
    let redirects = candidate
        .hop_path
        .hops()
        .rev()
        .take_while(|hop| *hop == Hop::Redirect)
        .count();
    matches!(origin, Origin::Document { canonical: source, .. } if source == canonical)
        && (1..=EQUAL_REDIRECTS_MAX).contains(&redirects)
}

/// Returns `true` if the candidate is an embed of a page that has changed.
fn is_refreshed(candidate: &Candidate, origin: Origin<'_>) -> bool {
    matches!(
        origin,
        Origin::Document {
            refresh_embeds: true,
            ..
        }
    ) && candidate.hop_path.last() == Some(Hop::Embed)
}

/// Due time of a URI that has changed since its last visit, as the linking page says. It is now, or the shortest wait after the
/// last visit if that is later. A date further ahead than wrong clocks and zones explain is an announcement, such as the date of
/// an event. It is not a change, and would be news at every reading.
fn news(candidate: &Candidate, record: &UriRecord, now: Timestamp) -> Option<Millis> {
    let (modified, last) = (candidate.modified?, record.history.first()?.at);
    let is_news = modified.duration_since(now) <= AHEAD_MAX && last < modified.min(now);
    is_news.then(|| instant::after(last, candidate.min_wait).max(instant::floor(now)))
}

/// Due time that the candidate's signal gives.
fn signalled(candidate: &Candidate, now: Millis) -> Option<Millis> {
    candidate.due.map(|due| instant::floor(due).max(now))
}
