//! The golden cases.

#[test]
fn golden_cases_hold() {
    opilio_plugin::testing::check_cases(&opilio_http_links::plugins(), "cases");
}
