//! The web for the tests of replay: one page for each feature that may be replayed wrongly, over HTTP, HTTPS, FTP and WHOIS.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use opilio_test_web::{Reply, Web, WebBuilder, schemes};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Its hosts. `tests/judges/replay.py` has the expected content of the first.
const WWW: &str = "www.judge.localhost";
const FILES: &str = "files.judge.localhost";
const REGISTRY: &str = "registry.judge.localhost";

/// The web while it is served.
pub(super) struct ReplayWeb {
    web: Web,
    tunnel: JoinHandle<()>,
    secure: SocketAddr,
    files: u16,
    registry: u16,
}

impl ReplayWeb {
    pub(super) async fn serve() -> Result<ReplayWeb> {
        let web = pages().serve().await?;
        let (secure, tunnel) = tunnel(web.address()).await?;
        Ok(ReplayWeb {
            web,
            tunnel,
            secure,
            files: schemes::ftp(file)?,
            registry: schemes::whois(|question, _| {
                format!("domain: {question}\r\nstatus: judged\r\n")
            })?,
        })
    }

    /// The origin of the pages.
    pub(super) fn origin(&self) -> String {
        self.web.url(WWW, "")
    }

    /// The origin of the same pages with an untrusted certificate.
    pub(super) fn secure_origin(&self) -> String {
        format!("https://{WWW}:{}", self.secure.port())
    }

    /// Returns `true` if each page was requested, and each page whose revisit records are checked was requested twice.
    pub(super) fn is_visited(&self) -> bool {
        let requests = self.web.requests();
        let visits = |target: &str| requests.iter().filter(|it| it.target == target).count();
        let visited_twice = ["/original.html", "/copy.html", "/same.html", "/still.html"];
        let visited_once = ["/missing.html", "/large.bin", "/cut.bin", "/secure.html"];
        visited_twice.iter().all(|target| visits(target) >= 2)
            && visited_once.iter().all(|target| visits(target) >= 1)
    }

    /// The seeds of a crawl.
    pub(super) fn seeds(&self) -> Vec<String> {
        vec![
            format!("{}/", self.origin()),
            format!("{}/secure.html", self.secure_origin()),
            format!("ftp://{FILES}:{}/pub/", self.files),
            format!("whois://{REGISTRY}:{}/judge.example", self.registry),
        ]
    }
}

impl Drop for ReplayWeb {
    fn drop(&mut self) {
        self.tunnel.abort();
    }
}

/// A TLS proxy for a server, with a new self-signed certificate.
async fn tunnel(to: SocketAddr) -> Result<(SocketAddr, JoinHandle<()>)> {
    let made = rcgen::generate_simple_self_signed([WWW.to_owned()])?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .context("cannot use the new certificate")?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let tunnel = tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            // A client that disconnects is not an error here.
            tokio::spawn(async move {
                let mut client = acceptor.accept(client).await?;
                let mut server = TcpStream::connect(to).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    Ok((address, tunnel))
}

/// The content of a path over FTP.
fn file(path: &str) -> Option<&'static [u8]> {
    match path {
        "pub/" => Some(b"type=cdir; .\r\ntype=dir; deep\r\ntype=file; read.me\r\n"),
        "pub/deep/" => Some(b"type=file;size=3; caf\xc3\xa9.txt\r\n"),
        "pub/read.me" => Some(b"A file.\n"),
        "pub/deep/café.txt" => Some(b"an\n"),
        _ => None,
    }
}

fn pages() -> WebBuilder {
    let mut web = Web::builder();
    let site = web.site(WWW);
    site.page(
        "/",
        page(
            "The judged",
            r#"<link rel="stylesheet" href="/style.css"><h1>The judged</h1><p>A page.</p>
<img id="picture" src="/picture.png" width="60" height="40" alt=""><div id="scripted"></div><script src="/app.js"></script>
<a href="/moved">1</a> <a href="/zipped.html">2</a> <a href="/brotli.html">3</a> <a href="/chunked.html">4</a>
<a href="/caf%C3%A9.html">5</a> <a href="/original.html">6</a> <a href="/copy.html">7</a> <a href="/same.html">8</a>
<a href="/still.html">9</a> <a href="/missing.html">10</a> <a href="/large.bin">11</a> <a href="/cut.bin">12</a>"#,
        ),
    );
    site.page("/picture.png", Reply::ok("image/png", PICTURE));
    site.page(
        "/style.css",
        Reply::ok(
            "text/css",
            "@import \"more.css\";\nh1 { color: rgb(190, 30, 30) }\n",
        ),
    );
    site.page(
        "/more.css",
        Reply::ok("text/css", "p { color: rgb(30, 110, 60) }\n"),
    );
    site.page(
        "/app.js",
        Reply::ok(
            "text/javascript",
            "document.querySelector('#scripted').textContent = 'written by a script';\n",
        ),
    );
    site.page("/moved", Reply::redirect(302, "/moved-here.html"));
    site.page("/moved-here.html", page("Moved", "<p>At last.</p>"));
    site.page(
        "/zipped.html",
        Reply::ok("text/html", ZIPPED).with("content-encoding", "gzip"),
    );
    site.page(
        "/brotli.html",
        Reply::ok("text/html", BROTLI).with("content-encoding", "br"),
    );
    site.page(
        "/chunked.html",
        page("Chunked", &"<p>Bit by bit.</p>\n".repeat(40)).chunked(97),
    );
    site.page("/caf%C3%A9.html", page("Café", "<p>Ein Stück Käse.</p>"));
    // Also served over HTTPS, like everything else. No other link has that scheme.
    site.page("/secure.html", page("Secure", "<p>Behind TLS.</p>"));
    for path in ["/original.html", "/copy.html"] {
        site.page(path, page("Two", "<p>There are two of me.</p>"));
    }
    site.page("/same.html", page("Same", "<p>Never anything new.</p>"));
    site.answer("/still.html", |seen| {
        match seen.headers.get("if-none-match") {
            Some(_) => Reply {
                status: 304,
                ..Reply::ok("text/html", "").with("etag", "\"still\"")
            },
            None => page("Still", "<p>Not modified.</p>").with("etag", "\"still\""),
        }
    });
    site.page(
        "/large.bin",
        Reply::ok("application/octet-stream", vec![7; 1_000_000]),
    );
    site.page(
        "/cut.bin",
        Reply::ok("application/octet-stream", vec![8; 5_000_000]),
    );
    web
}

fn page(title: &str, body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>{body}</body></html>\n"
    ))
}

