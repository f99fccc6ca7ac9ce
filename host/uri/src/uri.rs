//! The exact normalised URI, which is fetched, recorded and shown.
//!
//! Parsing is that of browsers (WHATWG URL, through the `url` crate), because pages are written for browsers. A crawler adds its
//! own rules: only schemes that can be fetched, no fragment, hosts that can exist, upper-case percent-encodings, a maximum
//! length. Every refusal has its reason.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::{Host, ParseError, Position, Url};

use crate::host::{self, HostFault};
use crate::percent::{self, upper_hex};
use crate::scheme::{Beginning, Scheme, beginning};

/// Longest URI in bytes, both as written and as normalised. Longer ones are refused with [`UriError::TooLong`].
/// RFC 9110 §4.1 requires at least 8000 octets; the limit of the store's keys is just above this.
pub const URI_BYTES_MAX: usize = 64 * 1024;

/// Longest piece of refused text that an error quotes, in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// A normalised absolute URI of a scheme that can be fetched (http, https, ftp, ftps, dns, whois).
///
/// Its text is ASCII without blanks, control characters and fragment. The host is lower-case (IDNs as UTS 46 A-labels). The
/// scheme's default port and dot segments are removed, an empty path reads `/`, and percent-encodings are upper-case. Userinfo
/// stays: the URI is fetched as it was found. Order, equality and hash are those of the text.
#[derive(Clone)]
pub struct Uri {
    scheme: Scheme,
    form: Form,
}

/// Encodes the text of a query in the character encoding of its page.
pub type EncodeQuery<'e> = &'e dyn Fn(&str) -> Cow<'_, [u8]>;

/// The reason why a crawl cannot use a text as URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// An absolute URI of a scheme that cannot be fetched, such as `mailto` or `javascript`. The page has no error.
    #[error("scheme {0:?} is not crawled")]
    Scheme(String),
    /// A relative reference in place of an absolute URI.
    #[error("{0:?} has no scheme")]
    NoScheme(String),
    /// More than [`URI_BYTES_MAX`] bytes, as written or after percent-encoding.
    #[error("{length} bytes, more than {max}")]
    TooLong {
        /// Its length.
        length: usize,
        /// The maximum length.
        max: usize,
    },
    /// The host cannot exist.
    #[error("host {host:?} cannot exist")]
    Host {
        /// The host, lower-case.
        host: String,
        /// The error in it.
        #[source]
        fault: HostFault,
    },
    /// A seed that reads `http//example.org` or `http://http://example.org`, whose host would be `http`.
    #[error("{text:?} has a scheme for its host, write {meant:?}")]
    SchemeAsHost {
        /// The start of the seed.
        text: String,
        /// The start of the URI that was probably intended.
        meant: String,
    },
    /// Port 0, on which no server can listen.
    #[error("port 0")]
    PortZero,
    /// The parser of the WHATWG standard refuses the text.
    #[error("invalid URI {text:?}")]
    Syntax {
        /// The start of the text.
        text: String,
        /// The parser's error.
        #[source]
        source: ParseError,
    },
    /// A relative reference cannot be resolved against a `dns:` or `whois:` URI.
    #[error("{0} is not a base for a reference")]
    Base(Box<Uri>),
}

#[derive(Clone)]
enum Form {
    /// http, https and ftp: the special schemes of the standard.
    Special(Url),
    /// ftps and `whois://server/…`, which follow the rules of special schemes although the standard does not list them as such.
    /// Also hosts that the `url` crate refuses, although the standard allows them (see [`parse_url`]).
    NonSpecial(Box<NonSpecial>),
    /// `dns:host` and `whois:query`.
    Opaque(Box<str>),
}

#[derive(Clone)]
struct NonSpecial {
    text: Box<str>,
    /// The same URI in a form that the `url` crate accepts. Its scheme, host and port are meaningless.
    url: Url,
    port: Option<u16>,
}

impl Uri {
    /// Parses an absolute URI. Blanks and control characters around it, and tabs and line ends inside it, are dropped.
    ///
    /// # Errors
    /// [`UriError`], with the reason.
    pub fn parse(text: &str) -> Result<Uri, UriError> {
        let text = trim(text);
        match beginning(text) {
            Beginning::Known(scheme, rest) => Uri::absolute(scheme, text, rest),
            Beginning::Unknown(name) => Err(UriError::Scheme(quoted(&name))),
            Beginning::Relative => Err(UriError::NoScheme(quoted(text))),
        }
    }

