//! Import of a Heritrix 3 job's `crawler-beans.cxml` into a profile, with a list of everything that could not be converted. The
//! profile is valid: invalid parts are left out and listed.

mod beans;
mod output;
mod policies;
mod rules;
mod settings;
mod sheets;
mod unconverted;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::Path;

use serde_json::{Map, Value, json};

use self::beans::{Bean, Beans, Property};
use self::settings::{SETTINGS, Unit, each, known_as};
use crate::profile::ProfileContext;
use crate::seeds;

/// Extractors in Heritrix and in Opilio.
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

/// A profile that was made from a Heritrix job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedProfile {
    /// The profile.
    pub toml: String,
    /// Parts that could not be converted.
    pub left: Vec<UnconvertedPart>,
    /// File of seeds that the configuration names, if no file was to be read. The profile then does not name it.
    pub seeds_file: Option<String>,
}

/// Treatment of files that a configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedFiles<'f> {
    /// Relative names start at this folder, in which the profile will be.
    In(&'f Path),
    /// No file is read: the configuration comes from a client who may not know this machine's files.
    Unread,
}

/// A part that could not be converted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnconvertedPart {
    /// Its line in the file.
    pub line: usize,
    /// The bean: its id and its class.
    pub bean: String,
    /// Its text, and the reason for which it is left out.
    pub problem: String,
}

/// A plugin that the profile names: its component and its settings.
type Instance = (String, Map<String, Value>);

/// Settings of a sheet for the prefixes with which it is associated.
struct SheetOverride {
    prefixes: Vec<String>,
    settings: BTreeMap<String, Value>,
    /// Name of the sheet, and its line.
    sheet: (String, usize),
}

/// A running import.
struct Import {
    beans: Beans,
    /// Settings by their names.
    settings: BTreeMap<String, Value>,
    /// Instances of plugins; `None` for those with their defaults.
    plugins: BTreeMap<String, Option<Instance>>,
    tables: BTreeMap<String, Value>,
    overrides: Vec<SheetOverride>,
    left: BTreeSet<UnconvertedPart>,
}

/// Settings, besides that of the seeds, that an import may make from file names.
const FILES: [&str; 2] = ["cookies.load", "cookies.save"];

/// Makes a profile from the text of a `crawler-beans.cxml`.
///
/// # Errors
/// The reason for which the text is not such a file, or the settings that name files which must not be read.
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
    let context = ProfileContext {
        builtins: builtins.to_vec(),
        name: Some("imported".to_owned()),
        seeds_elsewhere: true,
        base,
        ..ProfileContext::default()
    };
    let toml = import.valid_toml(&context);
    Ok(ImportedProfile {
        toml,
        left: import.left.into_iter().collect(),
        seeds_file,
    })
}

impl Import {
    /// Takes the file of seeds. Any other named file is refused: without the lists in these files the scope would be another one.
    fn take_seeds_file(&mut self) -> Result<Option<String>, String> {
        let seeds_file = self.settings.remove("seeds-file");
        let settings = FILES
            .iter()
            .filter(|name| self.settings.contains_key(**name));
        let mut named: Vec<String> = settings.map(|name| (*name).to_owned()).collect();
        let overridden = self.overrides.iter().flat_map(|one| one.settings.keys());
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
                "these settings name files of this machine, which are not read: {}; write the contents of the files into the configuration",
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
            self.scope_log(scope);
            let rules = self.rules_of(scope);
            self.scope(&rules);
        }
        self.extractors(&beans);
        self.sheets(&beans);
        self.complete_related_settings();
        for bean in &beans {
            self.list_unconverted_of(bean);
        }
        for (line, problem) in mem::take(&mut self.beans.unmatched_overrides) {
            self.list_unconverted(line, "PropertyOverrideConfigurer", &problem);
        }
    }

    /// Applies the table of settings to a bean and to the beans within it.
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
            self.convert(bean, property, setting, *unit, &text);
        }
        self.convert_policy(bean);
        for property in bean.properties.values() {
            for inner in property.within() {
                self.bean(inner);
            }
        }
    }

    /// Sets the scope log if either the scope or its caller logs decisions.
    fn scope_log(&mut self, scope: &Bean) {
        if scope.text("logToFile").map(str::trim) == Some("true") {
            self.mark_converted(scope, "logToFile");
            self.set("logs.scope", true.into());
        }
    }

    fn convert(&mut self, bean: &Bean, property: &str, setting: &str, unit: Unit, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match unit.read(text) {
            Ok(Value::Null) => {}
            Ok(value) => self.settings.extend(each(setting, value)),
            Err(why) => {
                let problem = format!("{property} = {:?}: {why}", text.trim());
                self.list_unconverted(bean.line, &bean.name(), &problem);
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
                    let mut seeds = Vec::new();
                    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
                        match seeds::read(line) {
                            Ok(_) => seeds.push(line),
                            Err((problem, _)) => {
                                self.list_unconverted(source.line, &module.name(), &problem)
                            }
                        }
                    }
                    self.set("seeds", json!(seeds));
                }
                (None, Some(path)) => self.set("seeds-file", path.into()),
                (None, None) => {}
            }
            for property in ["sourceTagSeeds", "blockAwaitingSeedLines"] {
                self.mark_converted(&module, property);
            }
        }
    }

    /// Removes extractors that the job does not have.
    fn extractors(&mut self, beans: &[Bean]) {
        let Some(chain) = beans.iter().find(|bean| bean.class == "FetchChain") else {
            return;
        };
        let Some(Property::List(processors)) = chain.properties.get("processors") else {
            return;
        };
        let mut present = BTreeSet::new();
        for processor in processors {
            let Some(bean) = self.beans.target(processor) else {
                continue;
            };
            let ours = EXTRACTORS.iter().find(|(class, _)| *class == bean.class);
            if let Some((_, ours)) = ours
                && bean.text("enabled") != Some("false")
            {
                present.insert(*ours);
            }
        }
        let known: BTreeSet<&str> = EXTRACTORS.iter().map(|(_, ours)| *ours).collect();
        let default = crate::stacks::StacksFile::default();
        let absent: Vec<&str> = default
            .named("extract")
            .unwrap_or_default()
            .iter()
            .map(String::as_str)
            .filter(|name| known.contains(name) && !present.contains(name))
            .collect();
        // These two extractors were optional in Heritrix, but they find only links of pages. So they stay.
        let absent: Vec<&str> = absent
            .into_iter()
            .filter(|name| !matches!(*name, "xml" | "json"))
            .collect();
        if !absent.is_empty() {
            self.set("stacks.extract.without", json!(absent));
        }
    }

    /// Completes settings that depend on each other, with Heritrix's defaults for missing ones.
    fn complete_related_settings(&mut self) {
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

    fn set(&mut self, setting: &str, value: Value) {
        self.settings.insert(setting.to_owned(), value);
    }

    fn default(&mut self, setting: &str, value: &str) {
        self.settings
            .entry(setting.to_owned())
            .or_insert_with(|| value.into());
    }

    fn mark_converted(&mut self, bean: &Bean, property: &str) {
        self.beans.take(bean, property);
    }

    fn list_unconverted(&mut self, line: usize, bean: &str, problem: &str) {
        self.left.insert(UnconvertedPart {
            line,
            bean: bean.to_owned(),
            problem: problem.to_owned(),
        });
    }
}
