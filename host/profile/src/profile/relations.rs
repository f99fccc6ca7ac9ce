//! Relations between settings of a profile. Values that are invalid by themselves are not checked again.
//! [`crate::effective::relations`] has the relations between settings that may be overridden.

mod unread;
mod waits;

use std::net::IpAddr;
use std::time::Duration;

use opilio_model::Strategy;
use opilio_uri::Uri;

use super::{Profile, ProfileContext};
use crate::check::{Check, quote};
use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::document::{Document, KeyOrValue};
use crate::duration::format_duration;
use crate::effective::relations::{at_most, of_settings};
use crate::fault_policy::{BreakerAction, OnFault};
use crate::fetch::AllowedAddresses;
use crate::operator::contact_problem;
use crate::seeds::{self, Seed, Seeds};
use crate::stage::Stage;

/// Usual shortest delay. A shorter one is reported when servers of other people are crawled.
const MIN_DELAY_USUAL: Duration = Duration::from_millis(500);

pub(super) fn check(profile: &Profile, context: &ProfileContext, check: &mut Check<'_>) {
    check_durations(profile, check);
    check_memory(profile, check);
    check_seeds_exist(profile, context, check);
    check_contact(profile, context, check);
    check_user_agent(profile, check);
    check_loopback(profile, context, check);
    check_politeness(profile, context, check);
    check_unused_plugins(profile, check);
    check_fault_policies(profile, check);
    check_wait_evaluators(profile, check);
    check_checkpoint_store(profile, check);
    waits::check(profile, check);
    unread::check(profile, check);
}

fn check_durations(profile: &Profile, check: &mut Check<'_>) {
    let settings = &profile.settings;
    of_settings(settings, "", check);
    let fetch = &settings.fetch;
    // Otherwise a fetch ends before it has connected, or before the server's silence counts.
    at_most(
        check,
        "",
        ("/fetch/connect-timeout", fetch.connect_timeout),
        ("/fetch/total-timeout", fetch.total_timeout),
    );
    at_most(
        check,
        "",
        ("/fetch/response-timeout", fetch.response_timeout),
        ("/fetch/total-timeout", fetch.total_timeout),
    );
    if let Some(first_byte) = fetch.first_byte_timeout {
        at_most(
            check,
            "",
            ("/fetch/first-byte-timeout", first_byte),
            ("/fetch/total-timeout", fetch.total_timeout),
        );
    }
    // A page loads within its whole time.
    at_most(
        check,
        "",
        ("/browser/load-time", settings.browser.load_time),
        ("/browser/page-time", settings.browser.page_time),
    );
    // The lifetime of an address is kept between these two.
    at_most(
        check,
        "",
        ("/dns/min-expires", profile.dns.min_expires),
        ("/dns/max-expires", profile.dns.max_expires),
    );
}

/// Published checkpoints need a store, from which another machine reads them.
fn check_checkpoint_store(profile: &Profile, check: &mut Check<'_>) {
    let key = "/checkpoint/publish-every";
    let has_store = profile.archive.store.is_some() || check.faults.covers("/archive/store");
    if profile.checkpoint.publish_every.is_some() && !has_store {
        check.report(
            key,
            KeyOrValue::Value,
            Level::Error,
            "checkpoints are published in archive.store, which has no url".to_owned(),
            Some("set archive.store.url, such as \"file:///mnt/archive\"".to_owned()),
        );
    }
}

/// Plugins read documents in the memory that bodies leave, which must be at least 64 MiB.
fn check_memory(profile: &Profile, check: &mut Check<'_>) {
    const DOCUMENTS_MIN: u64 = 64 << 20;
    let (memory, bodies) = ("/limits/memory", "/fetch/spool-memory-total");
    let left = profile
        .limits
        .memory
        .bytes()
        .saturating_sub(profile.settings.fetch.spool_memory_total.bytes());
    if left >= DOCUMENTS_MIN || check.faults.covers(memory) || check.faults.covers(bodies) {
        return;
    }
    let problem =
        "leaves less than 64MiB beside fetch.spool-memory-total for documents that plugins read";
    let pointer = match check.document.layer(bodies) > check.document.layer(memory) {
        true => bodies,
        false => memory,
    };
    let suggestion = "raise limits.memory or lower fetch.spool-memory-total".to_owned();
    check.report(
        pointer,
        KeyOrValue::Value,
        Level::Error,
        problem.to_owned(),
        Some(suggestion),
    );
}

/// A crawl needs seeds, unless its job has them already.
fn check_seeds_exist(profile: &Profile, context: &ProfileContext, check: &mut Check<'_>) {
    let faulty = ["/seeds", "/seeds-file"]
        .iter()
        .any(|at| check.faults.covers(at));
    let some_fault = check.faults.iter().any(|fault| {
        fault.pointer.starts_with("/seeds")
            || (fault.file != check.document.file && fault.level == Level::Error)
    });
    if profile.seeds.is_empty() && !context.seeds_elsewhere && !faulty && !some_fault {
        check.faults.push(seeds::none_given(check.document));
    }
}

