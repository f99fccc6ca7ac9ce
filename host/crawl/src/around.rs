//! What is known of the documents around one: how often those of its host, of the folder it stands in and of its media type
//! have changed. For wait evaluators, which begin with what is usual there while they know nothing of the document itself.
//!
//! The sums are kept with the site, among what plugins keep for it, under a name that none can have; so they are written
//! with the visit's end and go with the site. Documents that are visited once leave no mark. Where several visits to a site are
//! under way at once, the last to be completed stands: the sums may miss a few.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{ContentState, KeptChange, KeptValue, KeptValues, UriRecord, Visit};
use opilio_sandbox::Neighbourhood;
use opilio_uri::Uri;

/// No plugin is called so: their names are words joined by hyphens.
const OWNER: &str = ":around";

/// Of the value's form.
const VERSION: u32 = 1;

/// Most folders and types of a site that are told apart; each visit reads and writes them. What is beyond counts for the
/// host alone.
const GROUPS_MAX: usize = 64;

/// Longest name of a folder or type.
const NAME_BYTES_MAX: usize = 100;

/// All sums of a site, by their names: `host`, `path-prefix /news/`, `media-type text/html`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around(BTreeMap<String, Sums>);

/// The visits of a document before this one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Earlier {
    visits: u64,
    last: Option<Timestamp>,
}

/// What the visits of a group of documents came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    documents: u64,
    /// Visits that could be compared with one before.
    visits: u64,
    changes: u64,
    /// Time between each of these visits and the one before it.
    observed: Duration,
}

impl Around {
    pub(crate) fn of(site: &KeptValues) -> Around {
        let sums = site
            .iter()
            .filter(|(owner, _, kept)| *owner == OWNER && kept.version == VERSION)
            .filter_map(|(_, name, kept)| Some((name.to_owned(), Sums::read(&kept.value)?)));
        Around(sums.collect())
    }

    /// What plugins are told: the sums of the groups that a document is in.
    pub(crate) fn neighbourhood(&self, uri: &Uri, media_type: &str) -> Vec<Neighbourhood> {
        let groups = groups(uri, media_type);
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

    /// What a visit adds: to be kept for the site with its end.
    pub(crate) fn after(
        &self,
        uri: &Uri,
        earlier: Earlier,
        visit: &Visit,
        now: Timestamp,
    ) -> Vec<KeptChange> {
        let is_compared = matches!(visit.state, ContentState::Changed | ContentState::Unchanged);
        let last = earlier.last.filter(|_| is_compared);
        let interval = last.map(|last| Duration::try_from(now - last).unwrap_or_default());
        let mut changes = Vec::new();
        for name in groups(uri, &visit.media_type) {
            let known = self.0.get(&name);
            if known.is_none() && self.0.len() >= GROUPS_MAX && name != "host" {
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

impl Earlier {
    pub(crate) fn of(record: &UriRecord) -> Earlier {
        Earlier {
            visits: record.visits,
            last: record.history.first().map(|past| past.at),
        }
    }
}

/// The groups that a document is in: its site, the first folder of its path, its type.
fn groups(uri: &Uri, media_type: &str) -> Vec<String> {
    let path = uri.path();
    let folder = match path.get(1..).and_then(|rest| rest.find('/')) {
        Some(at) => &path[..at + 2],
        None => "/",
    };
    let mut groups = vec!["host".to_owned()];
    for (shares, value) in [("path-prefix", folder), ("media-type", media_type)] {
        if !value.is_empty() && value.len() <= NAME_BYTES_MAX && !value.contains(['\0', ' ']) {
            groups.push(format!("{shares} {value}"));
        }
    }
    groups
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

    #[test]
    fn a_document_is_in_its_host_its_first_folder_and_its_type() {
        let of = |uri: &str| groups(&Uri::parse(uri).unwrap(), "text/html");
        let folder = |uri: &str| of(uri)[1].clone();
        assert_eq!(
            of("http://a.org/news/2026/a.html?b/c"),
            ["host", "path-prefix /news/", "media-type text/html"]
        );
        assert_eq!(folder("http://a.org/"), "path-prefix /");
        assert_eq!(folder("http://a.org/news"), "path-prefix /");
        assert_eq!(folder("http://a.org/news/"), "path-prefix /news/");
        let long = format!("http://a.org/{}/", "x".repeat(200));
        assert_eq!(of(&long), ["host", "media-type text/html"]);
    }

    /// What a site keeps after these visits of a document, each with the hours since the one before.
    fn kept(visits: &[(&str, u64, Option<i64>, ContentState)]) -> KeptValues {
        let mut site = KeptValues::default();
        for &(uri, earlier, hours, state) in visits {
            let now = Timestamp::from_second(1_700_000_000).unwrap();
            let earlier = Earlier {
                visits: earlier,
                last: hours.map(|hours| now - jiff::SignedDuration::from_hours(hours)),
            };
            let visit = Visit {
                state,
                media_type: "text/html".to_owned(),
                ..Visit::default()
            };
            let uri = Uri::parse(uri).unwrap();
            for change in Around::of(&site).after(&uri, earlier, &visit, now) {
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
        let around = Around::of(&site).neighbourhood(&uri, "text/html");
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
        ];
        assert_eq!(told, expected);
        let other = Around::of(&site).neighbourhood(&uri, "image/png");
        assert_eq!(other.len(), 2, "nothing is known of images: {other:?}");
    }

    #[test]
    fn a_site_of_many_folders_keeps_some() {
        let uris: Vec<_> = (0..100).map(|n| format!("http://a.org/{n}/")).collect();
        let visits: Vec<_> = uris
            .iter()
            .map(|uri| (&**uri, 0, None, ContentState::New))
            .collect();
        let site = kept(&visits);
        assert_eq!(site.iter().count(), GROUPS_MAX);
        let uri = Uri::parse("http://a.org/99/").unwrap();
        let around = Around::of(&site).neighbourhood(&uri, "text/html");
        assert_eq!((around[0].documents, around[1].documents), (100, 100));
        assert_eq!(
            (&*around[0].shares, &*around[1].shares),
            ("host", "media-type")
        );
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
