//! Control socket of a job: `control` in its directory, for its owner only. A client sends a [`Request`] as a line of JSON. The
//! answer is a line of JSON for each [`CommandResponse`]; then the next request may follow.
//!
//! A slow, silent or misbehaving client does not disturb the crawl. Commands run in parallel to it, and requests and waits have
//! limits. No part of the crawl is locked while an answer is written.

use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::{CommandRequest, CommandResponse, ControlError, ErrorKind, Running};

/// Name of the socket in the job's directory.
const NAME: &str = "control";

/// Maximum length of a request. A URI has up to 64 KiB, and JSON may write a byte as six.
const REQUEST_BYTES_MAX: u64 = 512 * 1024;

/// Maximum number of clients at the same time. Further clients wait until one disconnects.
const CLIENTS_MAX: u32 = 16;

/// Maximum time that a client may be silent, or take to read one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum time for commands in progress when the crawl ends. Then the commands are abandoned.
const GRACE: Duration = Duration::from_secs(5);

/// Maximum number of answers that wait for a client. At this number the command waits for the client.
const ANSWERS_AHEAD: usize = 16;

/// Maximum length of a socket's path on every system. Linux takes 107 bytes, others 103.
const PATH_BYTES_MAX: usize = 100;

/// Control socket of a running crawl.
pub(crate) struct Server {
    path: PathBuf,
    accepting: JoinHandle<()>,
    clients: Arc<Semaphore>,
    ending: watch::Sender<bool>,
}

impl Server {
    /// Starts to accept commands. The caller holds the job's lock, so an existing socket is stale.
    pub(crate) fn start(running: Running) -> Result<Server, ControlError> {
        let path = running.job.join(NAME);
        let listener =
            listen(&running.job).map_err(|problem| ControlError::file(&path, &problem))?;
        let owner = fs::metadata(&running.job)
            .map_err(|problem| ControlError::file(&running.job, &problem))?
            .uid();
        let clients = Arc::new(Semaphore::new(CLIENTS_MAX as usize));
        let (ending, is_ending) = watch::channel(false);
        let accepting = accept(listener, owner, running, clients.clone(), is_ending);
        Ok(Server {
            path,
            accepting: tokio::spawn(accepting),
            clients,
            ending,
        })
    }

    /// Stops accepting commands. Commands in progress are answered if they finish within [`GRACE`]; every command completes its
    /// current part.
    pub(crate) async fn close(mut self) {
        // The socket's file is removed first, so that no further client connects.
        let _ = fs::remove_file(&self.path);
        self.ending.send_replace(true);
        if timeout(GRACE, &mut self.accepting).await.is_err() {
            self.accepting.abort();
            let _ = self.accepting.await;
        }
        // A command holds the permit of its client until it ends.
        let _ = self.clients.acquire_many(CLIENTS_MAX).await;
    }
}

/// Creates a socket that no other user could have opened. It replaces any existing one.
fn listen(job: &Path) -> io::Result<UnixListener> {
    // The socket is created in a private folder and moved after its mode is set, so that other users can never connect.
    let folder = job.join(format!(".{NAME}-{}", std::process::id()));
    remove(&folder)?;
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let made = bind(&folder).and_then(|listener| {
        let draft = folder.join(NAME);
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o600))?;
        fs::rename(&draft, job.join(NAME))?;
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    });
    remove(&folder)?;
    made
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => Err(problem),
        _ => Ok(()),
    }
}

fn bind(folder: &Path) -> io::Result<StdListener> {
    let reach = Reach::of(folder)?;
    StdListener::bind(&reach.path)
}

/// Path of a socket that is short enough: socket addresses have at most about a hundred bytes.
struct Reach {
    path: PathBuf,
    // Stays open while the path refers to the folder by its file descriptor.
    _folder: Option<File>,
}

impl Reach {
    fn of(folder: &Path) -> io::Result<Reach> {
        let path = folder.join(NAME);
        let length = path.as_os_str().len();
        if length <= PATH_BYTES_MAX {
            return Ok(Reach {
                path,
                _folder: None,
            });
        }
        if !cfg!(target_os = "linux") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "its path has {length} bytes, but socket paths have at most {PATH_BYTES_MAX} here; move the job to a shorter path"
                ),
            ));
        }
        let folder = File::open(folder)?;
        Ok(Reach {
            path: PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd())),
            _folder: Some(folder),
        })
    }
}

async fn accept(
    listener: UnixListener,
    owner: u32,
    running: Running,
    clients: Arc<Semaphore>,
    is_ending: watch::Receiver<bool>,
) {
    // Conversations with clients end when this task is dropped.
    let mut conversations = JoinSet::new();
    let mut ending = is_ending.clone();
    let next = async || {
        let permit = clients.clone().acquire_owned().await.ok()?;
        Some((listener.accept().await, permit))
    };
    loop {
        while conversations.try_join_next().is_some() {}
        let accepted = tokio::select! {
            _ = ending.wait_for(|is_ending| *is_ending) => break,
            accepted = next() => accepted,
        };
        match accepted {
            Some((Ok((stream, _)), permit)) => {
                let (running, is_ending) = (running.clone(), is_ending.clone());
                let client = converse(stream, owner, running, Arc::new(permit), is_ending);
                conversations.spawn(client);
            }
            // The usual cause is too many open files, which may be temporary.
            Some((Err(_), _)) => tokio::time::sleep(Duration::from_millis(100)).await,
            None => break,
        }
    }
    while conversations.join_next().await.is_some() {}
}

