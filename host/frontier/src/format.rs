//! Tests of format 4, byte for byte as on the disk. A store outlives the code that wrote it. If one of these tests fails, the
//! shape of a stored value has changed. It then needs either a new `FORMAT_VERSION`, or a second `ENCODING` that `decode` tells
//! from the first. Once a format has been released, a new one needs a migration of its stores.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::HopPath;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    BytesByContentState, ContentState, Digests, Directive, Fingerprint, GroupFigures, KeptChange,
    KeptValue, KeptValues, LastOutcome, LinkAttribute, Oscillation, Overdue, PastVisit,
    PlannedReconsideration, Politeness, PrecedencePolicy, QueueSettings, Quota, Rejection,
    Revisits, Signal, SignalSource, Statistics, Strategy, StrippedDigest, Tally, UriRecord,
    UriState, Validators, WaitDirection, WarcLocation,
    counters::Counters,
    in_process::Issued,
    keys::{self, OrderKey, Rank},
    queue::QueueRecord,
    store::{FrontierError, decode, encode},
};

#[track_caller]
fn check<T: Serialize + DeserializeOwned + std::fmt::Debug>(value: &T, hex: &str) {
    let stored = encode(value).unwrap();
    assert_eq!(
        self::hex(&stored),
        hex,
        "the stored shape of {value:?} has changed"
    );
    let read: T = decode("a value", b"key", &stored).unwrap();
    assert_eq!(format!("{read:?}"), format!("{value:?}"));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_record_of_a_uri() {
    check(
        &record(),
        "01066f72672c612c024c45010d687474703a2f2f612e6f72672f08696d672f40737263010d687474703a2f2f612e6f72672f01010708d00f0001a01fac0201a7060102010300040301904e900301010601010101010101010101010101010101010101010101020202020202020202020202020202020202020208010322652201047468656e0109612e776172632e677a090a75726e3a757569643a31a09c01010b0c09696d6167652f706e6701020405100106706c7567696e01046e616d65110576616c7565010372656c037567631201f0a80200c0b8020190c802e0d702010017010d687474703a2f2f622e6f72672f0d0e036661720303030303030303030303030303030301",
    );
}

/// The engine's state with a URI is absent from most records. There it costs a byte for each field.
#[test]
fn a_record_without_engine_state() {
    let record = UriRecord {
        link_attributes: Vec::new(),
        failures: 0,
        signals: Vec::new(),
        reconsideration: None,
        oscillation: None,
        redirect_target: None,
        ..record()
    };
    check(
        &record,
        "01066f72672c612c024c45010d687474703a2f2f612e6f72672f08696d672f40737263010d687474703a2f2f612e6f72672f01010708d00f0001a01fac0201a7060102010300040301904e900301010601010101010101010101010101010101010101010101020202020202020202020202020202020202020208010322652201047468656e0109612e776172632e677a090a75726e3a757569643a31a09c01010b0c09696d6167652f706e6701020405100106706c7567696e01046e616d65110576616c75650000000000000d0e036661720303030303030303030303030303030301",
    );
}

#[test]
fn a_cut_record_is_damaged() {
    let stored = encode(&record()).unwrap();
    for end in 0..stored.len() {
        let read: Result<UriRecord, _> = decode("a record", b"key", &stored[..end]);
        assert!(
            matches!(read, Err(FrontierError::Damaged { .. })),
            "{end} bytes"
        );
    }
}

#[test]
fn unknown_sources_and_directions_are_damage() {
    let signal = Signal {
        at: second(1),
        source: SignalSource::Feed,
        modified: second(0),
    };
    check(&signal, "01d00f0100");
    let oscillation = Oscillation {
        last: WaitDirection::Down,
        in_a_row: 3,
    };
    check(&oscillation, "010103");
    damaged::<Signal>(&[1, 0xd0, 0x0f, 2, 0]);
    damaged::<Oscillation>(&[1, 2, 3]);
    // A number that does not end, and one that is too large.
    damaged::<Oscillation>(&[1, 0, 0xff]);
    damaged::<Oscillation>(&[1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
}

#[track_caller]
fn damaged<T: DeserializeOwned + std::fmt::Debug>(stored: &[u8]) {
    let read = decode::<T>("a value", b"key", stored);
    assert!(
        matches!(read, Err(FrontierError::Damaged { .. })),
        "{read:?}"
    );
}

#[test]
fn figures_on_a_group_of_documents() {
    let figures = GroupFigures {
        documents: 1,
        visits: 2,
        changes: 3,
        observed_ms: 300,
    };
    check(&figures, "01010203ac02");
}

/// A record with all its fields.
fn record() -> UriRecord {
    let mut kept = KeptValues::default();
    kept.apply(KeptChange {
        plugin: "plugin".to_owned(),
        name: "name".to_owned(),
        value: Some(KeptValue {
            version: 17,
            value: "value".to_owned(),
        }),
    });
    UriRecord {
        uri: String::new(),
        queue: "org,a,".to_owned(),
        hop_path: HopPath::parse("LE").unwrap(),
        via: Some("http://a.org/".to_owned()),
        context: "img/@src".to_owned(),
        source: Some("http://a.org/".to_owned()),
        seed: true,
        strategy: Strategy::Revisit,
        precedence: 7,
        cost: 8,
        discovered: second(1),
        state: UriState::Queued {
            directive: Directive::Medium,
            due: second(2),
            arrival: 300,
        },
        last_outcome: LastOutcome::Succeeded,
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
            digest: None,
            wait: None,
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
        fingerprint: Some(Fingerprint {
            bytes: vec![4, 5],
            evaluator: 16,
        }),
        kept,
        link_attributes: vec![LinkAttribute {
            name: "rel".to_owned(),
            value: "ugc".to_owned(),
        }],
        failures: 18,
        signals: vec![Signal {
            at: second(19),
            source: SignalSource::Sitemap,
            modified: second(20),
        }],
        reconsideration: Some(PlannedReconsideration {
            at: second(21),
            visit: second(22),
        }),
        oscillation: Some(Oscillation {
            last: WaitDirection::Up,
            in_a_row: 23,
        }),
        redirect_target: Some("http://b.org/".to_owned()),
        scope: 13,
        referrers: 14,
        reason: "far".to_owned(),
        canonical: [3; 16],
        owns_canonical: true,
    }
}

/// The first case is in the form from before digests and waits.
#[test]
fn past_visits() {
    let bare = PastVisit {
        at: second(5),
        status: 200,
        state: ContentState::Unknown,
        size: None,
        digest: None,
        wait: None,
    };
    check(&bare, "01904e90030300");
    let changed = PastVisit {
        state: ContentState::Changed,
        size: Some(6),
        digest: Some([1, 2, 3, 4, 5]),
        ..bare
    };
    check(&changed, "01904e90030501060102030405");
    let waited = PastVisit {
        wait: Some(Duration::from_secs(300)),
        ..changed
    };
    check(&waited, "01904e90030d01060102030405ac02");
    let unchanged = PastVisit {
        state: ContentState::Unchanged,
        digest: None,
        ..waited
    };
    check(&unchanged, "01904e90030a0106ac02");
    check(
        &vec![waited, bare],
        "0102904e90030d01060102030405ac02904e90030300",
    );
}

#[test]
fn places_and_strategies() {
    for (place, hex) in [
        (UriState::Done, "0101"),
        (UriState::Deleted, "0102"),
        (UriState::Faded, "0103"),
    ] {
        check(&place, hex);
    }
    for (strategy, hex) in [
        (Strategy::Snapshot, "0100"),
        (Strategy::Revisit, "0101"),
        (Strategy::Fixed, "0102"),
    ] {
        check(&strategy, hex);
    }
}

#[test]
fn a_queue() {
    let record = QueueRecord {
        ready: vec![(1, 2), (3, 4)],
        waiting: 5,
        first_due: 6,
        precedence: 7,
        order_key: Some(OrderKey {
            is_inactive: true,
            wake: 8,
            arrival: 9,
        }),
        slots: vec![10, 11],
        paid_until: 12,
        failures: 13,
        crawl_delay: Some(Duration::from_secs(14)),
        settings: None,
        settings_hash: 15,
        own_precedence: Some(16),
        address_group: Some("192.0.2.1".to_owned()),
        finished: 17,
        tally: tally(),
        spent: 18,
        balance: -19,
        is_retired: true,
        is_frozen: false,
        ranked_precedence: Some(20),
        failed: 21,
        failing: vec![1, 300],
        last_failure: -2,
    };
    check(
        &record,
        "010201020304050c0701011009021416180d010e00000f011001093139322e302e322e31110102039003050600122501000114150201ac0203",
    );
    let mut early = encode(&record).unwrap();
    early.pop();
    let read: QueueRecord = decode("a queue", b"q", &early).unwrap();
    assert_eq!((read.last_failure, &read.failing), (0, &record.failing));
}

#[test]
fn the_settings_of_a_queue() {
    let settings = QueueSettings {
        politeness: Politeness {
            delay_factor: 1.5,
            min_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(2),
            crawl_delay_max: Duration::from_secs(3),
            retry_after_max: Duration::from_secs(4),
        },
        max_retries: 5,
        retry_delay: Duration::from_secs(6),
        retry_delay_max: Duration::from_secs(7),
        valence: 8,
        bandwidth: Some(9),
        precedence: 10,
        precedence_policy: PrecedencePolicy::SuccessCounts(vec![11, 12]),
        budget: Some(13),
        group: Some("g".to_owned()),
        quota: Quota {
            fetched: Some(14),
            succeeded: Some(15),
            novel: Some(16),
            bytes: Some(17),
            novel_bytes: Some(18),
            run_time: Some(Duration::from_secs(19)),
        },
        host_quota: Quota::default(),
        domain_quota: Quota::default(),
    };
    check(
        &settings,
        "01000000000000f83f010002000300040005060007000801090a02020b0c010d010167010e010f011001110112011300000000000000000000000000",
    );
    check(&PrecedencePolicy::Base, "0100");
    check(&PrecedencePolicy::HighestUri, "0101");
}

#[test]
fn a_tally() {
    check(&tally(), "010102039003050600");
}

fn tally() -> Tally {
    Tally {
        fetched: 1,
        succeeded: 2,
        novel: 3,
        bytes: 400,
        novel_bytes: 5,
        run_time: Duration::from_secs(6),
    }
}

#[test]
fn a_server_group() {
    check(&vec![1i64, -1], "01020201");
}

#[test]
fn a_refusal() {
    let rejection = Rejection {
        reason: "far".to_owned(),
        via: "http://a.org/".to_owned(),
        at: second(1),
    };
    check(&rejection, "01036661720d687474703a2f2f612e6f72672fd00f");
}

#[test]
fn the_counters() {
    let statistics = Statistics {
        prerequisites: 39,
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
        bytes: BytesByContentState {
            novel: 11,
            unchanged: 12,
            unknown: 13,
        },
        retries: 14,
        deferrals: 15,
        overdue: Overdue {
            counts: [16, 17, 18, 19, 20, 21, 22, 23, 24],
        },
        refused: 25,
        faded: 26,
        run_time: Duration::from_secs(27),
        tally: Tally {
            fetched: 33,
            succeeded: 34,
            novel: 35,
            bytes: 36,
            novel_bytes: 37,
            run_time: Duration::from_secs(38),
        },
    };
    check(
        &Counters {
            statistics,
            arrivals: 28,
            openings: 29,
            paid_until: 30,
            refusals: 31,
            withdrawn: 32,
        },
        "0127010200030405060708090a0b0c0d0e0f101112131415161718191a1b00212223242526001c1d3c1f20",
    );
}

#[test]
fn counters_of_early_stores_have_no_prerequisites() {
    let with = Counters {
        withdrawn: 32,
        ..Counters::default()
    };
    let mut stored = encode(&with).unwrap();
    assert_eq!(stored.remove(1), 0);
    let read = Counters::stored(&stored).unwrap();
    assert_eq!(format!("{read:?}"), format!("{with:?}"));
    for damaged in [&stored[..stored.len() - 1], &[]] {
        assert!(Counters::stored(damaged).is_err());
    }
}

#[test]
fn a_uri_in_process() {
    check(
        &Issued {
            record_key: "org,a,)/#http".to_owned(),
            queue: "org,a,".to_owned(),
            slot: 1,
            group: Some(("g".to_owned(), 2)),
            at: 3,
        },
        "010d6f72672c612c292f2368747470066f72672c612c010101670206",
    );
}

#[test]
fn keys_of_the_orders() {
    let rank = Rank {
        directive: Directive::High,
        precedence: 2,
        due: 3,
        arrival: 4,
    };
    let order_key = OrderKey {
        is_inactive: true,
        wake: 5,
        arrival: 6,
    };
    for (key, expected) in [
        (
            keys::ready("q", rank),
            "7100010280000000000000030000000000000004",
        ),
        (
            keys::waiting("q", 3, 4),
            "710080000000000000030000000000000004",
        ),
        (keys::waiting_value(Directive::Normal, 2, b"k"), "03026b"),
        (
            keys::queue_order(7, order_key, "q"),
            "07018000000000000005000000000000000671",
        ),
        (
            keys::tally(crate::TallyKind::Domain, "a.org"),
            "646f6d61696e00612e6f7267",
        ),
        (
            keys::embed(&[9; 16], "k"),
            "090909090909090909090909090909096b",
        ),
        (
            keys::site_value("org,a,#8080)/1#http", "p", "n"),
            "6f72672c612c23383038302970006e",
        ),
        (
            keys::site_figures("org,a,#8080)/1#http", "depth 1"),
            "6f72672c612c23383038302964657074682031",
        ),
        (
            keys::to_canonical_value(1, "abxyc", "abc"),
            "00000001000200017879",
        ),
    ] {
        assert_eq!(hex(&key), expected);
    }
}

#[test]
fn the_key_of_a_canonical_form() {
    assert_eq!(
        hex(&keys::canonical("http://a.org/1")),
        "7851f275e493c074d53aeb0d5e2bbce8"
    );
}
