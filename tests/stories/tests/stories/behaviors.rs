//! Page behaviours in Chromium: content that appears only after scrolling, clicking or dismissing a banner is captured, and a
//! faulty behaviour costs only its steps.

use opilio_stories::{FinishedCrawl, Misdeed, asked, html, page_behavior, restless_behavior, site};
use opilio_test_web::Reply;

use crate::rendered::rendering;

const WWW: &str = "www.story.localhost";

/// A page that loads up to four further parts while its end is visible. URIs are encoded, so that extractors cannot find them.
const ENDLESS: &str = "<div style='height: 3000px'>first</div><p id=end>end</p><script>
    const end = document.querySelector('#end');
    let part = 0;
    new IntersectionObserver(async (seen) => {
        if (part >= 4 || !seen.some((it) => it.isIntersecting)) return;
        const number = await (await fetch(atob('L3BhcnQv') + ++part)).text();
        end.insertAdjacentHTML('beforebegin',
            `<div style='height: 2000px'><a href='${atob('L2l0ZW0v')}${number}'>Item ${number}</a></div>`);
    }).observe(end);
    </script>";

/// A banner of OneTrust over a list whose further parts load by two clicks.
const LIST: &str = "<div id=onetrust-banner-sdk style='position: fixed; inset: 0; background: white'>
    <button id=onetrust-accept-btn-handler onclick='answer(\"accepted\")'>Accept</button>
    <button id=onetrust-reject-all-handler onclick='answer(\"rejected\")'>Reject</button></div>
    <ol></ol><button onclick=more()>Load more (6)</button> <button onclick='answer(\"deleted\")'>Delete</button>
    <script>
    let parts = 0;
    function answer(word) {
        fetch('/' + word);
        document.querySelector('#onetrust-banner-sdk').remove();
    }
    async function more() {
        if (++parts == 2) document.querySelector('button').remove();
        const number = await (await fetch(atob('L3BhcnQv') + parts)).text();
        document.querySelector('ol').insertAdjacentHTML('beforeend', `<li><a href='${atob('L2l0ZW0v')}${number}'>Item</a>`);
    }
    </script>";

/// A sound that is requested only when it is played, and replies that load by two clicks on a button.
const FORUM: &str = "<audio preload=none></audio><button class=replies>Replies</button><ol></ol><script>
    document.querySelector('audio').src = atob('L3NvdW5kLndhdg==');
    let part = 0;
    document.querySelector('.replies').onclick = async () => {
        const number = await (await fetch(atob('L3BhcnQv') + ++part)).text();
        document.querySelector('ol').insertAdjacentHTML('beforeend', `<li><a href='${atob('L2l0ZW0v')}${number}'>Reply</a>`);
        if (part == 2) document.querySelector('.replies').remove();
    };
    </script>";

/// Returns a WAVE file with one second of silence: 8 bits, 8,000 samples a second.
fn sound() -> Vec<u8> {
    let samples: u32 = 8000;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + samples).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(samples.to_le_bytes());
    file.extend(samples.to_le_bytes());
    file.extend(b"\x01\0\x08\0data");
    file.extend(samples.to_le_bytes());
    file.resize(44 + samples as usize, 128);
    file
}

/// Returns the annotation of a behaviour on a page.
fn behavior_annotation<'t>(result: &'t FinishedCrawl, uri: &str, name: &str) -> Option<&'t str> {
    let of_name = format!("behaved:{name}:");
    let annotations = result.sole(uri).annotations.iter();
    annotations
        .map(String::as_str)
        .find(|it| it.starts_with(&of_name))
}

async fn web(page: &'static str) -> opilio_test_web::Web {
    let mut web = site(WWW).page("/", html(page));
    for number in 1..=4 {
        web = web
            .page(
                &format!("/part/{number}"),
                Reply::ok("text/plain", number.to_string()),
            )
            .page(&format!("/item/{number}"), Reply::ok("text/plain", "item"));
    }
    web.page("/rejected", Reply::ok("text/plain", ""))
        .page("/sound.wav", Reply::ok("audio/wav", sound()))
        .serve()
        .await
}

