//! `opilio job settings`, `set`, `unset`, `overrides`, `history`, `seeds`, `explain`: the settings and seeds of a job, and changes to them.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_control::{Command, CommandResponse, OverrideChange};
use opilio_profile::MatchFile;

use super::send::{send, send_choosing};
use super::target::JobTarget;
use crate::usage_error::UsageError;

/// Bytes of seeds that are sent in one request, within the limit of the job's socket.
const SEEDS_AT_ONCE: usize = 256 * 1024;

#[derive(Debug, Args)]
pub(super) struct SettingsArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Show only settings whose names begin with this text, such as politeness.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Show rarely changed settings, too.
    #[arg(long)]
    expert: bool,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Setting and its value, such as politeness.min-delay=4s; a value that is not TOML is taken as text.
    #[arg(value_name = "KEY=VALUE", required_unless_present = "number")]
    set: Vec<String>,
    /// Change the live override with this number: set these settings, and replace its conditions if any are given.
    #[arg(id = "number", long = "override", value_name = "NUMBER")]
    id: Option<u64>,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    how: ChangeArgs,
}

/// Conditions of an override.
#[derive(Debug, Args)]
struct MatchArgs {
    /// Apply only to URIs with this SURT prefix; may be repeated.
    #[arg(long, value_name = "PREFIX")]
    surt: Vec<String>,
    /// Apply only to this host; may be repeated.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Apply only to this domain and its subdomains; may be repeated.
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
    /// Apply only to URIs that contain a match of this regular expression.
    #[arg(long, value_name = "REGEX")]
    regex: Option<String>,
    /// Apply only to this port; may be repeated.
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Apply only to this queue; may be repeated.
    #[arg(long, value_name = "QUEUE")]
    queue: Vec<String>,
    /// Apply only to URIs found from this seed; may be repeated.
    #[arg(long, value_name = "URI")]
    source: Vec<String>,
    /// Apply only to responses of this media type; may be repeated.
    #[arg(long, value_name = "TYPE")]
    media_type: Vec<String>,
    /// Apply only at this time of day, such as 22:00-06:00.
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
}

impl MatchArgs {
    fn conditions(self) -> Option<MatchFile> {
        let matching = MatchFile {
            surt: self.surt,
            host: self.host,
            domain: self.domain,
            regex: self.regex,
            port: self.port,
            queue: self.queue,
            source: self.source,
            media_type: self.media_type,
            time: self.time,
        };
        Some(matching).filter(|matching| *matching != MatchFile::default())
    }
}

/// Options of every change of settings.
#[derive(Debug, Args)]
struct ChangeArgs {
    /// Reason for the change, for the history of the job.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Show the effect of the change without making it; for overrides, also the known URIs that it touches.
    #[arg(long, visible_alias = "dry-run")]
    check: bool,
}

#[derive(Debug, Args)]
pub(super) struct UnsetArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Number of the live override.
    #[arg(long = "override", value_name = "NUMBER")]
    id: u64,
    /// Settings or tables to remove from the override, such as politeness.min-delay [default: the override itself].
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    #[command(flatten)]
    how: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct OverridesArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Move the live override with this number; requires --before or --last.
    #[arg(
        id = "number",
        long = "move",
        value_name = "NUMBER",
        requires = "place"
    )]
    id: Option<u64>,
    /// Place it before the live override with this number.
    #[arg(long, value_name = "NUMBER", group = "place", requires = "number")]
    before: Option<u64>,
    /// Place it last, where it wins over all other overrides.
    #[arg(long, group = "place", requires = "number")]
    last: bool,
    #[command(flatten)]
    how: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Start after the change with this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// Maximum number of changes to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
pub(super) struct SeedsArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Add a seed, or with a leading + a SURT prefix; may be repeated.
    #[arg(long, value_name = "URL")]
    add: Vec<String>,
    /// Add the seeds of a file, one per line; may be repeated.
    #[arg(long, value_name = "FILE")]
    add_file: Vec<PathBuf>,
    /// Start after this seed.
    #[arg(long, value_name = "URL", conflicts_with_all = ["add", "add_file"])]
    after: Option<String>,
    /// Maximum number of seeds to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    target: JobTarget,
    /// URI; the scheme may be missing: example.org means http://example.org.
    #[arg(value_name = "URI")]
    uri: String,
    #[command(flatten)]
    found: FoundArgs,
}

