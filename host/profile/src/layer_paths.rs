//! Settings of a layer that are texts with paths: a walk over them, and copies in place of the files that they name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::component::ComponentReference;

/// Settings that name components, in the form of the paths of layers.
const COMPONENTS: [&str; 1] = ["plugins/*/component"];

/// Settings that name other files without which the profile cannot be used. Files with secrets, and files of other jobs, stay on
/// their machine.
const FILES: [&str; 4] = [
    "seeds-file",
    "tables/*/file",
    "uri/precedence-file",
    "archive/dictionary",
];

/// The files that a document names: the text, the absolute path, and whether it is a component.
pub(crate) fn named_files(value: &Value, base: &Path) -> Vec<(String, PathBuf, bool)> {
    let mut value = value.clone();
    let mut named = Vec::new();
    each_text(&mut value, &COMPONENTS, &mut |text| {
        if let Ok(ComponentReference::File { path, .. }) = ComponentReference::parse(text, base)
            && let Ok(path) = std::path::absolute(path)
        {
            named.push((text.clone(), path, true));
        }
    });
    each_text(&mut value, &FILES, &mut |text| {
        if !text.is_empty()
            && let Ok(path) = std::path::absolute(base.join(&*text))
        {
            named.push((text.clone(), path, false));
        }
    });
    named
}

/// Replaces the paths of files by the paths of their copies.
pub(crate) fn relocate(value: &mut Value, files: &BTreeMap<String, PathBuf>) {
    if files.is_empty() {
        return;
    }
    let copy = |text: &str| files.get(text).and_then(|copy| copy.to_str());
    each_text(value, &COMPONENTS, &mut |text| {
        if let Some(copy) = copy(text) {
            let plugin = text.trim().rsplit_once('#').map(|(_, plugin)| plugin);
            *text = match plugin {
                Some(plugin) => format!("{copy}#{plugin}"),
                None => copy.to_owned(),
            };
        }
    });
    each_text(value, &FILES, &mut |text| {
        if let Some(copy) = copy(text) {
            *text = copy.to_owned();
        }
    });
}

/// Calls `change` with the text of each of these settings, of those of overrides, too. `*` in a path matches any key or item.
pub(crate) fn each_text(value: &mut Value, paths: &[&str], change: &mut dyn FnMut(&mut String)) {
    for path in paths {
        let keys: Vec<&str> = path.split('/').collect();
        each(value, &keys, change);
        if let Some(Value::Array(overrides)) = value.get_mut("override") {
            for one in overrides {
                each(one, &keys, change);
            }
        }
    }
}

fn each(value: &mut Value, keys: &[&str], change: &mut dyn FnMut(&mut String)) {
    let Some((key, rest)) = keys.split_first() else {
        if let Value::String(text) = value {
            change(text);
        }
        return;
    };
    match (value, *key) {
        (Value::Object(table), "*") => {
            for inner in table.values_mut() {
                each(inner, rest, change);
            }
        }
        (Value::Array(list), "*") => {
            for inner in list {
                each(inner, rest, change);
            }
        }
        (Value::Object(table), key) => {
            if let Some(inner) = table.get_mut(key) {
                each(inner, rest, change);
            }
        }
        _ => {}
    }
}
