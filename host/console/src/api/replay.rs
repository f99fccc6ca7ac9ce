//! Replays a capture as a page, with its archived style sheets, images and fonts of the same time.
//!
//! These are written into the page as `data:` URIs. So the frame of a hostile page needs no address, no cookie and no exception in
//! its policy. Safety does not depend on the rewriting of the page: the policy of [`capture`](super::capture) blocks every load
//! that the rewriting misses.

mod markup;
mod style_sheet;

use std::collections::HashMap;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use data_encoding::BASE64;
use jiff::Timestamp;
use opilio_fetch::charset::{CharsetHints, decide};
use opilio_fetch::coding;
use opilio_uri::Uri;

use super::Shared;
use super::capture::{Archive, CaptureSelector, Payload, known};
use super::files::Binary;
use super::jobs::blocking;
use crate::access::Caller;
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// Longest text that is rewritten, and longest part of a page. Longer ones are left out.
const PART_BYTES_MAX: u64 = 8 << 20;

/// Maximum size of all parts of a page, each counted as often as it is used.
const PARTS_BYTES_MAX: usize = 32 << 20;

/// Maximum parts that are looked up.
const PARTS_MAX: usize = 500;

/// Maximum depth of style sheets that import each other.
const IMPORTS_MAX: usize = 4;

/// Returns a capture as a page, with embeds of the same time inserted. A content security policy keeps it from running or
/// loading anything. A payload that is not HTML is returned unchanged.
#[utoipa::path(get, path = "/jobs/{job}/replay", operation_id = "replay_capture", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), CaptureSelector), responses((status = 200, description = "The page, or the payload with its own media type", content_type = "*/*", body = inline(Binary))))]
pub(crate) async fn replay(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(CaptureSelector { uri, at }): Params<CaptureSelector>,
) -> Result<Response, Problem> {
    let directory = daemon.directory(&job)?;
    let known = known(&daemon, &job, &caller, uri).await?;
    let page = blocking(move || {
        let archive = Archive::of(&directory)?;
        let payload = archive.version(&known, at)?;
        let moment = at.unwrap_or_else(Timestamp::now);
        Ok(render_page(&archive, &known.uri, moment, payload))
    });
    Ok(page.await?.into_response())
}

fn render_page(archive: &Archive, uri: &str, moment: Timestamp, mut payload: Payload) -> Payload {
    let kind = media_type(&payload);
    let is_page = kind == "text/html" || kind == "application/xhtml+xml";
    let Some(base) = Uri::parse(uri).ok().filter(|_| is_page) else {
        return payload;
    };
    let Some(html) = text(&payload) else {
        return payload;
    };
    let mut parts = Parts {
        archive,
        moment,
        found: HashMap::new(),
        bytes_left: PARTS_BYTES_MAX,
        imports: 0,
    };
    payload.bytes = markup::rewrite(&html, base, &mut parts).into_bytes();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    payload.headers.insert(header::CONTENT_TYPE, kind);
    payload.headers.remove(header::CONTENT_ENCODING);
    payload
}

/// The parts of a page, and their limits.
struct Parts<'a> {
    archive: &'a Archive,
    moment: Timestamp,
    /// Parts that were looked up already; `None` if not found.
    found: HashMap<String, Option<String>>,
    bytes_left: usize,
    /// Nesting depth of the style sheets that are being read.
    imports: usize,
}

impl Parts<'_> {
    /// Returns a part of a page as a `data:` URI; `None` if the archive has no suitable capture, or the page has become too long.
    fn data(&mut self, base: &Uri, reference: &str) -> Option<String> {
        let reference = reference.trim();
        if reference
            .get(..5)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
        {
            return Some(reference.to_owned());
        }
        let uri = base.join(reference).ok().filter(Uri::is_http)?;
        let found = match self.found.get(uri.as_str()) {
            Some(found) => found.clone(),
            None if self.found.len() >= PARTS_MAX => None,
            None => {
                // A sheet that imports itself gets nothing.
                self.found.insert(uri.as_str().to_owned(), None);
                let found = self.find_part(&uri);
                self.found.insert(uri.as_str().to_owned(), found.clone());
                found
            }
        }?;
        self.bytes_left = self.bytes_left.checked_sub(found.len())?;
        Some(found)
    }

    fn find_part(&mut self, uri: &Uri) -> Option<String> {
        let payload = self.archive.nearest(uri.as_str(), self.moment)?;
        let kind = media_type(&payload);
        if kind == "text/css" {
            if self.imports >= IMPORTS_MAX {
                return None;
            }
            self.imports += 1;
            let sheet = style_sheet::rewrite(&text(&payload)?, uri, self);
            self.imports -= 1;
            return Some(data_uri("text/css;charset=utf-8", sheet.as_bytes()));
        }
        // Fonts often have an arbitrary type. HTML is not inserted into a page.
        let is_part = ["image/", "font/", "audio/", "video/"]
            .iter()
            .any(|kinds| kind.starts_with(kinds))
            || kind == "application/octet-stream"
            || kind.contains("font");
        match is_part {
            true => Some(data_uri(&kind, &content(&payload)?)),
            false => None,
        }
    }
}

