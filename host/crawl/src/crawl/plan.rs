//! Checks of a crawl before anything is created: profile, seeds, components and their settings.

use std::path::Path;

use opilio_cluster::ClusterConfig;
use opilio_profile::{Profile, ProfileContext};
use opilio_sandbox::{Engine, EngineConfig};
use opilio_uri::SurtPrefixSet;

use super::Plan;
use super::order::{Order, load_named_profile, other_profile};
use super::seeds::seed_lines;
use crate::error::{CrawlError, io_error};
use crate::job_part::JobPart;
use crate::load::{load, sources};
use crate::membership::JobMembership;
use opilio_job::directory;
use opilio_job::fetched_files::FetchedFiles;
use opilio_job::profile::{frozen, frozen_profile};
use opilio_stacks::builtin_plugins;
use opilio_stacks::components::JobPlugins;

/// Checks profile, seeds and components. Creates nothing but entries of the component cache.
///
/// # Errors
/// [`CrawlError::Profile`] with every error at its place; or the reason why the engine cannot run on this machine.
pub fn plan(order: &Order) -> Result<Plan, CrawlError> {
    let fetched = order.profile.fetched();
    let contact_url = order.contact_url.clone();
    let contact_url = contact_url.or_else(|| fetched?.contact_url().cloned());
    let given = ProfileContext {
        builtins: builtin_plugins(),
        seeds: order.seeds.clone(),
        contact_url: contact_url.clone(),
        ..ProfileContext::default()
    };
    let resumed = order
        .job
        .as_deref()
        .filter(|directory| directory::is_job(directory));
    if let Some(directory) = resumed {
        directory::complete_restore_unheld(directory)?;
    }
    let (mut profile, mut base) = match resumed {
        Some(directory) => frozen(directory, given.clone())?,
        None => load_named_profile(&order.profile, &given)?,
    };
    let directory = order
        .job
        .clone()
        .unwrap_or_else(|| Path::new("jobs").join(file_name(&profile.name)));
    if resumed.is_none() && directory::is_job(&directory) {
        directory::complete_restore_unheld(&directory)?;
        (profile, base) = frozen(&directory, given)?;
    }
    let is_known = |url: &String| {
        directory::is_job(&directory)
            && frozen_profile(&directory)
                .is_ok_and(|own| own.operator.contact_url.as_ref() == Some(url))
    };
    let contact_url = contact_url.filter(|url| !is_known(url));
    let mut notes = other_profile(&order.profile, &profile, &directory);
    profile.check_job().map_err(CrawlError::Profile)?;
    let prefixes = seed_prefixes(&profile, &directory::redirected_seeds(&directory))?;
    let engine = Engine::new(EngineConfig {
        cache_dir: order.component_cache.clone(),
        snapshots_later: true,
        ..EngineConfig::default()
    })?;
    let list: Vec<String> = prefixes.iter().map(str::to_owned).collect();
    let kept = JobPlugins::read(&directory)
        .map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
    let sources = sources(&directory);
    let is_made = directory::is_job(&directory);
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
        origin: order.profile.origin(),
        prefixes,
        contact_url,
        notes,
        // An existing job has its own copy.
        fetched: fetched
            .filter(|_| !is_made)
            .map(|fetched| fetched.files().clone()),
        membership: None,
    })
}

impl Plan {
    /// Returns the profile in effect.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns notes that the operator should read before the crawl begins, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Joins the nodes that share the job. The crawl then has a part of the sites.
    ///
    /// # Errors
    /// The job has another part or other nodes, or as [`JobMembership::join`].
    pub async fn join(self, config: ClusterConfig, part: JobPart) -> Result<Plan, CrawlError> {
        let known = JobPart::read(&self.directory);
        let known = known.map_err(|source| io_error(&self.directory, source))?;
        let is_made = directory::is_job(&self.directory);
        let membership = match known {
            Some(known) if is_made && known.is_same(&part) => {
                let part = JobPart {
                    config: part.config,
                    ..known
                };
                JobMembership::resume(config, part, &self.profile).await?
            }
            known if is_made => {
                return Err(CrawlError::OtherNodes {
                    job: self.directory,
                    nodes: known.map_or("none".to_owned(), |known| known.parts.join(", ")),
                });
            }
            _ => {
                let files = self.shared_files(&part)?;
                JobMembership::join(config, part, &self.profile, &files).await?
            }
        };
        Ok(self.with_membership(membership))
    }

    /// Sets the membership in a job that several nodes share.
    #[must_use]
    pub fn with_membership(self, membership: JobMembership) -> Plan {
        Plan {
            membership: Some(membership),
            ..self
        }
    }

    /// Returns all seeds, as lines.
    pub fn seed_lines(&self) -> Vec<String> {
        seed_lines(&self.profile.seeds)
    }

    /// Returns the copies of files that the profile names, if it was fetched from the cluster for a new job; otherwise an empty list.
    pub fn fetched_files(&self) -> FetchedFiles {
        self.fetched.clone().unwrap_or_default()
    }

    /// Returns the plugins that the job keeps.
    pub fn job_plugins(&self) -> &JobPlugins {
        &self.plugins.job
    }

    /// Returns the folder against which relative paths of the profile are resolved.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Returns the directory where the job is or will be.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
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
