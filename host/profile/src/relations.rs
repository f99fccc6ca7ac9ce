//! Relations between settings: each a sentence, all in this one place. Nothing is said of a value that is faulty in itself.

use std::net::IpAddr;
use std::time::Duration;

use opilio_uri::Uri;

use crate::check::{Check, quote};
use crate::document::Spot;
use crate::duration::format_duration;
use crate::fault::Level;
use crate::operator::contact_problem;
use crate::profile::{Given, Profile, Strategy};
use crate::seeds;
use crate::stacks::Stage;

/// Below this the shortest delay is worth a word when other people's servers are crawled.
const MIN_DELAY_USUAL: Duration = Duration::from_millis(500);

pub(crate) fn check(profile: &Profile, given: &Given, check: &mut Check<'_>) {
    delays_and_times(profile, check);
    seeds_are_there(profile, given, check);
    operator_can_be_reached(profile, given, check);
    loopback_can_be_reached(profile, check);
    politeness_towards_others(profile, check);
    plugins_are_used(profile, check);
    revisits_are_timed(profile, check);
}

fn delays_and_times(profile: &Profile, check: &mut Check<'_>) {
    let settings = &profile.settings;
    let (politeness, fetch, revisit) = (&settings.politeness, &settings.fetch, &settings.revisit);
    // The delay is kept between these two.
    at_most(
        check,
        ("/politeness/min-delay", politeness.min_delay),
        ("/politeness/max-delay", politeness.max_delay),
    );
    // Waits are kept between these two, the default wait as well.
    at_most(
        check,
        ("/revisit/min-wait", revisit.min_wait),
        ("/revisit/max-wait", revisit.max_wait),
    );
    at_most(
        check,
        ("/revisit/min-wait", revisit.min_wait),
        ("/revisit/default-wait", revisit.default_wait),
    );
    at_most(
        check,
        ("/revisit/default-wait", revisit.default_wait),
        ("/revisit/max-wait", revisit.max_wait),
    );
    // A fetch ends before it has connected, or before the server's silence counts, otherwise.
    at_most(
        check,
        ("/fetch/connect-timeout", fetch.connect_timeout),
        ("/fetch/total-timeout", fetch.total_timeout),
    );
    at_most(
        check,
        ("/fetch/response-timeout", fetch.response_timeout),
        ("/fetch/total-timeout", fetch.total_timeout),
    );
    // The doubling ends where it begins or later.
    at_most(
        check,
        ("/retry/delay", settings.retry.delay),
        ("/retry/delay-max", settings.retry.delay_max),
    );
    // An address's time is kept between these two.
    at_most(
        check,
        ("/dns/min-expires", profile.dns.min_expires),
        ("/dns/max-expires", profile.dns.max_expires),
    );
}

fn at_most(
    check: &mut Check<'_>,
    (low_at, low): (&str, Duration),
    (high_at, high): (&str, Duration),
) {
    if low <= high || check.faults.covers(low_at) || check.faults.covers(high_at) {
        return;
    }
    // Where one of the two is a default, the other is what to change.
    let (pointer, other) = if check.document.has(high_at) {
        (high_at, low_at)
    } else {
        (low_at, high_at)
    };
    let name = |pointer: &str| pointer.rsplit('/').next().unwrap_or_default().to_owned();
    let (low_text, high_text) = (format_duration(low), format_duration(high));
    let problem = if pointer == high_at {
        format!(
            "{} ({high_text}) is shorter than {} ({low_text})",
            name(high_at),
            name(low_at)
        )
    } else {
        format!(
            "{} ({low_text}) is longer than {} ({high_text})",
            name(low_at),
            name(high_at)
        )
    };
    let suggestion = if check.document.has(other) {
        None
    } else {
        let default = if other == low_at { low_text } else { high_text };
        Some(format!(
            "{} is not written and is \"{default}\" by default",
            name(other)
        ))
    };
    check.report(pointer, Spot::Value, Level::Error, problem, suggestion);
}

