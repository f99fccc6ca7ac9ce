//! Keys of plugin tables besides `settings`: guards, fault policies and limits. Also tables, recordings, and settings of plugins
//! that overrides change.

use std::time::Duration;

use opilio_profile::{
    BreakerAction, OnFault, Profile, ProfileContext, Stage, TableKind, TableSource,
    complete_settings,
};
use opilio_uri::Uri;
use serde_json::{Value, json};

use crate::{check, context, profile};

/// A settings schema that `regex-strip` might have.
fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "patterns": {
                "type": "array", "items": { "type": "string" }, "default": [],
                "x-opilio-overridable": true,
            },
            "limit": { "type": "integer", "default": 7, "minimum": 1 },
            "page": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "head": { "type": "boolean", "default": true, "x-opilio-overridable": true },
                    "foot": { "type": "boolean", "default": true },
                },
            },
        },
    })
}

#[test]
fn every_kind_has_a_stack() {
    let profile = profile(
        "[stacks]\nchange = ['hops']\nprecedence = ['scheme']\nobserve = ['css']\n\
         [[override]]\nmatch.host = ['a.org']\nstacks.change = []\nstacks.precedence.after = ['hops']",
    );
    let stacks = &profile.settings().stacks;
    assert_eq!(stacks.stage(Stage::Change), ["hops"]);
    assert_eq!(stacks.stage(Stage::Precedence), ["scheme"]);
    assert_eq!(stacks.stage(Stage::Observe), ["css"]);
    let a = profile.effective(&Uri::parse("http://a.org/").unwrap());
    assert!(a.stacks.change.is_empty());
    assert_eq!(a.stacks.precedence, ["scheme", "hops"]);
    check(
        "[[override]]\nmatch.host = ['a.org']\nstacks.observe = []\n",
        r#"
p.toml:3:8: stacks.observe is needed once for the whole job and cannot be overridden (set it for the whole job, outside of overrides)
    3 | stacks.observe = []
      |        ^^^^^^^
"#,
    );
}

#[test]
fn filters_guard_plugins_and_have_no_guards_themselves() {
    let profile = profile("[plugins.html]\ncomponent = 'builtin:html'\nfilters = ['path-depth']");
    assert_eq!(profile.plugins["html"].filters, ["path-depth"]);
    assert!(profile.plugins.contains_key("path-depth"));
    assert!(profile.notices.is_empty(), "{}", profile.notices);
    check(
        "[plugins.html]\ncomponent = 'builtin:html'\nfilters = ['deep', 'path-dept', 'hops', 'hops']\n\
         [plugins.deep]\ncomponent = 'builtin:path-depth'\nfilters = ['hops']\n",
        r#"
p.toml:3:12: "deep" has filters itself (give it a second table under [plugins], without filters)
    3 | filters = ['deep', 'path-dept', 'hops', 'hops']
      |            ^^^^^^
p.toml:3:20: no plugin "path-dept" (did you mean "path-depth"?)
    3 | filters = ['deep', 'path-dept', 'hops', 'hops']
      |                    ^^^^^^^^^^^
p.toml:3:41: "hops" is listed twice (remove one)
    3 | filters = ['deep', 'path-dept', 'hops', 'hops']
      |                                         ^^^^^^
"#,
    );
}

#[test]
fn fault_policies_depend_on_plugin_and_stage() {
    let profile = profile(
        "[plugins.html]\ncomponent = 'builtin:html'\non-fault = 'pause'\n\
         breaker = { faults = 3, calls = 10, then = 'pause', skip-for = '1m' }",
    );
    let html = &profile.plugins["html"];
    assert_eq!(html.on_fault, Some(OnFault::Pause));
    assert_eq!((html.breaker.faults, html.breaker.calls), (Some(3), 10));
    assert_eq!(html.breaker.action_at(Stage::Extract), BreakerAction::Pause);
    assert_eq!(html.breaker.skip_for, Duration::from_secs(60));
    let css = &profile.plugins["css"];
    assert_eq!((css.on_fault, css.breaker.faults), (None, Some(25)));
    assert_eq!(css.breaker.action_at(Stage::Extract), BreakerAction::Skip);
    assert_eq!(css.breaker.action_at(Stage::Scope), BreakerAction::Halt);
    assert_eq!(OnFault::default_at(Stage::Scope), OnFault::Reject);
    assert_eq!(OnFault::default_at(Stage::Archive), OnFault::Skip);
}

