//! Pages that a browser renders are visited again: what they show is compared, not what the server sent. Filters choose the pages.
//! All stories but the last need Chromium.

use opilio_stories::{FinishedCrawl, LoggedUri, Story, html, site};
use opilio_test_web::{Reply, SeenRequest, Web};

use crate::rendered::rendering;
use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";
const CDN: &str = "cdn.story.localhost";

/// An application that shows what its server says at `/api` and its own path.
const APPLICATION: &str = "<!DOCTYPE html><title>App</title><div id=root></div><script>
    fetch('/api' + location.pathname).then((it) => it.text()).then((it) => {
        root.innerHTML = `<p style='left: ${Math.random()}px'>${it}</p>`;
    });
    </script>";

/// A story that renders and revisits its pages; `None` where there is no Chromium.
fn story(more: &str) -> Option<Story> {
    let story = rendering()?.profile("browser.screenshots = false");
    let revisiting: toml::Table = revisiting().profile_text().parse().unwrap();
    let mut settings = toml::Table::new();
    for name in ["strategy", "plugins", "revisit"] {
        settings.extend(revisiting.get(name).map(|it| (name.to_owned(), it.clone())));
    }
    Some(story.profile(&settings.to_string()).profile(more))
}

/// The application of a request, with something in its document that no visitor sees.
fn application(seen: &SeenRequest) -> Reply {
    let visit = seen.visit;
    html(&APPLICATION.replace("<script>", &format!("<script nonce=n{visit}>")))
}

fn versions(line: &LoggedUri) -> &str {
    let mut notes = line.annotations.iter();
    notes.find(|note| note.ends_with("ver")).unwrap()
}

#[tokio::test]
async fn what_a_page_shows_is_compared_and_not_its_document() {
    let Some(story) = story("") else { return };
    let web = site(WWW)
        .page("/moving", html(APPLICATION))
        .answer("/api/moving", |seen| {
            Reply::ok("text/plain", format!("visit {}", seen.visit))
        })
        .answer("/still", application)
        .page("/api/still", Reply::ok("text/plain", "always the same"))
        .serve()
        .await;
    let (moving, still) = (web.url(WWW, "/moving"), web.url(WWW, "/still"));
    let told = story
        .seed(&moving)
        .seed(&still)
        .run_until("three visits of each page", || {
            told_visits(&web, &["/api/moving", "/api/still"]) >= 4
        })
        .await;

    // The document stays, and what it shows does not.
    let lines = told.of(&moving);
    for (number, line) in lines.iter().take(3).enumerate() {
        assert!(line.notes("rendered"), "{line:?}");
        assert!(!line.notes("unchanged"), "{line:?}");
        assert_eq!(versions(line), format!("{}ver", number + 1), "{line:?}");
    }
    // Its payload is stored once. Later versions refer to it, and have a text of their own.
    let first = told.record("response", &moving);
    for again in told.records("revisit", &moving) {
        assert_eq!(
            again.header("warc-refers-to"),
            first.header("warc-record-id")
        );
        assert_eq!(
            again.header("warc-payload-digest"),
            first.header("warc-payload-digest")
        );
    }
    let texts = told.records("resource", &format!("urn:text:{moving}"));
    assert_eq!(texts[1].text().trim(), "visit 2");

    // The document changes, and what it shows does not.
    let lines = told.of(&still);
    let digests: Vec<_> = lines.iter().map(|line| &line.digest).collect();
    assert_ne!(digests[0], digests[1]);
    for line in &lines[1..3] {
        assert!(line.notes("unchanged"), "{line:?}");
        assert_eq!(versions(line), "1ver");
    }
}

/// The documents of both pages never change. What is stripped of the one, and alike in the other, only a browser shows.
#[tokio::test]
async fn strippers_and_change_evaluators_get_what_a_page_shows() {
    let stacks = "stacks.digest = ['clock']
        stacks.change = ['similar']
        [plugins.clock]
        component = 'builtin:regex-strip'
        settings = { patterns = ['visit [0-9]+'] }";
    let Some(story) = story(stacks) else { return };
    let web = site(WWW)
        .page("/clock", html(APPLICATION))
        .answer("/api/clock", |seen| {
            Reply::ok("text/plain", format!("visit {}", seen.visit))
        })
        .page("/words", html(APPLICATION))
        .answer("/api/words", |seen| {
            let word = |n: usize| match n < seen.visit {
                true => format!("new{n} "),
                false => format!("word{n} "),
            };
            Reply::ok("text/plain", (0..300).map(word).collect::<String>())
        })
        .serve()
        .await;
    let (clock, words) = (web.url(WWW, "/clock"), web.url(WWW, "/words"));
    let told = story
        .seed(&clock)
        .seed(&words)
        .run_until("three visits of each page", || {
            told_visits(&web, &["/api/clock", "/api/words"]) >= 4
        })
        .await;
    for line in &told.of(&clock)[1..3] {
        assert!(line.notes("rendered"), "{line:?}");
        assert!(line.notes("unchanged"), "{line:?}");
        assert!(!line.notes("similar:"), "{line:?}");
        assert_eq!(versions(line), "1ver");
    }
    let second = told.of(&words)[1];
    assert!(second.notes("rendered"), "{second:?}");
    assert!(second.notes("unchanged"), "{second:?}");
    assert!(second.notes("similar:"), "{second:?}");
}

