//! Settings and plugins without effect, because another setting turns off the part of the crawl that reads them.
//!
//! Only what an operator has written is noted. Default values and the texts of shipped profiles are not. A setting has an effect if
//! one override gives it one.

use std::collections::HashMap;

use opilio_model::Strategy;
use serde_json::Value;

use crate::check::{Check, quote};
use crate::component::ComponentReference;
use crate::diagnostic::Level;
use crate::document::{KeyOrValue, child, dotted};
use crate::duration::parse_duration;
use crate::fault_policy::BreakerAction;
use crate::profile::Profile;
use crate::stage::Stage;
use crate::{builtin_profiles, file};

/// Settings that are read under a condition.
struct Condition {
    /// JSON Pointers to the settings.
    settings: &'static [&'static str],
    /// Returns `true` if the crawl reads the settings for at least some URIs.
    is_met: fn(&Facts) -> bool,
    /// Reason why the settings have no effect otherwise.
    reason: &'static str,
    /// Change that gives them an effect.
    remedy: &'static str,
}

/// The first condition of a setting that is not met is noted.
const CONDITIONS: [Condition; 30] = [
    Condition {
        settings: &[
            "/revisit/default-wait",
            "/revisit/max-wait",
            "/revisit/budget",
            "/revisit/refresh-embeds",
            "/revisit/fade-after",
            "/revisit/signals",
            "/stacks/wait",
        ],
        is_met: |facts| facts.has("/strategy", "revisit") || facts.has("/strategy", "fixed"),
        reason: ONCE,
        remedy: "write strategy = \"revisit\", or leave it out",
    },
    Condition {
        settings: &["/revisit/min-wait"],
        is_met: |facts| facts.has("/strategy", "revisit") || facts.has("/strategy", "fixed"),
        reason: "strategy is \"snapshot\", so no document is visited again; only failed look-ups and robots.txt expire after it",
        remedy: "write strategy = \"revisit\", or leave it out",
    },
    Condition {
        settings: &["/revisit/default-wait", "/revisit/budget", "/stacks/wait"],
        is_met: |facts| facts.has("/strategy", "revisit"),
        reason: "strategy is \"fixed\", so documents are visited every revisit.fixed-wait",
        remedy: "write strategy = \"revisit\", or leave it out",
    },
    Condition {
        settings: &["/revisit/fixed-wait"],
        is_met: |facts| facts.has("/strategy", "fixed"),
        reason: "strategy is not \"fixed\"",
        remedy: "write strategy = \"fixed\", or leave it out",
    },
    Condition {
        settings: &["/revisit/budget"],
        is_met: |facts| facts.may_use_prices,
        reason: "no wait evaluator of the stack wait distributes a budget",
        remedy: "write stacks.wait = [\"budgeted\"], or leave it out",
    },
    Condition {
        settings: &["/revisit/unchanged-headers"],
        is_met: |facts| facts.is_on("/stacks/mid-fetch"),
        reason: "the stack mid-fetch is empty, so every body is fetched",
        remedy: "write stacks.mid-fetch = [\"unchanged-headers\"], or leave it out",
    },
    Condition {
        settings: &[
            "/browser/executable",
            "/browser/sandbox",
            "/browser/processes",
            "/browser/memory",
            "/browser/page-time",
            "/browser/load-time",
            "/browser/page-steps",
            "/browser/page-requests",
            "/browser/requests-per-server",
            "/browser/pages-per-process",
            "/browser/width",
            "/browser/height",
            "/browser/device-scale",
            "/browser/screenshots",
            "/browser/text",
            "/stacks/behave",
            "/stacks/render",
            "/alerts/rendering-percent",
        ],
        is_met: Facts::renders,
        reason: NOT_RENDERED,
        remedy: "write browser.render = \"auto\" or \"always\", or leave it out",
    },
    Condition {
        settings: &["/stacks/render"],
        is_met: |facts| facts.has("/browser/render", "auto"),
        reason: ALL_RENDERED,
        remedy: "write browser.render = \"auto\", or leave it out",
    },
    Condition {
        settings: &["/robots/text"],
        is_met: |facts| facts.has("/robots/policy", "custom"),
        reason: "robots.policy is not \"custom\"",
        remedy: "write robots.policy = \"custom\", or leave it out",
    },
    Condition {
        settings: &["/robots/agents", "/robots/masquerade"],
        is_met: |facts| {
            facts.has("/robots/policy", "first-named")
                || facts.has("/robots/policy", "most-favoured")
        },
        reason: "robots.policy is neither \"first-named\" nor \"most-favoured\"",
        remedy: "write one of these policies, or leave it out",
    },
    Condition {
        settings: &["/robots/noarchive"],
        is_met: |facts| {
            let heeding = ["obey", "custom", "first-named", "most-favoured"];
            heeding.iter().any(|one| facts.has("/robots/policy", one))
        },
        reason: "this robots.policy does not obey directives in pages",
        remedy: "write robots.policy = \"obey\", or leave it out",
    },
    Condition {
        settings: &["/uri/precedence"],
        is_met: |facts| {
            let based = ["base", "hops", "file"];
            based
                .iter()
                .any(|one| facts.has("/uri/precedence-policy", one))
        },
        reason: "uri.precedence-policy is \"cost\", so the precedence is the cost",
        remedy: "write uri.precedence-policy = \"base\", or leave it out",
    },
    Condition {
        settings: &["/uri/precedence-file"],
        is_met: |facts| facts.has("/uri/precedence-policy", "file"),
        reason: "uri.precedence-policy is not \"file\"",
        remedy: "write uri.precedence-policy = \"file\", or leave it out",
    },
    Condition {
        settings: &["/uri/navigation-hops-only"],
        is_met: |facts| facts.has("/uri/precedence-policy", "hops"),
        reason: "uri.precedence-policy is not \"hops\"",
        remedy: "write uri.precedence-policy = \"hops\", or leave it out",
    },
    Condition {
        settings: &["/uri/cost-policy"],
        is_met: |facts| facts.has("/uri/precedence-policy", "cost") || facts.has_budgets(),
        reason: "neither uri.precedence-policy nor a budget uses costs",
        remedy: "write uri.precedence-policy = \"cost\" or queue.budget, or leave it out",
    },
    Condition {
        settings: &["/frontier/error-penalty"],
        is_met: Facts::has_budgets,
        reason: "there is neither a queue.budget nor a frontier.session-budget",
        remedy: "write one of them, or leave it out",
    },
    Condition {
        settings: &["/queue/precedence-steps"],
        is_met: |facts| facts.has("/queue/precedence-policy", "success-counts"),
        reason: "queue.precedence-policy is not \"success-counts\"",
        remedy: "write queue.precedence-policy = \"success-counts\", or leave it out",
    },
    Condition {
        settings: &["/group/valence", "/group/min-delay"],
        is_met: |facts| facts.is_on("/queue/group"),
        reason: "queue.group is \"none\", so no queue is in a group",
        remedy: "write queue.group = \"address\" or a name, or leave it out",
    },
    Condition {
        settings: &["/cookies/per-host", "/cookies/load"],
        is_met: |facts| facts.is_on("/cookies/accept"),
        reason: "cookies.accept is false, so no cookies are kept or sent",
        remedy: "write cookies.accept = true, or leave it out",
    },
    Condition {
        settings: &[
            "/fetch/proxy-user",
            "/fetch/proxy-password",
            "/fetch/proxy-names",
            "/fetch/no-proxy",
        ],
        is_met: |facts| facts.is_on("/fetch/proxy"),
        reason: "there is no fetch.proxy",
        remedy: "write fetch.proxy = \"http://HOST:PORT\", or leave it out",
    },
    Condition {
        settings: &["/fetch/slow-fetches"],
        is_met: |facts| facts.is_on("/fetch/slow-after"),
        reason: "fetch.slow-after is \"none\", so slow fetches keep their workers",
        remedy: "write fetch.slow-after = \"10s\", or leave it out",
    },
    Condition {
        settings: &["/archive/compression-level"],
        is_met: |facts| facts.is_on("/archive/compression"),
        reason: "archive.compression is \"none\"",
        remedy: "write archive.compression = \"gzip\" or \"zstd\", or leave it out",
    },
    Condition {
        settings: &["/archive/on-close-timeout"],
        is_met: |facts| facts.is_on("/archive/on-close"),
        reason: "there is no archive.on-close",
        remedy: "write the command archive.on-close, or leave it out",
    },
    Condition {
        settings: &[
            "/archive/store/region",
            "/archive/store/access-key-id",
            "/archive/store/secret-access-key",
            "/archive/store/session-token",
            "/archive/store/uploads",
            "/archive/store/retry-min",
            "/archive/store/retry-max",
            "/archive/store/finish-within",
        ],
        is_met: |facts| facts.is_on("/archive/store/url"),
        reason: "there is no archive.store.url, so files stay in the job",
        remedy: "write archive.store.url = \"s3://BUCKET/PREFIX\", or leave it out",
    },
    Condition {
        settings: &["/archive/duplicates/size-min", "/archive/duplicates/index"],
        is_met: |facts| facts.is_on("/archive/duplicates/across-uris"),
        reason: "archive.duplicates.across-uris is false, so payloads of other URIs are not looked up",
        remedy: "write archive.duplicates.across-uris = true, or leave it out",
    },
    Condition {
        settings: &["/alerts/window", "/alerts/window-uris"],
        is_met: |facts| {
            let shares = ["faults-percent", "failures-percent", "walls-percent"];
            let is_on = |one: &str| facts.is_on(&format!("/alerts/{one}"));
            shares.into_iter().any(is_on) || facts.renders() && is_on("rendering-percent")
        },
        reason: "all percentages over this period are 0",
        remedy: "write a percentage such as alerts.failures-percent = 50, or leave it out",
    },
    Condition {
        settings: &["/alerts/webhook-timeout"],
        is_met: |facts| facts.is_on("/alerts/webhook"),
        reason: "there is no alerts.webhook",
        remedy: "write alerts.webhook = \"https://…\", or leave it out",
    },
    Condition {
        settings: &["/alerts/command-timeout"],
        is_met: |facts| facts.is_on("/alerts/command"),
        reason: "there is no alerts.command",
        remedy: "write the program alerts.command, or leave it out",
    },
    Condition {
        settings: &["/checkpoint/keep"],
        is_met: |facts| facts.is_on("/checkpoint/every"),
        reason: "checkpoint.every is \"none\", and checkpoints made by operators are all kept",
        remedy: "write checkpoint.every = \"6h\", or leave it out",
    },
    Condition {
        settings: &["/telemetry/sample", "/telemetry/timeout"],
        is_met: |facts| facts.is_on("/telemetry/otlp"),
        reason: "there is no telemetry.otlp, so no traces are sent",
        remedy: "write telemetry.otlp = \"http://127.0.0.1:4318\", or leave it out",
    },
];

