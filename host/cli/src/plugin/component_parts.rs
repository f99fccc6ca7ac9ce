//! The parts of a component, read from its bytes without running it.

use anyhow::{Context, Result};
use wasmparser::{Parser, Payload};

/// Prefix of the interfaces of the contract.
const PACKAGE: &str = "opilio:plugin/";

/// A component's interfaces.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ComponentInterfaces {
    /// Imported interfaces, in their order.
    pub(super) imports: Vec<String>,
    /// Exported interfaces.
    pub(super) exports: Vec<String>,
}

impl ComponentInterfaces {
    /// Reads a component.
    pub(super) fn of(component: &[u8]) -> Result<Self> {
        let mut interfaces = Self::default();
        let mut depth = 0;
        for payload in Parser::new(0).parse_all(component) {
            match payload.context("cannot read the component")? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        interfaces.imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        interfaces.exports.push(export?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(interfaces)
    }

    /// Returns the version of the contract for which the component was made.
    pub(super) fn contract(&self) -> Option<&str> {
        self.exports
            .iter()
            .find_map(|name| name.strip_prefix(PACKAGE)?.strip_prefix("setup@"))
    }

    /// Returns the imports that are not part of the contract.
    pub(super) fn foreign(&self) -> impl Iterator<Item = &str> {
        let imports = self.imports.iter().map(String::as_str);
        imports.filter(|name| !name.starts_with(PACKAGE))
    }
}