/// Answers all requests of one client.
async fn converse(
    stream: UnixStream,
    owner: u32,
    running: Running,
    permit: Arc<OwnedSemaphorePermit>,
    mut is_ending: watch::Receiver<bool>,
) {
    let Ok(peer) = stream.peer_cred() else {
        return;
    };
    // The socket's mode ensures this already on systems that check it.
    if peer.uid() != owner && peer.uid() != 0 {
        return;
    }
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut read).take(REQUEST_BYTES_MAX + 1);
        let asked = tokio::select! {
            biased;
            asked = timeout(PATIENCE, limited.read_until(b'\n', &mut line)) => asked,
            _ = is_ending.wait_for(|is_ending| *is_ending) => return,
        };
        if !matches!(asked, Ok(Ok(length)) if length > 0) {
            return;
        }
        let mut request = match read_request(&line) {
            Ok(request) => request,
            // After an invalid request, the beginning of the next request is unknown.
            Err(refused) => {
                let _ = send(&mut write, &refused).await;
                return;
            }
        };
        if let Some(pid) = peer.pid().and_then(|pid| u32::try_from(pid).ok()) {
            request.by.pid = pid;
        }
        if request.by.user.is_empty() {
            request.by.user = crate::user_name(peer.uid());
        }
        let (sender, mut answers) = mpsc::channel(ANSWERS_AHEAD);
        let (running, permit) = (running.clone(), permit.clone());
        tokio::task::spawn_blocking(move || {
            let profile = running.context.current();
            running
                .admin(&profile)
                .perform(&request, &mut |answer| sender.blocking_send(answer).is_ok());
            drop(permit);
        });
        while let Some(answer) = answers.recv().await {
            if send(&mut write, &answer).await.is_err() {
                return;
            }
        }
    }
}

fn read_request(line: &[u8]) -> Result<CommandRequest, CommandResponse> {
    let refused = |message: String| CommandResponse::Refused {
        kind: ErrorKind::Request,
        message,
    };
    if line.len() as u64 > REQUEST_BYTES_MAX {
        return Err(refused(format!(
            "the request is larger than {REQUEST_BYTES_MAX} bytes"
        )));
    }
    serde_json::from_slice(line).map_err(|problem| refused(format!("invalid request: {problem}")))
}

async fn send(write: &mut OwnedWriteHalf, answer: &CommandResponse) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    timeout(PATIENCE, write.write_all(&line)).await?
}

/// Connection to the process that runs a job.
pub(super) struct Connection(StdStream);

impl Connection {
    /// Connects to the process. Returns `None` if no process accepts commands there.
    pub(super) fn open(job: &Path) -> Result<Option<Connection>, ControlError> {
        let path = job.join(NAME);
        if !path.exists() {
            return Ok(None);
        }
        let connected = Reach::of(job).and_then(|reach| StdStream::connect(&reach.path));
        match connected {
            Ok(stream) => Ok(Some(Connection(stream))),
            // A killed process has left the socket, or an ending process has just removed it.
            Err(problem)
                if matches!(
                    problem.kind(),
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
                ) =>
            {
                Ok(None)
            }
            Err(problem) => Err(ControlError::file(&path, &problem)),
        }
    }

    pub(super) fn send(
        mut self,
        request: &CommandRequest,
        respond: &mut dyn FnMut(CommandResponse) -> bool,
    ) -> Result<(), ControlError> {
        let lost = |problem: io::Error| {
            ControlError::new(
                ErrorKind::Failure,
                format!("the process that ran the job has ended: {problem}"),
            )
        };
        let mut line =
            serde_json::to_vec(request).map_err(|problem| ControlError::failure(&problem))?;
        line.push(b'\n');
        self.0.write_all(&line).map_err(lost)?;
        let mut answers = io::BufReader::new(self.0);
        loop {
            line.clear();
            if answers.read_until(b'\n', &mut line).map_err(lost)? == 0 {
                return Err(lost(io::ErrorKind::UnexpectedEof.into()));
            }
            let answer: CommandResponse =
                serde_json::from_slice(&line).map_err(|problem| ControlError::failure(&problem))?;
            let is_last = matches!(
                answer,
                CommandResponse::End | CommandResponse::Refused { .. }
            );
            if !respond(answer) || is_last {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_owner_can_use_the_socket_also_at_a_long_path() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("d".repeat(90)).join("e".repeat(90));
        fs::create_dir_all(&deep).unwrap();
        for job in [home.path(), &deep] {
            // A stale socket is in its place.
            let dead = bind(job).unwrap();
            drop(dead);
            assert!(Connection::open(job).unwrap().is_none());

            let listener = listen(job).unwrap();
            let mode = fs::metadata(job.join(NAME)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{mode:o}");
            assert!(Connection::open(job).unwrap().is_some());
            drop(listener);
            assert!(Connection::open(job).unwrap().is_none());
            let names = fs::read_dir(job).unwrap();
            let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            assert!(
                names
                    .iter()
                    .all(|name| !name.to_string_lossy().starts_with('.')),
                "{names:?}"
            );
        }
    }

    #[test]
    fn invalid_requests_are_refused_with_a_reason() {
        for (line, reason) in [
            (&b"GET / HTTP/1.1\r\n"[..], "invalid request"),
            (b"\xff\xfe\n", "invalid request"),
            (b"{}\n", "invalid request"),
        ] {
            match read_request(line) {
                Err(CommandResponse::Refused { message, .. }) => {
                    assert!(message.contains(reason), "{message}");
                }
                other => panic!("{other:?}"),
            }
        }
        let long = vec![b'x'; REQUEST_BYTES_MAX as usize + 1];
        assert!(read_request(&long).is_err());
    }
}
