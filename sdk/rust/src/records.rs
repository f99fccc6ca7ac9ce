//! Constructors for the contract's records.

use std::time::Duration;

use crate::{
    Comparison, Description, Difference, Extraction, Fragment, FragmentContent, Handles, Hop, Keep,
    Keeper, Kind, Line, Link, LinkDetails, NamedValue, Report, Ruling, Span, Verdict, Wait,
};

impl Ruling {
    /// Accepts, with a reason.
    pub fn accept(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Accept,
            reason: reason.into(),
        }
    }

    /// Rejects, with a reason.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Reject,
            reason: reason.into(),
        }
    }

    /// Has no opinion.
    #[must_use]
    pub fn pass() -> Self {
        Self {
            verdict: Verdict::Pass,
            reason: String::new(),
        }
    }
}

impl Link {
    /// A link: the reference unchanged, its hop, and its position (`a/@href`).
    pub fn new(uri: impl Into<String>, hop: Hop, context: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            hop,
            context: context.into(),
            base: None,
            details: None,
        }
    }

    /// Adds an attribute, such as `rel` = `nofollow`.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.details
            .get_or_insert_with(LinkDetails::default)
            .attributes
            .push(NamedValue {
                name: name.into(),
                value: value.into(),
            });
        self
    }
}

impl Fragment {
    /// A fragment within the document's text: byte offsets in the UTF-8 that `text` returned.
    pub fn text_at(
        media_type: impl Into<String>,
        span: std::ops::Range<usize>,
        context: impl Into<String>,
    ) -> Self {
        Self::of(
            media_type,
            FragmentContent::TextAt(Span::from(span)),
            context,
        )
    }

    /// A fragment with its own text, because it was unescaped or assembled.
    pub fn text(
        media_type: impl Into<String>,
        text: impl Into<String>,
        context: impl Into<String>,
    ) -> Self {
        Self::of(media_type, FragmentContent::Text(text.into()), context)
    }

    fn of(
        media_type: impl Into<String>,
        content: FragmentContent,
        context: impl Into<String>,
    ) -> Self {
        Self {
            media_type: media_type.into(),
            content,
            context: context.into(),
            base: None,
        }
    }
}

impl From<std::ops::Range<usize>> for Span {
    fn from(range: std::ops::Range<usize>) -> Self {
        Self {
            offset: range.start as u64,
            length: range.end.saturating_sub(range.start) as u64,
        }
    }
}

impl Extraction {
    /// An extraction with only these links.
    #[must_use]
    pub fn links(links: Vec<Link>) -> Self {
        Self {
            links,
            ..Self::default()
        }
    }
}

impl Wait {
    /// A visit after this time, without an earlier reconsideration.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        Self {
            next_visit: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            ask_again: None,
        }
    }
}

impl Comparison {
    /// A new version, with a reason.
    pub fn changed(reason: impl Into<String>) -> Self {
        Self::of(Some(Difference::Changed), reason.into())
    }

    /// Different bytes but not a new version, with a reason.
    pub fn unchanged(reason: impl Into<String>) -> Self {
        Self::of(Some(Difference::Unchanged), reason.into())
    }

    /// Has no opinion: the next evaluator is asked.
    #[must_use]
    pub fn pass() -> Self {
        Self::of(None, String::new())
    }

    fn of(difference: Option<Difference>, reason: String) -> Self {
        Self {
            difference,
            fingerprint: None,
            reason,
        }
    }

    /// Sets the data that the host keeps for the comparison with the next version.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: impl Into<Vec<u8>>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }
}

impl Keep {
    /// A value kept with the URI. `version` is the version of the value's format.
    pub fn with_uri(name: impl Into<String>, version: u32) -> Self {
        Self {
            name: name.into(),
            keeper: Keeper::Uri,
            version,
        }
    }

    /// A value kept with the site, the URI's host and port. `version` is the version of the value's format.
    pub fn with_site(name: impl Into<String>, version: u32) -> Self {
        Self {
            name: name.into(),
            keeper: Keeper::Site,
            version,
        }
    }
}

impl Line {
    /// A line for one of the observer's own files, such as `titles.csv`.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            text: text.into(),
        }
    }
}

impl Report {
    /// A report. It replaces the content of the observer's file of this name.
    pub fn new(file: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            content: content.into(),
        }
    }
}

impl Handles {
    /// Documents of these media types, with any URI.
    #[must_use]
    pub fn media_types(types: &[&str]) -> Self {
        Self {
            media_types: types.iter().map(|&name| name.to_owned()).collect(),
            uris: Vec::new(),
        }
    }
}

impl Description {
    /// Returns `true` if the plugin exports this kind.
    #[must_use]
    pub fn is(&self, kind: &Kind) -> bool {
        self.kinds.contains(kind)
    }
}
