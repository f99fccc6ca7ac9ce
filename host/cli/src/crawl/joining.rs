//! Crawls that several nodes share: the part of this node, and the order of a node that joins without a profile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use opilio_cluster::ClusterConfig;
use opilio_console::DaemonConfig;
use opilio_crawl::{FetchedProfile, JobPart, Order, Plan, ProfileSource, is_job, part_names};

use super::{PROFILE_COPY, component_cache};
use crate::usage_error::UsageError;
use crate::{CrawlArgs, NodesArgs};

/// Returns the order of a node that names a job of the cluster and no profile. Profile, seeds and components are fetched from the
/// cluster, unless the directory has the job already.
pub(super) async fn order(args: &CrawlArgs) -> Result<Order> {
    let name = args.nodes.cluster_job.as_deref().unwrap_or_default();
    if !args.seed.is_empty() {
        let problem =
            "--seed needs a profile: without one, the seeds are those of the cluster's job";
        return Err(UsageError::new(problem).into());
    }
    let job = args.job.clone().unwrap_or_else(|| {
        let folder = match &args.nodes.take_over {
            Some(part) => format!("{name}-{part}"),
            None => name.to_owned(),
        };
        Path::new("jobs").join(folder)
    });
    let profile = match is_job(&job) {
        true if known_part(&job)?.is_none() => {
            let problem = format!(
                "job {} is not part of a shared crawl: name another directory with --job",
                job.display()
            );
            return Err(UsageError::new(problem).into());
        }
        true => ProfileSource::File(job.join(PROFILE_COPY)),
        false => {
            let file = config_file(&args.nodes)?;
            let config = cluster_config(&file)?;
            let base = file.parent().unwrap_or(Path::new(""));
            let fetched = FetchedProfile::fetch(&config, name, base, &job).await?;
            ProfileSource::Fetched(Arc::new(fetched))
        }
    };
    Ok(Order {
        profile,
        seeds: Vec::new(),
        contact_url: args.contact_url.clone(),
        job: Some(job),
        component_cache: component_cache(),
    })
}

/// Returns the part of a shared crawl: that of the command line, or of a job that is resumed.
pub(super) fn job_part(
    args: NodesArgs,
    order: &Order,
    plan: &Plan,
) -> Result<Option<(ClusterConfig, JobPart)>> {
    let job = plan.directory();
    let known = known_part(job)?;
    let file = match (&args.cluster_job, &known) {
        (Some(_), _) => config_file(&args)?,
        (None, Some(known)) => known.config.clone(),
        (None, None) => return Ok(None),
    };
    let config = cluster_config(&file)?;
    let partitions = config.partitions;
    // A part that can be taken over may have another name than this node.
    let kept = known.as_ref().filter(|known| known.can_move());
    let kept = kept.map(|known| known.part.clone());
    let part = args.take_over.clone().or(kept);
    let part = part.unwrap_or_else(|| config.node.clone());
    let part = match (args.cluster_job.clone(), known) {
        (None, Some(known)) => JobPart {
            part,
            partitions,
            ..known
        },
        (name, known) => JobPart {
            job: name.unwrap_or_default(),
            parts: parts(args, order, plan, known)?,
            part,
            partitions,
            config: file,
            epoch: 0,
        },
    };
    Ok(Some((config, part)))
}

/// Returns the names of all parts: those of the command line; otherwise those of the cluster's job, or of the job's directory.
fn parts(
    args: NodesArgs,
    order: &Order,
    plan: &Plan,
    known: Option<JobPart>,
) -> Result<Vec<String>> {
    let count = args.parts.unwrap_or_default();
    let can_move = plan.profile().checkpoint.publish_every.is_some();
    match (&order.profile, known) {
        _ if !args.nodes.is_empty() => {
            if count > args.nodes.len() && !can_move {
                let problem = format!(
                    "--parts {count} is more than there are nodes, and parts cannot be taken over: set checkpoint.publish-every in the profile"
                );
                return Err(UsageError::new(problem).into());
            }
            Ok(part_names(args.nodes, count))
        }
        (ProfileSource::Fetched(fetched), _) => Ok(fetched.parts().to_vec()),
        (_, Some(known)) => Ok(known.parts),
        (_, None) => {
            let problem = "--cluster-job needs --nodes, which names all nodes of the crawl; or leave the profile out, to join a crawl that another node has started";
            Err(UsageError::new(problem).into())
        }
    }
}

/// The part of a shared crawl that a job's directory has; `None` if it has none.
fn known_part(job: &Path) -> Result<Option<JobPart>> {
    JobPart::read(job).with_context(|| format!("cannot read cluster.json of job {}", job.display()))
}

/// The configuration that names the cluster, as an absolute path.
fn config_file(args: &NodesArgs) -> Result<PathBuf> {
    let file = args.config.as_deref();
    Ok(std::path::absolute(
        file.unwrap_or(Path::new("opilio.toml")),
    )?)
}

fn cluster_config(file: &Path) -> Result<ClusterConfig> {
    let Some(cluster) = DaemonConfig::load(file)?.cluster else {
        let problem = format!(
            "{} has no [cluster]: add it, or name another file with --config",
            file.display()
        );
        return Err(UsageError::new(problem).into());
    };
    Ok(cluster.settings()?)
}
