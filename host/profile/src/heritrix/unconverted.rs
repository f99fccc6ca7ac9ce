//! Lists the beans and properties that were not converted, without Heritrix's internals.

use super::beans::{Bean, Property};
use super::settings::known_as;
use super::{EXTRACTORS, Import};

/// Beans of Heritrix's internal structure, and of features that Opilio always has.
const INTERNAL_BEANS: &[&str] = &[
    "BdbCookieStore",
    "BdbFrontier",
    "BdbModule",
    "BdbServerCache",
    "BdbUriUniqFilter",
    "CandidateChain",
    "CandidateScoper",
    "CandidatesProcessor",
    "CheckpointService",
    "ConfigPathConfigurer",
    "CostUriPrecedencePolicy",
    "CrawlController",
    "CrawlLimitEnforcer",
    "CrawlMetadata",
    "CrawlerLoggerModule",
    "CredentialStore",
    "DispositionChain",
    "DispositionProcessor",
    "FetchChain",
    "FetchDNS",
    "FetchFTP",
    "FetchHTTP",
    "FetchWhois",
    "FrontierPreparer",
    "HTTPContentDigest",
    "KeyWordProperties",
    "PreconditionEnforcer",
    "Preselector",
    "ReschedulingProcessor",
    "RulesCanonicalizationPolicy",
    "SimpleCookieStore",
    "StatisticsTracker",
    "SurtAuthorityQueueAssignmentPolicy",
    "TextSeedModule",
    "UnitCostAssignmentPolicy",
    "UriPrecedencePolicy",
    "BaseUriPrecedencePolicy",
    "ZeroCostAssignmentPolicy",
    "WagCostAssignmentPolicy",
    "AntiCalendarCostAssignmentPolicy",
    "QuotaEnforcer",
    "RuntimeLimitEnforcer",
    "ActionDirectory",
    "DiskSpaceMonitor",
    "BaseQueuePrecedencePolicy",
    "SheetOverlaysManager",
    "Sheet",
    "SurtPrefixesSheetAssociation",
    "WARCWriterChainProcessor",
    "WARCWriterProcessor",
    "DecideRuleSequence",
    "CustomEditorConfigurer",
    "CommonAnnotationBeanPostProcessor",
];

/// Properties of Heritrix's internals, and of file locations that differ in Opilio.
const INTERNAL_PROPERTIES: &[&str] = &[
    "applicationContext",
    "audience",
    "bdb",
    "candidateChain",
    "chain",
    "controller",
    "crawlController",
    "cookieStore",
    "credentialStore",
    "dir",
    "directory",
    "dispositionChain",
    "enabled",
    "expectedConcurrency",
    "fetchChain",
    "frontier",
    "kryo",
    "loggerModule",
    "metadata",
    "metadataProvider",
    "pauseAtStart",
    "poolMaxActive",
    "processors",
    "preparer",
    "queueAssignmentPolicy",
    "recorderInBufferBytes",
    "recorderOutBufferBytes",
    "robotsPolicyName",
    "scope",
    "scratchDir",
    "seeds",
    "serverCache",
    "sheetOverlaysManager",
    "snoozeLongMs",
    "statisticsTracker",
    "storePaths",
    "uriPrecedencePolicy",
    "uriUniqFilter",
    "checkpointsDir",
    "path",
    "initialDelaySeconds",
    "recoveryLogEnabled",
    "costAssignmentPolicy",
    "canonicalizationPolicy",
    "rules",
    "useHTTP11",
    "sendConnectionClose",
    "digestContent",
    "queuePrecedencePolicy",
];

/// Properties with the one value that is Opilio's behaviour.
const FIXED_BEHAVIOUR: [(&str, &str); 9] = [
    ("actionDir", "action"),
    ("deferToPrevious", "true"),
    ("digestAlgorithm", "sha1"),
    ("doneDir", "${launchId}/actions-done"),
    ("logExtraInfo", "false"),
    ("logToFile", "false"),
    ("runWhileEmpty", "false"),
    (
        "template",
        "${prefix}-${timestamp17}-${serialno}-${heritrix.pid}~${heritrix.hostname}~${heritrix.port}",
    ),
    ("useSharedCache", "true"),
];

