//! Which URIs count as the same.

use opilio_uri::{Canonicaliser, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;

/// Which URIs count as the same. The canonical form serves the seen test alone; what is fetched and archived is the URI
/// as it was found. Defines identity: frozen when a job is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CanonicalizationFile {
    /// Rules, applied in this order.
    /// Default `["lowercase", "strip-userinfo", "strip-www-n", "strip-session-ids", "strip-session-cfids", "fixup-query"]`:
    /// those that archives are used to; two URIs that differ in nothing else are nearly always one page.
    pub rules: Vec<RuleName>,
}

/// A rewriting of a URI's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleName {
    /// Makes the whole text lower-case, path and query included.
    Lowercase,
    /// Takes `user:password@` from the authority.
    StripUserinfo,
    /// Takes `www.` from the host.
    StripWww,
    /// Takes `www.`, `www2.`, `www12.` and so on from the host.
    StripWwwN,
    /// Takes session ids of common servers: `jsessionid`, `phpsessid`, `sid`, `aspsessionid`.
    StripSessionIds,
    /// Takes ColdFusion's `cfid` and `cftoken`.
    StripSessionCfids,
    /// Takes what an empty query leaves.
    FixupQuery,
    /// Makes runs of slashes in the path one slash.
    StripExtraSlashes,
}

impl RuleName {
    fn rule(self) -> Rule {
        match self {
            Self::Lowercase => Rule::Lowercase,
            Self::StripUserinfo => Rule::StripUserinfo,
            Self::StripWww => Rule::StripWww,
            Self::StripWwwN => Rule::StripWwwN,
            Self::StripSessionIds => Rule::StripSessionIds,
            Self::StripSessionCfids => Rule::StripSessionCfids,
            Self::FixupQuery => Rule::FixupQuery,
            Self::StripExtraSlashes => Rule::StripExtraSlashes,
        }
    }
}

impl Default for CanonicalizationFile {
    fn default() -> Self {
        Self {
            rules: vec![
                RuleName::Lowercase,
                RuleName::StripUserinfo,
                RuleName::StripWwwN,
                RuleName::StripSessionIds,
                RuleName::StripSessionCfids,
                RuleName::FixupQuery,
            ],
        }
    }
}

impl CanonicalizationFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Canonicaliser {
        let mut list = part.part("rules");
        for (index, rule) in self.rules.iter().enumerate() {
            if self.rules[..index].contains(rule) {
                list.refuse(
                    &index.to_string(),
                    "the rule stands there twice".to_owned(),
                    "remove one",
                );
            }
        }
        Canonicaliser::new(self.rules.iter().map(|rule| rule.rule()).collect())
    }
}
