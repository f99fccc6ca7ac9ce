//! `opilio profile new`: makes a small profile from flags or from answers at a terminal.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use dialoguer::{Input, Select};
use opilio_profile::{Profile, ProfileContext};
use serde_json::{Value, json};

use crate::{exit, terminal};

/// Shipped profiles to extend, with their purposes.
const KINDS: [(&str, &str); 5] = [
    ("snapshot", "each document once, then the crawl ends"),
    ("focused", "each document once, pages about a subject first"),
    ("broad", "many sites, a part of each"),
    (
        "continuous",
        "each document again and again, as often as it changes",
    ),
    ("news", "front pages many times a day, articles soon"),
];

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Path of the profile to write; its name becomes the name of the crawl.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Profile to extend: name of a shipped profile, or path [default: snapshot].
    #[arg(long, value_name = "PROFILE")]
    extends: Option<String>,
    /// Page that says who crawls and why.
    #[arg(long, value_name = "URL")]
    contact_url: Option<String>,
    /// Mail address for the header From.
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// Organisation responsible for the crawl.
    #[arg(long, value_name = "NAME")]
    organization: Option<String>,
    /// Purpose of the crawl.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Seed of the crawl; may be repeated.
    #[arg(long, value_name = "URL")]
    seed: Vec<String>,
    /// File of seeds, one per line; its path is relative to the profile.
    #[arg(long, value_name = "FILE")]
    seeds_file: Option<String>,
    /// Minimum politeness delay between two fetches of a queue.
    #[arg(long, value_name = "DURATION")]
    min_delay: Option<String>,
    /// Maximum number of hops from a seed.
    #[arg(long, value_name = "N")]
    max_hops: Option<u32>,
    /// Time limit of the crawl.
    #[arg(long, value_name = "DURATION")]
    time_limit: Option<String>,
    /// Ask nothing; values that are not given stay unset.
    #[arg(long)]
    no_input: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) fn run(args: &NewArgs) -> Result<u8> {
    let mut draft = args.draft();
    if !args.no_input && io::stdin().is_terminal() && io::stderr().is_terminal() {
        draft.prompt()?;
    }
    let text = draft.text();
    let given = ProfileContext {
        builtins: opilio_builtin::all()
            .map(|builtin| builtin.plugin.to_owned())
            .collect(),
        seeds_elsewhere: true,
        base: Some(args.file.parent().unwrap_or(Path::new("")).to_owned()),
        ..ProfileContext::default()
    };
    let file = args.file.display().to_string();
    if let Err(faults) = Profile::parse(&file, &text, &given) {
        eprintln!("opilio: the profile was not written\n{faults}");
        return Ok(exit::USAGE);
    }
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.file);
    let mut made = match made {
        Ok(made) => made,
        Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
            eprintln!("opilio: {file} already exists; choose another file");
            return Ok(exit::USAGE);
        }
        Err(problem) => return Err(problem).with_context(|| format!("cannot write {file}")),
    };
    made.write_all(text.as_bytes())
        .with_context(|| format!("cannot write {file}"))?;
    let words =
        format!("wrote {file}; opilio profile check {file} checks it, opilio crawl {file} runs it");
    let object = json!({ "answer": "created", "file": file });
    terminal::print_result(args.json, &object, &words);
    Ok(exit::OK)
}

/// The content of the new profile.
struct ProfileDraft {
    extends: String,
    is_extends_open: bool,
    contact_url: Option<String>,
    from: Option<String>,
    organization: Option<String>,
    description: Option<String>,
    seeds: Vec<String>,
    seeds_file: Option<String>,
    min_delay: Option<String>,
    max_hops: Option<u32>,
    time_limit: Option<String>,
}

