//! The record of a takeover in the cluster, with its outcome, which operators of all nodes see. If the record cannot be written,
//! this is logged, and the takeover continues.

use opilio_cluster::{Cluster, ClusterError, ClusterJob, MemberScope};
use opilio_control::chain;

use crate::node::ClusterNode;

/// A takeover of a part by this daemon.
pub(super) struct Attempt<'a> {
    pub(super) node: &'a ClusterNode,
    /// Name of the crawl.
    pub(super) crawl: &'a str,
    /// Name of the part.
    pub(super) part: &'a str,
    /// Epoch of the part before the takeover.
    pub(super) epoch: u64,
}

impl Attempt<'_> {
    pub(super) async fn begin(&self) {
        let noted = async {
            let job = self.job().await?;
            job.begin_takeover(self.part, self.epoch, self.node.name())
                .await
        };
        self.log(noted.await);
    }

    /// Records that the takeover has failed.
    pub(super) async fn fail(&self, problem: &str) {
        let noted = async {
            let job = self.job().await?;
            job.fail_takeover(self.part, self.epoch, self.node.name(), problem)
                .await
        };
        self.log(noted.await);
    }

    /// Records that the part was taken over.
    pub(super) async fn end(&self) {
        let noted = async {
            let job = self.job().await?;
            job.end_takeover(self.part, self.epoch).await
        };
        self.log(noted.await);
    }

    async fn job(&self) -> Result<ClusterJob, ClusterError> {
        let connection = self.node.cluster().connection().clone();
        let scope = MemberScope::Job(self.crawl.to_owned());
        let members = Cluster::find(connection, &scope).await?;
        let unknown = || ClusterError::UnknownJob {
            job: self.crawl.to_owned(),
        };
        ClusterJob::open(&members.ok_or_else(unknown)?, self.crawl).await
    }

    fn log(&self, noted: Result<(), ClusterError>) {
        let Attempt { crawl, part, .. } = self;
        if let Err(problem) = noted {
            let problem = chain(&problem);
            tracing::warn!("part {part:?} of crawl {crawl:?}: cannot note its takeover: {problem}");
        }
    }
}
