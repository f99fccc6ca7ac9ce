//! Content of pages, and attempts of pages to navigate away or open windows.

use std::time::Duration;

use opilio_browser::{
    ActionResult, LoadResult, PageAction, PageSession, ResourceResult, ScreenshotArea, ScrollTarget,
};

use crate::chromium::TestPool;
use crate::site::{Site, html, missing, typed};

/// Action that waits until the network is idle after a script has sent requests.
const WAIT: PageAction = PageAction::WaitForNetwork {
    time_max: Duration::from_secs(120),
};

/// Clicks new elements.
fn click(selector: &str, text: Option<&str>, at_most: u32) -> PageAction {
    PageAction::Click {
        selector: selector.to_owned(),
        text: text.map(str::to_owned),
        at_most,
        only_new: true,
    }
}

fn evaluate(script: &str) -> PageAction {
    PageAction::Evaluate {
        script: script.to_owned(),
    }
}

#[tokio::test]
async fn an_application_is_rendered_and_its_requests_are_recorded() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html(
            "<div id=root></div><script>
            fetch('/api/items').then((it) => it.json()).then(async (items) => {
                root.innerHTML = items.map((it) => `<a href=\"/item/${it}\">Item ${it}</a>`).join(' ');
                await fetch('/api/seen', {method: 'POST', body: JSON.stringify({seen: items.length})});
                history.pushState(null, '', '/items');
            });
            </script>",
        ),
        "https://site.test/api/items" => typed("application/json", "[1,2,3]"),
        "https://site.test/api/seen" => typed("application/json", "{}"),
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    assert_eq!(
        page.load("https://site.test/").await.expect("a page"),
        LoadResult::Idle
    );
    let links = PageAction::WaitForSelector {
        selector: "a".to_owned(),
        time_max: Duration::from_secs(120),
    };
    page.act(&links).await.expect("it waits");
    page.act(&WAIT).await.expect("it waits");
    let view = page
        .view(&["a".to_owned(), "a:::b".to_owned()])
        .await
        .expect("a view");
    assert_eq!(view.counts, [Some(3), None]);
    assert_eq!(view.uri, "https://site.test/items");
    assert_eq!(view.title, "Test");
    let content = page.extract().await.expect("content");
    assert_eq!(content.text.trim(), "Item 1 Item 2 Item 3");
    let links: Vec<&str> = content.links.iter().map(|it| it.uri.as_str()).collect();
    let expected = [1, 2, 3].map(|it| format!("https://site.test/item/{it}"));
    assert_eq!(links, expected);
    let report = page.close().await;
    let post = site.fetched().into_iter().find(|it| it.method == "POST");
    assert_eq!(post.expect("it posted").body, "{\"seen\":3}");
    let posted = report.resources.iter().find(|it| it.method == "POST");
    let posted = posted.expect("it is recorded");
    assert_eq!((posted.status, posted.received), (Some(200), 2));
    assert_eq!(posted.media_type.as_deref(), Some("application/json"));
    assert_eq!(posted.result, ResourceResult::Complete);
    test.close().await;
}

