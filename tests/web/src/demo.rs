//! The demo web: a small newspaper of several hosts that changes while it is crawled.
//!
//! Contains an example of everything that a crawler meets: pages, images, style sheets, scripts, a feed, robots.txt, redirects,
//! errors, a clock, encodings, an infinite calendar, and a path that repeats itself. Its changes depend on the number of requests
//! and not on the time, so every crawl gets the same content. [`expected`] lists what a good archive of it must contain and must
//! not contain.

use std::collections::HashMap;
use std::io::Write;

use bytes::Bytes;

use crate::{Reply, SeenRequest, Site, Web, WebBuilder};

/// The main site of the newspaper. Its home page is one of the seeds.
pub const WWW: &str = "www.harvest.localhost";
/// The news site, whose pages change.
pub const NEWS: &str = "news.harvest.localhost";
/// The images, on a host outside the seed's scope.
pub const IMAGES: &str = "images.harvest.localhost";
/// A site that is not part of the crawl.
pub const ELSEWHERE: &str = "elsewhere.localhost";
/// A host that resolves but refuses every connection, because nothing listens on its port.
pub const DOWN: &str = "down.harvest.localhost";
/// The port of [`DOWN`]: the port of the discard service, which is unused today.
pub const DOWN_PORT: u16 = 9;

/// A page that an archive of the demo web is expected to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Archived at least once with this HTTP status.
    Archived(u16),
    /// Archived, and archived again after a change.
    Versions,
    /// Archived once. Its bytes change, but not its content.
    Unchanged,
    /// Archived once; later visits are `revisit` records of this profile.
    Revisited(&'static str),
    /// Never archived.
    Absent,
}

/// Builds the web. Serve it with [`WebBuilder::serve`].
pub fn web() -> WebBuilder {
    let mut web = Web::builder();
    front(web.site(WWW));
    news(web.site(NEWS));
    images(web.site(IMAGES));
    web.site(ELSEWHERE)
        .page("/", page("Elsewhere", "<p>Not part of the harvest.</p>"));
    web
}

/// Seeds of a crawl of the web.
pub fn seeds(web: &Web) -> Vec<String> {
    vec![web.url(WWW, "/"), web.url(NEWS, "/")]
}

/// Every URI that is checked, with its expected result.
pub fn expected(web: &Web) -> Vec<(String, Expected)> {
    use Expected::{Absent, Archived, Revisited, Unchanged, Versions};
    let list: &[(&str, &str, Expected)] = &[
        (WWW, "/robots.txt", Archived(200)),
        (WWW, "/", Archived(200)),
        (WWW, "/about.html", Revisited("identical-payload-digest")),
        (WWW, "/style.css", Archived(200)),
        (WWW, "/fonts.css", Archived(200)),
        (WWW, "/paper.svg", Archived(200)),
        (WWW, "/app.js", Archived(200)),
        (WWW, "/data/stories.json", Archived(200)),
        (WWW, "/prices.html", Archived(200)),
        (WWW, "/prices.js", Archived(200)),
        (WWW, "/inline.png", Archived(200)),
        (WWW, "/striped.png", Archived(200)),
        (WWW, "/clock.html", Unchanged),
        (WWW, "/latin.html", Archived(200)),
        (WWW, "/caf%C3%A9.html", Archived(200)),
        (WWW, "/zipped.html", Archived(200)),
        (WWW, "/zipped-target.html", Archived(200)),
        (WWW, "/chunked.html", Archived(200)),
        (WWW, "/moved", Archived(301)),
        (WWW, "/moved-again", Archived(302)),
        (WWW, "/moved-here.html", Archived(200)),
        (WWW, "/round", Archived(302)),
        (WWW, "/missing.html", Archived(404)),
        (WWW, "/gone.html", Archived(410)),
        (WWW, "/broken.html", Archived(500)),
        (WWW, "/calendar/1", Archived(200)),
        (WWW, "/calendar/2", Archived(200)),
        (WWW, "/calendar/40", Absent),
        (WWW, "/loop/", Archived(200)),
        (WWW, "/loop/loop/loop/loop/loop/", Absent),
        (WWW, "/private/secret.html", Absent),
        (WWW, "/commented-out.html", Absent),
        (NEWS, "/", Versions),
        (NEWS, "/feed.xml", Archived(200)),
        (NEWS, "/story/1.html", Revisited("server-not-modified")),
        (NEWS, "/story/2.html", Archived(200)),
        (IMAGES, "/robots.txt", Archived(200)),
        (IMAGES, "/press.png", Archived(200)),
        (IMAGES, "/press-2x.png", Archived(200)),
        (IMAGES, "/gallery.html", Absent),
        (ELSEWHERE, "/", Absent),
    ];
    list.iter()
        .map(|&(host, target, expected)| (web.url(host, target), expected))
        .collect()
}

