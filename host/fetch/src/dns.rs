//! Resolves names to addresses, and writes the text of a `dns:` record.
//!
//! The sources are, in this order: IP literals; the profile's static table; names under `.localhost` (RFC 6761 §6.3);
//! `/etc/hosts`; name servers of the system or the profile, some of which may speak HTTPS (RFC 8484). Search domains are not
//! used: a URI's host is a whole name. Nothing is cached here, so that every record has the answer of a name server.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustls::ClientConfig;
use tokio::sync::OnceCell;

use crate::NameServer;
use crate::config::HostTable;
use crate::failure::FetchFailure;

/// Addresses of one name that are used. Further ones are only in the record's text.
pub const ADDRESSES_MAX: usize = 32;

/// Validity of an answer without a time to live of its own (static table, `/etc/hosts`, literals). The value is Heritrix's.
pub const TTL_WITHOUT_DNS: Duration = Duration::from_secs(6 * 60 * 60);

/// Longest validity of a name server's answer.
pub const TTL_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The name asked for, without a trailing dot.
    pub host: String,
    /// At least one, at most [`ADDRESSES_MAX`]; IPv4 before IPv6, otherwise as the server listed them.
    pub addresses: Vec<IpAddr>,
    /// The source of the answer.
    pub source: ResolutionSource,
    /// The name server that is asked first: the `WARC-IP-Address` of a `dns:` record. `None` without name servers.
    pub server: Option<IpAddr>,
    /// Validity of the answer: the smallest TTL of its records.
    pub ttl: Duration,
    /// `now` plus `ttl`.
    pub expires: Timestamp,
    /// The block of a `dns:` resource record, media type `text/dns` (RFC 4027), as Heritrix writes it: a line with the time
    /// (yyyyMMddHHmmss), then one line for each address record, in master file format.
    pub text: String,
}

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolutionSource {
    /// The host is an address itself.
    Literal,
    /// The profile's static table.
    StaticTable,
    /// A name under `.localhost`.
    Localhost,
    /// `/etc/hosts`.
    HostsFile,
    /// A name server.
    Dns,
}

/// One address record of an answer.
#[derive(Debug)]
struct AddressRecord {
    /// Name of the record without the trailing dot.
    owner: String,
    ttl: Duration,
    address: IpAddr,
}

/// Resolves names.
#[derive(Debug)]
pub(crate) struct Names {
    table: HostTable,
    hosts: Hosts,
    servers: Vec<NameServer>,
    /// TLS configuration for name servers that speak HTTPS.
    tls: Arc<ClientConfig>,
    /// Set up at the first look-up: a name server that speaks HTTPS may need a look-up itself.
    resolver: OnceCell<Resolver>,
}

#[derive(Debug)]
struct Resolver {
    resolver: TokioResolver,
    /// The name server that is asked first.
    server: Option<IpAddr>,
}

impl Names {
    /// Reads `/etc/hosts`; opens no socket.
    pub(crate) fn new(table: HostTable, servers: Vec<NameServer>, tls: Arc<ClientConfig>) -> Self {
        Names {
            table,
            hosts: Hosts::from_system().unwrap_or_default(),
            servers,
            tls,
            resolver: OnceCell::new(),
        }
    }

