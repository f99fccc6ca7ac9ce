//! What a file says about the crawl that wrote it: the block of its `warcinfo` record.

use bytes::Bytes;

use crate::digest::Digest;
use crate::fields::Fields;

/// The specification that a file follows, as `conformsTo` names it.
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
    /// `operator`: who runs the crawl.
    pub operator: Option<String>,
    /// `contact`: URL where a webmaster finds out more.
    pub contact: Option<String>,
    /// `organization` on whose behalf it runs.
    pub organization: Option<String>,
    /// `audience` it is for.
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
    /// `plugin`, one line each.
    pub plugins: Vec<PluginInForce>,
    /// Further lines, after the others.
    pub extra: Fields,
    /// What each file begins with besides: a `resource` record each. Not in ARC files.
    pub documents: Vec<Document>,
}

/// Something that belongs to the crawl as a whole: its profile.
#[derive(Clone, Debug)]
pub struct Document {
    /// `WARC-Target-URI`.
    pub target_uri: String,
    /// `Content-Type`.
    pub content_type: String,
    /// The block.
    pub content: Bytes,
}

/// A plugin that decided what this file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInForce {
    /// Its name in the profile.
    pub name: String,
    /// The version it gives itself.
    pub version: String,
    /// SHA-256 of the component, in the form the profile pins it by (`sha256:` and hexadecimal).
    pub hash: String,
    /// Digest of the settings it was configured with.
    pub settings: Option<Digest>,
}

/// `NAME VERSION HASH settings DIGEST`, as `warcinfo` and metadata records have it.
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
    /// Only the software is known.
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
