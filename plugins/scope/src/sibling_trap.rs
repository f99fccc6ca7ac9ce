//! `sibling-trap`: pages generated from one template with almost the same text.
//!
//! URIs that differ only in numbers, dates, tokens and query values are siblings. A site may have a limited number of siblings
//! with almost the same words (a simhash of all words without numbers: Charikar 2002). In the stack `pre-extract`, the links of
//! further ones are not followed; in the stack `archive`, further ones are not archived.
//!
//! A family is a set of siblings with almost the same text. The site's value has 4 KiB for the latest families. If a site has
//! more, the filter forgets the oldest: then some pages pass that should be rejected, and no page is wrongly rejected.

use opilio_plugin::prelude::*;

use crate::byte_size::ByteSize;
use crate::decision::{Decision, Decisions, Finding};
use crate::parts::Parts;

/// Name of the site's value: families of siblings, the latest first.
const FAMILIES: &str = "families";
/// Name of the URI's value: the ordinal of its page in the family, assigned at the first visit.
const PLACE: &str = "place";
/// Note for later stages of the visit, so that no page is counted twice.
const NOTE: &str = "sibling-trap";
/// Format version of both values.
const FORMAT_VERSION: u32 = 1;
/// The host keeps 4 KiB with a site; a family takes at most 8 + 1 + 16 + 1 + 7 + 1 bytes.
const FAMILIES_MAX: usize = 4096 / 34;
/// Shortest run of letters and digits in a path that counts as a token rather than a name.
const TOKEN_LENGTH: usize = 16;

/// Decides on siblings past the limit.
pub struct SiblingTrap {
    siblings_max: u32,
    bits_max: u32,
    words_min: usize,
    size_max: u64,
    decisions: Decisions,
}

/// Settings of `sibling-trap`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Most siblings of a site with almost the same text.
    #[schemars(range(min = 1, max = 999_999), extend("x-opilio-overridable" = true))]
    pub siblings_max: u32,
    /// Most of the 64 bits of the fingerprint that may differ between pages with almost the same text; 0 requires the same
    /// words.
    #[schemars(range(max = 16), extend("x-opilio-overridable" = true, "x-opilio-expert" = true))]
    pub bits_max: u32,
    /// Fewest words of a page that is judged. Many shorter pages have the same words by chance.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-expert" = true))]
    pub words_min: u32,
    /// Largest document to read. Larger documents get no decision.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-expert" = true))]
    pub size_max: ByteSize,
    /// The decision on siblings past the limit.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other pages. Documents that are not text, or have no content yet, get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            siblings_max: 50,
            bits_max: 2,
            words_min: 10,
            size_max: ByteSize(8 << 20),
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for SiblingTrap {
    const NAME: &'static str = "sibling-trap";
    const SUMMARY: &'static str = "Rejects pages with almost the same text as many others of the site: calendars and empty listings.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        if !(1..=999_999).contains(&settings.siblings_max) {
            faults.push(SettingsFault::new("/siblings-max", "from 1 to 999999"));
        }
        if settings.bits_max > 16 {
            let problem = "more than 16 of 64 bits make any two pages the same";
            faults.push(SettingsFault::new("/bits-max", problem));
        }
        none_or(
            faults,
            Self {
                siblings_max: settings.siblings_max,
                bits_max: settings.bits_max,
                words_min: usize::try_from(settings.words_min).unwrap_or(usize::MAX),
                size_max: settings.size_max.0,
                decisions: Decisions {
                    then: settings.then,
                    otherwise: settings.otherwise,
                },
            },
        )
    }

    fn keeps() -> Vec<Keep> {
        vec![
            Keep::with_site(FAMILIES, FORMAT_VERSION),
            Keep::with_uri(PLACE, FORMAT_VERSION),
        ]
    }
}

impl Filter for SiblingTrap {
    /// Passes: a candidate has no content to judge.
    fn judge_candidate(&self, _: &Stage, _: CandidateView<'_>) -> Ruling {
        Ruling::pass()
    }

