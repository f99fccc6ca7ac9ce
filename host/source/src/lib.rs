//! Where components come from: built in, a file, a folder of files, an image in a registry; and the store that keeps what
//! was pulled. The crawl and the tools ask [`Sources`] for what a profile or a command line names and get bytes, whose
//! SHA-256 is known and, where it is pinned, right. Nothing here runs a component: whether the bytes are a plugin is for
//! the sandbox to say.
//!
//! ```text
//! Component ── Sources::resolve(component, terms) ──► Found { bytes, sha256, … } ── frozen() ──► Frozen, kept with a job
//!                  │ Store: index of images ─► SHA-256, components by SHA-256                        │
//!                  └ registry: pull, push   ◄────────────── Sources::thaw(frozen) ◄──────────────────┘
//! ```
//!
//! What holds:
//! - **A pin is what counts.** What is pinned and in the store is taken from there without asking anybody. What differs
//!   from its pin is refused with both digests.
//! - **A tag is a question, a digest an answer.** A tag is asked of its registry whenever a job begins, and bound to a
//!   digest by [`Found::frozen`]: a tag that moves does not change a job that has begun. Where the registry cannot be
//!   reached, what the tag meant last is used and [`Found::note`] says so.
//! - **Registries are the operator's choice**: the crawl's guard against private networks is for links that pages name
//!   and does not hold here. HTTPS alone, save on this machine or where the profile says `insecure`.
//! - All calls block, also from within an async runtime; none takes longer than its limits allow.

mod sources;

mod folder;
mod registry;
mod store;

mod about;
mod blobs;
mod manifest;
mod sha256;

pub use about::{About, AboutProblem};
pub use blobs::{BlobError, Blobs, COMPONENT_BYTES_MAX};
pub use folder::{FILES_MAX, FolderError};
pub use registry::{Access, Pushed, RegistryError};
pub use sha256::{Sha256, Sha256Problem};
pub use sources::{Found, Frozen, SourceError, Sources, SourcesConfig, Terms};
pub use store::{Kept, Prune, Pruned, Store, StoreError};