    /// Parses a seed as operators write it: like [`Uri::parse`], but `example.org/path` means `http://example.org/path`.
    ///
    /// # Errors
    /// [`UriError`], with the reason; [`UriError::SchemeAsHost`] for `http//example.org`.
    pub fn parse_seed(text: &str) -> Result<Uri, UriError> {
        let uri = Uri::parse(&with_scheme(trim(text)))?;
        let host = uri.host().unwrap_or_default();
        if Scheme::named(host).is_some() && uri.path().starts_with("//") {
            return Err(UriError::SchemeAsHost {
                text: quoted(text),
                meant: quoted(&format!("{host}:{}", uri.path_and_query())),
            });
        }
        Ok(uri)
    }

    /// Resolves a reference from a page (with entities decoded) against this URI and normalises it. The fragment is dropped, so
    /// `#top` resolves to this URI itself.
    ///
    /// # Errors
    /// [`UriError`], with the reason.
    pub fn join(&self, reference: &str) -> Result<Uri, UriError> {
        self.resolve(reference, None)
    }

    /// Like [`Uri::join`], for pages that are not in UTF-8: browsers encode the query of a link in the page's own
    /// character encoding. `encode_query` gets the text of the query and returns its bytes.
    ///
    /// # Errors
    /// [`UriError`], with the reason.
    pub fn join_encoded(
        &self,
        reference: &str,
        encode_query: EncodeQuery<'_>,
    ) -> Result<Uri, UriError> {
        self.resolve(reference, Some(encode_query))
    }

    /// `dns:` and a host, the URI of a scheduled and archived look-up. The host is that of a [`Uri`].
    #[must_use]
    pub fn dns(host: &str) -> Uri {
        let mut text = String::with_capacity(4 + host.len());
        text.push_str("dns:");
        text.push_str(host.strip_suffix('.').unwrap_or(host));
        text.make_ascii_lowercase();
        Uri {
            scheme: Scheme::Dns,
            form: Form::Opaque(text.into()),
        }
    }

    /// The URI of the robots.txt for this URI's server (RFC 9309 §2.3). `None` for schemes other than http and https.
    #[must_use]
    pub fn robots_txt(&self) -> Option<Uri> {
        if !self.is_http() {
            return None;
        }
        Uri::parse(&format!("{}://{}/robots.txt", self.scheme(), self.server())).ok()
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.form {
            Form::Special(url) => url.as_str(),
            Form::NonSpecial(non_special) => &non_special.text,
            Form::Opaque(text) => text,
        }
    }

