//! Embeds of pages that are visited again.

use opilio_stories::{html, site};
use opilio_test_web::{Gate, Reply, SeenRequest, Web};

use crate::many::{A, hosts};
use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";
const ELSEWHERE: &str = "elsewhere.localhost";

/// Settings with a long wait for pictures: without `refresh-embeds`, this story would not visit a picture twice.
const PICTURES_WAIT: &str = r#"
    revisit = { refresh-embeds = true, max-wait = "4w" }
    [[override]]
    match.media-type = ["image/*"]
    revisit = { min-wait = "1h", default-wait = "1h" }
"#;

#[tokio::test]
async fn embeds_are_refreshed_with_a_changed_page_only() {
    let web = hosts(&[A], 0, &Reply::ok("image/png", "a picture"))
        .answer("/", |seen| {
            html(&format!(
                "{} <img src='/changing.png'> <a href='/same.html'>s</a>",
                seen.visit
            ))
        })
        .page("/same.html", html("<img src='/same.png'>"))
        .serve()
        .await;
    revisiting()
        .profile(PICTURES_WAIT)
        .seed(web.url(A, "/"))
        .run_until("visits of both pages", || {
            visits(&web, "/changing.png") >= 3 && visits(&web, "/same.html") >= 3
        })
        .await;
    assert!(visits(&web, "/changing.png") <= visits(&web, "/"));
    assert_eq!(visits(&web, "/same.png"), 1);
}

/// Serves a page that shows a picture of another site at its first two visits only.
async fn web_that_drops_a_picture(
    page: impl Fn(usize, Reply) -> Reply + Send + Sync + 'static,
    picture: impl Fn(usize, Reply) -> Reply + Send + Sync + 'static,
) -> Web {
    let shown = |seen: &SeenRequest| {
        let port = seen.headers["host"]
            .to_str()
            .unwrap()
            .rsplit_once(':')
            .unwrap()
            .1;
        format!("<img src='http://{ELSEWHERE}:{port}/picture.png'>")
    };
    site(WWW)
        .answer("/", move |seen| {
            let body = match seen.visit {
                1 | 2 => shown(seen),
                visit => format!("version {visit}"),
            };
            page(seen.visit, html(&body))
        })
        .and(ELSEWHERE)
        .answer("/picture.png", move |seen| {
            picture(seen.visit, Reply::ok("image/png", "a picture"))
        })
        .serve()
        .await
}

#[tokio::test]
async fn an_embed_of_another_site_that_no_page_names_fades() {
    let unchanged = |_, reply| reply;
    let web = web_that_drops_a_picture(unchanged, unchanged).await;
    let result = revisiting()
        .profile("revisit.fade-after = 2")
        .seed(web.url(WWW, "/"))
        .run_until("many visits", || visits(&web, "/") >= 12)
        .await;
    let last = visits_before_last_picture(&web);
    assert!(
        (1..=5).contains(&last),
        "seen before visit {last} of the page"
    );
    assert_eq!(result.summary.progress.statistics.faded, 1);
}

/// The fetch of the picture lasts until the page has been visited without it often enough for the picture to fade.
#[tokio::test]
async fn an_embed_in_process_fades_after_its_visit() {
    let (second_request, enough) = (Gate::of(2), Gate::of(2));
    let (of_page, of_picture) = (
        (second_request.clone(), enough.clone()),
        (second_request, enough),
    );
    let web = web_that_drops_a_picture(
        move |visit, reply| match visit {
            3 => reply.behind(&of_page.0),
            6 => reply.behind(&of_page.1),
            _ => reply,
        },
        move |visit, reply| match visit {
            2 => {
                of_picture.0.come();
                reply.behind(&of_picture.1)
            }
            _ => reply,
        },
    )
    .await;
    let result = revisiting()
        .profile("revisit.fade-after = 2")
        .seed(web.url(WWW, "/"))
        .run_until("many visits", || visits(&web, "/") >= 16)
        .await;
    assert_eq!(result.summary.progress.statistics.faded, 1);
}

/// Returns the number of requests for the page before the last request for the picture.
fn visits_before_last_picture(web: &Web) -> usize {
    let requests = web.requests();
    let last = requests
        .iter()
        .rposition(|seen| seen.target == "/picture.png")
        .unwrap();
    requests[..last]
        .iter()
        .filter(|seen| seen.target == "/")
        .count()
}
