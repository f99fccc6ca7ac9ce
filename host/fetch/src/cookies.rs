//! Cookies as browsers keep them (RFC 6265bis §5), one [`Jar`] for each registrable domain.
//!
//! A jar has no clock, socket or file: the crawl keeps jars in its store and passes headers. A `Domain` attribute can name at
//! most a registrable domain. Therefore a jar has all cookies that may be sent to its hosts, and a flood of cookies from one
//! site evicts no others. `SameSite` is ignored: every request of a crawler is its own.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

/// Longest name and value together (§5.6, step 5).
const NAME_AND_VALUE_BYTES_MAX: usize = 4096;

/// Longest value of an attribute (§5.6); a longer one is ignored.
const ATTRIBUTE_BYTES_MAX: usize = 1024;

/// Most cookies of a jar, over all of its hosts: twice what browsers keep for a registrable domain.
const JAR_COOKIES_MAX: usize = 360;

/// Longest Cookie header that is sent: many servers refuse shorter ones already. Cookies beyond it are left out.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Largest year of a date; later years are read as this one.
const YEAR_MAX: i16 = 9000;

/// Longest life of a cookie (§5.5): 400 days.
const LIFE_SECONDS_MAX: i64 = 400 * 24 * 60 * 60;

/// The cookies of one registrable domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jar {
    cookies: Vec<Cookie>,
}

/// One cookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cookie {
    name: String,
    value: String,
    /// Lower-case, without a leading dot.
    domain: String,
    /// Valid for this host only, not for hosts below it.
    host_only: bool,
    path: String,
    secure: bool,
    http_only: bool,
    /// Seconds since 1970; `None` for a cookie that lasts as long as the job.
    expires: Option<i64>,
    /// Milliseconds since 1970. Of two cookies with equally long paths the older one is sent first (§5.7.3).
    created: i64,
    /// Milliseconds since 1970 of the last time it was set.
    set: i64,
}

/// The reason why a cookie is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CookieRefused {
    /// Control characters, or both name and value missing.
    #[error("not a cookie")]
    Malformed,
    /// Longer than 4,096 bytes.
    #[error("longer than {NAME_AND_VALUE_BYTES_MAX} bytes")]
    TooLong,
    /// The host does not belong to the domain, or the domain is a public suffix.
    #[error("the host may not set cookies for this domain")]
    Domain,
    /// A secure cookie, or one that would replace a secure one, over an insecure connection.
    #[error("a secure cookie over an insecure connection")]
    Insecure,
    /// The cookie does not have the attributes that the prefix of its name requires.
    #[error("it lacks attributes that the prefix of its name requires")]
    Prefix,
}

/// An invalid line of a cookie file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct CookieLineProblem {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub problem: &'static str,
}

/// The name of the jar for a host: its registrable domain, or the host itself if it has none.
pub fn jar_name(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    match host_uri(&host).as_ref().and_then(Uri::registrable_domain) {
        Some(domain) => domain.to_owned(),
        None => host,
    }
}

impl Jar {
    /// Stores the cookie of a `Set-Cookie` header of a response from `uri`. `per_host` is the maximum number of cookies of one
    /// domain name.
    ///
    /// # Errors
    /// The reason for the refusal; the jar is unchanged.
    pub fn receive(
        &mut self,
        uri: &Uri,
        header: &str,
        per_host: usize,
        now: Timestamp,
    ) -> Result<(), CookieRefused> {
        let cookie = Cookie::parse(uri, header, now)?;
        if !cookie.secure && uri.scheme() != "https" {
            let shadows = |old: &Cookie| {
                old.secure
                    && old.name == cookie.name
                    && (domain_matches(&old.domain, &cookie.domain)
                        || domain_matches(&cookie.domain, &old.domain))
                    && path_matches(&cookie.path, &old.path)
            };
            if self.cookies.iter().any(shadows) {
                return Err(CookieRefused::Insecure);
            }
        }
        self.put(cookie, per_host, now);
        Ok(())
    }

