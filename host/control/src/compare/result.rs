//! Result of a comparison: counts of both sides, and the URIs that differ.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Result of a comparison.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct CrawlComparison {
    /// The first crawl.
    pub a: ComparedCrawl,
    /// The second crawl.
    pub b: ComparedCrawl,
    /// Number of URIs that only the first crawl has visited.
    pub only_a: u64,
    /// Number of URIs that only the second crawl has visited.
    pub only_b: u64,
    /// Number of URIs that both have visited.
    pub both: u64,
    /// Of these, URIs whose content differs: payload digests, or digests after the same digest strippers.
    pub changed: u64,
    /// Of these, URIs whose last visits have different statuses.
    pub other_status: u64,
    /// URIs by status of their last visit, in ascending order.
    pub statuses: Vec<ComparedStatus>,
    /// URIs by media type, most frequent first.
    pub media_types: Vec<ComparedType>,
    /// Hosts whose numbers of URIs differ, largest difference first; at most 100.
    pub hosts: Vec<ComparedHost>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct ComparedCrawl {
    /// Name of the job.
    pub job: String,
    /// Name of the checkpoint; not set for the job's present state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Time of the state.
    pub at: Timestamp,
    /// Number of visited URIs.
    pub visited: u64,
    /// Number of known URIs without a visit. They are not compared.
    pub unvisited: u64,
    /// Number of visits with new or changed content.
    pub versions: u64,
}

/// Numbers of URIs with a status.
#[derive(Clone, Copy, Debug, Serialize, utoipa::ToSchema)]
pub struct ComparedStatus {
    /// HTTP status, or a status code of the glossary.
    pub status: i32,
    /// URIs of the first crawl.
    pub a: u64,
    /// URIs of the second crawl.
    pub b: u64,
}

/// Numbers of URIs with a media type.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct ComparedType {
    /// Media type without parameters; `no-type` if there is none.
    pub media_type: String,
    /// URIs of the first crawl.
    pub a: u64,
    /// URIs of the second crawl.
    pub b: u64,
}

/// Numbers of URIs of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ComparedHost {
    /// Host name; empty for URIs without one.
    pub host: String,
    /// URIs of the first crawl.
    pub a: u64,
    /// URIs of the second crawl.
    pub b: u64,
}

/// Kind of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UriDifference {
    /// Only the first crawl has visited the URI.
    OnlyA,
    /// Only the second crawl has visited the URI.
    OnlyB,
    /// The content differs.
    #[default]
    Changed,
    /// The statuses of the last visits differ.
    Status,
}

impl UriDifference {
    /// All kinds.
    pub const ALL: [UriDifference; 4] = [
        UriDifference::OnlyA,
        UriDifference::OnlyB,
        UriDifference::Changed,
        UriDifference::Status,
    ];

    /// Returns the kind's name.
    pub fn name(self) -> &'static str {
        match self {
            UriDifference::OnlyA => "only-a",
            UriDifference::OnlyB => "only-b",
            UriDifference::Changed => "changed",
            UriDifference::Status => "status",
        }
    }
}

/// URI that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct DifferentUri {
    /// The URI.
    pub uri: String,
    /// The last visit of the first crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<ComparedVisit>,
    /// The last visit of the second crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<ComparedVisit>,
}

/// The last visit of a URI, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ComparedVisit {
    /// Status of the visit.
    pub status: i32,
    /// Media type.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// Payload digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_digest: Option<String>,
    /// Digest after digest strippers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripped_digest: Option<String>,
    /// Hash of these strippers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripper: Option<String>,
}

impl ComparedVisit {
    /// Returns `true` if the content differs. Without digests on both sides, it is not known to differ.
    pub(super) fn differs(&self, other: &ComparedVisit) -> bool {
        let known = |digest: &Option<String>| digest.is_some();
        if self.stripper == other.stripper
            && known(&self.stripped_digest)
            && known(&other.stripped_digest)
        {
            return self.stripped_digest != other.stripped_digest;
        }
        known(&self.payload_digest)
            && known(&other.payload_digest)
            && self.payload_digest != other.payload_digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_the_same_strippers_decide() {
        let visit = |payload: &str, stripped: &str, stripper: &str| ComparedVisit {
            status: 200,
            media_type: String::new(),
            payload_digest: Some(payload.to_owned()),
            stripped_digest: Some(stripped.to_owned()),
            stripper: Some(stripper.to_owned()),
        };
        let one = visit("a", "s", "x");
        assert!(!one.differs(&visit("b", "s", "x")));
        assert!(one.differs(&visit("b", "s", "y")));
        let none = ComparedVisit {
            payload_digest: None,
            ..visit("", "s", "y")
        };
        assert!(!one.differs(&none));
    }
}
