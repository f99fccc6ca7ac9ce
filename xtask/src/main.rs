//! `cargo xtask …`: what cargo alone cannot do, one file per command.

use anyhow::Result;
use clap::Parser;

mod plugins;

/// Tasks of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Build and check the plugins that ship.
    Plugins(plugins::Options),
}

fn main() -> Result<()> {
    match Task::parse() {
        Task::Plugins(options) => plugins::run(&options),
    }
}
