//! Records the look-ups of a call in the host's tables. With them the call can be repeated without those tables.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Candidate, Candidates, Row, Table, TableKind, TableProblem};

/// A table of the host, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableFacts {
    kind: TableKindName,
    rows: Vec<RowFacts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TableKindName {
    SurtPrefixes,
    Regexes,
    KeyValues,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RowFacts {
    key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    value: String,
}

impl TableFacts {
    /// Makes the table.
    pub(crate) fn table(&self) -> Result<Table, TableProblem> {
        let rows = self.rows.iter();
        let rows = rows.map(|row| Row::from((row.key.as_str(), row.value.as_str())));
        match self.kind {
            TableKindName::SurtPrefixes => Table::surt_prefixes(rows),
            TableKindName::Regexes => Table::regexes(rows),
            TableKindName::KeyValues => Table::key_values(rows),
        }
    }
}

thread_local! {
    /// Tables that were looked up, by name; `None` if look-ups are not noted. Calls are made on the thread of their caller.
    static LOOKUPS: RefCell<Option<BTreeMap<String, TableLookups>>> = const { RefCell::new(None) };
}

struct TableLookups {
    kind: TableKind,
    /// Rows that were found, by their keys. For expressions these are all rows, since their order counts.
    found: BTreeMap<String, String>,
    expressions: Vec<Row>,
}

/// Runs calls, and returns their look-ups as tables. The tables have only the rows found, and the same look-ups find the same in
/// them.
pub fn looking_up<R>(calls: impl FnOnce() -> R) -> (R, BTreeMap<String, TableFacts>) {
    LOOKUPS.with_borrow_mut(|lookups| *lookups = Some(BTreeMap::new()));
    let answer = calls();
    let lookups = LOOKUPS.take().unwrap_or_default();
    let facts = lookups
        .into_iter()
        .map(|(name, lookups)| (name, lookups.into()));
    (answer, facts.collect())
}

impl From<TableLookups> for TableFacts {
    fn from(lookups: TableLookups) -> Self {
        let found = lookups.found.into_iter().map(Row::from);
        let rows = found.chain(lookups.expressions);
        Self {
            kind: match lookups.kind {
                TableKind::SurtPrefixes => TableKindName::SurtPrefixes,
                TableKind::Regexes => TableKindName::Regexes,
                // The host makes tables of these three kinds only.
                TableKind::KeyValues | TableKind::Other(_) => TableKindName::KeyValues,
            },
            rows: rows
                .map(|Row { key, value }| RowFacts { key, value })
                .collect(),
        }
    }
}

/// Notes that a guest has read the kind of a table.
pub(crate) fn note_kind(name: &str, table: &Table) {
    note(name, table, |_| {});
}

/// Notes that a guest has looked up a key.
pub(crate) fn note_row(name: &str, table: &Table, row: Option<&Row>) {
    note(name, table, |lookups| {
        if let Some(Row { key, value }) = row {
            lookups.found.insert(key.clone(), value.clone());
        }
    });
}

/// Notes that a guest has looked up which candidates have a row.
pub(crate) fn note_rows(name: &str, table: &Table, candidates: &Candidates) {
    note(name, table, |lookups| {
        let row = |candidate: &Candidate| match table.kind() {
            TableKind::SurtPrefixes => table.find(&candidate.surt),
            _ => table.find(&candidate.uri),
        };
        let rows = candidates.iter().filter_map(row);
        lookups.found.extend(rows.map(|row| (row.key, row.value)));
    });
}

fn note(name: &str, table: &Table, found: impl FnOnce(&mut TableLookups)) {
    LOOKUPS.with_borrow_mut(|tables| {
        let Some(tables) = tables else {
            return;
        };
        let lookups = tables
            .entry(name.to_owned())
            .or_insert_with(|| TableLookups {
                kind: table.kind(),
                found: BTreeMap::new(),
                expressions: table.expressions().to_vec(),
            });
        if lookups.expressions.is_empty() {
            found(lookups);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the noted look-ups give the same answers as the table itself.
    #[track_caller]
    fn check(table: &Table, keys: &[&str], rows: usize) {
        let ((), noted) = looking_up(|| {
            for key in keys {
                note_row("t", table, table.find(key).as_ref());
            }
        });
        let rebuilt = noted["t"].table().unwrap();
        assert_eq!(rebuilt.rows(), rows, "{noted:?}");
        for key in keys {
            assert_eq!(rebuilt.find(key), table.find(key), "{key}");
        }
    }

    #[test]
    fn noted_tables_give_the_same_answers() {
        let prefixes = [
            ("http://(org,", "1"),
            ("http://(org,a,", "2"),
            ("http://(se,", "3"),
        ];
        let prefixes = Table::surt_prefixes(prefixes).unwrap();
        check(
            &prefixes,
            &["http://(org,a,)/", "http://(org,b,)/", "http://(fi,"],
            2,
        );
        let keys = Table::key_values([("a", "1"), ("b", "2")]).unwrap();
        check(&keys, &["b", "c"], 1);
        let expressions = Table::regexes(["x$", "a", "z"]).unwrap();
        check(&expressions, &["ax", "a"], 3);
    }

    #[test]
    fn lookups_are_noted_only_on_request() {
        let table = Table::key_values(["a"]).unwrap();
        note_row("t", &table, table.find("a").as_ref());
        let ((), noted) = looking_up(|| {});
        assert_eq!(noted, BTreeMap::new());
    }
}
