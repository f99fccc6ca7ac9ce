//! Overrides: the settings of URIs and queues, their origins, and refused overrides.

use std::fmt::Write;
use std::time::{Duration, Instant};

use opilio_profile::{
    PrecedencePolicy, Profile, RobotsPolicy, ServerGroup, Strategy, StrippedEqual, UriContext,
    UriPrecedencePolicy,
};
use opilio_uri::Uri;

use crate::{check, context, faults_of, profile};

fn uri(text: &str) -> Uri {
    Uri::parse(text).unwrap()
}

/// Checks the shortest delay, in seconds, of a URI's queue.
#[track_caller]
fn check_delay(profile: &Profile, text: &str, seconds: u64) {
    let queue = profile.queue_name(&uri(text));
    let settings = profile.queue_settings(&queue);
    assert_eq!(
        settings.politeness.min_delay,
        Duration::from_secs(seconds),
        "{text} in {queue}"
    );
    let same = profile.effective(&uri(text));
    assert_eq!(same.politeness, settings.politeness, "{text}");
    let waits = (settings.retry_delay, settings.retry_delay_max);
    assert_eq!((same.retry.delay, same.retry.delay_max), waits, "{text}");
    assert_eq!(same.retry.max_retries, settings.max_retries, "{text}");
}

#[test]
fn the_last_matching_override_wins_key_by_key() {
    let profile = profile(
        r#"
        [politeness]
        max-delay = "9s"
        [[override]]
        match = { domain = ["example.org"] }
        politeness = { min-delay = "3s", retry-after-max = "1h" }
        [[override]]
        match.host = ["www.example.org", "WWW2.example.org."]
        politeness.min-delay = "4s"
        [[override]]
        match.surt = ["http://(org,example,www"]
        politeness.crawl-delay-max = "10s"
        "#,
    );
    check_delay(&profile, "http://example.com/", 2);
    check_delay(&profile, "http://notexample.org/", 2);
    check_delay(&profile, "http://example.org/", 3);
    check_delay(&profile, "https://a.b.example.org:81/", 3);
    check_delay(&profile, "http://www.example.org/x", 4);
    check_delay(&profile, "http://www.example.org:81/x", 4);
    check_delay(&profile, "http://www2.example.org/x", 4);
    check_delay(&profile, "http://a.www.example.org/x", 3);
    let all = profile.queue_settings("org,example,www,");
    assert_eq!(all.politeness.max_delay, Duration::from_secs(9));
    assert_eq!(all.politeness.retry_after_max, Duration::from_secs(3600));
    assert_eq!(all.politeness.crawl_delay_max, Duration::from_secs(10));
    assert_eq!(
        profile.settings().politeness.min_delay,
        Duration::from_secs(2)
    );
}

#[test]
fn overrides_apply_in_their_order_however_exactly_they_match() {
    let table = |matching: &str, seconds: u32| {
        format!(
            "[[override]]\nmatch = {{ {matching} }}\npoliteness = {{ min-delay = \"{seconds}s\" }}\n"
        )
    };
    let (host, domain) = (
        table("host = [\"www.a.org\"]", 4),
        table("domain = [\"a.org\"]", 3),
    );
    check_delay(&profile(&format!("{host}{domain}")), "http://www.a.org/", 3);
    check_delay(&profile(&format!("{domain}{host}")), "http://www.a.org/", 4);
}

