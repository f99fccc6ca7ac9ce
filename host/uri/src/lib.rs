//! URIs for a crawler: parsed and normalised, in SURT order, with canonical form, hop path and public suffix.
//!
//! One URI has three forms, which never mix:
//! - [`Uri`] is the **exact** normalised URI, which is fetched, recorded and shown. [`Uri::key`] is the same URI in SURT order,
//!   and reads back without loss; it is the record key of the frontier.
//! - [`Uri::surt`] is the **SURT form** (glossary): lower-case, `https` read as `http`. Scope prefixes are compared with it.
//! - [`Canonicaliser`] makes the **canonical form**, used only for the seen test.
//!
//! Nothing here does I/O, reads a clock or resolves a name.

mod canonical;
mod cdx_key;
mod hop;
mod host;
mod key;
mod percent;
mod regex_rule;
mod scheme;
mod surt;
mod uri;

pub use canonical::{Canonicaliser, Rule, RuleEffect, RuleError};
pub use cdx_key::cdx_key;
pub use hop::{HOPS_KEPT_MAX, Hop, HopPath, HopPathError, TrailingHops};
pub use host::{HOST_BYTES_MAX, HostFault, LABEL_BYTES_MAX};
pub use key::KeyError;
pub use regex_rule::{
    REGEX_COMPILED_BYTES_MAX, REGEX_RESULT_BYTES_MAX, REGEX_RULE_BYTES_MAX, RegexRule,
    RegexRuleError,
};
pub use surt::{SurtPrefixSet, implied_surt_prefix, surt_of, surt_prefix_from_line};
pub use uri::{EncodeQuery, URI_BYTES_MAX, Uri, UriError};
