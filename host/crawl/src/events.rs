//! Events of a running crawl, for the webhooks and streams of its profile.

use std::io;

use jiff::Timestamp;
use opilio_job::crawl_log::CrawlLogLine;
use opilio_job::directory::name_of;
use opilio_job::events::{CrawlEvent, Occurrence};
use opilio_profile::EventKind;

use crate::context::CrawlContext;

impl CrawlContext {
    /// Sends an event to the webhooks and streams of the profile, if there are any.
    pub(crate) fn send_event(&self, what: impl FnOnce() -> Occurrence) {
        if let Some(events) = self.alerts.events.get().filter(|events| !events.is_empty()) {
            events.send(&CrawlEvent {
                at: Timestamp::now(),
                job: name_of(&self.job),
                profile: Some(self.profile.name.clone()),
                what: what(),
            });
        }
    }

    /// Logs a finished URI in `crawl.log`.
    pub(crate) fn log_visit(&self, line: &CrawlLogLine) -> io::Result<()> {
        self.outputs.logs.crawl(line)?;
        let events = self.alerts.events.get();
        if events.is_some_and(|events| events.wants(EventKind::Capture)) {
            let line = line.as_json();
            self.send_event(|| Occurrence::Capture { line });
        }
        Ok(())
    }
}
