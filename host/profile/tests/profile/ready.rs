//! The shipped profiles, and the defaults that the documentation states.

use std::time::Duration;

use opilio_profile::{Profile, ProfileContext, ProfileFile, Stage, Strategy};
use serde_json::Value;

/// One seed, because shipped profiles have none.
fn context() -> ProfileContext {
    ProfileContext {
        seeds: vec!["http://www.harvest.localhost:8080/".to_owned()],
        seeds_elsewhere: false,
        ..crate::context()
    }
}

#[test]
fn every_shipped_profile_is_valid() {
    for name in Profile::builtin_names() {
        let context = ProfileContext {
            seeds: vec!["https://www.kb.nl/".to_owned()],
            contact_url: Some("https://www.kb.nl/crawl".to_owned()),
            ..context()
        };
        let profile = Profile::builtin(name, &context).unwrap_or_else(|faults| panic!("{faults}"));
        if name != "demo" {
            assert!(profile.notices.is_empty(), "{}", profile.notices);
        }
    }
}

#[test]
fn demo_runs_on_this_machine_without_notices() {
    let profile = Profile::builtin("demo", &context()).unwrap();
    assert!(profile.notices.is_empty(), "{}", profile.notices);
    let settings = profile.effective(&profile.seeds.list[0].uri);
    assert_eq!(
        settings.fetch.allow_addresses,
        [opilio_profile::AllowedAddresses::Loopback]
    );
    assert_eq!(settings.strategy, Strategy::Revisit);
    assert!(settings.politeness.min_delay < Duration::from_millis(100));
    assert!(
        profile
            .dns
            .hosts
            .address("images.harvest.localhost")
            .is_some_and(|address| address.is_loopback())
    );
}

#[test]
fn continuous_strips_html_and_waits_by_media_type() {
    let profile = Profile::builtin("continuous", &context()).unwrap();
    let settings = profile.settings();
    assert_eq!(settings.strategy, Strategy::Revisit);
    assert_eq!(
        settings.stacks.stage(Stage::Digest),
        ["html-strip", "marked-sections"]
    );
    assert_eq!(
        settings.stacks.stage(Stage::Wait),
        ["feed-trigger", "wait-text", "wait-images", "adaptive"]
    );
    // The waits of the thesis.
    for (name, types, wait) in [
        ("wait-text", "text/*", "12h"),
        ("wait-images", "image/*", "2d"),
    ] {
        let settings = &profile.plugins[name].settings;
        assert_eq!(settings["media-types"][0], types);
        assert_eq!(settings["initial-wait"], wait);
    }
    // The filter predicts at the first stage and verifies at the second.
    for stage in [Stage::MidFetch, Stage::Archive] {
        assert_eq!(settings.stacks.stage(stage), ["unchanged-headers"]);
    }
}

#[test]
fn focused_and_broad_fetch_once_and_rank_links() {
    let focused = Profile::builtin("focused", &context()).unwrap();
    assert_eq!(focused.settings().strategy, Strategy::Snapshot);
    assert_eq!(
        focused.settings().stacks.stage(Stage::Precedence),
        ["keyword-precedence", "link-precedence"]
    );
    let broad = Profile::builtin("broad", &context()).unwrap();
    let settings = broad.settings();
    assert_eq!(settings.strategy, Strategy::Snapshot);
    assert_eq!(
        settings.stacks.stage(Stage::Precedence),
        ["link-precedence"]
    );
    assert_eq!(settings.stacks.stage(Stage::Scope)[0], "broad");
    assert!(broad.queue_settings("").host_quota.is_some());
}

#[test]
fn news_visits_front_pages_sooner_than_articles() {
    let profile = Profile::builtin("news", &context()).unwrap();
    assert_eq!(profile.settings().strategy, Strategy::Revisit);
    let waits = |uri: &str| {
        let settings = profile.effective(&opilio_uri::Uri::parse(uri).unwrap());
        let own = &profile.plugins["wait-text"].settings;
        let overridden = settings.plugins.applied_to("wait-text", own);
        overridden.unwrap_or_else(|| own.clone())
    };
    for front in ["https://www.kb.nl/", "http://news.example.org:8080/"] {
        assert_eq!(waits(front)["initial-wait"], "15m", "{front}");
        assert_eq!(waits(front)["media-types"][0], "text/*", "{front}");
    }
    assert_eq!(waits("https://www.kb.nl/article")["initial-wait"], "2h");
}

#[test]
fn the_shipped_cluster_profile_allows_takeovers() {
    let text = include_str!("../../../../deploy/cluster/profiles/shared.toml");
    let profile = crate::profile(text);
    assert!(profile.checkpoint.publish_every.is_some());
    assert!(profile.archive.store.is_some());
}

