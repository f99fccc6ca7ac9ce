//! The audit log: requested changes and their senders.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Limit, Shared, checked_limit};
use crate::access::{Caller, Role};
use crate::audit::AuditEntry;
use crate::input::Params;
use crate::problem::Problem;

/// Audit log: requests to change something.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Entries {
    /// Entries, newest first.
    entries: Vec<AuditEntry>,
}

/// Returns the audit log: the latest requests to change something, with their results. For admins.
#[utoipa::path(get, path = "/audit", operation_id = "list_audit_entries", tag = "daemon", params(Limit), responses((status = 200, body = Entries)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    Params(Limit { limit }): Params<Limit>,
) -> Result<Json<Entries>, Problem> {
    caller.needs(Role::Admin)?;
    let count = usize::try_from(checked_limit(limit)?).unwrap_or(usize::MAX);
    let read = tokio::task::spawn_blocking(move || daemon.audit.last(count));
    let entries = read
        .await
        .map_err(|panic| Problem::failure(panic.to_string()))?
        .map_err(|problem| Problem::failure(format!("cannot read the audit log: {problem}")))?;
    Ok(Json(Entries { entries }))
}
