//! Overrides of a job: list them, and add, change, move and remove live ones. `touched.rs` finds the URIs that a change would
//! touch.
//!
//! Overrides of the profile are fixed. They come first. Live overrides are those that operators have made since
//! ([`opilio_job::overrides`]); the last one that matches wins.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use opilio_job::history::{self, Change, Changed, OverrideAction};
use opilio_job::overrides::{self, LiveOverride};
use opilio_job::profile::TrialChange;
use opilio_profile::{MatchFile, Origin, SettingInText, WrittenOverride, dotted_key, toml_value};

use super::answer::{Respond, listened};
use super::settings::{Plugins, SetRequest, words_of};
use super::submitted_change::{NAME, SubmittedChange};
use super::touched::{self, TouchedBy};
use super::{
    Author, ChangedSettings, CommandResponse, ControlError, Effect, ErrorKind, JobAdmin,
    ListedOverride, OverrideChange, OverrideSetting, SettingChanged, changing,
};

/// Change of the live overrides, before it is checked.
struct Revision {
    /// Live overrides before the change.
    before: Vec<LiveOverride>,
    /// Live overrides with the change. The text of a new or changed one is checked under the name of the change.
    after: Vec<LiveOverride>,
    /// Number of the affected override; 0 for a new one.
    id: u64,
    action: OverrideAction,
    changed: Vec<SettingChanged>,
    /// Settings that the operator has written.
    settings_in_text: Vec<SettingInText>,
    /// The same as the operator has written them.
    arguments: Vec<String>,
}

