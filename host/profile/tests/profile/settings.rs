//! Settings of plugins: the check against the plugin's schema, and the places of errors.

use opilio_profile::{Level, Profile, complete_settings};
use serde_json::{Value, json};

use crate::profile;

fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "max": {"type": "integer", "minimum": 1, "maximum": 50, "default": 20},
            "patterns": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []},
            "mode": {"$ref": "#/$defs/Mode", "default": "strict"},
            "inner": {
                "type": "object",
                "default": {},
                "additionalProperties": false,
                "properties": {"deep": {"type": "boolean", "default": true}},
            },
        },
        "$defs": {"Mode": {"oneOf": [{"const": "strict"}, {"const": "lenient"}]}},
    })
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let printed = profile(text)
        .check_settings("hops", &schema())
        .unwrap_err()
        .to_string();
    assert_eq!(
        printed,
        expected.trim_matches('\n'),
        "\n--- printed:\n{printed}\n---"
    );
}

#[test]
fn defaults_are_filled_in_at_every_depth() {
    let all = json!({"max": 20, "patterns": [], "mode": "strict", "inner": {"deep": true}});
    assert_eq!(profile("").check_settings("hops", &schema()).unwrap(), all);
    let text = "[plugins.hops]\ncomponent = \"builtin:hops\"\nsettings = { max = 3.0, inner = {} }";
    let mut some = all;
    some["max"] = json!(3);
    assert_eq!(
        profile(text).check_settings("hops", &schema()).unwrap(),
        some
    );
}

#[test]
fn errors_are_placed_at_the_setting() {
    check(
        "[plugins.hops]\ncomponent = \"builtin:hops\"\n[plugins.hops.settings]\nmaks = 3\npatterns = [\"a\", 2, \"\"]\nmode = \"strickt\"\n",
        r#"
p.toml:4:1: unknown key "maks" (did you mean "max"?)
    4 | maks = 3
      | ^^^^
p.toml:5:18: expected a text, found the number 2 (as in "text")
    5 | patterns = ["a", 2, ""]
      |                  ^
p.toml:5:21: must be of a length of at least 1: ""
    5 | patterns = ["a", 2, ""]
      |                     ^^
p.toml:6:8: not one of "strict", "lenient": "strickt" (did you mean "strict"?)
    6 | mode = "strickt"
      |        ^^^^^^^^^
"#,
    );
    check(
        "plugins.hops.settings.max = 77\nplugins.hops.component = \"builtin:hops\"\n",
        r#"
p.toml:1:29: must be at most 50 and at least 1: the number 77
    1 | plugins.hops.settings.max = 77
      |                             ^^
"#,
    );
    check(
        "[plugins]\nhops = { component = \"builtin:hops\", settings = { inner.deep = 1 } }\n",
        r#"
p.toml:2:64: expected true or false, found the number 1 (as in true)
    2 | hops = { component = "builtin:hops", settings = { inner.deep = 1 } }
      |                                                                ^
"#,
    );
}

#[test]
fn missing_settings_of_an_implied_instance_are_reported_at_the_stack() {
    let schema =
        json!({"type": "object", "properties": {"list": {"type": "string"}}, "required": ["list"]});
    let profile = profile("[stacks]\nscope = [\"surt-scope\", \"hops\"]\n");
    assert_eq!(
        profile
            .check_settings("hops", &schema)
            .unwrap_err()
            .to_string(),
        "p.toml:2:24: missing key \"list\" (write list = \"text\")\n    2 | scope = [\"surt-scope\", \"hops\"]\n      |                        ^^^^^^"
    );
}

#[test]
fn an_invalid_schema_is_reported_at_the_component() {
    let text = "[plugins.hops]\ncomponent = \"builtin:hops\"\n";
    for schema in [
        json!({"type": 5}),
        json!({"$ref": "http://example.org/x"}),
        json!({"$ref": "#/$defs/none"}),
        json!(7),
    ] {
        let printed = profile(text)
            .check_settings("hops", &schema)
            .unwrap_err()
            .to_string();
        assert!(
            printed.starts_with("p.toml:2:13: plugin \"hops\" describes its settings by a schema"),
            "{printed}"
        );
    }
}

/// The keyword `x-opilio-level` of a setting's schema sets the level of an error.
#[test]
fn the_schema_sets_the_level_of_an_error() {
    let number = |level: &str| {
        let mut number = json!({"type": "integer", "maximum": 9, "x-opilio-overridable": true});
        if !level.is_empty() {
            number["x-opilio-level"] = level.into();
        }
        json!({"type": "object", "properties": {"most": number}, "additionalProperties": false})
    };
    let text = "[plugins.hops]\ncomponent = \"builtin:hops\"\nsettings = { most = 10 }\n\
                [[override]]\nmatch.host = [\"a.org\"]\nplugins.hops.settings.most = 11\n";
    let profile = profile(text);
    for level in ["", "error"] {
        profile.check_settings("hops", &number(level)).unwrap_err();
    }
    for (word, level) in [("info", Level::Info), ("warning", Level::Warning)] {
        let schema = number(word);
        let settings = profile.check_settings("hops", &schema).unwrap();
        assert_eq!(settings["most"], 10);
        let override_ = profile.overridden_settings().next().unwrap();
        let settings = profile.check_overridden_settings(override_, &settings, &schema);
        assert_eq!(settings.unwrap()["most"], 11);
        let lesser = profile.lesser_faults("hops", &schema).unwrap();
        let levels: Vec<Level> = lesser.iter().map(|fault| fault.level).collect();
        assert_eq!(levels, [level, level], "{lesser}");
    }
    let unknown =
        json!({"type": "object", "additionalProperties": false, "x-opilio-level": "info"});
    profile.check_settings("hops", &unknown).unwrap_err();
}