    /// The scheme in lower case.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        self.scheme.as_str()
    }

    /// Returns `true` if it is fetched over HTTP: http or https.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self.scheme, Scheme::Http | Scheme::Https)
    }

    /// The host: a name, an IPv4 address, or an IPv6 address in brackets. For `dns:` the host of the look-up; `None` for
    /// `whois:query`.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        match &self.form {
            Form::Special(url) => url.host_str(),
            Form::NonSpecial(non_special) => Some(match (self.server(), non_special.port) {
                (server, None) => server,
                (server, Some(_)) => server.rsplit_once(':').map_or(server, |(host, _)| host),
            }),
            Form::Opaque(text) => match self.scheme {
                Scheme::Dns => text.strip_prefix("dns:"),
                _ => None,
            },
        }
    }

    /// The port, if it is not the scheme's default.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match &self.form {
            Form::Special(url) => url.port(),
            Form::NonSpecial(non_special) => non_special.port,
            Form::Opaque(_) => None,
        }
    }

    /// The port for the connection.
    #[must_use]
    pub fn port_or_default(&self) -> u16 {
        self.port().unwrap_or_else(|| self.scheme.default_port())
    }

    /// The text between `//` and the path: userinfo, host, port. Empty for `dns:` and `whois:query`.
    #[must_use]
    pub fn authority(&self) -> &str {
        let text = self.as_str();
        match &self.form {
            Form::Opaque(_) => "",
            Form::Special(_) | Form::NonSpecial(_) => {
                &text[self.scheme().len() + 3..text.len() - self.path_and_query().len()]
            }
        }
    }

    /// Host and port.
    fn server(&self) -> &str {
        let authority = self.authority();
        authority
            .rsplit_once('@')
            .map_or(authority, |(_, server)| server)
    }

    /// User name and password as written (`user:password`), without the `@`.
    #[must_use]
    pub fn userinfo(&self) -> Option<&str> {
        self.authority()
            .rsplit_once('@')
            .map(|(userinfo, _)| userinfo)
    }

    /// The URI without user name and password. Operators configure credentials in settings. Those in a link would put a password
    /// into every log.
    #[must_use]
    pub fn without_userinfo(self) -> Uri {
        let Some(userinfo) = self.userinfo() else {
            return self;
        };
        let text = self.as_str().replacen(&format!("{userinfo}@"), "", 1);
        Uri::parse(&text).unwrap_or(self)
    }

    /// The path; never empty with an authority. For `dns:` and `whois:query` the text after the colon.
    #[must_use]
    pub fn path(&self) -> &str {
        match &self.form {
            Form::Special(url) => url.path(),
            Form::NonSpecial(non_special) => non_special.url.path(),
            Form::Opaque(text) => &text[self.scheme().len() + 1..],
        }
    }

    /// The query without its `?`. Empty and absent are different.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        match &self.form {
            Form::Special(url) => url.query(),
            Form::NonSpecial(non_special) => non_special.url.query(),
            Form::Opaque(_) => None,
        }
    }

    /// The same http, https or ftp URI with another path, in which `^` is not encoded.
    pub(crate) fn with_path(mut self, path: &str) -> Uri {
        if let Form::Special(url) = &mut self.form {
            url.set_path(path);
        }
        self
    }

    /// Path and, if there is one, `?` and the query: the request target of HTTP.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        match &self.form {
            Form::Special(url) => &url[Position::BeforePath..],
            Form::NonSpecial(non_special) => &non_special.url[Position::BeforePath..],
            Form::Opaque(_) => self.path(),
        }
    }

    /// The host's public suffix and one label more (`example.co.uk`). `None` for addresses and bare suffixes.
    #[must_use]
    pub fn registrable_domain(&self) -> Option<&str> {
        host::registrable(self.host()?)
    }

    /// The SURT form for comparison with scope prefixes (glossary): `http://(org,example,www,:8080)/path?query`,
    /// lower-case, `https` read as `http`, without userinfo. URIs without an authority (`dns:`) are only made lower-case.
    #[must_use]
    pub fn surt(&self) -> String {
        let (Form::Special(_) | Form::NonSpecial(_), Some(host)) = (&self.form, self.host()) else {
            return self.as_str().to_ascii_lowercase();
        };
        let mut surt = String::with_capacity(self.as_str().len() + 4);
        surt.push_str(match self.scheme {
            Scheme::Https => "http",
            other => other.as_str(),
        });
        surt.push_str("://(");
        host::push_reversed(&mut surt, host);
        self.push_port(&mut surt, ':');
        surt.push(')');
        surt.push_str(self.path_and_query());
        surt.make_ascii_lowercase();
        surt
    }

    /// The key of this URI's queue under the default policy: `org,example,www,`, with a port other than the scheme's default
    /// `org,example,www,#8080`. A `dns:` URI has the key of the host of its look-up; all `whois` URIs share `whois`.
    #[must_use]
    pub fn surt_authority(&self) -> String {
        match (self.scheme, self.host()) {
            (Scheme::Whois, _) | (_, None) => self.scheme().to_owned(),
            (_, Some(host)) => {
                let mut key = String::with_capacity(host.len() + 8);
                host::push_reversed(&mut key, host);
                self.push_port(&mut key, '#');
                key
            }
        }
    }

    pub(crate) fn push_port(&self, out: &mut String, separator: char) {
        if let Some(port) = self.port() {
            out.push(separator);
            out.push_str(&port.to_string());
        }
    }

    /// Returns `true` if the URI has neither slashes nor authority: `dns:host`, `whois:query`.
    pub(crate) fn is_opaque(&self) -> bool {
        matches!(self.form, Form::Opaque(_))
    }

    fn resolve(
        &self,
        reference: &str,
        encode_query: Option<EncodeQuery<'_>>,
    ) -> Result<Uri, UriError> {
        let reference = trim(reference);
        let (scheme, rest) = match beginning(reference) {
            Beginning::Unknown(name) => return Err(UriError::Scheme(quoted(&name))),
            Beginning::Known(scheme, rest) => (Some(scheme), rest),
            Beginning::Relative => (None, reference),
        };
        let target = scheme.unwrap_or(self.scheme);
        check_length(reference.len())?;
        match (&self.form, target) {
            (Form::Special(base), Scheme::Http | Scheme::Https | Scheme::Ftp) => {
                let joined = Url::options()
                    .base_url(Some(base))
                    .encoding_override(encode_query)
                    .parse(reference);
                match joined {
                    Ok(url) => Uri::special(target, url),
                    Err(source) => Uri::repaired(target, reference, rest, source),
                }
            }
            (Form::NonSpecial(base), _) if scheme.is_none() && !begins_with_slashes(rest) => {
                let joined = Url::options()
                    .base_url(Some(&base.url))
                    .encoding_override(encode_query)
                    .parse(rest);
                let url = joined.map_err(|source| syntax(rest, source))?;
                Uri::non_special(target, url, self.host(), base.port)
            }
            (Form::Opaque(_), _) if scheme.is_none() => Err(UriError::Base(Box::new(self.clone()))),
            _ => Uri::absolute(target, reference, rest),
        }
    }

    /// Parses an absolute URI. `text` begins with the scheme (or with `//`); `rest` is the text after its colon.
    fn absolute(scheme: Scheme, text: &str, rest: &str) -> Result<Uri, UriError> {
        check_length(text.len())?;
        match scheme {
            Scheme::Http | Scheme::Https | Scheme::Ftp => match Url::parse(text) {
                Ok(url) => Uri::special(scheme, url),
                Err(source) => Uri::repaired(scheme, text, rest, source),
            },
            Scheme::Dns => Uri::dns_of(rest),
            Scheme::Whois if !begins_with_slashes(rest) => Uri::whois_of(rest),
            Scheme::Ftps | Scheme::Whois => {
                let as_http = |name: &str| {
                    parse_url(&format!("{name}:{rest}")).map_err(|source| syntax(text, source))
                };
                let (url, host) = as_http("http")?;
                // Read as http, port 80 is dropped as the default one; read as https, it is visible.
                let port = match url.port() {
                    None => as_http("https")?.0.port().filter(|port| *port == 80),
                    port => port,
                };
                Uri::non_special(scheme, url, host.as_deref(), port)
            }
        }
    }

    /// Parses again after a refusal. It accepts hosts that only the `url` crate refuses ([`parse_url`]), and two unambiguous
    /// typing errors. One is encoded blanks at the end of a host (`http://example.org%20/`). The other is superfluous slashes,
    /// which browsers ignore in a reference too (`///example.org/`, WHATWG URL §4.4 "special authority ignore slashes").
    fn repaired(
        scheme: Scheme,
        written: &str,
        rest: &str,
        refusal: ParseError,
    ) -> Result<Uri, UriError> {
        let start = rest.find(|c| !is_slash(c)).unwrap_or(rest.len());
        let after = &rest[start..];
        let end = after
            .find(|c| is_slash(c) || c == '?' || c == '#')
            .unwrap_or(after.len());
        let mut authority = &after[..end];
        while let Some(shorter) = authority
            .strip_suffix("%20")
            .or(authority.strip_suffix(' '))
        {
            authority = shorter;
        }
        if start < 2 {
            return Err(syntax(written, refusal));
        }
        let text = format!("{}://{authority}{}", scheme.as_str(), &after[end..]);
        match parse_url(&text).map_err(|source| syntax(written, source))? {
            (url, None) => Uri::special(scheme, url),
            (url, Some(host)) => {
                let port = url.port();
                Uri::non_special(scheme, url, Some(&host), port)
            }
        }
    }

    fn special(scheme: Scheme, url: Url) -> Result<Uri, UriError> {
        let url = with_own_rules(url)?;
        // A reference such as `//host/` or `page` keeps the base's scheme, which is `scheme`.
        debug_assert_eq!(url.scheme(), scheme.as_str());
        if url.port() == Some(0) {
            return Err(UriError::PortZero);
        }
        Ok(Uri {
            scheme,
            form: Form::Special(url),
        })
    }

    /// Builds a URI of the form `NonSpecial`. `host` is set if the URI's host differs from that of `url`.
    fn non_special(
        scheme: Scheme,
        url: Url,
        host: Option<&str>,
        port: Option<u16>,
    ) -> Result<Uri, UriError> {
        let url = with_own_rules(url)?;
        let port = port.filter(|port| *port != scheme.default_port());
        if port == Some(0) {
            return Err(UriError::PortZero);
        }
        let userinfo = &url[Position::BeforeUsername..Position::BeforeHost];
        let host = host.unwrap_or(&url[Position::BeforeHost..Position::AfterHost]);
        let path_and_query = &url[Position::BeforePath..];
        let scheme_name = scheme.as_str();
        let text = match port {
            None => format!("{scheme_name}://{userinfo}{host}{path_and_query}"),
            Some(port) => format!("{scheme_name}://{userinfo}{host}:{port}{path_and_query}"),
        };
        check_length(text.len())?;
        let non_special = NonSpecial {
            text: text.into(),
            url,
            port,
        };
        Ok(Uri {
            scheme,
            form: Form::NonSpecial(Box::new(non_special)),
        })
    }

    fn dns_of(host: &str) -> Result<Uri, UriError> {
        let host = host.split('#').next().unwrap_or_default();
        let parsed = match Host::parse(host) {
            Err(source) => Host::Domain(unchecked_name(host).ok_or_else(|| syntax(host, source))?),
            parsed => parsed.map_err(|source| syntax(host, source))?,
        };
        check_host(&parsed)?;
        Ok(Uri::dns(&parsed.to_string()))
    }

    fn whois_of(query: &str) -> Result<Uri, UriError> {
        let query = query.split('#').next().unwrap_or_default();
        let query = query.replace(['\t', '\n', '\r'], "");
        if query.is_empty() {
            return Err(syntax("whois:", ParseError::EmptyHost));
        }
        let query = match Host::parse(&query) {
            Ok(Host::Domain(name)) if host::check_name(&name).is_ok() => name,
            // Other queries that a registry may understand.
            _ => {
                let mut out = String::with_capacity(query.len());
                percent::push_encoded(&mut out, query.bytes(), |byte| !byte.is_ascii_graphic());
                upper_hex(&out).into_owned()
            }
        };
        check_length("whois:".len() + query.len())?;
        Ok(Uri {
            scheme: Scheme::Whois,
            form: Form::Opaque(format!("whois:{query}").into()),
        })
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.as_str())
    }
}

