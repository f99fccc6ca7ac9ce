//! Test doubles in place of the host: documents, visits, candidates and queues that tests fill. They have the methods of the
//! imported resources. Tables, log and counters belong to the thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    Candidate, ContentState, Header, KeptValue, NamedValue, Neighbourhood, PastVisit, Row, Signal,
    TableKind,
};

/// Values of a document double. In cases: JSON under these names; each may be left out. Give `text` or `bytes`, not both.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DocumentFacts {
    /// The URI it was fetched from.
    pub uri: String,
    /// Base for relative references. `None`: the URI.
    pub base: Option<String>,
    /// HTTP status code, or a negative code of the glossary.
    pub status: i32,
    /// Headers in the order received.
    pub headers: Vec<Header>,
    /// Media type, lower-case, without parameters.
    pub media_type: String,
    /// Encoding label.
    pub charset: Option<String>,
    /// Position of a fragment.
    pub fragment: Option<String>,
    /// Content as text; its UTF-8 is the content unless `bytes` is given.
    pub text: String,
    /// Content as bytes, if it is not the UTF-8 of `text`.
    pub bytes: Option<Vec<u8>>,
    /// Name of a file beside the case with the content, for long contents.
    pub file: Option<String>,
    /// Notes of earlier plugins.
    pub notes: Vec<NamedValue>,
    /// Values kept by the plugin.
    pub kept: KeptFacts,
}

impl Default for DocumentFacts {
    fn default() -> Self {
        Self {
            uri: "http://example.com/".to_owned(),
            base: None,
            status: 200,
            headers: Vec::new(),
            media_type: "application/octet-stream".to_owned(),
            charset: None,
            fragment: None,
            text: String::new(),
            bytes: None,
            file: None,
            notes: Vec::new(),
            kept: KeptFacts::default(),
        }
    }
}

/// Values kept by a plugin with a URI and with its site, by name. Values set by the plugin have version 0, because only the
/// host knows the declared versions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct KeptFacts {
    /// Values kept with the URI.
    pub uri: BTreeMap<String, KeptValue>,
    /// Values kept with the site.
    pub site: BTreeMap<String, KeptValue>,
}

impl KeptFacts {
    fn set(values: &mut BTreeMap<String, KeptValue>, name: &str, value: &str) {
        if value.is_empty() {
            values.remove(name);
        } else {
            let kept = KeptValue {
                version: 0,
                value: value.to_owned(),
            };
            values.insert(name.to_owned(), kept);
        }
    }
}

impl DocumentFacts {
    /// Reads the content from `file`, if given.
    pub(crate) fn read_file(&mut self, folder: &Path) -> Result<(), String> {
        if let Some(file) = &self.file {
            let path = folder.join(file);
            let content =
                fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            match String::from_utf8(content) {
                Ok(text) => self.text = text,
                Err(error) => self.bytes = Some(error.into_bytes()),
            }
        }
        Ok(())
    }
}

/// A test double of a document, made by [`testing::document`](crate::testing::document). Its methods are those of the
/// contract's resource `document`.
#[derive(Debug)]
pub struct Document {
    facts: DocumentFacts,
    notes: RefCell<BTreeMap<String, String>>,
    annotations: RefCell<Vec<String>>,
    kept: RefCell<KeptFacts>,
}

impl From<DocumentFacts> for Document {
    fn from(facts: DocumentFacts) -> Self {
        let notes = facts
            .notes
            .iter()
            .map(|note| (note.name.clone(), note.value.clone()))
            .collect();
        Self {
            kept: RefCell::new(facts.kept.clone()),
            facts,
            notes: RefCell::new(notes),
            annotations: RefCell::default(),
        }
    }
}

impl Document {
    fn bytes(&self) -> &[u8] {
        self.facts
            .bytes
            .as_deref()
            .unwrap_or(self.facts.text.as_bytes())
    }

    /// The URI it was fetched from. For a fragment: the URI of its document.
    #[must_use]
    pub fn uri(&self) -> String {
        self.facts.uri.clone()
    }

    /// The base for its relative references.
    #[must_use]
    pub fn base(&self) -> String {
        self.facts.base.clone().unwrap_or_else(|| self.uri())
    }

    /// HTTP status code, or a negative code of the glossary.
    #[must_use]
    pub fn status(&self) -> i32 {
        self.facts.status
    }

    /// All headers in the order received; empty for a fragment.
    #[must_use]
    pub fn headers(&self) -> Vec<Header> {
        self.facts.headers.clone()
    }

