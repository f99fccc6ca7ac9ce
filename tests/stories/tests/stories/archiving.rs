//! Settings of the archive: formats, duplicates, indexes, hand-over.

use std::fs;
use std::path::PathBuf;

use opilio_archive::{Digest, Packing, Reader, check, index};
use opilio_stories::{FinishedCrawl, asked, crawl, html, lines, site, until};
use opilio_test_web::{Gate, Reply};

const WWW: &str = "www.story.localhost";

/// A picture that is served at two URIs. It is long enough for the detection of duplicates.
fn picture() -> Reply {
    Reply::ok("image/png", vec![7; 2000])
}

fn files(result: &FinishedCrawl, ending: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(result.job().join("warcs")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(ending));
    files.sort();
    files
}

#[tokio::test]
async fn a_payload_known_from_another_uri_becomes_a_revisit_record() {
    let web = site(WWW)
        .page(
            "/",
            html("<img src='/a.png'><img src='/b.png'><img src='/small.png'><img src='/less.png'>"),
        )
        .page("/a.png", picture())
        .page("/b.png", picture())
        .page("/small.png", html("x"))
        .page("/less.png", html("x"))
        .serve()
        .await;
    let result = crawl()
        .profile("[archive.duplicates]\nacross-uris = true\n")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let (a, b) = (web.url(WWW, "/a.png"), web.url(WWW, "/b.png"));
    let whole = [&a, &b].map(|uri| result.records("response", uri).len());
    assert_eq!(whole.iter().sum::<usize>(), 1, "{whole:?}");
    let (first, second) = if whole[0] == 1 { (&a, &b) } else { (&b, &a) };
    let (first, revisit) = (
        result.record("response", first),
        result.record("revisit", second),
    );
    assert_eq!(
        revisit.header("warc-refers-to-target-uri"),
        Some(first.uri.as_str())
    );
    assert_eq!(
        revisit.header("warc-refers-to-date"),
        first.header("warc-date")
    );
    assert_eq!(
        revisit.header("warc-refers-to"),
        first.header("warc-record-id")
    );
    assert_eq!(
        revisit.header("warc-payload-digest"),
        first.header("warc-payload-digest")
    );
    assert!(
        revisit
            .header("warc-profile")
            .unwrap()
            .ends_with("/identical-payload-digest")
    );
    assert!(revisit.text().starts_with("HTTP/1.1 200") && revisit.text().ends_with("\r\n\r\n"));
    let log = result.sole(second);
    assert!(
        log.notes("duplicate:digest") && log.notes("warcRevisit:uriAgnosticDigest"),
        "{log:?}"
    );
    for small in ["/small.png", "/less.png"] {
        result.record("response", &web.url(WWW, small));
    }
    // robots.txt, the page, one picture and two small ones; the other picture is not novel.
    let tally = result.summary.progress.statistics.tally;
    assert_eq!(tally.fetched - tally.novel, 1, "{tally:?}");
}

#[tokio::test]
async fn jobs_that_crawl_at_the_same_time_share_an_index_of_digests() {
    let gate = Gate::of(2);
    let web = site(WWW)
        .page("/", html("<img src='/a.png'><a href='/last'>last</a>"))
        .page("/a.png", picture())
        .page("/last", html("the end").behind(&gate))
        .page("/b.png", picture())
        .serve()
        .await;
    let shared = tempfile::tempdir().unwrap();
    let profile = format!(
        "[archive.duplicates]\nacross-uris = true\nindex = {:?}\n",
        shared.path().join("digests").display().to_string()
    );
    let (a, b) = (web.url(WWW, "/a.png"), web.url(WWW, "/b.png"));
    let first = crawl().profile(&profile).seed(web.url(WWW, "/"));
    let (first, second) = first
        .run_with(async {
            until("the first job has the picture", || {
                lines(&first.job()).iter().any(|line| line.uri == a)
            })
            .await;
            let second = crawl().profile(&profile).seed(&b).run().await;
            gate.come();
            second
        })
        .await;
    let original = first.finished().record("response", &a).clone();
    let revisit = second.finished().record("revisit", &b).clone();
    assert_eq!(
        revisit.header("warc-refers-to-target-uri"),
        Some(a.as_str())
    );
    assert_eq!(
        revisit.header("warc-refers-to"),
        original.header("warc-record-id")
    );
}

