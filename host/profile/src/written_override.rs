//! Overrides as texts: conditions and settings, read from a profile or from a change of a job's settings. Operators list, edit and
//! preview them. [`crate::overrides`] has the overrides that are ready for matching.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::catalogue::{SettingInText, of_text};
use crate::document::{Document, in_override};
use crate::effective::UriContext;
use crate::explain::{Origin, leaves, origin};
use crate::matching::{MatchFile, Subject};
use crate::profile::Profile;
use crate::queue_name;
use crate::schema_check::toml_text;

/// Minutes of a day.
const DAY_MINUTES: i64 = 24 * 60;

/// An override as it is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WrittenOverride {
    /// Its conditions.
    pub matching: MatchFile,
    /// Its settings, in the order of their names.
    pub settings: Vec<SettingInText>,
}

impl WrittenOverride {
    /// Reads the overrides of a text. Parts that are not TOML or not an override are left out; the check of the text reports them.
    pub fn read(text: &str) -> Vec<Self> {
        let (document, _) = Document::parse("", text);
        let overrides = document.value.get("override").and_then(Value::as_array);
        let tables = overrides.into_iter().flatten().filter_map(Value::as_object);
        tables.zip(0..).map(|(one, at)| Self::of(one, at)).collect()
    }

    fn of(table: &Map<String, Value>, number: u32) -> Self {
        let mut table = table.clone();
        let matching = table.remove("match").unwrap_or_default();
        let mut settings = Vec::new();
        leaves(&Value::Object(table), "", &mut |pointer, value| {
            let at = in_override(number, pointer);
            settings.push(of_text(&at, pointer, value, true));
        });
        Self {
            matching: MatchFile::deserialize(matching).unwrap_or_default(),
            settings,
        }
    }

    /// Formats the override as a profile has it, with one line for each setting.
    pub fn toml(&self) -> String {
        let lines = self.settings.iter();
        let lines = lines.map(|one| format!("{} = {}\n", dotted_key(one), one.toml));
        let lines: String = lines.collect();
        format!("[[override]]\n{}\n{lines}", self.matching.toml())
    }
}

/// Formats the name of a setting as TOML writes it: `plugins.x.settings."example.org"`.
pub fn dotted_key(setting: &SettingInText) -> String {
    let keys = setting.pointer.split('/').skip(1);
    let keys = keys.map(|key| toml_key(&key.replace("~1", "/").replace("~0", "~")));
    keys.collect::<Vec<_>>().join(".")
}

/// A key as TOML writes it in a dotted name.
fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => toml_text(&Value::from(key)),
    }
}

impl Profile {
    /// The overrides in the order in which they apply, with their places. The last one that matches wins, for each setting
    /// separately.
    pub fn written_overrides(&self) -> Vec<(Origin, WrittenOverride)> {
        let written = self.written_with(&[], &[]);
        let overrides = written.get("override").and_then(Value::as_array);
        let tables = overrides.into_iter().flatten().filter_map(Value::as_object);
        let listed = tables.zip(0..).map(|(one, number)| {
            let place = origin(self.document(), &in_override(number, ""), &[]);
            (place, WrittenOverride::of(one, number))
        });
        listed.collect()
    }

    /// Returns `true` if the override with this number, from 0, matches a URI.
    pub fn override_matches(&self, number: usize, context: &UriContext<'_>) -> bool {
        let queue = self.queue_name(context.uri);
        self.overrides.matches(
            number,
            &Subject {
                uri: Some(context.uri.as_str()),
                queue: Some(queue_name::key_in(&queue)),
                source: context.source,
                media_type: context.media_type,
                now: context.now,
                ..Subject::of_uri(context.uri)
            },
        )
    }

    /// The next moment from `now` on, in steps of a minute, at which the override with this number applies: `now` unless it has a
    /// time of day.
    pub fn override_moment(&self, number: usize, now: Timestamp) -> Timestamp {
        let minutes = (0..DAY_MINUTES).filter_map(|minutes| {
            let later = SignedDuration::from_mins(minutes);
            now.checked_add(later).ok()
        });
        let mut moments = minutes.filter(|at| self.overrides.is_time_of(number, *at));
        moments.next().unwrap_or(now)
    }

    /// Returns `true` if a URI, or its queue, has other settings in `other`.
    pub fn differs_for(&self, other: &Profile, context: &UriContext<'_>) -> bool {
        let resolved = |profile: &Profile| {
            let (of_uris, of_queues) = profile.matching(context);
            profile.resolve(of_uris, of_queues)
        };
        resolved(self) != resolved(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_written_as_it_was_read() {
        let text = "[[override]]\nmatch = { host = [\"a.org\"], port = [8080] }\n\
            fetch.headers.\"X Team\" = \"a \\\"b\\\"\"\npoliteness.min-delay = \"10s\"\n\
            stacks.scope.after = [\"a\", \"b\"]\n";
        let read = WrittenOverride::read(text);
        assert_eq!(read[0].toml(), text);
        let table = "[[override]]\nmatch.host = 'a.org'\n[[override]]\nmatch.host = ['b.org']\n\
            [override.politeness]\nmin-delay = '1s'\nmax-delay = '2s'\n";
        let read = WrittenOverride::read(table);
        assert!(read[0].settings.is_empty());
        assert_eq!(
            read[1].toml(),
            "[[override]]\nmatch = { host = [\"b.org\"] }\npoliteness.max-delay = \"2s\"\n\
                politeness.min-delay = \"1s\"\n"
        );
    }
}