    /// All values of one header, in order. The name is compared without case.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<String> {
        let named = self
            .facts
            .headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value.clone()).collect()
    }

    /// Media type, lower-case, without parameters.
    #[must_use]
    pub fn media_type(&self) -> String {
        self.facts.media_type.clone()
    }

    /// Encoding label used by `text`; `None` if the content is not text.
    #[must_use]
    pub fn charset(&self) -> Option<String> {
        self.facts.charset.clone()
    }

    /// Position of a fragment, such as `script`; `None` for a whole document.
    #[must_use]
    pub fn fragment(&self) -> Option<String> {
        self.facts.fragment.clone()
    }

    /// Content length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.bytes().len() as u64
    }

    /// Content from `offset`, at most `length` bytes; shorter at the end, empty past it.
    #[must_use]
    pub fn read(&self, offset: u64, length: u32) -> Vec<u8> {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.bytes().len());
        let rest = &self.bytes()[from..];
        rest[..rest.len().min(length as usize)].to_vec()
    }

    /// The whole content as text.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.facts.bytes {
            Some(bytes) if self.facts.text.is_empty() => {
                decoded(bytes, self.facts.charset.as_deref())
            }
            _ => self.facts.text.clone(),
        }
    }

    /// A note left by an earlier plugin of this visit.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<String> {
        self.notes.borrow().get(name).cloned()
    }

    /// Leaves a note for later plugins of this visit. The last value counts.
    pub fn set_note(&self, name: &str, value: &str) {
        self.notes
            .borrow_mut()
            .insert(name.to_owned(), value.to_owned());
    }

    /// Adds an annotation to the document's line in the crawl log.
    pub fn annotate(&self, annotation: &str) {
        self.annotations.borrow_mut().push(annotation.to_owned());
    }

    /// The value last kept by the plugin with the URI.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<KeptValue> {
        self.kept.borrow().uri.get(name).cloned()
    }

    /// Keeps a value with the URI. An empty one removes it.
    pub fn set_attribute(&self, name: &str, value: &str) {
        KeptFacts::set(&mut self.kept.borrow_mut().uri, name, value);
    }

    /// The value last kept by the plugin for the site.
    #[must_use]
    pub fn site_value(&self, name: &str) -> Option<KeptValue> {
        self.kept.borrow().site.get(name).cloned()
    }

    /// Keeps a value for the site. An empty one removes it.
    pub fn set_site_value(&self, name: &str, value: &str) {
        KeptFacts::set(&mut self.kept.borrow_mut().site, name, value);
    }

    /// The kept values; only in the test double.
    #[must_use]
    pub fn kept(&self) -> KeptFacts {
        self.kept.borrow().clone()
    }

    /// The annotations added so far; only in the test double.
    #[must_use]
    pub fn annotations(&self) -> Vec<String> {
        self.annotations.borrow().clone()
    }
}

/// The characters of windows-1252 from 0x80 to 0x9F. Pages in iso-8859-1 are decoded as windows-1252 (WHATWG Encoding Standard).
const WINDOWS_1252: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

