//! Settings of one queue: its simultaneous fetches, precedence, budget, and server group.

use opilio_model::{PrecedencePolicy, QueueSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::count::CountWritten;

/// Longest name of a queue or of a group, in bytes. Every URI that waits has its queue's name in the store.
const NAME_BYTES_MAX: usize = 200;

/// Settings of one queue: its simultaneous fetches, its precedence, its budget. Overrides match it by `host`, `domain`, `port`,
/// `queue`, or a SURT prefix that ends with the authority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct QueueFile {
    /// Name of the queue in which matching URIs are, whatever their key; only for overrides. Defines identity: frozen when a
    /// job is made. No default: `frontier.queue-key` names the queue.
    pub name: Option<String>,

    /// URIs of the queue that are fetched at the same time; each slot has its own politeness delay. Default `1`: every server
    /// can serve one request at a time; use more only for your own servers, or by agreement.
    #[schemars(range(min = 1, max = 100))]
    pub valence: u32,

    /// The queue's base precedence: queues of a lower number go first. Default `3`: leaves numbers for queues that go before
    /// and after.
    #[schemars(range(max = 254))]
    pub precedence: u8,

    /// Policy for the queue's precedence. Default `"base"`: queues of one precedence alternate.
    pub precedence_policy: QueuePrecedencePolicy,

    /// For `"success-counts"`: numbers of successes. The queue goes one precedence back after the first number, then one more
    /// after each next number of further successes. The last number repeats. Default `[100, 1000]`: small sites are completed
    /// before large ones.
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 1_000_000_000)))]
    pub precedence_steps: Vec<u64>,

    /// Cost that the queue may spend in all. Then it is retired, until the budget is raised. Default `"none"`: sites are
    /// crawled completely.
    pub budget: CountWritten,

    /// Queues with which it shares the limits of `[group]`: `"none"`, `"address"` for all queues on one IP address, or any
    /// other word for a group of that name. Default `"none"`: large hosters serve thousands of sites from one address.
    pub group: String,
}

/// Policy for a queue's precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePrecedencePolicy {
    /// Only its base precedence.
    Base,
    /// Its base precedence plus that of its best URI.
    HighestUri,
    /// Its base precedence, plus one for each step of successes.
    SuccessCounts,
}

/// Queues with which a queue is limited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServerGroup {
    /// No other queue.
    None,
    /// All queues on the same IP address.
    Address,
    /// All queues that name this group.
    Named(String),
}

impl Default for QueueFile {
    fn default() -> Self {
        Self {
            name: None,
            valence: 1,
            precedence: 3,
            precedence_policy: QueuePrecedencePolicy::Base,
            precedence_steps: vec![100, 1000],
            budget: "none".into(),
            group: "none".to_owned(),
        }
    }
}

impl QueueFile {
    /// Checks the settings of a queue without politeness, retries and quotas.
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> (QueueSettings, ServerGroup) {
        let group = self.check_group(&mut part);
        let settings = QueueSettings {
            valence: u16::try_from(self.valence).unwrap_or(u16::MAX),
            precedence: self.precedence,
            precedence_policy: match self.precedence_policy {
                QueuePrecedencePolicy::Base => PrecedencePolicy::Base,
                QueuePrecedencePolicy::HighestUri => PrecedencePolicy::HighestUri,
                QueuePrecedencePolicy::SuccessCounts => {
                    PrecedencePolicy::SuccessCounts(self.precedence_steps.clone())
                }
            },
            budget: part.count_limit("budget", &self.budget),
            group: match &group {
                ServerGroup::Named(name) => Some(name.clone()),
                ServerGroup::None | ServerGroup::Address => None,
            },
            // The other values come from other tables: `Overridable::check`.
            ..QueueSettings::default()
        };
        (settings, group)
    }

    fn check_group(&self, part: &mut Part<'_, '_>) -> ServerGroup {
        match self.group.as_str() {
            "none" => ServerGroup::None,
            "address" => ServerGroup::Address,
            name => {
                if !is_name(name) {
                    let problem = format!("not the name of a group: {}", quote(name));
                    part.refuse(
                        "group",
                        problem,
                        "write \"none\", \"address\" or a word of your own such as \"hoster\"",
                    );
                }
                ServerGroup::Named(name.to_owned())
            }
        }
    }

    /// Checks the name that an override forces.
    pub(crate) fn check_name(&self, mut part: Part<'_, '_>) {
        let Some(name) = &self.name else { return };
        if !is_queue_name(name) || name.contains('#') {
            part.refuse(
                "name",
                format!("not the name of a queue: {}", quote(name)),
                "write visible ASCII characters without blanks and \"#\", as in \"news\"",
            );
        }
    }
}

/// Returns `true` if a text may be the name of a queue. A `#` is valid only before a port.
pub(crate) fn is_queue_name(name: &str) -> bool {
    is_name(name) && !name.contains("##")
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic())
}