#[tokio::test]
async fn payloads_of_an_earlier_archive_are_known_from_its_index() {
    let web = site(WWW).page("/", picture()).serve().await;
    let story = crawl();
    let digest = Digest::sha1(&[7; 2000]);
    let line = format!(
        "org,example)/old 20200102030405 {{\"url\":\"http://example.org/old\",\"mime\":\"image/png\",\"status\":\"200\",\"digest\":\"{digest}\",\"length\":\"9\",\"offset\":\"5\",\"filename\":\"old.warc.gz\"}}\n"
    );
    let history = story.file("old.cdxj", &line);
    let result = story
        .profile(&format!(
            "[archive.duplicates]\nacross-uris = true\nhistory = [{:?}]\n",
            history.display().to_string()
        ))
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let revisit = result.record("revisit", &web.url(WWW, "/"));
    assert_eq!(
        revisit.header("warc-refers-to-target-uri"),
        Some("http://example.org/old")
    );
    assert_eq!(
        revisit.header("warc-refers-to-date"),
        Some("2020-01-02T03:04:05.000000Z")
    );
    assert_eq!(revisit.header("warc-refers-to"), None);
}

#[tokio::test]
async fn a_crawl_is_written_as_zstd_with_both_digests_and_an_index() {
    let web = site(WWW).page("/", html("hello")).serve().await;
    let result = crawl()
        .profile(
            "[archive]\ncompression = \"zstd\"\ndigest = \"both\"\nindex = true\nname = \"x-${serialno}\"\nmore-directories = [\"warcs2\"]\n",
        )
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let [file] = &files(&result, ".warc.zst")[..] else {
        panic!("{:?}", files(&result, ""));
    };
    assert!(file.ends_with("x-00000.warc.zst"));
    assert!(check(file).unwrap().is_sound());
    let mut reader = Reader::open(file).unwrap();
    assert!(reader.next_record().unwrap().is_some());
    assert_eq!(reader.packing(), Packing::Zstd);
    let page = result.record("response", &web.url(WWW, "/"));
    for (header, label) in [
        ("warc-payload-digest", "sha1:"),
        ("warc-payload-digest-sha256", "sha256:"),
        ("warc-block-digest", "sha1:"),
        ("warc-block-digest-sha256", "sha256:"),
    ] {
        assert!(page.header(header).unwrap().starts_with(label), "{header}");
    }
    let written = fs::read_to_string(&files(&result, ".cdxj")[0]).unwrap();
    let made: Vec<String> = index(file)
        .unwrap()
        .iter()
        .map(|entry| format!("{entry}\n"))
        .collect();
    assert_eq!(written, made.concat());
    assert!(written.contains(&web.url(WWW, "/")));
}

#[tokio::test]
async fn a_crawl_is_written_as_arc() {
    let web = site(WWW).page("/", html("hello")).serve().await;
    let result = crawl()
        .profile("[archive]\nformat = \"arc\"\n")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(files(&result, ".arc.gz").len(), 1);
    let page = result.record("response", &web.url(WWW, "/"));
    assert!(page.text().contains("<body>hello"), "{}", page.text());
    assert!(
        result
            .captures
            .iter()
            .all(|capture| ["warcinfo", "response", "resource"].contains(&capture.kind.as_str()))
    );
}

#[tokio::test]
async fn warcinfo_names_software_host_plugins_and_profile() {
    let web = site(WWW).page("/", html("hello")).serve().await;
    let story = crawl().seed(web.url(WWW, "/"));
    let result = story.run().await.finished();
    let info = &result.captures[0];
    assert_eq!(info.kind, "warcinfo");
    for line in [
        "software: opilio/",
        "format: WARC File Format 1.1",
        "robots: obey",
        "hostname: ",
        "plugin: html ",
    ] {
        assert!(info.text().contains(line), "{line}: {}", info.text());
    }
    let profile = &result.captures[1];
    assert_eq!(profile.uri, "metadata://opilio/profile.toml");
    assert_eq!(profile.text(), story.profile_text());
}

