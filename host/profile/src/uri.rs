//! URI settings: the order of URIs within a queue, and their costs.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::precedence_file::{self, PrecedenceList};

/// Order of URIs within a queue, and their costs. Directives come before precedence, arrival after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct UriFile {
    /// The base precedence of URIs: lower numbers go first. Default `1`: leaves 0 for URIs that must go first.
    #[schemars(range(max = 255))]
    pub precedence: u8,

    /// Policy for a URI's precedence. Default `"cost"`: more costly URIs go later; with the default cost all URIs go in order
    /// of arrival.
    pub precedence_policy: UriPrecedencePolicy,

    /// For `"file"`: the precedence file, relative to the profile. A line has a URI, a blank and a number from 0 to 255. URIs
    /// that are not in the file have the base precedence. No default: other policies do not use it.
    pub precedence_file: Option<String>,

    /// Policy for the cost of a fetch to its queue's budgets. Default `"unit"`: each URI costs the same.
    pub cost_policy: CostPolicy,

    /// For `"hops"`: whether only navigation links count, and not embeds, redirects and URIs from scripts. Default `true`: images
    /// belong to the page that shows them.
    pub navigation_hops_only: bool,
}

/// Policy for a URI's precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UriPrecedencePolicy {
    /// Its cost.
    Cost,
    /// Only its base precedence.
    Base,
    /// Its base precedence plus the hops from its seed.
    Hops,
    /// Its number in `precedence-file`.
    File,
}

/// Policy for the cost of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostPolicy {
    /// 1.
    Unit,
    /// 0: budgets have no effect.
    Zero,
    /// 1, one more with a query, and one more again if only the query differs from the page on which it was found.
    Query,
    /// 1, and one more if the URI looks like a day of a calendar.
    AntiCalendar,
}

/// Order of URIs within a queue, and their costs.
#[derive(Debug, Clone, PartialEq)]
pub struct UriSettings {
    /// Base precedence, 0 first.
    pub precedence: u8,
    /// Policy for the precedence.
    pub precedence_policy: UriPrecedencePolicy,
    /// The content of the precedence file. It is present whenever the policy is `File`.
    pub precedences: Option<Arc<PrecedenceList>>,
    /// Policy for the cost of a fetch.
    pub cost_policy: CostPolicy,
    /// For the policy `Hops`: whether only navigation links count.
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
    /// Checks the settings. A precedence file that was read before is not read again.
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
