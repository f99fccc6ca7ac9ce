//! Notes and annotations of plugins during one visit. Notes are for later plugins, annotations for the crawl log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Limits;

/// Longest message of a plugin error, in bytes. It may quote the guest.
const MESSAGE_BYTES_MAX: usize = 1_000;

/// Longest annotation kept, in bytes; the rest is cut.
const ANNOTATION_BYTES_MAX: usize = 256;

/// The notes and annotations of one visit. Clones are the same notes. All documents and fragments of the visit share them, and
/// the host reads them afterwards.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<NotesState>>);

#[derive(Debug, Default)]
struct NotesState {
    notes: BTreeMap<String, String>,
    annotations: Vec<Annotation>,
    dropped: u64,
}

/// An annotation of a plugin for the crawl log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The plugin, by its name in the profile.
    pub plugin: Arc<str>,
    /// The word: without blanks, commas and unprintable characters.
    pub text: String,
}

/// Returns `true` if a character may not be in a line of a log. These are control characters, and marks that change the direction
/// of text (Unicode's `Bidi_Control`). With such marks a line would read as another.
pub fn is_unprintable(c: char) -> bool {
    let is_direction_mark = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_direction_mark || c.is_control()
}

impl Notes {
    /// Makes empty notes, for a new visit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes notes with these values, for a repeated visit.
    pub(crate) fn of(notes: BTreeMap<String, String>) -> Self {
        Self(Arc::new(Mutex::new(NotesState {
            notes,
            ..NotesState::default()
        })))
    }

    /// The note under this name, if one was left.
    pub fn get(&self, name: &str) -> Option<String> {
        self.state().notes.get(name).cloned()
    }

    /// All notes, by name.
    pub fn all(&self) -> BTreeMap<String, String> {
        self.state().notes.clone()
    }

    /// All annotations, in the order made, each once.
    pub fn annotations(&self) -> Vec<Annotation> {
        self.state().annotations.clone()
    }

    /// Notes and annotations that exceeded their limits and are lost.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// Sets a note. The last value under a name counts. Past `limits` it is dropped and counted.
    pub fn set(&self, name: String, value: String, limits: &Limits) {
        let mut state = self.state();
        let is_new = !state.notes.contains_key(&name);
        let full = is_new && state.notes.len() >= limits.notes;
        if full || name.len().saturating_add(value.len()) > limits.note_bytes {
            state.dropped += 1;
        } else {
            state.notes.insert(name, value);
        }
    }

    /// Adds an annotation by a plugin. Blanks, commas and unprintable characters become underscores, as the crawl log needs it.
    /// An existing annotation is not repeated. Past `limits` it is dropped and counted.
    pub fn annotate(&self, plugin: &Arc<str>, annotation: &str, limits: &Limits) {
        let clean: String = clip(annotation, ANNOTATION_BYTES_MAX)
            .chars()
            .map(|c| {
                if c.is_whitespace() || is_unprintable(c) || c == ',' {
                    '_'
                } else {
                    c
                }
            })
            .collect();
        let mut state = self.state();
        let is_known = |known: &Annotation| known.text == clean && known.plugin == *plugin;
        if clean.is_empty() || state.annotations.iter().any(is_known) {
            return;
        }
        if state.annotations.len() >= limits.annotations {
            state.dropped += 1;
        } else {
            state.annotations.push(Annotation {
                plugin: plugin.clone(),
                text: clean,
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, NotesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns text of a guest into one line of a log.
pub(crate) fn one_line(message: &str) -> String {
    clip(message, MESSAGE_BYTES_MAX)
        .chars()
        .map(|c| if is_unprintable(c) { ' ' } else { c })
        .collect()
}

/// The longest prefix of `text` with at most `bytes_max` bytes that ends between characters.
pub(crate) fn clip(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(notes: &Notes) -> Vec<String> {
        let annotations = notes.annotations().into_iter();
        annotations.map(|annotation| annotation.text).collect()
    }

    #[test]
    fn the_last_value_of_a_note_counts() {
        let notes = Notes::new();
        notes.set("language".into(), "de".into(), &Limits::default());
        notes.set("language".into(), "nl".into(), &Limits::default());
        assert_eq!(notes.get("language").as_deref(), Some("nl"));
        assert_eq!(notes.dropped(), 0);
    }

    #[test]
    fn notes_past_the_limit_are_dropped_and_counted_but_known_names_may_change() {
        let limits = Limits {
            notes: 2,
            note_bytes: 8,
            ..Limits::default()
        };
        let notes = Notes::new();
        notes.set("a".into(), "1".into(), &limits);
        notes.set("b".into(), "2".into(), &limits);
        notes.set("c".into(), "3".into(), &limits);
        notes.set("a".into(), "12345678".into(), &limits);
        notes.set("a".into(), "1234567".into(), &limits);
        assert_eq!(
            notes.all().into_iter().collect::<Vec<_>>(),
            [
                ("a".to_owned(), "1234567".to_owned()),
                ("b".to_owned(), "2".to_owned())
            ]
        );
        assert_eq!(notes.dropped(), 2);
    }

    #[test]
    fn annotations_fit_a_column_of_the_crawl_log() {
        #[track_caller]
        fn check(annotation: &str, expected: &[&str]) {
            let notes = Notes::new();
            notes.annotate(&"plugin".into(), annotation, &Limits::default());
            assert_eq!(texts(&notes), expected);
        }
        check("botblock:cloudflare", &["botblock:cloudflare"]);
        check("a b,c\nd\u{7}e", &["a_b_c_d_e"]);
        check("ok\u{202e}lanretxe\u{2069}", &["ok_lanretxe_"]);
        check("", &[]);
        check(&"ä".repeat(300), &[&"ä".repeat(128)]);
    }

    #[test]
    fn annotations_are_unique_and_limited() {
        let limits = Limits {
            annotations: 2,
            ..Limits::default()
        };
        let notes = Notes::new();
        for annotation in ["a", "a", "b", "c"] {
            notes.annotate(&"plugin".into(), annotation, &limits);
        }
        assert_eq!(texts(&notes), ["a", "b"]);
        assert_eq!(notes.dropped(), 1);
    }

    #[test]
    fn clipping_keeps_characters_whole() {
        assert_eq!(clip("aä", 2), "a");
        assert_eq!(clip("aä", 3), "aä");
        assert_eq!(clip("aä", 99), "aä");
    }
}
