//! Profiles that extend others: effective values, their origins, and the places of errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use opilio_profile::{Layer, Origin, Profile, ProfileContext, Stage, TableSource};
use opilio_uri::Uri;

use crate::context;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn load(folder: &tempfile::TempDir, name: &str) -> Profile {
    Profile::load(&folder.path().join(name), &context()).unwrap_or_else(|faults| panic!("{faults}"))
}

fn refusal(folder: &tempfile::TempDir, name: &str) -> String {
    let faults = Profile::load(&folder.path().join(name), &context()).unwrap_err();
    faults
        .to_string()
        .replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn the_profile_of_a_crawl_overrides_that_of_its_institution() {
    let home = folder(&[
        (
            "house/house.toml",
            "extends = 'snapshot'\n\
             name = 'house'\n\
             workers = 7\n\
             politeness = { min-delay = '3s', max-delay = '9s' }\n\
             robots.agents = ['a', 'b']\n\
             stacks.extract = { without = ['swf'] }\n\
             tables.blocked = { kind = 'surt-prefixes', file = 'blocked.txt' }\n\
             [[override]]\n\
             match.domain = ['slow.org']\n\
             politeness.min-delay = '4s'\n",
        ),
        ("house/blocked.txt", ""),
        (
            "news.toml",
            "extends = 'house/house.toml'\n\
             politeness.max-delay = '8s'\n\
             robots.agents = ['c']\n\
             stacks.extract = { without = ['pdf'], after = ['regex-list'] }\n\
             [[override]]\n\
             match.host = ['www.slow.org']\n\
             politeness.min-delay = '5s'\n",
        ),
    ]);
    let news = load(&home, "news.toml");
    assert_eq!(news.name, "news");
    assert_eq!(news.workers, 7);
    let extract = news.settings().stacks.stage(Stage::Extract);
    assert!(
        !extract.iter().any(|name| name == "swf" || name == "pdf"),
        "{extract:?}"
    );
    assert_eq!(extract.last().unwrap(), "regex-list");
    assert_eq!(news.settings().robots.agents, ["c"]);
    // A path is relative to the file of the layer that has it, not to the profile.
    let TableSource::File(blocked) = &news.tables["blocked"].source else {
        panic!("{:?}", news.tables);
    };
    assert_eq!(*blocked, home.path().join("house/blocked.txt"));

    let explained = |uri: &str, key: &str| {
        let all = news.explain(&Uri::parse(uri).unwrap());
        let one = all.into_iter().find(|one| one.key == key).unwrap();
        let place = match &one.place {
            Origin::Default => "default".to_owned(),
            Origin::Written { file, line } => {
                let file = Path::new(file).file_name().unwrap().to_str().unwrap();
                format!("{file}:{line}")
            }
        };
        (one.toml(), place)
    };
    let explanation = |value: &str, place: &str| (value.to_owned(), place.to_owned());
    let site = "http://other.org/";
    assert_eq!(
        explained(site, "politeness.min-delay"),
        explanation("\"3s\"", "house.toml:4")
    );
    assert_eq!(
        explained(site, "politeness.max-delay"),
        explanation("\"8s\"", "news.toml:2")
    );
    assert_eq!(
        explained(site, "fetch.body-max"),
        explanation("\"4GiB\"", "snapshot.toml:34")
    );
    assert_eq!(
        explained("http://a.slow.org/", "politeness.min-delay"),
        explanation("\"4s\"", "house.toml:10")
    );
    assert_eq!(
        explained("http://www.slow.org/", "politeness.min-delay"),
        explanation("\"5s\"", "news.toml:7")
    );

    // A job keeps the layers, and does not need their files any more.
    let below = news.extended().to_vec();
    let own = Layer {
        file: "profile.toml".to_owned(),
        text: news.source_text().to_owned(),
        base: home.path().to_owned(),
        files: BTreeMap::new(),
    };
    std::fs::remove_file(home.path().join("house/house.toml")).unwrap();
    let change = Layer {
        file: "changes/000001.toml".to_owned(),
        text: "politeness.max-delay = '7s'\n".to_owned(),
        base: home.path().to_owned(),
        files: BTreeMap::new(),
    };
    let frozen = Profile::layered(below, own, vec![change], &context()).unwrap();
    assert_eq!(frozen.settings().politeness.max_delay.as_secs(), 7);
    assert_eq!(frozen.workers, 7);
    assert_eq!(frozen.source_text(), news.source_text());
}

#[test]
fn files_are_listed_by_layer_and_read_from_copies() {
    let table = |name: &str| format!("[tables.{name}]\nkind = 'key-values'\nfile = 'rows.txt'\n");
    let news = format!(
        "extends = 'house/house.toml'\nseeds-file = 'seeds.txt'\n{}",
        table("news")
    );
    let house = format!("seeds-file = 'replaced.txt'\n{}", table("house"));
    let home = folder(&[
        ("news.toml", &*news),
        ("house/house.toml", &*house),
        ("seeds.txt", "http://a.org/\n"),
        ("copy-of-seeds.txt", "http://a.org/\nhttp://b.org/\n"),
    ]);
    let loaded = load(&home, "news.toml");
    let files = loaded.layer_files(home.path());
    let shown: Vec<_> = files
        .iter()
        .map(|file| {
            let path = file.path.strip_prefix(home.path()).unwrap();
            (file.layer, &*file.written, path.to_str().unwrap())
        })
        .collect();
    let expected = [
        (0, "rows.txt", "rows.txt"),
        (0, "seeds.txt", "seeds.txt"),
        (1, "rows.txt", "house/rows.txt"),
    ];
    assert_eq!(shown, expected);

    // On another machine the layers use copies of the files, in other folders.
    let copies = |files: &[(&str, &str)]| {
        let copies = files.iter();
        let copies = copies.map(|(written, copy)| ((*written).to_owned(), home.path().join(copy)));
        copies.collect::<BTreeMap<_, _>>()
    };
    let elsewhere = |files: &[(&str, &str)], text: &str| Layer {
        file: "profile.toml".to_owned(),
        text: text.to_owned(),
        base: PathBuf::from("/elsewhere"),
        files: copies(files),
    };
    let below = elsewhere(&[("rows.txt", "copy-of-house-rows.txt")], &house);
    let own = [
        ("rows.txt", "copy-of-rows.txt"),
        ("seeds.txt", "copy-of-seeds.txt"),
    ];
    let own = elsewhere(&own, &news);
    let copied = Profile::layered(vec![below], own, Vec::new(), &context()).unwrap();
    assert_eq!(copied.seeds.list.len(), 2);
    assert_eq!(copied.source_text(), news);
    let copy = |name: &str| TableSource::File(home.path().join(name));
    assert_eq!(copied.tables["news"].source, copy("copy-of-rows.txt"));
    assert_eq!(
        copied.tables["house"].source,
        copy("copy-of-house-rows.txt")
    );
}

#[test]
fn errors_name_the_file_and_the_line() {
    let home = folder(&[
        ("base.toml", "workers = 3\npoliteness.min-delay = 'soon'\n"),
        ("a.toml", "extends = 'base.toml'\nworkers = 0\n"),
        ("b.toml", "extends = ['snapshot', 'c.toml']\n"),
        ("c.toml", "\nextends = 'b.toml'\n"),
        ("d.toml", "extends = 'nowhere.toml'\n"),
        ("e.toml", "extends = 'snapshto'\n"),
        ("f.toml", "stacks.scope = { without = ['pdf'] }\n"),
        (
            "g.toml",
            "extends = 'base2.toml'\npoliteness.max-delay = '1s'\n",
        ),
        ("base2.toml", "politeness.min-delay = '6s'\n"),
        (
            "h.toml",
            "extends = 'nowhere.toml'\nworkers = 0\nstacks.scope = { after = ['pdf'] }\n[plugins.of-the-house]\nsettings = {}\n[polteness]\n",
        ),
    ]);
    let a = refusal(&home, "a.toml");
    assert!(a.contains("base.toml:2:24: "), "{a}");
    assert!(a.contains("a.toml:2:11: must be at least 1"), "{a}");
    let b = refusal(&home, "b.toml");
    assert!(
        b.starts_with("c.toml:2:11: \"b.toml\" extends itself"),
        "{b}"
    );
    let d = refusal(&home, "d.toml");
    assert!(d.starts_with("d.toml:1:11: profile \""), "{d}");
    assert!(d.contains("cannot be read"), "{d}");
    let h = refusal(&home, "h.toml");
    assert!(h.starts_with("h.toml:1:11: profile \""), "{h}");
    assert!(h.contains("h.toml:2:11: must be at least 1"), "{h}");
    assert!(h.contains("did you mean \"politeness\"?"), "{h}");
    // The profile that cannot be read may have the missing values. So they are not reported.
    assert_eq!(
        h.lines().filter(|line| line.starts_with("h.toml")).count(),
        3,
        "{h}"
    );
    let e = refusal(&home, "e.toml");
    assert!(e.contains("did you mean \"snapshot\"?"), "{e}");
    let f = refusal(&home, "f.toml");
    assert!(f.starts_with("f.toml:1:29: \"pdf\" is not in scope"), "{f}");
    let g = refusal(&home, "g.toml");
    assert!(
        g.contains("g.toml:2:") || g.contains("base2.toml:1:"),
        "{g}"
    );
}

#[test]
fn errors_of_a_change_have_names_that_can_be_typed() {
    let layer = |file: &str, text: &str| Layer {
        file: file.to_owned(),
        text: text.to_owned(),
        base: PathBuf::new(),
        files: BTreeMap::new(),
    };
    let profile = "[politeness]\nmin-delay = '3s'\n[plugins.hops]\ncomponent = 'builtin:hops'\n";
    for (change, expected) in [
        (
            "plugins.css.settings.deep = 1",
            "missing key \"plugins.css.component\" (write plugins.css.component=\"builtin:css\")",
        ),
        (
            "plugins.mine.settings.deep = 1",
            "missing key \"plugins.mine.component\" (write plugins.mine.component=\"builtin:html\")",
        ),
        (
            "politeness.min-dely = '4s'",
            "unknown key \"politeness.min-dely\" (did you mean \"politeness.min-delay\"?)",
        ),
        (
            "plugins.hops.sha = 'x'",
            "unknown key \"plugins.hops.sha\" (known here: plugins.hops.",
        ),
        (
            "[[override]]\nmatch.host = ['a.org']\nretry.dely = '4s'",
            "unknown key \"retry.dely\" (did you mean \"retry.delay\"?)",
        ),
        ("politeness = '4s'", "(write politeness.KEY=VALUE)"),
    ] {
        let own = layer("p.toml", profile);
        let refused = Profile::layered(Vec::new(), own, vec![layer("set", change)], &context());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(expected), "{change}: {refused}");
        // The names in errors of a profile are below table headers.
        let refused = Profile::parse("p.toml", change, &context()).unwrap_err();
        let refused = refused.to_string();
        assert!(!refused.contains(expected), "{change}: {refused}");
    }
}

