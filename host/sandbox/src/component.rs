//! Loading of components: checks, compilation, and the descriptions of their plugins. A component must be configured before its
//! plugins can be called.

use std::collections::BTreeSet;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use wasmtime::component::InstancePre;

use crate::Description;
use crate::cache::{Cache, Key};
use crate::call::call;
use crate::call_state::CallState;
use crate::callee::{CallTarget, Callee, DESCRIBE};
use crate::compiler::{Refusal, Task, one_sentence};
use crate::contract::{self, Contract, Exported};
use crate::describe::{self, Callable, DescriptionProblem};
use crate::exports::Exports;
use crate::fault::{Fault, Problem};
use crate::limits::Limits;
use crate::notes::one_line;
use crate::preparation::{Preparation, report_preparation};
use crate::shared::Shared;
use crate::wasi;

/// Largest component, in bytes. Python's, the largest known, have 18 MB.
pub const COMPONENT_BYTES_MAX: usize = 64 << 20;

/// Reason for which a component cannot be loaded. Each is one sentence that begins with the component's origin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Larger than [`COMPONENT_BYTES_MAX`].
    #[error(
        "{origin} has {bytes} bytes; components may have {COMPONENT_BYTES_MAX}: strip its debug information, or optimise for size"
    )]
    TooLarge {
        /// The component.
        origin: String,
        /// Its size.
        bytes: usize,
    },
    /// Not WebAssembly at all.
    #[error(
        "{origin} is not a WebAssembly component: it has no WebAssembly header; name the `.wasm` file that its toolchain made"
    )]
    NotWasm {
        /// The component.
        origin: String,
    },
    /// A core module: its author has left out a step.
    #[error(
        "{origin} is a core module, not a component: make one of it with `wasm-tools component new`"
    )]
    CoreModule {
        /// The component.
        origin: String,
    },
    /// Truncated, damaged, or with features that the engine does not support.
    #[error(
        "{origin} is truncated, damaged or not a valid component: {problem}; copy or build it again"
    )]
    Malformed {
        /// The component.
        origin: String,
        /// The engine's message, with the position.
        problem: String,
    },
    /// Valid WebAssembly that this engine does not run: a proposal that is not enabled, or more memories, tables or modules than
    /// an instance may have.
    #[error(
        "{origin} exceeds what plugins may use of WebAssembly: {problem}; build it without that feature, or with fewer memories, tables and modules"
    )]
    Demanding {
        /// The component.
        origin: String,
        /// The engine's message.
        problem: String,
    },
    /// Valid WebAssembly whose compilation takes too much.
    #[error("{origin} is too costly to compile: {problem}")]
    Costly {
        /// The component.
        origin: String,
        /// The bound that it exceeds.
        problem: String,
    },
    /// No compiler is available now.
    #[error("{origin} has not been compiled: {problem}; load it again")]
    Uncompiled {
        /// The component.
        origin: String,
        /// The obstacle.
        problem: String,
    },
    /// An import that plugins do not get.
    #[error("{origin} imports {import}, which is not available to plugins: {advice}")]
    Import {
        /// The component.
        origin: String,
        /// The import's name.
        import: String,
        /// An alternative.
        advice: String,
    },
    /// The component imports or exports an interface of the contract with functions or types that this contract version does not
    /// have.
    #[error("{origin} does not fit the plugin contract {contract}: {problem}")]
    Contract {
        /// The component.
        origin: String,
        /// Its contract version.
        contract: &'static str,
        /// The part that does not fit.
        problem: String,
    },
    /// A component without a plugin.
    #[error("{origin} is not a plugin: it does not export {}", Contract::CURRENT.interface("setup"))]
    NoPlugin {
        /// The component.
        origin: String,
    },
    /// A plugin for a contract that this version does not support.
    #[error("{origin} cannot be used: {advice}")]
    OtherContract {
        /// The component.
        origin: String,
        /// Its contract, and the contract that would work.
        advice: String,
    },
    /// Its description is invalid.
    #[error("{origin} {}", one_line(&problem.to_string()))]
    Description {
        /// The component.
        origin: String,
        /// The error in the description.
        problem: DescriptionProblem,
    },
    /// `describe` failed.
    #[error("{origin} cannot describe its plugins: {}: {}", fault.kind, fault.message)]
    Describe {
        /// The component.
        origin: String,
        /// The plugin error.
        fault: Box<Fault>,
    },
}

/// A component that can be configured. Clones are the same component.
#[derive(Clone, Debug)]
pub struct Component(pub(crate) Arc<Loaded>);

pub(crate) struct Loaded {
    pub(crate) shared: Arc<Shared>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sha256: String,
    pub(crate) origin: String,
    /// The program compiled with accessors for a snapshot, if possible.
    pub(crate) program: Program,
    /// Reason for which it cannot be snapshotted.
    pub(crate) refusal: Option<String>,
    pub(crate) plugins: Vec<Description>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component")
            .field("origin", &self.origin)
            .field("sha256", &self.sha256)
            .finish_non_exhaustive()
    }
}

