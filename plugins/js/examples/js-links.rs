//! Prints the links of scripts: `js-links FILE…` prints file, context and reference, separated by tabs.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for measuring"
)]

fn main() {
    for file in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        for found in opilio_js::script::read(&text) {
            println!("{file}\t{}\t{}", found.syntax.context(), found.uri);
        }
    }
}
