//! Responses of registries and their results.

use hyper::StatusCode;
use opilio_source::{ComponentConditions, Sha256};
use serde_json::json;

use crate::fixture::{Fixture, check_message, component, files_below, image, image_of};
use opilio_test_registry::{Registry, Trouble};

#[test]
fn a_pushed_component_is_pulled_byte_for_byte() {
    let registry = Registry::open();
    let author = Fixture::new();
    let stories = component("stories");
    let pushed = author.push(&stories, &image_of(&registry, "plugins/stories:1.0"));
    assert_eq!(pushed.sha256, Sha256::of(&stories));

    let operator = Fixture::new();
    let written = format!("oci://{}/plugins/stories:1.0#stories", registry.host());
    let found = operator.resolve(&written).unwrap();
    assert_eq!(found.bytes, stories);
    assert_eq!(found.plugin.as_deref(), Some("stories"));
    assert_eq!(found.image, Some(pushed.image));
    assert_eq!(found.note, None);
}

#[test]
fn a_stored_component_is_looked_up_and_not_downloaded_again() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let written = image_of(&registry, "p:1").to_string();
    fixture.resolve(&written).unwrap();
    registry.asked();
    fixture.resolve(&written).unwrap();
    assert_eq!(registry.requests(), ["GET /v2/p/manifests/1"]);
}

#[test]
fn a_stored_component_named_by_digest_needs_no_request() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let pushed = fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let bound = pushed.image.to_string();
    fixture.resolve(&bound).unwrap();
    registry.asked();
    let again = fixture.resolve(&bound).unwrap();
    assert_eq!(again.sha256, pushed.sha256);
    assert_eq!(again.image, Some(pushed.image));
    assert_eq!(registry.asked(), []);
}

#[test]
fn a_moved_tag_affects_new_jobs_only() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:latest");
    fixture.push(&component("one"), &image);
    let written = image.to_string();
    let reference = opilio_profile::ComponentReference::parse(&written, "".as_ref()).unwrap();
    let first = fixture.resolve(&written).unwrap();
    let frozen = first.frozen(&reference);

    fixture.push(&component("two"), &image);
    assert_eq!(fixture.resolve(&written).unwrap().bytes, component("two"));
    let continued = fixture.sources.thaw(&frozen, false).unwrap();
    assert_eq!(continued.bytes, component("one"));
    assert_eq!(continued.image, first.image);

    // Another machine has an empty store. It pulls by the digest, which the registry still has.
    let other_machine = Fixture::new();
    let pulled = other_machine.sources.thaw(&frozen, false).unwrap();
    assert_eq!(pulled.bytes, component("one"));
}

#[test]
fn a_job_continues_without_its_registry() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:1");
    fixture.push(&component("stories"), &image);
    let written = image.to_string();
    let reference = opilio_profile::ComponentReference::parse(&written, "".as_ref()).unwrap();
    let frozen = fixture.resolve(&written).unwrap().frozen(&reference);
    drop(registry);

    let found = fixture.sources.thaw(&frozen, false).unwrap();
    assert_eq!(
        (found.bytes.to_vec(), found.note),
        (component("stories"), None)
    );
    // A new job uses the component that the tag last referred to, and gets a note.
    let found = fixture.resolve(&written).unwrap();
    assert_eq!(found.bytes, component("stories"));
    let note = found.note.unwrap();
    assert!(note.contains("cannot be reached"), "{note}");
    assert!(note.contains("used the version of 2027-01-15"), "{note}");
    // `pull` needs the current state of the registry, so it fails.
    let problem = fixture
        .sources
        .pull(&image, &ComponentConditions::default())
        .unwrap_err();
    check_message(&problem, &["cannot be reached"]);
}

#[test]
fn an_unreachable_registry_is_reported() {
    let registry = Registry::open();
    let written = image_of(&registry, "p:1").to_string();
    drop(registry);
    let expected = [
        written.as_str(),
        "cannot be reached",
        "refused",
        "check the name",
    ];
    Fixture::new().check_refused(&written, &expected);
}

#[test]
fn a_missing_image_is_reported_with_the_registrys_message() {
    let registry = Registry::open();
    let written = image_of(&registry, "p:1").to_string();
    let expected = [
        written.as_str(),
        "MANIFEST_UNKNOWN",
        "check repository and tag",
    ];
    Fixture::new().check_refused(&written, &expected);
}

#[test]
fn registry_errors_are_distinguished_from_image_errors() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let written = image_of(&registry, "p:1").to_string();
    let internal = StatusCode::INTERNAL_SERVER_ERROR;
    registry.trouble(Trouble::Manifest(internal, "<html>".to_owned()));
    fixture.check_refused(&written, &["500", "try again later"]);
    registry.trouble(Trouble::Manifest(
        StatusCode::TOO_MANY_REQUESTS,
        String::new(),
    ));
    fixture.check_refused(&written, &["429", "try again later"]);
    registry.trouble(Trouble::Manifest(StatusCode::IM_A_TEAPOT, String::new()));
    fixture.check_refused(&written, &["418", "to a manifest", "is an OCI registry"]);
    registry.trouble(Trouble::Blob(StatusCode::BAD_GATEWAY));
    fixture.check_refused(&written, &["502", "try again later"]);
    registry.recover();
    fixture.resolve(&written).unwrap();
}

