//! Bindings that wit-bindgen generates from `wit/`: records and imports once, and each exported interface in a module with its
//! own world. So a component exports exactly the kinds it has. Plugin authors see the re-exports in `lib.rs`, not these paths.
//!
//! Records have serde attributes, because cases (`testing`) are JSON under the names of the WIT.
#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::allow_attributes_without_reason,
    clippy::missing_safety_doc,
    reason = "generated code"
)]

pub use wit_bindgen::rt;

/// Records and imports.
pub mod common {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world common {
                import opilio:plugin/types@0.3.0;
                import opilio:plugin/documents@0.3.0;
                import opilio:plugin/log@0.3.0;
                import opilio:plugin/counters@0.3.0;
                import opilio:plugin/tables@0.3.0;
            }
        ",
        world: "opilio:sdk/common",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq],
        additional_type_attributes: {
            "opilio:plugin/types@0.3.0/named-value": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/header": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/span": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/date-signal": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/submission": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/link-details": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/link": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/candidate": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/past-visit": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/signal": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/kept-value": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/tables@0.3.0/row": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/tables@0.3.0/kind": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/neighbourhood": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/fragment": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/hop": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/content-state": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/types@0.3.0/fragment-content": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/documents@0.3.0/action-result": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
        },
        additional_member_attributes: {
            "opilio:plugin/types@0.3.0/hop.link": [#[default]],
            "opilio:plugin/types@0.3.0/content-state.unknown": [#[default]],
            "opilio:plugin/types@0.3.0/fragment.context": [#[serde(default)]],
            "opilio:plugin/types@0.3.0/fragment.base": [#[serde(default)]],
        },
    });
}

/// `setup`, which every component exports.
pub mod setup {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world setup {
                export opilio:plugin/setup@0.3.0;
            }
        ",
        world: "opilio:sdk/setup",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
        },
        additional_type_attributes: {
            "opilio:plugin/setup@0.3.0/handles": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/setup@0.3.0/settings-fault": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
        },
    });
}

/// The kind `extractor`.
pub mod extractor {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world extractor {
                export opilio:plugin/extractor@0.3.0;
            }
        ",
        world: "opilio:sdk/extractor",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
            "opilio:plugin/documents@0.3.0": crate::bindings::common::opilio::plugin::documents,
        },
        additional_type_attributes: {
            "opilio:plugin/extractor@0.3.0/extraction": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
        },
    });
}

/// The kind `filter`.
pub mod filter {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world filter {
                export opilio:plugin/filter@0.3.0;
            }
        ",
        world: "opilio:sdk/filter",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
            "opilio:plugin/documents@0.3.0": crate::bindings::common::opilio::plugin::documents,
        },
        additional_type_attributes: {
            "opilio:plugin/filter@0.3.0/stage": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/filter@0.3.0/verdict": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/filter@0.3.0/ruling": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(deny_unknown_fields, rename_all = "kebab-case")]],
        },
        additional_member_attributes: {
            "opilio:plugin/filter@0.3.0/ruling.reason": [#[serde(default)]],
        },
    });
}

/// The kind `digest-stripper`.
pub mod digest_stripper {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world digest-stripper {
                export opilio:plugin/digest-stripper@0.3.0;
            }
        ",
        world: "opilio:sdk/digest-stripper",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
            "opilio:plugin/documents@0.3.0": crate::bindings::common::opilio::plugin::documents,
        },
        additional_type_attributes: {
            "opilio:plugin/digest-stripper@0.3.0/strip-problem": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
        },
    });
}

/// The kind `wait-evaluator`.
pub mod wait_evaluator {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world wait-evaluator {
                export opilio:plugin/wait-evaluator@0.3.0;
            }
        ",
        world: "opilio:sdk/wait-evaluator",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
            "opilio:plugin/documents@0.3.0": crate::bindings::common::opilio::plugin::documents,
        },
        additional_type_attributes: {
            "opilio:plugin/wait-evaluator@0.3.0/wait": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
        },
    });
}

/// The kind `change-evaluator`.
pub mod change_evaluator {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world change-evaluator {
                export opilio:plugin/change-evaluator@0.3.0;
            }
        ",
        world: "opilio:sdk/change-evaluator",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
            "opilio:plugin/documents@0.3.0": crate::bindings::common::opilio::plugin::documents,
        },
        additional_type_attributes: {
            "opilio:plugin/change-evaluator@0.3.0/difference": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/change-evaluator@0.3.0/comparison": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
        },
    });
}

/// The kind `precedence`.
pub mod precedence {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world precedence {
                export opilio:plugin/precedence@0.3.0;
            }
        ",
        world: "opilio:sdk/precedence",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
            "opilio:plugin/documents@0.3.0": crate::bindings::common::opilio::plugin::documents,
        },
    });
}

/// The kind `observer`.
pub mod observer {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world observer {
                export opilio:plugin/observer@0.3.0;
            }
        ",
        world: "opilio:sdk/observer",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
        },
        additional_type_attributes: {
            "opilio:plugin/observer@0.3.0/finished": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/observer@0.3.0/line": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/observer@0.3.0/observation": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/observer@0.3.0/report-file": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
        },
    });
}

/// The kind `page-behavior`.
pub mod page_behavior {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package opilio:sdk;
            world page-behavior {
                export opilio:plugin/page-behavior@0.3.0;
            }
        ",
        world: "opilio:sdk/page-behavior",
        pub_export_macro: true,
        runtime_path: "opilio_plugin::bindings::rt",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        with: {
            "opilio:plugin/types@0.3.0": crate::bindings::common::opilio::plugin::types,
            "opilio:plugin/documents@0.3.0": crate::bindings::common::opilio::plugin::documents,
        },
        additional_type_attributes: {
            "opilio:plugin/page-behavior@0.3.0/scroll-target": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/page-behavior@0.3.0/click": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/page-behavior@0.3.0/selector-wait": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
            "opilio:plugin/page-behavior@0.3.0/action": [#[derive(serde::Deserialize, serde::Serialize)] #[serde(rename_all = "kebab-case")]],
            "opilio:plugin/page-behavior@0.3.0/step-plan": [#[derive(Default, serde::Deserialize, serde::Serialize)] #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]],
        },
    });
}
