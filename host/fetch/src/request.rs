//! A prepared request: its server, target and header fields.

use ::http::header::{HeaderMap, HeaderName, HeaderValue};
use ::http::uri::PathAndQuery;
use ::http::{Method, Uri as Target};
use bytes::Bytes;
use http_body_util::Full;
use opilio_uri::Uri;

use crate::config::{FetcherBuildError, FetcherConfig};
use crate::exchange::Request;
use crate::failure::FetchFailure;
use crate::payload_tap::{PayloadTap, TapEnd};
use crate::recording_stream::ExchangeProgress;
use crate::stream::Server;

/// A request that can be sent any number of times.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub server: Server,
    pub method: Method,
    target: Target,
    headers: HeaderMap,
    body: Bytes,
    tap: Option<PayloadTap>,
    pub received: ExchangeProgress,
}

impl Prepared {
    pub(crate) fn new(config: &FetcherConfig, request: &Request) -> Result<Self, FetchFailure> {
        let uri = &request.uri;
        let unfetchable = |reason: &str| FetchFailure::Unfetchable {
            uri: uri.as_str().to_owned(),
            reason: reason.to_owned(),
        };
        let tls = match uri.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(unfetchable("the scheme is neither http nor https")),
        };
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| unfetchable("no host"))?;
        let target = target(uri.path_and_query());
        let target = target.ok_or_else(|| unfetchable("the path cannot be sent"))?;
        let authority = match uri.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };

        let mut headers = Fields::default();
        headers.append("Host", &authority);
        if !headers.0.contains_key("host") {
            return Err(unfetchable("the host cannot be sent"));
        }
        headers.append("User-Agent", &config.user_agent);
        headers.append_some("From", config.from.as_deref());
        for (name, value) in config.headers.iter().filter(|(_, value)| !value.is_empty()) {
            headers.append(name, value);
        }
        headers.append_some("Accept-Encoding", config.accept_encoding.as_deref());
        headers.append_some("Referer", referer(request).as_deref());
        headers.append_some("If-None-Match", request.if_none_match.as_deref());
        headers.append_some("If-Modified-Since", request.if_modified_since.as_deref());
        if !config.keep_alive {
            headers.append("Connection", "close");
        }
        headers.replace(&request.headers);
        if let Some(body) = &request.body {
            headers.append_some(
                "Content-Type",
                Some(body.content_type.as_str()).filter(|it| !it.is_empty()),
            );
        }
        Ok(Prepared {
            server: Server {
                tls,
                host: host.to_owned(),
                port: uri.port_or_default(),
            },
            method: match (&request.method, &request.body) {
                (Some(method), _) => method.clone(),
                (None, Some(_)) => Method::POST,
                (None, None) => Method::GET,
            },
            target,
            headers: headers.0,
            body: match &request.body {
                Some(body) => body.content.clone(),
                None => Bytes::new(),
            },
            tap: request.tap.clone(),
            received: request.received.clone(),
        })
    }

    /// The receiver of the payload.
    pub(crate) fn tap(&self) -> Option<TapEnd> {
        self.tap.as_ref().map(PayloadTap::end)
    }

    /// The body; empty if there is none.
    pub(crate) fn content(&self) -> Bytes {
        self.body.clone()
    }

    pub(crate) fn message(&self) -> ::http::Request<Full<Bytes>> {
        let mut message = ::http::Request::new(Full::new(self.body.clone()));
        *message.method_mut() = self.method.clone();
        *message.uri_mut() = self.target.clone();
        *message.headers_mut() = self.headers.clone();
        message
    }
}

/// Checks that the headers of the configuration can be sent.
pub(crate) fn check_headers(config: &FetcherConfig) -> Result<(), FetcherBuildError> {
    let own = [
        ("User-Agent", Some(&config.user_agent)),
        ("From", config.from.as_ref()),
        ("Accept-Encoding", config.accept_encoding.as_ref()),
    ];
    let own = own.into_iter().filter_map(|(n, v)| Some((n, v?)));
    let given = config.headers.iter().map(|(n, v)| (n.as_str(), v));
    for (name, value) in own.chain(given) {
        if field(name, value).is_none() {
            return Err(FetcherBuildError::Header {
                name: name.to_owned(),
                value: value.clone(),
            });
        }
    }
    Ok(())
}

