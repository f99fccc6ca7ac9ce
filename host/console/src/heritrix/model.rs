//! Jobs in Heritrix's terms: its words for the state of a job, and its figures.

use jiff::Timestamp;
use opilio_control::figures::content_bytes;
use opilio_control::{JobState, Status};
use opilio_crawl::Totals;
use opilio_frontier::Statistics;
use serde_json::{Value, json};

use super::drafts::{CONFIG, Draft};
use crate::overview::KnownJob;

/// A job with its configuration, its state, or both.
pub(super) struct HeritrixJob {
    pub name: String,
    /// Configuration of the job; `None` if the job was not made from one.
    pub draft: Option<Draft>,
    /// State of the job; `None` if the job was not built.
    pub known: Option<KnownJob>,
    pub is_torn_down: bool,
}

/// Contents of a job's files, for its document.
#[derive(Default)]
pub(super) struct Files {
    /// The end of `crawl.log`.
    pub log: Vec<String>,
    /// The names of checkpoints for a launch, the latest first.
    pub checkpoints: Vec<String>,
}

/// The state of a job in Heritrix's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Unbuilt,
    Ready,
    /// Active, with the state of its crawl controller.
    Active(&'static str),
    /// Finished, with its exit status.
    Finished(&'static str),
}

impl Stage {
    /// Returns the stage of a job that was built.
    fn of(state: JobState, is_torn_down: bool) -> Stage {
        let unless_torn_down = |stage| match is_torn_down {
            true => Stage::Unbuilt,
            false => stage,
        };
        match state {
            JobState::New => unless_torn_down(Stage::Ready),
            JobState::Waiting | JobState::Starting => Stage::Active("PREPARING"),
            JobState::Running => Stage::Active("RUNNING"),
            JobState::Pausing => Stage::Active("PAUSING"),
            JobState::Paused => Stage::Active("PAUSED"),
            JobState::Ending => Stage::Active("STOPPING"),
            JobState::Finished => unless_torn_down(Stage::Finished("FINISHED")),
            JobState::Stopped => unless_torn_down(Stage::Finished("ABORTED")),
            JobState::Failed | JobState::Crashed | JobState::Damaged => {
                unless_torn_down(Stage::Finished("ABNORMAL"))
            }
        }
    }

    fn description(self) -> String {
        match self {
            Stage::Unbuilt => "Unbuilt".to_owned(),
            Stage::Ready => "Ready".to_owned(),
            Stage::Active(state) => format!("Active: {state}"),
            Stage::Finished(how) => format!("Finished: {how}"),
        }
    }

    fn controller(self) -> Option<&'static str> {
        match self {
            Stage::Unbuilt => None,
            Stage::Ready => Some("NASCENT"),
            Stage::Active(state) => Some(state),
            Stage::Finished(_) => Some("FINISHED"),
        }
    }
}

impl HeritrixJob {
    pub(super) fn stage(&self) -> Stage {
        match &self.known {
            None => Stage::Unbuilt,
            Some(known) => Stage::of(known.overview.state, self.is_torn_down),
        }
    }

    pub(super) fn is_profile(&self) -> bool {
        self.known.is_none() && self.draft.as_ref().is_some_and(|draft| draft.is_profile)
    }

