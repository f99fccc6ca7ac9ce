//! Replacement of plugins while a crawl runs: engine, sources, and the components that the job keeps.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use opilio_profile::{ComponentReference, Profile};
use opilio_sandbox::{Component, Engine};
use opilio_source::{ComponentConditions, ResolvedComponent, Sha256, Sources};
use serde_json::Value;

use opilio_stacks::components::{JobPlugins, ReplacementComponent};
use opilio_stacks::{Pool, Replacement, chain};

/// Engine, sources and kept components, from which plugins are made while a crawl runs.
pub struct PluginFactory {
    /// Engine that runs the plugins.
    pub engine: Engine,
    /// Sources of components.
    pub sources: Sources,
    /// Directory of the job.
    pub job: PathBuf,
    /// Plugins that the job keeps.
    pub kept: Mutex<JobPlugins>,
}

/// Request to replace a plugin.
#[derive(Clone, Debug)]
pub struct ReplacementRequest {
    /// The instance's name in the profile.
    pub instance: String,
    /// Source of the new component.
    pub component: ComponentReference,
    /// Digest that the component must have.
    pub sha256: Option<Sha256>,
    /// Settings in place of those in effect, as given.
    pub settings: Option<Value>,
    /// The component, if another node of a shared job has obtained it.
    pub bytes: Option<Vec<u8>>,
}

/// Reason why a plugin was not replaced. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ReplacementError {
    /// The component cannot be obtained, or is invalid: name another component, or correct this one.
    #[error("{0}")]
    Component(String),
    /// The job does not accept the component. The same request would be refused again.
    #[error("{0}")]
    Refused(String),
    /// The job cannot keep the component, for instance because the disk is full: try again when the cause is removed.
    #[error("{0}")]
    NotKept(String),
}

impl From<String> for ReplacementError {
    fn from(why: String) -> ReplacementError {
        ReplacementError::Refused(why)
    }
}

/// A component that has been obtained and checked.
pub struct ObtainedComponent {
    found: ResolvedComponent,
    component: Component,
}

impl ObtainedComponent {
    /// Returns the bytes of the component.
    pub fn bytes(&self) -> &[u8] {
        &self.found.bytes
    }

    /// Returns the digest of the component.
    pub fn sha256(&self) -> Sha256 {
        self.found.sha256
    }
}

impl PluginFactory {
    /// Checks that the job has a plugin of this name.
    pub fn known(&self, profile: &Profile, name: &str) -> Result<(), String> {
        if profile.plugins.contains_key(name) {
            return Ok(());
        }
        let names: Vec<&str> = profile.plugins.keys().map(String::as_str).collect();
        Err(format!(
            "the job has no plugin {name:?}; it has: {}",
            names.join(", ")
        ))
    }

    /// Obtains and loads the requested component. Blocks, also while a registry responds.
    ///
    /// # Errors
    /// [`ReplacementError::Component`].
    pub fn get(&self, request: &ReplacementRequest) -> Result<ObtainedComponent, ReplacementError> {
        let load = |found: &ResolvedComponent| {
            let loaded = self.engine.load(&found.bytes, &found.origin);
            loaded.map_err(|problem| chain(&problem))
        };
        let mut plugins_of = |found: &ResolvedComponent| {
            let component = load(found)?;
            let plugins = component.plugins().iter();
            Ok(plugins.map(|plugin| plugin.name.clone()).collect())
        };
        let terms = ComponentConditions {
            sha256: request.sha256,
            insecure: false,
        };
        let found = match &request.bytes {
            Some(bytes) => ResolvedComponent {
                sha256: Sha256::of(bytes),
                bytes: bytes.clone().into(),
                origin: request.component.to_string(),
                image: None,
                plugin: request.component.plugin().map(str::to_owned),
                note: None,
            },
            None => {
                let found = self
                    .sources
                    .resolve(&request.component, &terms, &mut plugins_of);
                found.map_err(|problem| ReplacementError::Component(chain(&problem)))?
            }
        };
        let component = load(&found).map_err(ReplacementError::Component)?;
        Ok(ObtainedComponent { found, component })
    }

    /// Returns the plugins with one replaced, and a message about the result. The job keeps the new component, unless it comes from
    /// the file that the profile watches. Blocks.
    ///
    /// # Errors
    /// See [`ReplacementError`].
    pub fn replaced(
        &self,
        profile: &Profile,
        current: &Pool,
        request: &ReplacementRequest,
        candidate: &ObtainedComponent,
        by: &str,
    ) -> Result<(Pool, String), ReplacementError> {
        let name = &request.instance;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = current.replaced(
            profile,
            Replacement {
                name: name.clone(),
                component: candidate.component.clone(),
                plugin: request.component.plugin().map(str::to_owned),
                settings: request.settings.clone(),
            },
        )?;
        let (Some(instance), Some(before), Some(after)) = (
            profile.plugins.get(name),
            current.plugin(name),
            pool.plugin(name),
        ) else {
            return Err(format!("the job has no plugin {name:?}").into());
        };
        let mut message = format!(
            "{name} was {} {} (sha256 {}), is {} {} (sha256 {})",
            before.name(),
            before.version(),
            before.component_sha256(),
            after.name(),
            after.version(),
            after.component_sha256(),
        );
        if let Some(settings) = pool.written(name)
            && *settings != instance.settings
        {
            message.push_str(&format!(
                "; its settings are {settings}, which are not the profile's"
            ));
        }
        let is_from_watched_file =
            instance.watch && request.component == instance.component && request.settings.is_none();
        if !is_from_watched_file {
            let earlier = kept
                .kept(instance)
                .and_then(|kept| kept.replacement.as_ref()?.settings.clone());
            let replaced = ReplacementComponent {
                component: candidate.found.origin.clone(),
                sha256: candidate.found.sha256,
                plugin: Some(after.name().to_owned()),
                settings: request.settings.clone().or(earlier),
                at: Timestamp::now(),
                by: by.to_owned(),
            };
            kept.replace(&self.job, instance, replaced, &candidate.found.bytes)
                .map_err(|problem| ReplacementError::NotKept(chain(&problem)))?;
        }
        Ok((pool, message))
    }
}