impl PartialEq for Uri {
    fn eq(&self, other: &Uri) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Uri {}

impl PartialOrd for Uri {
    fn partial_cmp(&self, other: &Uri) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Uri {
    fn cmp(&self, other: &Uri) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Uri {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl AsRef<str> for Uri {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Uri, UriError> {
        Uri::parse(text)
    }
}

impl Serialize for Uri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Uri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Uri::parse(&text).map_err(D::Error::custom)
    }
}

/// Removes what often surrounds URIs in hand-written pages: control characters and all kinds of blanks, including no-break space
/// and byte order mark.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c <= ' ' || c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}')
    })
}

/// Puts `http://` before a seed that was written without a scheme. `example.org:8080/` is a host and a port,
/// `mailto:a@b` is not.
pub(crate) fn with_scheme(seed: &str) -> Cow<'_, str> {
    let has_scheme = match beginning(seed) {
        Beginning::Known(..) => true,
        Beginning::Relative => false,
        Beginning::Unknown(name) => {
            let rest = seed.split_once(':').map_or("", |(_, rest)| rest);
            rest.starts_with("//")
                || (!name.contains('.') && !rest.starts_with(|c: char| c.is_ascii_digit()))
        }
    };
    if has_scheme {
        Cow::Borrowed(seed)
    } else {
        Cow::Owned(format!("http://{}", seed.trim_start_matches(is_slash)))
    }
}

