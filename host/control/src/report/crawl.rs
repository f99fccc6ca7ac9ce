//! Reports on the crawl as a whole, its seeds, and the freshness of its pages.

use std::time::Duration;

use opilio_frontier::Overdue;
use serde_json::{Value, json};

use super::page::{Column, Page};
use crate::{ControlError, JobAdmin};
use opilio_job::census::{self, PageCensus};
use opilio_job::directory::name_of;
use opilio_job::job_state::JobState;
use opilio_job::process_record::ProcessRecord;
use opilio_visit::format_as_heritrix;

/// The text has the columns of Heritrix' report and no others, because scripts read it. The reasons are in the objects, and in both forms
/// of the list of seeds.
const SEEDS: [Column; 12] = [
    ("code", "status"),
    ("status", "crawled"),
    ("seed", "uri"),
    ("redirect", "redirect"),
    ("", "redirect_status"),
    ("", "pages"),
    ("", "visits"),
    ("", "fetched"),
    ("", "changed"),
    ("", "first_captured"),
    ("", "redirect_first_captured"),
    ("", "why"),
];

const CLASSES: [Column; 3] = [
    ("up-to", "up_to_s"),
    ("#due-late-by", "due_late_by"),
    ("#visited-ago", "visited_ago"),
];

/// Maximum number of URIs that are counted when a process ends. Counting takes some seconds at this number.
const COUNTED_AT_THE_END_MAX: u64 = 1_000_000;

