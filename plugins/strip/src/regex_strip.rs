//! `regex-strip`: what matches one of its regular expressions does not count as content: clocks, counters,
//! advertisements, session ids. README.md has examples.

use opilio_plugin::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

/// Most bytes of memory that one compiled pattern may take: what `regex` allows by default is ten times this, and the
/// memory of a configured plugin is kept for every call.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// Most patterns.
const PATTERNS_MAX: usize = 256;

/// Leaves out what its patterns match.
pub struct RegexStrip {
    patterns: Vec<Regex>,
    size_max: u64,
}

/// Settings of `regex-strip`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Regular expressions (RE2 syntax) over the document's bytes. `.`, `\w`, `\d` and the like match ASCII alone; write
    /// other characters as they are, or any byte as `(?s-u:.)`. What one of them matches does not count.
    #[schemars(length(max = 256), extend("x-opilio-overridable" = true))]
    pub patterns: Vec<String>,
    /// Largest document, in bytes, that is looked at; nothing is said about larger ones, so their content state is unknown.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_size: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            max_size: 1024 * 1024,
        }
    }
}

impl Plugin for RegexStrip {
    const NAME: &'static str = "regex-strip";
    const SUMMARY: &'static str = "Leaves out of the digest what regular expressions match.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let mut patterns = Vec::new();
        if settings.patterns.len() > PATTERNS_MAX {
            faults.push(SettingsFault::new(
                "/patterns",
                format!("more than {PATTERNS_MAX} patterns; join some with `|`"),
            ));
        }
        for (at, pattern) in settings.patterns.iter().take(PATTERNS_MAX).enumerate() {
            match RegexBuilder::new(pattern)
                .unicode(false)
                .size_limit(PATTERN_BYTES_MAX)
                .build()
            {
                Ok(regex) => patterns.push(regex),
                Err(error) => faults.push(SettingsFault::new(
                    format!("/patterns/{at}"),
                    problem(&error),
                )),
            }
        }
        none_or(
            faults,
            Self {
                patterns,
                size_max: settings.max_size,
            },
        )
    }
}

/// The error on one line: the library's has the pattern, a marker and the reason on lines of their own.
fn problem(error: &regex::Error) -> String {
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
            format!("is no regular expression: {reason}")
        }
    }
}

impl DigestStripper for RegexStrip {
    fn strip(&self, document: &Document) -> Result<Vec<Span>, StripProblem> {
        let length = document.length();
        if length > self.size_max {
            return Err(StripProblem::TooLarge(length));
        }
        if self.patterns.is_empty() {
            return Ok(Vec::new());
        }
        let content = document.content();
        let matches = self
            .patterns
            .iter()
            .flat_map(|pattern| pattern.find_iter(&content));
        Ok(matches
            .filter(|found| !found.is_empty())
            .map(|found| Span::from(found.range()))
            .collect())
    }
}
