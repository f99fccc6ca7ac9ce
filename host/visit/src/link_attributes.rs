//! Attributes of the link by which a URI was found, such as `rel` = `nofollow`. The URI's record keeps them. Filters that judge the
//! URI again see the same attributes as at discovery.

use opilio_frontier::{LinkAttribute, UriRecord};
use opilio_sandbox::NamedValue;

/// Maximum of bytes of names and values kept with a URI. Attributes beyond this limit are missing when the URI is judged again.
const BYTES_MAX: usize = 1024;

/// Returns the attributes that are kept with a URI from its discovery on.
pub fn for_record(attributes: Vec<NamedValue>) -> Vec<LinkAttribute> {
    let mut bytes = 0;
    let kept = attributes.into_iter().take_while(|attribute| {
        bytes += attribute.name.len() + attribute.value.len();
        bytes <= BYTES_MAX
    });
    kept.map(|NamedValue { name, value }| LinkAttribute { name, value })
        .collect()
}

/// Returns the attributes of the link by which a URI was found.
pub(crate) fn of(record: &UriRecord) -> Vec<NamedValue> {
    let attributes = record.link_attributes.iter().cloned();
    attributes
        .map(|LinkAttribute { name, value }| NamedValue { name, value })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attributes: &[(&str, &str)], expected: &[(&str, &str)]) {
        let attributes = attributes.iter().map(|(name, value)| NamedValue {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        });
        let kept = for_record(attributes.collect());
        let kept: Vec<_> = kept
            .iter()
            .map(|kept| (&*kept.name, &*kept.value))
            .collect();
        assert_eq!(kept, expected);
    }

    #[test]
    fn attributes_are_kept_in_order_with_duplicates() {
        let attributes = [("rel", "nofollow"), ("rel", "ugc \"x\""), ("title", "ä")];
        check(&attributes, &attributes);
        check(&[], &[]);
    }

    #[test]
    fn attributes_past_the_limit_are_not_kept() {
        let long = "x".repeat(BYTES_MAX);
        let attributes = [("rel", "nofollow"), ("data", &long), ("title", "a")];
        check(&attributes, &attributes[..1]);
        check(&attributes[1..], &[]);
    }
}
