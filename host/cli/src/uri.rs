//! `opilio uri`: prints the forms of a URI, or the reason that it is refused.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};
use clap::Args;
use opilio_profile::Profile;
use opilio_uri::{RuleEffect, URI_BYTES_MAX, Uri, UriError, implied_surt_prefix};
use serde_json::{Value, json};

use crate::{exit, profile, terminal};

/// Longest line of standard input that is kept, in bytes. It is longer than the longest URI, since surrounding blanks and dot
/// segments do not count towards the length of a URI. The rest of a longer line is counted and dropped.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Number of characters of the input that are shown above its answer. The normalised form is shown in full.
const HEAD_CHARS_MAX: usize = 100;
/// Width of the names before the forms: that of `implied prefix`, with two blanks before it.
const NAME_WIDTH: usize = 16;
/// Width up to which the names of rules are aligned in a column.
const RULE_WIDTH_MAX: usize = 32;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints for each URI: the normalised URI (fetched and archived), or the reason for refusing it; its canonical form
(compared with known URIs) and the effect of each canonicalisation rule; its SURT form; the SURT prefix it implies as a
seed; its domain by the public suffix list; and its queue.

Exit codes: 0 every URI is valid, 1 at least one URI was refused, 2 error in the command line or the profile.")]
pub(crate) struct UriArgs {
    /// URI, as written in a list of seeds (example.org means http://example.org/); - reads standard input, one per line.
    #[arg(required = true, value_name = "URI|-")]
    uris: Vec<OsString>,
    /// Page on which the URIs were found; relative references are resolved against it.
    #[arg(long, value_name = "URI")]
    base: Option<String>,
    /// Profile whose rules apply: TOML file, or name of a saved or shipped profile [default: default].
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) fn run(args: &UriArgs) -> Result<u8> {
    let base = match args.base.as_deref().map(Uri::parse_seed).transpose() {
        Ok(base) => base,
        Err(problem) => {
            let problem = anyhow::Error::new(problem);
            eprintln!("opilio: invalid --base: {problem:#}");
            return Ok(exit::USAGE);
        }
    };
    let profile = match profile::load(args.profile.as_deref().unwrap_or("default")) {
        Ok(profile) => profile,
        Err(faults) => {
            eprintln!("{faults}");
            return Ok(exit::USAGE);
        }
    };
    let mut inquiry = Inquiry {
        base,
        profile,
        json: args.json,
        answers: 0,
        refused: 0,
    };
    match inquiry.answer_all(&args.uris) {
        // The reader of the answers has closed the output.
        Err(problem) if terminal::is_broken_pipe(&problem) => {}
        other => other?,
    }
    Ok(if inquiry.refused > 0 {
        exit::FAILED
    } else {
        exit::OK
    })
}

/// The questions, and the results so far.
struct Inquiry {
    base: Option<Uri>,
    profile: Profile,
    json: bool,
    answers: u64,
    refused: u64,
}

/// All forms of a URI.
struct Forms {
    uri: Uri,
    canonical: String,
    effects: Vec<RuleEffect>,
    surt: String,
    implied_prefix: Option<String>,
    domain: Option<String>,
    queue: String,
}

impl Inquiry {
    fn answer_all(&mut self, uris: &[OsString]) -> Result<()> {
        let mut out = io::stdout().lock();
        for uri in uris {
            if uri == "-" {
                self.answer_lines(&mut io::stdin().lock(), &mut out)?;
            } else {
                self.answer(uri.as_encoded_bytes(), &mut out)?;
            }
        }
        Ok(())
    }

