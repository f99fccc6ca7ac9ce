//! The nodes that share a job. Each crawls a fixed part of the sites; all parts together are the crawl. The job's directory has the
//! list in `cluster.json`, so that every process of the job works on the same part.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opilio_cluster::partition::PartitionCount;
use opilio_frontier::CrawlPart;
use opilio_profile::Profile;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

/// Name of the file in the job's directory.
const FILE: &str = "cluster.json";

/// The nodes that share a job, and this one among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobNodes {
    /// Name of the job in the cluster.
    pub job: String,
    /// Names of all nodes, sorted.
    pub nodes: Vec<String>,
    /// Name of this node.
    pub node: String,
    /// Number of partitions of the cluster. A site belongs to a partition, and the partitions are dealt out to the nodes in turn.
    pub partitions: PartitionCount,
    /// The daemon's configuration, whose `[cluster]` names the servers. An absolute path.
    pub config: PathBuf,
}

impl JobNodes {
    /// The nodes of a job, from its directory; `None` if the job runs on one machine.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(job: &Path) -> io::Result<Option<JobNodes>> {
        match fs::read(job.join(FILE)) {
            Ok(json) => serde_json::from_slice(&json)
                .map_err(io::Error::other)
                .map(Some),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Returns `true` if these are the same nodes of the same job.
    pub(crate) fn is_same(&self, other: &JobNodes) -> bool {
        let config = self.config.clone();
        *self
            == JobNodes {
                config,
                ..other.clone()
            }
    }

    /// Writes the file into the job's directory.
    pub(crate) fn write(&self, job: &Path) -> io::Result<()> {
        let draft = job.join("cluster.draft");
        fs::write(&draft, serde_json::to_vec_pretty(self)?)?;
        fs::rename(draft, job.join(FILE))
    }

    /// The number of the node that crawls a queue with a URI of it.
    pub(crate) fn owner(&self, profile: &ForcedQueues, queue: &str, uri: &Uri) -> u16 {
        let site = || uri.registrable_domain().or_else(|| uri.host());
        // A queue that the operator forces has sites of its own choice, and one politeness.
        let unit = match profile.0.contains(queue) {
            true => queue,
            false => site().unwrap_or_else(|| uri.scheme()),
        };
        // There are at most as many nodes as partitions.
        self.partitions.partition_of(unit).number() % self.nodes.len().max(1) as u16
    }

    /// The number of this node.
    pub(crate) fn own(&self) -> u16 {
        let place = self.nodes.iter().position(|node| *node == self.node);
        place.unwrap_or(0) as u16
    }

    /// The part of the crawl that this node has.
    #[must_use]
    pub fn part(&self, profile: &Profile) -> CrawlPart {
        let (nodes, forced, own) = (self.clone(), ForcedQueues::of(profile), self.own());
        CrawlPart::new(move |queue, uri| nodes.owner(&forced, queue, uri) == own)
    }
}

/// Names of the queues that overrides force. They are part of a job's identity, and never change.
pub(crate) struct ForcedQueues(BTreeSet<String>);

impl ForcedQueues {
    pub(crate) fn of(profile: &Profile) -> ForcedQueues {
        ForcedQueues(profile.forced_queues().map(str::to_owned).collect())
    }
}

/// The part of the crawl that a job's directory has; `None`: all of it.
///
/// # Errors
/// As [`JobNodes::read`].
pub fn part_of_job(job: &Path, profile: &Profile) -> io::Result<Option<CrawlPart>> {
    Ok(JobNodes::read(job)?.map(|nodes| nodes.part(profile)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: usize) -> JobNodes {
        let nodes: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
        JobNodes {
            job: "news".to_owned(),
            node: nodes[0].clone(),
            nodes,
            partitions: PartitionCount::default(),
            config: "/etc/opilio.toml".into(),
        }
    }

    fn owner(nodes: &JobNodes, queue: &str, uri: &str) -> u16 {
        let forced = ForcedQueues(["hoster".to_owned()].into());
        nodes.owner(&forced, queue, &Uri::parse(uri).unwrap())
    }

    #[test]
    fn a_site_has_one_node_whatever_its_hosts_ports_and_queues() {
        let nodes = nodes(7);
        let one = owner(&nodes, "org,example,", "http://example.org/");
        for (queue, uri) in [
            ("org,example,www,", "https://www.example.org/a"),
            ("org,example,#8080", "http://example.org:8080/"),
            ("192.0.2.1", "http://a.b.example.org/"),
        ] {
            assert_eq!(owner(&nodes, queue, uri), one, "{uri}");
        }
        let forced = |uri| owner(&nodes, "hoster", uri);
        assert_eq!(forced("http://example.org/"), forced("http://example.net/"));
    }

    #[test]
    fn sites_are_spread_over_all_nodes() {
        let nodes = nodes(3);
        let owners = (0..300).map(|n| owner(&nodes, "", &format!("http://site{n}.org/")));
        let mut counts = [0; 3];
        owners.for_each(|owner| counts[usize::from(owner)] += 1);
        assert!(counts.iter().all(|count| *count > 70), "{counts:?}");
    }

    #[test]
    fn the_list_is_kept_in_the_job() {
        let job = tempfile::tempdir().unwrap();
        assert_eq!(JobNodes::read(job.path()).unwrap(), None);
        let nodes = nodes(2);
        nodes.write(job.path()).unwrap();
        assert_eq!(JobNodes::read(job.path()).unwrap(), Some(nodes));
    }
}
