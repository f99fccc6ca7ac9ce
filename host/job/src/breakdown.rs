//! The results of a job by status, media type and host, for charts and metrics.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ledger::{Amount, HostCounts, LedgerSummary, Totals};

/// Media types that are shown by name; the rest is added up. Labels of metrics must be few.
const TYPES_SHOWN: usize = 50;
/// Hosts that are shown, the busiest first.
const HOSTS_SHOWN: usize = 50;
/// Name under which the remaining media types are added up.
const OTHER: &str = "other";

/// Counts of a job over all its processes. They count visits: a page that is visited ten times counts ten times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breakdown {
    /// Totals of the job.
    pub totals: Totals,
    /// Counts by fetch status, in ascending order.
    pub statuses: Vec<StatusAmount>,
    /// Counts by media type, most frequent first; `other` has the types that are not listed.
    pub media_types: Vec<TypeAmount>,
    /// Counts by host, busiest first.
    pub hosts: Vec<HostAmount>,
}

/// Counts of a fetch status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusAmount {
    /// HTTP status, or a status code of the glossary.
    pub status: i32,
    /// Visits and bytes.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Counts of a media type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TypeAmount {
    /// Media type without parameters; `no-type` if the server sent none.
    pub media_type: String,
    /// Visits and bytes.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Counts of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostAmount {
    /// Host name; `dns:` and `whois:` for look-ups.
    pub host: String,
    /// Counts.
    #[serde(flatten)]
    pub counts: HostCounts,
}

impl Breakdown {
    /// Sums up the counts of a crawl.
    pub fn new(whole: &LedgerSummary) -> Breakdown {
        let mut types = media_types(whole);
        if types.len() > TYPES_SHOWN {
            let mut other = Amount::default();
            for rest in types.split_off(TYPES_SHOWN) {
                other.uris += rest.amount.uris;
                other.bytes += rest.amount.bytes;
            }
            match types.iter_mut().find(|it| it.media_type == OTHER) {
                Some(known) => {
                    known.amount.uris += other.uris;
                    known.amount.bytes += other.bytes;
                }
                None => types.push(TypeAmount {
                    media_type: OTHER.to_owned(),
                    amount: other,
                }),
            }
        }
        Breakdown {
            totals: whole.totals,
            statuses: statuses(whole),
            media_types: types,
            hosts: whole
                .busiest
                .iter()
                .take(HOSTS_SHOWN)
                .map(|(host, counts)| HostAmount {
                    host: host.clone(),
                    counts: *counts,
                })
                .collect(),
        }
    }
}

/// Returns the amounts by status, in the order of the statuses.
pub fn statuses(whole: &LedgerSummary) -> Vec<StatusAmount> {
    let statuses = whole.statuses.iter();
    statuses
        .map(|(status, amount)| StatusAmount {
            status: *status,
            amount: *amount,
        })
        .collect()
}

/// Returns the amounts by media type, the most frequent first.
pub fn media_types(whole: &LedgerSummary) -> Vec<TypeAmount> {
    let mut types: Vec<TypeAmount> = whole
        .media_types
        .iter()
        .map(|(media_type, amount)| TypeAmount {
            media_type: media_type.clone(),
            amount: *amount,
        })
        .collect();
    // Types of equal number stay in the order of their names.
    types.sort_by_key(|it| std::cmp::Reverse(it.amount.uris));
    types
}
