//! `[tables.NAME]`: lists that the host holds for plugins, and reads again while the crawl runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::component::is_plugin_name;
use crate::duration::DurationWritten;

/// A list for look-ups by plugins, under the table's name. Its rows are in a file, which may have millions of them and is read
/// again when it changes, or here. A row is a line: a key, and after a tab a value for plugins that use one. Empty lines and
/// lines that begin with `#` are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableFile {
    /// The kind of its keys.
    pub kind: TableKind,

    /// The file, relative to the profile. No default: the rows are in `rows`.
    #[serde(default)]
    #[schemars(extend("examples" = ["blocked.txt"]))]
    pub file: Option<String>,

    /// The rows, each in the form of a line of a file; `[]` for a list that is still empty. No default: the rows are in a file.
    #[serde(default)]
    pub rows: Option<Vec<String>>,

    /// Interval at which the crawl checks the file for changes; `"none"` for never. Default `"10s"`: changes take effect soon
    /// enough for an operator.
    #[serde(default = "reload")]
    pub reload: DurationWritten,
}

/// The kind of a table's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// SURT prefixes, such as `http://(org,example,`, or URIs that imply one. The row of a URI is the longest prefix with which
    /// it begins.
    SurtPrefixes,
    /// Regular expressions. The row of a text is the first expression with a match in it.
    Regexes,
    /// Any texts. The row of a text is the key that is equal to it.
    KeyValues,
}

/// A list that the host holds for plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSettings {
    /// The kind of its keys.
    pub kind: TableKind,
    /// The place of its rows.
    pub source: TableSource,
    /// Interval at which its file is checked for changes; `None`: it is read once.
    pub reload: Option<Duration>,
}

/// The place of a table's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableSource {
    /// In a file, absolute or relative to the current folder.
    File(PathBuf),
    /// In the profile.
    Rows(Vec<String>),
}

fn reload() -> DurationWritten {
    "10s".into()
}

impl TableKind {
    /// Its name in profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SurtPrefixes => "surt-prefixes",
            Self::Regexes => "regexes",
            Self::KeyValues => "key-values",
        }
    }
}

pub(crate) fn check_all(
    files: &BTreeMap<String, TableFile>,
    mut part: Part<'_, '_>,
    base: &Path,
) -> BTreeMap<String, TableSettings> {
    let mut tables = BTreeMap::new();
    for (name, file) in files {
        if !is_plugin_name(name) {
            part.refuse_key(
                name,
                format!("not the name of a table: {}", quote(name)),
                "use lower-case words joined by hyphens, such as \"blocked-sites\"",
            );
        }
        tables.insert(name.clone(), file.check(part.part(name), base));
    }
    tables
}

impl TableFile {
    fn check(&self, mut part: Part<'_, '_>, base: &Path) -> TableSettings {
        let reload = part.duration_limit("reload", &self.reload);
        let source = match &self.file {
            Some(file) => {
                if file.is_empty() || file.contains('\0') {
                    let problem = format!("not a file: {}", quote(file));
                    part.refuse("file", problem, "write a path such as \"blocked.txt\"");
                }
                if self.rows.is_some() {
                    part.refuse(
                        "rows",
                        "the table has a file and rows".to_owned(),
                        "remove rows, or file",
                    );
                }
                TableSource::File(base.join(file))
            }
            None => TableSource::Rows(self.rows.clone().unwrap_or_default()),
        };
        if self.file.is_none() && self.rows.is_none() {
            part.refuse_whole(
                "the table has neither a file nor rows".to_owned(),
                "write file = \"blocked.txt\"",
            );
        }
        TableSettings {
            kind: self.kind,
            source,
            reload,
        }
    }
}