#[test]
fn a_recursive_schema_is_handled() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#", "default": {}}}});
    let settings = profile("").check_settings("hops", &schema).unwrap();
    assert!(settings["a"]["a"].is_object());
}

#[test]
fn a_schema_whose_checks_double_with_each_level_of_the_settings_is_refused() {
    let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let mut deep = json!({});
    for _ in 0..40 {
        deep = json!({"a": deep});
    }
    let itself = |a: Value| json!({"type": "object", "properties": {"a": a}});
    let problems = complete_settings(&itself(twice), deep.clone()).unwrap_err();
    assert!(problems[0].contains("more than 1000 steps"), "{problems:?}");
    assert!(complete_settings(&itself(json!({"$ref": "#"})), deep).is_ok());
    // Defaults that double with each level are limited in the same way.
    let filled = json!({"type": "object", "properties": {
        "a": {"$ref": "#", "default": {}},
        "b": {"$ref": "#", "default": {}},
    }});
    let printed = profile("").check_settings("hops", &filled).unwrap_err();
    assert!(
        printed.to_string().contains("more than 1000 steps"),
        "{printed}"
    );
    // The suggestion in an error is limited, too.
    let required = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
    }});
    let printed = profile("").check_settings("hops", &required).unwrap_err();
    assert!(printed.to_string().contains("missing key"), "{printed}");
    let list = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/L"}},
        "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}});
    let text = "[plugins.hops]\ncomponent = \"builtin:hops\"\nsettings.a = 1\n";
    assert!(profile(text).check_settings("hops", &list).is_err());
}

#[test]
fn errors_of_callers_are_placed_at_the_right_line() {
    let text = "[plugins.hops]\ncomponent = \"builtin:hops\"\n[plugins.hops.settings]\npatterns = [\n  'a',\n  '(',\n]\n";
    let profile = profile(text);
    #[track_caller]
    fn at(profile: &Profile, pointer: &str, line: usize, column: usize) {
        let fault = profile.fault_at(pointer, "broken");
        let place = fault.place.unwrap();
        assert_eq!(
            (place.line, place.column, fault.pointer.as_str()),
            (line, column, pointer)
        );
    }
    at(&profile, "/plugins/hops/settings/patterns/1", 6, 3);
    at(&profile, "/plugins/hops/settings/patterns/9", 4, 1);
    at(&profile, "/plugins/hops/component", 2, 13);
    at(&profile, "/plugins/hops/sha256", 1, 10);
    at(&profile, "/fetch/body-max", 1, 1);
    at(&profile, "", 1, 1);
    at(&profile, "no pointer", 1, 1);
}

#[test]
fn a_missing_table_is_reported_at_its_name() {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "tables": {"type": "array", "items": {"type": "string"}, "default": [], "x-opilio-table": true, "x-opilio-overridable": true},
            "other": {"type": "string", "default": "sites", "x-opilio-table": true},
        },
    });
    let text = |tables: &str, more: &str| {
        format!(
            "[plugins.hops]\ncomponent = \"builtin:hops\"\nsettings.tables = {tables}\n\
             [tables.sites]\nkind = \"surt-prefixes\"\nrows = [\"http://(org,\"]\n{more}"
        )
    };
    let known = profile(&text("[\"sites\"]", ""));
    known.check_settings("hops", &schema).unwrap();
    let faults = profile(&text("[\"sites\", \"sitez\"]", ""))
        .check_settings("hops", &schema)
        .unwrap_err();
    let fault = faults.iter().next().unwrap();
    assert_eq!(fault.problem, "no table \"sitez\"");
    assert_eq!(fault.suggestion.as_deref(), Some("did you mean \"sites\"?"));
    assert_eq!(fault.pointer, "/plugins/hops/settings/tables/1");
    assert_eq!(fault.place.as_ref().map(|place| place.line), Some(3));

    let overridden = profile(&text(
        "[\"sites\"]",
        "[[override]]\nmatch.host = [\"a.org\"]\nplugins.hops.settings.tables = [\"gone\"]\n",
    ));
    let settings = overridden.check_settings("hops", &schema).unwrap();
    let first = overridden.overridden_settings().next().unwrap();
    let faults = overridden
        .check_overridden_settings(first, &settings, &schema)
        .unwrap_err();
    let fault = faults.iter().next().unwrap();
    assert_eq!(fault.problem, "no table \"gone\"");
    assert_eq!(fault.suggestion.as_deref(), Some("available: sites"));
}
