//! Figures on the documents around one. They count changes of the documents of its host, its folder, its media type, its depth,
//! and of those with `Last-Modified`. Wait evaluators start from these figures while they know nothing of the document itself.
//!
//! The sums are among the kept values of the site, under a name that no plugin can have. They are written at the end of a visit
//! and removed with the site. Documents that are visited once add nothing. If several visits to a site are in process at once,
//! the last to finish wins: the sums may miss a few.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{
    ContentState, KeptChange, KeptValue, KeptValues, UriRecord, Validators, Visit,
};
use opilio_sandbox::Neighbourhood;
use opilio_uri::Uri;

/// Owner of the values. No plugin has this name: plugin names are words joined by hyphens.
const OWNER: &str = ":around";

/// Version of the values' format.
const VERSION: u32 = 1;

/// Most folders and types of a site that have their own sums. Each visit reads and writes them. Documents of further groups count
/// for the host alone.
const GROUPS_MAX: usize = 64;

/// Longest name of a folder or type.
const NAME_BYTES_MAX: usize = 100;

/// Greatest number of links from a seed that has a group of its own. All deeper documents are one group.
const DEPTH_MAX: u32 = 9;

/// The traits of a document that others of its site may share.
#[derive(Clone, Copy, Debug)]
pub struct DocumentTraits<'a> {
    /// Its URI.
    pub uri: &'a Uri,
    /// Its media type.
    pub media_type: &'a str,
    /// Links from a seed to it.
    pub depth: u32,
    /// Whether it came with `Last-Modified`.
    pub is_dated: bool,
}

/// All sums of a site, by their names: `host`, `path-prefix /news/`, `media-type text/html`, `depth 2`, `last-modified yes`.
#[derive(Clone, Debug, Default)]
pub struct SiteFigures(BTreeMap<String, Sums>);

/// The visits of a document before this one.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlierVisits {
    visits: u64,
    last: Option<Timestamp>,
}

/// Sums over the visits of a group of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    documents: u64,
    /// Visits that could be compared with a previous one.
    visits: u64,
    changes: u64,
    /// Time between each of these visits and the one before it.
    observed: Duration,
}

impl SiteFigures {
    /// Reads the figures from the values kept for a site.
    pub fn of(site: &KeptValues) -> SiteFigures {
        let sums = site
            .iter()
            .filter(|(owner, _, kept)| *owner == OWNER && kept.version == VERSION)
            .filter_map(|(_, name, kept)| Some((name.to_owned(), Sums::read(&kept.value)?)));
        SiteFigures(sums.collect())
    }

    /// Returns the sums of the groups of a document, as plugins see them.
    pub fn neighbourhood(&self, document: &DocumentTraits) -> Vec<Neighbourhood> {
        let groups = groups(document);
        let known = groups
            .iter()
            .filter_map(|name| Some((name, self.0.get(name)?)));
        let told = known.map(|(name, sums)| Neighbourhood {
            shares: name.split(' ').next().unwrap_or_default().to_owned(),
            documents: sums.documents,
            visits: sums.visits,
            changes: sums.changes,
            observed: u64::try_from(sums.observed.as_millis()).unwrap_or(u64::MAX),
        });
        told.collect()
    }

    /// Returns the values to keep for the site after a visit.
    pub fn after(
        &self,
        document: &DocumentTraits,
        earlier: EarlierVisits,
        visit: &Visit,
        now: Timestamp,
    ) -> Vec<KeptChange> {
        let is_compared = matches!(visit.state, ContentState::Changed | ContentState::Unchanged);
        let last = earlier.last.filter(|_| is_compared);
        let interval = last.map(|last| Duration::try_from(now - last).unwrap_or_default());
        let mut changes = Vec::new();
        let is_full = self.0.keys().filter(|name| is_of_many(name)).count() >= GROUPS_MAX;
        for name in groups(document) {
            let known = self.0.get(&name);
            if known.is_none() && is_full && is_of_many(&name) {
                continue;
            }
            let mut sums = known.copied().unwrap_or_default();
            sums.documents += u64::from(earlier.visits == 0);
            if let Some(interval) = interval {
                sums.visits += 1;
                sums.changes += u64::from(visit.state == ContentState::Changed);
                sums.observed = sums.observed.saturating_add(interval);
            }
            if known == Some(&sums) {
                continue;
            }
            changes.push(KeptChange {
                plugin: OWNER.to_owned(),
                name,
                value: Some(KeptValue {
                    version: VERSION,
                    value: sums.written(),
                }),
            });
        }
        changes
    }
}

