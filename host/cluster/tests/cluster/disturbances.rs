//! Disturbances of the network, for random histories of members and of machines.

use std::time::Duration;

use proptest::prelude::*;

use crate::network::Network;

/// A disturbance of the messages between all members and NATS.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Disturbance {
    /// NATS is not available for this number of seconds.
    Outage(u32),
    /// This percentage of the messages is lost.
    Losses(u64),
    /// Messages take up to this number of milliseconds.
    Slow(u64),
}

pub(crate) fn disturbance() -> impl Strategy<Value = Disturbance> {
    prop_oneof![
        (1u32..60).prop_map(Disturbance::Outage),
        (0u64..40).prop_map(Disturbance::Losses),
        (1u64..4_000).prop_map(Disturbance::Slow),
    ]
}

impl Disturbance {
    pub(crate) fn begin(self, network: &mut Network) {
        match self {
            Self::Outage(seconds) => network.interrupt(Duration::from_secs(seconds.into())),
            Self::Losses(percent) => network.losses = percent,
            Self::Slow(millis) => network.latency.1 = Duration::from_millis(millis),
        }
    }
}

/// Ends losses and delays.
pub(crate) fn end_disturbances(network: &mut Network) {
    network.losses = 0;
    network.latency.1 = Duration::from_millis(2);
}
