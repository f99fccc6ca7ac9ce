//! `opilio plugin replace` and `opilio job tables`.

use opilio_stories::until;
use serde_json::Value;

use crate::command::Home;
use crate::job::{Gate, job_log, state};

/// Returns the shipped HTML extractor with an added section, so that its digest differs.
fn html_extractor() -> Vec<u8> {
    let mut component = opilio_builtin::find("html").unwrap().component.to_vec();
    component.extend([0, 8, 6]);
    component.extend(b"remark!");
    component
}

/// Returns the same with an unused module. Compiling its function (50,000 variables in 800 loops) would take gigabytes of memory.
fn costly_extractor() -> Vec<u8> {
    fn number(mut n: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while n >= 0x80 {
            bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        bytes.push(n as u8);
        bytes
    }
    let section = |id: u8, content: Vec<u8>| [vec![id], number(content.len()), content].concat();
    let (variables, loops) = (50_000, 800);
    let mut body = [vec![1], number(variables), vec![0x7f]].concat();
    body.extend([3, 0x40].repeat(loops));
    for variable in 0..variables {
        let variable = number(variable);
        body.extend([&[0x20], &*variable, &[0x41, 1, 0x6a, 0x21], &*variable].concat());
    }
    body.extend([0x20, 0, 0x0d, 0, 0x0b].repeat(loops));
    body.push(0x0b);
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vec![1, 0x60, 0, 0]),
        section(3, vec![1, 0]),
        section(10, [vec![1], number(body.len()), body].concat()),
    ];
    [html_extractor(), section(1, module.concat())].concat()
}

#[test]
fn the_compiler_process_ends_with_its_input() {
    let ended = Home::new().run(&["compile-components"]).code(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
}

#[test]
fn every_command_refuses_a_component_that_is_too_costly_to_compile() {
    let home = Home::new();
    home.file("costly.wasm", costly_extractor());
    home.profile("stacks.extract = ['pages']\nplugins.pages.component = 'costly.wasm'");
    for command in [
        ["plugin", "inspect", "costly.wasm"],
        ["plugin", "check", "costly.wasm"],
        ["profile", "check", "p.toml"],
    ] {
        let ended = home.run(&command);
        let output = format!("{}{}", ended.out, ended.err);
        assert!(
            output.contains("is too costly to compile: function")
                && output.contains("50000 local variables and 800 loops"),
            "{command:?}: {output}"
        );
    }
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
    until("the seed is requested", || gate.requests_for("/") == 1).await;

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
    let tables = tables.code(0).out;
    let first: Value = serde_json::from_str(tables.lines().next().unwrap()).unwrap();
    assert_eq!(first["rows"], 2, "{tables}");

    let replace = |arguments: &[&str]| {
        let all = ["plugin", "replace", "job"].into_iter();
        home.run(&all.chain(arguments.iter().copied()).collect::<Vec<_>>())
    };
    home.file("costly.wasm", costly_extractor());
    let costly = replace(&["pages", "costly.wasm"]).code(2);
    assert!(costly.err.contains("too costly to compile"), "{costly:?}");
    let refused = replace(&["pages", "other.txt"]).code(2);
    assert!(refused.err.contains("not replaced: "), "{refused:?}");
    assert!(
        refused.err.contains("not a WebAssembly component"),
        "{refused:?}"
    );
    let refused = replace(&["pages", "new.wasm", "--settings", "{"]).code(2);
    assert!(
        refused.err.contains("invalid JSON in --settings"),
        "{refused:?}"
    );
    let refused = replace(&["pages", "oci://"]).code(2);
    assert!(refused.err.starts_with("opilio: "), "{refused:?}");

    let replaced = replace(&["pages", "new.wasm#html"]).code(0);
    assert!(replaced.out.starts_with("pages was css "), "{replaced:?}");
    assert!(replaced.out.contains(", is html "), "{replaced:?}");
    gate.open();
    assert_eq!(running.wait(), 0);
    let requests = gate.requests();
    assert_eq!(
        requests,
        ["/", "/next", "/a"],
        "the new plugin finds the link"
    );

    let log = job_log(&home);
    assert!(
        log.contains(&format!(" => {}", replaced.out.trim_end())),
        "{log}"
    );
    assert!(log.contains(" tables --reload => read again"), "{log}");
    assert_eq!(log.matches(" => refused: not replaced").count(), 2, "{log}");

    // A finished job has no tables in memory. A plugin is replaced for its next start.
    assert_eq!(state(&home).as_deref(), Some("finished"));
    let refused = home.run(&["job", "tables", "job"]).code(1);
    assert!(refused.err.contains("no process runs job"), "{refused:?}");
    let replaced = replace(&["pages", "css"]).code(0);
    assert!(
        replaced.out.contains("when the job resumes"),
        "{replaced:?}"
    );
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    let kept = std::fs::read_to_string(home.job().join("plugins.json")).unwrap();
    assert!(kept.contains("\"component\": \"builtin:css\""), "{kept}");

    // Settings of a replacement override those of the profile, so a change of the profile's settings is refused.
    let setting = "plugins.pages.settings.follow-nofollow=false";
    let set = || home.run(&["job", "set", "job", setting]);
    let in_force = || {
        let named = ["job", "settings", "job", "plugins.pages", "--json"];
        let settings = home.run(&named).code(0).out;
        let settings = settings.lines().map(|line| -> Value {
            let one: Value = serde_json::from_str(line).unwrap();
            assert!(one["key"].as_str().unwrap().starts_with("plugins.pages."));
            one
        });
        let own = [
            "plugins.pages.component",
            "plugins.pages.settings.follow-nofollow",
        ];
        let own = settings.filter(|one| own.contains(&one["key"].as_str().unwrap()));
        own.map(|one| one["value"].clone()).collect::<Vec<_>>()
    };
    replace(&["pages", "html"]).code(0);
    set().code(0);
    assert_eq!(in_force(), ["builtin:html".into(), Value::from(false)]);
    replace(&["pages", "html", "--settings", "{\"follow-nofollow\": true}"]).code(0);
    assert_eq!(in_force(), ["builtin:html".into(), Value::from(true)]);
    let refused = set().code(2);
    assert!(refused.err.contains("would have no effect"), "{refused:?}");
    assert!(refused.err.contains("--settings JSON"), "{refused:?}");
}
