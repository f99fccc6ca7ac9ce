//! Beans that select a policy and do not only set a number: queue names, precedence, costs, canonicalisation and headers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::beans::{Bean, Property};
use super::settings::Unit;
use super::{Import, rules};

/// Class, setting, value. Values that are the default here are left out. So is `HostnameQueueAssignmentPolicy`: its queues are
/// those of a host and port under another name.
const CHOICES: [(&str, &str, &str); 9] = [
    ("ARCWriterProcessor", "archive.format", "arc"),
    (
        "AssignmentLevelSurtQueueAssignmentPolicy",
        "frontier.queue-key",
        "domain",
    ),
    ("ZeroCostAssignmentPolicy", "uri.cost-policy", "zero"),
    ("WagCostAssignmentPolicy", "uri.cost-policy", "query"),
    (
        "AntiCalendarCostAssignmentPolicy",
        "uri.cost-policy",
        "anti-calendar",
    ),
    ("BaseUriPrecedencePolicy", "uri.precedence-policy", "base"),
    ("HopsUriPrecedencePolicy", "uri.precedence-policy", "hops"),
    (
        "HighestUriQueuePrecedencePolicy",
        "queue.precedence-policy",
        "highest-uri",
    ),
    (
        "SuccessCountsQueuePrecedencePolicy",
        "queue.precedence-policy",
        "success-counts",
    ),
];

/// Canonicalisation rules in Heritrix and in Opilio.
const RULES: [(&str, &str); 8] = [
    ("LowercaseRule", "lowercase"),
    ("StripUserinfoRule", "strip-userinfo"),
    ("StripWWWRule", "strip-www"),
    ("StripWWWNRule", "strip-www-n"),
    ("StripSessionIDs", "strip-session-ids"),
    ("StripSessionCFIDs", "strip-session-cfids"),
    ("FixupQueryString", "fixup-query"),
    ("StripExtraSlashes", "strip-extra-slashes"),
];

/// Default replacement of a custom rule.
const WHOLE: &str = "$1";

impl Import {
    /// Applies the policy that a bean's class selects.
    pub(super) fn convert_policy(&mut self, bean: &Bean) {
        let chosen = CHOICES.iter().find(|(class, ..)| *class == bean.class);
        if let Some((_, setting, value)) = chosen {
            self.set(setting, (*value).into());
        }
        match bean.class.as_str() {
            "SuccessCountsQueuePrecedencePolicy" => self.steps(bean),
            "RulesCanonicalizationPolicy" => self.canonicalization(bean),
            "RuntimeLimitEnforcer" => self.run_time(bean),
            "HTTPContentDigest" => self.content_digest(bean),
            "FetchHTTP" | "FetchHTTP2" => {
                self.proxy(bean);
                self.headers(bean);
            }
            _ => {}
        }
    }

    fn steps(&mut self, bean: &Bean) {
        let Some(written) = self.taken_text(bean, "incrementCounts") else {
            return;
        };
        let steps: Result<Vec<u64>, _> = written.split(',').map(|it| it.trim().parse()).collect();
        match steps {
            Ok(steps) => self.set("queue.precedence-steps", json!(steps)),
            Err(_) => {
                let problem = format!("incrementCounts = {written:?}: no numbers with commas");
                self.list_unconverted(bean.line, &bean.name(), &problem);
            }
        }
    }

    fn canonicalization(&mut self, bean: &Bean) {
        let Some(Property::List(rules)) = self.beans.take(bean, "rules").cloned() else {
            return;
        };
        let mut list = Vec::new();
        for rule in &rules {
            let Some(rule) = self.beans.target(rule).cloned() else {
                continue;
            };
            if rule.text("enabled") == Some("false") {
                continue;
            }
            let known = RULES.iter().find(|(class, _)| *class == rule.class);
            match known {
                Some((_, name)) => list.push(json!(name)),
                None if rule.class == "RegexRule" => list.extend(self.regex_rule(&rule)),
                None => {
                    self.list_unconverted(rule.line, &rule.name(), "Opilio has no known equivalent")
                }
            }
        }
        let default = crate::canonicalization::CanonicalizationFile::default();
        if json!(default.rules) != json!(list) {
            self.set("canonicalization.rules", list.into());
        }
    }

    fn regex_rule(&mut self, rule: &Bean) -> Option<Value> {
        let regex = self.taken_text(rule, "regex").unwrap_or_default();
        let format = self.taken_text(rule, "format");
        let format = format.unwrap_or_else(|| WHOLE.to_owned());
        let replace = groups(&format);
        match (crate::matching::regex(&regex), replace) {
            (Ok(_), Some(replace)) => Some(json!({ "regex": regex, "replace": replace })),
            (Err(why), _) => {
                let problem = format!("regex = {regex:?}: {why}");
                self.list_unconverted(rule.line, &rule.name(), &problem);
                None
            }
            (_, None) => {
                let problem =
                    format!("format = {format:?}: the meaning of its escapes is not known");
                self.list_unconverted(rule.line, &rule.name(), &problem);
                None
            }
        }
    }

