//! `opilio warc` and `opilio package`, on archives of other programs and of this crawler.

use std::fs;
use std::io::Read as _;

use flate2::read::GzDecoder;
use opilio_archive::{Digest, Payloads, StoredPayload};
use serde_json::{Value, json};

use crate::command::{Ended, Home};

/// Returns a record of WARC/1.1 with any additional headers.
fn record(kind: &str, number: u32, uri: &str, more: &str, block: &str) -> String {
    let length = block.len();
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n\
         WARC-Date: 2026-01-02T03:04:{number:02}Z\r\nWARC-Target-URI: {uri}\r\n{more}Content-Length: {length}\r\n\r\n{block}\r\n\r\n"
    )
}

const HTTP: &str = "Content-Type: application/http;msgtype=response\r\n";
const FIELDS: &str = "Content-Type: application/warc-fields\r\n\
    WARC-Concurrent-To: <urn:uuid:00000000-0000-0000-0000-000000000001>\r\n";
const SECRET: &str = "sha1:V6OHCGDT6O4L5ZPA3IY7MWGZFLRDKWZW";

fn response(number: u32, uri: &str, head: &str, body: &str) -> String {
    record(
        "response",
        number,
        uri,
        HTTP,
        &format!("{head}\r\n\r\n{body}"),
    )
}

/// Returns an archive with a page and its metadata, a revisit of it, and a missing picture.
fn archive() -> String {
    let page =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked";
    let body = "1e\r\n<title>A &amp; B</title>Käse\n\r\n0\r\n\r\n";
    let revisit = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
        WARC-Refers-To-Target-URI: http://a.example/\r\nWARC-Refers-To-Date: 2026-01-02T03:04:01Z\r\n";
    [
        response(1, "http://a.example/", page, body),
        record(
            "metadata",
            2,
            "http://a.example/",
            FIELDS,
            "seed: \r\noutlink: http://a.example/x L a/@href\r\n",
        ),
        record(
            "revisit",
            3,
            "http://b.example/",
            &format!("{HTTP}{revisit}"),
            "HTTP/1.1 200 OK\r\n\r\n",
        ),
        response(
            4,
            "http://a.example/none.png",
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain",
            "none",
        ),
    ]
    .concat()
}

fn home() -> Home {
    let home = Home::new();
    home.file("a.warc", archive());
    home
}

