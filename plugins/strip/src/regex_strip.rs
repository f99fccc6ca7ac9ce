//! `regex-strip`: removes matches of regular expressions, for example clocks, counters, advertisements and session ids.
//! README.md has examples.

use opilio_plugin::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

use crate::site::{Location, Sites};

/// Largest size of a compiled pattern, in bytes. It is a tenth of the default of `regex`, because a configured plugin keeps its
/// memory during every call.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// Largest number of patterns for all sites, or for one entry of `sites`.
const PATTERNS_MAX: usize = 256;

/// Largest number of entries in `sites`.
const SITES_MAX: usize = 10_000;

/// Removes matches of its patterns.
pub struct RegexStrip {
    /// Patterns for all sites.
    patterns: Vec<Regex>,
    /// Sites with their own patterns.
    sites: Vec<(Sites, Vec<Regex>)>,
    size_max: u64,
}

/// Settings of `regex-strip`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Regular expressions (RE2 syntax) over the document's bytes. Their matches are ignored. `.`, `\w`, `\d` and similar
    /// classes match ASCII only; write other characters literally, or any byte as `(?s-u:.)`.
    #[schemars(length(max = 256), extend("x-opilio-overridable" = true))]
    pub patterns: Vec<String>,
    /// Additional patterns for single sites.
    #[schemars(length(max = 10_000), extend("x-opilio-overridable" = true))]
    pub sites: Vec<SitePatterns>,
    /// Largest document to examine, in bytes. The payload digest decides on larger ones.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_size: u64,
}

/// Patterns and the sites that they apply to.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SitePatterns {
    /// Domains, with their subdomains.
    pub domains: Vec<String>,
    /// SURT prefixes, such as `http://(is,mbl,www,)/frettir/`. https counts as http.
    pub surts: Vec<String>,
    /// Patterns, as for all sites.
    #[schemars(length(max = 256))]
    pub patterns: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            sites: Vec::new(),
            max_size: 1024 * 1024,
        }
    }
}

impl Plugin for RegexStrip {
    const NAME: &'static str = "regex-strip";
    const SUMMARY: &'static str = "Leaves out of the digest matches of regular expressions.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let patterns = compile(&settings.patterns, "/patterns", &mut faults);
        let mut sites = Vec::new();
        if settings.sites.len() > SITES_MAX {
            let problem = format!("more than {SITES_MAX} sites");
            faults.push(SettingsFault::new("/sites", problem));
        }
        for (at, site) in settings.sites.iter().take(SITES_MAX).enumerate() {
            let pointer = format!("/sites/{at}");
            let own = compile(&site.patterns, &format!("{pointer}/patterns"), &mut faults);
            let domains_and_surts = Sites::new(&site.domains, &site.surts, &pointer, &mut faults);
            sites.push((domains_and_surts, own));
        }
        none_or(
            faults,
            Self {
                patterns,
                sites,
                size_max: settings.max_size,
            },
        )
    }
}

/// Compiles the patterns of a setting. Adds a fault for each invalid one.
fn compile(patterns: &[String], pointer: &str, faults: &mut Vec<SettingsFault>) -> Vec<Regex> {
    if patterns.len() > PATTERNS_MAX {
        let problem = format!("more than {PATTERNS_MAX} patterns; join some with `|`");
        faults.push(SettingsFault::new(pointer, problem));
    }
    let mut compiled = Vec::new();
    for (at, pattern) in patterns.iter().take(PATTERNS_MAX).enumerate() {
        match RegexBuilder::new(pattern)
            .unicode(false)
            .size_limit(PATTERN_BYTES_MAX)
            .build()
        {
            Ok(regex) => compiled.push(regex),
            Err(error) => {
                let pointer = format!("{pointer}/{at}");
                faults.push(SettingsFault::new(pointer, reason_of(&error)));
            }
        }
    }
    compiled
}

/// The reason of an error, on one line. The message of `regex` has the pattern, a marker and the reason on separate lines.
fn reason_of(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => format!(
            "takes more than {PATTERN_BYTES_MAX} bytes when compiled; write smaller repetitions"
        ),
        error => {
            let text = error.to_string();
            let reason = text
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned();
            format!("not a regular expression: {reason}")
        }
    }
}

impl DigestStripper for RegexStrip {
    fn strip(&self, document: &Document) -> Result<Vec<Span>, StripProblem> {
        let length = document.length();
        if length > self.size_max {
            return Err(StripProblem::TooLarge(length));
        }
        let mut patterns: Vec<&Regex> = self.patterns.iter().collect();
        if !self.sites.is_empty() {
            let location = Location::of(&document.uri());
            let own = self
                .sites
                .iter()
                .filter(|(sites, _)| sites.contains(&location));
            patterns.extend(own.flat_map(|(_, patterns)| patterns));
        }
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let content = document.content();
        let matches = patterns
            .iter()
            .flat_map(|pattern| pattern.find_iter(&content));
        Ok(matches
            .filter(|found| !found.is_empty())
            .map(|found| Span::from(found.range()))
            .collect())
    }
}
