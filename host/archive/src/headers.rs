//! The header of a record that is read from a file.

use jiff::Timestamp;

use crate::digest::{Digest, DigestError};
use crate::record::RecordId;

/// The header of a record, as in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    version: String,
    fields: Vec<(String, String)>,
}

impl Headers {
    pub(crate) fn new(version: &str) -> Headers {
        Headers {
            version: version.to_owned(),
            fields: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, name: &str, value: impl Into<String>) {
        self.fields.push((name.to_owned(), value.into()));
    }

    /// The value of the last header, to which a folded line belongs.
    pub(crate) fn last_value(&mut self) -> Option<&mut String> {
        self.fields.last_mut().map(|(_, value)| value)
    }

    /// The version, such as `WARC/1.1` or `ARC/1.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns `true` if this is a record of an ARC file, with the headers of a WARC.
    pub fn is_arc(&self) -> bool {
        self.version.starts_with("ARC/")
    }

    /// The first value of a header; the case of the name is ignored.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a header, in order.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.iter()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    /// All headers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `WARC-Type`, empty if missing.
    pub fn kind(&self) -> &str {
        self.first("WARC-Type").unwrap_or_default()
    }

    /// `WARC-Record-ID`, if it is a `urn:uuid:`.
    pub fn record_id(&self) -> Option<RecordId> {
        self.first("WARC-Record-ID")?.parse().ok()
    }

    /// `WARC-Target-URI`, without the angle brackets that some older tools add.
    pub fn target_uri(&self) -> Option<&str> {
        let uri = self.first("WARC-Target-URI")?;
        Some(
            uri.strip_prefix('<')
                .and_then(|rest| rest.strip_suffix('>'))
                .unwrap_or(uri),
        )
    }

    /// `WARC-Date`, if it is valid.
    pub fn date(&self) -> Option<Timestamp> {
        self.first("WARC-Date")?.parse().ok()
    }

    /// `WARC-Block-Digest`, if any.
    pub fn block_digest(&self) -> Option<Result<Digest, DigestError>> {
        self.first("WARC-Block-Digest").map(str::parse)
    }

    /// `WARC-Payload-Digest`, if any.
    pub fn payload_digest(&self) -> Option<Result<Digest, DigestError>> {
        self.first("WARC-Payload-Digest").map(str::parse)
    }
}
