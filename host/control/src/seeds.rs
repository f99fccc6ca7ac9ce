//! Seeds of a job: the outcome of each, and the addition of seeds.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use opilio_archive::captures;
use opilio_frontier::{LastOutcome, PastVisit, UriRecord, UriState};
use opilio_profile::{Diagnostics, Level, Seed, Seeds};
use opilio_uri::Uri;

use super::answer::{Respond, listened};
use super::{
    AddedSeeds, Author, CommandResponse, ControlError, ErrorKind, FaultFound, JobAdmin, SeedReport,
};

use opilio_crawl::{crawl, queues_of_job};
use opilio_job::directory;
use opilio_job::handover::only_in_store;
use opilio_job::history::Changed;
use opilio_job::ledger;
use opilio_job::profile::changed_profile;
use opilio_job::seed_outcome::{KeptFailures, SeedOutcome};
use opilio_visit::redirect;

/// Maximum number of seeds that go to the frontier at once.
const BATCH: usize = 1_000;

impl JobAdmin<'_> {
    /// Adds seeds. If one line is invalid, none is added.
    pub(super) fn add_seeds(
        &self,
        lines: &[String],
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let (seeds, faults) = Seeds::parse("seeds", &lines.join("\n"));
        if !faults.is_empty() {
            return Err(not_added(&faults, respond));
        }
        let added = self.take_seeds(&seeds, by, respond)?;
        let words = format!(
            "seeds: {} added, {} known; SURT prefixes: {}",
            added.added, added.known, added.prefixes
        );
        respond(CommandResponse::SeedsAdded(added));
        Ok(words)
    }

    /// Returns the notices on new seeds, or the errors because of which they are refused. For instance, a job with seeds on other
    /// machines and no contact URL could not restart.
    pub(super) fn check_seeds(&self, seeds: &[Seed]) -> Result<Diagnostics, Diagnostics> {
        let faults = self.profile.check_seeds(seeds);
        match faults.worst() >= Some(Level::Warning) {
            true => Err(faults),
            false => Ok(faults),
        }
    }

    /// Adds new seeds to the job, its scope and its queues. Adds all of them or none.
    pub(crate) fn take_seeds(
        &self,
        seeds: &Seeds,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<AddedSeeds, ControlError> {
        let known: HashSet<&str> = self
            .profile
            .seeds
            .list
            .iter()
            .map(|it| it.uri.as_str())
            .collect();
        let prefixes: HashSet<String> = self.profile.seeds.scope().into_iter().collect();
        let is_new = |seed: &&Seed| !known.contains(seed.uri.as_str());
        let new: Vec<Seed> = seeds.list.iter().filter(is_new).cloned().collect();
        let implied = seeds.scope().into_iter();
        let new_prefixes = implied.filter(|prefix| !prefixes.contains(prefix)).count();
        let mut added = AddedSeeds {
            number: None,
            added: new.len() as u64,
            prefixes: new_prefixes as u64,
            known: (seeds.list.len() - new.len()) as u64,
            notices: Vec::new(),
        };
        let is_logged = self.origin.sequence().is_some();
        let is_known = new.is_empty() && new_prefixes == 0;
        if is_known && !is_logged {
            return Ok(added);
        }
        let notices = self
            .check_seeds(&new)
            .map_err(|faults| not_added(&faults, respond))?;
        added.notices = notices.iter().map(FaultFound::from).collect();
        if self.origin.is_trial() {
            return Ok(added);
        }
        if !is_known {
            added.number = Some(self.keep_seeds(&new, seeds, &prefixes, by)?);
        }
        if let Some(running) = self.running {
            let profile = changed_profile(self.job, None)
                .map_err(|problem| ControlError::failure(&problem))?;
            running.context.set_current(Arc::new(profile));
            let prefixes = super::seed::prefixes(self.job)
                .map_err(|(path, problem)| ControlError::file(&path, &problem))?;
            tokio::runtime::Handle::current()
                .block_on(running.context.replace_seed_prefixes(prefixes))
                .map_err(|problem| ControlError::failure(&problem))?;
        }
        // All nodes of a shared job get the command, and each queues only the seeds of its own sites.
        let part = match is_logged {
            true => queues_of_job(self.job, self.profile)
                .map_err(|problem| ControlError::file(self.job, &problem))?,
            false => None,
        };
        // An earlier attempt may have stored the seeds and failed afterwards. Known seeds stay unchanged.
        let scheduled = if is_logged { &seeds.list } else { &new };
        for batch in scheduled.chunks(BATCH) {
            let candidates = batch
                .iter()
                .map(|seed| crawl::seed_candidate(self.profile, &seed.uri))
                .filter(|seed| part.as_ref().is_none_or(|part| part.has(seed)));
            self.frontier()
                .schedule(candidates.collect(), Timestamp::now())?;
        }
        self.wake_dispatcher();
        Ok(added)
    }

    /// Stores those of the seeds and their prefixes that are new. Returns the number of the change. `prefixes` are the prefixes
    /// that the job has already.
    fn keep_seeds(
        &self,
        new: &[Seed],
        seeds: &Seeds,
        prefixes: &HashSet<String>,
        by: &Author,
    ) -> Result<u64, ControlError> {
        let lines = crawl::seed_lines(&Seeds {
            list: new.to_vec(),
            surt_prefixes: seeds
                .surt_prefixes
                .iter()
                .filter(|prefix| !prefixes.contains(*prefix))
                .cloned()
                .collect(),
        });
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let what = Changed::AddSeeds { seeds: lines };
        self.keep((by, None), Timestamp::now(), what, |_, job| {
            directory::add_seeds(job, &text)?;
            directory::restore_removed(job, new)
        })
    }

    /// Lists the seeds in the order in which they were added, with the outcome of each.
    pub(super) fn seeds(
        &self,
        after: Option<&str>,
        limit: u64,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let all = &self.profile.seeds.list;
        let start = match after {
            None => 0,
            Some(after) => {
                let place = all.iter().position(|seed| seed.uri.as_str() == after);
                place.map(|place| place + 1).ok_or_else(|| {
                    ControlError::new(
                        ErrorKind::Unknown,
                        format!("invalid cursor {after:?}: not a seed of the job; pass the cursor that an earlier page ended with"),
                    )
                })?
            }
        };
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let stored = only_in_store(self.job).unwrap_or_default();
        let moved: Vec<PathBuf> = stored.iter().map(|file| file.path(self.job)).collect();
        for mut report in self.seed_reports(all.iter().skip(start).take(most))? {
            self.look_up_captures(&mut report, &moved);
            listened(respond(CommandResponse::Seed(Box::new(report))))?;
        }
        if let Some(last) = all
            .get(start..)
            .and_then(|rest| rest.get(..most))
            .and_then(<[Seed]>::last)
            && start + most < all.len()
        {
            respond(CommandResponse::More {
                after: last.uri.as_str().to_owned(),
            });
        }
        Ok(String::new())
    }

    /// Returns the outcomes of these seeds.
    pub(super) fn seed_reports<'s>(
        &self,
        seeds: impl Iterator<Item = &'s Seed>,
    ) -> Result<Vec<SeedReport>, ControlError> {
        let (later, _) = Seeds::parse(directory::ADDED_SEEDS, &directory::added_seeds(self.job));
        let later: HashSet<&str> = later.list.iter().map(|seed| seed.uri.as_str()).collect();
        let kept = KeptFailures::read(&self.frontier())?;
        let mut reports = Vec::new();
        for seed in seeds {
            let uri = seed.uri.as_str();
            let origin = if later.contains(uri) { "added" } else { "job" };
            let frontier = self.frontier();
            let counts = ledger::source(&frontier, uri)?.unwrap_or_default();
            let pages = counts.range(200..400).map(|(_, count)| count).sum();
            let record = frontier.record(&seed.uri)?;
            let end = match &record {
                Some(record) => redirect::end_of(&frontier, record)?,
                None => None,
            };
            drop(frontier);
            let why = self.why_not_fetched(uri, record.as_ref(), end.as_ref(), &kept);
            reports.push(SeedReport {
                why,
                ..report(uri, origin, record.as_ref(), pages, end)
            });
        }
        Ok(reports)
    }

    /// Returns the reason why a seed was not fetched. An error of this process or of an earlier one is part of it.
    fn why_not_fetched(
        &self,
        seed: &str,
        record: Option<&UriRecord>,
        end: Option<&(Uri, Option<UriRecord>)>,
        kept: &KeptFailures,
    ) -> Option<String> {
        let last_error = |record: &UriRecord| match self.running {
            Some(running) => running.context.last_error(record),
            None => record.reason.clone(),
        };
        match SeedOutcome::of(seed, record, end, last_error) {
            SeedOutcome::Failed(mut failure) => {
                kept.recall(&mut failure);
                Some(failure.to_string())
            }
            SeedOutcome::Fetched | SeedOutcome::Unvisited => None,
        }
    }
}

