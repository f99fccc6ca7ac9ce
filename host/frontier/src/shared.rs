//! A frontier that several threads use.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Frontier;

/// A frontier that threads use in turn. The only place that locks a frontier.
///
/// A guard is held for one call, or for one bounded part of a longer command, because the dispatcher waits meanwhile. It is never
/// held across an await, or while something is sent or written elsewhere.
///
/// Lock order: code that also needs the crawl's budget of visits (`CrawlContext::budget`) locks the budget before the frontier.
pub struct SharedFrontier(Mutex<Frontier>);

impl SharedFrontier {
    /// Shares a frontier.
    pub fn new(frontier: Frontier) -> SharedFrontier {
        SharedFrontier(Mutex::new(frontier))
    }

    /// Locks the frontier. After a panic of another holder the frontier is used as it is: each call writes its change as one
    /// batch, so that none is half done.
    pub fn lock(&self) -> MutexGuard<'_, Frontier> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
