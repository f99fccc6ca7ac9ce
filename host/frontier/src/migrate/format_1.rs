//! Format 1 as it was written, and what becomes of it. Outer shapes stand here as they were; inner ones that have not
//! changed since (visits, digests, validators, locations) are those of this code, and `format.rs` holds them still. Every
//! keyspace keeps its order, so each is read once and written once.
//!
//! What format 1 did not keep: URIs cost 1, no page is known to show an embed, and what a queue brought in is counted from
//! the records of its URIs as far as their histories go.

use std::{path::Path, time::Duration};

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use jiff::Timestamp;
use opilio_uri::HopPath;
use serde::{Deserialize, Serialize};

use super::{NAMELESS, PROGRESS, entries};
use crate::{
    BytesByNovelty, Config, ContentState, Digests, Directive, Error, KeptChange, KeptValue,
    KeptValues, PastVisit, Place, Politeness, QueueSettings, Revisits, Standing, Statistics,
    Strategy, Tally, UriRecord, Validators, WarcLocation,
    change::{Counters, Issued},
    frontier::{is_prerequisite, uri_of},
    instant::{self, Millis},
    keys,
    queue::{QueueRecord, Turn},
    record::CanonicalKey,
    store::{Entry, Store, check_manifests, damaged, decode, encode, fill},
};

/// How many keyspaces a database of format 1 has.
const KEYSPACES: usize = 9;

/// Cost that format 1 would have charged a URI, had it charged any.
const COST: u8 = 1;

/// A database of format 1.
pub(super) struct Old {
    uris: Keyspace,
    canon: Keyspace,
    ready: Keyspace,
    waiting: Keyspace,
    queues: Keyspace,
    turns: Keyspace,
    issued: Keyspace,
    servers: Keyspace,
    meta: Keyspace,
    _database: Database,
}

impl Old {
    pub(super) fn open(dir: &Path, path: &Path, cache_bytes: u64) -> Result<Self, Error> {
        check_manifests(dir, path, KEYSPACES)?;
        let open = || -> Result<Self, fjall::Error> {
            let database = Database::builder(path).cache_size(cache_bytes).open()?;
            let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default);
            Ok(Self {
                uris: keyspace("uris")?,
                canon: keyspace("canon")?,
                ready: keyspace("ready")?,
                waiting: keyspace("waiting")?,
                queues: keyspace("queues")?,
                turns: keyspace("turns")?,
                issued: keyspace("issued")?,
                servers: keyspace("servers")?,
                meta: keyspace("meta")?,
                _database: database,
            })
        };
        open().map_err(|source| Error::Unopenable {
            dir: dir.to_owned(),
            source: Box::new(source),
        })
    }

    /// Keyspaces that must have as many entries after rewriting as before.
    pub(super) fn counterparts<'s>(&'s self, new: &'s Store) -> Vec<(&'s Keyspace, &'s Keyspace)> {
        vec![
            (&self.uris, &new.uris),
            (&self.canon, &new.canon),
            (&self.ready, &new.ready),
            (&self.waiting, &new.waiting),
            (&self.queues, &new.queues),
            (&self.turns, &new.turns),
            (&self.issued, &new.issued),
            (&self.servers, &new.servers),
            (&self.meta, &new.meta),
        ]
    }
}

/// Fills an empty database of this format from one of format 1.
pub(super) fn rewrite(old: &Old, new: &Store, config: &Config) -> Result<(), Error> {
    for (from, to) in [
        (&old.ready, &new.ready),
        (&old.waiting, &new.waiting),
        (&old.servers, &new.servers),
    ] {
        fill(to, entries(from))?;
    }
    fill(&new.queues, queues(old, config))?;
    fill(&new.uris, records(old, new))?;
    fill(
        &new.canon,
        entries(&old.canon).map(|entry| {
            let (key, value) = entry?;
            Ok((key, canonical(&value)))
        }),
    )?;
    fill(
        &new.turns,
        entries(&old.turns).map(|entry| {
            let (key, value) = entry?;
            Ok((turn(&key)?, value))
        }),
    )?;
    fill(
        &new.issued,
        entries(&old.issued).map(|entry| {
            let (key, value) = entry?;
            let issued: OldIssued = decode("a URI in process", &key, &value)?;
            Ok((key, encode(&issued.renewed())?))
        }),
    )?;
    fill(
        &new.meta,
        entries(&old.meta).map(|entry| {
            let (key, value) = entry?;
            if key != b"counters" {
                return Ok((key, value));
            }
            let counters: OldCounters = decode("the counters", &key, &value)?;
            let counters = encode(&counters.renewed())?;
            Ok((key, counters))
        }),
    )?;
    Ok(())
}

