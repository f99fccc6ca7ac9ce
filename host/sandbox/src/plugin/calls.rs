//! The steps that all calls of a plugin have in common: the program that a call starts from, permits, `configure` where there is
//! no snapshot, remembered answers, and statistics.

use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use wasmtime::Store;
use wasmtime::component::Instance;

use super::{LaterSnapshot, Plugin, PluginInner, Start};
use crate::answer_cache::{AnswerCache, CachedAnswer, CallInputs, Trace};
use crate::call::{CallUsage, call};
use crate::call_state::CallState;
use crate::callee::CallTarget;
use crate::candidates::Candidates;
use crate::component::Program;
use crate::describe::Callable;
use crate::exports::Exports;
use crate::fault::{Fault, FaultKind, Problem};
use crate::interface::NotExported;
use crate::permits::Permits;
use crate::statistics::PluginStatistics;

impl Plugin {
    /// The program that starts from the later snapshot, once that is compiled.
    pub(super) fn later_program(&self) -> Option<&Program> {
        self.0.later.as_ref().and_then(LaterSnapshot::program)
    }

    /// Counts a call without a snapshot. Starts the compilation of the snapshot after enough calls.
    fn count_without_snapshot(&self) {
        let (Some(later), Some(queue)) = (&self.0.later, &self.0.shared.snapshots) else {
            return;
        };
        if later.count_call() {
            let plugin = Arc::downgrade(&self.0);
            queue.push(move || {
                if let Some(plugin) = plugin.upgrade()
                    && let Some(later) = &plugin.later
                {
                    later.compile(&plugin.configuration);
                }
            });
        }
    }

    /// Returns the remembered answer for the same input and host state. Otherwise it makes a call and remembers the answer. It
    /// always makes a call if answers are not remembered.
    pub(super) fn recall_or_call<Q: Clone + Eq + Hash, A: Clone>(
        &self,
        known: Option<&AnswerCache<Q, A>>,
        key: &Q,
        uri: Arc<str>,
        about: CallInputs<'_>,
        work: impl FnOnce(&Exports, &mut Store<CallState>, Instance) -> Result<A, Problem>,
    ) -> Result<A, Fault> {
        let Some(known) = known else {
            return self.call(uri, work);
        };
        if let Some(cached) = known.recall(key, about) {
            self.note(|statistics| {
                statistics.calls += 1;
                for (name, n) in &cached.counts {
                    statistics.count(name, *n, self.limits().counters);
                }
            });
            return Ok(cached.answer.clone());
        }
        let (answer, used) = self.call_and_use(uri, |exports, store, instance| {
            store.data_mut().trace = Some(Trace::default());
            work(exports, store, instance)
        });
        if let (Ok(answer), Some(trace)) = (&answer, used.trace) {
            let cached = CachedAnswer {
                answer: answer.clone(),
                counts: used.counts,
            };
            let answers = about.candidates.map_or(1, Candidates::len);
            known.remember(key, trace, cached, answers);
        }
        answer
    }

    pub(crate) fn call<R>(
        &self,
        uri: Arc<str>,
        work: impl FnOnce(&Exports, &mut Store<CallState>, Instance) -> Result<R, Problem>,
    ) -> Result<R, Fault> {
        self.call_and_use(uri, work).0
    }

    fn call_and_use<R>(
        &self,
        uri: Arc<str>,
        work: impl FnOnce(&Exports, &mut Store<CallState>, Instance) -> Result<R, Problem>,
    ) -> (Result<R, Fault>, CallUsage) {
        let PluginInner {
            shared,
            configuration,
            ..
        } = &*self.0;
        let (program, is_configured) = match (self.later_program(), &self.0.start) {
            (Some(snapshot), _) => (snapshot, true),
            (None, Start::Snapshot { .. }) => (&self.0.program, true),
            (None, Start::EachCall { .. }) => {
                self.count_without_snapshot();
                (&self.0.program, false)
            }
        };
        let target = CallTarget {
            callee: configuration.callee.clone(),
            uri,
        };
        let _permit = self.0.permits.as_ref().map(Permits::acquire);
        let (answer, used) = call(shared, &program.instance, &target, |store, instance| {
            if !is_configured {
                let ready = store.data_mut().begin_setup();
                self.configure(store, instance)?;
                store.data_mut().end_setup(ready);
            }
            store.data_mut().wasi.begin_call();
            work(&program.exports, store, instance)
        });
        if !used.by_uri {
            self.0.has_read_more.store(true, Ordering::Release);
        }
        self.0.has_judged.store(true, Ordering::Release);
        self.note(|statistics| {
            if let Err(fault) = &answer {
                *statistics.faults.entry(fault.kind).or_default() += 1;
            }
            statistics.calls += 1;
            statistics.times.add(used.time);
            statistics.memory_max = statistics.memory_max.max(used.memory as u64);
            statistics.log_bytes_dropped += used.log_bytes_dropped;
            statistics.kept_dropped += used.kept_dropped;
            for (name, n) in &used.counts {
                statistics.count(name, *n, self.limits().counters);
            }
        });
        (answer, used)
    }

    pub(crate) fn note(&self, work: impl FnOnce(&mut PluginStatistics)) {
        let mut statistics = self
            .0
            .statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        work(&mut statistics);
    }

    fn configure(&self, store: &mut Store<CallState>, instance: Instance) -> Result<(), Problem> {
        let exports = &self.0.program.exports;
        match exports.configure(store, &instance, self.name(), self.settings())? {
            Ok(()) => Ok(()),
            Err(faults) => {
                let first = faults
                    .first()
                    .map(|fault| fault.problem.as_str())
                    .unwrap_or("no reason given");
                Err(Problem::Unconfigured(format!(
                    "refused settings that it accepted before: {first}"
                )))
            }
        }
    }

    /// Checks that the plugin has a kind. A call of another kind is an error of the caller and not of the plugin, so it is not
    /// counted.
    pub(crate) fn check_has(&self, kind: Callable, uri: &Arc<str>) -> Result<(), Fault> {
        if self.0.program.kinds.contains(&kind) {
            return Ok(());
        }
        Err(Fault {
            plugin: self.0.configuration.callee.name.clone(),
            described: self.0.configuration.callee.described.clone(),
            uri: uri.clone(),
            kind: FaultKind::Nonsense,
            message: NotExported(kind).to_string(),
            backtrace: Box::default(),
            log: Vec::new(),
        })
    }
}
