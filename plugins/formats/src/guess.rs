//! Extractors that look where nothing is written: `uri` at addresses within the document's own, `universal` at any bytes,
//! `implied` at what an address lets expect. None stands in a profile's stack unless an operator puts it there.

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

/// Bytes that one compiled expression may take.
const EXPRESSION_BYTES_MAX: usize = 256 * 1024;

/// Compiles an expression of the settings, or says where and what is wrong with it.
fn expression(text: &str, pointer: String) -> Result<Regex, SettingsFault> {
    RegexBuilder::new(text)
        .size_limit(EXPRESSION_BYTES_MAX)
        .build()
        .map_err(|error| SettingsFault::new(pointer, error.to_string()))
}