/// Decodes text in the charsets that native tests support: iso-8859-1 and windows-1252. All others are read as UTF-8.
fn decoded(bytes: &[u8], charset: Option<&str>) -> String {
    match charset {
        Some("iso-8859-1" | "windows-1252") => bytes
            .iter()
            .map(|&byte| match byte {
                0x80..=0x9f => WINDOWS_1252
                    .chars()
                    .nth(usize::from(byte - 0x80))
                    .unwrap_or('\u{fffd}'),
                _ => char::from(byte),
            })
            .collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Values of a visit double. In cases: JSON under these names; each may be left out. Times and durations are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct VisitFacts {
    /// The candidate of the visit.
    pub candidate: Candidate,
    /// The time of this visit.
    pub now: u64,
    /// Status code; 0 before the fetch.
    pub status: i32,
    /// Media type of the response; empty before the fetch.
    pub media_type: String,
    /// State of the content.
    pub state: ContentState,
    /// Size of the content in bytes.
    pub size: Option<u64>,
    /// The wait that led to this visit.
    pub last_wait: Option<u64>,
    /// Time from the due time to the start of this visit.
    pub overdue: u64,
    /// Completed visits, plus this one. At a reconsideration: completed visits only.
    pub visits: u64,
    /// Versions seen.
    pub versions: u64,
    /// Earlier visits, newest first.
    pub history: Vec<PastVisit>,
    /// Headers of the last archived version.
    pub validators: Vec<NamedValue>,
    /// Links found on the document.
    pub outlinks: u64,
    /// Number of pages of other registrable domains that embed the document.
    pub inlinks: u64,
    /// Signals since the last visit, newest first.
    pub signals: Vec<Signal>,
    /// Sums of the documents around it.
    pub neighbourhood: Vec<Neighbourhood>,
    /// Values that the host computes for whole queues or crawls.
    pub measures: BTreeMap<String, f64>,
    /// Notes of plugins of this visit.
    pub notes: Vec<NamedValue>,
    /// Values kept by the plugin.
    pub kept: KeptFacts,
}

/// A test double of a visit, made by [`testing::visit`](crate::testing::visit). Its methods are those of the contract's
/// resource `visit`.
#[derive(Debug)]
pub struct Visit {
    facts: VisitFacts,
    kept: RefCell<KeptFacts>,
}

impl From<VisitFacts> for Visit {
    fn from(facts: VisitFacts) -> Self {
        Self {
            kept: RefCell::new(facts.kept.clone()),
            facts,
        }
    }
}

macro_rules! answers {
    ($of:ident, $($(#[$doc:meta])* $name:ident: $type:ty;)+) => {
        impl $of {
            $($(#[$doc])* #[must_use] pub fn $name(&self) -> $type {
                self.facts.$name.clone()
            })+
        }
    };
}

answers! { Visit,
    /// The candidate of the visit, as filters saw it at discovery.
    candidate: Candidate;
    /// The time of this visit, in milliseconds since 1970.
    now: u64;
    /// Status code of this visit; 0 before the fetch.
    status: i32;
    /// Media type of this visit's response; empty before the fetch.
    media_type: String;
    /// State of the content; `unknown` before it is judged.
    state: ContentState;
    /// Size of the content in bytes; `None` before the fetch or if no body was fetched.
    size: Option<u64>;
    /// The wait that led to this visit, in milliseconds; `None` at the first.
    last_wait: Option<u64>;
    /// Time from the due time to the start of this visit, in milliseconds.
    overdue: u64;
    /// Completed visits, plus this one. At a reconsideration: completed visits only.
    visits: u64;
    /// Versions seen, this one included once it is new or changed.
    versions: u64;
    /// Earlier visits, newest first.
    history: Vec<PastVisit>;
    /// Links found on the document at its last extraction.
    outlinks: u64;
    /// Number of pages of other registrable domains that embed the document.
    inlinks: u64;
    /// Signals since the last visit, newest first.
    signals: Vec<Signal>;
    /// Sums of the documents around it.
    neighbourhood: Vec<Neighbourhood>;
}

impl Visit {
    /// Header of the last archived version: `etag`, `last-modified`.
    #[must_use]
    pub fn validator(&self, name: &str) -> Option<String> {
        let named = self
            .facts
            .validators
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value.clone())
    }

    /// A value that the host computes for whole queues or crawls.
    #[must_use]
    pub fn measure(&self, name: &str) -> Option<f64> {
        self.facts.measures.get(name).copied()
    }

    /// A note left by a plugin of this visit.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<String> {
        let mut notes = self.facts.notes.iter();
        notes
            .find(|note| note.name == name)
            .map(|note| note.value.clone())
    }

    /// The value last kept by the plugin with the URI.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<KeptValue> {
        self.kept.borrow().uri.get(name).cloned()
    }

    /// Keeps a value with the URI. An empty one removes it.
    pub fn set_attribute(&self, name: &str, value: &str) {
        KeptFacts::set(&mut self.kept.borrow_mut().uri, name, value);
    }

    /// The value last kept by the plugin for the site.
    #[must_use]
    pub fn site_value(&self, name: &str) -> Option<KeptValue> {
        self.kept.borrow().site.get(name).cloned()
    }

    /// Keeps a value for the site. An empty one removes it.
    pub fn set_site_value(&self, name: &str, value: &str) {
        KeptFacts::set(&mut self.kept.borrow_mut().site, name, value);
    }

    /// The kept values; only in the test double.
    #[must_use]
    pub fn kept(&self) -> KeptFacts {
        self.kept.borrow().clone()
    }
}

/// Test doubles of candidates, made by [`testing::candidates`](crate::testing::candidates). The methods are those of the
/// contract's resource `candidates`.
#[derive(Debug)]
pub struct Candidates(Vec<Candidate>);

impl From<Vec<Candidate>> for Candidates {
    fn from(list: Vec<Candidate>) -> Self {
        Self(list)
    }
}

macro_rules! columns {
    ($($name:ident: $value:expr;)+) => {
        impl Candidates {
            $(pub(crate) fn $name(&self) -> String {
                let value: fn(&Candidate) -> &str = $value;
                self.0.iter().flat_map(|candidate| [value(candidate), "\n"]).collect()
            })+
        }
    };
}

columns! {
    uris: |candidate| &candidate.uri;
    surts: |candidate| &candidate.surt;
    hop_paths: |candidate| &candidate.hop_path;
    contexts: |candidate| &candidate.context;
    vias: |candidate| candidate.via.as_deref().unwrap_or_default();
    via_surts: |candidate| candidate.via_surt.as_deref().unwrap_or_default();
    sources: |candidate| candidate.source.as_deref().unwrap_or_default();
    addresses: |candidate| candidate.address.as_deref().unwrap_or_default();
}

impl Candidates {
    pub(crate) fn length(&self) -> u32 {
        self.0.len() as u32
    }

    pub(crate) fn seeds(&self) -> Vec<bool> {
        self.0.iter().map(|candidate| candidate.seed).collect()
    }

    pub(crate) fn get(&self, index: u32) -> Candidate {
        self.0[index as usize].clone()
    }
}

/// Values of a queue double. In cases: JSON under these names; each may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueFacts {
    /// Name.
    pub name: String,
    /// Number of waiting URIs.
    pub queued: u64,
    /// Number of successful completed fetches.
    pub succeeded: u64,
    /// Number of failed completed fetches.
    pub failed: u64,
    /// Bytes fetched.
    pub bytes: u64,
    /// Precedence of its best waiting URI.
    pub best: Option<u8>,
    /// The precedence from the profile.
    pub base: u8,
    /// The time of the call, in milliseconds since 1970.
    pub now: u64,
}