/// Beans that a job does not need: if one is disabled, the profile does not change.
const OPTIONAL: [&str; 8] = [
    "ActionDirectory",
    "CheckpointService",
    "CrawlLimitEnforcer",
    "DiskSpaceMonitor",
    "HTTPContentDigest",
    "QuotaEnforcer",
    "ReschedulingProcessor",
    "RuntimeLimitEnforcer",
];

/// Reason for which logins are not converted.
const PASSWORDS: &str =
    "a profile contains no passwords: write a table under [logins] or [credentials]";

impl Import {
    /// Lists the properties of a bean that were not converted.
    pub(super) fn list_unconverted_of(&mut self, bean: &Bean) {
        let is_rule = bean.class.ends_with("DecideRule");
        let is_extractor = EXTRACTORS.iter().any(|(class, _)| *class == bean.class);
        let is_known = INTERNAL_BEANS.contains(&bean.class.as_str())
            || INTERNAL_BEANS.contains(&known_as(&bean.class))
            || is_rule
            || is_extractor
            || bean.class.ends_with("Report")
            || bean.class.ends_with("RecordBuilder");
        if !is_known && bean.text("enabled") != Some("false") {
            let problem = match bean.class.as_str() {
                class if class.contains("Script") => "scripts are not executed",
                "HtmlFormCredential" | "HttpAuthenticationCredential" => PASSWORDS,
                _ => "Opilio has no known equivalent",
            };
            self.list_unconverted(bean.line, &bean.name(), problem);
            return;
        }
        if bean.text("enabled") == Some("false") {
            let class = bean.class.as_str();
            if is_known && !is_rule && !is_extractor && !OPTIONAL.contains(&class) {
                self.list_unconverted(
                    bean.line,
                    &bean.name(),
                    "enabled = false: Opilio cannot switch it off",
                );
            }
            return;
        }
        let unused = self.beans.unused(bean).into_iter();
        let unused: Vec<(String, Property)> = unused
            .map(|(name, property)| (name.clone(), property.clone()))
            .collect();
        for (name, property) in unused {
            self.list_unconverted_property(bean, &name, &property);
        }
    }

    /// Lists a property that was not converted, and those of the beans within it.
    fn list_unconverted_property(&mut self, bean: &Bean, name: &str, property: &Property) {
        let is_internal = INTERNAL_PROPERTIES.contains(&name);
        let is_rule = |inner: &Bean| {
            inner.class.ends_with("DecideRule") || inner.class == "DecideRuleSequence"
        };
        let text = match property {
            Property::Text(text) => text.trim().to_owned(),
            // A sheet changes nothing until a script associates it.
            Property::Map(_) if bean.class == "Sheet" => return,
            Property::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| format!("{key}: {}", value.trim()));
                entries.collect::<Vec<_>>().join(", ")
            }
            Property::Reference(id) if name.ends_with("Rule") => id.clone(),
            Property::Reference(_) => return,
            Property::Bean(inner) if is_rule(inner) => inner.class.clone(),
            Property::Bean(inner) if inner.class.starts_with("Config") => {
                let path = inner.text("path").or_else(|| inner.text("value"));
                path.unwrap_or_default().to_owned()
            }
            Property::Bean(inner) => return self.list_unconverted_of(inner),
            Property::List(_) => {
                for inner in property.within() {
                    self.list_unconverted_of(inner);
                }
                property.texts().join(", ")
            }
        };
        if name == "credentials" {
            return self.list_unconverted(bean.line, &bean.name(), PASSWORDS);
        }
        let is_fixed_behaviour = FIXED_BEHAVIOUR.contains(&(name, text.as_str()));
        if text.is_empty() || is_internal || is_fixed_behaviour {
            return;
        }
        let why = match name {
            "actionDir" => "the folder is `action` in the folder of the job",
            "doneDir" => "the folder is `actions-done` in the folder of the job",
            _ => "Opilio has no setting for it",
        };
        let problem = format!("{name} = {text:?}: {why}");
        self.list_unconverted(bean.line, &bean.name(), &problem);
    }
}
