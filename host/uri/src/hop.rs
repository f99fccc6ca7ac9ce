//! Hop paths: the hops from a seed to a URI, one letter each.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum hops that a path keeps by letter. Older ones are only counted, in the prefix `N+`.
pub const HOPS_KEPT_MAX: usize = 50;

/// The type of a hop from one URI to another (glossary, "hop").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hop {
    /// `L`: a link for readers.
    Link,
    /// `E`: embedded in the page and needed to show it.
    Embed,
    /// `X`: a string in a script that looks like a URI.
    Speculative,
    /// `R`: a redirect.
    Redirect,
    /// `P`: a prerequisite of the other URI: DNS, robots.txt.
    Prerequisite,
    /// `I`: inferred from the URI, not found in the document.
    Inferred,
    /// `M`: named in a manifest such as a sitemap.
    Manifest,
    /// `S`: the target of a form.
    Submit,
}

impl Hop {
    /// The letter of the hop.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Hop::Link => 'L',
            Hop::Embed => 'E',
            Hop::Speculative => 'X',
            Hop::Redirect => 'R',
            Hop::Prerequisite => 'P',
            Hop::Inferred => 'I',
            Hop::Manifest => 'M',
            Hop::Submit => 'S',
        }
    }

    /// The hop of a letter; `None` for other letters.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Hop> {
        Some(match letter {
            'L' => Hop::Link,
            'E' => Hop::Embed,
            'X' => Hop::Speculative,
            'R' => Hop::Redirect,
            'P' => Hop::Prerequisite,
            'I' => Hop::Inferred,
            'M' => Hop::Manifest,
            'S' => Hop::Submit,
            _ => return None,
        })
    }

    /// Returns `true` if the hop leads to another document rather than to a part of this one: link, manifest, submit.
    #[must_use]
    pub fn is_navigation(self) -> bool {
        matches!(self, Hop::Link | Hop::Manifest | Hop::Submit)
    }
}

/// The hops from a seed to a URI, such as `LLE`; empty for a seed.
///
/// Beyond [`HOPS_KEPT_MAX`] hops the oldest are only counted: `3+LLLL…` has 53 hops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HopPath {
    /// The path as shown. Letters and prefix are ASCII.
    text: String,
    dropped: u32,
}

/// The reason why a text is not a hop path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HopPathError {
    /// A letter without a hop.
    #[error("{0:?} is not a hop")]
    Letter(char),
    /// The part before `+` is not a number.
    #[error("{0:?} is not a number of hops")]
    Count(String),
    /// More letters than [`HOPS_KEPT_MAX`], or a count of older hops before fewer.
    #[error("{0} letters in a hop path that keeps {HOPS_KEPT_MAX}")]
    Kept(usize),
}

/// The hops at the end of a path, after the last one that navigates: for the embeds of a page that a reader reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrailingHops {
    /// Number of all these hops.
    pub total: u32,
    /// Embeds among them.
    pub embeds: u32,
    /// Speculative ones among them.
    pub speculative: u32,
    /// Redirects among them.
    pub redirects: u32,
}

impl HopPath {
    /// The path of a seed.
    #[must_use]
    pub fn new() -> HopPath {
        HopPath::default()
    }

    /// Parses a path in the form of [`HopPath::as_str`].
    ///
    /// # Errors
    /// [`HopPathError`], with the reason.
    pub fn parse(text: &str) -> Result<HopPath, HopPathError> {
        let (dropped, letters) = match text.split_once('+') {
            None => (0, text),
            Some((count, letters)) => match count.parse() {
                Ok(dropped) if count.bytes().all(|b| b.is_ascii_digit()) => (dropped, letters),
                _ => return Err(HopPathError::Count(count.to_owned())),
            },
        };
        if let Some(letter) = letters
            .chars()
            .find(|letter| Hop::from_letter(*letter).is_none())
        {
            return Err(HopPathError::Letter(letter));
        }
        let kept = letters.len();
        if kept > HOPS_KEPT_MAX || (dropped > 0 && kept < HOPS_KEPT_MAX) {
            return Err(HopPathError::Kept(kept));
        }
        Ok(HopPath::of(dropped, letters))
    }

    /// Adds the newest hop.
    pub fn push(&mut self, hop: Hop) {
        let kept = self.letters();
        if kept.len() < HOPS_KEPT_MAX {
            self.text.push(hop.letter());
            return;
        }
        let mut letters = kept[1..].to_owned();
        letters.push(hop.letter());
        *self = HopPath::of(self.dropped.saturating_add(1), &letters);
    }

    /// This path with one more hop.
    #[must_use]
    pub fn then(&self, hop: Hop) -> HopPath {
        let mut path = self.clone();
        path.push(hop);
        path
    }