#[test]
fn all_conditions_must_match_and_any_item_of_a_list() {
    let profile = profile(
        r#"
        [[override]]
        match = { domain = ["a.org", "b.org"], port = [8080, 8081], queue = ["org,a,#8080", "org,b,#8081"] }
        queue.precedence = 1
        [[override]]
        match = { domain = ["a.org"], regex = '\.(pdf|PDF)$', source = ["a.org"] }
        strategy = "fixed"
        "#,
    );
    let precedence = |text: &str| {
        profile
            .queue_settings(&profile.queue_name(&uri(text)))
            .precedence
    };
    assert_eq!(precedence("http://a.org:8080/"), 1);
    assert_eq!(precedence("http://b.org:8081/"), 1);
    assert_eq!(precedence("http://a.org:8081/"), 3);
    assert_eq!(precedence("http://c.org:8080/"), 3);
    let strategy = |text: &str, source: Option<&str>| {
        let uri = uri(text);
        profile
            .effective_with(&UriContext {
                source,
                ..UriContext::of(&uri)
            })
            .strategy
    };
    assert_eq!(
        strategy("http://www.a.org/x.pdf", Some("http://a.org/")),
        Strategy::Fixed
    );
    assert_eq!(
        strategy("http://www.a.org/x.pdf", Some("http://c.org/")),
        Strategy::Snapshot
    );
    assert_eq!(strategy("http://www.a.org/x.pdf", None), Strategy::Snapshot);
    assert_eq!(
        strategy("http://www.a.org/x.pdf?", Some("http://a.org/")),
        Strategy::Snapshot
    );
    assert_eq!(
        strategy("http://www.b.org/x.pdf", Some("http://a.org/")),
        Strategy::Snapshot
    );
}

#[test]
fn a_folder_of_a_site_may_have_another_strategy() {
    let profile = profile(
        r#"
        strategy = "revisit"
        [[override]]
        match.surt = ["http://(dk,avisen,)/arkiv/"]
        strategy = "snapshot"
        uri.precedence = 9
        uri.precedence-policy = "base"
        robots.policy = "ignore"
        "#,
    );
    let archive = profile.effective(&uri("https://avisen.dk/Arkiv/1999/x"));
    assert_eq!(archive.strategy, Strategy::Snapshot);
    assert_eq!(
        (archive.uri.precedence, archive.uri.precedence_policy),
        (9, UriPrecedencePolicy::Base)
    );
    assert_eq!(archive.robots.policy, RobotsPolicy::Ignore);
    let front = profile.effective(&uri("https://avisen.dk/"));
    assert_eq!(front.strategy, Strategy::Revisit);
    assert_eq!(profile.frontier.embed_preference(front.strategy), 0);
    assert_eq!(profile.frontier.embed_preference(archive.strategy), 1);
}

