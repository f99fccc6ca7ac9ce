//! Instances of plugins: component, settings and limits of each.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::check::{Part, nearest, quote};
use crate::component::{ComponentReference, is_plugin_name};
use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::fault_policy::{BreakerFile, BreakerSettings, OnFault};
use crate::plugin_limits::{PluginLimits, PluginLimitsFile};

/// Suggests the built-in plugin of the same name for an instance without a component.
pub(crate) fn missing_components(faults: Diagnostics, builtins: &[String]) -> Diagnostics {
    let with_builtin = |mut fault: Diagnostic| {
        let name = fault
            .pointer
            .strip_prefix("/plugins/")
            .and_then(|rest| rest.strip_suffix("/component"));
        if let Some(name) = name
            && builtins.iter().any(|builtin| builtin == name)
            && fault.problem.starts_with("missing key")
            && let Some(example) = &fault.suggestion
        {
            fault.suggestion = Some(example.replace("builtin:html", &format!("builtin:{name}")));
        }
        fault
    };
    faults.into_iter().map(with_builtin).collect()
}

/// An instance of a plugin. Stacks, logs and reports use its table's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PluginFile {
    /// The component: `builtin:NAME` for a built-in one; the path of a `.wasm` file, relative to the profile; or a folder of such
    /// files. `oci://registry/repository:tag` or `…@sha256:DIGEST` is an image in a registry, as `opilio plugin push` and `wkg`
    /// write them. If there are several plugins, `#NAME` after it selects one.
    #[schemars(extend("examples" = ["builtin:html", "./my-plugin.wasm#name", "./plugins#name", "oci://registry.example.org/plugins/stories:1.0"]))]
    pub component: String,

    /// SHA-256 of the component's file, in hexadecimal. A file with another digest is refused. No default: any file is
    /// accepted, which suits only the development of a plugin. (The digest in the name of an image is that of its manifest, not
    /// of the file; either pins the component.)
    #[serde(default)]
    pub sha256: Option<String>,

    /// `true` if the registry is accessed over plain HTTP. Default `false`: HTTPS, except for registries on this machine. Plain
    /// HTTP does not authenticate the registry and sends credentials unencrypted: pin the component.
    #[serde(default)]
    pub insecure: bool,

    /// The plugin's own settings, by its schema. Default `{}`: the plugin uses its defaults.
    #[serde(default)]
    pub settings: Map<String, Value>,

    /// Limits of one call.
    #[serde(default)]
    pub limits: PluginLimitsFile,

    /// Filters that decide whether the plugin sees a document or a candidate: names, as in stacks. The plugin is not called for
    /// those that they reject. Default `[]`: the plugin is called for everything at its stage.
    #[serde(default)]
    pub filters: Vec<String>,

    /// Effect on a URI or document when the plugin fails. No default: scope and pre-fetch filters reject; any other plugin is
    /// skipped.
    #[serde(default)]
    pub on_fault: Option<OnFault>,

    /// Breaker: the number of plugin errors that is too many, and the action.
    #[serde(default)]
    pub breaker: BreakerFile,

    /// `true` if the component's file is watched, and the plugin replaced when it changes; for plugin development. If the changed
    /// file does not load, job.log has the error, and the plugin stays as it was. Default `false`: plugins of a crawl change only
    /// by a command.
    #[serde(default)]
    pub watch: bool,
}

/// An instance of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its name in stacks, logs and reports: lower-case words joined by hyphens.
    pub name: String,
    /// The origin of its component.
    pub component: ComponentReference,
    /// SHA-256 that the component's file must have.
    pub sha256: Option<[u8; 32]>,
    /// `true` if its registry is accessed over plain HTTP.
    pub insecure: bool,
    /// Its settings as written, an object; [`crate::Profile::check_settings`] checks them and fills in defaults.
    pub settings: Value,
    /// Limits of one call.
    pub limits: PluginLimits,
    /// Filters that decide whether it sees a document or a candidate: names of [`crate::Profile::plugins`]. These have no filters
    /// themselves.
    pub filters: Vec<String>,
    /// Effect on a URI or document when it fails; `None`: the default of its stage.
    pub on_fault: Option<OnFault>,
    /// Breaker: the number of plugin errors that is too many, and the action.
    pub breaker: BreakerSettings,
    /// `true` if its component's file is watched.
    pub watch: bool,
}

