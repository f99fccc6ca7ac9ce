//! Reports on the calls of plugins, and reports of observers.

use opilio_sandbox::Report;

use super::answer::{Respond, listened};
use super::{CommandResponse, ControlError, ErrorKind, JobAdmin};
use opilio_crawl::observers;
use opilio_job::plugin_report;

impl JobAdmin<'_> {
    /// Sends the report on each plugin's calls by the process that runs the job, or by the last one.
    pub(super) fn plugins(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let plugins = match self.running {
            Some(running) => running.context.plugin_reports(),
            None => plugin_report::read(self.job)
                .map_err(|(file, problem)| ControlError::file(&file, &problem))?
                .ok_or_else(|| self.nothing("has written statistics of its plugins"))?,
        };
        respond(CommandResponse::Plugins { plugins });
        Ok(String::new())
    }

    /// Sends the reports of one observer or of all: the present ones, or those from the end of the last process.
    pub(super) fn observe(
        &self,
        name: Option<&str>,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let known = self.profile.settings().stacks.observe.clone();
        if let Some(name) = name
            && !known.iter().any(|known| known == name)
        {
            let problem = match known.is_empty() {
                true => {
                    "the job has no observers (stacks.observe in its profile names them)".into()
                }
                false => format!(
                    "observer {name:?} not found; observers: {}",
                    known.join(", ")
                ),
            };
            return Err(ControlError::new(ErrorKind::Request, problem));
        }
        let meant = known
            .iter()
            .filter(|known| name.is_none_or(|name| name == *known));
        for observer in meant {
            for report in self.reports(observer)? {
                let heard = respond(CommandResponse::Report {
                    observer: observer.clone(),
                    file: report.file,
                    content: report.content,
                });
                listened(heard)?;
            }
        }
        Ok(String::new())
    }

    fn reports(&self, observer: &str) -> Result<Vec<Report>, ControlError> {
        let Some(running) = self.running else {
            return observers::written(self.job, observer)
                .map_err(|(file, problem)| ControlError::file(&file, &problem));
        };
        match running.context.plugins.observers.report(observer) {
            Some(Ok(reports)) => Ok(reports),
            Some(Err(problem)) => Err(ControlError::new(ErrorKind::Failure, problem)),
            None => Err(ControlError::new(
                ErrorKind::State,
                "the crawl is starting or ending; try again",
            )),
        }
    }

    fn nothing(&self, what: &str) -> ControlError {
        ControlError::new(
            ErrorKind::State,
            format!(
                "no process runs job {}, and no earlier process {what}",
                self.job.display()
            ),
        )
    }
}
