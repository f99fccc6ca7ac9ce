//! Lists of regular expressions in settings.
//!
//! They are matched in linear time, and know ASCII alone: `\d`, `\w` and `(?i)` mean what they mean there, any other
//! character stands for itself.

use opilio_plugin::prelude::*;
use regex_lite::Regex;

/// Regular expressions, in the order written.
#[derive(Debug)]
pub struct Patterns(Vec<Regex>);

impl Patterns {
    /// Compiles those of a setting; what does not compile is reported under its place in it.
    pub fn new(setting: &str, written: &[String]) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let mut patterns = Vec::new();
        for (at, text) in written.iter().enumerate() {
            let fault = |problem: String| SettingsFault::new(format!("/{setting}/{at}"), problem);
            if text.is_empty() {
                faults.push(fault("an empty expression matches everything".to_owned()));
                continue;
            }
            match Regex::new(text) {
                Ok(pattern) => patterns.push(pattern),
                Err(problem) => faults.push(fault(format!(
                    "`{text}` is no regular expression: {problem}"
                ))),
            }
        }
        none_or(faults, Self(patterns))
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first that matches somewhere in the text.
    #[must_use]
    pub fn first_in(&self, text: &str) -> Option<&str> {
        let mut patterns = self.0.iter();
        let found = patterns.find(|pattern| pattern.is_match(text));
        found.map(Regex::as_str)
    }

    /// The first that does not match anywhere in the text.
    #[must_use]
    pub fn first_not_in(&self, text: &str) -> Option<&str> {
        let mut patterns = self.0.iter();
        let missing = patterns.find(|pattern| !pattern.is_match(text));
        missing.map(Regex::as_str)
    }
}
