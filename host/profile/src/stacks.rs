//! Which plugins are asked at each stage of a URI's way, and in what order.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, nearest, quote};
use crate::plugins::{Implied, Instance};

/// Which plugins are asked at each stage of a URI's way, and in what order. Each is the name of a `[plugins.NAME]`
/// table, or of a built-in plugin, which then runs with its defaults. Among filters the last that has an opinion
/// decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct StacksFile {
    /// Filters: does a URI belong to the crawl? Where all pass it does not.
    /// Default `["surt-scope", "hops", "transclusion", "path-depth", "repeating-path", "prerequisite", "scheme"]`:
    /// the seeds' sites, at most 20 hops away, with what their pages embed from elsewhere, without traps, and always
    /// what is needed to fetch them.
    pub scope: Vec<String>,

    /// Precedence plugins: what comes first? The first that answers holds, for a URI with the page it was found on; the
    /// queues are ranked by those that stand here without overrides. Default `[]`: `uri.precedence-policy` and
    /// `queue.precedence-policy` alone say it, as they do where no plugin answers.
    pub precedence: Vec<String>,

    /// Filters: may a URI be fetched now? Default `[]`: what
    /// belongs to the crawl is fetched.
    pub pre_fetch: Vec<String>,

    /// Filters: headers have come; shall the body? Default `[]`: every
    /// body is fetched.
    pub mid_fetch: Vec<String>,

    /// Filters: is the response what it should be? Default `["bot-walls", "soft-404"]`: whoever reads
    /// the log wants to know them. They annotate, and let every answer count.
    pub post_fetch: Vec<String>,

    /// Digest strippers: which parts do not count when versions are compared? Default `[]`: every byte counts.
    pub digest: Vec<String>,

    /// Change evaluators: is a document whose bytes differ a new version? The first that answers holds. Default `[]`:
    /// what differs has changed.
    pub change: Vec<String>,

    /// Filters: shall links be extracted? Default `[]`: from everything that is not unchanged.
    pub pre_extract: Vec<String>,

    /// Extractors, all in this order. Default `["http", "html", "css", "js", "robots", "sitemap", "feed", "manifest", "svg",
    /// "media", "office", "pdf", "swf", "ftp-listing", "whois", "json", "xml"]`: what a page of the web consists of, what sites list for crawlers and
    /// readers, documents and data.
    pub extract: Vec<String>,

    /// Those of `extract` that stay out once another has understood the document. Default `[]`: all take part.
    pub last_resort: Vec<String>,

    /// Filters: shall it be archived? Default `[]`: whatever was fetched is.
    pub archive: Vec<String>,

    /// Wait evaluators: when is the next visit? The first that answers holds. Default `["adaptive"]`: shorter after
    /// a change, longer without one.
    pub wait: Vec<String>,

    /// Observers: what becomes of every URI is told to them. The same for all URIs. Default `[]`: the logs say it.
    pub observe: Vec<String>,
}

/// Which plugins are asked at each stage: names of [`crate::Profile::plugins`], all of which are there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Stacks {
    /// Filters: does a URI belong to the crawl? Where all pass it does not.
    pub scope: Vec<String>,
    /// Precedence plugins: what comes first?
    pub precedence: Vec<String>,
    /// Filters: may it be fetched now?
    pub pre_fetch: Vec<String>,
    /// Filters: headers have come; shall the body?
    pub mid_fetch: Vec<String>,
    /// Filters: is the response what it should be?
    pub post_fetch: Vec<String>,
    /// Digest strippers.
    pub digest: Vec<String>,
    /// Change evaluators.
    pub change: Vec<String>,
    /// Filters: shall links be extracted?
    pub pre_extract: Vec<String>,
    /// Extractors.
    pub extract: Vec<String>,
    /// Those of `extract` that stay out once another has understood the document.
    pub last_resort: Vec<String>,
    /// Filters: shall it be archived?
    pub archive: Vec<String>,
    /// Wait evaluators.
    pub wait: Vec<String>,
    /// Observers. The same for every URI.
    pub observe: Vec<String>,
}

/// A stage of a URI's way at which plugins are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Filters: does it belong to the crawl?
    Scope,
    /// Precedence plugins: what comes first?
    Precedence,
    /// Filters: may it be fetched now?
    PreFetch,
    /// Filters: headers have come; shall the body?
    MidFetch,
    /// Filters: is the response what it should be?
    PostFetch,
    /// Digest strippers.
    Digest,
    /// Change evaluators.
    Change,
    /// Filters: shall links be extracted?
    PreExtract,
    /// Extractors.
    Extract,
    /// Filters: shall it be archived?
    Archive,
    /// Wait evaluators.
    Wait,
    /// Observers.
    Observe,
}

impl Stage {
    /// All, in the order of a URI's way.
    pub const ALL: [Self; 12] = [
        Self::Scope,
        Self::Precedence,
        Self::PreFetch,
        Self::MidFetch,
        Self::PostFetch,
        Self::Digest,
        Self::Change,
        Self::PreExtract,
        Self::Extract,
        Self::Archive,
        Self::Wait,
        Self::Observe,
    ];