const ONCE: &str = "strategy is \"snapshot\", so every document is visited once";
const NOT_RENDERED: &str = "browser.render is \"never\", so no page is rendered";
const ALL_RENDERED: &str = "browser.render is not \"auto\", so no filter decides about rendering";
const NO_EVALUATORS: &str = "wait evaluators decide only under strategy = \"revisit\"";

/// The values that conditions are about.
struct Facts {
    /// The profile in written form, with its defaults and overrides.
    values: Value,
    /// Numbers of the overrides that have a setting, by the setting.
    overridden: HashMap<String, Vec<usize>>,
    /// `true` if a wait evaluator may use prices. Those of other authors may.
    may_use_prices: bool,
}

pub(super) fn check(profile: &Profile, check: &mut Check<'_>) {
    // The check of a profile replaces invalid values by others, so notes about them would be wrong.
    if check.faults.worst() == Some(Level::Error) {
        return;
    }
    let values = profile.values();
    let facts = Facts {
        overridden: overridden(&values),
        may_use_prices: may_use_prices(profile),
        values,
    };
    for condition in CONDITIONS.iter().filter(|it| !(it.is_met)(&facts)) {
        for setting in condition.settings {
            note_setting(setting, condition, &facts, check);
        }
    }
    for name in profile.plugins.keys() {
        note_plugin(profile, name, &facts, check);
    }
    for name in profile.tables.keys() {
        let table = child("/tables", name);
        let reload = format!("{table}/reload");
        let has_rows = check.document.has(&format!("{table}/rows"));
        if has_rows && is_own(&reload, check) {
            let problem = "reload has no effect: the rows are not in a file".to_owned();
            let remedy = Some("write file in place of rows, or leave it out".to_owned());
            check.report(&reload, KeyOrValue::Key, Level::Info, problem, remedy);
        }
    }
}

