//! Figures on the neighbourhood of a document. They count changes of the documents with the same host, folder, media type or depth,
//! and of those with `Last-Modified`. Wait evaluators start from these figures while a document has no history of its own.
//!
//! The frontier keeps the sums with the site. They are written at the end of a visit and removed with the site. Documents that are
//! visited once add nothing. If several visits to a site are in process at once, the last write replaces the others, so the sums
//! may miss a few visits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use opilio_frontier::{ContentState, GroupFigures, UriRecord, Validators, VisitUpdate};
use opilio_sandbox::Neighbourhood;
use opilio_uri::Uri;

/// Maximum of folders and types of a site with their own sums. Each visit reads and writes the sums. Documents of further groups
/// count for the host alone.
const GROUPS_MAX: usize = 64;

/// Longest name of a folder or type.
const NAME_BYTES_MAX: usize = 100;

/// Greatest depth (links from a seed) with a group of its own. All deeper documents are one group.
const DEPTH_MAX: u32 = 9;

/// The traits of a document that others of its site may share.
#[derive(Clone, Copy, Debug)]
pub struct DocumentTraits<'a> {
    /// The document's URI.
    pub uri: &'a Uri,
    /// The document's media type.
    pub media_type: &'a str,
    /// Number of links from a seed to the document.
    pub depth: u32,
    /// `true` if its response had `Last-Modified`.
    pub is_dated: bool,
}

/// All sums of a site, by names such as `host`, `path-prefix /news/`, `media-type text/html`, `depth 2`, `last-modified yes`.
#[derive(Clone, Debug, Default)]
pub struct SiteFigures(pub BTreeMap<String, GroupFigures>);

/// The visits of a document before this one.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlierVisits {
    visits: u64,
    last: Option<Timestamp>,
}

impl SiteFigures {
    /// Returns the sums of the groups that a document belongs to, as plugins see them.
    pub fn neighbourhood(&self, document: &DocumentTraits) -> Vec<Neighbourhood> {
        let groups = groups(document);
        let known = groups
            .iter()
            .filter_map(|name| Some((name, self.0.get(name)?)));
        let neighbourhoods = known.map(|(name, sums)| Neighbourhood {
            shares: name.split(' ').next().unwrap_or_default().to_owned(),
            documents: sums.documents,
            visits: sums.visits,
            changes: sums.changes,
            observed: sums.observed_ms,
        });
        neighbourhoods.collect()
    }

    /// Returns the sums that a visit changes.
    pub fn after(
        &self,
        document: &DocumentTraits,
        earlier: EarlierVisits,
        visit: &VisitUpdate,
        now: Timestamp,
    ) -> BTreeMap<String, GroupFigures> {
        let is_compared = matches!(visit.state, ContentState::Changed | ContentState::Unchanged);
        let last = earlier.last.filter(|_| is_compared);
        let interval = last.map(|last| now.duration_since(last).as_millis());
        let interval_ms = interval.map(|interval| u64::try_from(interval).unwrap_or(0));
        let mut changed = BTreeMap::new();
        let is_full = self.0.keys().filter(|name| is_of_many(name)).count() >= GROUPS_MAX;
        for name in groups(document) {
            let known = self.0.get(&name);
            if known.is_none() && is_full && is_of_many(&name) {
                continue;
            }
            let mut sums = known.copied().unwrap_or_default();
            sums.documents += u64::from(earlier.visits == 0);
            if let Some(interval_ms) = interval_ms {
                sums.visits += 1;
                sums.changes += u64::from(visit.state == ContentState::Changed);
                sums.observed_ms = sums.observed_ms.saturating_add(interval_ms);
            }
            if known != Some(&sums) {
                changed.insert(name, sums);
            }
        }
        changed
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
    /// Returns the traits of a visited document. `update` is the finished visit; `None` if the visit is not over.
    pub fn of(
        uri: &'a Uri,
        record: &UriRecord,
        media_type: &'a str,
        update: Option<&VisitUpdate>,
    ) -> DocumentTraits<'a> {
        DocumentTraits {
            uri,
            media_type,
            depth: record.hop_path.link_hops(),
            is_dated: is_dated(&record.validators, update),
        }
    }
}

