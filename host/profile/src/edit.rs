//! Edits of a profile's text that keep everything else as it is written: comments, order and layout.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toml_edit::{Array, Decor, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::diagnostic::Diagnostics;
use crate::document::Document;

/// Lists that are longer than this on one line are written with a line for each item.
const LINE_CHARS_MAX: usize = 100;

/// Change of one setting in a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingChange {
    /// Names of the tables and of the setting, such as `["politeness", "min-delay"]`. The number of an item, from 0, selects it
    /// in a list of tables.
    pub path: Vec<String>,
    /// New value; `None` removes the setting, or the table.
    #[serde(default)]
    pub value: Option<Json>,
}

/// The reason why a text cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not TOML.
    #[error("the text is not valid TOML; correct it first")]
    Text(Diagnostics),
    /// The path leads through a value that is not a table.
    #[error("{0} is not a table in the text")]
    NotTable(String),
    /// The path is empty, or the value cannot be written in TOML.
    #[error("{0}")]
    Change(String),
}

/// Applies changes to a text, in their order.
///
/// # Errors
/// The text is not TOML, or a change does not fit it.
pub fn edit_toml(text: &str, changes: &[SettingChange]) -> Result<String, EditError> {
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    // This parser has no limit for the depth of a text.
    let (_, faults) = Document::parse("profile.toml", text);
    if !faults.is_empty() {
        return Err(EditError::Text(faults));
    }
    let mut document: DocumentMut = text
        .parse()
        .map_err(|problem: toml_edit::TomlError| EditError::Change(problem.message().to_owned()))?;
    for SettingChange { path, value } in changes {
        let Some((last, tables)) = path.split_last() else {
            return Err(EditError::Change(
                "the path of a change is empty".to_owned(),
            ));
        };
        match value {
            Some(value) => {
                let table = table_at((document.as_table_mut(), false), tables, path)?;
                set(table, last, value)?;
            }
            None => remove(document.as_table_mut(), path),
        }
    }
    Ok(document.to_string())
}

/// The table at a path, and whether it is written on one line. Missing tables are made.
fn table_at<'t>(
    (from, is_inline): (&'t mut dyn TableLike, bool),
    tables: &[String],
    path: &[String],
) -> Result<(&'t mut dyn TableLike, bool), EditError> {
    let Some((first, rest)) = tables.split_first() else {
        return Ok((from, is_inline));
    };
    if !from.contains_key(first) {
        // Its header is written only if it has values of its own.
        let mut made = Table::new();
        made.set_implicit(true);
        let item = match is_inline {
            true => Item::Value(InlineTable::new().into()),
            false => Item::Table(made),
        };
        from.insert(first, item);
    }
    let not_table = || EditError::NotTable(path[..path.len() - rest.len() - 1].join("."));
    let item = from.get_mut(first).ok_or_else(not_table)?;
    let number = rest.first().and_then(|it| it.parse::<usize>().ok());
    match (item, number) {
        (Item::ArrayOfTables(list), Some(number)) => {
            let table = list.get_mut(number).ok_or_else(not_table)?;
            table_at((table, false), &rest[1..], path)
        }
        (Item::Value(Value::Array(list)), Some(number)) => {
            let table = list.get_mut(number).and_then(Value::as_inline_table_mut);
            table_at((table.ok_or_else(not_table)?, true), &rest[1..], path)
        }
        (item, _) => {
            let is_inline = item.is_inline_table();
            let table = item.as_table_like_mut().ok_or_else(not_table)?;
            table_at((table, is_inline), rest, path)
        }
    }
}

fn set(
    (table, is_inline): (&mut dyn TableLike, bool),
    key: &str,
    value: &Json,
) -> Result<(), EditError> {
    let mut value = toml(value)?;
    if let Value::Array(list) = &mut value
        && !is_inline
    {
        spread(list, key);
    }
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            if let (Value::Array(old), Value::Array(list)) = (&*old, &mut value) {
                keep_items(old, list);
            }
            // The decor has the comment behind the value.
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        Some(item) => *item = Item::Value(value),
        None => {
            // The blank before the closing brace belongs to the last value.
            let last = table.iter_mut().last().filter(|_| is_inline);
            if let Some(last) = last.and_then(|(_, item)| item.as_value_mut()) {
                let end = last.decor().suffix().cloned().unwrap_or_default();
                last.decor_mut().set_suffix("");
                value.decor_mut().set_suffix(end);
            }
            table.insert(key, Item::Value(value));
        }
    }
    Ok(())
}