#[test]
fn lists_are_replaced_whole_and_stacks_edited() {
    let profile = profile(
        r#"
        [plugins.mine]
        component = "builtin:html"
        [[override]]
        match.domain = ["a.org"]
        retry.statuses = [500]
        stacks = { scope = ["accept"], extract = { before = ["mine"], without = ["js"] } }
        [[override]]
        match.host = ["www.a.org"]
        stacks.extract = { after = { mine = ["regex-strip"] }, without = ["css"] }
        stacks.last-resort = ["html"]
        "#,
    );
    assert!(profile.notices.is_empty(), "{}", profile.notices);
    assert!(profile.plugins.contains_key("regex-strip") && profile.plugins.contains_key("accept"));
    let outside = profile.effective(&uri("http://b.org/"));
    let data = [
        "robots",
        "sitemap",
        "feed",
        "manifest",
        "svg",
        "media",
        "office",
        "pdf",
        "swf",
        "ftp-listing",
        "whois",
        "json",
        "xml",
    ];
    let with_data = |start: &[&'static str]| [start, &data].concat();
    assert_eq!(
        outside.stacks.extract,
        with_data(&["http", "html", "css", "js"])
    );
    assert_eq!(outside.retry.statuses, [429, 503]);
    let domain = profile.effective(&uri("http://a.org/"));
    assert_eq!(domain.stacks.scope, ["accept"]);
    assert_eq!(
        domain.stacks.extract,
        with_data(&["mine", "http", "html", "css"])
    );
    assert_eq!(domain.retry.statuses, [500]);
    let host = profile.effective(&uri("http://www.a.org/"));
    assert_eq!(
        host.stacks.extract,
        with_data(&["mine", "regex-strip", "http", "html"])
    );
    assert_eq!(host.stacks.last_resort, ["html"]);
}

#[test]
fn media_types_match_only_responses() {
    let profile = profile(
        r#"
        [[override]]
        match = { media-type = ["image/*", "text/CSS"] }
        revisit = { min-wait = "2h", stripped-equal = "drop", refresh-embeds = true }
        stacks.digest = ["regex-strip"]
        "#,
    );
    let uri = uri("http://a.org/x");
    for (media_type, expected) in [
        ("image/png", StrippedEqual::Drop),
        ("IMAGE/png; x=y", StrippedEqual::Drop),
        ("text/css", StrippedEqual::Drop),
        ("text/html", StrippedEqual::Archive),
        ("imagex/png", StrippedEqual::Archive),
        ("", StrippedEqual::Archive),
    ] {
        let revisit = profile.effective_response(&uri, media_type).revisit.clone();
        assert_eq!(revisit.stripped_equal, expected, "{media_type}");
    }
    assert_eq!(
        profile.effective(&uri).revisit.stripped_equal,
        StrippedEqual::Archive
    );
    assert!(
        profile
            .effective_response(&uri, "image/gif")
            .revisit
            .refresh_embeds
    );
}

#[test]
fn delays_may_depend_on_the_time_of_day() {
    let profile = profile(
        r#"
        [[override]]
        match = { domain = ["a.org"], time = "22:00-06:00" }
        politeness = { min-delay = "1s" }
        strategy = "revisit"
        "#,
    );
    let at = |time: &str| {
        let now = format!("2026-07-01T{time}:00Z").parse().unwrap();
        let uri = uri("http://a.org/");
        let settings = profile.effective_with(&UriContext {
            now: Some(now),
            ..UriContext::of(&uri)
        });
        let queue = profile.queue_settings_at("org,a,", now);
        assert_eq!(queue.politeness, settings.politeness);
        (queue.politeness.min_delay.as_secs(), settings.strategy)
    };
    let hash =
        |time: &str| profile.settings_hash_at(format!("2026-07-01T{time}:00Z").parse().unwrap());
    assert_eq!(hash("23:00"), hash("05:00"));
    assert_ne!(hash("23:00"), hash("12:00"));
    assert_eq!(profile.settings_hash(), hash("12:00"));
    assert_eq!(at("23:00"), (1, Strategy::Revisit));
    assert_eq!(at("12:00"), (2, Strategy::Snapshot));
    assert_eq!(
        profile
            .queue_settings("org,a,")
            .politeness
            .min_delay
            .as_secs(),
        2
    );
}

#[test]
fn a_queue_may_be_forced_and_has_settings_of_its_own() {
    let profile = profile(
        r#"
        frontier.parallel-queues = 4
        [[override]]
        match = { regex = '/news/', domain = ["a.org"] }
        queue.name = "news"
        [[override]]
        match.host = ["mirror.a.org"]
        queue.name = "org,a,"
        [[override]]
        match.domain = ["a.org"]
        queue = { valence = 5, group = "farm" }
        [[override]]
        match.queue = ["news"]
        queue = { valence = 7, precedence-policy = "success-counts", precedence-steps = [5], budget = 100 }
        quotas.queue = { fetched = 10, bytes = "1GiB", novel = 0 }
        "#,
    );
    assert_eq!(profile.queue_name(&uri("http://www.a.org/news/1")), "news");
    assert_eq!(
        profile
            .queue_name(&uri("http://b.org/news/1"))
            .split("##")
            .next(),
        Some("org,b,")
    );
    assert_eq!(profile.queue_name(&uri("http://mirror.a.org/x")), "org,a,");
    assert_eq!(profile.queue_name(&uri("dns:mirror.a.org")), "org,a,");
    assert_eq!(profile.queue_name(&uri("whois:a.org")), "whois");

    let news = profile.queue_settings("news");
    assert_eq!((news.valence, &news.group), (7, &None));
    assert_eq!(profile.server_group("news"), ServerGroup::None);
    assert_eq!(
        (&news.precedence_policy, news.budget),
        (&PrecedencePolicy::SuccessCounts(vec![5]), Some(100))
    );
    let quota = news.quota;
    assert_eq!(
        (quota.fetched, quota.bytes, quota.novel),
        (Some(10), Some(1 << 30), None)
    );
    assert!(quota.is_some() && !news.host_quota.is_some());

    for queue in ["org,a,", "org,a,##3", "org,a,www,#81", "org,a,www,#81##2"] {
        let settings = profile.queue_settings(queue);
        assert_eq!(settings.group.as_deref(), Some("farm"), "{queue}");
        let group = ServerGroup::Named("farm".to_owned());
        assert_eq!(profile.server_group(queue), group, "{queue}");
    }
    assert_eq!(profile.queue_settings("whois").valence, 1);
    assert_eq!(profile.queue_settings("no key at all").valence, 1);
}

#[test]
fn canonical_forms_may_have_rules_by_site() {
    let profile = profile(
        r#"
        [canonicalization]
        rules = ["lowercase", { regex = '(.*)[?&]print=1', replace = "${1}" }]
        [[override]]
        match.domain = ["a.org"]
        canonicalization.rules = ["strip-www"]
        [[override]]
        match.surt = ["http://(org,a,)/shop/"]
        canonicalization.rules = [{ regex = '(?<page>[^?]*).*', replace = '${page}' }]
        "#,
    );
    let canonical = |text: &str| profile.canonical(&uri(text));
    assert_eq!(
        canonical("http://www.b.org/A?print=1"),
        "http://www.b.org/a"
    );
    assert_eq!(
        canonical("http://www.a.org/A?print=1"),
        "http://a.org/A?print=1"
    );
    assert_eq!(
        canonical("http://a.org/shop/A?print=1"),
        "http://a.org/shop/A"
    );
    assert_eq!(
        profile
            .canonicaliser_for(&uri("http://a.org/"))
            .rules()
            .len(),
        1
    );
}

#[test]
fn queue_keys_limit_the_conditions_for_queues() {
    let with = |key: &str, matching: &str| {
        let text = format!(
            "frontier.queue-key = \"{key}\"\n[[override]]\nmatch = {{ {matching} }}\nqueue.valence = 2\n"
        );
        match Profile::parse("p.toml", &text, &context()) {
            Ok(profile) => {
                let queue = profile.queue_name(&uri("http://www.example.co.uk:8080/x"));
                format!("{queue} {}", profile.queue_settings(&queue).valence)
            }
            Err(faults) => faults.iter().next().unwrap().problem.clone(),
        }
    };
    let unknown = |condition: &str| {
        format!(
            "queue.valence is needed for a queue as a whole, when match.{condition} is not known"
        )
    };
    let authority = "uk,co,example,www,#8080 2";
    for matching in [
        "domain = [\"co.uk\"]",
        "host = [\"www.example.co.uk\"]",
        "port = [8080]",
        "surt = [\"http://(uk,co,exam\"]",
        "surt = [\"http://(uk,co,example,www,:8080)/\"]",
        "surt = [\"http://www.example.co.uk:8080/\"]",
        "queue = [\"uk,co,example,www,#8080\"]",
    ] {
        assert_eq!(with("surt-authority", matching), authority, "{matching}");
    }
    assert_eq!(with("surt-authority", "port = [443]"), unknown("port"));
    assert_eq!(
        with("surt-authority", "surt = [\"http://(uk,co,example,)/a\"]"),
        unknown("surt")
    );
    assert_eq!(
        with("surt-authority", "surt = [\"ftp://(uk,\"]"),
        unknown("surt")
    );
    assert_eq!(with("surt-authority", "regex = \"x\""), unknown("regex"));
    assert_eq!(
        with("surt-authority", "source = [\"a.org\"]"),
        unknown("source")
    );
    assert_eq!(
        with("surt-authority", "media-type = [\"text/html\"]"),
        unknown("media-type")
    );
    assert_eq!(
        with("host", "host = [\"www.example.co.uk\"]"),
        "www.example.co.uk 2"
    );
    assert_eq!(
        with("host", "surt = [\"http://(uk,co,example,www,\"]"),
        "www.example.co.uk 2"
    );
    assert_eq!(
        with("host", "surt = [\"http://(uk,co,example,www,)/\"]"),
        unknown("surt")
    );
    assert_eq!(with("host", "port = [8080]"), unknown("port"));
    assert_eq!(
        with("domain", "domain = [\"example.co.uk\"]"),
        "example.co.uk 2"
    );
    assert_eq!(with("domain", "domain = [\"uk\"]"), "example.co.uk 2");
    assert_eq!(
        with("domain", "surt = [\"http://(uk,co,example,\"]"),
        "example.co.uk 2"
    );
    assert_eq!(
        with("domain", "surt = [\"http://(uk,co,example,www,\"]"),
        unknown("surt")
    );
    assert_eq!(
        with("domain", "domain = [\"www.example.co.uk\"]"),
        unknown("domain")
    );
    assert_eq!(
        with("domain", "host = [\"example.co.uk\"]"),
        unknown("host")
    );
}

#[test]
fn errors_name_the_stage_at_which_a_setting_is_needed() {
    check(
        r#"
[[override]]
match = { regex = "x", media-type = ["text/html"] }
politeness.min-delay = "1s"
strategy = "revisit"
revisit.min-wait = "2h"
archive.prefix = "X"
fetch = { scratch-max = "1MiB", referer = false }
quotas = { source = { bytes = 1 } }
plugins.hops.settings.max = 3
workers = 5
"#,
        r#"
p.toml:4:12: politeness.min-delay is needed for a queue as a whole, when match.media-type is not known (it is known only when the response has come)
    4 | politeness.min-delay = "1s"
      |            ^^^^^^^^^
p.toml:5:1: strategy is needed before the URI is fetched, when match.media-type is not known (it is known only when the response has come)
    5 | strategy = "revisit"
      | ^^^^^^^^
p.toml:7:1: archive is needed once for the whole job and cannot be overridden (set it for the whole job, outside of overrides)
    7 | archive.prefix = "X"
      | ^^^^^^^
p.toml:8:11: fetch.scratch-max is needed once for the whole job and cannot be overridden (set it for the whole job, outside of overrides)
    8 | fetch = { scratch-max = "1MiB", referer = false }
      |           ^^^^^^^^^^^
p.toml:8:33: fetch.referer is needed before the URI is fetched, when match.media-type is not known (it is known only when the response has come)
    8 | fetch = { scratch-max = "1MiB", referer = false }
      |                                 ^^^^^^^
p.toml:9:12: quotas.source is needed once for the whole job and cannot be overridden (set it for the whole job, outside of overrides)
    9 | quotas = { source = { bytes = 1 } }
      |            ^^^^^^
p.toml:10:23: plugins.hops.settings.max is needed before the URI is fetched, when match.media-type is not known (it is known only when the response has come)
   10 | plugins.hops.settings.max = 3
      |                       ^^^
p.toml:11:1: workers is needed once for the whole job and cannot be overridden (set it for the whole job, outside of overrides)
   11 | workers = 5
      | ^^^^^^^
"#,
    );
}

#[test]
fn only_the_uri_decides_about_identity() {
    check(
        r#"
[[override]]
match = { source = ["a.org"] }
queue.name = "x"
[[override]]
match = { time = "01:00-02:00" }
queue.name = "x"
[[override]]
match = { queue = ["a"] }
queue.name = "x"
[[override]]
match = { regex = "x" }
canonicalization.rules = []
"#,
        r#"
p.toml:4:7: queue.name must be the same whenever a URI is found, so it cannot depend on match.source (match surt, host, domain, port or regex)
    4 | queue.name = "x"
      |       ^^^^
p.toml:7:7: queue.name must be the same whenever a URI is found, so it cannot depend on match.time (match surt, host, domain, port or regex)
    7 | queue.name = "x"
      |       ^^^^
p.toml:10:7: queue.name must be the same whenever a URI is found, so it cannot depend on match.queue (match surt, host, domain, port or regex)
   10 | queue.name = "x"
      |       ^^^^
p.toml:13:18: canonicalization.rules applies to whole sites, so it cannot depend on match.regex (match surt, host or domain)
   13 | canonicalization.rules = []
      |                  ^^^^^
"#,
    );
}

#[test]
fn errors_of_overrides_have_places() {
    check(
        include_str!("override-faults.toml"),
        include_str!("override-faults.txt"),
    );
}

#[test]
fn relations_are_checked_for_each_override() {
    check(
        r#"
[politeness]
max-delay = "6s"
[[override]]
match.domain = ["a.org"]
politeness.min-delay = "7s"
retry.delay = "5h"
[[override]]
match.domain = ["b.org"]
politeness = { min-delay = "9s", max-delay = "8s" }
uri.precedence-policy = "file"
revisit = { max-wait = "2d" }
"#,
        r#"
p.toml:6:24: min-delay (7s) is longer than max-delay (6s)
    6 | politeness.min-delay = "7s"
      |                        ^^^^
p.toml:7:15: delay (5h) is longer than delay-max (4h) (delay-max is not written and is "4h" by default)
    7 | retry.delay = "5h"
      |               ^^^^
p.toml:10:46: max-delay (8s) is shorter than min-delay (9s)
   10 | politeness = { min-delay = "9s", max-delay = "8s" }
      |                                              ^^^^
p.toml:11:25: the policy is "file", and there is no precedence-file (set uri.precedence-file = "ranks.txt")
   11 | uri.precedence-policy = "file"
      |                         ^^^^^^
p.toml:12:24: max-wait (2d) is shorter than default-wait (3d) (default-wait is not written and is "3d" by default)
   12 | revisit = { max-wait = "2d" }
      |                        ^^^^
"#,
    );
}

#[test]
fn a_proxy_login_may_be_split_between_profile_and_override() {
    check(
        r#"
[fetch]
proxy = "http://proxy.example.org:3128"
proxy-user = "all"
proxy-password = { env = "PROXY" }
[[override]]
match.host = ["a.org"]
fetch.proxy-user = "one"
[[override]]
match.host = ["b.org"]
fetch = { proxy = "http://other.example.org:3128", proxy-user = "two" }
[[override]]
match.host = ["c.org"]
fetch.proxy = ""
[[override]]
match.host = ["d.org"]
fetch.proxy-user = ""
"#,
        r#"
p.toml:17:20: the proxy needs both a user name and a password (set both fetch.proxy-user and fetch.proxy-password, or neither)
   17 | fetch.proxy-user = ""
      |                    ^^
"#,
    );
}

#[test]
fn the_longer_wait_of_contradicting_overrides_applies() {
    let profile = profile(
        r#"
        [[override]]
        match.domain = ["a.org"]
        politeness = { max-delay = "2s" }
        retry = { delay-max = "1h" }
        revisit = { max-wait = "3d" }
        [[override]]
        match.domain = ["a.org"]
        politeness = { min-delay = "4s" }
        retry = { delay = "2h", max-retries = 3 }
        revisit = { min-wait = "4d", default-wait = "5d", max-wait = "6d" }
        [[override]]
        match.domain = ["a.org"]
        revisit = { max-wait = "3d" }
        "#,
    );
    let settings = profile.effective(&uri("http://a.org/"));
    assert_eq!(settings.politeness.max_delay, Duration::from_secs(4));
    let queue = profile.queue_settings("org,a,");
    assert_eq!(
        (queue.max_retries, queue.retry_delay_max),
        (3, Duration::from_secs(2 * 3600))
    );
    let day = Duration::from_secs(24 * 3600);
    let revisit = &settings.revisit;
    assert_eq!(
        (revisit.min_wait, revisit.default_wait, revisit.max_wait),
        (day * 4, day * 4, day * 4)
    );
}

#[test]
fn every_value_has_its_origin() {
    let profile = profile(
        r#"name = "x"
strategy = "revisit"
[politeness]
min-delay = "3s"
[[override]]
match.domain = ["a.org"]
politeness.min-delay = "4s"
stacks.extract = { without = ["js"] }
[[override]]
match.host = ["www.a.org"]
politeness = { min-delay = "5s" }
quotas.host.bytes = "1GiB"
strategy = "fixed"
"#,
    );
    let explained = profile.explain(&uri("http://www.a.org/"));
    let explanation = |key: &str| {
        let found = explained.iter().find(|one| one.key == key);
        found.map_or_else(
            || panic!("{key}"),
            |one| format!("{} {}", one.toml(), one.place),
        )
    };
    assert_eq!(explanation("name"), "\"x\" p.toml:1");
    assert_eq!(explanation("strategy"), "\"fixed\" p.toml:13");
    assert_eq!(explanation("politeness.min-delay"), "\"5s\" p.toml:11");
    assert_eq!(explanation("politeness.max-delay"), "\"5s\" default");
    assert_eq!(
        explanation("stacks.extract"),
        "[\"http\", \"html\", \"css\", \"robots\", \"sitemap\", \"feed\", \"manifest\", \"svg\", \"media\", \
         \"office\", \"pdf\", \"swf\", \"ftp-listing\", \"whois\", \"json\", \"xml\"] p.toml:8"
    );
    assert_eq!(explanation("quotas.host.bytes"), "\"1GiB\" p.toml:12");
    assert_eq!(explanation("quotas.host.novel"), "\"none\" default");
    assert_eq!(explanation("frontier.embed-preference-hops"), "0 default");
    assert_eq!(explanation("archive.prefix"), "\"WEB\" default");
    assert!(
        !explained
            .iter()
            .any(|one| one.key.starts_with("override") || one.key == "seeds-file")
    );
    let elsewhere = profile.explain(&uri("http://b.org/"));
    let delay = elsewhere
        .iter()
        .find(|one| one.key == "politeness.min-delay")
        .unwrap();
    assert_eq!(
        format!("{} {}", delay.toml(), delay.place),
        "\"3s\" p.toml:4"
    );
}

#[test]
fn only_settings_change_the_hash_of_settings() {
    let hash = |text: &str| profile(text).settings_hash();
    let base = hash("");
    assert_eq!(
        base,
        hash(
            "# a comment\nname = \"x\"\ndescription = \"y\"\nseeds = [\"http://localhost/\"]\nworkers = 25"
        )
    );
    let others = [
        "workers = 24",
        "politeness.min-delay = \"3s\"",
        "[[override]]\nmatch.domain = [\"a.org\"]\nqueue.valence = 2",
        "[[override]]\nmatch.domain = [\"a.org\"]\nqueue.valence = 3",
    ];
    let mut hashes: Vec<u64> = others.iter().map(|text| hash(text)).collect();
    hashes.push(base);
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), others.len() + 1);
}

