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
async fn reports_have_the_predecessors_columns_and_are_right_after_a_restart() {
    let web = web().await;
    let story = crawl()
        .profile("[politeness]\n[robots]\n")
        .seed(web.url(WWW, "/"));
    let told = story.run().await.finished();
    let lines = told.log.len() as u64;
    assert_eq!(breakdown(&story).await.totals.all.uris, lines);

    // The same job goes on with one more seed.
    let story = story.seed(web.url(WWW, "/later"));
    let told = story.run().await.finished();
    assert!(told.log.len() as u64 > lines);
    let totals = breakdown(&story).await.totals;
    assert_eq!(totals.all.uris, told.log.len() as u64);
    assert_eq!(totals.disregarded, 1);

    let codes = report(&story, ReportKind::Responsecode).await;
    let mut codes = codes.lines();
    assert_eq!(codes.next(), Some("[#urls] [rescode]"));
    let mut codes: Vec<&str> = codes.collect();
    codes.sort_unstable();
    // robots.txt, three pages; the one that is gone; the one that robots.txt forbids; the look-up.
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
        format!("URIs processed: {}", told.log.len()),
        "URI disregards: 1".to_owned(),
    ] {
        assert!(crawl.lines().any(|it| it == line), "{line}: {crawl}");
    }
    // What stands in the job is what is answered.
    for kind in ReportKind::ALL {
        let file = told
            .job()
            .join(format!("reports/{}-report.txt", kind.name()));
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(
            !written.is_empty() || kind == ReportKind::Processors,
            "{kind:?}"
        );
    }
    let written = |file: &str| std::fs::read_to_string(told.job().join("reports").join(file));
    assert_eq!(written("crawl-report.txt").unwrap(), crawl);
    assert_eq!(written("hosts-report.txt").unwrap(), hosts);
    // In both forms, which are made at one go.
    let objects: Vec<serde_json::Value> = written("hosts-report.jsonl")
        .unwrap()
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(objects.len() + 1, hosts.lines().count());
    assert!(objects.iter().any(|row| row["host"] == WWW), "{objects:?}");
}

#[tokio::test]
async fn logs_rotate_by_size_and_nothing_is_lost_between_them() {
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
    let told = story.run().await.finished();
    let folder = told.job().join("logs");
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
        // The one that is written stands first by its name, and is the last.
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
async fn a_thirteenth_column_says_where_each_response_was_archived() {
    let web = web().await;
    let story = crawl()
        .profile("[robots]\n[logs]\nextra-info = true\njson = true")
        .seed(web.url(WWW, "/"));
    let told = story.run().await.finished();
    let page = told.sole(&web.url(WWW, "/"));
    let extra: serde_json::Value = serde_json::from_str(page.extra.as_ref().unwrap()).unwrap();
    let size: u64 = page.size.parse().unwrap();
    assert!(extra["contentSize"].as_u64().unwrap() > size, "{extra}");
    let file = extra["warcFilename"].as_str().unwrap();
    let archived = std::fs::read(told.job().join("warcs").join(file)).unwrap();
    let offset = usize::try_from(extra["warcFileOffset"].as_u64().unwrap()).unwrap();
    let mut record = String::new();
    let _ = flate2::read::GzDecoder::new(&archived[offset..]).read_to_string(&mut record);
    assert!(record.contains("WARC-Type: response"), "{record}");
    assert!(record.contains(&page.uri), "{record}");
    // Robots.txt forbids it, and there is nothing to say.
    let closed = told.sole(&web.url(WWW, "/b"));
    assert_eq!(closed.extra.as_deref(), Some("{}"));
    let objects = told.log_file("crawl.jsonl");
    let object = objects.lines().find(|line| line.contains("warcFilename"));
    assert!(object.is_some(), "{objects}");
}

#[tokio::test]
async fn progress_is_logged_in_the_predecessors_columns() {
    let web = web().await;
    let story = crawl().seed(web.url(WWW, "/"));
    let told = story.run().await.finished();
    let log = told.log_file("progress-statistics.log");
    let mut lines = log.lines();
    let names: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let expected = "timestamp discovered queued downloaded doc/s(avg) KB/s(avg) dl-failures busy-thread mem-use-KB heap-size-KB congestion max-depth avg-depth";
    assert_eq!(names.join(" "), expected);
    let last: Vec<&str> = lines.last().unwrap().split_whitespace().collect();
    assert_eq!(last.len(), names.len());
    let known = told.summary.progress.statistics.discovered.to_string();
    assert_eq!(
        (last[1], last[2], last[7]),
        (known.as_str(), "0", "0"),
        "{log}"
    );
}

#[tokio::test]
async fn a_seed_is_reported_with_where_it_ended() {
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

/// Counts of a host hold for all ports, for several queues, and if an override forces some of its URIs into another queue.
#[tokio::test]
async fn what_remains_of_a_host_is_counted_in_all_its_queues() {
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
        // Which host is next is a matter of time: one of these may be among the two.
        .seed(web.url(IMG, "/apart/x"))
        .seed(web.url(IMG, "/apart/y"))
        .seed(web.url(IMG, "/apart/z"));
    let told = story.run().await;
    assert_eq!(told.summary.end, End::DocumentLimit);

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
