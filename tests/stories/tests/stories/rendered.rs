//! Pages that a browser renders: their requests are archived, and their links are crawled. The first stories need Chromium.
//! `rendered_requests.rs` has the rules for requests.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use opilio_crawl::CrawlError;
use opilio_stories::{Story, asked, crawl, html, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";
const CDN: &str = "cdn.story.localhost";
/// A host of this machine that pages must not reach.
const WALLED: &str = "walled.story.localhost";

/// With this variable, a missing Chromium fails the stories. CI sets it.
const REQUIRED: &str = "OPILIO_TEST_CHROMIUM";

/// A page without links, whose script fetches them.
const APPLICATION: &str = "<div id=root></div><script>
    document.cookie = 'spa=1';
    (async () => {
        const items = await (await fetch('/api/items')).json();
        await fetch('/api/seen', {method: 'POST', body: JSON.stringify({seen: items.length})});
        await fetch('/private/x').catch(() => 0);
        const socket = new WebSocket(`ws://${location.host}/live`);
        await new Promise((go) => { socket.onopen = socket.onerror = go });
        const picture = document.createElement('img');
        picture.src = 'CDN/picture.png';
        await new Promise((go) => { picture.onload = picture.onerror = go; root.append(picture); });
        for (const item of items)
            root.insertAdjacentHTML('beforeend', `<a href='/item/${item}'>Item ${item}</a> `);
    })();
    </script>";

/// A page of the application, which makes a request of its own.
const ITEM: &str = "<p></p><script>
    fetch('/api/price').then((it) => it.text()).then((it) => { document.querySelector('p').textContent = it });
    </script>";

/// A picture of one pixel.
const PICTURE: &[u8] =
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\
    \x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

/// Returns a crawl that renders its pages; `None` if Chromium is missing.
pub(crate) fn rendering() -> Option<Story> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let sandbox = format!("[browser]\nrender = 'always'\nsandbox = {}\n", !is_root);
    let has_chromium = std::env::var_os("PATH").is_some_and(|path| {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        std::env::split_paths(&path).any(|it| names.iter().any(|name| it.join(name).is_file()))
    });
    if !has_chromium && std::env::var_os(REQUIRED).is_none() {
        #[expect(
            clippy::print_stderr,
            reason = "a note for the person who runs the tests"
        )]
        {
            eprintln!("SKIPPED: no Chromium; {REQUIRED}=1 makes this a failure");
        }
        return None;
    }
    // Behaviours have stories of their own.
    Some(crawl().profile(&sandbox).profile("stacks.behave = []"))
}

