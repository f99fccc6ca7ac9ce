//! Fetch statuses of the glossary that a crawl gives itself; others come from `opilio-fetch`.

use opilio_stacks::Staged;

/// The fetch status of what a filter refuses: its component ships with Opilio, or is somebody's own.
pub fn of_refusal(filter: &Staged) -> i32 {
    match filter.ships() {
        true => BLOCKED,
        false => BLOCKED_BY_CUSTOM_FILTER,
    }
}

pub const DNS_OK: i32 = 1;
pub const CONNECT_FAILED: i32 = -2;
pub const RUNTIME: i32 = -5;
pub const NO_ADDRESS: i32 = -6;
pub const UNFETCHABLE: i32 = -7;
pub const TOO_MANY_RETRIES: i32 = -8;
pub const ROBOTS_FAILED: i32 = -61;
pub const PREREQUISITE_FAILED: i32 = -62;
pub const SERIOUS_ERROR: i32 = -3000;
pub const OUT_OF_SCOPE: i32 = -5000;
pub const BLOCKED: i32 = -5001;
pub const BLOCKED_BY_CUSTOM_FILTER: i32 = -5002;
pub const QUOTA: i32 = -5003;
pub const RUN_TIME: i32 = -5004;
pub const DELETED: i32 = -6000;
pub const CANCELLED: i32 = -7000;
pub const ROBOTS: i32 = -9998;
