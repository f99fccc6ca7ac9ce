//! Errors of a profile as operators see them: all of them, each at its place.

use opilio_profile::{Level, Profile, ProfileContext};
use proptest::prelude::*;

use crate::{check, context, faults_of};

#[test]
fn every_error_of_a_file_is_reported_at_its_place() {
    check(
        include_str!("many-faults.toml"),
        include_str!("many-faults.txt"),
    );
}

#[test]
fn the_right_name_of_a_misspelt_key_is_suggested() {
    check(
        "[politeness]\n  min-dealy = \"2s\"\n",
        r#"
p.toml:2:3: unknown key "min-dealy" (did you mean "min-delay"?)
    2 |   min-dealy = "2s"
      |   ^^^^^^^^^
"#,
    );
}

#[test]
fn bodies_leave_memory_for_the_documents_that_plugins_read() {
    check(
        "[limits]\nmemory = \"300MiB\"\n",
        r#"
p.toml:2:10: leaves less than 64MiB beside fetch.spool-memory-total for documents that plugins read (raise limits.memory or lower fetch.spool-memory-total)
    2 | memory = "300MiB"
      |          ^^^^^^^^
"#,
    );
    let printed = |text: &str| faults_of(text).to_string();
    let bodies = printed("[fetch]\nspool-memory-total = \"500MiB\"\n");
    assert!(bodies.starts_with("p.toml:2:22: leaves less"), "{bodies}");
}

#[test]
fn memory_settings_have_an_upper_limit() {
    check(
        "[fetch]\nspool-memory = \"1000GiB\"\n[frontier]\ncache = \"100000GiB\"\n[plugins.html]\ncomponent = \"builtin:html\"\n[plugins.html.limits]\nmemory = \"5GiB\"\n",
        r#"
p.toml:2:16: must be at most 1GiB: 1000GiB (this is held in memory: write "1GiB" or less)
    2 | spool-memory = "1000GiB"
      |                ^^^^^^^^^
p.toml:4:9: must be at most 256GiB: 100000GiB (this is held in memory: write "256GiB" or less)
    4 | cache = "100000GiB"
      |         ^^^^^^^^^^^
p.toml:8:10: must be at most 4GiB: 5GiB (this is held in memory: write "4GiB" or less)
    8 | memory = "5GiB"
      |          ^^^^^^
"#,
    );
    for (table, key) in [
        ("fetch", "header-max"),
        ("fetch", "spool-memory-total"),
        ("limits", "plugin-content"),
        ("plugins.html.limits", "output"),
        ("plugins.html.limits", "log"),
        ("plugins.html.limits", "note-size"),
        ("plugins.html.limits", "uri-value"),
        ("plugins.html.limits", "site-value"),
        ("plugins.html.limits", "fingerprint"),
        ("plugins.html.limits", "observer-memory"),
    ] {
        let faults = faults_of(&format!("[{table}]\n{key} = \"1TiB\"\n")).to_string();
        assert!(
            faults.contains("must be at most"),
            "{table}.{key}: {faults}"
        );
    }
}

#[test]
fn the_full_name_of_a_key_in_the_wrong_table_is_suggested() {
    check(
        "min-delay = \"2s\"\n[archive]\nworkers = 3\n",
        r#"
p.toml:1:1: unknown key "min-delay" (its full name is group.min-delay or politeness.min-delay)
    1 | min-delay = "2s"
      | ^^^^^^^^^
p.toml:3:1: unknown key "workers" (its full name is workers, without a table)
    3 | workers = 3
      | ^^^^^^^
"#,
    );
}

#[test]
fn a_proxy_needs_both_user_name_and_password() {
    check(
        "[fetch]\nproxy = \"http://a.org:1\"\nproxy-user = \"me\"",
        r#"
p.toml:3:14: the proxy needs both a user name and a password (set both fetch.proxy-user and fetch.proxy-password, or neither)
    3 | proxy-user = "me"
      |              ^^^^
"#,
    );
}