/// An operator who crawls servers of others must give contact details. They may be missing in a profile, but not in a job.
fn check_contact(profile: &Profile, context: &ProfileContext, check: &mut Check<'_>) {
    if let Some(url) = &context.contact_url {
        if let Some((level, problem)) = contact_problem(url) {
            let fault = of_flag("--contact-url", level, problem, check.document);
            check.faults.push(fault);
        }
        return;
    }
    if let Some(remark) = missing_contact(profile, &profile.seeds.list) {
        remark.report(context, check);
    }
}

/// Servers see the contact URL only in the User-Agent. Some sites answer only a browser's User-Agent, so a missing URL gets only a
/// note.
fn check_user_agent(profile: &Profile, check: &mut Check<'_>) {
    let Some(url) = &profile.operator.contact_url else {
        return;
    };
    if check.document.has("/user-agent") && !profile.user_agent.contains(url.as_str()) {
        check.report(
            "/user-agent",
            KeyOrValue::Value,
            Level::Info,
            format!("the header does not contain the contact URL {}", quote(url)),
            Some("write +@CONTACT-URL@ into it".to_owned()),
        );
    }
}

/// A remark about seeds: those of a profile, or those that are added to its job later.
struct Remark<'s> {
    pointer: &'static str,
    /// A warning keeps a job from starting.
    level: Level,
    problem: String,
    suggestion: &'static str,
    /// The first seed that it is about.
    seed: &'s Seed,
    /// The suggestion if that seed was given outside of the profile.
    flag: &'static str,
}

impl Remark<'_> {
    /// Reports the remark at the setting, or at the seed if that was given outside of the profile.
    fn report(self, context: &ProfileContext, check: &mut Check<'_>) {
        if is_from_flag(self.seed, context) {
            let mut fault = of_flag(seeds::GIVEN, self.level, self.problem, check.document);
            self.pointer.clone_into(&mut fault.pointer);
            fault.suggestion = Some(self.flag.to_owned());
            check.faults.push(fault);
            return;
        }
        let suggestion = Some(self.suggestion.to_owned());
        check.report(
            self.pointer,
            KeyOrValue::Key,
            self.level,
            self.problem,
            suggestion,
        );
    }
}

/// Returns `true` if a seed was given outside of the profile. The seeds of an existing job are in its own file.
fn is_from_flag(seed: &Seed, context: &ProfileContext) -> bool {
    let mut flags = context.seeds.iter();
    !context.seeds_elsewhere
        && flags.any(|text| {
            let (seeds, _) = Seeds::parse(seeds::GIVEN, text);
            seeds.list.iter().any(|it| it.uri == seed.uri)
        })
}

/// An error in an argument that was given outside of the profile. Its place is the argument.
fn of_flag(flag: &str, level: Level, problem: String, document: &Document) -> Diagnostic {
    let mut fault = document.fault("", KeyOrValue::Key, level, problem);
    flag.clone_into(&mut fault.file);
    fault.place = None;
    fault
}

impl Profile {
    /// Checks seeds that are added to a job of this profile. Warnings should refuse the seeds, because the job would not restart
    /// with them. There may also be notes.
    pub fn check_seeds(&self, seeds: &[Seed]) -> Diagnostics {
        let missing = missing_contact(self, seeds);
        let remarks = missing.into_iter().chain(short_delay(self, seeds));
        let faults = remarks.map(|remark| {
            let (pointer, level) = (remark.pointer, remark.level);
            let mut fault = self
                .document
                .fault(pointer, KeyOrValue::Key, level, remark.problem);
            fault.suggestion = Some(remark.suggestion.to_owned());
            fault
        });
        faults.collect()
    }
}

fn missing_contact<'s>(profile: &Profile, seeds: &'s [Seed]) -> Option<Remark<'s>> {
    if profile.operator.contact_url.is_some() {
        return None;
    }
    let seed = seeds.iter().find(|it| !on_loopback(profile, &it.uri))?;
    Some(Remark {
        pointer: "/operator/contact-url",
        level: Level::Warning,
        problem: format!(
            "contact-url is missing, and {} is not on this machine",
            quote(seed.uri.as_str())
        ),
        suggestion: "set operator.contact-url = \"https://…\": a page that says who crawls and why",
        seed,
        flag: "pass a contact URL too (--contact-url URL), or set operator.contact-url in a profile: a page that says who crawls and why",
    })
}

