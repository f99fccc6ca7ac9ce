//! Hosts of a job: documents, bytes, errors and freshness.

use axum::Json;
use axum::extract::State;
use opilio_control::{Command, CommandResponse, HostReport, HostSelection, HostSort, HostTotals};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Shared, checked_limit, page, take_next_page};
use crate::access::Caller;
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// Selection and order of hosts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostsWanted {
    /// Order of the hosts. All orders except by name begin with the largest value.
    #[serde(default)]
    #[param(inline)]
    sort: HostSort,
    /// `true` if the order is reversed.
    #[serde(default)]
    reverse: bool,
    /// Text that the names of hosts contain.
    search: Option<String>,
    /// `true` if hosts without errors are left out.
    #[serde(default)]
    with_errors: bool,
    /// Start after this host: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of hosts.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Hosts of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Hosts {
    /// Hosts of this page.
    hosts: Vec<HostReport>,
    /// Sums over all hosts that match, on all pages.
    totals: HostTotals,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// Lists the hosts of a job with their counts.
#[utoipa::path(get, path = "/jobs/{job}/hosts", operation_id = "list_hosts", tag = "watch", params(("job" = String, Path, description = "Name of the job"), HostsWanted), responses((status = 200, body = Hosts)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(wanted): Params<HostsWanted>,
) -> Result<Json<Hosts>, Problem> {
    let command = Command::Hosts {
        which: HostSelection {
            sort: wanted.sort,
            reverse: wanted.reverse,
            search: wanted.search,
            with_errors: wanted.with_errors,
        },
        after: wanted.after,
        limit: checked_limit(wanted.limit)?,
    };
    let mut answers = daemon.send(&job, &caller, command).await?;
    let after = take_next_page(&mut answers);
    let mut found = Hosts {
        hosts: Vec::new(),
        totals: HostTotals::default(),
        after,
    };
    for answer in answers {
        match answer {
            CommandResponse::Host(host) => found.hosts.push(*host),
            CommandResponse::HostTotals(totals) => found.totals = totals,
            _ => {}
        }
    }
    Ok(Json(found))
}
