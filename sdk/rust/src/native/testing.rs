//! Tests of plugins without a host, in native builds: documents, visits, candidates, queues and pages to call plugins with,
//! tables, and captured log lines and counters.

use std::collections::BTreeMap;

pub use super::cases::{Call, Case, check_cases, read_cases};
use super::double;
pub use super::double::{DocumentFacts, KeptFacts, QueueFacts, TableFacts, VisitFacts};
pub use super::page::PageFacts;
use crate::{
    Candidate, CandidatesHandle, Document, Header, Level, Page, Queue, Row, TableKind, Visit,
};

/// Starts a document from `uri`; [`text`](DocumentDraft::text) or [`bytes`](DocumentDraft::bytes) completes it:
/// `document("http://example.com/").media_type("text/html").text("<p>…")`.
#[must_use]
pub fn document(uri: &str) -> DocumentDraft {
    DocumentDraft(DocumentFacts {
        uri: uri.to_owned(),
        ..DocumentFacts::default()
    })
}

/// A document before its content is set. The default status code is 200, the default media type `application/octet-stream`.
#[derive(Debug, Clone)]
pub struct DocumentDraft(DocumentFacts);

impl DocumentDraft {
    /// Sets the status code.
    #[must_use]
    pub fn status(mut self, status: i32) -> Self {
        self.0.status = status;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.0.headers.push(Header {
            name: name.to_owned(),
            value: value.to_owned(),
        });
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn media_type(mut self, media_type: &str) -> Self {
        self.0.media_type = media_type.to_owned();
        self
    }

    /// Sets the encoding label.
    #[must_use]
    pub fn charset(mut self, charset: &str) -> Self {
        self.0.charset = Some(charset.to_owned());
        self
    }

    /// Makes the document a fragment at this position.
    #[must_use]
    pub fn fragment(mut self, context: &str) -> Self {
        self.0.fragment = Some(context.to_owned());
        self
    }

    /// Sets the base for relative references.
    #[must_use]
    pub fn base(mut self, base: &str) -> Self {
        self.0.base = Some(base.to_owned());
        self
    }

    /// Makes the document with this text. Its UTF-8 is the content.
    #[must_use]
    pub fn text(mut self, text: &str) -> Document {
        self.0.text = text.to_owned();
        self.0.into()
    }

    /// Makes the document with these bytes. Invalid bytes become U+FFFD in its text.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Document {
        self.0.bytes = Some(bytes.to_owned());
        self.0.into()
    }
}

/// A visit with these values: `visit(VisitFacts { overdue: 5_000, ..Default::default() })`.
#[must_use]
pub fn visit(facts: VisitFacts) -> Visit {
    facts.into()
}

/// Candidates for one call. Pass `Candidates::new(&candidates(vec![…]))` to the plugin.
#[must_use]
pub fn candidates(list: Vec<Candidate>) -> CandidatesHandle {
    list.into()
}

/// A queue with these values.
#[must_use]
pub fn queue(facts: QueueFacts) -> Queue {
    facts.into()
}

/// A page in a browser with these values: `page(PageFacts { scroll_height: 2_000, ..Default::default() })`.
#[must_use]
pub fn page(facts: PageFacts) -> Page {
    facts.into()
}

/// A table in a test: its name, its kind, and its keys with values.
pub type TableOfTest<'a> = (&'a str, TableKind, &'a [(&'a str, &'a str)]);

/// Sets the tables of this thread, in place of earlier ones. Rows are keys with values, as the host stores them: SURT prefixes,
/// not the URIs that imply them. Tables of regular expressions exist only in the host.
pub fn set_tables(tables: &[TableOfTest<'_>]) {
    let table = |(name, kind, rows): &TableOfTest<'_>| {
        let rows = rows.iter().map(|(key, value)| Row {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        });
        let facts = TableFacts {
            kind: kind.clone(),
            rows: rows.collect(),
        };
        ((*name).to_owned(), facts)
    };
    double::tables::set(tables.iter().map(table).collect());
}

/// Takes the lines logged on this thread since the last call.
#[must_use]
pub fn logged() -> Vec<(Level, String)> {
    double::log::take()
}

/// Takes the counters of this thread since the last call.
#[must_use]
pub fn counted() -> BTreeMap<String, u64> {
    double::counters::take()
}
