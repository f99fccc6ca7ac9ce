//! Deduplication of payloads that are archived already under another URI. They are not stored again: a revisit record refers to the
//! capture with the payload.
//!
//! Two captures of one payload that arrive at the same time wait for each other, so that the second finds the first.

use std::collections::HashMap;
use std::path::Path;

use opilio_archive::{Digest, Payloads, PayloadsError, StoredPayload};
use opilio_profile::{ArchiveDigest, Profile};
use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Captures whose digests begin with the same byte wait for each other; two such captures rarely coincide.
const STRIPES: usize = 256;

/// Index of the payloads that are stored.
pub(crate) struct Duplicates {
    payloads: Payloads,
    size_min: u64,
    stripes: Vec<Mutex<()>>,
}

/// Digests of one payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadDigests {
    /// Digest for the field `WARC-Payload-Digest` of the record.
    pub main: Digest,
    /// Further digest in the record.
    pub further: Option<Digest>,
    /// SHA-1 for the frontier, even if the records have another digest.
    pub sha1: Digest,
}

/// A payload whose lock is held, so that no other capture writes it meanwhile.
pub(crate) struct LockedPayload<'d> {
    duplicates: &'d Duplicates,
    digests: PayloadDigests,
    _stripe: MutexGuard<'d, ()>,
    /// Earlier capture with this payload, if there is one.
    pub found: Option<StoredPayload>,
}

impl PayloadDigests {
    /// Returns the digests that the profile selects. Calls `sha256` only if the profile selects SHA-256.
    pub(crate) fn new(
        wanted: ArchiveDigest,
        sha1: Digest,
        sha256: impl FnOnce() -> std::io::Result<Digest>,
    ) -> std::io::Result<PayloadDigests> {
        let (main, further) = match wanted {
            ArchiveDigest::Sha1 => (sha1, None),
            ArchiveDigest::Sha256 => (sha256()?, None),
            ArchiveDigest::Both => (sha1, Some(sha256()?)),
        };
        Ok(PayloadDigests {
            main,
            further,
            sha1,
        })
    }

    /// Returns the digests for the look-up, the strongest first.
    fn wanted(&self) -> impl Iterator<Item = Digest> {
        self.further.into_iter().chain([self.main])
    }
}

impl Duplicates {
    /// Opens the index of stored payloads, including those of earlier archives in the profile. Returns `None` if the profile does
    /// not enable it.
    pub(crate) fn open(
        profile: &Profile,
        job: &Path,
        mut note: impl FnMut(String),
    ) -> Result<Option<Duplicates>, PayloadsError> {
        let wanted = &profile.archive.duplicates;
        if !wanted.across_uris {
            return Ok(None);
        }
        let payloads = Payloads::open(job.join(&wanted.index))?;
        for file in &wanted.history {
            let read = payloads.read_history(file)?;
            if !read.known_already {
                note(format!(
                    "{} payloads from {}; skipped {} malformed lines",
                    read.payloads,
                    file.display(),
                    read.bad_lines
                ));
            }
        }
        Ok(Some(Duplicates {
            payloads,
            size_min: wanted.size_min.bytes(),
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        }))
    }

    /// Returns `true` if a payload is large enough to be looked up.
    pub(crate) fn wants(&self, size: u64) -> bool {
        size >= self.size_min.max(1)
    }

    /// Looks a payload up and locks it: no other capture writes the same payload until the returned value is dropped.
    pub(crate) async fn lock(
        &self,
        digests: PayloadDigests,
    ) -> Result<LockedPayload<'_>, PayloadsError> {
        let first = digests.sha1.bytes().first().copied().unwrap_or(0);
        let stripe = self.stripes[usize::from(first) % STRIPES].lock().await;
        let mut found = None;
        for digest in digests.wanted() {
            found = match found {
                None => self.payloads.find(&digest)?,
                found => found,
            };
        }
        Ok(LockedPayload {
            duplicates: self,
            digests,
            _stripe: stripe,
            found,
        })
    }

    /// Returns the capture that has the payload of an earlier visit, if that capture is of another URI.
    pub(crate) fn original(
        &self,
        uri: &str,
        payload: [u8; 20],
    ) -> Result<Option<StoredPayload>, PayloadsError> {
        let found = self.payloads.find(&Digest::Sha1(payload))?;
        Ok(found.filter(|found| found.uri != uri))
    }

    /// Removes payloads in lost ends of files from the index. `kept` has the remaining length of each file.
    pub(crate) fn forget(&self, kept: &HashMap<String, u64>) -> Result<u64, PayloadsError> {
        self.payloads.forget(kept)
    }

    /// Forces the index to disk.
    pub(crate) fn persist(&self) -> Result<(), PayloadsError> {
        self.payloads.persist()
    }
}

impl LockedPayload<'_> {
    /// Adds the place of a stored payload to the index.
    pub(crate) fn add_to_index(&self, stored: &StoredPayload) -> Result<(), PayloadsError> {
        let payloads = &self.duplicates.payloads;
        payloads.keep(&self.digests.sha1, stored)?;
        for digest in self
            .digests
            .wanted()
            .filter(|one| *one != self.digests.sha1)
        {
            payloads.keep(&digest, stored)?;
        }
        Ok(())
    }
}
