//! Contract versions that this version supports, and the advice for components that need another version or more imports.

/// The package of the contract.
const PACKAGE: &str = "opilio:plugin/";

/// The current version of the contract.
pub const CONTRACT: &str = Contract::CURRENT.version();

/// A version of the contract. Components made for any patch of it are supported. A function that only a newer patch has is
/// reported as an import that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contract {
    V0_1,
    V0_2,
    V0_3,
}

impl Contract {
    /// The current contract, in `wit/`.
    pub(crate) const CURRENT: Self = Self::V0_3;
    const ALL: [Self; 3] = [Self::V0_3, Self::V0_2, Self::V0_1];

    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => "0.2.0",
            Self::V0_3 => "0.3.0",
        }
    }

    /// The full name of an interface of this version.
    pub(crate) fn interface(self, name: &str) -> String {
        format!("{PACKAGE}{name}@{}", self.version())
    }

    /// Interfaces that a plugin may import.
    fn imports(self) -> &'static [&'static str] {
        match self {
            Self::V0_1 => &["documents", "log", "counters", "types"],
            Self::V0_2 | Self::V0_3 => &["documents", "tables", "log", "counters", "types"],
        }
    }

    /// The contract to which this version number belongs.
    fn of(version: &str) -> Option<Self> {
        let (track, patch) = version.rsplit_once('.')?;
        let is_patch = !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit());
        Self::ALL
            .into_iter()
            .find(|contract| contract.version().rsplit_once('.').map(|(own, _)| own) == Some(track))
            .filter(|_| is_patch)
    }

    /// The contract whose `setup` a component exports, from the names of all its exports.
    pub(crate) fn exported<'a>(exports: impl Iterator<Item = &'a str>) -> Exported {
        let mut other = None;
        for export in exports {
            if let Some(("setup", version)) = parse(export) {
                match Self::of(version) {
                    Some(contract) => return Exported::Known(contract),
                    None => other = Some(version.to_owned()),
                }
            }
        }
        other.map_or(Exported::None, Exported::Other)
    }
}

/// The `setup` that a component exports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exported {
    Known(Contract),
    /// A version that is not supported here.
    Other(String),
    None,
}

/// Name and version of an interface of the contract.
fn parse(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PACKAGE)?.split_once('@')
}

/// Returns `true` if plugins get this import, judged by its name.
pub(crate) fn may_import(import: &str) -> bool {
    parse(import).is_some_and(|(name, version)| {
        Contract::of(version).is_some_and(|contract| contract.imports().contains(&name))
    })
}

/// The alternative to an interface that plugins do not get.
pub(crate) fn advice_for_interface(import: &str) -> String {
    let current = Contract::CURRENT;
    let imports = current.imports().iter().copied();
    // All components get the types, and need no advice about them.
    let useful: Vec<&str> = imports.filter(|name| *name != "types").collect();
    let available = format!(
        "plugins may import {} of {PACKAGE}…@{}",
        listed(&useful),
        current.version()
    );
    let Some((name, version)) = parse(import) else {
        return available;
    };
    match Contract::of(version) {
        None => other_version(version),
        Some(contract) if contract != current && current.imports().contains(&name) => format!(
            "contract {} does not have it; build for {}",
            contract.version(),
            current.version()
        ),
        Some(_) => format!("{available}; a newer version of opilio may have it"),
    }
}

/// The alternative to a function or resource that an interface does not have.
pub(crate) fn advice_for_item(interface: &str) -> String {
    let version = parse(interface).map_or("", |(_, version)| version);
    match Contract::of(version) {
        Some(contract) if contract != Contract::CURRENT => format!(
            "contract {} does not have it; build for {}",
            contract.version(),
            Contract::CURRENT.version()
        ),
        _ => "a newer version of opilio may have it".to_owned(),
    }
}

/// The message about a version that is not supported.
pub(crate) fn other_version(version: &str) -> String {
    let supported: Vec<&str> = Contract::ALL.map(Contract::version).into();
    format!(
        "it was made for contract {version}, this version of opilio speaks {}",
        listed(&supported)
    )
}

fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_versions_belong_to_their_contract() {
        for (version, expected) in [
            ("0.1.0", Some(Contract::V0_1)),
            ("0.1.12", Some(Contract::V0_1)),
            ("0.2.7", Some(Contract::V0_2)),
            ("0.3.1", Some(Contract::V0_3)),
            ("0.4.0", None),
            ("1.2.0", None),
            ("0.2", None),
            ("0.2.", None),
            ("0.2.x", None),
            ("0.2.0-draft", None),
            ("", None),
        ] {
            assert_eq!(Contract::of(version), expected, "{version}");
        }
    }

    #[test]
    fn the_exported_setup_determines_the_contract() {
        #[track_caller]
        fn check(exports: &[&str], expected: Exported) {
            assert_eq!(Contract::exported(exports.iter().copied()), expected);
        }
        check(
            &["opilio:plugin/filter@0.1.0", "opilio:plugin/setup@0.1.3"],
            Exported::Known(Contract::V0_1),
        );
        check(
            &["opilio:plugin/setup@0.4.0", "opilio:plugin/setup@0.2.0"],
            Exported::Known(Contract::V0_2),
        );
        check(
            &["opilio:plugin/setup@0.4.0"],
            Exported::Other("0.4.0".to_owned()),
        );
        check(&["opilio:plugin/filter@0.2.0"], Exported::None);
    }

    #[test]
    fn refusals_give_advice() {
        #[track_caller]
        fn check(import: &str, advice: &str) {
            assert!(!may_import(import), "{import}");
            assert_eq!(advice_for_interface(import), advice);
        }
        let available =
            "plugins may import documents, tables, log and counters of opilio:plugin/…@0.3.0";
        check("example:things/clock", available);
        check(
            "opilio:plugin/clock@0.2.0",
            &format!("{available}; a newer version of opilio may have it"),
        );
        check(
            "opilio:plugin/clock@0.1.0",
            &format!("{available}; a newer version of opilio may have it"),
        );
        check(
            "opilio:plugin/tables@0.1.0",
            "contract 0.1.0 does not have it; build for 0.3.0",
        );
        check(
            "opilio:plugin/log@0.4.0",
            "it was made for contract 0.4.0, this version of opilio speaks 0.3.0, 0.2.0 and 0.1.0",
        );
        for interface in ["log@0.1.0", "log@0.2.9", "tables@0.2.0", "tables@0.3.0"] {
            assert!(may_import(&format!("{PACKAGE}{interface}")), "{interface}");
        }
    }
}