impl JobAdmin<'_> {
    /// Finds, in the indexes of the archive, first captures that are older than the visits in the records. If an index cannot be
    /// read, they stay unknown, so that the list of seeds does not fail.
    fn look_up_captures(&self, report: &mut SeedReport, moved: &[PathBuf]) {
        let archive = &self.profile.archive;
        let folders = std::iter::once(&archive.directory).chain(&archive.more_directories);
        let folders: Vec<PathBuf> = folders.map(|folder| self.job.join(folder)).collect();
        let first = |uri: &str| {
            let found = captures(&folders, moved, uri).ok()?;
            let stamp = &found.entries.first()?.timestamp;
            let date = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", stamp).ok()?;
            Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
        };
        if report.captured && report.first_captured.is_none() {
            report.first_captured = first(&report.uri);
        }
        if let Some(redirect) = &report.redirect
            && report.redirect_first_captured.is_none()
        {
            report.redirect_first_captured = first(redirect);
        }
    }
}

fn not_added(faults: &Diagnostics, respond: Respond<'_>) -> ControlError {
    respond(CommandResponse::Faults {
        faults: faults.iter().map(FaultFound::from).collect(),
    });
    ControlError::new(ErrorKind::Request, format!("no seeds were added\n{faults}"))
}

fn report(
    uri: &str,
    origin: &str,
    record: Option<&UriRecord>,
    pages: u64,
    end: Option<(Uri, Option<UriRecord>)>,
) -> SeedReport {
    let history = record
        .map(|record| record.history.as_slice())
        .unwrap_or_default();
    let is_version = |past: &&PastVisit| past.state.is_version();
    let redirected = end.as_ref().and_then(|(_, record)| record.as_ref());
    SeedReport {
        first_captured: record.and_then(first_capture),
        redirect_first_captured: redirected.and_then(first_capture),
        uri: uri.to_owned(),
        origin: origin.to_owned(),
        captured: record.is_some_and(|record| record.archived.is_some()),
        fetched: history.first().map(|past| past.at),
        status: record.map_or(0, |record| record.status),
        why: None,
        crawled: record.is_some_and(|record| {
            record.status != 0 && record.last_outcome == LastOutcome::Succeeded
        }),
        redirect: end.as_ref().map(|(uri, _)| uri.as_str().to_owned()),
        redirect_status: end
            .and_then(|(_, record)| record)
            .map(|record| record.status)
            .filter(|status| *status != 0),
        pages,
        visits: record.map_or(0, |record| record.visits),
        changed: history.iter().find(is_version).map(|past| past.at),
        due: record.and_then(|record| match record.state {
            UriState::Queued { due, .. } => Some(due),
            _ => None,
        }),
    }
}

/// Returns the time of a URI's first capture; `None` if the record keeps only later visits.
fn first_capture(record: &UriRecord) -> Option<Timestamp> {
    let is_whole = record.visits <= record.history.len() as u64;
    record.archived.as_ref().filter(|_| is_whole)?;
    let mut oldest_first = record.history.iter().rev();
    let first = oldest_first.find(|past| past.state.is_version());
    first.map(|past| past.at)
}