#[test]
fn precedences_come_from_a_file_beside_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    let ranks = folder.path().join("ranks.txt");
    std::fs::write(&ranks, "http://a.org/ 7\n").unwrap();
    let text = "[[override]]\nmatch.domain = [\"a.org\"]\nuri = { precedence-policy = \"file\", precedence-file = \"ranks.txt\" }\n";
    std::fs::write(&path, text).unwrap();
    let profile = Profile::load(&path, &context()).unwrap();
    let settings = profile.effective(&uri("http://a.org/"));
    assert_eq!(settings.uri.precedence_policy, UriPrecedencePolicy::File);
    assert_eq!(
        settings
            .uri
            .precedences
            .as_ref()
            .unwrap()
            .precedence(&uri("http://a.org/")),
        Some(7)
    );
    assert!(
        profile
            .effective(&uri("http://b.org/"))
            .uri
            .precedences
            .is_none()
    );
    std::fs::write(&ranks, "http://a.org/ 8\n").unwrap();
    assert_ne!(
        Profile::load(&path, &context()).unwrap().settings_hash(),
        profile.settings_hash()
    );
    std::fs::write(&ranks, "http://a.org/\n").unwrap();
    let printed = Profile::load(&path, &context()).unwrap_err().to_string();
    assert!(
        printed.contains("ranks.txt: line 1: no number after \"http://a.org/\" ("),
        "{printed}"
    );
    assert!(printed.contains("p.toml:3:55: "), "{printed}");
}

