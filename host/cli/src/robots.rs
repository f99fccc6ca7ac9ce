//! `opilio robots`: the decisions of a robots.txt file on URIs, with the deciding lines.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use opilio_fetch::robots::{ROBOTS_BYTES_MAX, Robots, RobotsReason, Verdict, product_token};
use opilio_uri::Uri;
use serde_json::{Value, json};

use crate::{exit, terminal};

/// Opilio's product token.
const OWN_AGENT: &str = "opilio";

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints for each URI whether it may be fetched, and the line of the file that decides, as in a crawl with policy obey
(RFC 9309): the group of the agent applies, or else the group for all agents; in the group, the longest matching rule.

Exit codes: 0 every URI is allowed, 1 at least one is forbidden or invalid, 2 error in the command line or the file.")]
pub(crate) struct RobotsArgs {
    /// Path of a robots.txt file; - reads standard input.
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// User agent whose rules apply: a product token, or a whole User-Agent header.
    #[arg(long, value_name = "UA", default_value = OWN_AGENT)]
    agent: String,
    /// URI, or path that begins with /; - reads standard input, one per line.
    #[arg(required = true, value_name = "URI|-")]
    uris: Vec<String>,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) fn run(args: &RobotsArgs) -> Result<u8> {
    if args.file == Path::new("-") && args.uris.iter().any(|uri| uri == "-") {
        eprintln!("opilio: robots.txt and the URIs cannot both come from standard input");
        return Ok(exit::USAGE);
    }
    let robots = match read(&args.file) {
        Ok(bytes) => Robots::parse(&bytes),
        Err(problem) => {
            eprintln!("opilio: cannot read {}: {problem}", args.file.display());
            return Ok(exit::USAGE);
        }
    };
    if robots.is_truncated() {
        eprintln!("opilio: the file is longer than {ROBOTS_BYTES_MAX} bytes; the rest is ignored");
    }
    let mut inquiry = Inquiry {
        robots,
        agent: &args.agent,
        json: args.json,
        is_any_refused: false,
    };
    match inquiry.answer_all(&args.uris) {
        // The reader of the answers has closed the output.
        Err(problem) if terminal::is_broken_pipe(&problem) => {}
        other => other?,
    }
    Ok(match inquiry.is_any_refused {
        true => exit::FAILED,
        false => exit::OK,
    })
}

/// Reads a file up to one byte beyond the limit, so that a longer file can be reported.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = ROBOTS_BYTES_MAX as u64 + 1;
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?
            .take(most)
            .read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

struct Inquiry<'a> {
    robots: Robots,
    agent: &'a str,
    json: bool,
    is_any_refused: bool,
}

impl Inquiry<'_> {
    fn answer_all(&mut self, uris: &[String]) -> Result<()> {
        let mut out = io::stdout().lock();
        if !self.json {
            self.write_head(&mut out)?;
        }
        for uri in uris {
            if uri != "-" {
                self.answer(uri, &mut out)?;
                continue;
            }
            for line in io::stdin().lock().lines() {
                let line = line.context("cannot read standard input")?;
                if !line.trim().is_empty() {
                    self.answer(line.trim(), &mut out)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the part that applies to all URIs.
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let token = product_token(self.agent);
        let group = match self.robots.names(self.agent) {
            true => "a group of its own",
            false => "no group of its own",
        };
        let delay = match self.robots.crawl_delay(self.agent) {
            Some(delay) => format!("crawl-delay {} s", delay.as_secs_f64()),
            None => "no crawl-delay".to_owned(),
        };
        writeln!(out, "agent {token}: {group}, {delay}")
    }

    fn answer(&mut self, asked: &str, out: &mut impl Write) -> Result<()> {
        let verdict = match asked.starts_with('/') {
            true => Ok(self.robots.verdict(self.agent, asked)),
            false => Uri::parse_seed(asked)
                .map(|uri| self.robots.verdict(self.agent, uri.path_and_query())),
        };
        self.is_any_refused |= !verdict.as_ref().is_ok_and(Verdict::is_allowed);
        let answer = match (verdict, self.json) {
            (Ok(verdict), true) => self.as_json(asked, &verdict).to_string(),
            (Ok(verdict), false) => format!("{asked}  {verdict}"),
            (Err(problem), true) => {
                let problem = format!("{:#}", anyhow::Error::new(problem));
                json!({"uri": asked, "problem": problem}).to_string()
            }
            (Err(problem), false) => {
                let problem = anyhow::Error::new(problem);
                format!("{asked}  invalid URI: {problem:#}")
            }
        };
        // The file, and perhaps the URIs, come from the web and may contain control characters.
        writeln!(out, "{}", terminal::lines(&answer))?;
        Ok(())
    }

    fn as_json(&self, asked: &str, verdict: &Verdict) -> Value {
        let (Verdict::Allowed(reason) | Verdict::Refused(reason)) = verdict;
        let mut answer = json!({
            "uri": asked,
            "agent": product_token(self.agent),
            "allowed": verdict.is_allowed(),
            "reason": reason.to_string(),
            "crawl_delay_s": self.robots.crawl_delay(self.agent).map(|delay| delay.as_secs_f64()),
        });
        if let (RobotsReason::Rule(line), Some(answer)) = (reason, answer.as_object_mut()) {
            answer.insert("line".to_owned(), line.number.into());
            answer.insert("rule".to_owned(), line.text.clone().into());
        }
        answer
    }
}
