//! The `multi-regex` extractor: URIs combined from the matches of several regular expressions in a page, for sites whose
//! scripts combine URIs in the same way.

use opilio_plugin::prelude::*;
use regex_lite::Regex;

use super::compile;
use crate::Results;

/// Most distinct matches of one expression.
const MATCHES_MAX: usize = 1_000;

/// Most combined URIs of one template. Every match of one expression is combined with every match of the others.
const COMBINATIONS_MAX: usize = 6_000;

/// A named part to find in a document.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Part {
    /// Name of the part in templates.
    pub name: String,
    /// A regular expression. Its first group is the part; without a group, the whole match.
    pub regex: String,
}

/// Settings of the `multi-regex` extractor.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// A regular expression that must match somewhere in the document's URI. Its groups are `${1}`, `${2}` …
    pub uri: String,
    /// Parts to find in the document. A template that names a part without a match gives no URIs.
    pub parts: Vec<Part>,
    /// URIs, with `${name}` for the parts.
    pub templates: Vec<String>,
    /// Number of bytes of a document to search.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub size_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            uri: String::new(),
            parts: Vec::new(),
            templates: Vec::new(),
            size_max: 1024 * 1024,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Debug)]
pub struct MultiRegex {
    uri: Regex,
    parts: Vec<(String, Regex)>,
    templates: Vec<String>,
    size_max: usize,
}

impl Plugin for MultiRegex {
    const NAME: &'static str = "multi-regex";
    const SUMMARY: &'static str = "URIs combined from matches of regular expressions in a document";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let mut compile_or_report = |text: &str, pointer: String| match compile(text, pointer) {
            Ok(regex) => Some(regex),
            Err(fault) => {
                faults.push(fault);
                None
            }
        };
        let uri = compile_or_report(&settings.uri, "/uri".to_owned());
        let parts = settings.parts.into_iter().enumerate();
        let parts: Vec<_> = parts
            .filter_map(|(at, part)| {
                Some((
                    part.name,
                    compile_or_report(&part.regex, format!("/parts/{at}/regex"))?,
                ))
            })
            .collect();
        for (at, template) in settings.templates.iter().enumerate() {
            let unknown = placeholders(template).find(|name| {
                name.parse::<usize>().is_err() && !parts.iter().any(|(part, _)| part == name)
            });
            if let Some(name) = unknown.filter(|_| faults.is_empty()) {
                faults.push(SettingsFault::new(
                    format!("/templates/{at}"),
                    format!("no part is called `{name}`"),
                ));
            }
        }
        let uri = match uri {
            Some(uri) if faults.is_empty() => uri,
            _ => return Err(faults),
        };
        Ok(Self {
            uri,
            parts,
            templates: settings.templates,
            size_max: settings.size_max as usize,
        })
    }
}

impl Extractor for MultiRegex {
    fn extract(&self, document: &Document) -> Extraction {
        let uri = document.uri();
        let Some(groups) = self.uri.captures(&uri) else {
            return Extraction::default();
        };
        let text = document.text();
        let text = &text[..text.floor_char_boundary(self.size_max)];
        let parts: Vec<(&str, Vec<&str>)> = self
            .parts
            .iter()
            .map(|(name, regex)| (name.as_str(), distinct_matches(regex, text)))
            .collect();
        let mut found = Results::default();
        for template in &self.templates {
            let group_text = |name: &str| {
                let group = name.parse().ok().and_then(|group| groups.get(group));
                group.map_or("", |group| group.as_str()).to_owned()
            };
            for uri in combinations(template, &parts, group_text) {
                found.push(Link::new(uri, Hop::Speculative, "multi-regex"));
            }
        }
        Extraction::links(found.links)
    }
}

/// Returns the distinct matches of an expression, each as its first group or as a whole.
fn distinct_matches<'t>(regex: &Regex, text: &'t str) -> Vec<&'t str> {
    let mut seen = std::collections::HashSet::new();
    regex
        .captures_iter(text)
        .filter_map(|groups| groups.get(1).or_else(|| groups.get(0)))
        .map(|found| found.as_str())
        .filter(|found| seen.insert(*found))
        .take(MATCHES_MAX)
        .collect()
}

/// Returns the names in `${…}`.
fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template
        .split("${")
        .skip(1)
        .filter_map(|after| after.split_once('}').map(|(name, _)| name))
}

/// Fills a template with every combination of the parts that it names. `group` returns the text of a group of the URI.
fn combinations(
    template: &str,
    parts: &[(&str, Vec<&str>)],
    group: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut filled = vec![template.to_owned()];
    for name in placeholders(template) {
        let placeholder = format!("${{{name}}}");
        let values: Vec<String> = match parts.iter().find(|(part, _)| *part == name) {
            Some((_, values)) => values.iter().map(|&value| value.to_owned()).collect(),
            None => vec![group(name)],
        };
        filled = filled
            .iter()
            .flat_map(|one| values.iter().map(|value| one.replace(&placeholder, value)))
            .take(COMBINATIONS_MAX)
            .collect();
    }
    filled
}
