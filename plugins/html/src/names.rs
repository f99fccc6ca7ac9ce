//! Names of attributes that can contain a reference, or determine the meaning of another attribute.

/// Longest name of an attribute or element that is compared, in bytes. All known names are shorter.
pub(crate) const NAME_BYTES_MAX: usize = 40;

macro_rules! attributes {
    ($($name:ident $text:literal),+ $(,)?) => {
        /// The name of a known attribute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum AttributeName {
            $(
                #[doc = concat!("`", $text, "`")]
                $name,
            )+
        }

        impl AttributeName {
            /// The number of known attributes.
            pub(crate) const COUNT: usize = [$(Self::$name),+].len();

            /// The name as text.
            pub(crate) fn as_str(self) -> &'static str {
                NAMES[self as usize].0
            }

            /// Parses a name in lower case.
            pub(crate) fn parse(name: &[u8]) -> Option<Self> {
                NAMES.iter().find(|(text, _)| text.as_bytes() == name).map(|(_, known)| *known)
            }
        }

        const NAMES: [(&str, AttributeName); AttributeName::COUNT] = [$(($text, AttributeName::$name)),+];
    };
}

attributes! {
    Href "href", Src "src", Srcset "srcset", Rel "rel", Content "content", Name "name", Property "property",
    HttpEquiv "http-equiv", Itemprop "itemprop", Type "type", Language "language", Style "style", Value "value",
    Action "action", Method "method", Formaction "formaction", Formmethod "formmethod", Poster "poster",
    Background "background", Cite "cite", Longdesc "longdesc", Ping "ping", Data "data", Codebase "codebase",
    Classid "classid", Archive "archive", Code "code", Object "object", Lowsrc "lowsrc", Dynsrc "dynsrc",
    Imagesrcset "imagesrcset", Srcdoc "srcdoc", Icon "icon", Manifest "manifest", Profile "profile",
    Flashvars "flashvars", XlinkHref "xlink:href", LazySrc "lazy-src", Realsrc "realsrc",
    Pluginspage "pluginspage",
}

/// For each first letter, the lengths of the known names that begin with it, as bits. This alone rules out most attributes
/// (`class`, `id`, `title`).
static LENGTHS: [u64; 26] = {
    let mut lengths = [0; 26];
    let mut at = 0;
    while at < NAMES.len() {
        let name = NAMES[at].0.as_bytes();
        lengths[(name[0] - b'a') as usize] |= 1 << name.len();
        at += 1;
    }
    lengths
};

/// Returns `true` if an attribute with this name may matter. A fast check with a few false positives.
#[inline]
pub(crate) fn may_matter(name: &[u8]) -> bool {
    let [first, second, third, ..] = *name else {
        return false;
    };
    let first = first | 0x20;
    let letter = first.wrapping_sub(b'a') as usize;
    letter < 26
        && name.len() <= NAME_BYTES_MAX
        && (LENGTHS[letter] >> name.len() & 1 != 0
            || (first == b'o' && second | 0x20 == b'n')
            || (first == b'd' && second | 0x20 == b'a' && third | 0x20 == b't'))
}

/// The content of a `data-*` attribute, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataAttribute {
    /// An image or other part of the page that a script loads later: `data-src`, `data-lazy-src`, `data-bg`.
    Embed,
    /// Image candidates: `data-srcset`.
    Srcset,
    /// A link: `data-href`, `data-url`.
    Link,
}

/// Reads the lower-case name of a `data-*` attribute. Its last word, separated by hyphens or underscores, must mean a
/// reference.
pub(crate) fn data_attribute(name: &str) -> Option<DataAttribute> {
    let words = name.strip_prefix("data-")?;
    // Sizes of images follow the word for their source: `data-src-retina`, `data-src-2x`.
    let mut words = words.split(['-', '_']);
    let embeds = |word: &str| {
        matches!(
            word,
            "src"
                | "bg"
                | "background"
                | "poster"
                | "original"
                | "image"
                | "img"
                | "thumb"
                | "thumbnail"
                | "lazy"
                | "lazysrc"
                | "bgsrc"
                | "hires"
                | "echo"
                | "icon"
                | "video"
                | "audio"
                | "file"
                | "full"
                | "large"
        )
    };
    let first = words.next()?;
    let last = words.next_back().unwrap_or(first);
    match (first, last) {
        (_, "srcset" | "lazysrcset") | ("srcset", _) | ("original", "set") => {
            Some(DataAttribute::Srcset)
        }
        (_, "href" | "url" | "uri" | "link" | "permalink") => {
            Some(if embeds(first) && first != last {
                DataAttribute::Embed
            } else {
                DataAttribute::Link
            })
        }
        (first, last) if embeds(last) || first == "src" || first == "lazy" => {
            Some(DataAttribute::Embed)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_pass_the_fast_check() {
        for (name, known) in NAMES {
            assert!(may_matter(name.as_bytes()), "{name}");
            assert!(may_matter(name.to_uppercase().as_bytes()), "{name}");
            assert_eq!(AttributeName::parse(name.as_bytes()), Some(known));
        }
        for name in ["onclick", "ONLOAD", "data-src", "DATA-x"] {
            assert!(may_matter(name.as_bytes()), "{name}");
        }
        for name in [
            "class", "id", "title", "width", "alt", "a", "", "=\"", "usemap",
        ] {
            assert!(!may_matter(name.as_bytes()), "{name}");
        }
    }

    #[track_caller]
    fn check(name: &str, expected: Option<DataAttribute>) {
        assert_eq!(data_attribute(name), expected, "{name}");
    }

    #[test]
    fn data_attributes_are_classified_by_their_words() {
        use DataAttribute::{Embed, Link, Srcset};
        for name in [
            "data-src",
            "data-lazy-src",
            "data-full-src",
            "data-original",
            "data-bg",
            "data-poster",
            "data-background-image",
            "data-src-retina",
            "data-image-url",
            "data-lazy",
            "data-thumb",
        ] {
            check(name, Some(Embed));
        }
        for name in ["data-srcset", "data-lazy-srcset", "data-original-set"] {
            check(name, Some(Srcset));
        }
        for name in [
            "data-href",
            "data-url",
            "data-share-url",
            "data-permalink",
            "data-link",
        ] {
            check(name, Some(Link));
        }
        for name in [
            "data-id",
            "data-toggle",
            "data-target",
            "data-size",
            "data-x",
            "data-",
        ] {
            check(name, None);
        }
    }
}