    /// The actions that are possible now.
    fn actions(&self) -> Vec<&'static str> {
        match self.stage() {
            Stage::Unbuilt if self.is_profile() => vec![],
            Stage::Unbuilt => vec!["build", "launch"],
            Stage::Ready => vec!["launch", "teardown"],
            Stage::Active("RUNNING") => vec!["pause", "checkpoint", "terminate", "teardown"],
            Stage::Active("PAUSED" | "PAUSING") => {
                vec!["unpause", "checkpoint", "terminate", "teardown"]
            }
            Stage::Active("STOPPING") => vec!["teardown"],
            Stage::Active(_) => vec!["terminate", "teardown"],
            Stage::Finished(_) => vec!["teardown"],
        }
    }

    /// The short document in the list of all jobs.
    pub(super) fn short(&self, engine: &str) -> Value {
        let stage = self.stage();
        let url = format!("{engine}/job/{}", self.name);
        let (config, config_url) = match (&self.draft, &self.known) {
            (Some(draft), _) => {
                let file = draft.config();
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                (file.display().to_string(), format!("{url}/jobdir/{name}"))
            }
            (None, Some(known)) => (
                known.directory.join("profile.toml").display().to_string(),
                format!("{url}/jobdir/profile.toml"),
            ),
            (None, None) => (CONFIG.to_owned(), format!("{url}/jobdir/{CONFIG}")),
        };
        let process_record = self
            .known
            .as_ref()
            .and_then(|known| known.process_record.as_ref());
        let launched = process_record.map(|process_record| format!("{:.3}", process_record.began));
        json!({
            "shortName": self.name,
            "key": self.name,
            "url": url,
            "isProfile": self.is_profile(),
            // The number of launches is not stored, only whether there was more than one.
            "launchCount": u8::from(process_record.is_some()),
            "isLaunchInfoPartial": process_record.is_some_and(|process_record| process_record.began != process_record.first_began),
            "lastLaunch": launched,
            "hasApplicationContext": stage != Stage::Unbuilt,
            "statusDescription": stage.description(),
            "crawlControllerState": stage.controller(),
            "crawlExitStatus": match stage {
                Stage::Finished(how) => Some(how),
                _ => None,
            },
            "primaryConfig": config,
            "primaryConfigUrl": config_url,
        })
    }

    /// The whole document of a job.
    pub(super) fn whole(&self, engine: &str, files: &Files) -> Value {
        let stage = self.stage();
        let mut value = self.short(engine);
        let is_active = matches!(stage, Stage::Active(_));
        let Some(whole) = value.as_object_mut() else {
            return value;
        };
        whole.insert("availableActions".to_owned(), json!(self.actions()));
        whole.insert("isRunning".to_owned(), json!(is_active));
        let is_launchable = !self.is_profile() && matches!(stage, Stage::Unbuilt | Stage::Ready);
        whole.insert("isLaunchable".to_owned(), json!(is_launchable));
        whole.insert("jobLogTail".to_owned(), json!([]));
        whole.insert("crawlLogTail".to_owned(), json!(files.log));
        whole.insert("configFiles".to_owned(), json!([]));
        let checkpoints = json!(files.checkpoints);
        whole.insert("checkpointFiles".to_owned(), checkpoints);
        let Some(known) = &self.known else {
            whole.insert("alertCount".to_owned(), json!(0));
            return value;
        };
        let overview = &known.overview;
        whole.insert("alertCount".to_owned(), json!(overview.alerts));
        let path = |file: &str| {
            known
                .directory
                .join("logs")
                .join(file)
                .display()
                .to_string()
        };
        whole.insert("crawlLogFilePath".to_owned(), json!(path("crawl.log")));
        whole.insert("alertLogFilePath".to_owned(), json!(path("alerts.log")));
        if stage == Stage::Unbuilt {
            return value;
        }
        let status = known.status.as_deref();
        let process_record = known.process_record.as_ref();
        let statistics = status
            .map(|status| status.statistics)
            .or(process_record.map(|process_record| process_record.statistics))
            .unwrap_or_default();
        let totals = process_record
            .map(|process_record| process_record.totals)
            .unwrap_or_default();
        for (name, report) in reports(&statistics, &totals, status) {
            whole.insert(name.to_owned(), report);
        }
        let rate = whole.get_mut("rateReport").and_then(Value::as_object_mut);
        if let Some(rate) = rate {
            rate.insert(
                "currentDocsPerSecond".to_owned(),
                json!(overview.uris_per_second),
            );
            let kib = whole_kib(overview.bytes_per_second);
            rate.insert("currentKiBPerSec".to_owned(), json!(kib));
        }
        value
    }
}

fn reports(
    statistics: &Statistics,
    totals: &Totals,
    status: Option<&Status>,
) -> Vec<(&'static str, Value)> {
    let seconds = statistics.run_time.as_secs_f64();
    let over = |count: u64| match seconds > 0.0 {
        #[expect(clippy::cast_precision_loss, reason = "an average")]
        true => count as f64 / seconds,
        false => 0.0,
    };
    let finished = statistics.finished();
    let mut reports = vec![
        (
            "uriTotalsReport",
            json!({
                "downloadedUriCount": finished,
                "queuedUriCount": statistics.queued,
                "totalUriCount": statistics.discovered,
                "futureUriCount": 0,
            }),
        ),
        (
            "sizeTotalsReport",
            // The figures of the crawl report.
            json!({
                "total": totals.responses.bytes,
                "totalCount": totals.responses.uris,
                "novel": totals.novel.bytes,
                "novelCount": totals.novel.uris,
                "notModified": totals.not_modified.bytes,
                "notModifiedCount": totals.not_modified.uris,
                "dupByHash": totals.duplicate.bytes,
                "dupByHashCount": totals.duplicate.uris,
            }),
        ),
        (
            "rateReport",
            json!({
                "averageDocsPerSecond": over(finished),
                "averageKiBPerSec": whole_kib(over(content_bytes(statistics))),
                "currentDocsPerSecond": 0.0,
                "currentKiBPerSec": 0,
            }),
        ),
        (
            "elapsedReport",
            json!({
                "elapsedMilliseconds": u64::try_from(statistics.run_time.as_millis()).unwrap_or(u64::MAX),
                "elapsedPretty": pretty(statistics.run_time.as_secs()),
            }),
        ),
    ];
    let Some(status) = status else {
        return reports;
    };
    reports.push((
        "loadReport",
        json!({
            "busyThreads": status.in_flight.len(),
            "totalThreads": status.in_flight.len(),
        }),
    ));
    if let Some(queues) = &status.census.queues {
        let states = &queues.states;
        let active = states.ready + states.in_process + states.snoozed;
        let inactive = states.inactive + states.frozen;
        reports.push((
            "frontierReport",
            json!({
                "totalQueues": active + inactive + states.ineligible + states.retired + states.exhausted,
                "inProcessQueues": states.in_process,
                "readyQueues": states.ready,
                "snoozedQueues": states.snoozed,
                "activeQueues": active,
                "inactiveQueues": inactive,
                "ineligibleQueues": states.ineligible,
                "retiredQueues": states.retired,
                "exhaustedQueues": states.exhausted,
            }),
        ));
    }
    reports
}

