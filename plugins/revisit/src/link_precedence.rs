//! `link-precedence`: ranks links by the page on which they were found. Like PageRank (Page and Brin 1998), it divides a page's
//! value among its links, but page by page during the crawl. README.md has the rule.

use opilio_plugin::prelude::*;

/// Ranks links by their pages.
pub struct LinkPrecedence {
    settings: Settings,
}

/// Settings of `link-precedence`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Precedence added for each link hop from the seed to the page.
    #[schemars(range(max = 50), extend("x-opilio-overridable" = true))]
    pub per_hop: u8,
    /// Precedence added for each doubling of the number of links on the page: each link then has half as much of the page's
    /// value.
    #[schemars(range(max = 50), extend("x-opilio-overridable" = true))]
    pub per_doubling: u8,
    /// Precedence subtracted for a link to another host. Such a link recommends a site; links within a site only serve
    /// navigation.
    #[schemars(range(max = 50), extend("x-opilio-overridable" = true))]
    pub other_host: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            per_hop: 1,
            per_doubling: 1,
            other_host: 2,
        }
    }
}

impl Plugin for LinkPrecedence {
    const NAME: &'static str = "link-precedence";
    const SUMMARY: &'static str =
        "Ranks links by the page they were found on: near a seed, with few links, on another site.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }
}

impl Precedence for LinkPrecedence {
    fn rank_candidates(
        &self,
        candidates: &Candidates<'_>,
        _: Option<&Document>,
    ) -> Vec<Option<u8>> {
        let links = candidates.iter().filter(is_link).count();
        let doublings = links.max(1).ilog2();
        let rank = |candidate: CandidateView<'_>| {
            is_link(&candidate).then(|| self.rank(candidate, doublings))
        };
        candidates.iter().map(rank).collect()
    }
}

impl LinkPrecedence {
    fn rank(&self, candidate: CandidateView<'_>, doublings: u32) -> u8 {
        let Settings {
            per_hop,
            per_doubling,
            other_host,
        } = self.settings;
        // The last hop is the link itself.
        let hops = link_hops(candidate.hop_path()).saturating_sub(1);
        let is_other_host =
            host(candidate.via_surt().unwrap_or_default()) != host(candidate.surt());
        let later = hops
            .saturating_mul(u32::from(per_hop))
            .saturating_add(doublings * u32::from(per_doubling));
        let sooner = u32::from(other_host) * u32::from(is_other_host);
        let rank = later.saturating_add(1).saturating_sub(sooner).max(1);
        u8::try_from(rank).unwrap_or(u8::MAX)
    }
}

/// Returns `true` if the candidate is a link that people can follow from a page. Redirects and embeds are left to the profile.
fn is_link(candidate: &CandidateView<'_>) -> bool {
    candidate.via().is_some() && candidate.hop_path().ends_with(['L', 'S'])
}

/// Number of link hops of a hop path such as `LLE` or, beyond 50 hops, `12+LLE…`. Omitted hops count as links.
fn link_hops(path: &str) -> u32 {
    let (omitted, rest) = path.split_once('+').unwrap_or(("0", path));
    let links = rest.bytes().filter(|hop| b"LSM".contains(hop)).count();
    let omitted: u32 = omitted.parse().unwrap_or(0);
    omitted.saturating_add(u32::try_from(links).unwrap_or(u32::MAX))
}

/// The host of a SURT: `(org,example,` for `http://(org,example,)/path`.
fn host(surt: &str) -> &str {
    let authority = surt.find('(').map_or("", |at| &surt[at..]);
    authority.split([')', ':']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_and_hosts_are_parsed() {
        assert_eq!(link_hops("LLERS"), 3);
        assert_eq!(link_hops("12+LE"), 13);
        assert_eq!(host("http://(org,example,)/a(b)"), "(org,example,");
        assert_eq!(host("http://(org,example,:8080)/"), "(org,example,");
        assert_ne!(
            host("http://(org,example,)/"),
            host("http://(org,example,www,)/")
        );
    }
}
