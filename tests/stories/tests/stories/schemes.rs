//! Schemes other than HTTP: files and directories by FTP, answers by WHOIS.

use opilio_stories::{FinishedCrawl, crawl};
use opilio_test_web::schemes;

const FILES: &str = "files.story.localhost";
const WHOIS: &str = "whois.story.localhost";
const TEXT: &[u8] = b"What the file says.\n";
const PAGE: &[u8] = b"<a href='deep/note.txt'>a note</a>";

/// Returns the content of a path: a list of entries if the path ends in a slash.
fn content(path: &str) -> Option<&'static [u8]> {
    match path {
        "pub/" => Some(b"type=cdir; .\r\ntype=dir; deep\r\ntype=file; index.html\r\n"),
        "pub/deep/" => Some(b"type=file;size=20;modify=20261120131203; note.txt\r\n"),
        "pub/index.html" => Some(PAGE),
        "pub/deep/note.txt" => Some(TEXT),
        _ => None,
    }
}

/// Returns the answer of the WHOIS server to a query.
fn whois(query: &str, port: u16) -> String {
    match query {
        "example.org" => format!("domain: EXAMPLE.ORG\r\nrefer: registry.{WHOIS}:{port}\r\n"),
        other => format!("no match for {other}\r\n"),
    }
}

#[track_caller]
fn check(result: &FinishedCrawl, uri: &str, status: i32, block: &[u8]) {
    assert_eq!(result.sole(uri).status, status, "{uri}");
    let record = result.record("resource", uri);
    assert_eq!(record.block, block, "{uri}");
    assert_eq!(record.header("WARC-IP-Address"), Some("127.0.0.1"));
}

#[tokio::test]
async fn a_directory_and_its_files_are_fetched_by_ftp() {
    let port = schemes::ftp(content).unwrap();
    let url = |path: &str| format!("ftp://{FILES}:{port}/{path}");
    let result = crawl().seed(url("pub/")).run().await.finished();
    for path in ["pub/", "pub/deep/", "pub/index.html", "pub/deep/note.txt"] {
        check(&result, &url(path), 226, content(path).unwrap());
    }
    let note = result.record("resource", &url("pub/deep/note.txt"));
    assert_eq!(note.header("Content-Type"), Some("text/plain"));
    assert_eq!(note.header("WARC-Protocol"), Some("ftp"));
    let metadata = result.records("metadata", &url("pub/deep/note.txt"));
    let conversation = metadata
        .iter()
        .find(|it| it.header("Content-Type") == Some("text/x-ftp-control-conversation"));
    let conversation = conversation.unwrap();
    assert_eq!(
        conversation.header("WARC-Concurrent-To"),
        note.header("WARC-Record-ID")
    );
    assert!(
        conversation
            .text()
            .contains("RETR pub/deep/note.txt\r\n150 "),
        "{}",
        conversation.text()
    );
    // The file is in the listing and linked on the page, and is fetched once. FTP has no robots.txt.
    assert!(
        result
            .statuses()
            .iter()
            .all(|line| !line.contains("robots.txt")),
        "{:?}",
        result.statuses()
    );
    let listing = result.sole(&url("pub/"));
    assert!(
        listing.annotations.contains(&"ftpDirectoryList".to_owned()),
        "{listing:?}"
    );
}

#[tokio::test]
async fn a_file_missing_on_an_ftp_server_is_logged_with_the_reply_code() {
    let port = schemes::ftp(content).unwrap();
    let uri = format!("ftp://{FILES}:{port}/pub/none.txt");
    let result = crawl().seed(uri.clone()).run().await.finished();
    assert_eq!(result.sole(&uri).status, 550);
}

#[tokio::test]
async fn a_referral_in_a_whois_answer_is_followed() {
    let port = schemes::whois(whois).unwrap();
    let uri = format!("whois://{WHOIS}:{port}/example.org");
    let result = crawl().seed(uri.clone()).run().await.finished();
    let answer = format!("domain: EXAMPLE.ORG\r\nrefer: registry.{WHOIS}:{port}\r\n");
    check(&result, &uri, 2001, answer.as_bytes());
    let next = format!("whois://registry.{WHOIS}:{port}/example.org");
    check(&result, &next, 2001, answer.as_bytes());
}
