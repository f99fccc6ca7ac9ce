//! The stop of a shared job whose process on this node is starting. It holds the directory and takes no commands yet, so that the stop
//! goes into the log of commands without the directory. The daemon stops the process itself: the process passes over a stop that it finds
//! in the log when it joins.

use std::path::Path;

use opilio_crawl::JobPart;

use super::JobCommands;
use crate::{Author, Command, ControlError, ErrorKind};

/// Gives a stop to all nodes that share a job. The processes of other nodes stop as soon as they read it. The caller stops the process of
/// this node. Blocks until NATS has the command.
///
/// # Errors
/// The directory is not that of a job that several nodes share, another directory has got the part, or NATS fails.
pub fn stop_other_nodes(job: &Path, by: Author) -> Result<(), ControlError> {
    let part = JobPart::read(job).map_err(|problem| ControlError::file(job, &problem))?;
    let alone = || {
        ControlError::new(
            ErrorKind::State,
            "the job runs on this machine alone: it has no other nodes",
        )
    };
    let commands = JobCommands::open(job, part.ok_or_else(alone)?)?;
    commands.must_have_part()?;
    commands.log(by, Command::Stop, None).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use opilio_cluster::CommandReader;
    use opilio_job::directory;
    use opilio_test_nats::NatsServer;

    use super::super::command_log::LoggedCommand;
    use super::super::state::CommandState;
    use super::super::tests::OnlyPart;
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_stop_reaches_other_nodes_while_a_process_holds_the_directory() {
        let Some(server) = NatsServer::start() else {
            return;
        };
        let part = OnlyPart::new();
        let commands = part.commands(&server).await;
        let job = part.directory();
        let config = job.join("opilio.toml");
        let servers = format!("servers = [\"127.0.0.1:{}\"]", server.port);
        fs::write(&config, format!("[cluster]\n{servers}\nnode = \"a\"\n")).unwrap();
        let own = JobPart::read(job).unwrap().unwrap();
        JobPart { config, ..own }.write(job).unwrap();
        let _process = directory::lock_job(job).unwrap();
        let by = Author {
            user: "lena".to_owned(),
            pid: 7,
        };
        stop_other_nodes(job, by).unwrap();

        let mut reader = CommandReader::open(&commands.job, 0).await.unwrap();
        let given = reader.next().await.unwrap();
        let given: LoggedCommand = serde_json::from_slice(&given.command).unwrap();
        assert_eq!(given.command, Command::Stop);
        assert_eq!((&*given.part, &*given.by.user), ("a", "lena"));
        // The process keeps the place of the directory in the log.
        let state = CommandState::read(job).unwrap();
        assert_eq!(state, CommandState::default());
    }

    #[test]
    fn a_job_of_one_machine_has_no_other_nodes_to_stop() {
        let part = OnlyPart::new();
        fs::remove_file(part.directory().join("cluster.json")).unwrap();
        let by = Author {
            user: String::new(),
            pid: 0,
        };
        let problem = stop_other_nodes(part.directory(), by).unwrap_err();
        assert_eq!(problem.kind, ErrorKind::State, "{problem}");
    }
}
