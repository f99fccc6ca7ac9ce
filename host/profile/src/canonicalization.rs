//! Canonicalisation: the rules by which URIs count as the same.

use std::borrow::Cow;

use opilio_uri::{Canonicaliser, RegexRule, Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::check::Part;

/// Rules by which URIs count as the same. Only the seen test uses the canonical form; the URI is fetched and archived as it was
/// found. Defines identity: frozen when a job is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CanonicalizationFile {
    /// Rules, applied in this order: names, and tables `{ regex = "…", replace = "…" }` whose pattern must match the whole URI,
    /// with `${1}` or `${name}` for its groups. Default `["lowercase", "strip-userinfo", "strip-www-n", "strip-session-ids",
    /// "strip-session-cfids", "fixup-query"]`: the rules of Heritrix; URIs that differ in nothing else are nearly always the
    /// same page.
    pub rules: Vec<RuleFile>,
}

/// A rule as it is written in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RuleFile {
    /// A built-in rule.
    Name(RuleName),
    /// A rule of the operator.
    Regex(RegexRuleFile),
}

/// A rule of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RegexRuleFile {
    /// The pattern; it must match the whole URI.
    #[schemars(extend("examples" = ["(.*)[?&]print=1"]))]
    pub regex: String,
    /// The replacement of the URI; `${1}` or `${name}` is the text of a group.
    #[schemars(extend("examples" = ["${1}"]))]
    pub replace: String,
}

/// A rewriting of a URI's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleName {
    /// Makes the whole text lower-case, with path and query.
    Lowercase,
    /// Removes `user:password@` from the authority.
    StripUserinfo,
    /// Removes `www.` from the host.
    StripWww,
    /// Removes `www.`, `www2.`, `www12.` and so on from the host.
    StripWwwN,
    /// Removes session ids of common servers: `jsessionid`, `phpsessid`, `sid`, `aspsessionid`.
    StripSessionIds,
    /// Removes ColdFusion's `cfid` and `cftoken`.
    StripSessionCfids,
    /// Removes the rest of an empty query.
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
            rules: [
                RuleName::Lowercase,
                RuleName::StripUserinfo,
                RuleName::StripWwwN,
                RuleName::StripSessionIds,
                RuleName::StripSessionCfids,
                RuleName::FixupQuery,
            ]
            .map(RuleFile::Name)
            .to_vec(),
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
                    "the rule is listed twice".to_owned(),
                    "remove one",
                );
            }
        }
        let mut rules = Vec::with_capacity(self.rules.len());
        for (index, rule) in self.rules.iter().enumerate() {
            match rule {
                RuleFile::Name(name) => rules.push(name.rule()),
                RuleFile::Regex(written) => {
                    match RegexRule::new(&written.regex, &written.replace) {
                        Ok(rule) => rules.push(Rule::Regex(rule)),
                        Err(problem) => {
                            list.refuse(&index.to_string(), in_one_line(&problem), "");
                        }
                    }
                }
            }
        }
        Canonicaliser::new(rules)
    }
}

/// The text of an error with its sources, on one line. Of each source only the last line is used: the lines before it mark the
/// place in the pattern.
fn in_one_line(problem: &dyn std::error::Error) -> String {
    let mut text = problem.to_string();
    let mut source = problem.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        let last = cause_text.lines().last().unwrap_or_default();
        text = format!("{text}: {}", last.trim_start_matches("error: "));
        source = cause.source();
    }
    text
}

impl JsonSchema for RuleFile {
    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    /// A table is checked against the schema of tables, every other value against the names, so that only one set of errors is
    /// reported.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "if": { "type": "object" },
            "then": generator.subschema_for::<RegexRuleFile>(),
            "else": generator.subschema_for::<RuleName>(),
        })
    }
}
