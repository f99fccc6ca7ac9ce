//! Plugins and tables of a profile, loaded for a crawl or without one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_profile::Profile;
use opilio_sandbox::{Engine, EngineConfig, Tables};
use opilio_source::{Sources, SourcesConfig};

use crate::error::CrawlError;
use crate::tables::TableKeeper;
use opilio_stacks::components::JobPlugins;
use opilio_stacks::{Loaded, Loading, ShippedPlugin, Stacks};

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
        snapshots_later: true,
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
        snapshots_later: true,
        ..EngineConfig::default()
    })?;
    let (_, loaded) = load(&engine, profile, &[], &sources(Path::new("")), None)?;
    Ok(loaded.stacks.pool().schemas())
}

/// Returns all shipped plugins, sorted by name. Takes seconds if their components are not in the cache.
///
/// # Errors
/// The plugin engine cannot be set up, or a shipped component cannot be loaded.
pub fn shipped_plugins(component_cache: Option<PathBuf>) -> Result<Vec<ShippedPlugin>, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache,
        ..EngineConfig::default()
    })?;
    opilio_stacks::shipped_plugins(&engine)
        .map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))
}

/// The plugins and tables of a profile, loaded without a job.
pub struct LoadedPlugins {
    /// The plugins.
    pub stacks: Arc<Stacks>,
    /// Tables in which the plugins look values up. They must exist as long as the plugins are called.
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
pub fn load(
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
pub fn sources(job: &Path) -> Sources {
    Sources::new(SourcesConfig::standard().unwrap_or_else(|_| SourcesConfig {
        store: job.join("store"),
        credentials: None,
        now: Timestamp::now,
    }))
}