    /// Converts a run time if its operation is `TERMINATE`. Opilio does not have the other two operations.
    fn run_time(&mut self, bean: &Bean) {
        let operation = self.taken_text(bean, "expirationOperation");
        let operation = operation.as_deref().unwrap_or("PAUSE");
        let seconds = ["runtimeSec", "runtimeSeconds"]
            .into_iter()
            .find_map(|name| self.taken_text(bean, name));
        let seconds = seconds.as_deref().unwrap_or("86400");
        if operation == "TERMINATE" {
            self.convert(bean, "runtimeSec", "limits.time", Unit::Seconds, seconds);
        } else {
            let problem = format!(
                "{operation} after {seconds} s: Opilio has a setting only for the end of a job, limits.time"
            );
            self.list_unconverted(bean.line, &bean.name(), &problem);
        }
    }

    /// Converts the parts to ignore in comparisons into a digest stripper.
    fn content_digest(&mut self, bean: &Bean) {
        let size = self.taken_text(bean, "maxSizeBytes");
        let Some(java) = self.taken_text(bean, "stripRegex") else {
            return;
        };
        let pattern = rules::is_linear(&java).and_then(|()| crate::matching::regex(&java));
        if let Err(why) = pattern {
            let problem = format!("stripRegex = {java:?}: {why}");
            return self.list_unconverted(bean.line, &bean.name(), &problem);
        }
        let mut settings = Map::from_iter([("patterns".to_owned(), json!([java]))]);
        match size.map(|size| size.parse::<u64>()) {
            Some(Ok(size)) => {
                settings.insert("max-size".to_owned(), size.into());
            }
            Some(Err(_)) => {
                let problem = "maxSizeBytes: not a number of bytes; the default applies";
                self.list_unconverted(bean.line, &bean.name(), problem);
            }
            None => {}
        }
        let name = self.free_name("regex-strip", "");
        let instance = ("regex-strip".to_owned(), settings);
        self.plugins.insert(name.clone(), Some(instance));
        let mut stack = self.settings.remove("stacks.digest");
        let stack = stack.get_or_insert_with(|| json!([]));
        if let Some(stack) = stack.as_array_mut() {
            stack.push(name.into());
        }
        let stack = stack.take();
        self.set("stacks.digest", stack);
    }

    fn headers(&mut self, bean: &Bean) {
        let Some(Property::List(lines)) = self.beans.take(bean, "acceptHeaders").cloned() else {
            return;
        };
        let mut headers = BTreeMap::new();
        for line in &lines {
            let Property::Text(line) = line else {
                continue;
            };
            match line.split_once(':') {
                Some((name, value)) => {
                    headers.insert(name.trim().to_owned(), value.trim().to_owned());
                }
                None => {
                    let problem = format!("acceptHeaders: {:?} is not a header", line.trim());
                    self.list_unconverted(bean.line, &bean.name(), &problem);
                }
            }
        }
        if !headers.is_empty() {
            self.set("fetch.headers", json!(headers));
        }
    }

    fn proxy(&mut self, bean: &Bean) {
        for (kind, host, port) in [
            ("http", "httpProxyHost", "httpProxyPort"),
            ("socks5", "socksProxyHost", "socksProxyPort"),
        ] {
            let (host, port) = (self.taken_text(bean, host), self.taken_text(bean, port));
            match (host, port) {
                (Some(host), Some(port)) => {
                    self.set("fetch.proxy", format!("{kind}://{host}:{port}").into());
                }
                (None, None) => {}
                _ => self.list_unconverted(
                    bean.line,
                    &bean.name(),
                    "only one of the proxy's host and port is set: write fetch.proxy",
                ),
            }
        }
    }

    /// The text of a property if it is present and not empty. The property then counts as converted.
    fn taken_text(&mut self, bean: &Bean, property: &str) -> Option<String> {
        self.beans.take(bean, property)?;
        let text = bean.text(property)?;
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// Converts `$1` to the form of a profile. `None` if there are backslashes, which are escapes in Java.
fn groups(format: &str) -> Option<String> {
    if format.contains('\\') {
        return None;
    }
    let mut text = String::new();
    let mut rest = format;
    while let Some(place) = rest.find('$') {
        text.push_str(&rest[..place]);
        rest = &rest[place + 1..];
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        let (number, behind) = rest.split_at(digits.unwrap_or(rest.len()));
        match number.is_empty() {
            // `${name}` is the same in both.
            true => text.push('$'),
            false => text.push_str(&format!("${{{number}}}")),
        }
        rest = behind;
    }
    Some(text + rest)
}
