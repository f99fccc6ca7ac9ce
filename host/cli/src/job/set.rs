//! `opilio job settings`, `set`, `history`, `seeds`, `explain`: what a job goes by, and changes of it.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_crawl::control::{Answer, Command};
use opilio_profile::MatchFile;

use super::Asked;
use super::ask::{ask, ask_choosing};

/// Bytes of seeds that are sent at once; the job's socket takes no longer requests.
const SEEDS_AT_ONCE: usize = 256 * 1024;

#[derive(Debug, Args)]
pub(super) struct SettingsArgs {
    #[command(flatten)]
    asked: Asked,
    /// Those whose names begin with this alone, such as politeness.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Those too that few ever change.
    #[arg(long)]
    expert: bool,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    #[command(flatten)]
    asked: Asked,
    /// What is to be set, such as politeness.min-delay=4s; a value that is no TOML is a text.
    #[arg(value_name = "KEY=VALUE", required = true)]
    set: Vec<String>,
    /// Only for URIs that begin with this SURT prefix; this and what follows may be given often.
    #[arg(long, value_name = "PREFIX")]
    surt: Vec<String>,
    /// Only for this host.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Only for this domain and all below it.
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
    /// Only for URIs in which this is found.
    #[arg(long, value_name = "REGEX")]
    regex: Option<String>,
    /// Only for this port.
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Only for this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Vec<String>,
    /// Only for what was found from this seed.
    #[arg(long, value_name = "URI")]
    source: Vec<String>,
    /// Only for responses of this media type.
    #[arg(long, value_name = "TYPE")]
    media_type: Vec<String>,
    /// Only at this time of day, such as 22:00-06:00.
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Say what would come of it, and change nothing.
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    #[command(flatten)]
    asked: Asked,
    /// From the change behind this number on.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// So many at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
pub(super) struct SeedsArgs {
    #[command(flatten)]
    asked: Asked,
    /// Add this seed, or with a + a SURT prefix; may be given often.
    #[arg(long, value_name = "URL")]
    add: Vec<String>,
    /// Add the seeds of this file, one a line.
    #[arg(long, value_name = "FILE")]
    add_file: Vec<PathBuf>,
    /// From the one behind this seed on.
    #[arg(long, value_name = "URL", conflicts_with_all = ["add", "add_file"])]
    after: Option<String>,
    /// So many at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    asked: Asked,
    /// A URI, as people write seeds.
    #[arg(value_name = "URI")]
    uri: String,
    /// It is found on this page.
    #[arg(long, value_name = "URI")]
    via: Option<String>,
    /// By these hops from the seed, such as LLE.
    #[arg(long, value_name = "PATH")]
    hops: Option<String>,
    /// It was found from this seed.
    #[arg(long, value_name = "URI")]
    source: Option<String>,
    /// Its response has this media type.
    #[arg(long, value_name = "TYPE")]
    media_type: Option<String>,
    /// At this time, such as 2026-07-01T23:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    at: Option<jiff::Timestamp>,
    /// Those settings too that few ever change.
    #[arg(long)]
    expert: bool,
}

pub(super) fn settings(args: SettingsArgs) -> Result<u8> {
    let choice = super::show::Choice {
        name: args.name.unwrap_or_default(),
        expert: args.expert,
    };
    ask_choosing(&args.asked, Command::Settings, |answer| match answer {
        Answer::Settings { settings } => {
            let settings = choice.of(settings)?;
            Ok(Answer::Settings { settings })
        }
        other => Ok(other),
    })
}

pub(super) fn set(args: SetArgs) -> Result<u8> {
    let matching = MatchFile {
        surt: args.surt,
        host: args.host,
        domain: args.domain,
        regex: args.regex,
        port: args.port,
        queue: args.queue,
        source: args.source,
        media_type: args.media_type,
        time: args.time,
    };
    let command = Command::Set {
        set: args.set,
        matching: Some(matching).filter(|matching| *matching != MatchFile::default()),
        only_check: args.check,
    };
    ask(&args.asked, command)
}

pub(super) fn history(args: HistoryArgs) -> Result<u8> {
    let HistoryArgs {
        asked,
        after,
        limit,
    } = args;
    ask(&asked, Command::History { after, limit })
}

pub(super) fn seeds(args: SeedsArgs) -> Result<u8> {
    let mut lines = args.add;
    for file in &args.add_file {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        lines.extend(text.lines().map(str::to_owned));
    }
    if lines.is_empty() {
        let (after, limit) = (args.after, args.limit);
        return ask(&args.asked, Command::Seeds { after, limit });
    }
    let mut code = crate::exit::OK;
    let mut rest = lines.as_slice();
    while !rest.is_empty() && code == crate::exit::OK {
        let mut bytes = 0;
        let most = rest
            .iter()
            .take_while(|line| {
                bytes += line.len();
                bytes <= SEEDS_AT_ONCE
            })
            .count()
            .max(1);
        let (part, later) = rest.split_at(most);
        rest = later;
        let seeds = part.to_vec();
        code = ask(&args.asked, Command::AddSeeds { seeds })?;
    }
    Ok(code)
}

pub(super) fn explain(args: ExplainArgs) -> Result<u8> {
    let command = Command::Explain {
        uri: args.uri,
        via: args.via,
        hops: args.hops,
        source: args.source,
        media_type: args.media_type,
        at: args.at,
    };
    ask_choosing(&args.asked, command, |mut answer| {
        if let Answer::Explained(explained) = &mut answer
            && !args.expert
        {
            explained.leave_out_expert();
        }
        Ok(answer)
    })
}
