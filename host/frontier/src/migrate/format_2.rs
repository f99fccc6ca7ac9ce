//! Format 2 as it was written, and what becomes of it. It had other records of URIs and queues, other tallies and counters;
//! all else is copied as it lies. Outer shapes stand here as they were; inner ones that have not changed since are those of
//! this code, and `format.rs` holds them still.
//!
//! What format 2 did not keep: how long exchanges took, and what plugins keep for sites. For what plugins keep with a URI it
//! had room without names, which nothing filled but tests; such a value gets the name [`NAMELESS`] and version 0.

use std::{path::Path, time::Duration};

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use jiff::Timestamp;
use opilio_uri::HopPath;
use serde::{Deserialize, Serialize};

use super::{NAMELESS, PROGRESS, entries};
use crate::{
    BytesByNovelty, Digests, Error, KeptChange, KeptValue, KeptValues, Overdue, PastVisit, Place,
    Politeness, PrecedencePolicy, QueueSettings, Quota, Revisits, Standing, Statistics, Strategy,
    Tally, UriRecord, Validators, WarcLocation,
    change::Counters,
    check::PAGE_BYTES,
    instant::{self, Millis},
    keys,
    queue::{QueueRecord, Turn},
    record::CanonicalKey,
    store::{Entry, Store, check_manifests, damaged, decode, encode, fill},
};

/// Keyspaces whose entries are copied.
const COPIED: [&str; 8] = [
    "canon", "ready", "waiting", "turns", "issued", "groups", "refused", "servers",
];

/// Entries written at a time, where they are not in order.
const WRITTEN: usize = 10_000;

/// How many keyspaces a database of format 2 has.
const KEYSPACES: usize = COPIED.len() + 5;

/// A database of format 2.
pub(super) struct Old {
    uris: Keyspace,
    queues: Keyspace,
    tallies: Keyspace,
    meta: Keyspace,
    embeds: Keyspace,
    copied: Vec<Keyspace>,
    _database: Database,
}

