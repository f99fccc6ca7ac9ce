//! A frontier for the tests of this folder, with URIs in given states.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{
    Candidate, ContentState, Digests, Frontier, FrontierConfig, KeptChange, KeptValue, Next,
    Outcome, Strategy, StrippedDigest, Success, Transfer, Validators, VisitUpdate, WarcLocation,
};
use opilio_uri::{HopPath, Uri};
use tempfile::TempDir;

/// A frontier whose clock advances a day with each fetch, so that politeness never delays it.
pub(super) struct Trial {
    pub(super) frontier: Frontier,
    pub(super) now: Timestamp,
    _folder: TempDir,
}

impl Trial {
    pub(super) fn new() -> Trial {
        let folder = tempfile::tempdir().unwrap();
        Trial {
            frontier: Frontier::open(&folder.path().join("frontier"), FrontierConfig::default())
                .unwrap(),
            now: "2026-11-20T12:00:00Z".parse().unwrap(),
            _folder: folder,
        }
    }

    /// Schedules a link in a queue of its own.
    pub(super) fn schedule(&mut self, uri: &str) {
        self.put(uri, Strategy::Snapshot, false);
    }

    fn put(&mut self, uri: &str, strategy: Strategy, force: bool) {
        let candidate = Candidate {
            via: Some("http://via.org/".to_owned()),
            context: "a/@href".to_owned(),
            source: Some("http://seed.org/".to_owned()),
            force,
            ..Candidate::new(
                uri.parse().unwrap(),
                HopPath::parse("LL").unwrap(),
                strategy,
            )
        };
        self.frontier.schedule(vec![candidate], self.now).unwrap();
    }

    /// Makes a successful visit.
    pub(super) fn fetch(&mut self, uri: &str, visit: VisitUpdate) {
        self.schedule(uri);
        self.finish(
            uri,
            Outcome::Succeeded(Box::new(Success {
                visit,
                transfer: Transfer {
                    duration: Duration::from_millis(1),
                    bytes: 2000,
                },
                ..Success::default()
            })),
        );
    }

    /// Makes a successful visit that is repeated after ten days.
    pub(super) fn fetch_again_and_again(&mut self, uri: &str, visit: VisitUpdate) {
        self.put(uri, Strategy::Revisit, false);
        self.finish(
            uri,
            Outcome::Succeeded(Box::new(Success {
                visit,
                wait: Some(Duration::from_hours(240)),
                transfer: Transfer {
                    duration: Duration::from_millis(1),
                    bytes: 2000,
                },
                ..Success::default()
            })),
        );
    }

    /// Makes a failing visit of a URI, which may be known already.
    pub(super) fn fail(&mut self, uri: &str, status: i32) {
        self.put(uri, Strategy::Snapshot, true);
        self.finish(
            uri,
            Outcome::Failed {
                status,
                transfer: None,
            },
        );
    }

    /// Finishes a URI, which must be the next that is ready.
    fn finish(&mut self, uri: &str, outcome: Outcome) {
        self.now = self.now.checked_add(Duration::from_hours(24)).unwrap();
        let Next::Issue(issue) = self.frontier.next(self.now).unwrap() else {
            panic!("{uri} is not ready");
        };
        assert_eq!(issue.uri, uri.parse::<Uri>().unwrap());
        self.frontier
            .finished(issue.ticket, outcome, self.now)
            .unwrap();
    }

    /// Returns all URIs that would be fetched, in their order.
    pub(super) fn issued(&mut self) -> Vec<String> {
        let mut uris = Vec::new();
        loop {
            self.now = self.now.checked_add(Duration::from_hours(24)).unwrap();
            match self.frontier.next(self.now).unwrap() {
                Next::Issue(issue) => {
                    uris.push(issue.uri.as_str().to_owned());
                    let outcome = Outcome::Failed {
                        status: -2,
                        transfer: None,
                    };
                    self.frontier
                        .finished(issue.ticket, outcome, self.now)
                        .unwrap();
                }
                _ => return uris,
            }
        }
    }
}

/// Returns a visit that found something new.
pub(super) fn archived(status: i32, media_type: &str) -> VisitUpdate {
    VisitUpdate {
        status,
        state: ContentState::New,
        size: Some(1234),
        media_type: media_type.to_owned(),
        digests: Some(Digests {
            payload: Some([1; 20]),
            stripped: Some(StrippedDigest {
                digest: [2; 20],
                stripper: 0xabc,
            }),
        }),
        validators: Some(Validators {
            etag: Some("\"e\"".to_owned()),
            last_modified: None,
        }),
        archived: Some(WarcLocation {
            file: "a.warc.gz".to_owned(),
            offset: 9,
            record_id: "urn:uuid:1".to_owned(),
            date: "2026-11-20T12:34:56.789Z".parse().unwrap(),
        }),
        extractor: Some(0xdef),
        outlinks: Some(3),
        fingerprint: None,
        duplicate: false,
        kept: vec![KeptChange {
            plugin: "plugin".to_owned(),
            name: "name".to_owned(),
            value: Some(KeptValue {
                version: 1,
                value: "value".to_owned(),
            }),
        }],
        oscillation: None,
        redirect_target: None,
    }
}