/// Header fields in the order in which they are sent.
#[derive(Default)]
struct Fields(HeaderMap);

impl Fields {
    /// Appends a field. A value that cannot be sent, such as a stored validator with control characters, is left out.
    fn append(&mut self, name: &str, value: &str) {
        if let Some((name, value)) = field(name, value) {
            self.0.append(name, value);
        }
    }

    fn append_some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.append(name, value);
        }
    }

    /// Replaces all fields of the given names; a field without a value is removed.
    fn replace(&mut self, fields: &[(String, String)]) {
        let parsed = || fields.iter().filter_map(|(n, v)| field(n, v));
        for (name, _) in parsed() {
            self.0.remove(name);
        }
        for (name, value) in parsed().filter(|(_, value)| !value.is_empty()) {
            self.0.append(name, value);
        }
    }
}

/// Parses a field. Values are stored with bytes read as ISO-8859-1, and are sent back the same way if they fit it.
fn field(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let latin1: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(c).ok()).collect();
    let bytes = latin1.unwrap_or_else(|| value.as_bytes().to_vec());
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    Some((name, HeaderValue::from_bytes(&bytes).ok()?))
}

/// The target in origin form. Bytes that hyper refuses although browsers send them are percent-encoded.
fn target(path_and_query: &str) -> Option<Target> {
    let given = match path_and_query.starts_with('/') {
        true => path_and_query.to_owned(),
        false => format!("/{path_and_query}"),
    };
    let parsed = given
        .parse::<PathAndQuery>()
        .or_else(|_| encoded(&given).parse());
    let mut parts = ::http::uri::Parts::default();
    parts.path_and_query = Some(parsed.ok()?);
    Target::from_parts(parts).ok()
}

fn encoded(path_and_query: &str) -> String {
    let mut text = String::with_capacity(path_and_query.len());
    for byte in path_and_query.bytes() {
        match byte {
            0..=b' '
            | 0x7f..
            | b'"'
            | b'#'
            | b'<'
            | b'>'
            | b'\\'
            | b'^'
            | b'`'
            | b'{'
            | b'|'
            | b'}' => {
                text.push_str(&format!("%{byte:02X}"));
            }
            byte => text.push(char::from(byte)),
        }
    }
    text
}

/// The referrer. Never from https to http, and without user information (RFC 9110 §10.1.3).
fn referer(request: &Request) -> Option<String> {
    let referer: &Uri = request.referer.as_ref()?;
    let downgrade = referer.scheme() == "https" && request.uri.scheme() != "https";
    if downgrade || !referer.is_http() {
        return None;
    }
    Some(match referer.userinfo() {
        Some(userinfo) => referer.as_str().replacen(&format!("{userinfo}@"), "", 1),
        None => referer.as_str().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path_and_query: &str, expected: &str) {
        let target = target(path_and_query).unwrap();
        assert_eq!(target.to_string(), expected, "{path_and_query}");
    }

    #[test]
    fn targets_are_sent_as_written() {
        for same in [
            "/",
            "/a?b=c",
            "//a//?",
            "/a%20b",
            "/?q=a|b",
            "/a;b=c/d,e",
            "/[x]?y[]=%zz",
            "/?a=b?c/d",
        ] {
            check(same, same);
        }
        check("", "/");
        check("?a", "/?a");
    }

    #[track_caller]
    fn refers(from: &str, to: &str, expected: Option<&str>) {
        let mut request = Request::new(Uri::parse(to).unwrap(), Vec::new());
        request.referer = Some(Uri::parse(from).unwrap());
        assert_eq!(referer(&request).as_deref(), expected, "{from} {to}");
    }

    #[test]
    fn referers_have_no_secrets() {
        let (http, https) = ("http://a.example/x", "https://a.example/x");
        refers(http, http, Some(http));
        refers(http, https, Some(http));
        refers(https, https, Some(https));
        refers(https, http, None);
        refers("dns:a.example", http, None);
        refers(
            "http://u:p@a.example/u:p@",
            http,
            Some("http://a.example/u:p@"),
        );
    }

    #[test]
    fn characters_that_hyper_refuses_are_encoded() {
        check("/a`b", "/a%60b");
        check("/a b?\u{7f}", "/a%20b?%7F");
    }
}