/// Returns `true` if every expected URI has been requested often enough.
pub fn is_visited(web: &Web) -> bool {
    let mut visits: HashMap<String, usize> = HashMap::new();
    for seen in web.requests() {
        *visits.entry(web.url(&seen.host, &seen.target)).or_default() += 1;
    }
    let enough = |(uri, expected): (String, Expected)| {
        let least = match expected {
            Expected::Absent => 0,
            Expected::Archived(_) => 1,
            Expected::Unchanged | Expected::Revisited(_) => 2,
            // Every second response is a new version.
            Expected::Versions => 3,
        };
        visits.get(&uri).copied().unwrap_or(0) >= least
    };
    expected(web).into_iter().all(enough)
}

fn front(site: &mut Site) {
    site.page(
        "/robots.txt",
        Reply::ok("text/plain", "User-agent: *\nDisallow: /private/\nCrawl-delay: 0\n\nUser-agent: greedy\nDisallow: /\n"),
    );
    site.answer("/", |seen| {
        let images = here(seen, IMAGES);
        let news = here(seen, NEWS);
        let elsewhere = here(seen, ELSEWHERE);
        page(
            "The Daily Harvest",
            &format!(
                r#"<link rel="stylesheet" href="/style.css"><script src="app.js" defer></script>
<style>header {{ background: url("/inline.png") }}</style>
<header style="border-image: url('/striped.png') 3"><h1>The Daily Harvest</h1></header>
<img src="{images}/press.png" srcset="{images}/press-2x.png 2x" alt="The press">
<nav><a href="about.html">About</a> <a href=/clock.html>Time</a> <a href='/latin.html'>Latín</a>
<a href="/café.html">Café</a> <a href="zipped.html">Zipped</a> <a href="chunked.html">Chunked</a>
<a href="/prices.html">Prices</a> <a href="/moved">Moved</a> <a href="/round">Round</a> <a href="/missing.html">Missing</a>
<a href="/gone.html">Gone</a> <a href="/broken.html">Broken</a> <a href="/private/secret.html">Secret</a>
<a href="/calendar/1">Calendar</a> <a href="/loop/">Loop</a> <a href="{news}/">News</a>
<a href="{elsewhere}/">Elsewhere</a> <a href="{images}/gallery.html">Gallery</a>
<img src="http://{DOWN}:{DOWN_PORT}/lost.png" alt="Never seen"> <a href="mailto:desk@harvest.localhost">Mail</a>
<a title="a > b" href="/about.html#staff">Staff</a></nav>
<!-- <a href="/commented-out.html">not a link</a> -->"#
            ),
        )
    });
    site.page(
        "/about.html",
        page(
            "About",
            "<p>Founded by a harvestman.</p><a href='/'>Home</a>",
        ),
    );
    site.page(
        "/style.css",
        Reply::ok("text/css", "@import url(fonts.css);\nbody { background: #fff url( 'paper.svg' ) }\n/* url(/commented-out.html) */\n"),
    );
    site.page(
        "/fonts.css",
        Reply::ok("text/css", "body { font-family: serif }\n"),
    );
    site.page(
        "/paper.svg",
        Reply::ok(
            "image/svg+xml",
            "<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>",
        ),
    );
    site.page(
        "/app.js",
        Reply::ok(
            "text/javascript",
            "fetch('/data/stories.json').then(r => r.json());\n",
        ),
    );
    site.page(
        "/data/stories.json",
        Reply::ok("application/json", r#"{"stories": 2}"#),
    );
    // Only the script refers to the data and to the page of a price, when it runs.
    site.page(
        "/prices.html",
        page(
            "Prices",
            "<div id=\"root\"></div><script type=\"module\" src=\"/prices.js\"></script>",
        ),
    );
    site.page("/prices.js", Reply::ok("text/javascript", PRICES));
    site.page(
        "/data/prices.json",
        Reply::ok("application/json", r#"{"barley": 7, "wheat": 9}"#),
    );
    for grain in ["barley", "wheat"] {
        site.page(
            &format!("/price/{grain}.html"),
            page(grain, "<p>Found by a browser.</p>"),
        );
    }
    site.page("/inline.png", png(1));
    site.page("/striped.png", png(2));
    site.answer("/clock.html", |seen| {
        let (minutes, seconds) = (seen.visit / 60, seen.visit % 60);
        page(
            "Clock",
            &format!("<p>It is <span class=\"clock\">12:{minutes:02}:{seconds:02}</span>.</p>"),
        )
    });
    site.page(
        "/latin.html",
        Reply::ok(
            "text/html; charset=iso-8859-1",
            Bytes::from_static(b"<!doctype html><title>Lat\xedn</title><p>\xa1Ol\xe9!</p>"),
        ),
    );
    site.page(
        "/caf%C3%A9.html",
        page("Café", "<p>A URI beyond ASCII.</p>"),
    );
    site.page(
        "/zipped.html",
        zipped("<!doctype html><title>Zipped</title><a href='zipped-target.html'>on</a>"),
    );
    site.page(
        "/zipped-target.html",
        page("Zipped target", "<p>Found through gzip.</p>"),
    );
    site.page(
        "/chunked.html",
        page("Chunked", &"<p>Bit by bit.</p>\n".repeat(40)).chunked(97),
    );
    site.page("/moved", Reply::redirect(301, "/moved-again"));
    site.page("/moved-again", Reply::redirect(302, "moved-here.html"));
    site.page("/moved-here.html", page("Moved here", "<p>At last.</p>"));
    site.page("/round", Reply::redirect(302, "/round"));
    site.page("/gone.html", Reply::status(410));
    site.page("/broken.html", Reply::status(500));
    site.page(
        "/private/secret.html",
        page("Secret", "<p>robots.txt says no.</p>"),
    );
    site.rest(|seen| match endless(&seen.target) {
        Some(reply) => reply,
        None => Reply::status(404),
    });
}

/// Endless pages: a calendar that always has a next day, and a folder that contains itself.
fn endless(target: &str) -> Option<Reply> {
    if let Some(day) = target.strip_prefix("/calendar/") {
        let day: u32 = day.parse().ok()?;
        let next = day.checked_add(1)?;
        return Some(page(
            &format!("Day {day}"),
            &format!("<a href=\"/calendar/{next}\">Next day</a>"),
        ));
    }
    let inner = target.strip_prefix('/')?;
    (inner.starts_with("loop/") && inner.split_inclusive('/').all(|part| part == "loop/"))
        .then(|| page("Loop", "<a href=\"loop/\">Deeper</a>"))
}

fn news(site: &mut Site) {
    site.page("/robots.txt", Reply::status(404));
    site.answer("/", |seen| {
        let edition = seen.visit.div_ceil(2);
        page(
            &format!("News, edition {edition}"),
            &format!(
                "<link rel=\"alternate\" type=\"application/rss+xml\" href=\"/feed.xml\">\n\
                 <p>Edition {edition}.</p><a href=\"/story/1.html\">One</a> <a href=\"/story/2.html\">Two</a>"
            ),
        )
    });
    site.answer("/feed.xml", |seen| {
        let base = here(seen, NEWS);
        let body = format!(
            "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>News</title><link>{base}/</link>\
             <item><link>{base}/story/1.html</link></item></channel></rss>"
        );
        Reply::ok("application/rss+xml", body)
    });
    site.answer("/story/1.html", |seen| {
        if seen
            .headers
            .get("if-none-match")
            .is_some_and(|tag| tag == "\"story-1\"")
        {
            return Reply {
                status: 304,
                headers: vec![("etag", "\"story-1\"".to_owned())],
                ..Reply::ok("", Bytes::new())
            };
        }
        page("Story one", "<p>Nothing new.</p>").with("etag", "\"story-1\"")
    });
    site.answer("/story/2.html", |seen| {
        page(
            "Story two",
            &format!("<p>{} corrections.</p>", seen.visit - 1),
        )
    });
}

fn images(site: &mut Site) {
    site.page("/robots.txt", Reply::ok("text/plain", ""));
    site.page("/press.png", png(3));
    site.page("/press-2x.png", png(4));
    site.page(
        "/gallery.html",
        page("Gallery", "<p>A page, not an embed.</p>"),
    );
}

/// `http://HOST:PORT` of another host of this web, on the port of the request.
fn here(seen: &SeenRequest, host: &str) -> String {
    let port = seen
        .headers
        .get("host")
        .and_then(|host| host.to_str().ok())
        .and_then(|host| host.rsplit_once(':'));
    port.map_or_else(
        || format!("http://{host}"),
        |(_, port)| format!("http://{host}:{port}"),
    )
}

fn page(title: &str, body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>{body}</body></html>\n"
    ))
}

