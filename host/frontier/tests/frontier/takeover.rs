//! A frontier that replaces another one.

use std::time::Duration;

use opilio_frontier::Next;

use crate::site::{Site, at, candidate, config, success, uri, with_queue};

#[test]
fn every_queue_waits_for_a_whole_delay_after_a_takeover() {
    let mut site = Site::new(config());
    let page = |name: &str| candidate(&format!("http://a.org/{name}"), "L");
    site.schedule(vec![page("1"), page("2")], 0);
    site.visit(0, "http://a.org/1");
    site.frontier().wait_everywhere(at(100)).unwrap();
    // The longest delay is 10 s. It applies to the queue that has fetched and to the queue that comes later.
    site.waits(100, 110);
    site.schedule(vec![candidate("http://b.org/", "L")], 103);
    site.waits(104, 110);
    site.reopen();
    site.waits(105, 110);
    let refused_until =
        site.frontier()
            .reserve_queue("org,c,", &uri("http://c.org/robots.txt"), at(106));
    assert_eq!(refused_until.unwrap(), Some(at(110)));
    let mut issued: Vec<String> = (0..2)
        .map(|_| match site.next(110) {
            Next::Issue(issue) => issue.uri.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    issued.sort();
    assert_eq!(issued, ["http://a.org/2", "http://b.org/"]);
}

#[test]
fn a_crawl_delay_applies_after_a_takeover() {
    let mut site = Site::new(with_queue(|queue| {
        queue.politeness.max_delay = Duration::ZERO
    }));
    site.schedule(vec![candidate("http://a.org/1", "L")], 0);
    let queue = site.frontier().queues(None, 1, at(0)).unwrap()[0]
        .queue
        .clone();
    let delay = Some(Duration::from_secs(40));
    site.frontier()
        .set_crawl_delay(&queue, delay, at(0))
        .unwrap();
    site.frontier().wait_everywhere(at(100)).unwrap();
    site.waits(100, 140);
    site.visit(140, "http://a.org/1");
}

#[test]
fn a_checkpoint_has_the_changes_up_to_its_number() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "L")], 0);
    let issue = site.issue(0, "http://a.org/1");
    let checkpoint = site.frontier().checkpoint();
    assert_eq!(checkpoint.changes(), site.frontier().changes());
    // Neither of these is a change.
    assert!(matches!(site.next(1), Next::InProcess));
    let run = Duration::from_secs(1);
    site.frontier().add_run_time(run).unwrap();
    assert_eq!(checkpoint.changes(), site.frontier().changes());
    site.finish(&issue, success(Duration::ZERO, None, vec![]), 1);
    assert_ne!(checkpoint.changes(), site.frontier().changes());
}