#[test]
fn a_queue_name_outside_of_overrides_is_refused() {
    check(
        "[queue]\nname = \"x\"\n",
        "p.toml:2:1: all URIs would be in one queue (set it in an override, for the URIs that match)\n    2 | name = \"x\"\n      | ^^^^",
    );
}

/// Compares ten thousand overrides of all kinds with a search through the list in order.
#[test]
fn ten_thousand_overrides_are_matched_quickly() {
    let mut text = String::new();
    for number in 0..10_000_u32 {
        let site = number % 500;
        let matching = match number % 5 {
            0 => format!("domain = [\"s{site}.org\"]"),
            1 => format!("host = [\"www.s{site}.org\"]"),
            2 => format!("surt = [\"http://(org,s{site},\"]"),
            3 => format!("queue = [\"org,s{site},www,\"]"),
            _ => format!(
                "surt = [\"http://(org,s{site},www,\"], port = [{}]",
                8000 + number % 3
            ),
        };
        write!(
            text,
            "[[override]]\nmatch = {{ {matching} }}\nquotas.queue.fetched = {}\nuri.precedence = {}\n",
            number + 1,
            number % 251
        )
        .unwrap();
    }
    let profile = profile(&text);
    let expected = |site: u32, host: &str, port: u32| {
        (0..10_000_u32).rev().find(|number| {
            number % 500 == site
                && match number % 5 {
                    0 | 2 => true,
                    1 => host == "www",
                    3 => host == "www" && port == 80,
                    _ => host.starts_with("www") && port == 8000 + number % 3,
                }
        })
    };
    let started = Instant::now();
    for round in 0..3 {
        for site in 0..500 {
            for (host, port) in [("www", 80), ("www", 8001), ("a", 80)] {
                let uri = uri(&format!("http://{host}.s{site}.org:{port}/{round}"));
                let last = expected(site, host, port);
                let precedence = profile.effective(&uri).uri.precedence;
                assert_eq!(
                    u32::from(precedence),
                    last.map_or(1, |number| number % 251),
                    "{uri}"
                );
                let queue = profile.queue_settings(&profile.queue_name(&uri));
                assert_eq!(
                    queue.quota.fetched,
                    last.map(|number| u64::from(number) + 1),
                    "{uri}"
                );
            }
        }
    }
    // A thousand times the usual time. A check of every override would take longer.
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    let one = profile.effective(&uri("http://www.s1.org/a"));
    let other = profile.effective(&uri("http://www.s1.org/b"));
    assert!(std::sync::Arc::ptr_eq(&one, &other));
}