#[test]
fn a_profile_with_the_name_of_a_shipped_one_extends_it() {
    let home = folder(&[("news.toml", "extends = 'news'\nworkers = 3\n")]);
    let news = load(&home, "news.toml");
    assert_eq!(news.workers, 3);
    let shipped = Profile::builtin("news", &context()).unwrap();
    assert_eq!(news.settings().revisit, shipped.settings().revisit);
    // A text that is not saved yet is checked under the name of its future file.
    let text = Profile::parse("news.toml", news.source_text(), &context());
    assert_eq!(text.unwrap_or_else(|faults| panic!("{faults}")).workers, 3);
}

#[test]
fn a_stack_can_be_edited_without_an_extended_profile() {
    let home = folder(&[("a.toml", "stacks.scope = { after = ['regex-list'] }\n")]);
    let profile = load(&home, "a.toml");
    let scope = profile.settings().stacks.stage(Stage::Scope);
    assert_eq!(scope.first().unwrap(), "surt-scope");
    assert_eq!(scope.last().unwrap(), "regex-list");
}

#[test]
fn stacks_are_found_despite_errors_elsewhere() {
    let home = folder(&[(
        "base.toml",
        "stacks.extract = { without = ['swf'], after = ['regex-list'] }\n",
    )]);
    let context = ProfileContext {
        base: Some(home.path().to_owned()),
        ..context()
    };
    let stacks = |text: &str| Profile::stacks_of(text, &context);
    let faulty = "extends = 'base.toml'\nworkers = 'many'\nplugins.mine = { settings = 3 }\n\
                  stacks.extract = { after = ['mine'], without = ['pdf'] }\n\
                  stacks.scope = { befor = ['domain'] }\nstacks.change = ['html-strip']\n";
    assert!(Profile::parse("a.toml", faulty, &context).is_err());
    let known = stacks(faulty);
    let extract = &known["extract"];
    assert_eq!(extract[extract.len() - 2..], ["regex-list", "mine"]);
    assert!(
        !extract.iter().any(|name| name == "swf" || name == "pdf"),
        "{extract:?}"
    );
    assert_eq!(known["change"], ["html-strip"]);
    // The defaults. The stack of page behaviours is empty, because no page is rendered.
    assert_eq!(known["wait"], ["adaptive"]);
    assert!(known["behave"].is_empty(), "{known:?}");
    // This edit has an error, so the resulting stack is unknown.
    assert!(!known.contains_key("scope"), "{known:?}");
    // Without an error the stacks are those of the profile.
    let valid = "extends = 'base.toml'\nstacks.scope = { after = ['regex-list'] }\n";
    let profile =
        Profile::parse("a.toml", valid, &context).unwrap_or_else(|faults| panic!("{faults}"));
    let values = profile.values();
    assert_eq!(serde_json::json!(stacks(valid)), values["stacks"]);
    assert!(stacks("extends = 'nowhere.toml'\n").is_empty());
}
