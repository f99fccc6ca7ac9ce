//! Robots directives of a response: the `X-Robots-Tag` header and `<meta name=robots>`.
//!
//! They have no standard, but search engines agree on the words. Words that matter to an archive are kept; the others
//! concern search results.

use crate::robots::product_token;

/// Words before a colon that are directives with a value, not the name of a robot.
const WITH_VALUE: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// The directives of a response for robots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RobotsTag {
    /// `nofollow`, or `none`: its links must not be followed.
    pub nofollow: bool,
    /// `noarchive`: it must not be archived.
    pub noarchive: bool,
    /// `noindex`, or `none`: it must not be indexed.
    pub noindex: bool,
}

impl RobotsTag {
    /// Parses the values of all `X-Robots-Tag` headers, for all robots and for `user_agent`, a product token or a whole header.
    /// A robot's name before a colon applies to the words after it, up to the next name or the end of the value.
    pub fn of_headers<'v>(values: impl Iterator<Item = &'v str>, user_agent: &str) -> Self {
        let ours = product_token(user_agent);
        let mut tag = RobotsTag::default();
        for value in values {
            let mut to_us = true;
            for part in value.split(',') {
                let mut word = part.trim();
                if let Some((name, rest)) = word.split_once(':')
                    && !WITH_VALUE
                        .iter()
                        .any(|it| name.trim().eq_ignore_ascii_case(it))
                {
                    to_us = name.trim() == "*" || name.trim().eq_ignore_ascii_case(ours);
                    word = rest.trim();
                }
                if to_us {
                    tag.add_word(word);
                }
            }
        }
        tag
    }

    /// Parses the content of a `<meta name=robots>`.
    pub fn of_meta(content: &str) -> Self {
        let mut tag = RobotsTag::default();
        for word in content.split([',', ' ', '\t', '\n', '\r']) {
            tag.add_word(word);
        }
        tag
    }

    /// The union of both tags.
    pub fn and(self, other: Self) -> Self {
        RobotsTag {
            nofollow: self.nofollow || other.nofollow,
            noarchive: self.noarchive || other.noarchive,
            noindex: self.noindex || other.noindex,
        }
    }

    /// The words of the tag, in the order in which logs write them.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        [
            (self.noarchive, "noarchive"),
            (self.nofollow, "nofollow"),
            (self.noindex, "noindex"),
        ]
        .into_iter()
        .filter_map(|(is_set, word)| is_set.then_some(word))
    }

    fn add_word(&mut self, word: &str) {
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        self.nofollow |= is("nofollow") || is("none");
        self.noindex |= is("noindex") || is("none");
        self.noarchive |= is("noarchive");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn headers(values: &[&str], expected: &str) {
        let tag =
            RobotsTag::of_headers(values.iter().copied(), "Mozilla/5.0 (compatible; mybot/1)");
        let words: Vec<_> = tag.words().collect();
        assert_eq!(words.join(" "), expected, "{values:?}");
    }

    #[test]
    fn headers_apply_to_all_robots_or_to_one() {
        headers(&[], "");
        headers(&["noarchive"], "noarchive");
        headers(&["NoIndex , NOFOLLOW"], "nofollow noindex");
        headers(&["none"], "nofollow noindex");
        headers(&["all", "noarchive"], "noarchive");
        headers(&["mybot: noarchive, nofollow"], "noarchive nofollow");
        headers(&["otherbot: noarchive, nofollow"], "");
        headers(&["otherbot: noindex, mybot: nofollow"], "nofollow");
        headers(&["otherbot: noindex", "nofollow"], "nofollow");
        headers(&["*: nofollow"], "nofollow");
        headers(
            &["unavailable_after: 25 Jun 2010 15:00:00 GMT, nofollow"],
            "nofollow",
        );
        headers(&["max-snippet: 5, noarchive"], "noarchive");
        headers(&["nofollowing, :, ,"], "");
    }

    #[test]
    fn meta_contents_are_lists_of_words() {
        let words = |content| {
            RobotsTag::of_meta(content)
                .words()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words("noindex,nofollow"), "nofollow noindex");
        assert_eq!(words(" NOARCHIVE  follow"), "noarchive");
        assert_eq!(words("none"), "nofollow noindex");
        assert_eq!(words("index, follow"), "");
        let both = RobotsTag::of_meta("nofollow").and(RobotsTag::of_meta("noarchive"));
        assert_eq!(both.words().collect::<Vec<_>>(), ["noarchive", "nofollow"]);
    }
}
