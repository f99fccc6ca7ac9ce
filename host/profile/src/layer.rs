//! Layers of a profile: the profiles it extends, the profile itself, and changes of a running job. Each later one overrides key
//! by key. Lists are replaced whole, stacks may also be edited, overrides are appended to those of earlier layers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::builtin_profiles;
use crate::check::{nearest, quote};
use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::document::{Document, KeyOrValue, child};
use crate::layer_paths::{each_text, relocate};
use crate::stack_edit;

/// Most layers, and deepest chain of profiles that extend each other.
const LAYERS_MAX: usize = 32;

/// Largest profile. Large numbers of seeds go into a separate file.
const PROFILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Settings that are paths, relative to the file that has them; `*` matches any key or item. Overrides may have them, too.
const PATHS: [&str; 15] = [
    "seeds-file",
    "plugins/*/component",
    "tables/*/file",
    "uri/precedence-file",
    "cookies/load",
    "credentials/*/password/file",
    "logins/*/secrets/*/file",
    "fetch/proxy-password/file",
    "archive/dictionary",
    "archive/duplicates/history/*",
    "archive/store/access-key-id/file",
    "archive/store/secret-access-key/file",
    "archive/store/session-token/file",
    "webhooks/*/secret/file",
    "streams/*/credentials/file",
];

/// One text of a profile's layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name in errors.
    pub file: String,
    /// Its text, in TOML.
    pub text: String,
    /// The folder of its relative paths.
    pub base: PathBuf,
    /// Copies of files that it names, by the texts of its settings. They are read in place of the files. Jobs have such copies if
    /// another machine has made the profile.
    #[serde(skip)]
    pub files: BTreeMap<String, PathBuf>,
}

/// A profile's own layer with those below and above it.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    /// The layers that it extends, in the order applied.
    pub(crate) below: Vec<Layer>,
    /// The profile.
    pub(crate) own: Layer,
    /// Later changes, in the order applied.
    pub(crate) above: Vec<Layer>,
}

impl Layers {
    /// Reads the layers that a profile extends.
    ///
    /// # Errors
    /// A layer that cannot be read, or that extends itself, at the line that names it.
    pub(crate) fn follow(own: Layer) -> Result<Self, Diagnostics> {
        let mut followed = Followed::default();
        followed.add_bases(&own, &mut vec![identity(&own)]);
        if followed.faults.is_empty() {
            Ok(Self {
                below: followed.layers,
                own,
                above: Vec::new(),
            })
        } else {
            Err(followed.faults)
        }
    }

    /// The profile's own layer with its syntax errors. It is for errors that can be reported even if the extended layers cannot
    /// be read.
    pub(crate) fn alone(own: &Layer) -> (Document, Diagnostics) {
        let (document, faults) = Document::parse(&own.file, &own.text);
        // A stack edit may refer to plugins of layers that are missing here.
        let whole = over(None, document, &mut Diagnostics::default());
        (whole, faults)
    }

    /// All layers as one document, with their syntax errors and errors in stack edits. Paths start at the base of the profile's
    /// own layer, or are absolute.
    pub(crate) fn document(&self) -> (Document, Diagnostics) {
        let (mut own, mut faults) = Document::parse(&self.own.file, &self.own.text);
        relocate(&mut own.value, &self.own.files);
        let mut whole: Option<Document> = None;
        for layer in &self.below {
            let (mut document, more) = Document::parse(&layer.file, &layer.text);
            faults.append(more);
            if let Some(table) = document.value.as_object_mut() {
                // A profile does not inherit a name.
                table.remove("name");
                table.remove("extends");
            }
            relocate(&mut document.value, &layer.files);
            rebase(&mut document.value, &layer.base, &self.own.base);
            whole = Some(over(whole, document, &mut faults));
        }
        let mut whole = over(whole, own, &mut faults);
        whole.make_main();
        for layer in &self.above {
            let (mut document, more) = Document::parse(&layer.file, &layer.text);
            faults.append(more);
            rebase(&mut document.value, &layer.base, &self.own.base);
            whole = over(Some(whole), document, &mut faults);
        }
        (whole, faults)
    }
}

