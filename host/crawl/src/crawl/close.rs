//! End of a crawl: all files are written and closed, and the summary is made.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use jiff::Timestamp;
use opilio_archive::RepairedFile;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Crawl;
use super::background_tasks::keep_run_time;
use super::handing_over;
use super::observe::RunningObservers;
use crate::archive;
use crate::cookies::Cookies;
use crate::duplicates::Duplicates;
use crate::housekeeping;
use crate::reconcile;
use opilio_job::End;
use opilio_job::events::Occurrence;
use opilio_job::job_state::JobState;
use opilio_job::plugin_report;
use opilio_job::progress::Summary;
use opilio_job::remedy::with_remedy;
use opilio_job::seed_outcome::SeedOutcomes;

/// A crawl that issues no URIs any more. Its files are still open.
pub struct EndedCrawl {
    pub(super) crawl: Crawl,
    pub(super) end: End,
    pub(super) watching: Option<RunningObservers>,
    /// The background tasks end when this sender is dropped.
    pub(super) running: watch::Sender<()>,
    pub(super) beside: Vec<JoinHandle<()>>,
    /// The tasks that hand files over. Each ends after its present file.
    pub(super) handing_over: Vec<JoinHandle<()>>,
}

impl EndedCrawl {
    /// Returns the reason of the end.
    pub fn end(&self) -> &End {
        &self.end
    }

    /// Ends all tasks and closes the archive. `write_reports` is called when all other files are written.
    pub async fn close(self, write_reports: impl FnOnce()) -> Summary {
        let EndedCrawl {
            crawl,
            end,
            watching,
            running,
            beside,
            handing_over,
        } = self;
        let context = crawl.context.clone();
        if let Some(watching) = watching {
            watching.finish(&context.plugins.observers).await;
        }
        context.network.browsers.close().await;
        drop(running);
        for task in beside {
            if let Err(panic) = task.await {
                tracing::error!("{panic}");
            }
        }
        let mut summary = crawl.close(end, write_reports);
        summary.handovers = handing_over::finish(&context, &summary.end, handing_over).await;
        context.send_event(|| Occurrence::Job {
            state: JobState::after(&summary.end).name().to_owned(),
            reason: Some(summary.outcome()),
        });
        let notifier = context
            .alerts
            .notifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(notifier) = notifier {
            notifier.finish().await;
        }
        if let Some(events) = context.alerts.events.get() {
            for (receiver, lost) in events.finish().await {
                let message = format!("{lost} events were lost");
                context.job_log.crawl(&receiver, &message);
            }
        }
        summary
    }
}