impl NewArgs {
    fn draft(&self) -> ProfileDraft {
        ProfileDraft {
            extends: self
                .extends
                .clone()
                .unwrap_or_else(|| "snapshot".to_owned()),
            is_extends_open: self.extends.is_none(),
            contact_url: self.contact_url.clone(),
            from: self.from.clone(),
            organization: self.organization.clone(),
            description: self.description.clone(),
            seeds: self.seed.clone(),
            seeds_file: self.seeds_file.clone(),
            min_delay: self.min_delay.clone(),
            max_hops: self.max_hops,
            time_limit: self.time_limit.clone(),
        }
    }
}

impl ProfileDraft {
    /// Asks for the important values that are missing.
    fn prompt(&mut self) -> Result<()> {
        if self.is_extends_open {
            let kinds = KINDS.map(|(name, what)| format!("{name}: {what}"));
            let chosen = Select::new()
                .with_prompt("Kind of crawl")
                .items(&kinds)
                .default(0)
                .interact()?;
            KINDS[chosen].0.clone_into(&mut self.extends);
        }
        if self.seeds.is_empty() && self.seeds_file.is_none() {
            let seeds: String = Input::new()
                .with_prompt("Seeds, separated by blanks")
                .allow_empty(true)
                .interact_text()?;
            self.seeds
                .extend(seeds.split_whitespace().map(str::to_owned));
        }
        let text = |prompt: &str, into: &mut Option<String>| -> Result<()> {
            if into.is_none() {
                let input: String = Input::new()
                    .with_prompt(prompt)
                    .allow_empty(true)
                    .interact_text()?;
                *into = Some(input).filter(|input| !input.trim().is_empty());
            }
            Ok(())
        };
        text(
            "URL of a page that says who crawls and why",
            &mut self.contact_url,
        )?;
        text("Organisation", &mut self.organization)?;
        text("Purpose of the crawl", &mut self.description)
    }

    fn text(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let line = |key: &str, value: Option<&String>, example: &str| match value {
            Some(value) => format!("{key} = {}\n", quoted(value)),
            None => format!("# {key} = {}\n", quoted(example)),
        };
        let mut text = format!(
            "# Settings that are not written here come from the profile that this one extends;\n\
             # opilio profile explain URL --profile THIS shows all settings for a URL.\n\
             extends = {}\n",
            quoted(&self.extends)
        );
        text.push_str(&line(
            "description",
            self.description.as_ref(),
            "Purpose of the crawl",
        ));
        text.push_str(
            "\n# Seeds; \"+http://(org,example,\" widens the scope without being fetched.\n",
        );
        if self.seeds.is_empty() {
            // An empty list would replace the seeds of the extended profile.
            text.push_str("# seeds = [\"https://…\"]\n");
        } else {
            text.push_str("seeds = [\n");
            for seed in &self.seeds {
                text.push_str(&format!("    {},\n", quoted(seed)));
            }
            text.push_str("]\n");
        }
        text.push_str(&line("seeds-file", self.seeds_file.as_ref(), "seeds.txt"));
        text.push_str("\n[operator]\n# Webmasters see these values in their logs. A job does not start without contact-url.\n");
        text.push_str(&line("contact-url", self.contact_url.as_ref(), "https://…"));
        text.push_str(&line("from", self.from.as_ref(), "crawl@…"));
        text.push_str(&line("organization", self.organization.as_ref(), "…"));
        text.push_str("\n# Minimum delay between two fetches of a queue.\n[politeness]\n");
        text.push_str(&line("min-delay", self.min_delay.as_ref(), "2s"));
        text.push_str("\n# Maximum number of hops from a seed.\n");
        let hops = |max: u32, start: &str| {
            format!(
                "{start}[plugins.hops]\n{start}component = \"builtin:hops\"\n{start}settings = {{ max = {max} }}\n"
            )
        };
        text.push_str(&match self.max_hops {
            Some(max) => hops(max, ""),
            None => hops(20, "# "),
        });
        text.push_str("\n# Time limit of the crawl.\n[limits]\n");
        text.push_str(&line("time", self.time_limit.as_ref(), "4w"));
        text
    }
}
