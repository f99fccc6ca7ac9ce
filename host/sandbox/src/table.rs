//! Tables: lists for plugins that the host keeps up to date. They hold SURT prefixes, expressions, or keys with values. The reader
//! of table files passes complete tables to this module. All look-ups of a call see the tables that existed at its first look-up.
//!
//! Prefixes and keys are held as finite-state transducers. A million SURT prefixes take 6 to 12 MB, depending on the likeness of
//! their names. A look-up walks the key once, however many rows there are.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use fst::Map;
use regex::{RegexSet, RegexSetBuilder};

pub use crate::bindings::opilio::plugin::tables::{Kind as TableKind, Row};

use crate::candidates::{Candidates, Column};
use crate::notes::clip;

/// Most rows of one table. Their numbers are kept in 32 bits.
const ROWS_MAX: usize = 100_000_000;
/// Longest key, in bytes: the longest URI that the crawl accepts, and some more for its SURT form.
const KEY_BYTES_MAX: usize = 256 << 10;
/// Most bytes of the expressions of one table once compiled.
const EXPRESSIONS_BYTES_MAX: usize = 64 << 20;
/// Bytes of a key that a message quotes.
const QUOTED_BYTES_MAX: usize = 200;

/// The tables of a crawl. Clones are the same tables; every plugin gets them when it is configured.
#[derive(Clone, Debug, Default)]
pub struct Tables(Arc<RwLock<Arc<TableMap>>>);

/// All tables at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableMap(HashMap<String, Arc<Table>>);

/// One table. It is immutable: an update replaces it.
pub struct Table {
    rows: usize,
    lookup: Lookup,
}

enum Lookup {
    SurtPrefixes(Keys),
    Regexes {
        set: RegexSet,
        /// The expressions in order, with their values.
        rows: Vec<Row>,
    },
    KeyValues(Keys),
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("kind", &self.kind())
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// Error in the rows of a table. Rows are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableProblem {
    /// The row is empty.
    #[error("row {row} has no key")]
    Empty {
        /// The row.
        row: usize,
    },
    /// Neither a SURT prefix nor a URI that implies one.
    #[error(
        "row {row}: `{key}` is not a SURT prefix such as `http://(org,example,` nor a URI that implies one: {problem}"
    )]
    Prefix {
        /// The row.
        row: usize,
        /// The key of the row.
        key: String,
        /// Reason for which it is neither.
        problem: String,
    },
    /// An expression that does not compile.
    #[error("row {row}: `{key}` is not a regular expression: {problem}")]
    Regex {
        /// The row.
        row: usize,
        /// The key of the row.
        key: String,
        /// The compiler's message.
        problem: String,
    },
    /// Each expression compiles, but together they are too large.
    #[error(
        "the {rows} expressions take more than {EXPRESSIONS_BYTES_MAX} bytes once compiled; simplify them, or make two tables"
    )]
    RegexesTooLarge {
        /// Number of expressions.
        rows: usize,
    },
    /// A key that is too long.
    #[error("row {row}: its key has {bytes} bytes; {KEY_BYTES_MAX} are allowed")]
    KeyTooLong {
        /// The row.
        row: usize,
        /// Its length.
        bytes: usize,
    },
    /// More rows than a table may have.
    #[error("row {ROWS_MAX} is the last that a table may have")]
    TooManyRows,
}

impl From<&str> for Row {
    fn from(key: &str) -> Self {
        Self::from((key, ""))
    }
}

impl From<String> for Row {
    fn from(key: String) -> Self {
        Self::from((key, String::new()))
    }
}

impl<K: Into<String>, V: Into<String>> From<(K, V)> for Row {
    fn from((key, value): (K, V)) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

impl Tables {
    /// Sets the table under a name, in place of an existing one. Running calls continue with the tables of their first look-up.
    pub fn set(&self, name: impl Into<String>, table: Table) {
        self.change(|map| {
            map.0.insert(name.into(), Arc::new(table));
        });
    }

    /// Removes a table. Later look-ups in it find nothing.
    pub fn remove(&self, name: &str) {
        self.change(|map| {
            map.0.remove(name);
        });
    }

    fn change(&self, work: impl FnOnce(&mut TableMap)) {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        work(Arc::make_mut(&mut map));
    }