#[tokio::test]
async fn an_application_is_archived_with_its_requests_and_its_links_are_crawled() {
    let Some(story) = rendering() else { return };
    let web = site(WWW)
        .page(
            "/robots.txt",
            Reply::ok("text/plain", "User-agent: *\nDisallow: /private/"),
        )
        .answer("/", |seen| {
            let port = seen.headers["host"].to_str().unwrap().rsplit(':').next();
            let cdn = format!("http://{CDN}:{}", port.unwrap());
            html(&APPLICATION.replace("CDN", &cdn)).with("set-cookie", "session=7")
        })
        .page("/api/items", Reply::ok("application/json", "[1,2]"))
        .page(
            "/api/seen",
            Reply::ok("application/json", "{}").with("set-cookie", "seen=2"),
        )
        .page(
            "/api/price",
            Reply::ok("text/plain", "9 euros ".repeat(1000)),
        )
        .page("/private/x", Reply::ok("text/plain", "private"))
        .page("/item/1", html(ITEM))
        .page("/item/2", html(ITEM))
        .and(CDN)
        .page("/robots.txt", Reply::status(404))
        .page("/picture.png", Reply::ok("image/gif", PICTURE))
        .serve()
        .await;
    let url = |target: &str| web.url(WWW, target);
    let result = story.seed(url("/")).run().await.finished();

    let page = result.sole(&url("/"));
    assert!(
        page.annotations.contains(&"rendered".to_owned()),
        "{page:?}"
    );
    assert_eq!(page.status, 200);
    // Links exist only in the rendered page.
    for target in ["/item/1", "/item/2"] {
        let item = result.sole(&url(target));
        assert_eq!(
            (item.status, &*item.hops, &*item.via),
            (200, "L", &*url("/"))
        );
        assert!(item.notes("rendered"), "{item:?}");
    }
    // Requests are embeds of their page, and the page itself is fetched once.
    let items = result.sole(&url("/api/items"));
    assert_eq!(
        (items.status, &*items.hops, &*items.via),
        (200, "E", &*url("/"))
    );
    assert!(items.notes("browser"), "{items:?}");
    result.record("response", &url("/api/items"));
    let requests = asked(&web);
    let times = |request: &str| requests.iter().filter(|it| *it == request).count();
    assert_eq!(times(&format!("{WWW} /")), 1, "{requests:?}");

    // A request with a body is archived with the body.
    let seen = result.sole(&url("/api/seen"));
    assert!(seen.notes("method:POST"), "{seen:?}");
    let sent = result.record("request", &url("/api/seen")).text();
    assert!(sent.starts_with("POST /api/seen HTTP/1.1\r\n"), "{sent}");
    assert!(sent.ends_with("{\"seen\":2}"), "{sent}");
    assert!(sent.contains("opilio/"), "{sent}");

    // For another server, the crawl looks up the name and fetches robots.txt first.
    let picture = result.sole(&web.url(CDN, "/picture.png"));
    assert_eq!((picture.status, &*picture.hops), (200, "E"));
    let robots = result.record("response", &web.url(CDN, "/robots.txt"));
    assert_eq!(robots.header("Opilio-In-Passing-For"), Some(&*url("/")));
    // The extractor of scripts finds this URI, too.
    let refused = result.of(&url("/private/x"));
    assert!(
        refused.iter().all(|line| line.status == -9998),
        "{refused:?}"
    );
    assert!(
        refused.iter().any(|line| line.notes("browser")),
        "{refused:?}"
    );
    assert_eq!(times(&format!("{WWW} /private/x")), 0);

    // Cookies of the plain fetch are sent with requests of pages. Cookies that scripts and their requests set end with their page.
    for request in web.requests() {
        let cookie = request.headers.get("cookie").map(|it| it.to_str().unwrap());
        match (&*request.host, &*request.target) {
            (WWW, "/api/seen") => assert_eq!(cookie, Some("session=7; spa=1")),
            (WWW, "/api/price") => assert_eq!(cookie, Some("session=7")),
            (CDN, _) => assert_eq!(cookie, None),
            _ => {}
        }
    }

    // The same payload is stored once.
    let prices = result.records("response", &url("/api/price")).len();
    let again = result.records("revisit", &url("/api/price")).len();
    assert_eq!((prices, again), (1, 1));

    // Requests of the browser itself are not in the log.
    for line in &result.log {
        assert!(line.uri.contains(".story.localhost"), "{line:?}");
    }

    // Each capture has a line in the log.
    let by = opilio_control::Author {
        user: "lena".to_owned(),
        pid: 0,
    };
    let mut found = Vec::new();
    opilio_control::verify(result.job(), &by, false, &mut |it| found.push(it)).unwrap();
    assert!(found.is_empty(), "{found:?}");

    let info = result.record("resource", &format!("urn:pageinfo:{}", url("/")));
    let info: serde_json::Value = serde_json::from_slice(&info.block).unwrap();
    assert_eq!(info["url"], url("/"));
    assert_eq!(info["urls"][url("/")]["type"], "Document");
    assert_eq!(info["urls"][url("/api/items")]["status"], 200);
    let posted = format!("{}?__wb_method=POST", url("/api/seen"));
    assert_eq!(info["urls"][posted]["mime"], "application/json");
    // A WebSocket is refused. The page gets an error, and the page information names the refusal.
    assert!(
        page.annotations.contains(&"webSocketsRefused:1".to_owned()),
        "{page:?}"
    );
    let socket = &info["urls"][url("/live").replacen("http", "ws", 1)];
    let refused =
        serde_json::json!({"status": 0, "type": "WebSocket", "error": "refused: WebSocket"});
    assert_eq!(*socket, refused);
    assert_eq!(times(&format!("{WWW} /live")), 0);
    let part = |kind: &str| result.record("resource", &format!("urn:{kind}:{}", url("/")));
    assert!(part("view").block.starts_with(b"\x89PNG"));
    assert!(part("thumbnail").block.starts_with(b"\xff\xd8\xff"));
    assert!(part("text").text().contains("Item 2"));
    let captured = result.record("response", &url("/"));
    assert_eq!(
        part("view").header("WARC-Date"),
        captured.header("WARC-Date")
    );
}

