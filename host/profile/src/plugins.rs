//! Instances of plugins: which component, with what settings, within what limits.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::{Part, nearest, quote};
use crate::component::{Component, is_plugin_name};
use crate::duration::DurationWritten;
use crate::fault::Level;

/// An instance of a plugin. Its table's name is what stacks, logs and reports call it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PluginFile {
    /// The component: `builtin:NAME` for one that ships; the path of a `.wasm` file, relative to the profile; a folder of
    /// such files; or `oci://registry/repository:tag` or `…@sha256:DIGEST` for an image in a registry, as `opilio plugin
    /// push` and `wkg` write them. Where there are several plugins, `#NAME` after it says which.
    #[schemars(extend("examples" = ["builtin:html", "./my-plugin.wasm#name", "./plugins#name", "oci://registry.example.org/plugins/stories:1.0"]))]
    pub component: String,

    /// SHA-256 of the component's file, in hexadecimal. It is refused when it differs. No default: any contents will do,
    /// which is right while a plugin is being written and wrong afterwards. (The digest in the name of an image is that
    /// of its manifest, not this one; either pins it.)
    #[serde(default)]
    pub sha256: Option<String>,

    /// Whether the registry may be asked over plain HTTP. Default `false`: over HTTPS alone, save registries on this
    /// machine. Nothing over plain HTTP proves who answers, and credentials go in the clear: pin the component.
    #[serde(default)]
    pub insecure: bool,

    /// The plugin's own settings, as its schema says. Default `{}`: its defaults.
    #[serde(default)]
    pub settings: Map<String, Value>,

    /// What one call may use.
    #[serde(default)]
    pub limits: PluginLimitsFile,
}

/// What one call of a plugin may use. A call that wants more is a fault of the plugin; the document goes on without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PluginLimitsFile {
    /// Linear memory. Default `"64MiB"`: holds a large page several times over.
    pub memory: SizeWritten,

    /// Time. Default `"2s"`: a thousand times what a page takes.
    pub time: DurationWritten,

    /// What a call may return in all: links, fragments, reasons. Default `"16MiB"`: 6,000 links of 2 KiB and some.
    pub output: SizeWritten,

    /// Log lines; the rest is dropped and counted. Default `"16KiB"`: enough to say what is wrong once.
    pub log: SizeWritten,
}

/// An instance of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// What stacks, logs and reports call it: lower-case words joined by hyphens.
    pub name: String,
    /// Where its component comes from.
    pub component: Component,
    /// SHA-256 that the component's file must have.
    pub sha256: Option<[u8; 32]>,
    /// Whether its registry may be asked over plain HTTP.
    pub insecure: bool,
    /// Its settings as written, an object; [`crate::Profile::check_settings`] checks them and fills in defaults.
    pub settings: Value,
    /// What one call may use.
    pub limits: PluginLimits,
}

/// What one call of a plugin may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginLimits {
    /// Linear memory.
    pub memory: ByteSize,
    /// Wall-clock time; longer than zero.
    pub time: Duration,
    /// What it returns in all.
    pub output: ByteSize,
    /// Log lines; the rest is dropped and counted.
    pub log: ByteSize,
}

impl Default for PluginLimitsFile {
    fn default() -> Self {
        Self {
            memory: "64MiB".into(),
            time: "2s".into(),
            output: "16MiB".into(),
            log: "16KiB".into(),
        }
    }
}

impl PluginLimitsFile {
    fn check(&self, mut part: Part<'_, '_>) -> PluginLimits {
        PluginLimits {
            memory: part.positive_size("memory", &self.memory),
            time: part.positive_duration("time", &self.time),
            output: part.positive_size("output", &self.output),
            log: part.size("log", &self.log),
        }
    }
}

/// All instances that the profile names.
pub(crate) fn check_all(
    files: &BTreeMap<String, PluginFile>,
    mut part: Part<'_, '_>,
    base: &Path,
    builtins: &[String],
) -> BTreeMap<String, Instance> {
    let mut instances = BTreeMap::new();
    for (name, file) in files {
        if !is_plugin_name(name) {
            let problem = format!("not a plugin name: {}", quote(name));
            part.refuse_key(
                name,
                problem,
                "use lower-case words joined by hyphens, such as \"news-pages\"",
            );
        }
        instances.insert(
            name.clone(),
            file.check(name, part.part(name), base, builtins),
        );
    }
    instances
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
            Component::Builtin(_) => true,
            Component::File { .. } => self.sha256.is_some(),
            Component::Image { image, .. } => self.sha256.is_some() || image.digest().is_some(),
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
        if self.insecure && !matches!(component, Component::Image { .. }) {
            part.refuse(
                "insecure",
                "the component comes from no registry".to_owned(),
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
        }
    }

    fn check_component(
        &self,
        part: &mut Part<'_, '_>,
        base: &Path,
        builtins: &[String],
    ) -> Component {
        match Component::parse(&self.component, base) {
            Ok(component) => {
                if let Component::Builtin(name) = &component
                    && !builtins.contains(name)
                {
                    let problem = format!("no built-in plugin {}", quote(name));
                    let suggestion = match nearest(name, builtins.iter().map(String::as_str)) {
                        Some(builtin) => format!("did you mean \"builtin:{builtin}\"?"),
                        None => format!("there are: {}", builtins.join(", ")),
                    };
                    part.refuse("component", problem, &suggestion);
                }
                component
            }
            Err(found) => {
                part.refuse("component", found.problem, &found.remedy);
                // Stands in until the fault is reported: a profile with a fault is never used.
                Component::File {
                    path: base.join(&self.component),
                    plugin: None,
                }
            }
        }
    }
}

impl Instance {
    /// What a stack means by the bare name of a built-in plugin.
    pub(crate) fn implied(name: &str, limits: PluginLimits) -> Self {
        Self {
            name: name.to_owned(),
            component: Component::Builtin(name.to_owned()),
            sha256: None,
            insecure: false,
            settings: Value::Object(Map::new()),
            limits,
        }
    }
}

/// The limits of an instance without a table of its own.
pub(crate) fn default_limits(part: Part<'_, '_>) -> PluginLimits {
    PluginLimitsFile::default().check(part)
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