    fn judge_document(&self, _: &Stage, document: &Document, visit: &Visit) -> Ruling {
        let length = document.length();
        if length == 0 || length > self.size_max || document.charset().is_none() {
            return Ruling::pass();
        }
        let finding = match self.ordinal_of(document, visit) {
            None => Finding::Unknown,
            Some(ordinal) if ordinal > self.siblings_max => {
                Finding::matching(format!("sibling {ordinal} of its kind"))
            }
            Some(ordinal) => Finding::not_matching(format!("sibling {ordinal} of its kind")),
        };
        self.decisions.rule(finding)
    }
}

/// Siblings with almost the same text: the hash of their URIs' common part, the fingerprint of the first page, and the number
/// of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Family {
    shape: u32,
    fingerprint: u64,
    members: u32,
}

impl SiblingTrap {
    /// Returns the ordinal of a page in its family. The first visit assigns it; a later visit reads the kept value.
    fn ordinal_of(&self, document: &Document, visit: &Visit) -> Option<u32> {
        if let Some(ordinal) = document.note(NOTE) {
            return ordinal.parse().ok();
        }
        let ordinal = match document
            .attribute(PLACE)
            .filter(|kept| kept.version == FORMAT_VERSION)
        {
            Some(kept) => kept.value.parse().ok(),
            None => self.count_page(document, visit),
        };
        // Also set for a page without an ordinal, so that later stages do not read it again.
        document.set_note(
            NOTE,
            &ordinal.map_or_else(String::new, |ordinal| ordinal.to_string()),
        );
        ordinal
    }

    /// Adds a page to its family, or to a new one. `None` if the page has too few words.
    fn count_page(&self, document: &Document, visit: &Visit) -> Option<u32> {
        let fingerprint = fingerprint(&document.text(), self.words_min)?;
        let shape = shape_of(&document.uri());
        let kept = visit
            .site_value(FAMILIES)
            .filter(|kept| kept.version == FORMAT_VERSION);
        let mut families = kept
            .map(|kept| parse_families(&kept.value))
            .unwrap_or_default();
        let same = families.iter().position(|family| {
            family.shape == shape
                && (family.fingerprint ^ fingerprint).count_ones() <= self.bits_max
        });
        let family = match same {
            Some(at) => {
                let family = families.remove(at);
                // The fingerprint stays that of the first page, so that a family does not drift.
                Family {
                    members: (family.members + 1).min(9_999_999),
                    ..family
                }
            }
            None => Family {
                shape,
                fingerprint,
                members: 1,
            },
        };
        families.insert(0, family);
        families.truncate(FAMILIES_MAX);
        visit.set_site_value(FAMILIES, &format_families(&families));
        document.set_attribute(PLACE, &family.members.to_string());
        Some(family.members)
    }
}

/// Parses the kept value, one family a line. Invalid lines are skipped.
fn parse_families(text: &str) -> Vec<Family> {
    let family = |line: &str| {
        let mut fields = line.split(' ');
        Some(Family {
            shape: u32::from_str_radix(fields.next()?, 16).ok()?,
            fingerprint: u64::from_str_radix(fields.next()?, 16).ok()?,
            members: fields.next()?.parse().ok()?,
        })
    };
    text.lines().filter_map(family).collect()
}

/// Formats the value to keep, one family a line.
fn format_families(families: &[Family]) -> String {
    let lines = families.iter().map(|family| {
        format!(
            "{:x} {:x} {}\n",
            family.shape, family.fingerprint, family.members
        )
    });
    lines.collect()
}

/// Returns a hash of the part of a URI that siblings share: server, path without numbers and tokens, and the names in the query.
fn shape_of(uri: &str) -> u32 {
    let parts = Parts::of(uri);
    let mut shape = parts.server.as_bytes().to_vec();
    for segment in parts.path.split('/') {
        let is_token = segment.len() >= TOKEN_LENGTH
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && segment.bytes().any(|byte| byte.is_ascii_digit());
        let mut was_digit = false;
        for byte in segment.bytes().filter(|_| !is_token) {
            let digit = byte.is_ascii_digit();
            if !(digit && was_digit) {
                shape.push(if digit { b'0' } else { byte });
            }
            was_digit = digit;
        }
        shape.push(b'/');
    }
    let mut names: Vec<&str> = parts.pairs().map(|(name, _)| name).collect();
    names.sort_unstable();
    for name in names {
        shape.push(b'&');
        shape.extend_from_slice(name.as_bytes());
    }
    // Half of the bits distinguish the pages of one site.
    (hash_of(&shape) >> 32) as u32
}

