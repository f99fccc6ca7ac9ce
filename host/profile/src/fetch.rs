//! Fetch settings: requests, timeouts and limits.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use opilio_model::AddressFamily;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, MEMORY_MAX, SizeWritten};
use crate::check::{Part, quote};
use crate::dns::HostPattern;
use crate::duration::DurationWritten;
use crate::secret::{SecretFile, SecretSource};

/// Headers that only the fetcher may set. A profile that sets one would make false requests.
const OWN_HEADERS: [&str; 14] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "from",
    "host",
    "if-modified-since",
    "if-none-match",
    "proxy-authorization",
    "referer",
    "te",
    "transfer-encoding",
    "user-agent",
];

/// Largest header block that a profile may allow, since it is held in memory.
const HEADER_MAX: ByteSize = ByteSize::from_mib(16);

/// Most bytes of one body that may be held in memory.
const BODY_MEMORY_MAX: ByteSize = ByteSize::from_gib(1);

/// Requests, timeouts and limits of fetches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FetchFile {
    /// Longest wait for a connection, TLS included. Default `"20s"`: servers that answer at all answer within it.
    pub connect_timeout: DurationWritten,

    /// Longest silence of the server, before the first byte and between two. Default `"20s"`: the same as in Heritrix.
    pub response_timeout: DurationWritten,

    /// Longest silence before the first byte. Default `"none"`: `response-timeout` applies. Sites that compute long before they
    /// answer need more time here than between two bytes.
    pub first_byte_timeout: DurationWritten,

    /// Longest time for one document as a whole; the part received by then is kept as truncated. Default `"20m"`: enough for a
    /// large film over a slow line.
    pub total_timeout: DurationWritten,

    /// Longest time from the first byte of a response to the end of its head, interim responses included. Over HTTP/2 a head
    /// comes in one piece, within `first-byte-timeout`. Default `"1m"`: a head is a few KiB, and only traps send it byte by
    /// byte.
    pub header_timeout: DurationWritten,

    /// Lowest rate of a body in a second, on average over a minute; a slower body is cut and kept as truncated.
    /// Default `"100B"`: real connections are faster; only traps and endless streams are so slow.
    pub min_rate: SizeWritten,

    /// Time after which a fetch with less than 16 KiB a second counts as slow. It then continues as one of `slow-fetches`, and
    /// its worker starts another fetch. `"none"`: it keeps the worker. Default `"10s"`: nearly all fetches end by then.
    pub slow_after: DurationWritten,

    /// Most slow fetches besides those of workers; further ones keep their workers. Default `100`: each costs a connection and
    /// little else.
    #[schemars(range(max = 10_000))]
    pub slow_fetches: u32,

    /// Largest body; a larger one is cut and kept as truncated. Default `"none"`: archives want complete documents.
    pub body_max: SizeWritten,

    /// Largest header block of a response, 16 MiB at most; a longer one is cut and kept as truncated, without the body.
    /// Default `"64KiB"`: several times what common servers send at most.
    pub header_max: SizeWritten,

    /// Most header lines of a response; a response with more is cut as one that is too large. Default `512`: several times what
    /// common servers send at most.
    #[schemars(range(min = 16, max = 100_000))]
    pub headers_max: u32,

    /// Most redirects in a row; the next one is archived and not followed. Default `20`: the same as in browsers.
    #[schemars(range(max = 1000))]
    pub redirects_max: u32,

    /// The Accept-Encoding header; empty to send none. Default `"gzip, br"`: reduces the server's load, and replay tools can
    /// decode both.
    pub accept_encoding: String,

    /// Further headers for every request, by name. They replace our own Accept header. Names that the fetcher sets itself are
    /// refused. An empty value removes a header, and in an override a header of the profile. Default `{}`: only the headers of
    /// every crawl are sent.
    pub headers: BTreeMap<String, String>,

    /// Non-public addresses that may be fetched from: `"private"` networks, `"loopback"` (this machine), `"link-local"`, and
    /// `"metadata"`, from which clouds give a machine its secrets. Default `[]`: links on the web must not make the crawler
    /// archive internal networks.
    #[schemars(extend("examples" = [["loopback", "private"]]))]
    pub allow_addresses: Vec<AllowedAddresses>,

    /// Ports that may be fetched from although browsers refuse them, because they belong to mail, shells, IRC and the like (the
    /// Fetch Standard's bad ports). Default `[]`: links must not make the crawler talk to such servers.
    #[schemars(extend("examples" = [[6000, 10080]]))]
    pub allow_ports: Vec<u16>,

    /// Addresses of a host that are tried, and their order. If one has not answered for a quarter of a second, the next is
    /// tried as well. Default `"ipv4-first"`: sites maintain it better, and captures of one site stay comparable.
    pub family: AddressFamily,

    /// Addresses of this machine to connect from, at most one of each family. Default `[]`: the operating system chooses.
    #[schemars(extend("examples" = [["192.0.2.7", "2001:db8::7"]]))]
    pub bind: Vec<String>,

    /// A server through which all connections are made: `"http://host:port"` or `"socks5://host:port"`. Default `""`: most
    /// machines reach the web without a proxy.
    pub proxy: String,

    /// The user name for the proxy. Default `""`: the proxy requires no user name.
    pub proxy_user: String,

    /// The place from which the proxy's password is read when a crawl begins. No default: the proxy requires no password.
    pub proxy_password: Option<SecretFile>,

    /// The party that looks up names if there is a proxy. Default `"local"`: Opilio looks them up, so that it can check and
    /// record the addresses.
    pub proxy_names: ProxyNames,

    /// Hosts to which connections are made without the proxy: a name or an address, or `*.` and a domain for all hosts below
    /// it. Default `[]`: all hosts are reached through the proxy.
    #[schemars(extend("examples" = [["localhost", "*.example.org"]]))]
    pub no_proxy: Vec<String>,

    /// Size, 1 GiB at most, above which bodies are spooled to disk while they arrive. Default `"1MiB"`: nearly all pages stay
    /// in memory.
    pub spool_memory: SizeWritten,

    /// Most memory of all arriving bodies together, 256 GiB at most; beyond it they are spooled to disk early.
    /// Default `"256MiB"`: enough for hundreds of pages at once.
    pub spool_memory_total: SizeWritten,

    /// Most disk space of all bodies together until they are archived. Beyond it downloads wait for others to be archived. If
    /// all wait, the latest is cut and kept as truncated. Default `"64GiB"`: enough for dozens of films.
    pub scratch_max: SizeWritten,

    /// Time for which a stopping crawl waits for fetches in flight; the parts received by then are kept as truncated.
    /// Default `"none"`: it waits until they end, or until a second stop request.
    pub stop_grace: DurationWritten,

    /// `true` if Referer is sent: the page that the link was on. Default `true`: some servers refuse embeds without one.
    pub referer: bool,

    /// `true` if later visits send If-None-Match and If-Modified-Since. Default `true`: an unchanged document costs the server only
    /// a header.
    pub conditional: bool,

    /// `true` if a connection is used for several requests. Default `true`: it reduces the server's load.
    pub keep_alive: bool,

    /// Whether a certificate that cannot be trusted stops a fetch. Default `"record"`: an expired certificate is not a reason
    /// to miss a page.
    pub tls_trust: TlsTrust,
}