impl EarlierVisits {
    /// Returns the number and time of the visits in a record.
    pub fn of(record: &UriRecord) -> EarlierVisits {
        EarlierVisits {
            visits: record.visits,
            last: record.history.first().map(|past| past.at),
        }
    }
}

impl<'a> DocumentTraits<'a> {
    /// Returns the traits of a visited document. `turn` is the finished visit; none if the visit is not over.
    pub fn of(
        uri: &'a Uri,
        record: &UriRecord,
        media_type: &'a str,
        turn: Option<&Visit>,
    ) -> DocumentTraits<'a> {
        DocumentTraits {
            uri,
            media_type,
            depth: record.hop_path.link_hops(),
            is_dated: is_dated(&record.validators, turn),
        }
    }
}

/// Whether `Last-Modified` came with the visit's answer, or else with the last answer that had validators.
fn is_dated(known: &Validators, turn: Option<&Visit>) -> bool {
    let came = turn.and_then(|turn| turn.validators.as_ref());
    came.unwrap_or(known).last_modified.is_some()
}

/// The groups that a document is in.
fn groups(document: &DocumentTraits) -> Vec<String> {
    let path = document.uri.path();
    let folder = match path.get(1..).and_then(|rest| rest.find('/')) {
        Some(at) => &path[..at + 2],
        None => "/",
    };
    let mut groups = vec!["host".to_owned()];
    for (shares, value) in [("path-prefix", folder), ("media-type", document.media_type)] {
        if !value.is_empty() && value.len() <= NAME_BYTES_MAX && !value.contains(['\0', ' ']) {
            groups.push(format!("{shares} {value}"));
        }
    }
    groups.push(format!("depth {}", document.depth.min(DEPTH_MAX)));
    let is_dated = if document.is_dated { "yes" } else { "no" };
    groups.push(format!("last-modified {is_dated}"));
    groups
}

/// Whether a site may have any number of groups of this kind.
fn is_of_many(name: &str) -> bool {
    name.starts_with("path-prefix ") || name.starts_with("media-type ")
}

impl Sums {
    fn written(&self) -> String {
        format!(
            "{} {} {} {}",
            self.documents,
            self.visits,
            self.changes,
            self.observed.as_millis()
        )
    }

