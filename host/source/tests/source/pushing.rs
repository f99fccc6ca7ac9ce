//! Files that are pushed, and files that are refused.

use hyper::StatusCode;

use crate::fixture::{Fixture, component, image_of, sentence};
use opilio_test_registry::{Guard, Registry, Trouble};

#[test]
fn what_the_registry_has_is_not_sent_again() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let first = fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    registry.asked();
    let again = fixture.push(&component("stories"), &image_of(&registry, "p:2"));
    assert_eq!(first.sha256, again.sha256);
    let sent = registry.requests();
    let uploads = sent.iter().filter(|asked| asked.contains("uploads"));
    assert_eq!(uploads.count(), 0, "{sent:?}");
    assert_eq!(sent.last().unwrap(), "PUT /v2/p/manifests/2");
}

#[test]
fn an_upload_that_is_sent_elsewhere_takes_no_credentials_with_it() {
    let elsewhere = Registry::open();
    let registry = Registry::guarded(Guard::Basic("author", "secret"));
    let credentials = format!(
        r#"{{"auths":{{"{}":{{"username":"author","password":"secret"}}}}}}"#,
        registry.host()
    );
    let fixture = Fixture::with_credentials(&credentials);
    let address = format!(
        "http://{}/v2/p/blobs/uploads/7?ticket=abc",
        elsewhere.host()
    );
    registry.trouble(Trouble::UploadsAt(address));
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let asked = elsewhere.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for asked in asked {
        assert_eq!(asked.authorization, None);
        assert!(
            asked.path.contains("?ticket=abc&digest=sha256%3A"),
            "{asked:?}"
        );
    }
}

#[test]
fn what_is_no_component_is_not_pushed() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:1");
    let refused = |name: &str, bytes: &[u8], says: &[&str]| {
        let path = fixture.file(name, bytes);
        let problem = fixture.sources.push(&path, &image, false).unwrap_err();
        sentence(&problem, says);
    };
    refused(
        "a.wasm",
        b"\0asm\x01\0\0\0",
        &["a.wasm: a core module", "wasm-tools component new"],
    );
    refused("b.wasm", b"<html>", &["b.wasm: not a WebAssembly file"]);
    let missing = fixture.folder.path().join("missing.wasm");
    let problem = fixture.sources.push(&missing, &image, false).unwrap_err();
    sentence(
        &problem,
        &["cannot read component", "missing.wasm", "No such file"],
    );
    let folder = fixture.folder.path();
    let problem = fixture.sources.push(folder, &image, false).unwrap_err();
    sentence(&problem, &["not a file"]);
    assert_eq!(registry.asked(), []);
}

#[test]
fn a_push_needs_a_tag() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let pushed = fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let hex = pushed.image.digest().unwrap();
    let image = image_of(&registry, &format!("p@{hex}"));
    let path = fixture.file("stories.wasm", &component("stories"));
    let problem = fixture.sources.push(&path, &image, false).unwrap_err();
    sentence(&problem, &["has no tag", "p:1.0"]);
}

#[test]
fn a_registry_that_takes_nothing_is_told_with_its_words() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let path = fixture.file("stories.wasm", &component("stories"));
    let text = r#"{"errors":[{"code":"DENIED","message":"read only","detail":{}}]}"#;
    registry.trouble(Trouble::Upload(StatusCode::FORBIDDEN, text.to_owned()));
    let image = image_of(&registry, "p:1");
    let problem = fixture.sources.push(&path, &image, false).unwrap_err();
    sentence(&problem, &["was refused", "403", "DENIED read only"]);
    let text = "x".repeat(100_000);
    registry.trouble(Trouble::Upload(StatusCode::PAYLOAD_TOO_LARGE, text));
    let problem = fixture.sources.push(&path, &image, false).unwrap_err();
    sentence(&problem, &["413", "the beginning of an upload"]);
}
