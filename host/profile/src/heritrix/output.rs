//! Output of an import: a valid profile.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Import, SheetOverride};
use crate::profile::{Profile, ProfileContext};
use crate::schema_check::toml_text;

/// Most invalid lines that are removed; each removal shows the next.
const FAULTY_LINES_MAX: usize = 200;

/// Header of a converted sheet.
const OVERRIDE: &str = "[[override]]";

impl Import {
    /// The profile without its invalid parts. Each of these is listed as unconverted.
    pub(super) fn valid_toml(&mut self, context: &ProfileContext) -> String {
        let mut toml = self.toml();
        for _ in 0..FAULTY_LINES_MAX {
            let Err(faults) = Profile::parse("imported.toml", &toml, context) else {
                return toml;
            };
            let mut lines: Vec<String> = toml.lines().map(str::to_owned).collect();
            let fault = faults.iter().find_map(|fault| {
                let place = fault.place.as_ref()?;
                let line = lines.get(place.line.checked_sub(1)?)?;
                (!line.starts_with('#') && !line.is_empty())
                    .then(|| (place.line - 1, fault.clone()))
            });
            let Some((number, fault)) = fault else {
                return toml;
            };
            let line = lines[number].clone();
            // No line is deleted: the number of headers before a line shows the sheet to which it belongs.
            let sheets = lines[..number].iter().filter(|line| *line == OVERRIDE);
            let sheet = sheets.count().checked_sub(1);
            let (bean, at) = sheet
                .and_then(|sheet| self.overrides.get(sheet))
                .map_or(("profile".to_owned(), 0), |one| one.sheet.clone());
            let remedy = fault
                .suggestion
                .map_or(String::new(), |it| format!(" ({it})"));
            self.list_unconverted(at, &bean, &format!("{line}: {}{remedy}", fault.problem));
            lines[number] = format!("# {line} # {}", fault.problem.replace('\n', " "));
            toml = lines.join("\n") + "\n";
        }
        toml
    }

    fn toml(&self) -> String {
        let mut text = "# Imported from a crawler-beans.cxml. Settings that are not written here have their defaults; docs/PROFILE.md lists them.\n".to_owned();
        let mut tables: BTreeMap<&str, Vec<(&str, &Value)>> = BTreeMap::new();
        for (name, value) in &self.settings {
            let (table, key) = name.split_once('.').unwrap_or(("", name));
            tables.entry(table).or_default().push((key, value));
        }
        for (table, settings) in tables {
            if !table.is_empty() {
                text.push_str(&format!("\n[{table}]\n"));
            }
            for (key, value) in settings {
                text.push_str(&format!("{key} = {}\n", toml_text(value)));
            }
        }
        for (name, plugin) in &self.plugins {
            if let Some((component, settings)) = plugin {
                text.push_str(&format!(
                    "\n[plugins.{name}]\ncomponent = \"builtin:{component}\"\nsettings = {}\n",
                    toml_text(&Value::Object(settings.clone()))
                ));
            }
        }
        for (name, table) in &self.tables {
            text.push_str(&format!("\n[tables.{name}]\n"));
            for (key, value) in table.as_object().into_iter().flatten() {
                text.push_str(&format!("{key} = {}\n", toml_text(value)));
            }
        }
        for SheetOverride {
            prefixes, settings, ..
        } in &self.overrides
        {
            text.push_str(&format!(
                "\n{OVERRIDE}\nmatch.surt = {}\n",
                toml_text(&json!(prefixes))
            ));
            for (key, value) in settings {
                text.push_str(&format!("{key} = {}\n", toml_text(value)));
            }
        }
        text
    }
}
