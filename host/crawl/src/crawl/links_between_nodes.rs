//! Links between the nodes that share a job. Links to other parts are in the frontier's outbox. They are sent to the nodes of those
//! parts over NATS JetStream. Links from other parts are received in the inbox.
//!
//! - A link is removed from NATS when the receiving frontier has it. If parts can be taken over, it is removed from NATS when a
//!   published snapshot of that frontier contains it. It is removed from the outbox after it was removed from NATS. So no link is
//!   lost if a process dies at any moment. A link may be received twice, which changes nothing.
//! - NATS may lose messages that it has stored (decision 73). Then all links in the outbox that may be lost are sent again, and the
//!   inbox is read again from its first message.
//! - The crawl ends when every node is at rest and no link waits (`host/cluster/src/rest.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_cluster::partition::Partition;
use opilio_cluster::{
    Availability, ClusterError, JobProgress, LinkAdmission, LinkDelivery, LinkReader, LinkSender,
    LinkSource, PlaceState,
};
use opilio_frontier::{Candidate, FrontierError};
use opilio_uri::Hop;
use tokio::sync::watch;

use crate::context::CrawlContext;
use crate::error::Halt;
use crate::membership::JobMembership;
use crate::stop::Stop;
use opilio_job::End;
use opilio_job::alerts::{AlertKind, Severity};

/// Entries of the outbox that are read at a time.
const OUTBOX_READ: usize = 1_000;

/// Interval at which the outbox is read.
const PERIOD: Duration = Duration::from_millis(250);

/// Interval at which the state of the other nodes is read, and pause after NATS has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Interval at which NATS is queried for the links that their parts have received.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time after an interruption in which the other nodes report again whether they are at rest, because NATS may have lost their
/// earlier reports.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// Name of the frontier's value about the links of a job that NATS has stored; the name of the job follows.
const STORED_LINKS: &str = "stored-links:";

/// Subject of the alert about links that NATS has lost.
const LOST_LINKS: &str = "lost-links";

/// Interval of the log line about nodes that the crawl waits for.
const NOTE_INTERVAL: Duration = Duration::from_secs(60);

impl CrawlContext {
    /// Returns `true` if a candidate belongs to this process's part. All nodes of a shared job have the same seeds, and each
    /// schedules only its own.
    pub(crate) fn has_own(&self, candidate: &Candidate) -> bool {
        self.membership
            .as_ref()
            .is_none_or(|membership| membership.subject_of(candidate) == membership.inbox())
    }
}

/// Sends and receives links, and detects the end of the whole crawl, until the crawl ends on this node. Then the process leaves the
/// job. If its part can be taken over, it leaves later: no other process may get the part before the last snapshot is published.
pub(super) async fn run(context: Arc<CrawlContext>, stop: Stop, mut ended: watch::Receiver<()>) {
    let Some(membership) = context.membership.clone() else {
        return;
    };
    tokio::select! {
        () = send_links(&context, &membership) => {}
        () = take_links(&context, &membership) => {}
        () = find_end(&context, &membership) => {}
        () = watch_session(&context, &membership) => {}
        () = until_taken_over(&context, &membership, &stop) => {}
        // Resolves when the sender is dropped.
        _ = ended.changed() => {}
    }
    if membership.part().can_move() {
        return;
    }
    match stop.reason() {
        Some(End::Terminated) => membership.leave_terminated().await,
        _ => membership.leave().await,
    }
}

