//! Runs the binary in a temporary working directory.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use opilio_stories::{component_cache, html, site};
use opilio_test_web::{Gate, Reply, Web};
use tempfile::TempDir;

/// The site that most tests crawl.
pub(crate) const WWW: &str = "www.story.localhost";

/// Longest wait for a line of output, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A temporary working directory for the binary.
pub(crate) struct Home(TempDir);

/// A command that is running.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn job(&self) -> PathBuf {
        self.path().join("job")
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes the profile `p.toml` with these settings. It has no politeness delays and no alerts about a full disk.
    pub(crate) fn profile(&self, more: &str) -> PathBuf {
        let text = format!(
            "politeness = {{ delay-factor = 0.0, min-delay = \"0s\", max-delay = \"0s\" }}\n\
             fetch = {{ allow-addresses = [\"loopback\"], response-timeout = \"10m\", spool-memory = \"4KiB\" }}\n\
             alerts.disk-warn = \"none\"\n\
             alerts.disk-pause = \"none\"\n\
             retry = {{ max-retries = 1, delay = \"20ms\" }}\n{more}\n"
        );
        self.file("p.toml", text)
    }

    /// Returns the sorted names in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Returns the command without starting it.
    pub(crate) fn opilio(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opilio"));
        command.args(arguments);
        self.furnish(command)
    }

    /// Returns the command as run by bash after the shell command `before`.
    pub(crate) fn opilio_after(&self, before: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("bash");
        command
            .args([
                "-c",
                &format!("{before}; exec \"$0\" \"$@\""),
                env!("CARGO_BIN_EXE_opilio"),
            ])
            .args(arguments);
        self.furnish(command)
    }

    fn furnish(&self, mut command: Command) -> Command {
        // All tests share the cache of compiled components in `XDG_CACHE_HOME/opilio/components`.
        let cache = component_cache().ancestors().nth(2).unwrap().to_owned();
        command
            .current_dir(self.path())
            .env("XDG_CACHE_HOME", cache)
            .env("XDG_DATA_HOME", self.path().join("data"))
            .env_remove("RUST_LOG");
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(&self.opilio(arguments).output().unwrap())
    }

    /// Starts the command; its standard error can be followed.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.opilio(arguments);
        command.stdout(Stdio::null());
        Running::of(command)
    }

    /// Starts the command; its standard error and its standard output can be followed.
    pub(crate) fn start_following_both(&self, arguments: &[&str]) -> Running {
        Running::of(self.opilio_after("exec >&2", arguments))
    }
}

impl Running {
    fn of(mut command: Command) -> Running {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines() {
                // The test may have stopped reading.
                let _ = sender.send(line.unwrap());
            }
        });
        Running {
            child,
            lines,
            seen: Vec::new(),
        }
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; −1 if a signal ended the process.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Ended {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let ended = Ended {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        ended
    }

    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Ended {
        assert_eq!(self.code, expected, "{self:#?}");
        self
    }

    /// Returns the lines of standard error without notes about the compilation and building of plugins, which appear only if they
    /// take longer than a second.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = &str> {
        let lines = self.err.trim_end().lines();
        lines.filter(|line| !line.starts_with("compiling ") && !line.starts_with("building "))
    }
}

impl Running {
    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// Forgets the lines read so far, so that [`Running::wait_for_line`] waits for later ones.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Waits for a line of standard error that contains a text.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, what: &str) {
        while !self.seen.iter().any(|line| line.contains(what)) {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(_) => panic!("waited in vain for {what:?} in {:#?}", self.seen),
            }
        }
    }

    /// Returns the lines of standard error that were read.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Waits for the end of the process. Returns the exit code; −1 if a signal ended the process.
    pub(crate) fn wait(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves a tree of pages: page n links to pages 2n and 2n + 1. Each page has this number of further bytes.
pub(crate) async fn tree(pages: usize, bytes_a_page: usize) -> Web {
    held_tree(pages, bytes_a_page, &[]).await
}

/// Serves a tree in which some pages are held until their gates are open. While a page is held, the crawl cannot end, however slow
/// the machine is. With one worker, pages are requested in the order of their numbers.
pub(crate) async fn held_tree(pages: usize, bytes_a_page: usize, held: &[(usize, &Gate)]) -> Web {
    let page = move |n: usize| {
        let children = [2 * n, 2 * n + 1]
            .into_iter()
            .filter(|child| *child < pages);
        let links: String = children
            .map(|child| format!("<a href='/{child}.html'>{child}</a>"))
            .collect();
        html(&format!("{links}<!-- {} -->", noise(n, bytes_a_page)))
    };
    let number = |target: &str| {
        target
            .strip_prefix('/')?
            .strip_suffix(".html")?
            .parse()
            .ok()
    };
    let site = held.iter().fold(site(WWW), |site, (number, gate)| {
        site.page(&format!("/{number}.html"), page(*number).behind(gate))
    });
    site.page("/", page(1))
        .rest(move |seen| number(&seen.target).map_or(Reply::status(404), page))
        .serve()
        .await
}

/// Returns text that hardly compresses.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    };
    (0..length).map(|_| next()).collect()
}

/// Returns the URIs of [`tree`].
pub(crate) fn uris_of_tree(web: &Web, pages: usize) -> Vec<String> {
    let mut uris = vec![web.url(WWW, "/")];
    uris.extend((2..pages).map(|n| web.url(WWW, &format!("/{n}.html"))));
    uris
}