/// Rounds a rate to whole KiB: clients parse integers here and cannot read `0.4`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a rate in KiB a second is far below the bounds"
)]
fn whole_kib(bytes: f64) -> i64 {
    (bytes / 1024.0).round() as i64
}

fn pretty(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours}h{minutes}m{}s", seconds % 60)
}

/// The engine's document, with its jobs.
pub(super) fn engine(jobs_dir: &str, began: Timestamp, jobs: Vec<Value>) -> Value {
    json!({
        "heritrixVersion": concat!("3.4.0 (opilio ", env!("CARGO_PKG_VERSION"), ")"),
        "began": format!("{began:.3}"),
        "jobsDir": jobs_dir,
        "availableActions": ["rescan", "add", "create"],
        "jobs": jobs,
    })
}

/// Formats a value as Heritrix's XML: an element for each name, and `value` for each entry of a list.
pub(super) fn xml(root: &str, value: &Value) -> String {
    let mut text = "<?xml version=\"1.0\" standalone='yes'?>\n\n".to_owned();
    element(&mut text, root, value);
    text.push('\n');
    text
}

fn element(text: &mut String, name: &str, value: &Value) {
    if value.is_null() {
        text.push_str(&format!("<{name}/>"));
        return;
    }
    text.push_str(&format!("<{name}>"));
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                element(text, name, value);
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                element(text, "value", entry);
            }
        }
        Value::String(string) => text.extend(string.chars().map(escaped)),
        other => text.push_str(&other.to_string()),
    }
    text.push_str(&format!("</{name}>"));
}

/// Escapes a character for XML. Logs contain arbitrary characters from servers, and those invalid in XML are replaced.
fn escaped(character: char) -> String {
    match character {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '\n' | '\t' => character.to_string(),
        other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => {
            '\u{fffd}'.to_string()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use opilio_crawl::Amount;

    use super::*;

    #[test]
    fn xml_has_an_element_for_each_name_and_no_invalid_characters() {
        let value = json!({"a": ["x<y & z", "\u{0}"], "b": null, "c": true, "d": {"e": 1}});
        let text = xml("job", &value);
        let (_, body) = text.split_once("\n\n").unwrap_or_default();
        assert_eq!(
            body,
            "<job><a><value>x&lt;y &amp; z</value><value>\u{fffd}</value></a><b/><c>true</c><d><e>1</e></d></job>\n"
        );
    }

    #[test]
    fn rates_in_kib_are_whole_numbers() {
        let mut statistics = Statistics::default();
        statistics.bytes.novel = 6_806_528;
        statistics.run_time = std::time::Duration::from_secs(10);
        let reports = reports(&statistics, &Totals::default(), None);
        let rate = reports.iter().find(|(name, _)| *name == "rateReport");
        let rate = rate.map(|(_, rate)| &rate["averageKiBPerSec"]);
        assert_eq!(rate, Some(&json!(665)));
    }

    #[test]
    fn sizes_distinguish_new_duplicate_and_not_modified_responses() {
        let amount = |uris, bytes| Amount { uris, bytes };
        let totals = Totals {
            responses: amount(9, 600),
            novel: amount(4, 300),
            duplicate: amount(3, 200),
            not_modified: amount(2, 100),
            ..Totals::default()
        };
        let reports = reports(&Statistics::default(), &totals, None);
        let sizes = reports.iter().find(|(name, _)| *name == "sizeTotalsReport");
        let expected = json!({
            "total": 600,
            "totalCount": 9,
            "novel": 300,
            "novelCount": 4,
            "notModified": 100,
            "notModifiedCount": 2,
            "dupByHash": 200,
            "dupByHashCount": 3,
        });
        assert_eq!(sizes.map(|(_, sizes)| sizes), Some(&expected));
    }

    #[test]
    fn every_state_has_a_word_of_heritrix() {
        for (state, is_torn_down, expected) in [
            (JobState::New, false, "Ready"),
            (JobState::New, true, "Unbuilt"),
            (JobState::Waiting, true, "Active: PREPARING"),
            (JobState::Running, false, "Active: RUNNING"),
            (JobState::Paused, false, "Active: PAUSED"),
            (JobState::Ending, true, "Active: STOPPING"),
            (JobState::Finished, false, "Finished: FINISHED"),
            (JobState::Stopped, false, "Finished: ABORTED"),
            (JobState::Crashed, false, "Finished: ABNORMAL"),
            (JobState::Finished, true, "Unbuilt"),
        ] {
            let stage = Stage::of(state, is_torn_down);
            assert_eq!(stage.description(), expected, "{state:?}");
        }
    }
}