/// Parses like the `url` crate, but accepts an ASCII host with a label such as `xn--a`, which encodes nothing. The URL Standard
/// allows them (whatwg/url#914), the crate not yet (servo/rust-url#1135). The second value is then the host; the `Url` has a
/// replacement of the same length.
fn parse_url(text: &str) -> Result<(Url, Option<String>), ParseError> {
    let refusal = match Url::parse(text) {
        Ok(url) => return Ok((url, None)),
        Err(refusal) => refusal,
    };
    let text = text.replace(['\t', '\n', '\r'], "");
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(refusal);
    };
    let authority = rest.trim_start_matches(is_slash);
    let (authority, path) = authority.split_at(
        authority
            .find(|c| is_slash(c) || matches!(c, '?' | '#'))
            .unwrap_or(authority.len()),
    );
    let (userinfo, server) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let (host, port) = server.split_at(server.find(':').unwrap_or(server.len()));
    let Some(name) = unchecked_name(host) else {
        return Err(refusal);
    };
    let accepted = name.replace("xn--", "xn__");
    let url = Url::parse(&format!("{scheme}://{userinfo}{accepted}{port}{path}"))?;
    Ok((url, Some(name)))
}

/// An ASCII host with a label that begins with `xn--`, decoded and lower-case.
fn unchecked_name(host: &str) -> Option<String> {
    let name = percent::decoded_once(host).to_ascii_lowercase();
    let is_name = host::check_name(&name).is_ok();
    (is_name && name.split('.').any(|label| label.starts_with("xn--"))).then_some(name)
}

