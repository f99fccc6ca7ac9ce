//! FTP (RFC 959, 2428, 3659) and FTPS (RFC 4217): one file or one directory for each call, on a connection of its own.
//!
//! A path that ends in `/` is a directory. If another path cannot be retrieved, it is tried as a directory. Directories are
//! listed with MLSD, or with LIST if the server does not know MLSD. The synthetic header `FTP-Listing` records which one.
//! Data connections are passive and use the address of the control connection, whatever address the server gives: a reply must not
//! lead into another network. `ftps` uses TLS from the first byte, except on port 21, where it uses AUTH TLS.

use std::net::IpAddr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use opilio_uri::Uri;
use percent_encoding::percent_decode_str;
use rustls_pki_types::ServerName;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use crate::exchange::{Exchange, HeadVerdict, Request};
use crate::failure::{FetchFailure, Phase};
use crate::head::ResponseHead;
use crate::parts::Parts;
use crate::ports;
use crate::stream::{Server, Socket, Stream};
use crate::tls::TlsInfo;
use crate::transfer::{Content, Conversation, TransferFacts, connect};
use crate::wire::Clock;

/// The synthetic header of a directory's listing: `MLSD` or `LIST`.
pub const FTP_LISTING: &str = "FTP-Listing";

/// Port on which `ftps` begins in the clear and asks for TLS (RFC 4217). On other ports it begins with TLS.
const EXPLICIT_TLS_PORT: u16 = 21;

/// Default ports of `ftp`, of `ftps`, and of data that the server sends.
const OWN_PORTS: [u16; 4] = [20, 21, 989, 990];

/// Maximum number of delaying replies ("ready in some minutes") before the greeting.
const DELAYS_MAX: usize = 10;

/// Maximum number of lines of one reply.
const REPLY_LINES_MAX: usize = 1000;

/// A reply of the server.
struct Reply {
    /// 100 to 659 (RFC 2228 adds 6yz).
    code: u16,
    /// Text of the last line, without the code.
    text: String,
}

/// One FTP session with a server.
struct Session<'a> {
    parts: &'a Parts,
    clock: &'a Clock,
    server: Server,
    /// Addresses for the data connections.
    addresses: Vec<IpAddr>,
    /// `true` if data connections are encrypted too.
    private: bool,
    conversation: Conversation,
}

/// The path of a URI.
struct Path {
    /// Decoded and relative to the login directory; empty for that directory itself.
    path: String,
    directory: bool,
}

/// The reason why there is no content.
enum Stop {
    Failure(FetchFailure),
    /// The server's negative reply, a response like any other.
    Refused(Reply),
    Aborted(String),
}

impl From<FetchFailure> for Stop {
    fn from(failure: FetchFailure) -> Self {
        Stop::Failure(failure)
    }
}

pub(crate) async fn fetch(
    parts: &Parts,
    request: &Request,
    on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
) -> Exchange {
    let (started, clock) = (Timestamp::now(), Clock::start(&parts.config));
    let mut content = Content::new(parts, request.received.clone());
    let mut facts = TransferFacts::default();
    let stop = match Session::open(parts, &clock, request, &mut facts).await {
        Ok(mut session) => {
            let visit = session.visit(request, &mut content, &mut facts, on_head);
            let result = visit.await;
            if !matches!(result, Err(Stop::Failure(_))) {
                // A courtesy: the server need not answer.
                let _ = session.send_line("QUIT").await;
            }
            facts.conversation = session.conversation.transcript;
            result.err()
        }
        Err(failure) => Some(Stop::Failure(failure)),
    };
    match stop {
        None => {}
        Some(Stop::Failure(failure)) => facts.failure = Some(failure),
        Some(Stop::Aborted(reason)) => facts.aborted_by_filter = Some(reason),
        Some(Stop::Refused(reply)) => {
            facts.head = Some(head_of(reply.code, reply.text, Vec::new()));
        }
    }
    content.into_exchange(started, &clock, facts)
}

impl<'a> Session<'a> {
    /// Connects to the server.
    async fn open(
        parts: &'a Parts,
        clock: &'a Clock,
        request: &Request,
        facts: &mut TransferFacts,
    ) -> Result<Self, FetchFailure> {
        let uri = &request.uri;
        let host = uri.host().filter(|host| !host.is_empty());
        let server = Server {
            tls: false,
            host: host.ok_or_else(|| unfetchable(uri, "no host"))?.to_owned(),
            port: uri.port_or_default(),
        };
        ports::check(&parts.config, &server, &OWN_PORTS)?;
        let opened = connect(parts, &server, &request.addresses, clock).await?;
        facts.peer = opened.peer;
        Ok(Session {
            parts,
            clock,
            server,
            addresses: match opened.peer {
                Some(peer) => vec![peer],
                None => request.addresses.clone(),
            },
            private: uri.scheme() == "ftps",
            conversation: Conversation::new(opened.stream, request.received.clone()),
        })
    }

