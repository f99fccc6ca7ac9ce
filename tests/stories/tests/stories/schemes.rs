//! Schemes other than HTTP: files and directories by FTP, answers by WHOIS.

use opilio_stories::{FinishedCrawl, crawl};
use opilio_test_web::schemes;

const FILES: &str = "files.story.localhost";
const WHOIS: &str = "whois.story.localhost";
const TEXT: &[u8] = b"What the file says.\n";
const PAGE: &[u8] = b"<a href='deep/note.txt'>a note</a>";

/// Content of a path: entries if it ends in a slash.
fn content(path: &str) -> Option<&'static [u8]> {
    match path {
        "pub/" => Some(b"type=cdir; .\r\ntype=dir; deep\r\ntype=file; index.html\r\n"),
        "pub/deep/" => Some(b"type=file;size=20;modify=20261120131203; note.txt\r\n"),
        "pub/index.html" => Some(PAGE),
        "pub/deep/note.txt" => Some(TEXT),
        _ => None,
    }
}

/// The answer to one question.
fn whois(question: &str, port: u16) -> String {
    match question {
        "example.org" => format!("domain: EXAMPLE.ORG\r\nrefer: registry.{WHOIS}:{port}\r\n"),
        other => format!("no match for {other}\r\n"),
    }
}

#[track_caller]
fn check(told: &FinishedCrawl, uri: &str, status: i32, block: &[u8]) {
    assert_eq!(told.sole(uri).status, status, "{uri}");
    let record = told.record("resource", uri);
    assert_eq!(record.block, block, "{uri}");
    assert_eq!(record.header("WARC-IP-Address"), Some("127.0.0.1"));
}

#[tokio::test]
async fn a_directory_and_what_it_leads_to_come_by_ftp() {
    let port = schemes::ftp(content).unwrap();
    let url = |path: &str| format!("ftp://{FILES}:{port}/{path}");
    let told = crawl().seed(url("pub/")).run().await.finished();
    for path in ["pub/", "pub/deep/", "pub/index.html", "pub/deep/note.txt"] {
        check(&told, &url(path), 226, content(path).unwrap());
    }
    let note = told.record("resource", &url("pub/deep/note.txt"));
    assert_eq!(note.header("Content-Type"), Some("text/plain"));
    assert_eq!(note.header("WARC-Protocol"), Some("ftp"));
    let said = told.records("metadata", &url("pub/deep/note.txt"));
    let conversation = said
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
    // Found in the listing and on the page alike, fetched once; nobody asked for a robots.txt.
    assert!(
        told.statuses()
            .iter()
            .all(|line| !line.contains("robots.txt")),
        "{:?}",
        told.statuses()
    );
    let listing = told.sole(&url("pub/"));
    assert!(
        listing.annotations.contains(&"ftpDirectoryList".to_owned()),
        "{listing:?}"
    );
}

#[tokio::test]
async fn what_an_ftp_server_does_not_have_is_logged_with_its_word() {
    let port = schemes::ftp(content).unwrap();
    let uri = format!("ftp://{FILES}:{port}/pub/none.txt");
    let told = crawl().seed(uri.clone()).run().await.finished();
    assert_eq!(told.sole(&uri).status, 550);
}

#[tokio::test]
async fn a_whois_answer_leads_to_the_server_it_names() {
    let port = schemes::whois(whois).unwrap();
    let uri = format!("whois://{WHOIS}:{port}/example.org");
    let told = crawl().seed(uri.clone()).run().await.finished();
    let answer = format!("domain: EXAMPLE.ORG\r\nrefer: registry.{WHOIS}:{port}\r\n");
    check(&told, &uri, 2001, answer.as_bytes());
    let next = format!("whois://registry.{WHOIS}:{port}/example.org");
    check(&told, &next, 2001, answer.as_bytes());
}