/// Applies the rules beyond the standard: no fragment, a host that can exist, upper-case percent-encodings, the length. It also
/// encodes `^` in a path, which the `url` crate does not do yet.
fn with_own_rules(mut url: Url) -> Result<Url, UriError> {
    if url.fragment().is_some() {
        url.set_fragment(None);
    }
    match url.host() {
        Some(host) => check_host(&host)?,
        None => check_host(&Host::Domain(""))?,
    }
    let mut path = upper_hex(url.path());
    if path.contains('^') {
        path = Cow::Owned(path.replace('^', "%5E"));
    }
    if let Cow::Owned(path) = path {
        url.set_path(&path);
    }
    if let Some(Cow::Owned(query)) = url.query().map(upper_hex) {
        url.set_query(Some(&query));
    }
    check_length(url.as_str().len())?;
    Ok(url)
}

fn check_host<S: AsRef<str>>(host: &Host<S>) -> Result<(), UriError> {
    let Host::Domain(name) = host else {
        return Ok(());
    };
    host::check_name(name.as_ref()).map_err(|fault| UriError::Host {
        host: quoted(name.as_ref()),
        fault,
    })
}

fn check_length(length: usize) -> Result<(), UriError> {
    if length > URI_BYTES_MAX {
        return Err(UriError::TooLong {
            length,
            max: URI_BYTES_MAX,
        });
    }
    Ok(())
}

fn is_slash(character: char) -> bool {
    matches!(character, '/' | '\\')
}

/// Returns `true` if an authority follows, as in browsers: two slashes of either kind, ignoring tabs and line ends.
fn begins_with_slashes(text: &str) -> bool {
    let mut characters = text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    characters.next().is_some_and(is_slash) && characters.next().is_some_and(is_slash)
}