#[test]
fn syntax_errors_have_places_and_hide_no_other_errors() {
    check(
        "name = \"x\nworkers = true\n[robots]\npolicy = \"obey\"\npolicy = \"obey\"\n",
        r#"
p.toml:1:10: not TOML: invalid basic string, expected `"`
    1 | name = "x
      |          ^
p.toml:2:11: expected a whole number, found true (as in 25)
    2 | workers = true
      |           ^^^^
p.toml:5:1: not TOML: duplicate key
    5 | policy = "obey"
      | ^^^^^^
"#,
    );
}

#[test]
fn relations_between_written_values_and_defaults_are_checked() {
    check(
        "[politeness]\nmin-delay = \"10s\"\n[revisit]\nmin-wait = \"2d\"\nmax-wait = \"1d\"\ndefault-wait = \"1d\"",
        r#"
p.toml:2:13: min-delay (10s) is longer than max-delay (5s) (max-delay is not written and is "5s" by default)
    2 | min-delay = "10s"
      |             ^^^^^
p.toml:5:12: max-wait (1d) is shorter than min-wait (2d)
    5 | max-wait = "1d"
      |            ^^^^
p.toml:6:16: default-wait (1d) is shorter than min-wait (2d)
    6 | default-wait = "1d"
      |                ^^^^
"#,
    );
}

#[test]
fn relations_of_an_invalid_value_are_not_checked() {
    check(
        "[politeness]\nmin-delay = \"10 parsecs\"\nmax-delay = 1\n",
        r#"
p.toml:2:13: duration without a known unit: "10 parsecs" (units are ms, s, m, h, d, w: "10s")
    2 | min-delay = "10 parsecs"
      |             ^^^^^^^^^^^^
p.toml:3:13: number without a unit: 1 (write "1s")
    3 | max-delay = 1
      |             ^
"#,
    );
}

#[test]
fn seeds_are_needed_unless_the_job_has_them() {
    let context = ProfileContext {
        seeds_elsewhere: false,
        ..context()
    };
    let faults = Profile::parse("p.toml", "name = \"x\"\nseeds = []\n", &context).unwrap_err();
    assert_eq!(
        faults.to_string(),
        "p.toml:2:1: there are no seeds (write seeds = [\"https://www.example.org/\"], seeds-file = \"seeds.txt\", or pass --seed URL)\n    2 | seeds = []\n      | ^^^^^"
    );
    let context = ProfileContext {
        seeds: vec!["http://a.localhost/".to_owned()],
        ..context
    };
    assert_eq!(
        Profile::parse("p.toml", "", &context)
            .unwrap()
            .seeds
            .list
            .len(),
        1
    );
}

#[test]
fn errors_name_the_command_line_or_the_seeds_file() {
    let folder = tempfile::tempdir().unwrap();
    let seeds = folder.path().join("seeds.txt");
    std::fs::write(
        &seeds,
        "\u{feff}# sites\nexample.org # one\n  gopher://example.org/\n+http://(org,other,\n",
    )
    .unwrap();
    let context = ProfileContext {
        seeds: ["http://", "exmaple", "htp:/x.org", "http://intranet"]
            .map(str::to_owned)
            .to_vec(),
        base: Some(folder.path().to_owned()),
        contact_url: Some("https://www.kb.nl/crawl".to_owned()),
        ..context()
    };
    let faults = Profile::parse("p.toml", "seeds-file = \"seeds.txt\"", &context).unwrap_err();
    let printed = faults
        .to_string()
        .replace(&seeds.display().to_string(), "seeds.txt");
    assert!(
        printed.starts_with(
            "seeds.txt:3:3: not a seed: \"gopher://example.org/\": scheme \"gopher\" is not crawled ("
        ),
        "{printed}"
    );
    assert!(
        printed.contains("\nseeds:1:1: not a seed: \"http://\""),
        "{printed}"
    );
    assert!(
        printed.contains(
            "\nseeds:2:1: not a seed: \"exmaple\": its host has no dot (if it is a host of your network, write \"http://exmaple/\")"
        ),
        "{printed}"
    );
    assert!(
        printed.contains("scheme \"htp\" is not crawled"),
        "{printed}"
    );
    assert_eq!(faults.len(), 4, "{printed}");
}

