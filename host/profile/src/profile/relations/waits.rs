//! Waits that have no effect: `revisit.default-wait` beside an evaluator that answers for every document, and waits of an
//! evaluator outside the limits `revisit.min-wait` and `revisit.max-wait`.
//!
//! Only shipped evaluators are checked, since the meaning of other plugins' settings is not known here.

use std::time::Duration;

use opilio_model::Strategy;
use serde_json::Value;

use crate::check::{Check, quote};
use crate::component::ComponentReference;
use crate::diagnostic::Level;
use crate::document::{KeyOrValue, child};
use crate::duration::{format_duration, parse_duration};
use crate::plugins::Instance;
use crate::profile::Profile;

/// Wait evaluators that ship, with the settings that are waits.
const EVALUATORS: [(&str, &[&str]); 4] = [
    (
        "adaptive",
        &["initial-wait", "min-wait", "max-wait", "default-wait"],
    ),
    ("poisson", &["min-wait", "max-wait"]),
    ("budgeted", &["min-wait", "max-wait"]),
    ("fixed", &["wait"]),
];

/// `default-wait` of `adaptive` where none is written.
const ADAPTIVE_DEFAULT_WAIT: Duration = Duration::from_secs(3 * 24 * 60 * 60);

pub(super) fn check(profile: &Profile, check: &mut Check<'_>) {
    let settings = &profile.settings;
    if settings.strategy != Strategy::Revisit {
        return;
    }
    let instances = settings.stacks.wait.iter();
    let evaluators: Vec<&Instance> = instances
        .filter_map(|name| profile.plugins.get(name))
        .collect();
    for evaluator in &evaluators {
        check_limits(profile, evaluator, check);
    }
    // The first evaluator that answers for every document decides on each of them.
    let Some(decisive) = evaluators.iter().find(|it| answers_for_all(it)) else {
        return;
    };
    let own = match builtin(decisive) {
        Some("adaptive") => wait(decisive, "default-wait").unwrap_or(ADAPTIVE_DEFAULT_WAIT),
        Some("fixed") => match wait(decisive, "wait") {
            Some(wait) => wait,
            None => return,
        },
        _ => return,
    };
    let default = settings.revisit.default_wait;
    if own == default || !check.document.has("/revisit/default-wait") {
        return;
    }
    let name = &decisive.name;
    let problem = format!(
        "default-wait ({}) only applies when {} fails: it answers for every document, also with unknown content state ({})",
        format_duration(default),
        quote(name),
        format_duration(own)
    );
    let suggestion = match builtin(decisive) {
        Some("adaptive") => format!("write default-wait in the settings of plugins.{name}"),
        _ => format!("write wait in the settings of plugins.{name}"),
    };
    check.report(
        "/revisit/default-wait",
        KeyOrValue::Value,
        Level::Info,
        problem,
        Some(suggestion),
    );
}

/// Checks the waits of an evaluator against the limits of the profile.
fn check_limits(profile: &Profile, evaluator: &Instance, check: &mut Check<'_>) {
    let known = builtin(evaluator);
    let Some((_, names)) = EVALUATORS.iter().find(|(name, _)| Some(*name) == known) else {
        return;
    };
    let revisit = &profile.settings.revisit;
    let table = child("/plugins", &evaluator.name);
    for name in *names {
        let pointer = format!("{table}/settings/{name}");
        let Some(wait) = wait(evaluator, name) else {
            continue;
        };
        let (low, high) = (revisit.min_wait, revisit.max_wait);
        let problem = match *name {
            "min-wait" if wait < low => format!(
                "min-wait ({}) has no effect: revisit.min-wait ({}) is longer",
                format_duration(wait),
                format_duration(low)
            ),
            "max-wait" if wait > high => format!(
                "max-wait ({}) has no effect: revisit.max-wait ({}) is shorter",
                format_duration(wait),
                format_duration(high)
            ),
            "min-wait" | "max-wait" => continue,
            _ if wait < low => format!(
                "{name} ({}) is shorter than revisit.min-wait ({}), which applies instead",
                format_duration(wait),
                format_duration(low)
            ),
            _ if wait > high => format!(
                "{name} ({}) is longer than revisit.max-wait ({}), which applies instead",
                format_duration(wait),
                format_duration(high)
            ),
            _ => continue,
        };
        check.report(&pointer, KeyOrValue::Value, Level::Info, problem, None);
    }
}

/// Returns the name of a shipped plugin.
fn builtin(instance: &Instance) -> Option<&str> {
    match &instance.component {
        ComponentReference::Builtin(name) => Some(name),
        _ => None,
    }
}

fn answers_for_all(instance: &Instance) -> bool {
    let types = instance.settings.get("media-types");
    let all = types.and_then(Value::as_array).is_none_or(Vec::is_empty);
    all && instance.filters.is_empty() && matches!(builtin(instance), Some("adaptive" | "fixed"))
}

/// Returns a wait as written; `None` if it is not written, or is invalid, which the check of the settings reports.
fn wait(instance: &Instance, name: &str) -> Option<Duration> {
    match instance.settings.get(name)? {
        Value::String(text) => parse_duration(text).ok(),
        Value::Number(seconds) => Duration::try_from_secs_f64(seconds.as_f64()?).ok(),
        _ => None,
    }
}