/// The plugins that stacks and filters may name: instances, and built-in plugins without a table.
pub(crate) struct Instances<'b> {
    /// Every instance that has a table, or has been named.
    pub(crate) by_name: BTreeMap<String, Instance>,
    builtins: &'b [String],
    /// Limits of an instance without a table.
    limits: PluginLimits,
    /// Breaker of an instance without a table.
    breaker: BreakerSettings,
}

impl PluginFile {
    fn check(
        &self,
        name: &str,
        mut part: Part<'_, '_>,
        base: &Path,
        builtins: &[String],
    ) -> Instance {
        let component = self.check_component(&mut part, base, builtins);
        let sha256 = self.sha256.as_deref().and_then(|text| {
            let digest = parse_sha256(text);
            if digest.is_none() {
                let problem = format!("not a SHA-256: {}", quote(text));
                part.refuse(
                    "sha256",
                    problem,
                    "write its 64 hexadecimal digits, as sha256sum prints them",
                );
            }
            digest
        });
        let pinned = match &component {
            ComponentReference::Builtin(_) => true,
            ComponentReference::File { .. } => self.sha256.is_some(),
            ComponentReference::Image { image, .. } => {
                self.sha256.is_some() || image.digest().is_some()
            }
        };
        if !pinned {
            let problem = format!("component of {} is not pinned", quote(name));
            part.note(
                "component",
                Level::Info,
                problem,
                "add sha256 = \"…\" once it is finished",
            );
        }
        if self.watch && !matches!(component, ComponentReference::File { .. }) {
            let problem = "only a file is watched".to_owned();
            part.refuse("watch", problem, "remove watch");
        } else if self.watch && self.sha256.is_some() {
            let problem = "the component is pinned, so a change would be refused".to_owned();
            part.refuse(
                "watch",
                problem,
                "remove watch, or sha256 for as long as it is written",
            );
        }
        if self.insecure && !matches!(component, ComponentReference::Image { .. }) {
            part.refuse(
                "insecure",
                "the component does not come from a registry".to_owned(),
                "leave this out: it is for components whose name begins with oci://",
            );
        }
        Instance {
            name: name.to_owned(),
            component,
            sha256,
            insecure: self.insecure,
            settings: Value::Object(self.settings.clone()),
            limits: self.limits.check(part.part("limits")),
            filters: self.filters.clone(),
            on_fault: self.on_fault,
            breaker: self.breaker.check(part.part("breaker")),
            watch: self.watch,
        }
    }

    fn check_component(
        &self,
        part: &mut Part<'_, '_>,
        base: &Path,
        builtins: &[String],
    ) -> ComponentReference {
        match ComponentReference::parse(&self.component, base) {
            Ok(component) => {
                if let ComponentReference::Builtin(name) = &component
                    && !builtins.contains(name)
                {
                    let problem = format!("no built-in plugin {}", quote(name));
                    let suggestion = match nearest(name, builtins.iter().map(String::as_str)) {
                        Some(builtin) => format!("did you mean \"builtin:{builtin}\"?"),
                        None => format!("available: {}", builtins.join(", ")),
                    };
                    part.refuse("component", problem, &suggestion);
                }
                component
            }
            Err(found) => {
                part.refuse("component", found.problem, &found.remedy);
                // A placeholder until the error is reported: a profile with an error is never used.
                ComponentReference::File {
                    path: base.join(&self.component),
                    plugin: None,
                }
            }
        }
    }
}

