//! What the jobs that crawl may take of the machine's line: bytes a second and connections, of which the daemon has so many
//! for all of them.
//!
//! They are divided evenly among those that want them, and what a job makes no use of others may have. It is done anew when a
//! job comes or goes, and every few seconds by what each has taken. Jobs hold what they were last given whatever becomes of
//! the daemon; so what one loses is taken from it before another gets it, and all together never hold more than there is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opilio_crawl::{Share, ShareTaken};

use crate::config::Limits;

/// Between two divisions among the same jobs.
const PERIOD: Duration = Duration::from_secs(5);

/// Shares that differ by less than this part are left as they are.
const STEP: u64 = 8;

/// What a job may take that makes next to no use of its share, in bytes a second: enough to show that it wants more.
const BYTES_LEAST: u64 = 16 * 1024;

/// Connections of a job that does nothing: enough to begin.
const CONNECTIONS_LEAST: u64 = 1;

/// Divides what there is.
pub(crate) struct Shares {
    bytes_per_second: Option<u64>,
    connections: Option<u64>,
    /// What is wanted of each job: the outcome of the last division.
    given: BTreeMap<String, Share>,
    seen: BTreeMap<String, Seen>,
    divided: Option<Instant>,
}

/// A job that has to do with the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// What it may take now; none: it is only to begin, or has not yet said.
    pub share: Option<Share>,
    /// The process, and what it had taken after so many seconds; none before it has said so.
    pub taken: Option<(u32, f64, ShareTaken)>,
    /// Nothing begins in it.
    pub is_paused: bool,
}

/// What a job had taken when it was last divided.
#[derive(Clone, Copy)]
struct Seen {
    pid: u32,
    elapsed: f64,
    taken: ShareTaken,
}

/// What a job would have: so much, or whatever it can get.
type Want = Option<u64>;

impl Shares {
    pub(crate) fn new(limits: &Limits) -> Shares {
        Shares {
            bytes_per_second: limits.bandwidth,
            connections: limits.connections.map(|most| most as u64),
            given: BTreeMap::new(),
            seen: BTreeMap::new(),
            divided: None,
        }
    }

    /// What each of these jobs is to have. The same as last time unless another job is among them, or time has passed.
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
        // Small steps would be a command to each job every few seconds; but all together, or they might not add up.
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
                let seen = Seen {
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

    /// Bytes a second and connections that a job would have, by what it has taken since it was last looked at.
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
                // Twice as much, so that it can grow within one period.
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

/// What those that hold more than they are to have must give back first.
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

/// What a job can have of what it is to have, as long as others still hold more than they are to; none while they hold
/// everything.
pub(crate) fn attainable(
    name: &str,
    members: &BTreeMap<String, Member>,
    wanted: &BTreeMap<String, Share>,
    limits: &Limits,
) -> Option<Share> {
    let wish = wanted.get(name).copied().unwrap_or_default();
    let own = members.get(name).and_then(|member| member.share);
    let own = own.unwrap_or_default();
    let others = members.iter().filter(|(other, _)| *other != name);
    let (mut bytes, mut connections) = (0_u64, 0_u64);
    for (_, member) in others {
        let share = member.share.unwrap_or_default();
        bytes += share.bytes_per_second.unwrap_or(0);
        // What is in process when a share gets smaller goes on.
        let open = member.taken.map_or(0, |(_, _, taken)| taken.connections);
        connections += share.connections.map_or(0, |allowed| allowed.max(open));
    }
    // What it has it keeps: to give back is another matter.
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
        // No limit any more is more, and comes later.
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

/// Divides `all`: nobody gets more than it wants before everybody has that, and what is left then is everybody's alike.
/// Nobody gets nothing, even where there are more who want than there is.
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
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn it_is_divided_evenly_among_those_that_want_it() {
        for (all, wants, expected) in [
            (90, vec![None, None, None], vec![30, 30, 30]),
            (90, vec![Some(10), None, None], vec![10, 40, 40]),
            (90, vec![None, Some(50), Some(10)], vec![40, 40, 10]),
            // What nobody wants now is at everybody's hand.
            (90, vec![Some(10), Some(20)], vec![40, 50]),
            (90, vec![Some(0)], vec![90]),
            (2, vec![None, None, None], vec![1, 1, 1]),
            (90, vec![], vec![]),
        ] {
            assert_eq!(parts(all, &wants), expected, "{all} among {wants:?}");
        }
    }

    fn limits() -> Limits {
        Limits {
            bandwidth: Some(1_000_000),
            connections: Some(10),
            ..Limits::default()
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

    /// A process that has taken so much after so many seconds.
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
    fn what_one_job_makes_no_use_of_another_may_have() {
        let mut shares = Shares::new(&limits());
        let mut now = Instant::now();
        let both = |first: Member, second: Member| members([("a", first), ("b", second)]);
        let given = shares.divide(&both(begins(), begins()), now).clone();
        assert_eq!(given["a"], share(500_000, 5));
        assert_eq!(given["b"], share(500_000, 5));

        // The one waits for slow servers, the other for bytes and connections.
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

        // Paused, it leaves next to everything to the other.
        now += PERIOD;
        let paused = Member {
            is_paused: true,
            ..crawls(first, 13.0, hungry(13.0))
        };
        let given = shares.divide(&both(paused, crawls(first, 13.0, hungry(13.0))), now);
        assert_eq!(given["a"], share(BYTES_LEAST, 1));
        assert_eq!(given["b"], share(1_000_000 - BYTES_LEAST, 9));
        // Gone, everything.
        let alone = members([("b", crawls(first, 14.0, hungry(14.0)))]);
        assert_eq!(shares.divide(&alone, now)["b"], share(1_000_000, 10));
    }

    #[test]
    fn among_the_same_jobs_it_is_not_divided_at_every_look() {
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
    fn nobody_gets_what_another_has_not_given_back() {
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
        // It could not be asked, and holds everything.
        assert_eq!(attainable("b", &before, &wanted, &limits()), None);
        // It could, and eight connections are still open.
        let after = members([
            ("a", crawls(share(500_000, 5), 1.0, taken)),
            ("b", begins()),
        ]);
        assert_eq!(
            attainable("b", &after, &wanted, &limits()),
            Some(share(500_000, 2))
        );
        assert_eq!(lowered(&after, &wanted), []);
        // What it has it keeps, even where another has too much.
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
    fn a_job_that_was_begun_by_hand_is_held_to_its_share_too() {
        let wanted = BTreeMap::from([("a".to_owned(), share(500_000, 5))]);
        let free = members([("a", crawls(Share::default(), 1.0, ShareTaken::default()))]);
        assert_eq!(
            lowered(&free, &wanted),
            [("a".to_owned(), share(500_000, 5))]
        );
        // And let go where there is nothing to be divided any more.
        let wanted = BTreeMap::from([("a".to_owned(), Share::default())]);
        let held = members([("a", crawls(share(500_000, 5), 1.0, ShareTaken::default()))]);
        assert_eq!(lowered(&held, &wanted), []);
        let limits = Limits::default();
        assert_eq!(
            attainable("a", &held, &wanted, &limits),
            Some(Share::default())
        );
    }
}
