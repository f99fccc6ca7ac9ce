//! Runs the cases natively. All languages share them.

#[test]
fn cases_pass() {
    opilio_plugin::testing::check_cases(
        &link_scan::plugins(),
        concat!(env!("CARGO_MANIFEST_DIR"), "/cases"),
    );
}
