//! Trials of page behaviours: `opilio plugin run --page`.

use opilio_test_web::{Reply, Web};
use serde_json::{Value, json};

use crate::command::Home;

/// With this variable, a missing Chromium fails the test. CI sets it.
const REQUIRED: &str = "OPILIO_TEST_CHROMIUM";

#[test]
fn a_trial_needs_a_page_behaviour_and_a_browser() {
    let home = Home::new();
    let page = ["--page", "http://127.0.0.1:4/"];
    let run = |plugin: &str, more: &[&str]| {
        let args = [&["plugin", "run", plugin][..], &page, more].concat();
        home.run(&args).code(2).err
    };
    let other = run("hops", &[]);
    assert!(other.contains("hops is not a page behaviour"), "{other}");
    let missing = run("autoscroll", &["--chromium", "/nonexistent/chromium"]);
    for words in ["no Chromium found", "/nonexistent/chromium", "--chromium"] {
        assert!(missing.contains(words), "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_prints_every_step_of_a_behaviour() {
    let home = Home::new();
    let mut web = Web::builder();
    let tall = "<title>Tall</title><div style='height: 2000px'>tall</div>";
    web.site("127.0.0.1").page("/", Reply::html(tall));
    web.site("127.0.0.1")
        .page("/robots.txt", Reply::status(404));
    let web = web.serve().await.unwrap();
    let url = web.url("127.0.0.1", "/");
    let args = [
        "plugin",
        "run",
        "autoscroll",
        "--page",
        &url,
        "--no-sandbox",
    ];
    let run = |more: &[&str]| home.run(&[&args[..], more].concat());
    let refused = run(&[]);
    if refused.err.contains("no Chromium found") && std::env::var_os(REQUIRED).is_none() {
        return;
    }
    assert!(refused.err.contains("--private"), "{refused:?}");
    let ended = run(&["--private"]).code(0);
    for words in [
        "step 0 after",
        "\"Tall\"",
        "0–800 of 20",
        "wait-for-network  done",
        "finished",
    ] {
        assert!(ended.out.contains(words), "{words}: {}", ended.out);
    }
    // In its last step, the behaviour returns to the top of the page.
    let short = run(&["--private", "--json", "--page-steps", "2"]).code(0);
    let steps: Vec<Value> = short
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(steps.len(), 2, "{}", short.out);
    assert_eq!(steps[0]["page"]["window-height"], 800);
    assert_eq!(
        steps[0]["plan"]["actions"][0],
        json!({"scroll": {"by": 800}})
    );
    assert_eq!(steps[0]["results"][0], "done");
    assert_eq!(steps[1]["plan"]["actions"], json!([{"scroll": "top"}]));
}