#[tokio::test]
async fn scrolling_loads_more_until_the_end() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html(
            "<style>p { height: 300px }</style><main></main>
            <img loading=lazy width=10 height=10 src=/lazy.png srcset='/lazy.png 1x, /big,1.png 2x'>
            <script>
            let n = 0, busy = false;
            const more = async () => {
                if (busy || n >= 4) return;
                busy = true;
                const text = await (await fetch(`/part/${n}`)).text();
                document.querySelector('main').insertAdjacentHTML('beforeend', text.repeat(20));
                n += 1;
                busy = false;
            };
            more();
            addEventListener('scroll', () => {
                if (scrollY + innerHeight > document.body.scrollHeight - 3000) more();
            });
            </script>",
        ),
        uri if uri.contains("/part/") => typed("text/plain", format!("<p>{uri}</p>")),
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let paragraphs = ["p".to_owned()];
    let mut counts = Vec::new();
    loop {
        let count = page.view(&paragraphs).await.expect("a view").counts[0];
        if counts.last() == Some(&count) {
            break;
        }
        counts.push(count);
        let bottom = PageAction::Scroll(ScrollTarget::Bottom);
        assert_eq!(
            page.act(&bottom).await.expect("it scrolls"),
            ActionResult::Done
        );
        assert_eq!(page.act(&WAIT).await.expect("it waits"), ActionResult::Done);
    }
    assert_eq!(counts, [20, 40, 60, 80].map(Some));
    let has_lazy = site
        .uris()
        .contains(&"https://site.test/lazy.png".to_owned());
    assert!(has_lazy, "{:?}", site.uris());
    let content = page.extract().await.expect("content");
    let srcset: Vec<&str> = content.links.iter().map(|it| it.uri.as_str()).collect();
    assert!(
        srcset.contains(&"https://site.test/big,1.png"),
        "{srcset:?}"
    );
    page.close().await;
    test.close().await;
}

#[tokio::test]
async fn links_and_buttons_of_frames_and_shadow_roots_are_found() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html(
            "<a href=/own>own</a><img name=querySelectorAll>
            <iframe src=/same></iframe><iframe src=https://other.test/></iframe><div id=host></div>
            <script>
            host.attachShadow({mode: 'open'}).innerHTML = '<a href=/shadow>in the shadow</a>';
            </script>",
        ),
        "https://site.test/same" => html("<a href=/of-same>same</a>"),
        "https://other.test/" => html(
            "<a href=/of-other>other</a><button onclick=\"fetch('/clicked')\">consent</button>",
        ),
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let content = page.extract().await.expect("content");
    let mut links: Vec<(&str, &str)> = content
        .links
        .iter()
        .filter(|it| it.element == "a")
        .map(|it| (it.uri.as_str(), it.document.as_str()))
        .collect();
    links.sort_unstable();
    let expected = [
        ("https://other.test/of-other", "https://other.test/"),
        ("https://site.test/of-same", "https://site.test/same"),
        ("https://site.test/own", "https://site.test/"),
        ("https://site.test/shadow", "https://site.test/"),
    ];
    assert_eq!(links, expected);
    for text in ["own", "in the shadow", "same", "other"] {
        assert!(content.text.contains(text), "{}", content.text);
    }
    let click = |selector: &str| click(selector, None, 1);
    let clicked = page.act(&click("button")).await.expect("it clicks");
    assert_eq!(clicked, ActionResult::Clicked(1));
    page.act(&WAIT).await.expect("it waits");
    assert!(
        site.uris()
            .contains(&"https://other.test/clicked".to_owned())
    );
    let missing = page.act(&click("video")).await.expect("it looks");
    assert_eq!(missing, ActionResult::NoElement);
    let invalid = page.act(&click("a:::b")).await.expect("it looks");
    assert!(matches!(invalid, ActionResult::Invalid(_)), "{invalid:?}");
    page.close().await;
    test.close().await;
}

#[tokio::test]
async fn clicks_are_on_visible_and_new_elements_with_the_text() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|_| {
        html(
            "<button>Load more (20)</button> <button aria-label='Load MORE comments'>+</button>
            <input type=button value='Load more pictures'> <button style='visibility: hidden'>Load more</button>
            <button hidden>Load more</button> <button>Delete</button><ol></ol>
            <script>
            addEventListener('click', (event) => {
                const it = document.createElement('li');
                it.textContent = event.target.textContent || event.target.value;
                document.querySelector('ol').append(it);
                event.target.insertAdjacentHTML('afterend', '<button>Load more of it</button>');
            });
            </script>",
        )
    })
    .await;
    let mut page = PageSession::open(&test.pool, site)
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let words = Some("^load more");
    let buttons = "button, input";
    for (at_most, expected) in [
        (2, ActionResult::Clicked(2)),
        // The third element, and the two that the first clicks have added.
        (100, ActionResult::Clicked(3)),
        (0, ActionResult::NoElement),
    ] {
        let clicked = page.act(&click(buttons, words, at_most)).await;
        assert_eq!(clicked.expect("it clicks"), expected, "{at_most}");
    }
    let invalid = page.act(&click(buttons, Some("("), 1)).await;
    let invalid = invalid.expect("it looks");
    assert!(matches!(invalid, ActionResult::Invalid(_)), "{invalid:?}");
    let list = "return [...document.querySelectorAll('li')].map((it) => it.textContent)";
    let clicked = page.act(&evaluate(list)).await.expect("a list");
    let clicked = format!("{clicked:?}");
    assert!(clicked.contains("Load more (20)"), "{clicked}");
    assert!(!clicked.contains("Delete"), "{clicked}");
    let view = page.view(&[]).await.expect("a view");
    assert_eq!(view.window_height, 800);
    let time = view.time_left + view.time_used;
    assert!(
        time.abs_diff(Duration::from_secs(600)).as_millis() < 100,
        "{time:?}"
    );
    page.close().await;
    test.close().await;
}

