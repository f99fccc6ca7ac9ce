//! Links between the nodes that share a job. Links to other parts are in the frontier's outbox; they go to the nodes of those parts
//! over NATS JetStream, and theirs come here.
//!
//! - A link leaves NATS when the frontier that it leads to has it. Where parts can be taken over, it leaves NATS when a published
//!   snapshot of that frontier has it. It leaves the outbox when it has left NATS. Nothing is lost by a death at any moment; a link may
//!   come twice, which changes nothing.
//! - NATS may lose messages that it has stored (decision 73). Then the links in the outbox that it may have lost are sent again, and the
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

/// Pause between two looks at the outbox.
const PERIOD: Duration = Duration::from_millis(250);

/// Pause between two looks at the state of the other nodes, and after NATS has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Interval at which NATS is asked which links their owners have taken.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time after an interruption in which the other nodes say again whether they are at rest: NATS may have lost what they had said.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// Name of the frontier's value with the links of a job that NATS has stored; the name of the job follows.
const STORED_LINKS: &str = "stored-links:";

/// Subject of the alert about links that NATS has lost.
const LOST_LINKS: &str = "lost-links";

/// Interval of the note about nodes that the crawl waits for.
const NOTE_INTERVAL: Duration = Duration::from_secs(60);

impl CrawlContext {
    /// Returns `true` if this process crawls a candidate. All nodes of a shared job have the same seeds, so that each takes its
    /// own.
    pub(crate) fn has_own(&self, candidate: &Candidate) -> bool {
        self.membership
            .as_ref()
            .is_none_or(|membership| membership.subject_of(candidate) == membership.inbox())
    }
}

