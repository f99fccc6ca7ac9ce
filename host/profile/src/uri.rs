//! What goes first within a queue, and what it costs.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::precedence_file::{self, PrecedenceList};

/// What goes first within a queue, and what it costs. Directives come before precedence, arrival after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct UriFile {
    /// The base precedence of URIs: lower numbers go first. Default `1`: leaves 0 for what must go before everything.
    #[schemars(range(max = 255))]
    pub precedence: u8,

    /// What a URI's precedence is made of. Default `"cost"`: what costs more goes later; with
    /// the default cost that is the order of arrival.
    pub precedence_policy: UriPrecedencePolicy,

    /// For `"file"`: the file of precedences, relative to the profile; a line has a URI, a blank and a number from 0 to 255,
    /// and URIs that it does not name have the base precedence. No default: there is none.
    pub precedence_file: Option<String>,

    /// What a fetch costs its queue's budgets. Default `"unit"`: each URI costs the same.
    pub cost_policy: CostPolicy,

    /// For `"hops"`: count navigation links alone, not embeds, redirects and what scripts name. Default `true`: images
    /// belong to the page that shows them.
    pub navigation_hops_only: bool,
}

/// What a URI's precedence is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UriPrecedencePolicy {
    /// What it costs.
    Cost,
    /// Its base precedence alone.
    Base,
    /// Its base precedence plus the hops from its seed.
    Hops,
    /// What `precedence-file` says.
    File,
}

/// What a fetch costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostPolicy {
    /// 1.
    Unit,
    /// 0: budgets have no effect.
    Zero,
    /// 1, one more with a query, and one more again where only the query differs from the page it was found on.
    Query,
    /// 1, and one more where the URI looks like a day of a calendar.
    AntiCalendar,
}

/// What goes first within a queue, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct UriSettings {
    /// Base precedence, 0 first.
    pub precedence: u8,
    /// What precedence is made of.
    pub precedence_policy: UriPrecedencePolicy,
    /// What the file of precedences says; there wherever the policy is `File`.
    pub precedences: Option<Arc<PrecedenceList>>,
    /// What a fetch costs.
    pub cost_policy: CostPolicy,
    /// For the policy `Hops`: count navigation links alone.
    pub navigation_hops_only: bool,
}

impl Default for UriFile {
    fn default() -> Self {
        Self {
            precedence: 1,
            precedence_policy: UriPrecedencePolicy::Cost,
            precedence_file: None,
            cost_policy: CostPolicy::Unit,
            navigation_hops_only: true,
        }
    }
}

impl UriFile {
    /// A file of precedences that was read before is not read again.
    pub(crate) fn check(
        &self,
        mut part: Part<'_, '_>,
        base: &Path,
        files: &mut precedence_file::Files,
    ) -> UriSettings {
        UriSettings {
            precedence: self.precedence,
            precedence_policy: self.precedence_policy,
            precedences: self
                .precedence_file
                .as_deref()
                .and_then(|file| files.read(&mut part, base, file)),
            cost_policy: self.cost_policy,
            navigation_hops_only: self.navigation_hops_only,
        }
    }
}