impl JobAdmin<'_> {
    /// Lists the overrides.
    pub(super) fn overrides(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let live = self.live_overrides()?;
        let all = self.profile.written_overrides();
        let fixed = all.len().saturating_sub(live.len());
        for (number, (place, written)) in all.into_iter().enumerate() {
            let one = number.checked_sub(fixed).and_then(|at| live.get(at));
            let (file, line) = match place {
                Origin::Written { file, line } => (file, line),
                Origin::Default => (String::new(), 0),
            };
            let settings = written.settings.iter().map(|one| OverrideSetting {
                key: dotted_key(one),
                toml: one.toml.clone(),
                effect: Effect::of(&one.pointer),
            });
            listened(respond(CommandResponse::Override(Box::new(
                ListedOverride {
                    id: one.map(|one| one.id),
                    file,
                    line,
                    settings: settings.collect(),
                    matching: written.matching.conditions(),
                    by: one.map(|one| one.by.clone()),
                    at: one.map(|one| one.at),
                    reason: one.and_then(|one| one.reason.clone()),
                },
            ))))?;
        }
        Ok(String::new())
    }

    /// Makes a change of settings: of an override, or of the whole job.
    pub(super) fn set(
        &self,
        request: &SetRequest<'_>,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        if request.set.is_empty() {
            return Err(ControlError::new(
                ErrorKind::Request,
                "no settings given; give at least one key = value",
            ));
        }
        let text = changing(request.set, request.matching);
        let settings_in_text = opilio_profile::settings_in_text(&text);
        match settings_in_text.iter().any(|one| one.in_override) {
            true => self.add_override(&text, &settings_in_text, request, by, respond),
            false => self.set_in_job(&text, &settings_in_text, request, by, respond),
        }
    }

    /// Adds the override that a change of settings consists of.
    fn add_override(
        &self,
        text: &str,
        settings_in_text: &[SettingInText],
        request: &SetRequest<'_>,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let written = WrittenOverride::read(text);
        if written.len() != 1 || !settings_in_text.iter().all(|one| one.in_override) {
            return Err(ControlError::new(
                ErrorKind::Request,
                "nothing was changed: a change is either one override or settings of the whole job; make one change for each",
            ));
        }
        // A preview changes nothing and may take long, so it does not lock out other changes.
        let running = self.running.filter(|_| !request.only_check);
        let _changing = running.map(|running| running.live.changing());
        let before = self.live_overrides()?;
        let command = self.origin.sequence();
        let is_of_command = |one: &&LiveOverride| command.is_some() && one.command == command;
        if let Some(made) = before.iter().find(is_of_command) {
            return self.complete_override(made, settings_in_text);
        }
        let mut after = before.clone();
        after.push(LiveOverride {
            id: 0,
            command,
            by: String::new(),
            at: Timestamp::UNIX_EPOCH,
            reason: None,
            toml: text.to_owned(),
        });
        let revision = Revision {
            before,
            after,
            id: 0,
            action: OverrideAction::Add,
            changed: settings_in_text
                .iter()
                .map(|one| setting_change(one, None))
                .collect(),
            settings_in_text: settings_in_text.to_vec(),
            arguments: request.set.to_vec(),
        };
        self.revise(revision, (by, request.reason), request.only_check, respond)
    }

    /// Completes a command of a shared job that was not recorded as carried out although it has made its override, because the
    /// process died or a later step failed.
    fn complete_override(
        &self,
        made: &LiveOverride,
        settings_in_text: &[SettingInText],
    ) -> Result<String, ControlError> {
        let path = self.job.join(history::FILE);
        let failed = |problem: io::Error| ControlError::file(&path, &problem);
        let known = history::read(self.job).map_err(failed)?;
        if !known.iter().any(|change| change.number == made.id) {
            let change = Change {
                number: made.id,
                at: made.at,
                by: made.by.clone(),
                reason: made.reason.clone(),
                what: Changed::Override {
                    id: made.id,
                    action: OverrideAction::Add,
                    toml: made.toml.clone(),
                },
            };
            history::add(self.job, &change).map_err(failed)?;
        }
        let changed: Vec<SettingChanged> = settings_in_text
            .iter()
            .map(|one| setting_change(one, None))
            .collect();
        Ok(format!(
            "override {}, which was made before: {}",
            made.id,
            words_of(&changed)
        ))
    }

    /// Changes a live override.
    pub(super) fn change_override(
        &self,
        id: u64,
        change: &OverrideChange,
        who: (&Author, Option<&str>),
        only_check: bool,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        // A preview changes nothing and may take long, so it does not lock out other changes.
        let running = self.running.filter(|_| !only_check);
        let _changing = running.map(|running| running.live.changing());
        let before = self.live_overrides()?;
        let mut after = before.clone();
        let at = place_of(&before, id)?;
        let mut one = after.remove(at);
        let (written, was) = (first(&one.toml), first(&one.toml).settings);
        let revision = match change {
            OverrideChange::Remove => Revision {
                action: OverrideAction::Remove,
                changed: was.iter().map(setting_removal).collect(),
                settings_in_text: Vec::new(),
                arguments: Vec::new(),
                before,
                after,
                id,
            },
            OverrideChange::Move { before: next } => {
                let to = match next {
                    None => after.len(),
                    Some(next) if *next == id => at,
                    Some(next) => place_of(&after, *next)?,
                };
                if to == at {
                    return Err(ControlError::new(
                        ErrorKind::State,
                        format!("nothing was changed: override {id} is already in this place"),
                    ));
                }
                after.insert(to, one);
                Revision {
                    action: OverrideAction::Move,
                    changed: Vec::new(),
                    settings_in_text: Vec::new(),
                    arguments: Vec::new(),
                    before,
                    after,
                    id,
                }
            }
            OverrideChange::Edit {
                set,
                unset,
                matching,
            } => {
                let edited = self.apply_edit(written, set, unset, matching.as_deref(), respond)?;
                one.toml = edited.toml();
                let settings_in_text = opilio_profile::settings_in_text(&one.toml);
                let changed = difference(&was, &settings_in_text);
                if one.toml == before[at].toml {
                    return Err(ControlError::new(
                        ErrorKind::State,
                        format!(
                            "nothing was changed: override {id} already has these settings and conditions"
                        ),
                    ));
                }
                after.insert(at, one);
                Revision {
                    action: OverrideAction::Change,
                    changed,
                    settings_in_text,
                    arguments: set.clone(),
                    before,
                    after,
                    id,
                }
            }
        };
        self.revise(revision, who, only_check, respond)
    }

    /// Applies an edit to an override. The result is checked later, with the whole profile.
    fn apply_edit(
        &self,
        one: WrittenOverride,
        set: &[String],
        unset: &[String],
        matching: Option<&MatchFile>,
        respond: Respond<'_>,
    ) -> Result<WrittenOverride, ControlError> {
        let text = changing(set, None);
        if toml_value(&text).is_none() {
            // The check of the text as settings of the job reports every invalid line with its place.
            let trial = TrialChange::Settings {
                name: NAME,
                text: &text,
            };
            let submitted = SubmittedChange {
                text: &text,
                settings_in_text: &[],
                arguments: set,
            };
            self.accept(trial, submitted, Plugins::None, respond)?;
        }
        edit(one, &text, unset, matching)
    }

    /// Checks a change of live overrides and finds the URIs that it touches. Then keeps and applies it, if it is not only a
    /// preview.
    fn revise(
        &self,
        revision: Revision,
        (by, reason): (&Author, Option<&str>),
        only_check: bool,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let Revision {
            before,
            mut after,
            id,
            action,
            changed,
            settings_in_text,
            arguments,
        } = revision;
        let is_new_text = matches!(action, OverrideAction::Add | OverrideAction::Change);
        let layers = after.iter().map(|one| {
            let is_written = one.id == id && is_new_text;
            let name = if is_written {
                NAME.to_owned()
            } else {
                one.name()
            };
            (name, one.toml.clone())
        });
        let layers: Vec<(String, String)> = layers.collect();
        let place = after.iter().position(|one| one.id == id);
        let was = before.iter().position(|one| one.id == id);
        let text = place
            .filter(|_| is_new_text)
            .map(|at| after[at].toml.clone());
        let text = text.unwrap_or_default();
        // A change of the order may affect every plugin for which a live override has settings.
        let affected = match action {
            OverrideAction::Add => Plugins::of(&settings_in_text),
            _ => Plugins::of(&settings_of(before.iter().chain(&after))),
        };
        let trial = TrialChange::Overrides(&layers);
        let submitted = SubmittedChange {
            text: &text,
            settings_in_text: &settings_in_text,
            arguments: &arguments,
        };
        let accepted = self.accept(trial, submitted, affected, respond)?;
        let mut answer = ChangedSettings {
            changed,
            notices: accepted.notices(),
            override_id: Some(id).filter(|id| *id != 0),
            ..ChangedSettings::default()
        };
        let mut words = words_of(&answer.changed);
        if self.origin.is_trial() {
            return Ok(words);
        }
        let number = |all: usize, live: &[LiveOverride], at: Option<usize>| {
            at.map(|at| all.saturating_sub(live.len()) + at)
        };
        let (now, then) = (
            self.profile.written_overrides(),
            accepted.profile.written_overrides(),
        );
        let touched_by = TouchedBy {
            after: &accepted.profile,
            number_before: number(now.len(), &before, was),
            number_after: number(then.len(), &after, place),
            examined_max: match only_check {
                true => touched::PREVIEWED_MAX,
                false => touched::SAVED_MAX,
            },
        };
        answer.touched = Some(self.touched(&touched_by, respond)?);
        if only_check {
            respond(CommandResponse::Set(Box::new(answer)));
            return Ok(words);
        }
        let at = Timestamp::now();
        let next = history::next_number(self.job)
            .map_err(|problem| ControlError::file(self.job, &problem))?;
        let id = if id == 0 { next } else { id };
        if let Some(one) = place.map(|at| &mut after[at]) {
            one.id = id;
            if is_new_text {
                one.toml = first(&one.toml).toml();
            }
            // A move does not change author and reason of an override, which belong to its settings and conditions.
            if !matches!(action, OverrideAction::Move) {
                one.by = by.name();
                one.at = at;
                one.reason = reason.map(str::to_owned);
            }
        }
        let affected = place.map(|at| &after[at]).or(was.map(|at| &before[at]));
        let what = Changed::Override {
            id,
            action,
            toml: affected.map_or_else(String::new, |one| one.toml.clone()),
        };
        let number = self.keep((by, reason), at, what, |_, job| {
            overrides::write(job, &after)
        })?;
        self.put_in_force(accepted.loaded)?;
        answer.number = Some(number);
        answer.override_id = Some(id);
        respond(CommandResponse::Set(Box::new(answer)));
        if words.is_empty() {
            words = "moved".to_owned();
        }
        Ok(format!("change {number}, override {id}: {words}"))
    }

    fn live_overrides(&self) -> Result<Vec<LiveOverride>, ControlError> {
        overrides::read(self.job).map_err(|problem| ControlError::file(self.job, &problem))
    }
}

