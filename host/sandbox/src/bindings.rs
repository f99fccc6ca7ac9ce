//! Rust bindings of the contract in `wit/`: generated, never edited. One world has every kind, so that each interface has one set
//! of types. `exports.rs` finds out which interfaces a component exports.

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package opilio:sandbox;

        world every-kind {
            include opilio:plugin/plugin@0.3.0;
            export opilio:plugin/extractor@0.3.0;
            export opilio:plugin/filter@0.3.0;
            export opilio:plugin/digest-stripper@0.3.0;
            export opilio:plugin/change-evaluator@0.3.0;
            export opilio:plugin/wait-evaluator@0.3.0;
            export opilio:plugin/precedence@0.3.0;
            export opilio:plugin/observer@0.3.0;
            export opilio:plugin/page-behavior@0.3.0;
        }
    ",
    world: "opilio:sandbox/every-kind",
    imports: { default: trappable },
    with: {
        "opilio:plugin/types": crate::types::opilio::plugin::types,
        "opilio:plugin/documents.document": crate::document::Document,
        "opilio:plugin/documents.candidates": crate::candidates::Candidates,
        "opilio:plugin/documents.queue": crate::queue::Queue,
        "opilio:plugin/documents.visit": crate::visit::Visit,
        "opilio:plugin/documents.page": crate::page::LoadedPage,
    },
    additional_derives: [PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize],
});
