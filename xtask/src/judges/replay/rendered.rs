//! Pages that need a browser, crawled with one. pywb replays them in Chromium, where each must look as it did in the crawl, and
//! py-wacz validates a package of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use opilio_test_web::{Reply, Web};

use super::{POLITENESS, crawl};
use crate::command::{is_root, status};
use crate::repository::root;

/// The host of the pages. `tests/judges/rendered.py` knows what is on them.
const SITE: &str = "rendered.judge.localhost";

/// Crawls the pages, and has them replayed and packed.
pub(super) async fn judge(
    home: &Path,
    opilio: &Path,
    python: &Path,
    chromium: &Path,
) -> Result<()> {
    let home = home.join("rendered");
    fs::create_dir_all(&home)?;
    let web = pages().serve().await?;
    let origin = web.url(SITE, "");
    let profile = home.join("profile.toml");
    fs::write(&profile, settings(&web.url(SITE, "/")))?;
    let job = home.join("job");
    crawl(opilio, &profile, &job).await?;
    // What is replayed must come from the archive.
    drop(web);
    let (warcs, index) = (job.join("warcs"), home.join("pywb.cdxj"));
    let wacz = home.join("rendered.wacz");
    status(Command::new(opilio).args(["warc", "check"]).arg(&job))?;
    status(
        Command::new(opilio)
            .args(["warc", "index", "--output"])
            .args([&index, &warcs]),
    )?;
    status(
        Command::new(opilio)
            .arg("package")
            .arg(&job)
            .arg("-o")
            .arg(&wacz),
    )?;
    status(
        Command::new(python)
            .args(["-m", "wacz.main", "validate", "-f"])
            .arg(&wacz),
    )?;
    status(
        Command::new(python)
            .arg(root().join("tests/judges/rendered.py"))
            .args([&warcs, &index, &wacz])
            .arg(origin)
            .arg(chromium)
            .arg(&home),
    )
}

fn settings(seed: &str) -> String {
    // Chromium's own sandbox needs another user than root.
    let sandbox = !is_root();
    format!(
        r#"name = "rendered"
strategy = "snapshot"
seeds = ["{seed}"]
stacks.behave = ["autoplay", "autoscroll", "load-more"]

[plugins.load-more]
component = "builtin:load-more"

[browser]
render = "always"
sandbox = {sandbox}
{POLITENESS}
"#
    )
}

fn pages() -> opilio_test_web::WebBuilder {
    let mut web = Web::builder();
    let site = web.site(SITE);
    let links = ["/app", "/search", "/endless", "/lazy", "/parts", "/more"];
    let links = links.map(|it| format!("<a href=\"{it}\">{it}</a> "));
    site.page("/", page("Home", &links.concat()));
    site.page("/app", page("Application", APPLICATION));
    site.page(
        "/api/news",
        Reply::ok("application/json", "[\"One\", \"Two\"]"),
    );
    site.page("/api/old", Reply::ok("text/plain", "By XMLHttpRequest."));
    site.page("/search", page("Search", SEARCH));
    site.answer("/api/search", |seen| {
        let question = String::from_utf8_lossy(&seen.body);
        Reply::ok(
            "text/plain",
            format!("Found by {}: {question}", seen.method),
        )
    });
    site.page("/endless", page("Endless", ENDLESS));
    site.page("/more", page("More", MORE));
    for part in 1..=4 {
        let text = format!("Part {part} of four.");
        site.page(&format!("/part/{part}"), Reply::ok("text/plain", text));
    }
    site.page("/lazy", page("Lazy", LAZY));
    for (name, colour) in [("red", "#b22"), ("green", "#282"), ("blue", "#22b")] {
        let picture = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"200\"><rect width=\"300\" height=\"200\" fill=\"{colour}\"/></svg>"
        );
        site.page(&format!("/{name}.svg"), Reply::ok("image/svg+xml", picture));
    }
    site.page("/parts", page("Parts", PARTS));
    site.page(
        "/frame",
        page(
            "Frame",
            "<p id=inside></p><script>document.querySelector('#inside').textContent = 'Written in a frame.'</script>",
        ),
    );
    web
}

