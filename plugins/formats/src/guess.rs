//! Extractors that guess references: `uri` in the document's own URI, `universal` in any bytes, `implied` and `multi-regex` by
//! configured rules. No built-in profile uses them.

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

/// Most bytes of one compiled regular expression.
const EXPRESSION_BYTES_MAX: usize = 256 * 1024;

/// Compiles a regular expression of the settings. An error names the setting by `pointer`, and the reason.
fn compile(text: &str, pointer: String) -> Result<Regex, SettingsFault> {
    RegexBuilder::new(text)
        .size_limit(EXPRESSION_BYTES_MAX)
        .build()
        .map_err(|error| SettingsFault::new(pointer, error.to_string()))
}
