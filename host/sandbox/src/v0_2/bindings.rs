//! Rust bindings of contract 0.2.0 in `wit/published/0.2.0/`: generated, never edited. They cover the imports and the two
//! interfaces whose types have changed since. The records of `types` are those of the current contract.

wasmtime::component::bindgen!({
    path: "../../wit/published/0.2.0",
    inline: "
        package opilio:sandbox;

        world changed-kinds {
            include opilio:plugin/plugin@0.2.0;
            export opilio:plugin/filter@0.2.0;
        }
    ",
    world: "opilio:sandbox/changed-kinds",
    imports: { default: trappable },
    with: {
        "opilio:plugin/types": crate::types::opilio::plugin::types,
        "opilio:plugin/documents.document": crate::document::Document,
        "opilio:plugin/documents.candidates": crate::candidates::Candidates,
        "opilio:plugin/documents.queue": crate::queue::Queue,
        "opilio:plugin/documents.visit": crate::visit::Visit,
    },
});