    /// Stores a cookie in place of the one it replaces. Then it removes expired cookies and, above the limits, the oldest ones.
    pub fn put(&mut self, mut cookie: Cookie, per_host: usize, now: Timestamp) {
        if let Some(place) = self
            .cookies
            .iter()
            .position(|old| old.is_replaced_by(&cookie))
        {
            cookie.created = self.cookies.remove(place).created;
        }
        let domain = cookie.domain.clone();
        self.cookies.push(cookie);
        let now = now.as_second();
        self.cookies.retain(|cookie| !cookie.is_expired(now));
        self.evict(per_host.max(1), |cookie| cookie.domain == domain);
        self.evict(JAR_COOKIES_MAX, |_| true);
    }

    /// Removes surplus cookies of a kind: insecure ones first, among them those set longest ago (§5.6).
    fn evict(&mut self, max: usize, is_counted: impl Fn(&Cookie) -> bool) {
        while self
            .cookies
            .iter()
            .filter(|cookie| is_counted(cookie))
            .count()
            > max
        {
            let ones = self
                .cookies
                .iter()
                .enumerate()
                .filter(|(_, it)| is_counted(it));
            let Some((place, _)) = ones.min_by_key(|(_, it)| (it.secure, it.set)) else {
                return;
            };
            self.cookies.remove(place);
        }
    }

    /// The Cookie header for a request to `uri`; `None` if there is nothing to send.
    pub fn header(&self, uri: &Uri, now: Timestamp) -> Option<String> {
        let host = host_of(uri)?;
        let (path, now) = (uri.path(), now.as_second());
        let mut sent: Vec<&Cookie> = self
            .cookies
            .iter()
            .filter(|cookie| {
                let for_host = match cookie.host_only {
                    true => cookie.domain == host,
                    false => domain_matches(&host, &cookie.domain),
                };
                for_host
                    && path_matches(path, &cookie.path)
                    && (!cookie.secure || uri.scheme() == "https")
                    && !cookie.is_expired(now)
            })
            .collect();
        sent.sort_by_key(|cookie| (std::cmp::Reverse(cookie.path.len()), cookie.created));
        let mut header = String::new();
        for cookie in sent {
            let pair = cookie.pair();
            if header.len() + pair.len() + 2 > HEADER_BYTES_MAX {
                continue;
            }
            if !header.is_empty() {
                header.push_str("; ");
            }
            header.push_str(&pair);
        }
        (!header.is_empty()).then_some(header)
    }

    /// The cookies that have not expired.
    pub fn cookies(&self, now: Timestamp) -> impl Iterator<Item = &Cookie> {
        let now = now.as_second();
        let cookies = self.cookies.iter();
        cookies.filter(move |cookie| !cookie.is_expired(now))
    }

    /// Bytes of text in the jar.
    pub fn bytes(&self) -> usize {
        let bytes = |it: &Cookie| it.name.len() + it.value.len() + it.domain.len() + it.path.len();
        self.cookies.iter().map(bytes).sum()
    }

    /// Returns `true` if the jar has no cookies.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }
}

