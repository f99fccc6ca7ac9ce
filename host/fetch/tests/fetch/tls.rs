//! HTTPS against servers with self-signed certificates.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use crate::server::{Connection, Server};
use opilio_fetch::{
    Exchange, FetchFailure, Fetcher, FetcherConfig, HeadVerdict, Request, ResponseHead, Trust,
};
use opilio_uri::Uri;
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\n\r\nhello";

pub(crate) fn certificate(host: &str) -> (TlsAcceptor, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

pub(crate) fn config(trust: Trust) -> FetcherConfig {
    let mut config = FetcherConfig::new("opilio-test/1", std::env::temp_dir());
    config.addresses = opilio_fetch::AddressPolicy::ALL;
    config.trust = trust;
    config
}

async fn fetch(fetcher: &Fetcher, server: &Server) -> Exchange {
    let port = server.address.port();
    let request = Request::new(
        Uri::parse(&format!("https://site.test:{port}/")).unwrap(),
        vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
    );
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    fetcher.http(request, proceed).await
}

async fn answer(mut connection: Connection) {
    while connection.request().await {
        connection.send(RESPONSE).await;
    }
}

fn wire(exchange: &Exchange) -> Vec<u8> {
    let mut bytes = Vec::new();
    exchange.wire.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_trusted_certificate_is_fetched_and_its_session_recorded() {
    let (acceptor, certificate) = certificate("site.test");
    let server = Server::tls(acceptor, answer).await;
    let fetcher = Fetcher::new(config(Trust::Roots(vec![certificate.clone()]))).unwrap();
    for reused in [false, true] {
        let exchange = fetch(&fetcher, &server).await;
        assert_eq!(
            (exchange.status(), exchange.reused_connection),
            (200, reused),
            "{exchange:?}"
        );
        assert_eq!(wire(&exchange), RESPONSE);
        assert_eq!(exchange.protocols(), ["http/1.1", "tls/1.3"]);
        let tls = exchange.tls.unwrap();
        assert_eq!(
            (tls.certificates, tls.verified),
            (vec![certificate.clone()], Ok(()))
        );
        assert!(tls.cipher_suite.unwrap().starts_with("TLS13_"));
    }
    assert_eq!(server.captures().len(), 1);
}

#[tokio::test]
async fn untrusted_certificates_are_minus_nine() {
    let (other_acceptor, other) = certificate("other.test");
    let (acceptor, _) = certificate("site.test");
    let unknown = Server::tls(acceptor, answer).await;
    let misnamed = Server::tls(other_acceptor, answer).await;
    for (server, trust) in [
        (&unknown, Trust::Platform),
        (&unknown, Trust::Roots(Vec::new())),
        (&unknown, Trust::Roots(vec![other.clone()])),
        (&misnamed, Trust::Roots(vec![other])),
    ] {
        let exchange = fetch(&Fetcher::new(config(trust)).unwrap(), server).await;
        assert_eq!(exchange.status(), -9, "{exchange:?}");
        assert!(exchange.request_bytes.is_empty());
    }
}

#[tokio::test]
async fn trust_record_notes_that_a_certificate_is_untrusted() {
    let (acceptor, certificate) = certificate("other.test");
    let server = Server::tls(acceptor, answer).await;
    let exchange = fetch(&Fetcher::new(config(Trust::Record)).unwrap(), &server).await;
    assert_eq!(exchange.status(), 200, "{exchange:?}");
    let tls = exchange.tls.unwrap();
    assert_eq!(tls.certificates, [certificate]);
    assert!(!tls.verified.unwrap_err().is_empty());
}

#[tokio::test]
async fn other_protocols_are_minus_nine_and_silence_is_a_timeout() {
    let plain = Server::plain(|mut connection| async move {
        connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        connection.hang().await;
    })
    .await;
    let closing = Server::plain(|connection| connection.close()).await;
    let silent = Server::plain(|connection| connection.hang()).await;
    let mut config = config(Trust::Record);
    config.connect_timeout = Duration::from_secs(2);
    let fetcher = Fetcher::new(config).unwrap();
    for (server, status) in [(plain, -9), (closing, -9), (silent, -4)] {
        let exchange = fetch(&fetcher, &server).await;
        assert_eq!(exchange.status(), status, "{exchange:?}");
    }
}

#[tokio::test]
async fn sessions_without_close_notify_are_annotated() {
    let (acceptor, certificate) = certificate("site.test");
    let server = Server::tls(acceptor, |mut connection| async move {
        connection.request().await;
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nhello").await;
        match connection.number {
            0 => connection.drop_silently(),
            _ => connection.close().await,
        }
    })
    .await;
    let fetcher = Fetcher::new(config(Trust::Roots(vec![certificate]))).unwrap();
    for notes in [&["noCloseNotify"][..], &[]] {
        let exchange = fetch(&fetcher, &server).await;
        assert_eq!(
            (exchange.status(), exchange.payload.length()),
            (200, 5),
            "{exchange:?}"
        );
        assert_eq!(exchange.annotations, notes);
    }
    // If the length was announced, such an end is a failure.
    let (acceptor, certificate) = certificate_of_the_site();
    let server = Server::tls(acceptor, |mut connection| async move {
        connection.request().await;
        connection
            .send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
            .await;
        connection.drop_silently();
    })
    .await;
    let fetcher = Fetcher::new(config(Trust::Roots(vec![certificate]))).unwrap();
    let exchange = fetch(&fetcher, &server).await;
    assert!(
        matches!(exchange.failure, Some(FetchFailure::Lost { .. })),
        "{exchange:?}"
    );
}

#[tokio::test]
async fn a_server_with_only_older_tls_is_reported_as_such() {
    // The alert protocol_version (70) in a record of TLS 1.0, as such servers send it.
    let server = Server::plain(|mut connection| async move {
        connection.send(&[21, 3, 1, 0, 2, 2, 70]).await;
        connection.hang().await;
    })
    .await;
    let exchange = fetch(&Fetcher::new(config(Trust::Record)).unwrap(), &server).await;
    assert_eq!(exchange.status(), -9, "{exchange:?}");
    let failure = exchange.failure.unwrap().to_string();
    assert!(failure.contains("neither TLS 1.2 nor 1.3"), "{failure}");
}

fn certificate_of_the_site() -> (TlsAcceptor, CertificateDer<'static>) {
    certificate("site.test")
}
