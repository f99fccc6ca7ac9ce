//! A crawl that several frontiers share. Each has a part of the queues, and sends the candidates of other parts to their
//! frontiers.

use std::time::Duration;

use opilio_frontier::{Candidate, CrawlPart, FrontierConfig, ScheduleResult};

use crate::site::{Site, candidate, config, success};

/// The part of the hosts that begin with this letter.
fn part(letter: &'static str) -> FrontierConfig {
    let has = move |queue: &str, uri: &opilio_uri::Uri| {
        assert_eq!(queue, uri.surt_authority());
        uri.host().is_some_and(|host| host.starts_with(letter))
    };
    FrontierConfig {
        part: Some(CrawlPart::new(has)),
        ..config()
    }
}

/// Takes everything out of the outbox of one frontier, and schedules it in another.
fn deliver(from: &mut Site, to: &mut Site, seconds: i64) -> Vec<ScheduleResult> {
    let mut results = Vec::new();
    loop {
        let entries = from.frontier().outbox(0, 2).unwrap();
        let Some(last) = entries.last().map(|entry| entry.number) else {
            return results;
        };
        let bytes = entries.iter().map(|entry| entry.candidate.to_bytes());
        let read = bytes.map(|bytes| Candidate::from_bytes(&bytes.unwrap()).unwrap());
        results.extend(to.schedule(read.collect(), seconds));
        from.frontier().remove_sent(last).unwrap();
    }
}

fn uris_in_outbox(site: &mut Site) -> Vec<String> {
    let entries = site.frontier().outbox(0, usize::MAX).unwrap();
    let uris = entries.into_iter().map(|it| it.candidate.uri.to_string());
    uris.collect()
}

#[test]
fn two_frontiers_visit_the_uris_that_one_would_visit() {
    let (mut a, mut b) = (Site::new(part("a")), Site::new(part("b")));
    let seeds = vec![
        candidate("http://a.org/", ""),
        candidate("http://b.org/", ""),
    ];
    assert_eq!(
        a.schedule(seeds.clone(), 0),
        [ScheduleResult::New, ScheduleResult::Sent]
    );
    assert_eq!(
        b.schedule(seeds, 0),
        [ScheduleResult::Sent, ScheduleResult::New]
    );
    // Each frontier has its own seed already.
    let known = [ScheduleResult::Known];
    assert_eq!(deliver(&mut a, &mut b, 0), known);
    assert_eq!(deliver(&mut b, &mut a, 0), known);

    let issue = a.issue(0, "http://a.org/");
    let links = [
        "http://a.org/1",
        "http://b.org/1",
        "http://b.org/2",
        "http://b.org/3",
    ];
    let links = links.map(|link| candidate(link, "L")).to_vec();
    let finished = a.finish(&issue, success(Duration::ZERO, None, links), 0);
    let sent = ScheduleResult::Sent;
    assert_eq!(finished.scheduled, [ScheduleResult::New, sent, sent, sent]);
    assert_eq!(deliver(&mut a, &mut b, 1), [ScheduleResult::New; 3]);
    assert_eq!(uris_in_outbox(&mut a), [""; 0]);
    b.visit(1, "http://b.org/");
    b.visit(10, "http://b.org/1");
    a.visit(10, "http://a.org/1");
    a.is_empty(20);
    assert_eq!(a.frontier().statistics().discovered, 2);
    assert_eq!(b.frontier().statistics().discovered, 4);
}

#[test]
fn undelivered_candidates_are_sent_again_after_a_crash() {
    let mut a = Site::new(part("a"));
    a.schedule(vec![candidate("http://a.org/", "")], 0);
    let issue = a.issue(0, "http://a.org/");
    let mut link = candidate("http://b.org/1?q", "L");
    link.via = Some("http://a.org/".to_owned());
    link.due = Some(crate::site::at(77));
    link.source = Some("http://a.org/".to_owned());
    let links = vec![link.clone(), candidate("http://c.org/", "L")];
    a.finish(&issue, success(Duration::ZERO, None, links), 0);
    a.reopen();
    let entries = a.frontier().outbox(0, usize::MAX).unwrap();
    assert_eq!(entries[0].candidate, link);
    assert_eq!(entries.len(), 2);
    assert_eq!(
        a.frontier().outbox(entries[0].number, 9).unwrap().len(),
        1,
        "entries after the number of the first"
    );
    a.frontier().remove_sent(entries[0].number).unwrap();
    assert_eq!(uris_in_outbox(&mut a), ["http://c.org/"]);
    a.reopen();
    assert_eq!(uris_in_outbox(&mut a), ["http://c.org/"]);
}

#[test]
fn a_link_to_another_part_is_sent_once() {
    let mut a = Site::new(part("a"));
    let link = || vec![candidate("http://b.org/", "L")];
    assert_eq!(a.schedule(link(), 0), [ScheduleResult::Sent]);
    assert_eq!(a.schedule(link(), 0), [ScheduleResult::Known]);
    let known = a.frontier().changes_nothing(link().iter()).unwrap();
    assert_eq!(known, [true]);
    assert_eq!(uris_in_outbox(&mut a).len(), 1);
    // A forced candidate is sent again. So is a link from another seed, because it counts for the quota of that seed.
    let forced = Candidate {
        force: true,
        ..candidate("http://b.org/", "L")
    };
    assert_eq!(a.schedule(vec![forced], 1), [ScheduleResult::Sent]);
    let other = Candidate {
        source: Some("http://a.org/".to_owned()),
        ..candidate("http://b.org/", "L")
    };
    assert_eq!(a.schedule(vec![other], 1), [ScheduleResult::Sent]);
}

#[test]
fn a_long_outbox_is_removed_in_steps() {
    let mut a = Site::new(part("a"));
    let links = (0..10_050).map(|n| candidate(&format!("http://b.org/{n}"), "L"));
    a.schedule(links.collect(), 0);
    let end = a.frontier().outbox_end();
    let removed = a.frontier().remove_sent(end).unwrap();
    assert!(removed < end, "{removed} {end}");
    assert_eq!(uris_in_outbox(&mut a).len(), 50);
    assert_eq!(a.frontier().remove_sent(end).unwrap(), end);
    assert_eq!(uris_in_outbox(&mut a), [""; 0]);
}