impl Old {
    pub(super) fn open(dir: &Path, path: &Path, cache_bytes: u64) -> Result<Self, Error> {
        check_manifests(dir, path, KEYSPACES)?;
        let open = || -> Result<Self, fjall::Error> {
            let database = Database::builder(path).cache_size(cache_bytes).open()?;
            let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default);
            let copied = COPIED.into_iter().map(keyspace);
            Ok(Self {
                copied: copied.collect::<Result<_, _>>()?,
                uris: keyspace("uris")?,
                queues: keyspace("queues")?,
                tallies: keyspace("tallies")?,
                meta: keyspace("meta")?,
                embeds: keyspace("embeds")?,
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
        let rewritten = [&self.uris, &self.queues, &self.tallies, &self.meta];
        let all = rewritten.into_iter().chain(&self.copied);
        all.flat_map(|old| new.keyspaces().into_iter().map(move |new| (old, new)))
            .filter(|(old, new)| old.name() == new.name())
            .collect()
    }
}

/// Fills an empty database of this format from one of format 2.
pub(super) fn rewrite(old: &Old, new: &Store) -> Result<(), Error> {
    for (from, to) in old.counterparts(new) {
        if old.copied.iter().any(|copied| copied.name() == from.name()) {
            fill(to, entries(from))?;
        }
    }
    embeds(old, new)?;
    fill(&new.uris, records(old, new))?;
    fill(
        &new.queues,
        entries(&old.queues)
            .map(|entry| renewed("a queue's record", entry?, OldQueueRecord::renewed)),
    )?;
    fill(
        &new.tallies,
        entries(&old.tallies).map(|entry| renewed("a tally", entry?, OldTally::renewed)),
    )?;
    fill(
        &new.meta,
        entries(&old.meta).map(|entry| match entry? {
            (key, value) if key == b"counters" => {
                renewed("the counters", (key, value), OldCounters::renewed)
            }
            other => Ok(other),
        }),
    )?;
    Ok(())
}

/// What pages show. Format 2 kept such entries of embeds that had been forgotten; they are left out.
fn embeds(old: &Old, new: &Store) -> Result<(), Error> {
    let known = entries(&old.embeds).filter_map(|entry| {
        let is_known = entry.and_then(|(key, value)| {
            let embed = key.get(PAGE_BYTES..).unwrap_or_default();
            let is_known = !embed.is_empty() && old.uris.contains_key(embed)?;
            Ok(is_known.then_some((key, value)))
        });
        is_known.transpose()
    });
    fill(&new.embeds, known)?;
    let mut batch = new.database.batch();
    for entry in entries(&new.embeds) {
        let (key, _) = entry?;
        if let Some((page, embed)) = key.split_first_chunk::<PAGE_BYTES>() {
            let embed = std::str::from_utf8(embed).map_err(|_| damaged("an embed's key", &key))?;
            batch.insert(&new.shown, keys::shown(embed, page), []);
        }
        if batch.len() == WRITTEN {
            std::mem::replace(&mut batch, new.database.batch()).commit()?;
        }
    }
    Ok(batch.commit()?)
}

/// The records, with the pages that show each counted. Both keyspaces have the URIs in the same order.
fn records<'o>(old: &'o Old, new: &'o Store) -> impl Iterator<Item = Result<Entry, Error>> + 'o {
    let mut shown = entries(&new.shown).peekable();
    let mut done = 0;
    entries(&old.uris).map(move |entry| {
        done += 1;
        if done % PROGRESS == 0 {
            tracing::info!("{done} URIs rewritten");
        }
        let (key, value) = entry?;
        let record: OldRecord = decode("a record of a URI", &key, &value)?;
        let mut record = record.renewed();
        record.referrers = 0;
        let is_of_this = |key: &[u8], shown: &[u8]| {
            keys::from_shown(shown).is_some_and(|(embed, _)| embed.as_bytes() == key)
        };
        while let Some(next) = shown.next_if(|next| {
            next.as_ref()
                .map_or(true, |(shown, _)| is_of_this(&key, shown))
        }) {
            next?;
            record.referrers += 1;
        }
        Ok((key, encode(&record)?))
    })
}

/// An entry with its value in this format.
fn renewed<O, N>(
    what: &'static str,
    (key, value): Entry,
    renew: impl Fn(O) -> N,
) -> Result<Entry, Error>
where
    O: serde::de::DeserializeOwned,
    N: Serialize,
{
    let value = encode(&renew(decode(what, &key, &value)?))?;
    Ok((key, value))
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
    cost: u8,
    #[serde(with = "instant::serialised")]
    discovered: Timestamp,
    place: Place,
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
    scope: u64,
    referrers: u32,
    reason: String,
    canonical: CanonicalKey,
    owns_canonical: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldQueueRecord {
    ready: Vec<(u8, u64)>,
    waiting: u64,
    first_due: Millis,
    precedence: u8,
    turn: Option<Turn>,
    slots: Vec<Millis>,
    paid_until: Millis,
    failures: u32,
    crawl_delay: Option<Duration>,
    settings: Option<Box<OldQueueSettings>>,
    settings_hash: u64,
    own_precedence: Option<u8>,
    address_group: Option<String>,
    finished: u64,
    tally: OldTally,
    spent: u64,
    balance: i64,
    is_retired: bool,
    is_frozen: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldQueueSettings {
    politeness: Politeness,
    max_retries: u32,
    retry_delay: Duration,
    retry_delay_max: Duration,
    valence: u16,
    bandwidth: Option<u64>,
    precedence: u8,
    precedence_policy: PrecedencePolicy,
    budget: Option<u64>,
    group: Option<String>,
    quota: OldQuota,
    host_quota: OldQuota,
    domain_quota: OldQuota,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldQuota {
    fetched: Option<u64>,
    succeeded: Option<u64>,
    novel: Option<u64>,
    bytes: Option<u64>,
    novel_bytes: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldTally {
    fetched: u64,
    succeeded: u64,
    novel: u64,
    bytes: u64,
    novel_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct OldCounters {
    statistics: OldStatistics,
    arrivals: u64,
    openings: u32,
    paid_until: Millis,
    refusals: u64,
    withdrawn: u64,
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
    overdue: Overdue,
    refused: u64,
    faded: u64,
    run_time: Duration,
    tally: OldTally,
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
            cost: self.cost,
            discovered: self.discovered,
            place: self.place,
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
            scope: self.scope,
            referrers: self.referrers,
            reason: self.reason,
            canonical: self.canonical,
            owns_canonical: self.owns_canonical,
        }
    }
}

impl OldQueueRecord {
    fn renewed(self) -> QueueRecord {
        QueueRecord {
            ready: self.ready,
            waiting: self.waiting,
            first_due: self.first_due,
            precedence: self.precedence,
            turn: self.turn,
            slots: self.slots,
            paid_until: self.paid_until,
            failures: self.failures,
            crawl_delay: self.crawl_delay,
            settings: self.settings.map(|settings| Box::new(settings.renewed())),
            settings_hash: self.settings_hash,
            own_precedence: self.own_precedence,
            address_group: self.address_group,
            finished: self.finished,
            tally: self.tally.renewed(),
            spent: self.spent,
            balance: self.balance,
            is_retired: self.is_retired,
            is_frozen: self.is_frozen,
            ranked_precedence: None,
            failed: 0,
            failing: Vec::new(),
        }
    }
}

impl OldQueueSettings {
    fn renewed(self) -> QueueSettings {
        QueueSettings {
            politeness: self.politeness,
            max_retries: self.max_retries,
            retry_delay: self.retry_delay,
            retry_delay_max: self.retry_delay_max,
            valence: self.valence,
            bandwidth: self.bandwidth,
            precedence: self.precedence,
            precedence_policy: self.precedence_policy,
            budget: self.budget,
            group: self.group,
            quota: self.quota.renewed(),
            host_quota: self.host_quota.renewed(),
            domain_quota: self.domain_quota.renewed(),
        }
    }
}

impl OldQuota {
    fn renewed(self) -> Quota {
        Quota {
            fetched: self.fetched,
            succeeded: self.succeeded,
            novel: self.novel,
            bytes: self.bytes,
            novel_bytes: self.novel_bytes,
            run_time: None,
        }
    }
}

impl OldTally {
    fn renewed(self) -> Tally {
        Tally {
            fetched: self.fetched,
            succeeded: self.succeeded,
            novel: self.novel,
            bytes: self.bytes,
            novel_bytes: self.novel_bytes,
            run_time: Duration::ZERO,
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
                overdue: old.overdue,
                refused: old.refused,
                faded: old.faded,
                run_time: old.run_time,
                tally: old.tally.renewed(),
            },
            arrivals: self.arrivals,
            openings: self.openings,
            paid_until: self.paid_until,
            refusals: self.refusals,
            withdrawn: self.withdrawn,
        }
    }
}
