//! Files that are pushed, and files that are refused.

use hyper::StatusCode;

use crate::fixture::{Fixture, check_message, component, image_of};
use opilio_test_registry::{Guard, Registry, Trouble};

#[test]
fn existing_blobs_are_not_sent_again() {
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
fn an_upload_to_another_server_gets_no_credentials() {
    let other_machine = Registry::open();
    let registry = Registry::guarded(Guard::Basic("author", "secret"));
    let credentials = format!(
        r#"{{"auths":{{"{}":{{"username":"author","password":"secret"}}}}}}"#,
        registry.host()
    );
    let fixture = Fixture::with_credentials(&credentials);
    let address = format!(
        "http://{}/v2/p/blobs/uploads/7?ticket=abc",
        other_machine.host()
    );
    registry.trouble(Trouble::UploadsAt(address));
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let asked = other_machine.asked();
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
fn a_file_that_is_not_a_component_is_not_pushed() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:1");
    let refused = |name: &str, bytes: &[u8], expected: &[&str]| {
        let path = fixture.file(name, bytes);
        let problem = fixture.sources.push(&path, &image, false).unwrap_err();
        check_message(&problem, expected);
    };
    refused(
        "a.wasm",
        b"\0asm\x01\0\0\0",
        &["a.wasm: a core module", "wasm-tools component new"],
    );
    refused("b.wasm", b"<html>", &["b.wasm: not a WebAssembly file"]);
    let missing = fixture.folder.path().join("missing.wasm");
    let problem = fixture.sources.push(&missing, &image, false).unwrap_err();
    check_message(
        &problem,
        &["cannot read component", "missing.wasm", "No such file"],
    );
    let folder = fixture.folder.path();
    let problem = fixture.sources.push(folder, &image, false).unwrap_err();
    check_message(&problem, &["not a file"]);
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
    check_message(&problem, &["has no tag", "p:1.0"]);
}

#[test]
fn a_refused_push_is_reported_with_the_registrys_message() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let path = fixture.file("stories.wasm", &component("stories"));
    let text = r#"{"errors":[{"code":"DENIED","message":"read only","detail":{}}]}"#;
    registry.trouble(Trouble::Upload(StatusCode::FORBIDDEN, text.to_owned()));
    let image = image_of(&registry, "p:1");
    let problem = fixture.sources.push(&path, &image, false).unwrap_err();
    check_message(&problem, &["was refused", "403", "DENIED read only"]);
    let text = "x".repeat(100_000);
    registry.trouble(Trouble::Upload(StatusCode::PAYLOAD_TOO_LARGE, text));
    let problem = fixture.sources.push(&path, &image, false).unwrap_err();
    check_message(&problem, &["413", "the beginning of an upload"]);
}
