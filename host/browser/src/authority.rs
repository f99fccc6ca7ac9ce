//! The certificate authority of a job: it signs a certificate for each host, so that the recording proxy can terminate TLS.
//!
//! Its key is only in memory and exists as long as the job. Only the job's browsers trust it: their command line has the digest of
//! its public key (`--ignore-certificate-errors-spki-list`), and each certificate is sent with the authority's certificate. An NSS
//! database in the profile would need `certutil`, and Chromium reads it from the home folder of the user.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _,
};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};

use crate::error::BrowserError;

/// Maximum hosts whose certificates are kept. With more, all are dropped and created again when needed.
const HOSTS_MAX: usize = 1000;

/// Longest host name in a certificate's subject (RFC 5280, ub-common-name).
const COMMON_NAME_MAX: usize = 64;

/// Signs certificates for the browsers of one job.
pub(crate) struct JobAuthority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    spki: String,
    /// One key for all hosts. A signature takes microseconds, and a new key would double this time.
    host_key: KeyPair,
    provider: Arc<rustls::crypto::CryptoProvider>,
    hosts: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl JobAuthority {
    /// Creates keys and the authority's certificate.
    pub(crate) fn create() -> Result<JobAuthority, BrowserError> {
        let failed = |error: rcgen::Error| BrowserError::Authority {
            reason: error.to_string(),
        };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "Opilio recording proxy");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).map_err(failed)?;
        let spki = BASE64.encode(&Sha256::digest(key.subject_public_key_info()));
        Ok(JobAuthority {
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            spki,
            host_key: KeyPair::generate().map_err(failed)?,
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            hosts: Mutex::default(),
        })
    }

    /// SHA-256 of the authority's public key, in Base64.
    pub(crate) fn spki(&self) -> &str {
        &self.spki
    }

    /// Returns the TLS configuration of a server for this host: a name, or an address without brackets.
    pub(crate) fn server(&self, host: &str) -> Result<Arc<ServerConfig>, String> {
        let lock = || self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(host) {
            return Ok(known.clone());
        }
        let made = self.make_server(host)?;
        let mut hosts = lock();
        if hosts.len() >= HOSTS_MAX {
            hosts.clear();
        }
        hosts.insert(host.to_owned(), made.clone());
        Ok(made)
    }

    fn make_server(&self, host: &str) -> Result<Arc<ServerConfig>, String> {
        let text = |error: rcgen::Error| error.to_string();
        // `new` distinguishes addresses from names.
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(text)?;
        if host.len() <= COMMON_NAME_MAX && host.parse::<IpAddr>().is_err() {
            params.distinguished_name.push(DnType::CommonName, host);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params
            .signed_by(&self.host_key, &self.issuer)
            .map_err(text)?;
        let chain = vec![certificate.der().clone(), self.certificate.clone()];
        let key = PrivatePkcs8KeyDer::from(self.host_key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from(key))
            .map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl std::fmt::Debug for JobAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobAuthority").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_one_certificate_and_an_invalid_host_an_error() {
        let authority = JobAuthority::create().expect("keys can be made");
        let first = authority.server("example.org").expect("a valid name");
        let again = authority.server("example.org").expect("a valid name");
        assert!(Arc::ptr_eq(&first, &again));
        let other = authority.server("127.0.0.1").expect("a valid address");
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(authority.server("exämple").is_err());
    }
}
