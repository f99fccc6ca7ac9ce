//! The engine of Heritrix's interface: the list of jobs, and actions on the list.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;

use super::drafts::CONFIG;
use super::model::{HeritrixJob, engine};
use super::{answer, see_other};
use crate::api::jobs::blocking;
use crate::daemon::Daemon;
use crate::folder::is_name;
use crate::input::Form;
use crate::problem::Problem;

/// The configuration of a newly created job.
const CREATED: &str = include_str!("crawler-beans.cxml");

#[derive(Debug, Deserialize)]
pub(super) struct Action {
    action: Option<String>,
    createpath: Option<String>,
    #[serde(alias = "path")]
    addpath: Option<String>,
}

pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let looked = daemon.clone();
    let cases = blocking(move || looked.cases()).await?;
    let url = daemon.engine_url(&headers);
    let jobs = cases.iter().map(|case| case.short(&url)).collect();
    let folder = daemon.folder.path().display().to_string();
    let value = engine(&folder, daemon.began, jobs);
    Ok(answer(&headers, "engine", &value))
}

pub(super) async fn act(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
    Form(asked): Form<Action>,
) -> Result<Response, Problem> {
    let url = daemon.engine_url(&headers);
    match asked.action.as_deref() {
        // The list is always current, and there is no garbage collector to run.
        Some("rescan" | "gc") => {}
        Some("create") => {
            let name = asked
                .createpath
                .ok_or_else(|| Problem::unusable("createpath is missing: the name of the job"))?;
            let files = vec![(CONFIG.to_owned(), CREATED.into())];
            let made = daemon.clone();
            blocking(move || made.drafts().make(&name, false, &files)).await?;
        }
        Some("add") => {
            let path = asked
                .addpath
                .ok_or_else(|| Problem::unusable("addpath is missing: the folder of the job"))?;
            let looked = daemon.clone();
            blocking(move || looked.can_add(&path)).await?;
        }
        Some("exit java process" | "exit") => {
            return Err(Problem::forbidden(
                "this action does not stop the daemon; stop it with `systemctl stop opilio` or the tool that started it",
            ));
        }
        Some(other) => return Err(Problem::unusable(format!("unknown action {other:?}"))),
        None => return Err(Problem::unusable("action is missing")),
    }
    Ok(see_other(url))
}

impl Daemon {
    /// All jobs, by name.
    fn cases(&self) -> Result<Vec<HeritrixJob>, Problem> {
        let drafts = self.drafts();
        let mut names = drafts
            .names()
            .map_err(|problem| Problem::failure(format!("cannot list the jobs: {problem}")))?;
        let jobs = self.jobs.borrow().clone();
        names.extend(jobs.keys().cloned());
        names.sort();
        names.dedup();
        let cases = names.into_iter().map(|name| HeritrixJob {
            draft: drafts.find(&name),
            // A job that was just deleted may still be in the list.
            known: jobs
                .get(&name)
                .filter(|_| self.folder.job(&name).is_ok())
                .cloned(),
            is_torn_down: drafts.is_torn_down(&name),
            name,
        });
        Ok(cases
            .filter(|case| case.draft.is_some() || case.known.is_some())
            .collect())
    }

    /// Checks a folder to be added. Folders within that of the jobs are found automatically; no other folder is examined.
    fn can_add(&self, path: &str) -> Result<(), Problem> {
        let jobs = self.folder.path();
        let jobs = jobs.canonicalize().unwrap_or_else(|_| jobs.to_owned());
        // The answer does not reveal whether something exists at another place.
        let wanted = Path::new(path).canonicalize().ok();
        let wanted = wanted.filter(|wanted| wanted.parent() == Some(&jobs));
        let name = wanted.as_deref().and_then(Path::file_name);
        let name = name.and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| is_name(name)) else {
            return Err(Problem::forbidden(format!(
                "{path} is not in the folder of jobs, {}; move it there",
                jobs.display()
            )));
        };
        match self.drafts().find(name).is_some() || self.folder.job(name).is_ok() {
            true => Ok(()),
            false => Err(Problem::unusable(format!("{CONFIG} not found in {path}"))),
        }
    }
}