    /// Runs the dialogue from the greeting to the login.
    async fn begin(&mut self, request: &Request, facts: &mut TransferFacts) -> Result<(), Stop> {
        let (name, password) = credentials(request, self.parts.config.from.as_deref());
        if [name, password]
            .iter()
            .any(|it| it.chars().any(char::is_control))
        {
            let reason = "name or password with a control character";
            return Err(unfetchable(&request.uri, reason).into());
        }
        let explicit = self.private && self.server.port == EXPLICIT_TLS_PORT;
        if self.private && !explicit {
            facts.tls = Some(self.begin_tls().await?);
        }
        self.expect_greeting().await?;
        if explicit {
            self.command("AUTH TLS").await?.success()?;
            facts.tls = Some(self.begin_tls().await?);
        }
        self.log_in(name, password).await?;
        if self.private {
            self.command("PBSZ 0").await?.success()?;
            self.command("PROT P").await?.success()?;
        }
        self.command("TYPE I").await?.success()?;
        Ok(())
    }

    async fn expect_greeting(&mut self) -> Result<(), Stop> {
        for _ in 0..DELAYS_MAX {
            let reply = self.reply().await?;
            // 120: ready in some minutes.
            if reply.code != 120 {
                return reply.success().map(|_| ());
            }
        }
        let reason = format!("{DELAYS_MAX} replies 120 (ready in some minutes) and no greeting");
        Err(self.lost(reason).into())
    }

    async fn log_in(&mut self, name: &str, password: &str) -> Result<(), Stop> {
        let mut reply = self.command(&format!("USER {name}")).await?;
        if reply.code == 331 {
            let (line, anonymous) = (format!("PASS {password}"), name == ANONYMOUS);
            let written = if anonymous {
                line.as_str()
            } else {
                "PASS ****"
            };
            self.conversation
                .send_secret_line(self.parts, self.clock, &line, written)
                .await?;
            reply = self.reply().await?;
        }
        reply.success().map(|_| ())
    }

    /// Retrieves the content that the URI names.
    async fn visit(
        &mut self,
        request: &Request,
        content: &mut Content,
        facts: &mut TransferFacts,
        on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
    ) -> Result<(), Stop> {
        let uri = &request.uri;
        let path = Path::of(uri);
        let path = path.ok_or_else(|| unfetchable(uri, "its path has a control character"))?;
        self.begin(request, facts).await?;
        let mut headers = Vec::new();
        let (mut data, opening) = if path.directory {
            self.change_to(&path.path).await?.success()?;
            self.list(&mut headers, facts).await?
        } else {
            headers = self.facts(&path.path).await?;
            let data = self.data_connection().await?;
            let reply = self.command(&format!("RETR {}", path.path)).await?;
            match reply.is_opening() {
                true => (data, reply),
                false => {
                    drop(data);
                    // Not a file: perhaps a directory that was linked without its slash.
                    if !self.change_to(&path.path).await?.is_success() {
                        return Err(Stop::Refused(reply));
                    }
                    headers.clear();
                    self.list(&mut headers, facts).await?
                }
            }
        };
        let head = head_of(opening.code, opening.text, headers);
        facts.time_to_head = Some(self.clock.elapsed());
        let verdict = on_head(&head).await;
        facts.head = Some(head);
        if let HeadVerdict::Abort { reason } = verdict {
            return Err(Stop::Aborted(reason));
        }
        if self.private {
            let (stream, _) = self.secure(data).await?;
            data = stream;
        }
        content.receive(self.parts, self.clock, &mut data).await?;
        drop(data);
        if content.truncated.is_none() {
            let reply = self.reply().await?;
            if let Some(head) = &mut facts.head {
                (head.status, head.reason) = (reply.code, reply.text);
            }
            if !(200..300).contains(&reply.code) {
                content.truncated = Some(crate::exchange::TruncationCause::Disconnect);
            }
        }
        Ok(())
    }

