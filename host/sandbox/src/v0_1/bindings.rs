//! Rust bindings of contract 0.1.0 in `wit/published/0.1.0/`: generated, never edited. The records of its `types` are those of
//! the current contract, which have not changed.

wasmtime::component::bindgen!({
    path: "../../wit/published/0.1.0",
    inline: "
        package opilio:sandbox;

        world every-kind {
            include opilio:plugin/plugin@0.1.0;
            export opilio:plugin/extractor@0.1.0;
            export opilio:plugin/filter@0.1.0;
            export opilio:plugin/digest-stripper@0.1.0;
            export opilio:plugin/wait-evaluator@0.1.0;
        }
    ",
    world: "opilio:sandbox/every-kind",
    imports: { default: trappable },
    with: {
        "opilio:plugin/types": crate::types::opilio::plugin::types,
        "opilio:plugin/documents.document": crate::document::Document,
        "opilio:plugin/documents.visit": crate::visit::Visit,
    },
});
