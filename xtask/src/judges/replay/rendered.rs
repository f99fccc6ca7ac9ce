//! Pages that need a browser, crawled with one. pywb replays them in Chromium. Each must look as it did in the crawl, and as it
//! does live in a browser without Opilio. py-wacz validates a package of them. Pages that never become idle, or that allocate all
//! memory, must end at their limits.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use opilio_test_web::{Reply, Site, Web};

use super::{POLITENESS, crawl};
use crate::command::{is_root, status};
use crate::repository::root;

/// The host of the pages. `tests/judges/rendered.py` has their expected content.
const SITE: &str = "rendered.judge.localhost";

/// A font whose letters are rectangles, and a video of two seconds in one colour. `tests/judges/media/make.py` generates them.
const FONT: &[u8] = include_bytes!("../../../../tests/judges/media/blocks.ttf");
const CLIP: &[u8] = include_bytes!("../../../../tests/judges/media/clip.webm");

/// Links of the first page.
const LINKS: [&str; 14] = [
    "/app",
    "/search",
    "/endless",
    "/lazy",
    "/parts",
    "/more",
    "/worker/",
    "/fonts",
    "/video",
    "/windows",
    "/downloads",
    "/away",
    "/busy",
    "/greedy",
];

/// Crawls the pages, replays them, and packs them.
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
    let mut screenshots = Command::new(python);
    screenshots
        .arg(root().join("tests/judges/rendered_live.py"))
        .arg(&origin)
        .arg(chromium)
        .arg(&home);
    tokio::task::spawn_blocking(move || status(&mut screenshots)).await??;
    // The web server is stopped, so that replay can only use the archive.
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
    // Chromium's own sandbox does not run as root.
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
load-time = "15s"
memory = "1GiB"
{POLITENESS}
"#
    )
}

fn pages() -> opilio_test_web::WebBuilder {
    let mut web = Web::builder();
    let site = web.site(SITE);
    let links = LINKS.map(|it| format!("<a href=\"{it}\">{it}</a> "));
    site.page("/", page("Home", &links.concat()));
    for route in ["/app", "/app/item/1", "/app/item/2"] {
        site.page(route, page(route, APPLICATION));
    }
    for item in 1..=2 {
        let text = format!("Item {item} in full.");
        site.page(&format!("/api/item/{item}"), Reply::ok("text/plain", text));
    }
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
    site.page("/worker/", page("Worker", WORKER));
    site.page(
        "/worker/worker.js",
        Reply::ok("text/javascript", WORKER_SCRIPT),
    );
    site.page("/fonts", page("Fonts", FONTS));
    site.page("/fonts.css", Reply::ok("text/css", FONT_FACE));
    site.page("/blocks.ttf", Reply::ok("font/ttf", FONT));
    site.page("/video", page("Video", VIDEO));
    parts_of(site, "/clip.webm", "video/webm", CLIP);
    site.page("/windows", page("Windows", WINDOWS));
    site.page("/opened", page("Opened", "<p id=opened>Opened.</p>"));
    site.page("/downloads", page("Downloads", DOWNLOADS));
    // `tests/judges/rendered.py` has the same list.
    let file: Vec<u8> = (0..=255).cycle().take(64 * 1024).collect();
    site.page("/data.bin", Reply::ok("application/octet-stream", file));
    site.page("/away", page("Away", AWAY));
    site.page("/left", page("Left", "<p id=left>Left.</p>"));
    site.page("/busy", page("Busy", BUSY));
    site.page("/poll", Reply::ok("text/plain", "Polled."));
    site.page("/greedy", page("Greedy", GREEDY));
    web
}

/// Serves a file, or the range of it that `Range` requests.
fn parts_of(site: &mut Site, target: &str, media_type: &'static str, file: &'static [u8]) {
    site.answer(target, move |seen| {
        let range = seen.headers.get("range");
        let range = range.and_then(|it| it.to_str().ok()?.strip_prefix("bytes=")?.split_once('-'));
        let first = range.and_then(|(first, _)| first.parse::<usize>().ok());
        let Some(first) = first.filter(|first| *first < file.len()) else {
            return Reply::ok(media_type, file).with("accept-ranges", "bytes");
        };
        let end = file.len() - 1;
        let last = range.and_then(|(_, last)| last.parse::<usize>().ok());
        let last = last.unwrap_or(end).clamp(first, end);
        Reply {
            status: 206,
            ..Reply::ok(media_type, &file[first..=last])
        }
        .with(
            "content-range",
            format!("bytes {first}-{last}/{}", file.len()),
        )
    });
}

fn page(title: &str, body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>{body}</body></html>\n"
    ))
}