fn page(title: &str, body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>{body}</body></html>\n"
    ))
}

/// Three routes, and answers by fetch and by `XMLHttpRequest`.
const APPLICATION: &str = r"<div id=root></div><script>
const root = document.querySelector('#root');
const put = (html) => root.insertAdjacentHTML('beforeend', html);
const show = async () => {
    const news = await (await fetch('/api/news')).json();
    for (const item of news) put(`<h2 style='background: #ddf'>${item}</h2>`);
    const old = new XMLHttpRequest();
    old.open('GET', '/api/old');
    old.onload = () => put(`<p id=old>${old.responseText}</p>`);
    old.send();
    history.replaceState({}, '', '#/news/2');
};
show();
</script>";

/// Questions in bodies: two in JSON, one as a form, one by `XMLHttpRequest`.
const SEARCH: &str = r"<ol id=found></ol><script>
const put = (text) => document.querySelector('#found').insertAdjacentHTML('beforeend', `<li>${text}</li>`);
const ask = async (body, type) => {
    const answer = await fetch('/api/search', {method: 'POST', body, headers: {'content-type': type}});
    put(await answer.text());
};
const run = async () => {
    await ask(JSON.stringify({query: 'apples', page: 1}), 'application/json');
    await ask(JSON.stringify({query: 'pears', page: 2}), 'application/json');
    await ask('query=plums&page=3', 'application/x-www-form-urlencoded');
    const old = new XMLHttpRequest();
    old.open('PUT', '/api/search');
    old.setRequestHeader('content-type', 'application/json');
    old.onload = () => put(old.responseText);
    old.send(JSON.stringify({query: 'quinces'}));
};
run();
</script>";

/// Loads a part whenever its end is in sight, up to four.
const ENDLESS: &str = r"<div style='height: 1500px; background: linear-gradient(#efe, #8c8)'>first</div><p id=end>end</p><script>
const end = document.querySelector('#end');
let part = 0;
new IntersectionObserver(async (seen) => {
    if (part >= 4 || !seen.some((it) => it.isIntersecting)) return;
    const text = await (await fetch(`/part/${++part}`)).text();
    end.insertAdjacentHTML('beforebegin', `<div class=part style='height: 1200px'>${text}</div>`);
}).observe(end);
</script>";

/// Loads parts by clicks.
const MORE: &str = r"<div id=parts></div><button>Load more</button><script>
let part = 0;
const button = document.querySelector('button');
// pywb wraps scripts, so that attributes of handlers do not see their functions.
button.onclick = async () => {
    button.disabled = true;
    const text = await (await fetch(`/part/${++part}`)).text();
    document.querySelector('#parts').insertAdjacentHTML('beforeend', `<h2 class=part>${text}</h2>`);
    button.disabled = false;
    if (part === 3) button.remove();
};
</script>";

/// A picture in sight, one far below, and one that depends on the screen.
const LAZY: &str = r"<img id=near loading=lazy src=/red.svg>
<img id=choice srcset='/green.svg 1x, /blue.svg 2x' alt=''>
<div style='height: 6000px'></div><img id=far loading=lazy src='/blue.svg'>";

/// A frame, a shadow root, and a WebSocket, which is refused. In pywb's replay it neither opens nor fails.
const PARTS: &str = r"<iframe src=/frame width=400 height=80></iframe><div id=host></div><script>
const shadow = document.querySelector('#host').attachShadow({mode: 'open'});
shadow.innerHTML = '<style>b { color: rgb(180, 30, 30) }</style><b>In the shadow.</b>';
const socket = new WebSocket('ws://' + location.host + '/live');
socket.onmessage = () => { document.body.textContent = 'not in the archive' };
</script>";
