//! Reads JSON value by value without building a tree. Memory is bounded by the size of the text, whatever its structure.
//!
//! Values before a syntax error are reported, so a truncated document gives the values of its first part. serde_json stops at 128
//! nested levels.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

/// Receives the values of a document.
pub(crate) trait ValueHandler {
    /// Handles a string. `path` has the names of the members that contain it, outermost first; arrays do not add to it.
    fn text(&mut self, path: &[String], value: &str);

    /// Handles the start of the object at `path`.
    fn open(&mut self, path: &[String]) {
        let _ = path;
    }

    /// Returns `true` if reading can stop.
    fn is_full(&self) -> bool {
        false
    }

    /// Handles the end of the object at `path`.
    fn close(&mut self, path: &[String]) {
        let _ = path;
    }
}

/// Prefixes of JSON that prevent a page from running it as a script.
const GUARDS: [&str; 4] = [")]}',", ")]}'", "while(1);", "for(;;);"];

/// Reads a document, or several in sequence as in JSON lines. The error is the reason why reading stopped before the end.
pub(crate) fn read(json: &str, handler: &mut impl ValueHandler) -> Result<(), String> {
    let json = json.trim_start_matches('\u{feff}').trim_start();
    let guard = GUARDS.iter().find_map(|guard| json.strip_prefix(guard));
    let mut deserializer = serde_json::Deserializer::from_str(guard.unwrap_or(json));
    let mut path = Vec::new();
    loop {
        let walk = Walk {
            handler: &mut *handler,
            path: &mut path,
        };
        walk.deserialize(&mut deserializer)
            .map_err(|error| error.to_string())?;
        if deserializer.end().is_ok() {
            return Ok(());
        }
    }
}

/// Reads one value for the handler.
struct Walk<'a, R> {
    handler: &'a mut R,
    path: &'a mut Vec<String>,
}

impl<R> Walk<'_, R> {
    /// Returns a `Walk` for a nested value.
    fn inner(&mut self) -> Walk<'_, R> {
        Walk {
            handler: self.handler,
            path: self.path,
        }
    }
}

impl<'de, R: ValueHandler> DeserializeSeed<'de> for Walk<'_, R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: ValueHandler> Visitor<'de> for Walk<'_, R> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.handler.text(self.path, value);
        if self.handler.is_full() {
            return Err(E::custom(crate::TOO_MANY_REFERENCES));
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
        self.handler.open(self.path);
        while let Some(name) = members.next_key::<String>()? {
            self.path.push(name);
            let value = members.next_value_seed(self.inner());
            self.path.pop();
            value?;
        }
        self.handler.close(self.path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Events(Vec<String>);

    impl ValueHandler for Events {
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
    fn check(json: &str, expected: &[&str], is_complete: bool) {
        let mut events = Events::default();
        let outcome = read(json, &mut events);
        assert_eq!(events.0, expected, "{json}");
        assert_eq!(outcome.is_ok(), is_complete, "{json}: {outcome:?}");
    }

    #[test]
    fn texts_have_the_path_of_their_members() {
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
    fn truncated_documents_give_the_values_before_the_end() {
        check(r#"{"a": "x", "b": ["y", "z"#, &["{", "a=x", "b=y"], false);
        check("", &[], false);
        check("nonsense", &[], false);
        let mut events = Events::default();
        assert!(read(&"[".repeat(1_000_000), &mut events).is_err());
        assert!(read(&"{\"a\":".repeat(1_000_000), &mut events).is_err());
    }
}
