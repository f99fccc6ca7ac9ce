//! The control plane as deterministic state machines without clock, sockets and randomness: sessions, the leader, and the takeover
//! of parts. [`NodeMachine`] is the control plane of one member. `member.rs` runs it over NATS. The simulation in
//! `examples/control_plane/main.rs` and the property tests run a thousand of them in virtual time.

mod leadership;
mod liveness;
mod machine;
mod member_event;
mod overviews;
mod records;
mod session;
mod takeover;
mod view;

pub use machine::{ControlAction, NodeMachine, WriteResult};
pub use member_event::MemberEvent;
pub use overviews::{JobParts, NodeOverview, PartOverview};
pub use records::{
    ClusterKey, ClusterRecord, KeyWrite, LeaderRecord, NodeRecord, SessionEnd, SessionState,
    SessionTimings,
};
pub use takeover::{ChosenPart, PartTakeovers};
