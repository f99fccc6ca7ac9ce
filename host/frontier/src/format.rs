//! Format 1 as it lies on the disk, byte for byte. A store outlives the code that wrote it: where one of these fails, the
//! shape of a stored value has changed, and needs either a new `FORMAT_VERSION` with a migration, or a second `ENCODING`
//! that `decode` tells from the first.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::HopPath;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    BytesByNovelty, ContentState, Digests, Directive, PastVisit, Place, Politeness, Revisits,
    Standing, Statistics, Strategy, StrippedDigest, UriRecord, Validators, WarcLocation,
    change::{Counters, Issued},
    queue::{QueueRecord, Turn},
    store::{decode, encode},
};

#[track_caller]
fn check<T: Serialize + DeserializeOwned + std::fmt::Debug>(value: &T, hex: &str) {
    let stored = encode(value).unwrap();
    let written: String = stored.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, hex, "the stored shape of {value:?} has changed");
    let read: T = decode("a value", b"key", &stored).unwrap();
    assert_eq!(format!("{read:?}"), format!("{value:?}"));
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_record_of_a_uri() {
    let record = UriRecord {
        uri: String::new(),
        queue: "org,a,".to_owned(),
        hop_path: HopPath::parse("LE").unwrap(),
        via: Some("http://a.org/".to_owned()),
        context: "img/@src".to_owned(),
        source: Some("http://a.org/".to_owned()),
        seed: true,
        strategy: Strategy::Revisit,
        precedence: 7,
        discovered: second(1),
        place: Place::Queued {
            directive: Directive::Medium,
            due: second(2),
            arrival: 300,
        },
        standing: Standing::Succeeded,
        status: -404,
        attempts: 1,
        deferrals: 2,
        wait: Some(Duration::from_secs(3)),
        visits: 4,
        versions: 3,
        history: vec![PastVisit {
            at: second(5),
            status: 200,
            state: ContentState::Changed,
            size: Some(6),
        }],
        digests: Digests {
            payload: Some([1; 20]),
            stripped: Some(StrippedDigest {
                digest: [2; 20],
                stripper: 8,
            }),
        },
        validators: Validators {
            etag: Some("\"e\"".to_owned()),
            last_modified: Some("then".to_owned()),
        },
        archived: Some(WarcLocation {
            file: "a.warc.gz".to_owned(),
            offset: 9,
            record_id: "urn:uuid:1".to_owned(),
            date: second(10),
        }),
        extractor: Some(11),
        outlinks: 12,
        media_type: "image/png".to_owned(),
        attributes: vec![("name".to_owned(), "value".to_owned())],
        canonical: [3; 16],
    };
    check(
        &record,
        concat!(
            "01066f72672c612c024c45010d687474703a2f2f612e6f72672f08696d672f40737263010d687474703a2f2f61",
            "2e6f72672f010107d00f0001a01fac0201a7060102010300040301904e90030101060101010101010101010101",
            "0101010101010101010101020202020202020202020202020202020202020208010322652201047468656e0109",
            "612e776172632e677a090a75726e3a757569643a31a09c01010b0c09696d6167652f706e6701046e616d650576",
            "616c756503030303030303030303030303030303"
        ),
    );
}

#[test]
fn a_queue() {
    let record = QueueRecord {
        ready: 1,
        waiting: 2,
        first_due: 3,
        precedence: 4,
        turn: Some(Turn {
            wake: 5,
            arrival: 6,
        }),
        slots: vec![7],
        failures: 8,
        crawl_delay: Some(Duration::from_secs(9)),
        politeness: Some(Politeness::default()),
        finished: 10,
        succeeded: 11,
    };
    check(
        &record,
        "0101020604010a06010e0801090001000000000000144002000500ac0200901c000a0b",
    );
}

#[test]
fn the_counters() {
    let statistics = Statistics {
        discovered: 1,
        queued: 2,
        in_process: 0,
        succeeded: 3,
        failed: 4,
        disregarded: 5,
        visits: 6,
        revisits: Revisits {
            changed: 7,
            unchanged: 8,
            not_modified: 9,
            unknown: 10,
        },
        bytes: BytesByNovelty {
            novel: 11,
            unchanged: 12,
            unknown: 13,
        },
        retries: 14,
        deferrals: 15,
    };
    check(
        &Counters {
            statistics,
            arrivals: 16,
            openings: 17,
        },
        "01010200030405060708090a0b0c0d0e0f1011",
    );
}

#[test]
fn a_uri_in_process() {
    check(
        &Issued {
            record_key: "org,a,)/#http".to_owned(),
            queue: "org,a,".to_owned(),
            at: 1,
        },
        "010d6f72672c612c292f2368747470066f72672c612c02",
    );
}

#[test]
fn the_key_of_a_canonical_form() {
    let key: String = crate::keys::canonical("http://a.org/1")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(key, "7851f275e493c074d53aeb0d5e2bbce8");
}
