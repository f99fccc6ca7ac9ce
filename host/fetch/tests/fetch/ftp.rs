//! FTP, FTPS and WHOIS against servers on loopback.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use opilio_fetch::auth::Secret;
use opilio_fetch::{
    AddressClass, Exchange, FTP_LISTING, FetchFailure, Fetcher, FetcherConfig, HeadVerdict,
    Request, ResponseHead, TruncationCause, Trust, WHOIS_OK,
};
use opilio_uri::Uri;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::server::Server;
use crate::tls::{certificate, config};

const FILE: &[u8] = b"The first line\r\nand the second\n";
const MLSD: &[u8] = b"type=dir;modify=20261101000000; sub\r\ntype=file;size=31; file.txt\r\n";
const LIST: &[u8] = b"-rw-r--r--   1 ftp ftp   31 Nov 20  2026 file.txt\r\n";

/// Behaviour of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quirk {
    None,
    /// Does not support EPSV, MLSD, SIZE or MDTM, and gives another address for data connections.
    Old,
    /// TLS from the first byte.
    Implicit,
    /// Breaks off in the middle of a transfer and reports it.
    Breaks,
    /// Rejects every password.
    Closed,
    /// Its greeting is not FTP.
    NoFtp,
    Busy,
}

/// A server with `/pub/file.txt`; stops when dropped.
struct Ftp {
    address: SocketAddr,
    commands: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Ftp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

async fn serve(quirk: Quirk, tls: Option<TlsAcceptor>) -> Ftp {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let commands = Arc::new(Mutex::new(Vec::new()));
    let kept = commands.clone();
    let task = tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            // A client that disconnects ends only its session.
            tokio::spawn(session(tcp, quirk, tls.clone(), kept.clone()));
        }
    });
    Ftp {
        address,
        commands,
        task,
    }
}

async fn session(
    tcp: TcpStream,
    quirk: Quirk,
    tls: Option<TlsAcceptor>,
    commands: Arc<Mutex<Vec<String>>>,
) -> Option<()> {
    let stream: Box<dyn Stream> = match &tls {
        Some(acceptor) => Box::new(acceptor.accept(tcp).await.ok()?),
        None => Box::new(tcp),
    };
    let mut control = BufReader::new(stream);
    let greeting: &[u8] = match quirk {
        Quirk::NoFtp => b"SSH-2.0-OpenSSH_9\r\n",
        Quirk::Busy => b"421 too many guests\r\n",
        _ => b"220-Welcome\r\n230 is not the end\r\n 220 neither\r\n220 ready\r\n",
    };
    control.write_all(greeting).await.ok()?;
    let mut passive: Option<TcpListener> = None;
    let mut here = String::from("/");
    loop {
        let mut line = String::new();
        if control.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        commands.lock().unwrap().push(line.clone());
        let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let path = match argument.starts_with('/') {
            true => argument.to_owned(),
            false => format!("{here}{argument}"),
        };
        let old = quirk == Quirk::Old;
        let data: &[u8] = match command {
            "RETR" if path == "/pub/file.txt" => FILE,
            "MLSD" if !old => MLSD,
            "LIST" => LIST,
            _ => {
                let reply = match command {
                    "USER" => "331 who are you?".to_owned(),
                    "PASS" if quirk == Quirk::Closed => "530 not you".to_owned(),
                    "PASS" => "230 come in".to_owned(),
                    "TYPE" | "PBSZ" | "PROT" => "200 ok".to_owned(),
                    "SIZE" if !old && path == "/pub/file.txt" => format!("213 {}", FILE.len()),
                    "MDTM" if !old && path == "/pub/file.txt" => "213 20261120131203".to_owned(),
                    "CWD" if path.trim_end_matches('/') == "/pub" => {
                        here = "/pub/".to_owned();
                        "250 there".to_owned()
                    }
                    "EPSV" | "PASV" if !(old && command == "EPSV") => {
                        let listener = TcpListener::bind("127.0.0.1:0").await.ok()?;
                        let port = listener.local_addr().ok()?.port();
                        passive = Some(listener);
                        match command {
                            "EPSV" => format!("229 (|||{port}|)"),
                            _ => format!("227 (10,9,8,7,{},{})", port >> 8, port & 255),
                        }
                    }
                    "QUIT" => "221 bye".to_owned(),
                    "RETR" => "550 no such file".to_owned(),
                    _ => "502 what?".to_owned(),
                };
                control
                    .write_all(format!("{reply}\r\n").as_bytes())
                    .await
                    .ok()?;
                continue;
            }
        };
        control.write_all(b"150 here it comes\r\n").await.ok()?;
        let (tcp, _) = passive.take()?.accept().await.ok()?;
        let mut connection: Box<dyn Stream> = match &tls {
            Some(acceptor) => Box::new(acceptor.accept(tcp).await.ok()?),
            None => Box::new(tcp),
        };
        let half = if quirk == Quirk::Breaks {
            data.len() / 2
        } else {
            data.len()
        };
        connection.write_all(&data[..half]).await.ok()?;
        connection.shutdown().await.ok()?;
        let end: &[u8] = match quirk {
            Quirk::Breaks => b"426 broke\r\n",
            _ => b"226 done\r\n",
        };
        control.write_all(end).await.ok()?;
    }
}