/// Returns `true` if the visit's response had `Last-Modified`. If that response had no validators, the last response with
/// validators decides.
fn is_dated(known: &Validators, update: Option<&VisitUpdate>) -> bool {
    let came = update.and_then(|update| update.validators.as_ref());
    came.unwrap_or(known).last_modified.is_some()
}

/// Returns the names of the groups that a document belongs to.
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

/// Returns `true` if a site may have any number of groups of this kind.
fn is_of_many(name: &str) -> bool {
    name.starts_with("path-prefix ") || name.starts_with("media-type ")
}

#[cfg(test)]
mod tests {
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
    fn a_document_is_in_the_groups_of_its_host_folder_type_depth_and_last_modified() {
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

    /// Returns the figures on a site after these visits of a document, each with the hours since the one before.
    fn figures(visits: &[(&str, u64, Option<i64>, ContentState)]) -> SiteFigures {
        let mut site = SiteFigures::default();
        for &(uri, earlier, hours, state) in visits {
            let now = Timestamp::from_second(1_700_000_000).unwrap();
            let earlier = EarlierVisits {
                visits: earlier,
                last: hours.map(|hours| now - jiff::SignedDuration::from_hours(hours)),
            };
            let visit = VisitUpdate {
                state,
                media_type: "text/html".to_owned(),
                ..VisitUpdate::default()
            };
            let uri = Uri::parse(uri).unwrap();
            let changed = site.after(&html(&uri), earlier, &visit, now);
            site.0.extend(changed);
        }
        site
    }

    #[test]
    fn visits_that_can_be_compared_add_up_by_group() {
        use ContentState::{Changed, New, Unchanged, Unknown};
        let site = figures(&[
            ("http://a.org/news/1", 0, None, New),
            ("http://a.org/news/1", 1, Some(24), Changed),
            ("http://a.org/news/1", 2, Some(16), Unchanged),
            ("http://a.org/news/1", 3, Some(99), Unknown),
            ("http://a.org/old/1", 0, None, New),
            ("http://a.org/old/1", 1, Some(100), Unchanged),
        ]);
        let uri = Uri::parse("http://a.org/news/2").unwrap();
        let around = site.neighbourhood(&html(&uri));
        let neighbourhoods: Vec<_> = around
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
        assert_eq!(neighbourhoods, expected);
        let image = DocumentTraits {
            media_type: "image/png",
            depth: 2,
            is_dated: true,
            ..html(&uri)
        };
        let other = site.neighbourhood(&image);
        let known: Vec<_> = other.iter().map(|one| &*one.shares).collect();
        assert_eq!(known, ["host", "path-prefix"]);
    }

    #[test]
    fn a_site_keeps_a_limited_number_of_folders_and_always_depth_and_dates() {
        let uris: Vec<_> = (0..100).map(|n| format!("http://a.org/{n}/")).collect();
        let visits: Vec<_> = uris
            .iter()
            .map(|uri| (&**uri, 0, None, ContentState::New))
            .collect();
        let site = figures(&visits);
        let of_many = site.0.keys().filter(|name| is_of_many(name)).count();
        assert_eq!(of_many, GROUPS_MAX);
        let uri = Uri::parse("http://a.org/99/").unwrap();
        let deeper = DocumentTraits {
            depth: 5,
            ..html(&uri)
        };
        let visit = VisitUpdate::default();
        let changes = site.after(
            &deeper,
            EarlierVisits::default(),
            &visit,
            Timestamp::UNIX_EPOCH,
        );
        let names: Vec<_> = changes.keys().collect();
        assert_eq!(
            names,
            [
                "depth 5",
                "host",
                "last-modified no",
                "media-type text/html"
            ]
        );
        let around = site.neighbourhood(&html(&uri));
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
    fn new_validators_decide_whether_a_document_is_dated() {
        let known = Validators {
            last_modified: Some("Thu, 01 Jan 2026 00:00:00 GMT".to_owned()),
            ..Validators::default()
        };
        assert!(is_dated(&known, None));
        assert!(
            is_dated(&known, Some(&VisitUpdate::default())),
            "a 304 does not change the answer"
        );
        let without = VisitUpdate {
            validators: Some(Validators::default()),
            ..VisitUpdate::default()
        };
        assert!(!is_dated(&known, Some(&without)));
    }
}
