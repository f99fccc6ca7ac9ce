//! Removal of a seed from the job's copies, from the scope, and of queued URIs found only through it.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use opilio_frontier::{SweepAction, UriRecord, UriState};
use opilio_profile::Seeds;
use opilio_uri::{SurtPrefixSet, Uri, implied_surt_prefix};

use super::answer::{Respond, done};
use super::{Author, ControlError, ErrorKind, JobAdmin};
use opilio_job::directory;

impl JobAdmin<'_> {
    /// Forgets queued URIs that were found only through the seed, so that they may be found again on another path. Fetched URIs
    /// stay known.
    pub(super) fn remove_seed(
        &self,
        seed: &Uri,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let record = self.frontier().record(seed)?;
        let is_seed = record.as_ref().is_some_and(|record| record.seed);
        // A repeated command removes the remaining URIs of the seed, which were in process the first time.
        let was_struck = directory::removed_seeds(self.job).contains(seed.as_str());
        let is_struck = strike(self.job, seed)
            .map_err(|(path, problem)| ControlError::file(&path, &problem))?;
        if !is_seed && !is_struck && !was_struck {
            return Err(not_a_seed(seed));
        }
        if let Some(running) = self.running {
            let prefixes = prefixes(self.job)
                .map_err(|(path, problem)| ControlError::file(&path, &problem))?;
            tokio::runtime::Handle::current()
                .block_on(running.context.replace_seed_prefixes(prefixes))
                .map_err(|problem| ControlError::failure(&problem))?;
        }
        let is_unseeded =
            record.is_none() || self.frontier().unmark_seed(seed, Timestamp::now())?;
        let source = seed.as_str();
        let is_meant = |record: &UriRecord| {
            let is_its_own = record.source.as_deref() == Some(source) || record.uri == source;
            is_its_own && matches!(record.state, UriState::Queued { .. })
        };
        let swept = self.sweep_where(SweepAction::ForgetSole, "", &is_meant, by, respond)?;
        let mut result = format!(
            "removed from seeds and scope; {} queued URIs found only through it are forgotten",
            swept.meant
        );
        if swept.shared > 0 {
            result.push_str(&format!(
                ", {} found through other seeds, too, are kept",
                swept.shared
            ));
        }
        if swept.in_process > 0 || !is_unseeded {
            result.push_str(&format!(
                ", {} are being fetched and are kept: run the command again when they have finished",
                swept.in_process
            ));
        }
        Ok(done(&result, respond))
    }

    /// Fails if [`Self::remove_seed`] would refuse a URI, because it is not a seed of the job.
    pub(super) fn must_be_seed(&self, seed: &Uri) -> Result<(), ControlError> {
        let mut listed = self.profile.seeds.list.iter();
        let is_seed = listed.any(|listed| listed.uri == *seed)
            || directory::removed_seeds(self.job).contains(seed.as_str());
        let record = self.frontier().record(seed)?;
        match is_seed || record.is_some_and(|record| record.seed) {
            true => Ok(()),
            false => Err(not_a_seed(seed)),
        }
    }
}

fn not_a_seed(seed: &Uri) -> ControlError {
    ControlError::new(
        ErrorKind::State,
        format!("{seed} is not a seed of the job; its seeds.txt lists the seeds"),
    )
}

type FileError = (std::path::PathBuf, io::Error);

