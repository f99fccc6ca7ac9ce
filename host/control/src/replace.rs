//! Replacement of plugins, and the tables of plugins.

use std::path::Path;
use std::sync::Mutex;

use opilio_profile::Component;
use opilio_sandbox::{Engine, EngineConfig, Tables};
use serde_json::Value;

use super::perform::{Say, done};
use super::{Answer, Author, ControlError, ErrorKind, JobAdmin};
use opilio_crawl::load::sources;
use opilio_crawl::workshop::{Wish, Workshop};
use opilio_job::component_cache;
use opilio_stacks::components::JobPlugins;
use opilio_stacks::on_plugin_thread;
use opilio_stacks::{self, Loading};

impl JobAdmin<'_> {
    /// Parses a replacement from the arguments of a command.
    pub(super) fn wish(
        plugin: &str,
        component: &str,
        sha256: Option<&str>,
        settings: Option<&Value>,
    ) -> Result<Wish, ControlError> {
        let refused = |problem: String| ControlError::new(ErrorKind::Request, problem);
        let component = Component::parse(component, Path::new(""))
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
        Ok(Wish {
            instance: plugin.to_owned(),
            component,
            sha256,
            settings: settings.cloned(),
        })
    }

    /// Replaces the plugin at once if the job runs; otherwise when the job resumes.
    pub(super) fn replace_plugin(
        &self,
        wish: &Wish,
        by: &Author,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let by = by.to_string();
        let replaced = match self.running {
            Some(running) => running.context.replace_plugin(wish, &by),
            None => on_plugin_thread("plugin-replacement", || self.replace_at_rest(wish, &by))
                .and_then(|replaced| replaced),
        };
        let words = replaced.map_err(|problem| {
            ControlError::new(ErrorKind::State, format!("not replaced: {problem}"))
        })?;
        Ok(done(&words, say))
    }

    fn replace_at_rest(&self, wish: &Wish, by: &str) -> Result<String, String> {
        let kept = JobPlugins::read(self.job).map_err(|problem| opilio_stacks::chain(&problem))?;
        let engine = Engine::new(EngineConfig {
            cache_dir: component_cache(),
            ..EngineConfig::default()
        });
        let workshop = Workshop {
            engine: engine.map_err(|problem| opilio_stacks::chain(&problem))?,
            sources: sources(self.job),
            job: self.job.to_owned(),
            kept: Mutex::new(kept.clone()),
        };
        workshop.known(self.profile, &wish.instance)?;
        let candidate = workshop.get(wish)?;
        let loaded = opilio_stacks::load(Loading {
            engine: &workshop.engine,
            profile: self.profile,
            seed_prefixes: &[],
            tables: &Tables::default(),
            sources: &workshop.sources,
            job: Some(&kept),
            only: Some(&wish.instance),
        });
        let loaded = loaded.map_err(|faults| faults.to_string())?;
        let pool = loaded.stacks.pool();
        let replaced = workshop.replaced(self.profile, pool, wish, &candidate, by)?;
        Ok(format!("{}, when the job resumes", replaced.1))
    }

    /// Returns the tables of plugins.
    pub(super) fn tables(&self, reload: bool, say: Say<'_>) -> Result<String, ControlError> {
        let running = self.running("its tables are read when it resumes")?;
        let tables = &running.context.plugins.tables;
        if reload {
            tables.look(true, self.log);
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
        say(Answer::Tables { tables });
        Ok(words)
    }
}
