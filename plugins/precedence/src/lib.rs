//! Precedence plugins: they say which links are fetched first. In one component because most of a component is what all
//! have. README.md says what each does.

pub mod keyword_precedence;
pub mod link_precedence;
// A component cannot depend on another, so it takes in the file.
#[path = "../../revisit/src/words.rs"]
mod words;

use keyword_precedence::KeywordPrecedence;
use link_precedence::LinkPrecedence;

opilio_plugin::export!(precedences: [KeywordPrecedence, LinkPrecedence]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
