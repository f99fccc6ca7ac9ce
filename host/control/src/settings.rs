//! Changes of a job's settings while it runs. `settings_in_force.rs` lists the settings.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_job::changes;
use opilio_profile::{Diagnostics, Level, MatchFile, Profile, SettingInText};
use opilio_sandbox::{Engine, EngineConfig, Tables};

use super::answer::{Respond, listened};
use super::submitted_change::{NAME, SubmittedChange};
use super::{
    Author, ChangedSettings, CommandResponse, ControlError, ErrorKind, FaultFound, JobAdmin,
    SettingChanged,
};
use opilio_crawl::CrawlError;
use opilio_crawl::load::sources;
use opilio_crawl::settings::{self, Effect};
use opilio_job::component_cache;
use opilio_job::history::{self, Change, Changed};
use opilio_job::profile::{ProfileError, TrialChange, changed_profile};
use opilio_stacks::components::JobPlugins;
use opilio_stacks::on_plugin_thread;
use opilio_stacks::{Loaded, Loading};

/// Longest reason of a change, in characters.
const REASON_CHARS_MAX: usize = 1000;

impl JobAdmin<'_> {
    /// Checks a change of settings of the whole job like a profile, stores it, and applies the settings that can take effect at
    /// once.
    pub(super) fn set_in_job(
        &self,
        text: &str,
        settings_in_text: &[SettingInText],
        request: &SetRequest<'_>,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let SetRequest {
            set,
            only_check,
            reason,
            ..
        } = *request;
        let _changing = self.running.map(|running| running.live.changing());
        let trial = TrialChange::Settings { name: NAME, text };
        let submitted = SubmittedChange {
            text,
            settings_in_text,
            arguments: set,
        };
        let accepted = self.accept(trial, submitted, Plugins::of(settings_in_text), respond)?;
        if settings_in_text.is_empty() {
            return Err(ControlError::new(
                ErrorKind::Request,
                "nothing was changed: no settings given; give at least one key = value",
            ));
        }
        let mut answer = ChangedSettings {
            changed: self.changed_settings(settings_in_text),
            notices: accepted.notices(),
            ..ChangedSettings::default()
        };
        let words = words_of(&answer.changed);
        if !only_check && !self.origin.is_trial() {
            if !(self.origin.is_again() && self.is_last_change(text)?) {
                let at = Timestamp::now();
                let what = Changed::Set {
                    toml: text.to_owned(),
                };
                let write = |number, job: &Path| {
                    changes::keep_change(job, number, &format!("# {at:.0} {by}\n{text}"))
                };
                answer.number = Some(self.keep((by, reason), at, what, write)?);
            }
            self.put_in_force(accepted.loaded)?;
        }
        let number = answer.number;
        respond(CommandResponse::Set(Box::new(answer)));
        Ok(match number {
            Some(number) => format!("change {number}: {words}"),
            None => words,
        })
    }

    /// Returns `true` if this text is the last stored change of the job's settings.
    fn is_last_change(&self, text: &str) -> Result<bool, ControlError> {
        let kept = changes::changes(self.job, Path::new(""))
            .map_err(|problem| ControlError::file(self.job, &problem))?;
        // The first line has author and time.
        let last = kept.last().and_then(|change| change.text.split_once('\n'));
        Ok(last.is_some_and(|(_, kept)| kept == text))
    }

    /// Checks a change like a whole profile, and configures the plugins that it affects.
    pub(super) fn accept(
        &self,
        trial: TrialChange<'_>,
        submitted: SubmittedChange<'_>,
        plugins: Plugins,
        respond: Respond<'_>,
    ) -> Result<Accepted, ControlError> {
        let refused = |faults: Diagnostics, respond: Respond<'_>| {
            respond(CommandResponse::Faults {
                faults: faults.iter().map(FaultFound::from).collect(),
            });
            let described = submitted.describe(&faults);
            ControlError::new(
                ErrorKind::Request,
                format!("nothing was changed\n{described}"),
            )
        };
        let SubmittedChange {
            text,
            settings_in_text,
            ..
        } = submitted;
        let mut faults = unchangeable(text, settings_in_text);
        let checked = match changed_profile(self.job, Some(trial)) {
            Ok(profile) => profile.check_job().map(|()| profile),
            Err(ProfileError::Faults(faults)) => Err(faults),
            Err(other) => return Err(ControlError::failure(&other)),
        };
        if let Ok(profile) = &checked {
            faults.append(self.replaced(profile, text, settings_in_text)?);
            faults.sort();
        }
        let profile = match checked {
            Ok(profile) if faults.is_empty() => profile,
            Ok(_) => return Err(refused(faults, respond)),
            Err(more) => {
                // Warnings and notices of the profile and of earlier changes were reported before.
                let is_news = |fault: &opilio_profile::Diagnostic| {
                    fault.level == Level::Error || fault.file == NAME
                };
                faults.append(more.into_iter().filter(is_news).collect());
                faults.sort();
                return Err(refused(faults, respond));
            }
        };
        // Plugins are configured before anything is stored, because an error of a plugin refuses the change.
        let loaded = match self.load(&plugins, &profile) {
            Ok(loaded) => loaded,
            Err(Unloaded::Faults(faults)) => return Err(refused(faults, respond)),
            Err(Unloaded::Other(problem)) => return Err(problem),
        };
        if let Some(running) = self.running {
            let fetchers = running.context.network.fetchers.changed(&profile);
            fetchers.map_err(|problem| {
                ControlError::new(
                    ErrorKind::Request,
                    format!("nothing was changed: {}", opilio_stacks::chain(&problem)),
                )
            })?;
        }
        Ok(Accepted { profile, loaded })
    }

    /// Finds plugin settings that would have no effect, because the replacement of the plugin has settings of its own. Settings in
    /// overrides are added to these, and do have an effect.
    fn replaced(
        &self,
        profile: &Profile,
        text: &str,
        settings_in_text: &[SettingInText],
    ) -> Result<Diagnostics, ControlError> {
        let kept = JobPlugins::read(self.job).map_err(|problem| ControlError::failure(&problem))?;
        let fault = |one: &SettingInText| {
            let name = settings_of(&one.pointer).filter(|_| !one.in_override)?;
            let instance = profile.plugins.get(name)?;
            let replaced = kept.kept(instance)?.replacement.as_ref()?;
            let settings = replaced.settings.as_ref()?;
            let problem = format!(
                "{} would have no effect: {} replaced {name} with its own settings, {settings}",
                one.key, replaced.by
            );
            let instead = format!(
                "replace it again with all its settings: opilio plugin replace JOB {name} COMPONENT --settings JSON"
            );
            Some(opilio_profile::fault_in(
                NAME,
                text,
                &one.at,
                problem,
                Some(instead),
            ))
        };
        Ok(settings_in_text.iter().filter_map(fault).collect())
    }

    /// Returns the changes of the job, with author and time.
    pub(super) fn history(
        &self,
        after: u64,
        limit: u64,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let path = self.job.join(history::FILE);
        let all = history::read(self.job).map_err(|problem| ControlError::file(&path, &problem))?;
        let mut behind = all.into_iter().filter(|change| change.number > after);
        let mut last = after;
        for change in behind
            .by_ref()
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
        {
            last = change.number;
            listened(respond(CommandResponse::Change(Box::new(change))))?;
        }
        if behind.next().is_some() {
            respond(CommandResponse::More {
                after: last.to_string(),
            });
        }
        Ok(String::new())
    }

    /// Stores a change of the job under the next number, and adds it to the history.
    pub(super) fn keep(
        &self,
        (by, reason): (&Author, Option<&str>),
        at: Timestamp,
        what: Changed,
        write: impl FnOnce(u64, &Path) -> io::Result<()>,
    ) -> Result<u64, ControlError> {
        let failed = |problem: io::Error| ControlError::file(self.job, &problem);
        if reason.is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX) {
            return Err(ControlError::new(
                ErrorKind::Request,
                format!("reason longer than {REASON_CHARS_MAX} characters; shorten it"),
            ));
        }
        let number = history::next_number(self.job).map_err(failed)?;
        write(number, self.job).map_err(failed)?;
        let change = Change {
            number,
            at,
            by: by.name(),
            reason: reason.map(str::to_owned),
            what,
        };
        history::add(self.job, &change).map_err(failed)?;
        Ok(number)
    }

    fn changed_settings(&self, settings_in_text: &[SettingInText]) -> Vec<SettingChanged> {
        let before: HashMap<String, String> = self
            .profile
            .catalogue()
            .into_iter()
            .map(|entry| (entry.pointer.clone(), entry.toml()))
            .collect();
        let changed = settings_in_text.iter().map(|one| SettingChanged {
            key: one.key.clone(),
            before: before
                .get(&one.pointer)
                .filter(|_| !one.in_override)
                .cloned(),
            after: Some(one.toml.clone()),
            effect: Effect::of(&one.pointer),
        });
        changed.collect()
    }
}

