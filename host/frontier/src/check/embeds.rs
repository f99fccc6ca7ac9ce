//! Embeds of other sites: who shows them, and how many pages they count.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{Check, Fault};
use crate::{
    Error, UriRecord,
    store::{decode, encode},
};

/// Embeds counted at a time.
const COUNTED_MAX: u64 = 1_000_000;

/// Length of a page's hash, which an entry begins with.
const PAGE_BYTES: usize = 16;

impl Check<'_> {
    /// Compares what URIs count with who shows them; `referrers` is [`super::records::Seen::referrers`].
    pub(super) fn embeds(&mut self, referrers: u64) -> Result<(), Error> {
        let mut entries = 0;
        let mut shown: u64 = 0;
        for guard in self.store.embeds.iter() {
            let (key, value) = guard.into_inner()?;
            if value.len() == 4 && key.len() > PAGE_BYTES {
                entries += 1;
                shown = shown.wrapping_add(xxh3_64(&key[PAGE_BYTES..]));
            } else {
                self.found(Fault::Malformed("embeds"), &key);
                self.mend("embeds", &key, None)?;
            }
        }
        self.write()?;
        if shown != referrers {
            let parts = entries / COUNTED_MAX + 1;
            for part in 0..parts {
                self.count_embeds(part, parts)?;
            }
        }
        Ok(())
    }

    /// Counts the pages of those embeds whose hash falls into this part.
    fn count_embeds(&mut self, part: u64, parts: u64) -> Result<(), Error> {
        let mut pages: HashMap<u64, u32> = HashMap::new();
        for guard in self.store.embeds.iter() {
            let (key, value) = guard.into_inner()?;
            let Some(embed) = key.get(PAGE_BYTES..) else {
                continue;
            };
            let hash = xxh3_64(embed);
            if hash % parts != part || value.len() != 4 || embed.is_empty() {
                continue;
            }
            if self.store.uris.contains_key(embed)? {
                *pages.entry(hash).or_default() += 1;
            } else {
                self.found(Fault::StrayEmbed, embed);
                self.mend("embeds", &key, None)?;
            }
        }
        for guard in self.store.uris.iter() {
            let (key, bytes) = guard.into_inner()?;
            let hash = xxh3_64(&key);
            if hash % parts != part {
                continue;
            }
            let Ok(record) = decode::<UriRecord>("a record of a URI", &key, &bytes) else {
                continue;
            };
            let referrers = pages.get(&hash).copied().unwrap_or(0);
            if record.referrers != referrers {
                self.found(Fault::WrongReferrers, &key);
                let record = encode(&UriRecord {
                    referrers,
                    ..record
                })?;
                self.mend("uris", &key, Some(record))?;
            }
        }
        self.write()
    }
}
