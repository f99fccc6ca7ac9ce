//! `unchanged-headers`: predicts from the headers of a response whether its body has changed. If a server sends the same
//! `Last-Modified`, `ETag` or both as for the last archived version, the filter predicts no change. It skips the body if
//! earlier predictions for the site were right.
//!
//! A Danish study measured four ways to predict change from the two headers. Sigurðsson 2005 (section 5.4, "trust level" in
//! chapter 8) proposes to compare predictions with digests, and to check a smaller sample of them the more were right. The
//! filter does both.
//!
//! At the stage mid-fetch, the filter predicts, and lets the body pass if the prediction is to be checked. At the stage
//! archive, where the content state is known, it makes the same prediction again and compares. So it must be in both stacks.
//! Only predictions of no change are counted in a site's record, because many servers send a new date with every response.

use opilio_plugin::prelude::*;

use crate::experience;

/// Name of the record that is kept with the site.
const TRUST: &str = "trust";

/// Version of the record's format.
const TRUST_VERSION: u32 = 1;

/// Predicts from headers whether bodies have changed, and checks a part of the predictions.
pub struct UnchangedHeaders {
    settings: Settings,
}

/// Settings of `unchanged-headers`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Headers that must show a change for the body to be fetched: `date` (Last-Modified), `etag`, `both`, or `either`. If a
    /// server sends none of the relevant headers, the body is fetched.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub scheme: Scheme,
    /// Number of right predictions in a row before a site is trusted. Until then every body is fetched. With 0 a site is
    /// trusted at once.
    #[schemars(range(max = 1_000_000), extend("x-opilio-overridable" = true))]
    pub trust_after: u32,
    /// Share of a trusted site's predictions that are checked, between 0 and 1. At first the share is larger: `trust-after`
    /// divided by the number of right predictions in a row.
    #[schemars(range(min = 0, max = 1), extend("x-opilio-overridable" = true))]
    pub samples: f64,
}

/// Headers that must show a change: the four schemes of the Danish study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Fetches the body if the date has changed.
    Date,
    /// Fetches the body if the entity tag has changed.
    Etag,
    /// Fetches the body if both have changed, or the only one present.
    Both,
    /// Fetches the body if either has changed.
    Either,
}

impl Default for Settings {
    /// `either` is the choice of the thesis. A site is trusted after ten right predictions, and one prediction in fifty is
    /// always checked.
    fn default() -> Self {
        Self {
            scheme: Scheme::Either,
            trust_after: 10,
            samples: 0.02,
        }
    }
}

/// Comparison of one header with that of the last archived version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Neither version has the header.
    Missing,
    Same,
    /// The values differ, or one version lacks the header. An older date counts as different.
    Differs,
}

/// The combined prediction of the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prediction {
    Unchanged,
    Changed,
    /// Neither version has a relevant header.
    Silent,
}

/// Record of a site's predictions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Trust {
    /// Number of right predictions since the last wrong one.
    level: u32,
    right: u32,
    wrong: u32,
}

impl Plugin for UnchangedHeaders {
    const NAME: &'static str = "unchanged-headers";
    const SUMMARY: &'static str = "Skips the body if the headers of a trusted site show no change.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        // Also rejects NaN.
        if !(0.0..=1.0).contains(&settings.samples) {
            let problem = format!(
                "{} is not a share; write a number from 0 (none) to 1 (all)",
                settings.samples
            );
            faults.push(SettingsFault::new("/samples", problem));
        }
        none_or(faults, Self { settings })
    }

    fn keeps() -> Vec<Keep> {
        vec![Keep::with_site(TRUST, TRUST_VERSION)]
    }
}

impl Filter for UnchangedHeaders {
    fn judge_document(&self, stage: &Stage, document: &Document, visit: &Visit) -> Ruling {
        // A 304 needs no prediction, and an error is not a version.
        if document.status() != 200 {
            return Ruling::pass();
        }
        match stage {
            Stage::MidFetch => self.predict(document, visit),
            Stage::Archive => self.check(document, visit),
            _ => Ruling::pass(),
        }
    }
}

impl UnchangedHeaders {
    /// Predicts at mid-fetch.
    fn predict(&self, document: &Document, visit: &Visit) -> Ruling {
        match self.prediction(document, visit) {
            Prediction::Silent => count("no-indicator", 1),
            Prediction::Changed => count("predicted-changed", 1),
            Prediction::Unchanged => {
                count("predicted-unchanged", 1);
                let trust = Trust::of(document);
                if self.is_trusted(trust, visit) {
                    count("skipped", 1);
                    return Ruling {
                        verdict: Verdict::Unchanged,
                        reason: format!("trust:{}", trust.level),
                    };
                }
            }
        }
        Ruling::pass()
    }