/// Three routes: a list with a link to each item, and the items. Data is loaded by fetch and by `XMLHttpRequest`. A click on a link
/// changes the address without loading a document.
const APPLICATION: &str = r"<div id=root></div><script>
const root = document.querySelector('#root');
const put = (html) => root.insertAdjacentHTML('beforeend', html);
const list = async () => {
    const news = await (await fetch('/api/news')).json();
    root.textContent = '';
    for (const [index, title] of news.entries()) {
        const number = index + 1;
        const route = `/app/item/${number}`;
        put(`<h2 style='background: #ddf'><a id=link-${number} href='${route}'>${title}</a></h2>`);
        document.querySelector(`#link-${number}`).onclick = (event) => {
            event.preventDefault();
            history.pushState({}, '', route);
            item(number);
        };
    }
    const old = new XMLHttpRequest();
    old.open('GET', '/api/old');
    old.onload = () => put(`<p id=old>${old.responseText}</p>`);
    old.send();
};
const item = async (number) => {
    const text = await (await fetch(`/api/item/${number}`)).text();
    root.innerHTML = `<p id=item>${text}</p>`;
};
const show = () => {
    const number = location.pathname.split('/item/')[1];
    if (number) item(number); else list();
};
window.addEventListener('popstate', show);
show();
</script>";

/// Requests with bodies: two as JSON, one as a form, one by `XMLHttpRequest`.
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

/// Loads another part whenever its end is visible, up to four.
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
// pywb wraps scripts, so inline event handlers cannot call their functions.
button.onclick = async () => {
    button.disabled = true;
    const text = await (await fetch(`/part/${++part}`)).text();
    document.querySelector('#parts').insertAdjacentHTML('beforeend', `<h2 class=part>${text}</h2>`);
    button.disabled = false;
    if (part === 3) button.remove();
};
</script>";

/// A visible picture, one far below, and one that depends on the screen size.
const LAZY: &str = r"<img id=near loading=lazy src=/red.svg>
<img id=choice srcset='/green.svg 1x, /blue.svg 2x' alt=''>
<div style='height: 6000px'></div><img id=far loading=lazy src='/blue.svg'>";

/// A frame, a shadow root, and a WebSocket, which is refused. In pywb's replay the WebSocket neither opens nor fails.
const PARTS: &str = r"<iframe src=/frame width=400 height=80></iframe><div id=host></div><script>
const shadow = document.querySelector('#host').attachShadow({mode: 'open'});
shadow.innerHTML = '<style>b { color: rgb(180, 30, 30) }</style><b>In the shadow.</b>';
const socket = new WebSocket('ws://' + location.host + '/live');
socket.onmessage = () => { document.body.textContent = 'not in the archive' };
</script>";

/// A worker that answers a request which no server would answer.
const WORKER: &str = r"<p id=words></p><script>
const run = async () => {
    const workers = navigator.serviceWorker;
    await workers.register('/worker/worker.js', {scope: '/worker/'});
    await workers.ready;
    if (!workers.controller) await new Promise((go) => workers.addEventListener('controllerchange', go, {once: true}));
    document.querySelector('#words').textContent = await (await fetch('/worker/words')).text();
};
run();
</script>";

const WORKER_SCRIPT: &str = r"self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
    if (event.request.url.endsWith('/worker/words')) event.respondWith(new Response('Answered by a worker.'));
});
";

/// A font of the site. The script reports whether it was loaded.
const FONTS: &str = r"<link rel=stylesheet href=/fonts.css><p id=text>Set in blocks</p><p id=loaded></p><script>
document.fonts.load('48px Blocks').then((faces) => {
    const isLoaded = faces.length === 1 && document.fonts.check('48px Blocks');
    document.querySelector('#loaded').textContent = isLoaded ? 'Loaded.' : 'Missing.';
});
</script>";

const FONT_FACE: &str =
    "@font-face { font-family: Blocks; src: url(/blocks.ttf) format('truetype') }
#text { font: 48px Blocks, serif }
";

/// A video that browsers load in ranges. All of its frames look alike.
const VIDEO: &str = r"<video id=clip preload=auto muted src=/clip.webm></video><p id=length></p><script>
const clip = document.querySelector('#clip');
const write = () => {
    document.querySelector('#length').textContent = `${Math.round(clip.duration)} s, ${clip.videoWidth} by ${clip.videoHeight}`;
};
if (clip.readyState >= 2) write(); else clip.addEventListener('loadeddata', write);
</script>";

/// A dialog, and a click that opens a window. The address of the window occurs only in the script.
const WINDOWS: &str = r"<p id=said></p><button>Load more</button><script>
document.querySelector('#said').textContent = `Confirmed: ${confirm('Go on?')}`;
const button = document.querySelector('button');
button.onclick = () => {
    window.open(atob('L29wZW5lZA=='));
    button.remove();
};
</script>";

/// A frame that contains a file.
const DOWNLOADS: &str = r"<p>A file comes.</p><script>
const frame = document.createElement('iframe');
frame.style.display = 'none';
frame.src = atob('L2RhdGEuYmlu');
document.body.append(frame);
</script>";

/// A page that navigates to another. The crawl stays on this page, and the other one becomes a link.
const AWAY: &str = r"<p>Soon away.</p><script>
setTimeout(() => { location.href = atob('L2xlZnQ='); }, 500);
</script>";

/// Sends requests for ever.
const BUSY: &str = r"<p id=polled></p><script>
const poll = async () => {
    document.querySelector('#polled').textContent = await (await fetch('/poll')).text();
    setTimeout(poll, 100);
};
poll();
</script>";

/// Allocates memory for ever. It is not replayed.
const GREEDY: &str = r"<p>Greedy.</p><script>
const all = [];
setInterval(() => all.push(new Uint8Array(20e6).fill(1)), 20);
</script>";