/// Whether a certificate that cannot be trusted stops a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsTrust {
    /// An untrusted certificate stops the fetch. Trusted certificates are those that the operating system trusts.
    Platform,
    /// An untrusted certificate does not stop the fetch. The capture records that the certificate is not trusted.
    Record,
}

/// Kinds of non-public addresses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AllowedAddresses {
    /// Private networks, including those of carriers.
    Private,
    /// This machine.
    Loopback,
    /// Addresses of one link.
    LinkLocal,
    /// Addresses from which clouds give a machine its secrets.
    Metadata,
}

/// The party that looks up names if there is a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyNames {
    /// Opilio. A SOCKS5 proxy gets the address; an HTTP proxy looks the name up once more.
    Local,
    /// The proxy. `allow-addresses` then applies only to addresses in URIs.
    Remote,
}

/// A server through which connections are made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FetchProxy {
    /// `true` if it speaks SOCKS5; otherwise HTTP.
    pub socks: bool,
    /// Name or address; IPv6 in brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The user name.
    pub user: Option<String>,
    /// The place of the password.
    pub password: Option<SecretSource>,
    /// The party that looks up names.
    pub names: ProxyNames,
    /// Hosts to which connections are made without it.
    pub except: Vec<HostPattern>,
}

/// Requests, timeouts and limits of fetches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fetch {
    /// Longest wait for a connection, TLS included; not longer than `total_timeout`.
    pub connect_timeout: Duration,
    /// Longest silence of the server; not longer than `total_timeout`.
    pub response_timeout: Duration,
    /// Longest silence before the first byte; `None`: `response_timeout`.
    pub first_byte_timeout: Option<Duration>,
    /// Longest time for one document as a whole.
    pub total_timeout: Duration,
    /// Longest time from the first byte of a response to the end of its head.
    pub header_timeout: Duration,
    /// Lowest rate of a body, in bytes a second; `None`: no limit.
    pub min_rate: Option<ByteSize>,
    /// Time after which a fetch with a low rate counts as slow; `None`: never.
    pub slow_after: Option<Duration>,
    /// Most slow fetches besides those of workers.
    pub slow_fetches: usize,
    /// Largest body; `None`: no limit.
    pub body_max: Option<ByteSize>,
    /// Largest header block of a response.
    pub header_max: ByteSize,
    /// Most header lines of a response.
    pub headers_max: usize,
    /// Most redirects in a row that are followed.
    pub redirects_max: usize,
    /// The Accept-Encoding header; `None`: not sent.
    pub accept_encoding: Option<String>,
    /// Further headers for every request; names and values are valid.
    pub headers: Vec<(String, String)>,
    /// Non-public addresses that may be fetched from; sorted, each once.
    pub allow_addresses: Vec<AllowedAddresses>,
    /// Ports that may be fetched from although the Fetch Standard blocks them; sorted, each once.
    pub allow_ports: Vec<u16>,
    /// Addresses of a host that are tried, and their order.
    pub family: AddressFamily,
    /// Addresses to connect from, at most one of each family.
    pub bind: Vec<IpAddr>,
    /// The proxy.
    pub proxy: Option<FetchProxy>,
    /// Size above which bodies are spooled to disk.
    pub spool_memory: ByteSize,
    /// Most memory of all bodies together.
    pub spool_memory_total: ByteSize,
    /// Most disk space of all bodies together; `None`: no limit.
    pub scratch_max: Option<ByteSize>,
    /// Time for which a stopping crawl waits; `None`: as long as necessary.
    pub stop_grace: Option<Duration>,
    /// `true` if Referer is sent.
    pub referer: bool,
    /// `true` if later visits send If-None-Match and If-Modified-Since.
    pub conditional: bool,
    /// `true` if a connection is used for several requests.
    pub keep_alive: bool,
    /// Whether a certificate that cannot be trusted stops a fetch.
    pub tls_trust: TlsTrust,
}

