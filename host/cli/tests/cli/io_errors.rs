//! Errors of the system: each has its own remedy and is not reported as damage, and the same command resumes the crawl.

use opilio_stories::{captures, html, site, sound};

use crate::command::{Ended, Home, WWW};

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_on_open_files_is_not_reported_as_damage() {
    let web = site(WWW).page("/", html("page")).serve().await;
    let home = Home::new();
    home.profile("name = 'files'");
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    home.run(&command).code(0);
    let mut refused = 0;
    for files in [20, 22, 24, 26, 28, 32, 40] {
        let limit = format!("ulimit -n {files}");
        let ended = Ended::of(&home.opilio_after(&limit, &command).output().unwrap());
        if ended.code == 0 {
            continue;
        }
        refused += 1;
        let output = format!("{}{}", ended.out, ended.err);
        assert!(output.contains("(ulimit -n)"), "{files}: {output}");
        for wrong in ["damaged", "checkpoint", "free space"] {
            assert!(!output.contains(wrong), "{files}: {output}");
        }
    }
    assert!(refused > 2, "{refused}");
    home.run(&command).code(0);
}

/// Limit on the size of a file, in units of 1024 bytes. The journal of the frontier has 64 MiB from the start.
const FILE_MAX: usize = 70_000;

#[tokio::test(flavor = "multi_thread")]
async fn missing_log_lines_are_recovered_from_the_archive() {
    let web = site(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("page"))
        .serve()
        .await;
    let home = Home::new();
    home.profile("name = 'log'\nworkers = 2");
    let seed = web.url(WWW, "/");
    home.run(&[
        "job",
        "new",
        "./job",
        "--profile",
        "p.toml",
        "--seed",
        &seed,
    ])
    .code(0);
    // Fills the log, so that no further line fits below the limit. The content is not a line of a crawl log.
    let log = home.job().join("logs/crawl.log");
    let mut text = format!("{}\n", "x".repeat((1 << 20) - 1)).repeat(68);
    let room = FILE_MAX * 1024 - text.len();
    text.push_str(&format!("{}\n", "x".repeat(room - 41)));
    std::fs::write(&log, &text).unwrap();
    let command = ["crawl", "p.toml", "--job", "job"];
    let limit = format!("trap '' XFSZ; ulimit -f {FILE_MAX}");
    let halted = Ended::of(&home.opilio_after(&limit, &command).output().unwrap()).code(1);
    assert!(
        halted.out.contains("cannot write a log") && halted.out.contains("(ulimit -f)"),
        "{halted:?}"
    );
    assert!(!halted.out.contains("free space"), "{halted:?}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), text);
    assert!(!captures(&home.job()).is_empty());

    home.run(&command).code(0);
    sound(&home.job());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log[text.len()..].contains("recovered"), "{log}");
    let verified = home.run(&["job", "verify", "job", "--json"]).code(1);
    let odd = |line: &&str| line.contains("\"kind\"") && !line.contains("line-unreadable");
    let odd: Vec<_> = verified.out.lines().filter(odd).collect();
    assert!(odd.is_empty(), "{odd:?}");
}
