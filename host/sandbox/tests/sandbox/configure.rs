//! Settings of plugins, and the results of `configure`.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use opilio_sandbox::{
    ConfigureError, Engine, EngineConfig, FaultKind, Preparation, Stage, Start, observe_preparation,
};
use serde_json::json;

use crate::guest::{Described, Guest};
use crate::support::{candidates, config, config_of, limits, load};

/// A guest that refuses all settings with two errors.
fn refusing() -> Guest {
    let mut guest = Guest::filter("(i32.const 0)");
    let mut faults = Vec::new();
    for (pointer, problem) in [("/patterns/0", "is not an expression"), ("", "is too odd")] {
        faults.extend(guest.data.text(pointer));
        faults.extend(guest.data.text(problem));
    }
    let list = guest.data.words(&faults);
    let refused = guest.data.words(&[1, list, 2]);
    guest.configure = format!("(i32.const {refused})");
    guest
}

/// A guest that stores its settings in `configure` and returns them as the reason of a ruling.
pub(crate) fn remembering() -> Guest {
    Guest {
        configure: "(i32.store (i32.const 64) (local.get 2)) (i32.store (i32.const 68) (local.get 3)) (i32.const 0)"
            .to_owned(),
        ..Guest::filter(
            "(local $answer i32) (local $ruling i32)
            (local.set $answer (call $rulings (local.get 4) (i32.const 2)))
            (local.set $ruling (i32.load (local.get $answer)))
            (i32.store (i32.add (local.get $ruling) (i32.const 16)) (i32.load (i32.const 64)))
            (i32.store (i32.add (local.get $ruling) (i32.const 20)) (i32.load (i32.const 68)))
            (local.get $answer)",
        )
    }
}