impl FetchProxy {
    /// Returns `true` if the proxy looks up this host, and not Opilio.
    pub fn looks_up(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let excepted = self.except.iter().any(|pattern| pattern.matches(&host));
        self.names == ProxyNames::Remote && !excepted
    }
}

impl Default for FetchFile {
    fn default() -> Self {
        Self {
            connect_timeout: "20s".into(),
            response_timeout: "20s".into(),
            first_byte_timeout: "none".into(),
            total_timeout: "20m".into(),
            header_timeout: "1m".into(),
            min_rate: "100B".into(),
            slow_after: "10s".into(),
            slow_fetches: 100,
            body_max: "none".into(),
            header_max: "64KiB".into(),
            headers_max: 512,
            redirects_max: 20,
            accept_encoding: "gzip, br".to_owned(),
            headers: BTreeMap::new(),
            allow_addresses: Vec::new(),
            allow_ports: Vec::new(),
            family: AddressFamily::Ipv4First,
            bind: Vec::new(),
            proxy: String::new(),
            proxy_user: String::new(),
            proxy_password: None,
            proxy_names: ProxyNames::Local,
            no_proxy: Vec::new(),
            spool_memory: "1MiB".into(),
            spool_memory_total: "256MiB".into(),
            scratch_max: "64GiB".into(),
            stop_grace: "none".into(),
            referer: true,
            conditional: true,
            keep_alive: true,
            tls_trust: TlsTrust::Record,
        }
    }
}

