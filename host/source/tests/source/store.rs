//! Contents and lifetime of the store, with concurrent access.

use jiff::SignedDuration;
use opilio_source::{Blobs, Prune, Sha256, Store};

use crate::fixture::{Fixture, check_message, component, image_of, now};
use opilio_test_registry::Registry;

/// Images of a store as text, by component.
fn images(store: &Store) -> Vec<(Sha256, Vec<String>)> {
    let list = store.list().unwrap();
    let names = |kept: &opilio_source::StoredComponent| {
        kept.images.iter().map(ToString::to_string).collect()
    };
    list.iter().map(|kept| (kept.sha256, names(kept))).collect()
}

#[test]
fn a_store_lists_components_with_their_images() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let (one, two) = (image_of(&registry, "p:1"), image_of(&registry, "p:latest"));
    let pushed = fixture.push(&component("stories"), &one);
    fixture.push(&component("stories"), &two);
    fixture.resolve(&one.to_string()).unwrap();
    fixture.resolve(&two.to_string()).unwrap();
    let store = fixture.sources.store();
    let names = vec![one.to_string(), two.to_string()];
    assert_eq!(images(store), [(pushed.sha256, names)]);
    let list = store.list().unwrap();
    assert_eq!(list[0].bytes, component("stories").len() as u64);
    assert_eq!((list[0].added, list[0].used), (now(), now()));
}

#[test]
fn pruning_removes_only_components_without_image_or_job() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:latest");
    let one = fixture.push(&component("one"), &image);
    fixture.resolve(&image.to_string()).unwrap();
    let two = fixture.push(&component("two"), &image);
    fixture.resolve(&image.to_string()).unwrap();
    let store = fixture.sources.store();
    fixture.file("store/components/.partial-x", b"half");

    let preview = store
        .prune(
            Prune {
                dry_run: true,
                ..Prune::default()
            },
            now(),
        )
        .unwrap();
    assert_eq!(preview.components.len(), 1);
    assert_eq!(preview.components[0].sha256, one.sha256);
    assert_eq!(preview.partial.len(), 1);
    assert_eq!(store.list().unwrap().len(), 2);

    assert_eq!(store.prune(Prune::default(), now()).unwrap(), preview);
    assert_eq!(images(store), [(two.sha256, vec![image.to_string()])]);
    let second = store.prune(Prune::default(), now()).unwrap();
    assert_eq!(second, opilio_source::PruneResult::default());
}

#[test]
fn pruning_by_age_keeps_components_in_use() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:1");
    fixture.push(&component("one"), &image);
    let written = image.to_string();
    let reference = opilio_profile::ComponentReference::parse(&written, "".as_ref()).unwrap();
    let frozen = fixture.resolve(&written).unwrap().frozen(&reference);
    let job = fixture.folder.path().join("job");
    std::fs::create_dir(&job).unwrap();
    fixture.sources.begun(&job, [&frozen]).unwrap();
    let store = fixture.sources.store();
    let month = Prune {
        unused_for: Some(SignedDuration::from_hours(30 * 24)),
        dry_run: false,
    };
    let later = now() + SignedDuration::from_hours(31 * 24);
    assert_eq!(store.prune(month, now()).unwrap().components, []);
    assert_eq!(store.prune(month, later).unwrap().components, []);
    assert_eq!(store.list().unwrap()[0].jobs, std::slice::from_ref(&job));
    std::fs::remove_dir(&job).unwrap();
    assert_eq!(store.prune(month, later).unwrap().components.len(), 1);
    assert_eq!(images(store), []);
}

#[test]
fn a_damaged_component_is_pulled_again() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:1");
    let pushed = fixture.push(&component("stories"), &image);
    fixture.resolve(&image.to_string()).unwrap();
    let path = format!("store/components/{}.wasm", pushed.sha256);
    fixture.file(&path, b"rotten");
    let found = fixture.resolve(&pushed.image.to_string()).unwrap();
    assert_eq!(found.bytes, component("stories"));
    let again = fixture.sources.store().get(pushed.sha256).unwrap();
    assert_eq!(again.unwrap(), component("stories"));
}

#[test]
fn an_invalid_index_is_reported_and_not_changed() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let image = image_of(&registry, "p:1");
    fixture.push(&component("stories"), &image);
    let written = image.to_string();
    fixture.file("store/index.json", b"{\"format\": 1, \"ima");
    fixture.check_refused(
        &written,
        &["cannot read", "index.json", "move the file away"],
    );
    fixture.file("store/index.json", b"{\"format\": 2}");
    fixture.check_refused(&written, &["has format 2", "newer"]);
    let problem = fixture.sources.store().prune(Prune::default(), now());
    check_message(&problem.unwrap_err(), &["has format 2"]);
    let index = fixture.folder.path().join("store/index.json");
    assert_eq!(std::fs::read(index).unwrap(), b"{\"format\": 2}");
}

#[test]
fn concurrent_pulls_and_prunes_lose_no_component() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    let names: Vec<String> = (0..8).map(|index| format!("p:{index}")).collect();
    for name in &names {
        fixture.push(&component(name), &image_of(&registry, name));
    }
    std::thread::scope(|scope| {
        for name in &names {
            let (fixture, image) = (&fixture, image_of(&registry, name).to_string());
            scope.spawn(move || {
                let found = fixture.resolve(&image).unwrap();
                assert_eq!(found.bytes, component(name));
            });
            let store = fixture.sources.store();
            scope.spawn(|| store.prune(Prune::default(), now()).unwrap());
        }
    });
    let list = fixture.sources.store().list().unwrap();
    assert_eq!(list.len(), names.len());
    assert!(list.iter().all(|kept| kept.images.len() == 1), "{list:?}");
}

#[test]
fn a_job_has_its_own_copies_of_components() {
    let fixture = Fixture::new();
    fixture.file("p.wasm", &component("one"));
    let found = fixture.resolve("p.wasm").unwrap();
    let job = Blobs::at(fixture.folder.path().join("job/components"));
    assert_eq!(job.put(&found.bytes).unwrap(), found.sha256);
    std::fs::remove_file(fixture.folder.path().join("p.wasm")).unwrap();
    assert_eq!(job.get(found.sha256).unwrap().unwrap(), component("one"));
}
