//! A gate that delays replies, so that tests can wait for simultaneous events without sleeping.

use std::sync::Arc;

use tokio::sync::watch;

/// Delays replies until the given number has arrived, then lets all of them through. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    replies: usize,
    come: Arc<watch::Sender<usize>>,
}

impl Gate {
    /// A gate that opens when this number of replies has arrived.
    pub fn of(replies: usize) -> Gate {
        Gate {
            replies,
            come: Arc::new(watch::Sender::new(0)),
        }
    }

    /// A gate that stays closed until [`open`](Gate::open) is called.
    pub fn closed() -> Gate {
        Gate::of(usize::MAX)
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.come.send_modify(|come| *come = self.replies);
    }

    /// Counts an arrived reply without delaying it.
    pub fn come(&self) {
        self.come.send_modify(|come| *come = come.saturating_add(1));
    }

    /// Counts an arrived reply, and waits until the gate is open.
    pub async fn pass(&self) {
        self.come();
        // The sender lives as long as this gate, so waiting cannot fail.
        let _ = self
            .come
            .subscribe()
            .wait_for(|come| *come >= self.replies)
            .await;
    }
}
