//! The control plane as deterministic state machines: sessions, leases, leader and assignment. They have no clock, no socket and
//! no randomness. [`NodeMachine`] is the control plane of one node. `member.rs` drives it over NATS; the simulation in
//! `examples/control_plane/main.rs` and the property tests drive a thousand of them in virtual time.

mod assignment;
mod leadership;
mod liveness;
mod machine;
mod planner;
mod records;
mod session;

pub use machine::{ControlAction, ControlEvent, NodeMachine, WriteResult};
pub use records::{
    ClusterKey, ClusterRecord, KeyWrite, LeaderRecord, LeaseOwner, LeaseTimings, NodeRecord,
    PartitionRecord, SessionState,
};