#[test]
fn the_schema_of_overrides_has_the_overridable_settings() {
    let schema = Profile::schema();
    let tables = &schema["$defs"]["Override"]["properties"];
    let keys = |table: &str| -> Vec<&str> {
        tables[table]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect()
    };
    let fetch = keys("fetch");
    assert!(fetch.contains(&"referer") && fetch.contains(&"proxy") && fetch.contains(&"body-max"));
    assert!(!fetch.contains(&"scratch-max") && !fetch.contains(&"stop-grace"));
    assert_eq!(keys("quotas"), ["domain", "host", "queue"]);
    assert!(keys("queue").contains(&"name") && keys("stacks").contains(&"last-resort"));
    assert!(tables.get("archive").is_none() && tables.get("tables").is_none());
    let plugin = &tables["plugins"]["additionalProperties"]["properties"];
    assert_eq!(plugin.as_object().unwrap().len(), 1);
    assert!(!keys("stacks").contains(&"observe"));
    assert!(
        tables["politeness"]["properties"]["min-delay"]
            .get("default")
            .is_none()
    );
}

/// A forced queue name belongs to no host, so settings for sites do not apply to that queue. The override that forces it gets a
/// note.
#[test]
fn settings_for_sites_that_a_forced_queue_lacks_are_noted() {
    let notes = |text: &str| {
        let faults = faults_of(text);
        let problems = faults.iter().map(|fault| fault.problem.clone());
        problems
            .filter(|problem| problem.contains("do not apply to the queue"))
            .collect::<Vec<_>>()
    };
    let forced = "[[override]]\nmatch = { domain = [\"example.org\"], regex = 'mp4$' }\nqueue.name = \"large\"\n";
    let slow = |host: &str| {
        format!(
            "[[override]]\nmatch.host = [\"{host}\"]\npoliteness = {{ min-delay = \"9s\", max-delay = \"9s\" }}\nquotas.host.bytes = \"1GiB\"\n"
        )
    };
    let found = notes(&format!("{}{forced}", slow("www.example.org")));
    assert_eq!(
        found,
        [
            "settings of other overrides for sites do not apply to the queue \"large\": politeness.max-delay, politeness.min-delay, quotas.host"
        ]
    );
    // No note: the settings are for other sites, or for the queue itself.
    assert!(notes(&format!("{}{forced}", slow("notexample.org"))).is_empty());
    let itself = slow("www.example.org").replace(
        "match.host = [\"www.example.org\"]",
        "match.queue = [\"large\"]",
    );
    assert!(notes(&format!("{}{forced}{itself}", slow("example.org"))).is_empty());
    // A name in the form of a key belongs to the site of that key.
    let key = forced.replace("large", "org,example,www,");
    assert!(notes(&format!("{}{key}", slow("www.example.org"))).is_empty());
}
