//! Where there are no Unix domain sockets: a running crawl takes no commands.

use std::path::Path;

use super::{Answer, ControlError, Fault, Request, Running};

/// Cannot be had here.
pub(crate) enum Server {}

impl Server {
    /// Cannot be started here.
    pub(crate) fn start(_: Running) -> Result<Server, ControlError> {
        Err(ControlError::new(
            Fault::State,
            "a running crawl takes commands on Unix systems alone",
        ))
    }

    pub(crate) async fn close(self) {
        match self {}
    }
}

/// Cannot be had here.
pub(super) enum Connection {}

impl Connection {
    pub(super) fn open(_: &Path) -> Result<Option<Connection>, ControlError> {
        Ok(None)
    }

    pub(super) fn ask(
        self,
        _: &Request,
        _: &mut dyn FnMut(Answer) -> bool,
    ) -> Result<(), ControlError> {
        match self {}
    }
}
