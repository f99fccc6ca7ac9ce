//! After the fetch: the content is read, links are judged, the capture is stored, and the next visit is decided.

use std::io;
use std::sync::Arc;

use opilio_fetch::Exchange;
use opilio_frontier::{ContentState, Outcome, StrippedDigest, Success};
use opilio_profile::Stage;
use opilio_stacks::Stacks;
use opilio_uri::Hop;

use crate::admission::{Permit, deferred};
use crate::archiving::keep;
use crate::capture::{Body, CaptureForm, PendingCapture, StoredCapture};
use crate::decisions::decisions;
use crate::document_filters::{FilterRejection, RetryWanted};
use crate::driver::{Driver, Rendering, Step};
use crate::exchange::{ExchangeClass, usable};
use crate::extraction::Outlink;
use crate::head::HeaderVerdict;
use crate::links::{JudgedOutlinks, outlinks};
use crate::pipeline::{Conclusion, LogEntry, Pipeline, disregarded, redirect_of};
use crate::plugin_view::PluginMemory;
use crate::reading::{self, Reading};
use crate::response::Response;
use crate::waits::{ChosenWait, wait};
use crate::{redirect, rendering, robots, status};

/// A response could not be written to the scratch directory.
#[derive(Clone, Debug)]
pub struct ScratchFailed(pub Arc<io::Error>);

/// Completes a visit from the exchange to the conclusion. `verdict` is the answer of mid-fetch filters, and `memory` holds the
/// plugin values with which they were called.
///
/// # Errors
/// Returns the errors of the driver.
pub async fn receive<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    permit: &Permit,
    mut exchange: Exchange,
    verdict: Option<HeaderVerdict>,
    memory: PluginMemory,
) -> Result<Conclusion, D::Error>
where
    D::Error: From<ScratchFailed>,
{
    driver.step(Step::Read);
    exchange
        .annotations
        .extend(permit.annotations.iter().cloned());
    let exchange = Arc::new(exchange);
    if pipeline.is_robots()
        && let Some(conclusion) = robots::receive(pipeline, driver, &exchange).await?
    {
        return Ok(conclusion);
    }
    let may_need_login = !permit.is_login && !pipeline.is_prerequisite() && !pipeline.is_robots();
    if may_need_login && let Some(page) = driver.login_page_to_fetch(&exchange)? {
        return Ok(deferred(pipeline, page));
    }
    let transfer = driver.transfer(&exchange);
    match usable(pipeline, &exchange, transfer, verdict.as_ref()) {
        ExchangeClass::Response => {}
        ExchangeClass::Ends(conclusion) => return Ok(*conclusion),
        ExchangeClass::Scratch(source) => return Err(ScratchFailed(source).into()),
    }
    let conclusion = process_response(pipeline, driver, &exchange, verdict, memory).await?;
    if permit.is_login {
        driver.login_received(&exchange).await?;
    }
    Ok(conclusion)
}

/// Reads, judges and stores a response that counts.
async fn process_response<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    exchange: &Arc<Exchange>,
    verdict: Option<HeaderVerdict>,
    memory: PluginMemory,
) -> Result<Conclusion, D::Error> {
    let Some(head) = exchange.head.clone() else {
        return Ok(Conclusion::failed(exchange.status(), String::new()));
    };
    let record = &pipeline.issue.record;
    let mut annotations = exchange.annotations.clone();
    let body = match verdict {
        _ if head.status == 304 && record.archived.is_some() => Body::NotModified,
        Some(HeaderVerdict::Unchanged(reason)) => {
            annotations.push(reason);
            Body::LeftAlone
        }
        _ => Body::Fetched,
    };
    let response = Response::new(pipeline, exchange, head, body);
    let mut task = response.task(pipeline, &memory);
    task.render = rendering::wanted(pipeline, driver, &response);
    // The memory is released once the capture is stored.
    let (reading, _reservation) = driver.read(task).await?;
    let (mut reading, rendering) =
        rendering::render(pipeline, driver, &response, &memory, reading).await?;
    annotations.extend(reading.annotations.iter().cloned());
    driver.failed(&reading.failures)?;
    note_stacks(driver, &response.stacks, &reading)?;
    if let Some(FilterRejection { status, because }) = reading.rejected {
        annotations.push(because.clone());
        let entry = LogEntry {
            status,
            digest: None,
            ..response.entry(annotations, &memory)
        };
        let outcome = disregarded(status, because, Some(driver.transfer(exchange)));
        return Ok(Conclusion::new(outcome, entry));
    }
    if let Some(RetryWanted { after, because }) = reading.retry.take() {
        if !pipeline.attempts_left() {
            annotations.push(format!("retriesExhausted:{because}"));
            return give_up(pipeline, driver, response, reading, &memory, annotations).await;
        }
        annotations.push(because);
        let entry = LogEntry {
            status: exchange.status(),
            annotations,
            ..LogEntry::default()
        };
        let outcome = Outcome::Retry {
            status: entry.status,
            queue_after: pipeline.settings.retry.queue_after,
            after: Some(after),
            transfer: Some(driver.transfer(exchange)),
        };
        return Ok(Conclusion::new(outcome, entry));
    }
    let judged = JudgedResponse {
        response,
        reading,
        rendering,
    };
    succeed(pipeline, driver, judged, memory, annotations).await
}

