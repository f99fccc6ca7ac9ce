//! Links in content of several codings and charsets, and bodies of several sizes.

use std::io::Write;

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::Reply;
use sha1::{Digest, Sha1};

const WWW: &str = "www.story.localhost";

fn payload_digest(body: &[u8]) -> String {
    format!("sha1:{}", data_encoding::BASE32.encode(&Sha1::digest(body)))
}

#[tokio::test]
async fn links_are_found_in_all_codings_and_charsets() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"<a href='/from-gzip.html'>x</a>").unwrap();
    let utf16: Vec<u8> = "\u{feff}<a href='/from-utf-16.html'>x</a>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let web = site(WWW)
        .page("/", html("<a href='/zip'>z</a><a href='/latin'>l</a><a href='/meta'>m</a><a href='/wide'>w</a><a href='/\u{f1}o \u{fc}.html'>n</a>"))
        .page("/zip", Reply::ok("text/html", gzip.finish().unwrap()).with("content-encoding", "gzip"))
        .page("/latin", Reply::ok("text/html; charset=iso-8859-1", b"<a href='/caf\xe9.html'>x</a>".to_vec()))
        .page("/meta", Reply::ok("text/html", b"<meta charset=windows-1251><a href='/\xe4\xe0.html'>x</a>".to_vec()))
        .page("/wide", Reply::ok("text/html", utf16))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    let mut expected = [
        "/",
        "/%C3%B1o%20%C3%BC.html",
        "/%D0%B4%D0%B0.html",
        "/caf%C3%A9.html",
        "/from-gzip.html",
        "/from-utf-16.html",
        "/latin",
        "/meta",
        "/wide",
        "/zip",
    ]
    .map(|target| format!("{WWW} {target}"));
    expected.sort();
    assert_eq!(asked(&web), expected);
    assert_eq!(
        result
            .record("response", &web.url(WWW, "/caf%C3%A9.html"))
            .status(),
        404
    );
}

/// Returns bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test]
async fn a_body_that_does_not_fit_in_memory_is_archived_whole() {
    let body = noise(300_000);
    let web = site(WWW)
        .page(
            "/",
            html("<a href='/large.bin'>l</a><a href='/chunked.bin'>c</a>"),
        )
        .page(
            "/large.bin",
            Reply::ok("application/octet-stream", body.clone()),
        )
        .page(
            "/chunked.bin",
            Reply::ok("application/octet-stream", body.clone()).chunked(1000),
        )
        .serve()
        .await;
    let result = crawl()
        .profile("[fetch]\nspool-memory = '4KiB'")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let whole = result.record("response", &web.url(WWW, "/large.bin"));
    assert!(whole.block.ends_with(&body));
    assert_eq!(
        whole.header("warc-payload-digest"),
        Some(&*payload_digest(&body))
    );
    let chunked = result.record("response", &web.url(WWW, "/chunked.bin"));
    assert!(
        chunked.block.len() > body.len() + 300 * 5,
        "the framing of {} chunks is archived",
        300
    );
    assert_eq!(
        chunked.header("warc-payload-digest"),
        Some(&*payload_digest(&body))
    );
    assert_eq!(chunked.header("warc-truncated"), None);
    assert_eq!(result.sole(&web.url(WWW, "/large.bin")).size, "300000");
    let left: Vec<_> = std::fs::read_dir(result.job().join("scratch"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_body_that_is_too_long_is_truncated_and_marked() {
    let body = noise(50_000);
    let web = site(WWW)
        .page("/", html("<a href='/large.bin'>l</a>"))
        .page(
            "/large.bin",
            Reply::ok("application/octet-stream", body.clone()),
        )
        .serve()
        .await;
    let result = crawl()
        .profile("[fetch]\nbody-max = '10KiB'")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let cut = result.record("response", &web.url(WWW, "/large.bin"));
    assert_eq!(cut.header("warc-truncated"), Some("length"));
    assert!(cut.block.ends_with(&body[..10 * 1024]));
    assert_eq!(
        cut.header("warc-payload-digest"),
        Some(&*payload_digest(&body[..10 * 1024]))
    );
    let whole = result.record("response", &web.url(WWW, "/"));
    assert_eq!(whole.header("warc-truncated"), None);
}
