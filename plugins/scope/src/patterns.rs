//! Lists of regular expressions in settings.
//!
//! They match in linear time, and their classes are ASCII: `\d`, `\w` and `(?i)` apply to ASCII only. Any other character
//! matches itself.

use opilio_plugin::prelude::*;
use regex_lite::Regex;

use crate::list;

/// Regular expressions, in the order of the setting.
#[derive(Debug)]
pub struct Patterns(Vec<Regex>);

impl Patterns {
    /// Compiles the expressions of a setting. An invalid one is reported with its position in the list.
    pub fn new(setting: &str, texts: &[String]) -> Result<Self, Vec<SettingsFault>> {
        let compile = |text: &str| match text {
            "" => Err("an empty expression matches everything".to_owned()),
            _ => Regex::new(text)
                .map_err(|problem| format!("`{text}` is not a regular expression: {problem}")),
        };
        list::parse_each(setting, texts, compile).map(Self)
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first expression that matches somewhere in the text.
    #[must_use]
    pub fn first_match(&self, text: &str) -> Option<&str> {
        let mut patterns = self.0.iter();
        let found = patterns.find(|pattern| pattern.is_match(text));
        found.map(Regex::as_str)
    }

    /// Returns the first expression that matches nowhere in the text.
    #[must_use]
    pub fn first_mismatch(&self, text: &str) -> Option<&str> {
        let mut patterns = self.0.iter();
        let missing = patterns.find(|pattern| !pattern.is_match(text));
        missing.map(Regex::as_str)
    }
}
