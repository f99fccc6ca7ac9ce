//! The action directory: files in it are processed while the job runs; invalid files are reported and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use flate2::Compression;
use flate2::write::GzEncoder;
use opilio_stories::{lines, until};

use crate::command::{Home, Running};
use crate::job::{Gate, waiting};

/// Starts a crawl that waits at its gate. Returns it and its action directory, which it reads every 50 ms.
async fn start_with_actions(home: &Home, gate: &Gate) -> (Running, PathBuf) {
    let running = waiting(home, gate, "actions.interval = '50ms'").await;
    let action = home.job().join("action");
    until("the folder exists", || action.is_dir()).await;
    (running, action)
}

/// Puts a file into the action directory in one step: writes it under a temporary name and renames it.
fn put_file(action: &Path, name: &str, text: impl AsRef<[u8]>) {
    let draft = action.join(format!("{name}.part"));
    fs::write(&draft, text).unwrap();
    fs::rename(&draft, action.join(name)).unwrap();
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The folder of processed files.
struct Results(PathBuf);

impl Results {
    /// Returns the original names of the processed files, with the texts of their results.
    fn all(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut results: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                let dropped = name.strip_suffix(".result")?;
                let text = fs::read_to_string(entry.path()).unwrap();
                Some((dropped[18..].to_owned(), text))
            })
            .collect();
        results.sort();
        results
    }

    #[track_caller]
    fn check(&self, name: &str, expected: &str) {
        let all = self.all();
        let found = all.iter().find(|(of, _)| of == name);
        let text = &found.unwrap_or_else(|| panic!("{name}: {all:#?}")).1;
        assert!(text.contains(expected), "{name}: {text}");
    }

    /// Returns the content of a processed file.
    fn content(&self, name: &str) -> Vec<u8> {
        let mut entries = fs::read_dir(&self.0).unwrap().flatten();
        let entry = entries.find(|entry| entry.file_name().to_string_lossy()[18..] == *name);
        fs::read(entry.unwrap().path()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_the_action_directory_are_processed_and_moved() {
    let gate = Gate::serve(&[
        ("/", "<a href='/private/x'>x</a><a href='/open'>open</a>"),
        ("/open", ""),
        ("/seeded", ""),
        ("/forced", ""),
        ("/private/x", ""),
        ("/done", ""),
    ]);
    let home = Home::new();
    let (mut running, action) = start_with_actions(&home, &gate).await;
    let results = Results(home.job().join("actions-done"));
    let seed = gate.url("/");
    let drop = |name: &str, text: &[u8]| put_file(&action, name, text);
    let url = |target: &str| gate.url(target);
    drop(
        "1.exclude",
        format!("+{}\nregex (\n", gate.surt("/private/")).as_bytes(),
    );
    let seeds = format!("{}\nno such thing ://\n# nothing\n", url("/seeded"));
    drop("2.seeds.gz", &packed(&seeds));
    let foreign = "http://foreign.invalid/";
    // The job has no contact URL, so it could not be started again with a seed outside of this machine.
    drop("6.seeds", format!("{}\n{foreign}\n", url("/")).as_bytes());
    drop(
        "3.s.schedule",
        format!("{} L {seed}\n{foreign} L {seed}\n", url("/forced")).as_bytes(),
    );
    drop("4.include", format!("{}\n", url("/done")).as_bytes());
    drop("5.groovy", b"appCtx.shutdown()");
    until("all files are processed", || results.all().len() == 6).await;
    gate.open();
    assert_eq!(running.wait(), 0);

    results.check("1.exclude", "1 line taken");
    results.check("1.exclude", "line 2: ");
    results.check("2.seeds.gz", "1 new seeds");
    results.check("2.seeds.gz", "line 2: not a seed");
    results.check("3.s.schedule", "1 line taken");
    let outside = "line 2: http://foreign.invalid/ is out of scope";
    results.check("3.s.schedule", outside);
    results.check("5.groovy", "scripts are never executed");
    results.check("6.seeds", "0 new seeds, 1 known");
    results.check("6.seeds", "line 2: contact-url is missing");
    assert_eq!(results.content("5.groovy"), b"appCtx.shutdown()");
    assert_eq!(fs::read_dir(&action).unwrap().count(), 0);

    assert_eq!(gate.requests_for("/seeded"), 1);
    assert_eq!(gate.requests_for("/forced"), 1);
    assert_eq!(gate.requests_for("/private/x"), 0);
    assert_eq!(gate.requests_for("/open"), 1);
    let why = home.run(&["frontier", "why", "job", &url("/private/x")]);
    assert!(why.code(0).out.contains("excluded-surts"));
    let why = home.run(&["frontier", "why", "job", &url("/done"), "--json"]);
    assert!(why.code(0).out.contains("\"known\":\"known\""));
    let history = home.run(&["job", "history", "job"]).code(0).out;
    assert!(history.contains("action:1.exclude"), "{history}");
    assert!(history.contains("action:2.seeds.gz"), "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_journals_are_imported_and_known_uris_are_forced() {
    let gate = Gate::serve(&[
        ("/", "<a href='/a'>a</a><a href='/was-done'>was done</a>"),
        ("/a", ""),
        ("/was-done", ""),
        ("/done-too", ""),
        ("/waited", ""),
        ("/packed", ""),
    ]);
    let home = Home::new();
    let (mut running, action) = start_with_actions(&home, &gate).await;
    let results = Results(home.job().join("actions-done"));
    let seed = gate.url("/");
    let url = |target: &str| gate.url(target);

    // The journal of a killed crawl: some pages are done, one is queued, and one is out of scope.
    let journal = format!(
        "F+ {done} L {seed}\nFe {done}\nFs {done}\nFs {too} L {seed}\nF+ {waited} L {seed}\nF+ http://foreign.invalid/ L {seed}\nnonsense\n",
        done = url("/was-done"),
        too = url("/done-too"),
        waited = url("/waited"),
    );
    put_file(&action, "1.s.recover", &journal);
    until("the journal is imported", || results.all().len() == 1).await;
    // A journal whose end is missing, because its crawler was killed.
    let mut cut = packed(&format!("F+ {} L {seed}\n", url("/packed")));
    cut.truncate(cut.len() - 4);
    put_file(&action, "2.recover.gz", &cut);
    put_file(&action, "3.recover", "<html>no journal at all</html>\n");
    // A URI that counts as done is fetched again, and an unknown URI is fetched.
    let forced = format!("{}\n{} L {seed}\nno uri\n", url("/done-too"), url("/a"));
    put_file(&action, "4.force", forced);
    put_file(&action, "5.seeds.gz", "not compressed at all\n");
    put_file(
        &action,
        "6.schedule",
        format!("{} L LL no-via\n", url("/a")),
    );
    put_file(&action, "7.schedule", b"\xff\xfe\n");
    put_file(&action, "notes.txt", "remember the milk");
    until("all files are processed", || results.all().len() == 8).await;
    gate.open();
    assert_eq!(running.wait(), 0);

    results.check("1.s.recover", "only URIs in scope are accepted");
    results.check("3.recover", "not imported: ");
    results.check("4.force", "2 lines taken");
    results.check("4.force", "line 3: ");
    results.check(
        "5.seeds.gz",
        "0 lines taken; cannot read the file from line 1: ",
    );
    results.check("6.schedule", "0 lines taken");
    results.check("6.schedule", "line 1: ");
    results.check("7.schedule", "line 1: not UTF-8");
    results.check("notes.txt", "not processed: the name must end in .seeds");
    assert_eq!(results.content("2.recover.gz"), cut);
    assert_eq!(results.content("notes.txt"), b"remember the milk");
    assert_eq!(fs::read_dir(&action).unwrap().count(), 0);

    assert_eq!(gate.requests_for("/was-done"), 0);
    assert_eq!(gate.requests_for("/waited"), 1);
    assert_eq!(gate.requests_for("/packed"), 1);
    assert_eq!(gate.requests_for("/done-too"), 1);
    assert_eq!(gate.requests_for("/a"), 1);
    let foreign = "http://foreign.invalid/";
    assert!(lines(&home.job()).iter().all(|line| line.uri != foreign));
    let log = home.run(&["job", "log", "job"]).code(0).out;
    for name in ["1.s.recover", "4.force", "notes.txt"] {
        assert!(log.contains(&format!("action {name} =>")), "{log}");
    }
}

/// Processing several files with excluded prefixes takes longer than the crawl needs to find that nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_does_not_end_while_action_files_are_processed() {
    let gate = Gate::serve(&[("/", "<a href='/private/x'>x</a>"), ("/seeded", "")]);
    let home = Home::new();
    let (mut running, action) = start_with_actions(&home, &gate).await;
    let results = Results(home.job().join("actions-done"));
    // The crawl finds all files at once: a folder of old files replaces the empty action directory.
    let dropped = home.job().join("dropped");
    fs::create_dir(&dropped).unwrap();
    let drop = |name: &str, text: String| {
        fs::write(dropped.join(name), text).unwrap();
        let file = fs::File::options().append(true).open(dropped.join(name));
        file.unwrap().set_modified(UNIX_EPOCH).unwrap();
    };
    drop("1.exclude", format!("+{}\n", gate.surt("/private/")));
    for number in 2..6 {
        drop(
            &format!("{number}.exclude"),
            format!("http://(zz,{number},\n"),
        );
    }
    drop("6.seeds", format!("{}\n", gate.url("/seeded")));
    fs::rename(&dropped, &action).unwrap();
    until("the first file is processed", || !results.all().is_empty()).await;
    gate.open();
    assert_eq!(running.wait(), 0);

    results.check("6.seeds", "1 new seeds");
    assert_eq!(gate.requests_for("/private/x"), 0);
    assert_eq!(gate.requests_for("/seeded"), 1);
}