#[test]
fn the_component_of_a_shipped_plugin_of_the_same_name_is_suggested() {
    let text = "[plugins.hops.settings]\nmax = 3\n[plugins.own.settings]\nmax = 3\n";
    let faults = Profile::parse("p.toml", text, &context()).unwrap_err();
    let suggested: Vec<_> = faults
        .iter()
        .filter(|it| it.level == Level::Error)
        .map(|it| it.suggestion.as_deref())
        .collect();
    assert_eq!(
        suggested,
        [
            Some("write component = \"builtin:hops\""),
            Some("write component = \"builtin:html\"")
        ],
        "{faults}"
    );
}

#[test]
fn contact_is_a_warning_that_a_job_refuses() {
    let context = ProfileContext {
        seeds: vec!["https://www.kb.nl/".to_owned()],
        ..context()
    };
    let profile = Profile::parse("p.toml", "[operator]\nname = \"Ada\"", &context).unwrap();
    assert_eq!(profile.notices.worst(), Some(Level::Warning));
    assert_eq!(
        profile.check_job().unwrap_err().to_string(),
        "p.toml:1:2: warning: contact-url is missing, and \"https://www.kb.nl/\" is not on this machine \
         (set operator.contact-url = \"https://…\": a page that says who crawls and why)\n    1 | [operator]\n      |  ^^^^^^^^"
    );

    let placeholder = "[operator]\ncontact-url = \"https://www.example.com/crawl\"";
    let profile = Profile::parse("p.toml", placeholder, &context).unwrap();
    let printed = profile.check_job().unwrap_err().to_string();
    assert!(
        printed.starts_with("p.toml:2:15: warning: contact-url is a placeholder:"),
        "{printed}"
    );

    let on_the_line = ProfileContext {
        contact_url: Some("https://www.kb.nl/crawl".to_owned()),
        ..context.clone()
    };
    let profile = Profile::parse("p.toml", "", &on_the_line).unwrap();
    profile.check_job().unwrap();
    assert!(
        profile.user_agent.ends_with("+https://www.kb.nl/crawl)"),
        "{}",
        profile.user_agent
    );

    for url in [
        "ftp://kb.nl/",
        "kb.nl",
        "https://kb.nl/ a",
        "javascript:x",
        "https://a)b/",
    ] {
        let context = ProfileContext {
            contact_url: Some(url.to_owned()),
            ..context.clone()
        };
        let printed = Profile::parse("p.toml", "", &context)
            .unwrap_err()
            .to_string();
        assert!(
            printed.starts_with("--contact-url: not an http or https URL:"),
            "{printed}"
        );
    }
}

#[test]
fn errors_of_a_flag_or_a_later_layer_are_reported_there() {
    let context = ProfileContext {
        seeds: vec!["https://www.kb.nl/".to_owned()],
        seeds_elsewhere: false,
        ..context()
    };
    let profile = Profile::builtin("snapshot", &context).unwrap();
    let printed = profile.check_job().unwrap_err().to_string();
    assert!(
        printed.starts_with("seeds: warning: contact-url is missing, and \"https://www.kb.nl/\" is not on this machine (pass a contact URL too (--contact-url URL),"),
        "{printed}"
    );
    // The seed is in the profile, so the error is about the profile and not about the flag.
    let own = "seeds = [\"https://www.nb.no/\"]\n[operator]\n";
    let profile = Profile::parse("p.toml", own, &context).unwrap();
    let printed = profile.check_job().unwrap_err().to_string();
    assert!(printed.starts_with("p.toml:2:2: warning:"), "{printed}");

    let text = "extends = \"snapshot\"\n[politeness]\nmin-delay = \"10s\"\n";
    let printed = faults_of(text).to_string();
    assert!(
        printed.starts_with("p.toml:3:13: min-delay (10s) is longer than max-delay (5s) (max-delay is set in snapshot.toml:30)"),
        "{printed}"
    );
}

