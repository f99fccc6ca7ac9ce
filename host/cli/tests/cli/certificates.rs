//! The daemon with TLS: renewal of certificates, and TLS proxies.

use std::io;

use opilio_stories::until;
use rustls::pki_types::CertificateDer;
use serde_json::json;

use crate::command::Home;
use crate::serve::Daemon;

/// Makes a certificate for this machine, and writes it to the files of the configuration.
fn certificate(home: &Home) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    home.file("key.pem", made.signing_key.serialize_pem());
    home.file("cert.pem", made.cert.pem());
    made.cert.der().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_while_the_daemon_runs() {
    let home = Home::new();
    let tls = "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n";
    home.file("opilio.toml", tls);
    let missing = home.run(&["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    let missing = missing.code(2);
    assert!(missing.err.contains("cert.pem") && missing.err.contains("must be able to read"));
    assert_eq!(missing.out, "", "no address is announced");
    let first = certificate(&home);
    let token = home.run(&["token", "new", "ada", "--role", "admin"]);
    let token = token.code(0).out.trim().to_owned();
    let mut daemon = Daemon::start(&home, &[]);
    daemon.trusted = Some(first.clone());
    let signed = daemon.call(
        "POST",
        "/api/v1/session",
        Some(json!({ "token": token })),
        "",
    );
    assert!(signed.head.contains("; secure"), "{signed:?}");
    daemon.token = Some(token);
    assert_eq!(daemon.get("/jobs")["total"], 0);

    daemon.trusted = Some(certificate(&home));
    let host = daemon.address;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    until("the new certificate is used", || {
        daemon.exchange(&request).is_ok()
    })
    .await;
    assert_eq!(daemon.get("/jobs")["total"], 0);
    daemon.trusted = Some(first);
    let old = daemon.exchange(&request).unwrap_err();
    assert_eq!(old.kind(), io::ErrorKind::InvalidData, "{old}");
}

#[test]
fn behind_a_tls_proxy_the_daemon_needs_no_certificate() {
    let home = Home::new();
    let token = home.run(&["token", "new", "ada", "--role", "admin"]);
    let token = token.code(0).out.trim().to_owned();
    let everywhere = ["serve", "--listen", "0.0.0.0:0"];
    let refused = home.run(&everywhere);
    assert!(refused.code(2).err.contains("tls-proxy = true"));
    home.file(
        "opilio.toml",
        "tls-proxy = true\nhosts = [\"crawler.example.org\"]\n",
    );
    let refused = home.run(&[&everywhere[..], &["--no-auth"]].concat());
    assert!(refused.code(2).err.contains("requires authentication"));

    let daemon = Daemon::start(&home, &[]);
    // The proxy forwards the host name that clients use.
    let host = "Host: crawler.example.org\r\nOrigin: https://crawler.example.org\r\n";
    let session = json!({ "token": token });
    let signed = daemon.call("POST", "/api/v1/session", Some(session), host);
    assert_eq!(signed.status, 200, "{signed:?}");
    assert!(signed.head.contains("; secure"), "{signed:?}");
    assert!(
        signed.head.contains("strict-transport-security:"),
        "{signed:?}"
    );
    let elsewhere = daemon.call("GET", "/healthz", None, "Host: evil.example\r\n");
    assert_eq!(elsewhere.status, 421, "{elsewhere:?}");
}