/// Removes a setting, and tables that have nothing else. A table with comments before its header stays.
fn remove(table: &mut dyn TableLike, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let Some(item) = table.get_mut(first) else {
        return;
    };
    if rest.is_empty() {
        table.remove(first);
        return;
    }
    let number = rest[0].parse::<usize>().ok();
    match (&mut *item, number) {
        (Item::ArrayOfTables(list), Some(number)) => {
            match (&rest[1..], list.get_mut(number)) {
                (_, None) => {}
                ([], Some(_)) => {
                    list.remove(number);
                }
                (rest, Some(table)) => remove(table, rest),
            }
            if list.is_empty() {
                table.remove(first);
            }
        }
        (Item::Value(Value::Array(list)), Some(number)) if number < list.len() => {
            match &rest[1..] {
                [] => {
                    list.remove(number);
                }
                rest => {
                    if let Some(table) = list.get_mut(number).and_then(Value::as_inline_table_mut) {
                        remove(table, rest);
                    }
                }
            }
        }
        (item, _) => {
            let has_comment = item.as_table().is_some_and(|it| has_comment(it.decor()));
            if let Some(within) = item.as_table_like_mut() {
                remove(within, rest);
                if within.is_empty() && !has_comment {
                    table.remove(first);
                }
            }
        }
    }
}

fn has_comment(decor: &Decor) -> bool {
    let parts = [decor.prefix(), decor.suffix()].into_iter().flatten();
    parts
        .filter_map(|part| part.as_str())
        .any(|part| part.contains('#'))
}

/// Writes a long list with a line for each item.
fn spread(list: &mut Array, key: &str) {
    if key.len() + list.to_string().chars().count() < LINE_CHARS_MAX {
        return;
    }
    for item in list.iter_mut() {
        item.decor_mut().set_prefix("\n    ");
    }
    list.set_trailing("\n");
    list.set_trailing_comma(true);
}

/// Takes over the layout of a list, with the comments of the items that stay.
fn keep_items(old: &Array, list: &mut Array) {
    let mut left: Vec<&Value> = old.iter().collect();
    let text = |value: &Value| {
        let mut bare = value.clone();
        *bare.decor_mut() = Decor::default();
        bare.to_string()
    };
    let is_spread = |value: &Value| {
        let prefix = value.decor().prefix().and_then(|it| it.as_str());
        prefix.is_some_and(|it| it.contains('\n'))
    };
    let has_lines = old.iter().any(is_spread);
    for item in list.iter_mut() {
        let same = left.iter().position(|one| text(one) == text(item));
        match same.map(|place| left.remove(place)) {
            Some(same) => *item.decor_mut() = same.decor().clone(),
            None if has_lines => item.decor_mut().set_prefix("\n    "),
            None => {}
        }
    }
    if has_lines {
        list.set_trailing(old.trailing().clone());
        list.set_trailing_comma(old.trailing_comma());
    }
}