/// Notes a setting whose condition is not met, in the profile and in the first override that has it.
fn note_setting(setting: &str, condition: &Condition, facts: &Facts, check: &mut Check<'_>) {
    let values = file::default_value(setting).zip(check.document.value.pointer(setting));
    let has_default = values.is_some_and(|(default, written)| is_same(default, written));
    let mut note = |at: &str, more: usize| {
        let is_noted = check.faults.iter().any(|fault| fault.pointer == at);
        if is_noted || !is_own(at, check) {
            return;
        }
        let mut problem = format!("{} has no effect: {}", dotted(setting), condition.reason);
        if more > 0 {
            problem += &format!("; the same in {more} more overrides");
        }
        let remedy = Some(condition.remedy.to_owned());
        check.report(at, KeyOrValue::Key, Level::Info, problem, remedy);
    };
    if !has_default {
        note(setting, 0);
    }
    if let Some([first, more @ ..]) = facts.overridden.get(setting).map(Vec::as_slice) {
        note(&format!("/override/{first}{setting}"), more.len());
    }
}

/// Notes a plugin if all stages that have it are turned off, and `skip-for` of a breaker that never leaves a plugin out.
fn note_plugin(profile: &Profile, name: &str, facts: &Facts, check: &mut Check<'_>) {
    let table = child("/plugins", name);
    if !is_own(&table, check) {
        return;
    }
    let stacks = &profile.settings().stacks;
    let in_stacks = Stage::ALL
        .into_iter()
        .filter(|stage| stacks.stage(*stage).iter().any(|one| one == name));
    let in_overrides = profile.named_by_overrides();
    let in_overrides = in_overrides.filter_map(|(stage, one, _)| (one == name).then_some(stage));
    let stages: Vec<Stage> = in_stacks.chain(in_overrides).collect();
    let reasons: Option<Vec<&str>> = stages.iter().map(|stage| facts.idle(*stage)).collect();
    if let Some(reason) = reasons.as_deref().and_then(<[&str]>::first)
        && profile.guarding(name).is_none()
    {
        let problem = format!("plugin {} is never called: {reason}", quote(name));
        check.report(&table, KeyOrValue::Key, Level::Info, problem, None);
    }
    let (skip_for, then) = (
        format!("{table}/breaker/skip-for"),
        profile.plugins[name].breaker.then,
    );
    if matches!(then, Some(BreakerAction::Pause | BreakerAction::Halt)) && is_own(&skip_for, check)
    {
        let problem =
            "skip-for has no effect: this breaker does not leave the plugin out for a time"
                .to_owned();
        let remedy = Some("write then = \"skip\", or leave it out".to_owned());
        check.report(&skip_for, KeyOrValue::Key, Level::Info, problem, remedy);
    }
}