    /// The tables at this moment.
    pub(crate) fn snapshot(&self) -> Arc<TableMap> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl TableMap {
    pub(crate) fn get(&self, name: &str) -> Option<&Table> {
        self.0.get(name).map(Arc::as_ref)
    }
}

impl Table {
    /// Makes a table of SURT prefixes, or of URIs that imply one. `http://example.org` implies the domain and all below it,
    /// `http://example.org/` that host alone. Of two rows with one prefix the later counts.
    pub fn surt_prefixes(
        rows: impl IntoIterator<Item = impl Into<Row>>,
    ) -> Result<Self, TableProblem> {
        let keys = Keys::new(rows, |row, key| {
            match opilio_uri::surt_prefix_from_line(&key) {
                Ok(Some(prefix)) => Ok(prefix),
                Ok(None) => Err(TableProblem::Empty { row }),
                Err(problem) => Err(TableProblem::Prefix {
                    row,
                    key: clip(&key, QUOTED_BYTES_MAX).to_owned(),
                    problem: problem.to_string(),
                }),
            }
        })?;
        Ok(Self {
            rows: keys.map.len(),
            lookup: Lookup::SurtPrefixes(keys),
        })
    }

    /// Makes a table of regular expressions (RE2 syntax), in order of preference.
    pub fn regexes(rows: impl IntoIterator<Item = impl Into<Row>>) -> Result<Self, TableProblem> {
        let rows: Vec<Row> = rows.into_iter().map(Into::into).collect();
        for (at, Row { key, .. }) in rows.iter().enumerate() {
            let row = at + 1;
            if key.is_empty() {
                return Err(TableProblem::Empty { row });
            }
            if let Err(problem) = regex::Regex::new(key) {
                return Err(TableProblem::Regex {
                    row,
                    key: clip(key, QUOTED_BYTES_MAX).to_owned(),
                    problem: one_line(&problem),
                });
            }
        }
        let set = RegexSetBuilder::new(rows.iter().map(|row| &row.key))
            .size_limit(EXPRESSIONS_BYTES_MAX)
            .build()
            .map_err(|_| TableProblem::RegexesTooLarge { rows: rows.len() })?;
        Ok(Self {
            rows: rows.len(),
            lookup: Lookup::Regexes { set, rows },
        })
    }

    /// Makes a table of keys with values. Of two rows with one key the later counts.
    pub fn key_values(
        rows: impl IntoIterator<Item = impl Into<Row>>,
    ) -> Result<Self, TableProblem> {
        let keys = Keys::new(rows, |row, key| match key.is_empty() {
            true => Err(TableProblem::Empty { row }),
            false => Ok(key),
        })?;
        Ok(Self {
            rows: keys.map.len(),
            lookup: Lookup::KeyValues(keys),
        })
    }

    /// The kind of the table.
    pub fn kind(&self) -> TableKind {
        match &self.lookup {
            Lookup::SurtPrefixes(_) => TableKind::SurtPrefixes,
            Lookup::Regexes { .. } => TableKind::Regexes,
            Lookup::KeyValues(_) => TableKind::KeyValues,
        }
    }

    /// Number of its rows; rows with one key count once.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The row for a key, as the contract's `find` defines it.
    pub fn find(&self, key: &str) -> Option<Row> {
        match &self.lookup {
            Lookup::SurtPrefixes(keys) => {
                let (length, value) = keys.longest_prefix(key)?;
                Some(Row::from((&key[..length], keys.values.get(value))))
            }
            Lookup::Regexes { set, rows } => {
                set.matches(key).iter().next().map(|at| rows[at].clone())
            }
            Lookup::KeyValues(keys) => {
                let value = keys.map.get(key)?;
                Some(Row::from((key, keys.values.get(value))))
            }
        }
    }

    /// The expressions in order; empty for a table of another kind.
    pub(crate) fn expressions(&self) -> &[Row] {
        match &self.lookup {
            Lookup::Regexes { rows, .. } => rows,
            Lookup::SurtPrefixes(_) | Lookup::KeyValues(_) => &[],
        }
    }

