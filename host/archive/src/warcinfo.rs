//! The block of a file's `warcinfo` record: the description of the crawl that wrote the file.

use bytes::Bytes;

use crate::digest::Digest;
use crate::fields::Fields;

/// The specification that a file follows, for `conformsTo`.
const CONFORMS_TO: &str =
    "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";

/// The fields of a `warcinfo` record. Absent ones are left out.
#[derive(Clone, Debug, Default)]
pub struct WarcInfo {
    /// `software`: name and version of the crawler with a URL.
    pub software: String,
    /// `hostname` of the crawling machine.
    pub hostname: Option<String>,
    /// `ip` of the crawling machine.
    pub ip: Option<String>,
    /// `operator`: the person or institution that runs the crawl.
    pub operator: Option<String>,
    /// `contact`: URL with information for webmasters.
    pub contact: Option<String>,
    /// `organization` on whose behalf the crawl runs.
    pub organization: Option<String>,
    /// `audience` of the crawl.
    pub audience: Option<String>,
    /// `isPartOf`: the job or collection.
    pub is_part_of: Option<String>,
    /// `description` of the job.
    pub description: Option<String>,
    /// `robots`: the policy followed.
    pub robots: Option<String>,
    /// `http-header-user-agent`.
    pub user_agent: Option<String>,
    /// `http-header-from`.
    pub from: Option<String>,
    /// `plugin`, one line for each.
    pub plugins: Vec<PluginInForce>,
    /// Further lines, after the others.
    pub extra: Fields,
    /// Documents at the beginning of each file, one `resource` record each. Not in ARC files.
    pub documents: Vec<CrawlDocument>,
}

/// A document about the crawl as a whole, such as its profile.
#[derive(Clone, Debug)]
pub struct CrawlDocument {
    /// `WARC-Target-URI`.
    pub target_uri: String,
    /// `Content-Type`.
    pub content_type: String,
    /// The block.
    pub content: Bytes,
}

/// A plugin that influenced the content of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInForce {
    /// Its name in the profile.
    pub name: String,
    /// The version that the plugin states.
    pub version: String,
    /// SHA-256 of the component, as the profile pins it (`sha256:` and hexadecimal).
    pub hash: String,
    /// Digest of its settings.
    pub settings: Option<Digest>,
}

/// Formats the plugin as `NAME VERSION HASH settings DIGEST`, as in `warcinfo` and metadata records.
impl std::fmt::Display for PluginInForce {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PluginInForce {
            name,
            version,
            hash,
            settings,
        } = self;
        write!(out, "{name} {version} {hash}")?;
        match settings {
            Some(settings) => write!(out, " settings {settings}"),
            None => Ok(()),
        }
    }
}

impl WarcInfo {
    /// Creates a description with only the software.
    pub fn new(software: impl Into<String>) -> WarcInfo {
        WarcInfo {
            software: software.into(),
            ..WarcInfo::default()
        }
    }

    /// The block of the record.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        fields
            .push("software", &self.software)
            .push("format", "WARC File Format 1.1")
            .push("conformsTo", CONFORMS_TO)
            .push_some("hostname", self.hostname.as_ref())
            .push_some("ip", self.ip.as_ref())
            .push_some("operator", self.operator.as_ref())
            .push_some("contact", self.contact.as_ref())
            .push_some("organization", self.organization.as_ref())
            .push_some("audience", self.audience.as_ref())
            .push_some("isPartOf", self.is_part_of.as_ref())
            .push_some("description", self.description.as_ref())
            .push_some("robots", self.robots.as_ref())
            .push_some("http-header-user-agent", self.user_agent.as_ref())
            .push_some("http-header-from", self.from.as_ref());
        for plugin in &self.plugins {
            fields.push("plugin", plugin.to_string());
        }
        for (name, value) in self.extra.iter() {
            fields.push(name, value);
        }
        fields
    }
}
