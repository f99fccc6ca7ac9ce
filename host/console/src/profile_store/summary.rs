//! List of the profiles that jobs can use by name: those of the store, and the shipped ones.

use jiff::Timestamp;
use opilio_control::FaultFound;
use opilio_profile::{Profile, ProfileContext, toml_parts};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{ProfileStore, StoredProfile};

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProfileSummary {
    /// Name of the profile.
    pub name: String,
    /// `true` if the profile is shipped with Opilio. Shipped profiles cannot be changed, but copied.
    pub ships: bool,
    /// Purpose, from the profile's `description`.
    pub description: Option<String>,
    /// Number of the newest version; not set for shipped profiles.
    pub version: Option<u64>,
    /// Time of the last change.
    pub changed: Option<Timestamp>,
    /// User who made the last change; not set if the file was changed by other means than Opilio.
    pub changed_by: Option<String>,
    /// Reason for the last change, as the user gave it.
    pub reason: Option<String>,
    /// Reason why the profile cannot be read.
    pub problem: Option<String>,
    /// Errors, warnings and notes with their places. Settings of plugins are not checked: see `profiles/check`.
    pub faults: Vec<FaultFound>,
}

impl ProfileStore {
    /// The profiles that jobs can use by name: those of the store first, then the shipped ones.
    pub fn summaries(&self) -> Vec<ProfileSummary> {
        let names = self.names();
        let shipped = Profile::builtin_names().filter(|name| !names.iter().any(|own| own == name));
        let shipped: Vec<ProfileSummary> = shipped.map(ProfileSummary::of_shipped).collect();
        let own = names.into_iter().map(|name| self.summary(name));
        own.chain(shipped).collect()
    }

    fn summary(&self, name: String) -> ProfileSummary {
        let found = self.get(&name);
        let last = self.versions(&name);
        let last = last.ok().and_then(|mut versions| versions.pop());
        let read = found.as_ref().ok();
        ProfileSummary {
            ships: false,
            description: read.and_then(|it| description(&it.text)),
            version: read.map(|it| it.version),
            changed: last.as_ref().map(|last| last.at),
            changed_by: last.as_ref().and_then(|last| last.by.clone()),
            reason: last.and_then(|last| last.reason),
            faults: read.map(|it| self.faults(it)).unwrap_or_default(),
            problem: found.err().map(|problem| problem.to_string()),
            name,
        }
    }

    fn faults(&self, profile: &StoredProfile) -> Vec<FaultFound> {
        let given = ProfileContext {
            builtins: opilio_crawl::builtin_plugins(),
            seeds_elsewhere: true,
            base: Some(self.folder().to_owned()),
            ..ProfileContext::default()
        };
        let file = format!("{}.toml", profile.name);
        let faults = match Profile::parse(&file, &profile.text, &given) {
            Ok(profile) => profile.notices,
            Err(faults) => faults,
        };
        faults.iter().map(FaultFound::from).collect()
    }
}

impl ProfileSummary {
    fn of_shipped(name: &str) -> ProfileSummary {
        ProfileSummary {
            name: name.to_owned(),
            ships: true,
            description: Profile::builtin_text(name).and_then(description),
            version: None,
            changed: None,
            changed_by: None,
            reason: None,
            problem: None,
            faults: Vec::new(),
        }
    }
}

fn description(text: &str) -> Option<String> {
    match toml_parts(text).get("description") {
        Some(Value::String(description)) => Some(description.clone()),
        _ => None,
    }
}