#[test]
fn the_scope_fails_closed_and_only_filters_accept_and_reject() {
    check(
        r#"
[plugins.hops]
component = "builtin:hops"
on-fault = "skip"
breaker.then = "skip"
[plugins.css]
component = "builtin:css"
on-fault = "reject"
[plugins.js]
component = "builtin:js"
on-fault = "ignore"
breaker = { faults = 11, calls = 10 }
"#,
        r#"
p.toml:4:12: a filter of the scope must not accept URIs when it fails (write "reject" or "pause")
    4 | on-fault = "skip"
      |            ^^^^^^
p.toml:5:16: a filter of the scope cannot be left out (write "pause" or "halt")
    5 | breaker.then = "skip"
      |                ^^^^^^
p.toml:8:12: only filters accept and reject (write "skip" or "pause")
    8 | on-fault = "reject"
      |            ^^^^^^^^
p.toml:11:12: not one of "skip", "reject", "accept", "pause": "ignore"
   11 | on-fault = "ignore"
      |            ^^^^^^^^
p.toml:12:22: 11 faults cannot be among 10 calls (raise calls, or write fewer faults)
   12 | breaker = { faults = 11, calls = 10 }
      |                      ^^
"#,
    );
}

#[test]
fn only_files_that_may_change_are_watched() {
    check(
        "[plugins.html]\ncomponent = 'builtin:html'\nwatch = true\n",
        "
p.toml:3:9: only a file is watched (remove watch)
    3 | watch = true
      |         ^^^^
",
    );
}

#[test]
fn table_rows_are_in_a_file_or_in_the_profile() {
    let context = ProfileContext {
        base: Some("/base".into()),
        ..context()
    };
    let text = "[tables.blocked]\nkind = 'surt-prefixes'\nfile = 'blocked.txt'\nreload = '1m'\n\
                [tables.words]\nkind = 'key-values'\nrows = [\"a\\tb\"]\n[tables.fixed]\nkind = 'regexes'\nfile = 'x'\nreload = 'none'";
    let profile = Profile::parse("p.toml", text, &context).unwrap();
    let blocked = &profile.tables["blocked"];
    assert_eq!(blocked.kind, TableKind::SurtPrefixes);
    assert_eq!(
        blocked.source,
        TableSource::File("/base/blocked.txt".into())
    );
    assert_eq!(blocked.reload, Some(Duration::from_secs(60)));
    let words = &profile.tables["words"];
    assert_eq!(words.source, TableSource::Rows(vec!["a\tb".to_owned()]));
    assert_eq!(words.reload, Some(Duration::from_secs(10)));
    assert_eq!(profile.tables["fixed"].reload, None);
    check(
        "[tables.a]\nkind = 'regexes'\n[tables.b]\nkind = 'regexes'\nfile = 'x'\nrows = ['y']\n[tables.C]\nkind = 'regex'\nfile = 'x'\n",
        r#"
p.toml:1:9: the table has neither a file nor rows (write file = "blocked.txt")
    1 | [tables.a]
      |         ^
p.toml:6:8: the table has a file and rows (remove rows, or file)
    6 | rows = ['y']
      |        ^^^^^
p.toml:7:9: not the name of a table: "C" (use lower-case words joined by hyphens, such as "blocked-sites")
    7 | [tables.C]
      |         ^
p.toml:8:8: not one of "surt-prefixes", "regexes", "key-values": "regex" (did you mean "regexes"?)
    8 | kind = 'regex'
      |        ^^^^^^^
"#,
    );
}

#[test]
fn calls_are_recorded_by_sample_and_by_uri() {
    assert!(!profile("").record.is_on());
    let profile =
        profile("[record]\nuris = ['/feed', '^https:']\nplugins = ['html']\nsample = 1\n");
    assert!(profile.record.is_on());
    assert!(profile.record.uris.is_match("http://a.org/feed"));
    assert!(!profile.record.uris.is_match("http://a.org/food"));
    check(
        "[record]\nuris = ['(']\nplugins = ['htm']\nsample = 2\nfiles = -1\n",
        r#"
p.toml:2:9: not a regular expression: "(": unclosed group (see docs.rs/regex)
    2 | uris = ['(']
      |         ^^^
p.toml:3:12: no plugin "htm" (did you mean "html"?)
    3 | plugins = ['htm']
      |            ^^^^^
p.toml:4:10: must be at most 1.0 and at least 0.0: the number 2
    4 | sample = 2
      |          ^
p.toml:5:9: must be at least 0 and at most 1000000: the number -1
    5 | files = -1
      |         ^^
"#,
    );
}

const OVERRIDDEN: &str = r#"
[stacks]
digest = ["strip"]
[plugins.strip]
component = "builtin:regex-strip"
settings = { limit = 9, page = { foot = false } }
[[override]]
match.domain = ["a.org"]
plugins.strip.settings = { patterns = ["x", "y"], page.head = false }
[[override]]
match.host = ["www.a.org"]
[override.plugins.strip.settings]
patterns = ["z"]
"#;