/// Sends and takes links, and finds the end of the crawl, until the crawl ends here. Then the process leaves the job. If its part can
/// be taken over, it leaves later: nobody may have the part before its last snapshot is published.
pub(super) async fn keep(context: Arc<CrawlContext>, stop: Stop, mut ended: watch::Receiver<()>) {
    let Some(membership) = context.membership.clone() else {
        return;
    };
    tokio::select! {
        () = send_links(&context, &membership) => {}
        () = take_links(&context, &membership) => {}
        () = find_end(&context, &membership) => {}
        () = wake(&context, &membership) => {}
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

/// Waits until another node has got the part of this process, and ends the crawl.
async fn until_taken_over(context: &CrawlContext, membership: &JobMembership, stop: &Stop) {
    let mut failing = false;
    loop {
        match membership.confirm().await {
            Err(problem @ ClusterError::PartTaken { .. }) => {
                let why = opilio_stacks::chain(&problem);
                context.job_log.crawl("cluster", &why);
                stop.end(End::Halted(why));
                // Fetches that have not begun never will.
                stop.cut();
                return;
            }
            confirmed => {
                if confirmed.is_ok() && failing {
                    context.live.nudge();
                }
                let what = "the node of this part is unknown";
                note_failure(what, &mut failing, confirmed.map_err(LinkError::from));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends the outbox, for ever.
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
            // It is not known who has the part.
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
            // The others may wait for this node at rest.
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
            tell_loss(context);
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

/// The links that an earlier process has sent: so a start does not send the whole outbox again.
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

/// Notes the links that NATS has stored, in the store that has the outbox.
fn keep_stored_links(context: &CrawlContext, name: &str, known: &mut Vec<u8>, stored: Vec<u8>) {
    if *known == stored {
        return;
    }
    match context.frontier().put_caller_value(name, &stored) {
        Ok(()) => *known = stored,
        Err(problem) => tracing::error!("{}", opilio_stacks::chain(&problem)),
    }
}

/// Reads the outbox behind an entry. Returns the last entry that waits for its message, or is sent.
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

/// Schedules the links that arrive, for ever.
async fn take_links(context: &CrawlContext, membership: &JobMembership) {
    let connection = membership.job().cluster().connection();
    let mut failing = false;
    loop {
        let interruptions = connection.interruptions();
        let taken: Result<(), LinkError> = tokio::select! {
            taken = read_inbox(context, membership) => taken,
            // Messages may have been lost: the inbox is read again from its first one.
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
            // Messages stay until a snapshot covers them. NATS may also have lost that they were removed.
            let published = membership.published();
            if published.is_some_and(|published| place.is_through(published.covered)) {
                reader.acknowledge(place).await?;
            }
            continue;
        }
        let candidates = candidates(&delivery)?;
        // Held until NATS has forgotten the links: the cluster must not take this node for one at rest meanwhile.
        let mut known_rest = membership.known_rest.lock().await;
        membership.tell(&mut known_rest, false).await?;
        schedule(context, candidates).await?;
        membership.deliver(place);
        context.live.nudge();
        if !can_move {
            reader.acknowledge(place).await?;
        }
    }
}

/// Checks that NATS has the last message that was taken, and so all before it. Otherwise NATS may give their numbers to new messages,
/// and those in the inbox are taken as new ones.
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
            tell_loss(context);
        }
    }
    Ok(())
}

/// Checks that NATS has what this process has written about its part. Otherwise it is written again.
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
fn tell_loss(context: &CrawlContext) {
    context.raise(
        AlertKind::Nats,
        LOST_LINKS,
        Severity::Warning,
        "NATS has lost messages that it had acknowledged; the links in them are sent again, and no URI is missing; set sync_interval: always in nats.conf, or run the servers where they do not lose power together",
    );
}

/// Reads the links of a delivery. If one cannot be read, all stay in NATS: another version of Opilio may read them.
fn candidates(delivery: &LinkDelivery) -> Result<Vec<Candidate>, LinkError> {
    let links = delivery.links.iter();
    let candidates = links.map(|link| {
        Candidate::from_bytes(link).map_err(|_| LinkError::Unreadable {
            node: delivery.node.clone(),
        })
    });
    candidates.collect()
}

/// Gives links to the frontier. They are on the disk when this returns.
async fn schedule(context: &CrawlContext, candidates: Vec<Candidate>) -> Result<(), LinkError> {
    for candidate in &candidates {
        // A seed of another node redirects here.
        if candidate.seed && candidate.hop_path.last() == Some(Hop::Redirect) {
            let seed = candidate.source.as_deref().or(candidate.via.as_deref());
            let seed = seed.unwrap_or(candidate.uri.as_str());
            context.seed_moved(seed, &candidate.uri).await?;
        }
    }
    let mut frontier = context.frontier();
    frontier.schedule(candidates, Timestamp::now())?;
    frontier.persist()?;
    Ok(())
}

/// Finds the end of the crawl, for ever: says whether this node is at rest, and asks for the others.
async fn find_end(context: &CrawlContext, membership: &JobMembership) {
    let connection = membership.job().cluster().connection();
    let mut interruptions = connection.interruptions();
    let mut interrupted: Option<Instant> = None;
    let mut failing = false;
    let mut noted = Instant::now();
    loop {
        let progress = look_around(context, membership).await;
        if progress.is_err() || connection.interruptions() != interruptions {
            interruptions = connection.interruptions();
            interrupted = Some(Instant::now());
        }
        let is_settled = interrupted.is_none_or(|at| at.elapsed() >= SETTLE_TIME);
        let waits_for = match &progress {
            Ok(Some(JobProgress::Finished)) if is_settled => {
                membership.finish();
                context.live.nudge();
                None
            }
            Ok(Some(JobProgress::NodesAtWork(nodes))) => {
                Some(words_of_waiting(nodes, &membership.part().part))
            }
            Ok(Some(JobProgress::LinksWait(messages))) => Some(format!(
                "waits for nodes that have ended: {messages} messages with links have not been taken; start the job on all nodes"
            )),
            Ok(None | Some(JobProgress::Finished)) | Err(_) => None,
        };
        if let Some(words) = waits_for.filter(|_| noted.elapsed() > NOTE_INTERVAL) {
            context.job_log.crawl("cluster", &words);
            noted = Instant::now();
        }
        let progress = progress.map(drop);
        note_failure("the state of the job is unknown", &mut failing, progress);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Message about the nodes that the crawl waits for. The node `own` has nothing to fetch.
fn words_of_waiting(nodes: &[String], own: &str) -> String {
    let others = nodes.iter().map(String::as_str);
    let others: Vec<&str> = others.filter(|node| *node != own).collect();
    match others.is_empty() {
        true => {
            "waits until other nodes have taken the links of this one; start the job on all nodes"
                .to_owned()
        }
        false => format!("waits for nodes at work: {}", others.join(", ")),
    }
}

/// Says whether this node is at rest. If it is, or if only its links wait for other nodes, returns the progress of all nodes.
async fn look_around(
    context: &CrawlContext,
    membership: &JobMembership,
) -> Result<Option<JobProgress>, LinkError> {
    let mut known_rest = membership.known_rest.lock().await;
    if !membership.has_part() {
        return Ok(None);
    }
    // At rest nothing is in process, so that the outbox only gets shorter.
    let is_idle = membership.is_at_rest();
    let has_links = !context.frontier().outbox(0, 1)?.is_empty();
    let mut is_at_rest = is_idle && !has_links;
    if membership.part().can_move() {
        // The job may end with this word, and this machine die: all that it captured must be in the store.
        is_at_rest &= membership.is_published(context.frontier().changes());
    }
    membership.tell(&mut known_rest, is_at_rest).await?;
    drop(known_rest);
    // An operator wants to know of links of this node that wait for others, too.
    if !(is_at_rest || is_idle && has_links) {
        return Ok(None);
    }
    let progress = membership.job().progress(&membership.part().parts).await?;
    Ok(Some(progress).filter(|it| is_at_rest || *it != JobProgress::Finished))
}

/// Wakes the dispatcher when the state of the membership changes, for ever.
async fn wake(context: &CrawlContext, membership: &JobMembership) {
    let mut status = membership.member.status();
    let mut known = status.borrow_and_update().availability;
    // The process before may have left one.
    change_alert(context, known);
    context.clear(AlertKind::Nats, LOST_LINKS);
    while status.changed().await.is_ok() {
        let now = status.borrow_and_update().availability;
        if now == known {
            continue;
        }
        known = now;
        context.job_log.crawl("cluster", state_words(now));
        change_alert(context, now);
        context.live.nudge();
    }
    std::future::pending().await
}

/// Raises or clears the alert about NATS.
fn change_alert(context: &CrawlContext, state: Availability) {
    let (severity, words) = match state {
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
    context.raise(AlertKind::Nats, "", severity, words);
}

fn state_words(state: Availability) -> &'static str {
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

/// The reason why links are not exchanged now. It is tried again.
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
    fn nodes_that_the_crawl_waits_for_are_named() {
        let words = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            words_of_waiting(&names, "a")
        };
        assert_eq!(words(&["a", "b", "c"]), "waits for nodes at work: b, c");
        assert!(words(&["a"]).starts_with("waits until other nodes have taken"));
    }

    #[test]
    fn a_link_that_cannot_be_read_is_an_error_and_is_not_left_out() {
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
