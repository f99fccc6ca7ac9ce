//! Converts a core module to a component.

use wit_component::ComponentEncoder;

/// Custom section in which the SDK's `export!` names the component's plugins, one per line.
const NAMES_SECTION: &[u8] = b"opilio:plugins";

/// The reason why a module is not a plugin.
#[derive(Debug, thiserror::Error)]
pub enum ModuleProblem {
    /// The module's interfaces are not described, or are not those of a component.
    #[error("cannot convert the module to a component: {0}")]
    Encode(String),
    /// The module was linked without the SDK's macro.
    #[error("the module names no plugins: does the crate call opilio_plugin::export!(…)?")]
    NoNames,
}

/// A replacement for WASI's preview 1 that does nothing; written from `quiet.wat` by `cargo xtask bindings`.
const QUIET_WASI: &[u8] = include_bytes!("../wasi/quiet.wasm");

/// Makes a component of a module whose custom sections (wit-bindgen's) describe its interfaces. If a module imports WASI's
/// preview 1, as those of the C library and Go's runtime do, it gets one that does nothing.
///
/// # Errors
/// The custom sections are missing or invalid.
pub fn encode(module: &[u8]) -> Result<Vec<u8>, ModuleProblem> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| encoder.adapter("wasi_snapshot_preview1", QUIET_WASI))
        .and_then(|mut encoder| encoder.encode())
        .map_err(|problem| ModuleProblem::Encode(format!("{problem:#}")))
}

/// The plugins that `export!` put into the module, in their order.
///
/// # Errors
/// The module has no plugin names.
pub fn plugin_names(module: &[u8]) -> Result<Vec<String>, ModuleProblem> {
    let mut names: Vec<String> = Vec::new();
    let section = custom_section(module, NAMES_SECTION).unwrap_or_default();
    // A plugin of several kinds is listed several times.
    for name in String::from_utf8_lossy(section).lines() {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        return Err(ModuleProblem::NoNames);
    }
    Ok(names)
}

/// The content of the first custom section called `name`.
fn custom_section<'a>(module: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    sections(module)
        .filter_map(|(_, custom)| custom)
        .find(|(found, _)| *found == name)
        .map(|(_, content)| content)
}

/// The module without debugging sections. Function names stay, for the stack frames of an error. Linkers cannot drop the debugging
/// sections alone.
pub(crate) fn without_debug(module: &[u8]) -> Vec<u8> {
    let mut kept = module.get(..8).unwrap_or(module).to_vec();
    for (whole, custom) in sections(module) {
        if custom.is_none_or(|(name, _)| !name.starts_with(b".debug_")) {
            kept.extend_from_slice(whole);
        }
    }
    kept
}

/// Name and content of a custom section.
type Custom<'a> = (&'a [u8], &'a [u8]);

/// All sections, up to the first invalid one. Custom sections come with name and content (WebAssembly core specification,
/// 5.5.3).
fn sections(module: &[u8]) -> impl Iterator<Item = (&[u8], Option<Custom<'_>>)> {
    let mut rest = module.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (&id, behind) = rest.split_first()?;
        let (size, behind) = leb128(behind)?;
        let (section, behind) = behind.split_at_checked(size)?;
        let whole = &rest[..rest.len() - behind.len()];
        rest = behind;
        let custom = || {
            let (length, section) = leb128(section)?;
            section.split_at_checked(length)
        };
        Some((whole, (id == 0).then(custom).flatten()))
    })
}

/// An unsigned LEB128 number of at most 32 bits, and what follows it.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value: u64 = 0;
    for (at, &byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of one type section and one custom section.
    fn module(name: &str, content: &str) -> Vec<u8> {
        let mut module = b"\0asm\x01\0\0\0\x01\x01\0\0".to_vec();
        // Sizes stay below 128, so that one byte holds each.
        module.push(u8::try_from(1 + name.len() + content.len()).unwrap());
        module.push(u8::try_from(name.len()).unwrap());
        module.extend_from_slice(name.as_bytes());
        module.extend_from_slice(content.as_bytes());
        module
    }

    #[test]
    fn names_are_read_once_and_in_order() {
        assert_eq!(
            plugin_names(&module("opilio:plugins", "b\na\nb\n")).unwrap(),
            ["b", "a"]
        );
    }

    #[test]
    fn debugging_sections_are_removed_and_names_stay() {
        let with = module(".debug_info", "…");
        assert_eq!(without_debug(&with), with[..11]);
        let named = module("name", "functions");
        assert_eq!(without_debug(&named), named);
    }

    #[test]
    fn a_module_without_names_is_refused() {
        assert!(plugin_names(&module("something", "a\n")).is_err());
        assert!(plugin_names(&module("opilio:plugins", "")).is_err());
        assert!(plugin_names(b"\0asm").is_err());
    }
}