    /// Its key in the profile.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Precedence => "precedence",
            Self::PreFetch => "pre-fetch",
            Self::MidFetch => "mid-fetch",
            Self::PostFetch => "post-fetch",
            Self::Digest => "digest",
            Self::Change => "change",
            Self::PreExtract => "pre-extract",
            Self::Extract => "extract",
            Self::Archive => "archive",
            Self::Wait => "wait",
            Self::Observe => "observe",
        }
    }
}

impl Stage {
    /// Filters stand there.
    pub const fn is_for_filters(self) -> bool {
        matches!(
            self,
            Self::Scope
                | Self::PreFetch
                | Self::MidFetch
                | Self::PostFetch
                | Self::PreExtract
                | Self::Archive
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl Stacks {
    /// The instances asked at a stage, in order.
    pub fn stage(&self, stage: Stage) -> &[String] {
        match stage {
            Stage::Scope => &self.scope,
            Stage::Precedence => &self.precedence,
            Stage::PreFetch => &self.pre_fetch,
            Stage::MidFetch => &self.mid_fetch,
            Stage::PostFetch => &self.post_fetch,
            Stage::Digest => &self.digest,
            Stage::Change => &self.change,
            Stage::PreExtract => &self.pre_extract,
            Stage::Extract => &self.extract,
            Stage::Archive => &self.archive,
            Stage::Wait => &self.wait,
            Stage::Observe => &self.observe,
        }
    }

    /// Where an instance is named, as a pointer; none where no stack has it.
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
            wait: names(&["adaptive"]),
            observe: Vec::new(),
        }
    }
}

impl StacksFile {
    /// As it stands; only where it is known to be sound.
    pub(crate) fn stacks(&self) -> Stacks {
        Stacks {
            scope: self.scope.clone(),
            precedence: self.precedence.clone(),
            pre_fetch: self.pre_fetch.clone(),
            mid_fetch: self.mid_fetch.clone(),
            post_fetch: self.post_fetch.clone(),
            digest: self.digest.clone(),
            change: self.change.clone(),
            pre_extract: self.pre_extract.clone(),
            extract: self.extract.clone(),
            last_resort: self.last_resort.clone(),
            archive: self.archive.clone(),
            wait: self.wait.clone(),
            observe: self.observe.clone(),
        }
    }

    /// The stack of this key; none where there is no such key.
    pub(crate) fn named(&self, key: &str) -> Option<&[String]> {
        Some(match key {
            "scope" => &self.scope,
            "precedence" => &self.precedence,
            "pre-fetch" => &self.pre_fetch,
            "mid-fetch" => &self.mid_fetch,
            "post-fetch" => &self.post_fetch,
            "digest" => &self.digest,
            "change" => &self.change,
            "pre-extract" => &self.pre_extract,
            "extract" => &self.extract,
            "last-resort" => &self.last_resort,
            "archive" => &self.archive,
            "wait" => &self.wait,
            "observe" => &self.observe,
            _ => return None,
        })
    }

    /// Names that are built-in plugins without a table join `instances`.
    pub(crate) fn check(
        &self,
        mut part: Part<'_, '_>,
        instances: &mut BTreeMap<String, Instance>,
        builtins: &[String],
        implied: Implied,
    ) -> Stacks {
        let stacks = self.stacks();
        for stage in Stage::ALL {
            let names = stacks.stage(stage);
            let mut stack = part.part(stage.key());
            for (index, name) in names.iter().enumerate() {
                if names[..index].contains(name) {
                    stack.refuse(
                        &index.to_string(),
                        format!("{} stands in {stage} twice", quote(name)),
                        "remove one",
                    );
                } else if !instances.contains_key(name) {
                    if builtins.contains(name) {
                        instances.insert(name.clone(), Instance::implied(name, implied));
                    } else {
                        refuse_unknown(&mut stack, &index.to_string(), name, instances, builtins);
                    }
                }
            }
        }
        let mut last = part.part("last-resort");
        for (index, name) in self.last_resort.iter().enumerate() {
            if !self.extract.contains(name) {
                let problem = format!(
                    "{} is a last resort but does not stand in extract",
                    quote(name)
                );
                last.refuse(&index.to_string(), problem, "add it to extract, at the end");
            }
        }
        stacks
    }
}

/// Says that there is no plugin of this name, and which may have been meant.
pub(crate) fn refuse_unknown(
    part: &mut Part<'_, '_>,
    key: &str,
    name: &str,
    instances: &BTreeMap<String, Instance>,
    builtins: &[String],
) {
    let known = instances
        .keys()
        .map(String::as_str)
        .chain(builtins.iter().map(String::as_str));
    let bare = name.strip_prefix("builtin:").unwrap_or(name);
    let suggestion = match nearest(bare, known) {
        Some(known) => format!("did you mean \"{known}\"?"),
        None => format!("add a table [plugins.{name}] with its component"),
    };
    part.refuse(key, format!("no plugin {}", quote(name)), &suggestion);
}
