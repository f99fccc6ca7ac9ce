//! A job: the directory with all inputs and results of one crawl.
//!
//! ```text
//! JOB/job.json       format version, when it was made and by what
//! JOB/profile.toml   the profile, copied verbatim and frozen when the job was made
//! JOB/seeds.txt      seeds in force when the job was made, one per line
//! JOB/added-seeds.txt, JOB/changes/, JOB/history.jsonl   changes since: seeds, settings, and who made them when
//! JOB/cluster.json   the part of a crawl that several machines share
//! JOB/cluster-files.json, JOB/cluster-files/   copies of files that the profile names, fetched from the cluster
//! JOB/cluster-commands.json   the commands of such a crawl that this directory has carried out
//! JOB/lock           held by the process that runs the job
//! JOB/state/         the frontier
//! JOB/warcs/  JOB/logs/  JOB/scratch/
//! ```
//! A job is made once. Afterwards it is always resumed from its own copies, so that later edits of a profile file do not change the
//! crawl.

mod copy;
mod error;
mod lock;
mod restored;
mod seeds;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_profile::Layer;
use serde::{Deserialize, Serialize};

pub use copy::copy_job;
pub use error::{JOB_VERSION, JobError};
pub use lock::{JobLock, holder, is_held, lock_job};
pub use restored::{
    FOLDERS as RESTORED_FOLDERS, begin_restoring, complete_restore, complete_restore_unheld,
    discard_restoring, make_restored, put_in_place,
};
pub use seeds::{
    ADDED_SEEDS, REDIRECTED_SEEDS, REMOVED_SEEDS, add_seeds, added_seeds, redirected_seeds,
    removed_seeds, restore_removed,
};

use self::lock::lock;
use crate::changes;
use crate::fetched_files::{FETCHED_FILES, FETCHED_FOLDER, FetchedFiles};
use crate::process_record::ProcessRecord;
use crate::text_file::{draft_of, write_text};
use opilio_stacks::components;

/// File with the part of a shared crawl that this directory has.
pub const SHARED: &str = "cluster.json";

/// A job directory, locked by this process until dropped.
#[derive(Debug)]
pub struct Job {
    directory: PathBuf,
    description: JobFile,
    resumed: bool,
    // The open lock file. The system releases the lock when the process ends.
    _lock: File,
}

/// The content of `job.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct JobFile {
    version: u32,
    made: Timestamp,
    made_by: String,
    /// The name of the crawl.
    name: String,
    /// The folder against which relative paths of the profile are resolved.
    base: PathBuf,
    /// The named profile that the job was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileOrigin>,
}

/// The named profile that a job was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileOrigin {
    /// Name of the profile.
    pub name: String,
    /// Version of the profile; `None` for a shipped profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The inputs that a new job copies.
#[derive(Clone, Copy, Debug)]
pub struct Copies<'a> {
    /// The profile's text.
    pub profile: &'a str,
    /// The name of the crawl.
    pub name: &'a str,
    /// Seeds in force.
    pub seeds: &'a [String],
    /// The folder against which relative paths of the profile are resolved.
    pub base: &'a Path,
    /// The profiles that the profile extends.
    pub layers: &'a [Layer],
    /// The named profile that the job is made from.
    pub origin: Option<&'a ProfileOrigin>,
    /// Copies of files that the profiles name.
    pub files: &'a FetchedFiles,
}

/// The inputs with which an existing job resumes.
#[derive(Clone, Debug)]
pub struct FrozenProfile {
    /// Its copy of the profile.
    pub profile: PathBuf,
    /// Its seeds, one a line.
    pub seeds: String,
    /// The name of the crawl.
    pub name: String,
    /// The folder against which relative paths of the profile are resolved.
    pub base: PathBuf,
    /// The named profile that the job was made from.
    pub origin: Option<ProfileOrigin>,
}

impl Job {
    /// Makes a job from a profile's text and seeds, or resumes the one in `directory`. A resumed job uses its own copies.
    ///
    /// # Errors
    /// See [`JobError`].
    pub fn open(directory: &Path, copies: &Copies<'_>, now: Timestamp) -> Result<Job, JobError> {
        Job::open_with(directory, copies, now, || Ok(()))
    }