fn objects(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn check_reports_every_error_with_its_position() {
    let home = home();
    let sound = home.run(&["warc", "check", "a.warc"]).code(0);
    assert_eq!(
        sound.out,
        "a.warc: 4 records, 0 block and 0 payload digests verified, 0 errors\n"
    );
    let wrong = archive().replacen(
        HTTP,
        &format!("{HTTP}WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\n"),
        1,
    );
    home.file("b.warc", wrong);
    let ended = home.run(&["warc", "check", "--json", "."]).code(1);
    let objects = objects(&ended);
    assert_eq!(objects.len(), 3, "{objects:?}");
    let fault = &objects[1];
    assert_eq!(fault["file"], "./b.warc");
    assert_eq!(fault["offset"], 0);
    assert_eq!(fault["id"], "urn:uuid:00000000-0000-0000-0000-000000000001");
    let problem = fault["problem"].as_str().unwrap();
    assert!(problem.starts_with("payload digest is sha1:"), "{problem}");
    assert_eq!(objects[2]["problems"], 1);
    let missing = home.run(&["warc", "check", "c.warc"]).code(2);
    assert!(
        missing.err.contains("cannot read c.warc"),
        "{}",
        missing.err
    );
}

#[test]
fn records_are_listed_and_chosen() {
    let home = home();
    let all = home.run(&["warc", "ls", "a.warc"]).code(0);
    let first = all.out.lines().next().unwrap();
    let words: Vec<_> = first.split_whitespace().collect();
    assert_eq!(words[0], "0");
    assert_eq!(
        words[2..],
        [
            "response",
            "2026-01-02T03:04:01Z",
            "200",
            "text/html",
            "http://a.example/"
        ]
    );
    assert_eq!(all.out.lines().count(), 4);
    let count = |filter: &[&str]| {
        let ended = home
            .run(&[&["warc", "ls", "--json", "a.warc"], filter].concat())
            .code(0);
        objects(&ended).len()
    };
    assert_eq!(count(&["--uri", "http://a.example/*"]), 3);
    assert_eq!(count(&["--type", "response,revisit"]), 3);
    assert_eq!(count(&["--status", "4xx"]), 1);
    assert_eq!(count(&["--surt", "http://(example,b,)"]), 1);
    assert_eq!(count(&["--mime", "text/*", "--status", "200"]), 1);
    let refused = home
        .run(&["warc", "ls", "a.warc", "--type", "answer"])
        .code(2);
    assert!(
        refused.err.contains("unknown record type"),
        "{}",
        refused.err
    );
}

#[test]
fn records_behind_damage_are_listed_too() {
    let home = Home::new();
    let damaged = archive().replacen("WARC-Type: metadata\r\n", "no colon\r\n", 1);
    home.file("a.warc", damaged);
    let ended = home.run(&["warc", "ls", "a.warc"]).code(1);
    assert_eq!(ended.out.lines().count(), 3);
    assert!(ended.err.contains("has no colon"), "{}", ended.err);
}

#[test]
fn one_record_is_shown_by_offset_id_or_uri() {
    let home = home();
    let payload = "<title>A &amp; B</title>Käse\n";
    let of = |which: &str, part: &str| home.run(&["warc", "show", which, "a.warc", part]);
    assert_eq!(of("0", "--payload").code(0).out, payload);
    assert_eq!(
        of("http://a.example/", "--raw-payload").code(0).out,
        payload
    );
    // The payload of a revisit is that of the record it refers to.
    let revisit = of("http://b.example/@2026", "--payload").code(0);
    assert_eq!(revisit.out, payload);
    assert!(revisit.err.contains("a revisit"), "{}", revisit.err);
    let id = "urn:uuid:00000000-0000-0000-0000-000000000004";
    let headers = of(id, "--headers").code(0).out;
    assert!(
        headers.starts_with("WARC/1.1\r\nWARC-Type: response\r\n"),
        "{headers}"
    );
    assert!(headers.ends_with("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n"));
    let facts = objects(&of(id, "--json").code(0));
    assert_eq!(facts.len(), 1, "{facts:?}");
    let facts = &facts[0];
    assert_eq!(facts["id"], id, "{facts}");
    assert_eq!(facts["uri"], "http://a.example/none.png", "{facts}");
    assert_eq!(facts["status"], 404, "{facts}");
    let of_record = facts["headers"].as_array().unwrap();
    let kind = json!({"name": "WARC-Type", "value": "response"});
    assert!(of_record.contains(&kind), "{facts}");
    let of_http = json!([{"name": "Content-Type", "value": "text/plain"}]);
    assert_eq!(facts["http"]["headers"], of_http, "{facts}");
    assert_eq!(facts["http"]["reason"], "Not Found", "{facts}");
    let block = of(id, "--block").code(0).out;
    assert!(block.ends_with("\r\n\r\nnone"), "{block}");
    let none = of("http://c.example/", "--payload").code(1);
    assert!(
        none.err.contains("no record of http://c.example/ found"),
        "{}",
        none.err
    );
}

#[test]
fn payloads_are_concatenated_or_written_to_one_file_each() {
    let home = home();
    let together = home.run(&["warc", "cat", "a.warc"]).code(0);
    assert_eq!(together.out, "<title>A &amp; B</title>Käse\nnone");
    home.run(&["warc", "cat", "a.warc", "--status", "404", "--to", "out"])
        .code(0);
    let out = home.path().join("out");
    assert_eq!(
        fs::read_to_string(out.join("000001-none.png")).unwrap(),
        "none"
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn the_index_is_sorted() {
    let ended = home().run(&["warc", "index", "a.warc"]).code(0);
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[0].starts_with("example,a)/ 20260102030401 {"),
        "{lines:?}"
    );
    assert!(
        lines[2].starts_with("example,b)/ 20260102030403 {"),
        "{lines:?}"
    );
    assert!(lines.is_sorted());
}

#[test]
fn nothing_is_redacted_without_the_write_option() {
    let home = home();
    let redact = |more: &[&str]| {
        let all = [
            "warc",
            "redact",
            "a.warc",
            "--uri",
            "http://a.example/",
            "--reason",
            "a wish",
        ];
        home.run(&[&all, more].concat())
    };
    let dry = redact(&[]).code(0);
    assert_eq!(dry.out.lines().count(), 3, "{}", dry.out);
    assert!(dry.err.contains("would be redacted"), "{}", dry.err);
    assert_eq!(
        fs::read_to_string(home.path().join("a.warc")).unwrap(),
        archive()
    );
    assert_eq!(home.names(), ["a.warc"]);

    home.run(&["warc", "index", "--beside", "a.warc"]).code(0);
    // Hashes of the entries of an index, which a crawl stores next to it.
    let catalogue = home.path().join(".catalogue-000001");
    fs::write(&catalogue, "hashes").unwrap();
    redact(&["--write"]).code(0);
    assert!(!catalogue.exists());
    home.run(&["warc", "check", "a.warc"]).code(0);
    let shown = home
        .run(&["warc", "show", "http://b.example/", "a.warc", "--payload"])
        .code(0);
    assert!(shown.out.ends_with(": a wish\n"), "{}", shown.out);
    let index = fs::read_to_string(home.path().join("a.cdxj")).unwrap();
    assert_eq!(index.matches("\"451\"").count(), 2, "{index}");
    let journal = fs::read_to_string(home.path().join("redactions.jsonl")).unwrap();
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    assert_eq!(journal.lines().count(), 3);
    assert_eq!(
        (&first["reason"], &first["uri"]),
        (&"a wish".into(), &"http://a.example/".into())
    );
    // All matching records are already redacted.
    let again = redact(&["--write"]).code(1);
    assert!(again.err.contains("are already redacted"), "{}", again.err);
    let no_reason = [
        "warc", "redact", "a.warc", "--digest", SECRET, "--reason", " ",
    ];
    let refused = home.run(&no_reason).code(2);
    assert!(refused.err.contains("--reason is empty"), "{}", refused.err);
    let nothing = home
        .run(&[
            "warc", "redact", "a.warc", "--digest", SECRET, "--reason", "x",
        ])
        .code(1);
    assert!(
        nothing.err.contains("no records to redact"),
        "{}",
        nothing.err
    );
}

/// Creates a job in the state after a crawl, with other folders for its files in the profile.
fn job(home: &Home) -> std::path::PathBuf {
    let job = home.path().join("job");
    for folder in ["one", "two", "notes"] {
        fs::create_dir_all(job.join(folder)).unwrap();
    }
    let profile = "name = \"elsewhere\"\nseeds = [\"http://a.example/\"]\n\
        [archive]\ndirectory = \"one\"\nmore-directories = [\"two\"]\n\
        [archive.duplicates]\nacross-uris = true\nindex = \"known\"\n[logs]\ndirectory = \"notes\"\n";
    fs::write(job.join("profile.toml"), profile).unwrap();
    fs::write(job.join("seeds.txt"), "http://a.example/\n").unwrap();
    let base = home.path().display();
    let about = format!(
        "{{\"version\":1,\"made\":\"2026-01-02T03:04:05Z\",\"made-by\":\"a test\",\"name\":\"elsewhere\",\"base\":\"{base}\"}}"
    );
    fs::write(job.join("job.json"), about).unwrap();
    fs::write(job.join("notes/crawl.log"), "a line\n").unwrap();
    fs::write(job.join("two/a.warc"), archive()).unwrap();
    job
}

#[test]
fn files_of_a_job_are_found_in_the_folders_of_its_profile() {
    let home = Home::new();
    job(&home);
    let ended = home.run(&["warc", "check", "job"]).code(0);
    assert_eq!(
        ended.out,
        "job/two/a.warc: 4 records, 0 block and 0 payload digests verified, 0 errors\n"
    );
    home.run(&["package", "job", "-o", "a.wacz", "--logs"])
        .code(0);
    let file = fs::File::open(home.path().join("a.wacz")).unwrap();
    let mut zip = zip::ZipArchive::new(file).unwrap();
    assert!(zip.by_name("logs/crawl.log").is_ok());
}

#[test]
fn later_duplicates_do_not_refer_to_redacted_payloads() {
    let home = Home::new();
    let job = job(&home);
    let payload = |uri: &str, second: &str| StoredPayload {
        uri: uri.to_owned(),
        date: format!("2026-01-02T03:04:{second}Z").parse().unwrap(),
        record_id: None,
        file: "a.warc".to_owned(),
        offset: 0,
    };
    let digests = [b"1", b"2", b"3"].map(|text| Digest::sha1(text));
    let payloads = Payloads::open(job.join("known")).unwrap();
    let removed = payload("http://a.example/", "01.678");
    let of_another_day = payload("http://a.example/", "59");
    let remaining = payload("http://a.example/none.png", "04");
    for (digest, stored) in digests.iter().zip([&removed, &of_another_day, &remaining]) {
        payloads.keep(digest, stored).unwrap();
    }
    // The job is found from one of its files. Its index of payloads stays open in this test, as in a running crawl.
    let done = home
        .run(&[
            "warc",
            "redact",
            "job/two/a.warc",
            "--uri",
            "http://a.example/",
            "--reason",
            "a wish",
            "--write",
        ])
        .code(0);
    assert!(done.err.contains("1 payloads removed"), "{}", done.err);
    let found = digests.map(|digest| payloads.find(&digest).unwrap());
    assert_eq!(found, [None, Some(of_another_day), Some(remaining)]);
}

#[test]
fn an_index_for_pywb_has_no_304() {
    let home = Home::new();
    let not_modified = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n\
        WARC-Refers-To-Target-URI: http://a.example/\r\nWARC-Refers-To-Date: 2026-01-02T03:04:01Z\r\n";
    let revisit = record(
        "revisit",
        5,
        "http://a.example/",
        &format!("{HTTP}{not_modified}"),
        "HTTP/1.1 304 Not Modified\r\n\r\n",
    );
    home.file("a.warc", archive() + &revisit);
    let all = home.run(&["warc", "index", "a.warc"]).code(0).out;
    let without = home
        .run(&["warc", "index", "a.warc", "--without-not-modified"])
        .code(0)
        .out;
    let left: Vec<_> = all
        .lines()
        .filter(|line| !line.contains("\"status\":\"304\""))
        .collect();
    assert_eq!(all.lines().count(), 4, "{all}");
    assert_eq!(without.lines().collect::<Vec<_>>(), left);
}

#[test]
fn a_package_has_archive_index_pages_and_digests() {
    let home = home();
    let ended = home
        .run(&[
            "package", "a.warc", "-o", "a.wacz", "--title", "A", "--json",
        ])
        .code(0);
    let summary = &objects(&ended)[0];
    assert_eq!(
        (&summary["captures"], &summary["pages"], &summary["seeds"]),
        (&3.into(), &1.into(), &1.into())
    );
    let file = fs::File::open(home.path().join("a.wacz")).unwrap();
    let mut zip = zip::ZipArchive::new(file).unwrap();
    let mut read = |name: &str| {
        let mut bytes = Vec::new();
        let mut entry = zip.by_name(name).unwrap();
        assert_eq!(entry.compression(), zip::CompressionMethod::Stored);
        entry.read_to_end(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(read("archive/a.warc"), archive().into_bytes());
    let pages = String::from_utf8(read("pages/pages.jsonl")).unwrap();
    let page: Value = serde_json::from_str(pages.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&page["url"], &page["title"], &page["ts"], &page["seed"]),
        (
            &"http://a.example/".into(),
            &"A & B".into(),
            &"2026-01-02T03:04:01.000Z".into(),
            &true.into()
        )
    );
    let mut index = String::new();
    GzDecoder::new(read("indexes/index.cdx.gz").as_slice())
        .read_to_string(&mut index)
        .unwrap();
    assert_eq!(index.lines().count(), 3);
    let package: Value = serde_json::from_slice(&read("datapackage.json")).unwrap();
    assert_eq!(package["mainPageUrl"], "http://a.example/");
    assert_eq!(package["resources"].as_array().unwrap().len(), 4);
    let again = home.run(&["package", "a.warc", "-o", "a.wacz"]).code(2);
    assert!(again.err.contains("a.wacz exists"), "{}", again.err);
}

#[test]
fn pages_that_a_browser_rendered_are_marked() {
    let home = Home::new();
    let page = |number: u32, path: &str| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
        response(number, &format!("http://a.example/{path}"), head, "page")
    };
    // Records about a page have the date of the page, which here depends on the number.
    let about = |number: u32, uri: &str| record("resource", number, uri, "", "{}");
    let archive = [
        about(1, "urn:pageinfo:http://a.example/shown"),
        page(1, "shown"),
        about(2, "urn:text:http://a.example/read"),
        about(2, "urn:pageinfo:http://a.example/read"),
        page(2, "read"),
        page(3, "read"),
    ];
    home.file("a.warc", archive.concat());
    let pages = objects(&home.run(&["warc", "pages", "a.warc"]).code(0));
    let marks: Vec<_> = pages[1..]
        .iter()
        .map(|page| (page["rendered"].as_bool(), page["loadState"].as_u64()))
        .collect();
    let expected = [(Some(true), Some(2)), (Some(true), Some(3)), (None, None)];
    assert_eq!(marks, expected, "{pages:?}");
}