#[tokio::test]
async fn a_page_that_is_never_idle_is_captured_after_its_load_time() {
    let Some(story) = rendering() else { return };
    let busy = "<p>first</p><script>
        setInterval(() => fetch('/poll'), 50);
        setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<a href=' + atob('L2xhdGU=') + '>Late</a>'), 100);
        </script>";
    let web = site(WWW)
        .page("/", html(busy))
        .page("/poll", Reply::ok("text/plain", "again"))
        .page("/late", html("late"))
        .serve()
        .await;
    let result = story
        .profile("[browser]\nload-time = '3s'\nscreenshots = false\ntext = false\n")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let page = result.sole(&web.url(WWW, "/"));
    assert!(page.notes("rendered:notIdle"), "{page:?}");
    assert_eq!(result.sole(&web.url(WWW, "/late")).hops, "L");
    assert!(result.of(&web.url(WWW, "/poll")).len() > 5);
    let kinds = ["view", "thumbnail", "text"];
    for kind in kinds {
        let uri = format!("urn:{kind}:{}", web.url(WWW, "/"));
        assert!(result.records("resource", &uri).is_empty());
    }
}

#[tokio::test]
async fn requests_to_refused_addresses_and_out_of_scope_are_blocked() {
    let Some(story) = rendering() else { return };
    // URIs are encoded, so that extractors cannot find them: a private address, one of this machine, one that the scope rejects,
    // and a redirect to another private address.
    let hostile = "<p>page</p><script>
        (async () => {
            const inside = atob('aHR0cDovL2luc2lkZS5zdG9yeS50ZXN0L3NlY3JldA==');
            const walled = location.origin.replace('www', 'walled') + atob('L3NlY3JldA==');
            for (const uri of [inside, walled, atob('L291dHNpZGU='), atob('L2xlYXZl')])
                await fetch(uri, {mode: 'no-cors'}).catch(() => 0);
            document.querySelector('p').textContent = 'nothing came';
        })();
        </script>";
    let inside = [
        "http://inside.story.test/secret",
        "http://inside.story.test/other",
    ];
    let web = site(WWW)
        .page("/", html(hostile))
        .page("/outside", Reply::ok("text/plain", "outside"))
        .page("/leave", Reply::redirect(302, inside[1]))
        .and(WALLED)
        .page("/secret", Reply::ok("text/plain", "secret"))
        .serve()
        .await;
    let url = |target: &str| web.url(WWW, target);
    let walled = web.url(WALLED, "/secret");
    let result = story
        .profile(
            "fetch.allow-addresses = ['loopback']
            browser.screenshots = false
            stacks.scope = ['surt-scope', 'hops', 'transclusion', 'prerequisite', 'scheme', 'outside']
            [dns.hosts]
            'inside.story.test' = '10.9.9.9'
            [plugins.outside]
            component = 'builtin:regex-list'
            settings = { patterns = ['/outside$'], then = 'reject' }
            [[override]]
            match.host = ['walled.story.localhost']
            fetch.allow-addresses = []",
        )
        .seed(url("/"))
        .run()
        .await
        .finished();
    let page = result.sole(&url("/"));
    assert!(
        page.annotations.contains(&"rendered".to_owned()),
        "{page:?}"
    );
    for uri in [inside[0], inside[1], &walled] {
        let line = result.sole(uri);
        assert_eq!(line.status, -5001, "{line:?}");
        assert!(line.notes("browser"), "{line:?}");
        assert!(result.records("response", uri).is_empty());
    }
    assert_eq!(result.sole(&url("/leave")).status, 302);
    // Requests out of scope have no line in the log.
    assert!(result.of(&url("/outside")).is_empty(), "{:?}", result.log);
    let asked = asked(&web);
    assert!(!asked.contains(&format!("{WWW} /outside")), "{asked:?}");
    // Its robots.txt was not requested either.
    let of_walled = web.requests().iter().filter(|it| it.host == WALLED).count();
    assert_eq!(of_walled, 0);

    let info = result.record("resource", &format!("urn:pageinfo:{}", url("/")));
    let info: serde_json::Value = serde_json::from_slice(&info.block).unwrap();
    for uri in [inside[0], inside[1], &walled, &url("/outside")] {
        let error = info["urls"][uri]["error"].as_str();
        let is_refused = error.is_some_and(|it| it.starts_with("refused: "));
        assert!(is_refused, "{uri}: {info}");
    }
    let text = result.record("resource", &format!("urn:text:{}", url("/")));
    assert!(text.text().contains("nothing came"), "{}", text.text());
}

