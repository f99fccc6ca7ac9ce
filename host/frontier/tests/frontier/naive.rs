//! The frontier as one would write it with no store, no size and no hurry: maps in memory, searched from end to end. Times
//! are whole seconds. What `next`, `schedule` and `finished` answer must be the same.

use std::collections::BTreeMap;

use opilio_frontier::{Candidate, Config, Directive, Scheduled, Strategy};
use opilio_uri::Hop;

#[derive(Clone, Default)]
pub(crate) struct Naive {
    /// By exact URI.
    pub(crate) uris: BTreeMap<String, Known>,
    /// Canonical form to the first URI that had it.
    canonicals: BTreeMap<String, String>,
    pub(crate) queues: BTreeMap<String, Queue>,
    clock: u64,
}

#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) queue: String,
    canonical: String,
    strategy: Strategy,
    precedence: u8,
    pub(crate) seed: bool,
    pub(crate) place: Place,
    pub(crate) attempts: u32,
    pub(crate) deferrals: u32,
    pub(crate) visits: u64,
    pub(crate) standing: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Place {
    Ready(Rank),
    Waiting(Rank),
    Done,
    Deleted,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rank {
    pub(crate) directive: Directive,
    pub(crate) due: i64,
    arrival: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Queue {
    pub(crate) next_ready: i64,
    failures: u32,
    pub(crate) crawl_delay: u64,
    /// Able to give a URI from this time on; and who came first.
    pub(crate) turn: Option<(i64, u64)>,
    pub(crate) busy: Option<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum NaiveNext {
    Issue {
        uri: String,
        queue: String,
        due: i64,
        overdue: u64,
        attempts: u32,
        visits: u64,
    },
    WaitUntil(i64),
    InProcess,
    Empty,
}

pub(crate) enum NaiveOutcome {
    Succeeded {
        wait: Option<u64>,
        outlinks: Vec<Candidate>,
        fetch: u64,
    },
    Deferred(Vec<Candidate>),
    Retry {
        after: Option<u64>,
        fetch: Option<u64>,
    },
    Disregarded {
        fetch: Option<u64>,
    },
    Failed {
        fetch: Option<u64>,
    },
}

#[derive(Debug, PartialEq)]
pub(crate) enum NaiveDisposition {
    Done,
    Waiting(i64),
    Forgotten,
    Deferred,
    Retrying(u32),
    GivenUp(u32, Option<i64>),
}

impl Naive {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(crate) fn schedule(
        &mut self,
        config: &Config,
        candidates: &[Candidate],
        now: i64,
        source: Option<&str>,
        needed_by: Option<&str>,
    ) -> Vec<Scheduled> {
        let mut touched = Vec::new();
        let answers = candidates
            .iter()
            .map(|candidate| {
                let mut candidate = candidate.clone();
                if let Some(queue) = needed_by {
                    candidate.queue = queue.to_owned();
                    candidate.directive = Directive::Highest;
                    candidate.precedence = 0;
                } else {
                    candidate.directive = directive(&candidate, config);
                }
                self.schedule_one(&candidate, now, source, needed_by, &mut touched)
            })
            .collect();
        for queue in touched {
            self.revise(&queue, now);
        }
        answers
    }

    fn schedule_one(
        &mut self,
        candidate: &Candidate,
        now: i64,
        source: Option<&str>,
        needed_by: Option<&str>,
        touched: &mut Vec<String>,
    ) -> Scheduled {
        let exact = candidate.uri.to_string();
        let redirects = candidate
            .hop_path
            .hops()
            .rev()
            .take_while(|hop| *hop == Hop::Redirect)
            .count();
        let follows = source == Some(&candidate.canonical) && (1..=5).contains(&redirects);
        let first = self.canonicals.get(&candidate.canonical).cloned();
        let known = match (self.uris.contains_key(&exact), &first) {
            (true, _) => Some(exact.clone()),
            (false, Some(_)) if candidate.force || follows => None,
            (false, first) => first.clone(),
        };
        let Some(known) = known.filter(|known| self.uris.contains_key(known)) else {
            if first.is_some() && !candidate.force && !follows {
                return Scheduled::Known;
            }
            let rank = Rank {
                directive: candidate.directive,
                due: now,
                arrival: self.tick(),
            };
            self.uris.insert(
                exact.clone(),
                Known {
                    queue: candidate.queue.clone(),
                    canonical: candidate.canonical.clone(),
                    strategy: candidate.strategy,
                    precedence: candidate.precedence,
                    seed: candidate.seed,
                    place: Place::Ready(rank),
                    attempts: 0,
                    deferrals: 0,
                    visits: 0,
                    standing: None,
                },
            );
            let was_known = first.is_some();
            self.canonicals
                .entry(candidate.canonical.clone())
                .or_insert(exact);
            self.touch(&candidate.queue, touched);
            return if was_known && candidate.force {
                Scheduled::Forced
            } else {
                Scheduled::New
            };
        };

        let mut uri = self.uris[&known].clone();
        uri.seed |= candidate.seed;
        self.uris.insert(known.clone(), uri.clone());
        if self
            .queues
            .values()
            .any(|queue| queue.busy.as_ref() == Some(&known))
        {
            if let Some(queue) = needed_by.filter(|queue| *queue != uri.queue) {
                let queue = self.queues.entry(queue.to_owned()).or_default();
                queue.next_ready = queue.next_ready.max(now + 1);
            }
            return Scheduled::Known;
        }
        let (old, wants) = match uri.place {
            Place::Ready(rank) => (Some(rank), candidate.directive > rank.directive),
            Place::Waiting(rank) => (
                Some(rank),
                candidate.directive > rank.directive && candidate.directive >= Directive::High,
            ),
            Place::Done => (None, candidate.directive == Directive::Highest),
            Place::Deleted => (None, false),
        };
        let changes_queue = old.is_some() && needed_by.is_some_and(|queue| queue != uri.queue);
        if !(wants || candidate.force || changes_queue) {
            return Scheduled::Known;
        }
        let rank = match old {
            Some(rank) => {
                self.touch(&uri.queue, touched);
                Rank {
                    directive: rank.directive.max(candidate.directive),
                    due: rank.due.min(now),
                    ..rank
                }
            }
            None => Rank {
                directive: candidate.directive,
                due: now,
                arrival: self.tick(),
            },
        };
        if candidate.directive == Directive::Highest {
            uri.precedence = 0;
        }
        if let Some(queue) = needed_by {
            uri.queue = queue.to_owned();
        }
        uri.attempts = 0;
        uri.deferrals = 0;
        uri.place = Place::Ready(rank);
        self.touch(&uri.queue, touched);
        self.uris.insert(known, uri);
        if candidate.force {
            Scheduled::Forced
        } else {
            Scheduled::Raised(rank.directive)
        }
    }

    fn touch(&mut self, queue: &str, touched: &mut Vec<String>) {
        self.queues.entry(queue.to_owned()).or_default();
        if !touched.iter().any(|one| one == queue) {
            touched.push(queue.to_owned());
        }
    }

    /// When a queue could give a URI: now, later, or never.
    fn earliest(&self, queue: &str, now: i64) -> Option<(i64, bool)> {
        let next_ready = self.queues[queue].next_ready;
        let places = || {
            self.uris
                .values()
                .filter(|uri| uri.queue == queue)
                .map(|uri| uri.place)
        };
        if places().any(|place| matches!(place, Place::Ready(_))) {
            return Some((next_ready.max(now), true));
        }
        let due = places()
            .filter_map(|place| {
                if let Place::Waiting(rank) = place {
                    Some(rank.due)
                } else {
                    None
                }
            })
            .min();
        due.map(|due| (due.max(next_ready), false))
    }

    /// What a queue can give has changed; it is not its turn that ended.
    fn revise(&mut self, name: &str, now: i64) {
        let earliest = self.earliest(name, now);
        if self.queues[name].busy.is_some() {
            return;
        }
        let turn = match (earliest, self.queues[name].turn) {
            (None, _) => None,
            (Some((wake, true)), Some(turn)) if turn.0 <= wake => Some(turn),
            (Some((wake, false)), Some(turn)) if turn.0 == wake => Some(turn),
            (Some((wake, _)), _) => Some((wake, self.tick())),
        };
        self.queues.get_mut(name).unwrap().turn = turn;
    }

    fn line_up(&mut self, name: &str, now: i64) {
        let tick = self.tick();
        let turn = self.earliest(name, now).map(|(wake, _)| (wake, tick));
        self.queues.get_mut(name).unwrap().turn = turn;
    }

    pub(crate) fn next(&mut self, now: i64) -> NaiveNext {
        let idle = self.queues.iter().filter(|(_, queue)| queue.busy.is_none());
        let Some((turn, name)) = idle
            .filter_map(|(name, queue)| Some((queue.turn?, name.clone())))
            .min()
        else {
            let is_busy = self.queues.values().any(|queue| queue.busy.is_some());
            return if is_busy {
                NaiveNext::InProcess
            } else {
                NaiveNext::Empty
            };
        };
        if turn.0 > now {
            return NaiveNext::WaitUntil(turn.0);
        }
        for uri in self.uris.values_mut().filter(|uri| uri.queue == name) {
            if let Place::Waiting(rank) = uri.place
                && rank.due <= now
            {
                uri.place = Place::Ready(rank);
            }
        }
        let ready = self
            .uris
            .iter()
            .filter(|(_, uri)| uri.queue == name)
            .filter_map(|(text, uri)| match uri.place {
                Place::Ready(rank) => Some((
                    std::cmp::Reverse(rank.directive),
                    uri.precedence,
                    rank.due,
                    rank.arrival,
                    text.clone(),
                )),
                _ => None,
            });
        let (_, _, due, _, text) = ready.min().unwrap();
        self.queues.get_mut(&name).unwrap().busy = Some(text.clone());
        let uri = &self.uris[&text];
        NaiveNext::Issue {
            queue: name,
            due,
            overdue: u64::try_from(now - due).unwrap_or(0),
            attempts: uri.attempts,
            visits: uri.visits,
            uri: text,
        }
    }

    pub(crate) fn finished(
        &mut self,
        config: &Config,
        text: &str,
        outcome: NaiveOutcome,
        now: i64,
    ) -> (NaiveDisposition, Vec<Scheduled>, i64) {
        let mut uri = self.uris[text].clone();
        let name = uri.queue.clone();
        let Place::Ready(rank) = uri.place else {
            panic!("{text} was not ready")
        };
        let fetch = match &outcome {
            NaiveOutcome::Succeeded { fetch, .. } => Some(*fetch),
            NaiveOutcome::Deferred(_) => None,
            NaiveOutcome::Retry { fetch, .. }
            | NaiveOutcome::Disregarded { fetch }
            | NaiveOutcome::Failed { fetch } => *fetch,
        };
        if let Some(fetch) = fetch.filter(|_| !text.starts_with("dns:")) {
            let queue = self.queues.get_mut(&name).unwrap();
            let rest = (2 * fetch).clamp(2, 10).max(queue.crawl_delay.min(60));
            queue.next_ready = queue.next_ready.max(now + rest.cast_signed());
        }
        let probe = (uri.strategy == Strategy::Revisit).then_some(config.max_wait.as_secs());
        let mut scheduled = Vec::new();
        // The wait after the turn, if the turn ended; and how it did.
        let (ended, disposition) = match &outcome {
            NaiveOutcome::Succeeded { wait, .. } => {
                self.queues.get_mut(&name).unwrap().failures = 0;
                uri.visits += 1;
                (Some((*wait, "succeeded")), None)
            }
            NaiveOutcome::Deferred(_) if uri.deferrals == config.max_deferrals => (
                Some((probe, "failed")),
                Some(NaiveDisposition::GivenUp(uri.deferrals + 1, None)),
            ),
            NaiveOutcome::Deferred(_) => (None, Some(NaiveDisposition::Deferred)),
            NaiveOutcome::Retry { after, .. } => {
                let queue = self.queues.get_mut(&name).unwrap();
                queue.failures += 1;
                let back_off = (20 << (queue.failures - 1).min(10)).min(60);
                let rest = back_off.max(after.unwrap_or(0).min(300));
                queue.next_ready = queue.next_ready.max(now + rest.cast_signed());
                uri.attempts += 1;
                if uri.attempts > config.queue.max_retries {
                    (
                        Some((probe, "failed")),
                        Some(NaiveDisposition::GivenUp(uri.attempts, None)),
                    )
                } else {
                    (None, Some(NaiveDisposition::Retrying(uri.attempts)))
                }
            }
            NaiveOutcome::Disregarded { .. } => (Some((probe, "disregarded")), None),
            NaiveOutcome::Failed { .. } => (Some((probe, "failed")), None),
        };
        let canonical = uri.canonical.clone();
        let disposition = match ended {
            Some((wait, standing)) => {
                uri.attempts = 0;
                uri.deferrals = 0;
                uri.standing = Some(standing);
                let again = wait.map(|wait| now + wait.cast_signed());
                uri.place = match again {
                    Some(due) => Place::Waiting(Rank {
                        directive: Directive::Normal,
                        due,
                        arrival: self.tick(),
                    }),
                    None => Place::Done,
                };
                self.uris.insert(text.to_owned(), uri);
                match (disposition, again) {
                    (Some(NaiveDisposition::GivenUp(tries, _)), again) => {
                        NaiveDisposition::GivenUp(tries, again)
                    }
                    (_, Some(due)) => NaiveDisposition::Waiting(due),
                    (_, None) => NaiveDisposition::Done,
                }
            }
            None => {
                let mut behind = None;
                match &outcome {
                    NaiveOutcome::Deferred(prerequisites) => {
                        uri.deferrals += 1;
                        self.uris.insert(text.to_owned(), uri.clone());
                        scheduled = self.schedule(config, prerequisites, now, None, Some(&name));
                        if rank.directive == Directive::Highest {
                            behind = Some(self.tick());
                        }
                    }
                    _ => {
                        uri.deferrals = 0;
                        if rank.directive != Directive::Highest {
                            behind = Some(self.tick());
                        }
                    }
                }
                let seed = self.uris[text].seed;
                if let Some(arrival) = behind {
                    uri.place = Place::Ready(Rank {
                        due: rank.due.max(now),
                        arrival,
                        ..rank
                    });
                }
                self.uris.insert(text.to_owned(), Known { seed, ..uri });
                disposition.unwrap()
            }
        };
        if let NaiveOutcome::Succeeded { outlinks, .. } = outcome {
            scheduled = self.schedule(config, &outlinks, now, Some(&canonical), None);
        }
        self.queues.get_mut(&name).unwrap().busy = None;
        self.line_up(&name, now);
        let ready = self.queues[&name].next_ready.max(now);
        (disposition, scheduled, ready)
    }

    /// A new process: what was in process is back, and its queue rests from now on.
    pub(crate) fn reopened(&mut self, names: &[String], now: i64) {
        for name in names {
            let queue = self.queues.get_mut(name).unwrap();
            let Some(text) = queue.busy.take() else {
                continue;
            };
            if !text.starts_with("dns:") {
                let rest = queue.crawl_delay.clamp(10, 60);
                queue.next_ready = queue.next_ready.max(now + rest.cast_signed());
            }
            self.line_up(name, now);
        }
    }

    pub(crate) fn withdraw(&mut self, text: &str, is_kept: bool, now: i64) -> bool {
        if !self.uris.contains_key(text)
            || self
                .queues
                .values()
                .any(|queue| queue.busy.as_deref() == Some(text))
        {
            return false;
        }
        let uri = self.uris[text].clone();
        if is_kept {
            self.uris.insert(
                text.to_owned(),
                Known {
                    place: Place::Deleted,
                    ..uri.clone()
                },
            );
        } else {
            self.uris.remove(text);
            self.canonicals.remove(&uri.canonical);
        }
        if matches!(uri.place, Place::Ready(_) | Place::Waiting(_)) {
            self.revise(&uri.queue, now);
        }
        true
    }
}

fn directive(candidate: &Candidate, config: &Config) -> Directive {
    let hops = candidate.hop_path.as_str();
    let since_link = hops.rsplit(['L', 'M', 'S']).next().unwrap_or_default();
    let embeds = since_link.matches('E').count();
    let preference = if candidate.strategy.revisits() {
        config.embed_preference_hops_of_revisits
    } else {
        config.embed_preference_hops
    };
    let found = if hops.ends_with('R') || (embeds > 0 && embeds <= preference as usize) {
        Directive::Medium
    } else {
        Directive::Normal
    };
    match candidate.directive {
        Directive::Highest if !hops.ends_with('P') => Directive::High,
        asked => asked.max(found),
    }
}