/// Removes a seed from the job's copies. Returns false if no copy lists it. The frozen profile may also list the seed and stays
/// as it is: `removed-seeds.txt` overrules it.
fn strike(job: &Path, seed: &Uri) -> Result<bool, FileError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |problem| (path, problem)
    };
    let file = job.join("seeds.txt");
    let text = fs::read_to_string(&file).map_err(at(&file))?;
    let later = job.join(directory::ADDED_SEEDS);
    let added = read_or_empty(&later).map_err(at(&later))?;
    let (kept, kept_later) = (without_seed(&text, seed), without_seed(&added, seed));
    if kept.is_none() && kept_later.is_none() {
        return Ok(false);
    }
    let removed = job.join(directory::REMOVED_SEEDS);
    let mut list = read_or_empty(&removed).map_err(at(&removed))?;
    list.push_str(&format!("{seed}\n"));
    // This file is written first, so the seed counts as removed even if the process dies before the next file is written.
    opilio_job::text_file::write_text(&removed, &list).map_err(at(&removed))?;
    if let Some(kept) = kept {
        opilio_job::text_file::write_text(&file, &kept).map_err(at(&file))?;
    }
    if let Some(kept) = kept_later {
        opilio_job::text_file::write_text(&later, &kept).map_err(at(&later))?;
    }

    let redirected = job.join(directory::REDIRECTED_SEEDS);
    let text = read_or_empty(&redirected).map_err(at(&redirected))?;
    let is_of_another = |line: &&str| {
        line.split_once(" # ")
            .is_none_or(|(_, of)| of != seed.as_str())
    };
    let kept: String = text
        .lines()
        .filter(is_of_another)
        .map(|line| format!("{line}\n"))
        .collect();
    if kept.len() != text.len() {
        opilio_job::text_file::write_text(&redirected, &kept).map_err(at(&redirected))?;
    }
    Ok(true)
}

/// Returns the list without the seed and the prefix that it was written with. Returns `None` if the list does not have the seed.
fn without_seed(text: &str, seed: &Uri) -> Option<String> {
    let is_seed = |line: &str| {
        !line.starts_with(['+', '#']) && Uri::parse_seed(line).is_ok_and(|uri| uri == *seed)
    };
    // Without its slash, `http://example.org/` implies another prefix, which is written on a line of its own.
    let written = seed.as_str().strip_suffix('/').unwrap_or(seed.as_str());
    let wider = implied_surt_prefix(written).map(|prefix| format!("+{prefix}"));
    let mut kept = String::new();
    let mut is_found = false;
    let mut is_behind_it = false;
    for line in text.lines() {
        let is_its_prefix = is_behind_it && wider.as_deref() == Ok(line);
        is_behind_it = is_seed(line.trim());
        is_found |= is_behind_it;
        if !is_behind_it && !is_its_prefix {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    is_found.then_some(kept)
}

/// Returns the prefixes of all remaining seeds.
pub(super) fn prefixes(job: &Path) -> Result<SurtPrefixSet, FileError> {
    let file = job.join("seeds.txt");
    let text = fs::read_to_string(&file).map_err(|problem| (file.clone(), problem))?;
    let text = text + &directory::added_seeds(job);
    let (seeds, _) = Seeds::parse("seeds.txt", &text);
    let redirected = directory::redirected_seeds(job);
    let redirected = redirected
        .iter()
        .filter_map(|line| opilio_uri::surt_prefix_from_line(line).ok().flatten());
    Ok(seeds.scope().into_iter().chain(redirected).collect())
}

fn read_or_empty(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, seed: &str, expected: Option<&str>) {
        let left = without_seed(list, &Uri::parse_seed(seed).unwrap());
        assert_eq!(left.as_deref(), expected, "{list:?} without {seed}");
    }

    #[test]
    fn a_seed_is_removed_with_the_prefix_line_that_belongs_to_it_only() {
        let list = "http://a.org/\n+http://(org,a,\nhttp://b.org/x\n+http://(org,c,\n";
        check(
            list,
            "http://a.org",
            Some("http://b.org/x\n+http://(org,c,\n"),
        );
        check(
            list,
            "http://b.org/x",
            Some("http://a.org/\n+http://(org,a,\n+http://(org,c,\n"),
        );
        check(list, "http://c.org/", None);
        check("# http://a.org/\n", "http://a.org/", None);
        check("a.org\n", "http://a.org/", Some(""));
    }
}