#[tokio::test]
async fn an_override_renders_one_site_only_or_all_but_one() {
    let Some(story) = rendering() else { return };
    let made = "<script>document.body.insertAdjacentHTML('beforeend',
        '<a href=' + atob('L21hZGU=') + '>Made</a> for ' + innerWidth)</script>";
    let web = site(WWW)
        .page("/", html(made))
        .and(CDN)
        .page("/", html(made))
        .page("/made", html("made"))
        .serve()
        .await;
    let result = story
        .profile(&format!(
            "browser.render = 'never'\n[[override]]\nmatch.host = ['{CDN}']\nbrowser.render = 'always'\nbrowser.screenshots = false\nbrowser.width = 700\n"
        ))
        .seed(web.url(WWW, "/"))
        .seed(web.url(CDN, "/"))
        .run()
        .await
        .finished();
    assert!(!result.sole(&web.url(WWW, "/")).notes("rendered"));
    assert!(result.of(&web.url(WWW, "/made")).is_empty());
    assert!(result.sole(&web.url(CDN, "/")).notes("rendered"));
    assert_eq!(result.sole(&web.url(CDN, "/made")).status, 200);
    assert!(
        result
            .records("resource", &format!("urn:view:{}", web.url(CDN, "/")))
            .is_empty()
    );
    let text = result.record("resource", &format!("urn:text:{}", web.url(CDN, "/")));
    assert!(text.text().contains("for 700"), "{}", text.text());

    // The opposite: all sites except one.
    let Some(story) = rendering() else { return };
    let result = story
        .profile(&format!(
            "browser.screenshots = false\n[[override]]\nmatch.host = ['{CDN}']\nbrowser.render = 'never'\n"
        ))
        .seed(web.url(WWW, "/"))
        .seed(web.url(CDN, "/"))
        .run()
        .await
        .finished();
    assert!(result.sole(&web.url(WWW, "/")).notes("rendered"));
    assert!(!result.sole(&web.url(CDN, "/")).notes("rendered"));
    assert!(result.of(&web.url(CDN, "/made")).is_empty());
}

/// Writes a program that answers `--version` like this version of Chromium, and otherwise runs `start`. Returns its path.
fn chromium(story: &Story, version: &str, start: &str) -> String {
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo Chromium {version}; exit 0; }}\n{start}\n"
    );
    let file = story.file("chromium", &text);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
}

#[tokio::test]
async fn a_crawl_that_renders_pages_does_not_start_without_a_browser() {
    let home = crawl();
    let old = chromium(&home, "90.0.1.2", "");
    for (executable, problem) in [
        ("/nonexistent/chromium", "is not a file"),
        (&*old, "version 90.0.1.2; install 120 or later"),
    ] {
        let story = crawl()
            .profile(&format!(
                "[browser]\nrender = 'always'\nexecutable = '{executable}'\n"
            ))
            .seed("http://www.story.localhost/");
        let Err(CrawlError::Profile(faults)) = story.begin() else {
            panic!("the crawl begins");
        };
        let words = faults.to_string();
        for expected in ["browser.render", executable, problem, "browser.executable"] {
            assert!(words.contains(expected), "{words}");
        }
        assert!(!story.job().exists());
    }
}

