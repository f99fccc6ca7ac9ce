//! The headers of a request that a visit decides: validators, referrer, and settings that differ from the profile's.

use opilio_uri::Uri;

use crate::admission::Permit;
use crate::pipeline::Pipeline;

/// The headers of a request that a visit decides. The caller adds cookies and credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeaders {
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<String>,
    /// `Referer`.
    pub referer: Option<Uri>,
    /// Further headers that differ from those of every request.
    pub more: Vec<(String, String)>,
}

impl Pipeline {
    /// Returns the headers for a request to `uri`: the URI of the visit, or a URI that is requested in passing.
    pub fn request_headers(&self, uri: &Uri, permit: &Permit) -> RequestHeaders {
        let settings = &self.settings.fetch;
        let record = &self.issue.record;
        let is_own = uri == &self.issue.uri;
        // A page that is to be extracted again, because extractors have changed or failed, must be fetched with its body.
        let is_conditional = is_own
            && settings.conditional
            && record.archived.is_some()
            && self.is_extracted()
            && !self.needs_body_for_browser()
            && !permit.is_login;
        let validator = |value: &Option<String>| value.clone().filter(|_| is_conditional);
        // No link leads to robots.txt.
        let is_followed = is_own && !self.is_prerequisite();
        let referer = record.via.as_deref();
        let referer = referer.filter(|_| settings.referer && is_followed);
        let of_all = &self.profile.settings().fetch;
        let mut more = Vec::new();
        if settings.headers != of_all.headers {
            more.extend(settings.headers.iter().cloned());
        }
        if settings.accept_encoding != of_all.accept_encoding {
            let value = settings.accept_encoding.clone().unwrap_or_default();
            more.push(("Accept-Encoding".to_owned(), value));
        }
        if let Some(agent) = &permit.agent {
            more.push(("User-Agent".to_owned(), agent.clone()));
        }
        RequestHeaders {
            if_none_match: validator(&record.validators.etag),
            if_modified_since: validator(&record.validators.last_modified),
            referer: referer
                .and_then(|via| Uri::parse(via).ok())
                .filter(Uri::is_http),
            more,
        }
    }
}
