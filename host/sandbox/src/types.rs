//! Rust bindings of the interface `types` of the contract in `wit/`: generated, never edited. The resources that the host lends to
//! plugins are made of these types, and the bindings of the other interfaces (`bindings.rs`) use both.

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package opilio:sandbox;

        world shared-types {
            import opilio:plugin/types@0.3.0;
        }
    ",
    world: "opilio:sandbox/shared-types",
    imports: { default: trappable },
    additional_derives: [PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize],
});
