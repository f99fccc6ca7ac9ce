//! Short ways to make the contract's records.

use std::time::Duration;

use crate::{
    Comparison, Description, Difference, Extraction, Fragment, FragmentContent, Handles, Hop, Keep,
    Keeper, Kind, Line, Link, LinkDetails, NamedValue, Report, Ruling, Span, Verdict, Wait,
};

impl Ruling {
    /// Yes, and why.
    pub fn accept(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Accept,
            reason: reason.into(),
        }
    }

    /// No, and why.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Reject,
            reason: reason.into(),
        }
    }

    /// No opinion.
    #[must_use]
    pub fn pass() -> Self {
        Self {
            verdict: Verdict::Pass,
            reason: String::new(),
        }
    }
}

impl Link {
    /// A reference as written, how it was found, and where it stood (`a/@href`).
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
    /// A fragment that stands in the document's text: byte offsets of the UTF-8 that `text` returned.
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

    /// A fragment that had to be unescaped or put together.
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
    /// These links and nothing else.
    #[must_use]
    pub fn links(links: Vec<Link>) -> Self {
        Self {
            links,
            ..Self::default()
        }
    }
}

impl Wait {
    /// Come back after this time, and do not ask before.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        Self {
            next_visit: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            ask_again: None,
        }
    }
}

impl Comparison {
    /// A new version, and why.
    pub fn changed(reason: impl Into<String>) -> Self {
        Self::of(Some(Difference::Changed), reason.into())
    }

    /// Different bytes and all the same no new version, and why.
    pub fn unchanged(reason: impl Into<String>) -> Self {
        Self::of(Some(Difference::Unchanged), reason.into())
    }

    /// No opinion: the next evaluator is asked.
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

    /// What the host is to hand over when the next version is compared with this one.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: impl Into<Vec<u8>>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }
}

impl Keep {
    /// A value kept with the URI. The version is that of the value's form.
    pub fn with_uri(name: impl Into<String>, version: u32) -> Self {
        Self {
            name: name.into(),
            keeper: Keeper::Uri,
            version,
        }
    }

    /// A value kept with the site, the URI's host and port. The version is that of the value's form.
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
    /// A report that replaces the one of before in the observer's file of that name.
    pub fn new(file: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            content: content.into(),
        }
    }
}

impl Handles {
    /// Documents of these media types, wherever they come from.
    #[must_use]
    pub fn media_types(types: &[&str]) -> Self {
        Self {
            media_types: types.iter().map(|&name| name.to_owned()).collect(),
            uris: Vec::new(),
        }
    }
}

impl Description {
    /// Does the plugin export this kind?
    #[must_use]
    pub fn is(&self, kind: &Kind) -> bool {
        self.kinds.contains(kind)
    }
}