    /// Checks the prediction once the content state is known.
    fn check(&self, document: &Document, visit: &Visit) -> Ruling {
        // Without a body the prediction cannot be checked.
        if visit.size().is_none() {
            return Ruling::pass();
        }
        let prediction = self.prediction(document, visit);
        let mut trust = Trust::of(document);
        match (prediction, visit.state()) {
            (Prediction::Unchanged, ContentState::Unchanged) => {
                trust.level = trust.level.saturating_add(1);
                trust.right = trust.right.saturating_add(1);
                count("right", 1);
                document.annotate(&format!("headers:right:{}", trust.level));
            }
            (Prediction::Unchanged, ContentState::Changed) => {
                document.annotate(&format!("headers:wrong:{}", trust.level));
                trust.level = 0;
                trust.wrong = trust.wrong.saturating_add(1);
                count("wrong", 1);
            }
            (Prediction::Changed, ContentState::Unchanged) => {
                count("useless", 1);
                return Ruling::pass();
            }
            _ => return Ruling::pass(),
        }
        document.set_site_value(TRUST, &trust.to_string());
        Ruling::pass()
    }

    fn prediction(&self, document: &Document, visit: &Visit) -> Prediction {
        let sign = |name: &str| {
            let now = document.header(name).into_iter().next();
            match (visit.validator(name), now) {
                (None, None) => Sign::Missing,
                (Some(then), Some(now)) if then.trim() == now.trim() => Sign::Same,
                _ => Sign::Differs,
            }
        };
        self.settings
            .scheme
            .predict(sign("last-modified"), sign("etag"))
    }

    /// Returns `true` if this prediction is trusted. Otherwise it is checked. The choice depends on the URI and the number of its
    /// visit, so it is the same at every stage.
    fn is_trusted(&self, trust: Trust, visit: &Visit) -> bool {
        let Settings {
            trust_after,
            samples,
            ..
        } = self.settings;
        if trust.level < trust_after {
            return false;
        }
        let checked = f64::from(trust_after) / f64::from(trust.level.max(1));
        share_of(&visit.candidate().uri, visit.visits()) >= checked.max(samples)
    }
}

impl Scheme {
    fn predict(self, date: Sign, etag: Sign) -> Prediction {
        let alone = |sign| match sign {
            Sign::Missing => Prediction::Silent,
            Sign::Same => Prediction::Unchanged,
            Sign::Differs => Prediction::Changed,
        };
        match self {
            Self::Date => alone(date),
            Self::Etag => alone(etag),
            Self::Both | Self::Either => match (date, etag) {
                (Sign::Missing, one) | (one, Sign::Missing) => alone(one),
                (Sign::Same, Sign::Same) => Prediction::Unchanged,
                (Sign::Differs, Sign::Differs) => Prediction::Changed,
                _ if self == Self::Both => Prediction::Unchanged,
                _ => Prediction::Changed,
            },
        }
    }
}

impl Trust {
    /// The kept record. Missing and invalid numbers count as 0.
    fn of(document: &Document) -> Self {
        let kept = document.site_value(TRUST).map(|kept| kept.value);
        let kept = kept.unwrap_or_default();
        let mut numbers = kept.split(' ').map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self {
            level: next(),
            right: next(),
            wrong: next(),
        }
    }
}

impl std::fmt::Display for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.level, self.right, self.wrong)
    }
}