impl<'b> Instances<'b> {
    /// Checks the tables of plugins.
    pub(crate) fn check(
        files: &BTreeMap<String, PluginFile>,
        mut part: Part<'_, '_>,
        base: &Path,
        builtins: &'b [String],
    ) -> Self {
        let mut by_name = BTreeMap::new();
        for (name, file) in files {
            if !is_plugin_name(name) {
                let problem = format!("not a plugin name: {}", quote(name));
                part.refuse_key(
                    name,
                    problem,
                    "use lower-case words joined by hyphens, such as \"news-pages\"",
                );
            }
            by_name.insert(
                name.clone(),
                file.check(name, part.part(name), base, builtins),
            );
        }
        Self {
            by_name,
            builtins,
            limits: PluginLimitsFile::default().check(part.part("limits")),
            breaker: BreakerFile::default().check(part.part("breaker")),
        }
    }

    /// Checks the filters that guard plugins: each must exist, and have no guards itself.
    pub(crate) fn check_filters(
        &mut self,
        files: &BTreeMap<String, PluginFile>,
        mut part: Part<'_, '_>,
    ) {
        for (name, file) in files {
            let mut own = part.part(name);
            let mut filters = own.part("filters");
            for (index, filter) in file.filters.iter().enumerate() {
                let key = index.to_string();
                let has_filters = files
                    .get(filter)
                    .is_some_and(|other| !other.filters.is_empty());
                if file.filters[..index].contains(filter) {
                    let problem = format!("{} is listed twice", quote(filter));
                    filters.refuse(&key, problem, "remove one");
                } else if has_filters {
                    filters.refuse(
                        &key,
                        format!("{} has filters itself", quote(filter)),
                        "give it a second table under [plugins], without filters",
                    );
                } else {
                    self.check_name(&mut filters, &key, filter);
                }
            }
        }
    }

    /// Checks the value of `key` as the name of a plugin. A built-in plugin that is named for the first time becomes an instance.
    pub(crate) fn check_name(&mut self, part: &mut Part<'_, '_>, key: &str, name: &str) {
        if self.by_name.contains_key(name) {
            return;
        }
        if self.builtins.iter().any(|builtin| builtin == name) {
            self.by_name.insert(name.to_owned(), self.implied(name));
            return;
        }
        let known = self.by_name.keys().chain(self.builtins);
        let bare = name.strip_prefix("builtin:").unwrap_or(name);
        let suggestion = match nearest(bare, known.map(String::as_str)) {
            Some(known) => format!("did you mean \"{known}\"?"),
            None => format!("add a table [plugins.{name}] with its component"),
        };
        part.refuse(key, format!("no plugin {}", quote(name)), &suggestion);
    }

    /// Makes the instance of a built-in plugin that a stack names and that has no table.
    fn implied(&self, name: &str) -> Instance {
        Instance {
            name: name.to_owned(),
            component: ComponentReference::Builtin(name.to_owned()),
            sha256: None,
            insecure: false,
            settings: Value::Object(Map::new()),
            limits: self.limits,
            filters: Vec::new(),
            on_fault: None,
            breaker: self.breaker,
            watch: false,
        }
    }
}

/// Returns `true` if a plugin's table has this key.
pub(crate) fn has_key(key: &str) -> bool {
    const KEYS: [&str; 9] = [
        "component",
        "sha256",
        "insecure",
        "settings",
        "limits",
        "filters",
        "on-fault",
        "breaker",
        "watch",
    ];
    KEYS.contains(&key)
}

fn parse_sha256(text: &str) -> Option<[u8; 32]> {
    let text = text.as_bytes();
    let mut digest = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.chunks_exact(2)) {
        let nibble = |c: u8| char::from(c).to_digit(16);
        *byte = u8::try_from(nibble(pair[0])? * 16 + nibble(pair[1])?).ok()?;
    }
    Some(digest)
}
