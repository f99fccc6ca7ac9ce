//! Domain types that several crates share: settings of queues, strategies, content states, past visits, kept
//! values, name servers.
//!
//! Profiles produce these types, the frontier stores them, and the sandbox shows them to plugins. So no crate copies them field by
//! field into types of its own. This crate has no I/O and no policy. It depends neither on profiles nor on the frontier's store.
//!
//! Serialised forms are published: the order of fields and variants is the store format of the frontier (postcard), and the
//! names are those of profiles and of plugins' cases. `host/frontier/src/format.rs` fails if the store format changes.

pub mod instant;
pub mod seconds;

mod addresses;
mod archive_format;
mod content_state;
mod error_chain;
mod fetch_status;
mod kept_value;
mod past_visit;
mod politeness;
mod queue_settings;
mod quota;
mod strategy;

pub use addresses::{AddressFamily, NameServer};
pub use archive_format::ArchiveFormat;
pub use content_state::ContentState;
pub use error_chain::error_chain;
pub use fetch_status::{
    STATUS_WORDS, is_error_response, is_fetched, labelled_status, status_remedy, status_words,
};
pub use kept_value::{KeptChange, KeptValue, KeptValues};
pub use past_visit::{PastVisit, SHORT_DIGEST_BYTES};
pub use politeness::Politeness;
pub use queue_settings::{GroupSettings, PrecedencePolicy, QueueSettings};
pub use quota::Quota;
pub use strategy::Strategy;