/// An evenly distributed number for each visit of a URI, from 0 up to 1. The FNV-1a hash is mixed, because its upper bits
/// hardly depend on the last bytes.
fn share_of(uri: &str, visit: u64) -> f64 {
    let bytes = uri.bytes().chain(visit.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (experience::mix_bits(hash) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::testing::{KeptFacts, VisitFacts, document, visit};
    use opilio_plugin::{Candidate, NamedValue};

    /// All nine combinations, date first: the table in README.md.
    #[test]
    fn schemes_follow_the_table_of_the_readme() {
        use Prediction::{Changed as C, Silent as N, Unchanged as U};
        use Sign::{Differs, Missing, Same};
        for (date, etag, expected) in [
            (Missing, Missing, [N, N, N, N]),
            (Missing, Same, [N, U, U, U]),
            (Missing, Differs, [N, C, C, C]),
            (Same, Missing, [U, N, U, U]),
            (Same, Same, [U, U, U, U]),
            (Same, Differs, [U, C, U, C]),
            (Differs, Missing, [C, N, C, C]),
            (Differs, Same, [C, U, U, C]),
            (Differs, Differs, [C, C, C, C]),
        ] {
            let all = [Scheme::Date, Scheme::Etag, Scheme::Both, Scheme::Either];
            let answers = all.map(|scheme| scheme.predict(date, etag));
            assert_eq!(answers, expected, "{date:?} {etag:?}");
        }
    }

    #[test]
    fn shares_are_evenly_distributed_and_reproducible() {
        let shares: Vec<_> = (0..10_000)
            .map(|n| share_of(&format!("http://a.org/{}", n % 100), n / 100))
            .collect();
        for tenth in 0..10 {
            let (low, high) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
            let inside = shares.iter().filter(|share| (low..high).contains(share));
            let inside = inside.count();
            assert!((850..1150).contains(&inside), "{low}: {inside}");
        }
        assert_eq!(share_of("http://a.org/", 2), share_of("http://a.org/", 2));
        assert_ne!(share_of("http://a.org/", 2), share_of("http://a.org/", 3));
    }

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn facts(uri: &str, visits: u64, kept: &KeptFacts, state: ContentState) -> VisitFacts {
        VisitFacts {
            candidate: Candidate {
                uri: uri.to_owned(),
                ..Candidate::default()
            },
            visits,
            state,
            size: Some(5),
            validators: vec![NamedValue {
                name: "last-modified".to_owned(),
                value: DATE.to_owned(),
            }],
            kept: kept.clone(),
            ..VisitFacts::default()
        }
    }

    /// A site of a thousand pages whose date never changes, visited repeatedly. Returns the bodies fetched in each round, for a
    /// site whose headers become wrong in the round `wrong_from`.
    fn fetched_by_round(wrong_from: usize) -> Vec<usize> {
        let filter = UnchangedHeaders::new(Settings::default()).unwrap();
        let mut kept = KeptFacts::default();
        let mut fetched = Vec::new();
        for round in 0..8_usize {
            fetched.push(0);
            for page in 0..1000 {
                let uri = format!("http://a.org/{page}");
                let mut response = opilio_plugin::testing::DocumentFacts {
                    uri: uri.clone(),
                    kept: kept.clone(),
                    ..opilio_plugin::testing::DocumentFacts::default()
                };
                response.headers.push(Header {
                    name: "Last-Modified".to_owned(),
                    value: DATE.to_owned(),
                });
                let response = Document::from(response);
                let state = match round >= wrong_from {
                    true => ContentState::Changed,
                    false => ContentState::Unchanged,
                };
                let visited = visit(facts(&uri, round as u64 + 2, &kept, state));
                let ruling = filter.judge_document(&Stage::MidFetch, &response, &visited);
                if ruling.verdict == Verdict::Pass {
                    fetched[round] += 1;
                    filter.judge_document(&Stage::Archive, &response, &visited);
                    kept = response.kept();
                }
            }
        }
        fetched
    }

    #[test]
    fn trust_grows_and_ends_with_a_wrong_prediction() {
        let honest = fetched_by_round(usize::MAX);
        assert!(honest[0] > 10 && honest[0] < 300, "{honest:?}");
        assert!(
            honest.is_sorted_by(|a, b| a >= b) || honest[7] < 40,
            "{honest:?}"
        );
        assert!(
            honest[1..].iter().all(|&n| (5..150).contains(&n)),
            "{honest:?}"
        );
        let wrong = fetched_by_round(4);
        assert_eq!(wrong[..4], honest[..4]);
        // Some changes are missed until the first sample; from then on every body is fetched.
        assert!((800..1000).contains(&wrong[4]), "{wrong:?}");
        assert!(wrong[5..].iter().all(|&n| n == 1000), "{wrong:?}");
    }

    #[test]
    fn with_trust_after_zero_a_site_is_trusted_at_once() {
        let settings = Settings {
            trust_after: 0,
            samples: 0.0,
            ..Settings::default()
        };
        let filter = UnchangedHeaders::new(settings).unwrap();
        let response = document("http://a.org/")
            .header("Last-Modified", DATE)
            .text("");
        let visited = visit(facts(
            "http://a.org/",
            2,
            &KeptFacts::default(),
            ContentState::Unknown,
        ));
        let ruling = filter.judge_document(&Stage::MidFetch, &response, &visited);
        assert_eq!(ruling.verdict, Verdict::Unchanged);
    }
}