    /// Headers with the facts about a file that are known before its transfer.
    async fn facts(&mut self, path: &str) -> Result<Vec<(String, String)>, Stop> {
        let mut headers = Vec::new();
        let media_type = mime_guess::from_path(path).first_or_octet_stream();
        headers.push((
            "Content-Type".to_owned(),
            media_type.essence_str().to_owned(),
        ));
        let size = self.command(&format!("SIZE {path}")).await?;
        if let (213, Ok(size)) = (size.code, size.text.trim().parse::<u64>()) {
            headers.push(("Content-Length".to_owned(), size.to_string()));
        }
        let modified = self.command(&format!("MDTM {path}")).await?;
        if let (213, Some(date)) = (modified.code, http_date(&modified.text)) {
            headers.push(("Last-Modified".to_owned(), date));
        }
        Ok(headers)
    }

    async fn change_to(&mut self, path: &str) -> Result<Reply, Stop> {
        match path.trim_end_matches('/') {
            // The login directory is the current directory already.
            "" if path.is_empty() => Ok(Reply {
                code: 250,
                text: String::new(),
            }),
            "" => self.command("CWD /").await,
            path => self.command(&format!("CWD {path}")).await,
        }
    }

    async fn list(
        &mut self,
        headers: &mut Vec<(String, String)>,
        facts: &mut TransferFacts,
    ) -> Result<(Stream, Reply), Stop> {
        let mut refusal = None;
        for command in ["MLSD", "LIST"] {
            let data = self.data_connection().await?;
            let reply = self.command(command).await?;
            if reply.is_opening() {
                headers.push(("Content-Type".to_owned(), "text/plain".to_owned()));
                headers.push((FTP_LISTING.to_owned(), command.to_owned()));
                facts.annotations.push("ftpDirectoryList".to_owned());
                return Ok((data, reply));
            }
            refusal = Some(reply);
        }
        Err(refusal.map_or_else(|| self.lost("no listing".to_owned()).into(), Stop::Refused))
    }

    /// Opens a data connection, not yet encrypted: servers begin TLS only after they have accepted the transfer.
    async fn data_connection(&mut self) -> Result<Stream, Stop> {
        let extended = self.command("EPSV").await?;
        let port = match extended_port(&extended) {
            Some(port) => port,
            None => {
                let reply = self.command("PASV").await?;
                match passive_port(&reply) {
                    Some(port) => port,
                    None => return Err(Stop::Refused(reply)),
                }
            }
        };
        let server = Server {
            tls: false,
            host: self.server.host.clone(),
            port,
        };
        Ok(connect(self.parts, &server, &self.addresses, self.clock)
            .await?
            .stream)
    }

    /// Switches the control connection to TLS.
    async fn begin_tls(&mut self) -> Result<TlsInfo, Stop> {
        let plain = self.conversation.take_stream()?;
        let (stream, info) = self.secure(plain).await?;
        self.conversation.resume_on(stream);
        Ok(info)
    }

    async fn secure(&self, stream: Stream) -> Result<(Stream, TlsInfo), Stop> {
        let failed = |reason: String| FetchFailure::Tls {
            host: self.server.host.clone(),
            reason,
        };
        let bare = self
            .server
            .host
            .trim_start_matches('[')
            .trim_end_matches([']', '.'])
            .to_owned();
        let name = ServerName::try_from(bare).map_err(|error| failed(error.to_string()))?;
        // Sessions are shared with the other connections of the visit: many servers require that data connections resume
        // the control connection's session. The ALPN list is for HTTP and therefore cleared.
        let mut config = (*self.parts.tls.config).clone();
        config.alpn_protocols.clear();
        let connector = TlsConnector::from(std::sync::Arc::new(config));
        let limit = self.parts.config.connect_timeout;
        let Stream { socket, guard } = stream;
        let Socket::Plain(tcp) = socket else {
            return Err(failed("TLS is in use already".to_owned()).into());
        };
        let by = (Instant::now() + limit).min(self.clock.deadline);
        let handshake = tokio::time::timeout_at(by, connector.connect(name.clone(), tcp));
        let shaken = self.parts.cut.unless_made(handshake).await;
        match shaken.ok_or(FetchFailure::Stopped)? {
            Ok(Ok(session)) => {
                let info = self.parts.tls.info(session.get_ref().1, &name);
                let socket = Socket::Tls(Box::new(session));
                Ok((Stream { socket, guard }, info))
            }
            Ok(Err(error)) => Err(failed(error.to_string()).into()),
            Err(_) => Err(FetchFailure::Timeout {
                phase: Phase::Connecting,
                after: limit,
            }
            .into()),
        }
    }