impl Cookie {
    /// Parses a `Set-Cookie` header of a response from `uri` (§5.4 to §5.6).
    fn parse(uri: &Uri, header: &str, now: Timestamp) -> Result<Cookie, CookieRefused> {
        let is_control = |c: char| c != '\t' && (c.is_ascii_control());
        if header.contains(is_control) {
            return Err(CookieRefused::Malformed);
        }
        let host = host_of(uri).ok_or(CookieRefused::Domain)?;
        let (pair, attributes) = header.split_once(';').unwrap_or((header, ""));
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let (name, value) = (trim(name), trim(value));
        if name.is_empty() && value.is_empty() {
            return Err(CookieRefused::Malformed);
        }
        if name.len() + value.len() > NAME_AND_VALUE_BYTES_MAX {
            return Err(CookieRefused::TooLong);
        }
        let mut cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: host.clone(),
            host_only: true,
            path: default_path(uri),
            secure: false,
            http_only: false,
            expires: None,
            created: now.as_millisecond(),
            set: now.as_millisecond(),
        };
        let parsed = CookieAttributes::read(attributes, now);
        cookie.secure = parsed.secure;
        cookie.http_only = parsed.http_only;
        cookie.expires = parsed.max_age.or(parsed.expires);
        if let Some(path) = &parsed.path {
            path.clone_into(&mut cookie.path);
        }
        if let Some(domain) = parsed.domain.as_deref().filter(|domain| !domain.is_empty()) {
            cookie.set_domain(&host, domain)?;
        }
        if cookie.secure && uri.scheme() != "https" {
            return Err(CookieRefused::Insecure);
        }
        match cookie.meets_prefix(parsed.path.as_deref() == Some("/")) {
            true => Ok(cookie),
            false => Err(CookieRefused::Prefix),
        }
    }

    /// Sets the domain (§5.6, steps 9 and 10). A public suffix is valid only for the host of that name. Browsers treat a name
    /// that ends in a dot as another name, and match it with no host (http-state, DOMAIN0014).
    fn set_domain(&mut self, host: &str, domain: &str) -> Result<(), CookieRefused> {
        if domain.ends_with('.') {
            return Err(CookieRefused::Domain);
        }
        let domain = host_uri(domain).and_then(|uri| host_of(&uri));
        let domain = domain.ok_or(CookieRefused::Domain)?;
        let is_suffix = host_uri(&domain).is_none_or(|uri| uri.registrable_domain().is_none());
        match () {
            () if is_suffix && domain == host => Ok(()),
            () if is_suffix || !domain_matches(host, &domain) => Err(CookieRefused::Domain),
            () => {
                self.domain = domain;
                self.host_only = false;
                Ok(())
            }
        }
    }

    /// Returns `true` if the cookie meets the requirements of its name's prefix (§4.1.3). A cookie without a name must not have a
    /// value with such a prefix.
    fn meets_prefix(&self, root_path: bool) -> bool {
        let begins = |text: &str, prefix: &str| {
            let start = text.get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if self.name.is_empty() {
            return !begins(&self.value, "__Secure-") && !begins(&self.value, "__Host-");
        }
        let host = self.secure && self.host_only && root_path && self.path == "/";
        (!begins(&self.name, "__Secure-") || self.secure)
            && (!begins(&self.name, "__Host-") || host)
    }

    fn is_replaced_by(&self, new: &Cookie) -> bool {
        self.name == new.name
            && self.domain == new.domain
            && self.host_only == new.host_only
            && self.path == new.path
    }

    fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn pair(&self) -> String {
        match self.name.is_empty() {
            true => self.value.clone(),
            false => format!("{}={}", self.name, self.value),
        }
    }

    /// The host or domain of the cookie.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Formats the cookie as a line of a Netscape cookie file, which curl and wget read too. `None` if a field does not fit.
    pub fn netscape(&self) -> Option<String> {
        let word = |flag: bool| if flag { "TRUE" } else { "FALSE" };
        let fields = [&self.domain, &self.path, &self.name, &self.value];
        if fields
            .iter()
            .any(|field| field.contains(['\t', '\n', '\r']))
        {
            return None;
        }
        let before = if self.http_only { "#HttpOnly_" } else { "" };
        let dot = if self.host_only { "" } else { "." };
        Some(format!(
            "{before}{dot}{}\t{}\t{}\t{}\t{}\t{}\t{}",
            self.domain,
            word(!self.host_only),
            self.path,
            word(self.secure),
            self.expires.unwrap_or(0),
            self.name,
            self.value
        ))
    }
}

