//! A plugin at its place in a stack, and the kind of plugin that a stage takes.

use std::sync::Arc;

use opilio_archive::{Digest, PluginInForce};
use opilio_profile::Stage;
use opilio_sandbox::{Fault, Kind, Plugin};

use crate::breaker::{Breaker, FaultPolicy, UnansweredCall};
use crate::recorder::Recorder;

/// A plugin at its place in a stack.
#[derive(Clone)]
pub struct Staged {
    /// Its name in the profile.
    pub name: Arc<str>,
    /// The configured plugin.
    pub plugin: Plugin,
    /// For extractors only: whether it is skipped once another extractor has understood the document.
    pub last_resort: bool,
    /// Filters that decide whether it sees a document or a candidate. Guards have no guards of their own.
    pub guards: Vec<Staged>,
    /// The profile's policy for its errors.
    pub policy: FaultPolicy,
    /// Shared by all places and variants of the instance.
    pub breaker: Arc<Breaker>,
    /// The recorder that keeps its calls; `None` if calls are not recorded.
    pub recorder: Option<Arc<Recorder>>,
}

impl From<&Staged> for PluginInForce {
    fn from(staged: &Staged) -> PluginInForce {
        PluginInForce {
            name: staged.name.to_string(),
            version: staged.plugin.version().to_owned(),
            hash: format!("sha256:{}", staged.plugin.component_sha256()),
            settings: format!("sha256:{}", staged.plugin.settings_sha256())
                .parse::<Digest>()
                .ok(),
        }
    }
}

impl Staged {
    /// Returns `true` if the component ships with Opilio. Other components are custom.
    pub fn ships(&self) -> bool {
        let sha256 = self.plugin.component_sha256();
        opilio_builtin::all().any(|builtin| builtin.sha256 == sha256)
    }

    /// Returns the error under the name that the profile gives the plugin: the profile may use one component several times.
    pub fn named(&self, fault: Fault) -> Fault {
        Fault {
            plugin: self.name.clone(),
            ..fault
        }
    }

    /// Calls the plugin, unless its breaker is open.
    pub fn call<T>(
        &self,
        call: impl FnOnce(&Plugin) -> Result<T, Fault>,
    ) -> Result<T, UnansweredCall> {
        self.breaker.call(self.policy, || {
            let answer = tracing::info_span!("plugin", opilio.plugin = &*self.name)
                .in_scope(|| call(&self.plugin));
            answer.map_err(|fault| self.named(fault))
        })
    }
}

/// Returns the reason for which a plugin does not fit a stage; `None` if it fits.
pub(crate) fn misplaced(name: &str, plugin: &Plugin, stage: Stage) -> Option<String> {
    let (kind, what) = kind_of(stage);
    (!plugin.is(&kind)).then(|| format!("plugin \"{name}\" is not {what}"))
}

/// Returns the kind of the plugins of a stage, and its name.
pub(crate) fn kind_of(stage: Stage) -> (Kind, &'static str) {
    match stage {
        Stage::Precedence => (Kind::Precedence, "a precedence plugin"),
        Stage::Digest => (Kind::DigestStripper, "a digest stripper"),
        Stage::Change => (Kind::ChangeEvaluator, "a change evaluator"),
        Stage::Extract => (Kind::Extractor, "an extractor"),
        Stage::Behave => (Kind::PageBehavior, "a page behaviour"),
        Stage::Wait => (Kind::WaitEvaluator, "a wait evaluator"),
        Stage::Observe => (Kind::Observer, "an observer"),
        Stage::Scope
        | Stage::PreFetch
        | Stage::MidFetch
        | Stage::PostFetch
        | Stage::Render
        | Stage::PreExtract
        | Stage::Archive => (Kind::Filter, "a filter"),
    }
}
