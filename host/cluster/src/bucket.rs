//! A key-value bucket with compare-and-swap, read from the leader of its stream. `async-nats` reads keys from any replica, which
//! may be behind.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::KeyValueErrorKind;
use async_nats::jetstream::kv::{self, Operation, Watch};
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use futures_core::Stream;

use crate::error::{ClusterError, is_wrong_sequence, jetstream_code};

/// A bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    store: kv::Store,
}

/// A key's last state.
#[derive(Debug, Clone)]
pub(crate) struct BucketEntry {
    pub(crate) key: String,
    /// `None` if the key was deleted.
    pub(crate) value: Option<Bytes>,
    pub(crate) revision: u64,
    /// The wall clock of NATS when it stored the entry, in milliseconds since 1970.
    pub(crate) stored_ms: i64,
    /// `true` if no other entry that was there when the watch began is still to come.
    pub(crate) is_current: bool,
}

/// The reason why a key was not written.
#[derive(Debug)]
pub(crate) enum BucketError {
    /// The key has another revision.
    Conflict,
    /// The request failed; it may have been carried out.
    Failed(ClusterError),
}

impl Bucket {
    /// Opens the bucket, or creates it.
    pub(crate) async fn open(
        jetstream: &Context,
        name: &str,
        description: &str,
        replicas: usize,
    ) -> Result<Self, ClusterError> {
        if let Some(bucket) = Self::find(jetstream, name).await? {
            return Ok(bucket);
        }
        let config = kv::Config {
            bucket: name.to_owned(),
            description: description.to_owned(),
            history: 1,
            num_replicas: replicas,
            ..kv::Config::default()
        };
        let created = jetstream.create_key_value(config).await;
        let store = created.map_err(|error| creation_error("a bucket", replicas, error))?;
        Ok(Self { store })
    }

    /// Opens the bucket; `None` if there is none.
    pub(crate) async fn find(
        jetstream: &Context,
        name: &str,
    ) -> Result<Option<Self>, ClusterError> {
        match jetstream.get_key_value(name).await {
            Ok(store) => Ok(Some(Self { store })),
            Err(error)
                if error.kind() == KeyValueErrorKind::GetBucket
                    && jetstream_code(&error) == Some(10_059) =>
            {
                Ok(None)
            }
            Err(error) => Err(ClusterError::of_request("a bucket", error)),
        }
    }

    /// Writes a key if its last revision is `expected`, and returns the new one.
    pub(crate) async fn write(
        &self,
        key: &str,
        value: Vec<u8>,
        expected: u64,
    ) -> Result<u64, BucketError> {
        let updated = self.store.update(key, value.into(), expected).await;
        updated.map_err(|error| match is_wrong_sequence(&error) {
            true => BucketError::Conflict,
            false => BucketError::Failed(ClusterError::of_request("a key", error)),
        })
    }

    /// Writes a key, whatever its last revision.
    pub(crate) async fn put(&self, key: &str, value: Vec<u8>) -> Result<(), ClusterError> {
        let put = self.store.put(key, value.into()).await;
        put.map(drop)
            .map_err(|error| ClusterError::of_request("a key", error))
    }

    /// Deletes a key if its last revision is `expected`.
    pub(crate) async fn delete(&self, key: &str, expected: u64) -> Result<(), BucketError> {
        let deleted = self.store.delete_expect_revision(key, Some(expected)).await;
        deleted.map_err(|error| match is_wrong_sequence(&error) {
            true => BucketError::Conflict,
            false => BucketError::Failed(ClusterError::of_request("a key", error)),
        })
    }

    /// The last state of a key; `None` if it was never written.
    pub(crate) async fn read(&self, key: &str) -> Result<Option<BucketEntry>, ClusterError> {
        let subject = format!("{}{key}", self.store.prefix);
        let message = match self
            .store
            .stream
            .get_last_raw_message_by_subject(&subject)
            .await
        {
            Ok(message) => message,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                return Ok(None);
            }
            Err(error) => return Err(ClusterError::of_request("a question for a key", error)),
        };
        let is_deleted = message.headers.get("KV-Operation").is_some();
        Ok(Some(BucketEntry {
            key: key.to_owned(),
            value: (!is_deleted).then_some(message.payload),
            revision: message.sequence,
            stored_ms: milliseconds(message.time.unix_timestamp_nanos()),
            is_current: true,
        }))
    }

    /// The last state of these keys, then their changes.
    pub(crate) async fn watch(&self, keys: &[&str]) -> Result<BucketWatch, ClusterError> {
        let watch = self.store.watch_many_with_history(keys).await;
        let watch = watch.map_err(|error| ClusterError::of_request("a watch", error))?;
        Ok(BucketWatch { watch })
    }

    /// The present entries of the keys that match a pattern, by key.
    pub(crate) async fn list(&self, pattern: &str) -> Result<Vec<BucketEntry>, ClusterError> {
        // A watch may call an entry the last one although a key was written again at that moment: the server takes the old message
        // from the count at once, and adds the new one later. So the leader of the stream names the keys before.
        let mut missing = self.subjects(pattern).await?;
        let mut entries = BTreeMap::new();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let mut watch = self.watch(&[pattern]).await?;
        while !missing.is_empty() {
            let entry = watch.next().await?;
            missing.remove(&format!("{}{}", self.store.prefix, entry.key));
            entries.insert(entry.key.clone(), entry);
        }
        Ok(entries.into_values().collect())
    }

    async fn subjects(&self, pattern: &str) -> Result<BTreeSet<String>, ClusterError> {
        let failed = |error| ClusterError::of_request("a list of keys", error);
        let filter = format!("{}{pattern}", self.store.prefix);
        let info = self.store.stream.info_with_subjects(filter).await;
        let mut info = info.map_err(failed)?;
        let mut subjects = BTreeSet::new();
        while let Some(subject) = next(&mut info).await {
            let (subject, _messages) = subject.map_err(failed)?;
            subjects.insert(subject);
        }
        Ok(subjects)
    }
}

/// Changes of keys.
pub(crate) struct BucketWatch {
    watch: Watch,
}

impl BucketWatch {
    /// The next change.
    pub(crate) async fn next(&mut self) -> Result<BucketEntry, ClusterError> {
        let kind = "a watch";
        let entry = next(&mut self.watch).await.ok_or_else(|| {
            let source = "the watch ended".into();
            ClusterError::Unavailable { kind, source }
        })?;
        let entry = entry.map_err(|error| ClusterError::of_request(kind, error))?;
        Ok(BucketEntry {
            value: (entry.operation == Operation::Put).then_some(entry.value),
            key: entry.key,
            revision: entry.revision,
            stored_ms: milliseconds(entry.created.unix_timestamp_nanos()),
            is_current: entry.seen_current,
        })
    }
}

/// The next item of a stream.
pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

/// The error for a stream that cannot be created.
pub(crate) fn creation_error(
    kind: &'static str,
    replicas: usize,
    error: impl Into<crate::error::NatsError>,
) -> ClusterError {
    let source = error.into();
    match jetstream_code(source.as_ref()) {
        Some(10_005 | 10_023 | 10_074) if replicas > 1 => {
            ClusterError::Replicas { replicas, source }
        }
        _ => ClusterError::of_request(kind, source),
    }
}

pub(crate) fn milliseconds(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX)
}
