//! Fetch statuses of the glossary that a crawl gives itself; others come from `opilio-fetch`.

pub(crate) const DNS_OK: i32 = 1;
pub(crate) const CONNECT_FAILED: i32 = -2;
pub(crate) const RUNTIME: i32 = -5;
pub(crate) const NO_ADDRESS: i32 = -6;
pub(crate) const UNFETCHABLE: i32 = -7;
pub(crate) const TOO_MANY_RETRIES: i32 = -8;
pub(crate) const ROBOTS_FAILED: i32 = -61;
pub(crate) const PREREQUISITE_FAILED: i32 = -62;
pub(crate) const SERIOUS_ERROR: i32 = -3000;
pub(crate) const OUT_OF_SCOPE: i32 = -5000;
pub(crate) const BLOCKED: i32 = -5001;
pub(crate) const BLOCKED_BY_CUSTOM_FILTER: i32 = -5002;
pub(crate) const QUOTA: i32 = -5003;
pub(crate) const RUN_TIME: i32 = -5004;
pub(crate) const DELETED: i32 = -6000;
pub(crate) const CANCELLED: i32 = -7000;
pub(crate) const ROBOTS: i32 = -9998;
