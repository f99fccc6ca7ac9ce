//! A gate that holds replies back: what must happen at the same time is waited for, not hoped for.

use std::sync::Arc;

use tokio::sync::watch;

/// Holds replies back until so many have come, and lets everything through from then on. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    replies: usize,
    come: Arc<watch::Sender<usize>>,
}

impl Gate {
    /// A gate that opens when the last of so many replies has come.
    pub fn of(replies: usize) -> Gate {
        Gate {
            replies,
            come: Arc::new(watch::Sender::new(0)),
        }
    }

    /// A gate that stays closed, however many come, until somebody opens it.
    pub fn closed() -> Gate {
        Gate::of(usize::MAX)
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.come.send_modify(|come| *come = self.replies);
    }

    /// Counts as a reply that has come, and is not held.
    pub fn come(&self) {
        self.come.send_modify(|come| *come = come.saturating_add(1));
    }

    /// Counts as a reply that has come, and is held until the gate is open.
    pub async fn pass(&self) {
        self.come();
        // The sender lives as long as this gate.
        let _ = self
            .come
            .subscribe()
            .wait_for(|come| *come >= self.replies)
            .await;
    }
}
