//! Embeds of other sites, and the pages that show them. An embed fades when every page that showed it has not done so for a
//! number of visits. A faded embed is not visited again. It stays in the store, and is queued again when it is found again.

use opilio_uri::{Hop, Uri};

use crate::{
    Candidate, FrontierError, UriState,
    change::WriteBatch,
    keys,
    store::{damaged, read},
};

/// Embeds of one page that are tracked. The further embeds of a page with more never fade.
const EMBEDS_MAX: usize = 10_000;

/// The embeds of a page, as a visit found them.
pub(crate) enum Linked {
    /// The page was extracted. These are the record keys of all its embeds, sorted.
    Only(Vec<String>),
    /// The page was not extracted. Its links count as unchanged.
    AsBefore,
}

/// Record keys of the embeds among `outlinks` that are on another registrable domain than their page, sorted.
pub(crate) fn on_other_domains(page: &Uri, outlinks: &[Candidate]) -> Vec<String> {
    let own = site(page);
    let mut embeds: Vec<String> = outlinks
        .iter()
        .filter(|link| link.hop_path.last() == Some(Hop::Embed) && site(&link.uri) != own)
        .map(|link| link.uri.key())
        .collect();
    embeds.sort_unstable();
    embeds.dedup();
    embeds.truncate(EMBEDS_MAX);
    embeds
}

fn site(uri: &Uri) -> Option<&str> {
    uri.registrable_domain().or_else(|| uri.host())
}

/// Records the embeds of a page. They must have been admitted before.
pub(crate) fn record(
    change: &mut WriteBatch<'_>,
    page: &str,
    linked: Linked,
) -> Result<(), FrontierError> {
    let hash = keys::page(page);
    let (start, end) = keys::embeds_of(&hash);
    let (known, _) = read(&change.store.embeds_by_page, &start, &end, usize::MAX)?;
    let fade_after = change.config.fade_after;
    let mut missing: Vec<String> = match &linked {
        Linked::Only(embeds) => embeds.clone(),
        Linked::AsBefore => Vec::new(),
    };
    for (key, value) in known {
        let embed = key
            .get(hash.len()..)
            .and_then(|embed| std::str::from_utf8(embed).ok())
            .ok_or_else(|| damaged("a malformed embed", &key))?
            .to_owned();
        let misses = value
            .as_slice()
            .try_into()
            .map(u32::from_be_bytes)
            .map_err(|_| damaged("a malformed count of an embed", &key))?;
        let is_linked = match &linked {
            Linked::Only(embeds) => embeds.binary_search(&embed).is_ok(),
            Linked::AsBefore => misses == 0,
        };
        missing.retain(|new| *new != embed);
        let now_missed = if is_linked { 0 } else { misses + 1 };
        // A URI in process is in no order from which it could be taken: it fades with the next visit.
        if now_missed >= fade_after && !change.memory.is_record_busy(&embed) {
            change
                .shown
                .insert(keys::page_of_embed(&embed, &hash), None);
            change.embeds.insert(key, None);
            release(change, &embed)?;
        } else if now_missed != misses {
            change
                .embeds
                .insert(key, Some(now_missed.to_be_bytes().to_vec()));
        }
    }
    for embed in missing {
        // A URI that was refused, or is known by its canonical form alone, has no record for the count.
        let Some(mut record) = change.record(&embed)? else {
            continue;
        };
        record.referrers += 1;
        change.put(&embed, record);
        change
            .shown
            .insert(keys::page_of_embed(&embed, &hash), Some(Vec::new()));
        change.embeds.insert(
            keys::embed(&hash, &embed),
            Some(0u32.to_be_bytes().to_vec()),
        );
    }
    Ok(())
}

/// Removes the entries of a page that is forgotten: it shows no embeds any more.
pub(crate) fn forget_page(change: &mut WriteBatch<'_>, page: &str) -> Result<(), FrontierError> {
    let hash = keys::page(page);
    let (start, end) = keys::embeds_of(&hash);
    let (known, _) = read(&change.store.embeds_by_page, &start, &end, usize::MAX)?;
    for (key, _) in known {
        if let Some(embed) = key
            .get(hash.len()..)
            .and_then(|embed| std::str::from_utf8(embed).ok())
            .map(str::to_owned)
        {
            change
                .shown
                .insert(keys::page_of_embed(&embed, &hash), None);
            release(change, &embed)?;
        }
        change.embeds.insert(key, None);
    }
    Ok(())
}

/// Removes the entries of an embed that is forgotten. If it is found again, it counts only the pages that show it then.
pub(crate) fn forget_embed(change: &mut WriteBatch<'_>, embed: &str) -> Result<(), FrontierError> {
    let (start, end) = keys::pages_of_embed(embed);
    let (pages, _) = read(&change.store.pages_by_embed, &start, &end, usize::MAX)?;
    for (key, _) in pages {
        let (_, page) = keys::from_page_of_embed(&key)
            .ok_or_else(|| damaged("a malformed page of an embed", &key))?;
        change.embeds.insert(keys::embed(&page, embed), None);
        change.shown.insert(key, None);
    }
    Ok(())
}

/// Removes one page from the count of an embed. The embed fades with its last page.
fn release(change: &mut WriteBatch<'_>, embed: &str) -> Result<(), FrontierError> {
    let Some(mut record) = change.record(embed)? else {
        return Ok(());
    };
    record.referrers = record.referrers.saturating_sub(1);
    let is_embed = record.hop_path.last() == Some(Hop::Embed) && !record.seed;
    let is_idle = !change.memory.is_record_busy(embed);
    let is_queued = matches!(record.state, UriState::Queued { .. });
    if record.referrers == 0 && is_embed && is_idle && is_queued {
        change.take_queued(&record)?;
        change.count_dequeued();
        record.state = UriState::Faded;
        // The seen test no longer knows the embed, so that finding it again brings it back.
        if std::mem::take(&mut record.owns_canonical) {
            change.remove_canonical(record.canonical);
        }
        change.counters.statistics.faded += 1;
    }
    change.put(embed, record);
    Ok(())
}