    pub(crate) async fn resolve(
        &self,
        host: &str,
        now: Timestamp,
    ) -> Result<Resolution, FetchFailure> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let answer = |source, addresses: &[IpAddr]| {
            let record = |address: &IpAddr| AddressRecord {
                owner: host.to_owned(),
                ttl: TTL_WITHOUT_DNS,
                address: *address,
            };
            let records: Vec<_> = addresses.iter().map(record).collect();
            Ok(resolution(host, source, TTL_WITHOUT_DNS, &records, now))
        };
        if let Some(address) = literal(host) {
            return answer(ResolutionSource::Literal, &[address]);
        }
        let listed = self.table.addresses(host);
        if !listed.is_empty() {
            return answer(ResolutionSource::StaticTable, &listed);
        }
        if is_localhost(host) {
            let both = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return answer(ResolutionSource::Localhost, &both);
        }
        let name = absolute(host).map_err(|reason| FetchFailure::NoAddress {
            host: host.to_owned(),
            reason,
            ttl: None,
        })?;
        let filed = self.in_hosts_file(&name);
        if !filed.is_empty() {
            return answer(ResolutionSource::HostsFile, &filed);
        }
        self.query(host, name, now).await
    }

    fn in_hosts_file(&self, name: &Name) -> Vec<IpAddr> {
        let of = |kind| {
            let found = self
                .hosts
                .lookup_static_host(&Query::query(name.clone(), kind));
            let addresses = found.iter().flat_map(|lookup| lookup.answers());
            addresses.filter_map(address_of).collect::<Vec<_>>()
        };
        [of(RecordType::A), of(RecordType::AAAA)].concat()
    }

    async fn query(
        &self,
        host: &str,
        name: Name,
        now: Timestamp,
    ) -> Result<Resolution, FetchFailure> {
        let set_up = self.resolver.get_or_try_init(|| self.set_up()).await;
        let Resolver { resolver, server } = set_up.map_err(|reason| FetchFailure::Lookup {
            host: host.to_owned(),
            reason,
        })?;
        let (v4, v6) = tokio::join!(
            resolver.lookup(name.clone(), RecordType::A),
            resolver.lookup(name, RecordType::AAAA)
        );
        let records = [&v4, &v6]
            .into_iter()
            .filter_map(|answer| answer.as_ref().ok())
            .flat_map(Lookup::answers);
        // An alias in the chain may be the first to expire.
        let mut least = TTL_MAX;
        let mut found = Vec::new();
        for record in records {
            let ttl = Duration::from_secs(record.ttl.into());
            least = least.min(ttl);
            if let Some(address) = address_of(record) {
                let owner = record.name.to_utf8();
                found.push(AddressRecord {
                    owner: owner.trim_end_matches('.').to_owned(),
                    ttl,
                    address,
                });
            }
        }
        if found.is_empty() {
            return Err(no_address(host, v4.err(), v6.err()));
        }
        Ok(Resolution {
            server: *server,
            ..resolution(host, ResolutionSource::Dns, least, &found, now)
        })
    }

    /// Sets up the resolver for the profile's name servers. After a failure the next look-up tries again.
    async fn set_up(&self) -> Result<Resolver, String> {
        let mut servers = Vec::new();
        let mut options = ResolverOpts::default();
        for server in &self.servers {
            match server {
                NameServer::System => {
                    let (config, system) = hickory_resolver::system_conf::read_system_conf()
                        .map_err(|error| format!("the system's name servers: {error}"))?;
                    servers.extend_from_slice(config.name_servers());
                    options = system;
                }
                NameServer::At(address) => {
                    let mut server = NameServerConfig::udp_and_tcp(address.ip());
                    for connection in &mut server.connections {
                        connection.port = address.port();
                    }
                    servers.push(server);
                }
                NameServer::Https { host, port, path } => {
                    for ip in self.address_of_server(host, *port).await? {
                        let mut over = ConnectionConfig::https(
                            without_brackets(host).into(),
                            Some(path.as_str().into()),
                        );
                        over.port = *port;
                        servers.push(NameServerConfig::new(ip, true, vec![over]));
                    }
                }
            }
        }
        if servers.is_empty() {
            return Err("the system has no name servers".to_owned());
        }
        let server = servers.first().map(|server| server.ip);
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let resolver = resolver(config, options, &self.tls).map_err(|error| error.to_string())?;
        Ok(Resolver { resolver, server })
    }

    /// The addresses of a name server that speaks HTTPS, from the profile's table or the system.
    async fn address_of_server(&self, host: &str, port: u16) -> Result<Vec<IpAddr>, String> {
        if let Some(address) = literal(host) {
            return Ok(vec![address]);
        }
        let listed = self.table.addresses(host);
        if !listed.is_empty() {
            return Ok(listed);
        }
        match tokio::net::lookup_host((host, port)).await {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => Err(format!("cannot resolve the name server {host}: {error}")),
        }
    }
}

fn resolution(
    host: &str,
    source: ResolutionSource,
    ttl: Duration,
    records: &[AddressRecord],
    now: Timestamp,
) -> Resolution {
    let addresses = records.iter().map(|record| record.address);
    Resolution {
        host: host.to_owned(),
        addresses: addresses.take(ADDRESSES_MAX).collect(),
        source,
        server: None,
        ttl,
        expires: now.saturating_add(ttl).unwrap_or(Timestamp::MAX),
        text: record_text(now, records),
    }
}

fn resolver(
    config: ResolverConfig,
    options: ResolverOpts,
    tls: &ClientConfig,
) -> Result<TokioResolver, NetError> {
    let provider = TokioRuntimeProvider::default();
    let mut builder = TokioResolver::builder_with_config(config, provider)
        .with_options(options)
        .with_tls_config(tls.clone());
    let options = builder.options_mut();
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    builder.build()
}

