//! Digest strippers: `regex-strip`, `html-strip`, `marked-sections`. They share one component because most of their code is
//! common to all. README.md lists the parts that each removes.

pub mod html_strip;
pub mod marked_sections;
mod page;
pub mod regex_strip;
mod selector;
mod site;
// The tokenizer of the html extractor, included as a file: a crate that exports a component cannot be part of another.
#[path = "../../html/src/tokenizer.rs"]
pub mod tokenizer;

use html_strip::HtmlStrip;
use marked_sections::MarkedSections;
use regex_strip::RegexStrip;

opilio_plugin::export!(digest_strippers: [RegexStrip, HtmlStrip, MarkedSections]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