/// Parses a Netscape cookie file: seven fields a line, separated by tabs. Also returns the invalid lines.
pub fn read_netscape(text: &str, now: Timestamp) -> (Vec<Cookie>, Vec<CookieLineProblem>) {
    let (mut cookies, mut problems) = (Vec::new(), Vec::new());
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim_end_matches('\r');
        let (content, http_only) = match content.strip_prefix("#HttpOnly_") {
            Some(rest) => (rest, true),
            None => (content, false),
        };
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        match Cookie::of_line(content, http_only, now) {
            Ok(cookie) => cookies.push(cookie),
            Err(problem) => problems.push(CookieLineProblem { line, problem }),
        }
    }
    (cookies, problems)
}

impl Cookie {
    fn of_line(line: &str, http_only: bool, now: Timestamp) -> Result<Cookie, &'static str> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [domain, below, path, secure, expires, name, value] = fields[..] else {
            return Err("the line does not have seven fields separated by tabs");
        };
        let flag = |text: &str| match text.to_ascii_uppercase().as_str() {
            "TRUE" => Ok(true),
            "FALSE" => Ok(false),
            _ => Err("neither TRUE nor FALSE"),
        };
        let bare = domain.strip_prefix('.').unwrap_or(domain);
        let uri = host_uri(bare).and_then(|uri| host_of(&uri));
        let expires: i64 = expires
            .parse()
            .map_err(|_| "the time is not a number of seconds")?;
        if !path.starts_with('/') {
            return Err("the path does not begin with /");
        }
        Ok(Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: uri.ok_or("not a host name")?,
            host_only: !flag(below)?,
            path: path.to_owned(),
            secure: flag(secure)?,
            http_only,
            expires: (expires > 0).then_some(expires),
            created: now.as_millisecond(),
            set: now.as_millisecond(),
        })
    }
}

/// The attributes of a `Set-Cookie` header, the last of each kind.
#[derive(Default)]
struct CookieAttributes {
    expires: Option<i64>,
    max_age: Option<i64>,
    domain: Option<String>,
    /// `None` if it is not an absolute path: the default applies.
    path: Option<String>,
    secure: bool,
    http_only: bool,
}

impl CookieAttributes {
    fn read(attributes: &str, now: Timestamp) -> CookieAttributes {
        let mut parsed = CookieAttributes::default();
        let latest = now.as_second() + LIFE_SECONDS_MAX;
        for attribute in attributes.split(';') {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let (name, value) = (trim(name), trim(value));
            if value.len() > ATTRIBUTE_BYTES_MAX {
                continue;
            }
            match name.to_ascii_lowercase().as_str() {
                "expires" => {
                    if let Some(at) = cookie_date(value) {
                        parsed.expires = Some(at.min(latest));
                    }
                }
                "max-age" => {
                    let digits = value.strip_prefix('-').unwrap_or(value);
                    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
                        // More digits than a number can have mean a long life.
                        let seconds = match value.starts_with('-') {
                            true => 0,
                            false => digits.parse().unwrap_or(LIFE_SECONDS_MAX),
                        };
                        let at = now.as_second() + seconds.min(LIFE_SECONDS_MAX);
                        parsed.max_age = Some(if seconds == 0 { i64::MIN } else { at });
                    }
                }
                "domain" => {
                    let bare = value.strip_prefix('.').unwrap_or(value);
                    parsed.domain = Some(bare.to_ascii_lowercase());
                }
                "path" => parsed.path = value.starts_with('/').then(|| value.to_owned()),
                "secure" => parsed.secure = true,
                "httponly" => parsed.http_only = true,
                _ => {}
            }
        }
        parsed
    }
}

