//! Stacks: the plugins of each stage of a visit, in the order of their calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::plugins::Instances;
use crate::stage::Stage;

/// Plugins of each stage of a URI's visit, in the order of their calls. Each is the name of a `[plugins.NAME]` table, or of a
/// shipped plugin, which then runs with its defaults. Among filters the last that answers accept or reject decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct StacksFile {
    /// Filters that decide whether a URI belongs to the crawl. If all pass, it does not. Default `["surt-scope", "hops",
    /// "transclusion", "path-depth", "repeating-path", "prerequisite", "scheme"]`: the seeds' sites, at most 20 hops away, with
    /// embeds from other sites and all prerequisites, but without crawler traps.
    pub scope: Vec<String>,

    /// Precedence plugins, which rank URIs and queues. The first that answers counts; a URI is ranked with the page on which it
    /// was found. Queues are ranked by the plugins of this list without overrides. Default `[]`: `uri.precedence-policy` and
    /// `queue.precedence-policy` decide, as they do if no plugin answers.
    pub precedence: Vec<String>,

    /// Filters that decide whether a URI may be fetched now. Default `[]`: every URI in scope is fetched.
    pub pre_fetch: Vec<String>,

    /// Filters that decide by the headers whether the body is fetched. Default `[]`: every body is fetched.
    pub mid_fetch: Vec<String>,

    /// Filters that judge the complete response. Default `["bot-walls", "soft-404"]`: they annotate such responses in the log,
    /// and reject none.
    pub post_fetch: Vec<String>,

    /// Filters that decide whether a fetched page is rendered, with `browser.render = "auto"`: it is if the last answer is accept.
    /// Shipped ones are loaded only if `browser.render` or an override of it renders pages. Default `["needs-browser"]`: pages with
    /// little text and with scripts that may create it.
    pub render: Vec<String>,

    /// Digest strippers, which name the parts that do not count when versions are compared. Default `[]`: every byte counts.
    pub digest: Vec<String>,

    /// Change evaluators, which decide whether a document with different bytes is a new version. The first that answers counts.
    /// Default `[]`: any difference counts as a change.
    pub change: Vec<String>,

    /// Filters that decide whether links are extracted. Default `[]`: links are extracted from every document that is not
    /// unchanged.
    pub pre_extract: Vec<String>,

    /// Extractors; all are called, in this order. Default `["http", "html", "css", "js", "robots", "sitemap", "feed",
    /// "manifest", "svg", "media", "office", "pdf", "swf", "ftp-listing", "whois", "json", "xml"]`: the parts of web pages, the
    /// lists that sites publish, documents and data.
    pub extract: Vec<String>,

    /// Extractors of `extract` that are skipped once another has understood the document. Default `[]`: all extractors are
    /// called.
    pub last_resort: Vec<String>,

    /// Filters that decide whether the document is archived. Default `[]`: every fetched document is archived.
    pub archive: Vec<String>,

    /// Page behaviours, which operate pages in a browser, one after the other. Shipped ones are loaded only if
    /// `browser.render` or an override of it renders pages. Default `["consent", "autoplay", "autoscroll"]`: cookie banners are
    /// dismissed, media are started, and content that appears with scrolling is loaded.
    pub behave: Vec<String>,

    /// Wait evaluators, which decide the time of the next visit. The first that answers counts. Default `["adaptive"]`: shorter
    /// after a change, longer without one.
    pub wait: Vec<String>,

    /// Observers, which receive every finished URI. The same for all URIs. Default `[]`: the logs have the same information.
    pub observe: Vec<String>,
}

/// Plugins of each stage: names of [`crate::Profile::plugins`], which all exist there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StackSettings {
    /// Filters that decide whether a URI belongs to the crawl. If all pass, it does not.
    pub scope: Vec<String>,
    /// Precedence plugins, which rank URIs and queues.
    pub precedence: Vec<String>,
    /// Filters that decide whether a URI may be fetched now.
    pub pre_fetch: Vec<String>,
    /// Filters that decide by the headers whether the body is fetched.
    pub mid_fetch: Vec<String>,
    /// Filters that judge the complete response.
    pub post_fetch: Vec<String>,
    /// Filters that decide whether a page is rendered, with [`crate::Render::Auto`]. If all pass, it is not.
    pub render: Vec<String>,
    /// Digest strippers.
    pub digest: Vec<String>,
    /// Change evaluators.
    pub change: Vec<String>,
    /// Filters that decide whether links are extracted.
    pub pre_extract: Vec<String>,
    /// Extractors.
    pub extract: Vec<String>,
    /// Extractors of `extract` that are skipped once another has understood the document.
    pub last_resort: Vec<String>,
    /// Filters that decide whether the document is archived.
    pub archive: Vec<String>,
    /// Page behaviours. Empty if no page is rendered and the profile has no table for one.
    pub behave: Vec<String>,
    /// Wait evaluators.
    pub wait: Vec<String>,
    /// Observers. The same for every URI.
    pub observe: Vec<String>,
}

