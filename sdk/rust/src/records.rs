//! Short ways to make the contract's records.

use std::time::Duration;

use crate::{
    Description, Extraction, Fragment, FragmentContent, Handles, Hop, Kind, Link, LinkDetails,
    NamedValue, Ruling, Span, Verdict, Wait,
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