/// Circumstances in which a URI is explained.
#[derive(Debug, Args)]
pub(crate) struct FoundArgs {
    /// Page on which the URI was found.
    #[arg(long, value_name = "URI")]
    pub(crate) via: Option<String>,
    /// Hop path from the seed to the URI, such as LLE.
    #[arg(long, value_name = "PATH")]
    pub(crate) hops: Option<String>,
    /// Seed from which the URI was found.
    #[arg(long, value_name = "URI")]
    pub(crate) source: Option<String>,
    /// Media type of the response.
    #[arg(long, value_name = "TYPE")]
    pub(crate) media_type: Option<String>,
    /// Time to evaluate settings for, such as 2026-07-01T23:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<jiff::Timestamp>,
    /// Show rarely changed settings, too.
    #[arg(long)]
    pub(crate) expert: bool,
}

pub(super) fn settings(args: SettingsArgs) -> Result<u8> {
    let choice = super::show::Choice {
        name: args.name.unwrap_or_default(),
        expert: args.expert,
    };
    send_choosing(&args.target, Command::Settings, |answer| match answer {
        CommandResponse::Settings { settings } => {
            let settings = choice.of(settings)?;
            Ok(CommandResponse::Settings { settings })
        }
        other => Ok(other),
    })
}

pub(super) fn set(args: SetArgs) -> Result<u8> {
    let SetArgs {
        target,
        set,
        id,
        matching,
        how,
    } = args;
    let matching = matching.conditions();
    let command = match id {
        None => Command::Set {
            set,
            matching,
            only_check: how.check,
            reason: how.reason,
        },
        Some(id) => how.change(
            id,
            OverrideChange::Edit {
                set,
                unset: Vec::new(),
                matching: matching.map(Box::new),
            },
        ),
    };
    send(&target, command)
}

pub(super) fn unset(args: UnsetArgs) -> Result<u8> {
    let change = match args.keys.is_empty() {
        true => OverrideChange::Remove,
        false => OverrideChange::Edit {
            set: Vec::new(),
            unset: args.keys,
            matching: None,
        },
    };
    send(&args.target, args.how.change(args.id, change))
}

pub(super) fn overrides(args: OverridesArgs) -> Result<u8> {
    let command = match args.id {
        None => Command::Overrides,
        // With --last there is no --before.
        Some(id) => args.how.change(
            id,
            OverrideChange::Move {
                before: args.before,
            },
        ),
    };
    send(&args.target, command)
}

impl ChangeArgs {
    fn change(self, id: u64, change: OverrideChange) -> Command {
        Command::ChangeOverride {
            id,
            change,
            reason: self.reason,
            only_check: self.check,
        }
    }
}

pub(super) fn history(args: HistoryArgs) -> Result<u8> {
    let HistoryArgs {
        target,
        after,
        limit,
    } = args;
    send(&target, Command::History { after, limit })
}

pub(super) fn seeds(args: SeedsArgs) -> Result<u8> {
    let mut lines = args.add;
    for file in &args.add_file {
        let text = std::fs::read_to_string(file).with_context(|| UsageError::unreadable(file))?;
        lines.extend(text.lines().map(str::to_owned));
    }
    if lines.is_empty() {
        let (after, limit) = (args.after, args.limit);
        return send(&args.target, Command::Seeds { after, limit });
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
        code = send(&args.target, Command::AddSeeds { seeds })?;
    }
    Ok(code)
}

pub(super) fn explain(args: ExplainArgs) -> Result<u8> {
    let found = args.found;
    let command = Command::Explain {
        uri: args.uri,
        via: found.via,
        hops: found.hops,
        source: found.source,
        media_type: found.media_type,
        at: found.at,
    };
    send_choosing(&args.target, command, |mut answer| {
        if let CommandResponse::Explained(explained) = &mut answer
            && !found.expert
        {
            explained.leave_out_expert();
        }
        Ok(answer)
    })
}