#[test]
fn settings_of_plugins_are_overridden_key_by_key_and_lists_whole() {
    let profile = profile(OVERRIDDEN);
    let written = profile.plugins["strip"].settings.clone();
    let settings_of = |uri: &str| {
        let settings = profile.effective(&Uri::parse(uri).unwrap());
        settings.plugins.applied_to("strip", &written)
    };
    assert_eq!(settings_of("http://b.org/"), None);
    assert_eq!(
        settings_of("http://a.org/"),
        Some(json!({"limit": 9, "page": {"foot": false, "head": false}, "patterns": ["x", "y"]}))
    );
    assert_eq!(
        settings_of("http://www.a.org/"),
        Some(json!({"limit": 9, "page": {"foot": false, "head": false}, "patterns": ["z"]}))
    );
    let explained = profile.explain(&Uri::parse("http://www.a.org/").unwrap());
    let value = |key: &str| {
        let one = explained.iter().find(|one| one.key == key).unwrap();
        format!("{} {}", one.toml(), one.place)
    };
    assert_eq!(
        value("plugins.strip.settings.patterns"),
        "[\"z\"] p.toml:13"
    );
    assert_eq!(value("plugins.strip.settings.page.head"), "false p.toml:9");
    assert_eq!(value("plugins.strip.settings.limit"), "9 p.toml:6");
}

#[test]
fn overridden_settings_are_checked_against_the_schema() {
    let profile = profile(OVERRIDDEN);
    let all: Vec<(u32, &str)> = profile.overridden_settings().collect();
    assert_eq!(all, [(0, "strip"), (1, "strip")]);
    let base = profile.check_settings("strip", &schema()).unwrap();
    let first = profile.check_overridden_settings(all[0], &base, &schema());
    assert_eq!(
        first.unwrap(),
        json!({"limit": 9, "page": {"foot": false, "head": false}, "patterns": ["x", "y"]})
    );
    let fault = profile.fault_in_override(all[0], "/patterns/1", "no expression");
    let place = fault.place.unwrap();
    assert_eq!((place.line, place.column), (9, 45));
}

#[test]
fn settings_that_cannot_be_overridden_are_refused_at_their_places() {
    let text = "[stacks]\ndigest = ['regex-strip']\n[[override]]\nmatch.host = ['a.org']\n\
                [override.plugins.regex-strip.settings]\nlimit = 3\npattern = 'x'\npatterns = 'x'\npage.foot = true\n";
    let profile = profile(text);
    let (override_, base) = ((0, "regex-strip"), json!({}));
    let faults = profile.check_overridden_settings(override_, &base, &schema());
    let printed = faults.unwrap_err().to_string();
    let expected = r#"
p.toml:6:1: plugin "regex-strip" does not allow overrides of limit (it allows overrides of patterns)
    6 | limit = 3
      | ^^^^^
p.toml:7:1: unknown key "pattern" (did you mean "patterns"?)
    7 | pattern = 'x'
      | ^^^^^^^
p.toml:8:12: expected a list, found "x" (write ["x"])
    8 | patterns = 'x'
      |            ^^^
p.toml:9:6: plugin "regex-strip" does not allow overrides of page.foot (it allows overrides of head)
    9 | page.foot = true
      |      ^^^^
"#;
    assert_eq!(printed, expected.trim_matches('\n'), "\n{printed}");
}

#[test]
fn conditions_for_plugin_settings_must_be_known_at_their_stage() {
    check(
        r#"
[stacks]
observe = ["css"]
[[override]]
match.media-type = ["text/html"]
plugins.hops.settings.max = 3
plugins.html.settings = { alt = 3 }
plugins.html.limits = { time = "3s" }
plugins.htlm.settings = {}
plugins.css.settings.x = 1
"#,
        r#"
p.toml:6:23: plugins.hops.settings.max is needed before the URI is fetched, when match.media-type is not known (it is known only when the response has come)
    6 | plugins.hops.settings.max = 3
      |                       ^^^
p.toml:8:14: plugins.html.limits is needed once for the whole job and cannot be overridden (set it for the whole job, outside of overrides)
    8 | plugins.html.limits = { time = "3s" }
      |              ^^^^^^
p.toml:9:9: no plugin "htlm" (did you mean "html"?)
    9 | plugins.htlm.settings = {}
      |         ^^^^
p.toml:10:22: plugins.css.settings.x is needed once for the whole job and cannot be overridden (observers get all URIs)
   10 | plugins.css.settings.x = 1
      |                      ^
"#,
    );
}

#[test]
fn settings_outside_of_a_profile_are_completed_or_refused() {
    assert_eq!(
        complete_settings(&schema(), json!({"patterns": ["x"]})).unwrap(),
        json!({"patterns": ["x"], "limit": 7})
    );
    let problems = complete_settings(&schema(), json!({"limit": 0, "x": 1})).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems
            .iter()
            .any(|problem| problem.starts_with("/limit: "))
    );
}
