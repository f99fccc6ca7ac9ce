//! The compiler. It runs in a child process that can be stopped, if the program provides one, otherwise in this process.
//!
//! ```text
//! load ──► Compiler ──► cheap checks, instrument, compile ──► Entry, for the cache and for the engine
//!             └ a child of this program: killed if it exceeds its time or memory, or when the host exits
//! ```
//!
//! A component may occupy the compiler for any time and with any amount of memory; its size does not predict this. So the host
//! program starts itself as a child process that only compiles ([`run_compiler`]). The child ends after an idle time, and when its
//! parent ends. Tests and embedders have no such program. They compile in their own process, with only the bounds of
//! [`crate::function_bounds`].

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::cache::Entry;
use crate::function_cache::Functions;
use crate::{engine_config, function_bounds, snapshot};

/// Bounds on the compilation of one component.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Processor time of all threads together. If the system does not report it, the same wall-clock time.
    time: Duration,
    /// Memory of the compiling process, in bytes. If the system does not report it, there is no bound.
    memory: u64,
}

/// The error number of a process with too many open files, on Linux and macOS.
const EMFILE: i32 = 24;

/// Python's components, the largest known, take a quarter of the time and a third of the memory.
const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(120),
    memory: 2 << 30,
};

/// Interval at which a compiling process is checked. It allocates some 50 MiB meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Idle time after which a compiling process ends. Until then it keeps functions for the next component.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The program that compiles, with its argument.
static PROGRAM: OnceLock<(PathBuf, OsString)> = OnceLock::new();

/// Makes all engines of this process compile in children: `program` with this argument, and the directory of cached components if
/// there is one. Its `main` calls [`run_compiler`]. Only the first call counts, and it must come before the first engine is made.
pub fn compile_in_child(program: PathBuf, argument: impl Into<OsString>) {
    // A second call has no effect: it names the same program.
    let _ = PROGRAM.set((program, argument.into()));
}

/// A task of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Check the component, add accessors for a snapshot if it allows them, and compile it.
    Prepare,
    /// Compile a snapshot of a prepared component.
    Compile,
}

/// Reason for which a component is not compiled. Each is a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Invalid WebAssembly.
    Malformed(String),
    /// Valid, but not supported by this engine.
    Demanding(String),
    /// Compilation would exceed, or has exceeded, its bounds.
    Costly(String),
    /// The component may be valid, but no compiler is available.
    Stopped(String),
}

impl Refusal {
    pub(crate) fn problem(self) -> String {
        match self {
            Self::Malformed(problem)
            | Self::Demanding(problem)
            | Self::Costly(problem)
            | Self::Stopped(problem) => problem,
        }
    }
}

/// The compiler of one engine. Threads that compile at the same time have a child each.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// Functions that this process has compiled, and the directory of those of children.
    functions: Arc<Functions>,
    /// Children that wait for a task.
    waiting: Mutex<Vec<Helper>>,
    stopped: AtomicBool,
}

impl Compiler {
    pub(crate) fn new(functions: Arc<Functions>) -> Self {
        Self {
            functions,
            waiting: Mutex::default(),
            stopped: AtomicBool::default(),
        }
    }

    /// Runs a task, in a child if there is one.
    pub(crate) fn run(
        &self,
        engine: &wasmtime::Engine,
        task: Task,
        component: &[u8],
    ) -> Result<Entry, Refusal> {
        match PROGRAM.get() {
            None => work(engine, &self.functions, task, component),
            Some((program, argument)) => self.in_child(program, argument, task, component),
        }
    }

