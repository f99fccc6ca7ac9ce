//! From a Heritrix 3 job's `crawler-beans.cxml` to a profile, with a list of all that could not be carried over. The profile
//! checks clean: what would not is left out and listed.

mod beans;
mod policies;
mod rules;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use self::beans::{Bean, Beans, Property};
use self::settings::{SETTINGS, Unit, known_as};
use crate::profile::{Given, Profile};
use crate::shape::toml_text;

/// Lines that are taken out because a profile may not say them; each shows the next.
const FAULTY_LINES_MAX: usize = 200;

/// Extractors there, and here.
const EXTRACTORS: [(&str, &str); 13] = [
    ("ExtractorHTTP", "http"),
    ("ExtractorRobotsTxt", "robots"),
    ("ExtractorSitemap", "sitemap"),
    ("ExtractorHTML", "html"),
    ("JerichoExtractorHTML", "html"),
    ("AggressiveExtractorHTML", "html"),
    ("ExtractorCSS", "css"),
    ("ExtractorJS", "js"),
    ("KnowledgableExtractorJS", "js"),
    ("ExtractorSWF", "swf"),
    ("ExtractorPDF", "pdf"),
    ("ExtractorXML", "xml"),
    ("ExtractorJson", "json"),
];

/// Beans that are how Heritrix is put together, and what Opilio does without being told.
const STRUCTURE: &[&str] = &[
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
    "KeyWordProperties",
    "PreconditionEnforcer",
    "Preselector",
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

/// Properties that say how Heritrix does things inside, or where files lie that lie elsewhere here.
const INSIDE: &[&str] = &[
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
    "logToFile",
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
    "actionDir",
    "doneDir",
    "initialDelaySeconds",
    "recoveryLogEnabled",
    "costAssignmentPolicy",
    "canonicalizationPolicy",
    "rules",
    "useHTTP11",
    "sendConnectionClose",
    "digestContent",
    "logExtraInfo",
    "queuePrecedencePolicy",
];

/// Why logins are not carried over.
const PASSWORDS: &str =
    "passwords do not stand in profiles: write a table under [logins] or [credentials]";

/// Properties of which one value is what Opilio does.
const AS_HERE: [(&str, &str); 5] = [
    ("deferToPrevious", "true"),
    ("digestAlgorithm", "sha1"),
    ("runWhileEmpty", "false"),
    (
        "template",
        "${prefix}-${timestamp17}-${serialno}-${heritrix.pid}~${heritrix.hostname}~${heritrix.port}",
    ),
    ("useSharedCache", "true"),
];

/// Beans that a job does well without: one that is switched off changes nothing here.
const OPTIONAL: [&str; 6] = [
    "ActionDirectory",
    "CheckpointService",
    "CrawlLimitEnforcer",
    "DiskSpaceMonitor",
    "QuotaEnforcer",
    "RuntimeLimitEnforcer",
];

/// A profile that was made of a job of Heritrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedProfile {
    /// The profile.
    pub toml: String,
    /// What could not be carried over.
    pub left: Vec<LeftOut>,
    /// Where no file was to be read: the file of seeds that it names, which the profile then does not.
    pub seeds_file: Option<String>,
}

/// Files that a configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedFiles<'f> {
    /// They are looked for from this folder on, where the profile is to lie.
    In(&'f Path),
    /// None is read: the configuration comes from somebody who may not know what this machine has.
    Unread,
}

/// Something that could not be carried over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Its line in the file.
    pub line: usize,
    /// The bean: its id and its class.
    pub bean: String,
    /// What it says, and why it is left out.
    pub problem: String,
}

/// A plugin that the profile names: its component and its settings.
type Instance = (String, Map<String, Value>);

/// An import on its way.
struct Import {
    beans: Beans,
    /// Settings by their names.
    settings: BTreeMap<String, Value>,
    /// Instances of plugins; none for those with their defaults.
    plugins: BTreeMap<String, Option<Instance>>,
    tables: BTreeMap<String, Value>,
    overrides: Vec<(Vec<String>, BTreeMap<String, Value>)>,
    left: BTreeSet<LeftOut>,
}

