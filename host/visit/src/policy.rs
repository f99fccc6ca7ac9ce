//! Conversion of the profile for the frontier: its configuration, the settings of queues, and the cost and precedence of URIs.

use std::sync::Arc;

use jiff::Timestamp;
use opilio_frontier::{
    Candidate, FrontierConfig, QueueSettings, Resolver, WaitLimits, WaitResolver,
};
use opilio_profile::{
    CostPolicy, Profile, Revisit, Strategy, UriContext, UriPrecedencePolicy, UriSettings,
};
use opilio_uri::{HopPath, Uri};

/// Words that are common in URIs of calendars and rare in others.
const CALENDAR_WORDS: [&str; 10] = [
    "calendar",
    "calendrier",
    "year",
    "month",
    "day",
    "date",
    "viewcal",
    "event",
    "yr=",
    "jour",
];

/// Returns the frontier's configuration. Settings can depend on the time of day: `now` is the caller's clock.
pub fn frontier_config(
    profile: &Arc<Profile>,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> FrontierConfig {
    let settings = profile.settings();
    let frontier = &profile.frontier;
    let resolved = profile.clone();
    let of_uris = profile.clone();
    let now = Arc::new(now);
    let wait_now = now.clone();
    FrontierConfig {
        // The resolver has the settings of every queue.
        queue: QueueSettings::default(),
        // Settings that depend on the time of day are resolved anew when the hash changes: `keep_time` in
        // `crawl/background_tasks.rs`.
        settings_hash: profile.settings_hash_at(now()),
        resolver: Some(Resolver::new(move |queue| {
            QueueSettings::clone(&resolved.queue_settings_at(queue, now()))
        })),
        group: profile.group,
        source_quota: profile.quotas.source,
        embed_preference_hops: frontier.embed_preference(Strategy::Snapshot).into(),
        embed_preference_hops_of_revisits: frontier.embed_preference(Strategy::Revisit).into(),
        waits: waits(&settings.revisit, settings.strategy),
        wait_resolver: Some(WaitResolver::new(move |uri, record| {
            let media_type = Some(record.media_type.as_str());
            let settings = of_uris.effective_with(&UriContext {
                source: record.source.as_deref(),
                media_type: media_type.filter(|known| !known.is_empty()),
                now: Some(wait_now()),
                ..UriContext::of(uri)
            });
            waits(&settings.revisit, settings.strategy)
        })),
        history_length: settings.revisit.history,
        precedence_floor: frontier.precedence_floor,
        ageing: frontier.ageing,
        session_budget: frontier.session_budget,
        error_penalty: frontier.error_penalty,
        bandwidth: profile.limits.bandwidth.map(|rate| rate.bytes()),
        fade_after: settings.revisit.fade_after,
        cache_bytes: frontier.cache.bytes(),
        ..FrontierConfig::default()
    }
}

/// Returns the limits of a URI's wait. Under `fixed` the minimum is at most the fixed wait.
fn waits(revisit: &Revisit, strategy: Strategy) -> WaitLimits {
    WaitLimits {
        min: match strategy {
            Strategy::Fixed => revisit.min_wait.min(revisit.fixed_wait),
            Strategy::Revisit | Strategy::Snapshot => revisit.min_wait,
        },
        max: revisit.max_wait,
    }
}

/// Returns a candidate for the frontier, with the profile's settings for it: canonical form, queue, strategy, cost and
/// precedence.
pub fn candidate(
    profile: &Profile,
    uri: Uri,
    hop_path: HopPath,
    via: Option<&str>,
    source: Option<&str>,
) -> Candidate {
    // Passwords in URIs stay out of logs and records.
    let uri = uri.without_userinfo();
    let settings = profile.effective_with(&UriContext {
        source,
        ..UriContext::of(&uri)
    });
    let cost = cost(settings.uri.cost_policy, &uri, via);
    Candidate {
        canonical: profile.canonical(&uri),
        queue: profile.queue_name(&uri),
        via: via.map(str::to_owned),
        source: source.map(str::to_owned),
        cost,
        min_wait: settings.revisit.min_wait,
        precedence: precedence(&settings.uri, &uri, &hop_path, cost),
        ..Candidate::new(uri, hop_path, settings.strategy)
    }
}

/// Returns the cost of a URI for its queue's budgets.
fn cost(policy: CostPolicy, uri: &Uri, via: Option<&str>) -> u8 {
    match policy {
        CostPolicy::Zero => 0,
        CostPolicy::Unit => 1,
        CostPolicy::Query => {
            let (page, query) = split(uri.as_str());
            let only_query_differs = query.is_some() && via.is_some_and(|via| split(via).0 == page);
            1 + u8::from(query.is_some()) + u8::from(only_query_differs)
        }
        CostPolicy::AntiCalendar => 1 + u8::from(is_like_a_calendar(uri.as_str())),
    }
}

/// Splits a URI into the part before the query, and the query.
fn split(uri: &str) -> (&str, Option<&str>) {
    match uri.split_once('?') {
        Some((page, query)) => (page, Some(query)),
        None => (uri, None),
    }
}

/// Returns `true` if a URI contains a word of calendars, or a number that looks like a year of the 20th or 21st century.
fn is_like_a_calendar(uri: &str) -> bool {
    let lower = uri.to_ascii_lowercase();
    let is_year =
        |number: &str| number.len() == 4 && (number.starts_with("19") || number.starts_with("20"));
    CALENDAR_WORDS.iter().any(|word| lower.contains(word))
        || lower.split(|c: char| !c.is_ascii_digit()).any(is_year)
}

/// The precedence of a URI within its directive, 0 first.
fn precedence(settings: &UriSettings, uri: &Uri, hop_path: &HopPath, cost: u8) -> u8 {
    let base = settings.precedence;
    match settings.precedence_policy {
        UriPrecedencePolicy::Cost => cost,
        UriPrecedencePolicy::Base => base,
        UriPrecedencePolicy::Hops => {
            let hops = if settings.navigation_hops_only {
                hop_path.link_hops()
            } else {
                hop_path.len()
            };
            base.saturating_add(u8::try_from(hops).unwrap_or(u8::MAX))
        }
        UriPrecedencePolicy::File => settings
            .precedences
            .as_ref()
            .and_then(|list| list.precedence(uri))
            .unwrap_or(base),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: CostPolicy, uri: &str, via: Option<&str>, expected: u8) {
        assert_eq!(
            cost(policy, &Uri::parse(uri).unwrap(), via),
            expected,
            "{uri}"
        );
    }

    #[test]
    fn costs_follow_their_policies() {
        use CostPolicy::*;
        check(Unit, "http://a.org/?q", None, 1);
        check(Zero, "http://a.org/?q", None, 0);
        check(Query, "http://a.org/p", Some("http://a.org/"), 1);
        check(Query, "http://a.org/p?q", Some("http://a.org/"), 2);
        check(Query, "http://a.org/p?q", Some("http://a.org/p?r"), 3);
        check(Query, "http://a.org/p?q", Some("http://a.org/p"), 3);
        check(AntiCalendar, "http://a.org/p", None, 1);
        check(AntiCalendar, "http://a.org/Calendar/", None, 2);
        check(AntiCalendar, "http://a.org/2024/05", None, 2);
        check(AntiCalendar, "http://a.org/p20245", None, 1);
        check(AntiCalendar, "http://a.org/12024", None, 1);
    }

    #[test]
    fn precedence_follows_its_policy() {
        let uri = Uri::parse("http://a.org/").unwrap();
        let of = |table: &str, hops: &str| {
            let text = format!("seeds = [\"http://a.org/\"]\n{table}");
            let given = opilio_profile::ProfileContext {
                builtins: opilio_builtin::all()
                    .map(|builtin| builtin.plugin.to_owned())
                    .collect(),
                ..opilio_profile::ProfileContext::default()
            };
            let profile = Profile::parse("p.toml", &text, &given).unwrap();
            candidate(
                &profile,
                uri.clone(),
                HopPath::parse(hops).unwrap(),
                None,
                None,
            )
            .precedence
        };
        assert_eq!(of("", "LLE"), 1);
        assert_eq!(
            of("[uri]\nprecedence-policy = \"base\"\nprecedence = 7", "LLE"),
            7
        );
        assert_eq!(of("[uri]\nprecedence-policy = \"hops\"", "LLE"), 3);
        assert_eq!(
            of(
                "[uri]\nprecedence-policy = \"hops\"\nnavigation-hops-only = false",
                "LLE"
            ),
            4
        );
        assert_eq!(
            of(
                "[uri]\nprecedence-policy = \"base\"\n[[override]]\nmatch = { host = [\"a.org\"] }\nuri.precedence = 0",
                "L"
            ),
            0
        );
    }
}
