//! What is fetched over something else than HTTP: files and directories by FTP, answers by WHOIS.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use opilio_stories::{Told, crawl};

const FILES: &str = "files.story.localhost";
const WHOIS: &str = "whois.story.localhost";
const TEXT: &[u8] = b"What the file says.\n";
const PAGE: &[u8] = b"<a href='deep/note.txt'>a note</a>";

/// What a path holds: entries where it ends in a slash.
fn content(path: &str) -> Option<&'static [u8]> {
    match path {
        "pub/" => Some(b"type=cdir; .\r\ntype=dir; deep\r\ntype=file; index.html\r\n"),
        "pub/deep/" => Some(b"type=file;size=20;modify=20261120131203; note.txt\r\n"),
        "pub/index.html" => Some(PAGE),
        "pub/deep/note.txt" => Some(TEXT),
        _ => None,
    }
}

/// Listens for as long as the process lives: a listener that blocks cannot be told to end.
fn listen(serve: impl Fn(TcpStream) -> Option<()> + Send + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, serve) = (stream.unwrap(), serve.clone());
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// An FTP session with somebody who knows MLSD and EPSV.
fn ftp(stream: TcpStream) -> Option<()> {
    let mut heard = BufReader::new(stream.try_clone().ok()?).lines();
    let say = |line: &str| (&stream).write_all(format!("{line}\r\n").as_bytes()).ok();
    let mut data: Option<TcpListener> = None;
    let mut here = String::new();
    say("220 welcome")?;
    while let Some(Ok(line)) = heard.next() {
        let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
        match command {
            "USER" => say("331 and you are?")?,
            "PASS" => say("230 come in")?,
            "TYPE" => say("200 as it is")?,
            "CWD" => {
                here = format!("{}/", argument.trim_end_matches('/'));
                match content(&here) {
                    Some(_) => say("250 there")?,
                    None => say("550 no such directory")?,
                }
            }
            "EPSV" => {
                let listener = TcpListener::bind("127.0.0.1:0").ok()?;
                let port = listener.local_addr().ok()?.port();
                data = Some(listener);
                say(&format!("229 here (|||{port}|)"))?;
            }
            "RETR" | "MLSD" => {
                let path = if command == "MLSD" { &here } else { argument };
                match content(path) {
                    None => say("550 no such file")?,
                    Some(content) => {
                        say("150 here it comes")?;
                        let (mut to, _) = data.take()?.accept().ok()?;
                        to.write_all(content).ok()?;
                        drop(to);
                        say("226 done")?;
                    }
                }
            }
            _ => say("502 what?")?,
        }
    }
    None
}

/// The answer to one question.
fn whois(mut stream: TcpStream) -> Option<()> {
    let mut question = String::new();
    BufReader::new(stream.try_clone().ok()?)
        .read_line(&mut question)
        .ok()?;
    let port = stream.local_addr().ok()?.port();
    let answer = match question.trim() {
        "example.org" => format!("domain: EXAMPLE.ORG\r\nrefer: registry.{WHOIS}:{port}\r\n"),
        other => format!("no match for {other}\r\n"),
    };
    stream.write_all(answer.as_bytes()).ok()
}

#[track_caller]
fn check(told: &Told, uri: &str, status: i32, block: &[u8]) {
    assert_eq!(told.sole(uri).status, status, "{uri}");
    let record = told.record("resource", uri);
    assert_eq!(record.block, block, "{uri}");
    assert_eq!(record.header("WARC-IP-Address"), Some("127.0.0.1"));
}

#[tokio::test]
async fn a_directory_and_what_it_leads_to_come_by_ftp() {
    let port = listen(ftp);
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
    let port = listen(ftp);
    let uri = format!("ftp://{FILES}:{port}/pub/none.txt");
    let told = crawl().seed(uri.clone()).run().await.finished();
    assert_eq!(told.sole(&uri).status, 550);
}

#[tokio::test]
async fn a_whois_answer_leads_to_the_server_it_names() {
    let port = listen(whois);
    let uri = format!("whois://{WHOIS}:{port}/example.org");
    let told = crawl().seed(uri.clone()).run().await.finished();
    let answer = format!("domain: EXAMPLE.ORG\r\nrefer: registry.{WHOIS}:{port}\r\n");
    check(&told, &uri, 2001, answer.as_bytes());
    let next = format!("whois://registry.{WHOIS}:{port}/example.org");
    check(&told, &next, 2001, answer.as_bytes());
}