/// The media type sent by the server, without parameters.
fn media_type(payload: &Payload) -> String {
    let kind = header_of(payload, header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.to_ascii_lowercase()
}

fn header_of(payload: &Payload, name: header::HeaderName) -> Option<&str> {
    payload.headers.get(name)?.to_str().ok()
}

/// The bytes without content coding; `None` if they are incomplete.
fn content(payload: &Payload) -> Option<Vec<u8>> {
    let codings: Vec<String> = header_of(payload, header::CONTENT_ENCODING)
        .map(str::to_ascii_lowercase)
        .into_iter()
        .collect();
    let decoded = coding::decode(&codings, || payload.bytes.as_slice(), PART_BYTES_MAX);
    match decoded.problem {
        None | Some(coding::CodingProblem::NotCoded(_)) => Some(decoded.content),
        Some(_) => None,
    }
}

fn text(payload: &Payload) -> Option<String> {
    let content = content(payload)?;
    let clues = CharsetHints {
        content_type: header_of(payload, header::CONTENT_TYPE),
        host: None,
    };
    Some(decide(clues, &content).decode(&content).into_owned())
}

/// Formats a `data:` URI. The media type comes from the server and goes into an attribute or a style sheet, so it is cleaned.
fn data_uri(kind: &str, bytes: &[u8]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+-.;=".contains(c);
    let kind = kind.chars().filter(|c| is_plain(*c)).collect::<String>();
    format!("data:{kind};base64,{}", BASE64.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the rewritten form of a page at `http://example.org/dir/`, with `a.png` archived beside it.
    #[track_caller]
    fn check(html: &str, expected: &str) {
        let archive = Archive {
            directories: Vec::new(),
            moved: Vec::new(),
        };
        let mut parts = Parts {
            archive: &archive,
            moment: Timestamp::UNIX_EPOCH,
            found: HashMap::from([(
                "http://example.org/dir/a.png".to_owned(),
                Some("data:image/png;base64,QQ==".to_owned()),
            )]),
            bytes_left: 100,
            imports: 0,
        };
        let base = Uri::parse("http://example.org/dir/").unwrap();
        assert_eq!(markup::rewrite(html, base, &mut parts), expected, "{html}");
    }

    #[test]
    fn archived_embeds_are_inserted_into_the_page() {
        const A: &str = "data:image/png;base64,QQ==";
        check("<img src=a.png>", &format!("<img src=\"{A}\">"));
        check(
            "<img src=/dir/a.png><img src=b.png alt=b>",
            &format!("<img src=\"{A}\"><img alt=\"b\">"),
        );
        check(
            "<img srcset='b.png 1x, a.png 2x'>",
            &format!("<img src=\"{A}\">"),
        );
        check(
            "<style>b{background:url(a.png)}</style>",
            &format!("<style>b{{background:url(\"{A}\")}}</style>"),
        );
        check(
            "<b style='background:url(b.png)'>",
            "<b style=\"background:url(&quot;data:,&quot;)\">",
        );
        check(
            "<base href=/dir/><base href=/other/><img src=a.png>",
            &format!("<img src=\"{A}\">"),
        );
        check(
            "<noscript><img src=a.png></noscript>",
            &format!("<noscript><img src=\"{A}\"></noscript>"),
        );
        let four = format!("<img src=\"{A}\">").repeat(3) + "<img>";
        check(&"<img src=a.png>".repeat(4), &four);
    }

    #[test]
    fn scripts_forms_frames_and_links_are_removed() {
        check("<p onclick=x()>a<script>alert(1)</script>b", "<p>ab");
        check(
            "<a href='//evil.example/' target=_top ping=/p>x</a>",
            "<a data-href=\"//evil.example/\">x</a>",
        );
        check("<a href=#part>x</a>", "<a href=\"#part\">x</a>");
        check(
            "<meta http-equiv=refresh content='0;url=/x'><meta charset=latin1>",
            "",
        );
        check(
            "<iframe src=/x srcdoc='<b>'>y</iframe><object data=/x></object><embed src=/x>",
            "",
        );
        check(
            "<form action=/x><input formaction=/y src=b.png>",
            "<form><input>",
        );
        check(
            "<svg><use href=/x#y /><use xlink:href=#y /></svg>",
            "<svg><use/><use xlink:href=\"#y\"/></svg>",
        );
        check("<link rel=preload href=/x><link rel=icon href=a.png>", "");
        check(
            "<b title='\"><i>&amp;'>&lt;i&gt;</b>",
            "<b title=\"&quot;&gt;&lt;i&gt;&amp;\">&lt;i&gt;</b>",
        );
        check(
            "<title>&lt;/title><script></title>",
            "<title>&lt;/title&gt;&lt;script&gt;</title>",
        );
    }
}
