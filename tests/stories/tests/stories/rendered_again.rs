//! Revisits of rendered pages: the rendered content is compared, not the document of the server. Filters choose the pages to
//! render. All stories but the last need Chromium.

use opilio_stories::{FinishedCrawl, LoggedUri, Story, html, site};
use opilio_test_web::{Reply, SeenRequest, Web};

use crate::rendered::rendering;
use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";
const CDN: &str = "cdn.story.localhost";

/// An application that shows the response of `/api` followed by its own path.
const APPLICATION: &str = "<!DOCTYPE html><title>App</title><div id=root></div><script>
    fetch('/api' + location.pathname).then((it) => it.text()).then((it) => {
        root.innerHTML = `<p style='left: ${Math.random()}px'>${it}</p>`;
    });
    </script>";

/// Returns a story that renders and revisits its pages; `None` if Chromium is missing.
fn story(more: &str) -> Option<Story> {
    let story = rendering()?.profile("browser.screenshots = false");
    let revisiting: toml::Table = revisiting().profile_text().parse().unwrap();
    let mut settings = toml::Table::new();
    for name in ["strategy", "plugins", "revisit"] {
        settings.extend(revisiting.get(name).map(|it| (name.to_owned(), it.clone())));
    }
    Some(story.profile(&settings.to_string()).profile(more))
}

/// Returns the application with an invisible difference in its document at each visit.
fn application(seen: &SeenRequest) -> Reply {
    let visit = seen.visit;
    html(&APPLICATION.replace("<script>", &format!("<script nonce=n{visit}>")))
}

fn versions(line: &LoggedUri) -> &str {
    let mut notes = line.annotations.iter();
    notes.find(|note| note.ends_with("ver")).unwrap()
}

#[tokio::test]
async fn rendered_content_is_compared_instead_of_the_document() {
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
    let result = story
        .seed(&moving)
        .seed(&still)
        .run_until("three visits of each page", || {
            fewest_visits(&web, &["/api/moving", "/api/still"]) >= 4
        })
        .await;

    // The document stays the same, and the rendered content changes.
    let lines = result.of(&moving);
    for (number, line) in lines.iter().take(3).enumerate() {
        assert!(line.notes("rendered"), "{line:?}");
        assert!(!line.notes("unchanged"), "{line:?}");
        assert_eq!(versions(line), format!("{}ver", number + 1), "{line:?}");
    }
    // The payload is stored once. Later versions refer to it, and have their own text records.
    let first = result.record("response", &moving);
    for again in result.records("revisit", &moving) {
        assert_eq!(
            again.header("warc-refers-to"),
            first.header("warc-record-id")
        );
        assert_eq!(
            again.header("warc-payload-digest"),
            first.header("warc-payload-digest")
        );
    }
    let texts = result.records("resource", &format!("urn:text:{moving}"));
    assert_eq!(texts[1].text().trim(), "visit 2");

    // The document changes, and the rendered content stays the same.
    let lines = result.of(&still);
    let digests: Vec<_> = lines.iter().map(|line| &line.digest).collect();
    assert_ne!(digests[0], digests[1]);
    for line in &lines[1..3] {
        assert!(line.notes("unchanged"), "{line:?}");
        assert_eq!(versions(line), "1ver");
    }
}

/// The documents of both pages never change. The text that is stripped, or compared for similarity, is only in the rendered pages.
#[tokio::test]
async fn strippers_and_change_evaluators_get_the_rendered_content() {
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
    let result = story
        .seed(&clock)
        .seed(&words)
        .run_until("three visits of each page", || {
            fewest_visits(&web, &["/api/clock", "/api/words"]) >= 4
        })
        .await;
    for line in &result.of(&clock)[1..3] {
        assert!(line.notes("rendered"), "{line:?}");
        assert!(line.notes("unchanged"), "{line:?}");
        assert!(!line.notes("similar:"), "{line:?}");
        assert_eq!(versions(line), "1ver");
    }
    let second = result.of(&words)[1];
    assert!(second.notes("rendered"), "{second:?}");
    assert!(second.notes("unchanged"), "{second:?}");
    assert!(second.notes("similar:"), "{second:?}");
}

/// Returns the smallest number of visits of these targets.
fn fewest_visits(web: &Web, targets: &[&str]) -> usize {
    let visits = targets.iter().map(|target| visits(web, target));
    visits.min().unwrap_or_default()
}

#[tokio::test]
async fn switching_rendering_off_or_on_is_not_a_change_of_the_page() {
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

    // The document differs from that of the last visit, and the rendered content is unknown.
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
    let rendered = &third.of(&page)[visited..];
    assert!(rendered[0].notes("rendered"), "{rendered:?}");
    assert!(!rendered[0].notes("unchanged"), "{rendered:?}");
    assert_eq!(versions(rendered[0]), before, "{rendered:?}");
    assert!(rendered[1].notes("unchanged"), "{rendered:?}");
}

/// Serves an article, and an application whose rendered content changes at each visit. Their documents never change.
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
async fn render_auto_renders_the_pages_that_a_filter_chooses() {
    let of_site = format!(
        "browser.render = 'auto'\n[[override]]\nmatch.host = ['{CDN}']\nstacks.render = []"
    );
    let Some(story) = story(&of_site) else { return };
    let web = article_and_application().await;
    let (article, application) = (web.url(WWW, "/article"), web.url(WWW, "/application"));
    let result = story
        .seed(&article)
        .seed(&application)
        .seed(web.url(CDN, "/other"))
        .run_until("three visits of each page", || {
            fewest_visits(&web, &["/article", "/application"]) >= 4 && visits(&web, "/other") > 1
        })
        .await;
    for line in result.of(&article) {
        assert!(
            !line.notes("rendered") && !line.notes("render:"),
            "{line:?}"
        );
    }
    for (number, line) in result.of(&application).iter().take(3).enumerate() {
        assert!(line.notes("render:needs-browser:"), "{line:?}");
        assert!(line.notes("rendered"), "{line:?}");
        assert_eq!(versions(line), format!("{}ver", number + 1));
    }
    // The override of this site has an empty stack.
    let other = result.of(&web.url(CDN, "/other"))[0];
    assert!(!other.notes("rendered"), "{other:?}");
    // Only requests for pages that need no browser are conditional.
    for request in web.requests() {
        let is_first = request.visit == 1;
        let is_conditional = request.headers.contains_key("if-none-match");
        match &*request.target {
            "/article" => assert_eq!(is_conditional, !is_first, "{request:?}"),
            "/application" => assert!(!is_conditional, "{request:?}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn requests_are_unconditional_if_rendering_has_failed() {
    let web = article_and_application().await;
    let story = revisiting();
    let broken = story.file(
        "chromium",
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo Chromium 150.0.1.2; exit 0; }\nexit 127\n",
    );
    let executable = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(&broken, executable).unwrap();
    let application = web.url(WWW, "/application");
    let result: FinishedCrawl = story
        .profile(&format!(
            "[browser]\nrender = 'auto'\nexecutable = '{}'",
            broken.display()
        ))
        .seed(&application)
        .run_until("three visits", || visits(&web, "/application") >= 3)
        .await;
    for line in result.of(&application) {
        assert!(line.notes("render:needs-browser:"), "{line:?}");
        assert!(line.notes("notRendered:doesNotStart"), "{line:?}");
    }
    // The document itself is the same.
    let second = result.of(&application)[1];
    assert!(second.notes("unchanged"), "{second:?}");
    let is_conditional = |it: &SeenRequest| it.headers.contains_key("if-none-match");
    assert!(!web.requests().iter().any(is_conditional));
}