    fn read(text: &str) -> Option<Sums> {
        let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        Some(Sums {
            documents: next()?,
            visits: next()?,
            changes: next()?,
            observed: Duration::from_millis(next()?),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn html(uri: &Uri) -> DocumentTraits<'_> {
        DocumentTraits {
            uri,
            media_type: "text/html",
            depth: 1,
            is_dated: false,
        }
    }

    #[test]
    fn a_document_is_in_its_host_its_first_folder_its_type_its_depth_and_with_those_that_say_when()
    {
        let of = |uri: &str| groups(&html(&Uri::parse(uri).unwrap()));
        let folder = |uri: &str| of(uri)[1].clone();
        assert_eq!(
            of("http://a.org/news/2026/a.html?b/c"),
            [
                "host",
                "path-prefix /news/",
                "media-type text/html",
                "depth 1",
                "last-modified no"
            ]
        );
        assert_eq!(folder("http://a.org/"), "path-prefix /");
        assert_eq!(folder("http://a.org/news"), "path-prefix /");
        assert_eq!(folder("http://a.org/news/"), "path-prefix /news/");
        let long = format!("http://a.org/{}/", "x".repeat(200));
        assert_eq!(of(&long)[1], "media-type text/html");
        let uri = Uri::parse("http://a.org/").unwrap();
        let deep = groups(&DocumentTraits {
            depth: 40,
            is_dated: true,
            ..html(&uri)
        });
        assert_eq!(deep[3..], ["depth 9", "last-modified yes"]);
    }

    /// Returns the values that a site keeps after these visits of a document, each with the hours since the one before.
    fn kept(visits: &[(&str, u64, Option<i64>, ContentState)]) -> KeptValues {
        let mut site = KeptValues::default();
        for &(uri, earlier, hours, state) in visits {
            let now = Timestamp::from_second(1_700_000_000).unwrap();
            let earlier = EarlierVisits {
                visits: earlier,
                last: hours.map(|hours| now - jiff::SignedDuration::from_hours(hours)),
            };
            let visit = Visit {
                state,
                media_type: "text/html".to_owned(),
                ..Visit::default()
            };
            let uri = Uri::parse(uri).unwrap();
            for change in SiteFigures::of(&site).after(&html(&uri), earlier, &visit, now) {
                site.apply(change);
            }
        }
        site
    }

    #[test]
    fn visits_that_can_be_compared_add_up_by_group() {
        use ContentState::{Changed, New, Unchanged, Unknown};
        let site = kept(&[
            ("http://a.org/news/1", 0, None, New),
            ("http://a.org/news/1", 1, Some(24), Changed),
            ("http://a.org/news/1", 2, Some(16), Unchanged),
            ("http://a.org/news/1", 3, Some(99), Unknown),
            ("http://a.org/old/1", 0, None, New),
            ("http://a.org/old/1", 1, Some(100), Unchanged),
        ]);
        let uri = Uri::parse("http://a.org/news/2").unwrap();
        let around = SiteFigures::of(&site).neighbourhood(&html(&uri));
        let told: Vec<_> = around
            .iter()
            .map(|one| {
                let hours = one.observed / 3_600_000;
                (&*one.shares, one.documents, one.visits, one.changes, hours)
            })
            .collect();
        let expected = [
            ("host", 2, 3, 1, 140),
            ("path-prefix", 1, 2, 1, 40),
            ("media-type", 2, 3, 1, 140),
            ("depth", 2, 3, 1, 140),
            ("last-modified", 2, 3, 1, 140),
        ];
        assert_eq!(told, expected);
        let image = DocumentTraits {
            media_type: "image/png",
            depth: 2,
            is_dated: true,
            ..html(&uri)
        };
        let other = SiteFigures::of(&site).neighbourhood(&image);
        let known: Vec<_> = other.iter().map(|one| &*one.shares).collect();
        assert_eq!(known, ["host", "path-prefix"]);
    }

    #[test]
    fn a_site_of_many_folders_keeps_some_and_always_depth_and_dates() {
        let uris: Vec<_> = (0..100).map(|n| format!("http://a.org/{n}/")).collect();
        let visits: Vec<_> = uris
            .iter()
            .map(|uri| (&**uri, 0, None, ContentState::New))
            .collect();
        let site = kept(&visits);
        let of_many = site.iter().filter(|(_, name, _)| is_of_many(name)).count();
        assert_eq!(of_many, GROUPS_MAX);
        let uri = Uri::parse("http://a.org/99/").unwrap();
        let deeper = DocumentTraits {
            depth: 5,
            ..html(&uri)
        };
        let visit = Visit::default();
        let changes = SiteFigures::of(&site).after(
            &deeper,
            EarlierVisits::default(),
            &visit,
            Timestamp::UNIX_EPOCH,
        );
        let names: Vec<_> = changes.iter().map(|change| &*change.name).collect();
        assert_eq!(
            names,
            [
                "host",
                "media-type text/html",
                "depth 5",
                "last-modified no"
            ]
        );
        let around = SiteFigures::of(&site).neighbourhood(&html(&uri));
        let known: Vec<_> = around
            .iter()
            .map(|one| (&*one.shares, one.documents))
            .collect();
        assert_eq!(
            known,
            [
                ("host", 100),
                ("media-type", 100),
                ("depth", 100),
                ("last-modified", 100)
            ]
        );
    }

    #[test]
    fn a_visit_that_brings_validators_says_whether_a_document_is_dated() {
        let known = Validators {
            last_modified: Some("Thu, 01 Jan 2026 00:00:00 GMT".to_owned()),
            ..Validators::default()
        };
        assert!(is_dated(&known, None));
        assert!(
            is_dated(&known, Some(&Visit::default())),
            "a 304 says nothing new"
        );
        let without = Visit {
            validators: Some(Validators::default()),
            ..Visit::default()
        };
        assert!(!is_dated(&known, Some(&without)));
    }

    #[test]
    fn sums_are_read_as_they_were_written() {
        let sums = Sums {
            documents: 1,
            visits: 2,
            changes: 1,
            observed: Duration::from_millis(86_400_000),
        };
        assert_eq!(Sums::read(&sums.written()), Some(sums));
        assert_eq!(Sums::read("1 2 x 4"), None);
        assert_eq!(Sums::read(""), None);
    }
}