/// The layers that have been followed so far.
#[derive(Default)]
struct Followed {
    layers: Vec<Layer>,
    seen: Vec<String>,
    faults: Diagnostics,
}

impl Followed {
    /// Adds the layers that a layer extends, the lowest first. `path` has the identities of the layers from the profile to this
    /// one.
    fn add_bases(&mut self, layer: &Layer, path: &mut Vec<String>) {
        let (document, _) = Document::parse(&layer.file, &layer.text);
        let named: Vec<(String, &str)> = match document.value.get("extends") {
            Some(Value::String(name)) => vec![("/extends".to_owned(), name)],
            Some(Value::Array(names)) => names
                .iter()
                .enumerate()
                .filter_map(|(index, name)| Some((format!("/extends/{index}"), name.as_str()?)))
                .collect(),
            // The check of the shape reports values of other kinds.
            _ => Vec::new(),
        };
        for (pointer, name) in named {
            let mut refuse = |problem: String, suggestion: Option<String>| {
                let mut fault = document.fault(&pointer, KeyOrValue::Value, Level::Error, problem);
                fault.suggestion = suggestion;
                self.faults.push(fault);
            };
            let (base, id) = match named_layer(name, &layer.base) {
                Ok(found) => found,
                Err((problem, suggestion)) => {
                    refuse(problem, suggestion);
                    continue;
                }
            };
            if path.contains(&id) {
                let problem = format!("{} extends itself", quote(name));
                refuse(problem, Some("remove it from one of them".to_owned()));
                continue;
            }
            if self.seen.contains(&id) {
                continue;
            }
            if self.seen.len() >= LAYERS_MAX {
                refuse(format!("more than {LAYERS_MAX} profiles in all"), None);
                continue;
            }
            self.seen.push(id.clone());
            path.push(id);
            self.add_bases(&base, path);
            path.pop();
            self.layers.push(base);
        }
    }
}

/// A built-in layer by its name, or a file relative to the folder; with its identity.
fn named_layer(name: &str, folder: &Path) -> Result<(Layer, String), (String, Option<String>)> {
    if let Some(text) = builtin_profiles::text(name) {
        let layer = Layer {
            file: format!("{name}.toml"),
            text: text.to_owned(),
            base: folder.to_owned(),
            files: BTreeMap::new(),
        };
        // A file of this name is another profile, which may extend the built-in one.
        return Ok((layer, format!("built-in {name}")));
    }
    let path = folder.join(name);
    let text = read(&path).map_err(|problem| {
        let near = nearest(name, builtin_profiles::names());
        let is_path = name.contains(['/', '.', '\\']);
        let suggestion = match near {
            Some(near) if !is_path => format!("did you mean {}?", quote(near)),
            _ => "write the path of a profile, relative to this one, or the name of a shipped one"
                .to_owned(),
        };
        let shown = quote(&path.display().to_string());
        (format!("profile {shown} {problem}"), Some(suggestion))
    })?;
    let layer = Layer {
        file: path.display().to_string(),
        text,
        base: path.parent().unwrap_or(Path::new("")).to_owned(),
        files: BTreeMap::new(),
    };
    let id = identity(&layer);
    Ok((layer, id))
}

