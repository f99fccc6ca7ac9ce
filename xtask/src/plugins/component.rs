//! From a core module to a component.

use anyhow::{Context, Result, ensure};
use wit_component::ComponentEncoder;

/// Custom section in which the SDK's `export!` names the component's plugins, one per line.
const NAMES_SECTION: &[u8] = b"opilio:plugins";

/// Makes a component of a module whose custom sections (wit-bindgen's) describe its interfaces.
pub(super) fn encode(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .encode()
}

/// The plugins that `export!` put into the module, in their order.
pub(super) fn plugin_names(module: &[u8]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let section = custom_section(module, NAMES_SECTION)
        .context("no plugin names in the module: does it use opilio_plugin::export!?")?;
    // A plugin of several kinds stands in it several times.
    for name in std::str::from_utf8(section)?.lines() {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    ensure!(!names.is_empty(), "the component has no plugins");
    Ok(names)
}

/// The content of the first custom section called `name` (WebAssembly core specification, 5.5.3).
fn custom_section<'a>(module: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = module.get(8..)?;
    while let Some((&id, tail)) = rest.split_first() {
        let (size, tail) = leb128(tail)?;
        let (section, tail) = tail.split_at_checked(size)?;
        rest = tail;
        if id == 0 {
            let (length, section) = leb128(section)?;
            let (found, content) = section.split_at_checked(length)?;
            if found == name {
                return Some(content);
            }
        }
    }
    None
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
    #![allow(clippy::unwrap_used, reason = "tests")]

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
    fn a_module_without_names_is_refused() {
        assert!(plugin_names(&module("something", "a\n")).is_err());
        assert!(plugin_names(&module("opilio:plugins", "")).is_err());
        assert!(plugin_names(b"\0asm").is_err());
    }
}
