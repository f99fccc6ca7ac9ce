//! The cases in `cases/`.

#[test]
fn golden_cases_pass() {
    opilio_plugin::testing::check_cases(&opilio_http_links::plugins(), "cases");
}
