//! Conversion of decide rules into filters, in their order.

use serde_json::{Map, Value, json};

use super::Import;
use super::beans::{Bean, Property};
use crate::matching::regex;

/// Features of Java's regular expressions that take unbounded time, or have another meaning here.
const JAVA_ALONE: [(&str, &str); 10] = [
    ("(?=", "look-ahead"),
    ("(?!", "negative look-ahead"),
    ("(?<=", "look-behind"),
    ("(?<!", "negative look-behind"),
    ("(?>", "an atomic group"),
    ("*+", "a possessive repetition"),
    ("++", "a possessive repetition"),
    ("?+", "a possessive repetition"),
    ("\\Q", "a quotation by \\Q"),
    ("\\G", "the end of the last match"),
];

/// Checks that an expression of Java can be used here, and returns the reason if it cannot.
pub(crate) fn is_linear(java: &str) -> Result<(), String> {
    let found = JAVA_ALONE.iter().find(|(sign, _)| java.contains(sign));
    if let Some((_, what)) = found {
        return Err(format!(
            "{what} has no equivalent, since matching takes linear time here"
        ));
    }
    let mut escaped = false;
    for c in java.chars() {
        if escaped && c.is_ascii_digit() && c != '0' {
            return Err(
                "a back-reference has no equivalent, since matching takes linear time here"
                    .to_owned(),
            );
        }
        escaped = c == '\\' && !escaped;
    }
    Ok(())
}

/// Converts an expression that has to match the whole text into one with the same meaning in a profile. The error is the reason for
/// which this is not possible.
pub(crate) fn translated(java: &str) -> Result<String, String> {
    is_linear(java)?;
    // A search finds a match anywhere, so `.*` at the beginning and end is not needed.
    let inner = java
        .strip_prefix(".*")
        .and_then(|rest| rest.strip_suffix(".*"))
        .filter(|inner| !inner.is_empty() && !inner.starts_with(['?', '+', '{']))
        .filter(|inner| !inner.ends_with('\\') && !inner.contains('|'));
    let whole = inner.map_or_else(|| format!("^(?:{java})$"), str::to_owned);
    regex(&whole).map(|_| whole)
}

impl Import {
    /// The rules of a sequence, with references resolved.
    pub(super) fn rules_of(&mut self, scope: &Bean) -> Vec<Bean> {
        let Some(Property::List(rules)) = self.beans.take(scope, "rules").cloned() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for rule in rules {
            match self.beans.target(&rule).cloned() {
                Some(inner) if inner.class == "DecideRuleSequence" => {
                    self.list_unconverted(
                        inner.line,
                        &inner.name(),
                        "a sequence within a sequence: its rules are now in the outer sequence, whose decisions may differ",
                    );
                    found.extend(self.rules_of(&inner));
                }
                Some(rule) => found.push(rule),
                None => {
                    if let Property::Reference(id) = &rule {
                        let problem = format!("it names a rule {id:?}, and there is no such bean");
                        self.list_unconverted(scope.line, &scope.name(), &problem);
                    }
                }
            }
        }
        found
    }

