//! Creates and starts the jobs of the calendar when they are due.

use jiff::Timestamp;
use opilio_crawl::ProcessRecord;

use super::Supervisor;
use crate::calendar::{CalendarEntry, Due};
use crate::folder::{JobsFolderError, NewJob};
use crate::orders::Orders;

impl Supervisor {
    /// Creates a job of the calendar, and orders its start.
    async fn make(&self, entry: &CalendarEntry, due: &Due) -> Result<(), String> {
        let (job, by) = (due.job.as_str(), format!("calendar {}", entry.name));
        let (daemon, name) = (self.daemon.clone(), entry.profile.clone());
        let profile = tokio::task::spawn_blocking(move || daemon.profile(&name)).await;
        let profile = profile.map_err(|panic| panic.to_string())?;
        let profile = profile.map_err(|problem| problem.detail().to_owned())?;
        let new = NewJob {
            name: job.to_owned(),
            profile,
            seeds: entry.seeds.clone(),
            contact_url: None,
        };
        let folder = self.daemon.folder.clone();
        let made = tokio::task::spawn_blocking(move || folder.make(new)).await;
        match made {
            Ok(Ok(_)) => {}
            // A job that a daemon created before it died is started too. A job that was made by other means is left alone.
            Ok(Err(JobsFolderError::Taken(_))) => {
                let directory = self.daemon.folder.path().join(job);
                let orders = Orders::read(&directory).ok().flatten();
                if orders.is_some_and(|orders| orders.by == by && orders.since >= due.at) {
                    return Ok(());
                }
                if !matches!(ProcessRecord::read(&directory), Ok(None)) {
                    return Err("a job of this name exists and was started before".to_owned());
                }
            }
            Ok(Err(problem)) => return Err(problem.to_string()),
            Err(panic) => return Err(panic.to_string()),
        }
        self.daemon
            .order(job, |orders| *orders = Orders::new(true, &by));
        Ok(())
    }

    /// Creates and starts the due jobs of the calendar. Failures are retried within the time limit for missed occurrences.
    pub(super) async fn create_calendar_jobs(&mut self, now: Timestamp) {
        let before = self.handled.clone();
        for entry in self.daemon.config.calendar.clone() {
            let since = self.handled.since(&entry.name, now);
            let Some(due) = entry.due(since, now) else {
                if self.calendar_errors.remove(&entry.name).is_some() {
                    tracing::error!(
                        entry = entry.name,
                        "the job is skipped: it could not be created for a day"
                    );
                    self.daemon.calendar_problem(&entry.name, None);
                }
                continue;
            };
            match self.make(&entry, &due).await {
                Ok(()) => {
                    self.handled.done(&entry.name, due.at);
                    self.calendar_errors.remove(&entry.name);
                    self.daemon.calendar_problem(&entry.name, None);
                    tracing::info!(entry = entry.name, job = due.job, "made");
                }
                Err(problem) => {
                    let problem = format!("cannot create job {}: {problem}", due.job);
                    if self.calendar_errors.get(&entry.name) != Some(&problem) {
                        tracing::error!(entry = entry.name, "{problem}");
                        self.daemon
                            .calendar_problem(&entry.name, Some(problem.clone()));
                        self.calendar_errors.insert(entry.name.clone(), problem);
                    }
                }
            }
        }
        if before != self.handled
            && let Err(problem) = self
                .handled
                .write(&self.daemon.config.own().join("calendar.json"))
        {
            tracing::error!("cannot write calendar.json: {problem}");
        }
    }
}