impl FetchFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>, folder: &Path) -> Fetch {
        part.header_value("accept-encoding", &self.accept_encoding);
        self.check_headers(&mut part.part("headers"));
        Fetch {
            connect_timeout: part.positive_duration("connect-timeout", &self.connect_timeout),
            response_timeout: part.positive_duration("response-timeout", &self.response_timeout),
            first_byte_timeout: part.duration_limit("first-byte-timeout", &self.first_byte_timeout),
            total_timeout: part.positive_duration("total-timeout", &self.total_timeout),
            header_timeout: part.positive_duration("header-timeout", &self.header_timeout),
            min_rate: part.size_limit("min-rate", &self.min_rate),
            slow_after: part.duration_limit("slow-after", &self.slow_after),
            slow_fetches: self.slow_fetches as usize,
            body_max: part.size_limit("body-max", &self.body_max),
            header_max: part.positive_memory_size("header-max", &self.header_max, HEADER_MAX),
            headers_max: self.headers_max as usize,
            redirects_max: self.redirects_max as usize,
            accept_encoding: Some(self.accept_encoding.clone()).filter(|value| !value.is_empty()),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            allow_addresses: {
                let mut allowed = self.allow_addresses.clone();
                allowed.sort_unstable();
                allowed.dedup();
                allowed
            },
            allow_ports: {
                let mut allowed = self.allow_ports.clone();
                allowed.sort_unstable();
                allowed.dedup();
                allowed
            },
            family: self.family,
            bind: self.check_bind(&mut part),
            proxy: self.check_proxy(&mut part, folder),
            spool_memory: part.memory_size("spool-memory", &self.spool_memory, BODY_MEMORY_MAX),
            spool_memory_total: part.memory_size(
                "spool-memory-total",
                &self.spool_memory_total,
                MEMORY_MAX,
            ),
            scratch_max: part.size_limit("scratch-max", &self.scratch_max),
            stop_grace: part.duration_limit("stop-grace", &self.stop_grace),
            referer: self.referer,
            conditional: self.conditional,
            keep_alive: self.keep_alive,
            tls_trust: self.tls_trust,
        }
    }

    fn check_bind(&self, part: &mut Part<'_, '_>) -> Vec<IpAddr> {
        let mut bind: Vec<IpAddr> = Vec::new();
        for (place, text) in self.bind.iter().enumerate() {
            let mut part = part.part("bind");
            let key = place.to_string();
            let Ok(address) = text.parse::<IpAddr>() else {
                let problem = format!("not an IP address: {}", quote(text));
                part.refuse(
                    &key,
                    problem,
                    "write one of this machine, such as \"192.0.2.7\"",
                );
                continue;
            };
            if bind
                .iter()
                .any(|other| other.is_ipv4() == address.is_ipv4())
            {
                let problem = format!("a second address of the same family: {text}");
                part.refuse(&key, problem, "write one of each family at most");
            }
            bind.push(address);
        }
        bind
    }

    fn check_proxy(&self, part: &mut Part<'_, '_>, folder: &Path) -> Option<FetchProxy> {
        let password = self.proxy_password.as_ref();
        let password = password.map(|secret| secret.check("proxy-password", part, folder));
        let control = |c: char| c.is_control();
        if self.proxy_user.contains(control) || self.proxy_user.len() > PROXY_USER_MAX {
            let problem = format!("not a user name: {}", quote(&self.proxy_user));
            part.refuse("proxy-user", problem, "leave out control characters");
        }
        let user = Some(self.proxy_user.clone()).filter(|user| !user.is_empty());
        if self.proxy.is_empty() {
            return None;
        }
        let mut except = Vec::new();
        for (place, text) in self.no_proxy.iter().enumerate() {
            let bracketed = text.starts_with('[') && text.ends_with(']');
            match HostPattern::parse(text) {
                Some(pattern) => except.push(pattern),
                None if bracketed => except.push(HostPattern::Host(text.to_ascii_lowercase())),
                None => {
                    let problem = format!("not a host name: {}", quote(text));
                    let remedy = "write \"www.example.org\", or \"*.example.org\" for all below it";
                    part.part("no-proxy")
                        .refuse(&place.to_string(), problem, remedy);
                }
            }
        }
        match parse_proxy(&self.proxy) {
            Ok((socks, host, port)) => Some(FetchProxy {
                socks,
                host,
                port,
                user,
                password,
                names: self.proxy_names,
                except,
            }),
            Err((problem, remedy)) => {
                part.refuse("proxy", problem, remedy);
                None
            }
        }
    }

    fn check_headers(&self, part: &mut Part<'_, '_>) {
        for (name, value) in &self.headers {
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if name.is_empty() || !name.chars().all(token) {
                part.refuse_key(name, format!("not a header name: {}", quote(name)), "");
            } else if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                let problem = format!("header that a profile may not set: {}", quote(name));
                part.refuse_key(
                    name,
                    problem,
                    "it has a setting of its own, or follows from the request",
                );
            }
            part.header_value(name, value);
        }
    }
}

