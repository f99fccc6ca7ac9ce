//! Notes about settings and plugins without effect.

use opilio_profile::{Profile, ProfileContext};

use crate::{context, faults_of};

/// Compares the notes of a profile with their expected beginnings, one line each, without the file's name.
#[track_caller]
fn check_notes(text: &str, expected: &[&str]) {
    let notes = faults_of(text);
    let notes = notes.iter().map(|note| note.to_string());
    let notes: Vec<String> = notes
        .map(|note| note.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(notes.len(), expected.len(), "{text}\n{notes:#?}");
    for (note, expected) in notes.iter().zip(expected) {
        let expected = format!("p.toml:{expected}");
        assert!(note.starts_with(&expected), "{expected}\n{note}");
    }
}

#[test]
fn settings_without_effect_are_noted() {
    for (text, expected) in [
        (
            "revisit.fixed-wait = '2d'\n",
            &[
                "1:9: note: revisit.fixed-wait has no effect: strategy is not \"fixed\" (write strategy = \"fixed\", or leave it out)",
            ][..],
        ),
        (
            "strategy = 'revisit'\nrevisit.fixed-wait = '2d'\n",
            &["2:9: note: revisit.fixed-wait has no effect: strategy is not \"fixed\""],
        ),
        (
            "revisit = { min-wait = '2h', max-wait = '9w', default-wait = '1w', budget = 9, signals = false }\n",
            &[
                "1:13: note: revisit.min-wait has no effect: strategy is \"snapshot\"",
                "1:30: note: revisit.max-wait has no effect: strategy is \"snapshot\"",
                "1:47: note: revisit.default-wait has no effect: strategy is \"snapshot\"",
                "1:68: note: revisit.budget has no effect: strategy is \"snapshot\"",
                "1:80: note: revisit.signals has no effect: strategy is \"snapshot\"",
            ],
        ),
        (
            "strategy = 'fixed'\nrevisit = { min-wait = '2h', default-wait = '1w', budget = 9 }\n",
            &[
                "2:30: note: revisit.default-wait has no effect: strategy is \"fixed\"",
                "2:51: note: revisit.budget has no effect: strategy is \"fixed\"",
            ],
        ),
        (
            "strategy = 'revisit'\nrevisit.budget = 9\n",
            &["2:9: note: revisit.budget has no effect: no wait evaluator"],
        ),
        (
            "browser = { processes = 4, device-scale = 2, text = true }\nstacks.behave = ['autoplay']\n",
            &[
                "1:13: note: browser.processes has no effect: browser.render is \"never\"",
                "1:28: note: browser.device-scale has no effect: browser.render is \"never\"",
                "2:8: note: stacks.behave has no effect: browser.render is \"never\"",
            ],
        ),
        (
            "browser.render = 'always'\nstacks.render = []\n",
            &["2:8: note: stacks.render has no effect: browser.render is not \"auto\""],
        ),
        (
            "robots = { text = 'x', agents = ['a'], masquerade = true }\n",
            &[
                "1:12: note: robots.text has no effect",
                "1:24: note: robots.agents has no effect",
                "1:40: note: robots.masquerade has no effect",
            ],
        ),
        (
            "robots = { policy = 'obey-txt-only', noarchive = true }\n",
            &["1:38: note: robots.noarchive has no effect"],
        ),
        (
            "uri = { precedence = 4, navigation-hops-only = false }\n",
            &[
                "1:9: note: uri.precedence has no effect: uri.precedence-policy is \"cost\"",
                "1:25: note: uri.navigation-hops-only has no effect",
            ],
        ),
        (
            "uri = { precedence-policy = 'base', cost-policy = 'zero' }\nfrontier.error-penalty = 7\n",
            &[
                "1:37: note: uri.cost-policy has no effect",
                "2:10: note: frontier.error-penalty has no effect",
            ],
        ),
        (
            "group.valence = 3\nqueue.precedence-steps = [5]\n",
            &[
                "1:7: note: group.valence has no effect: queue.group is \"none\"",
                "2:7: note: queue.precedence-steps has no effect",
            ],
        ),
        (
            "cookies = { accept = false, per-host = 9 }\nfetch = { slow-after = '0s', slow-fetches = 9, no-proxy = ['a.org'] }\n",
            &[
                "1:29: note: cookies.per-host has no effect: cookies.accept is false",
                "2:30: note: fetch.slow-fetches has no effect",
                "2:48: note: fetch.no-proxy has no effect: there is no fetch.proxy",
            ],
        ),
        (
            "archive = { compression = 'none', compression-level = 3, on-close-timeout = '2h', store.uploads = 3, duplicates.size-min = '1KiB' }\n",
            &[
                "1:35: note: archive.compression-level has no effect",
                "1:58: note: archive.on-close-timeout has no effect",
                "1:89: note: archive.store.uploads has no effect",
                "1:113: note: archive.duplicates.size-min has no effect",
            ],
        ),
        (
            "alerts.webhook-timeout = '3s'\ncheckpoint.keep = 9\ntelemetry.sample = 1\n",
            &[
                "1:8: note: alerts.webhook-timeout has no effect",
                "2:12: note: checkpoint.keep has no effect",
                "3:11: note: telemetry.sample has no effect",
            ],
        ),
        (
            "[tables.ours]\nkind = 'regexes'\nrows = []\nreload = '1m'\n",
            &["4:1: note: reload has no effect: the rows are not in a file"],
        ),
    ] {
        check_notes(text, expected);
    }
}

#[test]
fn waits_of_an_evaluator_that_the_profile_limits_or_replaces_are_noted() {
    let with = |settings: &str| {
        format!(
            "strategy = 'revisit'\nstacks.wait = ['adaptive']\n\
             revisit = {{ min-wait = '1h', max-wait = '9d', default-wait = '5d' }}\n\
             plugins.adaptive = {{ component = 'builtin:adaptive', settings = {{ {settings} }} }}\n"
        )
    };
    check_notes(
        &with("initial-wait = '1m', min-wait = '30m', max-wait = '10d', default-wait = '4d'"),
        &[
            "3:62: note: default-wait (5d) only applies when \"adaptive\" fails",
            "4:82: note: initial-wait (1m) is shorter than revisit.min-wait (1h), which applies instead",
            "4:99: note: min-wait (30m) has no effect: revisit.min-wait (1h) is longer",
            "4:117: note: max-wait (10d) has no effect: revisit.max-wait (9d) is shorter",
        ],
    );
    check_notes(
        &with("initial-wait = '10d', default-wait = '5d'"),
        &[
            "4:82: note: initial-wait (10d) is longer than revisit.max-wait (9d), which applies instead",
        ],
    );
    let within = "initial-wait = '2h', min-wait = '1h', max-wait = '9d', default-wait = '5d'";
    check_notes(&with(within), &[]);
}

#[test]
fn settings_with_an_effect_in_one_override_are_not_noted() {
    let overridden = |setting: &str| format!("[[override]]\nmatch.host = ['a.org']\n{setting}\n");
    for (text, setting) in [
        ("revisit.fixed-wait = '2d'", "strategy = 'fixed'"),
        ("revisit.default-wait = '2d'", "strategy = 'revisit'"),
        ("browser.processes = 4", "browser.render = 'auto'"),
        ("uri.precedence = 4", "uri.precedence-policy = 'base'"),
        ("robots.agents = ['a']", "robots.policy = 'first-named'"),
        (
            "revisit.unchanged-headers = 'note'",
            "stacks.mid-fetch = { before = ['unchanged-headers'] }",
        ),
    ] {
        check_notes(&format!("{text}\n{}", overridden(setting)), &[]);
    }
    // Overrides get the same notes as a profile. If several have the same error, only the first gets a note.
    let many = overridden("revisit.fixed-wait = '2d'").repeat(3);
    check_notes(
        &many,
        &[
            "3:9: note: revisit.fixed-wait has no effect: strategy is not \"fixed\"; the same in 2 more overrides",
        ],
    );
}

#[test]
fn plugins_of_a_stage_that_is_turned_off_are_noted() {
    let table =
        "[plugins.adaptive]\ncomponent = 'builtin:adaptive'\nsettings = { min-wait = '2h' }\n";
    check_notes(
        table,
        &[
            "1:10: note: plugin \"adaptive\" is never called: wait evaluators decide only under strategy = \"revisit\"",
        ],
    );
    check_notes(&format!("strategy = 'revisit'\n{table}"), &[]);
    let table = "[plugins.consent]\ncomponent = 'builtin:consent'\n";
    check_notes(
        table,
        &["1:10: note: plugin \"consent\" is never called: browser.render is \"never\""],
    );
    check_notes(&format!("browser.render = 'auto'\n{table}"), &[]);
    check_notes(
        "[plugins.html]\ncomponent = 'builtin:html'\nbreaker = { then = 'halt', skip-for = '1m' }\n",
        &["3:28: note: skip-for has no effect"],
    );
}

/// Operators usually begin with a copy of a shipped profile, or extend one.
#[test]
fn copies_and_extensions_of_shipped_profiles_get_no_notes() {
    for name in Profile::builtin_names() {
        let copy = format!("{}\n# A copy.\n", Profile::builtin_text(name).unwrap());
        let context = ProfileContext {
            seeds: vec!["http://www.harvest.localhost:8080/".to_owned()],
            ..context()
        };
        let profile = Profile::parse("p.toml", &copy, &context).unwrap();
        let notes = profile.notices.to_string();
        assert!(!notes.contains("no effect"), "{name}: {notes}");
        assert!(!notes.contains("never called"), "{name}: {notes}");
    }
    check_notes("extends = 'continuous'\nstrategy = 'snapshot'\n", &[]);
}
