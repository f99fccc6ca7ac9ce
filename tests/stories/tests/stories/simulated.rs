//! Both drivers of the visit pipeline with the same responses: a crawl of real servers, and a simulated crawl. Every visit must
//! have the same status, annotations, hop path and frontier record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{Next, QueueReport, UriRecord};
use opilio_profile::{Profile, ProfileContext};
use opilio_simulate::{EndKind, ServerAnswer, SimulatedCrawl, VisitStart};
use opilio_stories::{
    LoggedUri, Misdeed, component_cache, crawl, lines, ranks_queues, scope_filter, site,
};
use opilio_test_web::Reply;
use opilio_uri::Uri;

const WWW: &str = "www.story.localhost";

const PROFILE: &str = r#"
strategy = "revisit"
fetch.redirects-max = 2
[plugins.adaptive]
component = "builtin:adaptive"
settings = { initial-wait = "40ms", min-wait = "10ms", max-wait = "160ms", default-wait = "40ms" }
[plugins.no-films]
component = "builtin:content-type"
settings = { types = ["video/*"] }
[plugins.no-drafts]
component = "builtin:regex-list"
settings = { patterns = ["/draft"], then = "reject" }
[plugins.links-first]
component = "builtin:link-precedence"
[plugins.no-special]
component = "builtin:regex-list"
settings = { patterns = ["/special/no"], then = "reject" }
# Links of one page whose targets have other filters and other policies for robots.txt than the page.
[[override]]
match.regex = "/special/"
stacks.scope = { before = { prerequisite = ["no-special"] } }
[[override]]
match.regex = "/closed/mine/"
robots = { policy = "custom", text = "User-agent: *\nDisallow: /closed/mine/no\n" }
[[override]]
match.regex = "/named/"
robots = { policy = "first-named", agents = ["friendly"] }
[[override]]
match.regex = "/favoured/"
robots = { policy = "most-favoured", agents = ["friendly"] }
# The plugin fails for each link to this target.
[[override]]
match.regex = "/unjudged"
stacks.scope = { before = { prerequisite = ["fails"] } }
[revisit]
default-wait = "40ms"
min-wait = "10ms"
max-wait = "160ms"
[retry]
delay = "5ms"
delay-max = "5ms"
max-retries = 2
"#;

/// Returns the answer to a request for a target. `visit` is the number of the request, from 1.
fn reply(target: &str, visit: usize, if_none_match: Option<&str>) -> Reply {
    let page = |body: &str| Reply::html(format!("<title>A page</title>{body}"));
    match target {
        "/robots.txt" => Reply::ok(
            "text/plain",
            "User-agent: *\nDisallow: /closed\nDisallow: /named\nDisallow: /favoured/friend\nDisallow: /favoured/no\n\n\
             User-agent: friendly\nDisallow: /named/no\nDisallow: /favoured/everyone\nDisallow: /favoured/no\n"
                .to_owned(),
        ),
        "/" => page(&format!(
            "version {visit} <a href='/same'>1</a> <a href='/tagged'>2</a> <a href='/closed/1'>3</a> <a href='/r1'>4</a> \
             <a href='/quiet'>5</a> <a href='/unarchived'>6</a> <a href='/shaky'>7</a> <a href='/broken'>8</a> \
             <a href='/gone'>9</a> <a href='/film'>10</a> <a href='/draft/1'>11</a> <a href='http://elsewhere.example/'>12</a> \
             <img src='/picture.png'> <a href='/missing'>13</a> <a href='/special/yes'>14</a> <a href='/special/no'>15</a> \
             <a href='/closed/mine/yes'>16</a> <a href='/closed/mine/no'>17</a> <a href='/named/yes'>18</a> \
             <a href='/named/no'>19</a> <a href='/favoured/friend'>20</a> <a href='/favoured/everyone'>21</a> \
             <a href='/favoured/no'>22</a> <a href='/leads'>23</a>"
        )),
        "/leads" => page("always the same <a href='/unjudged'>x</a>"),
        "/same" => page("always the same <a href='/'>home</a>"),
        "/tagged" if if_none_match == Some("\"v1\"") => Reply::status(304).with("etag", "\"v1\""),
        "/tagged" => page("tagged").with("etag", "\"v1\""),
        "/r1" => Reply::redirect(301, "/r2"),
        "/r2" => Reply::redirect(302, "/r3"),
        "/r3" => Reply::redirect(302, "/r4"),
        "/quiet" => page("<meta name=robots content=nofollow><a href='/from-quiet'>x</a>"),
        "/unarchived" => page("not for archives").with("x-robots-tag", "noarchive"),
        "/shaky" if visit < 3 => Reply::status(503),
        "/shaky" => page("here at last"),
        "/broken" => Reply::status(503),
        "/gone" => Reply::html("<title>Page not found | Story</title><a href='/from-gone'>x</a>"),
        "/film" => Reply::ok("video/mp4", vec![0; 3000]),
        "/special/yes" | "/closed/mine/yes" | "/named/yes" | "/favoured/friend"
        | "/favoured/everyone" => page("allowed"),
        "/picture.png" => Reply::ok("image/png", vec![7; 300]),
        _ => Reply::status(404),
    }
}

