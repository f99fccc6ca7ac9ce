//! URIs that a change of an override affects. Operators see them before the change is made (`--dry-run`), and in its result.

use jiff::Timestamp;
use opilio_frontier::{UriRecord, UriState};
use opilio_job::transfer::Selection;
use opilio_profile::{Profile, SettingExplanation, UriContext};
use opilio_uri::Uri;

use super::answer::{Respond, listened};
use super::{CommandResponse, ControlError, JobAdmin, TouchedUri, TouchedUris, TouchedValue};

/// Maximum number of URIs that a preview examines, which takes some seconds.
pub(super) const PREVIEWED_MAX: u64 = 200_000;

/// Maximum number of URIs that are examined when a change is saved. It is lower, because other changes wait meanwhile.
pub(super) const SAVED_MAX: u64 = 20_000;

/// Number of URIs after which the progress is reported.
const PROGRESS_STEP: u64 = 10_000;

/// Maximum number of examples.
const EXAMPLES_MAX: usize = 5;

/// Change of an override.
pub(super) struct TouchedBy<'t> {
    /// Profile with the change.
    pub(super) after: &'t Profile,
    /// Number of the override in the present profile; `None` if the change adds it.
    pub(super) number_before: Option<usize>,
    /// Number of the override in the profile with the change; `None` if the change removes it.
    pub(super) number_after: Option<usize>,
    /// Maximum number of URIs that are examined.
    pub(super) examined_max: u64,
}

impl JobAdmin<'_> {
    /// Finds the URIs that a change of an override touches. Reads the store's present state without locking the frontier.
    pub(super) fn touched(
        &self,
        by: &TouchedBy<'_>,
        respond: Respond<'_>,
    ) -> Result<TouchedUris, ControlError> {
        let before = self.profile;
        let sides = [(&**before, by.number_before), (by.after, by.number_after)];
        let sides: Vec<(&Profile, usize)> = sides
            .into_iter()
            .filter_map(|(profile, number)| Some((profile, number?)))
            .collect();
        let now = Timestamp::now();
        let moment = sides.last().map_or(now, |(profile, number)| {
            profile.override_moment(*number, now)
        });
        let mut found = TouchedUris {
            examined: 0,
            stopped: false,
            matched: 0,
            queued: 0,
            changed: 0,
            at: moment,
            examples: Vec::new(),
        };
        let mut unchanged = Vec::new();
        for prefix in key_prefixes(&sides) {
            let records = self.frontier().records_behind(&prefix, "");
            for record in records {
                if found.examined == by.examined_max {
                    found.stopped = true;
                    break;
                }
                found.examined += 1;
                if found.examined.is_multiple_of(PROGRESS_STEP) {
                    listened(respond(CommandResponse::Progress {
                        examined: found.examined,
                        meant: found.matched,
                    }))?;
                }
                let (_, record) = record?;
                let Ok(uri) = Uri::parse(&record.uri) else {
                    continue;
                };
                let context = context(&uri, &record, moment);
                let mut sides = sides.iter();
                if !sides.any(|(profile, number)| profile.override_matches(*number, &context)) {
                    continue;
                }
                let is_queued = matches!(record.state, UriState::Queued { .. });
                found.matched += 1;
                found.queued += u64::from(is_queued);
                let differs = before.differs_for(by.after, &context);
                found.changed += u64::from(differs);
                let examples = match differs {
                    true => &mut found.examples,
                    false => &mut unchanged,
                };
                if examples.len() < EXAMPLES_MAX {
                    let changes = match differs {
                        true => changes(before, by.after, &context),
                        false => Vec::new(),
                    };
                    examples.push(TouchedUri {
                        uri: record.uri.clone(),
                        is_queued,
                        changes,
                    });
                }
            }
        }
        found.examples.extend(unchanged);
        found.examples.truncate(EXAMPLES_MAX);
        Ok(found)
    }
}

/// Returns the key prefixes of all records that can match. No prefix contains another one.
fn key_prefixes(sides: &[(&Profile, usize)]) -> Vec<String> {
    let mut keys = Vec::new();
    for (profile, number) in sides {
        let overrides = profile.written_overrides();
        let matching = overrides.get(*number).map(|(_, one)| &one.matching);
        match matching.and_then(|matching| matching.surt_prefixes()) {
            None => keys.push(String::new()),
            Some(prefixes) => {
                let key = |prefix: &String| Selection::new(prefix, None).key_prefix().to_owned();
                keys.extend(prefixes.iter().map(key));
            }
        }
    }
    keys.sort();
    keys.dedup_by(|later, earlier| later.starts_with(earlier.as_str()));
    keys
}

fn context<'c>(uri: &'c Uri, record: &'c UriRecord, moment: Timestamp) -> UriContext<'c> {
    UriContext {
        source: record.source.as_deref(),
        media_type: Some(&*record.media_type).filter(|known| !known.is_empty()),
        now: Some(moment),
        ..UriContext::of(uri)
    }
}

/// Settings of a URI that differ between two profiles.
fn changes(before: &Profile, after: &Profile, context: &UriContext<'_>) -> Vec<TouchedValue> {
    let (before, after) = (before.explain_with(context), after.explain_with(context));
    let value_in = |of: &[SettingExplanation], key: &str| {
        let found = of.iter().find(|one| one.key == key);
        found.map(SettingExplanation::toml)
    };
    let now = after.iter().map(|one| TouchedValue {
        before: value_in(&before, &one.key),
        after: Some(one.toml()),
        key: one.key.clone(),
    });
    let gone = before
        .iter()
        .filter(|one| value_in(&after, &one.key).is_none());
    let gone = gone.map(|one| TouchedValue {
        before: Some(one.toml()),
        after: None,
        key: one.key.clone(),
    });
    now.chain(gone)
        .filter(|one| one.before != one.after)
        .collect()
}
