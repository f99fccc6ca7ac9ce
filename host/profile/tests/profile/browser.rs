//! Rendering of pages: the settings that turn it on, and its stack.

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
fn shipped_behaviours_are_in_the_stack_if_pages_are_rendered() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let profile = profile(text);
        assert_eq!(profile.settings().stacks.behave, expected, "{text}");
        for name in ["consent", "autoplay", "autoscroll"] {
            let is_loaded = profile.plugins.contains_key(name);
            assert_eq!(is_loaded, expected.contains(&name), "{name}: {text}");
        }
    }
    let all = ["consent", "autoplay", "autoscroll"];
    check("", &[]);
    check("browser.render = \"always\"\n", &all);
    let of_site = "[[override]]\nmatch.host = [\"a.org\"]\nbrowser.render = \"always\"\n";
    check(of_site, &all);
    check("stacks.behave = [\"consent\"]\n", &[]);
    let table = "stacks.behave = [\"autoplay\", \"consent\"]\n[plugins.consent]\ncomponent = \"builtin:consent\"\n";
    check(table, &["consent"]);
    let faults = faults_of("stacks.behave = [\"consnt\"]\n").to_string();
    assert!(faults.contains("consent"), "{faults}");
}

#[test]
fn load_time_is_at_most_page_time() {
    let faults = faults_of("browser.load-time = \"100s\"\n").to_string();
    assert!(faults.contains("page-time"), "{faults}");
}
