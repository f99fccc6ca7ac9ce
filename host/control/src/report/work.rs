//! Reports on work: plugins, and fetches in flight.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::page::{Column, Page};
use crate::{ControlError, JobAdmin};
use opilio_job::plugin_report::{self, plugin_table};

/// Maximum number of URIs in flight that the report lists. A profile may have more workers.
const IN_FLIGHT_MAX: usize = 10_000;

const THREADS: [Column; 6] = [
    ("worker", "worker"),
    ("step", "step"),
    ("step-seconds", "step_s"),
    ("since", "since"),
    ("seconds", "elapsed_s"),
    ("uri", "uri"),
];

impl JobAdmin<'_> {
    pub(super) fn processors_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        let plugins = match self.running {
            Some(running) => running.context.plugin_reports(),
            None => plugin_report::read(self.job)
                .map_err(|(file, problem)| ControlError::file(&file, &problem))?
                .unwrap_or_default(),
        };
        page.words(&plugin_table(&plugins))?;
        for plugin in plugins {
            let Value::Object(row) = serde_json::to_value(plugin).unwrap_or_default() else {
                continue;
            };
            page.object(row)?;
        }
        Ok(())
    }

    pub(super) fn threads_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        let (in_flight, slow) = match self.running {
            Some(running) => (running.live.in_flight(IN_FLIGHT_MAX), running.live.slow()),
            None => (Vec::new(), 0),
        };
        let (workers, at_work) = (self.profile.workers, in_flight.len());
        let idle = workers.saturating_sub(at_work.saturating_sub(slow));
        page.facts(&[
            ("workers", "workers", workers.into()),
            ("at work", "at_work", at_work.into()),
            ("slow", "slow", slow.into()),
            ("idle", "idle", idle.into()),
        ])?;
        page.head(&THREADS);
        let now = Timestamp::now();
        let seconds = |since: Timestamp| {
            let seconds = (now - since).total(jiff::Unit::Second).unwrap_or(0.0);
            json!((seconds.max(0.0) * 10.0).round() / 10.0)
        };
        for flight in in_flight {
            let row = vec![
                flight.worker.into(),
                flight.step.name().into(),
                seconds(flight.step_since),
                json!(flight.since),
                seconds(flight.since),
                flight.uri.into(),
            ];
            page.row(&THREADS, row)?;
        }
        Ok(())
    }
}