impl JobAdmin<'_> {
    pub(super) fn crawl_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        let totals = self.counted()?.totals;
        let visits = totals.visits();
        let statistics = self.frontier().statistics();
        let process_record = self.process_record()?;
        // A restore of a checkpoint does not reset the counts of the logs, nor the run time that belongs to them.
        let undone = process_record
            .as_ref()
            .map(|process_record| process_record.undone);
        let mut ran = statistics.run_time + undone.unwrap_or_default();
        let status = match self.running {
            Some(running) => {
                // The run time in the statistics is updated only from time to time.
                let passed = running.view.progress().elapsed;
                let added = running
                    .context
                    .figures
                    .counters
                    .run_time
                    .load(std::sync::atomic::Ordering::Relaxed);
                ran += passed.saturating_sub(Duration::from_millis(added));
                let state = match running.stop.is_requested() {
                    true => JobState::Ending,
                    false => running.live.crawl_state(),
                };
                state.name().to_owned()
            }
            None => {
                let state = JobState::without_process(process_record.as_ref());
                let ended = process_record.and_then(|record| record.ended);
                state.with_reason(ended.as_ref().map(|ended| ended.why.as_str()))
            }
        };
        let seeds = self.seed_reports(self.profile.seeds.list.iter())?;
        let crawled = seeds.iter().filter(|seed| seed.crawled).count();
        let seconds = ran.as_secs_f64().max(0.001);
        let rate = |count: u64| json!((count as f64 / seconds * 100.0).round() / 100.0);
        // Labels and order are those of Heritrix' report, such as `duplicate-by-hash`; the groups of `figures` have other words.
        // The counts have one definition all the same: in `Totals` and `Totals::visits`.
        page.facts(&[
            ("crawl name", "name", name_of(self.job).into()),
            ("crawl status", "status", status.into()),
            ("profile", "profile", self.profile.name.as_str().into()),
            ("duration", "", format_as_heritrix(ran).into()),
            ("", "run_time_s", json!(ran.as_secs_f64())),
            ("seeds crawled", "seeds_crawled", crawled.into()),
            (
                "seeds uncrawled",
                "seeds_uncrawled",
                (seeds.len() - crawled).into(),
            ),
            ("", "", Value::Null),
            ("hosts visited", "hosts_visited", totals.hosts.into()),
            ("", "", Value::Null),
            ("URIs processed", "uris_processed", totals.all.uris.into()),
            ("URI successes", "uri_successes", visits.documents.into()),
            ("URI failures", "uri_failures", visits.failed().into()),
            (
                "of these, error responses",
                "error_responses",
                visits.error_responses.into(),
            ),
            (
                "URI disregards",
                "uri_disregards",
                totals.disregarded.into(),
            ),
            (
                "prerequisites",
                "prerequisites",
                visits.prerequisites.into(),
            ),
            ("", "", Value::Null),
            ("novel URIs", "novel_uris", totals.novel.uris.into()),
            (
                "duplicate-by-hash URIs",
                "duplicate_uris",
                totals.duplicate.uris.into(),
            ),
            (
                "not-modified URIs",
                "not_modified_uris",
                totals.not_modified.uris.into(),
            ),
            ("", "", Value::Null),
            (
                "total crawled bytes",
                "bytes",
                totals.responses.bytes.into(),
            ),
            (
                "novel crawled bytes",
                "novel_bytes",
                totals.novel.bytes.into(),
            ),
            (
                "duplicate-by-hash crawled bytes",
                "duplicate_bytes",
                totals.duplicate.bytes.into(),
            ),
            (
                "not-modified crawled bytes",
                "not_modified_bytes",
                totals.not_modified.bytes.into(),
            ),
            ("", "", Value::Null),
            ("URIs/sec", "uris_per_second", rate(totals.all.uris)),
            (
                "KiB/sec",
                "kibibytes_per_second",
                rate(totals.responses.bytes / 1024),
            ),
        ])
    }

    fn process_record(&self) -> Result<Option<ProcessRecord>, ControlError> {
        ProcessRecord::read(self.job)
            .map_err(|problem| ControlError::file(&self.job.join("process.json"), &problem))
    }

    /// Writes the seeds. Seeds that were not crawled come first, because readers look for those.
    pub(super) fn seeds_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        page.head(&SEEDS);
        // Counts include the last line of the log.
        self.counted()?;
        let mut seeds = self.seed_reports(self.profile.seeds.list.iter())?;
        seeds.sort_by_key(|seed| seed.crawled);
        for seed in seeds {
            let row = vec![
                seed.status.into(),
                seed.crawled.into(),
                seed.uri.into(),
                json!(seed.redirect),
                json!(seed.redirect_status),
                seed.pages.into(),
                seed.visits.into(),
                json!(seed.fetched),
                json!(seed.changed),
                json!(seed.first_captured),
                json!(seed.redirect_first_captured),
                json!(seed.why),
            ];
            page.row(&SEEDS, row)?;
        }
        Ok(())
    }

    pub(super) fn freshness_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        // Counts again, because pages of a running crawl become older between two counts.
        let pages = census::pages(self.store(), |took| {
            std::thread::sleep(took);
            true
        })?;
        pages.map_or(Ok(()), |pages| freshness(&pages, page))
    }

    /// Writes the freshness report at the end of a process. For a large store it uses the last count, if there is one, because
    /// reading many million URIs would delay the end.
    pub(super) fn last_freshness_report(
        &self,
        last: Option<&PageCensus>,
        page: &mut Page<'_>,
    ) -> Result<(), ControlError> {
        let statistics = self.frontier().statistics();
        if statistics.discovered <= COUNTED_AT_THE_END_MAX {
            let pages = census::pages(self.store(), |_| true)?;
            return pages.map_or(Ok(()), |pages| freshness(&pages, page));
        }
        match last {
            Some(pages) => freshness(pages, page),
            None => page.words("not counted; `opilio job report JOB freshness` counts\n"),
        }
    }
}

fn freshness(pages: &PageCensus, page: &mut Page<'_>) -> Result<(), ControlError> {
    let share = |share: f64| json!((share * 10_000.0).round() / 10_000.0);
    page.facts(&[
        ("pages visited", "visited", pages.visited.into()),
        (
            "pages without a first visit",
            "unvisited",
            pages.unvisited.into(),
        ),
        ("coverage", "coverage", share(pages.coverage)),
        (
            "estimated freshness",
            "freshness",
            pages.freshness.map_or(Value::Null, share),
        ),
        ("pages in the estimate", "estimated", pages.estimated.into()),
        ("pages due", "due", pages.due.into()),
        ("counted", "counted", json!(pages.at)),
    ])?;
    page.head(&CLASSES);
    let bounds = Overdue::BOUNDS.map(|bound| json!(bound.as_secs()));
    let bounds = bounds.into_iter().chain([Value::Null]);
    let counts = pages.due_by_lateness.iter().zip(&pages.by_age);
    for (bound, (late, old)) in bounds.zip(counts) {
        page.row(&CLASSES, vec![bound, json!(late), json!(old)])?;
    }
    Ok(())
}
