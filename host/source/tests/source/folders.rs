//! Folders of components.

use opilio_source::{Sha256, SourceError};

use crate::fixture::{Fixture, check_message, component};

#[test]
fn a_plugin_in_a_folder_is_found_by_name() {
    let fixture = Fixture::new();
    fixture.file("plugins/a.wasm", &component("stories comments"));
    fixture.file("plugins/b.wasm", &component("feeds"));
    fixture.file("plugins/broken.wasm", b"half a file");
    fixture.file("plugins/readme.txt", b"not asked");
    let found = fixture.resolve("plugins#feeds").unwrap();
    assert_eq!(found.bytes, component("feeds"));
    let found = fixture.resolve("plugins#comments").unwrap();
    assert_eq!(found.bytes, component("stories comments"));
    assert!(found.origin.ends_with("plugins/a.wasm"), "{}", found.origin);
}

#[test]
fn a_missing_plugin_is_reported_with_those_in_the_folder() {
    let fixture = Fixture::new();
    fixture.file("plugins/a.wasm", &component("stories comments"));
    fixture.file("plugins/broken.wasm", b"half a file");
    let expected = [
        "no component in folder",
        "a.wasm holds stories, comments",
        "broken.wasm is unusable",
    ];
    fixture.check_refused("plugins#feeds", &expected);
    fixture.check_refused("plugins", &["holds 2 components", "add #NAME"]);
}

#[test]
fn a_plugin_in_two_components_must_be_pinned() {
    let fixture = Fixture::new();
    fixture.file("plugins/old.wasm", &component("stories 1"));
    fixture.file("plugins/new.wasm", &component("stories 2"));
    let expected = ["several components", "new.wasm, old.wasm", "pin one"];
    fixture.check_refused("plugins#stories", &expected);
    let pin = Sha256::of(&component("stories 1"));
    let found = fixture.resolve_pinned("plugins#stories", pin).unwrap();
    assert_eq!(found.bytes, component("stories 1"));
    let other = Sha256::of(b"other");
    let problem = fixture
        .resolve_pinned("plugins#stories", other)
        .unwrap_err();
    check_message(&problem, &["no component in folder", &other.to_string()]);
}

#[test]
fn a_folder_with_one_component_needs_no_name() {
    let fixture = Fixture::new();
    fixture.file("plugins/a.wasm", &component("stories"));
    let found = fixture.resolve("plugins").unwrap();
    assert_eq!(found.bytes, component("stories"));
}

#[test]
fn a_folder_without_components_is_reported() {
    let fixture = Fixture::new();
    fixture.file("empty/readme.txt", b"nothing here");
    fixture.check_refused("empty", &["holds no .wasm file"]);
    for index in 0..=opilio_source::FILES_MAX {
        fixture.file(&format!("many/{index}.wasm"), b"");
    }
    fixture.check_refused("many#stories", &["more than 256"]);
    let problem = fixture.resolve("missing.wasm").unwrap_err();
    assert!(matches!(problem, SourceError::File { .. }), "{problem}");
    check_message(
        &problem,
        &["cannot read component", "missing.wasm", "No such file"],
    );
}
