//! `opilio job hosts`: hosts with documents, bytes, errors and freshness.

use anyhow::Result;
use clap::Args;
use opilio_control::{Command, HostSelection, HostSort};

use super::send::send;
use super::target::JobTarget;
use crate::named_values::one_of;

/// The command line.
#[derive(Debug, Args)]
pub(super) struct HostsArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Order of the list. All orders except by name begin with the largest.
    #[arg(long, value_name = "ORDER", default_value = "bytes", value_parser = one_of(HostSort::ALL.map(|one| (one, one.name()))))]
    sort: HostSort,
    /// Reverse the order.
    #[arg(long)]
    reverse: bool,
    /// List only hosts whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// List only hosts with error responses or failed visits.
    #[arg(long)]
    errors: bool,
    /// Start after this cursor, which the previous page of the list printed.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Maximum number of hosts to list.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u64,
}

/// Runs the command.
pub(super) fn run(args: HostsArgs) -> Result<u8> {
    let command = Command::Hosts {
        which: HostSelection {
            sort: args.sort,
            reverse: args.reverse,
            search: args.search,
            with_errors: args.errors,
        },
        after: args.after,
        limit: args.limit,
    };
    send(&args.target, command)
}
