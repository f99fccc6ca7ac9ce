//! Conversion of sheets that are associated with SURT prefixes into overrides.

use std::collections::BTreeMap;

use serde_json::Value;

use super::beans::{Bean, Property};
use super::settings::{SETTINGS, each, known_as};
use super::{Import, SheetOverride};
use crate::frontier::QueueKey;
use crate::matching::is_known_of_queue;

impl Import {
    /// Converts sheets that are associated with SURT prefixes into overrides.
    pub(super) fn sheets(&mut self, beans: &[Bean]) {
        for association in beans {
            if association.class == "DecideRuledSheetAssociation" {
                self.list_unconverted(
                    association.line,
                    &association.name(),
                    "sheets are associated by SURT prefix, host, domain or expression in Opilio, not by rules; write an [[override]]",
                );
                continue;
            }
            if association.class != "SurtPrefixesSheetAssociation" {
                continue;
            }
            let prefixes = self.list_of(association, "surtPrefixes");
            for name in self.list_of(association, "targetSheetNames") {
                let Some(sheet) = self.beans.by_id(&name).cloned() else {
                    self.list_unconverted(
                        association.line,
                        &association.name(),
                        &format!("no sheet {name:?}"),
                    );
                    continue;
                };
                let Some(Property::Map(map)) = self.beans.take(&sheet, "map").cloned() else {
                    continue;
                };
                let mut settings = BTreeMap::new();
                for (path, text) in &map {
                    self.sheet_entry(&sheet, path, text, &mut settings);
                }
                // Queue settings may be set only for whole queues. Next to paths they would be lost.
                let (queues, paths): (Vec<String>, Vec<String>) = prefixes
                    .iter()
                    .cloned()
                    .partition(|prefix| is_known_of_queue(prefix, self.queue_key()));
                for prefixes in [queues, paths] {
                    if !settings.is_empty() && !prefixes.is_empty() {
                        self.overrides.push(SheetOverride {
                            prefixes,
                            settings: settings.clone(),
                            sheet: (sheet.name(), sheet.line),
                        });
                    }
                }
            }
        }
    }

    fn sheet_entry(
        &mut self,
        sheet: &Bean,
        path: &str,
        text: &str,
        settings: &mut BTreeMap<String, Value>,
    ) {
        let (id, property) = path.split_once('.').unwrap_or((path, ""));
        let class = self
            .beans
            .by_id(id)
            .map(|bean| known_as(&bean.class).to_owned());
        let entry = SETTINGS
            .iter()
            .find(|(of, name, ..)| class.as_deref() == Some(*of) && *name == property);
        let Some((_, _, setting, unit)) = entry else {
            let problem = format!("{path} = {:?}: Opilio has no setting for it", text.trim());
            self.list_unconverted(sheet.line, &sheet.name(), &problem);
            return;
        };
        match unit.read(text) {
            Ok(Value::Null) => {}
            Ok(value) => settings.extend(each(setting, value)),
            Err(why) => {
                let problem = format!("{path} = {:?}: {why}", text.trim());
                self.list_unconverted(sheet.line, &sheet.name(), &problem);
            }
        }
    }

    fn queue_key(&self) -> QueueKey {
        let written = self.settings.get("frontier.queue-key");
        written
            .and_then(|key| serde_json::from_value(key.clone()).ok())
            .unwrap_or(QueueKey::SurtAuthority)
    }

    fn list_of(&mut self, bean: &Bean, property: &str) -> Vec<String> {
        let value = self.beans.take(bean, property);
        value.map_or(Vec::new(), Property::texts)
    }
}
