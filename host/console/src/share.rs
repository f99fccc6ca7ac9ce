//! Shares of running jobs in the common limits of the daemon: bytes a second and connections.
//!
//! The limits are divided evenly among the jobs that can use them. The unused part of a job is given to other jobs. The division is
//! repeated when a job starts or ends, and every few seconds by the consumption of each job. Jobs keep their last shares even if
//! the daemon ends. Therefore a share is reduced before another one grows, so that the sum of all shares never exceeds the limits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opilio_crawl::{Share, ShareTaken};

use crate::config::CommonLimits;

/// Time between two divisions among the same jobs.
const PERIOD: Duration = Duration::from_secs(5);

/// A share is unchanged if it differs by less than this fraction (one eighth).
const STEP: u64 = 8;

/// Smallest share in bytes a second, for a job that hardly uses its share: enough to detect that the job needs more.
const BYTES_LEAST: u64 = 16 * 1024;

/// Connections of an inactive job: enough to start.
const CONNECTIONS_LEAST: u64 = 1;

/// Divides the common limits.
pub(crate) struct Shares {
    bytes_per_second: Option<u64>,
    connections: Option<u64>,
    /// The new share of each job: the result of the last division.
    given: BTreeMap<String, Share>,
    seen: BTreeMap<String, Consumption>,
    divided: Option<Instant>,
}

/// A job that takes part in the division.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Current share; `None` if the job is about to start, or its process has not answered yet.
    pub share: Option<Share>,
    /// Process ID, time since its start in seconds, and its consumption until then; `None` before the process has answered.
    pub taken: Option<(u32, f64, ShareTaken)>,
    /// `true` if it is paused.
    pub is_paused: bool,
}

/// The consumption of a job at the last division.
#[derive(Clone, Copy)]
struct Consumption {
    pid: u32,
    elapsed: f64,
    taken: ShareTaken,
}

/// Amount that a job can use; `None` for as much as possible.
type Want = Option<u64>;

impl Shares {
    pub(crate) fn new(limits: &CommonLimits) -> Shares {
        Shares {
            bytes_per_second: limits.bandwidth,
            connections: limits.connections.map(|most| most as u64),
            given: BTreeMap::new(),
            seen: BTreeMap::new(),
            divided: None,
        }
    }

    /// Returns the new share of each of these jobs. It is recomputed if the jobs have changed or [`PERIOD`] has passed.
    pub(crate) fn divide(
        &mut self,
        members: &BTreeMap<String, Member>,
        now: Instant,
    ) -> &BTreeMap<String, Share> {
        let is_same = self.given.len() == members.len()
            && members.keys().all(|name| self.given.contains_key(name));
        let is_recent = self.divided.is_some_and(|at| now - at < PERIOD);
        if is_same && is_recent {
            return &self.given;
        }
        let wants: Vec<(Want, Want)> = members
            .iter()
            .map(|(name, member)| self.wants(name, member))
            .collect();
        let bytes: Vec<Want> = wants.iter().map(|(bytes, _)| *bytes).collect();
        let connections: Vec<Want> = wants.iter().map(|(_, connections)| *connections).collect();
        let bytes = self.bytes_per_second.map(|all| parts(all, &bytes));
        let connections = self.connections.map(|all| parts(all, &connections));
        let shares = members.keys().enumerate().map(|(place, name)| {
            let share = Share {
                bytes_per_second: bytes.as_ref().map(|parts| parts[place]),
                connections: connections.as_ref().map(|parts| parts[place]),
            };
            (name.clone(), share)
        });
        let shares: BTreeMap<String, Share> = shares.collect();
        // Small changes are not sent, because each would be a command to each job every few seconds. If one share changes, all are
        // replaced, because their sum must not exceed the limits.
        let is_other = |name: &String, new: &Share| {
            let old = self.given.get(name).copied().unwrap_or_default();
            differs(old.bytes_per_second, new.bytes_per_second)
                || differs(old.connections, new.connections)
        };
        if !is_same || shares.iter().any(|(name, new)| is_other(name, new)) {
            self.given = shares;
        }
        self.seen = members
            .iter()
            .filter_map(|(name, member)| {
                let (pid, elapsed, taken) = member.taken?;
                let seen = Consumption {
                    pid,
                    elapsed,
                    taken,
                };
                Some((name.clone(), seen))
            })
            .collect();
        self.divided = Some(now);
        &self.given
    }