async fn get_with(config: FetcherConfig, scheme: &str, server: SocketAddr, path: &str) -> Exchange {
    let uri = format!("{scheme}://files.test:{}{path}", server.port());
    let addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let request = Request::new(Uri::parse(&uri).unwrap(), addresses);
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    Fetcher::new(config).unwrap().ftp(request, proceed).await
}

async fn get(server: &Ftp, path: &str) -> Exchange {
    get_with(config(Trust::Record), "ftp", server.address, path).await
}

fn payload(exchange: &Exchange) -> Vec<u8> {
    let mut bytes = Vec::new();
    exchange.payload.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

fn header<'a>(exchange: &'a Exchange, name: &str) -> Option<&'a str> {
    exchange.head.as_ref().unwrap().first(name)
}

#[tokio::test]
async fn a_file_is_fetched_with_its_size_and_date() {
    let server = serve(Quirk::None, None).await;
    let exchange = get(&server, "/pub/file.txt").await;
    assert_eq!(exchange.status(), 226, "{exchange:?}");
    assert_eq!(payload(&exchange), FILE);
    assert_eq!(header(&exchange, "content-type"), Some("text/plain"));
    assert_eq!(header(&exchange, "content-length"), Some("31"));
    assert_eq!(
        header(&exchange, "last-modified"),
        Some("Fri, 20 Nov 2026 13:12:03 GMT")
    );
    assert_eq!(exchange.protocols(), ["ftp"]);
    let conversation = String::from_utf8(exchange.request_bytes.to_vec()).unwrap();
    assert!(
        conversation.starts_with("220-Welcome\r\n230 is not the end\r\n 220 neither\r\n220 ready\r\nUSER anonymous\r\n331 "),
        "{conversation}"
    );
    assert!(
        conversation.ends_with("RETR pub/file.txt\r\n150 here it comes\r\n226 done\r\nQUIT\r\n"),
        "{conversation}"
    );
}

#[tokio::test]
async fn a_directory_is_listed_with_its_slash_and_without() {
    let server = serve(Quirk::None, None).await;
    for path in ["/pub/", "/pub"] {
        let exchange = get(&server, path).await;
        assert_eq!(exchange.status(), 226, "{exchange:?}");
        assert_eq!(payload(&exchange), MLSD);
        assert_eq!(header(&exchange, FTP_LISTING), Some("MLSD"));
        assert_eq!(header(&exchange, "last-modified"), None);
        assert_eq!(exchange.annotations, ["ftpDirectoryList"]);
    }
}

#[tokio::test]
async fn an_old_server_is_fetched_from_and_its_data_address_is_ignored() {
    let server = serve(Quirk::Old, None).await;
    let exchange = get(&server, "/pub/file.txt").await;
    assert_eq!(
        (exchange.status(), payload(&exchange)),
        (226, FILE.to_vec())
    );
    assert_eq!(header(&exchange, "content-length"), None);
    let listing = get(&server, "/pub/").await;
    assert_eq!((listing.status(), payload(&listing)), (226, LIST.to_vec()));
    assert_eq!(header(&listing, FTP_LISTING), Some("LIST"));
}

#[tokio::test]
async fn passwords_are_sent_and_not_recorded() {
    let server = serve(Quirk::None, None).await;
    let uri = format!("ftp://files.test:{}/pub/file.txt", server.address.port());
    let mut request = Request::new(Uri::parse(&uri).unwrap(), vec![Ipv4Addr::LOCALHOST.into()]);
    request.login = Some(("me".to_owned(), Secret::new("s ecret")));
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    let fetcher = Fetcher::new(config(Trust::Record)).unwrap();
    let exchange = fetcher.ftp(request.clone(), proceed).await;
    assert_eq!(exchange.status(), 226, "{exchange:?}");
    assert!(
        server
            .commands
            .lock()
            .unwrap()
            .contains(&"PASS s ecret".to_owned())
    );
    let conversation = String::from_utf8(exchange.request_bytes.to_vec()).unwrap();
    assert!(
        conversation.contains("USER me\r\n") && conversation.contains("PASS ****\r\n"),
        "{conversation}"
    );
    assert!(!conversation.contains("ecret"), "{conversation}");

    // A password that would be a further command is not sent.
    request.login = Some(("me".to_owned(), Secret::new("a\r\nDELE b")));
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    assert_eq!(fetcher.ftp(request, proceed).await.status(), -7);
    assert!(!format!("{:?}", server.commands.lock().unwrap()).contains("DELE"));
}

#[tokio::test]
async fn refusals_of_the_server_have_its_status_and_no_content() {
    for (quirk, path, status) in [
        (Quirk::None, "/pub/missing", 550),
        (Quirk::None, "/missing/", 502),
        (Quirk::Closed, "/pub/file.txt", 530),
        (Quirk::Busy, "/pub/file.txt", 421),
    ] {
        let server = serve(quirk, None).await;
        let exchange = get(&server, path).await;
        assert_eq!(exchange.status(), status, "{exchange:?}");
        assert!(exchange.payload.is_empty() && !exchange.request_bytes.is_empty());
    }
}

