//! Threads on which plugins run, apart from the sockets.
//!
//! Plugins are synchronous and may take long; fetching is async and must not wait for them. A document lane per core
//! does the heavy work. Header lanes answer while a socket waits for a verdict and are kept apart, so that a slow
//! document never holds one up. A lane's stack is larger than what a guest may use, or a guest's deep recursion would
//! end the process (see `opilio_sandbox::LANE_STACK_BYTES`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use tokio::sync::oneshot;

/// Work waits here at most this often; beyond it callers wait. Each worker of a crawl has one piece of work at a time,
/// so this bounds memory only where a crawl has very many workers.
const WAITING_MAX: usize = 256;

type Work = Box<dyn FnOnce() + Send>;

/// The lanes of a crawl. Threads end when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Lanes {
    documents: mpsc::SyncSender<Work>,
    headers: mpsc::SyncSender<Work>,
    observers: mpsc::SyncSender<Work>,
}

/// Which lanes a piece of work is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane {
    /// Whole documents: extraction, digests, scope of outlinks.
    Document,
    /// Questions that a socket waits for.
    Header,
    /// Observers, which nobody waits for.
    Observer,
}

/// The work panicked: a defect of ours, told as a finding about the URI (status −5) instead of a lost worker.
#[derive(Debug, thiserror::Error)]
#[error("a plugin lane panicked: {0}")]
pub(crate) struct LanePanic(String);

impl Lanes {
    /// Starts the threads: one document lane per core, two header lanes, one lane of observers.
    ///
    /// # Errors
    /// Where the system gives no more threads.
    pub(crate) fn start() -> std::io::Result<Lanes> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Ok(Lanes {
            documents: start("document-lane", cores)?,
            headers: start("header-lane", 2)?,
            observers: start("observer-lane", 1)?,
        })
    }

    /// Runs `work` on a lane and waits for its answer.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LanePanic> {
        let (answer, answered) = oneshot::channel();
        // What is traced goes on there as a part of what is traced here.
        let span = tracing::Span::current();
        let work: Work = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| span.in_scope(work)))
                .map_err(|panic| LanePanic(message(panic.as_ref())));
            // Nobody waits for the answer of an abandoned fetch.
            let _ = answer.send(outcome);
        });
        let lane = match lane {
            Lane::Document => &self.documents,
            Lane::Header => &self.headers,
            Lane::Observer => &self.observers,
        };
        if let Err(mpsc::TrySendError::Full(work)) = lane.try_send(work) {
            let lane = lane.clone();
            let _ = tokio::task::spawn_blocking(move || lane.send(work)).await;
        }
        answered
            .await
            .unwrap_or_else(|_| Err(LanePanic("the lane is gone".to_owned())))
    }
}

impl Lanes {
    /// Runs `work` on a document lane and blocks until it is done. Not for tasks.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LanePanic> {
        let (answer, answered) = mpsc::sync_channel(1);
        let work: Work = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(work))
                .map_err(|panic| LanePanic(message(panic.as_ref())));
            // Whoever asked waits for it.
            let _ = answer.send(outcome);
        });
        let gone = || LanePanic("the lane is gone".to_owned());
        self.documents.send(work).map_err(|_| gone())?;
        answered.recv().unwrap_or_else(|_| Err(gone()))
    }
}

/// Runs `work` on a thread of its own, with the stack of a lane, and blocks until it is done: what is seldom done and would
/// hold up a lane, such as compiling a component.
pub(crate) fn beside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .stack_size(opilio_sandbox::LANE_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|problem| format!("no thread for it: {problem}"))?;
        let ended = thread.join();
        ended.map_err(|panic| LanePanic(message(panic.as_ref())).to_string())
    })
}

fn start(name: &str, count: usize) -> std::io::Result<mpsc::SyncSender<Work>> {
    let (sender, receiver) = mpsc::sync_channel::<Work>(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..count {
        let receiver = receiver.clone();
        thread::Builder::new()
            .name(format!("{name}-{number}"))
            .stack_size(opilio_sandbox::LANE_STACK_BYTES)
            .spawn(move || {
                loop {
                    let work = receiver
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    match work {
                        Ok(work) => work(),
                        Err(mpsc::RecvError) => return,
                    }
                }
            })?;
    }
    Ok(sender)
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[tokio::test]
    async fn a_panic_costs_the_work_and_not_the_lane() {
        let lanes = Lanes::start().unwrap();
        for _ in 0..8 {
            let lost = lanes
                .run(Lane::Header, || -> u32 { panic!("on purpose") })
                .await;
            assert_eq!(
                lost.unwrap_err().to_string(),
                "a plugin lane panicked: on purpose"
            );
        }
        assert_eq!(lanes.run(Lane::Header, || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_busy_document_lane_does_not_hold_up_headers() {
        let lanes = Lanes::start().unwrap();
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let busy: Vec<_> = (0..cores)
            .map(|_| {
                let (lanes, held) = (lanes.clone(), held.clone());
                tokio::spawn(async move {
                    lanes
                        .run(Lane::Document, move || held.lock().unwrap().recv().is_ok())
                        .await
                })
            })
            .collect();
        assert_eq!(
            lanes.run(Lane::Header, || "answered").await.unwrap(),
            "answered"
        );
        for _ in 0..cores {
            release.send(()).unwrap();
        }
        for task in busy {
            assert!(task.await.unwrap().unwrap());
        }
    }
}