/// Parses an address in the host of a URI: bare, or IPv6 in brackets.
fn literal(host: &str) -> Option<IpAddr> {
    without_brackets(host).parse().ok()
}

/// Removes the brackets of an IPv6 address.
fn without_brackets(host: &str) -> &str {
    let inside = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    inside.unwrap_or(host)
}

fn is_localhost(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    last.eq_ignore_ascii_case("localhost")
}

/// The name for the query. Labels are not validated: `a_b`, `-a` and `xn--a` may have an address.
fn absolute(host: &str) -> Result<Name, String> {
    let labels = host.split('.').filter(|label| !label.is_empty());
    let name = Name::from_labels(labels.map(str::as_bytes)).map_err(|error| error.to_string())?;
    if name.is_root() {
        return Err("not a name".to_owned());
    }
    Ok(name)
}

fn address_of(record: &Record) -> Option<IpAddr> {
    match &record.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    }
}

/// The failure of a look-up: a look-up error of either family first, otherwise the name servers' negative answer.
fn no_address(host: &str, v4: Option<NetError>, v6: Option<NetError>) -> FetchFailure {
    let host = host.to_owned();
    let wrong = [&v4, &v6]
        .into_iter()
        .flatten()
        .find(|error| !error.is_no_records_found());
    if let Some(error) = wrong {
        return FetchFailure::Lookup {
            host,
            reason: error.to_string(),
        };
    }
    let missing = [&v4, &v6].into_iter().flatten().any(NetError::is_nx_domain);
    let ttls = [&v4, &v6].into_iter().flatten().filter_map(negative_ttl);
    FetchFailure::NoAddress {
        host,
        ttl: ttls.min(),
        reason: match missing {
            true => "no such name",
            false => "the name has no address records",
        }
        .to_owned(),
    }
}

/// Validity of the name servers' negative answer (RFC 2308 §5).
fn negative_ttl(error: &NetError) -> Option<Duration> {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(no)) => no.negative_ttl,
        _ => None,
    }
    .map(|seconds| Duration::from_secs(seconds.into()))
}

