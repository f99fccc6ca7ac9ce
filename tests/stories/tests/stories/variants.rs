//! Variants: settings of plugins that differ between sites.

use std::time::{Duration, Instant};

use opilio_stories::{crawl, html, site};

#[tokio::test]
async fn a_plugin_has_other_settings_for_some_sites() {
    let links = "<a href='/a/'>1</a> <a href='/a/b/'>2</a> <a href='/a/b/c/'>3</a>";
    let mut web = site("s0.localhost").page("/", html(links));
    for host in 1..4 {
        web = web
            .and(&format!("s{host}.localhost"))
            .page("/", html(links));
    }
    for host in 0..4 {
        web = web
            .and(&format!("s{host}.localhost"))
            .rest(|_| html("a page"));
    }
    let web = web.serve().await;
    let url = |host: usize, target: &str| web.url(&format!("s{host}.localhost"), target);
    let story = crawl().profile(
        r#"
        [plugins.path-depth]
        component = "builtin:path-depth"
        settings = { max = 3 }
        [[override]]
        match.host = ["s1.localhost", "s2.localhost"]
        plugins.path-depth.settings = { max = 2 }
        [[override]]
        match.host = ["s2.localhost"]
        plugins.path-depth.settings = { max = 4 }
        "#,
    );
    let result = (0..4)
        .fold(story, |story, host| story.seed(url(host, "/")))
        .run()
        .await
        .finished();
    for (host, depth) in [(0, 3), (1, 2), (2, 4), (3, 3)] {
        for (target, its_depth) in [("/a/", 2), ("/a/b/", 3), ("/a/b/c/", 4)] {
            let fetched = result.of(&url(host, target)).len();
            assert_eq!(fetched, usize::from(its_depth <= depth), "s{host} {target}");
        }
    }
    let plugins = result.summary.plugins.iter();
    let own: Vec<_> = plugins
        .filter(|plugin| plugin.name == "path-depth")
        .collect();
    assert_eq!(own.len(), 3, "the plugin and two variants");
    assert!(own.iter().all(|plugin| plugin.calls > 0), "{own:?}");
}

#[tokio::test]
async fn five_hundred_variants_start_quickly() {
    let web = site("s499.localhost")
        .page("/", html("<a href='/a/b/'>deep</a>"))
        .rest(|_| html("a page"))
        .serve()
        .await;
    let overrides: String = (0..500)
        .map(|host| {
            format!(
                "[[override]]\nmatch.host = ['s{host}.localhost']\nplugins.path-depth.settings.max = {host}\n"
            )
        })
        .collect();
    let story = crawl()
        .profile(&overrides)
        .seed(web.url("s499.localhost", "/"));
    // The first start compiles components that are not in the cache.
    drop(
        crawl()
            .seed(web.url("s499.localhost", "/"))
            .begin()
            .unwrap(),
    );
    let began = Instant::now();
    let crawl = story.begin().unwrap_or_else(|error| panic!("{error}"));
    let took = began.elapsed();
    // Ten times the time on a busy machine. Compiling each variant would take longer.
    assert!(took < Duration::from_secs(60), "{took:?}");
    drop(crawl);
    let result = story.run().await.finished();
    assert_eq!(result.sole(&web.url("s499.localhost", "/a/b/")).status, 200);
}

#[tokio::test]
async fn invalid_settings_of_an_override_are_refused_with_their_place() {
    let refused = |toml: &str| {
        let story = crawl().profile(toml).seed("http://s.localhost/");
        let refused = story.begin().map(drop).unwrap_err().to_string();
        assert!(!story.job().exists());
        refused
    };
    let fixed = refused("[[override]]\nmatch.host = ['a.org']\nplugins.hops.settings.maxx = 3");
    assert!(
        fixed.contains("hops 0.1.0: unknown key \"maxx\" (did you mean \"max\"?)"),
        "{fixed}"
    );
    let strict = refused(
        "[stacks]\ndigest = ['regex-strip']\n[[override]]\nmatch.host = ['a.org']\nplugins.regex-strip.settings.patterns = ['(']",
    );
    assert!(
        strict.contains("story.toml:") && strict.contains("regex-strip 0.1.0: "),
        "{strict}"
    );
    let fixed = refused(
        "[[override]]\nmatch.host = ['a.org']\nplugins.surt-scope.settings.from-seeds = false",
    );
    assert!(
        fixed.contains(
            "surt-scope 0.1.0: plugin \"surt-scope\" does not allow overrides of from-seeds"
        ),
        "{fixed}"
    );
}

#[tokio::test]
async fn invalid_settings_are_refused_with_the_name_of_the_plugin() {
    let refused = |settings: &str| {
        let toml = format!(
            "[stacks]\ndigest = ['banners']\n[plugins.banners]\ncomponent = 'builtin:regex-strip'\nsettings = {{ {settings} }}"
        );
        let story = crawl().profile(&toml).seed("http://s.localhost/");
        story.begin().map(drop).unwrap_err().to_string()
    };
    let schema = refused("patterns = 3");
    assert!(
        schema.contains("regex-strip 0.1.0: expected a list"),
        "{schema}"
    );
    let guest = refused("patterns = ['(']");
    assert!(
        guest.contains("regex-strip 0.1.0: not a regular expression"),
        "{guest}"
    );
}
