//! Folders of components.

use opilio_source::{Sha256, SourceError};

use crate::fixture::{Fixture, component, sentence};

#[test]
fn a_folder_is_asked_for_a_plugin_by_name() {
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
fn what_a_folder_does_not_hold_is_told_with_what_it_holds() {
    let fixture = Fixture::new();
    fixture.file("plugins/a.wasm", &component("stories comments"));
    fixture.file("plugins/broken.wasm", b"half a file");
    let says = [
        "no component in folder",
        "a.wasm holds stories, comments",
        "broken.wasm is unusable",
    ];
    fixture.refused("plugins#feeds", &says);
    fixture.refused("plugins", &["holds 2 components", "add #NAME"]);
}

#[test]
fn a_plugin_that_is_there_twice_is_refused_until_one_is_pinned() {
    let fixture = Fixture::new();
    fixture.file("plugins/old.wasm", &component("stories 1"));
    fixture.file("plugins/new.wasm", &component("stories 2"));
    let says = ["several components", "new.wasm, old.wasm", "pin one"];
    fixture.refused("plugins#stories", &says);
    let pin = Sha256::of(&component("stories 1"));
    let found = fixture.resolve_pinned("plugins#stories", pin).unwrap();
    assert_eq!(found.bytes, component("stories 1"));
    let other = Sha256::of(b"other");
    let problem = fixture
        .resolve_pinned("plugins#stories", other)
        .unwrap_err();
    sentence(&problem, &["no component in folder", &other.to_string()]);
}

#[test]
fn a_folder_with_one_component_needs_no_name() {
    let fixture = Fixture::new();
    fixture.file("plugins/a.wasm", &component("stories"));
    let found = fixture.resolve("plugins").unwrap();
    assert_eq!(found.bytes, component("stories"));
}

#[test]
fn a_folder_of_something_else_is_told() {
    let fixture = Fixture::new();
    fixture.file("empty/readme.txt", b"nothing here");
    fixture.refused("empty", &["holds no .wasm file"]);
    for index in 0..=opilio_source::FILES_MAX {
        fixture.file(&format!("many/{index}.wasm"), b"");
    }
    fixture.refused("many#stories", &["more than 256"]);
    let problem = fixture.resolve("missing.wasm").unwrap_err();
    assert!(matches!(problem, SourceError::File { .. }), "{problem}");
    sentence(
        &problem,
        &["cannot read component", "missing.wasm", "No such file"],
    );
}
