//! Reports and counts over all processes of a crawl, and logs that are rotated and read.

use std::io::Read as _;

use opilio_control::{Command, CommandResponse, ReportKind};
use opilio_crawl::logs::read;
use opilio_crawl::{Breakdown, End};
use opilio_stories::{Story, crawl, html, site};
use opilio_test_web::{Reply, Web};

const WWW: &str = "www.story.localhost";
const IMG: &str = "img.story.localhost";

async fn web() -> Web {
    let web = site(WWW)
        .page(
            "/",
            html("<a href='/a'>a</a><a href='/b'>b</a><a href='/gone'>g</a>"),
        )
        .page("/a", html("same"))
        .page("/b", html("same"))
        .page("/later", html("later"))
        .page(
            "/robots.txt",
            Reply::ok("text/plain", "User-agent: *\nDisallow: /b\n"),
        );
    web.rest(|_| Reply::status(404)).and(IMG).serve().await
}

async fn report(story: &Story, kind: ReportKind) -> String {
    let command = Command::Report {
        report: kind,
        text: true,
    };
    let answers = story.order(command).await.unwrap();
    let texts = answers.into_iter().map(|answer| match answer {
        CommandResponse::Text { text } => text,
        other => panic!("{other:?}"),
    });
    texts.collect()
}

