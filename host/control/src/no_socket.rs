//! Control socket on systems without Unix domain sockets: a running crawl takes no commands.

use std::path::Path;

use super::{CommandRequest, CommandResponse, ControlError, ErrorKind, Running};

/// Server that does not exist on this system.
pub(crate) enum Server {}

impl Server {
    /// Fails: the server cannot be started on this system.
    pub(crate) fn start(_: Running) -> Result<Server, ControlError> {
        Err(ControlError::new(
            ErrorKind::State,
            "a running crawl accepts commands only on Unix systems",
        ))
    }

    pub(crate) async fn close(self) {
        match self {}
    }
}

/// Connection that does not exist on this system.
pub(super) enum Connection {}

impl Connection {
    pub(super) fn open(_: &Path) -> Result<Option<Connection>, ControlError> {
        Ok(None)
    }

    pub(super) fn send(
        self,
        _: &CommandRequest,
        _: &mut dyn FnMut(CommandResponse) -> bool,
    ) -> Result<(), ControlError> {
        match self {}
    }
}
