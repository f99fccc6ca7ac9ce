//! Log lines of plugins in a simulation. A year passes in minutes, and a plugin logs the same for thousands of pages. Only the
//! first line of each kind is shown.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use opilio_sandbox::{LogLine, LogSink};

/// Most kinds of lines, over all plugins. Lines of further kinds are not shown.
const KINDS_MAX: usize = 100;

/// Passes the first line of each kind to `sink`. Lines are of one kind if they are of one plugin and differ only by digits.
pub(crate) fn first_of_each_kind(sink: LogSink) -> LogSink {
    let kinds = Mutex::new(HashSet::new());
    Arc::new(move |line: &LogLine| {
        let kind = line.message.replace(|c: char| c.is_ascii_digit(), "");
        let is_new = {
            let Ok(mut kinds) = kinds.lock() else { return };
            kinds.len() < KINDS_MAX && kinds.insert((line.plugin.clone(), kind))
        };
        if is_new {
            sink(line);
        }
    })
}

#[cfg(test)]
mod tests {
    use opilio_sandbox::LogLevel;

    use super::*;

    #[test]
    fn a_line_of_a_known_kind_is_not_shown_again() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let lines = shown.clone();
        let sink = first_of_each_kind(Arc::new(move |line: &LogLine| {
            lines.lock().unwrap().push(line.message.clone());
        }));
        let log = |plugin: &str, message: &str| {
            sink(&LogLine {
                plugin: plugin.into(),
                uri: "http://a.example/".into(),
                level: LogLevel::Warn,
                message: message.to_owned(),
            });
        };
        for page in 0..3 {
            log("a", &format!("page {page} is odd"));
            log("b", "page 7 is odd");
            log("a", "at line 3");
        }
        let expected = ["page 0 is odd", "page 7 is odd", "at line 3"];
        assert_eq!(*shown.lock().unwrap(), expected);
        for letters in 0..2 * KINDS_MAX {
            log("a", &"x".repeat(letters));
        }
        assert_eq!(shown.lock().unwrap().len(), KINDS_MAX);
    }
}