#[tokio::test]
async fn pages_are_archived_unrendered_if_the_browser_does_not_start() {
    for (start, annotation, words) in [
        (
            "echo error while loading shared libraries: libnss3.so >&2; exit 127",
            "notRendered:doesNotStart",
            "libnss3.so",
        ),
        (
            "echo FATAL: No usable sandbox! >&2; exit 1",
            "notRendered:sandboxRefused",
            "sandbox = false",
        ),
    ] {
        let web = site(WWW)
            .page("/", html("<a href=/next>Next</a>"))
            .page("/next", html("next"))
            .serve()
            .await;
        let story = crawl().seed(web.url(WWW, "/"));
        let executable = chromium(&story, "150.0.1.2", start);
        let result = story
            .profile(&format!(
                "[browser]\nrender = 'always'\nexecutable = '{executable}'\n"
            ))
            .run()
            .await
            .finished();
        for target in ["/", "/next"] {
            let page = result.sole(&web.url(WWW, target));
            assert!(page.notes(annotation), "{page:?}");
            result.record("response", &web.url(WWW, target));
        }
        let alerts = result.log_file("alerts.log");
        assert_eq!(
            alerts.matches("raised warning browser").count(),
            1,
            "{alerts}"
        );
        assert!(alerts.contains(words), "{alerts}");
        assert!(!result.job().join("browsers").exists());
    }
}

/// Texts in the command lines of the browser and of the process of a page.
const BROWSER: &str = "--remote-debugging-pipe";
const OF_PAGE: &str = "--type=renderer";

/// Kills the processes of a job's browsers whose command line contains this text.
fn kill_browsers(job: &Path, text: &str) {
    let folder = job.join("browsers").display().to_string();
    let read = |process: &Path, name: &str| {
        let bytes = std::fs::read(process.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // Command lines of page processes do not contain the folder. These processes are in the process group of their browser.
    let group = |process: &Path| {
        let stat = read(process, "stat");
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
        fields.and_then(|it| it.split_whitespace().nth(2).map(str::to_owned))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let processes: Vec<PathBuf> = processes.map(|it| it.path()).collect();
    let browsers = processes.iter().filter(|it| {
        let line = read(it, "cmdline");
        line.contains(&folder) && line.contains(BROWSER)
    });
    let groups: Vec<String> = browsers.filter_map(|it| group(it)).collect();
    for process in &processes {
        let is_of_browser = group(process).is_some_and(|it| groups.contains(&it));
        if is_of_browser && read(process, "cmdline").contains(text) {
            // The process may have ended already.
            let _ = Command::new("kill")
                .arg("-9")
                .args(process.file_name())
                .status();
        }
    }
}

#[tokio::test]
async fn a_page_is_rendered_once_more_after_a_crash_of_the_browser() {
    let Some(story) = rendering() else { return };
    // URIs are encoded, so that extractors cannot find them.
    let page = |address: &str, more: &str| {
        html(&format!(
            "{more}<p>page</p><script>fetch(atob('{address}'))</script>"
        ))
    };
    let links = "<a href=/always>1</a> <a href=/process>2</a> <a href=/next>3</a>";
    let (once, always, of_page) = (story.job(), story.job(), story.job());
    let web = site(WWW)
        .page("/", page("L29uY2U=", links))
        .answer("/once", move |seen| {
            if seen.visit == 1 {
                kill_browsers(&once, BROWSER);
            }
            Reply::ok("text/plain", "once")
        })
        .page("/always", page("L2RpZQ==", ""))
        .answer("/die", move |_| {
            kill_browsers(&always, BROWSER);
            Reply::ok("text/plain", "again")
        })
        .page("/process", page("L2Zyb20=", ""))
        .answer("/from", move |seen| {
            if seen.visit == 1 {
                kill_browsers(&of_page, OF_PAGE);
            }
            Reply::ok("text/plain", "once")
        })
        .page("/next", html("next"))
        .serve()
        .await;
    let result = story
        .profile("browser.screenshots = false")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    for (target, annotation) in [
        ("/", "rendered"),
        ("/always", "notRendered:crashed"),
        ("/process", "rendered"),
        ("/next", "rendered"),
    ] {
        let page = result.sole(&web.url(WWW, target));
        assert!(
            page.annotations.contains(&annotation.to_owned()),
            "{page:?}"
        );
        result.record("response", &web.url(WWW, target));
    }
    // The page whose process was killed made its request in both attempts.
    let asked = asked(&web);
    let times = asked.iter().filter(|it| it.ends_with(" /from")).count();
    assert_eq!(times, 2, "{asked:?}");
    let alerts = result.log_file("alerts.log");
    assert!(alerts.contains("the browser crashed during"), "{alerts}");
    assert!(!result.job().join("browsers").exists());
}