/// Text of a live override before and after an edit, for callers that check settings before they send the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedOverrideText {
    /// The present override.
    pub before: String,
    /// The override after the edit. Lines that are not TOML are at its end.
    pub after: String,
}

impl EditedOverrideText {
    /// Applies an edit to the live override `id` of a job without storing the result.
    ///
    /// # Errors
    /// The job has no such live override, the edit removes settings that the override does not have, or leaves none.
    pub fn of(
        job: &Path,
        id: u64,
        set: &[String],
        unset: &[String],
        matching: Option<&MatchFile>,
    ) -> Result<EditedOverrideText, ControlError> {
        let live = overrides::read(job).map_err(|problem| ControlError::file(job, &problem))?;
        let before = first(&live[place_of(&live, id)?].toml);
        let text = changing(set, None);
        let written = before.toml();
        let after = match toml_value(&text) {
            Some(_) => edit(before, &text, unset, matching)?.toml(),
            None => {
                let mut after = before;
                if let Some(matching) = matching {
                    after.matching = matching.clone();
                }
                after.toml() + &text
            }
        };
        Ok(EditedOverrideText {
            before: written,
            after,
        })
    }
}

/// Applies an edit to an override: `text` has the new settings.
fn edit(
    mut one: WrittenOverride,
    text: &str,
    unset: &[String],
    matching: Option<&MatchFile>,
) -> Result<WrittenOverride, ControlError> {
    let request = |problem: String| ControlError::new(ErrorKind::Request, problem);
    if let Some(matching) = matching {
        one.matching = matching.clone();
    }
    for key in unset {
        let before = one.settings.len();
        one.settings.retain(|setting| {
            let name = dotted_key(setting);
            let rest = name.strip_prefix(key.as_str());
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        if one.settings.len() == before {
            let keys = one.settings.iter().map(dotted_key);
            let keys = keys.collect::<Vec<_>>().join(", ");
            return Err(request(format!(
                "nothing was changed: the override does not set {key}; it sets {keys}"
            )));
        }
    }
    for in_text in opilio_profile::settings_in_text(text) {
        if in_text.in_override || in_text.pointer == "/override" {
            return Err(request(
                "nothing was changed: an override cannot contain overrides".to_owned(),
            ));
        }
        let known = one.settings.iter_mut();
        let mut known = known.filter(|setting| setting.pointer == in_text.pointer);
        match known.next() {
            Some(setting) => *setting = in_text,
            None => one.settings.push(in_text),
        }
    }
    one.settings.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    match one.settings.is_empty() {
        true => Err(request(
            "nothing was changed: the override would have no settings; to remove it, use `opilio job unset JOB --override NUMBER` without names of settings".to_owned(),
        )),
        false => Ok(one),
    }
}

fn place_of(live: &[LiveOverride], id: u64) -> Result<usize, ControlError> {
    let found = live.iter().position(|one| one.id == id);
    found.ok_or_else(|| {
        let known = live.iter().map(|one| one.id.to_string());
        let known = known.collect::<Vec<_>>().join(", ");
        let known = match known.is_empty() {
            true => "the job has no live overrides".to_owned(),
            false => format!("live overrides: {known}"),
        };
        ControlError::new(
            ErrorKind::Unknown,
            format!("override {id} not found; {known}"),
        )
    })
}

/// Reads the override of a text that was checked when it was kept.
fn first(toml: &str) -> WrittenOverride {
    let mut written = WrittenOverride::read(toml);
    match written.is_empty() {
        true => WrittenOverride::default(),
        false => written.remove(0),
    }
}

fn settings_of<'o>(overrides: impl Iterator<Item = &'o LiveOverride>) -> Vec<SettingInText> {
    overrides
        .flat_map(|one| first(&one.toml).settings)
        .collect()
}

fn setting_change(one: &SettingInText, before: Option<String>) -> SettingChanged {
    SettingChanged {
        key: one.key.clone(),
        before,
        after: Some(one.toml.clone()),
        effect: Effect::of(&one.pointer),
    }
}

fn setting_removal(one: &SettingInText) -> SettingChanged {
    SettingChanged {
        after: None,
        ..setting_change(one, Some(one.toml.clone()))
    }
}

/// Settings that differ between an override and its edited form.
fn difference(was: &[SettingInText], now: &[SettingInText]) -> Vec<SettingChanged> {
    let value_in = |of: &[SettingInText], pointer: &str| {
        let found = of.iter().find(|one| one.pointer == pointer);
        found.map(|one| one.toml.clone())
    };
    let set = now.iter().filter_map(|one| {
        let before = value_in(was, &one.pointer);
        (before.as_ref() != Some(&one.toml)).then(|| setting_change(one, before))
    });
    let unset = was
        .iter()
        .filter(|one| value_in(now, &one.pointer).is_none());
    set.chain(unset.map(setting_removal)).collect()
}