    /// Returns the bytes a second and connections that a job can use, estimated from its consumption since the last division.
    fn wants(&self, name: &str, member: &Member) -> (Want, Want) {
        if member.is_paused {
            return (Some(BYTES_LEAST), Some(CONNECTIONS_LEAST));
        }
        let Some((pid, elapsed, taken)) = member.taken else {
            return (None, None);
        };
        let before = self.seen.get(name).filter(|seen| seen.pid == pid);
        let Some(before) = before.filter(|before| elapsed > before.elapsed) else {
            return (None, None);
        };
        let bytes = match taken.waited_for_bytes > before.taken.waited_for_bytes {
            true => None,
            false => {
                let bytes = taken.bytes.saturating_sub(before.taken.bytes);
                let rate = bytes as f64 / (elapsed - before.elapsed);
                // Twice the rate, so that the job can grow within one period.
                Some((rate as u64).saturating_mul(2).max(BYTES_LEAST))
            }
        };
        let connections = match taken.waited_for_connections > before.taken.waited_for_connections {
            true => None,
            false => Some(taken.connections.saturating_mul(2).max(CONNECTIONS_LEAST)),
        };
        (bytes, connections)
    }
}

/// Returns the reductions, which are sent first: the shares of jobs that have more than their new share.
pub(crate) fn lowered(
    members: &BTreeMap<String, Member>,
    wanted: &BTreeMap<String, Share>,
) -> Vec<(String, Share)> {
    let mut lower = Vec::new();
    for (name, wanted) in wanted {
        let Some(held) = members.get(name).and_then(|member| member.share) else {
            continue;
        };
        let share = Share {
            bytes_per_second: least(held.bytes_per_second, wanted.bytes_per_second),
            connections: least(held.connections, wanted.connections),
        };
        if share != held {
            lower.push((name.clone(), share));
        }
    }
    lower
}

/// Returns the part of a job's new share that is available while other jobs still have more than theirs. `None` if nothing is
/// available.
pub(crate) fn attainable(
    name: &str,
    members: &BTreeMap<String, Member>,
    wanted: &BTreeMap<String, Share>,
    limits: &CommonLimits,
) -> Option<Share> {
    let wish = wanted.get(name).copied().unwrap_or_default();
    let own = members.get(name).and_then(|member| member.share);
    let own = own.unwrap_or_default();
    let others = members.iter().filter(|(other, _)| *other != name);
    let (mut bytes, mut connections) = (0_u64, 0_u64);
    for (_, member) in others {
        let share = member.share.unwrap_or_default();
        bytes += share.bytes_per_second.unwrap_or(0);
        // Connections in process stay open when a share shrinks.
        let open = member.taken.map_or(0, |(_, _, taken)| taken.connections);
        connections += share.connections.map_or(0, |allowed| allowed.max(open));
    }
    // A job keeps its current share here: reductions are handled elsewhere.
    let part = |wish: Option<u64>, all: Option<u64>, held: u64, own: Option<u64>| match wish {
        None => Some(None),
        Some(wish) => {
            let room = all.unwrap_or(u64::MAX).saturating_sub(held);
            let part = wish.min(room.max(own.unwrap_or(0)));
            (part > 0).then_some(Some(part))
        }
    };
    let all = limits.connections.map(|all| all as u64);
    Some(Share {
        bytes_per_second: part(
            wish.bytes_per_second,
            limits.bandwidth,
            bytes,
            own.bytes_per_second,
        )?,
        connections: part(wish.connections, all, connections, own.connections)?,
    })
}