/// Settings besides that of the seeds that an import may make of names of files.
const FILES: [&str; 2] = ["cookies.load", "cookies.save"];

/// Makes a profile of the text of a `crawler-beans.cxml`.
///
/// # Errors
/// Why it is no such file; or which settings name files that are not to be read.
pub fn import_heritrix(
    xml: &str,
    files: NamedFiles<'_>,
    builtins: &[String],
) -> Result<ImportedProfile, String> {
    let mut import = Import {
        beans: Beans::read(xml)?,
        settings: BTreeMap::new(),
        plugins: BTreeMap::new(),
        tables: BTreeMap::new(),
        overrides: Vec::new(),
        left: BTreeSet::new(),
    };
    import.read();
    let (base, seeds_file) = match files {
        NamedFiles::In(folder) => (Some(folder.to_owned()), None),
        NamedFiles::Unread => (None, import.take_seeds_file()?),
    };
    let given = Given {
        builtins: builtins.to_vec(),
        name: Some("imported".to_owned()),
        seeds_elsewhere: true,
        base,
        ..Given::default()
    };
    let toml = import.checked(&given);
    Ok(ImportedProfile {
        toml,
        left: import.left.into_iter().collect(),
        seeds_file,
    })
}

impl Import {
    /// The file of seeds. Any other file that is named is refused: a scope without its list would be another scope.
    fn take_seeds_file(&mut self) -> Result<Option<String>, String> {
        let seeds_file = self.settings.remove("seeds-file");
        let settings = FILES
            .iter()
            .filter(|name| self.settings.contains_key(**name));
        let mut named: Vec<String> = settings.map(|name| (*name).to_owned()).collect();
        let overridden = self
            .overrides
            .iter()
            .flat_map(|(_, settings)| settings.keys());
        named.extend(
            overridden
                .filter(|name| FILES.contains(&name.as_str()))
                .cloned(),
        );
        let tables = self.tables.iter();
        named.extend(
            tables
                .filter(|(_, table)| table.get("file").is_some())
                .map(|(name, _)| format!("tables.{name}.file")),
        );
        if !named.is_empty() {
            return Err(format!(
                "these settings name files of this machine, of which none is read here: {}; write into the configuration what they hold",
                named.join(", ")
            ));
        }
        Ok(seeds_file.and_then(|file| file.as_str().map(str::to_owned)))
    }

    fn read(&mut self) {
        let beans = self.beans.list.clone();
        for bean in &beans {
            self.bean(bean);
        }
        self.seeds();
        let scope = beans.iter().find(|bean| bean.id == "scope");
        if let Some(scope) = scope {
            let rules = self.rules_of(scope);
            self.scope(&rules);
        }
        self.extractors(&beans);
        self.sheets(&beans);
        self.fit();
        for bean in &beans {
            self.account(bean);
        }
    }

    /// What the table of settings says of a bean, and of those within it.
    fn bean(&mut self, bean: &Bean) {
        if bean.text("enabled") == Some("false") {
            return;
        }
        let class = known_as(&bean.class).to_owned();
        for (of, property, setting, unit) in SETTINGS {
            if *of != class {
                continue;
            }
            let Some(Property::Text(text)) = self.beans.take(bean, property).cloned() else {
                continue;
            };
            self.put(bean, property, setting, *unit, &text);
        }
        self.choice(bean);
        for property in bean.properties.values() {
            for inner in property.within() {
                self.bean(inner);
            }
        }
    }

    fn put(&mut self, bean: &Bean, property: &str, setting: &str, unit: Unit, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match unit.read(text) {
            Ok(Value::Null) => {}
            Ok(value) => self.set(setting, value),
            Err(why) => {
                let problem = format!("{property} = {:?}: {why}", text.trim());
                self.leave(bean.line, &bean.name(), &problem);
            }
        }
    }