/// The queues, with what is ready in each counted by precedence. Both keyspaces have the queues in the same order.
fn queues<'o>(old: &'o Old, config: &'o Config) -> impl Iterator<Item = Result<Entry, Error>> + 'o {
    let mut ready = entries(&old.ready).peekable();
    entries(&old.queues).map(move |entry| {
        let (key, value) = entry?;
        let name = std::str::from_utf8(&key).map_err(|_| damaged("a queue's name", &key))?;
        let record: OldQueueRecord = decode("a queue's record", &key, &value)?;
        let mut record = record.renewed(name, config);
        let end = keys::queue_end(name);
        while let Some(next) =
            ready.next_if(|next| next.as_ref().map_or(true, |(key, _)| *key < end))
        {
            let (key, _) = next?;
            // What stands in a queue that has no record is left to the check of the store.
            if key.starts_with(&keys::queue_start(name)) {
                let rank = keys::rank(&key).ok_or_else(|| damaged("a malformed rank", &key))?;
                record.add_ready(rank.precedence);
            }
        }
        let record = encode(&record)?;
        Ok((key, record))
    })
}

/// The records; what they brought in is added to their queues, which have been written.
fn records<'o>(old: &'o Old, new: &'o Store) -> impl Iterator<Item = Result<Entry, Error>> + 'o {
    let mut brought = Brought::default();
    let mut done = 0;
    let mut rest = entries(&old.uris);
    std::iter::from_fn(move || {
        let Some(entry) = rest.next() else {
            return brought.write(new).err().map(Err);
        };
        done += 1;
        if done % PROGRESS == 0 {
            tracing::info!("{done} URIs rewritten");
        }
        Some(entry.and_then(|(key, value)| {
            let record: OldRecord = decode("a record of a URI", &key, &value)?;
            let record = record.renewed();
            if brought.queue != record.queue {
                brought.write(new)?;
                record.queue.clone_into(&mut brought.queue);
            }
            if !is_prerequisite(&uri_of(&key)?, &record) {
                brought.add(&record);
            }
            let record = encode(&record)?;
            Ok((key, record))
        }))
    })
}

/// What neighbours among the URIs brought into their queue.
#[derive(Default)]
struct Brought {
    queue: String,
    tally: Tally,
}

impl Brought {
    fn add(&mut self, record: &UriRecord) {
        let tally = &mut self.tally;
        tally.fetched += record.visits;
        tally.succeeded += u64::from(record.visits > 0);
        tally.novel += record.versions;
        for visit in &record.history {
            let size = visit.size.unwrap_or(0);
            tally.bytes = tally.bytes.saturating_add(size);
            if matches!(visit.state, ContentState::New | ContentState::Changed) {
                tally.novel_bytes = tally.novel_bytes.saturating_add(size);
            }
        }
    }

    /// Adds it to the queue's record.
    fn write(&mut self, new: &Store) -> Result<(), Error> {
        let brought = std::mem::take(&mut self.tally);
        if brought == Tally::default() {
            return Ok(());
        }
        let Some(mut record) = crate::change::read_queue(new, &self.queue)? else {
            return Ok(());
        };
        let tally = &mut record.tally;
        tally.fetched += brought.fetched;
        tally.succeeded += brought.succeeded;
        tally.novel += brought.novel;
        tally.bytes = tally.bytes.saturating_add(brought.bytes);
        tally.novel_bytes = tally.novel_bytes.saturating_add(brought.novel_bytes);
        record.spent += brought.fetched * u64::from(COST);
        Ok(new.queues.insert(&self.queue, encode(&record)?)?)
    }
}

/// Format 1 had nothing where the canonical form is the URI, and the whole record key elsewhere. What the form's own key
/// is it did not keep: so nothing is shared with it.
fn canonical(value: &[u8]) -> Vec<u8> {
    match value {
        [] => keys::SHARED.to_be_bytes().to_vec(),
        record_key => keys::whole_canonical_value(record_key),
    }
}

/// Format 1 had no inactive queues.
fn turn(key: &[u8]) -> Result<Vec<u8>, Error> {
    let (&precedence, rest) = key
        .split_first()
        .ok_or_else(|| damaged("an empty turn", key))?;
    Ok([&[precedence, 0], rest].concat())
}

#[derive(Debug, Serialize, Deserialize)]
struct OldRecord {
    queue: String,
    hop_path: HopPath,
    via: Option<String>,
    context: String,
    source: Option<String>,
    seed: bool,
    strategy: Strategy,
    precedence: u8,
    #[serde(with = "instant::serialised")]
    discovered: Timestamp,
    place: OldPlace,
    standing: Standing,
    status: i32,
    attempts: u32,
    deferrals: u32,
    wait: Option<Duration>,
    visits: u64,
    versions: u64,
    history: Vec<PastVisit>,
    digests: Digests,
    validators: Validators,
    archived: Option<WarcLocation>,
    extractor: Option<u64>,
    outlinks: u64,
    media_type: String,
    attributes: Vec<(String, String)>,
    canonical: CanonicalKey,
}

