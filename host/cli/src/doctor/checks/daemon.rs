//! The daemon: its configuration, its tokens and its port.

use crate::doctor::environment::{Daemon, Port};
use crate::doctor::finding::{Finding, error, ok};

pub(super) fn configured(daemon: &Daemon) -> Finding {
    const NAME: &str = "daemon";
    let Daemon { file, address, .. } = daemon;
    let file = file.display();
    if let Some(problem) = &daemon.problem {
        return error(
            NAME,
            problem,
            format!("correct {file}; the daemon does not start with it"),
        );
    }
    let tokens = match &daemon.tokens {
        None => "no token needed".to_owned(),
        Some(Err(problem)) => {
            return error(
                NAME,
                format!("cannot read the tokens: {problem}"),
                "correct the file's owner and rights, or restore it",
            );
        }
        Some(Ok(0)) => {
            let command =
                format!("create a token: opilio token new NAME --role admin --config {file}");
            return error(
                NAME,
                "no token, without which the daemon does not start",
                command,
            );
        }
        Some(Ok(count)) => format!("tokens: {count}"),
    };
    match &daemon.port {
        Port::Free => ok(
            NAME,
            format!("{file} is valid, {tokens}, {address} is free"),
        ),
        Port::Answers(200) => ok(NAME, format!("running and ready at {address}, {tokens}")),
        Port::Answers(status) => error(
            NAME,
            format!("{address} answers /readyz with status {status}"),
            "see the daemon's log; if another program has the port, change listen",
        ),
        Port::Refused(problem) => error(
            NAME,
            format!("cannot use {address}: {problem}"),
            format!("change listen in {file}"),
        ),
    }
}

/// The health of a daemon that must run.
pub(in crate::doctor) fn running(daemon: &Option<Daemon>) -> Finding {
    const NAME: &str = "daemon";
    match daemon {
        None => error(NAME, "no configuration file", "name it: --config FILE"),
        Some(Daemon {
            problem: None,
            port: Port::Free,
            address,
            ..
        }) => error(
            NAME,
            format!("not running: nothing listens on {address}"),
            "start opilio serve",
        ),
        // Its tokens may all be revoked meanwhile.
        Some(Daemon {
            problem: None,
            port: Port::Answers(200),
            address,
            ..
        }) => ok(NAME, format!("running and ready at {address}")),
        Some(daemon) => configured(daemon),
    }
}
