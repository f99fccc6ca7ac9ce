//! One crawl on many machines, over NATS JetStream: membership, parts of a crawl, links between them, files of jobs, commands, budgets.
//!
//! The crate knows nothing of crawling: links, files and commands are bytes to it. A process of `host/crawl` has a
//! part of a job ([`OwnPart`]): it works on it while its session as a [`Member`] holds, and while no other directory has got the part.
//!
//! - [`control`] has the decisions, as state machines without I/O and clock: sessions, leader, takeover of parts. So do
//!   [`LinkBatcher`] and [`BudgetAccount`].
//! - The other modules carry them out over NATS.
//!
//! Invariants:
//! - No two processes work on one part at the same time: ask [`Member::time_left`] before each URI, and after a lost session
//!   [`ClusterJob::check_part`].
//! - A link that was added to a [`LinkSender`] stays in the outbox until its owner has acknowledged it. A stored link is delivered until
//!   then, and one that NATS has lost is sent again, so that it reaches the owner of its target at least once.
//! - A command takes effect once on each node, in the same order on all.
//! - A part of a job has one directory: a process of an earlier one can publish nothing about the part.

mod bucket;
mod budget;
mod budgets;
mod clock;
mod commands;
mod config;
mod connection;
pub mod control;
mod error;
mod frame;
mod guard;
mod job;
mod link_batch;
mod links;
mod losses;
mod member;
mod nodes;
pub mod partition;
mod parts;
mod questions;
mod rest;
mod storage;
mod takeover_scope;

pub use budget::{BudgetAccount, BudgetError};
pub use budgets::BudgetChangeError;
pub use commands::{CommandReader, JobCommand};
pub use config::{ClusterConfig, NODE_NAME_BYTES_MAX, NatsLogin, NatsTls, check_name};
pub use connection::{ClusterConnection, LinkState};
pub use control::{MemberEvent, NodeOverview};
pub use error::{ClusterError, NatsError};
pub use job::{ClusterJob, JobInputs, JobManifest, JobStorage, StoredFile};
pub use link_batch::{
    LinkAdmission, LinkBatch, LinkBatcher, LinkSource, SENT_LINKS_MAX, SentMessage,
};
pub use links::{LinkDelivery, LinkLosses, LinkReader, LinkSender};
pub use losses::{MessagePlace, PlaceState};
pub use member::{Availability, Member, MemberEvents, MemberStatus};
pub use nodes::{Cluster, MemberScope};
pub use parts::{
    OwnPart, PartRecord, PublishedSnapshot, TakeoverAttempt, TakeoverFailure, TakeoverRecord,
};
pub use questions::{PartQuestion, PartQuestions};
pub use rest::JobProgress;
pub use storage::JetStreamStorage;
pub use takeover_scope::TakeoverScope;