/// Parses the dates that servers write, by the rules of §5.1.1: tokens that look like a time, a day, a month and a year, in
/// any order. Returns seconds since 1970.
fn cookie_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let is_delimiter =
        |b: u8| matches!(b, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e);
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.as_bytes().split(|b| is_delimiter(*b)) {
        let digits = token.iter().take_while(|b| b.is_ascii_digit()).count();
        let number = || -> Option<i16> { std::str::from_utf8(&token[..digits]).ok()?.parse().ok() };
        if time.is_none()
            && let Some(found) = clock_time(token)
        {
            time = Some(found);
        } else if day.is_none() && (1..=2).contains(&digits) {
            day = number();
        } else if month.is_none()
            && let Some(found) = MONTHS.iter().position(|month| {
                token.len() >= 3 && token[..3].eq_ignore_ascii_case(month.as_bytes())
            })
        {
            month = i8::try_from(found + 1).ok();
        } else if year.is_none() && (2..=4).contains(&digits) {
            year = number();
        }
    }
    let year = match year? {
        short @ 70..=99 => short + 1900,
        short @ 0..=69 => short + 2000,
        // Servers write such years for "never". Lives are limited, so no calendar has to go that far.
        long => long.min(YEAR_MAX),
    };
    if year < 1601 {
        return None;
    }
    let (hour, minute, second) = time?;
    let date = DateTime::new(
        year,
        month?,
        i8::try_from(day?).ok()?,
        hour,
        minute,
        second,
        0,
    );
    let zoned = date.ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_second())
}

/// Parses `hh:mm:ss`, one or two digits each. Text after the digits is ignored.
fn clock_time(token: &[u8]) -> Option<(i8, i8, i8)> {
    let text = std::str::from_utf8(token).ok()?;
    let mut fields = text.splitn(3, ':');
    let whole = |field: &str| match field.len() {
        1 | 2 => field.parse::<i8>().ok().filter(|number| *number >= 0),
        _ => None,
    };
    let hour = whole(fields.next()?)?;
    let minute = whole(fields.next()?)?;
    let last = fields.next()?;
    let end = last.find(|c: char| !c.is_ascii_digit());
    Some((hour, minute, whole(&last[..end.unwrap_or(last.len())])?))
}

/// Returns `true` if a cookie's domain matches a host (§5.1.3). Both are lower-case.
fn domain_matches(host: &str, domain: &str) -> bool {
    host == domain
        || host
            .strip_suffix(domain)
            .is_some_and(|rest| rest.ends_with('.') && !is_address(host))
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok()
}

/// Returns `true` if a cookie's path matches a path (§5.1.4).
fn path_matches(path: &str, cookie_path: &str) -> bool {
    path.strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || cookie_path.ends_with('/') || rest.starts_with('/'))
}

/// The directory of the path (§5.1.4).
fn default_path(uri: &Uri) -> String {
    match uri.path().rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(end) => uri.path()[..end].to_owned(),
    }
}

fn host_of(uri: &Uri) -> Option<String> {
    let host = uri.host().filter(|host| !host.is_empty())?;
    Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
}