#[tokio::test]
async fn a_filter_can_stop_before_the_content() {
    let server = serve(Quirk::None, None).await;
    let uri = format!("ftp://files.test:{}/pub/file.txt", server.address.port());
    let request = Request::new(Uri::parse(&uri).unwrap(), vec![Ipv4Addr::LOCALHOST.into()]);
    let abort = async |head: &ResponseHead| HeadVerdict::Abort {
        reason: format!("{} bytes", head.first("content-length").unwrap()),
    };
    let fetcher = Fetcher::new(config(Trust::Record)).unwrap();
    let exchange = fetcher.ftp(request, abort).await;
    assert_eq!(exchange.aborted_by_filter.as_deref(), Some("31 bytes"));
    assert!(exchange.payload.is_empty());
}

#[tokio::test]
async fn broken_transfers_are_truncated_and_limits_apply() {
    let server = serve(Quirk::Breaks, None).await;
    let exchange = get(&server, "/pub/file.txt").await;
    assert_eq!(
        exchange.truncated,
        Some(TruncationCause::Disconnect),
        "{exchange:?}"
    );
    assert_eq!(payload(&exchange), &FILE[..FILE.len() / 2]);

    let server = serve(Quirk::None, None).await;
    let mut config = config(Trust::Record);
    config.body_bytes_max = Some(9);
    let exchange = get_with(config, "ftp", server.address, "/pub/file.txt").await;
    assert_eq!(
        exchange.truncated,
        Some(TruncationCause::Length),
        "{exchange:?}"
    );
    assert_eq!(payload(&exchange), &FILE[..9]);
    assert_eq!(exchange.annotations, ["lenTrunc"]);
}

#[tokio::test]
async fn a_server_of_another_protocol_is_a_lost_connection() {
    let server = serve(Quirk::NoFtp, None).await;
    let exchange = get(&server, "/").await;
    assert!(
        matches!(exchange.failure, Some(FetchFailure::Lost { .. })),
        "{exchange:?}"
    );
}

#[tokio::test]
async fn a_server_that_only_sends_delays_is_abandoned() {
    let server = Server::plain(|mut connection| async move {
        while connection.send(b"120 ready in a minute\r\n").await {}
    })
    .await;
    let config = config(Trust::Record);
    let exchange = get_with(config, "ftp", server.address, "/").await;
    assert_eq!(exchange.status(), -3, "{exchange:?}");
    let transcript = String::from_utf8(exchange.request_bytes.to_vec()).unwrap();
    assert_eq!(transcript.lines().count(), 10);
}

#[tokio::test]
async fn the_address_policy_applies_to_ftp() {
    let server = serve(Quirk::None, None).await;
    let config = FetcherConfig::new("opilio-test/1", std::env::temp_dir());
    let exchange = get_with(config, "ftp", server.address, "/").await;
    assert!(
        matches!(
            exchange.failure,
            Some(FetchFailure::AddressRefused {
                class: AddressClass::Loopback,
                ..
            })
        ),
        "{exchange:?}"
    );
    assert!(server.commands.lock().unwrap().is_empty());
}

#[tokio::test]
async fn ftps_encrypts_conversation_and_data() {
    let (acceptor, made) = certificate("files.test");
    let server = serve(Quirk::Implicit, Some(acceptor)).await;
    let trust = config(Trust::Roots(vec![made]));
    let exchange = get_with(trust, "ftps", server.address, "/pub/file.txt").await;
    assert_eq!(
        (exchange.status(), payload(&exchange)),
        (226, FILE.to_vec())
    );
    assert_eq!(exchange.protocols(), ["ftp", "tls/1.3"]);
    assert!(
        server
            .commands
            .lock()
            .unwrap()
            .contains(&"PROT P".to_owned())
    );

    let untrusting = config(Trust::Roots(Vec::new()));
    let exchange = get_with(untrusting, "ftps", server.address, "/pub/file.txt").await;
    assert_eq!(exchange.status(), -9, "{exchange:?}");
}

#[tokio::test]
async fn whois_sends_a_query_and_records_the_answer() {
    let server = Server::plain(|mut connection| async move {
        let mut question = Vec::new();
        connection.line(&mut question).await;
        connection.send(b"you asked ").await;
        connection.send(&question).await;
        connection.close().await;
    })
    .await;
    let ask = async |query: &str| {
        let uri = format!("whois://whois.test:{}/{query}", server.address.port());
        let request = Request::new(Uri::parse(&uri).unwrap(), vec![Ipv4Addr::LOCALHOST.into()]);
        let fetcher = Fetcher::new(config(Trust::Record)).unwrap();
        fetcher.whois(request).await
    };
    let exchange = ask("example.org").await;
    assert_eq!(exchange.status(), i32::from(WHOIS_OK), "{exchange:?}");
    assert_eq!(payload(&exchange), b"you asked example.org\r\n");
    assert_eq!(&exchange.request_bytes[..], b"example.org\r\n");
    assert!(exchange.protocols().is_empty());
    assert_eq!(ask("").await.status(), -7);
}
