//! `opilio serve`: the daemon.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_console::{Console, ConsoleError, DaemonConfig};
use tokio::sync::oneshot;

use crate::crawl::component_cache;
use crate::daemon_config::config;
use crate::exit;
use crate::hangup::hangup;
use crate::telemetry::Telemetry;
use crate::terminal;

/// The command line. Its values override those of the configuration file.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Configuration file of the daemon [default: opilio.toml, if present].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of jobs [default: jobs].
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8470].
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Accept requests without a token. Allowed only on loopback; every account of this machine then has full access.
    #[arg(long)]
    no_auth: bool,
    /// Stop the crawls when the daemon ends, and resume them when a daemon starts again. For containers, where all processes
    /// end together. A second signal ends the daemon without waiting for the crawls.
    #[arg(long)]
    end_crawls: bool,
    /// Print the description of the API (OpenAPI 3.1) and exit.
    #[arg(long)]
    openapi: bool,
}

/// Runs the command.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) async fn run(args: ServeArgs, telemetry: &Telemetry) -> Result<u8> {
    if args.openapi {
        terminal::out!("{}", opilio_console::document());
        return Ok(exit::OK);
    }
    let config = match config(args.config.as_deref()) {
        Ok(config) => DaemonConfig {
            jobs: args.jobs.unwrap_or(config.jobs),
            listen: args.listen.unwrap_or(config.listen),
            authentication: config.authentication && !args.no_auth,
            end_crawls: config.end_crawls || args.end_crawls,
            ..config
        },
        Err(problem) => {
            eprintln!("opilio: {:#}", anyhow::Error::new(problem));
            return Ok(exit::USAGE);
        }
    };
    telemetry.trace(&config.telemetry.settings(), &[])?;
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let scheme = match config.tls {
        Some(_) => "https",
        None => "http",
    };
    let proxy = config.hosts.first().filter(|_| config.tls_proxy).cloned();
    let console = match Console::open(config, program, component_cache()).await {
        Ok(console) => console,
        Err(
            problem @ (ConsoleError::Config(_) | ConsoleError::NoTokens | ConsoleError::Tls(_)),
        ) => {
            eprintln!("opilio: {problem}");
            return Ok(exit::USAGE);
        }
        Err(problem) => return Err(problem.into()),
    };
    // The daemon also runs if standard output is closed.
    let address = console.address()?;
    let _ = writeln!(io::stdout(), "{scheme}://{address}/");
    // Users cannot sign in at the address of the listener, which has no TLS.
    if let Some(host) = proxy {
        let _ = writeln!(
            io::stdout(),
            "for people, behind the proxy: https://{host}/"
        );
    }
    let (closing, closed) = oneshot::channel();
    let running = console.run(async {
        ended().await;
        // Received as long as the daemon runs.
        let _ = closing.send(());
    });
    let twice_ended = async {
        match closed.await {
            Ok(()) => ended().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        ran = running => ran.context("the daemon failed")?,
        () = twice_ended => tracing::warn!("the daemon exits without waiting for the crawls to stop"),
    }
    Ok(exit::OK)
}

/// Waits for a signal that ends the daemon.
async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = tokio::signal::ctrl_c() => {}
                    _ = terminate.recv() => {}
                    _ = hangup() => {}
                }
                return;
            }
            Err(problem) => tracing::warn!("cannot handle SIGTERM: {problem}"),
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