fn host_uri(host: &str) -> Option<Uri> {
    let has_only_a_host = !host.contains(['/', '?', '#', '@', '\\']);
    has_only_a_host
        .then(|| Uri::parse(&format!("http://{host}/")).ok())
        .flatten()
        .filter(|uri| uri.port().is_none())
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(NOW + seconds).unwrap()
    }

    fn uri(text: &str) -> Uri {
        Uri::parse(text).unwrap()
    }

    /// Checks the header sent to `to` one second after a response from `from` set cookies.
    #[track_caller]
    fn check(from: &str, set: &[&str], to: &str, expected: &str) {
        let mut jar = Jar::default();
        for (after, header) in (0..).zip(set) {
            let _ = jar.receive(&uri(from), header, 50, at(after));
        }
        let sent = jar.header(&uri(to), at(1 + set.len() as i64));
        assert_eq!(sent.as_deref().unwrap_or_default(), expected, "{set:?}");
    }

    #[track_caller]
    fn refused(from: &str, set: &str, why: CookieRefused) {
        let mut jar = Jar::default();
        let refused = jar.receive(&uri(from), set, 50, at(0));
        assert_eq!(refused, Err(why), "{set}");
        assert!(jar.is_empty());
    }

    const HTTP: &str = "http://www.example.org/a/b";
    const HTTPS: &str = "https://www.example.org/a/b";

    #[test]
    fn names_and_values() {
        check(HTTP, &["a=b"], HTTP, "a=b");
        check(HTTP, &[" a = b c ; x"], HTTP, "a=b c");
        check(HTTP, &["a=b=c"], HTTP, "a=b=c");
        check(HTTP, &["a="], HTTP, "a=");
        check(HTTP, &["lonely"], HTTP, "lonely");
        check(HTTP, &["=lonely"], HTTP, "lonely");
        check(HTTP, &["a=\"b\""], HTTP, "a=\"b\"");
        check(HTTP, &["a=1", "a=2", "A=3"], HTTP, "a=2; A=3");
        refused(HTTP, "", CookieRefused::Malformed);
        refused(HTTP, "=; Path=/", CookieRefused::Malformed);
        refused(HTTP, "a=b\u{0}c", CookieRefused::Malformed);
        refused(HTTP, "a=b\rc", CookieRefused::Malformed);
        let most = "x".repeat(NAME_AND_VALUE_BYTES_MAX - 1);
        check(HTTP, &[&format!("a={most}")], HTTP, &format!("a={most}"));
        refused(HTTP, &format!("a={most}x"), CookieRefused::TooLong);
    }

    #[test]
    fn hosts_and_domains() {
        check(HTTP, &["a=b"], "http://example.org/a/", "");
        check(HTTP, &["a=b"], "http://x.www.example.org/a/", "");
        check(HTTP, &["a=b"], "http://www.example.org:8080/a/", "a=b");
        check(
            HTTP,
            &["a=b; Domain=example.org"],
            "http://example.org/a/",
            "a=b",
        );
        check(
            HTTP,
            &["a=b; Domain=.EXAMPLE.org"],
            "http://x.y.example.org/a/",
            "a=b",
        );
        // The dot that ends a host in DNS is not part of the cookie's domain.
        check(
            "http://www.example.org./a/",
            &["a=b; Domain=example.org"],
            "http://example.org./a/",
            "a=b",
        );
        check(HTTP, &["a=b; Domain="], "http://www.example.org/a/", "a=b");
        check(
            HTTP,
            &["a=b; Domain=example.org; Domain="],
            "http://example.org/a/",
            "",
        );
        for domain in [
            "org",
            "org.",
            "example.org.",
            ".example.org.",
            "www.example.org.",
            "example.org..",
            "..example.org",
            "x.example.org",
            "xample.org",
            "other.org",
            "e/x",
            "..",
            "a:b@c",
        ] {
            refused(
                HTTP,
                &format!("a=b; Domain={domain}"),
                CookieRefused::Domain,
            );
        }
        // A public suffix that is also a host.
        check(
            "http://co.uk/",
            &["a=b; Domain=co.uk"],
            "http://co.uk/",
            "a=b",
        );
        check(
            "http://co.uk/",
            &["a=b; Domain=co.uk"],
            "http://x.co.uk/",
            "",
        );
        check("http://10.0.0.1/", &["a=b"], "http://10.0.0.1/", "a=b");
        refused(
            "http://10.0.0.1/",
            "a=b; Domain=0.0.1",
            CookieRefused::Domain,
        );
        check("http://[::1]/", &["a=b"], "http://[::1]/", "a=b");
        check(
            "http://www.bücher.example/",
            &["a=b; Domain=xn--bcher-kva.example"],
            "http://bücher.example/",
            "a=b",
        );
    }

    #[test]
    fn paths() {
        let to = |target: &str| format!("http://www.example.org{target}");
        for (set, path, sent) in [
            ("a=b", "/a", true),
            ("a=b", "/a/", true),
            ("a=b", "/ab", false),
            ("a=b", "/", false),
            ("a=b; Path=/", "/", true),
            ("a=b; Path=/a/", "/a", false),
            ("a=b; Path=/a/", "/a/x", true),
            ("a=b; Path=relative", "/a/x", true),
            ("a=b; Path=/other; Path=", "/a/x", true),
        ] {
            check(HTTP, &[set], &to(path), if sent { "a=b" } else { "" });
        }
        check(
            HTTP,
            &["short=1; Path=/", "long=2; Path=/a", "old=3; Path=/"],
            HTTP,
            "long=2; short=1; old=3",
        );
        // A cookie that is set again keeps its place.
        check(HTTP, &["a=1", "b=2", "a=3"], HTTP, "a=3; b=2");
    }

    #[test]
    fn secure_cookies_need_secure_connections() {
        check(HTTPS, &["a=b; Secure"], HTTPS, "a=b");
        check(HTTPS, &["a=b; secure=x"], HTTP, "");
        refused(HTTP, "a=b; Secure", CookieRefused::Insecure);
        let mut jar = Jar::default();
        jar.receive(&uri(HTTPS), "a=b; Secure; Path=/", 50, at(0))
            .unwrap();
        let overwrite = jar.receive(&uri(HTTP), "a=c; Path=/a", 50, at(1));
        assert_eq!(overwrite, Err(CookieRefused::Insecure));
        refused(HTTPS, "__Secure-a=b", CookieRefused::Prefix);
        check(HTTPS, &["__Secure-a=b; Secure"], HTTPS, "__Secure-a=b");
        refused(HTTPS, "__Host-a=b; Secure", CookieRefused::Prefix);
        refused(
            HTTPS,
            "__host-a=b; Secure; Path=/; Domain=example.org",
            CookieRefused::Prefix,
        );
        check(HTTPS, &["__Host-a=b; Secure; Path=/"], HTTPS, "__Host-a=b");
        refused(HTTPS, "=__Host-a=b; Secure; Path=/", CookieRefused::Prefix);
    }

    #[test]
    fn cookies_expire() {
        let held = |set: &str, after: i64| {
            let mut jar = Jar::default();
            jar.receive(&uri(HTTP), set, 50, at(0)).unwrap();
            jar.header(&uri(HTTP), at(after)).is_some()
        };
        assert!(held("a=b", 10_000_000));
        assert!(held("a=b; Max-Age=10", 9) && !held("a=b; Max-Age=10", 10));
        assert!(!held("a=b; Max-Age=0", 0) && !held("a=b; Max-Age=-1", 0));
        assert!(held("a=b; Max-Age=1x", 100), "no number");
        assert!(held(
            "a=b; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            9
        ));
        assert!(!held("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0));
        assert!(held("a=b; Expires=never", 100));
        let life = LIFE_SECONDS_MAX;
        assert!(held("a=b; Max-Age=99999999999999999999", life - 1));
        assert!(!held("a=b; Max-Age=99999999999999999999", life));
        assert!(!held("a=b; Expires=Fri, 31 Dec 9999 23:59:59 GMT", life));
        // An expired cookie removes the old one.
        check(HTTP, &["a=b", "a=; Max-Age=0"], HTTP, "");
    }

    #[test]
    fn dates_in_the_formats_of_servers_are_parsed() {
        let read = |text| cookie_date(text);
        let expected = Some(784_111_777);
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "6 NOVEMBER 1994 8:49:37",
            "1994-Nov-06 08:49:37",
            "08:49:37 06 Nov 1994 GMT+0100",
        ] {
            // A leading year counts as a day of two digits, so the date is invalid; browsers agree.
            let expected = if text.starts_with("1994") {
                cookie_date(text)
            } else {
                expected
            };
            assert_eq!(read(text), expected, "{text}");
        }
        assert_eq!(read("06 Nov 70 00:00:00"), Some(26_697_600));
        assert_eq!(read("06 Nov 69 00:00:00").unwrap() / 31_557_600, 99);
        for text in [
            "",
            "Nov 1994 08:49:37",
            "31 Feb 1994 08:49:37",
            "6 Nov 1994 24:00:00",
            "6 Nov 1600 08:49:37",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_flood_of_cookies_does_not_evict_those_of_other_hosts() {
        let mut jar = Jar::default();
        jar.receive(
            &uri("https://www.example.org/"),
            "kept=1; Secure",
            50,
            at(0),
        )
        .unwrap();
        jar.receive(&uri("https://other.example.org/"), "kept=1", 50, at(0))
            .unwrap();
        for n in 0..1000 {
            let header = format!("n{n}=1");
            jar.receive(&uri("https://www.example.org/"), &header, 50, at(n))
                .unwrap();
        }
        let sent = jar
            .header(&uri("https://www.example.org/"), at(2000))
            .unwrap();
        assert_eq!(sent.split("; ").count(), 50);
        assert!(sent.starts_with("kept=1; n951=1"), "{sent}");
        assert!(
            jar.header(&uri("https://other.example.org/"), at(2000))
                .is_some()
        );
        for n in 0..1000 {
            let host = uri(&format!("https://h{n}.example.org/"));
            jar.receive(&host, "a=1", 50, at(n)).unwrap();
        }
        assert_eq!(jar.cookies(at(2000)).count(), JAR_COOKIES_MAX);
    }

    #[test]
    fn the_cookie_header_has_a_maximum_length() {
        let mut jar = Jar::default();
        for n in 0..50 {
            let header = format!("n{n}={}", "x".repeat(4000));
            jar.receive(&uri(HTTP), &header, 50, at(n)).unwrap();
        }
        let sent = jar.header(&uri(HTTP), at(100)).unwrap();
        assert!(sent.len() <= HEADER_BYTES_MAX && sent.len() > HEADER_BYTES_MAX - 4100);
    }

    #[test]
    fn jars_are_named_by_registrable_domain() {
        for (host, name) in [
            ("www.example.org", "example.org"),
            ("EXAMPLE.org.", "example.org"),
            ("a.b.co.uk", "b.co.uk"),
            ("co.uk", "co.uk"),
            ("10.0.0.1", "10.0.0.1"),
            ("[::1]", "[::1]"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(jar_name(host), name, "{host}");
        }
    }

    #[test]
    fn cookie_files_are_read_and_written() {
        let text = "# Netscape HTTP Cookie File\n\
            .example.org\tTRUE\t/\tTRUE\t1900000000\tsession\ta b\n\
            #HttpOnly_www.example.org\tFALSE\t/a\tFALSE\t0\tlogin\t\r\n\n\
            broken line\n\
            .example.org\tMAYBE\t/\tTRUE\t0\ta\tb\n\
            .example.org\tTRUE\t/\tTRUE\tsoon\ta\tb\n";
        let (cookies, problems) = read_netscape(text, at(0));
        let lines: Vec<_> = cookies.iter().filter_map(Cookie::netscape).collect();
        assert_eq!(
            lines,
            [
                ".example.org\tTRUE\t/\tTRUE\t1900000000\tsession\ta b",
                "#HttpOnly_www.example.org\tFALSE\t/a\tFALSE\t0\tlogin\t",
            ]
        );
        let problems: Vec<_> = problems.iter().map(|it| it.line).collect();
        assert_eq!(problems, [5, 6, 7]);
        let mut jar = Jar::default();
        for cookie in cookies {
            jar.put(cookie, 50, at(0));
        }
        assert_eq!(
            jar.header(&uri(HTTPS), at(1)).unwrap(),
            "login=; session=a b"
        );
    }

    #[test]
    fn no_header_causes_a_panic() {
        proptest::proptest!(|(header in "(?s).{0,200}|([a-c_]{0,3}=[a-c;=, ]{0,9}; ?(expires|domain|path|max-age)=.{0,20})")| {
            let mut jar = Jar::default();
            let _ = jar.receive(&uri(HTTPS), &header, 50, at(0));
            let _ = jar.header(&uri(HTTPS), at(0));
        });
    }
}
