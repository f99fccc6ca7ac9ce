//! Tests packages as operators use them: lintian and rpmlint check them, and a clean Debian root, booted by systemd-nspawn,
//! installs, starts, upgrades, removes and purges them (`deploy/package/try.sh`).
//!
//! If a step's tool is missing, the step is skipped with a message.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::command::status;
use crate::judges::deploy;
use crate::repository::root;

/// The unit that runs the trial in the booted root. The root then halts with the result.
const UNIT: &str = "\
[Unit]
SuccessAction=exit-force
FailureAction=exit-force

[Service]
Type=oneshot
ExecStart=/packages.try KIND
StandardOutput=file:/trial.log
StandardError=file:/trial.log
TimeoutStartSec=10min
";

/// Packages that the clean root needs besides the minimal system. Debian has rpm, too.
const INCLUDED: &str = "systemd,systemd-sysv,ca-certificates,procps,rpm";

/// Tests the packages in `home`.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(home: &Path, packages: &[PathBuf]) -> Result<()> {
    let of = |kind: &'static str| {
        let is_kind = move |file: &&PathBuf| file.extension().is_some_and(|it| it == kind);
        packages
            .iter()
            .find(is_kind)
            .with_context(|| format!("no .{kind} package"))
    };
    if is_there("lintian") {
        let mut lintian = Command::new("lintian");
        lintian.args([
            "--allow-root",
            "--profile",
            "debian",
            "--fail-on",
            "error,warning",
        ]);
        status(lintian.arg(of("deb")?))?;
        println!("lintian: passed");
    }
    if is_there("rpmlint") {
        let mut rpmlint = Command::new("rpmlint");
        rpmlint
            .arg("--config")
            .arg(root().join("deploy/package/rpmlint.toml"));
        status(rpmlint.arg(of("rpm")?))?;
        println!("rpmlint: passed");
    }
    deploy::judge(home)?;
    if is_there("debootstrap") && is_there("systemd-nspawn") {
        let clean = clean_root(home)?;
        for kind in ["deb", "rpm"] {
            println!("{kind} in a clean root:");
            boot(home, &clean, kind)?;
        }
    }
    Ok(())
}

/// Returns `true` if a tool is installed. Otherwise prints which step is skipped.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn is_there(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        println!(
            "skipped: {tool} is not installed; on Debian: apt-get install lintian rpmlint debootstrap systemd-container"
        );
    }
    found
}

/// A small Debian of this machine's release. It is kept for later trials.
fn clean_root(home: &Path) -> Result<PathBuf> {
    let clean = home.join("root-clean");
    let done = clean.join("etc/opilio-root-complete");
    if done.exists() {
        return Ok(clean);
    }
    if clean.exists() {
        fs::remove_dir_all(&clean)?;
    }
    let release = fs::read_to_string("/etc/os-release")?;
    let suite = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.context("/etc/os-release has no VERSION_CODENAME: the trial needs Debian")?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={INCLUDED}"), suite]);
    debootstrap.arg(&clean);
    status(debootstrap.stdout(std::process::Stdio::null()))?;
    fs::write(done, "")?;
    Ok(clean)
}

/// Boots a copy of the clean root, and runs the trial in it.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn boot(home: &Path, clean: &Path, kind: &str) -> Result<()> {
    let copy = home.join(format!("root-{kind}"));
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    status(Command::new("cp").arg("--archive").args([clean, &copy]))?;
    let unit = copy.join("etc/systemd/system/trial.service");
    fs::write(unit, UNIT.replace("KIND", kind))?;
    let script = root().join("deploy/package/try.sh");
    let mut nspawn = Command::new("systemd-nspawn");
    nspawn.args(["--register=no", "--keep-unit", "--private-network"]);
    nspawn.arg(format!("--directory={}", copy.display()));
    nspawn.arg(format!("--bind-ro={}:/packages", home.display()));
    nspawn.arg(format!("--bind-ro={}:/packages.try", script.display()));
    nspawn.args(["--console=read-only", "--boot", "--"]);
    nspawn.args(["systemd.unit=trial.service", "quiet"]);
    let booted = nspawn.output().context("cannot run systemd-nspawn")?;
    match fs::read_to_string(copy.join("trial.log")) {
        Ok(seen) => print!("{seen}"),
        Err(_) => print!("{}", String::from_utf8_lossy(&booted.stderr)),
    }
    let ended = booted.status;
    ensure!(
        ended.success(),
        "the trial of the .{kind} package failed: {ended}; its root is {}",
        copy.display()
    );
    fs::remove_dir_all(copy)?;
    Ok(())
}
