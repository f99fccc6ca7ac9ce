//! Check of the embeds of other sites: the pages that show them, and the counts of these pages.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{Check, InconsistencyKind};
use crate::{
    FrontierError, UriRecord, keys,
    store::{decode, encode},
};

/// Embeds counted at a time.
const COUNTED_MAX: u64 = 1_000_000;

/// Length of a page's hash, with which an entry begins.
const PAGE_BYTES: usize = 16;

impl Check<'_> {
    /// Compares the counts of URIs with the pages that show them. `referrers` is [`super::records::RecordTotals::referrers`].
    pub(super) fn embeds(&mut self, referrers: u64) -> Result<(), FrontierError> {
        let mut entries = 0;
        let mut shown: u64 = 0;
        for guard in self.store.embeds_by_page.iter() {
            let (key, value) = guard.into_inner()?;
            if value.len() == 4 && key.len() > PAGE_BYTES {
                entries += 1;
                shown = shown.wrapping_add(xxh3_64(&key[PAGE_BYTES..]));
            } else {
                self.report(InconsistencyKind::Malformed("embeds_by_page"), &key);
                self.put_repair("embeds_by_page", &key, None)?;
            }
        }
        self.write()?;
        if shown != referrers {
            let parts = entries / COUNTED_MAX + 1;
            for part in 0..parts {
                self.count_embeds(part, parts)?;
            }
        }
        self.embeds_both_ways()
    }

    /// Checks that each entry is in both keyspaces. The entries of pages are taken as true.
    fn embeds_both_ways(&mut self) -> Result<(), FrontierError> {
        let mut sum: u64 = 0;
        for guard in self.store.embeds_by_page.iter() {
            let key = guard.key()?;
            let shown = page_entry_of(&key).unwrap_or_default();
            sum = sum.wrapping_add(xxh3_64(&shown));
        }
        for guard in self.store.pages_by_embed.iter() {
            sum = sum.wrapping_sub(xxh3_64(&guard.key()?));
        }
        if sum == 0 {
            return Ok(());
        }
        for guard in self.store.pages_by_embed.iter() {
            let key = guard.key()?;
            let Some((embed, page)) = keys::from_page_of_embed(&key) else {
                self.report(InconsistencyKind::Malformed("pages_by_embed"), &key);
                self.put_repair("pages_by_embed", &key, None)?;
                continue;
            };
            if !self
                .store
                .embeds_by_page
                .contains_key(keys::embed(&page, embed))?
            {
                self.report(InconsistencyKind::OneSidedEmbed, embed.as_bytes());
                self.put_repair("pages_by_embed", &key, None)?;
            }
        }
        for guard in self.store.embeds_by_page.iter() {
            let key = guard.key()?;
            if let Some(shown) = page_entry_of(&key)
                && !self.store.pages_by_embed.contains_key(&shown)?
            {
                self.report(InconsistencyKind::OneSidedEmbed, &key[PAGE_BYTES..]);
                self.put_repair("pages_by_embed", &shown, Some(Vec::new()))?;
            }
        }
        self.write()
    }

    /// Counts the pages of the embeds whose hash falls into this part.
    fn count_embeds(&mut self, part: u64, parts: u64) -> Result<(), FrontierError> {
        let mut pages: HashMap<u64, u32> = HashMap::new();
        for guard in self.store.embeds_by_page.iter() {
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
                self.report(InconsistencyKind::StrayEmbed, embed);
                self.put_repair("embeds_by_page", &key, None)?;
                if let Some(shown) = page_entry_of(&key) {
                    self.put_repair("pages_by_embed", &shown, None)?;
                }
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
                self.report(InconsistencyKind::WrongReferrers, &key);
                let record = encode(&UriRecord {
                    referrers,
                    ..record
                })?;
                self.put_repair("uris", &key, Some(record))?;
            }
        }
        self.write()
    }
}

/// The entry of `pages_by_embed` for one of `embeds_by_page`; `None` if it is malformed.
fn page_entry_of(key: &[u8]) -> Option<Vec<u8>> {
    let (page, embed) = key.split_first_chunk::<PAGE_BYTES>()?;
    let embed = std::str::from_utf8(embed).ok()?;
    (!embed.is_empty()).then(|| keys::page_of_embed(embed, page))
}