/// FNV-1a with its bits mixed as in SplitMix64. The hash of the standard library may change with its version, and kept values
/// outlive versions.
fn hash_of(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns a simhash of the words of a page; `None` if there are fewer than `words_min`. Mark-up, scripts and style sheets are
/// ignored.
fn fingerprint(text: &str, words_min: usize) -> Option<u64> {
    let mut balance = [0_i32; 64];
    let mut words = 0;
    for word in words_of(text) {
        words += 1;
        let hash = hash_of(word.as_bytes());
        for (bit, balance) in balance.iter_mut().enumerate() {
            *balance += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    let bits = balance.iter().enumerate();
    let hash = bits.fold(0, |hash, (bit, balance)| {
        hash | u64::from(*balance > 0) << bit
    });
    (words >= words_min.max(1)).then_some(hash)
}

/// Returns the words outside of tags: runs of at least two letters.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let runs = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find('<').unwrap_or(rest.len());
        let (run, tag) = rest.split_at(end);
        rest = after_tag(tag);
        Some(run)
    });
    runs.flat_map(|run| run.split(|character: char| !character.is_alphabetic()))
        .filter(|word| word.chars().nth(1).is_some())
}

/// Returns the text after a tag. For `<script>` and `<style>`, returns the text after the end tag.
fn after_tag(tag: &str) -> &str {
    for name in ["script", "style"] {
        let named = tag
            .get(1..=name.len())
            .is_some_and(|text| text.eq_ignore_ascii_case(name));
        if named {
            let mut ends = tag.match_indices("</").map(|(at, _)| &tag[at + 2..]);
            let end = ends.find(|end| {
                end.get(..name.len())
                    .is_some_and(|text| text.eq_ignore_ascii_case(name))
            });
            return end
                .and_then(|end| end.split_once('>'))
                .map_or("", |(_, rest)| rest);
        }
    }
    tag.split_once('>').map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_differ_in_numbers_tokens_and_values() {
        let same = |one: &str, other: &str| shape_of(one) == shape_of(other);
        assert!(same("http://e.org/2031/05/", "http://e.org/1999/12/"));
        assert!(same(
            "http://e.org/c?date=2031-05&v=x",
            "http://e.org/c?v=y&date=a"
        ));
        assert!(same(
            "http://e.org/0123456789abcdef/a",
            "http://e.org/fedcba98765432100/a"
        ));
        assert!(!same("http://e.org/may/", "http://e.org/june/"));
        assert!(!same("http://e.org/c?date=1", "http://e.org/c?day=1"));
        assert!(!same("http://e.org/1", "http://f.org/1"));
        assert!(!same("http://e.org/1/2", "http://e.org/1"));
    }

    #[test]
    fn a_fingerprint_depends_only_on_words() {
        let page = |day: u32, script: &str| {
            format!(
                "<html><SCRIPT>{script}</SCRIPT><p class=d{day}>On {day} May there is nothing at all to be seen in the old town hall</p>"
            )
        };
        let of = |text: &str| fingerprint(text, 10);
        assert_eq!(of(&page(1, "a()")), of(&page(17, "if (a < b) other()")));
        assert_ne!(
            of(&page(1, "")),
            of("On that day there is a concert of the choir in the church of the village")
        );
        assert_eq!(of("nothing to be seen"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn formatted_families_are_parsed_to_the_same_families() {
        let family = |shape, fingerprint, members| Family {
            shape,
            fingerprint,
            members,
        };
        let families = [family(u32::MAX, u64::MAX, 9_999_999), family(0, 0, 1)];
        assert_eq!(parse_families(&format_families(&families)), families);
        assert_eq!(parse_families("nonsense\n1 2\nx y z\n"), []);
        let full = vec![families[0]; FAMILIES_MAX];
        assert!(format_families(&full).len() <= 4096);
    }
}
