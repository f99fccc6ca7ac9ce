//! The binary in a home of its own.

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

/// No line takes this long to come, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A working directory, with what is said of every crawl.
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

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A profile that is in no way polite to this machine, whose disk may be nearly full, and says this besides.
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

    /// Names in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The command, not begun.
    pub(crate) fn opilio(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opilio"));
        command.args(arguments);
        self.furnish(command)
    }

    /// The command below a shell that first says `before`.
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
        // Components are kept in `XDG_CACHE_HOME/opilio/components`: compiled once for all tests.
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

    /// Begins the command; its standard error can be followed.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.opilio(arguments);
        command.stdout(Stdio::null());
        Running::of(command)
    }

    /// Begins the command; its standard error and its standard output can be followed.
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
                // The test may have seen enough.
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
    /// Exit code; −1 where a signal ended it.
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

    /// Lines of standard error, without notes about plugins that are compiled or built: a machine has these where that takes a
    /// second.
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

    /// Forgets the lines that were seen, so that the next ones are waited for.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Waits for a line of standard error.
    #[track_caller]
    pub(crate) fn until_said(&mut self, what: &str) {
        while !self.seen.iter().any(|line| line.contains(what)) {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(_) => panic!("waited in vain for {what:?} in {:#?}", self.seen),
            }
        }
    }

    /// Lines of standard error that were seen.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Waits for the end; the exit code, −1 where a signal was it.
    pub(crate) fn wait(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing to do where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A tree of pages, each naming the next two, and what each weighs besides.
pub(crate) async fn tree(pages: usize, bytes_a_page: usize) -> Web {
    held_tree(pages, bytes_a_page, &[]).await
}

/// A tree some pages of which come when their gates are open. Pages are asked for in the order of their numbers, one at a time:
/// a crawl has not ended while one is held, however long a busy machine takes to interfere.
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

/// Text that hardly compresses.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    };
    (0..length).map(|_| next()).collect()
}

/// The URIs of [`tree`].
pub(crate) fn uris_of_tree(web: &Web, pages: usize) -> Vec<String> {
    let mut uris = vec![web.url(WWW, "/")];
    uris.extend((2..pages).map(|n| web.url(WWW, &format!("/{n}.html"))));
    uris
}
