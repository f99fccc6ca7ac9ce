//! A document and its kept values, as JSON under the names of the contract. A missing field has its default.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::BASE64;
use encoding_rs::{Encoding, UTF_8};
use serde::{Deserialize, Serialize};

use super::problem::CallProblem;
use crate::{
    Document, DocumentParts, Header, KeptValue, KeptValues, NamedValue, Notes, SharedKeptValues,
};

/// The URI of a document without one.
pub(super) const SOME_URI: &str = "http://example.com/";
/// The media type of a document without one.
const SOME_TYPE: &str = "application/octet-stream";

/// A document, or a fragment of one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "DocumentJson", into = "DocumentJson")]
pub struct DocumentFacts {
    pub(super) uri: String,
    base: Option<String>,
    status: i32,
    headers: Arc<[Header]>,
    media_type: String,
    charset: Option<&'static Encoding>,
    fragment: Option<String>,
    content: Content,
    notes: BTreeMap<String, String>,
    kept: KeptFacts,
}

#[derive(Clone, Debug)]
enum Content {
    Here(Bytes),
    /// The content is in a file next to the case.
    InFile(PathBuf),
}

/// A document in the form of the JSON.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct DocumentJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<Header>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    charset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fragment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NamedValue>,
    #[serde(skip_serializing_if = "KeptFacts::is_empty")]
    kept: KeptFacts,
}

impl TryFrom<DocumentJson> for DocumentFacts {
    type Error = CallProblem;

    fn try_from(written: DocumentJson) -> Result<Self, CallProblem> {
        let charset = match written.charset {
            Some(label) => match Encoding::for_label(label.as_bytes()) {
                Some(charset) => Some(charset),
                None => return Err(CallProblem::Charset(label)),
            },
            None => None,
        };
        let foreign = charset.filter(|charset| *charset != UTF_8);
        let content = match (written.text, written.bytes, written.base64, written.file) {
            (None, None, None, None) => Content::Here(Bytes::new()),
            (Some(_), None, None, None) if foreign.is_some() => {
                let name = foreign.map_or("another encoding", Encoding::name);
                return Err(CallProblem::TextInCharset(name.to_owned()));
            }
            (Some(text), None, None, None) => Content::Here(text.into()),
            (None, Some(bytes), None, None) => Content::Here(bytes.into()),
            (None, None, Some(text), None) => Content::Here(
                BASE64
                    .decode(text.as_bytes())
                    .map_err(|problem| CallProblem::Base64(problem.to_string()))?
                    .into(),
            ),
            (None, None, None, Some(file)) => Content::InFile(file),
            _ => return Err(CallProblem::Contents),
        };
        Ok(Self {
            uri: written.uri.unwrap_or_else(|| SOME_URI.to_owned()),
            base: written.base,
            status: written.status.unwrap_or(200),
            headers: written.headers.into(),
            media_type: written.media_type.unwrap_or_else(|| SOME_TYPE.to_owned()),
            charset,
            fragment: written.fragment,
            content,
            notes: written
                .notes
                .into_iter()
                .map(|note| (note.name, note.value))
                .collect(),
            kept: written.kept,
        })
    }
}

impl From<DocumentFacts> for DocumentJson {
    fn from(facts: DocumentFacts) -> Self {
        let is_text = facts.is_text();
        let mut written = Self {
            base: facts.base.filter(|base| *base != facts.uri),
            uri: Some(facts.uri),
            status: (facts.status != 200).then_some(facts.status),
            headers: facts.headers.to_vec(),
            media_type: Some(facts.media_type),
            charset: facts
                .charset
                .map(|charset| charset.name().to_ascii_lowercase()),
            fragment: facts.fragment,
            notes: facts
                .notes
                .into_iter()
                .map(|(name, value)| NamedValue { name, value })
                .collect(),
            kept: facts.kept,
            ..Self::default()
        };
        match facts.content {
            Content::InFile(file) => written.file = Some(file),
            Content::Here(bytes) if bytes.is_empty() => {}
            Content::Here(bytes) if is_text => {
                written.text = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
            Content::Here(bytes) => written.base64 = Some(BASE64.encode(&bytes)),
        }
        written
    }
}

impl Default for DocumentFacts {
    fn default() -> Self {
        Self {
            uri: SOME_URI.to_owned(),
            base: None,
            status: 200,
            headers: Arc::from([]),
            media_type: SOME_TYPE.to_owned(),
            charset: None,
            fragment: None,
            content: Content::Here(Bytes::new()),
            notes: BTreeMap::new(),
            kept: KeptFacts::default(),
        }
    }
}

impl DocumentFacts {
    pub(super) fn of(document: &Document, own: &str) -> Self {
        Self {
            uri: document.uri().to_owned(),
            base: Some(document.base()),
            status: document.status(),
            headers: document.headers().into(),
            media_type: document.media_type().to_owned(),
            charset: document.charset(),
            fragment: document.fragment().map(str::to_owned),
            content: Content::Here(document.content().clone()),
            notes: document.notes().all(),
            kept: KeptFacts::of(document.kept(), own),
        }
    }

    pub(super) fn document(&self, own: &str) -> Result<Document, CallProblem> {
        let content = match &self.content {
            Content::Here(content) => content.clone(),
            Content::InFile(file) => return Err(CallProblem::Unread(file.clone())),
        };
        Ok(Document::new(DocumentParts {
            uri: self.uri.clone(),
            base: self.base.as_ref().unwrap_or(&self.uri).clone(),
            status: self.status,
            headers: self.headers.clone(),
            media_type: self.media_type.clone(),
            charset: self.charset,
            fragment: self.fragment.clone(),
            content,
            notes: Notes::of(self.notes.clone()),
            kept: self.kept.kept(own),
        }))
    }

    /// The file next to the case that has its content, if it has not been read.
    pub fn file(&self) -> Option<&Path> {
        match &self.content {
            Content::Here(_) => None,
            Content::InFile(file) => Some(file),
        }
    }

    /// Its content, if it has been read.
    pub fn content(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Here(content) => Some(content),
            Content::InFile(_) => None,
        }
    }

    /// Returns `true` if its content has been read and can be written as text.
    pub(super) fn is_text(&self) -> bool {
        let decodes = self.charset.is_none_or(|charset| charset == UTF_8);
        self.content()
            .is_some_and(|content| decodes && std::str::from_utf8(content).is_ok())
    }

    /// Sets its content.
    pub fn set_content(&mut self, content: impl Into<Bytes>) {
        self.content = Content::Here(content.into());
    }

    /// Makes it refer to a file next to the case for its content.
    pub fn refer_to(&mut self, file: PathBuf) {
        self.content = Content::InFile(file);
    }
}

/// Values that the plugin has kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct KeptFacts {
    /// Values of the URI.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    uri: BTreeMap<String, KeptValue>,
    /// Values of the site.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    site: BTreeMap<String, KeptValue>,
}

impl KeptFacts {
    pub(super) fn is_empty(&self) -> bool {
        self.uri.is_empty() && self.site.is_empty()
    }

    pub(super) fn of(kept: &SharedKeptValues, own: &str) -> Self {
        let (uri, site) = kept.visible_to(own);
        Self { uri, site }
    }

    pub(super) fn kept(&self, own: &str) -> SharedKeptValues {
        let values = |values: &BTreeMap<_, _>| KeptValues::of_plugin(own, values.clone());
        SharedKeptValues::new(values(&self.uri), values(&self.site))
    }
}
