//! The cases that every language holds, natively.

#[test]
fn cases_hold() {
    opilio_plugin::testing::check_cases(
        &link_scan::plugins(),
        concat!(env!("CARGO_MANIFEST_DIR"), "/cases"),
    );
}