impl StackSettings {
    /// The instances of a stage, in order.
    pub fn stage(&self, stage: Stage) -> &[String] {
        match stage {
            Stage::Scope => &self.scope,
            Stage::Precedence => &self.precedence,
            Stage::PreFetch => &self.pre_fetch,
            Stage::MidFetch => &self.mid_fetch,
            Stage::PostFetch => &self.post_fetch,
            Stage::Render => &self.render,
            Stage::Digest => &self.digest,
            Stage::Change => &self.change,
            Stage::PreExtract => &self.pre_extract,
            Stage::Extract => &self.extract,
            Stage::Archive => &self.archive,
            Stage::Behave => &self.behave,
            Stage::Wait => &self.wait,
            Stage::Observe => &self.observe,
        }
    }

    /// The pointer at which a stack names an instance; `None` if no stack has it.
    pub(crate) fn pointer_to(&self, name: &str) -> Option<String> {
        Stage::ALL.into_iter().find_map(|stage| {
            let at = self
                .stage(stage)
                .iter()
                .position(|instance| instance == name)?;
            Some(format!("/stacks/{stage}/{at}"))
        })
    }
}

impl Default for StacksFile {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            scope: names(&[
                "surt-scope",
                "hops",
                "transclusion",
                "path-depth",
                "repeating-path",
                "prerequisite",
                "scheme",
            ]),
            precedence: Vec::new(),
            pre_fetch: Vec::new(),
            mid_fetch: Vec::new(),
            post_fetch: names(&["bot-walls", "soft-404"]),
            render: names(&["needs-browser"]),
            digest: Vec::new(),
            change: Vec::new(),
            pre_extract: Vec::new(),
            extract: names(&[
                "http",
                "html",
                "css",
                "js",
                "robots",
                "sitemap",
                "feed",
                "manifest",
                "svg",
                "media",
                "office",
                "pdf",
                "swf",
                "ftp-listing",
                "whois",
                "json",
                "xml",
            ]),
            last_resort: Vec::new(),
            archive: Vec::new(),
            behave: names(&["consent", "autoplay", "autoscroll"]),
            wait: names(&["adaptive"]),
            observe: Vec::new(),
        }
    }
}

impl StacksFile {
    /// The stacks as written; only if they are known to be valid.
    pub(crate) fn stacks(&self) -> StackSettings {
        StackSettings {
            scope: self.scope.clone(),
            precedence: self.precedence.clone(),
            pre_fetch: self.pre_fetch.clone(),
            mid_fetch: self.mid_fetch.clone(),
            post_fetch: self.post_fetch.clone(),
            render: self.render.clone(),
            digest: self.digest.clone(),
            change: self.change.clone(),
            pre_extract: self.pre_extract.clone(),
            extract: self.extract.clone(),
            last_resort: self.last_resort.clone(),
            archive: self.archive.clone(),
            behave: self.behave.clone(),
            wait: self.wait.clone(),
            observe: self.observe.clone(),
        }
    }

    /// The stack of this key; `None` for an unknown key.
    pub(crate) fn named(&self, key: &str) -> Option<&[String]> {
        Some(match key {
            "scope" => &self.scope,
            "precedence" => &self.precedence,
            "pre-fetch" => &self.pre_fetch,
            "mid-fetch" => &self.mid_fetch,
            "post-fetch" => &self.post_fetch,
            "render" => &self.render,
            "digest" => &self.digest,
            "change" => &self.change,
            "pre-extract" => &self.pre_extract,
            "extract" => &self.extract,
            "last-resort" => &self.last_resort,
            "archive" => &self.archive,
            "behave" => &self.behave,
            "wait" => &self.wait,
            "observe" => &self.observe,
            _ => return None,
        })
    }

    /// Checks the stacks. Names of built-in plugins without a table are added to `instances`.
    pub(crate) fn check(
        &self,
        mut part: Part<'_, '_>,
        instances: &mut Instances<'_>,
    ) -> StackSettings {
        let stacks = self.stacks();
        for stage in Stage::ALL {
            let names = stacks.stage(stage);
            let mut stack = part.part(stage.key());
            for (index, name) in names.iter().enumerate() {
                if names[..index].contains(name) {
                    stack.refuse(
                        &index.to_string(),
                        format!("{} is listed twice in {stage}", quote(name)),
                        "remove one",
                    );
                } else {
                    instances.check_name(&mut stack, &index.to_string(), name);
                }
            }
        }
        let mut last = part.part("last-resort");
        for (index, name) in self.last_resort.iter().enumerate() {
            if !self.extract.contains(name) {
                let problem = format!("{} is in last-resort, but not in extract", quote(name));
                last.refuse(&index.to_string(), problem, "add it to extract, at the end");
            }
        }
        stacks
    }
}

/// Leaves out shipped plugins without a table. It is for behaviours and filters of rendering: they would be loaded, and never be
/// called if no page is rendered.
pub(crate) fn leave_out_shipped(
    stack: &mut Vec<String>,
    has_table: impl Fn(&str) -> bool,
    builtins: &[String],
) {
    stack.retain(|name| has_table(name) || !builtins.contains(name));
}