#[test]
fn a_user_agent_without_the_contact_url_is_noted() {
    let notices = |user_agent: &str| {
        let written = format!(
            "user-agent = \"{user_agent}\"\n[operator]\ncontact-url = \"https://www.kb.nl/crawl\""
        );
        let profile = Profile::parse("p.toml", &written, &context()).unwrap();
        profile.notices.to_string()
    };
    let printed = notices("Mozilla/5.0 (X11; Linux x86_64)");
    assert!(
        printed.contains("p.toml:1:14: note: the header does not contain the contact URL \"https://www.kb.nl/crawl\" (write +@CONTACT-URL@ into it)"),
        "{printed}"
    );
    for user_agent in ["a +@CONTACT-URL@", "a +https://www.kb.nl/crawl"] {
        assert!(
            !notices(user_agent).contains("does not contain"),
            "{user_agent}"
        );
    }
}

#[test]
fn loopback_needs_no_contact() {
    for seed in [
        "http://localhost/",
        "http://www.a.localhost:8080/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://x.test/",
    ] {
        let context = ProfileContext {
            seeds: vec![seed.to_owned()],
            ..context()
        };
        let text =
            "[dns.hosts]\n\"x.test\" = \"127.0.0.1\"\n[fetch]\nallow-addresses = ['loopback']";
        let profile = Profile::parse("p.toml", text, &context).unwrap();
        assert!(profile.notices.is_empty(), "{}", profile.notices);
        assert!(
            profile
                .user_agent
                .ends_with(&format!("opilio/{})", env!("CARGO_PKG_VERSION"))),
            "{}",
            profile.user_agent
        );
    }
}

#[test]
fn an_unreadable_file_is_reported_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.toml");
    let printed = Profile::load(&path, &context()).unwrap_err().to_string();
    assert!(
        printed.starts_with(&format!("{}: cannot be read: ", path.display())),
        "{printed}"
    );
    std::fs::write(&path, b"name = \"\xff\"").unwrap();
    let printed = Profile::load(&path, &context()).unwrap_err().to_string();
    assert!(
        printed.starts_with(&format!("{}: not UTF-8: ", path.display())),
        "{printed}"
    );
}

#[test]
fn relative_paths_start_at_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("news.toml");
    std::fs::write(folder.path().join("s.txt"), "http://a.localhost/\n").unwrap();
    std::fs::write(
        &path,
        "seeds-file = \"s.txt\"\n[plugins.mine]\ncomponent = \"./my.wasm#best\"",
    )
    .unwrap();
    let profile = Profile::load(&path, &context()).unwrap();
    assert_eq!(profile.name, "news");
    assert_eq!(profile.seeds.list[0].uri.as_str(), "http://a.localhost/");
    let opilio_profile::ComponentReference::File { path, plugin } =
        &profile.plugins["mine"].component
    else {
        panic!("{:?}", profile.plugins["mine"])
    };
    assert_eq!(
        (path.clone(), plugin.as_deref()),
        (folder.path().join("./my.wasm"), Some("best"))
    );
}

