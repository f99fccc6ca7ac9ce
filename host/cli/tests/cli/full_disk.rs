//! A full disk: the crawl stops with one message and whole files, and the next run resumes it.

use opilio_stories::{captures, html, site, sound};
use opilio_test_web::Reply;

use crate::command::{Ended, Home, WWW};
use crate::serve::Daemon;

/// Size of a body. All bodies together exceed [`FILE_MAX`].
const BODY_BYTES: usize = 8 << 20;
const BODIES: usize = 12;

/// Limit on the size of a file, in units of 1024 bytes, as in bash. It simulates a full disk: writes beyond it fail. It is larger
/// than the journal of the frontier, which has 64 MiB from the start. The signal at the limit (SIGXFSZ) must not end the process.
const FILE_MAX: &str = "ulimit -f 70000";

/// Returns bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length / 8).flat_map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_halts_the_crawl_and_the_next_run_resumes_it() {
    let links: String = (0..BODIES)
        .map(|n| format!("<a href='/{n}.bin'>{n}</a>"))
        .collect();
    let body = Reply::ok("application/octet-stream", noise(BODY_BYTES));
    let web = site(WWW)
        .page("/", html(&links))
        .rest(move |_| body.clone())
        .serve()
        .await;
    let home = Home::new();
    home.profile("name = 'large'\nworkers = 2");
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    let full = Ended::of(&home.opilio_after(FILE_MAX, &command).output().unwrap()).code(1);
    assert!(
        full.out.contains("halted: ") && full.out.contains("(ulimit -f)"),
        "{full:?}"
    );
    for file in std::fs::read_dir(home.job().join("warcs")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "gz") {
            let report = opilio_archive::check(&path).unwrap();
            assert!(report.is_sound(), "{}: {:?}", path.display(), report.faults);
        }
    }

    home.run(&command).code(0);
    sound(&home.job());
    let captures = captures(&home.job());
    for n in 0..BODIES {
        let uri = web.url(WWW, &format!("/{n}.bin"));
        assert!(
            captures
                .iter()
                .any(|capture| capture.kind == "response" && capture.uri == uri),
            "{uri} is missing"
        );
    }
}

#[test]
fn a_disk_without_space_for_the_frontier_is_one_error_and_the_next_run_starts() {
    let home = Home::new();
    home.profile("");
    let command = [
        "crawl",
        "p.toml",
        "--seed",
        "http://www.story.localhost:9/",
        "--job",
        "job",
    ];
    let full = Ended::of(
        &home
            .opilio_after("trap '' XFSZ; ulimit -f 8192", &command)
            .output()
            .unwrap(),
    )
    .code(1);
    assert_eq!(
        full.err
            .lines()
            .filter(|line| line.starts_with("opilio: "))
            .count(),
        1,
        "{full:?}"
    );
    home.run(&command).code(5);
    sound(&home.job());
}

#[test]
fn on_a_full_disk_no_job_is_created_and_no_order_is_accepted() {
    const FULL: &str = "trap '' XFSZ; ulimit -f 0";
    let home = Home::new();
    home.profile("");
    let seed = ["--seed", "http://localhost/"];
    let new = ["job", "new", "jobs/one", "--profile", "p.toml"];
    home.run(&[&new[..], &seed].concat()).code(0);
    let when_full = |arguments: &[&str]| {
        let output = home.opilio_after(FULL, arguments).output();
        Ended::of(&output.unwrap()).code(1)
    };
    let clone = ["job", "clone", "jobs/one", "two"];
    when_full(&clone);
    home.run(&clone).code(0);

    let _daemon = Daemon::start(&home, &["--no-auth"]);
    let refused = when_full(&["job", "start", "jobs/two"]);
    assert!(refused.err.contains("orders.json"), "{refused:?}");
}
