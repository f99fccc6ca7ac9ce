//! A component's description of itself, read without running it: its imports and exports, and the metadata in its standard
//! custom sections (name, version, authors …), which `wasm-tools metadata` writes. Registries and `plugin list` show it.

use wasmparser::{ComponentExternName, Encoding, KnownCustom, Parser, Payload};

/// Longest text of a custom section that is used, in bytes. The texts are names, addresses and a sentence.
const TEXT_BYTES_MAX: usize = 4096;

/// A component's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentMetadata {
    /// Names of its imports, such as `opilio:plugin/documents@0.3.0`.
    pub imports: Vec<String>,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Description of its purpose.
    pub description: Option<String>,
    /// Its authors.
    pub authors: Option<String>,
    /// Its licence, an SPDX expression.
    pub licenses: Option<String>,
    /// Address of its source.
    pub source: Option<String>,
    /// Address of further information.
    pub homepage: Option<String>,
    /// Revision of the source that it was built from.
    pub revision: Option<String>,
}

/// The reason why bytes are not a component.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AboutProblem {
    /// The file is not WebAssembly.
    #[error("not a WebAssembly file")]
    NotWasm,
    /// The file is cut short or damaged.
    #[error("truncated or damaged: {0}")]
    Malformed(String),
    /// The file is a core module. It must be converted to a component.
    #[error("a core module, not a component: convert it with `wasm-tools component new`")]
    CoreModule,
}

impl ComponentMetadata {
    /// Reads the description in the file. It validates only what it needs for reading.
    ///
    /// # Errors
    /// The bytes are not a component.
    pub fn read(component: &[u8]) -> Result<Self, AboutProblem> {
        let malformed =
            |problem: wasmparser::BinaryReaderError| AboutProblem::Malformed(problem.to_string());
        if !component.starts_with(b"\0asm") {
            return Err(AboutProblem::NotWasm);
        }
        let mut about = ComponentMetadata::default();
        // Components contain modules and components. The metadata of these does not describe the outer one.
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            match payload.map_err(malformed)? {
                Payload::Version { encoding, .. } => {
                    depth += 1;
                    if depth == 1 && encoding == Encoding::Module {
                        return Err(AboutProblem::CoreModule);
                    }
                }
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(imports) if depth == 1 => {
                    for import in imports {
                        about
                            .imports
                            .push(full_name(&import.map_err(malformed)?.name));
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 1 => {
                    for export in exports {
                        about
                            .exports
                            .push(full_name(&export.map_err(malformed)?.name));
                    }
                }
                Payload::CustomSection(section) if depth == 1 => about.note(&section),
                _ => {}
            }
        }
        Ok(about)
    }

    fn note(&mut self, section: &wasmparser::CustomSectionReader<'_>) {
        if let KnownCustom::ComponentName(names) = section.as_known() {
            for name in names {
                if let Ok(wasmparser::ComponentName::Component { name, .. }) = name {
                    self.name = Some(name.to_owned());
                }
            }
            return;
        }
        let field = match section.name() {
            "version" => &mut self.version,
            "description" => &mut self.description,
            "authors" => &mut self.authors,
            "licenses" => &mut self.licenses,
            "source" => &mut self.source,
            "homepage" => &mut self.homepage,
            "revision" => &mut self.revision,
            _ => return,
        };
        // An invalid text counts as missing.
        *field = std::str::from_utf8(section.data())
            .ok()
            .filter(|text| !text.is_empty() && text.len() <= TEXT_BYTES_MAX)
            .map(str::to_owned);
    }
}

/// The name of an import or export with its whole version: `a:b/c@1` and the suffix `.2.3` make `a:b/c@1.2.3`.
fn full_name(name: &ComponentExternName<'_>) -> String {
    let suffix = name.version_suffix.filter(|_| name.implements.is_none());
    format!("{}{}", name.name, suffix.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_and_exports_of_a_shipped_component_are_read() {
        let html = opilio_builtin::find("html").unwrap();
        let about = ComponentMetadata::read(html.component).unwrap();
        let has = |names: &[String], name: &str| names.iter().any(|found| found.starts_with(name));
        assert!(has(&about.exports, "opilio:plugin/setup@"), "{about:?}");
        assert!(has(&about.exports, "opilio:plugin/extractor@"), "{about:?}");
        assert!(has(&about.imports, "opilio:plugin/documents@"), "{about:?}");
    }

    #[test]
    fn metadata_of_nested_components_is_ignored() {
        let section = |name: &str, text: &str| {
            let mut data = vec![u8::try_from(name.len()).unwrap()];
            data.extend(name.bytes());
            data.extend(text.bytes());
            let mut section = vec![0, u8::try_from(data.len()).unwrap()];
            section.extend(data);
            section
        };
        let inner = [b"\0asm\x01\0\0\0".to_vec(), section("version", "9.9.9")].concat();
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        component.extend(section("version", "1.2.3"));
        component.extend(section("description", "finds stories"));
        component.extend([1, u8::try_from(inner.len()).unwrap()]);
        component.extend(inner);
        let about = ComponentMetadata::read(&component).unwrap();
        assert_eq!(about.version.as_deref(), Some("1.2.3"));
        assert_eq!(about.description.as_deref(), Some("finds stories"));
    }

    #[test]
    fn files_that_are_not_components_are_distinguished() {
        let html = opilio_builtin::find("html").unwrap().component;
        let problem = |bytes: &[u8]| ComponentMetadata::read(bytes).unwrap_err();
        assert!(matches!(
            problem(b"\0asm\x01\0\0\0"),
            AboutProblem::CoreModule
        ));
        for bytes in [b"<!doctype html>".as_slice(), b""] {
            assert!(matches!(problem(bytes), AboutProblem::NotWasm));
        }
        let cut = problem(&html[..html.len() / 2]);
        assert!(matches!(cut, AboutProblem::Malformed(_)), "{cut}");
    }
}
