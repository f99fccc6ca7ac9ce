//! Runs independent steps concurrently, and reports the duration of each.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::repository::root;

/// Most concurrent steps. More would wait for memory and network rather than for processors.
const AT_ONCE_MAX: usize = 4;

/// Variable that names the folder of the tools that projects share.
pub(super) const TOOLCHAINS: &str = "OPILIO_TOOLCHAINS";

/// Used in place of a language name for steps that install tools for the others.
pub(super) const FETCHING: &str = "toolchains";

type Work = Box<dyn FnOnce() -> Result<()> + Send>;

struct Step {
    language: &'static str,
    name: String,
    work: Work,
}

/// Steps to be run.
#[derive(Default)]
pub(super) struct Steps(VecDeque<Step>);

/// Results of the steps.
pub(super) struct StepResults {
    elapsed: Duration,
    /// Steps of each language, and the sum of their durations.
    languages: BTreeMap<&'static str, (usize, Duration)>,
}

impl Steps {
    /// Adds a step for a language.
    pub(super) fn add(
        &mut self,
        language: &'static str,
        name: impl Into<String>,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) {
        self.0.push_back(Step {
            language,
            name: name.into(),
            work: Box::new(work),
        });
    }

    /// Removes steps whose line does not contain this text.
    pub(super) fn only(mut self, text: Option<&str>) -> Self {
        let is_selected = |step: &Step| {
            let fetches = step.language == FETCHING;
            fetches
                || text
                    .is_none_or(|text| format!("{}: {}", step.language, step.name).contains(text))
        };
        self.0.retain(is_selected);
        self
    }

    /// Runs all steps to their end. The error lists every failed step.
    pub(super) fn run(self) -> Result<StepResults> {
        let began = Instant::now();
        let waiting = Mutex::new(self.0);
        let took = Mutex::new(BTreeMap::<&'static str, (usize, Duration)>::new());
        let problems = Mutex::new(Vec::new());
        let workers =
            thread::available_parallelism().map_or(1, |count| count.get().min(AT_ONCE_MAX));
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        // The lock is held while a step is taken, not while it runs.
                        let next = lock(&waiting).pop_front();
                        let Some(step) = next else { break };
                        let Step {
                            language,
                            name,
                            work,
                        } = step;
                        let began = Instant::now();
                        let ended = work();
                        print_step(language, &name, began.elapsed(), ended.is_ok());
                        let mut took = lock(&took);
                        let of_language = took.entry(language).or_default();
                        of_language.0 += 1;
                        of_language.1 += began.elapsed();
                        if let Err(problem) = ended {
                            lock(&problems).push(format!("{language}, {name}: {problem:#}"));
                        }
                    }
                });
            }
        });
        let problems = problems
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        ensure!(problems.is_empty(), anyhow!(problems.join("\n\n")));
        Ok(StepResults {
            elapsed: began.elapsed(),
            languages: took.into_inner().unwrap_or_else(PoisonError::into_inner),
        })
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::print_stdout, reason = "the progress of the command")]
fn print_step(language: &str, name: &str, took: Duration, well: bool) {
    let outcome = if well { "" } else { " FAILED" };
    println!("{:7.1} s  {language}: {name}{outcome}", took.as_secs_f64());
}

/// The folder of the tools that all projects share here. The user's own tools are neither used nor changed.
pub(super) fn toolchains() -> PathBuf {
    root().join("target/toolchains")
}

/// Runs a command that must succeed. Prints its output only if it fails.
pub(super) fn run_quietly(command: &mut Command) -> Result<()> {
    let ended = command
        .env(TOOLCHAINS, toolchains())
        .output()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(
        ended.status.success(),
        "{command:?} ended with {}:\n{}{}",
        ended.status,
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
    Ok(())
}

/// One line for each language, and one for the total.
pub(super) fn summary(all: &[StepResults]) -> String {
    let mut languages = BTreeMap::<&str, (usize, Duration)>::new();
    for ran in all {
        for (language, (count, took)) in &ran.languages {
            let of_language = languages.entry(language).or_default();
            of_language.0 += count;
            of_language.1 += *took;
        }
    }
    let mut text = String::new();
    for (language, (count, took)) in languages {
        text += &format!(
            "{language:12} {count:3} steps {:7.1} s\n",
            took.as_secs_f64()
        );
    }
    let elapsed: Duration = all.iter().map(|ran| ran.elapsed).sum();
    text + &format!("in all {:.1} s, several at once\n", elapsed.as_secs_f64())
}
