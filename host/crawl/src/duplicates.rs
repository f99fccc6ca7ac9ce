//! Payloads that another URI has brought already: they are not stored again, and a revisit record refers to the capture
//! that has them.
//!
//! Two captures of one payload that come in at the same time wait for one another, so that the second finds the first.

use std::collections::HashMap;
use std::path::Path;

use opilio_archive::{Digest, Payloads, PayloadsError, StoredPayload};
use opilio_profile::{ArchiveDigest, Profile};
use tokio::sync::{Mutex, MutexGuard};

/// Captures wait for others whose digest begins with the same byte, of which hardly ever two are written at a time.
const STRIPES: usize = 256;

/// The payloads that are stored.
pub(crate) struct Duplicates {
    payloads: Payloads,
    size_min: u64,
    stripes: Vec<Mutex<()>>,
}

/// Digests of one payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadDigests {
    /// What the record says where the standard has its place.
    pub main: Digest,
    /// What it says besides.
    pub further: Option<Digest>,
    /// What the frontier keeps, whatever records say.
    pub sha1: Digest,
}

/// A payload that nobody else writes meanwhile.
pub(crate) struct Held<'d> {
    duplicates: &'d Duplicates,
    digests: PayloadDigests,
    _stripe: MutexGuard<'d, ()>,
    /// Where it is stored already.
    pub found: Option<StoredPayload>,
}

impl PayloadDigests {
    /// As the profile wants them. `sha256` is asked where it does.
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

    /// By which it is looked up, the strongest first.
    fn wanted(&self) -> impl Iterator<Item = Digest> {
        self.further.into_iter().chain([self.main])
    }
}

impl Duplicates {
    /// The payloads that the job knows, those of its history included; none where the profile does not ask.
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
                    "{} payloads from {}; {} lines are none of an index",
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

    /// Whether a payload is large enough to be looked up.
    pub(crate) fn wants(&self, size: u64) -> bool {
        size >= self.size_min.max(1)
    }

    /// Looks a payload up, and keeps others from writing the same until the answer is dropped.
    pub(crate) async fn hold(&self, digests: PayloadDigests) -> Result<Held<'_>, PayloadsError> {
        let first = digests.sha1.bytes().first().copied().unwrap_or(0);
        let stripe = self.stripes[usize::from(first) % STRIPES].lock().await;
        let mut found = None;
        for digest in digests.wanted() {
            found = match found {
                None => self.payloads.find(&digest)?,
                found => found,
            };
        }
        Ok(Held {
            duplicates: self,
            digests,
            _stripe: stripe,
            found,
        })
    }

    /// The capture that has the payload of an earlier visit, where that was of another URI.
    pub(crate) fn original(
        &self,
        uri: &str,
        payload: [u8; 20],
    ) -> Result<Option<StoredPayload>, PayloadsError> {
        let found = self.payloads.find(&Digest::Sha1(payload))?;
        Ok(found.filter(|found| found.uri != uri))
    }

    /// The ends of files are gone, and the payloads in them.
    pub(crate) fn forget(&self, kept: &HashMap<String, u64>) -> Result<u64, PayloadsError> {
        self.payloads.forget(kept)
    }

    /// Forces what is known to disk.
    pub(crate) fn persist(&self) -> Result<(), PayloadsError> {
        self.payloads.persist()
    }
}

impl Held<'_> {
    /// It is stored now.
    pub(crate) fn keep(&self, stored: &StoredPayload) -> Result<(), PayloadsError> {
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