impl Component {
    pub(crate) fn load(shared: Arc<Shared>, bytes: &[u8], origin: &str) -> Result<Self, LoadError> {
        check_kind_of_file(bytes, origin)?;
        let sha256 = HEXLOWER.encode(&Sha256::digest(bytes));
        let (compiled, refusal) =
            prepare(&shared, bytes, &sha256, origin).map_err(|refusal| refused(refusal, origin))?;
        check_imports(&shared, &compiled, origin)?;
        let contract = contract_of(&shared, &compiled, origin)?;
        let program = Program::new(&shared, contract, &compiled)
            .map_err(|error| misfit_error(&error, contract, origin))?;
        let plugins = describe(&shared, &program, origin)?;
        describe::check(&plugins, &program.kinds).map_err(|problem| LoadError::Description {
            origin: origin.to_owned(),
            problem,
        })?;
        let bytes = bytes.to_vec();
        Ok(Self(Arc::new(Loaded {
            shared,
            bytes,
            sha256,
            origin: origin.to_owned(),
            program,
            refusal,
            plugins,
        })))
    }

    /// The digest of the component's bytes, in lower-case hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.0.sha256
    }

    /// Its origin, as given to [`Engine::load`](crate::Engine::load).
    pub fn origin(&self) -> &str {
        &self.0.origin
    }

    /// Its plugins, at least one.
    pub fn plugins(&self) -> &[Description] {
        &self.0.plugins
    }
}

fn check_kind_of_file(bytes: &[u8], origin: &str) -> Result<(), LoadError> {
    const CORE_VERSION: [u8; 4] = [1, 0, 0, 0];
    let origin = || origin.to_owned();
    if bytes.len() > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge {
            origin: origin(),
            bytes: bytes.len(),
        });
    }
    match bytes.strip_prefix(b"\0asm") {
        None => Err(LoadError::NotWasm { origin: origin() }),
        Some(rest) if rest.starts_with(&CORE_VERSION) => {
            Err(LoadError::CoreModule { origin: origin() })
        }
        Some(_) => Ok(()),
    }
}

/// The error for a file that is refused.
fn refused(refusal: Refusal, origin: &str) -> LoadError {
    let origin = origin.to_owned();
    match refusal {
        Refusal::Malformed(problem) => LoadError::Malformed { origin, problem },
        Refusal::Demanding(problem) => LoadError::Demanding { origin, problem },
        Refusal::Costly(problem) => LoadError::Costly { origin, problem },
        Refusal::Stopped(problem) => LoadError::Uncompiled { origin, problem },
    }
}

/// The compiled component, with accessors for a snapshot unless it refuses them, and the reason of the refusal.
fn prepare(
    shared: &Shared,
    bytes: &[u8],
    sha256: &str,
    origin: &str,
) -> Result<(wasmtime::component::Component, Option<String>), Refusal> {
    let key = Key::of(&["prepared", &shared.compatibility, sha256]);
    compiled(shared, &key, Task::Prepare, bytes, origin)
}

/// The component from the cache under this key. If it is missing, it is compiled and cached.
pub(crate) fn compiled(
    shared: &Shared,
    key: &Key,
    task: Task,
    bytes: &[u8],
    origin: &str,
) -> Result<(wasmtime::component::Component, Option<String>), Refusal> {
    let known = shared.cache.as_ref();
    if let Some(known) = known.and_then(|cache| cached(shared, cache, key)) {
        return Ok(known);
    }
    report_preparation(Preparation::Compiling(origin));
    let compiled = compile(shared, key, task, bytes);
    report_preparation(Preparation::Compiled);
    compiled
}

/// Compiles a component and caches it.
pub(crate) fn compile(
    shared: &Shared,
    key: &Key,
    task: Task,
    bytes: &[u8],
) -> Result<(wasmtime::component::Component, Option<String>), Refusal> {
    let entry = shared.compiler.run(&shared.engine, task, bytes)?;
    if let Some(cache) = &shared.cache {
        cache.write(key, &entry);
    }
    // SAFETY: these bytes come from this engine, or from the same program's compiler with the same configuration. Besides,
    // wasmtime's own header confirms that they are for this engine.
    let component =
        unsafe { wasmtime::component::Component::deserialize(&shared.engine, &entry.compiled) };
    match component {
        Ok(component) => Ok((component, entry.refusal)),
        Err(error) => Err(Refusal::Demanding(one_sentence(&error))),
    }
}