#[derive(Debug, Serialize, Deserialize)]
enum OldPlace {
    Queued {
        directive: Directive,
        #[serde(with = "instant::serialised")]
        due: Timestamp,
        arrival: u64,
    },
    Done,
    Deleted,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldQueueRecord {
    ready: u64,
    waiting: u64,
    first_due: Millis,
    precedence: u8,
    turn: Option<OldTurn>,
    slots: Vec<Millis>,
    failures: u32,
    crawl_delay: Option<Duration>,
    politeness: Option<Politeness>,
    finished: u64,
    succeeded: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldTurn {
    wake: Millis,
    arrival: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldCounters {
    statistics: OldStatistics,
    arrivals: u64,
    openings: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldStatistics {
    discovered: u64,
    queued: u64,
    in_process: u64,
    succeeded: u64,
    failed: u64,
    disregarded: u64,
    visits: u64,
    revisits: Revisits,
    bytes: BytesByNovelty,
    retries: u64,
    deferrals: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldIssued {
    record_key: String,
    queue: String,
    at: Millis,
}

impl OldRecord {
    fn renewed(self) -> UriRecord {
        let mut kept = KeptValues::default();
        for (plugin, value) in self.attributes {
            kept.apply(KeptChange {
                plugin,
                name: NAMELESS.to_owned(),
                value: Some(KeptValue { version: 0, value }),
            });
        }
        UriRecord {
            uri: String::new(),
            queue: self.queue,
            hop_path: self.hop_path,
            via: self.via,
            context: self.context,
            source: self.source,
            seed: self.seed,
            strategy: self.strategy,
            precedence: self.precedence,
            cost: COST,
            scope: 0,
            discovered: self.discovered,
            place: match self.place {
                OldPlace::Queued {
                    directive,
                    due,
                    arrival,
                } => Place::Queued {
                    directive,
                    due,
                    arrival,
                },
                OldPlace::Done => Place::Done,
                OldPlace::Deleted => Place::Deleted,
            },
            standing: self.standing,
            status: self.status,
            attempts: self.attempts,
            deferrals: self.deferrals,
            wait: self.wait,
            visits: self.visits,
            versions: self.versions,
            history: self.history,
            digests: self.digests,
            validators: self.validators,
            archived: self.archived,
            extractor: self.extractor,
            outlinks: self.outlinks,
            media_type: self.media_type,
            fingerprint: None,
            kept,
            referrers: 0,
            reason: String::new(),
            canonical: self.canonical,
            owns_canonical: true,
        }
    }
}

impl OldQueueRecord {
    /// Without what is ready, which is counted anew.
    fn renewed(self, name: &str, config: &Config) -> QueueRecord {
        let record = QueueRecord::new(name, config);
        // What a resolver says now goes before what an operator once said.
        let own = self.politeness.filter(|_| config.resolver.is_none());
        QueueRecord {
            waiting: self.waiting,
            first_due: self.first_due,
            precedence: self.precedence,
            turn: self.turn.map(|turn| Turn {
                is_inactive: false,
                wake: turn.wake,
                arrival: turn.arrival,
            }),
            slots: self.slots,
            failures: self.failures,
            crawl_delay: self.crawl_delay,
            settings: match own {
                Some(politeness) => Some(Box::new(QueueSettings {
                    politeness,
                    ..config.queue.clone()
                })),
                None => record.settings.clone(),
            },
            finished: self.finished,
            ..record
        }
    }
}

impl OldCounters {
    fn renewed(self) -> Counters {
        let old = self.statistics;
        Counters {
            statistics: Statistics {
                discovered: old.discovered,
                queued: old.queued,
                in_process: old.in_process,
                succeeded: old.succeeded,
                failed: old.failed,
                disregarded: old.disregarded,
                visits: old.visits,
                revisits: old.revisits,
                bytes: old.bytes,
                retries: old.retries,
                deferrals: old.deferrals,
                ..Statistics::default()
            },
            arrivals: self.arrivals,
            openings: self.openings,
            // Format 1 did not count them, and there may be some.
            withdrawn: 1,
            ..Counters::default()
        }
    }
}

impl OldIssued {
    fn renewed(self) -> Issued {
        Issued {
            record_key: self.record_key,
            queue: self.queue,
            slot: 0,
            group: None,
            at: self.at,
        }
    }
}
