//! Text from guests and the web, made safe for a terminal: it cannot move the cursor or change colours.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use indicatif::ProgressBar;
use opilio_sandbox::is_unprintable;

use crate::exit;
use crate::usage_error::UsageError;

/// Interval between two frames of a spinner.
const SPINNER_TICK: Duration = Duration::from_millis(100);

/// Writes a line of a command's result, as `println!` does; see [`print`].
macro_rules! outln {
    ($($text:tt)*) => {
        $crate::terminal::print(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// Writes a command's result, as `print!` does; see [`print`].
macro_rules! out {
    ($($text:tt)*) => {
        $crate::terminal::print(format_args!($($text)*))
    };
}

pub(crate) use {out, outln};

/// Writes to standard output. If that fails, the command ends. It ends with success if the reader has closed the output, as
/// `head` does. Not for crawls and daemons, which do more than print.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) fn print(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let Err(problem) = out.write_fmt(text).and_then(|()| out.flush()) else {
        return;
    };
    if problem.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(exit::OK.into());
    }
    eprintln!("opilio: cannot write standard output: {problem}");
    std::process::exit(exit::FAILED.into());
}

/// Prints the result of a command: a JSON object, or words.
pub(crate) fn print_result(as_json: bool, object: &serde_json::Value, words: &str) {
    match as_json {
        true => outln!("{object}"),
        false => outln!("{words}"),
    }
}

/// Shows a spinner during long work, if there is a terminal.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(line(what));
    bar.enable_steady_tick(SPINNER_TICK);
    bar
}

/// Does long work under a spinner.
pub(crate) fn spinning<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let bar = spinner(what);
    let result = work();
    bar.finish_and_clear();
    result
}

/// Asks a question that is answered with yes or no. Without an answer it is no. The command has a flag `--yes` for scripts.
///
/// # Errors
/// There is no terminal ([`UsageError`]), or it cannot be read.
pub(crate) fn confirm(question: &str) -> anyhow::Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(UsageError::new("no terminal to ask for confirmation; pass --yes").into());
    }
    dialoguer::Confirm::new()
        .with_prompt(line(question))
        .default(false)
        .interact()
        .context("cannot ask for confirmation")
}

/// Returns `true` if the reader of the output has closed it.
pub(crate) fn is_broken_pipe(problem: &anyhow::Error) -> bool {
    problem
        .downcast_ref::<io::Error>()
        .is_some_and(|problem| problem.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns a text of at most this many characters; the last one of a longer text is an ellipsis.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some(_) => text.chars().take(chars_max - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Returns a text of several lines. Line ends and tabs stay, other ASCII control characters become blanks. Control characters
/// beyond ASCII, and marks that change the direction of text, become JSON escapes, so that a JSON text keeps its meaning.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| !is_unprintable(c) || matches!(c, '\n' | '\t');
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if stays(c) => clean.push(c),
            c if c < ' ' => clean.push(' '),
            // Writing to a string does not fail.
            c => drop(write!(clean, "\\u{:04x}", u32::from(c))),
        }
    }
    Cow::Owned(clean)
}

/// Returns a word or a sentence for one line: every unprintable character becomes a blank, including line ends.
pub(crate) fn line(text: &str) -> String {
    let blank = |c: char| if is_unprintable(c) { ' ' } else { c };
    text.chars().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(lines("a\tb\nä"), "a\tb\nä");
        assert_eq!(lines("n\x1b[31m\r\x07"), "n [31m  ");
        assert_eq!(lines("ok\u{202e}ko"), "ok\\u202eko");
        assert_eq!(line("ok\u{202e}ko"), "ok ko");
        assert_eq!(line("n\x1b[31m\nok \u{9b}1m"), "n [31m ok  1m");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!("\u{9b}1m\u{7f}\x1b");
        let clean = lines(&value.to_string()).into_owned();
        assert!(!clean.contains(char::is_control), "{clean:?}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&clean).unwrap(),
            value
        );
    }
}
