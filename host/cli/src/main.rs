//! Opilio.
fn main() {}
