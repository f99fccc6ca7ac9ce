//! The components that a job keeps, so that it resumes with the plugins that it began with and with their replacements. Later
//! changes of files, registries and tags then have no effect.
//!
//! ```text
//! JOB/plugins.json            the component of each instance, and its replacement
//! JOB/components/SHA256.wasm  these components
//! ```
//! Built-in components are not kept: they come with the binary. Components that the profile watches are not kept either. If the
//! profile now names another component for an instance, the instance begins with that one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_profile::{ComponentReference, Instance};
use opilio_source::{Blobs, PinnedComponent, ResolvedComponent, Sha256, Sources};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chain;

/// The list, in the job's directory.
pub const LIST: &str = "plugins.json";
/// The components, there.
pub const COMPONENTS: &str = "components";

/// The plugins that a job keeps, by the names of instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPlugins {
    plugins: BTreeMap<String, JobPlugin>,
    /// The directory of the job.
    #[serde(skip)]
    job: PathBuf,
}

/// The kept data of one instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct JobPlugin {
    /// The component as the profile named it. If the profile names another one, this entry no longer counts.
    named: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<Sha256>,
    /// The component when the job began; `None` for a built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<PinnedComponent>,
    /// The replacement of the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<ReplacementComponent>,
}

/// The component that replaced a plugin's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReplacementComponent {
    /// The source of the component.
    pub component: String,
    /// Its digest.
    pub sha256: Sha256,
    /// The name of the plugin within the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Settings in place of the profile's, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
    /// Time of the replacement.
    pub at: Timestamp,
    /// The operator who replaced it.
    pub by: String,
}

/// A job's plugins cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum ComponentsError {
    /// A file cannot be read or written.
    #[error("cannot use {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The list of components cannot be parsed.
    #[error("{path} is damaged")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// A component cannot be kept or is damaged.
    #[error(transparent)]
    Blob(#[from] opilio_source::BlobError),
}

