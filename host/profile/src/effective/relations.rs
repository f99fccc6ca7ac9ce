//! Relations between settings that may be overridden.

use std::time::Duration;

use super::EffectiveSettings;
use crate::check::Check;
use crate::diagnostic::Level;
use crate::document::KeyOrValue;
use crate::duration::format_duration;
use crate::fetch::Fetch;
use crate::robots::{RobotsPolicy, RobotsSettings};
use crate::uri::UriPrecedencePolicy;

/// Checks settings that may be overridden: of the profile itself, or with an override at the pointer `at`.
pub(crate) fn of_settings(settings: &EffectiveSettings, at: &str, check: &mut Check<'_>) {
    let (politeness, retry) = (&settings.politeness, &settings.retry);
    let revisit = &settings.revisit;
    // The delay is kept between these two.
    at_most(
        check,
        at,
        ("/politeness/min-delay", politeness.min_delay),
        ("/politeness/max-delay", politeness.max_delay),
    );
    // Waits are kept between these two, including the default wait.
    at_most(
        check,
        at,
        ("/revisit/min-wait", revisit.min_wait),
        ("/revisit/max-wait", revisit.max_wait),
    );
    at_most(
        check,
        at,
        ("/revisit/min-wait", revisit.min_wait),
        ("/revisit/default-wait", revisit.default_wait),
    );
    at_most(
        check,
        at,
        ("/revisit/default-wait", revisit.default_wait),
        ("/revisit/max-wait", revisit.max_wait),
    );
    // The doubling ends where it begins or later.
    at_most(
        check,
        at,
        ("/retry/delay", retry.delay),
        ("/retry/delay-max", retry.delay_max),
    );
    // The precedence policy `file` needs a file.
    check_robots(&settings.robots, at, check);
    check_proxy_login(&settings.fetch, at, check);
    let uri = &settings.uri;
    let file_is_faulty = check.faults.covers(&format!("{at}/uri/precedence-file"))
        || check.faults.covers("/uri/precedence-file");
    let policy = format!("{at}/uri/precedence-policy");
    if uri.precedence_policy == UriPrecedencePolicy::File
        && uri.precedences.is_none()
        && !file_is_faulty
        && check.document.has(&policy)
    {
        check.report(
            &policy,
            KeyOrValue::Value,
            Level::Error,
            "the policy is \"file\", and there is no precedence-file".to_owned(),
            Some("set uri.precedence-file = \"ranks.txt\"".to_owned()),
        );
    }
}

/// A proxy needs both a user name and a password, or neither. One of them may be in the profile and the other in an override.
fn check_proxy_login(fetch: &Fetch, at: &str, check: &mut Check<'_>) {
    let Some(proxy) = &fetch.proxy else {
        return;
    };
    let key = ["proxy-user", "proxy-password", "proxy"]
        .map(|key| format!("{at}/fetch/{key}"))
        .into_iter()
        .filter(|key| check.document.has(key))
        .reduce(
            |first, key| match check.document.layer(&key) > check.document.layer(&first) {
                true => key,
                false => first,
            },
        );
    if let Some(key) = key
        && proxy.user.is_some() != proxy.password.is_some()
    {
        check.report(
            &key,
            KeyOrValue::Value,
            Level::Error,
            "the proxy needs both a user name and a password".to_owned(),
            Some("set both fetch.proxy-user and fetch.proxy-password, or neither".to_owned()),
        );
    }
}

/// The policy `custom` needs the text of a robots.txt. Policies that follow other robots need the names of these robots.
fn check_robots(robots: &RobotsSettings, at: &str, check: &mut Check<'_>) {
    let (problem, suggestion) = match robots.policy {
        RobotsPolicy::Custom if robots.text.is_empty() => (
            "the policy is \"custom\", and there is no text",
            "set robots.text to the lines of a robots.txt",
        ),
        RobotsPolicy::FirstNamed | RobotsPolicy::MostFavoured if robots.agents.is_empty() => (
            "the policy needs the names of other robots, and there are no agents",
            "set robots.agents = [\"archive.org_bot\"]",
        ),
        _ => return,
    };
    let own = format!("{at}/robots/policy");
    if check.document.has(&own) {
        let suggestion = Some(suggestion.to_owned());
        check.report(
            &own,
            KeyOrValue::Value,
            Level::Error,
            problem.to_owned(),
            suggestion,
        );
    }
}

/// Checks that the first duration is at most the second. `at` is the pointer to an override, or empty. A value that the override
/// does not have is in the profile or is a default.
pub(crate) fn at_most(
    check: &mut Check<'_>,
    at: &str,
    (low_key, low): (&str, Duration),
    (high_key, high): (&str, Duration),
) {
    let document = check.document;
    let place = |key: &str| {
        let own = format!("{at}{key}");
        let is_own = document.has(&own);
        (if is_own { own } else { key.to_owned() }, is_own)
    };
    let ((low_at, low_own), (high_at, high_own)) = (place(low_key), place(high_key));
    if !at.is_empty() && !low_own && !high_own {
        return;
    }
    if low <= high || check.faults.covers(&low_at) || check.faults.covers(&high_at) {
        return;
    }
    // If one of the two is a default, in an earlier layer, or not in the override, the other is the one to change.
    let blame_high = match low_own == high_own {
        true => document.layer(&high_at) >= document.layer(&low_at),
        false => high_own,
    };
    let (pointer, other) = if blame_high {
        (&high_at, &low_at)
    } else {
        (&low_at, &high_at)
    };
    let name = |pointer: &str| pointer.rsplit('/').next().unwrap_or_default().to_owned();
    let (low_text, high_text) = (format_duration(low), format_duration(high));
    let problem = if blame_high {
        format!(
            "{} ({high_text}) is shorter than {} ({low_text})",
            name(&high_at),
            name(&low_at)
        )
    } else {
        format!(
            "{} ({low_text}) is longer than {} ({high_text})",
            name(&low_at),
            name(&high_at)
        )
    };
    let suggestion = match document.layer(other) {
        None => {
            let default = if blame_high { low_text } else { high_text };
            Some(format!(
                "{} is not written and is \"{default}\" by default",
                name(other)
            ))
        }
        layer if layer == document.layer(pointer) => None,
        _ => {
            let other_place = document.fault(other, KeyOrValue::Key, Level::Error, String::new());
            let line = other_place.place.map_or(0, |place| place.line);
            let file = other_place.file;
            Some(format!("{} is set in {file}:{line}", name(other)))
        }
    };
    check.report(
        pointer,
        KeyOrValue::Value,
        Level::Error,
        problem,
        suggestion,
    );
}