    fn seeds(&mut self) {
        let modules: Vec<Bean> = self.beans.of_class(&["TextSeedModule"]).cloned().collect();
        for module in modules {
            let Some(Property::Bean(source)) = self.beans.take(&module, "textSource").cloned()
            else {
                continue;
            };
            match (source.text("value"), source.text("path")) {
                (Some(text), _) => {
                    let lines = text.lines().map(str::trim);
                    let seeds: Vec<&str> = lines
                        .filter(|line| !line.is_empty() && !line.starts_with('#'))
                        .collect();
                    self.set("seeds", json!(seeds));
                }
                (None, Some(path)) => self.set("seeds-file", path.into()),
                (None, None) => {}
            }
            for property in ["sourceTagSeeds", "blockAwaitingSeedLines"] {
                self.used(&module, property);
            }
        }
    }

    /// The rules of a sequence, references followed.
    fn rules_of(&mut self, scope: &Bean) -> Vec<Bean> {
        let Some(Property::List(rules)) = self.beans.take(scope, "rules").cloned() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for rule in rules {
            match self.beans.target(&rule).cloned() {
                Some(inner) if inner.class == "DecideRuleSequence" => {
                    self.leave(
                        inner.line,
                        &inner.name(),
                        "a sequence within a sequence: its rules stand in the one above it now, which may decide otherwise",
                    );
                    found.extend(self.rules_of(&inner));
                }
                Some(rule) => found.push(rule),
                None => {}
            }
        }
        found
    }

    /// Extractors that the job does not have are taken out.
    fn extractors(&mut self, beans: &[Bean]) {
        let Some(chain) = beans.iter().find(|bean| bean.class == "FetchChain") else {
            return;
        };
        let Some(Property::List(processors)) = chain.properties.get("processors") else {
            return;
        };
        let mut there = BTreeSet::new();
        for processor in processors {
            let Some(bean) = self.beans.target(processor) else {
                continue;
            };
            let ours = EXTRACTORS.iter().find(|(class, _)| *class == bean.class);
            if let Some((_, ours)) = ours
                && bean.text("enabled") != Some("false")
            {
                there.insert(*ours);
            }
        }
        let known: BTreeSet<&str> = EXTRACTORS.iter().map(|(_, ours)| *ours).collect();
        let default = crate::stacks::StacksFile::default();
        let absent: Vec<&str> = default
            .named("extract")
            .unwrap_or_default()
            .iter()
            .map(String::as_str)
            .filter(|name| known.contains(name) && !there.contains(name))
            .collect();
        // Those two were optional there, and find nothing that does not belong to a page.
        let absent: Vec<&str> = absent
            .into_iter()
            .filter(|name| !matches!(*name, "xml" | "json"))
            .collect();
        if !absent.is_empty() {
            self.set("stacks.extract.without", json!(absent));
        }
    }

    /// Sheets that SURT prefixes are associated with become overrides.
    fn sheets(&mut self, beans: &[Bean]) {
        for association in beans {
            if association.class == "DecideRuledSheetAssociation" {
                self.leave(
                    association.line,
                    &association.name(),
                    "sheets are associated by SURT prefix, host, domain or expression here, not by rules; write an [[override]]",
                );
                continue;
            }
            if association.class != "SurtPrefixesSheetAssociation" {
                continue;
            }
            let prefixes = self.list_of(association, "surtPrefixes");
            for name in self.list_of(association, "targetSheetNames") {
                let Some(sheet) = self.beans.by_id(&name).cloned() else {
                    self.leave(
                        association.line,
                        &association.name(),
                        &format!("no sheet {name:?}"),
                    );
                    continue;
                };
                let Some(Property::Map(map)) = self.beans.take(&sheet, "map").cloned() else {
                    continue;
                };
                let mut said = BTreeMap::new();
                for (path, text) in &map {
                    self.sheet_entry(&sheet, path, text, &mut said);
                }
                if !said.is_empty() && !prefixes.is_empty() {
                    self.overrides.push((prefixes.clone(), said));
                }
            }
        }
    }