    /// The path as logs show it: at most [`HOPS_KEPT_MAX`] letters, preceded by `N+` if N older hops are not shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Number of all hops, including those not shown.
    #[must_use]
    pub fn len(&self) -> u32 {
        let kept = u32::try_from(self.letters().len()).unwrap_or(u32::MAX);
        self.dropped.saturating_add(kept)
    }

    /// Returns `true` if it is the path of a seed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The newest hop; `None` for a seed.
    #[must_use]
    pub fn last(&self) -> Option<Hop> {
        self.hops().next_back()
    }

    /// The kept hops, oldest first.
    pub fn hops(&self) -> impl DoubleEndedIterator<Item = Hop> + '_ {
        self.letters().chars().filter_map(Hop::from_letter)
    }

    /// Number of hops that navigate ([`Hop::is_navigation`]). Those no longer kept count as such.
    #[must_use]
    pub fn link_hops(&self) -> u32 {
        let kept = self.hops().filter(|hop| hop.is_navigation()).count();
        self.dropped
            .saturating_add(u32::try_from(kept).unwrap_or(u32::MAX))
    }

    /// The hops after the last one that navigates, for scope rules that admit the embeds of a page.
    #[must_use]
    pub fn trailing(&self) -> TrailingHops {
        let mut trailing = TrailingHops::default();
        for hop in self.hops().rev().take_while(|hop| !hop.is_navigation()) {
            trailing.total += 1;
            match hop {
                Hop::Embed => trailing.embeds += 1,
                Hop::Speculative => trailing.speculative += 1,
                Hop::Redirect => trailing.redirects += 1,
                _ => {}
            }
        }
        trailing
    }

    fn of(dropped: u32, letters: &str) -> HopPath {
        let text = match dropped {
            0 => letters.to_owned(),
            _ => format!("{dropped}+{letters}"),
        };
        HopPath { text, dropped }
    }

    fn letters(&self) -> &str {
        match self.dropped {
            0 => &self.text,
            _ => &self.text[self.text.len() - HOPS_KEPT_MAX..],
        }
    }
}

impl fmt::Display for HopPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for HopPath {
    type Err = HopPathError;

    fn from_str(text: &str) -> Result<HopPath, HopPathError> {
        HopPath::parse(text)
    }
}

impl Serialize for HopPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for HopPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HopPath, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        HopPath::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_belongs_to_one_hop() {
        for letter in "LEXRPIMS".chars() {
            assert_eq!(Hop::from_letter(letter).unwrap().letter(), letter);
        }
        assert_eq!(Hop::from_letter('l'), None);
    }

    #[test]
    fn the_51st_hop_turns_the_oldest_into_a_count() {
        let mut path = HopPath::new();
        path.push(Hop::Embed);
        for _ in 0..49 {
            path.push(Hop::Link);
        }
        assert_eq!((path.len(), path.as_str().len()), (50, 50));
        path.push(Hop::Redirect);
        assert_eq!(path.as_str(), format!("1+{}R", "L".repeat(49)));
        path.push(Hop::Embed);
        assert_eq!(path.as_str(), format!("2+{}RE", "L".repeat(48)));
        assert_eq!((path.len(), path.link_hops()), (52, 50));
        assert_eq!(path.last(), Some(Hop::Embed));
        assert_eq!(HopPath::parse(path.as_str()).unwrap(), path);
    }

    #[test]
    fn an_invalid_path_is_refused_with_the_reason() {
        for (text, error) in [
            ("LQ", HopPathError::Letter('Q')),
            ("+L", HopPathError::Count(String::new())),
            ("-1+L", HopPathError::Count("-1".into())),
            ("1+LL", HopPathError::Kept(2)),
        ] {
            assert_eq!(HopPath::parse(text), Err(error));
        }
        assert_eq!(HopPath::parse(&"L".repeat(51)), Err(HopPathError::Kept(51)));
    }

    #[test]
    fn trailing_hops_end_at_the_last_navigation() {
        for (path, total, embeds, speculative) in [
            ("", 0, 0, 0),
            ("LEE", 2, 2, 0),
            ("LRE", 2, 1, 0),
            ("LM", 0, 0, 0),
            ("LME", 1, 1, 0),
            ("LS", 0, 0, 0),
            ("P", 1, 0, 0),
            ("LEX", 2, 1, 1),
        ] {
            let trailing = HopPath::parse(path).unwrap().trailing();
            assert_eq!(
                (trailing.total, trailing.embeds, trailing.speculative),
                (total, embeds, speculative),
                "{path}"
            );
        }
    }
}