/// The result of a visit in either driver, without times.
#[derive(Debug, PartialEq, Eq)]
struct DriverVisit {
    status: i32,
    hops: String,
    annotations: Vec<String>,
}

impl DriverVisit {
    fn new(status: i32, hops: &str, annotations: &[String]) -> DriverVisit {
        let is_time = |note: &&String| note.starts_with("ov:");
        DriverVisit {
            status,
            hops: hops.trim_matches('-').to_owned(),
            annotations: annotations
                .iter()
                .filter(|note| !is_time(note))
                // The log replaces blanks by underscores.
                .map(|note| note.replace(' ', "_"))
                .collect(),
        }
    }

    fn logged(line: &LoggedUri) -> DriverVisit {
        DriverVisit::new(line.status, &line.hops, &line.annotations)
    }
}

/// Returns the parts of a record that do not depend on times.
fn known(record: &UriRecord) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        (record.digests, record.fingerprint.clone(), record.extractor),
        (
            record.scope,
            record.seed,
            record.outlinks,
            record.precedence,
        ),
        (record.validators.clone(), record.media_type.clone()),
        (record.via.clone(), record.context.clone()),
    )
}

#[tokio::test]
async fn a_simulated_crawl_has_the_same_visits_as_a_real_one() {
    let web = site(WWW)
        .rest(|seen| {
            let etag = seen.headers.get("if-none-match");
            let etag = etag.and_then(|etag| etag.to_str().ok());
            reply(&seen.target, seen.visit, etag)
        })
        .serve()
        .await;
    let seed = web.url(WWW, "/");
    let story = crawl()
        .plugin("queues", &ranks_queues())
        .plugin("fails", &scope_filter(Misdeed::Traps))
        .profile("plugins.fails.breaker = { faults = 100000, calls = 100000 }")
        .profile(PROFILE)
        .profile("stacks.pre-fetch = ['no-drafts']\nstacks.mid-fetch = ['no-films']")
        .profile("stacks.precedence = ['links-first', 'queues']\nstacks.post-fetch = []\nstacks.pre-extract = ['soft-404']")
        .profile("[plugins.soft-404]\ncomponent = 'builtin:soft-404'\nsettings = { then = 'reject' }")
        .seed(&seed);
    let enough = || {
        let log = lines(&story.job());
        let count = |target: &str| {
            let uri = web.url(WWW, target);
            log.iter().filter(|line| line.uri == uri).count()
        };
        let often = ["/", "/same", "/tagged", "/unarchived", "/leads"];
        often.iter().all(|target| count(target) >= 3)
            && [
                "/shaky",
                "/broken",
                "/gone",
                "/film",
                "/draft/1",
                "/closed/1",
                "/r3",
                "/special/yes",
                "/closed/mine/yes",
                "/closed/mine/no",
                "/named/yes",
                "/named/no",
                "/favoured/friend",
                "/favoured/everyone",
                "/favoured/no",
            ]
            .iter()
            .all(|target| count(target) >= 1)
    };
    let result = story.run_until("all pages were visited", enough).await;
    let mut real: BTreeMap<String, Vec<DriverVisit>> = BTreeMap::new();
    for line in result
        .log
        .iter()
        .filter(|line| !line.uri.starts_with("dns:"))
    {
        real.entry(line.uri.clone())
            .or_default()
            .push(DriverVisit::logged(line));
    }

    let status = |target: &str| {
        real.get(&web.url(WWW, target))
            .map(|visits| visits[0].status)
    };
    let by_target = ["/special/yes", "/closed/mine/yes", "/named/yes"];
    assert_eq!(by_target.map(status), [Some(200); 3]);
    let by_target = ["/special/no", "/closed/mine/no", "/named/no"];
    assert_eq!(by_target.map(status), [None, Some(-9998), Some(-9998)]);
    let by_target = ["/favoured/friend", "/favoured/everyone", "/favoured/no"];
    assert_eq!(by_target.map(status), [Some(200), Some(200), Some(-9998)]);
    // Unchanged pages are extracted again as long as links of them are unjudged.
    let leads = &real[&web.url(WWW, "/leads")];
    let is_unjudged = |visit: &DriverVisit| {
        visit
            .annotations
            .contains(&"scope-fault:fails:1".to_owned())
    };
    assert!(leads.iter().all(is_unjudged), "{leads:#?}");
    assert_eq!(status("/unjudged"), None);

    let given = ProfileContext {
        builtins: opilio_crawl::builtin_plugins(),
        seeds: vec![seed.clone()],
        ..ProfileContext::default()
    };
    let text = story.profile_text();
    let parse = || Profile::parse("story.toml", &text, &given);
    let parse = || parse().unwrap_or_else(|faults| panic!("{faults:?}"));
    let (profile, of_simulation) = (parse(), parse());
    let most = real.values().map(Vec::len).max().unwrap();
    let prefix = opilio_uri::implied_surt_prefix(&seed).unwrap();
    let (simulated, records, queue) = opilio_stacks::on_plugin_thread("simulation", || {
        simulate(of_simulation, &seed, &prefix, most)
    })
    .unwrap();

    let mut compared = 0;
    for (uri, real) in &real {
        let simulated = simulated
            .get(uri)
            .unwrap_or_else(|| panic!("{uri} was never visited in the simulation"));
        for (number, (real, simulated)) in real.iter().zip(simulated).enumerate() {
            assert_eq!(real, simulated, "visit {number} of {uri}");
            compared += 1;
        }
    }
    assert!(compared >= 30, "{compared} visits: {real:#?}");
    // Both drivers follow the same links.
    let of_real: Vec<&String> = real.keys().collect();
    let of_simulated: Vec<&String> = simulated.keys().collect();
    assert_eq!(of_real, of_simulated);
    let frontier = opilio_frontier::Frontier::open(
        &result.job().join("state"),
        opilio_visit::policy::frontier_config(&Arc::new(profile), Timestamp::now),
    )
    .unwrap();
    let same = [
        "/same",
        "/tagged",
        "/quiet",
        "/unarchived",
        "/shaky",
        "/broken",
        "/gone",
        "/film",
        "/draft/1",
        "/closed/1",
        "/r1",
        "/r3",
        "/special/yes",
        "/closed/mine/yes",
        "/closed/mine/no",
        "/named/yes",
        "/named/no",
        "/favoured/friend",
        "/favoured/everyone",
        "/favoured/no",
        "/leads",
    ];
    for target in same {
        let uri = Uri::parse(&web.url(WWW, target)).unwrap();
        let real = frontier.record(&uri).unwrap().unwrap();
        let simulated = &records[uri.as_str()];
        assert_eq!(
            format!("{:#?}", known(&real)),
            format!("{:#?}", known(simulated)),
            "{uri}"
        );
    }
    let queues = frontier.queues(None, 10, Timestamp::now()).unwrap();
    let of_site = queues.iter().find(|report| report.queue == queue.queue);
    assert_eq!(of_site.unwrap().precedence, queue.precedence);
    assert_eq!(queue.precedence, b'{' - b's');
}