    /// Makes the stack of the scope.
    pub(super) fn scope(&mut self, rules: &[Bean]) {
        let mut stack: Vec<String> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            if rule.text("enabled") == Some("false") {
                continue;
            }
            if rule.class == "RejectDecideRule" && index == 0 {
                continue;
            }
            if let Some(name) = self.filter(rule) {
                stack.push(name);
            }
        }
        self.set("stacks.scope", Value::from(stack));
    }

    /// The name of the filter for a rule. If there is none, the rule is listed and the result is `None`.
    fn filter(&mut self, rule: &Bean) -> Option<String> {
        let (class, is_not) = match rule.class.as_str() {
            "SchemeNotInSetDecideRule" => ("SchemeNotInSetDecideRule", false),
            class if class.starts_with("Not") => (&class[3..], true),
            class => match class.split_once("NotMatches") {
                Some(_) => (class, true),
                None => (class, false),
            },
        };
        let class = class.replace("NotMatches", "Matches");
        let decision = match rule.text("decision") {
            Some("REJECT") => "reject",
            _ => "accept",
        };
        // If the rule is the opposite of the filter, it decides on the URIs that the filter does not match.
        let decided = |mut settings: Map<String, Value>| {
            match is_not {
                true => {
                    settings.insert("then".to_owned(), "pass".into());
                    settings.insert("otherwise".to_owned(), decision.into());
                }
                false => {
                    settings.insert("then".to_owned(), decision.into());
                }
            }
            settings
        };
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let (component, settings) = match class.as_str() {
            "AcceptDecideRule" => (
                "regex-list",
                object(json!({ "patterns": ["."], "then": "accept" })),
            ),
            "RejectDecideRule" => (
                "regex-list",
                object(json!({ "patterns": ["."], "then": "reject" })),
            ),
            "SurtPrefixedDecideRule" => ("surt-scope", decided(self.surts(rule))),
            "OnHostsDecideRule" => {
                let hosts = self.hosts_of(rule);
                ("host", decided(hosts_settings("hosts", hosts, rule)))
            }
            "OnDomainsDecideRule" => {
                let hosts = self.hosts_of(rule);
                ("domain", decided(hosts_settings("domains", hosts, rule)))
            }
            "ViaSurtPrefixedDecideRule" => {
                let mut settings = self.surts(rule);
                settings.remove("from-seeds");
                settings.remove("also-check-via");
                ("via-surt", decided(settings))
            }
            "TooManyHopsDecideRule" => ("hops", self.number(rule, "maxHops", "max")),
            "TransclusionDecideRule" => {
                let mut settings = self.number(rule, "maxTransHops", "max-trans-hops");
                settings.extend(self.number(rule, "maxSpeculativeHops", "max-speculative-hops"));
                ("transclusion", settings)
            }
            "PathologicalPathDecideRule" => (
                "repeating-path",
                self.number(rule, "maxRepetitions", "max-repetitions"),
            ),
            "TooManyPathSegmentsDecideRule" => {
                ("path-depth", self.number(rule, "maxPathDepth", "max"))
            }
            "PrerequisiteAcceptDecideRule" => ("prerequisite", Map::new()),
            "SchemeNotInSetDecideRule" => {
                let schemes = self.texts(rule, "schemes");
                match schemes.is_empty() {
                    true => ("scheme", Map::new()),
                    false => ("scheme", object(json!({ "schemes": schemes }))),
                }
            }
            "SeedAcceptDecideRule" => ("seed", Map::new()),
            "MatchesRegexDecideRule" | "MatchesListRegexDecideRule" => {
                let is_all = rule.text("listLogicalOr") == Some("false");
                let (patterns, left_out) = self.patterns(rule);
                // If all expressions have to match, or none may, a missing expression makes the rule decide on more URIs.
                if left_out && is_all != is_not {
                    self.list_unconverted(
                        rule.line,
                        &rule.name(),
                        "without that expression the rule would decide on more URIs; the rule is left out",
                    );
                    return None;
                }
                if patterns.is_empty() {
                    self.list_unconverted(
                        rule.line,
                        &rule.name(),
                        "it has no expression that can be converted; the rule is left out",
                    );
                    return None;
                }
                let mut settings = object(json!({ "patterns": patterns }));
                if is_all {
                    settings.insert("all".to_owned(), true.into());
                }
                self.mark_converted(rule, "listLogicalOr");
                ("regex-list", decided(settings))
            }
            "HopsPathMatchesRegexDecideRule" => {
                let (patterns, _) = self.patterns(rule);
                if patterns.is_empty() {
                    self.list_unconverted(
                        rule.line,
                        &rule.name(),
                        "it has no expression that can be converted; the rule is left out",
                    );
                    return None;
                }
                ("hop-path", decided(object(json!({ "patterns": patterns }))))
            }
            "ScriptedDecideRule" => {
                self.list_unconverted(
                    rule.line,
                    &rule.name(),
                    "scripts are not executed; opilio plugin new begins a filter of your own",
                );
                return None;
            }
            _ => {
                self.list_unconverted(
                    rule.line,
                    &rule.name(),
                    "no single filter does the same; docs/SCOPE.md lists all filters",
                );
                return None;
            }
        };
        for property in ["decision", "enabled"] {
            self.mark_converted(rule, property);
        }
        // The built-in plugin with its defaults needs no table.
        if settings.is_empty() && !self.plugins.contains_key(component) {
            self.plugins.insert(component.to_owned(), None);
            return Some(component.to_owned());
        }
        let name = self.free_name(component, decision);
        self.plugins
            .insert(name.clone(), Some((component.to_owned(), settings)));
        Some(name)
    }

    /// Prefixes of a rule: from seeds, in the rule, or in a file.
    fn surts(&mut self, rule: &Bean) -> Map<String, Value> {
        let mut settings = Map::new();
        let from_seeds = rule.text("seedsAsSurtPrefixes") != Some("false");
        settings.insert("from-seeds".to_owned(), from_seeds.into());
        if rule.text("alsoCheckVia") == Some("true") {
            settings.insert("also-check-via".to_owned(), true.into());
        }
        for property in ["seedsAsSurtPrefixes", "alsoCheckVia", "surtsDumpFile"] {
            self.mark_converted(rule, property);
        }
        let source = rule
            .properties
            .get("surtsSource")
            .or_else(|| rule.properties.get("surtsSourceFile"));
        self.mark_converted(rule, "surtsSource");
        self.mark_converted(rule, "surtsSourceFile");
        match source {
            Some(Property::Bean(source)) => match (source.text("path"), source.text("value")) {
                (Some(path), _) => {
                    let table = self.free_table("surts");
                    self.tables.insert(
                        table.clone(),
                        json!({ "kind": "surt-prefixes", "file": path }),
                    );
                    settings.insert("tables".to_owned(), json!([table]));
                }
                (None, Some(text)) => {
                    let prefixes: Vec<&str> = text
                        .lines()
                        .map(str::trim)
                        .filter(|line| !line.is_empty() && !line.starts_with('#'))
                        .map(|line| line.trim_start_matches('+'))
                        .collect();
                    settings.insert("prefixes".to_owned(), json!(prefixes));
                }
                (None, None) => {}
            },
            Some(Property::Text(path)) if !path.trim().is_empty() => {
                let table = self.free_table("surts");
                self.tables.insert(
                    table.clone(),
                    json!({ "kind": "surt-prefixes", "file": path.trim() }),
                );
                settings.insert("tables".to_owned(), json!([table]));
            }
            _ => {}
        }
        settings
    }

    /// Host names in the prefixes of a rule.
    fn hosts_of(&mut self, rule: &Bean) -> Vec<String> {
        let settings = self.surts(rule);
        let prefixes = settings.get("prefixes").and_then(Value::as_array).cloned();
        let host = |text: &Value| {
            let text = text.as_str()?;
            let inner = text.split_once("://(").map_or(text, |(_, rest)| rest);
            let labels: Vec<&str> = inner.trim_end_matches([',', ')', '/']).split(',').collect();
            let host: Vec<&str> = labels.into_iter().rev().collect();
            Some(host.join("."))
        };
        prefixes
            .into_iter()
            .flatten()
            .filter_map(|one| host(&one))
            .collect()
    }

    fn number(&mut self, rule: &Bean, property: &str, key: &str) -> Map<String, Value> {
        self.mark_converted(rule, property);
        match rule.text(property).map(|text| (text, text.parse::<u64>())) {
            Some((_, Ok(number))) => Map::from_iter([(key.to_owned(), Value::from(number))]),
            Some((text, Err(_))) => {
                let problem =
                    format!("{property} = {text:?}: not a whole number; the default applies");
                self.list_unconverted(rule.line, &rule.name(), &problem);
                Map::new()
            }
            None => Map::new(),
        }
    }

    fn texts(&mut self, rule: &Bean, property: &str) -> Vec<String> {
        self.mark_converted(rule, property);
        let value = rule.properties.get(property);
        value.map_or(Vec::new(), Property::texts)
    }

    /// The expressions that can be converted, and whether there are others.
    fn patterns(&mut self, rule: &Bean) -> (Vec<String>, bool) {
        let mut left_out = false;
        let mut written = self.texts(rule, "regexList");
        written.extend(self.texts(rule, "regex"));
        self.mark_converted(rule, "timeoutPerRegexSeconds");
        let mut patterns = Vec::new();
        for java in written.iter().filter(|java| !java.is_empty()) {
            match translated(java) {
                Ok(pattern) => patterns.push(pattern),
                Err(why) => {
                    left_out = true;
                    self.list_unconverted(
                        rule.line,
                        &rule.name(),
                        &format!("the expression {java:?}: {why}"),
                    );
                }
            }
        }
        (patterns, left_out)
    }

    pub(super) fn free_name(&self, component: &str, decision: &str) -> String {
        let stem = match (decision, component) {
            (
                "reject",
                "surt-scope" | "regex-list" | "host" | "domain" | "hop-path" | "via-surt",
            ) => {
                format!("{component}-out")
            }
            _ => component.to_owned(),
        };
        let is_free = |name: &String| !self.plugins.contains_key(name);
        std::iter::once(stem.clone())
            .chain((2..).map(|number| format!("{stem}-{number}")))
            .find(is_free)
            .unwrap_or(stem)
    }

    fn free_table(&self, stem: &str) -> String {
        (1..)
            .map(|number| format!("{stem}-{number}"))
            .find(|name| !self.tables.contains_key(name))
            .unwrap_or_else(|| stem.to_owned())
    }
}

fn hosts_settings(key: &str, hosts: Vec<String>, rule: &Bean) -> Map<String, Value> {
    let mut settings = Map::new();
    let from_seeds = rule.text("seedsAsSurtPrefixes") != Some("false");
    settings.insert("from-seeds".to_owned(), from_seeds.into());
    if !hosts.is_empty() {
        settings.insert(key.to_owned(), json!(hosts));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_keeps_its_meaning_or_is_refused_with_the_reason() {
        for (java, ours) in [
            (".*/calendar/.*", "/calendar/"),
            ("http://a\\.org/.*", "^(?:http://a\\.org/.*)$"),
            (".*\\.(avi|mp4)", "^(?:.*\\.(avi|mp4))$"),
        ] {
            assert_eq!(translated(java).unwrap(), ours);
        }
        for (java, why) in [
            (".*?/(.*?/)\\1.*", "back-reference"),
            ("(?!.*private).*", "negative look-ahead"),
            ("a*+b", "possessive"),
            ("(unclosed", "not a regular expression"),
        ] {
            let problem = translated(java).unwrap_err();
            assert!(problem.contains(why), "{java}: {problem}");
        }
    }
}
