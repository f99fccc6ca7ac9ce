//! The part of a shared job that a directory has. The nodes of a job share its sites: each site belongs to a part, and each part is
//! crawled by one process. All parts together are the crawl. The job's directory names its part in `cluster.json`, so that every
//! process of the directory works on the same part.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_cluster::control::SessionState;
use opilio_cluster::partition::{Partition, PartitionCount};
use opilio_cluster::{OwnPart, TakeoverRecord};
use opilio_frontier::CrawlPart;
use opilio_job::directory::SHARED as FILE;
use opilio_job::part_status::{FailedTakeover, PartState, PartTakeover};
use opilio_profile::Profile;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

/// The part of a shared job that a directory has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPart {
    /// Name of the job in the cluster.
    pub job: String,
    /// Names of all parts. Most parts have the name of the node that begins them.
    pub parts: Vec<String>,
    /// Name of this part.
    pub part: String,
    /// Number of partitions of the cluster. A site belongs to a partition, and the partitions are assigned to the parts in
    /// rotation.
    pub partitions: PartitionCount,
    /// The daemon's configuration, whose `[cluster]` names the servers. An absolute path.
    pub config: PathBuf,
    /// Epoch of the part in this directory: each new directory of a part has a greater number. 0 if other nodes cannot take the
    /// parts of the job over.
    pub epoch: u64,
}

/// Figures of a part, over all its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PartFigures {
    /// Number of queued URIs.
    pub queued: u64,
    /// Number of URIs in process.
    pub in_process: u64,
    /// Number of known URIs.
    pub discovered: u64,
    /// Number of responses of any status, without robots.txt and those that are retried.
    pub fetched: u64,
    /// Number of URIs that have succeeded; each URI counts once.
    pub succeeded: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// `true` if the part is paused.
    pub is_paused: bool,
}

impl PartFigures {
    /// Adds the figures of another part. The sum is paused if all parts are.
    pub fn add(&mut self, other: &PartFigures) {
        self.queued += other.queued;
        self.in_process += other.in_process;
        self.discovered += other.discovered;
        self.fetched += other.fetched;
        self.succeeded += other.succeeded;
        self.bytes += other.bytes;
        self.is_paused &= other.is_paused;
    }
}

/// Returns the names of the parts of a job that these nodes begin. If `count` is greater than the number of nodes, further parts
/// get generated names.
#[must_use]
pub fn part_names(nodes: impl IntoIterator<Item = String>, count: usize) -> Vec<String> {
    let nodes: BTreeSet<String> = nodes.into_iter().collect();
    let further = (1..).map(|number| format!("part-{number}"));
    let further = further.filter(|name| !nodes.contains(name));
    let further = further.take(count.saturating_sub(nodes.len()));
    let further: Vec<String> = further.collect();
    nodes.into_iter().chain(further).collect()
}

impl JobPart {
    /// Returns the part of a job's directory; `None` if the job runs on one machine.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(job: &Path) -> io::Result<Option<JobPart>> {
        match fs::read(job.join(FILE)) {
            Ok(json) => serde_json::from_slice(&json)
                .map_err(io::Error::other)
                .map(Some),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Returns `true` if other nodes can take the parts of the job over.
    #[must_use]
    pub fn can_move(&self) -> bool {
        self.epoch > 0
    }

    /// Returns the folder of this directory's files in the job's archive store, if the parts can be taken over. No other directory
    /// uses this folder.
    #[must_use]
    pub fn store_folder(&self) -> Option<String> {
        let folder = || format!("{}/{}-{}", self.job, self.part, self.epoch);
        self.can_move().then(folder)
    }

    /// Returns the part and its epoch, for records in the cluster.
    #[must_use]
    pub fn own(&self) -> OwnPart<'_> {
        OwnPart {
            name: &self.part,
            epoch: self.epoch,
        }
    }

    /// Writes the file into the job's directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, job: &Path) -> io::Result<()> {
        let draft = job.join("cluster.draft");
        fs::write(&draft, serde_json::to_vec_pretty(self)?)?;
        fs::rename(draft, job.join(FILE))
    }

    /// Returns `true` if this is the same part of the same job. The epoch may differ.
    pub(crate) fn is_same(&self, other: &JobPart) -> bool {
        let facts = |it: &JobPart| {
            (
                it.job.clone(),
                it.parts.clone(),
                it.part.clone(),
                it.partitions,
            )
        };
        facts(self) == facts(other)
    }

    /// Returns the number of the part to which a queue belongs. `uri` is a URI of the queue.
    pub(crate) fn owner(&self, profile: &ForcedQueues, queue: &str, uri: &Uri) -> u16 {
        let site = || uri.registrable_domain().or_else(|| uri.host());
        // A queue that an override forces may contain several sites, which share one politeness delay.
        let unit = match profile.0.contains(queue) {
            true => queue,
            false => site().unwrap_or_else(|| uri.scheme()),
        };
        // There are at most as many parts as partitions.
        self.partitions.partition_of(unit).number() % self.parts.len().max(1) as u16
    }

    /// Returns the name of the part to which a URI belongs.
    #[must_use]
    pub fn part_of(&self, profile: &Profile, uri: &Uri) -> &str {
        let owner = self.owner(&ForcedQueues::of(profile), &profile.queue_name(uri), uri);
        let part = self.parts.get(usize::from(owner));
        part.map_or(self.part.as_str(), String::as_str)
    }

    /// Returns this part's even share of a number for the whole crawl. The shares of all parts add up to the number.
    #[must_use]
    pub fn even_share(&self, whole: u64) -> u64 {
        let parts = self.parts.len().max(1) as u64;
        whole / parts + u64::from(u64::from(self.number()) < whole % parts)
    }

    /// Returns the number of this part.
    pub(crate) fn number(&self) -> u16 {
        let place = self.parts.iter().position(|part| *part == self.part);
        place.unwrap_or(0) as u16
    }

    /// Returns the NATS subject of the links to the part with this number.
    pub(crate) fn inbox(&self, number: u16) -> Partition {
        inbox_of_part(self.partitions, number)
    }

    /// Returns the queues of this part, for the frontier.
    #[must_use]
    pub fn queues(&self, profile: &Profile) -> CrawlPart {
        let (part, forced, own) = (self.clone(), ForcedQueues::of(profile), self.number());
        CrawlPart::new(move |queue, uri| part.owner(&forced, queue, uri) == own)
    }
}