/// A response that filters have accepted.
struct JudgedResponse {
    response: Response,
    reading: Reading,
    rendering: Rendering,
}

/// Judges the links, decides the wait and stores the capture.
async fn succeed<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    judged: JudgedResponse,
    memory: PluginMemory,
    mut annotations: Vec<String>,
) -> Result<Conclusion, D::Error> {
    let JudgedResponse {
        response,
        mut reading,
        mut rendering,
    } = judged;
    let (issue, settings) = (&pipeline.issue, &response.settings);
    let follows =
        response.apply_robots_directives(pipeline, &memory, &mut reading, &mut annotations);
    if reading.archive {
        let records = std::mem::take(&mut rendering.records);
        driver.store_about_page(records).await?;
    }
    rendering.add_links(&mut reading, pipeline.profile.limits.outlinks);
    if !follows {
        // A redirect of the server is not a link of the page.
        let stays = |link: &Outlink| matches!(link.hop, Hop::Redirect | Hop::Inferred);
        reading.extracted.links.retain(stays);
    }
    end_redirects(pipeline, &mut reading, &mut annotations);
    if !settings.revisit.signals {
        // The dates of this list are not trusted.
        let links = reading.extracted.links.iter_mut();
        links.for_each(|link| link.modified = None);
    }
    let JudgedOutlinks {
        accepted,
        ranks,
        refused,
        unjudged,
    } = outlinks(pipeline, driver, &reading).await?;
    for (plugin, links) in &unjudged {
        driver.scope_fault(plugin);
        annotations.push(format!("scope-fault:{plugin}:{links}"));
        // The links that the filter would have accepted are unknown, so the next visit extracts the document again even if it is
        // unchanged.
        reading.extracted_by = Some(reading::NOT_EXTRACTED);
    }
    driver.refused_links(&reading.extracted.refused, refused.len() as u64)?;

    let refresh_embeds = settings.revisit.refresh_embeds && reading.state == ContentState::Changed;
    let exchange = &response.exchange;
    let keep = keep(pipeline, driver, &response, &reading, &settings.revisit)?;
    let mut visit = response.visit(pipeline, &reading, &keep);
    let is_stored = keep == CaptureForm::Response;
    // This is done before archiving, because the metadata record states when the next visit is due.
    driver.step(Step::Wait);
    let wait_settings = (&**settings, response.stacks.clone());
    let chosen = wait(
        pipeline,
        driver,
        &visit,
        wait_settings,
        &mut reading,
        &memory,
    )
    .await?;
    let decisions = match keep {
        CaptureForm::Nothing => Vec::new(),
        _ if !driver.wants_decisions() => Vec::new(),
        _ => {
            decisions(
                pipeline,
                driver,
                &response.stacks,
                &reading,
                chosen.as_ref(),
            )
            .await?
        }
    };
    let capture = PendingCapture {
        exchange,
        reading: &reading,
        body: response.body,
        memory: &memory,
        annotations,
        decisions,
    };
    driver.step(Step::Archive);
    let StoredCapture {
        keep,
        at,
        mut annotations,
    } = driver.store(capture, keep).await?;
    visit.duplicate = matches!(keep, CaptureForm::Duplicate(_));
    visit.archived = at.clone().filter(|_| is_stored);
    let until_next = chosen.as_ref().map(|wait| wait.until_next);
    let until_reconsidered = chosen.as_ref().and_then(|wait| wait.until_reconsidered);
    if let Some(chosen) = &chosen {
        annotations.extend(chosen.annotations(pipeline, &visit));
    }
    // Wait evaluators are the last plugins that may keep values.
    let kept = pipeline.kept_after(&visit, &memory);
    visit.kept = kept.uri;
    let target = redirect_of(&issue.uri, exchange);
    visit.redirect_target = redirect::target_after(&issue.record, exchange.status(), target);
    let oscillation = |wait: &ChosenWait| wait.oscillation;
    visit.oscillation = chosen
        .as_ref()
        .map_or(issue.record.oscillation, oscillation);
    let entry = LogEntry {
        state: visit.state,
        received: Some(exchange.wire.length()),
        archived: at,
        ..response.entry(annotations, &memory)
    };
    let is_prerequisite = pipeline.is_prerequisite();
    let success = Success {
        visit,
        wait: until_next,
        ask_again: until_reconsidered,
        strategy: (!is_prerequisite).then_some(settings.strategy),
        // If the scope had changed, it was checked again before the fetch.
        scope: Some(pipeline.stacks.scope_hash),
        outlinks: accepted,
        refresh_embeds,
        refused,
        kept_for_site: kept.site,
        site_figures: kept.figures,
        transfer: driver.transfer(exchange),
    };
    Ok(Conclusion {
        outcome: Outcome::Succeeded(Box::new(success)),
        entry,
        ranks,
    })
}