/// Returns `true` if an operator has written this setting: in a profile that does not ship.
fn is_own(pointer: &str, check: &Check<'_>) -> bool {
    let text = check.document.source_text(pointer);
    text.is_some_and(|text| !builtin_profiles::is_text(text))
}

impl Facts {
    fn any(&self, setting: &str, test: impl Fn(&Value) -> bool) -> bool {
        let overrides = self.overridden.get(setting).into_iter().flatten();
        let overridden = overrides.filter_map(|number| {
            let overrides = self.values.get("override")?;
            overrides.get(number)?.pointer(setting)
        });
        self.values
            .pointer(setting)
            .into_iter()
            .chain(overridden)
            .any(test)
    }

    /// Returns `true` if the setting has this value, in the profile or in an override.
    fn has(&self, setting: &str, word: &str) -> bool {
        self.any(setting, |value| value.as_str() == Some(word))
    }

    /// Returns `true` if the setting has a value other than none, in the profile or in an override.
    fn is_on(&self, setting: &str) -> bool {
        self.any(setting, is_on)
    }

    fn renders(&self) -> bool {
        self.has("/browser/render", "auto") || self.has("/browser/render", "always")
    }

    fn has_budgets(&self) -> bool {
        self.is_on("/queue/budget") || self.is_on("/frontier/session-budget")
    }

    /// Returns the reason why plugins of this stage are not called.
    fn idle(&self, stage: Stage) -> Option<&'static str> {
        match stage {
            Stage::Wait if !self.has("/strategy", Strategy::Revisit.name()) => Some(NO_EVALUATORS),
            Stage::Behave | Stage::Render if !self.renders() => Some(NOT_RENDERED),
            Stage::Render if !self.has("/browser/render", "auto") => Some(ALL_RENDERED),
            _ => None,
        }
    }
}

/// Returns the numbers of the overrides that have a setting, by the setting.
fn overridden(values: &Value) -> HashMap<String, Vec<usize>> {
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    let overrides = values.get("override").and_then(Value::as_array);
    for (number, one) in overrides.into_iter().flatten().enumerate() {
        let tables = one.as_object().into_iter().flatten();
        for (name, value) in tables.filter(|(name, _)| *name != "match") {
            let table = child("", name);
            for (key, _) in value.as_object().into_iter().flatten() {
                found.entry(child(&table, key)).or_default().push(number);
            }
            found.entry(table).or_default().push(number);
        }
    }
    found
}

/// Returns `true` if a wait evaluator may use prices: the shipped one that does, or one of another author.
fn may_use_prices(profile: &Profile) -> bool {
    let overrides = profile.named_by_overrides();
    let overrides = overrides.filter_map(|(stage, name, _)| (stage == Stage::Wait).then_some(name));
    let stack = profile.settings().stacks.wait.iter();
    stack.map(String::as_str).chain(overrides).any(|name| {
        let instance = profile.plugins.get(name);
        instance.is_some_and(|instance| match &instance.component {
            ComponentReference::Builtin(name) => name == "budgeted",
            _ => true,
        })
    })
}

/// Returns `true` if a value turns something on: neither empty, `false`, zero nor `"none"`.
fn is_on(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_on) => *is_on,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => {
            let is_zero = parse_duration(text).is_ok_and(|duration| duration.is_zero());
            !text.is_empty() && text != "none" && !is_zero
        }
        Value::Array(items) => !items.is_empty(),
        Value::Object(table) => !table.is_empty(),
    }
}

/// Returns `true` if two values are the same; TOML writes whole floats as integers, too.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other
        || one
            .as_f64()
            .is_some_and(|number| other.as_f64() == Some(number))
}