#[test]
fn settings_errors_have_json_pointers() {
    let component = load(refusing());
    for error in [
        component
            .configure(config(json!({"patterns": ["("]}), limits()))
            .unwrap_err(),
        component
            .configure_each_call(config(json!({"patterns": ["("]}), limits()))
            .unwrap_err(),
    ] {
        let message = error.to_string();
        assert_eq!(
            message,
            "guest 1.0.0 refuses its settings: /patterns/0: is not an expression; is too odd"
        );
        let ConfigureError::Settings { faults, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(faults[0].pointer, "/patterns/0");
        assert_eq!(faults[1].problem, "is too odd");
    }
}

#[test]
fn every_instance_starts_with_the_state_of_configure() {
    let component = load(remembering());
    let settings = json!({"b": 1, "a": [true]});
    let from_snapshot = component
        .configure(config(settings.clone(), limits()))
        .unwrap();
    assert_eq!(from_snapshot.start(), &Start::Snapshot { cached: false });
    let each_call = component
        .configure_each_call(config(settings, limits()))
        .unwrap();
    assert!(!each_call.snapshotted());
    for plugin in [from_snapshot, each_call] {
        for _ in 0..2 {
            let rulings = plugin
                .judge_candidates(Stage::Scope, &candidates(1))
                .unwrap();
            assert_eq!(
                rulings[0].reason,
                r#"{"a":[true],"b":1}"#,
                "{:?}",
                plugin.start()
            );
        }
    }
}

/// Names of the components whose compilation delayed a caller.
static COMPILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn both_compilations_of_a_component_are_reported() {
    observe_preparation(|step| {
        if let Preparation::Compiling(origin) = step {
            COMPILED.lock().unwrap().push(origin.to_owned());
        }
    });
    let engine = Engine::new(EngineConfig::default()).unwrap();
    let origin = "reported guest";
    let component = engine.load(&remembering().build(), origin).unwrap();
    let compiled = || {
        let compiled = COMPILED.lock().unwrap();
        compiled.iter().filter(|name| *name == origin).count()
    };
    assert_eq!(compiled(), 1);
    let plugin = component.configure_with_snapshot(config(json!({"a": 1}), limits()));
    assert!(plugin.unwrap().snapshotted());
    assert_eq!(compiled(), 2);
}

#[test]
fn a_snapshot_is_compiled_when_its_plugin_has_been_called_often() {
    let engine = Engine::new(EngineConfig {
        instances_max: 2,
        snapshots_later: true,
        ..EngineConfig::default()
    });
    let component = engine.unwrap().load(&remembering().build(), "guest");
    let component = component.unwrap();
    let settings = json!({"a": 1});
    let plugin = component
        .configure(config(settings.clone(), limits()))
        .unwrap();
    assert!(!plugin.snapshotted());
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let is_snapshotted = plugin.snapshotted();
        let rulings = plugin
            .judge_candidates(Stage::Scope, &candidates(1))
            .unwrap();
        assert_eq!(rulings[0].reason, r#"{"a":1}"#);
        if is_snapshotted {
            break;
        }
        assert!(Instant::now() < deadline, "{:?}", plugin.start());
    }
    let at_once = component.configure_with_snapshot(config(settings, limits()));
    assert!(at_once.unwrap().snapshotted());
}

#[test]
fn the_order_of_settings_does_not_matter() {
    let component = load(remembering());
    let a = component
        .configure(config(
            serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap(),
            limits(),
        ))
        .unwrap();
    let b = component
        .configure(config(
            serde_json::from_str(r#"{"b":2,"a":1}"#).unwrap(),
            limits(),
        ))
        .unwrap();
    let c = component
        .configure(config(json!({"a": 1, "b": 3}), limits()))
        .unwrap();
    assert_eq!(a.settings_sha256(), b.settings_sha256());
    assert_ne!(a.settings_sha256(), c.settings_sha256());
}

#[test]
fn a_component_that_cannot_be_snapshotted_is_configured_in_every_instance() {
    let guest = Guest {
        fields: "(table $t 1 funcref) (func (export \"unused\") (drop (table.grow $t (ref.null func) (i32.const 1))))"
            .to_owned(),
        ..remembering()
    };
    let plugin = load(guest)
        .configure(config(json!({"a": 1}), limits()))
        .unwrap();
    let Start::EachCall { why } = plugin.start() else {
        panic!("{plugin:?}")
    };
    assert!(why.contains("table.grow"), "{why}");
    for _ in 0..2 {
        let rulings = plugin
            .judge_candidates(Stage::Scope, &candidates(1))
            .unwrap();
        assert_eq!(rulings[0].reason, r#"{"a":1}"#);
    }
}

#[test]
fn a_trap_in_configure_is_an_error() {
    let component = load(Guest {
        configure: "(unreachable)".to_owned(),
        ..Guest::filter("(i32.const 0)")
    });
    for _ in 0..2 {
        let error = component
            .configure(config(json!({}), limits()))
            .unwrap_err();
        let ConfigureError::Fault(fault) = error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (fault.kind, &*fault.uri),
            (FaultKind::Trap, "configure"),
            "{fault:?}"
        );
    }
}

#[test]
fn an_endless_configure_is_stopped() {
    let component = load(Guest {
        configure: "(loop $l (br $l)) (i32.const 0)".to_owned(),
        ..Guest::filter("(i32.const 0)")
    });
    let limits = opilio_sandbox::Limits {
        time: Duration::from_millis(30),
        ..limits()
    };
    let error = component.configure(config(json!({}), limits)).unwrap_err();
    assert!(
        matches!(&error, ConfigureError::Fault(fault) if fault.kind == FaultKind::Timeout),
        "{error:?}"
    );
}

#[test]
fn one_of_several_plugins_must_be_named() {
    let component = load(Guest {
        described: vec![
            Described {
                name: "one",
                ..Described::default()
            },
            Described {
                name: "two",
                ..Described::default()
            },
        ],
        ..remembering()
    });
    let error = component
        .configure(config(json!({}), limits()))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "guest holds several plugins; name one of one, two"
    );
    let error = component
        .configure(config_of("three", json!({}), limits()))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "guest has no plugin `three`; it has: one, two"
    );
    assert_eq!(
        component
            .configure(config_of("two", json!({}), limits()))
            .unwrap()
            .name(),
        "two"
    );
}

#[test]
fn settings_must_be_an_object() {
    let error = load(remembering())
        .configure(config(json!([]), limits()))
        .unwrap_err();
    assert!(
        matches!(error, ConfigureError::NoObject { .. }),
        "{error:?}"
    );
}
