//! Threads on which plugins run, apart from the sockets.
//!
//! Plugins are synchronous and may take long. Fetching is async and must not wait for them. A document lane per core does the heavy
//! work; sites share lanes and memory fairly (`documents.rs`). Header lanes run calls while a socket waits for a verdict. They are
//! separate, so that a slow document never delays a verdict. A lane's stack is larger than the stack that a guest may use.
//! Otherwise deep recursion of a guest would end the process (see `opilio_sandbox::LANE_STACK_BYTES`).

mod documents;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use opilio_stacks::panic_message;
use tokio::sync::oneshot;

use documents::Documents;
pub(crate) use documents::{DocumentMemory, Reserved, bytes_for};

/// Maximum of work items that wait for a kind of lane. Beyond it, callers wait. Each worker of a crawl has one work item at a time,
/// so this limits memory only in a crawl with very many workers.
const WAITING_MAX: usize = 256;

type Work = Box<dyn FnOnce() + Send>;

/// Minimum of document lanes, so that one slow document does not delay all others.
const DOCUMENT_LANES_MIN: usize = 2;

/// The lanes of a crawl. Threads end when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Lanes {
    documents: Arc<DocumentLanes>,
    headers: mpsc::SyncSender<Work>,
    observers: mpsc::SyncSender<Work>,
}

/// Work that waits for the document lanes. Their threads end when it is dropped.
struct DocumentLanes(Arc<Documents>);

impl Drop for DocumentLanes {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Kind of lane for a work item.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LaneKind {
    /// Document lanes, for work that belongs to no site.
    Document,
    /// Header lanes, for calls that a socket waits for.
    Header,
    /// The observer lane. Visits do not wait for its work.
    Observer,
}

/// Panic of a work item: a defect of Opilio. The URI gets the status code −3000, and the worker continues.
#[derive(Debug, thiserror::Error)]
#[error("a plugin lane panicked: {0}")]
pub(crate) struct LanePanic(String);

impl Lanes {
    /// Starts the threads: one document lane per core and at least two, two header lanes, and one observer lane.
    ///
    /// # Errors
    /// The system cannot start more threads.
    pub(crate) fn start(memory: DocumentMemory) -> std::io::Result<Lanes> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let lanes = cores.max(DOCUMENT_LANES_MIN);
        let documents = Documents::new(lanes, memory);
        for number in 0..lanes {
            let documents = documents.clone();
            spawn(&format!("document-lane-{number}"), move || {
                while let Some(taken) = documents.take() {
                    taken.run(&documents);
                }
            })?;
        }
        Ok(Lanes {
            documents: Arc::new(DocumentLanes(documents)),
            headers: start("header-lane", 2)?,
            observers: start("observer-lane", 1)?,
        })
    }

    /// Runs `work` on a lane and waits for its result.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        lane: LaneKind,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LanePanic> {
        let lane = match lane {
            LaneKind::Document => return self.document("", 0, |_| work()).await,
            LaneKind::Header => &self.headers,
            LaneKind::Observer => &self.observers,
        };
        let (answer, answered) = oneshot::channel();
        let answering = answering(|()| work(), answer);
        let work: Work = Box::new(move || answering(()));
        if let Err(mpsc::TrySendError::Full(work)) = lane.try_send(work) {
            let lane = lane.clone();
            let _ = tokio::task::spawn_blocking(move || lane.send(work)).await;
        }
        answered
            .await
            .unwrap_or_else(|_| Err(LanePanic("the lane is gone".to_owned())))
    }

    /// Runs `work` for a document of this site on a document lane, and waits for its result. The work begins once this many bytes
    /// of memory are free ([`bytes_for`]; 0: no memory is reserved).
    pub(crate) async fn document<T: Send + 'static>(
        &self,
        site: &str,
        bytes: u64,
        work: impl FnOnce(Reserved) -> T + Send + 'static,
    ) -> Result<T, LanePanic> {
        let (answer, answered) = oneshot::channel();
        self.documents.0.push(site, bytes, answering(work, answer));
        answered
            .await
            .unwrap_or_else(|_| Err(LanePanic("the lane is gone".to_owned())))
    }
}

/// Wraps work so that its result is sent to the waiting caller.
fn answering<G, T: Send + 'static>(
    work: impl FnOnce(G) -> T + Send + 'static,
    answer: oneshot::Sender<Result<T, LanePanic>>,
) -> impl FnOnce(G) + Send + 'static {
    // Traces of the work belong to the current span.
    let span = tracing::Span::current();
    move |given| {
        let outcome = catch_unwind(AssertUnwindSafe(|| span.in_scope(|| work(given))))
            .map_err(|panic| LanePanic(panic_message(panic.as_ref())));
        // The caller may be gone, if its fetch was abandoned.
        let _ = answer.send(outcome);
    }
}

impl Lanes {
    /// Runs `work` on a document lane and blocks until it is done. Not for async tasks.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LanePanic> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.documents.0.push("", 0, move |_| {
            let outcome = catch_unwind(AssertUnwindSafe(work))
                .map_err(|panic| LanePanic(panic_message(panic.as_ref())));
            // The caller waits for the result.
            let _ = answer.send(outcome);
        });
        let lane_panic = || LanePanic("the lane is gone".to_owned());
        answered.recv().unwrap_or_else(|_| Err(lane_panic()))
    }
}

fn start(name: &str, count: usize) -> std::io::Result<mpsc::SyncSender<Work>> {
    let (sender, receiver) = mpsc::sync_channel::<Work>(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..count {
        let receiver = receiver.clone();
        spawn(&format!("{name}-{number}"), move || {
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

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    opilio_sandbox::spawn_lane(name, run).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes() -> Lanes {
        let plugins = Box::new(|| 0);
        Lanes::start(DocumentMemory {
            max: 1 << 20,
            plugins,
        })
        .unwrap()
    }

    #[tokio::test]
    async fn a_lane_continues_after_a_panic() {
        let lanes = lanes();
        for _ in 0..8 {
            let lost = lanes
                .run(LaneKind::Header, || -> u32 { panic!("on purpose") })
                .await;
            assert_eq!(
                lost.unwrap_err().to_string(),
                "a plugin lane panicked: on purpose"
            );
        }
        assert_eq!(lanes.run(LaneKind::Header, || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_busy_document_lane_does_not_delay_header_lanes() {
        let lanes = lanes();
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let cores = cores.max(DOCUMENT_LANES_MIN);
        let busy: Vec<_> = (0..cores)
            .map(|_| {
                let (lanes, held) = (lanes.clone(), held.clone());
                tokio::spawn(async move {
                    lanes
                        .run(LaneKind::Document, move || {
                            held.lock().unwrap().recv().is_ok()
                        })
                        .await
                })
            })
            .collect();
        assert_eq!(
            lanes.run(LaneKind::Header, || "answered").await.unwrap(),
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
