//! Pinned components: only a component with the pinned digest is loaded.

use opilio_source::Sha256;

use crate::fixture::{Fixture, check_message, component, files_below, image_of};
use opilio_test_registry::Registry;

#[test]
fn a_file_with_another_digest_than_its_pin_is_refused() {
    let fixture = Fixture::new();
    let pinned = Sha256::of(&component("one"));
    fixture.file("p.wasm", &component("one"));
    fixture.resolve_pinned("p.wasm", pinned).unwrap();
    fixture.file("p.wasm", &component("two"));
    let problem = fixture.resolve_pinned("p.wasm", pinned).unwrap_err();
    let found = Sha256::of(&component("two"));
    let expected = [
        &*pinned.to_string(),
        &*found.to_string(),
        "p.wasm",
        "restore the pinned file",
    ];
    check_message(&problem, &expected);
    assert_eq!(fixture.resolve("p.wasm").unwrap().sha256, found);
}

#[test]
fn a_pinned_component_in_the_store_needs_no_request() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:1");
    let pushed = fixture.push(&component("stories"), &image);
    let written = image.to_string();
    fixture.resolve_pinned(&written, pushed.sha256).unwrap();
    registry.asked();
    let found = fixture.resolve_pinned(&written, pushed.sha256).unwrap();
    assert_eq!(found.image, Some(pushed.image));
    assert_eq!(registry.asked(), []);
}

#[test]
fn a_tag_that_differs_from_its_pin_is_refused_without_download() {
    let registry = Registry::open();
    let author = Fixture::new();
    let image = image_of(&registry, "p:1");
    let one = author.push(&component("one"), &image);
    author.push(&component("two"), &image);
    registry.asked();
    let operator = Fixture::new();
    let problem = operator.resolve_pinned(&image.to_string(), one.sha256);
    let found = Sha256::of(&component("two")).to_string();
    check_message(&problem.unwrap_err(), &[&one.sha256.to_string(), &found]);
    assert_eq!(registry.requests(), ["GET /v2/p/manifests/1"]);
    assert!(files_below(operator.sources.store().folder()).is_empty());
}

#[test]
fn a_built_in_plugin_can_be_pinned() {
    let fixture = Fixture::new();
    let html = opilio_builtin::find("html").unwrap();
    let found = fixture.resolve("builtin:html").unwrap();
    assert_eq!(found.sha256.to_string(), html.sha256);
    let other = Sha256::of(b"other");
    let problem = fixture.resolve_pinned("builtin:html", other).unwrap_err();
    check_message(&problem, &["builtin:html has sha256", html.sha256]);
}

#[test]
fn a_job_refuses_a_changed_file() {
    let fixture = Fixture::new();
    fixture.file("p.wasm", &component("one"));
    let reference =
        opilio_profile::ComponentReference::parse("p.wasm", fixture.folder.path()).unwrap();
    let frozen = fixture.resolve("p.wasm").unwrap().frozen(&reference);
    fixture.file("p.wasm", &component("two"));
    let problem = fixture.sources.thaw(&frozen, false).unwrap_err();
    let digest = frozen.sha256.to_string();
    check_message(&problem, &["with which the job was created", &digest]);
}

#[test]
fn a_pinned_component_survives_serialisation() {
    let fixture = Fixture::new();
    fixture.file("p.wasm", &component("one"));
    let reference =
        opilio_profile::ComponentReference::parse("p.wasm", fixture.folder.path()).unwrap();
    let frozen = fixture.resolve("p.wasm").unwrap().frozen(&reference);
    let text = serde_json::to_string(&frozen).unwrap();
    let read: opilio_source::PinnedComponent = serde_json::from_str(&text).unwrap();
    assert_eq!(read, frozen);
}
