//! The pages of a profile that are rendered.

use crate::{faults_of, profile};

#[track_caller]
fn check_rendering(text: &str, expected: Option<&str>) {
    assert_eq!(profile(text).renders_by().as_deref(), expected, "{text}");
}

#[test]
fn a_profile_renders_by_itself_or_by_an_override() {
    let of_site = |render: &str| {
        format!("[[override]]\nmatch.host = [\"a.org\"]\nbrowser.render = \"{render}\"\n")
    };
    check_rendering("", None);
    check_rendering("browser.render = \"always\"\n", Some("/browser/render"));
    check_rendering(&of_site("never"), None);
    check_rendering(
        &(of_site("never") + &of_site("always")),
        Some("/override/1/browser/render"),
    );
}

#[test]
fn the_loading_of_a_page_is_not_longer_than_the_page() {
    let faults = faults_of("browser.load-time = \"100s\"\n").to_string();
    assert!(faults.contains("page-time"), "{faults}");
}
