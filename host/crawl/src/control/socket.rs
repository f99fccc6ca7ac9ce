//! The job's control socket: `control` in its directory, for its owner alone. A line of JSON is a [`Request`], answered
//! by a line of JSON for each [`Answer`]; then the next request may come.
//!
//! A client can be slow, silent or mad without the crawl noticing: commands run beside it, requests and waiting have
//! limits, and nothing of the crawl is held while an answer is written.

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

use super::{Answer, ControlError, Fault, Request, Running};

/// The socket's name in the job's directory.
const NAME: &str = "control";

/// Longest request. A URI has up to 64 KiB, and JSON may write a byte as six.
const REQUEST_BYTES_MAX: u64 = 512 * 1024;

/// Clients at the same time; more wait until one has gone.
const CLIENTS_MAX: u32 = 16;

/// How long a client may be silent, or take for reading one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long commands that are being carried out may take when the crawl ends; then they are left where they are.
const GRACE: Duration = Duration::from_secs(5);

/// Answers on their way to a client; past it the command waits for it.
const ANSWERS_AHEAD: usize = 16;

/// Longest path that every system takes for a socket's; Linux takes 107 bytes, others 103.
const PATH_BYTES_MAX: usize = 100;

/// The socket of a running crawl.
pub(crate) struct Server {
    path: PathBuf,
    accepting: JoinHandle<()>,
    clients: Arc<Semaphore>,
    ending: watch::Sender<bool>,
}

impl Server {
    /// Begins to take commands. Needs the job's lock, which makes whatever socket is there a dead one.
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

    /// Takes no more commands. Those that are being carried out are answered, as far as that takes no longer than
    /// [`GRACE`], and in any case come to the end of a part.
    pub(crate) async fn close(mut self) {
        // The name first, so that nobody comes in vain.
        let _ = fs::remove_file(&self.path);
        self.ending.send_replace(true);
        if timeout(GRACE, &mut self.accepting).await.is_err() {
            self.accepting.abort();
            let _ = self.accepting.await;
        }
        // A command holds its client's place for as long as it works.
        let _ = self.clients.acquire_many(CLIENTS_MAX).await;
    }
}

/// A socket that nobody else could have opened, in the place of whatever is there.
fn listen(job: &Path) -> io::Result<UnixListener> {
    // In a folder of our own until its mode is right, so that there is no moment at which others may connect.
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

/// A way to a socket that is short enough: addresses of sockets hold some hundred bytes.
struct Reach {
    path: PathBuf,
    // Open as long as the path goes by its number.
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
                    "its path has {length} bytes, and a socket's may have {PATH_BYTES_MAX} here; move the job to a shorter one"
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
    // Dropped, and so ended, with this task.
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
            // Too many open files, most likely; a moment later there may be fewer.
            Some((Err(_), _)) => tokio::time::sleep(Duration::from_millis(100)).await,
            None => break,
        }
    }
    while conversations.join_next().await.is_some() {}
}

/// Everything that one client asks.
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
    // The socket's mode says so already, where systems heed it.
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
            // What comes next would only be understood by accident.
            Err(refused) => {
                let _ = send(&mut write, &refused).await;
                return;
            }
        };
        if let Some(pid) = peer.pid().and_then(|pid| u32::try_from(pid).ok()) {
            request.by.pid = pid;
        }
        if request.by.user.is_empty() {
            request.by.user = format!("uid-{}", peer.uid());
        }
        let (sender, mut answers) = mpsc::channel(ANSWERS_AHEAD);
        let (running, permit) = (running.clone(), permit.clone());
        tokio::task::spawn_blocking(move || {
            let profile = running.context.current();
            running
                .desk(&profile)
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

fn read_request(line: &[u8]) -> Result<Request, Answer> {
    let refused = |message: String| Answer::Refused {
        fault: Fault::Request,
        message,
    };
    if line.len() as u64 > REQUEST_BYTES_MAX {
        return Err(refused(format!(
            "a request may have {REQUEST_BYTES_MAX} bytes"
        )));
    }
    serde_json::from_slice(line).map_err(|problem| refused(format!("no request: {problem}")))
}

async fn send(write: &mut OwnedWriteHalf, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    timeout(PATIENCE, write.write_all(&line)).await?
}

/// A way to the process that runs a job.
pub(super) struct Connection(StdStream);

impl Connection {
    /// None: no process takes commands there.
    pub(super) fn open(job: &Path) -> Result<Option<Connection>, ControlError> {
        let path = job.join(NAME);
        if !path.exists() {
            return Ok(None);
        }
        let connected = Reach::of(job).and_then(|reach| StdStream::connect(&reach.path));
        match connected {
            Ok(stream) => Ok(Some(Connection(stream))),
            // A process that was killed has left it, or one that is just ending has taken it away.
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

    pub(super) fn ask(
        mut self,
        request: &Request,
        say: &mut dyn FnMut(Answer) -> bool,
    ) -> Result<(), ControlError> {
        let lost = |problem: io::Error| {
            ControlError::new(
                Fault::Failure,
                format!("the process that runs the job has gone: {problem}"),
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
            let answer: Answer =
                serde_json::from_slice(&line).map_err(|problem| ControlError::failure(&problem))?;
            let is_last = matches!(answer, Answer::End | Answer::Refused { .. });
            if !say(answer) || is_last {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[tokio::test]
    async fn a_socket_is_its_owners_alone_wherever_the_job_is() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("d".repeat(90)).join("e".repeat(90));
        fs::create_dir_all(&deep).unwrap();
        for job in [home.path(), &deep] {
            // A dead one in its place.
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
    fn what_is_no_request_is_refused_with_a_reason() {
        for (line, reason) in [
            (&b"GET / HTTP/1.1\r\n"[..], "no request"),
            (b"\xff\xfe\n", "no request"),
            (b"{}\n", "no request"),
        ] {
            match read_request(line) {
                Err(Answer::Refused { message, .. }) => {
                    assert!(message.contains(reason), "{message}");
                }
                other => panic!("{other:?}"),
            }
        }
        let long = vec![b'x'; REQUEST_BYTES_MAX as usize + 1];
        assert!(read_request(&long).is_err());
    }
}
