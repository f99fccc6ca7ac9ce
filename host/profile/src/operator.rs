//! The operator of a crawl.

use opilio_uri::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::diagnostic::Level;

/// Domains for examples (RFC 2606, RFC 6761). A webmaster who opens such a URL finds no information about the crawler.
const PLACEHOLDERS: [&str; 7] = [
    "example.com",
    "example.net",
    "example.org",
    "example",
    "invalid",
    "test",
    "localhost",
];

/// Operator of the crawl. It goes into every request and into the `warcinfo` record of every file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct OperatorFile {
    /// A page that says who crawls and why, with contact details. A job that crawls other machines needs it: webmasters who cannot
    /// reach the operator block the crawler. No default: only the operator can provide it.
    #[schemars(extend("examples" = ["https://www.example.org/crawling"]))]
    pub contact_url: Option<String>,

    /// A mail address for the From header. No default: the header is not sent.
    #[schemars(extend("examples" = ["crawl@example.org"]))]
    pub from: Option<String>,

    /// The person who runs the crawl. No default: not recorded.
    pub name: Option<String>,

    /// The institution for which it is run. No default: not recorded.
    pub organization: Option<String>,

    /// Intended audience of the archive. No default: not recorded.
    pub audience: Option<String>,
}

/// Operator of a crawl. Every text is one line without control characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operator {
    /// A page that says who crawls and why.
    pub contact_url: Option<String>,
    /// A mail address for the From header.
    pub from: Option<String>,
    /// The person who runs the crawl.
    pub name: Option<String>,
    /// The institution for which it is run.
    pub organization: Option<String>,
    /// Intended audience of the archive.
    pub audience: Option<String>,
}

impl OperatorFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Operator {
        if let Some((level, problem)) = self.contact_url.as_deref().and_then(contact_problem) {
            part.value(
                level,
                "contact-url",
                problem,
                "write the address of your own page about the crawl",
            );
        }
        if let Some(from) = &self.from {
            let address = |text: &str| {
                text.split_once('@').is_some_and(|(who, host)| {
                    !who.is_empty()
                        && !host.is_empty()
                        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
                })
            };
            if !address(from) {
                let problem = format!("not a mail address: {}", quote(from));
                part.refuse("from", problem, "write one such as \"crawl@example.org\"");
            }
        }
        for (key, text) in [
            ("name", &self.name),
            ("organization", &self.organization),
            ("audience", &self.audience),
        ] {
            if let Some(text) = text {
                part.line(key, text);
            }
        }
        Operator {
            contact_url: self.contact_url.clone(),
            from: self.from.clone(),
            name: self.name.clone(),
            organization: self.organization.clone(),
            audience: self.audience.clone(),
        }
    }
}

/// The problem with a contact URL, with its level; `None` if the URL is valid.
pub(crate) fn contact_problem(url: &str) -> Option<(Level, String)> {
    let lower = url.to_ascii_lowercase();
    let web = lower.starts_with("http://") || lower.starts_with("https://");
    let visible = url
        .chars()
        .all(|c| c.is_ascii_graphic() && !"()<>\"\\".contains(c));
    let parsed = Uri::parse(url).ok().filter(|_| web && visible);
    let Some(uri) = parsed else {
        return Some((
            Level::Error,
            format!("not an http or https URL: {}", quote(url)),
        ));
    };
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    let placeholder = PLACEHOLDERS.iter().any(|name| {
        host.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    placeholder.then(|| {
        (
            Level::Warning,
            format!("contact-url is a placeholder: {}", quote(url)),
        )
    })
}