fn syntax(text: &str, source: ParseError) -> UriError {
    UriError::Syntax {
        text: quoted(text),
        source,
    }
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Uri::parse(text).unwrap().as_str(), expected, "{text:?}");
    }

    #[track_caller]
    fn check_join(base: &str, reference: &str, expected: &str) {
        let joined = Uri::parse(base).unwrap().join(reference);
        assert_eq!(joined.unwrap().as_str(), expected, "{reference:?}");
    }

    #[track_caller]
    fn check_refused(text: &str, error: &UriError) {
        assert_eq!(&Uri::parse(text).unwrap_err(), error, "{text:?}");
    }

    #[test]
    fn parsing_normalises() {
        check("HTTP://Example.ORG", "http://example.org/");
        check("http://example.org:80/a/./b/../c", "http://example.org/a/c");
        check("https://example.org:80/", "https://example.org:80/");
        check(
            "http://example.org/%c3%A4%zz%e",
            "http://example.org/%C3%A4%zz%e",
        );
        check(
            "http://example.org/ä?ö=%2f#x",
            "http://example.org/%C3%A4?%C3%B6=%2F",
        );
        check("http://bücher.example/", "http://xn--bcher-kva.example/");
        check("http://faß.example/", "http://xn--fa-hia.example/");
        check("http:\\\\example.org\\a", "http://example.org/a");
        check(
            "\u{a0}\u{feff}http://exa\tmple.org/a\nb \u{2028}",
            "http://example.org/ab",
        );
        check("http://u:p@example.org/", "http://u:p@example.org/");
        check("http://example.org/?", "http://example.org/?");
        check("http://0x7f.1/", "http://127.0.0.1/");
        check("http://example.org%20%20/a", "http://example.org/a");
        check("http://example.org%20", "http://example.org/");
        check("http://example.org/a^b?c^d", "http://example.org/a%5Eb?c^d");
        check("ftps://example.org/^", "ftps://example.org/%5E");
    }

    #[test]
    fn schemes_outside_the_standard_follow_its_rules() {
        check("ftps://Example.org:990/a/../b", "ftps://example.org/b");
        check("ftps://u@example.org:21", "ftps://u@example.org:21/");
        check("ftps://example.org:80/%c3#x", "ftps://example.org:80/%C3");
        check(
            "whois://Whois.example.org:43/A",
            "whois://whois.example.org/A",
        );
        check("whois:Example.org", "whois:example.org");
        check("whois:AS 64496", "whois:AS%2064496");
        check("whois:64496", "whois:64496");
        check("dns:Example.ORG", "dns:example.org");
        check("DNS:bücher.example#x", "dns:xn--bcher-kva.example");
        check_join(
            "ftps://example.org:21/a/b?c",
            "../d",
            "ftps://example.org:21/d",
        );
        check_join(
            "ftps://example.org:80/a/b",
            "//other.org/x",
            "ftps://other.org/x",
        );
        check_join(
            "ftps://example.org/a/b",
            "http://other.org:990/x",
            "http://other.org:990/x",
        );
        check_join(
            "dns:example.org",
            "http://example.org/",
            "http://example.org/",
        );
    }

    #[test]
    fn labels_that_encode_nothing_are_accepted() {
        // whatwg/url#914: an ASCII host never fails for its A-labels.
        for (text, uri) in [
            ("http://xn--a/", "http://xn--a/"),
            (
                "HTTPS://U:P@XN--A.B.example:8443/c?d#e",
                "https://U:P@xn--a.b.example:8443/c?d",
            ),
            ("http://2.xn--mgbb:80/", "http://2.xn--mgbb/"),
            ("ftp://%78n--a\n.example:21/^", "ftp://xn--a.example/%5E"),
            ("ftps://xn--a.example:990/b", "ftps://xn--a.example/b"),
            ("http:\\\\xn--a\\b", "http://xn--a/b"),
            ("dns:xn--a.example", "dns:xn--a.example"),
        ] {
            let parsed = Uri::parse(text).unwrap();
            assert_eq!(parsed.as_str(), uri, "{text}");
            assert_eq!(Uri::parse(uri).unwrap(), parsed);
            assert_eq!(Uri::from_key(&parsed.key()).unwrap(), parsed);
        }
        let page = Uri::parse("https://u@xn--a.example:8443/c/d?e").unwrap();
        assert_eq!(
            (page.host(), page.port()),
            (Some("xn--a.example"), Some(8443))
        );
        assert_eq!((page.path(), page.query()), ("/c/d", Some("e")));
        assert_eq!(page.surt(), "http://(example,xn--a,:8443)/c/d?e");
        assert_eq!(
            page.robots_txt().unwrap().as_str(),
            "https://xn--a.example:8443/robots.txt"
        );
        for (reference, uri) in [
            ("f?g", "https://u@xn--a.example:8443/c/f?g"),
            ("//xn--b.example/", "https://xn--b.example/"),
            ("http://example.org/", "http://example.org/"),
        ] {
            assert_eq!(page.join(reference).unwrap().as_str(), uri);
        }
        check_join("http://example.org/", "//xn--a/", "http://xn--a/");
        // Other errors in a host are still refused.
        for text in [
            "http://xn--a.1/",
            "http://xn--a<b/",
            "http://xn--a.ü\u{ad}\u{200d}/",
        ] {
            assert!(Uri::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn references_resolve_as_in_browsers() {
        const BASE: &str = "http://a/b/c/d;p?q";
        for (reference, expected) in [
            ("", "http://a/b/c/d;p?q"),
            ("#s", "http://a/b/c/d;p?q"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("//g", "http://g/"),
            ("///g", "http://g/"),
            ("../../../g", "http://a/g"),
            ("g/../h", "http://a/b/c/h"),
            ("http:g", "http://a/b/c/g"),
            ("https:g", "https://g/"),
            ("\\\\g\\h", "http://g/h"),
            (" g\n h ", "http://a/b/c/g%20h"),
            (":foo", "http://a/b/c/:foo"),
            ("dns:g", "dns:g"),
        ] {
            check_join(BASE, reference, expected);
        }
    }

    #[test]
    fn a_query_is_encoded_as_its_page_is() {
        let base = Uri::parse("http://example.org/").unwrap();
        fn latin1(text: &str) -> Cow<'_, [u8]> {
            text.chars().map(|c| c as u8).collect()
        }
        let joined = base.join_encoded("/ä?ä", &latin1).unwrap();
        assert_eq!(joined.as_str(), "http://example.org/%C3%A4?%E4");
    }

    #[test]
    fn every_refusal_has_a_reason() {
        check_refused("mailto:a@b", &UriError::Scheme("mailto".into()));
        check_refused("java\nscript:x", &UriError::Scheme("javascript".into()));
        check_refused("/a", &UriError::NoScheme("/a".into()));
        check_refused("http://example.org:0/", &UriError::PortZero);
        check_refused(
            "http://a..b/",
            &UriError::Host {
                host: "a..b".into(),
                fault: HostFault::EmptyLabel,
            },
        );
        check_refused(
            "http://",
            &UriError::Syntax {
                text: "http://".into(),
                source: ParseError::EmptyHost,
            },
        );
        let long = format!("http://a/{}", "ä".repeat(20_000));
        let error = UriError::TooLong {
            length: 9 + 120_000,
            max: URI_BYTES_MAX,
        };
        check_refused(&long, &error);
        let dns = Uri::dns("example.org");
        assert_eq!(
            dns.join("a"),
            Err(UriError::Base(Box::new(Uri::dns("example.org"))))
        );
    }

    #[test]
    fn the_parts_of_a_uri_are_read_from_its_text() {
        let uri = Uri::parse("https://u:p@www.example.co.uk:8443/a/b?c=d").unwrap();
        assert_eq!(uri.scheme(), "https");
        assert_eq!(uri.authority(), "u:p@www.example.co.uk:8443");
        assert_eq!(uri.userinfo(), Some("u:p"));
        assert_eq!(uri.host(), Some("www.example.co.uk"));
        assert_eq!((uri.port(), uri.port_or_default()), (Some(8443), 8443));
        assert_eq!((uri.path(), uri.query()), ("/a/b", Some("c=d")));
        assert_eq!(uri.path_and_query(), "/a/b?c=d");
        assert_eq!(uri.registrable_domain(), Some("example.co.uk"));
        assert_eq!(
            uri.robots_txt().unwrap().as_str(),
            "https://www.example.co.uk:8443/robots.txt"
        );
        assert_eq!(
            uri.without_userinfo().as_str(),
            "https://www.example.co.uk:8443/a/b?c=d"
        );
        let ftp = Uri::parse("ftp://u:p%40@a.org/~u@x/").unwrap();
        assert_eq!(ftp.without_userinfo().as_str(), "ftp://a.org/~u@x/");
        let ftps = Uri::parse("ftps://u@a.org:1/b?c").unwrap();
        assert_eq!(
            (ftps.authority(), ftps.port_or_default(), ftps.robots_txt()),
            ("u@a.org:1", 1, None)
        );
        let dns = Uri::dns("Example.org.");
        assert_eq!(
            (dns.host(), dns.path(), dns.authority()),
            (Some("example.org"), "example.org", "")
        );
    }

    #[test]
    fn surt_forms_and_queue_keys() {
        for (uri, surt, queue) in [
            (
                "https://u@www.Example.org/A?B",
                "http://(org,example,www,)/a?b",
                "org,example,www,",
            ),
            (
                "http://example.org.:8080/",
                "http://(org,example,:8080)/",
                "org,example,#8080",
            ),
            ("http://127.0.0.1/x", "http://(127.0.0.1)/x", "127.0.0.1"),
            ("ftps://a.org/", "ftps://(org,a,)/", "org,a,"),
            (
                "dns:www.example.org",
                "dns:www.example.org",
                "org,example,www,",
            ),
            ("whois:a.org", "whois:a.org", "whois"),
        ] {
            let uri = Uri::parse(uri).unwrap();
            assert_eq!(
                (uri.surt().as_str(), uri.surt_authority().as_str()),
                (surt, queue)
            );
        }
    }

    #[test]
    fn a_seed_may_lack_its_scheme() {
        for (seed, uri) in [
            ("example.org", "http://example.org/"),
            ("example.org:8080/a", "http://example.org:8080/a"),
            ("localhost:8080", "http://localhost:8080/"),
            ("//example.org", "http://example.org/"),
            ("https://example.org", "https://example.org/"),
        ] {
            assert_eq!(Uri::parse_seed(seed).unwrap().as_str(), uri);
        }
        assert_eq!(
            Uri::parse_seed("mailto:a@b"),
            Err(UriError::Scheme("mailto".into()))
        );
        for seed in [
            "http//www.example.org/a?b",
            "http://http://www.example.org/a?b",
        ] {
            assert_eq!(
                Uri::parse_seed(seed),
                Err(UriError::SchemeAsHost {
                    text: seed.into(),
                    meant: "http://www.example.org/a?b".into()
                })
            );
        }
        assert!(
            Uri::parse_seed("http/a").is_ok(),
            "`http` is a valid host name"
        );
    }
}
