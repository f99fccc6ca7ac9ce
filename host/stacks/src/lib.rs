//! The plugins of a crawl, stacked by stage.
//!
//! ```text
//! load ─► Pool: every instance, configured ── Stacks: the profile's own, and those that settings of a URI select
//!          └ variants: the same with other settings, as overrides say
//! ```
//! A crawl holds one [`Stacks`], which never changes. Replacing a plugin or widening the scope makes a new one. A visit in
//! process keeps the one that it began with.

pub mod batch;
pub mod breaker;
mod calls;
mod catalogue;
pub mod components;
pub mod guards;
mod instance_inputs;
pub mod known_stacks;
mod load;
mod pool;
pub mod recorder;
mod stacks;
mod staged;
mod thread;
mod variants;

pub use catalogue::{ShippedPlugin, builtin_plugins, shipped_plugins};
pub use known_stacks::KnownStacks;
pub use known_stacks::{KnownStack, StackedPlugin};
pub use load::{Loaded, Loading, load};
pub use opilio_model::error_chain as chain;
pub use pool::{PluginSeen, Pool, Replacement};
pub use stacks::{Stacks, hash_of};
pub use staged::Staged;
pub use thread::{on_plugin_thread, panic_message};