/// Formats owner, TTL, class, type and data. Blanks between owner and TTL fill up to the third tab stop, as in Heritrix's
/// library.
fn record_text(now: Timestamp, records: &[AddressRecord]) -> String {
    let time = now.to_zoned(TimeZone::UTC).strftime("%Y%m%d%H%M%S");
    let mut text = format!("{time}\n");
    for record in records {
        let owner = match literal(&record.owner) {
            Some(_) => record.owner.clone(),
            None => format!("{}.", record.owner),
        };
        let tabs = match owner.len() {
            0..8 => "\t\t\t",
            8..16 => "\t\t",
            _ => "\t",
        };
        let (ttl, address) = (record.ttl.as_secs(), record.address);
        let kind = if address.is_ipv4() { "A" } else { "AAAA" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{owner}{tabs}{ttl}\tIN\t{kind}\t{address}");
    }
    text
}

#[cfg(test)]
mod tests {
    use hickory_resolver::config::NameServerConfig;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-20T13:12:03.5Z".parse().unwrap()
    }

    fn names() -> Names {
        let table = [
            ("news.example", "127.0.0.5"),
            ("*.news.example", "127.0.0.6"),
            ("*.news.example", "::1"),
        ];
        let mut hosts = Hosts::default();
        hosts
            .read_hosts_conf(&b"10.1.2.3 filed.example\nfd00::3 filed.example\n"[..])
            .unwrap();
        Names {
            table: table
                .map(|(n, a)| (n, a.parse().unwrap()))
                .into_iter()
                .collect(),
            hosts,
            servers: Vec::new(),
            tls: no_roots(),
            resolver: OnceCell::new(),
        }
    }

    #[test]
    fn any_host_of_a_uri_can_be_queried() {
        for host in [
            "example.org",
            "example.org.",
            "a_b.example.org",
            "-a-.example.org",
            "xn--a.example",
            "a",
        ] {
            let name = absolute(host).unwrap();
            assert!(name.is_fqdn(), "{host}");
            let labels: Vec<&[u8]> = name.iter().collect();
            assert_eq!(labels.join(&b'.'), host.trim_end_matches('.').as_bytes());
        }
        for host in ["", ".", "ä".repeat(40).as_str()] {
            assert!(absolute(host).is_err(), "{host}");
        }
    }

    fn no_roots() -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = versions.with_root_certificates(rustls::RootCertStore::empty());
        Arc::new(config.with_no_client_auth())
    }

    #[track_caller]
    fn check(host: &str, source: ResolutionSource, addresses: &[&str]) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let answer = runtime.block_on(names().resolve(host, now())).unwrap();
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
        assert_eq!((answer.source, answer.addresses), (source, addresses));
        assert_eq!(answer.expires, now() + TTL_WITHOUT_DNS);
    }

    #[test]
    fn literals_tables_and_hosts_files_need_no_name_server() {
        check("192.0.2.7", ResolutionSource::Literal, &["192.0.2.7"]);
        check("[2001:db8::7]", ResolutionSource::Literal, &["2001:db8::7"]);
        check(
            "News.example.",
            ResolutionSource::StaticTable,
            &["127.0.0.5"],
        );
        check(
            "a.b.news.example",
            ResolutionSource::StaticTable,
            &["127.0.0.6", "::1"],
        );
        check(
            "localhost",
            ResolutionSource::Localhost,
            &["127.0.0.1", "::1"],
        );
        check(
            "shop.LocalHost.",
            ResolutionSource::Localhost,
            &["127.0.0.1", "::1"],
        );
        check(
            "filed.example",
            ResolutionSource::HostsFile,
            &["10.1.2.3", "fd00::3"],
        );
    }

    #[test]
    fn invalid_names_and_names_without_a_server_are_minus_one() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        for host in ["", ".", "a..b", "nosuch.example", "notlocalhost"] {
            let failure = runtime.block_on(names().resolve(host, now())).unwrap_err();
            assert_eq!(failure.status(), -1, "{host}: {failure}");
        }
    }

    #[test]
    fn the_dns_record_is_as_in_heritrix() {
        let record = |owner: &str, address: &str| AddressRecord {
            owner: owner.to_owned(),
            ttl: Duration::from_secs(300),
            address: address.parse().unwrap(),
        };
        let records = [
            record("a.example", "192.0.2.1"),
            record("www.example.com", "2001:db8::1"),
            record("a.com", "192.0.2.2"),
        ];
        assert_eq!(
            record_text(now(), &records),
            "20261120131203\n\
             a.example.\t\t300\tIN\tA\t192.0.2.1\n\
             www.example.com.\t300\tIN\tAAAA\t2001:db8::1\n\
             a.com.\t\t\t300\tIN\tA\t192.0.2.2\n"
        );
    }

    /// A name server with a few names. Its answers are assembled octet by octet (RFC 1035 §4).
    async fn name_server() -> Names {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut server = NameServerConfig::udp("127.0.0.1".parse().unwrap());
        server.connections[0].port = socket.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                if let Some(answer) = answer(&query[..length]) {
                    socket.send_to(&answer, from).await.unwrap();
                }
            }
        });
        let mut options = ResolverOpts::default();
        // The time limit suffices for loopback on a busy machine; one query is never answered.
        options.timeout = Duration::from_secs(2);
        options.attempts = 1;
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        let resolver = resolver(config, options, &no_roots()).unwrap();
        let resolver = Resolver {
            resolver,
            server: Some("127.0.0.1".parse().unwrap()),
        };
        Names {
            resolver: OnceCell::new_with(Some(resolver)),
            ..names()
        }
    }

    fn answer(query: &[u8]) -> Option<Vec<u8>> {
        const A: u8 = 1;
        const CNAME: u8 = 5;
        const AAAA: u8 = 28;
        let end = 12 + query[12..].iter().position(|b| *b == 0)? + 5;
        let kind = query[end - 3];
        let record = |owner: &[u8], kind, ttl: u8, data: &[u8]| {
            let length = u8::try_from(data.len()).unwrap();
            [owner, &[0, kind, 0, 1, 0, 0, 0, ttl, 0, length], data].concat()
        };
        // Owner: the name of the query.
        let same = [0xc0, 12];
        let edge = b"\x04edge\x03cdn\x07example\0";
        let v6 = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let (code, records) = match (&query[13..end - 5], kind) {
            (b"both\x07example", A) => (
                0,
                vec![
                    record(&same, A, 60, &[192, 0, 2, 2]),
                    record(&same, A, 50, &[192, 0, 2, 1]),
                ],
            ),
            (b"both\x07example" | b"six\x07example", AAAA) => {
                (0, vec![record(&same, AAAA, 70, &v6)])
            }
            (b"alias\x07example", A) => (
                0,
                vec![
                    record(&same, CNAME, 30, edge),
                    record(edge, A, 90, &[192, 0, 2, 3]),
                ],
            ),
            (b"broken\x07example", _) => (2, Vec::new()),
            (b"silent\x07example", _) => return None,
            (b"gone\x07example", _) => (3, Vec::new()),
            _ => (0, Vec::new()),
        };
        let count = u8::try_from(records.len()).unwrap();
        let header = [
            query[0],
            query[1],
            0x81,
            0x80 | code,
            0,
            1,
            0,
            count,
            0,
            0,
            0,
            0,
        ];
        Some([&header, &query[12..end], &records.concat()].concat())
    }

    #[tokio::test]
    async fn name_servers_are_asked_for_both_families() {
        let names = name_server().await;
        for (host, addresses, ttl, lines) in [
            (
                "both.example",
                &["192.0.2.2", "192.0.2.1", "2001:db8::1"][..],
                50,
                "both.example.\t\t60\tIN\tA\t192.0.2.2\nboth.example.\t\t50\tIN\tA\t192.0.2.1\n\
                 both.example.\t\t70\tIN\tAAAA\t2001:db8::1\n",
            ),
            (
                "six.example",
                &["2001:db8::1"],
                70,
                "six.example.\t\t70\tIN\tAAAA\t2001:db8::1\n",
            ),
            (
                "alias.example.",
                &["192.0.2.3"],
                30,
                "edge.cdn.example.\t90\tIN\tA\t192.0.2.3\n",
            ),
        ] {
            let found = names.resolve(host, now()).await.unwrap();
            let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
            assert_eq!(
                (found.source, &found.addresses),
                (ResolutionSource::Dns, &addresses)
            );
            assert_eq!(found.ttl, Duration::from_secs(ttl));
            assert_eq!(found.text, format!("20261120131203\n{lines}"));
        }
        for (host, definite) in [
            ("gone.example", true),
            ("empty.example", true),
            ("broken.example", false),
            ("silent.example", false),
        ] {
            let failure = names.resolve(host, now()).await.unwrap_err();
            let no = matches!(failure, FetchFailure::NoAddress { .. });
            assert_eq!((failure.status(), no), (-1, definite), "{failure}");
        }
    }

    /// A name server that only speaks HTTPS, and the configuration that trusts it.
    async fn server_over_https() -> (u16, Arc<ClientConfig>) {
        let made = rcgen::generate_simple_self_signed(["dns.test".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the certificate disconnects at once.
                    let Ok(session) = acceptor.accept(tcp).await else {
                        return;
                    };
                    let mut connection = h2::server::handshake(session).await.unwrap();
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        assert_eq!(request.uri().path(), "/ask");
                        let mut body = request.into_body();
                        tokio::spawn(async move {
                            let mut query = Vec::new();
                            while let Some(Ok(part)) = body.data().await {
                                query.extend_from_slice(&part);
                            }
                            let head = ::http::Response::builder()
                                .header("content-type", "application/dns-message")
                                .body(())
                                .unwrap();
                            let mut stream = respond.send_response(head, false).unwrap();
                            let answer = answer(&query).unwrap();
                            stream.send_data(answer.into(), true).unwrap();
                        });
                    }
                });
            }
        });
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client_config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (port, Arc::new(client_config))
    }

    #[tokio::test]
    async fn name_servers_are_asked_by_https() {
        let (port, client_config) = server_over_https().await;
        let server = NameServer::Https {
            host: "dns.test".to_owned(),
            port,
            path: "/ask".to_owned(),
        };
        let table = HostTable::from_iter([("dns.test", "127.0.0.1".parse().unwrap())]);
        let names = |tls| Names::new(table.clone(), vec![server.clone()], tls);
        let found = names(client_config)
            .resolve("alias.example", now())
            .await
            .unwrap();
        assert_eq!(found.source, ResolutionSource::Dns);
        assert_eq!(found.server, "127.0.0.1".parse().ok());
        assert_eq!(found.addresses, ["192.0.2.3".parse::<IpAddr>().unwrap()]);
        // An untrusted name server gives no answer.
        let failure = names(no_roots())
            .resolve("alias.example", now())
            .await
            .unwrap_err();
        assert!(matches!(failure, FetchFailure::Lookup { .. }), "{failure}");
    }
}
