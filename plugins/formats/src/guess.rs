//! Extractors that guess references: `uri` in the document's own URI, `universal` in any bytes, `implied` from URIs by rules.
//! No default profile has them in its stack.

mod implied;
mod multi_regex;
mod universal;
mod uri;

pub use implied::Implied;
pub use multi_regex::MultiRegex;
pub use universal::Universal;
pub use uri::UriInUri;

use opilio_plugin::SettingsFault;
use regex_lite::{Regex, RegexBuilder};

/// Most bytes of one compiled expression.
const EXPRESSION_BYTES_MAX: usize = 256 * 1024;

/// Compiles an expression of the settings. An error has its place and its fault.
fn expression(text: &str, pointer: String) -> Result<Regex, SettingsFault> {
    RegexBuilder::new(text)
        .size_limit(EXPRESSION_BYTES_MAX)
        .build()
        .map_err(|error| SettingsFault::new(pointer, error.to_string()))
}
