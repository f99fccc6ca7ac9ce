//! robots.txt, directives for robots in pages, and the policies of the profile for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opilio_stories::{FinishedCrawl, Rogue, RogueStep, Rogues, crawl, html, lines, pauses, site};
use opilio_test_web::{Reply, Web};

use crate::many::{A, B};
use crate::revisits::visits;

const RULES: &str = "User-agent: *\nDisallow: /private\nUser-agent: big\nDisallow:\nUser-agent: small\nDisallow: /small\n";

fn rules(text: &str) -> Reply {
    Reply::ok("text/plain", text.to_owned())
}

async fn with_rules() -> Web {
    site(A)
        .page("/robots.txt", rules(RULES))
        .page("/", html("<a href='/private/a.html'>a</a>"))
        .page("/private/a.html", html("private"))
        .serve()
        .await
}

async fn crawl_with(web: &Web, robots: &str) -> FinishedCrawl {
    let story = crawl().profile(&format!("[robots]\n{robots}"));
    story.seed(web.url(A, "/")).run().await.finished()
}

#[track_caller]
fn check(web: &Web, result: &FinishedCrawl, status: i32, is_noted: bool) {
    let line = result.sole(&web.url(A, "/private/a.html"));
    assert_eq!(line.status, status, "{line:?}");
    assert_eq!(line.notes("robotExcluded"), is_noted, "{line:?}");
    assert_eq!(line.notes("robotsLine:2"), is_noted, "{line:?}");
    let robots = result.records("response", &web.url(A, "/robots.txt"));
    assert_eq!(robots.len(), 1, "robots.txt is archived under every policy");
}

#[tokio::test]
async fn a_forbidden_uri_is_annotated_with_the_line_of_robots_txt() {
    let web = with_rules().await;
    for policy in ["obey", "obey-txt-only"] {
        check(
            &web,
            &crawl_with(&web, &format!("policy = '{policy}'")).await,
            -9998,
            true,
        );
    }
    assert!(
        web.requests()
            .iter()
            .all(|seen| !seen.target.starts_with("/private"))
    );
}

#[tokio::test]
async fn ignored_and_audited_rules_forbid_nothing_and_audited_ones_are_annotated() {
    let web = with_rules().await;
    check(
        &web,
        &crawl_with(&web, "policy = 'ignore'").await,
        200,
        false,
    );
    let audited = crawl_with(&web, "policy = 'audit'").await;
    check(&web, &audited, 200, true);
    let metadata = audited.record("metadata", &web.url(A, "/private/a.html"));
    assert!(
        metadata.text().contains("robotExcluded,robotsLine:2"),
        "{}",
        metadata.text()
    );
}

#[tokio::test]
async fn a_custom_text_replaces_the_robots_txt_of_the_site() {
    let web = with_rules().await;
    let custom = "policy = 'custom'\ntext = \"User-agent: *\\nDisallow: /other\\n\"";
    check(&web, &crawl_with(&web, custom).await, 200, false);
    let custom = "policy = 'custom'\ntext = \"# mine\\nUser-agent: *\\nDisallow: /private/\\n\"";
    let line = crawl_with(&web, custom).await;
    let line = line.sole(&web.url(A, "/private/a.html"));
    assert!(
        line.status == -9998 && line.notes("robotsLine:3"),
        "{line:?}"
    );
}

#[tokio::test]
async fn rules_for_other_agents_apply_and_masquerade_sends_their_names() {
    let web = with_rules().await;
    check(
        &web,
        &crawl_with(&web, "policy = 'first-named'\nagents = ['absent']").await,
        -9998,
        true,
    );
    check(
        &web,
        &crawl_with(&web, "policy = 'first-named'\nagents = ['absent', 'small']").await,
        200,
        false,
    );
    let favoured = "policy = 'most-favoured'\nagents = ['big']\nmasquerade = true";
    check(&web, &crawl_with(&web, favoured).await, 200, false);
    let agents: Vec<_> = web
        .requests()
        .iter()
        .filter(|seen| seen.target.starts_with("/private"))
        .map(|seen| seen.headers["user-agent"].to_str().unwrap().to_owned())
        .collect();
    assert!(
        agents.len() == 2 && agents[0].contains("opilio") && agents[1] == "big",
        "{agents:?}"
    );
}