    /// Answers each line, which holds one URI. Blank lines are skipped.
    fn answer_lines(&mut self, input: &mut impl BufRead, out: &mut impl Write) -> Result<()> {
        let mut line = Vec::new();
        while let Some(length) =
            read_line(input, &mut line).context("cannot read standard input")?
        {
            if length > line.len() {
                let max = URI_BYTES_MAX;
                self.write(&line, Err(UriError::TooLong { length, max }.into()), out)?;
            } else if !line.trim_ascii().is_empty() {
                self.answer(line.strip_suffix(b"\r").unwrap_or(&line), out)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, bytes: &[u8], out: &mut impl Write) -> Result<()> {
        self.write(bytes, self.forms(bytes), out)
    }

    /// Returns everything about a URI, or the reason that it is refused.
    fn forms(&self, bytes: &[u8]) -> Result<Forms> {
        let text = std::str::from_utf8(bytes).map_err(|problem| {
            let at = problem.valid_up_to();
            anyhow::anyhow!("byte {} (0x{:02X}) is not UTF-8", at + 1, bytes[at])
        })?;
        let (uri, implied_prefix) = match &self.base {
            Some(base) => {
                let uri = base.join(text)?;
                let prefix = implied_surt_prefix(uri.as_str());
                (uri, prefix)
            }
            None => (Uri::parse_seed(text)?, implied_surt_prefix(text)),
        };
        let effects = self.profile.canonicaliser_for(&uri).explain(&uri);
        Ok(Forms {
            canonical: effects
                .last()
                .map_or_else(|| uri.as_str().to_owned(), |last| last.after.clone()),
            effects,
            surt: uri.surt(),
            implied_prefix: implied_prefix.ok(),
            domain: uri.registrable_domain().map(str::to_owned),
            queue: self.profile.queue_name(&uri),
            uri,
        })
    }

    /// Writes one answer in one piece, so that a program at the other end of a pipe is not kept waiting.
    fn write(&mut self, bytes: &[u8], forms: Result<Forms>, out: &mut impl Write) -> Result<()> {
        let input = String::from_utf8_lossy(bytes);
        let mut answer = match (&forms, self.json) {
            (Ok(forms), true) => format!("{}\n", forms.as_json(&input)),
            (Ok(forms), false) => forms.as_text(&input),
            (Err(reason), true) => {
                format!(
                    "{}\n",
                    json!({ "input": input, "problem": format!("{reason:#}") })
                )
            }
            (Err(reason), false) => {
                format!("{}\n{:>NAME_WIDTH$}  {reason:#}\n", head(&input), "refused")
            }
        };
        if self.answers > 0 && !self.json {
            answer.insert(0, '\n');
        }
        out.write_all(answer.as_bytes())
            .and_then(|()| out.flush())
            .context("cannot write the answer")?;
        self.answers += 1;
        self.refused += u64::from(forms.is_err());
        Ok(())
    }
}

impl Forms {
    fn as_text(&self, input: &str) -> String {
        let line = |name: &str, value: &str| format!("{name:>NAME_WIDTH$}  {value}\n");
        let width = self
            .effects
            .iter()
            .map(|effect| effect.rule.chars().count())
            .max()
            .unwrap_or(0)
            .min(RULE_WIDTH_MAX);
        let mut text = format!("{}\n", head(input));
        text += &line("normalised", self.uri.as_str());
        text += &line("canonical", &self.canonical);
        for (index, effect) in self.effects.iter().enumerate() {
            let name = if index == 0 { "rules" } else { "" };
            let after = match effect.changed() {
                true => effect.after.as_str(),
                false => "-",
            };
            text += &line(name, &format!("{:<width$}  {after}", effect.rule));
        }
        text += &line("SURT", &self.surt);
        text += &line(
            "implied prefix",
            self.implied_prefix.as_deref().unwrap_or("-"),
        );
        text += &line("domain", self.domain.as_deref().unwrap_or("-"));
        text + &line("queue", &self.queue)
    }

    fn as_json(&self, input: &str) -> Value {
        json!({
            "input": input,
            "uri": self.uri,
            "canonical": self.canonical,
            "rules": self.effects,
            "surt": self.surt,
            "implied_surt_prefix": self.implied_prefix,
            "domain": self.domain,
            "queue": self.queue,
        })
    }
}

/// Reads up to a line end, and keeps at most [`LINE_BYTES_MAX`] bytes. Returns the length of the line; `None` at the end of input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = match input.fill_buf() {
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if buffer.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        let room = LINE_BYTES_MAX - line.len();
        line.extend_from_slice(&piece[..piece.len().min(room)]);
        length += piece.len();
        let read = piece.len() + usize::from(end.is_some());
        input.consume(read);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

/// Returns the beginning of an input, with control characters made safe for a terminal.
fn head(input: &str) -> String {
    let mut head = String::new();
    for (index, character) in input.chars().enumerate() {
        if index == HEAD_CHARS_MAX {
            head.push('…');
            break;
        }
        match character {
            '"' | '\'' | '\\' => head.push(character),
            other => head.extend(other.escape_debug()),
        }
    }
    head
}
