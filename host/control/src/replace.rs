//! Replacement of plugins, and the tables of plugins.

use std::path::Path;
use std::sync::Mutex;

use opilio_profile::ComponentReference;
use opilio_sandbox::{Engine, EngineConfig, Tables};
use serde_json::Value;

use super::answer::{Respond, done};
use super::{Author, CommandResponse, ControlError, ErrorKind, JobAdmin};
use opilio_crawl::load::sources;
use opilio_crawl::plugin_factory::{
    ObtainedComponent, PluginFactory, ReplacementError, ReplacementRequest,
};
use opilio_job::component_cache;
use opilio_stacks::components::JobPlugins;
use opilio_stacks::on_plugin_thread;
use opilio_stacks::{self, Loading};

impl JobAdmin<'_> {
    /// Parses a replacement from the arguments of a command.
    pub(super) fn replacement_request(
        plugin: &str,
        component: &str,
        sha256: Option<&str>,
        settings: Option<&Value>,
    ) -> Result<ReplacementRequest, ControlError> {
        let refused = |problem: String| ControlError::new(ErrorKind::Request, problem);
        let component = ComponentReference::parse(component, Path::new(""))
            .map_err(|problem| refused(problem.to_string()))?;
        let sha256 = sha256.map(str::parse).transpose();
        let sha256 = sha256.map_err(|problem: opilio_source::Sha256Problem| {
            refused(format!("invalid --sha256: {problem}"))
        })?;
        if settings.is_some_and(|settings| !settings.is_object()) {
            return Err(refused(
                "settings must be a JSON object: {\"name\": value}".to_owned(),
            ));
        }
        Ok(ReplacementRequest {
            instance: plugin.to_owned(),
            component,
            sha256,
            settings: settings.cloned(),
            bytes: None,
        })
    }

    /// Replaces the plugin at once if the job runs; otherwise when the job resumes.
    pub(super) fn replace_plugin(
        &self,
        request: &ReplacementRequest,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let by = by.name();
        let replaced = match self.running {
            Some(running) => running.context.replace_plugin(request, &by),
            None => on_plugin_thread("plugin-replacement", || self.replace_at_rest(request, &by))
                .map_err(ReplacementError::from)
                .and_then(|replaced| replaced),
        };
        let words = replaced.map_err(|problem| not_replaced(&problem))?;
        Ok(done(&words, respond))
    }

    /// Obtains the component of a replacement for all nodes of a shared job.
    pub(super) fn obtain_component(
        &self,
        request: &ReplacementRequest,
    ) -> Result<ObtainedComponent, ControlError> {
        let obtained = match self.running {
            Some(running) => running.context.obtain_component(request),
            None => on_plugin_thread("plugin-replacement", || self.obtain_at_rest(request))
                .map_err(ReplacementError::from)
                .and_then(|obtained| obtained),
        };
        obtained.map_err(|problem| not_replaced(&problem))
    }

    fn obtain_at_rest(
        &self,
        request: &ReplacementRequest,
    ) -> Result<ObtainedComponent, ReplacementError> {
        let (factory, _) = self.factory_at_rest()?;
        factory.known(self.profile, &request.instance)?;
        factory.get(request)
    }

    fn factory_at_rest(&self) -> Result<(PluginFactory, JobPlugins), String> {
        let kept = JobPlugins::read(self.job).map_err(|problem| opilio_stacks::chain(&problem))?;
        let engine = Engine::new(EngineConfig {
            cache_dir: component_cache(),
            ..EngineConfig::default()
        });
        let factory = PluginFactory {
            engine: engine.map_err(|problem| opilio_stacks::chain(&problem))?,
            sources: sources(self.job),
            job: self.job.to_owned(),
            kept: Mutex::new(kept.clone()),
        };
        Ok((factory, kept))
    }

    fn replace_at_rest(
        &self,
        request: &ReplacementRequest,
        by: &str,
    ) -> Result<String, ReplacementError> {
        let (factory, kept) = self.factory_at_rest()?;
        factory.known(self.profile, &request.instance)?;
        let candidate = factory.get(request)?;
        let loaded = opilio_stacks::load(Loading {
            engine: &factory.engine,
            profile: self.profile,
            seed_prefixes: &[],
            tables: &Tables::default(),
            sources: &factory.sources,
            job: Some(&kept),
            only: Some(&request.instance),
        });
        let loaded = loaded.map_err(|faults| faults.to_string())?;
        let pool = loaded.stacks.pool();
        let replaced = factory.replaced(self.profile, pool, request, &candidate, by)?;
        Ok(format!("{}, when the job resumes", replaced.1))
    }

    /// Returns the tables of plugins.
    pub(super) fn tables(
        &self,
        reload: bool,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let running = self.running("its tables are read when it resumes")?;
        let tables = &running.context.plugins.tables;
        if reload {
            tables.refresh(true, self.log);
        }
        let tables = tables.reports();
        let words = match tables
            .iter()
            .filter(|table| table.problem.is_some())
            .count()
        {
            0 => "read again".to_owned(),
            some => format!("read again; {some} unchanged because of errors"),
        };
        respond(CommandResponse::Tables { tables });
        Ok(words)
    }
}

/// Returns the reason why a plugin was not replaced, with its kind.
fn not_replaced(problem: &ReplacementError) -> ControlError {
    let kind = match problem {
        ReplacementError::Component(_) => ErrorKind::Request,
        ReplacementError::Refused(_) => ErrorKind::State,
        ReplacementError::NotKept(_) => ErrorKind::Failure,
    };
    ControlError::new(kind, format!("not replaced: {problem}"))
}
