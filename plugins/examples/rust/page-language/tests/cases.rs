//! The cases in `cases/`, natively; `opilio plugin test` puts them to the component.

#[test]
fn cases_hold() {
    opilio_plugin::testing::check_cases(
        &page_language::plugins(),
        concat!(env!("CARGO_MANIFEST_DIR"), "/cases"),
    );
}
