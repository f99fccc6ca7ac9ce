//! TLS by rustls: trust in certificates, and the facts about a session that are recorded.

use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{
    AlertDescription, ClientConfig, DigitallySignedStruct, PeerIncompatible, ProtocolVersion,
    RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::config::{FetcherBuildError, Trust};

/// A TLS session, for the record.
#[derive(Clone, Debug)]
pub struct TlsInfo {
    /// Such as `TLSv1_3`.
    pub version: Option<ProtocolVersion>,
    /// IANA name of the cipher suite, such as `TLS13_AES_256_GCM_SHA384`.
    pub cipher_suite: Option<String>,
    /// The server's certificates (DER), its own first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Whether the certificate is trusted; otherwise the reason. Only [`Trust::Record`] continues with an untrusted one.
    pub verified: Result<(), String>,
}

/// Builds client configurations and verifies certificates.
#[derive(Debug)]
pub(crate) struct Tls {
    pub config: Arc<ClientConfig>,
    /// The same configuration, for servers that only speak HTTP/2.
    pub http2: Arc<ClientConfig>,
    /// The configuration for name servers, whose answers must be trusted: it always rejects untrusted certificates. No ALPN.
    pub strict: Arc<ClientConfig>,
    /// Verifies afterwards the certificates that [`Trust::Record`] accepted.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
}

impl TlsInfo {
    /// The value for `WARC-Protocol`.
    pub(crate) fn protocol(&self) -> Option<&'static str> {
        match self.version? {
            ProtocolVersion::TLSv1_2 => Some("tls/1.2"),
            ProtocolVersion::TLSv1_3 => Some("tls/1.3"),
            _ => None,
        }
    }
}

impl Tls {
    pub(crate) fn build(trust: &Trust) -> Result<Self, FetcherBuildError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let trusted = match trust {
            Trust::Platform | Trust::Record => platform_roots(),
            Trust::Roots(certificates) => given_roots(certificates)?,
        };
        let strict = versions
            .clone()
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let (mut config, verifier) = match trust {
            Trust::Platform | Trust::Roots(_) => (strict.clone(), None),
            Trust::Record => {
                let recorder = Arc::new(TrustAll(provider.clone()));
                let config = versions
                    .dangerous()
                    .with_custom_certificate_verifier(recorder)
                    .with_no_client_auth();
                (config, platform_verifier(provider))
            }
        };
        // One protocol at a time: if both are offered, most servers choose HTTP/2, whose frames no record can hold.
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec()];
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls {
            config: Arc::new(config),
            http2: Arc::new(http2),
            strict: Arc::new(strict),
            verifier,
        })
    }

    /// The facts to record about an established session.
    pub(crate) fn info(
        &self,
        session: &rustls::ClientConnection,
        server: &ServerName<'_>,
    ) -> TlsInfo {
        let certificates: Vec<_> = session
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .map(|certificate| certificate.clone().into_owned())
            .collect();
        let suite = session.negotiated_cipher_suite();
        TlsInfo {
            version: session.protocol_version(),
            cipher_suite: suite.map(|suite| format!("{:?}", suite.suite())),
            verified: match &self.verifier {
                None => Ok(()),
                Some(verifier) => verify(verifier.as_ref(), &certificates, server),
            },
            certificates,
        }
    }
}

/// Returns `true` if a handshake failed because the server speaks none of the offered protocols (RFC 7301 §3.2).
pub(crate) fn refuses_protocol(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(
        cause,
        Some(rustls::Error::AlertReceived(
            AlertDescription::NoApplicationProtocol
        ))
    )
}

/// Returns `true` if a handshake failed because the server speaks TLS 1.1 or older: its alert (RFC 8446 §6.2) or its version shows
/// it.
pub(crate) fn is_too_old(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(
        cause,
        Some(
            rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
                | rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13)
        )
    )
}

fn given_roots(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone())?;
    }
    Ok(roots)
}

/// The operating system's root certificates. Unreadable ones are left out. Without any, no certificate is trusted.
fn platform_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "cannot read some of the platform's root certificates");
    }
    let mut roots = RootCertStore::empty();
    let (_, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(known = roots.len(), ignored, "platform root certificates");
    roots
}

/// The operating system's verifier; [`TrustNone`] if the platform has no roots.
fn platform_verifier(provider: Arc<CryptoProvider>) -> Option<Arc<dyn ServerCertVerifier>> {
    let roots = Arc::new(platform_roots());
    match WebPkiServerVerifier::builder_with_provider(roots, provider).build() {
        Ok(verifier) => Some(verifier),
        Err(_) => Some(Arc::new(TrustNone)),
    }
}

fn verify(
    verifier: &dyn ServerCertVerifier,
    certificates: &[CertificateDer<'_>],
    server: &ServerName<'_>,
) -> Result<(), String> {
    let Some((own, others)) = certificates.split_first() else {
        return Err("no certificate".to_owned());
    };
    match verifier.verify_server_cert(own, others, server, &[], UnixTime::now()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Accepts every certificate. Signatures made with its key are still checked.
#[derive(Debug)]
struct TrustAll(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _server: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The verifier for platforms without roots: no certificate is trusted.
#[derive(Debug)]
struct TrustNone;

impl ServerCertVerifier for TrustNone {
    fn verify_server_cert(
        &self,
        _own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _server: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Err(rustls::Error::General(
            "the platform has no root certificates".to_owned(),
        ))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::DecryptError)
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::DecryptError)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        Vec::new()
    }
}
