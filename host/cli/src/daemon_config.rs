//! The daemon's configuration, for commands other than `opilio serve`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use opilio_console::DaemonConfig;

/// The file that is read by default, if it exists.
const FILE: &str = "opilio.toml";

/// Flags that select the daemon of a command.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file of the daemon [default: opilio.toml, if present].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of jobs of the daemon [default: jobs].
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
}

impl ConfigArgs {
    /// Reads the daemon's configuration.
    pub(crate) fn load(&self) -> Result<DaemonConfig> {
        let config = config(self.config.as_deref())?;
        Ok(DaemonConfig {
            jobs: self.jobs.clone().unwrap_or(config.jobs),
            ..config
        })
    }
}

/// Returns the configuration of the file, or the defaults.
pub(crate) fn config(given: Option<&Path>) -> Result<DaemonConfig, opilio_console::ConfigError> {
    match file(given) {
        Some(file) => DaemonConfig::load(&file),
        None => Ok(DaemonConfig::default()),
    }
}

/// Returns the configuration file: the given one, or `opilio.toml` if it exists.
pub(crate) fn file(given: Option<&Path>) -> Option<PathBuf> {
    let usual = || Some(Path::new(FILE)).filter(|file| file.exists());
    given.or_else(usual).map(Path::to_owned)
}
