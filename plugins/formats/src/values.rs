//! Reads JSON value by value without building a tree, so memory is limited by the text for documents of any shape.
//!
//! Values before a fault have been reported, so half a document gives half its values. serde_json stops at 128 levels.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

/// Receives the values of a document.
pub(crate) trait Reader {
    /// A text, with the names of the members around it, outermost first. Arrays are not part of the path.
    fn text(&mut self, path: &[String], value: &str);

    /// The start of the object at `path`.
    fn open(&mut self, path: &[String]) {
        let _ = path;
    }

    /// Whether no more values are wanted.
    fn is_full(&self) -> bool {
        false
    }

    /// The end of the object.
    fn close(&mut self, path: &[String]) {
        let _ = path;
    }
}

/// Prefixes of JSON that keep a page from running it as a script.
const GUARDS: [&str; 4] = [")]}',", ")]}'", "while(1);", "for(;;);"];

/// Reads a document, or several in sequence as in JSON lines. An error says why it stopped before the end.
pub(crate) fn read(json: &str, reader: &mut impl Reader) -> Result<(), String> {
    let json = json.trim_start_matches('\u{feff}').trim_start();
    let guard = GUARDS.iter().find_map(|guard| json.strip_prefix(guard));
    let mut deserializer = serde_json::Deserializer::from_str(guard.unwrap_or(json));
    let mut path = Vec::new();
    loop {
        let walk = Walk {
            reader: &mut *reader,
            path: &mut path,
        };
        walk.deserialize(&mut deserializer)
            .map_err(|error| error.to_string())?;
        if deserializer.end().is_ok() {
            return Ok(());
        }
    }
}

/// The value being read.
struct Walk<'a, R> {
    reader: &'a mut R,
    path: &'a mut Vec<String>,
}

impl<R> Walk<'_, R> {
    /// The same for a nested value.
    fn inner(&mut self) -> Walk<'_, R> {
        Walk {
            reader: self.reader,
            path: self.path,
        }
    }
}

impl<'de, R: Reader> DeserializeSeed<'de> for Walk<'_, R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: Reader> Visitor<'de> for Walk<'_, R> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.reader.text(self.path, value);
        if self.reader.is_full() {
            return Err(E::custom(crate::MORE));
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.reader.open(self.path);
        while let Some(name) = members.next_key::<String>()? {
            self.path.push(name);
            let value = members.next_value_seed(self.inner());
            self.path.pop();
            value?;
        }
        self.reader.close(self.path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Reader for Seen {
        fn text(&mut self, path: &[String], value: &str) {
            self.0.push(format!("{}={value}", path.join(".")));
        }

        fn open(&mut self, path: &[String]) {
            self.0.push(format!("{}{{", path.join(".")));
        }

        fn close(&mut self, path: &[String]) {
            self.0.push(format!("{}}}", path.join(".")));
        }
    }

    #[track_caller]
    fn check(json: &str, expected: &[&str], whole: bool) {
        let mut seen = Seen::default();
        let outcome = read(json, &mut seen);
        assert_eq!(seen.0, expected, "{json}");
        assert_eq!(outcome.is_ok(), whole, "{json}: {outcome:?}");
    }

    #[test]
    fn every_text_is_seen_where_it_stands() {
        check(
            r#"{"a": ["x", {"b": "y\/z"}, 1, 2.5, null, true], "c": "ü"}"#,
            &["{", "a=x", "a{", "a.b=y/z", "a}", "c=ü", "}"],
            true,
        );
        check("\u{feff} )]}'\n[\"x\"]", &["=x"], true);
        check(
            "{\"a\":\"x\"}\n{\"a\":\"y\"}\n",
            &["{", "a=x", "}", "{", "a=y", "}"],
            true,
        );
        check("1e400", &[], false);
    }

    #[test]
    fn half_a_document_gives_half_its_values() {
        check(r#"{"a": "x", "b": ["y", "z"#, &["{", "a=x", "b=y"], false);
        check("", &[], false);
        check("nonsense", &[], false);
        let mut seen = Seen::default();
        assert!(read(&"[".repeat(1_000_000), &mut seen).is_err());
        assert!(read(&"{\"a\":".repeat(1_000_000), &mut seen).is_err());
    }
}
