//! `opilio token`: the users of the daemon and their tokens.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use opilio_console::{Role, Tokens};
use opilio_profile::parse_duration;
use serde_json::json;

use crate::daemon_config::ConfigArgs;
use crate::named_values::one_of;
use crate::usage_error::UsageError;
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a token and print it. It is printed only once: the daemon stores only its hash.
    New(NewArgs),
    /// List tokens with their ids, users and roles.
    List(ListArgs),
    /// Revoke a token. Sessions that were opened with the token end.
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct NewArgs {
    /// User of the token; logs name this user.
    #[arg(value_name = "NAME")]
    name: String,
    /// Role of the token: a viewer views jobs; an operator also creates, runs and changes jobs; an admin also deletes jobs,
    /// replaces plugins and reads the audit log.
    #[arg(long, default_value = "operator", value_parser = one_of(Role::NAMED))]
    role: Role,
    /// Lifetime of the token, such as 90d [default: until it is revoked].
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    at: ConfigArgs,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// Id of the token, as shown by `opilio token list`.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    at: ConfigArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: TokenArgs) -> Result<u8> {
    match args.command {
        TokenCommand::New(args) => {
            let until = args.expires.as_deref().map(until).transpose()?;
            if args.name.trim().is_empty() || args.name.chars().any(char::is_control) {
                let problem = format!(
                    "invalid name {:?}: it is empty or contains control characters",
                    args.name
                );
                return Err(UsageError::new(problem).into());
            }
            let (file, mut tokens) = tokens(&args.at)?;
            let token = tokens.make(&args.name, args.role, until);
            write(&tokens, &file)?;
            let object = json!({
                "answer": "created", "token": token, "user": args.name, "role": args.role, "until": until,
            });
            terminal::print_result(args.json, &object, &token);
        }
        TokenCommand::List(args) => {
            let (_, tokens) = tokens(&args.at)?;
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
            let (file, mut tokens) = tokens(&args.at)?;
            if !tokens.revoke(&args.id) {
                bail!(
                    "token {:?} not found; opilio token list shows all tokens",
                    args.id
                );
            }
            write(&tokens, &file)?;
            if args.json {
                terminal::outln!("{}", json!({ "answer": "revoked", "id": args.id }));
            }
        }
    }
    Ok(exit::OK)
}

fn tokens(at: &ConfigArgs) -> Result<(PathBuf, Tokens)> {
    let file = at.load()?.token_file();
    let tokens = Tokens::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok((file, tokens))
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
    duration.ok_or_else(|| {
        let problem = format!("invalid duration {text:?}; write a number with a unit, such as 90d");
        UsageError::new(problem).into()
    })
}
