//! Responses of registries and their results.

use hyper::StatusCode;
use opilio_source::{ComponentConditions, Sha256};
use serde_json::json;

use crate::fixture::{Fixture, component, files_below, image, image_of, sentence};
use opilio_test_registry::{Registry, Trouble};

#[test]
fn what_was_pushed_is_pulled_byte_for_byte() {
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
fn what_is_in_the_store_is_asked_for_and_not_downloaded_again() {
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
fn what_is_named_by_digest_is_not_even_asked_for() {
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
fn a_tag_that_moves_is_followed_by_those_who_begin_and_not_by_those_who_have_begun() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:latest");
    fixture.push(&component("one"), &image);
    let written = image.to_string();
    let reference = opilio_profile::ComponentReference::parse(&written, "".as_ref()).unwrap();
    let begun = fixture.resolve(&written).unwrap();
    let frozen = begun.frozen(&reference);

    fixture.push(&component("two"), &image);
    assert_eq!(fixture.resolve(&written).unwrap().bytes, component("two"));
    let gone_on = fixture.sources.thaw(&frozen, false).unwrap();
    assert_eq!(gone_on.bytes, component("one"));
    assert_eq!(gone_on.image, begun.image);

    // On another machine, with nothing in its store: by the digest, which the registry still has.
    let elsewhere = Fixture::new();
    let pulled = elsewhere.sources.thaw(&frozen, false).unwrap();
    assert_eq!(pulled.bytes, component("one"));
}

#[test]
fn a_job_goes_on_when_its_registry_is_gone() {
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
    // One that begins now goes by what the tag meant last, and is told.
    let found = fixture.resolve(&written).unwrap();
    assert_eq!(found.bytes, component("stories"));
    let note = found.note.unwrap();
    assert!(note.contains("cannot be reached"), "{note}");
    assert!(note.contains("used the version of 2027-01-15"), "{note}");
    // `pull` is asked for what is there now, so it says that it cannot.
    let problem = fixture
        .sources
        .pull(&image, &ComponentConditions::default())
        .unwrap_err();
    sentence(&problem, &["cannot be reached"]);
}

#[test]
fn a_registry_that_nobody_answers_for_is_told() {
    let registry = Registry::open();
    let written = image_of(&registry, "p:1").to_string();
    drop(registry);
    let says = [
        written.as_str(),
        "cannot be reached",
        "refused",
        "check the name",
    ];
    Fixture::new().refused(&written, &says);
}

#[test]
fn what_the_registry_does_not_have_is_told_with_its_words() {
    let registry = Registry::open();
    let written = image_of(&registry, "p:1").to_string();
    let says = [
        written.as_str(),
        "MANIFEST_UNKNOWN",
        "check repository and tag",
    ];
    Fixture::new().refused(&written, &says);
}

#[test]
fn trouble_of_the_registry_is_told_apart_from_trouble_with_the_image() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let written = image_of(&registry, "p:1").to_string();
    let internal = StatusCode::INTERNAL_SERVER_ERROR;
    registry.trouble(Trouble::Manifest(internal, "<html>".to_owned()));
    fixture.refused(&written, &["500", "try again later"]);
    registry.trouble(Trouble::Manifest(
        StatusCode::TOO_MANY_REQUESTS,
        String::new(),
    ));
    fixture.refused(&written, &["429", "try again later"]);
    registry.trouble(Trouble::Manifest(StatusCode::IM_A_TEAPOT, String::new()));
    fixture.refused(&written, &["418", "to a manifest", "is an OCI registry"]);
    registry.trouble(Trouble::Blob(StatusCode::BAD_GATEWAY));
    fixture.refused(&written, &["502", "try again later"]);
    registry.recover();
    fixture.resolve(&written).unwrap();
}

#[test]
fn what_differs_from_its_digest_is_refused_and_not_kept() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let pushed = fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let tag = image_of(&registry, "p:1").to_string();
    registry.trouble(Trouble::OtherManifest);
    fixture.refused(&tag, &["its manifest has sha256", "do not use it"]);
    fixture.refused(&pushed.image.to_string(), &["its manifest has sha256"]);
    registry.trouble(Trouble::OtherBlob);
    let expected = pushed.sha256.to_string();
    fixture.refused(&tag, &["its component has sha256", &expected]);
    assert!(files_below(fixture.sources.store().folder()).is_empty());
}

#[test]
fn a_body_that_ends_early_is_refused_and_not_kept() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let stories = component("stories");
    fixture.push(&stories, &image_of(&registry, "p:1"));
    registry.trouble(Trouble::TornBlob);
    let written = image_of(&registry, "p:1").to_string();
    let half = format!("{} bytes instead of {}", stories.len() / 2, stories.len());
    fixture.refused(&written, &[&half]);
    assert!(files_below(fixture.sources.store().folder()).is_empty());
}

#[test]
fn bodies_without_end_are_not_read_to_their_end() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let written = image_of(&registry, "p:1").to_string();
    registry.trouble(Trouble::EndlessBlob);
    fixture.refused(&written, &["bytes instead of"]);
    registry.trouble(Trouble::EndlessManifest);
    fixture.refused(&written, &["more than 4194304 bytes of a manifest"]);
}

#[test]
fn redirects_are_followed_without_credentials_and_not_for_ever() {
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
    let elsewhere = format!("http://{}/v2/p/blobs/", blobs.host());
    registry.trouble(Trouble::BlobsAt(elsewhere));
    let written = image_of(&registry, "p:1").to_string();
    assert_eq!(fixture.resolve(&written).unwrap().bytes, stories);
    let asked = blobs.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].authorization, None);

    registry.trouble(Trouble::Circle);
    registry.asked();
    let says = ["cannot be reached", "more than 5 redirects"];
    Fixture::new().refused(&written, &says);
    assert_eq!(registry.asked().len(), 6);
}

#[test]
fn what_is_there_but_no_component_is_refused_with_what_it_is() {
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
    for (name, manifest, says) in [
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
        fixture.refused(&written, &[says]);
    }
}

#[test]
fn a_registry_elsewhere_is_asked_over_https_unless_it_is_said() {
    let registry = Registry::open();
    // The same registry under a name that is not known to be on this machine.
    let port = registry.host().rsplit(':').next().unwrap();
    let written = format!("oci://0.0.0.0:{port}/p:1");
    let fixture = Fixture::new();
    fixture.refused(&written, &["does not support HTTPS", "--insecure"]);
    assert_eq!(registry.asked(), []);
    let insecure = ComponentConditions {
        insecure: true,
        ..ComponentConditions::default()
    };
    let problem = fixture.sources.pull(&image(&written), &insecure);
    sentence(&problem.unwrap_err(), &["MANIFEST_UNKNOWN"]);
    assert_eq!(registry.requests(), ["GET /v2/p/manifests/1"]);
}
