//! Captures that are recorded in the frontier but lost in the archive.

use std::collections::HashMap;
use std::path::Path;

use jiff::Timestamp;
use opilio_archive::RepairedFile;
use opilio_frontier::{Candidate, Frontier, UriRecord, WarcLocation};
use opilio_profile::Profile;
use opilio_uri::Uri;

use super::seeds::SEED_BATCH;
use crate::context::CrawlContext;
use crate::error::CrawlError;
use opilio_visit::policy;

impl CrawlContext {
    /// Schedules lost captures again. After a power failure the end of an open WARC file may be lost although its URIs were
    /// finished.
    pub(crate) fn schedule_lost(&self, repaired: &[RepairedFile]) -> Result<(), CrawlError> {
        let kept = |repaired: &RepairedFile| {
            let file = repaired.file.as_ref();
            file.and_then(|file| std::fs::metadata(file).ok())
                .map_or(0, |file| file.len())
        };
        let cut: HashMap<String, u64> = repaired
            .iter()
            .filter(|repaired| {
                repaired.cut_bytes > 0 || repaired.rescued.is_some() || repaired.file.is_none()
            })
            .filter_map(|repaired| Some((final_name(&repaired.found)?, kept(repaired))))
            .collect();
        if cut.is_empty() {
            return Ok(());
        }
        if let Some(duplicates) = &self.outputs.duplicates {
            duplicates.forget(&cut)?;
        }
        let records = self.frontier().records("");
        let mut lost = Vec::new();
        for record in records {
            let record = record?;
            let is_lost =
                |at: &WarcLocation| cut.get(&at.file).is_some_and(|kept| at.offset >= *kept);
            if record.archived.as_ref().is_some_and(is_lost) {
                lost.extend(fetched_again(&self.profile, &record));
            }
        }
        if !lost.is_empty() {
            tracing::warn!(
                captures = lost.len(),
                "lost from the archive when power failed; fetched again"
            );
        }
        for batch in lost.chunks(SEED_BATCH) {
            fetch_again(&mut self.frontier(), batch.to_vec())?;
        }
        Ok(())
    }
}

/// Schedules URIs whose captures are lost. A new response is not compared with the lost capture, because a revisit record would
/// refer to a missing record.
pub fn fetch_again(
    frontier: &mut Frontier,
    lost: Vec<Candidate>,
) -> Result<(), opilio_frontier::FrontierError> {
    let now = Timestamp::now();
    for candidate in &lost {
        frontier.lose_archived(&candidate.uri, now)?;
    }
    frontier.schedule(lost, now).map(drop)
}

/// Returns the candidate for a URI that is fetched although it is known, because its capture is lost.
pub fn fetched_again(profile: &Profile, record: &UriRecord) -> Option<Candidate> {
    let uri = Uri::parse(&record.uri).ok()?;
    Some(Candidate {
        queue: record.queue.clone(),
        seed: record.seed,
        force: true,
        ..policy::candidate(
            profile,
            uri,
            record.hop_path.clone(),
            record.via.as_deref(),
            record.source.as_deref(),
        )
    })
}

/// Returns the final name of a WARC file that may have been found open.
fn final_name(found: &Path) -> Option<String> {
    let name = found.file_name()?.to_str()?;
    Some(name.strip_suffix(".open").unwrap_or(name).to_owned())
}
