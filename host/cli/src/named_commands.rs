//! A house check: every command in a message, a help text or a document exists and has the named options.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory as _};

use crate::Cli;

/// Folders and files of the repository that name commands.
const PLACES: [&str; 5] = ["README.md", "deploy", "docs", "host", "plugins"];

/// Endings of files with text.
const ENDINGS: [&str; 6] = ["js", "md", "rs", "service", "toml", "yaml"];

/// Folders without text for operators.
const SKIPPED: [&str; 3] = ["node_modules", "target", "tests"];

/// Characters that end a command in a text.
const ENDS: [char; 10] = ['`', '"', '\n', '|', ';', '#', '(', ')', '\\', '&'];

/// The program in front of the words of a command.
const PROGRAM: &str = "opilio ";

fn cli() -> Command {
    let mut cli = Cli::command();
    // Adds the options that all commands have.
    cli.build();
    cli
}

/// Returns the commands in a text that do not exist, each with the reason.
fn faults(cli: &Command, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, _) in text.match_indices(PROGRAM) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            continue;
        }
        let rest = &text[at + PROGRAM.len()..];
        let rest = rest.find(ENDS).map_or(rest, |end| &rest[..end]);
        // The next command of the sentence.
        let words = rest.find(PROGRAM).map_or(rest, |end| &rest[..end]);
        if let Some(fault) = fault(cli, words) {
            faults.push(format!("{PROGRAM}{}: {fault}", words.trim()));
        }
    }
    faults
}

/// Returns the error in the words after `opilio` if they are meant as a command; `None` for valid commands and for prose.
fn fault(cli: &Command, words: &str) -> Option<String> {
    let mut command = cli;
    let mut words = words.split_whitespace().peekable();
    while let Some(word) = words.peek().copied() {
        let Some(below) = command.find_subcommand(word) else {
            break;
        };
        command = below;
        words.next();
    }
    if std::ptr::eq(command, cli) {
        return None;
    }
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if command.is_subcommand_required_set()
        && let Some(word) = words.peek().copied()
        && !word.starts_with('-')
        && is_name(word)
    {
        return Some(format!("no command {word}"));
    }
    let options = words.filter_map(|word| word.trim_start_matches('[').strip_prefix("--"));
    let names = options.map(|option| {
        let end =
            option.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        end.map_or(option, |end| &option[..end])
    });
    let mut unknown = names.filter(|name| !name.is_empty() && !has_option(command, name));
    unknown.next().map(|name| format!("no option --{name}"))
}

fn has_option(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|argument| {
        let aliases = argument.get_all_aliases().unwrap_or_default();
        argument.get_long() == Some(name) || aliases.contains(&name)
    })
}

/// Adds the faults in a file, or in all files of a folder.
fn search(cli: &Command, path: &Path, found: &mut Vec<String>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_dir() {
        if SKIPPED.contains(&&*name) {
            return;
        }
        for entry in fs::read_dir(path).unwrap() {
            search(cli, &entry.unwrap().path(), found);
        }
        return;
    }
    let is_this_file = name == "named_commands.rs";
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    if is_this_file || !ENDINGS.contains(&&*ending) {
        return;
    }
    let text = fs::read_to_string(path).unwrap();
    let faults = faults(cli, &text).into_iter();
    found.extend(faults.map(|fault| format!("{}: {fault}", path.display())));
}

#[test]
fn every_named_command_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cli = cli();
    let mut found = Vec::new();
    for place in PLACES {
        let path = root.join(place);
        // A place that was moved would otherwise pass unchecked.
        assert!(path.exists(), "{place} is missing: correct PLACES");
        search(&cli, &path, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn unknown_commands_and_options_are_found_and_prose_is_ignored() {
    let cli = cli();
    for (text, expected) in [
        ("`opilio job fly JOB`", "opilio job fly JOB: no command fly"),
        (
            "run opilio job set JOB --hots HOST",
            "opilio job set JOB --hots HOST: no option --hots",
        ),
        (
            "`opilio demo [--jobs DIR]`",
            "opilio demo [--jobs DIR]: no option --jobs",
        ),
    ] {
        assert_eq!(faults(&cli, text), [expected], "{text}");
    }
    for text in [
        "opilio and cargo --release",
        "`opilio job set JOB --dry-run` and `--frozen`",
        "`opilio frontier` --frozen",
        "opilio job overrides JOB lists them, opilio job unset JOB --override 3 removes one",
        "opilio job status JOB --log-format json",
        "cargo run --bin opilio-job fly",
    ] {
        assert_eq!(faults(&cli, text), [""; 0], "{text}");
    }
}
