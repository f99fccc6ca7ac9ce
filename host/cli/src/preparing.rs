//! Progress of the preparation of plugins, and of builds. Compiling the components of a profile for the first time takes up to a
//! minute.
//!
//! Nothing is shown for the first second. Then a terminal shows a bar with the number and the name of the plugin, and other outputs
//! get a line every ten seconds.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use opilio_sandbox::{Preparation, observe_preparation};

use crate::live::{self, DisplayArgs};
use crate::terminal;

/// Time before anything is shown.
const SILENT: Duration = Duration::from_secs(1);

/// Interval between two lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval between two frames of the bar's spinner.
const TICK: Duration = Duration::from_millis(100);

/// The preparation that is in progress, if a component of it was compiled.
static PREPARATION: Mutex<State> = Mutex::new(State {
    plugins: None,
    compiling: None,
});

/// `true` if the output is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// `true` if a crawl has begun. It shows its own progress; plugins that are replaced during a crawl are not shown.
static IS_OVER: AtomicBool = AtomicBool::new(false);

struct State {
    /// Number of the plugin that is prepared, and of all plugins, if a profile names them.
    plugins: Option<(usize, usize)>,
    compiling: Option<Compiling>,
}

/// A compilation, or several in a row.
struct Compiling {
    /// Name of the component.
    name: String,
    began: Instant,
    /// The bar, once it is shown.
    bar: Option<ProgressBar>,
    /// Ends the wait of the thread that shows the bar, when it is dropped.
    _running: mpsc::Sender<()>,
}

/// Shows preparations of this process from now on.
pub(crate) fn show(display: DisplayArgs) {
    if !display.quiet {
        IS_JSON.store(display.json, Ordering::Relaxed);
        observe_preparation(observe);
    }
}

/// Shows no more preparations.
pub(crate) fn finish() {
    IS_OVER.store(true, Ordering::Relaxed);
}

fn observe(step: Preparation<'_>) {
    if IS_OVER.load(Ordering::Relaxed) {
        return;
    }
    let mut state = state();
    match step {
        Preparation::Plugin { number, of, .. } => state.plugins = Some((number, of)),
        Preparation::Done => {
            state.plugins = None;
            state.end();
        }
        Preparation::Compiling(name) => state.begin(name),
        // The next plugin of the profile follows.
        Preparation::Compiled if state.plugins.is_some() => {}
        Preparation::Compiled => state.end(),
    }
}

fn state() -> MutexGuard<'static, State> {
    PREPARATION.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn begin(&mut self, name: &str) {
        match &mut self.compiling {
            Some(compiling) => name.clone_into(&mut compiling.name),
            None => {
                let (running, ended) = mpsc::channel();
                self.compiling = Some(Compiling {
                    name: name.to_owned(),
                    began: Instant::now(),
                    bar: None,
                    _running: running,
                });
                thread::spawn(move || {
                    let waits = std::iter::once(SILENT).chain(std::iter::repeat(LINE_INTERVAL));
                    after_each(waits, &ended, || state().appear());
                });
            }
        }
        self.update();
    }

    /// Shows the preparation. Called first after the silent time, then at each interval.
    fn appear(&mut self) {
        let Some(compiling) = &mut self.compiling else {
            return;
        };
        if compiling.bar.is_some() {
            return;
        }
        if io::stderr().is_terminal() && !IS_JSON.load(Ordering::Relaxed) {
            let bar = match self.plugins {
                Some((_, of)) => ProgressBar::new(of as u64).with_style(style()),
                None => ProgressBar::new_spinner(),
            };
            bar.enable_steady_tick(TICK);
            compiling.bar = Some(bar);
            self.update();
            return;
        }
        let words = compiling.words(self.plugins);
        let json = IS_JSON.load(Ordering::Relaxed);
        live::note(&words, DisplayArgs { quiet: false, json });
    }

    fn update(&mut self) {
        let Some(compiling) = &self.compiling else {
            return;
        };
        if let Some(bar) = &compiling.bar {
            if let Some((number, _)) = self.plugins {
                bar.set_position(number as u64);
            }
            bar.set_message(format!("compiling {}", terminal::line(&compiling.name)));
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.compiling.take().and_then(|compiling| compiling.bar) {
            bar.finish_and_clear();
        }
    }
}

impl Compiling {
    /// Describes the compilation on a line of its own.
    fn words(&self, plugins: Option<(usize, usize)>) -> String {
        let name = terminal::line(&self.name);
        let place = plugins.map_or_else(String::new, |(number, of)| {
            format!(" (plugin {number} of {of})")
        });
        let seconds = self.began.elapsed().as_secs();
        format!(
            "compiling {name}{place}, {seconds} s so far; compiled plugins are kept for the next start"
        )
    }
}

/// Shows something after each wait, until the sender of `running` is dropped.
fn after_each(
    waits: impl Iterator<Item = Duration>,
    running: &mpsc::Receiver<()>,
    mut show: impl FnMut(),
) {
    for wait in waits {
        if running.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) {
            return;
        }
        show();
    }
}

/// Does work with a line after the first second, and one every ten seconds. For work during which other programs write to the
/// terminal: a spinner would mix with their lines.
pub(crate) fn with_lines<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let show = || {
        let seconds = began.elapsed().as_secs();
        let words = format!("{}, {seconds} s so far", terminal::line(what));
        let json = IS_JSON.load(Ordering::Relaxed);
        live::note(&words, DisplayArgs { quiet: false, json });
    };
    let waits = std::iter::once(SILENT).chain(std::iter::repeat(LINE_INTERVAL));
    showing(waits, show, work)
}

/// Does work, and shows something after each wait until it ends.
fn showing<T>(
    waits: impl Iterator<Item = Duration> + Send,
    show: impl FnMut() + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (running, ended) = mpsc::channel();
    thread::scope(move |scope| {
        scope.spawn(move || after_each(waits, &ended, show));
        let result = work();
        drop(running);
        result
    })
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{spinner:.green} [{bar:20}] {pos}/{len} {msg}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compilation_is_shown_repeatedly_until_it_ends() {
        let (running, ended) = mpsc::channel();
        let waits = || std::iter::repeat_n(Duration::ZERO, 3);
        let mut shown = 0;
        after_each(waits(), &ended, || shown += 1);
        assert_eq!(shown, 3);
        drop(running);
        after_each(waits(), &ended, || shown += 1);
        assert_eq!(shown, 3);
    }

    #[test]
    fn long_work_is_shown_until_it_ends() {
        let (shown, seen) = mpsc::channel();
        let waits = std::iter::repeat_n(Duration::ZERO, 3);
        let show = move || {
            let _ = shown.send(());
        };
        let result = showing(waits, show, || seen.recv());
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn a_line_names_the_component_and_the_elapsed_time() {
        let compiling = Compiling {
            name: "html\n".to_owned(),
            began: Instant::now(),
            bar: None,
            _running: mpsc::channel().0,
        };
        assert_eq!(
            compiling.words(Some((3, 20))),
            "compiling html  (plugin 3 of 20), 0 s so far; compiled plugins are kept for the next start"
        );
    }
}
