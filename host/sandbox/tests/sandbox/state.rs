//! No state crosses calls, whatever the guest does, from however many threads.

use opilio_sandbox::{Engine, EngineConfig, Stage, Verdict, spawn_lane};
use serde_json::json;

use crate::configure::remembering;
use crate::guest::Guest;
use crate::support::{candidates, config, limits, plugin};

/// Accepts at the first call, rejects at every later one: in memory, and in a global.
fn counting() -> Guest {
    Guest {
        fields: "(global $calls (mut i32) (i32.const 0))".to_owned(),
        ..Guest::filter(
            "(local $seen i32)
            (local.set $seen (i32.or (i32.load (i32.const 64)) (global.get $calls)))
            (i32.store (i32.const 64) (i32.const 1))
            (global.set $calls (i32.const 1))
            (call $rulings (local.get 4) (local.get $seen))",
        )
    }
}

#[test]
fn no_call_sees_what_another_left() {
    let plugin = plugin(counting());
    for _ in 0..20 {
        let rulings = plugin
            .judge_candidates(Stage::Scope, &candidates(2))
            .unwrap();
        assert_eq!(
            rulings
                .iter()
                .map(|ruling| &ruling.verdict)
                .collect::<Vec<_>>(),
            [&Verdict::Accept; 2]
        );
    }
    assert_eq!(plugin.statistics().calls, 20);
}

#[test]
fn memory_that_a_call_grew_is_gone() {
    // Accepts while it has its first page alone, then takes 20 more and writes to the last.
    let plugin = plugin(Guest::filter(
        "(local $answer i32)
        (local.set $answer (call $rulings (local.get 4) (i32.ne (memory.size) (i32.const 1))))
        (drop (memory.grow (i32.const 20)))
        (i32.store (i32.const 1300000) (i32.const 7))
        (local.get $answer)",
    ));
    for _ in 0..5 {
        let rulings = plugin
            .judge_candidates(Stage::Scope, &candidates(1))
            .unwrap();
        assert_eq!(rulings[0].verdict, Verdict::Accept);
    }
    assert_eq!(plugin.statistics().memory_max, 21 * 65536);
}

#[test]
fn a_trap_leaves_nothing_behind() {
    // Writes, then traps; would answer if it saw what it wrote.
    let plugin = plugin(Guest::filter(
        "(if (i32.load (i32.const 64)) (then (return (call $rulings (local.get 4) (i32.const 0)))))
        (i32.store (i32.const 64) (i32.const 1))
        (unreachable)",
    ));
    for _ in 0..5 {
        assert!(
            plugin
                .judge_candidates(Stage::Scope, &candidates(1))
                .is_err()
        );
    }
    assert_eq!(plugin.statistics().faults_all(), 5);
}

#[test]
fn many_threads_may_call_while_instances_are_few() {
    let engine = Engine::new(EngineConfig {
        instances_max: 2,
        ..EngineConfig::default()
    })
    .unwrap();
    let component = engine.load(&remembering().build(), "guest").unwrap();
    let plugin = component
        .configure(config(json!({"a": 1}), limits()))
        .unwrap();
    let lanes: Vec<_> = (0..4)
        .map(|n| {
            let plugin = plugin.clone();
            spawn_lane(&format!("lane {n}"), move || {
                for _ in 0..250 {
                    let rulings = plugin
                        .judge_candidates(Stage::Scope, &candidates(3))
                        .unwrap();
                    assert_eq!(
                        (rulings.len(), rulings[0].reason.as_str()),
                        (3, r#"{"a":1}"#)
                    );
                }
            })
            .unwrap()
        })
        .collect();
    for lane in lanes {
        lane.join().unwrap();
    }
    let statistics = plugin.statistics();
    assert_eq!((statistics.calls, statistics.faults_all()), (1_000, 0));
}