/// Visits of the page that has been visited least.
fn told_visits(web: &Web, targets: &[&str]) -> usize {
    let visits = targets.iter().map(|target| visits(web, target));
    visits.min().unwrap_or_default()
}

#[tokio::test]
async fn a_page_that_is_rendered_no_longer_or_again_has_not_changed_for_that() {
    let Some(story) = story("") else { return };
    let web = site(WWW)
        .answer("/", application)
        .page("/api/", Reply::ok("text/plain", "always the same"))
        .serve()
        .await;
    let page = web.url(WWW, "/");
    let story = story.seed(&page);
    let enough = |more: usize| {
        let before = visits(&web, "/");
        let web = &web;
        move || visits(web, "/") >= before + more
    };
    let first = story.run_until("two visits", enough(3)).await;
    let visited = first.of(&page).len();
    assert_eq!(versions(first.of(&page)[visited - 1]), "1ver");

    // The document differs from that of the last visit. What a browser would show of it is unknown.
    story.amend("browser.render = 'never'");
    let second = story.run_until("visits without a browser", enough(2)).await;
    let plain = second.of(&page)[visited];
    assert!(!plain.notes("rendered"), "{plain:?}");
    assert!(!plain.notes("unchanged"), "{plain:?}");
    assert_eq!(versions(plain), "1ver", "{plain:?}");

    story.amend("browser.render = 'always'");
    let visited = second.of(&page).len();
    let before = versions(second.of(&page)[visited - 1]).to_owned();
    let third = story.run_until("visits with a browser", enough(3)).await;
    let shown = &third.of(&page)[visited..];
    assert!(shown[0].notes("rendered"), "{shown:?}");
    assert!(!shown[0].notes("unchanged"), "{shown:?}");
    assert_eq!(versions(shown[0]), before, "{shown:?}");
    assert!(shown[1].notes("unchanged"), "{shown:?}");
}

/// An article, and an application that shows another one at each visit. Neither changes for its server.
async fn article_and_application() -> Web {
    let tagged = |body: String| {
        move |seen: &SeenRequest| match seen.headers.get("if-none-match") {
            Some(tag) if tag == "\"v1\"" => Reply {
                body: "".into(),
                ..Reply::status(304)
            },
            _ => html(&body).with("etag", "\"v1\""),
        }
    };
    let article = format!(
        "<h1>An article</h1><p>{}</p><script>/* {} */</script>",
        "Words of it. ".repeat(100),
        "measuring ".repeat(20)
    );
    let application = APPLICATION.replace("<script>", "<script type=module>");
    site(WWW)
        .answer("/article", tagged(article))
        .answer("/application", tagged(application.clone()))
        .answer("/api/application", |seen| {
            Reply::ok("text/plain", format!("visit {}", seen.visit))
        })
        .and(CDN)
        .page("/other", html(&application))
        .serve()
        .await
}

#[tokio::test]
async fn with_auto_those_pages_are_rendered_that_a_filter_asks_for() {
    let of_site = format!(
        "browser.render = 'auto'\n[[override]]\nmatch.host = ['{CDN}']\nstacks.render = []"
    );
    let Some(story) = story(&of_site) else { return };
    let web = article_and_application().await;
    let (article, application) = (web.url(WWW, "/article"), web.url(WWW, "/application"));
    let told = story
        .seed(&article)
        .seed(&application)
        .seed(web.url(CDN, "/other"))
        .run_until("three visits of each page", || {
            told_visits(&web, &["/article", "/application"]) >= 4 && visits(&web, "/other") > 1
        })
        .await;
    for line in told.of(&article) {
        assert!(
            !line.notes("rendered") && !line.notes("render:"),
            "{line:?}"
        );
    }
    for (number, line) in told.of(&application).iter().take(3).enumerate() {
        assert!(line.notes("render:needs-browser:"), "{line:?}");
        assert!(line.notes("rendered"), "{line:?}");
        assert_eq!(versions(line), format!("{}ver", number + 1));
    }
    // The site has another stack.
    let other = told.of(&web.url(CDN, "/other"))[0];
    assert!(!other.notes("rendered"), "{other:?}");
    // Only a page that needs no browser can be unchanged for its server.
    for request in web.requests() {
        let is_first = request.visit == 1;
        let is_asked = request.headers.contains_key("if-none-match");
        match &*request.target {
            "/article" => assert_eq!(is_asked, !is_first, "{request:?}"),
            "/application" => assert!(!is_asked, "{request:?}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_page_that_was_to_be_rendered_and_was_not_comes_with_its_body_again() {
    let web = article_and_application().await;
    let story = revisiting();
    let broken = story.file(
        "chromium",
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo Chromium 150.0.1.2; exit 0; }\nexit 127\n",
    );
    let executable = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(&broken, executable).unwrap();
    let application = web.url(WWW, "/application");
    let told: FinishedCrawl = story
        .profile(&format!(
            "[browser]\nrender = 'auto'\nexecutable = '{}'",
            broken.display()
        ))
        .seed(&application)
        .run_until("three visits", || visits(&web, "/application") >= 3)
        .await;
    for line in told.of(&application) {
        assert!(line.notes("render:needs-browser:"), "{line:?}");
        assert!(line.notes("notRendered:doesNotStart"), "{line:?}");
    }
    // The document itself is the same.
    let second = told.of(&application)[1];
    assert!(second.notes("unchanged"), "{second:?}");
    let is_asked = |it: &SeenRequest| it.headers.contains_key("if-none-match");
    assert!(!web.requests().iter().any(is_asked));
}
