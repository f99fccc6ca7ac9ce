//! Lists of regular expressions in settings.
//!
//! They are matched in linear time, and know ASCII alone: `\d`, `\w` and `(?i)` mean what they mean there, any other
//! character stands for itself.

use opilio_plugin::prelude::*;
use regex_lite::Regex;

use crate::list;

/// Regular expressions, in the order written.
#[derive(Debug)]
pub struct Patterns(Vec<Regex>);

impl Patterns {
    /// Compiles those of a setting; what does not compile is reported under its place in it.
    pub fn new(setting: &str, written: &[String]) -> Result<Self, Vec<SettingsFault>> {
        let read = |text: &str| match text {
            "" => Err("an empty expression matches everything".to_owned()),
            _ => Regex::new(text)
                .map_err(|problem| format!("`{text}` is no regular expression: {problem}")),
        };
        list::each(setting, written, read).map(Self)
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