    /// Whether each of the candidates has a row.
    pub(crate) fn find_candidates(&self, candidates: &Candidates) -> Vec<bool> {
        match &self.lookup {
            Lookup::SurtPrefixes(keys) => candidates
                .column(Column::Surts)
                .lines()
                .map(|surt| keys.longest_prefix(surt).is_some())
                .collect(),
            Lookup::Regexes { set, .. } => candidates
                .iter()
                .map(|candidate| set.is_match(&candidate.uri))
                .collect(),
            Lookup::KeyValues(keys) => candidates
                .iter()
                .map(|candidate| keys.map.contains_key(&candidate.uri))
                .collect(),
        }
    }
}

/// Keys in order, each with the number of its value.
struct Keys {
    map: Map<Vec<u8>>,
    values: Values,
}

impl Keys {
    fn new(
        rows: impl IntoIterator<Item = impl Into<Row>>,
        key_of: impl Fn(usize, String) -> Result<String, TableProblem>,
    ) -> Result<Self, TableProblem> {
        let mut values = ValuesBuilder::default();
        let mut keys: Vec<(Box<[u8]>, u64)> = Vec::new();
        for (at, row) in rows.into_iter().enumerate() {
            if at >= ROWS_MAX {
                return Err(TableProblem::TooManyRows);
            }
            let Row { key, value } = row.into();
            let key = key_of(at + 1, key)?;
            if key.len() > KEY_BYTES_MAX {
                return Err(TableProblem::KeyTooLong {
                    row: at + 1,
                    bytes: key.len(),
                });
            }
            keys.push((key.into_bytes().into(), values.number(value)));
        }
        // A stable sort of the reversed rows, so that of equal keys the last row comes first and is kept.
        keys.reverse();
        keys.sort_by(|(one, _), (other, _)| one.cmp(other));
        keys.dedup_by(|(later, _), (kept, _)| later == kept);
        // The keys are sorted and unique, and written to memory: this cannot fail.
        let map = Map::from_iter(keys).unwrap_or_default();
        Ok(Self {
            map,
            values: values.finish(),
        })
    }

    /// Length of the longest key with which `text` begins, and the number of its value.
    fn longest_prefix(&self, text: &str) -> Option<(usize, u64)> {
        let fst = self.map.as_fst();
        let mut node = fst.root();
        let mut output = fst::raw::Output::zero();
        let mut found = None;
        for (at, byte) in text.bytes().enumerate() {
            let Some(index) = node.find_input(byte) else {
                break;
            };
            let transition = node.transition(index);
            output = output.cat(transition.out);
            node = fst.node(transition.addr);
            if node.is_final() {
                found = Some((at + 1, output.cat(node.final_output()).value()));
            }
        }
        found
    }
}

/// Texts by number, each distinct one once: most tables have few different values or none. Number 0 is empty.
#[derive(Debug, Default)]
struct Values {
    text: Box<str>,
    /// The end of each text, which is the beginning of the next.
    ends: Box<[usize]>,
}

#[derive(Default)]
struct ValuesBuilder {
    text: String,
    ends: Vec<usize>,
    known: HashMap<String, u64>,
}

impl ValuesBuilder {
    fn number(&mut self, value: String) -> u64 {
        if value.is_empty() {
            return 0;
        }
        let next = self.known.len() as u64 + 1;
        match self.known.entry(value) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                self.text.push_str(vacant.key());
                self.ends.push(self.text.len());
                *vacant.insert(next)
            }
        }
    }

    fn finish(self) -> Values {
        Values {
            text: self.text.into(),
            ends: self.ends.into(),
        }
    }
}

impl Values {
    fn get(&self, number: u64) -> &str {
        let at = |index: u64| {
            let index = usize::try_from(index).ok()?;
            self.ends.get(index).copied()
        };
        let Some(index) = number.checked_sub(1) else {
            return "";
        };
        let start = index.checked_sub(1).and_then(at).unwrap_or(0);
        at(index).map_or("", |end| &self.text[start..end])
    }
}

