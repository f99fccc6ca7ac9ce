//! Sources of components: built in, a file, a folder of files, an image in a registry; and the store of pulled components.
//! The crawl and the tools pass [`Sources`] a reference from a profile or a command line. They get bytes with their SHA-256,
//! which matches the pin if there is one. Nothing here runs a component: the sandbox decides whether the bytes are a plugin.
//!
//! ```text
//! ComponentReference ── Sources::resolve ──► ResolvedComponent ── frozen() ──► PinnedComponent, kept with a job
//!                            │ Store: index of images ─► SHA-256, components by SHA-256    │
//!                            └ registry: pull, push ◄────────── Sources::thaw ◄────────────┘
//! ```
//!
//! Guarantees:
//! - **A pin is authoritative.** A pinned component in the store is used without a request. A component that differs from its
//!   pin is refused with both digests.
//! - **Tags are resolved when a job is created.** The registry is asked then, and [`ResolvedComponent::frozen`] binds the tag to a
//!   digest. A tag that moves later does not change the job. If the registry cannot be reached, the component to which the tag last
//!   referred is used, and [`ResolvedComponent::note`] reports it.
//! - **Registries are the operator's choice**: the crawl's protection of private networks is for links in pages and does not
//!   apply here. Only HTTPS is used, except on this machine or if the profile has `insecure`.
//! - All calls block, also within an async runtime, and none exceeds its time limits.

mod sources;

mod folder;
mod registry;
mod store;

mod about;
mod blobs;
mod manifest;
mod sha256;

pub use about::{AboutProblem, ComponentMetadata};
pub use blobs::{BlobError, Blobs, COMPONENT_BYTES_MAX};
pub use folder::{FILES_MAX, FolderError};
pub use registry::{Access, PushResult, RegistryError};
pub use sha256::{Sha256, Sha256Problem};
pub use sources::{
    ComponentConditions, PinnedComponent, ResolvedComponent, SourceError, Sources, SourcesConfig,
};
pub use store::{Prune, PruneResult, Store, StoreError, StoredComponent};
