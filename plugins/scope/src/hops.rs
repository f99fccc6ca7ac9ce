//! `hops`: how far from a seed the crawl goes.

use opilio_plugin::prelude::*;

/// Rejects what is too many hops away from its seed.
pub struct Hops {
    settings: Settings,
}

/// Settings of `hops`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Most hops from the seed, of every type; a URI with more is rejected.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max: u32,
    /// Most hops that a reader or the crawler chose: links, forms, entries of sitemaps (L, S, M). Left out, `max` alone
    /// counts. Hops of which the path no longer has the letters, past 50, count as chosen.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_link_hops: Option<u32>,
    /// Most hops of other types in a row, since the last that was chosen; redirects (R) do not count. Left out, any number.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_trans_hops: Option<u32>,
    /// Most speculative hops (X) among these; left out, any number.
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

/// A hop path. A long one reads `N+` and its last 50 letters, N being the number left out.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    left_out: u64,
    letters: &'a str,
}

impl<'a> Path<'a> {
    /// Reads it.
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

    /// How many hops.
    #[must_use]
    pub fn hops(&self) -> u64 {
        self.left_out.saturating_add(self.letters.len() as u64)
    }

    /// How many were chosen by a reader or the crawler, those left out among them.
    #[must_use]
    pub fn chosen(&self) -> u64 {
        let chosen = self.letters.bytes().filter(|hop| is_chosen(*hop)).count();
        self.left_out.saturating_add(chosen as u64)
    }

    /// Hops since the last that was chosen. A shortened path has 50 letters, more than any sensible limit.
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

/// Hops since the last that was chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trailing {
    /// Redirects, which are no hops of a page: a server moves its pictures as it likes. `fetch.redirects-max` limits them.
    pub redirects: u64,
    /// The others.
    pub hops: u64,
    /// Speculative ones among `hops`.
    pub speculative: u64,
}

/// Link, submit, manifest.
fn is_chosen(hop: u8) -> bool {
    matches!(hop, b'L' | b'S' | b'M')
}