    fn sheet_entry(
        &mut self,
        sheet: &Bean,
        path: &str,
        text: &str,
        said: &mut BTreeMap<String, Value>,
    ) {
        let (id, property) = path.split_once('.').unwrap_or((path, ""));
        let class = self
            .beans
            .by_id(id)
            .map(|bean| known_as(&bean.class).to_owned());
        let entry = SETTINGS
            .iter()
            .find(|(of, name, ..)| class.as_deref() == Some(*of) && *name == property);
        let Some((_, _, setting, unit)) = entry else {
            let problem = format!("{path} = {:?}: there is no setting of it here", text.trim());
            self.leave(sheet.line, &sheet.name(), &problem);
            return;
        };
        match unit.read(text) {
            Ok(Value::Null) => {}
            Ok(value) => {
                said.insert((*setting).to_owned(), value);
            }
            Err(why) => {
                let problem = format!("{path} = {:?}: {why}", text.trim());
                self.leave(sheet.line, &sheet.name(), &problem);
            }
        }
    }

    fn list_of(&mut self, bean: &Bean, property: &str) -> Vec<String> {
        match self.beans.take(bean, property) {
            Some(Property::List(items)) => items
                .iter()
                .filter_map(|item| match item {
                    Property::Text(text) => Some(text.trim().to_owned()),
                    _ => None,
                })
                .collect(),
            Some(Property::Text(text)) => vec![text.trim().to_owned()],
            _ => Vec::new(),
        }
    }

    /// What the job did where it said nothing, as far as settings depend on each other.
    fn fit(&mut self) {
        if self
            .beans
            .of_class(&["DispositionProcessor"])
            .next()
            .is_some()
        {
            self.default("politeness.min-delay", "3s");
            self.default("politeness.max-delay", "30s");
        }
        let shortest = |settings: &BTreeMap<String, Value>, key: &str| {
            let text = settings.get(key)?.as_str()?.to_owned();
            crate::duration::parse_duration(&text).ok()
        };
        if let Some(total) = shortest(&self.settings, "fetch.total-timeout") {
            for key in ["fetch.response-timeout", "fetch.connect-timeout"] {
                let own = shortest(&self.settings, key);
                if own.unwrap_or(std::time::Duration::from_secs(20)) > total {
                    let text = crate::duration::format_duration(total);
                    self.set(key, text.into());
                }
            }
        }
        for (low, high, usual) in [
            ("dns.min-expires", "dns.max-expires", 24 * 3600),
            ("retry.delay", "retry.delay-max", 4 * 3600),
        ] {
            if let Some(low) = shortest(&self.settings, low)
                && low.as_secs() > usual
            {
                let text = crate::duration::format_duration(low);
                self.default(high, &text);
            }
        }
    }

    /// Says of what nothing was made.
    fn account(&mut self, bean: &Bean) {
        let is_rule = bean.class.ends_with("DecideRule");
        let is_extractor = EXTRACTORS.iter().any(|(class, _)| *class == bean.class);
        let is_known = STRUCTURE.contains(&bean.class.as_str())
            || STRUCTURE.contains(&known_as(&bean.class))
            || is_rule
            || is_extractor
            || bean.class.ends_with("Report")
            || bean.class.ends_with("RecordBuilder");
        if !is_known && bean.text("enabled") != Some("false") {
            let problem = match bean.class.as_str() {
                class if class.contains("Script") => "scripts are not executed",
                "HtmlFormCredential" | "HttpAuthenticationCredential" => PASSWORDS,
                _ => "nothing here is known to do the same",
            };
            self.leave(bean.line, &bean.name(), problem);
            return;
        }
        if bean.text("enabled") == Some("false") {
            let class = bean.class.as_str();
            if is_known && !is_rule && !is_extractor && !OPTIONAL.contains(&class) {
                self.leave(
                    bean.line,
                    &bean.name(),
                    "enabled = false: it cannot be switched off here",
                );
            }
            return;
        }
        let unused = self.beans.unused(bean).into_iter();
        let unused: Vec<(String, Property)> = unused
            .map(|(name, property)| (name.clone(), property.clone()))
            .collect();
        for (name, property) in unused {
            self.account_property(bean, &name, &property);
        }
    }