/// Concludes a response that a post-fetch filter wants retried, after the last attempt. The response is archived for inspection,
/// and the URI fails. The response does not count as a version of the document: digests and validators remain those of the last
/// version.
async fn give_up<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    response: Response,
    reading: Reading,
    memory: &PluginMemory,
    mut annotations: Vec<String>,
) -> Result<Conclusion, D::Error> {
    let exchange = &response.exchange;
    annotations.push(format!("os{}", response.head.status));
    let reading = Reading {
        // No plugin was called on the content. A 304 refers to the archived version.
        state: match response.body {
            Body::Fetched => ContentState::Unknown,
            Body::NotModified | Body::LeftAlone => ContentState::Unchanged,
        },
        ..reading
    };
    let (body, revisit) = (response.body, &pipeline.settings.revisit);
    let keep = keep(pipeline, driver, &response, &reading, revisit)?;
    let decisions = match driver.wants_decisions() {
        true => decisions(pipeline, driver, &pipeline.stacks, &reading, None).await?,
        false => Vec::new(),
    };
    let capture = PendingCapture {
        exchange,
        reading: &reading,
        body,
        memory,
        annotations,
        decisions,
    };
    driver.step(Step::Archive);
    let stored = driver.store(capture, keep).await?;
    let entry = LogEntry {
        status: status::TOO_MANY_RETRIES,
        received: Some(exchange.wire.length()),
        archived: stored.at,
        ..response.entry(stored.annotations, memory)
    };
    let outcome = Outcome::Failed {
        status: entry.status,
        transfer: Some(driver.transfer(exchange)),
    };
    Ok(Conclusion::new(outcome, entry))
}

/// Reports the stacks whose hashes the record will contain.
fn note_stacks<D: Driver>(driver: &D, stacks: &Stacks, reading: &Reading) -> Result<(), D::Error> {
    if reading.extracted_by == Some(stacks.extract_hash) {
        driver.used_stack(Stage::Extract, stacks.extract_hash, &stacks.extract)?;
    }
    if reading.stripped.is_some() && !stacks.digest.is_empty() {
        let hash = StrippedDigest::stripper_of(stacks.digest_hash);
        driver.used_stack(Stage::Digest, hash, &stacks.digest)?;
    }
    Ok(())
}

/// Annotates a redirect beyond the allowed number in a row, and does not follow it.
fn end_redirects(pipeline: &Pipeline, reading: &mut Reading, annotations: &mut Vec<String>) {
    let hops = pipeline.issue.record.hop_path.hops().rev();
    let before = hops.take_while(|hop| *hop == Hop::Redirect).count();
    let links = &mut reading.extracted.links;
    let is_redirect = |link: &Outlink| link.hop == Hop::Redirect;
    let max = pipeline.settings.fetch.redirects_max;
    if before >= max && links.iter().any(is_redirect) {
        links.retain(|link| !is_redirect(link));
        annotations.push(format!("redirectsTrunc:{before}"));
    }
}
