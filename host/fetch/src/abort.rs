//! The early end of all exchanges: the crawl stops and no longer waits for fetches in flight.

use tokio::sync::watch;

/// Cuts exchanges short, both running and future ones. Clones cut the same exchanges.
#[derive(Clone, Debug)]
pub struct Abort(watch::Sender<bool>);

impl Abort {
    pub(crate) fn new() -> Self {
        Abort(watch::Sender::new(false))
    }

    /// Ends all waiting from now on. Received parts of a response are kept as truncated.
    pub fn now(&self) {
        self.0.send_replace(true);
    }

    /// Returns `true` if [`Self::now`] has been called. It reads the value directly, so that a task with a spent budget sees it
    /// too.
    pub(crate) fn is_made(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for `work`; returns `None` if the exchanges are cut first. The cut is polled before `work`, while the task has a
    /// budget left: work that always has something to do spends all of it each time.
    pub async fn unless_made<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.happens() => None,
            done = work => Some(done),
        }
    }

    /// Resolves once [`Self::now`] has been called.
    pub(crate) fn happens(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut receiver = self.0.subscribe();
        async move {
            if receiver.wait_for(|cut| *cut).await.is_err() {
                // The sender is gone: no cut can happen.
                std::future::pending().await
            }
        }
    }
}