/// Waits until another node has taken over the part of this process, and then ends the crawl.
async fn until_taken_over(context: &CrawlContext, membership: &JobMembership, stop: &Stop) {
    let mut failing = false;
    loop {
        match membership.confirm().await {
            Err(problem @ ClusterError::PartTaken { .. }) => {
                let why = opilio_stacks::chain(&problem);
                context.job_log.crawl("cluster", &why);
                stop.end(End::Halted(why));
                // Fetches that have not begun will never begin.
                stop.stop_without_waiting();
                return;
            }
            confirmed => {
                if confirmed.is_ok() && failing {
                    context.live.wake_dispatcher();
                }
                let what = "the node of this part is unknown";
                note_failure(what, &mut failing, confirmed.map_err(LinkError::from));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends the links in the outbox, without end.
async fn send_links(context: &CrawlContext, membership: &JobMembership) {
    let sender = LinkSender::new(membership.job());
    let own = membership.inbox();
    let began = Instant::now();
    let name = format!("{STORED_LINKS}{}", membership.part().job);
    let mut stored = stored_links(context, &name);
    let mut read = sender.resume(own, &stored);
    let mut removed = 0;
    let mut checked = began;
    let mut failing = false;
    loop {
        if !membership.has_part() {
            // It is unknown whether this process still has the part.
            tokio::time::sleep(PERIOD).await;
            continue;
        }
        let is_at_rest = membership.is_at_rest();
        let before = checked;
        let sent = async {
            read = collect(context, membership, &sender, own, read, began.elapsed())?;
            match is_at_rest {
                true => sender.send_all().await?,
                false => sender.send_due(began.elapsed()).await?,
            }
            // The other nodes may wait until this node is at rest.
            let interval = if is_at_rest { PAUSE } else { CHECK_INTERVAL };
            if checked.elapsed() >= interval {
                checked = Instant::now();
                sender.check().await?;
            }
            Ok::<(), LinkError>(())
        };
        let sent = sent.await;
        note_failure("links are not sent", &mut failing, sent);
        let losses = sender.take_losses();
        if losses.must_repeat {
            read = sender.repeat_after(own, read);
        }
        if losses.is_certain {
            raise_loss_alert(context);
        }
        membership.set_sent(sender.sent_through(own, read));
        if checked != before {
            keep_stored_links(context, &name, &mut stored, sender.stored_links(own, read));
        }
        let through = sender.received_through(own, read);
        if through > removed {
            match context.frontier().remove_sent(through) {
                Ok(through) => removed = through,
                Err(problem) => tracing::error!("{}", opilio_stacks::chain(&problem)),
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Returns which links an earlier process has sent, so that a start does not send the whole outbox again.
fn stored_links(context: &CrawlContext, name: &str) -> Vec<u8> {
    let stored = context.frontier().caller_value(name);
    stored.map_or_else(
        |problem| {
            tracing::error!("{}", opilio_stacks::chain(&problem));
            Vec::new()
        },
        Option::unwrap_or_default,
    )
}

/// Records the links that NATS has stored, in the same store as the outbox.
fn keep_stored_links(context: &CrawlContext, name: &str, known: &mut Vec<u8>, stored: Vec<u8>) {
    if *known == stored {
        return;
    }
    match context.frontier().put_caller_value(name, &stored) {
        Ok(()) => *known = stored,
        Err(problem) => tracing::error!("{}", opilio_stacks::chain(&problem)),
    }
}

/// Reads the outbox after an entry. Returns the last entry that waits for its message, or is sent.
fn collect(
    context: &CrawlContext,
    membership: &JobMembership,
    sender: &LinkSender,
    own: Partition,
    mut read: u64,
    now: Duration,
) -> Result<u64, LinkError> {
    loop {
        let entries = context.frontier().outbox(read, OUTBOX_READ)?;
        if entries.is_empty() {
            return Ok(read);
        }
        for entry in entries {
            let source = LinkSource {
                partition: own,
                entry: entry.number,
            };
            let owner = membership.subject_of(&entry.candidate);
            let link = entry.candidate.to_bytes()?;
            if sender.add(owner, link, source, now) == LinkAdmission::Full {
                return Ok(read);
            }
            read = entry.number;
        }
    }
}

/// Schedules the links that arrive, without end.
async fn take_links(context: &CrawlContext, membership: &JobMembership) {
    let connection = membership.job().cluster().connection();
    let mut failing = false;
    loop {
        let interruptions = connection.interruptions();
        let taken: Result<(), LinkError> = tokio::select! {
            taken = read_inbox(context, membership) => taken,
            // Messages may have been lost, so the inbox is read again from its first message.
            () = connection.reconnected(interruptions) => continue,
            () = membership.reread.notified() => continue,
        };
        note_failure("links are not taken", &mut failing, taken);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Schedules the links in the inbox from its first message on, and then those that arrive, until NATS fails.
async fn read_inbox(context: &CrawlContext, membership: &JobMembership) -> Result<(), LinkError> {
    let can_move = membership.part().can_move();
    let mut reader = LinkReader::open(membership.job(), membership.inbox()).await?;
    check_taken(context, membership).await?;
    check_records(membership).await?;
    loop {
        let delivery = reader.next().await?;
        let place = delivery.place;
        if can_move && place.sequence <= membership.taken().sequence {
            // Messages stay until a snapshot covers them. NATS may also have lost their removal.
            let published = membership.published();
            if published.is_some_and(|published| place.is_at_or_before(published.covered)) {
                reader.acknowledge(place).await?;
            }
            continue;
        }
        let candidates = candidates(&delivery)?;
        // Locked until the links are removed from NATS, so that the cluster does not count this node as at rest meanwhile.
        let mut known_rest = membership.known_rest.lock().await;
        membership.report_rest(&mut known_rest, false).await?;
        schedule(context, candidates).await?;
        membership.deliver(place);
        context.live.wake_dispatcher();
        if !can_move {
            reader.acknowledge(place).await?;
        }
    }
}

/// Checks that NATS has the last received message, and therefore all before it. Otherwise NATS may give their numbers to new
/// messages, so all messages in the inbox count as new.
async fn check_taken(
    context: &CrawlContext,
    membership: &JobMembership,
) -> Result<(), ClusterError> {
    let taken = membership.taken();
    if taken.sequence == 0 {
        return Ok(());
    }
    let state = membership.job().check_link(membership.inbox(), taken);
    match state.await? {
        PlaceState::Kept => {}
        PlaceState::Removed => membership.forget_taken(),
        PlaceState::Lost => {
            membership.forget_taken();
            raise_loss_alert(context);
        }
    }
    Ok(())
}

/// Checks that NATS has the records that this process has written about its part. Missing records are written again.
async fn check_records(membership: &JobMembership) -> Result<(), ClusterError> {
    *membership.known_rest.lock().await = None;
    let Some(published) = membership.published() else {
        return Ok(());
    };
    let record = membership.job().part(&membership.part().part).await?;
    let newest = record.and_then(|record| record.snapshot);
    if newest.is_none_or(|newest| newest.number < published.number) {
        membership.forget_published();
    }
    Ok(())
}

/// Raises the alert about links that NATS has lost.
fn raise_loss_alert(context: &CrawlContext) {
    context.raise(
        AlertKind::Nats,
        LOST_LINKS,
        Severity::Warning,
        "NATS has lost messages that it had acknowledged; the links in them are sent again, and no URI is missing; set sync_interval: always in nats.conf, or run the servers where they do not lose power together",
    );
}

/// Parses the links of a delivery. If a link cannot be parsed, all links stay in NATS, because another version of Opilio may be
/// able to read them.
fn candidates(delivery: &LinkDelivery) -> Result<Vec<Candidate>, LinkError> {
    let links = delivery.links.iter();
    let candidates = links.map(|link| {
        Candidate::from_bytes(link).map_err(|_| LinkError::Unreadable {
            node: delivery.node.clone(),
        })
    });
    candidates.collect()
}

/// Passes links to the frontier. They are on disk when this returns.
async fn schedule(context: &CrawlContext, candidates: Vec<Candidate>) -> Result<(), LinkError> {
    for candidate in &candidates {
        // A seed of another node redirects to a URI of this node.
        if candidate.seed && candidate.hop_path.last() == Some(Hop::Redirect) {
            let seed = candidate.source.as_deref().or(candidate.via.as_deref());
            let seed = seed.unwrap_or(candidate.uri.as_str());
            context.widen_scope(seed, &candidate.uri).await?;
        }
    }
    let mut frontier = context.frontier();
    frontier.schedule(candidates, Timestamp::now())?;
    frontier.persist()?;
    Ok(())
}

/// Detects the end of the crawl, without end: reports whether this node is at rest, and reads the reports of the other nodes.
async fn find_end(context: &CrawlContext, membership: &JobMembership) {
    let connection = membership.job().cluster().connection();
    let mut interruptions = connection.interruptions();
    let mut interrupted: Option<Instant> = None;
    let mut failing = false;
    let mut noted = Instant::now();
    loop {
        let progress = report_and_read_progress(context, membership).await;
        if progress.is_err() || connection.interruptions() != interruptions {
            interruptions = connection.interruptions();
            interrupted = Some(Instant::now());
        }
        let is_settled = interrupted.is_none_or(|at| at.elapsed() >= SETTLE_TIME);
        let waits_for = match &progress {
            Ok(Some(JobProgress::Finished)) if is_settled => {
                membership.finish();
                context.live.wake_dispatcher();
                None
            }
            Ok(Some(JobProgress::NodesAtWork(nodes))) => {
                Some(waiting_message(nodes, &membership.part().part))
            }
            Ok(Some(JobProgress::LinksWait(messages))) => Some(format!(
                "waits for nodes that have ended: {messages} messages with links have not been received; start the job on all nodes"
            )),
            Ok(None | Some(JobProgress::Finished)) | Err(_) => None,
        };
        if let Some(message) = waits_for.filter(|_| noted.elapsed() > NOTE_INTERVAL) {
            context.job_log.crawl("cluster", &message);
            noted = Instant::now();
        }
        let progress = progress.map(drop);
        note_failure("the state of the job is unknown", &mut failing, progress);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the message about the nodes that the crawl waits for. The node `own` has nothing to fetch.
fn waiting_message(nodes: &[String], own: &str) -> String {
    let others = nodes.iter().map(String::as_str);
    let others: Vec<&str> = others.filter(|node| *node != own).collect();
    match others.is_empty() {
        true => {
            "waits until other nodes have received the links of this node; start the job on all nodes"
                .to_owned()
        }
        false => format!("waits for nodes that still crawl: {}", others.join(", ")),
    }
}

/// Reports whether this node is at rest. If it is, or if only its links wait for other nodes, returns the progress of all nodes.
async fn report_and_read_progress(
    context: &CrawlContext,
    membership: &JobMembership,
) -> Result<Option<JobProgress>, LinkError> {
    let mut known_rest = membership.known_rest.lock().await;
    if !membership.has_part() {
        return Ok(None);
    }
    // At rest no URI is in process, so the outbox can only become shorter.
    let is_idle = membership.is_at_rest();
    let has_links = !context.frontier().outbox(0, 1)?.is_empty();
    let mut is_at_rest = is_idle && !has_links;
    if membership.part().can_move() {
        // The job may end with this report, and this machine may be lost. So all its captures must be in the store before.
        is_at_rest &= membership.is_published(context.frontier().changes());
    }
    membership.report_rest(&mut known_rest, is_at_rest).await?;
    drop(known_rest);
    // The log also reports links of this node that wait for other nodes.
    if !(is_at_rest || is_idle && has_links) {
        return Ok(None);
    }
    let progress = membership.job().progress(&membership.part().parts).await?;
    Ok(Some(progress).filter(|it| is_at_rest || *it != JobProgress::Finished))
}

/// Wakes the dispatcher when the state of the membership changes, without end.
async fn watch_session(context: &CrawlContext, membership: &JobMembership) {
    let mut status = membership.member.status();
    let mut known = status.borrow_and_update().availability;
    // The previous process may have left an alert.
    change_alert(context, known);
    context.clear(AlertKind::Nats, LOST_LINKS);
    while status.changed().await.is_ok() {
        let now = status.borrow_and_update().availability;
        if now == known {
            continue;
        }
        known = now;
        context.job_log.crawl("cluster", state_message(now));
        change_alert(context, now);
        context.live.wake_dispatcher();
    }
    std::future::pending().await
}

/// Raises or clears the alert about NATS.
fn change_alert(context: &CrawlContext, state: Availability) {
    let (severity, message) = match state {
        Availability::Outside => (
            Severity::Critical,
            "the session of this process has ended, and nothing is fetched; it joins again by itself unless another process has its part",
        ),
        Availability::Paused => (
            Severity::Critical,
            "NATS does not answer, and nothing is fetched: check nats-server and the network",
        ),
        Availability::Full => (
            Severity::Critical,
            "JetStream has no room, and nothing is fetched when the session of this process has ended: raise max_file_store of nats-server, or free disk",
        ),
        // The crawl continues for now.
        Availability::Riding => return,
        Availability::Working | Availability::Slow => {
            context.clear(AlertKind::Nats, "");
            return;
        }
    };
    context.raise(AlertKind::Nats, "", severity, message);
}

fn state_message(state: Availability) -> &'static str {
    match state {
        Availability::Outside => "not a member: nothing is fetched",
        Availability::Working => "NATS answers",
        Availability::Slow => "NATS answers slowly",
        Availability::Riding => "NATS does not answer; the crawl continues until its session ends",
        Availability::Paused => {
            "NATS does not answer, and the session has ended: nothing is fetched"
        }
        Availability::Full => {
            "JetStream has no room; nothing is fetched when the session has ended"
        }
    }
}

/// The reason why links cannot be exchanged now. The exchange is tried again.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    #[error(transparent)]
    Scope(#[from] Halt),
    #[error(
        "node {node} sent a link that this version of Opilio cannot read: run the same version on all nodes"
    )]
    Unreadable { node: String },
}

/// Logs a failure once, and its end.
fn note_failure(what: &str, failing: &mut bool, result: Result<(), LinkError>) {
    match result {
        Ok(()) if *failing => {
            tracing::info!("the cluster works again; before, {what}");
            *failing = false;
        }
        Ok(()) => {}
        Err(problem) if !*failing => {
            tracing::warn!("{what}: {}", opilio_stacks::chain(&problem));
            *failing = true;
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use opilio_cluster::MessagePlace;
    use opilio_frontier::Strategy;
    use opilio_uri::{HopPath, Uri};

    use super::*;

    #[test]
    fn the_message_lists_the_nodes_that_the_crawl_waits_for() {
        let message = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            waiting_message(&names, "a")
        };
        assert_eq!(
            message(&["a", "b", "c"]),
            "waits for nodes that still crawl: b, c"
        );
        assert!(message(&["a"]).starts_with("waits until other nodes have received"));
    }

    #[test]
    fn an_unreadable_link_is_an_error_and_is_not_skipped() {
        let uri = Uri::parse("http://www.example.org/").unwrap();
        let known = Candidate::new(uri, HopPath::new(), Strategy::Snapshot);
        let delivery = |links: &[&[u8]]| LinkDelivery {
            place: MessagePlace::default(),
            node: "b".to_owned(),
            links: links.iter().map(|link| link.to_vec()).collect(),
            waiting: 0,
        };
        let bytes = known.to_bytes().unwrap();
        assert_eq!(candidates(&delivery(&[bytes.as_slice()])).unwrap(), [known]);
        let of_later_version = [&[u8::MAX][..], &bytes[1..]].concat();
        let problem =
            candidates(&delivery(&[bytes.as_slice(), of_later_version.as_slice()])).unwrap_err();
        assert!(
            problem.to_string().starts_with("node b sent a link"),
            "{problem}"
        );
    }
}