#[tokio::test]
async fn dialogs_windows_downloads_and_departures_do_not_change_the_page() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html(
            "<p>still here</p><a id=file href=/file>file</a><a id=blank target=_blank href=/blank>blank</a>
            <a id=away href=/away>away</a>
            <script>
            alert('\\ud800'); document.title = `${confirm('leave?')} ${prompt('name?')}`;
            addEventListener('load', () => { location.href = 'https://elsewhere.test/' });
            </script>",
        ),
        "https://site.test/file" => {
            let mut file = typed("application/octet-stream", "bytes");
            let value = "attachment; filename=a.bin".parse().expect("a valid value");
            file.headers_mut().insert("content-disposition", value);
            file
        }
        _ => html("another page"),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    assert_eq!(
        page.load("https://site.test/").await.expect("a page"),
        LoadResult::Idle
    );
    for script in [
        "window.open('https://pop-up.test/')",
        "blank.click()",
        "away.click()",
        "location.reload()",
    ] {
        page.act(&evaluate(script)).await.expect("it runs");
        page.act(&WAIT).await.expect("it waits");
    }
    let content = page.extract().await.expect("content");
    assert_eq!(content.title, "false null");
    assert!(content.text.contains("still here"), "{}", content.text);
    let report = page.close().await;
    assert_eq!(
        report.pop_ups,
        ["https://pop-up.test/", "https://site.test/blank"]
    );
    let departures = ["https://elsewhere.test/", "https://site.test/away"];
    assert_eq!(report.departures, departures);
    // Again after the reload.
    assert_eq!(report.dialogs, 6);
    let mut uris = site.uris();
    uris.retain(|it| !it.contains("favicon"));
    assert_eq!(uris, ["https://site.test/"; 2]);
    test.close().await;
}

#[tokio::test]
async fn redirects_are_followed_before_the_page_and_not_after_it() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/old" => {
            let mut moved = typed("text/html", "moved");
            *moved.status_mut() = http::StatusCode::FOUND;
            let target = "https://other.test/new".parse().expect("a valid value");
            moved.headers_mut().insert("location", target);
            moved
        }
        "https://other.test/new" => {
            html("<p>new</p><meta http-equiv=refresh content='0; url=/refreshed'>")
        }
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/old").await.expect("a page");
    assert_eq!(page.extract().await.expect("content").text, "new");
    let report = page.close().await;
    assert_eq!(report.uri, "https://other.test/new");
    assert_eq!(report.departures, ["https://other.test/refreshed"]);
    let statuses = report.resources.iter().map(|it| it.status);
    assert_eq!(statuses.take(2).collect::<Vec<_>>(), [Some(302), Some(200)]);
    assert!(!site.uris().iter().any(|it| it.ends_with("/refreshed")));
    test.close().await;
}