/// A page with content coding gzip.
const ZIPPED: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x25, 0x8d, 0x31, 0x0e, 0x80, 0x20,
    0x10, 0x04, 0x7b, 0x5f, 0x71, 0xd2, 0x2b, 0xad, 0xc5, 0x71, 0xad, 0xa5, 0x6f, 0x40, 0x39, 0x85,
    0x04, 0x85, 0xe8, 0x59, 0xe8, 0xeb, 0xc5, 0x50, 0xed, 0x24, 0x33, 0xc9, 0x62, 0xeb, 0xd2, 0x22,
    0x4f, 0x66, 0xf0, 0xb2, 0x47, 0x6a, 0xf0, 0x1f, 0x88, 0xf6, 0xd8, 0x8c, 0xe2, 0x43, 0x11, 0x7a,
    0xb6, 0x8e, 0x70, 0x67, 0xb1, 0xb0, 0x78, 0x7b, 0x5e, 0x2c, 0x46, 0xdd, 0xb2, 0x76, 0x43, 0x71,
    0x12, 0x24, 0x32, 0x8d, 0x6f, 0xc8, 0xa8, 0x2b, 0xa3, 0xae, 0xfd, 0x9c, 0xdc, 0x43, 0x98, 0x69,
    0xba, 0x05, 0xd2, 0x0a, 0x5b, 0x49, 0x7a, 0xd4, 0xb9, 0xf8, 0x6a, 0x74, 0x7d, 0xfb, 0x00, 0x74,
    0x5a, 0x28, 0xa8, 0x7e, 0x00, 0x00, 0x00,
];

/// A page with content coding brotli.
const BROTLI: &[u8] = &[
    0x1b, 0x81, 0x00, 0x00, 0x2c, 0x0e, 0xec, 0x98, 0x0e, 0x38, 0x52, 0x2c, 0xcd, 0x35, 0xba, 0xde,
    0x94, 0x2f, 0x62, 0x70, 0x5d, 0xe6, 0xf6, 0x26, 0xa7, 0x7d, 0x44, 0xd2, 0xd8, 0x26, 0x8f, 0x82,
    0x50, 0xba, 0xf0, 0xd0, 0x39, 0xe5, 0xc0, 0xbd, 0x96, 0x60, 0x62, 0x51, 0x97, 0x9f, 0xf4, 0x9e,
    0xc3, 0xe3, 0x74, 0x28, 0x21, 0xed, 0x5e, 0x23, 0x27, 0x37, 0x63, 0x2e, 0x66, 0x0c, 0x15, 0xaf,
    0xf8, 0xfe, 0x82, 0xad, 0x81, 0xd9, 0x07, 0x29, 0x26, 0x7c, 0xb0, 0x25, 0x10,
];

/// A picture of three by two pixels.
const PICTURE: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0xb8, 0x1f, 0x39,
    0xc6, 0x00, 0x00, 0x00, 0x0e, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x64, 0x62, 0x66,
    0x00, 0x62, 0x00, 0x00, 0x34, 0x00, 0x0d, 0x73, 0x23, 0x87, 0xf0, 0x00, 0x00, 0x00, 0x00, 0x49,
    0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