/// Simulates until the seed was visited more than `most` + 3 times, nothing is left, or 120 seconds have passed. Returns the visits,
/// the records, and the report on the seed's queue.
fn simulate(
    profile: Profile,
    seed: &str,
    prefix: &str,
    most: usize,
) -> (
    BTreeMap<String, Vec<DriverVisit>>,
    BTreeMap<String, UriRecord>,
    QueueReport,
) {
    let folder = tempfile::tempdir().unwrap();
    let mut now = Timestamp::from_second(1_800_000_000).unwrap();
    let cache = Some(component_cache());
    let prefixes = [prefix.to_owned()];
    let crawl = SimulatedCrawl::open(profile, folder.path(), cache, &prefixes, now).unwrap();
    crawl.seed(vec![Uri::parse(seed).unwrap()], now).unwrap();
    let mut visits: BTreeMap<String, Vec<DriverVisit>> = BTreeMap::new();
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    let mut queue = String::new();
    let leads = Uri::parse(seed).unwrap().join("/leads").unwrap();
    let end = now + Duration::from_secs(120);
    while now < end {
        let issue = match crawl.next(now).unwrap() {
            Next::Issue(issue) => issue,
            Next::WaitUntil(at) => {
                now = at.max(now + Duration::from_millis(1));
                continue;
            }
            Next::InProcess | Next::Empty => break,
        };
        queue.clone_from(&issue.queue);
        let (uri, hops) = (issue.uri.clone(), issue.record.hop_path.as_str().to_owned());
        let done = match crawl.begin(*issue, now).unwrap() {
            VisitStart::Ended(done) => *done,
            VisitStart::Asks(request) => {
                let number = requests.entry(uri.as_str().to_owned()).or_default();
                *number += 1;
                let etag = request.headers.if_none_match.clone();
                let reply = reply(uri.path(), *number, etag.as_deref());
                let headers = reply.headers.into_iter();
                let answer = ServerAnswer::Response {
                    status: reply.status,
                    headers: headers
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                    size: reply.body.len() as u64,
                    content: reply.body,
                };
                now += Duration::from_millis(1);
                crawl.receive(*request, answer, now).unwrap()
            }
        };
        if done.kind != EndKind::Unfinished {
            let visit = DriverVisit::new(done.entry.status, &hops, &done.entry.annotations);
            let visits = visits.entry(uri.as_str().to_owned()).or_default();
            visits.push(visit);
        }
        let home = Uri::parse(seed).unwrap();
        if visits.get(home.as_str()).map_or(0, Vec::len) > most + 3 {
            break;
        }
    }
    let (faults, first) = crawl.faults();
    assert_eq!(
        Some(faults),
        visits.get(leads.as_str()).map(|visits| visits.len() as u64),
        "{first:?}"
    );
    let queue = crawl.queue(&queue, now).unwrap().unwrap();
    let records = visits.keys().filter_map(|uri| {
        let record = crawl.record(&Uri::parse(uri).ok()?).ok()??;
        Some((uri.clone(), record))
    });
    let records = records.collect();
    (visits, records, queue)
}
