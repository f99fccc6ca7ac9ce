//! Checks of a crawl before anything is created: profile, seeds, components and their settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_profile::{Given, Profile};
use opilio_sandbox::{Engine, EngineConfig, Tables};
use opilio_source::{Sources, SourcesConfig};
use opilio_uri::SurtPrefixSet;

use super::frozen::{frozen, frozen_profile};
use super::order::{Order, other_profile, written};
use super::{CrawlError, Plan};
use crate::tables::TableKeeper;
use opilio_job::directory;
use opilio_stacks::components::JobPlugins;
use opilio_stacks::{self, Loaded, Loading, Stacks};

/// Checks profile, seeds and components. Creates nothing but entries of the component cache.
///
/// # Errors
/// [`CrawlError::Profile`] with every error at its place; or the reason why the engine cannot run here.
pub fn plan(order: &Order) -> Result<Plan, CrawlError> {
    let given = Given {
        builtins: builtin_plugins(),
        seeds: order.seeds.clone(),
        contact_url: order.contact_url.clone(),
        ..Given::default()
    };
    let resumed = order
        .job
        .as_deref()
        .filter(|directory| directory::is_job(directory));
    if let Some(directory) = resumed {
        directory::settle_unheld(directory)?;
    }
    let (mut profile, mut base) = match resumed {
        Some(directory) => frozen(directory, given.clone())?,
        None => written(&order.profile, &given)?,
    };
    let directory = order
        .job
        .clone()
        .unwrap_or_else(|| Path::new("jobs").join(file_name(&profile.name)));
    if resumed.is_none() && directory::is_job(&directory) {
        directory::settle_unheld(&directory)?;
        (profile, base) = frozen(&directory, given)?;
    }
    let is_known = |url: &String| {
        directory::is_job(&directory)
            && frozen_profile(&directory)
                .is_ok_and(|own| own.operator.contact_url.as_ref() == Some(url))
    };
    let contact_url = order.contact_url.clone().filter(|url| !is_known(url));
    let mut notes = other_profile(&order.profile, &profile, &directory);
    profile.check_job().map_err(CrawlError::Profile)?;
    let prefixes = seed_prefixes(&profile, &directory::redirected_seeds(&directory))?;
    let engine = Engine::new(EngineConfig {
        cache_dir: order.component_cache.clone(),
        ..EngineConfig::default()
    })?;
    let list: Vec<String> = prefixes.iter().map(str::to_owned).collect();
    let kept = JobPlugins::read(&directory)
        .map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
    let sources = sources(&directory);
    let (tables, plugins) = load(&engine, &profile, &list, &sources, Some(&kept))?;
    notes.extend(plugins.notes.iter().cloned());
    Ok(Plan {
        profile,
        tables,
        plugins,
        engine,
        sources,
        directory,
        base,
        prefixes,
        contact_url,
        notes,
    })
}

impl Plan {
    /// Returns the profile in effect.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns notes that the operator should read before the crawl begins, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the directory where the job is or will be.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Returns the built-in plugins, by the names that profiles have for them.
pub fn builtin_plugins() -> Vec<String> {
    opilio_builtin::all()
        .map(|builtin| builtin.plugin.to_owned())
        .collect()
}

/// Loads the components of a profile and checks their settings. Creates nothing but entries of the component cache.
///
/// # Errors
/// [`CrawlError::Profile`] with every error at its place; or the reason why the engine cannot run here.
pub fn check_plugins(
    profile: &Profile,
    component_cache: Option<PathBuf>,
) -> Result<(), CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache,
        ..EngineConfig::default()
    })?;
    load(&engine, profile, &[], &sources(Path::new("")), None).map(drop)
}

/// Returns the schema of each plugin's settings, by the instance's name in the profile.
///
/// # Errors
/// As [`check_plugins`].
pub fn settings_schemas(
    profile: &Profile,
    component_cache: Option<PathBuf>,
) -> Result<Vec<(String, serde_json::Value)>, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache,
        ..EngineConfig::default()
    })?;
    let (_, loaded) = load(&engine, profile, &[], &sources(Path::new("")), None)?;
    Ok(loaded.stacks.pool().schemas())
}

/// The plugins and tables of a profile, loaded without a job.
pub struct LoadedPlugins {
    /// The plugins.
    pub stacks: Arc<Stacks>,
    /// Tables in which the plugins look values up for as long as they are called.
    _tables: TableKeeper,
}

impl LoadedPlugins {
    /// Loads plugins and tables. Components that were pulled from a registry are kept in `dir` if there is no home directory.
    ///
    /// # Errors
    /// [`CrawlError::Profile`] with every error at its place.
    pub fn load(
        engine: &Engine,
        profile: &Profile,
        seed_prefixes: &[String],
        dir: &Path,
    ) -> Result<LoadedPlugins, CrawlError> {
        let (tables, plugins) = load(engine, profile, seed_prefixes, &sources(dir), None)?;
        Ok(LoadedPlugins {
            stacks: plugins.stacks,
            _tables: tables,
        })
    }
}

/// Loads tables and plugins. Returns the errors of both at once.
pub(crate) fn load(
    engine: &Engine,
    profile: &Profile,
    seed_prefixes: &[String],
    sources: &Sources,
    job: Option<&JobPlugins>,
) -> Result<(TableKeeper, Loaded), CrawlError> {
    let tables = TableKeeper::load(profile);
    let none = Tables::default();
    let loading = Loading {
        engine,
        profile,
        seed_prefixes,
        tables: tables.as_ref().map_or(&none, TableKeeper::tables),
        sources,
        job,
        only: None,
    };
    let plugins = opilio_stacks::load(loading);
    match (tables, plugins) {
        (Ok(tables), Ok(plugins)) => Ok((tables, plugins)),
        (Err(faults), Ok(_)) | (Ok(_), Err(faults)) => Err(CrawlError::Profile(faults)),
        (Err(mut faults), Err(more)) => {
            faults.append(more);
            Err(CrawlError::Profile(faults))
        }
    }
}

/// Returns the sources of components. Without a home directory, the store is in the job's directory.
pub(crate) fn sources(job: &Path) -> Sources {
    Sources::new(SourcesConfig::standard().unwrap_or_else(|_| SourcesConfig {
        store: job.join("store"),
        credentials: None,
        now: Timestamp::now,
    }))
}

/// Converts a profile's name to the name of a folder.
fn file_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    match name.trim_matches('.') {
        "" => "crawl".to_owned(),
        name => name.to_owned(),
    }
}

fn seed_prefixes(profile: &Profile, redirected: &[String]) -> Result<SurtPrefixSet, CrawlError> {
    let mut set = SurtPrefixSet::default();
    for seed in &profile.seeds.list {
        set.insert(&seed.surt_prefix);
    }
    for line in profile.seeds.surt_prefixes.iter().chain(redirected) {
        match opilio_uri::surt_prefix_from_line(line) {
            Ok(Some(prefix)) => set.insert(&prefix),
            Ok(None) => {}
            Err(problem) => {
                let fault = profile.fault_at("/seeds", format!("SURT prefix {line:?}: {problem}"));
                return Err(CrawlError::Profile(fault.into()));
            }
        }
    }
    Ok(set)
}