/// A test double of a queue, made by [`testing::queue`](crate::testing::queue). Its methods are those of the contract's
/// resource `queue`.
#[derive(Debug)]
pub struct Queue {
    facts: QueueFacts,
}

impl From<QueueFacts> for Queue {
    fn from(facts: QueueFacts) -> Self {
        Self { facts }
    }
}

answers! { Queue,
    /// Name, such as `org,example,www,`.
    name: String;
    /// Number of waiting URIs.
    queued: u64;
    /// Number of successful completed fetches; a revisit does not count as a new one.
    succeeded: u64;
    /// Number of failed completed fetches.
    failed: u64;
    /// Bytes fetched.
    bytes: u64;
    /// Precedence of its best waiting URI; `None` if no URI waits.
    best: Option<u8>;
    /// The precedence from the profile.
    base: u8;
    /// The time of the call, in milliseconds since 1970.
    now: u64;
}

/// A table in a test. In cases: JSON under these names.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableFacts {
    /// The kind of table.
    pub kind: TableKind,
    /// The rows. Values may be left out.
    pub rows: Vec<Row>,
}

thread_local! {
    static TABLES: RefCell<BTreeMap<String, TableFacts>> = const { RefCell::new(BTreeMap::new()) };
    static LOGGED: RefCell<Vec<(crate::Level, String)>> = const { RefCell::new(Vec::new()) };
    static COUNTED: RefCell<BTreeMap<String, u64>> = const { RefCell::new(BTreeMap::new()) };
}

pub(crate) mod tables {
    use std::collections::BTreeMap;

    use super::{Candidates, TABLES, TableFacts};
    use crate::{Candidate, Row, TableKind};

    pub(crate) fn set(tables: BTreeMap<String, TableFacts>) {
        TABLES.set(tables);
    }

    pub(crate) fn kind_of(table: &str) -> Option<TableKind> {
        TABLES.with_borrow(|tables| Some(tables.get(table)?.kind.clone()))
    }

    pub(crate) fn find(table: &str, key: &str) -> Option<Row> {
        TABLES.with_borrow(|tables| tables.get(table)?.find(key))
    }

    pub(crate) fn find_candidates(table: &str, candidates: &Candidates) -> Vec<bool> {
        let row_of = |candidate: &Candidate| {
            let key = match kind_of(table)? {
                TableKind::SurtPrefixes => &candidate.surt,
                _ => &candidate.uri,
            };
            find(table, key)
        };
        let candidates = candidates.0.iter();
        candidates
            .map(|candidate| row_of(candidate).is_some())
            .collect()
    }

    impl TableFacts {
        fn find(&self, key: &str) -> Option<Row> {
            let rows = || self.rows.iter();
            match &self.kind {
                TableKind::SurtPrefixes => rows()
                    .filter(|row| key.starts_with(&row.key))
                    .max_by_key(|row| row.key.len()),
                TableKind::KeyValues => rows().rfind(|row| row.key == key),
                kind => panic!(
                    "native tests do not support tables of kind {kind:?}; run this case with `opilio plugin test`"
                ),
            }
            .cloned()
        }
    }
}

pub(crate) mod log {
    use super::LOGGED;

    pub(crate) fn write(level: crate::Level, message: &str) {
        LOGGED.with_borrow_mut(|lines| lines.push((level, message.to_owned())));
    }

    pub(crate) fn take() -> Vec<(crate::Level, String)> {
        LOGGED.take()
    }
}

pub(crate) mod counters {
    use std::collections::BTreeMap;

    use super::COUNTED;

    pub(crate) fn count(name: &str, n: u64) {
        COUNTED.with_borrow_mut(|counters| *counters.entry(name.to_owned()).or_default() += n);
    }

    pub(crate) fn take() -> BTreeMap<String, u64> {
        COUNTED.take()
    }
}