fn least(held: Option<u64>, wanted: Option<u64>) -> Option<u64> {
    match (held, wanted) {
        (Some(held), Some(wanted)) => Some(held.min(wanted)),
        // The removal of a limit is an increase, which is sent later.
        (Some(held), None) => Some(held),
        (None, wanted) => wanted,
    }
}

fn differs(old: Option<u64>, new: Option<u64>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => old.abs_diff(new) > old / STEP,
        (old, new) => old != new,
    }
}

/// Divides `all`. No job gets more than it wants before all have what they want. The remainder is divided evenly. Every job gets at
/// least one unit, even if there are more jobs than units.
fn parts(all: u64, wants: &[Want]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|place| wants[*place].unwrap_or(u64::MAX));
    let mut parts = vec![0; wants.len()];
    let mut left = all;
    for (done, place) in order.iter().enumerate() {
        let even = left / (wants.len() - done) as u64;
        parts[*place] = wants[*place].map_or(even, |want| want.min(even));
        left -= parts[*place];
    }
    let spare = left.checked_div(wants.len() as u64).unwrap_or(0);
    parts.iter().map(|part| (part + spare).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_divided_evenly_among_jobs_that_can_use_them() {
        for (all, wants, expected) in [
            (90, vec![None, None, None], vec![30, 30, 30]),
            (90, vec![Some(10), None, None], vec![10, 40, 40]),
            (90, vec![None, Some(50), Some(10)], vec![40, 40, 10]),
            // An unused remainder is divided among all.
            (90, vec![Some(10), Some(20)], vec![40, 50]),
            (90, vec![Some(0)], vec![90]),
            (2, vec![None, None, None], vec![1, 1, 1]),
            (90, vec![], vec![]),
        ] {
            assert_eq!(parts(all, &wants), expected, "{all} among {wants:?}");
        }
    }

    fn limits() -> CommonLimits {
        CommonLimits {
            bandwidth: Some(1_000_000),
            connections: Some(10),
            ..CommonLimits::default()
        }
    }

    fn share(bytes_per_second: u64, connections: u64) -> Share {
        Share {
            bytes_per_second: Some(bytes_per_second),
            connections: Some(connections),
        }
    }

    fn begins() -> Member {
        Member {
            share: None,
            taken: None,
            is_paused: false,
        }
    }

    /// A process with this share, and its consumption after `elapsed` seconds.
    fn crawls(share: Share, elapsed: f64, taken: ShareTaken) -> Member {
        Member {
            share: Some(share),
            taken: Some((7, elapsed, taken)),
            is_paused: false,
        }
    }

    fn members<const N: usize>(members: [(&str, Member); N]) -> BTreeMap<String, Member> {
        members
            .map(|(name, member)| (name.to_owned(), member))
            .into()
    }

    #[test]
    fn the_unused_part_of_a_job_is_given_to_others() {
        let mut shares = Shares::new(&limits());
        let mut now = Instant::now();
        let both = |first: Member, second: Member| members([("a", first), ("b", second)]);
        let given = shares.divide(&both(begins(), begins()), now).clone();
        assert_eq!(given["a"], share(500_000, 5));
        assert_eq!(given["b"], share(500_000, 5));

        // One job waits for slow servers, the other for bytes and connections.
        let slow = |elapsed: f64| ShareTaken {
            bytes: (elapsed * 50_000.0) as u64,
            connections: 1,
            ..ShareTaken::default()
        };
        let hungry = |elapsed: f64| ShareTaken {
            bytes: (elapsed * 300_000.0) as u64,
            waited_for_bytes: elapsed as u64,
            connections: 5,
            waited_for_connections: elapsed as u64,
        };
        let first = given["a"];
        for elapsed in [1.0, 7.0] {
            now += PERIOD;
            let both = both(
                crawls(first, elapsed, slow(elapsed)),
                crawls(first, elapsed, hungry(elapsed)),
            );
            shares.divide(&both, now);
        }
        assert_eq!(shares.given["a"], share(100_000, 2));
        assert_eq!(shares.given["b"], share(900_000, 8));

        // A paused job leaves nearly everything to the other.
        now += PERIOD;
        let paused = Member {
            is_paused: true,
            ..crawls(first, 13.0, hungry(13.0))
        };
        let given = shares.divide(&both(paused, crawls(first, 13.0, hungry(13.0))), now);
        assert_eq!(given["a"], share(BYTES_LEAST, 1));
        assert_eq!(given["b"], share(1_000_000 - BYTES_LEAST, 9));
        // After its end the other gets everything.
        let alone = members([("b", crawls(first, 14.0, hungry(14.0)))]);
        assert_eq!(shares.divide(&alone, now)["b"], share(1_000_000, 10));
    }

    #[test]
    fn the_division_among_the_same_jobs_is_repeated_only_after_the_period() {
        let mut shares = Shares::new(&limits());
        let now = Instant::now();
        shares.divide(&members([("a", begins()), ("b", begins())]), now);
        let paused = Member {
            is_paused: true,
            ..begins()
        };
        let both = members([("a", paused), ("b", begins())]);
        let soon = now + PERIOD / 2;
        assert_eq!(shares.divide(&both, soon)["b"], share(500_000, 5));
        assert_eq!(shares.divide(&both, now + PERIOD)["b"].connections, Some(9));
    }

    #[test]
    fn a_share_grows_only_after_others_were_reduced() {
        let taken = ShareTaken {
            connections: 8,
            ..ShareTaken::default()
        };
        let wanted = BTreeMap::from([
            ("a".to_owned(), share(500_000, 5)),
            ("b".to_owned(), share(500_000, 5)),
        ]);
        let before = members([
            ("a", crawls(share(1_000_000, 10), 1.0, taken)),
            ("b", begins()),
        ]);
        assert_eq!(
            lowered(&before, &wanted),
            [("a".to_owned(), share(500_000, 5))]
        );
        // The reduction has not been sent yet, so the first job has the whole limit.
        assert_eq!(attainable("b", &before, &wanted, &limits()), None);
        // The first job has accepted the reduction, and eight of its connections are still open.
        let after = members([
            ("a", crawls(share(500_000, 5), 1.0, taken)),
            ("b", begins()),
        ]);
        assert_eq!(
            attainable("b", &after, &wanted, &limits()),
            Some(share(500_000, 2))
        );
        assert_eq!(lowered(&after, &wanted), []);
        // The second job keeps its share, even if another job has too much.
        let crowded = members([
            ("a", crawls(share(800_000, 8), 1.0, taken)),
            ("b", crawls(share(500_000, 5), 1.0, taken)),
        ]);
        assert_eq!(
            attainable("b", &crowded, &wanted, &limits()),
            Some(share(500_000, 5))
        );
    }

    #[test]
    fn a_job_that_was_started_without_the_daemon_gets_its_share_too() {
        let wanted = BTreeMap::from([("a".to_owned(), share(500_000, 5))]);
        let free = members([("a", crawls(Share::default(), 1.0, ShareTaken::default()))]);
        assert_eq!(
            lowered(&free, &wanted),
            [("a".to_owned(), share(500_000, 5))]
        );
        // Without common limits, the limits of jobs are removed.
        let wanted = BTreeMap::from([("a".to_owned(), Share::default())]);
        let held = members([("a", crawls(share(500_000, 5), 1.0, ShareTaken::default()))]);
        assert_eq!(lowered(&held, &wanted), []);
        let limits = CommonLimits::default();
        assert_eq!(
            attainable("a", &held, &wanted, &limits),
            Some(Share::default())
        );
    }
}