async fn breakdown(story: &Story) -> Breakdown {
    match story.order(Command::Breakdown).await.unwrap().remove(0) {
        CommandResponse::Breakdown(breakdown) => *breakdown,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn reports_have_the_columns_of_heritrix_and_count_all_runs() {
    let web = web().await;
    let story = crawl()
        .profile("[politeness]\n[robots]\n")
        .seed(web.url(WWW, "/"));
    let result = story.run().await.finished();
    let lines = result.log.len() as u64;
    assert_eq!(breakdown(&story).await.totals.all.uris, lines);

    // The job is resumed with one more seed.
    let story = story.seed(web.url(WWW, "/later"));
    let result = story.run().await.finished();
    assert!(result.log.len() as u64 > lines);
    let totals = breakdown(&story).await.totals;
    assert_eq!(totals.all.uris, result.log.len() as u64);
    assert_eq!(totals.disregarded, 1);

    let codes = report(&story, ReportKind::Responsecode).await;
    let mut codes = codes.lines();
    assert_eq!(codes.next(), Some("[#urls] [rescode]"));
    let mut codes: Vec<&str> = codes.collect();
    codes.sort_unstable();
    // robots.txt and three pages; the missing page; the page that robots.txt forbids; the DNS look-up.
    assert_eq!(codes, ["1 -9998", "1 1", "1 404", "4 200"]);

    let hosts = report(&story, ReportKind::Hosts).await;
    let www = hosts.lines().find(|line| line.contains(WWW)).unwrap();
    let columns: Vec<&str> = www.split(' ').collect();
    assert_eq!(
        (columns[0], columns[3], columns[4]),
        ("5", "1", "0"),
        "{www}"
    );

    let seeds = report(&story, ReportKind::Seeds).await;
    let rows: Vec<&str> = seeds.lines().collect();
    let expected = [
        "[code] [status] [seed] [redirect]".to_owned(),
        format!("200 CRAWLED {} -", web.url(WWW, "/")),
        format!("200 CRAWLED {} -", web.url(WWW, "/later")),
    ];
    assert_eq!(rows, expected);

    let crawl = report(&story, ReportKind::Crawl).await;
    for line in [
        "crawl status: finished: no URIs left".to_owned(),
        "seeds crawled: 2".to_owned(),
        format!("URIs processed: {}", result.log.len()),
        "URI disregards: 1".to_owned(),
    ] {
        assert!(crawl.lines().any(|it| it == line), "{line}: {crawl}");
    }
    // The files in the job have the same content as the answers.
    for kind in ReportKind::ALL {
        let file = result
            .job()
            .join(format!("reports/{}-report.txt", kind.name()));
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(
            !written.is_empty() || kind == ReportKind::Processors,
            "{kind:?}"
        );
    }
    let written = |file: &str| std::fs::read_to_string(result.job().join("reports").join(file));
    assert_eq!(written("crawl-report.txt").unwrap(), crawl);
    assert_eq!(written("hosts-report.txt").unwrap(), hosts);
    // The report as JSON has the same rows.
    let objects: Vec<serde_json::Value> = written("hosts-report.jsonl")
        .unwrap()
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(objects.len() + 1, hosts.lines().count());
    assert!(objects.iter().any(|row| row["host"] == WWW), "{objects:?}");
}

#[tokio::test]
async fn logs_rotate_by_size_without_losing_lines() {
    let web = site(WWW).page(
        "/",
        html(
            &(0..40)
                .map(|n| format!("<a href='/{n}'>{n}</a>"))
                .collect::<String>(),
        ),
    );
    let web = web.rest(|_| html("page")).serve().await;
    let story = crawl()
        .profile("[logs]\nrotate-size = '2KiB'\njson = true\nscope = true")
        .seed(web.url(WWW, "/"));
    let result = story.run().await.finished();
    let folder = result.job().join("logs");
    let files = read::files(&folder).unwrap();
    let of = |name: &str| {
        let of = files.iter().filter(|file| file.name.starts_with(name));
        let mut texts: Vec<(&str, String)> = of
            .map(|file| {
                (
                    file.name.as_str(),
                    std::fs::read_to_string(folder.join(&file.name)).unwrap(),
                )
            })
            .collect();
        // The log that is being written is first by name, and the newest.
        texts.rotate_left(1);
        texts
    };
    let crawl_logs = of("crawl.log");
    assert!(crawl_logs.len() > 3, "{files:?}");
    assert!(crawl_logs.iter().all(|(_, text)| text.len() <= 2048));
    let lines: usize = crawl_logs
        .iter()
        .map(|(_, text)| text.lines().count())
        .sum();
    let totals = breakdown(&story).await.totals;
    assert_eq!(totals.all.uris, lines as u64);
    assert_eq!(totals.responses.uris, 43);

    let objects: Vec<serde_json::Value> = of("crawl.jsonl")
        .iter()
        .flat_map(|(_, text)| text.lines().map(|line| serde_json::from_str(line).unwrap()))
        .collect();
    assert_eq!(objects.len(), lines);
    let page = objects
        .iter()
        .find(|line| line["uri"] == web.url(WWW, "/7"))
        .unwrap();
    assert_eq!(
        (page["status"].as_i64(), page["hop_path"].as_str()),
        (Some(200), Some("L"))
    );

    let scope: String = of("scope.log").into_iter().map(|(_, text)| text).collect();
    let decision = scope.lines().find(|line| line.contains("/7 ")).unwrap();
    let words: Vec<&str> = decision.split(' ').collect();
    assert_eq!(words[1], "ACCEPT", "{decision}");
    assert_eq!(
        words[3..],
        [web.url(WWW, "/7"), web.url(WWW, "/")],
        "{decision}"
    );
}

#[tokio::test]
async fn extra_info_has_the_place_of_each_response_in_the_archive() {
    let web = web().await;
    let story = crawl()
        .profile("[robots]\n[logs]\nextra-info = true\njson = true")
        .seed(web.url(WWW, "/"));
    let result = story.run().await.finished();
    let page = result.sole(&web.url(WWW, "/"));
    let extra: serde_json::Value = serde_json::from_str(page.extra.as_ref().unwrap()).unwrap();
    let size: u64 = page.size.parse().unwrap();
    assert!(extra["contentSize"].as_u64().unwrap() > size, "{extra}");
    let file = extra["warcFilename"].as_str().unwrap();
    let archived = std::fs::read(result.job().join("warcs").join(file)).unwrap();
    let offset = usize::try_from(extra["warcFileOffset"].as_u64().unwrap()).unwrap();
    let mut record = String::new();
    let _ = flate2::read::GzDecoder::new(&archived[offset..]).read_to_string(&mut record);
    assert!(record.contains("WARC-Type: response"), "{record}");
    assert!(record.contains(&page.uri), "{record}");
    // robots.txt forbids this page, so it has no place in the archive.
    let closed = result.sole(&web.url(WWW, "/b"));
    assert_eq!(closed.extra.as_deref(), Some("{}"));
    let objects = result.log_file("crawl.jsonl");
    let object = objects.lines().find(|line| line.contains("warcFilename"));
    assert!(object.is_some(), "{objects}");
}

#[tokio::test]
async fn progress_is_logged_in_the_columns_of_heritrix() {
    let web = web().await;
    let story = crawl().seed(web.url(WWW, "/"));
    let result = story.run().await.finished();
    let log = result.log_file("progress-statistics.log");
    let mut lines = log.lines();
    let names: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let expected = "timestamp discovered queued downloaded doc/s(avg) KB/s(avg) dl-failures busy-thread mem-use-KB heap-size-KB congestion max-depth avg-depth";
    assert_eq!(names.join(" "), expected);
    let last: Vec<&str> = lines.last().unwrap().split_whitespace().collect();
    assert_eq!(last.len(), names.len());
    let known = result.summary.progress.statistics.discovered.to_string();
    assert_eq!(
        (last[1], last[2], last[7]),
        (known.as_str(), "0", "0"),
        "{log}"
    );
}

#[tokio::test]
async fn a_seed_is_reported_with_the_target_of_its_redirects() {
    let web = site(WWW)
        .page("/old", Reply::redirect(301, "/moved"))
        .page("/moved", Reply::redirect(302, "/new"))
        .page("/new", html("here it is"))
        .page("/lost", Reply::redirect(301, "/nowhere"))
        .page("/plain", html("no redirect"))
        .rest(|_| Reply::status(404))
        .serve()
        .await;
    let mut story = crawl();
    for seed in ["/old", "/lost", "/plain"] {
        story = story.seed(web.url(WWW, seed));
    }
    story.run().await.finished();
    let command = Command::Report {
        report: ReportKind::Seeds,
        text: false,
    };
    let answers = story.order(command).await.unwrap();
    let rows = answers.into_iter().map(|answer| match answer {
        CommandResponse::Row { row } => row,
        other => panic!("{other:?}"),
    });
    let seen: Vec<_> = rows
        .map(|row| {
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            assert!(row["changed"].is_string(), "{row}");
            assert!(row["crawled"].is_boolean(), "{row}");
            (
                text("uri"),
                row["status"].as_i64(),
                text("redirect"),
                row["redirect_status"].as_i64(),
                row["pages"].as_u64(),
            )
        })
        .collect();
    let url = |target: &str| Some(web.url(WWW, target));
    let expected = [
        (url("/old"), Some(301), url("/new"), Some(200), Some(3)),
        (url("/lost"), Some(301), url("/nowhere"), Some(404), Some(1)),
        (url("/plain"), Some(200), None, None, Some(1)),
    ];
    assert_eq!(seen, expected);
    let text = report(&story, ReportKind::Seeds).await;
    let row = format!(
        "301 CRAWLED {} {}",
        web.url(WWW, "/old"),
        web.url(WWW, "/new")
    );
    assert!(text.lines().any(|line| line == row), "{text}");
}

/// The counts of a host include all ports and all its queues, also if an override forces some of its URIs into another queue.
#[tokio::test]
async fn remaining_uris_of_a_host_are_counted_in_all_its_queues() {
    const PAGES: usize = 20;
    let links = (0..PAGES).map(|n| format!("<a href='/{n}'>{n}</a><a href='/apart/{n}'>a</a>"));
    let page = html(&links.collect::<String>());
    let web = site(WWW).rest(move |_| page.clone()).and(IMG);
    let web = web.serve().await;
    let apart = "[[override]]\nmatch.regex = '/apart/'\nqueue.name = 'apart'\n";
    let story = crawl()
        .profile("limits.fetched = 2\nworkers = 1\nfrontier.parallel-queues = 4")
        .profile(apart)
        .seed(web.url(WWW, "/"))
        // The order of hosts depends on time: one of these seeds may be among the two fetched URIs.
        .seed(web.url(IMG, "/apart/x"))
        .seed(web.url(IMG, "/apart/y"))
        .seed(web.url(IMG, "/apart/z"));
    let result = story.run().await;
    assert_eq!(result.summary.end, End::DocumentLimit);

    let hosts = report(&story, ReportKind::Hosts).await;
    let remaining = |host: &str| -> u64 {
        let row = hosts.lines().find(|line| line.contains(host)).unwrap();
        row.split(' ').nth(4).unwrap().parse().unwrap()
    };
    let command = Command::Statistics;
    let statistics = match story.order(command).await.unwrap().remove(0) {
        CommandResponse::Statistics { statistics } => statistics,
        other => panic!("{other:?}"),
    };
    assert!(remaining(WWW) > PAGES as u64, "{hosts}");
    assert!(remaining(IMG) > 0, "{hosts}");
    assert_eq!(
        remaining(WWW) + remaining(IMG),
        statistics.queued,
        "{hosts}"
    );
}
