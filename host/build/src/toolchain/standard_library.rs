//! A standard library for the target, built once for a compiler and shared by all projects of a user. It is a sysroot in the user's
//! cache: the compiler takes only the libraries of the target from it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fs, io};

use etcetera::BaseStrategy as _;

use super::{LINKER, StandardLibrary, TARGET, Toolchain, build_library};
use crate::cargo;

/// The crate that is built for the libraries it depends on. `opt-level` is that of the standard library which rustup installs.
const MANIFEST: &str = "\
[package]
name = \"empty\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
path = \"empty.rs\"

[profile.release]
opt-level = 3
codegen-units = 1
panic = \"abort\"

[workspace]
";

/// The sysroot of a compiler, built if it does not exist. `None` if it cannot be built.
pub(super) fn shared(toolchain: &Toolchain) -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    let folder = base.cache_dir().join("opilio/rust");
    let sysroot = folder.join(name(toolchain));
    if sysroot.is_dir() {
        return Some(sysroot);
    }
    build(toolchain, &folder, &sysroot).ok()?;
    sysroot.is_dir().then_some(sysroot)
}

/// A name for the sysroot of this compiler with these sources: letters and digits of its version, and a checksum.
fn name(toolchain: &Toolchain) -> String {
    let mut sum = flate2::Crc::new();
    for part in [
        toolchain.version.as_str(),
        &toolchain.sysroot.to_string_lossy(),
        MANIFEST,
    ] {
        sum.update(part.as_bytes());
    }
    let version = toolchain.version.split_whitespace().nth(1);
    format!("{}-{:08x}", version.unwrap_or_default(), sum.sum())
}

fn build(toolchain: &Toolchain, folder: &Path, sysroot: &Path) -> io::Result<()> {
    let StandardLibrary::Built { linker } = &toolchain.standard_library else {
        return Ok(());
    };
    fs::create_dir_all(folder)?;
    let scratch = tempfile::tempdir_in(folder)?;
    fs::write(scratch.path().join("Cargo.toml"), MANIFEST)?;
    fs::write(scratch.path().join("empty.rs"), "")?;
    let mut command = cargo();
    command.args([
        "build",
        "--release",
        "--target",
        TARGET,
        "--target-dir",
        "target",
    ]);
    let mut flags = toolchain.flags();
    // Projects may link with or without optimisation over all crates.
    flags.push("-Cembed-bitcode=yes".into());
    toolchain.compile_with(&mut command, &flags);
    build_library(&mut command).env(LINKER, linker);
    let status = command
        .current_dir(scratch.path())
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other("cargo failed"));
    }
    let unfinished = scratch.path().join("sysroot");
    let libraries = unfinished.join("lib/rustlib").join(TARGET).join("lib");
    fs::create_dir_all(&libraries)?;
    let built = scratch.path().join("target").join(TARGET);
    for entry in fs::read_dir(built.join("release/deps"))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        let is_own = name.to_string_lossy().starts_with("libempty-");
        if file.extension() == Some(OsStr::new("rlib")) && !is_own {
            fs::copy(&file, libraries.join(name))?;
        }
    }
    // Another process may have been faster. Its result is equally good.
    fs::rename(&unfinished, sysroot).or_else(|error| match sysroot.is_dir() {
        true => Ok(()),
        false => Err(error),
    })
}
