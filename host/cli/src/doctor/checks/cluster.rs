//! The cluster: NATS, and the versions and clocks of its nodes.

use std::collections::BTreeSet;

use opilio_console::NodeState;

use crate::doctor::environment::NatsCluster;
use crate::doctor::finding::{Finding, error, ok, warning};
use crate::node::CLOCK_SKEW_MAX_S;

pub(super) fn nodes(cluster: &NatsCluster) -> Finding {
    const NAME: &str = "cluster";
    let servers = &cluster.servers;
    let nodes = match &cluster.nodes {
        Ok(nodes) => nodes,
        Err(problem) => {
            return error(
                NAME,
                problem,
                "the daemon does not start without NATS: correct [cluster] of its configuration, or NATS",
            );
        }
    };
    let live = || nodes.iter().filter(|node| node.state == NodeState::Live);
    if let Some(gone) = nodes.iter().find(|node| node.state == NodeState::Gone) {
        return warning(
            NAME,
            format!("node {} is gone since {:.0}", gone.name, gone.renewed),
            format!(
                "start its daemon, or run opilio node remove {} if it is lost for good",
                gone.name
            ),
        );
    }
    let versions: BTreeSet<&str> = live().map(|node| node.version.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        return warning(
            NAME,
            format!("nodes have different versions: {}", versions.join(", ")),
            "run the same version on all nodes; opilio node list shows them",
        );
    }
    if let Some(node) = live().find(|node| node.clock_skew_s.abs() > CLOCK_SKEW_MAX_S) {
        return warning(
            NAME,
            format!(
                "the clock of {} differs from that of NATS by {:.0} ms",
                node.name,
                node.clock_skew_s * 1000.0
            ),
            "run a time service there, such as chrony or systemd-timesyncd",
        );
    }
    let names: Vec<&str> = live().map(|node| node.name.as_str()).collect();
    let found = match names.len() {
        0 => "no node has joined yet".to_owned(),
        1 => format!("1 node: {}", names[0]),
        count => format!("{count} nodes: {}", names.join(", ")),
    };
    ok(NAME, format!("JetStream works at {servers}; {found}"))
}
