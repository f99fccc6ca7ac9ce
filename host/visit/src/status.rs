//! Status codes that a visit sets itself. Codes of failed exchanges come from `opilio-fetch`; docs/OPERATING.md lists all.

use opilio_stacks::Staged;

/// Returns the status code of a filter's refusal. It depends on whether the filter's component is shipped with Opilio.
pub fn of_refusal(filter: &Staged) -> i32 {
    match filter.ships() {
        true => BLOCKED,
        false => BLOCKED_BY_CUSTOM_FILTER,
    }
}

/// A host was looked up.
pub const DNS_OK: i32 = 1;
/// A plugin or the scratch directory failed.
pub const RUNTIME: i32 = -5;
/// The host has no address.
pub const NO_ADDRESS: i32 = -6;
/// The crawl cannot make requests for such a URI.
pub const UNFETCHABLE: i32 = -7;
/// A post-fetch filter requested a retry after the last attempt.
pub const TOO_MANY_RETRIES: i32 = -8;
/// The robots.txt of its server could not be fetched.
pub const ROBOTS_FAILED: i32 = -61;
/// A prerequisite failed.
pub const PREREQUISITE_FAILED: i32 = -62;
/// A defect of the crawler: a panic.
pub const SERIOUS_ERROR: i32 = -3000;
/// The scope no longer accepts the URI.
pub const OUT_OF_SCOPE: i32 = -5000;
/// A filter that is shipped with Opilio refused the URI, or the rules on addresses and ports did.
pub const BLOCKED: i32 = -5001;
/// A custom filter refused the URI.
pub const BLOCKED_BY_CUSTOM_FILTER: i32 = -5002;
/// A quota is used up.
pub const QUOTA: i32 = -5003;
/// A quota of run time is used up.
pub const RUN_TIME: i32 = -5004;
/// An operator deleted the URI.
pub const DELETED: i32 = -6000;
/// An operator cancelled the fetch.
pub const CANCELLED: i32 = -7000;
/// robots.txt excludes the URI.
pub const ROBOTS: i32 = -9998;