/// Seeds on this machine are fetched only if the profile allows loopback addresses.
fn check_loopback(profile: &Profile, context: &ProfileContext, check: &mut Check<'_>) {
    let mut seeds = profile.seeds.list.iter();
    let allowed = &profile.settings.fetch.allow_addresses;
    if allowed.contains(&AllowedAddresses::Loopback) {
        return;
    }
    let Some(seed) = seeds.find(|seed| on_loopback(profile, &seed.uri)) else {
        return;
    };
    let remark = Remark {
        pointer: "/fetch/allow-addresses",
        level: Level::Info,
        problem: format!(
            "{} is on this machine, and allow-addresses does not contain \"loopback\"",
            quote(seed.uri.as_str())
        ),
        suggestion: "set fetch.allow-addresses = [\"loopback\"]",
        seed,
        flag: "set fetch.allow-addresses = [\"loopback\"] in a profile",
    };
    remark.report(context, check);
}

/// A short delay gets a note, because the operator is responsible for it.
fn check_politeness(profile: &Profile, context: &ProfileContext, check: &mut Check<'_>) {
    if let Some(remark) = short_delay(profile, &profile.seeds.list) {
        remark.report(context, check);
    }
}

fn short_delay<'s>(profile: &Profile, seeds: &'s [Seed]) -> Option<Remark<'s>> {
    let delay = profile.settings.politeness.min_delay;
    let mut others = seeds.iter().filter(|it| !on_loopback(profile, &it.uri));
    if delay >= MIN_DELAY_USUAL {
        return None;
    }
    others.next().map(|seed| Remark {
        pointer: "/politeness/min-delay",
        level: Level::Info,
        problem: format!(
            "min-delay is {}: many webmasters will take that for an attack",
            format_duration(delay)
        ),
        suggestion: "\"2s\" is usual",
        seed,
        flag: "set politeness.min-delay = \"2s\" in a profile",
    })
}

/// A plugin in no stack is never called.
fn check_unused_plugins(profile: &Profile, check: &mut Check<'_>) {
    let stacks = &profile.settings.stacks;
    for name in profile.plugins.keys() {
        let is_used = Stage::ALL
            .into_iter()
            .any(|stage| stacks.stage(stage).contains(name))
            || profile.overrides.pointer_to(name).is_some()
            || profile.guarding(name).is_some();
        if !is_used {
            let pointer = crate::document::child("/plugins", name);
            let problem = format!("plugin {} is in no stack and is never called", quote(name));
            check.report(&pointer, KeyOrValue::Key, Level::Info, problem, None);
        }
    }
}

/// The scope must not accept URIs when it fails, and only filters may accept or reject.
fn check_fault_policies(profile: &Profile, check: &mut Check<'_>) {
    for (name, instance) in &profile.plugins {
        let mut stages: Vec<Stage> = Stage::ALL.into_iter().collect();
        let stacks = &profile.settings.stacks;
        stages.retain(|stage| {
            let mut added = profile.named_by_overrides();
            stacks.stage(*stage).contains(name)
                || added.any(|(at, added, _)| at == *stage && added == name)
        });
        let table = crate::document::child("/plugins", name);
        let mut refuse = |key: &str, problem: &str, suggestion: &str| {
            check.report(
                &format!("{table}/{key}"),
                KeyOrValue::Value,
                Level::Error,
                problem.to_owned(),
                Some(suggestion.to_owned()),
            );
        };
        let in_scope = stages.contains(&Stage::Scope);
        match instance.on_fault {
            Some(OnFault::Skip | OnFault::Accept) if in_scope => refuse(
                "on-fault",
                "a filter of the scope must not accept URIs when it fails",
                "write \"reject\" or \"pause\"",
            ),
            Some(OnFault::Accept | OnFault::Reject)
                if stages.iter().any(|stage| !stage.is_for_filters()) =>
            {
                refuse(
                    "on-fault",
                    "only filters accept and reject",
                    "write \"skip\" or \"pause\"",
                );
            }
            _ => {}
        }
        if in_scope && instance.breaker.then == Some(BreakerAction::Skip) {
            refuse(
                "breaker/then",
                "a filter of the scope cannot be left out",
                "write \"pause\" or \"halt\"",
            );
        }
    }
}

/// Without a wait evaluator every document is visited at the default wait.
fn check_wait_evaluators(profile: &Profile, check: &mut Check<'_>) {
    let settings = &profile.settings;
    if settings.strategy == Strategy::Revisit && settings.stacks.wait.is_empty() {
        let wait = format_duration(settings.revisit.default_wait);
        let problem = format!("no wait evaluator: every document is visited each {wait}");
        check.report(
            "/stacks/wait",
            KeyOrValue::Key,
            Level::Info,
            problem,
            Some("\"adaptive\" is built in".to_owned()),
        );
    }
}

/// Returns `true` if a URI's host is this machine, by its name or by its address in the profile.
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
