//! Plugins of a job that are replaced, and its tables, by way of the command line.

use opilio_stories::until;
use serde_json::Value;

use crate::command::Home;
use crate::job::{Gate, job_log, state};

/// The HTML extractor that ships, in a file that is not byte for byte the same.
fn html_extractor() -> Vec<u8> {
    let mut component = opilio_builtin::find("html").unwrap().component.to_vec();
    component.extend([0, 8, 6]);
    component.extend(b"remark!");
    component
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_replaces_a_plugin_of_a_running_crawl() {
    let next = ("/next", "<a href='/a'>a</a>");
    let gate = Gate::serve(&[("/", ""), next, ("/a", "")]);
    let home = Home::new();
    home.profile(
        "name = 'gate'\n\
         stacks.extract = ['pages']\n\
         plugins.pages.component = 'builtin:css'\n\
         tables.some = { kind = 'regexes', rows = ['x', 'y'] }\n\
         tables.other = { kind = 'key-values', file = 'other.txt' }",
    );
    home.file("other.txt", "a\t1\n");
    home.file("new.wasm", html_extractor());
    let seeds = [gate.url("/"), gate.url("/next")];
    let mut command = vec!["crawl", "p.toml", "--job", "job"];
    command.extend(seeds.iter().flat_map(|seed| ["--seed", seed]));
    let mut running = home.start(&command);
    until("the seed is asked for", || gate.was_asked("/") == 1).await;

    let tables = home.run(&["job", "tables", "job"]).code(0).out;
    let lines: Vec<Vec<&str>> = tables
        .lines()
        .map(|line| line.split_whitespace().take(4).collect())
        .collect();
    assert_eq!(
        lines,
        [
            ["other", "key-values", "1", "rows"],
            ["some", "regexes", "2", "rows"]
        ]
    );
    home.file("other.txt", "a\t1\nb\t2\n");
    let tables = home.run(&["job", "tables", "job", "--reload", "--json"]);
    let tables: Value = serde_json::from_str(&tables.code(0).out).unwrap();
    assert_eq!(tables["tables"][0]["rows"], 2, "{tables}");

    let replace = |arguments: &[&str]| {
        let all = ["plugin", "replace", "job"].into_iter();
        home.run(&all.chain(arguments.iter().copied()).collect::<Vec<_>>())
    };
    let refused = replace(&["pages", "other.txt"]).code(1);
    assert!(refused.err.contains("nothing is replaced: "), "{refused:?}");
    assert!(
        refused.err.contains("no WebAssembly component"),
        "{refused:?}"
    );
    let refused = replace(&["pages", "new.wasm", "--settings", "{"]).code(2);
    assert!(refused.err.contains("--settings is no JSON"), "{refused:?}");
    let refused = replace(&["pages", "oci://"]).code(2);
    assert!(refused.err.starts_with("opilio: "), "{refused:?}");

    let replaced = replace(&["pages", "new.wasm#html"]).code(0);
    assert!(replaced.out.starts_with("pages was css "), "{replaced:?}");
    assert!(replaced.out.contains(", is html "), "{replaced:?}");
    gate.open();
    assert_eq!(running.wait(), 0);
    let asked = gate.asked();
    assert_eq!(asked, ["/", "/next", "/a"], "the new one finds the link");

    let log = job_log(&home);
    assert!(
        log.contains(&format!(" => {}", replaced.out.trim_end())),
        "{log}"
    );
    assert!(log.contains(" tables --reload => read again"), "{log}");
    assert_eq!(
        log.matches(" => refused: nothing is replaced").count(),
        1,
        "{log}"
    );

    // At rest it has no tables, and a plugin is replaced for when it goes on.
    assert_eq!(state(&home).as_deref(), Some("idle"));
    let refused = home.run(&["job", "tables", "job"]).code(1);
    assert!(refused.err.contains("no process runs job"), "{refused:?}");
    let replaced = replace(&["pages", "css"]).code(0);
    assert!(
        replaced.out.contains("when the job goes on"),
        "{replaced:?}"
    );
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    let kept = std::fs::read_to_string(home.job().join("plugins.json")).unwrap();
    assert!(kept.contains("\"component\": \"builtin:css\""), "{kept}");

    // Settings that came with a replacement go before the profile's, so that changing these would do nothing.
    let setting = "plugins.pages.settings.follow-nofollow=false";
    let set = || home.run(&["job", "set", "job", setting]);
    replace(&["pages", "html"]).code(0);
    set().code(0);
    replace(&["pages", "html", "--settings", "{\"follow-nofollow\": true}"]).code(0);
    let refused = set().code(2);
    assert!(refused.err.contains("would have no effect"), "{refused:?}");
    assert!(refused.err.contains("--settings JSON"), "{refused:?}");
}