/// Returns the state of a part from the state of its session; `None` if the part has never had a session.
#[must_use]
pub fn part_state(session: Option<SessionState>) -> PartState {
    match session {
        None => PartState::New,
        Some(SessionState::Live) => PartState::Running,
        Some(SessionState::Expired) => PartState::Gone,
        Some(SessionState::Left) => PartState::Stopped,
    }
}

/// Returns the present attempt to take a part over, and the last failed attempt.
#[must_use]
pub fn takeover_attempts(
    record: Option<TakeoverRecord>,
) -> (Option<PartTakeover>, Option<FailedTakeover>) {
    let record = record.unwrap_or_default();
    let time = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    let attempt = record.attempt.map(|attempt| PartTakeover {
        node: attempt.node,
        since: time(attempt.since_ms),
    });
    let failure = record.failure.map(|failure| FailedTakeover {
        node: failure.node,
        at: time(failure.at_ms),
        problem: failure.problem,
    });
    (attempt, failure)
}

/// Returns the NATS subject of the links to the part with this number, in a cluster with this number of partitions.
#[must_use]
pub fn inbox_of_part(partitions: PartitionCount, number: u16) -> Partition {
    // There are at most as many parts as partitions.
    partitions
        .partition(number)
        .unwrap_or_else(|| partitions.partition_of(""))
}

/// Names of the queues that overrides force. They are part of a job's identity, and never change.
pub(crate) struct ForcedQueues(BTreeSet<String>);

impl ForcedQueues {
    pub(crate) fn of(profile: &Profile) -> ForcedQueues {
        ForcedQueues(profile.forced_queues().map(str::to_owned).collect())
    }
}

/// Returns the queues that belong to a job's directory; `None` if all queues do.
///
/// # Errors
/// As [`JobPart::read`].
pub fn queues_of_job(job: &Path, profile: &Profile) -> io::Result<Option<CrawlPart>> {
    Ok(JobPart::read(job)?.map(|part| part.queues(profile)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_of(count: usize) -> JobPart {
        let nodes = (0..count).map(|number| format!("n{number}"));
        JobPart {
            job: "news".to_owned(),
            parts: part_names(nodes, 0),
            part: "n0".to_owned(),
            partitions: PartitionCount::default(),
            config: "/etc/opilio.toml".into(),
            epoch: 0,
        }
    }

    fn owner(part: &JobPart, queue: &str, uri: &str) -> u16 {
        let forced = ForcedQueues(["hoster".to_owned()].into());
        part.owner(&forced, queue, &Uri::parse(uri).unwrap())
    }

    #[test]
    fn all_hosts_ports_and_queues_of_a_site_are_in_one_part() {
        let part = part_of(7);
        let one = owner(&part, "org,example,", "http://example.org/");
        for (queue, uri) in [
            ("org,example,www,", "https://www.example.org/a"),
            ("org,example,#8080", "http://example.org:8080/"),
            ("192.0.2.1", "http://a.b.example.org/"),
        ] {
            assert_eq!(owner(&part, queue, uri), one, "{uri}");
        }
        let forced = |uri| owner(&part, "hoster", uri);
        assert_eq!(forced("http://example.org/"), forced("http://example.net/"));
    }

    #[test]
    fn even_shares_add_up_to_the_whole() {
        let share = |part: &str, whole| {
            let part = JobPart {
                part: part.to_owned(),
                ..part_of(3)
            };
            part.even_share(whole)
        };
        assert_eq!(["n0", "n1", "n2"].map(|part| share(part, 11)), [4, 4, 3]);
        assert_eq!(["n0", "n1", "n2"].map(|part| share(part, 2)), [1, 1, 0]);
    }

    #[test]
    fn sites_are_spread_over_all_parts() {
        let part = part_of(3);
        let owners = (0..300).map(|n| owner(&part, "", &format!("http://site{n}.org/")));
        let mut counts = [0; 3];
        owners.for_each(|owner| counts[usize::from(owner)] += 1);
        assert!(counts.iter().all(|count| *count > 70), "{counts:?}");
    }

    #[test]
    fn the_part_is_stored_in_the_job_directory() {
        let job = tempfile::tempdir().unwrap();
        assert_eq!(JobPart::read(job.path()).unwrap(), None);
        let part = JobPart {
            epoch: 2,
            ..part_of(2)
        };
        part.write(job.path()).unwrap();
        assert_eq!(JobPart::read(job.path()).unwrap(), Some(part.clone()));
        assert_eq!(part.store_folder().as_deref(), Some("news/n0-2"));
        assert_eq!(part_of(2).store_folder(), None);
    }

    #[test]
    fn there_may_be_more_parts_than_nodes() {
        let names = |nodes: &[&str], count| {
            let nodes = nodes.iter().map(|node| (*node).to_owned());
            part_names(nodes, count).join(" ")
        };
        assert_eq!(names(&["b", "a"], 0), "a b");
        assert_eq!(names(&["b", "a"], 4), "a b part-1 part-2");
        assert_eq!(names(&["part-1"], 3), "part-1 part-2 part-3");
    }
}