/// The last line of a regex error. The lines before it mark the position in the expression.
fn one_line(problem: &regex::Error) -> String {
    let text = problem.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(table: &Table, key: &str, expected: Option<(&str, &str)>) {
        assert_eq!(table.find(key), expected.map(Row::from), "{key}");
    }

    #[test]
    fn the_longest_surt_prefix_matches() {
        let table = Table::surt_prefixes([
            ("http://(org,example,", "all"),
            ("http://(org,example,www,)/a", "folder"),
            ("https://is.example", "implied"),
            ("+(fi,", "short"),
        ])
        .unwrap();
        assert_eq!(table.rows(), 4);
        check(
            &table,
            "http://(org,example,)/",
            Some(("http://(org,example,", "all")),
        );
        check(
            &table,
            "http://(org,example,www,)/b",
            Some(("http://(org,example,", "all")),
        );
        check(
            &table,
            "http://(org,example,www,)/abc",
            Some(("http://(org,example,www,)/a", "folder")),
        );
        check(
            &table,
            "http://(example,is,www,)/",
            Some(("http://(example,is,", "implied")),
        );
        check(
            &table,
            "http://(fi,example,)/ä",
            Some(("http://(fi,", "short")),
        );
        check(&table, "http://(org,exampl", None);
        check(&table, "http://(se,example,)/", None);
        check(&table, "", None);
    }

    #[test]
    fn the_first_matching_expression_wins() {
        let table =
            Table::regexes([(r"\.pdf$", "document"), (r"^http://a/", "site"), ("a", "")]).unwrap();
        check(&table, "http://a/x.pdf", Some((r"\.pdf$", "document")));
        check(&table, "http://a/x", Some((r"^http://a/", "site")));
        check(&table, "http://b/a", Some(("a", "")));
        check(&table, "http://b/", None);
    }

    #[test]
    fn whole_keys_match_and_the_later_row_wins() {
        let table = Table::key_values([("a", "1"), ("b", ""), ("a", "2"), ("ab", "1")]).unwrap();
        assert_eq!(table.rows(), 3);
        check(&table, "a", Some(("a", "2")));
        check(&table, "b", Some(("b", "")));
        check(&table, "ab", Some(("ab", "1")));
        check(&table, "abc", None);
        check(&table, "", None);
    }

    #[test]
    fn tables_without_rows_find_nothing() {
        let rows: [&str; 0] = [];
        check(&Table::surt_prefixes(rows).unwrap(), "http://(", None);
        check(&Table::regexes(rows).unwrap(), "a", None);
        check(&Table::key_values(rows).unwrap(), "a", None);
    }

    #[test]
    fn an_invalid_row_is_reported_by_number() {
        #[track_caller]
        fn check(table: Result<Table, TableProblem>, expected: &str) {
            let problem = table.unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
        check(
            Table::surt_prefixes(["http://(org,", "http://eins:zwei/"]),
            "row 2: `http://eins:zwei/` is not a SURT prefix",
        );
        check(Table::surt_prefixes(["  "]), "row 1 has no key");
        check(Table::regexes(["a", "("]), "row 2: `(` is not a regular");
        check(Table::regexes(["a", ""]), "row 2 has no key");
        check(
            Table::regexes(vec![r"\w{200}"; 100]),
            "100 expressions take more than",
        );
        check(Table::key_values(["a", ""]), "row 2 has no key");
        check(
            Table::key_values(["a".repeat(KEY_BYTES_MAX + 1)]),
            "row 1: its key has 262145 bytes",
        );
    }

    #[test]
    fn a_table_snapshot_does_not_change() {
        let tables = Tables::default();
        let before = tables.snapshot();
        tables.set("a", Table::key_values(["x"]).unwrap());
        assert!(before.get("a").is_none());
        let during = tables.snapshot();
        tables.set("a", Table::key_values(["y"]).unwrap());
        assert!(during.get("a").unwrap().find("x").is_some());
        assert!(tables.snapshot().get("a").unwrap().find("x").is_none());
        tables.remove("a");
        assert!(tables.snapshot().get("a").is_none());
        assert!(during.get("a").is_some());
    }

    #[test]
    fn equal_values_are_stored_once() {
        let mut builder = ValuesBuilder::default();
        let numbers: Vec<u64> = ["", "one", "two", "one", "three"]
            .map(|value| builder.number(value.to_owned()))
            .into();
        let values = builder.finish();
        assert_eq!(numbers, [0, 1, 2, 1, 3]);
        assert_eq!(&*values.text, "onetwothree");
        let back: Vec<&str> = numbers.iter().map(|&number| values.get(number)).collect();
        assert_eq!(back, ["", "one", "two", "one", "three"]);
    }
}
