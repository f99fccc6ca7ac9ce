//! A disk that is full: one sentence, nothing torn, and the next run goes on.

use opilio_stories::{captures, lines, sound};

use crate::command::{Ended, Home, WWW, tree, uris_of_tree};

const PAGES: usize = 60;

/// A file may not grow past this: what a full disk looks like to one file, without asking for a disk. In units of
/// 1024 bytes, as bash counts them. The signal that would end the process is ignored, as a full disk sends none.
const FILE_MAX: &str = "trap '' XFSZ; ulimit -f 512";

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_halts_the_crawl_and_the_next_run_goes_on() {
    let (home, web) = (Home::new(), tree(PAGES, 60_000).await);
    home.profile("name = 'tree'\nworkers = 2");
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    let full = Ended::of(&home.opilio_after(FILE_MAX, &command).output().unwrap()).code(1);
    assert!(full.out.contains("halted: ") && full.out.contains("free space"), "{full:?}");
    for file in std::fs::read_dir(home.job().join("warcs")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "gz") {
            let report = opilio_archive::check(&path).unwrap();
            assert!(report.is_sound(), "{}: {:?}", path.display(), report.faults);
        }
    }
    assert!(lines(&home.job()).len() < PAGES, "there was room for all");

    home.run(&command).code(0);
    sound(&home.job());
    let captures = captures(&home.job());
    for uri in uris_of_tree(&web, PAGES) {
        assert!(captures.iter().any(|capture| capture.kind == "response" && capture.uri == uri), "{uri} is missing");
    }
}

#[test]
fn a_disk_that_is_full_from_the_start_is_one_sentence() {
    let home = Home::new();
    home.profile("");
    let command = ["crawl", "p.toml", "--seed", "http://www.story.localhost:9/", "--job", "job"];
    // Compiles the components, which need more room than that.
    home.run(&command);
    std::fs::remove_dir_all(home.job()).unwrap();
    let full = Ended::of(&home.opilio_after("trap '' XFSZ; ulimit -f 0", &command).output().unwrap());
    assert_eq!(full.code, 1, "{full:?}");
    assert_eq!(full.err.lines().filter(|line| line.starts_with("opilio: ")).count(), 1, "{full:?}");
    home.run(&command).code(0);
    sound(&home.job());
}