fn toml(value: &Json) -> Result<Value, EditError> {
    Ok(match value {
        Json::Bool(truth) => (*truth).into(),
        Json::String(text) => text.as_str().into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => {
                return Err(EditError::Change(format!("number out of range: {number}")));
            }
        },
        Json::Array(items) => {
            let items = items.iter().map(toml).collect::<Result<Vec<_>, _>>()?;
            Value::Array(items.into_iter().collect())
        }
        Json::Object(table) => {
            let mut made = InlineTable::new();
            for (key, value) in table {
                made.insert(key, toml(value)?);
            }
            made.into()
        }
        Json::Null => {
            return Err(EditError::Change(
                "TOML has no null; leave the value out to remove the setting".to_owned(),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn change(path: &str, value: Json) -> SettingChange {
        SettingChange {
            path: path.split('/').map(str::to_owned).collect(),
            value: Some(value).filter(|value| !value.is_null()),
        }
    }

    #[track_caller]
    fn check(text: &str, path: &str, value: Json, expected: &str) {
        let edited = edit_toml(text, &[change(path, value)]).unwrap();
        assert_eq!(edited, expected);
    }

    #[test]
    fn the_rest_of_the_text_is_unchanged() {
        check(
            "# Mine\nworkers = 3 # few\n\n[politeness] # slow\nmin-delay = '2s' # for Lena\n# end\n",
            "politeness/min-delay",
            json!("5s"),
            "# Mine\nworkers = 3 # few\n\n[politeness] # slow\nmin-delay = \"5s\" # for Lena\n# end\n",
        );
        check("workers = 3\n", "workers", json!(4), "workers = 4\n");
        check("", "workers", json!(4), "workers = 4\n");
        check(
            "[limits]\ntime = '1h'\n",
            "workers",
            json!(4),
            "workers = 4\n[limits]\ntime = '1h'\n",
        );
    }

    #[test]
    fn missing_tables_are_made_in_the_style_of_their_neighbours() {
        check(
            "workers = 3\n",
            "plugins/hops/settings/max",
            json!(3),
            "workers = 3\n\n[plugins.hops.settings]\nmax = 3\n",
        );
        check(
            "politeness.min-delay = '1s'\n",
            "politeness/max-delay",
            json!("5s"),
            "politeness.min-delay = '1s'\npoliteness.max-delay = \"5s\"\n",
        );
        check(
            "politeness = { min-delay = '1s' }\n",
            "politeness/max-delay",
            json!("5s"),
            "politeness = { min-delay = '1s', max-delay = \"5s\" }\n",
        );
        check(
            "[[override]]\nmatch.host = ['a.org']\n[[override]]\nmatch.host = ['b.org']\n",
            "override/1/robots/policy",
            json!("ignore"),
            "[[override]]\nmatch.host = ['a.org']\n[[override]]\nmatch.host = ['b.org']\n\n[override.robots]\npolicy = \"ignore\"\n",
        );
    }

    #[test]
    fn lists_keep_their_lines_and_comments() {
        check(
            "[stacks]\nscope = [\n    \"a\", # first\n    \"b\",\n    \"c\",\n]\n",
            "stacks/scope",
            json!(["a", "c", "d"]),
            "[stacks]\nscope = [\n    \"a\",\n    \"c\",\n    \"d\",\n]\n",
        );
        let many: Vec<String> = (0..12).map(|n| format!("plugin-{n:02}")).collect();
        let lines: String = many.iter().map(|it| format!("    \"{it}\",\n")).collect();
        check("", "seeds", json!(many), &format!("seeds = [\n{lines}]\n"));
        check("", "seeds", json!(["a"]), "seeds = [\"a\"]\n");
    }

    #[test]
    fn an_empty_table_is_removed_with_its_last_setting() {
        let none = Json::Null;
        check(
            "workers = 3\n[limits]\ntime = '1h'\n",
            "limits/time",
            none.clone(),
            "workers = 3\n",
        );
        check(
            "# At night\n[limits]\ntime = '1h'\n",
            "limits/time",
            none.clone(),
            "# At night\n[limits]\n",
        );
        check(
            "[plugins.hops]\ncomponent = 'builtin:hops'\nsettings = { max = 3 }\n",
            "plugins/hops/settings/max",
            none.clone(),
            "[plugins.hops]\ncomponent = 'builtin:hops'\n",
        );
        check(
            "workers = 3\n",
            "limits/time",
            none.clone(),
            "workers = 3\n",
        );
        check("[[override]]\nworkers = 3\n", "override/0", none, "");
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        let refused = |text: &str, path: &str, value: Json| {
            edit_toml(text, &[change(path, value)])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused("workers = 3\n", "workers/many", json!(1)),
            "workers is not a table in the text"
        );
        assert!(refused("workers = \n", "workers", json!(1)).contains("not valid TOML"));
        let null = SettingChange {
            path: vec!["a".to_owned()],
            value: Some(json!([null])),
        };
        assert!(
            edit_toml("", &[null])
                .unwrap_err()
                .to_string()
                .contains("no null")
        );
        let nowhere = SettingChange {
            path: Vec::new(),
            value: None,
        };
        assert!(edit_toml("", &[nowhere]).is_err());
    }
}