impl JobPlugins {
    /// Reads the plugins of the job in this directory. The result is empty if the job has kept none.
    pub fn read(job: &Path) -> Result<JobPlugins, ComponentsError> {
        let path = job.join(LIST);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                return Ok(JobPlugins {
                    job: job.to_owned(),
                    ..JobPlugins::default()
                });
            }
            Err(source) => return Err(ComponentsError::Io { path, source }),
        };
        let list: JobPlugins = serde_json::from_slice(&text)
            .map_err(|source| ComponentsError::Damaged { path, source })?;
        Ok(JobPlugins {
            job: job.to_owned(),
            ..list
        })
    }

    /// Returns a list without plugins for the same job.
    #[must_use]
    pub fn emptied(&self) -> JobPlugins {
        JobPlugins {
            job: self.job.clone(),
            ..JobPlugins::default()
        }
    }

    /// Writes the plugins into a job: components first, so that the list never names a missing one.
    pub fn write(
        &self,
        job: &Path,
        components: &[(Sha256, bytes::Bytes)],
    ) -> Result<(), ComponentsError> {
        let blobs = blobs(job);
        for (_, bytes) in components {
            blobs.put(bytes)?;
        }
        let path = job.join(LIST);
        if self.plugins.is_empty() && !path.exists() {
            return Ok(());
        }
        let text =
            serde_json::to_string_pretty(self).map_err(|source| ComponentsError::Damaged {
                path: path.clone(),
                source,
            })?;
        let draft = path.with_extension("draft");
        fs::write(&draft, format!("{text}\n"))
            .and_then(|()| fs::File::open(&draft)?.sync_all())
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(|source| ComponentsError::Io { path, source })
    }

    /// Returns the entry of an instance, if the profile still names the component that it named then.
    pub fn kept(&self, instance: &Instance) -> Option<&JobPlugin> {
        let kept = self.plugins.get(&instance.name)?;
        let is_same = kept.named == named(instance) && kept.pinned == instance.sha256.map(Sha256);
        Some(kept).filter(|_| is_same)
    }

    /// The entry of an instance.
    pub fn get(&self, instance: &str) -> Option<&JobPlugin> {
        self.plugins.get(instance)
    }

    /// Replaces the entry of an instance.
    pub fn insert(&mut self, instance: &str, kept: JobPlugin) {
        self.plugins.insert(instance.to_owned(), kept);
    }

    /// Gives the entries the names of components that another list with the same instances has. It is for a job that comes from
    /// another machine, where files have other paths.
    pub fn rename(&mut self, local: &JobPlugins) {
        for (instance, kept) in &mut self.plugins {
            if let Some(local) = local.get(instance) {
                kept.named.clone_from(&local.named);
            }
        }
    }

    /// The instances whose components are kept: all except built-in ones that have not been replaced.
    pub fn with_components(&self) -> Vec<String> {
        let kept = self.plugins.iter();
        let kept = kept.filter(|(_, it)| it.frozen.is_some() || it.replacement.is_some());
        kept.map(|(instance, _)| instance.clone()).collect()
    }

    /// Returns the components that the job keeps, for recording their use.
    pub fn frozen(&self) -> impl Iterator<Item = &PinnedComponent> {
        self.plugins
            .values()
            .filter_map(|kept| kept.frozen.as_ref())
    }

    /// Returns the component with which a job resumes.
    pub fn thaw(
        &self,
        kept: &JobPlugin,
        sources: &Sources,
        insecure: bool,
    ) -> Result<ResolvedComponent, String> {
        let frozen = match (&kept.replacement, &kept.frozen) {
            (Some(replaced), _) => PinnedComponent {
                component: replaced.component.clone(),
                sha256: replaced.sha256,
                image: None,
            },
            (None, Some(frozen)) => frozen.clone(),
            (None, None) => {
                return Err(format!(
                    "{} names no component",
                    self.job.join(LIST).display()
                ));
            }
        };
        let kept = blobs(&self.job)
            .get(frozen.sha256)
            .map_err(|problem| chain(&problem))?;
        match kept {
            Some(bytes) => Ok(ResolvedComponent {
                bytes: bytes.into(),
                sha256: frozen.sha256,
                origin: frozen.component,
                image: frozen.image,
                plugin: None,
                note: None,
            }),
            None => sources
                .thaw(&frozen, insecure)
                .map_err(|problem| chain(&problem)),
        }
    }

    /// Records in the job, permanently, that an instance has been replaced.
    pub fn replace(
        &mut self,
        job: &Path,
        instance: &Instance,
        replaced: ReplacementComponent,
        bytes: &bytes::Bytes,
    ) -> Result<(), ComponentsError> {
        let kept = self.kept(instance).cloned();
        let kept = JobPlugin {
            replacement: Some(replaced.clone()),
            ..kept.unwrap_or_else(|| JobPlugin::of(instance))
        };
        let mut list = self.clone();
        list.insert(&instance.name, kept);
        list.write(job, &[(replaced.sha256, bytes.clone())])?;
        *self = list;
        Ok(())
    }
}

impl JobPlugin {
    fn of(instance: &Instance) -> JobPlugin {
        JobPlugin {
            named: named(instance),
            pinned: instance.sha256.map(Sha256),
            frozen: None,
            replacement: None,
        }
    }

    /// Returns the entry of an instance at the beginning of a job.
    pub fn begun(instance: &Instance, found: &ResolvedComponent) -> JobPlugin {
        JobPlugin {
            frozen: Some(found.frozen(&instance.component)),
            ..JobPlugin::of(instance)
        }
    }
}

/// The component that an instance names. A path is absolute: a job's copy of a profile has an absolute folder, the profile of a
/// command line may have a relative one.
fn named(instance: &Instance) -> String {
    match &instance.component {
        ComponentReference::File { path, plugin } => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let plugin = plugin.clone();
            ComponentReference::File { path, plugin }.to_string()
        }
        other => other.to_string(),
    }
}

fn blobs(job: &Path) -> Blobs {
    Blobs::at(job.join(COMPONENTS))
}

#[cfg(test)]
mod tests {
    use opilio_profile::{Profile, ProfileContext};

    use super::*;

    fn instance(text: &str) -> Instance {
        instance_in(Path::new("/base"), text)
    }