/// Reads the text of a profile. An error is a fragment, without the path.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path)
        .map_err(|problem| format!("cannot be read: {problem}"))?
        .len();
    if length > PROFILE_BYTES_MAX {
        return Err(format!("larger than 16MiB: {length} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|problem| format!("cannot be read: {problem}"))?;
    String::from_utf8(bytes).map_err(|problem| format!("not UTF-8: {problem}"))
}

/// The identity of a layer from a file: the same for two paths to one file.
fn identity(layer: &Layer) -> String {
    let path = Path::new(&layer.file);
    match path.canonicalize() {
        Ok(path) => path.display().to_string(),
        Err(_) => layer.file.clone(),
    }
}

/// Lays a document over another, or over the defaults if there is no other.
fn over(lower: Option<Document>, upper: Document, faults: &mut Diagnostics) -> Document {
    let upper_value = upper.value.clone();
    let mut merged = lower.unwrap_or_else(|| upper.without_values());
    let sources = merged.sources_len();
    let mut upper = upper;
    upper.shift_sources(sources);
    let mut value = std::mem::take(&mut merged.value);
    let mut merging = Merging {
        lower: &mut merged,
        upper: &upper,
        faults,
    };
    merging.table(&mut value, &upper_value, "");
    merged.value = value;
    merged.take_sources(upper);
    merged
}

struct Merging<'m> {
    /// The lower document. It gets the places of the upper one.
    lower: &'m mut Document,
    upper: &'m Document,
    faults: &'m mut Diagnostics,
}

impl Merging<'_> {
    fn table(&mut self, value: &mut Value, upper_value: &Value, at: &str) {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        let (Value::Object(table), Value::Object(upper_value)) = (value, upper_value) else {
            return;
        };
        for (key, upper_value) in upper_value {
            let pointer = child(at, key);
            let known = table.entry(key.clone()).or_insert(Value::Null);
            match (at, key.as_str(), upper_value) {
                ("", "override", Value::Array(more)) => self.overrides(known, more),
                ("/stacks", _, Value::Object(_)) => self.edit(known, upper_value, key, &pointer),
                (_, _, Value::Object(_)) if known.is_object() || known.is_null() => {
                    self.lower.copy_place(self.upper, &pointer, &pointer);
                    self.table(known, upper_value, &pointer);
                }
                _ => {
                    self.lower.forget_places(&pointer, known);
                    self.lower
                        .copy_places(self.upper, &pointer, &pointer, upper_value);
                    *known = upper_value.clone();
                }
            }
        }
    }

    /// Appends to the existing overrides.
    fn overrides(&mut self, known: &mut Value, more: &[Value]) {
        self.lower.copy_place(self.upper, "/override", "/override");
        if !known.is_array() {
            *known = Value::Array(Vec::new());
        }
        let Value::Array(list) = known else { return };
        for (index, one) in more.iter().enumerate() {
            let from = format!("/override/{index}");
            let to = format!("/override/{}", list.len());
            self.lower.copy_places(self.upper, &from, &to, one);
            list.push(one.clone());
        }
    }

    /// Turns an edit of a stack into the stack. An invalid edit stays, so that the check of the shape reports it.
    fn edit(&mut self, known: &mut Value, upper_value: &Value, stage: &str, pointer: &str) {
        let before = match known {
            Value::Array(_) => known.clone(),
            _ => stack_edit::default_stack(stage),
        };
        match stack_edit::edited(&before, upper_value) {
            Ok(stack) => {
                for (name, within) in stack_edit::missing_anchors(&before, upper_value) {
                    let at = format!("{pointer}/{within}");
                    let problem = format!("{} is not in {stage}", quote(&name));
                    let fault = self
                        .upper
                        .fault(&at, KeyOrValue::Key, Level::Error, problem);
                    self.faults.push(fault);
                }
                self.lower.forget_places(pointer, known);
                self.lower.copy_place(self.upper, pointer, pointer);
                *known = stack;
            }
            Err(_) => {
                self.lower.forget_places(pointer, known);
                self.lower
                    .copy_places(self.upper, pointer, pointer, upper_value);
                *known = upper_value.clone();
            }
        }
    }
}

/// Rewrites paths that start at `base` so that they start at `other`.
fn rebase(value: &mut Value, base: &Path, other: &Path) {
    if base == other {
        return;
    }
    each_text(value, &PATHS, &mut |text| {
        if let Some(absolute) = absolute(text, base) {
            *text = absolute;
        }
    });
}

/// The absolute path of a file below the folder. `None` for a built-in name, an image, an absolute path or an empty text.
fn absolute(text: &str, base: &Path) -> Option<String> {
    let is_component = text.starts_with("builtin:") || text.contains("://");
    if text.is_empty() || is_component || Path::new(text).is_absolute() {
        return None;
    }
    let path = std::path::absolute(base.join(text)).ok()?;
    Some(path.to_str()?.to_owned())
}

/// An error of a file as a whole.
pub(crate) fn fault_of_file(file: &str, problem: String) -> Diagnostic {
    Diagnostic {
        file: file.to_owned(),
        place: None,
        pointer: String::new(),
        level: Level::Error,
        problem,
        suggestion: None,
    }
}
