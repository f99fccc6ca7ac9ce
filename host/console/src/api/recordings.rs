//! Recorded plugin calls of a job, mainly failed ones, with the error and the command that repeats the call. The recording itself
//! is a file of the job, which [`super::files`] sends.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::job_folders::{RECORDINGS, names, places, plain_file};
use super::jobs::blocking;
use super::{Shared, checked_limit, page};
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// Selection of recordings.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordingsWanted {
    /// Select calls of this plugin, by its name in the profile.
    plugin: Option<String>,
    /// Maximum number of recordings.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Recordings of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Recordings {
    /// Recordings, newest first.
    recordings: Vec<RecordedCall>,
    /// Number of recordings, with those beyond the limit.
    total: usize,
}

/// Recorded plugin call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordedCall {
    /// Name of the file, of kind `recording`.
    file: String,
    /// Time of the call.
    at: Timestamp,
    /// Name of the plugin in the profile.
    plugin: String,
    /// Version of the plugin.
    version: String,
    /// SHA-256 of the component, in hexadecimal.
    component_sha256: String,
    /// Name of the call, such as `extract`.
    call: String,
    /// URI or queue of the call.
    subject: Option<String>,
    /// Error of the call. Not set if the plugin answered.
    error: Option<PluginError>,
    /// Command that repeats the call. It is for the folder of the job, and for `opilio` on the machine of the daemon.
    replay: String,
}

/// Error of a plugin call.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct PluginError {
    /// Kind of the error: `trap`, `timeout`, `memory`, `output`, `nonsense` or `instantiate`.
    kind: String,
    /// Message of the plugin or of the host.
    message: String,
    /// Frames of the plugin, innermost first.
    #[serde(default)]
    backtrace: Vec<String>,
    /// Log lines of the call.
    #[serde(default)]
    log: Vec<String>,
}

/// The parts of a recording that are shown. Documents and answers are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Head {
    at: Timestamp,
    instance: String,
    version: String,
    component_sha256: String,
    call: BTreeMap<String, IgnoredAny>,
    #[serde(default)]
    subject: Option<String>,
    outcome: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Answer(IgnoredAny),
    Fault(PluginError),
}

/// Lists recorded plugin calls, mainly failed ones, newest first.
#[utoipa::path(get, path = "/jobs/{job}/recordings", operation_id = "list_recordings", tag = "watch", params(("job" = String, Path, description = "Name of the job"), RecordingsWanted), responses((status = 200, body = Recordings)))]
pub(crate) async fn list(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
    Params(RecordingsWanted { plugin, limit }): Params<RecordingsWanted>,
) -> Result<Json<Recordings>, Problem> {
    let directory = daemon.directory(&job)?;
    let limit = usize::try_from(checked_limit(limit)?).unwrap_or(usize::MAX);
    let found = blocking(move || {
        places(&directory)?;
        of_job(&directory, plugin.as_deref(), limit)
    });
    Ok(Json(found.await?))
}

fn of_job(job: &Path, plugin: Option<&str>, limit: usize) -> Result<Recordings, Problem> {
    let folder = job.join(RECORDINGS);
    let mut files = names(&folder, std::fs::FileType::is_file)?;
    // The name of a recording begins with the name of the plugin.
    let is_wanted = |name: &str| match plugin {
        Some(plugin) => name
            .strip_prefix(plugin)
            .is_some_and(|rest| rest.starts_with('.')),
        None => true,
    };
    files.retain(|name| name.ends_with(".json") && is_wanted(name));
    let total = files.len();
    files.sort_by_cached_key(|name| {
        let written = folder.join(name).symlink_metadata();
        Reverse(written.and_then(|it| it.modified()).ok())
    });
    let recordings = files.into_iter().filter_map(|name| {
        // Missing files and files that are not recordings are not listed.
        let file = File::open(plain_file(&folder, &name)?).ok()?;
        let head: Head = serde_json::from_reader(BufReader::new(file)).ok()?;
        Some(RecordedCall::new(name, head))
    });
    Ok(Recordings {
        recordings: recordings.take(limit).collect(),
        total,
    })
}

impl RecordedCall {
    fn new(file: String, head: Head) -> Self {
        Self {
            replay: format!("opilio plugin replay {RECORDINGS}/{file}"),
            file,
            at: head.at,
            plugin: head.instance,
            version: head.version,
            component_sha256: head.component_sha256,
            call: head.call.into_keys().next().unwrap_or_default(),
            subject: head.subject,
            error: match head.outcome {
                Outcome::Answer(_) => None,
                Outcome::Fault(error) => Some(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn recording(instance: &str, outcome: &str) -> String {
        format!(
            "{{\"format\": \"opilio-recording-1\", \"at\": \"2026-11-26T12:00:00Z\", \"subject\": \"http://a.example/\", \
             \"plugin\": \"links\", \"instance\": \"{instance}\", \"version\": \"0.1.0\", \"component\": \"./links.wasm\", \
             \"component-sha256\": \"ab\", \"contract\": \"0.2.0\", \"opilio\": \"0.1.0\", \"limits\": {{}}, \
             \"call\": {{\"extract\": {{\"documents\": [{{\"text\": \"a page\"}}]}}}}, \"outcome\": {outcome}}}"
        )
    }

    #[test]
    fn a_plugins_recordings_are_listed_with_errors_and_the_command() {
        let job = tempfile::tempdir().unwrap();
        assert_eq!(of_job(job.path(), None, 9).unwrap().total, 0);
        let folder = job.path().join(RECORDINGS);
        std::fs::create_dir(&folder).unwrap();
        let fault = "{\"fault\": {\"kind\": \"trap\", \"message\": \"no headline\", \"backtrace\": [\"extract\"]}}";
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
        write(
            "stories.extract.a.12345678.json",
            recording("stories", fault),
        );
        write(
            "stories-2.extract.a.12345678.json",
            recording("stories-2", "{\"answer\": [{}]}"),
        );
        write("stories.extract.b.json", "not a recording".to_owned());
        write("stories.extract.c.new", recording("stories", fault));

        let found = of_job(job.path(), Some("stories"), 9).unwrap();
        let [call] = found.recordings.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(
            (call.call.as_str(), call.plugin.as_str()),
            ("extract", "stories")
        );
        assert_eq!(call.subject.as_deref(), Some("http://a.example/"));
        assert_eq!(call.error.as_ref().unwrap().message, "no headline");
        assert_eq!(
            call.replay,
            "opilio plugin replay recordings/stories.extract.a.12345678.json"
        );
        let all = of_job(job.path(), None, 9).unwrap();
        assert_eq!((all.total, all.recordings.len()), (3, 2));
        assert!(all.recordings.iter().any(|call| call.error.is_none()));
        assert_eq!(of_job(job.path(), None, 1).unwrap().recordings.len(), 1);
    }
}
