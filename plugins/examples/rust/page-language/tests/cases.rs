//! Runs the cases in `cases/` natively. `opilio plugin test` runs them on the component.

#[test]
fn cases_pass() {
    opilio_plugin::testing::check_cases(
        &page_language::plugins(),
        concat!(env!("CARGO_MANIFEST_DIR"), "/cases"),
    );
}
