//! The end of all exchanges before their time: the crawl is to stop and waits no longer for what is in flight.

use tokio::sync::watch;

/// Cuts exchanges short, those at work and those to come. Clones cut the same ones.
#[derive(Clone, Debug)]
pub struct Cut(watch::Sender<bool>);

impl Cut {
    pub(crate) fn new() -> Self {
        Cut(watch::Sender::new(false))
    }

    /// From now on nothing is waited for. What has come of a response is kept as truncated.
    pub fn now(&self) {
        self.0.send_replace(true);
    }

    /// Whether [`Self::now`] has been called. Asks nobody else, so that a task that has used up its budget hears it too.
    pub(crate) fn is_made(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for `work`; none where the exchanges are cut first. The cut is looked at before, while the task has a budget left:
    /// work that always has something to do spends all of it each time.
    pub async fn unless_made<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.happens() => None,
            done = work => Some(done),
        }
    }

    /// Returns when [`Self::now`] has been called.
    pub(crate) fn happens(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut told = self.0.subscribe();
        async move {
            if told.wait_for(|cut| *cut).await.is_err() {
                // Nobody is left who could cut.
                std::future::pending().await
            }
        }
    }
}
