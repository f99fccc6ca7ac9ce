//! `opilio node`: the nodes of a cluster. The commands connect to NATS themselves, with `[cluster]` of the daemon's configuration.
//! They work without a daemon too.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use indicatif::{BinaryBytes, HumanCount};
use opilio_cluster::{Cluster, ClusterConnection, ClusterError, MemberScope};
use opilio_console::{ListedNode, NodeState};
use opilio_control::{ClusterFile, ListedPart, PartState, listed_parts, total_figures};
use opilio_crawl::PartFigures;
use serde_json::json;

use crate::daemon_config::ConfigArgs;
use crate::{exit, terminal};

/// Difference of clocks above which it is shown. The cluster itself reports the same difference.
pub(crate) const CLOCK_SKEW_MAX_S: f64 = 2.0;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Debug, Subcommand)]
enum NodeCommand {
    /// List the nodes with their states and versions.
    List(ListArgs),
    /// Show a node.
    Show(ShowArgs),
    /// Drain a node: its daemon starts no crawls any more. Running crawls continue, except parts of shared crawls that other nodes
    /// take over (take-over-after in [cluster]).
    Drain(DrainArgs),
    /// List the parts of a shared crawl with their nodes, states, snapshots and inboxes.
    Parts(PartsArgs),
    /// Remove a node from the list that has left or is lost for good.
    ///
    /// A live node is not removed. If no other node has noticed that the node is gone, the command waits for the node's time to
    /// live.
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ConfigArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Name of the node.
    #[arg(value_name = "NODE")]
    node: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ConfigArgs,
}

#[derive(Debug, Args)]
struct DrainArgs {
    /// Name of the node.
    #[arg(value_name = "NODE")]
    node: String,
    /// End the draining: the daemon starts crawls again.
    #[arg(long)]
    undo: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ConfigArgs,
}

#[derive(Debug, Args)]
struct PartsArgs {
    /// Name of the crawl in the cluster.
    #[arg(value_name = "NAME")]
    job: String,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ConfigArgs,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// Name of the node.
    #[arg(value_name = "NODE")]
    node: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ConfigArgs,
}

/// Runs the command.
pub(crate) async fn run(args: NodeArgs) -> Result<u8> {
    match args.command {
        NodeCommand::List(args) => {
            let nodes = ListedNode::all(&cluster(&args.at).await?).await?;
            list(&nodes, args.json)?;
        }
        NodeCommand::Show(args) => {
            let node = ListedNode::one(&cluster(&args.at).await?, &args.node).await?;
            match args.json {
                true => terminal::outln!("{}", serde_json::to_string(&node)?),
                false => show(&node),
            }
        }
        NodeCommand::Drain(args) => {
            let (cluster, node) = (cluster(&args.at).await?, &args.node);
            let (answer, words) = match args.undo {
                true => {
                    cluster.undrain(node).await?;
                    let words = format!("node {node:?} is no longer drained");
                    ("undrained", words)
                }
                false => {
                    cluster.drain(node).await?;
                    let words = format!("node {node:?} is drained: its daemon starts no crawls");
                    ("drained", words)
                }
            };
            let object = json!({ "answer": answer, "name": node, "is_drained": !args.undo });
            terminal::print_result(args.json, &object, &words);
        }
        NodeCommand::Parts(args) => {
            let connection = ClusterConnection::open(file(&args.at)?.settings()?).await?;
            let parts = listed_parts(&connection, &args.job).await?;
            list_parts(&parts, args.json)?;
        }
        NodeCommand::Remove(args) => {
            cluster(&args.at).await?.remove(&args.node).await?;
            if args.json {
                terminal::outln!("{}", json!({ "answer": "removed", "name": args.node }));
            }
        }
    }
    Ok(exit::OK)
}

/// Finds the cluster of the daemon's configuration; `None` if no node has ever joined. Creates nothing.
pub(crate) async fn find(file: &ClusterFile) -> Result<Option<Cluster>, ClusterError> {
    let connection = ClusterConnection::open(file.settings()?).await?;
    Cluster::find(connection, &MemberScope::Nodes).await
}

fn file(at: &ConfigArgs) -> Result<ClusterFile> {
    at.load()?.cluster.context(
        "the daemon's configuration has no [cluster]: name the file with --config, or add the section",
    )
}

async fn cluster(at: &ConfigArgs) -> Result<Cluster> {
    let file = file(at)?;
    find(&file).await?.with_context(|| {
        format!(
            "no node has joined a cluster at {}: start `opilio serve` with this configuration",
            file.servers.join(", ")
        )
    })
}

#[expect(
    clippy::print_stderr,
    reason = "a note for the person at the terminal, beside the list"
)]
fn list(nodes: &[ListedNode], as_json: bool) -> Result<()> {
    if as_json {
        for node in nodes {
            terminal::outln!("{}", serde_json::to_string(node)?);
        }
        return Ok(());
    }
    let width = nodes.iter().map(|node| node.name.len()).max().unwrap_or(0);
    for node in nodes {
        let notes = notes(node);
        terminal::outln!(
            "{:<width$}  {:<4}  {}  renewed {:.0}{}{}",
            node.name,
            node.state.name(),
            node.version,
            node.renewed,
            if notes.is_empty() { "" } else { "  " },
            notes.join(", ")
        );
    }
    let live = nodes.iter().filter(|node| node.state == NodeState::Live);
    let versions: BTreeSet<&str> = live.map(|node| node.version.as_str()).collect();
    if versions.len() > 1 {
        eprintln!("opilio: the nodes have different versions: run the same version on all of them");
    }
    Ok(())
}