impl Crawl {
    fn close(self, end: End, write_reports: impl FnOnce()) -> Summary {
        let plugins = self.context.plugins_seen();
        // The first reason is the cause. Later failures are consequences of it.
        let mut end = end;
        let mut halt = |problem: String| {
            if !matches!(end, End::Halted(_)) {
                end = End::Halted(problem);
            }
        };
        self.save_cookies();
        housekeeping::finish(&self.context, self.job.directory());
        self.context.alerts.board.write();
        let kept = keep_run_time(&self.context, self.began).and_then(|()| {
            let prices = self.context.budget().all_prices(Timestamp::now());
            let mut frontier = self.context.frontier();
            frontier.put_caller_values(&prices)?;
            frontier.persist()
        });
        // The run time of this process is in the statistics now.
        let progress = self.view().progress();
        if let Err(problem) = kept {
            halt(opilio_stacks::chain(&problem));
        }
        if let Err(problem) = plugin_report::write(self.job.directory(), &plugins) {
            let folder = self.job.directory().join("reports");
            halt(format!("cannot write {}: {problem}", folder.display()));
        }
        if let Some(Err(problem)) = self
            .context
            .outputs
            .duplicates
            .as_ref()
            .map(Duplicates::persist)
        {
            halt(opilio_stacks::chain(&problem));
        }
        let closed = self.context.outputs.writers.finish();
        let (made_good, left) = self.context.outputs.writers.finish_left();
        let mut warcs = closed.unwrap_or_else(|problem| {
            tracing::warn!("{}", with_remedy(&problem));
            Vec::new()
        });
        warcs.extend(made_good.iter().flat_map(RepairedFile::files).cloned());
        if let Some(problem) = left {
            halt(with_remedy(&problem));
        }
        if let Err(problem) = self.context.schedule_lost(&made_good) {
            halt(with_remedy(&problem));
        }
        self.complete(&end);
        let outcomes = || {
            self.seed_outcomes().unwrap_or_else(|problem| {
                tracing::error!("{}", opilio_stacks::chain(&problem));
                SeedOutcomes::default()
            })
        };
        let mut seeds = None;
        if end == End::Finished {
            let found = outcomes();
            if found.is_total_failure() {
                end = End::NoSeedFetched(found.failure_words());
            }
            seeds = Some(found);
        }
        let mut process_record = self
            .process_record
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let statistics = self.context.frontier().statistics();
        let totals = self.context.figures.ledger.totals();
        if let Err(problem) = process_record.end(self.job.directory(), statistics, totals, &end) {
            tracing::error!("cannot write process.json: {problem}");
        }
        drop(process_record);
        // There may be a million seeds, and a system that shuts down kills the process after a short time.
        if !matches!(end, End::Finished | End::NoSeedFetched(_) | End::Terminated) {
            seeds = Some(outcomes());
        }
        // The reports contain the reason of the end.
        write_reports();
        self.log.crawl("end", &end.to_string());
        Summary {
            end,
            seeds,
            progress,
            warcs,
            job: self.job.directory().to_owned(),
            warc_directory: self
                .job
                .directory()
                .join(&self.context.profile.archive.directory),
            logs: self
                .job
                .directory()
                .join(&self.context.profile.logs.directory),
            plugins: plugins.into_iter().map(|seen| seen.report).collect(),
            handovers: Vec::new(),
        }
    }

    /// Writes data that is missing because of failed writes: indexes, and log lines of captures.
    fn complete(&self, end: &End) {
        let context = &self.context;
        let Ok(config) = archive::writer_config(&context.profile, self.job.directory()) else {
            return;
        };
        archive::complete_indexes(&config);
        if !matches!(end, End::Halted(_)) {
            return;
        }
        let process_record = self
            .process_record
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let suspects = reconcile::suspects(Some(&process_record), std::iter::empty(), &config);
        drop(process_record);
        self.complete_log(suspects.unwrap_or_default());
    }

    /// Writes the missing `crawl.log` lines of captures in these files. A failure does not stop the crawl.
    pub(super) fn complete_log(&self, files: Vec<PathBuf>) {
        let context = &self.context;
        let logs = &context.profile.logs;
        let directory = self.job.directory();
        let of_job = |file: &Path| file.starts_with(directory);
        let place = directory.join(&logs.directory);
        let unlogged = reconcile::UnloggedCaptures {
            files,
            logs: &place,
            of_job: &of_job,
            with_extra: logs.extra_info,
        };
        match unlogged.complete(&context.outputs.logs) {
            Ok(0) => {}
            Ok(count) => {
                let message = format!("wrote {count} missing lines from the archive");
                self.log.crawl("crawl.log", &message);
            }
            Err(problem) => tracing::warn!(
                "crawl.log may lack lines: {problem}; run `opilio job verify JOB --repair` when the job has ended"
            ),
        }
    }

    /// Writes the job's cookies to the file that the profile names.
    fn save_cookies(&self) {
        let context = &self.context;
        let Some(name) = &context.profile.settings().cookies.save else {
            return;
        };
        let file = self.job.directory().join(name);
        if let Err(problem) = Cookies::save(&context.frontier, &file, Timestamp::now()) {
            let problem = opilio_stacks::chain(&problem);
            tracing::warn!("cannot save cookies to {}: {problem}", file.display());
        }
    }
}