/// Longest user name of SOCKS5, in bytes (RFC 1929 §2).
const PROXY_USER_MAX: usize = 255;

/// Parses a proxy: whether it is SOCKS, host and port; or the problem and the remedy.
fn parse_proxy(text: &str) -> Result<(bool, String, u16), (String, &'static str)> {
    const FORM: &str =
        "write \"http://proxy.example.org:3128\" or \"socks5://proxy.example.org:1080\"";
    let no_proxy = || (format!("not a proxy: {}", quote(text)), FORM);
    let lower = text.to_ascii_lowercase();
    if lower.contains('@') {
        return Err((
            "credentials in the name of the proxy".to_owned(),
            "a profile is archived: write proxy-user, and proxy-password = { env = \"NAME\" }",
        ));
    }
    if lower.starts_with("socks5h://") {
        return Err((
            format!("not a proxy: {}", quote(text)),
            "write socks5://, and proxy-names = \"remote\"",
        ));
    }
    let (socks, rest) = match (
        lower.strip_prefix("http://"),
        lower.strip_prefix("socks5://"),
    ) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => return Err(no_proxy()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.rsplit_once(':').ok_or_else(no_proxy)?;
    let port = port.parse().ok().filter(|port| *port > 0);
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => matches!(HostPattern::parse(host), Some(HostPattern::Host(_))),
    };
    match port {
        Some(port) if is_host => Ok((socks, host.to_owned(), port)),
        _ => Err(no_proxy()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(bool, &str, u16)>) {
        let parsed = parse_proxy(text).ok();
        let parsed = parsed
            .as_ref()
            .map(|(socks, host, port)| (*socks, host.as_str(), *port));
        assert_eq!(parsed, expected, "{text}");
    }

    #[test]
    fn proxies_are_a_scheme_a_host_and_a_port() {
        check(
            "http://Proxy.example:3128/",
            Some((false, "proxy.example", 3128)),
        );
        check("socks5://[::1]:1080", Some((true, "[::1]", 1080)));
        check("socks5://127.0.0.1:9", Some((true, "127.0.0.1", 9)));
        for wrong in [
            "proxy.example:3128",
            "http://proxy.example",
            "http://:3128",
            "http://proxy.example:0",
            "http://proxy.example:70000",
            "http://user:secret@proxy.example:3128",
            "socks5h://proxy.example:1080",
            "https://proxy.example:3128",
            "http://a b:1",
            "http://[::1:1",
        ] {
            check(wrong, None);
        }
    }
}
