//! Files of a job: listed, and downloaded as a whole or in parts; one index and one list of pages for all archive files.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::command::{Home, WWW, tree};
use crate::serve::{Answer, Daemon};

const PAGES: usize = 30;

/// Crawls a tree of pages in a job in the daemon's folder. The archive has several uncompressed files.
async fn crawled(home: &Home, archive: &str) {
    let web = tree(PAGES, 8_000).await;
    home.profile(&format!(
        "workers = 2\n[archive]\ncompression = \"none\"\nsize-max = \"64KiB\"\n{archive}"
    ));
    let seed = web.url(WWW, "/");
    let job = ["--job", "jobs/tree", "--quiet"];
    let crawl = [&["crawl", "p.toml", "--seed", &seed], &job[..]].concat();
    home.run(&crawl).code(0);
}

fn download(daemon: &Daemon, file: &str, headers: &str) -> Answer {
    let path = format!("/api/v1/jobs/tree/files/{file}");
    daemon.call("GET", &path, None, headers)
}

fn names(list: &Value) -> Vec<&str> {
    let files = list["files"].as_array().unwrap().iter();
    files.map(|file| file["name"].as_str().unwrap()).collect()
}

/// Returns the value of a header.
fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut lines = answer.head.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_listed_and_downloaded_in_parts() {
    let home = Home::new();
    crawled(&home, "").await;
    let job = home.path().join("jobs/tree");
    fs::write(job.join("tree.wacz"), "PK").unwrap();
    fs::write(job.join("warcs/later.warc.gz.open"), "begun").unwrap();
    fs::write(job.join("warcs/private.txt"), "private").unwrap();
    fs::create_dir(job.join("reports/spelling")).unwrap();
    fs::write(job.join("reports/spelling/a.txt"), "words").unwrap();
    std::os::unix::fs::symlink("../profile.toml", job.join("logs/link.log")).unwrap();
    let daemon = Daemon::start(&home, &["--no-auth"]);

    let list = daemon.get("/jobs/tree/files?limit=1000");
    let files = list["files"].as_array().unwrap();
    assert_eq!(list["total"], files.len(), "{list}");
    let folder = |kind: &str| match kind {
        "archive" | "index" => "warcs",
        "log" => "logs",
        "report" => "reports",
        _ => ".",
    };
    for file in files {
        let (kind, name) = (
            file["kind"].as_str().unwrap(),
            file["name"].as_str().unwrap(),
        );
        let content = fs::read_to_string(job.join(folder(kind)).join(name)).unwrap();
        assert_eq!(file["size"], content.len(), "{file}");
        assert_eq!(file["is_open"], name.ends_with(".open"), "{file}");
        let answer = download(&daemon, &format!("{kind}/{}", name.replace('/', "%2F")), "");
        assert_eq!((answer.status, answer.body), (200, content), "{file}");
    }
    let of_kind = |kind: &str| daemon.get(&format!("/jobs/tree/files?kind={kind}"));
    let (archives, indexes) = (of_kind("archive"), of_kind("index"));
    assert!(names(&archives).len() > 3, "{archives}");
    assert_eq!(
        names(&indexes).len() + 1,
        names(&archives).len(),
        "{indexes}"
    );
    assert_eq!(names(&of_kind("wacz")), ["tree.wacz"]);
    assert!(names(&list).contains(&"spelling/a.txt"), "{list}");
    assert!(!list.to_string().contains("private"), "{list}");

    // The pages of the list together are the same list.
    let mut paged = Vec::new();
    let mut after = String::new();
    loop {
        let page = daemon.get(&format!("/jobs/tree/files?limit=2{after}"));
        paged.extend(page["files"].as_array().unwrap().clone());
        match page["after"].as_str() {
            Some(next) => after = format!("&after={}", next.replace('/', "%2F")),
            None => break,
        }
    }
    assert_eq!(&paged, files);

    let log = fs::read_to_string(job.join("logs/crawl.log")).unwrap();
    let get = |headers: &str| download(&daemon, "log/crawl.log", headers);
    let whole = get("Accept-Encoding: gzip\r\n");
    let version = header(&whole, "etag").unwrap().to_owned();
    assert_eq!(header(&whole, "content-encoding"), None, "{whole:?}");
    assert_eq!(
        header(&whole, "content-type"),
        Some("application/octet-stream")
    );
    let saved = header(&whole, "content-disposition");
    assert_eq!(saved, Some("attachment; filename=\"crawl.log\""));
    for (range, expected) in [
        ("bytes=3-7", &log[3..8]),
        ("bytes=100-", &log[100..]),
        ("bytes=-9", &log[log.len() - 9..]),
        ("bytes=0-1,3-4", &log),
    ] {
        let part = get(&format!("Range: {range}\r\nIf-Range: {version}\r\n"));
        let status = if expected == log { 200 } else { 206 };
        assert_eq!((part.status, &*part.body), (status, expected), "{range}");
    }
    let beyond = get("Range: bytes=99999999-\r\n");
    assert_eq!(beyond.status, 416, "{beyond:?}");
    assert_eq!(
        header(&beyond, "content-range"),
        Some(&*format!("bytes */{}", log.len()))
    );
    assert_eq!(
        header(&beyond, "content-type"),
        Some("application/problem+json")
    );
    assert_eq!(get(&format!("If-None-Match: {version}\r\n")).status, 304);
    let path = "/api/v1/jobs/tree/files/log/crawl.log";
    let head = daemon.call("HEAD", path, None, "");
    let length = log.len().to_string();
    assert_eq!(
        (head.status, header(&head, "content-length")),
        (200, Some(&*length))
    );
    assert_eq!(head.body, "");
    fs::write(job.join("logs/crawl.log"), format!("{log}more\n")).unwrap();
    let changed = get(&format!("Range: bytes=3-7\r\nIf-Range: {version}\r\n"));
    assert_eq!(
        (changed.status, changed.body),
        (200, format!("{log}more\n"))
    );
    let changed = get(&format!("If-Match: {version}\r\n"));
    assert_eq!(changed.status, 412, "{changed:?}");

    for (file, status) in [
        ("log/link.log", 404),
        ("log/..%2Fprofile.toml", 404),
        ("log/%2Fetc%2Fpasswd", 404),
        ("log/crawl.log%00", 404),
        ("archive/private.txt", 404),
        ("archive/crawl.log", 404),
        ("report/spelling%2F..%2F..%2Fprofile.toml", 404),
        ("wacz/profile.toml", 404),
        ("profile/profile.toml", 400),
    ] {
        let answer = download(&daemon, file, "");
        assert_eq!(answer.status, status, "{file}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handed_over_file_has_a_digest_until_it_changes() {
    let home = Home::new();
    crawled(&home, "on-close = [\"true\"]\n").await;
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let digests = || daemon.get("/jobs/tree/files?kind=archive");
    let list = digests();
    let first = names(&list)[0];
    assert!(
        list["files"][0]["digest"]
            .as_str()
            .unwrap()
            .starts_with("sha256:"),
        "{list}"
    );
    let file = home.path().join("jobs/tree/warcs").join(first);
    let content = fs::read(&file).unwrap();
    fs::write(&file, content).unwrap();
    assert_eq!(digests()["files"][0]["digest"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_one_index_and_one_list_of_pages() {
    let home = Home::new();
    crawled(&home, "").await;
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let get = |part: &str| {
        let path = format!("/api/v1/jobs/tree/{part}");
        daemon.call("GET", &path, None, "")
    };
    let read = home.run(&["warc", "index", "jobs/tree"]).code(0).out;
    assert!(
        read.lines().count() >= PAGES && read.lines().is_sorted(),
        "{read}"
    );
    let merged = home.run(&["warc", "index", "--merge", "jobs/tree"]);
    assert_eq!(merged.code(0).out, read);
    let index = get("cdxj");
    assert_eq!((index.status, body(&index)), (200, read.clone()));

    let pages = home.run(&["warc", "pages", "jobs/tree"]).code(0).out;
    let listed = uris(&pages);
    assert_eq!(listed.len(), PAGES - 1, "{pages}");
    assert!(
        pages.lines().nth(1).unwrap().contains("\"seed\":true"),
        "{pages}"
    );
    let listed_by_api = get("pages");
    assert_eq!(uris(&body(&listed_by_api)), listed);

    // The command reads an archive file without an index; the daemon refuses it.
    let warcs = home.path().join("jobs/tree/warcs");
    let index = first_index(&warcs);
    fs::remove_file(index).unwrap();
    let merged = home.run(&["warc", "index", "--merge", "jobs/tree"]);
    assert_eq!(merged.code(0).out, read);
    let refused = get("cdxj");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("1 of"), "{refused:?}");
}

fn first_index(warcs: &Path) -> std::path::PathBuf {
    let entries = fs::read_dir(warcs).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths
        .find(|it| it.extension().is_some_and(|it| it == "cdxj"))
        .unwrap()
}

/// Returns the body without chunk framing.
fn body(answer: &Answer) -> String {
    if header(answer, "transfer-encoding") != Some("chunked") {
        return answer.body.clone();
    }
    let (mut rest, mut body) = (&*answer.body, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    body
}

/// Returns the sorted URIs of a list of pages. Its first line describes the list.
fn uris(pages: &str) -> Vec<String> {
    let lines = pages.lines().skip(1).map(|line| {
        let page: Value = serde_json::from_str(line).unwrap();
        page["url"].as_str().unwrap().to_owned()
    });
    let mut uris: Vec<String> = lines.collect();
    uris.sort();
    uris
}
