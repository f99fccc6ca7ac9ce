//! Crawl windows: the times at which jobs may crawl. Outside them a crawl is paused, not stopped, so that it resumes at once
//! when a window opens.

use std::fmt;

use jiff::Timestamp;
use opilio_profile::TimeOfDay;
use serde::{Deserialize, Deserializer, de};

/// Times for some jobs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Window {
    /// Names of jobs; `*` stands for any characters.
    pub jobs: Vec<String>,
    /// Parts of the day, such as `"22:00-06:00 Europe/Copenhagen"`.
    pub times: Vec<Time>,
}

/// A part of the day.
#[derive(Clone)]
pub struct Time {
    text: String,
    time: TimeOfDay,
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'d> Deserialize<'d> for Time {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Time, D::Error> {
        let text = String::deserialize(from)?;
        let time = TimeOfDay::parse(&text).map_err(|problem| {
            de::Error::custom(format!(
                "invalid time of day {text:?}: {problem}; an example is \"22:00-06:00 Europe/Copenhagen\""
            ))
        })?;
        Ok(Time { text, time })
    }
}

/// The crawl windows of a job in words; `None` if it may always crawl.
pub(crate) fn words(windows: &[Window], job: &str) -> Option<String> {
    let times: Vec<&str> = of(windows, job).map(|time| time.text.as_str()).collect();
    (!times.is_empty()).then(|| times.join(", "))
}

/// Returns `true` if a job may crawl now: within any of its windows, or if it has none.
pub(crate) fn is_open(windows: &[Window], job: &str, now: Timestamp) -> bool {
    let mut times = of(windows, job).peekable();
    times.peek().is_none() || times.any(|time| time.time.contains(now))
}

fn of<'w>(windows: &'w [Window], job: &'w str) -> impl Iterator<Item = &'w Time> {
    let ours = windows
        .iter()
        .filter(move |window| fits_any(&window.jobs, job));
    ours.flat_map(|window| &window.times)
}

/// Returns `true` if a name fits one of these patterns, in which `*` stands for any characters.
pub(crate) fn fits_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, name))
}

/// Returns `true` if a name fits a pattern in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(head) else {
        return false;
    };
    name.char_indices()
        .map(|(at, _)| at)
        .chain([name.len()])
        .any(|at| fits(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_crawl_within_their_times_and_others_always() {
        let windows: Vec<Window> = serde_json::from_str(
            r#"[{"jobs":["night-*","museum"],"times":["22:00-06:00"]},{"jobs":["museum"],"times":["12:00-13:00"]}]"#,
        )
        .unwrap();
        for (job, time, open) in [
            ("night-1", "23:00:00", true),
            ("night-1", "12:30:00", false),
            ("museum", "12:30:00", true),
            ("museum", "13:00:00", false),
            ("news", "13:00:00", true),
        ] {
            let now = format!("2026-07-01T{time}Z").parse().unwrap();
            assert_eq!(is_open(&windows, job, now), open, "{job} at {time}");
        }
        assert_eq!(words(&windows, "news"), None);
        assert_eq!(
            words(&windows, "museum").unwrap(),
            "22:00-06:00, 12:00-13:00"
        );
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*-2026-*", "dk-2026-07", true),
            ("news", "news-2", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