    /// Stops the current compilation and refuses further ones.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Returns `true` after [`Compiler::stop`].
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn in_child(
        &self,
        program: &PathBuf,
        argument: &OsString,
        task: Task,
        component: &[u8],
    ) -> Result<Entry, Refusal> {
        let no_process = |problem: io::Error| {
            let remedy = match problem.raw_os_error() {
                Some(EMFILE) => "; raise the limit on open files (ulimit -n)",
                _ => "",
            };
            Refusal::Stopped(format!("no process to compile it in: {problem}{remedy}"))
        };
        loop {
            let waiting = self.waiting().pop();
            let is_new = waiting.is_none();
            let mut helper = match waiting {
                Some(helper) => helper,
                None => Helper::start(program, argument, self.functions.directory())
                    .map_err(no_process)?,
            };
            match helper.run(task, component, BOUNDS, &self.stopped) {
                Ok(answer) => {
                    self.waiting().push(helper);
                    return read_answer(&answer);
                }
                Err(ChildEnd::Idle) if is_new => {
                    return Err(no_process(io::ErrorKind::BrokenPipe.into()));
                }
                // The child ended because it was idle. Another one is started in its place.
                Err(ChildEnd::Idle) => {}
                Err(ChildEnd::Refused(refusal)) => return Err(refusal),
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Helper>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks and compiles, in this process, and saves the compiled functions.
fn work(
    engine: &wasmtime::Engine,
    functions: &Functions,
    task: Task,
    component: &[u8],
) -> Result<Entry, Refusal> {
    let entry = match task {
        Task::Prepare => prepare(engine, component)?,
        Task::Compile => Entry {
            refusal: None,
            compiled: precompile(engine, component).map_err(Refusal::Demanding)?,
        },
    };
    functions.save();
    Ok(entry)
}

fn prepare(engine: &wasmtime::Engine, component: &[u8]) -> Result<Entry, Refusal> {
    function_bounds::check(component).map_err(Refusal::Costly)?;
    let refusal = match snapshot::instrument(component) {
        Ok((_, instrumented)) => match precompile(engine, &instrumented) {
            Ok(compiled) => {
                return Ok(Entry {
                    refusal: None,
                    compiled,
                });
            }
            Err(problem) => problem,
        },
        Err(refusal) => refusal,
    };
    // The engine describes an error in the component best.
    match precompile(engine, component) {
        Ok(compiled) => Ok(Entry {
            refusal: Some(refusal),
            compiled,
        }),
        Err(problem) if snapshot::is_valid(component) => Err(Refusal::Demanding(problem)),
        Err(problem) => Err(Refusal::Malformed(problem)),
    }
}

fn precompile(engine: &wasmtime::Engine, component: &[u8]) -> Result<Vec<u8>, String> {
    engine
        .precompile_component(component)
        .map_err(|error| one_sentence(&error))
}

/// The first line of an error's cause.
pub(crate) fn one_sentence(error: &wasmtime::Error) -> String {
    error
        .root_cause()
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// A child that compiles.
#[derive(Debug)]
struct Helper {
    child: Arc<Mutex<Child>>,
    /// Its process id.
    id: u32,
    requests: ChildStdin,
    answers: mpsc::Receiver<Result<Vec<u8>, io::Result<ExitStatus>>>,
}

/// Reason for which a child gives no answer.
enum ChildEnd {
    /// The child was idle.
    Idle,
    Refused(Refusal),
}

impl Helper {
    fn start(program: &PathBuf, argument: &OsString, cache: Option<&Path>) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg(argument)
            .args(cache)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // Ctrl-C is for the host, which ends in an orderly way.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let (Some(requests), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let id = child.id();
        let child = Arc::new(Mutex::new(child));
        let (tell, answers) = mpsc::channel();
        let waiting = child.clone();
        thread::Builder::new()
            .name("compiler".to_owned())
            .spawn(move || {
                while let Ok(answer) = read_frame(&mut output) {
                    // The caller no longer waits: the child will be ended soon.
                    let _ = tell.send(Ok(answer));
                }
                let status = lock(&waiting).wait();
                let _ = tell.send(Err(status));
            })?;
        Ok(Self {
            child,
            id,
            requests,
            answers,
        })
    }

    fn run(
        &mut self,
        task: Task,
        component: &[u8],
        bounds: Bounds,
        stopped: &AtomicBool,
    ) -> Result<Vec<u8>, ChildEnd> {
        // The exit was not caused by this component.
        if let Ok(Err(_)) = self.answers.try_recv() {
            return Err(ChildEnd::Idle);
        }
        let spent_before = ResourceUsage::of(self.id).time;
        let began = Instant::now();
        let request = [&[u8::from(task == Task::Prepare)], component].concat();
        // If the request cannot be written, the exit of the child gives the reason.
        let _ = write_frame(&mut self.requests, &request);
        loop {
            match self.answers.recv_timeout(LOOK_INTERVAL) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(Ok(status))) if status.success() => return Err(ChildEnd::Idle),
                Ok(Err(status)) => {
                    let status = match status {
                        Ok(status) => status.to_string(),
                        Err(problem) => problem.to_string(),
                    };
                    return Err(ChildEnd::Refused(Refusal::Costly(format!(
                        "the process that compiled it ended ({status})"
                    ))));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(ChildEnd::Idle),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let spent = ResourceUsage::of(self.id);
            let time = match (spent.time, spent_before) {
                (Some(time), Some(before)) => time.saturating_sub(before),
                _ => began.elapsed(),
            };
            let refusal = if stopped.load(Ordering::Acquire) {
                Refusal::Stopped("the crawl is ending".to_owned())
            } else if time > bounds.time {
                Refusal::Costly(format!(
                    "compiling it took longer than {} s of processor time",
                    bounds.time.as_secs_f64()
                ))
            } else if spent.memory.is_some_and(|bytes| bytes > bounds.memory) {
                Refusal::Costly(format!(
                    "compiling it took more than {} MiB of memory",
                    bounds.memory >> 20
                ))
            } else {
                continue;
            };
            return Err(ChildEnd::Refused(refusal));
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // A child that has ended already cannot be killed.
        let _ = lock(&self.child).kill();
        // The thread that reads its output reaps it.
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resources that a process has used so far, if the system reports them.
#[derive(Clone, Copy, Debug, Default)]
struct ResourceUsage {
    time: Option<Duration>,
    memory: Option<u64>,
}

impl ResourceUsage {
    /// Reads the use of a process on Linux (proc_pid_stat(5), proc_pid_status(5)).
    fn of(process: u32) -> Self {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).ok();
        // The second field, the program's name, may contain anything. User and system time are the 14th and 15th, in hundredths
        // of a second.
        let time = read("stat").and_then(|stat| {
            let (_, fields) = stat.rsplit_once(')')?;
            let ticks = fields.split_ascii_whitespace().skip(11).take(2);
            let ticks: Option<u64> = ticks.map(|field| field.parse::<u64>().ok()).sum();
            Some(Duration::from_millis(ticks? * 10))
        });
        let memory = read("status").and_then(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:"))?;
            let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kilobytes << 10)
        });
        Self { time, memory }
    }
}

/// The `main` of a child: compiles the requests from standard input until it ends. Functions are shared with other children
/// through the directory of cached components, the child's second argument.
pub fn run_compiler(cache: Option<OsString>) -> ExitCode {
    let cache = cache.map(PathBuf::from);
    let functions = Arc::new(Functions::in_directory(cache.as_deref()));
    let Ok(engine) = engine_config::compiling(&functions) else {
        return ExitCode::FAILURE;
    };
    let (tell, requests) = mpsc::channel();
    let reading = thread::Builder::new().spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(request) = read_frame(&mut input) {
            if tell.send(request).is_err() {
                return;
            }
        }
        // The parent no longer reads answers.
        exit(0);
    });
    if reading.is_err() {
        return ExitCode::FAILURE;
    }
    let mut output = io::stdout().lock();
    while let Ok(request) = requests.recv_timeout(IDLE_MAX) {
        let Some((kind, component)) = request.split_first() else {
            return ExitCode::FAILURE;
        };
        let task = match kind {
            0 => Task::Compile,
            _ => Task::Prepare,
        };
        let answer = write_answer(work(&engine, &functions, task, component));
        if write_frame(&mut output, &answer).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write_answer(answer: Result<Entry, Refusal>) -> Vec<u8> {
    let (kind, body) = match answer {
        Ok(entry) => (0, entry.to_bytes()),
        Err(Refusal::Malformed(problem)) => (1, problem.into()),
        Err(Refusal::Demanding(problem)) => (2, problem.into()),
        Err(Refusal::Costly(problem)) => (3, problem.into()),
        Err(Refusal::Stopped(problem)) => (4, problem.into()),
    };
    [&[kind], body.as_slice()].concat()
}

fn read_answer(answer: &[u8]) -> Result<Entry, Refusal> {
    let (kind, body) = answer.split_first().unwrap_or((&0, &[]));
    let problem = || String::from_utf8_lossy(body).into_owned();
    match kind {
        0 => Entry::parse(body).ok_or_else(|| {
            Refusal::Stopped("the process that compiled it gave an invalid answer".to_owned())
        }),
        1 => Err(Refusal::Malformed(problem())),
        2 => Err(Refusal::Demanding(problem())),
        3 => Err(Refusal::Costly(problem())),
        _ => Err(Refusal::Stopped(problem())),
    }
}

/// Writes bytes after their length, as both sides of the pipe send them.
fn write_frame(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(&(bytes.len() as u64).to_le_bytes())?;
    output.write_all(bytes)?;
    output.flush()
}

fn read_frame(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut bytes = Vec::new();
    match input.take(length).read_to_end(&mut bytes)? as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs this shell script as the child, in place of the compiler.
    fn run_script(script: &str, bounds: Bounds, stopped: bool) -> Result<Vec<u8>, Refusal> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("script");
        std::fs::write(&file, script).unwrap();
        let mut helper = Helper::start(&PathBuf::from("/bin/sh"), &file.into(), None).unwrap();
        let stopped = AtomicBool::new(stopped);
        match helper.run(Task::Prepare, b"component", bounds, &stopped) {
            Ok(answer) => Ok(answer),
            Err(ChildEnd::Refused(refusal)) => Err(refusal),
            Err(ChildEnd::Idle) => Err(Refusal::Stopped("idle".to_owned())),
        }
    }

    #[test]
    fn answers_of_a_child_are_read() {
        assert_eq!(
            run_script("exec cat", BOUNDS, false).unwrap(),
            b"\x01component"
        );
    }

    #[test]
    fn a_child_that_exceeds_a_bound_or_is_stopped_is_killed() {
        #[track_caller]
        fn check(answer: Result<Vec<u8>, Refusal>, expected: &str) {
            let problem = answer.unwrap_err().problem();
            assert!(problem.contains(expected), "{problem}");
        }
        let endless = "while :; do :; done";
        let time = Duration::from_millis(100);
        let short = Bounds { time, ..BOUNDS };
        check(
            run_script(endless, short, false),
            "longer than 0.1 s of processor time",
        );
        check(run_script(endless, BOUNDS, true), "the crawl is ending");
        #[cfg(target_os = "linux")]
        {
            let small = Bounds {
                memory: 1 << 10,
                ..BOUNDS
            };
            check(
                run_script(endless, small, false),
                "more than 0 MiB of memory",
            );
        }
        check(
            run_script("head -c 1 > /dev/null; kill -9 $$", BOUNDS, false),
            "ended (signal: 9",
        );
        check(run_script("exit 0", BOUNDS, false), "idle");
    }

    #[test]
    fn answers_survive_the_pipe() {
        let entry = Entry {
            refusal: Some("why".to_owned()),
            compiled: vec![1, 2, 3],
        };
        assert_eq!(read_answer(&write_answer(Ok(entry.clone()))), Ok(entry));
        for refusal in [
            Refusal::Malformed("a".to_owned()),
            Refusal::Demanding("b".to_owned()),
            Refusal::Costly("c".to_owned()),
        ] {
            let answer = write_answer(Err(refusal.clone()));
            assert_eq!(read_answer(&answer), Err(refusal));
        }
    }
}