    async fn command(&mut self, command: &str) -> Result<Reply, Stop> {
        self.send_line(command).await?;
        self.reply().await
    }

    async fn send_line(&mut self, command: &str) -> Result<(), FetchFailure> {
        self.conversation
            .send_line(self.parts, self.clock, command)
            .await
    }

    /// Reads a reply within the time limits.
    async fn reply(&mut self) -> Result<Reply, Stop> {
        let config = &self.parts.config;
        let after = config.response_timeout + config.header_timeout;
        let reply = tokio::time::timeout(after, self.whole_reply()).await;
        let phase = Phase::Head;
        reply.unwrap_or_else(|_| Err(FetchFailure::Timeout { phase, after }.into()))
    }

    /// Reads a reply, which has several lines if its first one has a hyphen after the code (RFC 959 §4.2).
    async fn whole_reply(&mut self) -> Result<Reply, Stop> {
        let mut multiline = None;
        for _ in 0..REPLY_LINES_MAX {
            let line = self.conversation.read_line(self.parts, self.clock).await?;
            let Some(line) = line else {
                return Err(self
                    .lost("the server closed the connection".to_owned())
                    .into());
            };
            let code = line
                .get(..3)
                .filter(|code| code.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|code| code.parse::<u16>().ok())
                .filter(|code| (100..660).contains(code));
            match (code, line.as_bytes().get(3), multiline) {
                (Some(code), Some(b'-'), None) => multiline = Some(code),
                (Some(code), None | Some(b' '), None) => return Ok(Reply::new(code, &line)),
                (Some(code), None | Some(b' '), Some(first)) if code == first => {
                    return Ok(Reply::new(code, &line));
                }
                (_, _, Some(_)) => {}
                (_, _, None) => {
                    return Err(FetchFailure::Lost {
                        phase: Phase::Head,
                        reason: format!(
                            "no FTP reply: {:?}",
                            line.chars().take(80).collect::<String>()
                        ),
                    }
                    .into());
                }
            }
        }
        Err(self
            .lost(format!("a reply of more than {REPLY_LINES_MAX} lines"))
            .into())
    }

    fn lost(&self, reason: String) -> FetchFailure {
        FetchFailure::Lost {
            phase: Phase::Head,
            reason,
        }
    }
}

fn unfetchable(uri: &Uri, reason: &str) -> FetchFailure {
    FetchFailure::Unfetchable {
        uri: uri.as_str().to_owned(),
        reason: reason.to_owned(),
    }
}

/// User name of anonymous FTP.
const ANONYMOUS: &str = "anonymous";

/// Name and password: the given ones, or those of a guest who identifies himself (RFC 1635).
fn credentials<'a>(request: &'a Request, from: Option<&'a str>) -> (&'a str, &'a str) {
    match &request.login {
        Some((name, password)) => (name, password.reveal()),
        None => (ANONYMOUS, from.unwrap_or("guest@")),
    }
}

impl Path {
    /// Parses the path of a URI; `None` if it has control characters, which could end the command line.
    fn of(uri: &Uri) -> Option<Self> {
        let path = uri.path();
        let path = path.strip_prefix('/').unwrap_or(path);
        // The transfer type (RFC 1738 §3.2.2) is removed: all transfers are binary.
        let (path, kind) = match path.rsplit_once(";type=") {
            Some((path, kind @ ("a" | "i" | "d" | "A" | "I" | "D"))) => (path, kind),
            _ => (path, ""),
        };
        let decoded = percent_decode_str(path).decode_utf8_lossy().into_owned();
        let directory =
            decoded.is_empty() || decoded.ends_with('/') || kind.eq_ignore_ascii_case("d");
        let is_line = !decoded.chars().any(char::is_control);
        is_line.then_some(Path {
            path: decoded,
            directory,
        })
    }
}

