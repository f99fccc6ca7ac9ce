//! `hops`: limits the distance from the seed.

use opilio_plugin::prelude::*;

/// Rejects URIs with too many hops from their seed.
pub struct Hops {
    settings: Settings,
}

/// Settings of `hops`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Most hops of any type from the seed. A URI with more is rejected.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max: u32,
    /// Most hops that a reader or the crawler chose: links, forms, sitemap entries (L, S, M). Left out: only `max` limits them.
    /// Hops past the last 50, whose letters the path no longer has, count as chosen.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_link_hops: Option<u32>,
    /// Most hops of other types in a row since the last chosen one. Redirects (R) do not count. Left out: no limit.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_trans_hops: Option<u32>,
    /// Most speculative hops (X) among these. Left out: no limit.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_speculative_hops: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max: 20,
            max_link_hops: None,
            max_trans_hops: None,
            max_speculative_hops: None,
        }
    }
}

impl Plugin for Hops {
    const NAME: &'static str = "hops";
    const SUMMARY: &'static str = "Rejects URIs that are too many hops away from their seed.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }
}

impl Filter for Hops {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let path = Path::of(candidate.hop_path());
        let settings = &self.settings;
        let over = |hops: u64, max: Option<u32>| max.filter(|max| hops > u64::from(*max));
        if let Some(max) = over(path.hops(), Some(settings.max)) {
            return Ruling::reject(format!("more than {max} hops"));
        }
        if let Some(max) = over(path.chosen(), settings.max_link_hops) {
            return Ruling::reject(format!("more than {max} link hops"));
        }
        let Trailing {
            hops, speculative, ..
        } = path.trailing();
        if let Some(max) = over(hops, settings.max_trans_hops) {
            return Ruling::reject(format!("more than {max} hops since the last link"));
        }
        if let Some(max) = over(speculative, settings.max_speculative_hops) {
            return Ruling::reject(format!(
                "more than {max} speculative hops since the last link"
            ));
        }
        Ruling::pass()
    }
}

/// A hop path. A long one reads `N+` and its last 50 letters; N is the number of letters left out.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    left_out: u64,
    letters: &'a str,
}

impl<'a> Path<'a> {
    /// Parses a hop path.
    #[must_use]
    pub fn of(path: &'a str) -> Self {
        match path.split_once('+') {
            Some((left_out, letters)) => Self {
                left_out: left_out.parse().unwrap_or(0),
                letters,
            },
            None => Self {
                left_out: 0,
                letters: path,
            },
        }
    }

    /// Returns the number of hops.
    #[must_use]
    pub fn hops(&self) -> u64 {
        self.left_out.saturating_add(self.letters.len() as u64)
    }

    /// Returns the number of hops chosen by a reader or the crawler, including those left out of a long path.
    #[must_use]
    pub fn chosen(&self) -> u64 {
        let chosen = self.letters.bytes().filter(|hop| is_chosen(*hop)).count();
        self.left_out.saturating_add(chosen as u64)
    }

    /// Counts the hops since the last chosen one. A shortened path has 50 letters, more than any sensible limit.
    #[must_use]
    pub fn trailing(&self) -> Trailing {
        let mut trailing = Trailing::default();
        let hops = self.letters.bytes().rev();
        for hop in hops.take_while(|hop| !is_chosen(*hop)) {
            match hop {
                b'R' => trailing.redirects += 1,
                b'X' => {
                    trailing.hops += 1;
                    trailing.speculative += 1;
                }
                _ => trailing.hops += 1,
            }
        }
        trailing
    }
}

/// Hops since the last chosen one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trailing {
    /// Redirects. They do not count as hops, because a server may move its images. `fetch.redirects-max` limits them.
    pub redirects: u64,
    /// Other hops.
    pub hops: u64,
    /// Speculative hops among `hops`.
    pub speculative: u64,
}

/// Returns true if the hop is a link, submit or manifest hop.
fn is_chosen(hop: u8) -> bool {
    matches!(hop, b'L' | b'S' | b'M')
}