#[tokio::test]
async fn a_policy_of_an_override_applies_to_matching_uris() {
    let web = with_rules().await;
    let story =
        crawl().profile("[[override]]\nmatch.regex = '/private/'\nrobots = { policy = 'ignore' }");
    let result = story.seed(web.url(A, "/")).run().await.finished();
    check(&web, &result, 200, false);
}

#[tokio::test]
async fn a_page_allowed_by_new_rules_is_fetched_when_the_old_rules_expire() {
    let is_open = Arc::new(AtomicBool::new(false));
    let now = is_open.clone();
    let web = site(A)
        .answer("/robots.txt", move |_| match now.load(Ordering::SeqCst) {
            false => rules(RULES),
            true => rules("User-agent: *\nDisallow:\n"),
        })
        .page("/private/a.html", html("private"))
        .serve()
        .await;
    // The maximum wait is four weeks, so only the expiry of the rules leads to a visit.
    let story = crawl().profile("strategy = 'revisit'\n[robots]\nexpires = '300ms'");
    let page = web.url(A, "/private/a.html");
    let story = story.seed(page.clone());
    // The rules change only after the first refusal: on a busy machine they may expire before the first visit of the page.
    let is_fetched = || {
        if lines(&story.job()).iter().any(|line| line.status == -9998) {
            is_open.store(true, Ordering::SeqCst);
        }
        visits(&web, "/private/a.html") > 0
    };
    let result = story.run_until("the page", is_fetched).await;
    let statuses: Vec<_> = result.of(&page).iter().map(|line| line.status).collect();
    assert!(
        statuses.len() > 1 && statuses[0] == -9998 && statuses.ends_with(&[200]),
        "{statuses:?}"
    );
}

#[tokio::test]
async fn links_of_a_page_with_nofollow_are_not_followed() {
    let by_meta =
        "<meta name=robots content='noindex, NoFollow'><a href='/x.html'>x</a><img src=i.png>";
    let web = site(A)
        .page(
            "/",
            html("<a href='/meta.html'>m</a><a href='/header.html'>h</a>"),
        )
        .page("/meta.html", html(by_meta))
        .page(
            "/header.html",
            html("<a href='/y.html'>y</a>").with("x-robots-tag", "opilio: nofollow"),
        )
        .rest(|_| html("found"))
        .serve()
        .await;
    let obeyed = crawl_with(&web, "").await;
    for page in ["/x.html", "/i.png", "/y.html"] {
        assert!(obeyed.of(&web.url(A, page)).is_empty(), "{page}");
    }
    let meta = obeyed.sole(&web.url(A, "/meta.html"));
    assert!(meta.notes("robotsTag:nofollow+noindex"), "{meta:?}");
    let header = obeyed.sole(&web.url(A, "/header.html"));
    assert!(header.notes("robotsTag:nofollow"), "{header:?}");
    let txt_only = crawl_with(&web, "policy = 'obey-txt-only'").await;
    for page in ["/x.html", "/i.png", "/y.html"] {
        assert_eq!(txt_only.sole(&web.url(A, page)).status, 200);
    }
    let meta = txt_only.sole(&web.url(A, "/meta.html"));
    assert!(meta.notes("robotsTag:nofollow+noindex"), "{meta:?}");
}

#[tokio::test]
async fn noarchive_is_annotated_and_obeyed_if_the_profile_says_so() {
    let web = site(A)
        .page(
            "/",
            html("<a href='/b.html'>b</a>").with("x-robots-tag", "noarchive"),
        )
        .page("/b.html", html("b"))
        .serve()
        .await;
    let front = web.url(A, "/");
    let archived = crawl_with(&web, "").await;
    assert_eq!(archived.records("response", &front).len(), 1);
    assert!(archived.sole(&front).notes("robotsTag:noarchive"));
    let obeyed = crawl_with(&web, "noarchive = true").await;
    assert!(obeyed.records("response", &front).is_empty());
    assert!(obeyed.sole(&front).notes("unwritten:noarchive"));
    assert_eq!(
        obeyed.sole(&web.url(A, "/b.html")).status,
        200,
        "links of the page are followed"
    );
}

#[tokio::test]
async fn an_ignored_robots_txt_with_an_error_does_not_delay_the_site() {
    let web = site(A)
        .page("/robots.txt", Reply::status(503))
        .page("/", html("here"))
        .serve()
        .await;
    let requests = |web: &Web| {
        web.requests()
            .iter()
            .filter(|seen| seen.target == "/robots.txt")
            .count()
    };
    let result = crawl_with(&web, "policy = 'ignore'").await;
    assert_eq!(result.sole(&web.url(A, "/")).status, 200);
    assert_eq!(requests(&web), 1);
    let result = crawl_with(&web, "policy = 'obey'").await;
    assert_eq!(result.sole(&web.url(A, "/")).status, -61);
}

