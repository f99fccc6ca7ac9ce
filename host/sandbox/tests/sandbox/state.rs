//! No state survives a call, with any guest and from any number of threads.

use opilio_sandbox::{Engine, EngineConfig, Limits, Stage, Verdict, spawn_lane};
use serde_json::json;

use crate::configure::remembering;
use crate::guest::Guest;
use crate::support::{candidates, config, limits, load, plugin};

/// Accepts at the first call and rejects at every later one. It counts in memory and in a global.
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
fn no_call_sees_state_of_another_call() {
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
fn memory_growth_does_not_survive_a_call() {
    // Accepts if it has only its first page. Then it adds 20 pages and writes to the last.
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
fn a_plugin_gets_as_much_memory_as_its_limit_allows() {
    // Adds 24,576 pages, 1.5 GiB, and fails without them.
    let guest = Guest::filter(
        "(if (i32.lt_s (memory.grow (i32.const 24576)) (i32.const 0)) (then (unreachable)))
        (i32.store (i32.const 1600000000) (i32.const 7))
        (call $rulings (local.get 4) (i32.const 0))",
    );
    let limits = Limits {
        memory: 4 << 30,
        ..Limits::default()
    };
    let plugin = load(guest).configure(config(json!({}), limits)).unwrap();
    let rulings = plugin.judge_candidates(Stage::Scope, &candidates(1));
    assert_eq!(rulings.unwrap()[0].verdict, Verdict::Accept);
}

#[test]
fn state_does_not_survive_a_trap() {
    // Writes to memory, then traps. It would answer if it saw the earlier write.
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