#[test]
fn a_component_with_a_wrong_digest_is_refused_and_not_stored() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let pushed = fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let tag = image_of(&registry, "p:1").to_string();
    registry.trouble(Trouble::OtherManifest);
    fixture.check_refused(&tag, &["its manifest has sha256", "do not use it"]);
    fixture.check_refused(&pushed.image.to_string(), &["its manifest has sha256"]);
    registry.trouble(Trouble::OtherBlob);
    let expected = pushed.sha256.to_string();
    fixture.check_refused(&tag, &["its component has sha256", &expected]);
    assert!(files_below(fixture.sources.store().folder()).is_empty());
}

#[test]
fn a_truncated_body_is_refused_and_not_stored() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let stories = component("stories");
    fixture.push(&stories, &image_of(&registry, "p:1"));
    registry.trouble(Trouble::TornBlob);
    let written = image_of(&registry, "p:1").to_string();
    let half = format!("{} bytes instead of {}", stories.len() / 2, stories.len());
    fixture.check_refused(&written, &[&half]);
    assert!(files_below(fixture.sources.store().folder()).is_empty());
}

#[test]
fn endless_bodies_are_read_up_to_their_limit() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let written = image_of(&registry, "p:1").to_string();
    registry.trouble(Trouble::EndlessBlob);
    fixture.check_refused(&written, &["bytes instead of"]);
    registry.trouble(Trouble::EndlessManifest);
    fixture.check_refused(&written, &["more than 4194304 bytes of a manifest"]);
}

#[test]
fn redirects_are_limited_and_get_no_credentials() {
    let blobs = Registry::open();
    let registry = Registry::guarded(opilio_test_registry::Guard::Basic("reader", "secret"));
    let credentials = format!(
        r#"{{"auths":{{"{}":{{"username":"reader","password":"secret"}}}}}}"#,
        registry.host()
    );
    let fixture = Fixture::with_credentials(&credentials);
    let stories = component("stories");
    fixture.push(&stories, &image_of(&registry, "p:1"));
    fixture.push(&stories, &image_of(&blobs, "p:1"));
    blobs.asked();
    let other_machine = format!("http://{}/v2/p/blobs/", blobs.host());
    registry.trouble(Trouble::BlobsAt(other_machine));
    let written = image_of(&registry, "p:1").to_string();
    assert_eq!(fixture.resolve(&written).unwrap().bytes, stories);
    let asked = blobs.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].authorization, None);

    registry.trouble(Trouble::Circle);
    registry.asked();
    let expected = ["cannot be reached", "more than 5 redirects"];
    Fixture::new().check_refused(&written, &expected);
    assert_eq!(registry.asked().len(), 6);
}

#[test]
fn an_image_that_is_not_a_component_is_refused_by_type() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let digest = format!("sha256:{}", Sha256::of(b"x"));
    let descriptor = |kind: &str| json!({ "mediaType": kind, "digest": digest, "size": 1 });
    let manifest = |config: &str, layers: &[&str]| {
        json!({
            "schemaVersion": 2,
            "config": descriptor(config),
            "layers": layers.iter().map(|kind| descriptor(kind)).collect::<Vec<_>>(),
        })
        .to_string()
    };
    let wasm = "application/vnd.wasm.config.v0+json";
    let container = "application/vnd.oci.image.config.v1+json";
    let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
    for (name, manifest, expected) in [
        ("container", manifest(container, &[tar]), container),
        ("tar", manifest(wasm, &[tar]), tar),
        ("two", manifest(wasm, &["application/wasm"; 2]), "2 layers"),
        (
            "page",
            "<!doctype html>".to_owned(),
            "cannot read its manifest",
        ),
        (
            "index",
            json!({ "schemaVersion": 2, "manifests": [] }).to_string(),
            "several platforms",
        ),
    ] {
        registry.put_manifest("p", name, &manifest);
        let written = image_of(&registry, &format!("p:{name}")).to_string();
        fixture.check_refused(&written, &[expected]);
    }
}

#[test]
fn a_remote_registry_needs_https_unless_insecure_is_set() {
    let registry = Registry::open();
    // `0.0.0.0` reaches the same registry, but is not recognised as this machine.
    let port = registry.host().rsplit(':').next().unwrap();
    let written = format!("oci://0.0.0.0:{port}/p:1");
    let fixture = Fixture::new();
    fixture.check_refused(&written, &["does not support HTTPS", "--insecure"]);
    assert_eq!(registry.asked(), []);
    let insecure = ComponentConditions {
        insecure: true,
        ..ComponentConditions::default()
    };
    let problem = fixture.sources.pull(&image(&written), &insecure);
    check_message(&problem.unwrap_err(), &["MANIFEST_UNKNOWN"]);
    assert_eq!(registry.requests(), ["GET /v2/p/manifests/1"]);
}