#[test]
fn the_default_profile_equals_an_empty_one() {
    let default = Profile::builtin("default", &context()).unwrap();
    let empty = Profile::parse(
        "default.toml",
        "description = \"A snapshot of the seeds' sites\"",
        &context(),
    )
    .unwrap();
    let summary = |profile: &Profile| {
        let rules: Vec<&str> = profile
            .canonicaliser
            .rules()
            .iter()
            .map(|rule| rule.name())
            .collect();
        format!(
            "{:#?}",
            (
                (
                    &profile.name,
                    &profile.description,
                    &profile.seeds,
                    profile.workers,
                    &profile.operator
                ),
                (
                    &profile.user_agent,
                    &profile.plugins,
                    &profile.dns,
                    &profile.frontier,
                    rules
                ),
                (
                    &profile.archive,
                    (
                        &profile.logs,
                        &profile.alerts,
                        &profile.checkpoint,
                        &profile.telemetry,
                    ),
                    &profile.limits,
                    profile.settings(),
                    profile.queue_settings(""),
                    (&profile.group, &profile.quotas),
                ),
            )
        )
    };
    assert_eq!(summary(&default), summary(&empty));
}

#[test]
fn default_profile_writes_out_every_setting() {
    let written: toml::Table = toml::from_str(Profile::builtin_text("default").unwrap()).unwrap();
    let default = serde_json::to_value(ProfileFile::default()).unwrap();
    for (key, value) in default.as_object().unwrap() {
        let Some(table) = value.as_object().filter(|table| !table.is_empty()) else {
            // An empty list of overrides would prevent operators from adding [[override]] tables.
            let expected = key == "description"
                || !value.is_null()
                    && ![
                        "plugins",
                        "tables",
                        "credentials",
                        "logins",
                        "webhooks",
                        "streams",
                        "override",
                    ]
                    .contains(&key.as_str());
            assert_eq!(written.contains_key(key), expected, "{key}");
            continue;
        };
        for (inner, value) in table {
            let is_written = written
                .get(key)
                .and_then(|table| table.get(inner))
                .is_some();
            assert_eq!(is_written, !value.is_null(), "{key}.{inner}");
            for (deep, _) in value.as_object().into_iter().flatten() {
                let table = written[key][inner].as_table().unwrap();
                assert!(table.contains_key(deep), "{key}.{inner}.{deep}");
            }
        }
    }
}

/// The description of each setting, which editors show, states its default and the reason for it.
#[test]
fn every_default_equals_its_description() {
    let schema = Profile::schema();
    let default = serde_json::to_value(ProfileFile::default()).unwrap();
    let limits = serde_json::to_value(opilio_profile::PluginLimitsFile::default()).unwrap();
    let mut seen = 0;
    check_descriptions(&schema, &schema, &default, "", &mut seen);
    check_descriptions(
        &schema,
        &schema["$defs"]["PluginLimitsFile"],
        &limits,
        "/plugins/limits",
        &mut seen,
    );
    let breaker = serde_json::to_value(opilio_profile::BreakerFile::default()).unwrap();
    check_descriptions(
        &schema,
        &schema["$defs"]["BreakerFile"],
        &breaker,
        "/plugins/breaker",
        &mut seen,
    );
    assert!(seen >= 50, "{seen}");
}

fn check_descriptions(schema: &Value, node: &Value, default: &Value, at: &str, seen: &mut usize) {
    for (key, node) in node["properties"].as_object().unwrap() {
        let at = format!("{at}/{key}");
        let target = node["$ref"]
            .as_str()
            .and_then(|target| schema.pointer(&target[1..]));
        if let Some(table) = target.filter(|target| target["properties"].is_object()) {
            check_descriptions(schema, table, &default[key], &at, seen);
            continue;
        }
        let description = node["description"]
            .as_str()
            .unwrap_or_else(|| panic!("{at} has no description"));
        *seen += 1;
        if default[key].is_null() {
            assert!(description.contains("No default:"), "{at}: {description}");
            continue;
        }
        let (_, rest) = description
            .split_once("Default `")
            .unwrap_or_else(|| panic!("{at} names no default"));
        let (promised, reason) = rest
            .split_once("`:")
            .unwrap_or_else(|| panic!("{at} gives no reason: {rest}"));
        let promised: toml::Table = toml::from_str(&format!("x = {promised}")).unwrap();
        assert_eq!(
            serde_json::to_value(&promised["x"]).unwrap(),
            default[key],
            "{at}"
        );
        assert!(reason.trim().len() > 10, "{at}: {reason}");
    }
}

/// Numbers become integers of the host, so the schema must refuse those that do not fit.
#[test]
fn every_whole_number_has_bounds() {
    fn visit(node: &Value, at: &str) {
        if node["type"] == "integer" && node["format"] != "uint64" {
            assert!(node.get("maximum").is_some(), "{at}: {node}");
        }
        let children = node.as_object().into_iter().flatten();
        for (key, child) in children {
            visit(child, &format!("{at}/{key}"));
        }
    }
    visit(&Profile::schema(), "");
}

#[test]
fn an_unknown_profile_name_is_reported() {
    let printed = Profile::builtin("snapshots", &context())
        .unwrap_err()
        .to_string();
    assert_eq!(
        printed,
        "snapshots: no built-in profile \"snapshots\" (did you mean \"snapshot\"?)"
    );
}

#[test]
fn source_text_is_kept_byte_for_byte() {
    let text = "# \u{e9}\r\nname = \"x\"\r\n";
    assert_eq!(
        Profile::parse("p.toml", text, &context())
            .unwrap()
            .source_text(),
        text
    );
}