fn zipped(body: &str) -> Reply {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing into memory cannot fail.
    let bytes = encoder
        .write_all(body.as_bytes())
        .and_then(|()| encoder.finish())
        .unwrap_or_default();
    Reply::ok("text/html; charset=utf-8", bytes).with("content-encoding", "gzip")
}

/// The script of a page that is empty without scripts.
const PRICES: &str = "const root = document.querySelector('#root');
const data = await (await fetch(['', 'data', 'prices.json'].join('/'))).json();
root.innerHTML = '<h1>Prices</h1>' + Object.entries(data)
    .map(([grain, price]) => `<p><a href=${['', 'price', grain].join('/')}.html>${grain}</a>: ${price}</p>`)
    .join('');
";

/// An image of one grey pixel, with different bytes for each shade.
fn png(shade: u8) -> Reply {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut pixels = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let pixels = pixels
        .write_all(&[0, shade.wrapping_mul(50)])
        .and_then(|()| pixels.finish())
        .unwrap_or_default();
    for (kind, data) in [
        (b"IHDR", [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0].as_slice()),
        (b"IDAT", pixels.as_slice()),
        (b"IEND", [].as_slice()),
    ] {
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(data);
        bytes.extend_from_slice(&u32::try_from(data.len()).unwrap_or_default().to_be_bytes());
        bytes.extend_from_slice(kind);
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(&crc.sum().to_be_bytes());
    }
    Reply::ok("image/png", bytes)
}