/// Checks every setting with a unit, in every table: a typo in a pointer of the checks would put the error elsewhere.
#[test]
fn errors_of_values_with_units_are_reported_at_the_value() {
    let schema = Profile::schema();
    let mut seen = 0;
    let properties = schema["properties"].as_object().unwrap();
    for (table, node) in properties {
        let Some(target) = node["$ref"].as_str() else {
            continue;
        };
        let part = schema.pointer(&target[1..]).unwrap();
        let Some(keys) = part["properties"].as_object() else {
            continue;
        };
        for (key, node) in keys {
            if !["#/$defs/Duration", "#/$defs/Size"]
                .contains(&node["$ref"].as_str().unwrap_or_default())
            {
                continue;
            }
            let faults = faults_of(&format!("[{table}]\n{key} = \"3 sheep\"\n"));
            let printed = faults.to_string();
            assert!(
                printed.contains(&format!("p.toml:2:{}: ", key.len() + 4)),
                "{table}.{key}: {printed}"
            );
            assert_eq!(faults.len(), 1, "{printed}");
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn a_file_of_the_wrong_kind_is_refused_in_reasonable_time_and_length() {
    let seeds = format!("seeds = [{}]", "\"gopher://x/\",\n".repeat(20_000));
    assert_eq!(faults_of(&seeds).len(), 501);
    let keys: String = (0..20_000).map(|index| format!("k{index} = 1\n")).collect();
    assert_eq!(faults_of(&keys).len(), 500);
    assert!(faults_of(&"= \n".repeat(20_000)).len() <= 500);
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        "a.".repeat(100_000) + "a = 1",
        format!("[{}a]", "a.".repeat(100_000)),
        "a = ".to_owned() + &"[".repeat(100_000),
        "a = ".to_owned() + &"{a=".repeat(100_000),
        "[a]\na = ".to_owned()
            + &format!("{{{}a = ", "a.".repeat(78)).repeat(78)
            + "1"
            + &"}".repeat(78),
    ] {
        assert_eq!(faults_of(&text).worst(), Some(Level::Error));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn errors_of_any_text_have_places_inside_it(text in "(\\PC|\n|\r\n|\t){0,200}") {
        places_are_inside(&text)?;
    }

    #[test]
    fn errors_of_damaged_profiles_have_places_inside_them(
        which in 0usize..8,
        at in 0usize..4000,
        gone in 0usize..40,
        new in "[\\[\\]{}\"'=#.,\n a-z0-9ö-]{0,12}",
    ) {
        let name = Profile::builtin_names().nth(which).unwrap();
        let text = Profile::builtin_text(name).unwrap();
        let characters: Vec<char> = text.chars().collect();
        let at = at.min(characters.len());
        let end = (at + gone).min(characters.len());
        let damaged: String = characters[..at].iter().copied().chain(new.chars()).chain(characters[end..].iter().copied()).collect();
        places_are_inside(&damaged)?;
    }
}

fn places_are_inside(text: &str) -> Result<(), TestCaseError> {
    for fault in &faults_of(text) {
        prop_assert!(!fault.problem.is_empty());
        let Some(place) = &fault.place else { continue };
        prop_assert!(
            text.get(place.span.clone()).is_some(),
            "{:?} in {text:?}",
            place.span
        );
        let line = text.split('\n').nth(place.line - 1);
        prop_assert!(
            line.is_some_and(|line| place.column <= line.chars().count() + 1),
            "{place:?} in {text:?}"
        );
    }
    Ok(())
}

#[test]
fn waits_without_effect_are_noted() {
    let notices = |text: &str| faults_of(&format!("strategy = \"revisit\"\n{text}")).to_string();
    let own = "[plugins.adaptive]\ncomponent = \"builtin:adaptive\"\nsettings = { default-wait = \"5d\" }\n";
    for (text, expected) in [
        (
            "[revisit]\ndefault-wait = \"2d\"\n",
            "p.toml:3:16: note: default-wait (2d) only applies when \"adaptive\" fails",
        ),
        (
            "[plugins.adaptive]\ncomponent = \"builtin:adaptive\"\nsettings = { min-wait = \"10m\" }\n",
            "p.toml:4:25: note: min-wait (10m) has no effect: revisit.min-wait (1h) is longer",
        ),
        (
            "[plugins.adaptive]\ncomponent = \"builtin:adaptive\"\nsettings = { max-wait = \"8w\" }\n",
            "p.toml:4:25: note: max-wait (8w) has no effect: revisit.max-wait (4w) is shorter",
        ),
        (
            "[plugins.adaptive]\ncomponent = \"builtin:adaptive\"\nsettings = { initial-wait = 60 }\n",
            "p.toml:4:29: note: initial-wait (1m) is shorter than revisit.min-wait (1h), which applies instead",
        ),
    ] {
        let notes = notices(text);
        assert!(notes.starts_with(expected), "{notes}");
    }
    for text in [
        // Both default waits are equal.
        "[revisit]\ndefault-wait = \"3d\"\n",
        &format!("{own}[revisit]\ndefault-wait = \"5d\"\n"),
        // These evaluators do not answer for every document. The wait applies to the others.
        "[revisit]\ndefault-wait = \"2d\"\n[stacks]\nwait = [\"feed-trigger\"]\n",
        "[revisit]\ndefault-wait = \"2d\"\n[plugins.adaptive]\ncomponent = \"builtin:adaptive\"\nsettings = { media-types = [\"text/*\"] }\n",
    ] {
        let notes = notices(text);
        assert!(!notes.contains("wait"), "{notes}");
    }
}