#[tokio::test]
async fn autoscroll_captures_a_page_that_grows_by_scrolling() {
    let Some(story) = rendering() else { return };
    let web = web(ENDLESS).await;
    let url = |target: &str| web.url(WWW, target);
    let result = story.seed(url("/")).run().await.finished();
    assert_eq!(behavior_annotation(&result, &url("/"), "autoscroll"), None);
    assert!(result.of(&url("/part/1")).is_empty());

    let Some(story) = rendering() else { return };
    let result = story
        .profile("stacks.behave = ['autoscroll']")
        .seed(url("/"))
        .run()
        .await
        .finished();
    let steps = behavior_annotation(&result, &url("/"), "autoscroll").unwrap();
    assert!(!steps.ends_with(":steps"), "{steps}");
    for number in 1..=4 {
        result.record("response", &url(&format!("/part/{number}")));
        let item = result.sole(&url(&format!("/item/{number}")));
        assert_eq!((item.status, &*item.hops), (200, "L"), "{item:?}");
    }
    let info = result.record("resource", &format!("urn:pageinfo:{}", url("/")));
    let info: serde_json::Value = serde_json::from_slice(&info.block).unwrap();
    let run = &info["behaviors"][0];
    assert_eq!(
        (&run["name"], &run["end"]),
        (&"autoscroll".into(), &"finished".into())
    );
    assert!(run["steps"].as_u64().unwrap() >= 4, "{run}");
}

#[tokio::test]
async fn a_banner_is_dismissed_and_more_is_loaded_by_clicks() {
    let Some(story) = rendering() else { return };
    let web = web(LIST).await;
    let url = |target: &str| web.url(WWW, target);
    let result = story
        .profile("stacks.behave = ['consent', 'load-more']\nbrowser.screenshots = false")
        .seed(url("/"))
        .run()
        .await
        .finished();
    for name in ["consent", "load-more"] {
        let steps = behavior_annotation(&result, &url("/"), name);
        assert!(steps.is_some_and(|it| !it.contains(":fault")), "{steps:?}");
    }
    let requests = asked(&web);
    for (target, times) in [
        ("/rejected", 1),
        ("/accepted", 0),
        ("/deleted", 0),
        ("/part/1", 1),
        ("/part/2", 1),
        ("/item/2", 1),
    ] {
        let target = format!("{WWW} {target}");
        let found = requests.iter().filter(|it| **it == target).count();
        assert_eq!(found, times, "{target}: {requests:?}");
    }
}

#[tokio::test]
async fn media_are_played_and_actions_for_one_site_are_carried_out() {
    let Some(story) = rendering() else { return };
    let web = web(FORUM).await;
    let url = |target: &str| web.url(WWW, target);
    let result = story
        .profile(
            "stacks.behave = ['autoplay', 'site-specific']\nbrowser.screenshots = false
            [plugins.site-specific]
            component = 'builtin:site-specific'
            [[plugins.site-specific.settings.sites]]
            uris = '/$'
            repeat = 5
            actions = [{ click = '.replies' }, { wait-for-network = '5s' }]",
        )
        .seed(url("/"))
        .run()
        .await
        .finished();
    for name in ["autoplay", "site-specific"] {
        let steps = behavior_annotation(&result, &url("/"), name);
        assert!(
            steps.is_some_and(|it| it.matches(':').count() == 2),
            "{name}: {steps:?}"
        );
    }
    for target in ["/sound.wav", "/part/1", "/part/2"] {
        result.record("response", &url(target));
    }
    assert_eq!(result.sole(&url("/item/2")).hops, "L");
    assert!(result.of(&url("/part/3")).is_empty());
}

#[tokio::test]
async fn a_failing_or_endless_behaviour_does_not_lose_the_page() {
    let Some(story) = rendering() else { return };
    let web = web(ENDLESS).await;
    let url = |target: &str| web.url(WWW, target);
    let result = story
        .plugin("restless", &restless_behavior())
        .plugin("faulty", &page_behavior(Misdeed::Traps))
        .profile("stacks.behave = ['restless', 'faulty', 'autoscroll']\nbrowser.page-steps = 3")
        .seed(url("/"))
        .run()
        .await
        .finished();
    let page = result.sole(&url("/"));
    for annotation in [
        "rendered",
        "behaved:restless:3:steps",
        "behaved:faulty:0:fault",
    ] {
        assert!(
            page.annotations.contains(&annotation.to_owned()),
            "{page:?}"
        );
    }
    assert!(
        behavior_annotation(&result, &url("/"), "autoscroll").is_some(),
        "{page:?}"
    );
    result.record("response", &url("/"));
    result.record("response", &url("/part/1"));
    let view = result.record("resource", &format!("urn:view:{}", url("/")));
    assert!(view.block.starts_with(b"\x89PNG"));
    assert!(result.log_file("runtime-errors.log").contains("faulty"));
}