#[cfg(unix)]
#[tokio::test]
async fn closed_files_are_handed_over_with_checksums_and_again_after_a_failure() {
    let web = site(WWW).page("/", html("hello")).serve().await;
    let story = crawl().seed(web.url(WWW, "/"));
    // The command fails until the file `open` exists.
    let script = story.file(
        "take.sh",
        "test -e open || exit 7\necho \"$1 $2\" >> taken\n",
    );
    let story = story.profile(&format!(
        "[archive]\non-close = [\"sh\", {:?}, \"{{sha256}}\", \"{{file}}\"]\n",
        script.display().to_string()
    ));
    let result = story.run().await.finished();
    assert!(!result.job().join("taken").exists());
    assert!(
        result
            .log_file("job.log")
            .contains("alert handover on-close"),
        "{}",
        result.log_file("job.log")
    );
    fs::write(result.job().join("open"), "").unwrap();
    story.run().await;
    let files = files(&result, ".warc.gz");
    let taken = fs::read_to_string(result.job().join("taken")).unwrap();
    let first = &files[0];
    assert!(taken.contains(&*first.to_string_lossy()), "{taken}");
    assert_eq!(taken.split(' ').next().unwrap().len(), 64, "{taken}");
    let before = taken.lines().count();
    story.run().await;
    let taken = fs::read_to_string(result.job().join("taken")).unwrap();
    assert_eq!(
        taken.matches(&*first.to_string_lossy()).count(),
        1,
        "{before}: {taken}"
    );
}

#[tokio::test]
async fn a_limit_on_the_size_of_the_archive_ends_the_crawl() {
    let web = site(WWW)
        .rest(|seen| html(&format!("<a href='{}x'>{}</a>", seen.target, seen.visit)))
        .serve()
        .await;
    let result = crawl()
        .profile("[archive]\nmax-total-bytes = \"20KiB\"\n")
        .seed(web.url(WWW, "/"))
        .run()
        .await;
    assert!(
        result.summary.end.to_string().contains("max-total-bytes"),
        "{}",
        result.summary.end
    );
}

/// The metadata record names the plugins that accepted a page and chose its wait, and their components.
#[tokio::test]
async fn a_metadata_record_names_the_deciding_plugins() {
    let web = site(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await;
    let result = crawl()
        .profile(
            "strategy = 'revisit'
            stacks.wait = ['adaptive']
            revisit = { default-wait = '1h', min-wait = '1h' }",
        )
        .seed(web.url(WWW, "/"))
        .run_until("both pages are fetched", || asked(&web).len() >= 2)
        .await;
    let seed = result.record("metadata", &web.url(WWW, "/")).text();
    assert!(seed.contains("acceptedAs: seed\r\n"), "{seed}");
    let robots = result
        .record("metadata", &web.url(WWW, "/robots.txt"))
        .text();
    assert!(robots.contains("acceptedAs: prerequisite\r\n"), "{robots}");
    assert!(!robots.contains("waitMs"), "{robots}");

    let page = result.record("metadata", &web.url(WWW, "/a.html")).text();
    let values = |name: &str| {
        let lines = page.lines().filter_map(|line| line.split_once(": "));
        let fields = lines.filter(|(field, _)| *field == name);
        fields.map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert!(values("acceptedBy")[0].starts_with("surt-scope"), "{page}");
    assert_eq!(values("waitBy"), ["adaptive"], "{page}");
    let wait: u64 = values("waitMs")[0].parse().unwrap();
    assert!(wait >= 3_600_000, "{page}");
    let info = result
        .captures
        .iter()
        .find(|capture| capture.kind == "warcinfo");
    let info = info.unwrap().text();
    let plugins = values("plugin");
    let names: Vec<_> = plugins
        .iter()
        .filter_map(|plugin| plugin.split(' ').next())
        .collect();
    assert_eq!(names, ["surt-scope", "adaptive"], "{page}");
    for plugin in plugins {
        assert!(
            info.contains(&format!("plugin: {plugin}\r\n")),
            "as in warcinfo: {plugin}"
        );
    }
}