    /// Opens a job as [`Job::open`] does. `bring` puts further files into the directory of a new job before the job is complete.
    fn open_with(
        directory: &Path,
        copies: &Copies<'_>,
        now: Timestamp,
        bring: impl FnOnce() -> Result<(), JobError>,
    ) -> Result<Job, JobError> {
        let description_file = directory.join("job.json");
        if !description_file.exists() {
            refuse_foreign(directory)?;
        }
        fs::create_dir_all(directory).map_err(|source| JobError::io(directory, source))?;
        let lock = lock(directory)?;
        let resumed = description_file.exists();
        if !resumed {
            clear_halfway(directory)?;
        }
        let description = if resumed {
            complete_restore(directory)?;
            let description = describe(directory)?;
            must_have_state(directory)?;
            description
        } else {
            JobFile {
                version: JOB_VERSION,
                made: now,
                made_by: format!("opilio {}", env!("CARGO_PKG_VERSION")),
                name: copies.name.to_owned(),
                base: copies.base.to_owned(),
                profile: copies.origin.cloned(),
            }
        };
        let job = Job {
            directory: directory.to_owned(),
            description,
            resumed,
            _lock: lock,
        };
        if !resumed {
            for folder in [job.state(), job.warcs(), job.logs()] {
                fs::create_dir_all(&folder).map_err(|source| JobError::io(&folder, source))?;
            }
            write(&job.profile(), copies.profile)?;
            changes::keep_layers(directory, copies.layers)
                .map_err(|source| JobError::io(&directory.join(changes::LAYERS), source))?;
            let files = copies.files.write(directory);
            files.map_err(|source| JobError::io(&directory.join(FETCHED_FILES), source))?;
            write(
                &job.seeds(),
                &copies
                    .seeds
                    .iter()
                    .map(|seed| format!("{seed}\n"))
                    .collect::<String>(),
            )?;
            bring()?;
            // Written last, so that a half-made job does not count as a job.
            let text = serde_json::to_string_pretty(&job.description).map_err(|source| {
                JobError::Damaged {
                    file: description_file.display().to_string(),
                    source,
                }
            })?;
            write(&description_file, &format!("{text}\n"))?;
        }
        // Scratch files of a killed process are useless.
        let scratch = job.scratch();
        if scratch.exists() {
            fs::remove_dir_all(&scratch).map_err(|source| JobError::io(&scratch, source))?;
        }
        fs::create_dir_all(&scratch).map_err(|source| JobError::io(&scratch, source))?;
        Ok(job)
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns `true` if the job existed before and is resumed.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Returns the time at which the job was made.
    pub fn made(&self) -> Timestamp {
        self.description.made
    }

    /// Returns the path of the frozen profile.
    pub fn profile(&self) -> PathBuf {
        self.directory.join("profile.toml")
    }

    /// Returns the path of the seeds that the job was made with.
    pub fn seeds(&self) -> PathBuf {
        self.directory.join("seeds.txt")
    }

    /// Returns the path of the frontier's store.
    pub fn state(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// Returns the folder of WARC files.
    pub fn warcs(&self) -> PathBuf {
        self.directory.join("warcs")
    }

    /// Returns the folder of logs.
    pub fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    /// The folder of files that are removed when the process ends.
    pub fn scratch(&self) -> PathBuf {
        self.directory.join("scratch")
    }
}

impl FrozenProfile {
    /// Reads the frozen inputs of the job in `directory`.
    pub fn read(directory: &Path) -> Result<FrozenProfile, JobError> {
        let JobFile {
            base,
            name,
            profile: origin,
            ..
        } = describe(directory)?;
        Ok(FrozenProfile {
            profile: directory.join("profile.toml"),
            seeds: read(&directory.join("seeds.txt"))? + &added_seeds(directory),
            name,
            base,
            origin,
        })
    }
}

/// Changes the folder against which relative paths of a job's profile are resolved, for a job that comes from another machine.
///
/// # Errors
/// See [`JobError`].
pub fn set_base(directory: &Path, base: &Path) -> Result<(), JobError> {
    let description = JobFile {
        base: base.to_owned(),
        ..describe(directory)?
    };
    let file = directory.join("job.json");
    let text = serde_json::to_string_pretty(&description).map_err(|source| JobError::Damaged {
        file: file.display().to_string(),
        source,
    })?;
    write(&file, &format!("{text}\n"))
}

fn describe(directory: &Path) -> Result<JobFile, JobError> {
    let file = directory.join("job.json");
    let damaged = |source| JobError::Damaged {
        file: file.display().to_string(),
        source,
    };
    let text = read(&file)?;
    // The version is read first, because a later version may have other fields.
    let version: Versioned = serde_json::from_str(&text).map_err(damaged)?;
    if version.version != JOB_VERSION {
        return Err(JobError::Version {
            directory: directory.display().to_string(),
            found: version.version,
        });
    }
    serde_json::from_str(&text).map_err(damaged)
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The origin of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOrigin {
    /// Time at which it was made.
    pub at: Timestamp,
    /// The name of its profile.
    pub profile: String,
    /// The named profile that it was made from; `None` if it was made from a file or a text.
    pub named: Option<ProfileOrigin>,
}

/// Returns the time at which the job in `directory` was made, and the name of its profile.
///
/// # Errors
/// See [`JobError`].
pub fn origin_of_job(directory: &Path) -> Result<JobOrigin, JobError> {
    let JobFile {
        made,
        name,
        profile,
        ..
    } = describe(directory)?;
    Ok(JobOrigin {
        at: made,
        profile: name,
        named: profile,
    })
}

/// Returns `true` if `directory` contains a job of any version.
pub fn is_job(directory: &Path) -> bool {
    directory.join("job.json").is_file()
}

/// Refuses to start a job that has crawled before and has no frontier store: a disk may not be mounted.
fn must_have_state(directory: &Path) -> Result<(), JobError> {
    let process_record = ProcessRecord::read(directory).ok().flatten();
    let has_crawled =
        process_record.is_some_and(|process_record| process_record.statistics.discovered > 0);
    let state = directory.join("state");
    let is_gone = || fs::read_dir(&state).map_or(true, |mut entries| entries.next().is_none());
    match has_crawled && is_gone() {
        true => Err(JobError::StateGone {
            state: state.display().to_string(),
        }),
        false => Ok(()),
    }
}

/// Files that a job copies when it is made. `job.json` is written last.
const COPIES: [&str; 5] = [
    changes::LAYERS,
    FETCHED_FILES,
    "profile.toml",
    "seeds.txt",
    components::LIST,
];

/// Folders that a job copies when it is made.
const COPIED_FOLDERS: [&str; 2] = [components::COMPONENTS, changes::CHANGES];

/// Further entries of a job's directory before it has `job.json`.
const EMPTY_AT_FIRST: [&str; 7] = [
    "lock",
    "state",
    "warcs",
    "logs",
    "scratch",
    "store",
    FETCHED_FOLDER,
];

/// Refuses a directory with foreign files: a job is made in a new or an empty directory only. Leftovers of a process that was
/// killed while it made a job are known by name, drafts included.
fn refuse_foreign(directory: &Path) -> Result<(), JobError> {
    let mut ours: Vec<PathBuf> = Vec::new();
    for copy in COPIES.iter().chain(&["job.json"]) {
        ours.push(draft_of(Path::new(copy)));
    }
    let whole = COPIES.iter().chain(&COPIED_FOLDERS).chain(&EMPTY_AT_FIRST);
    ours.extend(whole.map(PathBuf::from));
    let names = names(directory)?;
    match names.iter().all(|name| ours.iter().any(|it| it == name)) {
        true => Ok(()),
        false => Err(JobError::NotAJob {
            directory: directory.display().to_string(),
        }),
    }
}

/// Removes the copies of a half-made job, so that none of them becomes part of another job. If there is a frontier, `job.json`
/// was lost later, and the job's files stay.
fn clear_halfway(directory: &Path) -> Result<(), JobError> {
    if !names(&directory.join("state"))?.is_empty() {
        return Ok(());
    }
    let is_there = |problem: &io::Error| problem.kind() != io::ErrorKind::NotFound;
    for copy in COPIES {
        for path in [directory.join(copy), draft_of(&directory.join(copy))] {
            match fs::remove_file(&path) {
                Err(problem) if is_there(&problem) => return Err(JobError::io(&path, problem)),
                _ => {}
            }
        }
    }
    for folder in COPIED_FOLDERS.map(|folder| directory.join(folder)) {
        match fs::remove_dir_all(&folder) {
            Err(problem) if is_there(&problem) => return Err(JobError::io(&folder, problem)),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the names in a directory, empty if the directory does not exist.
fn names(directory: &Path) -> Result<Vec<OsString>, JobError> {
    let listed = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    match listed {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|source| JobError::io(directory, source)),
    }
}

/// Returns `true` if `directory` holds only leftovers of a process that was killed while it made a job. Then another job can be
/// made there.
pub fn is_made_halfway(directory: &Path) -> bool {
    let is_empty = |folder: &str| names(&directory.join(folder)).is_ok_and(|it| it.is_empty());
    directory.is_dir()
        && !is_job(directory)
        && refuse_foreign(directory).is_ok()
        && ["state", "warcs", "logs"].into_iter().all(is_empty)
}

/// Returns the name of a job, which is the name of its directory. The path may be relative.
pub fn name_of(directory: &Path) -> String {
    let whole = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    whole
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn read(path: &Path) -> Result<String, JobError> {
    fs::read_to_string(path).map_err(|source| JobError::io(path, source))
}

fn write(path: &Path, text: &str) -> Result<(), JobError> {
    write_text(path, text).map_err(|source| JobError::io(path, source))
}

#[cfg(test)]
mod tests {
    use opilio_frontier::Statistics;

    use super::lock::LOCK_PROBE_INTERVAL;
    use super::*;

    fn open(directory: &Path) -> Result<Job, JobError> {
        let seeds = ["http://example.org/".to_owned()];
        let copies = Copies {
            profile: "name = \"x\"\n",
            name: "x",
            seeds: &seeds,
            base: Path::new("/"),
            layers: &[],
            origin: None,
            files: &FetchedFiles::default(),
        };
        Job::open(directory, &copies, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_resumed_job_uses_its_own_copies() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("job");
        assert!(!open(&directory).unwrap().resumed());
        let copies = Copies {
            profile: "name = \"y\"\n",
            name: "y",
            seeds: &[],
            base: Path::new("/"),
            layers: &[],
            origin: None,
            files: &FetchedFiles::default(),
        };
        let again = Job::open(&directory, &copies, Timestamp::now()).unwrap();
        assert!(again.resumed());
        assert_eq!(again.made(), Timestamp::UNIX_EPOCH);
        assert_eq!(
            fs::read_to_string(again.profile()).unwrap(),
            "name = \"x\"\n"
        );
        assert_eq!(
            fs::read_to_string(again.seeds()).unwrap(),
            "http://example.org/\n"
        );
    }

    #[test]
    fn one_process_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let held = open(home.path()).unwrap();
        let refused = open(home.path()).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("in use by process {}", std::process::id())),
            "{refused}"
        );
        drop(held);
        assert!(open(home.path()).unwrap().resumed());
    }

    #[test]
    fn opening_a_job_waits_for_a_short_lock_of_another_process() {
        let home = tempfile::tempdir().unwrap();
        let held = open(home.path()).unwrap();
        let looking = std::thread::spawn(move || {
            // Drops the lock before or after the other attempt begins; both attempts must succeed.
            std::thread::sleep(LOCK_PROBE_INTERVAL * 3);
            drop(held);
        });
        assert!(open(home.path()).unwrap().resumed());
        looking.join().unwrap();
    }

    #[test]
    fn an_incomplete_copy_is_not_a_job() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        drop(open(&from).unwrap());
        let changes = from.join(changes::CHANGES);
        fs::create_dir_all(changes.join("unreadable")).unwrap();
        fs::write(changes.join("1.toml"), "workers = 2\n").unwrap();
        assert!(copy_job(&from, &to).is_err());
        assert!(!is_job(&to));
        fs::remove_dir(changes.join("unreadable")).unwrap();
        fs::remove_dir_all(&to).unwrap();
        copy_job(&from, &to).unwrap();
        assert!(to.join(changes::CHANGES).join("1.toml").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_job_with_links_that_lead_out_is_not_copied() {
        use std::os::unix::fs::symlink;
        let home = tempfile::tempdir().unwrap();
        let (from, secret) = (home.path().join("from"), home.path().join("secret"));
        drop(open(&from).unwrap());
        fs::write(&secret, "secret").unwrap();
        for (at, link) in [
            ADDED_SEEDS,
            changes::LAYERS,
            components::LIST,
            "changes/000001.toml",
            "components/a.wasm",
        ]
        .iter()
        .enumerate()
        {
            let (link, to) = (from.join(link), home.path().join(format!("to{at}")));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&secret, &link).unwrap();
            let refused = copy_job(&from, &to).unwrap_err();
            assert!(
                matches!(&refused, JobError::Link(why) if why.to_string().contains("is a link out of")),
                "{link:?}: {refused:?}"
            );
            assert!(!is_job(&to), "{link:?}");
            fs::remove_file(link).unwrap();
        }
        copy_job(&from, &home.path().join("to")).unwrap();
    }

    #[test]
    fn a_job_with_another_layout_is_refused_and_not_changed() {
        let home = tempfile::tempdir().unwrap();
        drop(open(home.path()).unwrap());
        let file = home.path().join("job.json");
        let newer = fs::read_to_string(&file)
            .unwrap()
            .replace("\"version\": 1", "\"version\": 99");
        fs::write(&file, &newer).unwrap();
        assert!(matches!(
            open(home.path()),
            Err(JobError::Version { found: 99, .. })
        ));
        assert_eq!(fs::read_to_string(&file).unwrap(), newer);
    }

    #[test]
    fn a_job_without_its_frontier_store_does_not_start_anew() {
        let home = tempfile::tempdir().unwrap();
        let job = open(home.path()).unwrap();
        fs::write(job.state().join("format"), "3").unwrap();
        drop(job);
        let crawled = Statistics {
            discovered: 3,
            ..Statistics::default()
        };
        ProcessRecord::begin(home.path(), crawled).unwrap();
        let (state, elsewhere) = (home.path().join("state"), home.path().join("unmounted"));
        fs::rename(&state, &elsewhere).unwrap();
        for _ in ["without the folder", "with an empty one"] {
            let refused = open(home.path()).unwrap_err().to_string();
            assert!(refused.contains("is a disk not mounted?"), "{refused}");
            fs::create_dir_all(&state).unwrap();
        }
        fs::remove_dir(&state).unwrap();
        fs::rename(&elsewhere, &state).unwrap();
        assert!(open(home.path()).unwrap().resumed());
    }

    #[test]
    fn a_directory_with_foreign_files_is_refused_and_not_changed() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("thesis.doc"), "").unwrap();
        assert!(matches!(open(home.path()), Err(JobError::NotAJob { .. })));
        assert!(!home.path().join("lock").exists());
    }

    /// Returns every state that a kill may leave in a directory while a job is made in it as a copy of another one.
    fn states_while_made() -> Vec<Vec<(&'static str, &'static str)>> {
        let steps = [
            ("lock", ""),
            ("state/", ""),
            ("warcs/", ""),
            ("logs/", ""),
            ("profile.draft", "na"),
            ("profile.toml", "name = \"other\"\n"),
            ("layers.draft", "["),
            (changes::LAYERS, "[]"),
            ("seeds.draft", "http"),
            ("seeds.txt", "http://other.example/\n"),
            (components::LIST, "{"),
            ("components/", ""),
            ("components/half.wasm", "half"),
            ("changes/", ""),
            ("changes/000001.toml", "workers = 2\n"),
            ("job.draft", "{"),
        ];
        let states = 0..=steps.len();
        states.map(|length| steps[..length].to_vec()).collect()
    }

    #[test]
    fn a_job_whose_creation_was_interrupted_at_any_point_is_created_anew() {
        for state in states_while_made() {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("job");
            fs::create_dir(&directory).unwrap();
            for (name, text) in &state {
                match name.strip_suffix('/') {
                    Some(folder) => fs::create_dir(directory.join(folder)).unwrap(),
                    None => fs::write(directory.join(name), text).unwrap(),
                }
            }
            assert!(is_made_halfway(&directory), "{state:?}");
            let job = open(&directory).unwrap_or_else(|problem| panic!("{state:?}: {problem}"));
            assert!(!job.resumed());
            let profile = fs::read_to_string(job.profile()).unwrap();
            assert_eq!(profile, "name = \"x\"\n", "{state:?}");
            let names = names(&directory).unwrap();
            for foreign in [components::LIST, "components", "changes", "job.draft"] {
                assert!(!names.iter().any(|it| *it == foreign), "{state:?}");
            }
            drop(job);
            assert!(!is_made_halfway(&directory));
            assert!(open(&directory).unwrap().resumed());
        }
    }

    #[test]
    fn a_job_without_its_job_json_keeps_its_files() {
        let home = tempfile::tempdir().unwrap();
        let job = open(home.path()).unwrap();
        fs::write(job.state().join("format"), "3").unwrap();
        drop(job);
        fs::create_dir(home.path().join("changes")).unwrap();
        fs::remove_file(home.path().join("job.json")).unwrap();
        assert!(!is_made_halfway(home.path()));
        drop(open(home.path()).unwrap());
        assert!(home.path().join("changes").exists());
    }
}