    /// Says of a property, and of the beans within it, of which nothing was made.
    fn account_property(&mut self, bean: &Bean, name: &str, property: &Property) {
        let is_inside = INSIDE.contains(&name);
        let is_rule = |inner: &Bean| {
            inner.class.ends_with("DecideRule") || inner.class == "DecideRuleSequence"
        };
        let text = match property {
            Property::Text(text) => text.trim().to_owned(),
            // It changes nothing until a script associates it with something.
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
                let said = inner.text("path").or_else(|| inner.text("value"));
                said.unwrap_or_default().to_owned()
            }
            Property::Bean(inner) => return self.account(inner),
            Property::List(items) => {
                for inner in property.within() {
                    self.account(inner);
                }
                let texts = items.iter().filter_map(|item| match item {
                    Property::Text(text) => Some(text.trim()),
                    _ => None,
                });
                texts.collect::<Vec<_>>().join(", ")
            }
        };
        if name == "credentials" {
            return self.leave(bean.line, &bean.name(), PASSWORDS);
        }
        let is_as_here = AS_HERE.contains(&(name, text.as_str()));
        if text.is_empty() || is_inside || is_as_here {
            return;
        }
        let problem = format!("{name} = {text:?}: there is no setting of it here");
        self.leave(bean.line, &bean.name(), &problem);
    }

    fn set(&mut self, setting: &str, value: Value) {
        self.settings.insert(setting.to_owned(), value);
    }

    fn default(&mut self, setting: &str, value: &str) {
        self.settings
            .entry(setting.to_owned())
            .or_insert_with(|| value.into());
    }

    fn used(&mut self, bean: &Bean, property: &str) {
        self.beans.take(bean, property);
    }

    fn leave(&mut self, line: usize, bean: &str, problem: &str) {
        self.left.insert(LeftOut {
            line,
            bean: bean.to_owned(),
            problem: problem.to_owned(),
        });
    }

    fn free_name(&self, component: &str, decision: &str) -> String {
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

    /// The profile, what it may not say taken out and listed.
    fn checked(&mut self, given: &Given) -> String {
        let mut toml = self.toml();
        for _ in 0..FAULTY_LINES_MAX {
            let Err(faults) = Profile::parse("imported.toml", &toml, given) else {
                return toml;
            };
            let mut lines: Vec<String> = toml.lines().map(str::to_owned).collect();
            let fault = faults.iter().find_map(|fault| {
                let place = fault.place.as_ref()?;
                let line = lines.get(place.line.checked_sub(1)?)?;
                (!line.starts_with('#') && !line.is_empty())
                    .then(|| (place.line - 1, fault.clone()))
            });
            let Some((number, fault)) = fault else {
                return toml;
            };
            let line = lines[number].clone();
            self.leave(0, "profile", &format!("{line}: {}", fault.problem));
            lines[number] = format!("# {line} # {}", fault.problem.replace('\n', " "));
            toml = lines.join("\n") + "\n";
        }
        toml
    }

    fn toml(&self) -> String {
        let mut text = "# Made of a crawler-beans.cxml. What is not written here is as by default, which docs/PROFILE.md lists.\n".to_owned();
        let mut tables: BTreeMap<&str, Vec<(&str, &Value)>> = BTreeMap::new();
        for (name, value) in &self.settings {
            let (table, key) = name.split_once('.').unwrap_or(("", name));
            tables.entry(table).or_default().push((key, value));
        }
        for (table, settings) in tables {
            if !table.is_empty() {
                text.push_str(&format!("\n[{table}]\n"));
            }
            for (key, value) in settings {
                text.push_str(&format!("{key} = {}\n", toml_text(value)));
            }
        }
        for (name, plugin) in &self.plugins {
            if let Some((component, settings)) = plugin {
                text.push_str(&format!(
                    "\n[plugins.{name}]\ncomponent = \"builtin:{component}\"\nsettings = {}\n",
                    toml_text(&Value::Object(settings.clone()))
                ));
            }
        }
        for (name, table) in &self.tables {
            text.push_str(&format!("\n[tables.{name}]\n"));
            for (key, value) in table.as_object().into_iter().flatten() {
                text.push_str(&format!("{key} = {}\n", toml_text(value)));
            }
        }
        for (prefixes, said) in &self.overrides {
            text.push_str(&format!(
                "\n[[override]]\nmatch.surt = {}\n",
                toml_text(&json!(prefixes))
            ));
            for (key, value) in said {
                text.push_str(&format!("{key} = {}\n", toml_text(value)));
            }
        }
        text
    }
}
