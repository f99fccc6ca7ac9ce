//! Attributes of the link by which a URI was found, such as `rel` = `nofollow`. They are kept with the URI, so that filters that
//! judge it again see the same attributes as at discovery. They are among the kept values of plugins, under a name that no plugin
//! can have.

use opilio_frontier::{KeptChange, KeptValue, KeptValues, UriRecord};
use opilio_sandbox::NamedValue;

/// Owner of the value. No plugin has this name: plugin names are words joined by hyphens.
const OWNER: &str = ":link";

/// Name of the only value: a JSON list of pairs.
const NAME: &str = "attributes";

/// Version of the value's format.
const VERSION: u32 = 1;

/// Most bytes of names and values kept with a URI. Attributes past it are not seen when the URI is judged again.
const BYTES_MAX: usize = 1024;

/// Returns the values that are kept with a URI from its discovery on.
pub fn kept(attributes: &[NamedValue]) -> KeptValues {
    let mut kept = KeptValues::default();
    let mut bytes = 0;
    let pairs: Vec<(&str, &str)> = attributes
        .iter()
        .map(|attribute| (attribute.name.as_str(), attribute.value.as_str()))
        .take_while(|(name, value)| {
            bytes += name.len() + value.len();
            bytes <= BYTES_MAX
        })
        .collect();
    if !pairs.is_empty() {
        kept.apply(KeptChange {
            plugin: OWNER.to_owned(),
            name: NAME.to_owned(),
            value: Some(KeptValue {
                version: VERSION,
                value: serde_json::json!(pairs).to_string(),
            }),
        });
    }
    kept
}

/// Removes the attributes from a record, which then stands for a URI found by another link.
pub fn forget(record: &mut UriRecord) {
    record.kept.apply(KeptChange {
        plugin: OWNER.to_owned(),
        name: NAME.to_owned(),
        value: None,
    });
}

/// Returns the attributes of the link by which a URI was found.
pub(crate) fn of(record: &UriRecord) -> Vec<NamedValue> {
    let kept = record.kept.get(OWNER, NAME);
    let kept = kept.filter(|kept| kept.version == VERSION);
    let pairs =
        kept.and_then(|kept| serde_json::from_str::<Vec<(String, String)>>(&kept.value).ok());
    let pairs = pairs.unwrap_or_default().into_iter();
    pairs
        .map(|(name, value)| NamedValue { name, value })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: &str, value: &str) -> NamedValue {
        NamedValue {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    /// A round trip through what the record keeps.
    fn seen_again(attributes: &[NamedValue]) -> Vec<(String, String)> {
        let text = kept(attributes);
        let value = text.get(OWNER, NAME).map(|kept| kept.value.clone());
        let pairs = value.and_then(|value| serde_json::from_str(&value).ok());
        pairs.unwrap_or_default()
    }

    #[test]
    fn attributes_are_seen_again_in_order_and_twice_where_they_were() {
        let attributes = [
            attribute("rel", "nofollow"),
            attribute("rel", "ugc \"x\""),
            attribute("title", "ä"),
        ];
        let expected = [("rel", "nofollow"), ("rel", "ugc \"x\""), ("title", "ä")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(seen_again(&attributes), expected);
    }

    #[test]
    fn links_without_attributes_cost_nothing_and_none_costs_much() {
        assert!(kept(&[]).is_empty());
        let long = "x".repeat(BYTES_MAX);
        let attributes = [attribute("rel", "nofollow"), attribute("data", &long)];
        assert_eq!(seen_again(&attributes).len(), 1);
        assert!(kept(&attributes[1..]).is_empty());
    }
}
