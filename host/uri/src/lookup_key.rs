//! Keys for looking captures up: the `urlkey` of CDX and CDXJ files.

/// The key of a URI in a CDX file.
#[must_use]
pub fn cdx_key(text: &str) -> String {
    text.to_owned()
}

/// The form of a URI that blocklists and CDX keys start from.
#[must_use]
pub fn lookup_form(text: &str) -> String {
    text.to_owned()
}
