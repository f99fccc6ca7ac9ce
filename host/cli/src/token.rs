//! `opilio token`: who may use the daemon.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use opilio_console::{Config, Role, Tokens};
use opilio_profile::parse_duration;
use serde_json::json;

use crate::{exit, serve, terminal};

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print it, this once: only its hash is kept.
    New(NewArgs),
    /// List tokens: their public parts, whose they are, what they allow.
    List(ListArgs),
    /// Make a token good for nothing. Sessions that began with it end.
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct Where {
    /// The file that says what the daemon does [default: opilio.toml, where there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The daemon's folder of jobs [default: jobs].
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct NewArgs {
    /// Whose it is; in logs whoever uses it has this name.
    #[arg(value_name = "NAME")]
    name: String,
    /// What it allows.
    #[arg(long, value_enum, default_value_t = RoleArg::Operator)]
    role: RoleArg,
    /// For how long, such as 90d [default: until it is revoked].
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
    #[command(flatten)]
    at: Where,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    at: Where,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// The public part, as the list has it.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    at: Where,
}

/// What a token allows.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArg {
    /// Look.
    Viewer,
    /// Make, run and change jobs.
    Operator,
    /// Delete jobs, replace plugins, read the audit log.
    Admin,
}

/// Runs the command.
pub(crate) fn run(args: TokenArgs) -> Result<u8> {
    match args.command {
        TokenCommand::New(args) => {
            let until = args.expires.as_deref().map(until).transpose()?;
            if args.name.trim().is_empty() || args.name.chars().any(char::is_control) {
                bail!("{:?} is no name for logs", args.name);
            }
            let (file, mut tokens) = args.at.tokens()?;
            let role = match args.role {
                RoleArg::Viewer => Role::Viewer,
                RoleArg::Operator => Role::Operator,
                RoleArg::Admin => Role::Admin,
            };
            let token = tokens.make(&args.name, role, until);
            write(&tokens, &file)?;
            terminal::outln!("{token}");
        }
        TokenCommand::List(args) => {
            let (_, tokens) = args.at.tokens()?;
            for (id, token) in tokens.iter() {
                let line = json!({
                    "id": id, "user": token.user, "role": token.role, "made": token.made, "until": token.until,
                });
                match args.json {
                    true => terminal::outln!("{line}"),
                    false => terminal::outln!(
                        "{id}  {:<8}  {}  made {:.0}{}",
                        line["role"].as_str().unwrap_or_default(),
                        token.user,
                        token.made,
                        token
                            .until
                            .map(|until| format!(", until {until:.0}"))
                            .unwrap_or_default(),
                    ),
                }
            }
        }
        TokenCommand::Revoke(args) => {
            let (file, mut tokens) = args.at.tokens()?;
            if !tokens.revoke(&args.id) {
                bail!(
                    "there is no token {:?}; opilio token list shows them",
                    args.id
                );
            }
            write(&tokens, &file)?;
        }
    }
    Ok(exit::OK)
}

impl Where {
    fn tokens(&self) -> Result<(PathBuf, Tokens)> {
        let config = serve::config(self.config.as_deref())?;
        let config = Config {
            jobs: self.jobs.clone().unwrap_or(config.jobs),
            ..config
        };
        let file = config.token_file();
        let tokens =
            Tokens::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok((file, tokens))
    }
}

fn write(tokens: &Tokens, file: &Path) -> Result<()> {
    tokens
        .write(file)
        .with_context(|| format!("cannot write {}", file.display()))
}

fn until(text: &str) -> Result<Timestamp> {
    let duration = parse_duration(text)
        .ok()
        .and_then(|duration| SignedDuration::try_from(duration).ok())
        .and_then(|duration| Timestamp::now().checked_add(duration).ok());
    duration.with_context(|| format!("{text:?} is no duration, such as 90d"))
}