    fn instance_in(base: &Path, text: &str) -> Instance {
        let given = ProfileContext {
            builtins: vec![
                "autoplay".to_owned(),
                "autoscroll".to_owned(),
                "bot-walls".to_owned(),
                "consent".to_owned(),
                "html".to_owned(),
                "needs-browser".to_owned(),
                "soft-404".to_owned(),
            ],
            seeds_elsewhere: true,
            base: Some(base.to_owned()),
            ..ProfileContext::default()
        };
        let text = format!("[stacks]\nscope = []\nextract = ['x']\nwait = []\n[plugins.x]\n{text}");
        let profile = Profile::parse("p.toml", &text, &given).unwrap();
        profile.plugins["x"].clone()
    }

    #[test]
    fn a_kept_entry_counts_as_long_as_the_profile_names_the_same_component() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path();
        let mut list = JobPlugins::read(job).unwrap();
        assert_eq!(list.kept(&instance("component = 'a.wasm'")), None);
        let bytes = bytes::Bytes::from_static(b"new");
        let replaced = ReplacementComponent {
            component: "/home/lena/b.wasm".to_owned(),
            sha256: Sha256::of(&bytes),
            plugin: None,
            settings: Some(serde_json::json!({"a": 1})),
            at: Timestamp::UNIX_EPOCH,
            by: "lena".to_owned(),
        };
        let before = instance("component = 'a.wasm'");
        list.replace(job, &before, replaced.clone(), &bytes)
            .unwrap();

        let again = JobPlugins::read(job).unwrap();
        let kept = again.kept(&before).unwrap();
        assert_eq!(kept.replacement.as_ref(), Some(&replaced));
        let sources = Sources::new(opilio_source::SourcesConfig {
            store: job.join("store"),
            credentials: None,
            now: || Timestamp::UNIX_EPOCH,
        });
        assert_eq!(again.thaw(kept, &sources, false).unwrap().bytes, bytes);
        for other in [
            "component = 'b.wasm'".to_owned(),
            "component = 'a.wasm#y'".to_owned(),
            "component = 'builtin:html'".to_owned(),
            format!("component = 'a.wasm'\nsha256 = '{}'", "0".repeat(64)),
        ] {
            assert_eq!(again.kept(&instance(&other)), None, "{other}");
        }
    }

    #[test]
    fn a_kept_entry_counts_in_a_relative_folder_and_on_another_machine() {
        let text = "component = 'own/a.wasm#y'";
        let here = std::env::current_dir().unwrap();
        let [relative, absolute] = [Path::new(""), &here].map(|base| instance_in(base, text));
        let mut list = JobPlugins::default();
        list.insert("x", JobPlugin::of(&relative));
        assert!(list.kept(&absolute).is_some());

        let elsewhere = instance(text);
        assert_eq!(list.kept(&elsewhere), None);
        let mut local = JobPlugins::default();
        local.insert("x", JobPlugin::of(&elsewhere));
        list.rename(&local);
        assert!(list.kept(&elsewhere).is_some());
    }

    #[test]
    fn a_damaged_component_is_reported_and_not_used() {
        let home = tempfile::tempdir().unwrap();
        let bytes = bytes::Bytes::from_static(b"a component");
        let sha256 = Sha256::of(&bytes);
        let before = instance("component = 'a.wasm'");
        let mut list = JobPlugins::default();
        let frozen = JobPlugin {
            frozen: Some(PinnedComponent {
                component: "a.wasm".to_owned(),
                sha256,
                image: None,
            }),
            ..JobPlugin::of(&before)
        };
        list.insert("x", frozen);
        list.write(home.path(), &[(sha256, bytes)]).unwrap();
        let path = home.path().join(format!("{COMPONENTS}/{sha256}.wasm"));
        fs::write(&path, "another").unwrap();
        let list = JobPlugins::read(home.path()).unwrap();
        let sources = Sources::new(opilio_source::SourcesConfig {
            store: home.path().join("store"),
            credentials: None,
            now: || Timestamp::UNIX_EPOCH,
        });
        let refused = list.thaw(list.kept(&before).unwrap(), &sources, false);
        let refused = refused.unwrap_err();
        assert!(refused.contains("is damaged"), "{refused}");
    }
}
