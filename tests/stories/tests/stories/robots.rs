//! Directives for robots, and the profile's policies for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opilio_stories::{FinishedCrawl, Rogue, RogueStep, Rogues, crawl, html, lines, rests, site};
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

async fn told(web: &Web, robots: &str) -> FinishedCrawl {
    let story = crawl().profile(&format!("[robots]\n{robots}"));
    story.seed(web.url(A, "/")).run().await.finished()
}

#[track_caller]
fn check(web: &Web, told: &FinishedCrawl, status: i32, is_noted: bool) {
    let line = told.sole(&web.url(A, "/private/a.html"));
    assert_eq!(line.status, status, "{line:?}");
    assert_eq!(line.notes("robotExcluded"), is_noted, "{line:?}");
    assert_eq!(line.notes("robotsLine:2"), is_noted, "{line:?}");
    let robots = told.records("response", &web.url(A, "/robots.txt"));
    assert_eq!(robots.len(), 1, "it is archived whatever the policy");
}

#[tokio::test]
async fn what_is_forbidden_is_refused_by_name_of_the_line() {
    let web = with_rules().await;
    for policy in ["obey", "obey-txt-only"] {
        check(
            &web,
            &told(&web, &format!("policy = '{policy}'")).await,
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
async fn ignored_and_audited_rules_stop_nothing_and_an_audit_notes_them() {
    let web = with_rules().await;
    check(&web, &told(&web, "policy = 'ignore'").await, 200, false);
    let audited = told(&web, "policy = 'audit'").await;
    check(&web, &audited, 200, true);
    let metadata = audited.record("metadata", &web.url(A, "/private/a.html"));
    assert!(
        metadata.text().contains("robotExcluded,robotsLine:2"),
        "{}",
        metadata.text()
    );
}

#[tokio::test]
async fn a_text_of_the_profile_holds_in_place_of_the_sites() {
    let web = with_rules().await;
    let custom = "policy = 'custom'\ntext = \"User-agent: *\\nDisallow: /other\\n\"";
    check(&web, &told(&web, custom).await, 200, false);
    let custom = "policy = 'custom'\ntext = \"# mine\\nUser-agent: *\\nDisallow: /private/\\n\"";
    let line = told(&web, custom).await;
    let line = line.sole(&web.url(A, "/private/a.html"));
    assert!(
        line.status == -9998 && line.notes("robotsLine:3"),
        "{line:?}"
    );
}

#[tokio::test]
async fn other_robots_stand_in_for_us_under_their_names_where_wanted() {
    let web = with_rules().await;
    check(
        &web,
        &told(&web, "policy = 'first-named'\nagents = ['absent']").await,
        -9998,
        true,
    );
    check(
        &web,
        &told(&web, "policy = 'first-named'\nagents = ['absent', 'small']").await,
        200,
        false,
    );
    let favoured = "policy = 'most-favoured'\nagents = ['big']\nmasquerade = true";
    check(&web, &told(&web, favoured).await, 200, false);
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
async fn a_policy_holds_for_what_its_override_matches() {
    let web = with_rules().await;
    let story =
        crawl().profile("[[override]]\nmatch.regex = '/private/'\nrobots = { policy = 'ignore' }");
    let told = story.seed(web.url(A, "/")).run().await.finished();
    check(&web, &told, 200, false);
}

#[tokio::test]
async fn a_page_that_is_opened_is_fetched_when_the_rules_that_closed_it_expire() {
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
    // The longest wait is four weeks.
    let story = crawl().profile("strategy = 'revisit'\n[robots]\nexpires = '300ms'");
    let page = web.url(A, "/private/a.html");
    let story = story.seed(page.clone());
    // On a busy machine the first rules may have expired before the page is first looked at.
    let is_fetched = || {
        if lines(&story.job()).iter().any(|line| line.status == -9998) {
            is_open.store(true, Ordering::SeqCst);
        }
        visits(&web, "/private/a.html") > 0
    };
    let told = story.run_until("the page", is_fetched).await;
    let statuses: Vec<_> = told.of(&page).iter().map(|line| line.status).collect();
    assert!(
        statuses.len() > 1 && statuses[0] == -9998 && statuses.ends_with(&[200]),
        "{statuses:?}"
    );
}

#[tokio::test]
async fn links_of_a_page_that_says_nofollow_are_not_followed() {
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
    let obeyed = told(&web, "").await;
    for page in ["/x.html", "/i.png", "/y.html"] {
        assert!(obeyed.of(&web.url(A, page)).is_empty(), "{page}");
    }
    let meta = obeyed.sole(&web.url(A, "/meta.html"));
    assert!(meta.notes("robotsTag:nofollow+noindex"), "{meta:?}");
    let header = obeyed.sole(&web.url(A, "/header.html"));
    assert!(header.notes("robotsTag:nofollow"), "{header:?}");
    let not_heeded = told(&web, "policy = 'obey-txt-only'").await;
    for page in ["/x.html", "/i.png", "/y.html"] {
        assert_eq!(not_heeded.sole(&web.url(A, page)).status, 200);
    }
    let meta = not_heeded.sole(&web.url(A, "/meta.html"));
    assert!(meta.notes("robotsTag:nofollow+noindex"), "{meta:?}");
}

#[tokio::test]
async fn noarchive_is_noted_and_heeded_where_wanted() {
    let web = site(A)
        .page(
            "/",
            html("<a href='/b.html'>b</a>").with("x-robots-tag", "noarchive"),
        )
        .page("/b.html", html("b"))
        .serve()
        .await;
    let front = web.url(A, "/");
    let kept = told(&web, "").await;
    assert_eq!(kept.records("response", &front).len(), 1);
    assert!(kept.sole(&front).notes("robotsTag:noarchive"));
    let heeded = told(&web, "noarchive = true").await;
    assert!(heeded.records("response", &front).is_empty());
    assert!(heeded.sole(&front).notes("unwritten:noarchive"));
    assert_eq!(
        heeded.sole(&web.url(A, "/b.html")).status,
        200,
        "its links are followed"
    );
}

#[tokio::test]
async fn nobody_waits_for_a_robots_txt_that_is_not_gone_by() {
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
    let told_so = told(&web, "policy = 'ignore'").await;
    assert_eq!(told_so.sole(&web.url(A, "/")).status, 200);
    assert_eq!(requests(&web), 1);
    let told_so = told(&web, "policy = 'obey'").await;
    assert_eq!(told_so.sole(&web.url(A, "/")).status, -61);
}

/// Denials are known for longer than queues rest, or each page would ask for robots.txt again.
#[tokio::test]
async fn a_robots_txt_that_cannot_be_fetched_is_asked_for_once_if_nobody_goes_by_it() {
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
    let told = story.run_until("the page was there", enough).await;
    assert_eq!(told.sole(&page).status, 200);
    let asked = rogues.asked();
    let robots = asked.iter().filter(|asked| asked.target == "/robots.txt");
    assert_eq!(robots.count(), 1, "{asked:?}");
}

#[tokio::test]
async fn a_restart_does_not_ask_for_robots_txt_again() {
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
async fn one_redirected_robots_txt_serves_all_hosts_that_share_it() {
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
    let told = crawl()
        .seed(b.url(B, "/"))
        .seed(a.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.sole(&a.url(A, "/private/")).status, -9998);
}

#[tokio::test]
async fn a_redirected_robots_txt_costs_the_other_host_no_rest() {
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
            // By then the other host is at its pages.
            Reply::redirect(301, &format!("http://{B}:{port}/shared.txt"))
                .taking(Duration::from_millis(150))
        })
        .serve()
        .await;
    let told = crawl()
        .profile(
            "[[override]]\nmatch.host = ['b.localhost']\npoliteness = { min-delay = '100ms', max-delay = '100ms' }",
        )
        .seed(web.url(B, "/"))
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.sole(&web.url(A, "/private/")).status, -9998);
    let rests = rests(&web, |seen| seen.host == B);
    assert_eq!(rests.len(), 6);
    assert!(
        rests.iter().all(|rest| *rest >= Duration::from_millis(100)),
        "{rests:?}"
    );
}