/// The component from the cache under this key, if the engine accepts it.
pub(crate) fn cached(
    shared: &Shared,
    cache: &Cache,
    key: &Key,
) -> Option<(wasmtime::component::Component, Option<String>)> {
    let entry = cache.read(key)?;
    // Mapped and not read: only the parts of a component that run take memory.
    // SAFETY: the entry's digest confirms that it is whole and as this program wrote it, into a directory that only the operator
    // can write. Files there are replaced and removed, never changed. The key and wasmtime's own header confirm that it is for
    // this engine.
    let mapped =
        unsafe { wasmtime::component::Component::deserialize_file(&shared.engine, &entry.path) };
    // Code cannot be run from a file system that is mounted with `noexec`, for example.
    // SAFETY: as above.
    let component = mapped.or_else(|_| unsafe {
        wasmtime::component::Component::deserialize(&shared.engine, entry.compiled()?)
    });
    match component {
        Ok(component) => Some((component, entry.refusal)),
        Err(error) => {
            tracing::warn!(%error, "compiled component cannot be used; compiling it again");
            None
        }
    }
}

/// Refuses imports by name, with a shorter message than the engine's.
fn check_imports(
    shared: &Shared,
    component: &wasmtime::component::Component,
    origin: &str,
) -> Result<(), LoadError> {
    for (import, _) in component.component_type().imports(&shared.engine) {
        if !contract::may_import(import) && !wasi::is_offered(import) {
            return Err(LoadError::Import {
                origin: origin.to_owned(),
                import: format!("`{import}`"),
                advice: advice_for(import),
            });
        }
    }
    Ok(())
}

/// The contract version of a component.
fn contract_of(
    shared: &Shared,
    component: &wasmtime::component::Component,
    origin: &str,
) -> Result<Contract, LoadError> {
    let exports = component.component_type();
    let names = exports.exports(&shared.engine).map(|(name, _)| name);
    match Contract::exported(names) {
        Exported::Known(contract) => Ok(contract),
        Exported::Other(version) => Err(LoadError::OtherContract {
            origin: origin.to_owned(),
            advice: contract::other_version(&version),
        }),
        Exported::None => Err(LoadError::NoPlugin {
            origin: origin.to_owned(),
        }),
    }
}

/// Turns an engine error into an import error or a contract error. A function or resource that the contract's interface lacks is
/// reported as a missing import; every other difference is a misfit. Only the wording of the engine's message distinguishes the
/// two. If the wording changes, the contract error still has the whole message.
fn misfit_error(error: &wasmtime::Error, contract: Contract, origin: &str) -> LoadError {
    let origin = origin.to_owned();
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    if let [interface, item, cause] = causes.as_slice()
        && cause.ends_with(" implementation is missing")
        && let (Some(interface), Some(item)) = (quoted(interface), quoted(item))
    {
        return LoadError::Import {
            origin,
            import: format!("`{item}` of `{interface}`"),
            advice: contract::advice_for_item(&interface),
        };
    }
    LoadError::Contract {
        origin,
        contract: contract.version(),
        problem: causes.join(": "),
    }
}

fn advice_for(import: &str) -> String {
    wasi::advice(import).unwrap_or_else(|| contract::advice_for_interface(import))
}

/// Calls `describe` in a fresh instance.
fn describe(
    shared: &Shared,
    program: &Program,
    origin: &str,
) -> Result<Vec<Description>, LoadError> {
    let target = CallTarget {
        callee: Callee::not_configured(origin, None, Limits::default()),
        uri: DESCRIBE.into(),
    };
    let (answer, _) = call(shared, &program.instance, &target, |store, instance| {
        if let Err(error) = program.exports.check_types(store, &instance) {
            return Ok(Err(format!("{error:#}")));
        }
        Ok::<_, Problem>(Ok(program.exports.describe(store, &instance)?))
    });
    match answer {
        Ok(Ok(plugins)) => Ok(plugins),
        Ok(Err(problem)) => Err(LoadError::Contract {
            origin: origin.to_owned(),
            contract: program.exports.contract().version(),
            problem,
        }),
        Err(fault) => Err(LoadError::Describe {
            origin: origin.to_owned(),
            fault: Box::new(fault),
        }),
    }
}

/// A compiled component with its imports resolved and its exports found.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) instance: InstancePre<CallState>,
    pub(crate) exports: Exports,
    /// The kinds whose interfaces it exports.
    pub(crate) kinds: BTreeSet<Callable>,
}

impl Program {
    pub(crate) fn new(
        shared: &Shared,
        contract: Contract,
        component: &wasmtime::component::Component,
    ) -> wasmtime::Result<Self> {
        let with_wasi = wasi::linker(&shared.linker, component)?;
        let linker = with_wasi.as_ref().unwrap_or(&shared.linker);
        let instance = linker.instantiate_pre(component)?;
        let exports = Exports::new(contract, &instance)?;
        Ok(Self {
            kinds: exports.kinds(),
            exports,
            instance,
        })
    }
}
