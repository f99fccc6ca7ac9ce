//! Snapshots: turns a configured instance back into a component, with the parts of `wasmtime-wizer`. `instrument` runs before
//! compiling, `configure` is called through the ordinary bindings, and `take` follows. Wizer's own runner cannot call a function
//! of an interface with a version. Its wasmtime feature would bring async and a second cache.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmparser::{Parser, Payload, Validator, WasmFeatures};
use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Instance, Lift, WasmList};
use wasmtime_wizer::{ComponentContext, ComponentInstanceState, Wizer};

use crate::call_state::CallState;

/// A component with accessors to all of its state, or the reason for which it cannot be snapshotted.
pub(crate) fn instrument(component: &[u8]) -> Result<(ComponentContext<'_>, Vec<u8>), String> {
    // Valid features that Wizer does not support.
    let unknown = WasmFeatures::MEMORY64 | WasmFeatures::THREADS;
    check(component, WasmFeatures::default().difference(unknown))?;
    catch_panics(|| {
        Wizer::new()
            .instrument_component(component)
            .map_err(|error| error.root_cause().to_string())
    })
}

/// Returns `true` if it is a valid component, with every proposal to the standards enabled.
pub(crate) fn is_valid(component: &[u8]) -> bool {
    check(component, WasmFeatures::all()).is_ok()
}

/// Checks that a component is valid. Wizer takes every component as valid, and panics at some that are not.
fn check(component: &[u8], features: WasmFeatures) -> Result<(), String> {
    let invalid = |error: wasmparser::BinaryReaderError| error.message().to_owned();
    for payload in Parser::new(0).parse_all(component) {
        // The validator accepts a part that ends where the file does, between two of its sections.
        if let Payload::ModuleSection {
            unchecked_range, ..
        }
        | Payload::ComponentSection {
            unchecked_range, ..
        } = payload.map_err(invalid)?
            && unchecked_range.end > component.len()
        {
            return Err("it ends within a section".to_owned());
        }
    }
    Validator::new_with_features(features)
        .validate_all(component)
        .map(drop)
        .map_err(invalid)
}

/// Makes a component with the current memory of `instance`, which is of the instrumented component.
pub(crate) fn take(
    context: &ComponentContext<'_>,
    store: &mut Store<CallState>,
    instance: Instance,
) -> Result<Vec<u8>, String> {
    catch_panics(|| {
        let mut state = State {
            store,
            instance,
            problem: None,
        };
        let snapshot = {
            let wizer = Wizer::new();
            let future = pin!(wizer.snapshot_component(context, &mut state));
            match future.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(snapshot) => snapshot.map_err(|error| error.root_cause().to_string()),
                Poll::Pending => Err("the pre-initialiser did not finish at once".to_owned()),
            }
        };
        match state.problem {
            Some(problem) => Err(problem),
            None => snapshot,
        }
    })
}

/// Catches panics: Wizer panics on some unexpected input, and that must not end the host.
fn catch_panics<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err("the pre-initialiser does not understand this component".to_owned())
    })
}

/// Reads state through the accessors. The trait has no errors, so the first problem is kept for `take`.
struct State<'a> {
    store: &'a mut Store<CallState>,
    instance: Instance,
    problem: Option<String>,
}

impl State<'_> {
    fn call<R, T: Default>(
        &mut self,
        interface: &str,
        function: &str,
        read: impl FnOnce(&Store<CallState>, R) -> T,
    ) -> T
    where
        R: Lift + Send + Sync + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let answer = (|| {
            let (_, interface) = self
                .instance
                .get_export(&mut *self.store, None, interface)?;
            let (_, function) =
                self.instance
                    .get_export(&mut *self.store, Some(&interface), function)?;
            let function = self
                .instance
                .get_typed_func::<(), (R,)>(&mut *self.store, function)
                .ok()?;
            function.call(&mut *self.store, ()).ok()
        })();
        match answer {
            Some((value,)) => read(self.store, value),
            None => {
                self.problem.get_or_insert_with(|| {
                    format!("its state cannot be read through {interface}#{function}")
                });
                T::default()
            }
        }
    }
}

impl ComponentInstanceState for State<'_> {
    async fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        self.call(instance, func, |store, list: WasmList<u8>| {
            contents(list.as_le_slice(store))
        });
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.call(instance, func, |_, value| value)
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.call(instance, func, |_, value| value)
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.call(instance, func, |_, value: f32| value.to_bits())
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.call(instance, func, |_, value: f64| value.to_bits())
    }
}