/// A crawl begins somewhere, unless its job knows its seeds already.
fn seeds_are_there(profile: &Profile, given: &Given, check: &mut Check<'_>) {
    let faulty = ["/seeds", "/seeds-file"]
        .iter()
        .any(|at| check.faults.covers(at));
    let some_fault = check.faults.iter().any(|fault| {
        fault.pointer.starts_with("/seeds")
            || (fault.file != check.document.file && fault.level == Level::Error)
    });
    if profile.seeds.is_empty() && !given.seeds_elsewhere && !faulty && !some_fault {
        check.faults.push(seeds::none_given(check.document));
    }
}

/// Who crawls servers of others says how to be reached. A profile may leave it open, a job may not.
fn operator_can_be_reached(profile: &Profile, given: &Given, check: &mut Check<'_>) {
    if let Some(url) = &given.contact_url {
        if let Some((level, problem)) = contact_problem(url) {
            let mut fault = check.document.fault("", Spot::Key, level, problem);
            "--contact-url".clone_into(&mut fault.file);
            fault.place = None;
            check.faults.push(fault);
        }
        return;
    }
    let Some(seed) = profile
        .seeds
        .list
        .iter()
        .find(|seed| !on_loopback(profile, &seed.uri))
    else {
        return;
    };
    if profile.operator.contact_url.is_none() {
        let problem = format!(
            "contact-url is missing, and {} is not on this machine",
            quote(seed.uri.as_str())
        );
        let suggestion = "write contact-url = \"https://…\" under [operator]: a page that says who crawls and why";
        check.report(
            "/operator/contact-url",
            Spot::Key,
            Level::Warning,
            problem,
            Some(suggestion.to_owned()),
        );
    }
}

/// Private addresses are refused unless the profile allows them.
fn loopback_can_be_reached(profile: &Profile, check: &mut Check<'_>) {
    let Some(seed) = profile
        .seeds
        .list
        .iter()
        .find(|seed| on_loopback(profile, &seed.uri))
    else {
        return;
    };
    if !profile.settings.fetch.private_addresses {
        let problem = format!(
            "{} is on this machine, and private-addresses is false",
            quote(seed.uri.as_str())
        );
        let suggestion = "write private-addresses = true under [fetch]".to_owned();
        check.report(
            "/fetch/private-addresses",
            Spot::Key,
            Level::Info,
            problem,
            Some(suggestion),
        );
    }
}

/// A short delay is the operator's to answer for.
fn politeness_towards_others(profile: &Profile, check: &mut Check<'_>) {
    let delay = profile.settings.politeness.min_delay;
    let others = profile
        .seeds
        .list
        .iter()
        .any(|seed| !on_loopback(profile, &seed.uri));
    if others && delay < MIN_DELAY_USUAL {
        let problem = format!(
            "min-delay is {}: many webmasters will take that for an attack",
            format_duration(delay)
        );
        check.report(
            "/politeness/min-delay",
            Spot::Key,
            Level::Info,
            problem,
            Some("\"2s\" is usual".to_owned()),
        );
    }
}

/// A plugin in no stack is never called.
fn plugins_are_used(profile: &Profile, check: &mut Check<'_>) {
    let stacks = &profile.settings.stacks;
    for name in profile.plugins.keys() {
        if !Stage::ALL
            .into_iter()
            .any(|stage| stacks.stage(stage).contains(name))
        {
            let pointer = crate::document::child("/plugins", name);
            let problem = format!(
                "plugin {} stands in no stack and is never called",
                quote(name)
            );
            check.report(&pointer, Spot::Key, Level::Info, problem, None);
        }
    }
}

/// Without a wait evaluator every document is visited at the default wait.
fn revisits_are_timed(profile: &Profile, check: &mut Check<'_>) {
    let settings = &profile.settings;
    if settings.strategy == Strategy::Revisit && settings.stacks.wait.is_empty() {
        let wait = format_duration(settings.revisit.default_wait);
        let problem = format!("no wait evaluator: every document is visited each {wait}");
        check.report(
            "/stacks/wait",
            Spot::Key,
            Level::Info,
            problem,
            Some("\"adaptive\" is built in".to_owned()),
        );
    }
}

/// Whether a URI's host is this machine, by its name or by what the profile says of it.
fn on_loopback(profile: &Profile, uri: &Uri) -> bool {
    let Some(host) = uri.host() else { return false };
    if let Some(address) = profile.dns.hosts.address(host) {
        return address.is_loopback();
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_ok_and(|address| address.is_loopback())
}