impl Reply {
    fn new(code: u16, line: &str) -> Self {
        Reply {
            code,
            text: line.get(4..).unwrap_or_default().to_owned(),
        }
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Returns `true` if the reply announces data: the connection opens or is already open.
    fn is_opening(&self) -> bool {
        (100..200).contains(&self.code)
    }

    fn success(self) -> Result<Reply, Stop> {
        match self.is_success() {
            true => Ok(self),
            false => Err(Stop::Refused(self)),
        }
    }
}

/// Parses `229 … (|||port|)`, with any delimiter for `|` (RFC 2428 §3).
fn extended_port(reply: &Reply) -> Option<u16> {
    let text = reply.text.split_once('(').filter(|_| reply.code == 229)?.1;
    let mark = text.chars().next()?;
    let port = text.split(mark).nth(3)?;
    port.parse().ok().filter(|port| *port != 0)
}

/// Parses `227 … h1,h2,h3,h4,p1,p2`; the address is ignored.
fn passive_port(reply: &Reply) -> Option<u16> {
    let text = (reply.code == 227).then_some(reply.text.as_str())?;
    let numbers = text
        .split(|c: char| !(c.is_ascii_digit() || c == ','))
        .find(|word| word.split(',').count() == 6)?;
    let mut ports = numbers.split(',').skip(4).map(str::parse::<u8>);
    let (high, low) = (ports.next()?.ok()?, ports.next()?.ok()?);
    Some(u16::from_be_bytes([high, low])).filter(|port| *port != 0)
}

/// Converts `YYYYMMDDHHMMSS[.fff]` in UTC (RFC 3659 §2.3) into an HTTP date.
fn http_date(modified: &str) -> Option<String> {
    let digits = modified.trim().get(..14)?;
    let time = DateTime::strptime("%Y%m%d%H%M%S", digits).ok()?;
    let zoned = time.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn head_of(status: u16, reason: String, headers: Vec<(String, String)>) -> ResponseHead {
    ResponseHead {
        version: "FTP".to_owned(),
        status,
        reason,
        headers,
        length: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Secret;

    fn reply(line: &str) -> Reply {
        Reply::new(line[..3].parse().unwrap(), line)
    }

    #[test]
    fn ports_are_read_from_replies() {
        let extended = |line| extended_port(&reply(line));
        assert_eq!(
            extended("229 Entering Extended Passive Mode (|||6446|)"),
            Some(6446)
        );
        assert_eq!(extended("229 ok (!!!21!)"), Some(21));
        assert_eq!(extended("229 ok (|||70000|)"), None);
        assert_eq!(extended("500 what (|||6446|)"), None);
        let passive = |line| passive_port(&reply(line));
        assert_eq!(
            passive("227 Entering Passive Mode (192,0,2,1,4,1)."),
            Some(1025)
        );
        assert_eq!(passive("227 =192,0,2,1,0,21"), Some(21));
        assert_eq!(passive("227 (192,0,2,1,256,1)"), None);
        assert_eq!(passive("227 no"), None);
    }

    #[track_caller]
    fn check(uri: &str, expected: Option<(&str, bool)>) {
        let path = Path::of(&Uri::parse(uri).unwrap());
        let path = path
            .as_ref()
            .map(|path| (path.path.as_str(), path.directory));
        assert_eq!(path, expected, "{uri}");
    }

    #[test]
    fn paths_are_relative_to_the_login() {
        check("ftp://example.org/", Some(("", true)));
        check("ftp://example.org/pub/", Some(("pub/", true)));
        check(
            "ftp://example.org/pub/a%20b.txt",
            Some(("pub/a b.txt", false)),
        );
        check("ftp://example.org/%2Fetc/motd", Some(("/etc/motd", false)));
        check("ftp://example.org/pub;type=d", Some(("pub", true)));
        check("ftp://example.org/a;type=i", Some(("a", false)));
        check("ftps://example.org/a", Some(("a", false)));
    }

    #[test]
    fn a_path_is_one_line() {
        check("ftp://example.org/a%0D%0ADELE%20b", None);
        check("ftp://example.org/a%00", None);
    }

    #[test]
    fn anonymous_logins_send_the_operators_address() {
        let mut request = Request::new(Uri::parse("ftp://you:s@example.org/").unwrap(), vec![]);
        assert_eq!(
            credentials(&request, Some("crawl@example.org")),
            ("anonymous", "crawl@example.org")
        );
        assert_eq!(credentials(&request, None), ("anonymous", "guest@"));
        request.login = Some(("me".to_owned(), Secret::new("se:cret")));
        assert_eq!(credentials(&request, None), ("me", "se:cret"));
    }

    #[test]
    fn times_are_converted_to_http_dates() {
        assert_eq!(
            http_date("20261120131203").as_deref(),
            Some("Fri, 20 Nov 2026 13:12:03 GMT")
        );
        assert_eq!(
            http_date(" 20261120131203.25").as_deref(),
            Some("Fri, 20 Nov 2026 13:12:03 GMT")
        );
        assert_eq!(http_date("2026112"), None);
        assert_eq!(http_date("20261320131203"), None);
    }
}