/// The failure of robots.txt is remembered for longer than the politeness delay. Otherwise each page would request it again.
#[tokio::test]
async fn an_ignored_robots_txt_that_cannot_be_fetched_is_requested_once() {
    let rogue = Rogue::new("idle")
        .answers("/robots.txt", [RogueStep::Reset])
        .answers(
            "/",
            [
                RogueStep::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage".to_vec()),
                RogueStep::Close,
            ],
        );
    let rogues = Rogues::serve([rogue]);
    let page = rogues.url("idle", "/");
    let story = crawl()
        .profile("strategy = 'revisit'\nrevisit = { min-wait = '10ms', default-wait = '1h' }")
        .profile(
            "politeness = { min-delay = '50ms', max-delay = '50ms' }\nrobots.policy = 'ignore'",
        )
        .seed(&page);
    let enough = || lines(&story.job()).iter().any(|line| line.uri == page);
    let result = story.run_until("the page was fetched", enough).await;
    assert_eq!(result.sole(&page).status, 200);
    let requests = rogues.asked();
    let robots = requests
        .iter()
        .filter(|request| request.target == "/robots.txt");
    assert_eq!(robots.count(), 1, "{requests:?}");
}

#[tokio::test]
async fn robots_txt_is_not_requested_again_after_a_restart() {
    let pages: String = (0..5)
        .map(|n| format!("<a href='/{n}.html'>{n}</a>"))
        .collect();
    let web = site(A)
        .page("/robots.txt", rules(RULES))
        .page("/", html(&pages))
        .rest(|_| html("a page"))
        .serve()
        .await;
    let story = crawl().profile("workers = 1").seed(web.url(A, "/"));
    story
        .run_until("the first pages", || web.requests().len() >= 3)
        .await;
    story.run().await.finished();
    let robots = web
        .requests()
        .iter()
        .filter(|seen| seen.target == "/robots.txt")
        .count();
    assert_eq!(robots, 1);
}

#[tokio::test]
async fn a_robots_txt_redirected_to_another_host_applies() {
    let shared = |web_of_b: &str| Reply::redirect(301, web_of_b);
    let b = site(B)
        .page("/robots.txt", rules("User-agent: *\nDisallow: /private\n"))
        .rest(|_| html("b"))
        .serve()
        .await;
    let to_b = b.url(B, "/robots.txt");
    let a = site(A)
        .page("/robots.txt", shared(&to_b))
        .page("/", html("<a href='/private/'>p</a>"))
        .serve()
        .await;
    let result = crawl()
        .seed(b.url(B, "/"))
        .seed(a.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(result.sole(&a.url(A, "/private/")).status, -9998);
}

#[tokio::test]
async fn a_redirected_robots_txt_obeys_the_politeness_delay_of_its_target() {
    let links: String = (0..4)
        .map(|n| format!("<a href='/{n}.html'>{n}</a>"))
        .collect();
    let web = site(B)
        .page("/", html(&links))
        .page("/shared.txt", rules("User-agent: *\nDisallow: /private\n"))
        .rest(|_| html("b"))
        .and(A)
        .page("/", html("<a href='/private/'>p</a>"))
        .answer("/robots.txt", |seen| {
            let port = seen.headers["host"]
                .to_str()
                .unwrap()
                .rsplit_once(':')
                .unwrap()
                .1
                .to_owned();
            // After this time, the crawl fetches pages of the other host.
            Reply::redirect(301, &format!("http://{B}:{port}/shared.txt"))
                .taking(Duration::from_millis(150))
        })
        .serve()
        .await;
    let result = crawl()
        .profile(
            "[[override]]\nmatch.host = ['b.localhost']\npoliteness = { min-delay = '100ms', max-delay = '100ms' }",
        )
        .seed(web.url(B, "/"))
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(result.sole(&web.url(A, "/private/")).status, -9998);
    let pauses = pauses(&web, |seen| seen.host == B);
    assert_eq!(pauses.len(), 6);
    assert!(
        pauses
            .iter()
            .all(|pause| *pause >= Duration::from_millis(100)),
        "{pauses:?}"
    );
}
