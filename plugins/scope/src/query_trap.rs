//! `query-trap`: queries that grow with every page, repeat themselves, or permute those of other URIs.

use std::collections::HashSet;

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::parts::Parts;

/// Rejects URIs with such queries.
pub struct QueryTrap {
    settings: Settings,
    decisions: Decisions,
}

/// Settings of `query-trap`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Longest query, in bytes.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub length_max: u32,
    /// Most `name=value` pairs in a query that has all pairs of its page's query, on the same path, and more. Catalogue filters
    /// that are added one by one make such queries.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub grown_pairs_max: u32,
    /// Most occurrences of the same `name=value` pair in a query.
    #[schemars(range(min = 1), extend("x-opilio-overridable" = true))]
    pub repeats_max: u32,
    /// Most times that a percent sign may be escaped. A login page that names itself as the return page adds one with every
    /// visit: `%252F`, `%25252F`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub escapes_max: u32,
    /// `true` if a query matches that has the same pairs as the query of its page, or of an earlier link on that page, in
    /// another order.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub permutations: bool,
    /// The decision on URIs with such queries.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other queries. URIs without a query get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            length_max: 4096,
            grown_pairs_max: 8,
            repeats_max: 2,
            escapes_max: 2,
            permutations: true,
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for QueryTrap {
    const NAME: &'static str = "query-trap";
    const SUMMARY: &'static str =
        "Rejects URIs whose query grows with every page, repeats itself or permutes another query.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        if settings.repeats_max == 0 {
            let problem = "0 would match every query; the minimum is 1";
            return Err(vec![SettingsFault::new("/repeats-max", problem)]);
        }
        let decisions = Decisions {
            then: settings.then,
            otherwise: settings.otherwise,
        };
        Ok(Self {
            settings,
            decisions,
        })
    }
}

impl Filter for QueryTrap {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let query = Query::of(candidate.uri());
        self.decisions
            .rule(self.find(&query, candidate.via(), &HashSet::new()))
    }

    fn judge_candidates(&self, _: &Stage, candidates: &Candidates<'_>) -> Vec<Ruling> {
        // Keys of earlier links. A link that is found twice is not a permutation of itself, so it is not compared again.
        let mut earlier = HashSet::new();
        let mut distinct_parts = HashSet::new();
        let no_keys = HashSet::new();
        let mut rulings = Vec::with_capacity(candidates.len());
        for candidate in candidates.iter() {
            let query = Query::of(candidate.uri());
            let is_new = distinct_parts.insert(query.parts);
            let known = if is_new { &earlier } else { &no_keys };
            let finding = self.find(&query, candidate.via(), known);
            // A rejected link does not make later links permutations.
            if is_new && query.sorted.len() > 1 && !matches!(finding, Finding::Match(_)) {
                earlier.insert(query.key());
            }
            rulings.push(self.decisions.rule(finding));
        }
        rulings
    }
}

/// A URI's path and query, and the query's pairs in sorted order.
struct Query<'a> {
    parts: Parts<'a>,
    sorted: Vec<(&'a str, &'a str)>,
}

/// Server, path and sorted pairs.
type Key<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    fn of(uri: &'a str) -> Self {
        let parts = Parts::of(uri);
        let mut sorted: Vec<_> = parts.pairs().collect();
        sorted.sort_unstable();
        Self { parts, sorted }
    }

    /// Returns the key that all permutations of one query share.
    fn key(&self) -> Key<'a> {
        (self.parts.server, self.parts.path, self.sorted.clone())
    }

    /// Returns the number of occurrences of the most frequent pair.
    fn most_repeats(&self) -> usize {
        let runs = self.sorted.chunk_by(|one, other| one == other);
        runs.map(<[_]>::len).max().unwrap_or(0)
    }

    /// Returns true if the query has all pairs of `other`, and more.
    fn extends(&self, other: &Query<'_>) -> bool {
        if self.sorted.len() <= other.sorted.len() {
            return false;
        }
        let mut mine = self.sorted.iter();
        let mut theirs = other.sorted.iter();
        theirs.all(|pair| mine.any(|own| own == pair))
    }
}

impl QueryTrap {
    fn find(&self, query: &Query<'_>, via: Option<&str>, earlier: &HashSet<Key<'_>>) -> Finding {
        let settings = &self.settings;
        let text = query.parts.query;
        let exceeds = |number: usize, max: u32| number > usize::try_from(max).unwrap_or(usize::MAX);
        if text.is_empty() {
            return Finding::Unknown;
        }
        if exceeds(text.len(), settings.length_max) {
            return Finding::matching(format!("a query of {} bytes", text.len()));
        }
        if exceeds(query.most_repeats(), settings.repeats_max) {
            return Finding::matching(format!(
                "a name=value pair occurs {} times in the query",
                query.most_repeats()
            ));
        }
        if exceeds(count_escapes(text), settings.escapes_max) {
            return Finding::matching(format!(
                "a percent sign is escaped {} times",
                count_escapes(text)
            ));
        }
        let via = via.map(Query::of);
        let via = via.filter(|via| {
            via.parts.server == query.parts.server && via.parts.path == query.parts.path
        });
        if let Some(via) = via {
            let pairs = query.sorted.len();
            if exceeds(pairs, settings.grown_pairs_max) && query.extends(&via) {
                return Finding::matching(format!("the page's query, grown to {pairs} pairs"));
            }
            let permuted = query.sorted == via.sorted && text != via.parts.query;
            if settings.permutations && permuted {
                return Finding::matching("the page's query in another order");
            }
        }
        if settings.permutations && query.sorted.len() > 1 && earlier.contains(&query.key()) {
            return Finding::matching("an earlier link's query in another order");
        }
        Finding::not_matching("a query")
    }
}

/// Returns the most times that a percent sign is escaped: 1 in `%252F`, 2 in `%25252F`.
fn count_escapes(text: &str) -> usize {
    let depths = text.split('%').skip(1).map(|after| {
        let mut rest = after;
        let mut depth: usize = 0;
        while let Some(shorter) = rest.strip_prefix("25") {
            rest = shorter;
            depth += 1;
        }
        let mut first = rest.bytes().take(2);
        let is_escape = rest.len() >= 2 && first.all(|byte| byte.is_ascii_hexdigit());
        // If no other character was escaped, the percent sign itself was.
        if is_escape {
            depth
        } else {
            depth.saturating_sub(1)
        }
    });
    depths.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_counted() {
        for (text, times) in [
            ("", 0),
            ("a=b", 0),
            ("a=%2Fb", 0),
            ("a=100%25", 0),
            ("a=%252Fb", 1),
            ("a=%25252Fb&c=%2F", 2),
            ("a=%2525252Fb", 3),
            ("a=%25%25%25", 0),
            ("a=100%2525", 1),
            ("a=%", 0),
            ("a=%25zz", 0),
        ] {
            assert_eq!(count_escapes(text), times, "{text}");
        }
    }
}
