//! An interface that a component exports for a kind of plugin, in any contract version.

use wasmtime::component::InstancePre;

use crate::call_state::CallState;
use crate::contract::Contract;
use crate::describe::Callable;

/// Error for a call of a kind that the component does not export. Callers check its kinds before.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("its component does not export {}", .0.name())]
pub(crate) struct NotExported(pub(crate) Callable);

/// An exported interface, ready to be called.
macro_rules! guest {
    ($self:ident, $store:ident, $instance:ident, $interface:ident, $kind:ident) => {
        $self
            .$interface
            .as_ref()
            .ok_or(NotExported(Callable::$kind))?
            .load(&mut *$store, $instance)?
    };
}
pub(crate) use guest;

/// Returns `true` if a component exports the interface of a kind, in this version of the contract.
pub(crate) fn exports(
    instance: &InstancePre<CallState>,
    contract: Contract,
    kind: Callable,
) -> bool {
    instance
        .component()
        .get_export_index(None, contract.interface(kind.name()))
        .is_some()
}