/// Change of settings as an operator requests it.
#[derive(Clone, Copy)]
pub(super) struct SetRequest<'r> {
    /// Settings, each as `key = value`.
    pub(super) set: &'r [String],
    /// Conditions of a new override.
    pub(super) matching: Option<&'r MatchFile>,
    /// `true` if the change is only checked.
    pub(super) only_check: bool,
    /// Reason for the change.
    pub(super) reason: Option<&'r str>,
}

/// Change of settings that has passed all checks.
pub(super) struct Accepted {
    /// The job's profile with the change.
    pub(super) profile: Profile,
    /// Changed plugins, for a running crawl.
    pub(super) loaded: Option<Loaded>,
}

impl Accepted {
    /// Notes and warnings about the change itself.
    pub(super) fn notices(&self) -> Vec<FaultFound> {
        let notices = self.profile.notices.iter();
        let notices = notices.filter(|fault| fault.file == NAME);
        notices.map(FaultFound::from).collect()
    }
}

/// Formats changed settings in one sentence for the job's log.
pub(super) fn words_of(changed: &[SettingChanged]) -> String {
    let words = changed.iter().map(|one| {
        let when = match one.effect {
            Effect::AtOnce => "at once",
            _ => "when the job resumes",
        };
        match &one.after {
            Some(after) => format!("{} = {after} {when}", one.key),
            None => format!("{} unset {when}", one.key),
        }
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Plugins that a change affects.
pub(super) enum Plugins {
    /// No plugin is affected.
    None,
    /// Only these plugins are affected: their own settings, limits or breakers.
    Some(BTreeSet<String>),
    /// All plugins are affected: for instance, the list of plugins or a stack changes.
    All,
}

impl Plugins {
    pub(super) fn of(settings_in_text: &[SettingInText]) -> Plugins {
        let mut names = BTreeSet::new();
        for one in settings_in_text {
            let mut keys = one.pointer.split('/').skip(1);
            match (keys.next(), keys.next(), keys.next()) {
                (Some("plugins"), Some(name), Some("settings" | "limits" | "breaker")) => {
                    names.insert(name.to_owned());
                }
                (Some("plugins" | "stacks"), ..) => return Plugins::All,
                (Some("limits"), Some("outlinks" | "plugin-variants"), _) => return Plugins::All,
                _ => {}
            }
        }
        match names.is_empty() {
            true => Plugins::None,
            false => Plugins::Some(names),
        }
    }
}

/// Reason why the plugins do not accept a change.
enum Unloaded {
    Faults(Diagnostics),
    Other(ControlError),
}

impl JobAdmin<'_> {
    /// Loads the changed plugins. Returns `None` if they do not change, or no process runs the job.
    fn load(&self, plugins: &Plugins, profile: &Profile) -> Result<Option<Loaded>, Unloaded> {
        if matches!(plugins, Plugins::None) {
            return Ok(None);
        }
        let loaded = on_plugin_thread("settings", || match self.running {
            Some(running) => running.context.plugins_of(profile).map(Some),
            None => self.check_at_rest(plugins, profile).map(|()| None),
        });
        let failure = |problem| Unloaded::Other(ControlError::new(ErrorKind::Failure, problem));
        match loaded.map_err(failure)? {
            Ok(loaded) => Ok(loaded),
            Err(CrawlError::Profile(faults)) => Err(Unloaded::Faults(faults)),
            Err(other) => Err(Unloaded::Other(ControlError::failure(&other))),
        }
    }

    fn check_at_rest(&self, plugins: &Plugins, profile: &Profile) -> Result<(), CrawlError> {
        let kept = JobPlugins::read(self.job)
            .map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
        let engine = Engine::new(EngineConfig {
            cache_dir: component_cache(),
            ..EngineConfig::default()
        })?;
        let sources = sources(self.job);
        let tables = Tables::default();
        let check = |only: Option<&str>| {
            let loading = Loading {
                engine: &engine,
                profile,
                seed_prefixes: &[],
                tables: &tables,
                sources: &sources,
                job: Some(&kept),
                only,
            };
            opilio_stacks::load(loading)
                .map(drop)
                .map_err(CrawlError::Profile)
        };
        match plugins {
            Plugins::Some(names) => names.iter().try_for_each(|name| check(Some(name))),
            _ => check(None),
        }
    }

    /// Applies all stored settings, overrides and plugins to the running crawl. Completes a command that failed after its change
    /// was stored.
    pub(super) fn put_kept_in_force(&self) -> Result<(), ControlError> {
        let Some(running) = self.running else {
            return Ok(());
        };
        let _changing = running.live.changing();
        let profile =
            changed_profile(self.job, None).map_err(|problem| ControlError::failure(&problem))?;
        let loaded = self
            .load(&Plugins::All, &profile)
            .map_err(|problem| match problem {
                Unloaded::Faults(faults) => {
                    ControlError::new(ErrorKind::Failure, faults.to_string())
                }
                Unloaded::Other(problem) => problem,
            })?;
        self.put_in_force(loaded)
    }

    /// Applies the stored settings to the running crawl.
    pub(super) fn put_in_force(&self, loaded: Option<Loaded>) -> Result<(), ControlError> {
        let Some(running) = self.running else {
            return Ok(());
        };
        let profile =
            changed_profile(self.job, None).map_err(|problem| ControlError::failure(&problem))?;
        running
            .context
            .put_in_force(Arc::new(profile), loaded)
            .map_err(|problem| ControlError::failure(&problem))?;
        running.live.wake_dispatcher();
        Ok(())
    }
}

/// Formats a change of settings as profile text, which the change itself parses. Callers that check a change beforehand check this
/// text. `set` contains TOML settings, or `key = value` as typed by an operator. The settings apply where `matching` matches, or
/// everywhere.
pub fn changing(set: &[String], matching: Option<&MatchFile>) -> String {
    let mut text = String::new();
    if let Some(matching) = matching {
        text.push_str(&format!("[[override]]\n{}\n", matching.toml()));
    }
    for one in set {
        text.push_str(&opilio_profile::assignment(one));
        text.push('\n');
    }
    text
}

/// Returns the plugin whose settings a JSON Pointer refers to.
fn settings_of(pointer: &str) -> Option<&str> {
    let mut keys = pointer.split('/').skip(1);
    match (keys.next(), keys.next(), keys.next()) {
        (Some("plugins"), Some(name), Some("settings")) => Some(name),
        _ => None,
    }
}

/// Finds settings that a job cannot change.
fn unchangeable(text: &str, settings_in_text: &[SettingInText]) -> Diagnostics {
    let is_nothing = |one: &SettingInText| one.pointer == "/override" && one.toml == "[]";
    let fixed = settings_in_text
        .iter()
        .filter(|one| is_nothing(one) || Effect::of(&one.pointer) == Effect::Never);
    let fault = |one: &SettingInText| {
        if is_nothing(one) {
            let problem = "a change adds an override to the existing ones, and this adds none";
            let instead = "opilio job overrides JOB lists the overrides, opilio job unset JOB --override NUMBER removes one, and opilio job set JOB --host HOST KEY=VALUE adds one";
            return opilio_profile::fault_in(
                NAME,
                text,
                &one.at,
                problem.to_owned(),
                Some(instead.to_owned()),
            );
        }
        let problem = format!("{} was frozen when the job was created", one.key);
        let why = settings::why_unchangeable(&one.pointer);
        opilio_profile::fault_in(NAME, text, &one.at, problem, Some(why.to_owned()))
    };
    fixed.map(fault).collect()
}
