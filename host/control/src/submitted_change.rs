//! A change of settings as an operator has submitted it, and its errors. Each error names the argument that it is about, because
//! the parsed text is assembled from the arguments and unknown to the operator.

use opilio_profile::{Diagnostic, Diagnostics, Level, SettingInText, assignment, settings_in_text};

use crate::FaultFound;

/// File name of a change until the change is stored.
pub(super) const NAME: &str = "set";

/// Longest argument that an error shows, in characters.
const ARGUMENT_CHARS_MAX: usize = 100;

/// Change of settings as an operator has submitted it.
#[derive(Clone, Copy)]
pub(super) struct SubmittedChange<'c> {
    /// Text that is parsed.
    pub(super) text: &'c str,
    /// Settings in the text.
    pub(super) settings_in_text: &'c [SettingInText],
    /// The settings as the operator has written them: each as `key = value`, or as TOML of several lines.
    pub(super) arguments: &'c [String],
}

impl SubmittedChange<'_> {
    /// Describes errors. An error in the change begins with its argument, any other error with its place in a file.
    pub(super) fn describe(&self, faults: &Diagnostics) -> String {
        let described: Vec<String> = faults
            .iter()
            .map(|fault| self.describe_one(fault))
            .collect();
        described.join("\n")
    }

    fn describe_one(&self, fault: &Diagnostic) -> String {
        if fault.file != NAME {
            return fault.to_string();
        }
        let pointer = without_override(&fault.pointer);
        let subject = match self.argument(pointer, fault) {
            Some(argument) => shortened(argument),
            None if pointer.is_empty() => return fault.to_string(),
            // A condition, or one of several settings of an argument.
            None => setting_name(pointer),
        };
        let level = match fault.level {
            Level::Info => " note:",
            Level::Warning => " warning:",
            Level::Error => "",
        };
        let suggestion = fault.suggestion.as_ref();
        let suggestion = suggestion.map_or_else(String::new, |text| format!(" ({text})"));
        format!("{subject}:{level} {}{suggestion}", fault.problem)
    }

    /// Returns the argument that an error is about; `None` if it has several lines.
    fn argument(&self, pointer: &str, fault: &Diagnostic) -> Option<&str> {
        let found = match (pointer, &fault.place) {
            ("", Some(place)) => self.argument_in_line(place.line),
            ("", None) => None,
            (pointer, _) => self.arguments.iter().find(|argument| {
                let settings = settings_in_text(&assignment(argument));
                settings.iter().any(|one| is_related(&one.pointer, pointer))
            }),
        };
        found
            .map(|argument| argument.trim())
            .filter(|argument| !argument.contains('\n'))
    }

    /// Returns the argument in a line of the text. Lines are counted from 1, and the arguments are at the end of the text.
    fn argument_in_line(&self, line: usize) -> Option<&String> {
        let lines = |argument: &String| assignment(argument).matches('\n').count() + 1;
        let of_arguments: usize = self.arguments.iter().map(lines).sum();
        let before = self.text.matches('\n').count().checked_sub(of_arguments)?;
        let mut last = before;
        self.arguments.iter().find(|argument| {
            last += lines(argument);
            line > before && line <= last
        })
    }
}

impl FaultFound {
    /// Returns the name of the setting if an error is in a submitted change; `None` if it is in a file, where it has a place.
    pub fn setting_in_change(&self) -> Option<String> {
        let pointer = without_override(&self.setting);
        (self.file == NAME && !pointer.is_empty()).then(|| setting_name(pointer))
    }
}

/// Returns the name of a setting with its tables.
fn setting_name(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// Removes the number of an override from a JSON Pointer into it.
fn without_override(pointer: &str) -> &str {
    let Some(rest) = pointer.strip_prefix("/override/") else {
        return pointer;
    };
    rest.find('/').map_or("", |at| &rest[at..])
}

/// Returns `true` if two pointers are equal, or one refers to a value inside the other.
fn is_related(one: &str, other: &str) -> bool {
    let is_within = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_within(one, other) || is_within(other, one)
}

fn shortened(argument: &str) -> String {
    match argument.char_indices().nth(ARGUMENT_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &argument[..at]),
        None => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use opilio_profile::{MatchFile, fault_in};

    use super::*;
    use crate::changing;

    #[track_caller]
    fn check(arguments: &[&str], matching: Option<&MatchFile>, pointer: &str, expected: &str) {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let text = changing(&arguments, matching);
        let settings = settings_in_text(&text);
        let change = SubmittedChange {
            text: &text,
            settings_in_text: &settings,
            arguments: &arguments,
        };
        let suggestion = Some("write 2s".to_owned());
        let fault = fault_in(NAME, &text, pointer, "no duration".to_owned(), suggestion);
        assert_eq!(change.describe(&fault.into()), expected);
    }

    #[test]
    fn an_error_names_the_argument_as_it_was_typed() {
        let delays = ["politeness.min-delay=1s", "politeness.max-delay = soon"];
        check(
            &delays,
            None,
            "/politeness/max-delay",
            "politeness.max-delay = soon: no duration (write 2s)",
        );
        let matching = MatchFile {
            host: vec!["a.org".to_owned()],
            ..MatchFile::default()
        };
        check(
            &delays,
            Some(&matching),
            "/override/0/politeness/min-delay",
            "politeness.min-delay=1s: no duration (write 2s)",
        );
        check(
            &delays,
            Some(&matching),
            "/override/0/match/host",
            "match.host: no duration (write 2s)",
        );
    }

    #[test]
    fn an_error_in_a_table_of_several_lines_names_the_setting() {
        check(
            &["[politeness]\nmin-delay = 'x'"],
            None,
            "/politeness/min-delay",
            "politeness.min-delay: no duration (write 2s)",
        );
    }

    #[test]
    fn a_note_on_a_change_has_the_name_of_the_setting() {
        let text = "[[override]]\nretry.delay = '1s'\n";
        let fault = fault_in(NAME, text, "/override/0/retry/delay", String::new(), None);
        let found = FaultFound::from(&fault);
        assert_eq!(found.setting_in_change().as_deref(), Some("retry.delay"));
        let in_file = FaultFound {
            file: "profile.toml".to_owned(),
            ..found
        };
        assert_eq!(in_file.setting_in_change(), None);
    }

    #[test]
    fn a_line_that_is_not_toml_is_found_by_its_number() {
        let arguments = ["workers=3".to_owned(), "a b=1".to_owned()];
        let text = format!("[[override]]\n{}", changing(&arguments, None));
        let change = SubmittedChange {
            text: &text,
            settings_in_text: &[],
            arguments: &arguments,
        };
        let found = [1, 2, 3, 4].map(|line| change.argument_in_line(line));
        let [first, second] = &arguments;
        assert_eq!(found, [None, Some(first), Some(second), None]);
    }
}