#[tokio::test]
async fn downloads_are_refused_and_their_uris_kept() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html("<iframe src=/file.bin></iframe><p>page</p>"),
        "https://site.test/file.bin" => typed("application/octet-stream", vec![0; 1000]),
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let report = page.close().await;
    assert_eq!(report.downloads, ["https://site.test/file.bin"]);
    let mut page = PageSession::open(&test.pool, site)
        .await
        .expect("a browser");
    let loaded = page.load("https://site.test/file.bin").await;
    assert_eq!(loaded.expect("a result"), LoadResult::Download);
    let report = page.close().await;
    assert_eq!(report.downloads, ["https://site.test/file.bin"]);
    test.close().await;
}

#[tokio::test]
async fn pictures_have_the_size_of_their_area() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html("<body style='margin: 0; height: 3000px; background: teal'>"),
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site)
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let view = page
        .screenshot(ScreenshotArea::View)
        .await
        .expect("a picture");
    assert_eq!(png_size(&view), (1280, 800));
    let whole = page
        .screenshot(ScreenshotArea::Document)
        .await
        .expect("a picture");
    assert_eq!(png_size(&whole), (1280, 3000));
    let thumbnail = page
        .screenshot(ScreenshotArea::Thumbnail)
        .await
        .expect("a picture");
    assert_eq!(jpeg_size(&thumbnail), (640, 400));
    page.close().await;
    test.close().await;
}

/// Width and height in the first chunk (PNG §11.2.1).
fn png_size(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("4 bytes"));
    (number(16), number(20))
}

/// Width and height in the frame header (ISO 10918-1 B.2.2).
fn jpeg_size(jpeg: &[u8]) -> (u16, u16) {
    let at = jpeg.windows(2).position(|it| it == [0xFF, 0xC0]);
    let at = at.expect("a baseline JPEG");
    let number = |at: usize| u16::from_be_bytes([jpeg[at], jpeg[at + 1]]);
    (number(at + 7), number(at + 5))
}

#[tokio::test]
async fn a_page_that_sets_a_cookie_and_loads_again_works_and_the_next_page_has_none() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html(
            "<script>
            if (document.cookie) document.write(`<p>cookie: ${document.cookie}</p>`);
            else if (location.hash === '') { document.cookie = 'a=1'; location.reload(); }
            else document.write('<p>no cookie</p>');
            </script>",
        ),
        _ => missing(),
    })
    .await;
    for (uri, expected) in [
        ("https://site.test/", "cookie: a=1"),
        ("https://site.test/#second", "no cookie"),
    ] {
        let mut page = PageSession::open(&test.pool, site.clone())
            .await
            .expect("a browser");
        page.load(uri).await.expect("a page");
        assert_eq!(page.extract().await.expect("content").text, expected);
        page.close().await;
    }
    assert_eq!(test.pool.figures().started, 1);
    test.close().await;
}

#[tokio::test]
async fn scripts_return_json_or_their_exception() {
    let change = |it: &mut opilio_browser::BrowserSettings| {
        it.command_time_max = Duration::from_secs(4);
    };
    let Some(test) = TestPool::with(change).await else {
        return;
    };
    let site = Site::serve(|_| html("<script>var answer = 42</script>")).await;
    let mut page = PageSession::open(&test.pool, site)
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let cases = [
        (
            "return {answer, text: '\\ud800'}",
            r#"{"answer":42,"text":"\ud800"}"#,
        ),
        ("await null", "null"),
    ];
    for (script, json) in cases {
        let value = page.act(&evaluate(script)).await.expect("it runs");
        assert_eq!(value, ActionResult::Value(json.to_owned()));
    }
    for script in [
        "await new Promise(() => {})",
        "throw new Error('no')",
        "return 'x'.repeat(2e6)",
        "syntax error",
    ] {
        let value = page.act(&evaluate(script)).await.expect("it runs");
        assert!(matches!(value, ActionResult::Exception(_)), "{value:?}");
    }
    let loaded = page.load("file:///etc/passwd").await.expect("a result");
    assert!(matches!(loaded, LoadResult::Failed(_)), "{loaded:?}");
    assert_eq!(page.close().await.steps, 6);
    test.close().await;
}
