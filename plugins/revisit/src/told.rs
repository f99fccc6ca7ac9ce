//! How far the lists of a site tell of its changes: feeds and sitemaps, read by the host, which makes due at once what they
//! name. Kept with the site.

use opilio_plugin::prelude::*;

/// Under this name it is kept with the site.
pub(crate) const TOLD: &str = "told";

/// Of its form.
pub(crate) const TOLD_VERSION: u32 = 1;

/// Changes that count against lists before any is seen: a site without lists has none that tell.
const UNTOLD: f64 = 3.0;

/// Changes beyond which all counts are halved, so that lists may begin to tell, or to lie.
const SEEN_MAX: f64 = 1_000.0;

/// However well lists have told, this share of the changes is looked for all the same.
const UNTOLD_MIN: f64 = 0.05;

/// Changes of a site's documents, and whether a list had told of them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Told {
    told: f64,
    untold: f64,
}

impl Told {
    /// What is kept for the site of a visit.
    pub(crate) fn of(visit: &Visit) -> Self {
        let kept = visit.site_value(TOLD);
        let kept = kept.filter(|kept| kept.version == TOLD_VERSION);
        let numbers = kept.and_then(|kept| {
            let (told, untold) = kept.value.split_once(' ')?;
            Some((told.parse::<u32>().ok()?, untold.parse::<u32>().ok()?))
        });
        let (told, untold) = numbers.unwrap_or_default();
        Self {
            told: f64::from(told) / 10.0,
            untold: f64::from(untold) / 10.0,
        }
    }

    pub(crate) fn written(&self) -> String {
        let tenths = |number: f64| ((number * 10.0).round() as u32).to_string();
        format!("{} {}", tenths(self.told), tenths(self.untold))
    }

    /// Takes note of a visit; whether there was anything to be learned.
    pub(crate) fn learn(&mut self, was_named: bool, has_changed: bool) -> bool {
        if !has_changed {
            return false;
        }
        match was_named {
            true => self.told += 1.0,
            false => self.untold += 1.0,
        }
        if self.told + self.untold > SEEN_MAX {
            self.told /= 2.0;
            self.untold /= 2.0;
        }
        true
    }

    /// The share of the changes of which no list will tell.
    pub(crate) fn untold(&self) -> f64 {
        let share = (self.untold + UNTOLD) / (self.told + self.untold + UNTOLD);
        share.max(UNTOLD_MIN)
    }
}