#[expect(
    clippy::print_stderr,
    reason = "notes for the person at the terminal, beside the list"
)]
fn list_parts(parts: &[ListedPart], as_json: bool) -> Result<()> {
    if as_json {
        for part in parts {
            terminal::outln!("{}", serde_json::to_string(part)?);
        }
        return Ok(());
    }
    let width = |text: fn(&ListedPart) -> usize| parts.iter().map(text).max().unwrap_or(0);
    let names = width(|part| part.name.len());
    let nodes = width(|part| part.node.as_ref().map_or(1, String::len));
    let states = width(|part| state_words(part).len());
    for part in parts {
        let snapshot = match &part.snapshot {
            Some(snapshot) => format!("snapshot {:.0} with {} URIs", snapshot.made, snapshot.uris),
            None => "no snapshot".to_owned(),
        };
        terminal::outln!(
            "{:<names$}  {:<nodes$}  {:<states$}  {}  {snapshot}  {} messages in the inbox{}{}",
            part.name,
            part.node.as_deref().unwrap_or("-"),
            state_words(part),
            figures_words(&part.figures.unwrap_or_default()),
            part.inbox,
            match part.commands {
                0 => String::new(),
                behind => format!("  {behind} commands behind"),
            },
            takeover_words(part)
        );
    }
    terminal::outln!("all parts: {}", figures_words(&total_figures(parts)));
    for part in parts {
        if let Some(remedy) = &part.remedy {
            let note = format!("no process works on part {:?}: {remedy}", part.name);
            eprintln!("opilio: {}", terminal::line(&note));
        }
    }
    Ok(())
}

/// Describes the state of a part. A part that is being taken over is not being crawled yet, even if the session of the new process
/// is live.
fn state_words(part: &ListedPart) -> String {
    let is_paused = part.figures.is_some_and(|figures| figures.is_paused);
    match (&part.takeover, part.state) {
        (Some(takeover), _) => format!("being taken over by {}", terminal::line(&takeover.node)),
        (None, PartState::Running) if part.is_at_rest => "at rest".to_owned(),
        (None, PartState::Running) if is_paused => "paused".to_owned(),
        (None, state) => state.name().to_owned(),
    }
}

/// Describes the attempts to take a part over, after the other columns; empty without attempts.
fn takeover_words(part: &ListedPart) -> String {
    let attempt = part.takeover.as_ref();
    let attempt = attempt.map(|it| format!("  takeover since {:.0}", it.since));
    let failed = part.failed_takeover.as_ref().map(|failed| {
        let (node, at, problem) = (&failed.node, failed.at, &failed.problem);
        terminal::line(&format!(
            "  takeover by {node} failed at {at:.0}: {problem}"
        ))
    });
    attempt.into_iter().chain(failed).collect()
}

fn figures_words(figures: &PartFigures) -> String {
    format!(
        "{} URIs queued, {} fetched, {}",
        HumanCount(figures.queued),
        HumanCount(figures.fetched),
        BinaryBytes(figures.bytes)
    )
}

fn notes(node: &ListedNode) -> Vec<String> {
    let leader = node.is_leader.then(|| "leader".to_owned());
    let drained = node.is_drained.then(|| "drained".to_owned());
    let is_skewed = node.clock_skew_s.abs() > CLOCK_SKEW_MAX_S;
    let skew = is_skewed.then(|| format!("clock off by {:.0} ms", node.clock_skew_s * 1000.0));
    [leader, drained, skew].into_iter().flatten().collect()
}

fn show(node: &ListedNode) {
    let yes = |is_so: bool| if is_so { "yes" } else { "no" };
    terminal::outln!("name      {}", node.name);
    terminal::outln!("state     {}", node.state.name());
    terminal::outln!("version   {}", node.version);
    terminal::outln!("leader    {}", yes(node.is_leader));
    terminal::outln!("drained   {}", yes(node.is_drained));
    terminal::outln!("joined    {:.0}", node.since);
    terminal::outln!("renewed   {:.0}", node.renewed);
    terminal::outln!("clock     {:+.0} ms", node.clock_skew_s * 1000.0);
}

#[cfg(test)]
mod tests {
    use opilio_control::{FailedTakeover, PartTakeover};

    use super::*;

    #[test]
    fn a_takeover_is_shown_with_its_node_and_the_last_failure() {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let mut part = ListedPart {
            name: "b".to_owned(),
            node: Some("b".to_owned()),
            state: PartState::Gone,
            is_at_rest: false,
            snapshot: None,
            inbox: 0,
            commands: 0,
            epoch: 1,
            since: None,
            figures: None,
            takeover: None,
            remedy: None,
            failed_takeover: Some(FailedTakeover {
                node: "c".to_owned(),
                at,
                problem: "the disk\nis full".to_owned(),
            }),
        };
        let failed = "  takeover by c failed at 1970-01-01T00:00:00Z: the disk is full";
        assert_eq!(state_words(&part), "gone");
        assert_eq!(takeover_words(&part), failed);
        // Its process has joined the crawl.
        part.state = PartState::Running;
        part.takeover = Some(PartTakeover {
            node: "d".to_owned(),
            since: at,
        });
        assert_eq!(state_words(&part), "being taken over by d");
        let since = "  takeover since 1970-01-01T00:00:00Z";
        assert_eq!(takeover_words(&part), format!("{since}{failed}"));
        (part.takeover, part.failed_takeover) = (None, None);
        assert_eq!(state_words(&part), "running");
        assert_eq!(takeover_words(&part), "");
    }
}
