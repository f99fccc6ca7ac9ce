//! Compilers for Rust plugins: one with the Wasm target, or one with the standard library's sources and a linker, such as
//! Debian's packages rustc-web, rust-web-src and lld-22.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::output_of;

mod standard_library;

/// Compilation target. Components need no WASI, so the target has none.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Path of Debian's compiler, which rustup's usually hides in `PATH`.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// Newest LLVM version in the search for `wasm-ld-NN`.
const LLVM_VERSION_MAX: u32 = 30;

/// Oldest LLVM version; older linkers lack features that rustc uses today.
const LLVM_VERSION_MIN: u32 = 19;

/// Variable that names the linker to cargo.
const LINKER: &str = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER";

/// No compiler for [`TARGET`] was found.
#[derive(Debug, thiserror::Error)]
#[error(
    "no compiler for {TARGET}: run `rustup target add {TARGET}`, or on Debian install rustc-web, rust-web-src and lld-22"
)]
pub struct NoToolchain;

/// A folder on this machine, and its name in the component: panic messages name source files.
#[derive(Clone, Debug)]
pub struct Remap {
    /// The folder.
    pub from: PathBuf,
    /// Its name.
    pub to: String,
}

impl Remap {
    /// The argument of rustc.
    pub(crate) fn flag(&self) -> OsString {
        remap(&self.from, &self.to)
    }
}

/// A way to compile for [`TARGET`]. Its `Display` form describes it.
#[derive(Clone, Debug)]
pub struct Toolchain {
    rustc: PathBuf,
    sysroot: PathBuf,
    version: String,
    standard_library: StandardLibrary,
}

/// The source of the target's standard library.
#[derive(Clone, Debug)]
enum StandardLibrary {
    /// Installed with the compiler.
    Installed,
    /// Built from its sources; the linker is not the compiler's own.
    Built { linker: PathBuf },
    /// Built from its sources before, in a sysroot of its own.
    Shared { linker: PathBuf, sysroot: PathBuf },
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.standard_library {
            StandardLibrary::Installed => write!(f, "{}", self.version),
            StandardLibrary::Built { .. } | StandardLibrary::Shared { .. } => {
                write!(f, "{}, standard library built from source", self.version)
            }
        }
    }
}

impl Toolchain {
    /// Finds the first usable compiler: the current one with the target installed, then Debian's, then either from source.
    ///
    /// # Errors
    /// No usable compiler is installed.
    pub fn detect() -> Result<Self, NoToolchain> {
        let in_use = env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        let compilers: Vec<Self> = [in_use, PathBuf::from(DEBIAN_RUSTC)]
            .into_iter()
            .filter_map(Self::query)
            .collect();
        let mut from_source = None;
        for compiler in compilers {
            if compiler.has_target() {
                return Ok(compiler);
            }
            if from_source.is_none() && compiler.has_sources() {
                from_source = linker().map(|linker| Self {
                    standard_library: StandardLibrary::Built { linker },
                    ..compiler
                });
            }
        }
        from_source.ok_or(NoToolchain)
    }

    /// Queries version and sysroot of a compiler; `None` if it does not run.
    fn query(rustc: PathBuf) -> Option<Self> {
        let version = output_of(&rustc, &["--version"])?;
        let sysroot = PathBuf::from(output_of(&rustc, &["--print", "sysroot"])?);
        Some(Self {
            rustc,
            sysroot,
            version,
            standard_library: StandardLibrary::Installed,
        })
    }

    /// The same compiler with a standard library that all projects of this user share, if it has to be built at all. The first
    /// call for a compiler builds it. If that is not possible, each project builds its own.
    pub(crate) fn with_shared_library(self) -> Self {
        let StandardLibrary::Built { linker } = &self.standard_library else {
            return self;
        };
        match standard_library::shared(&self) {
            Some(sysroot) => Self {
                standard_library: StandardLibrary::Shared {
                    linker: linker.clone(),
                    sysroot,
                },
                ..self
            },
            None => self,
        }
    }

    fn has_target(&self) -> bool {
        let libraries = self.sysroot.join("lib/rustlib").join(TARGET).join("lib");
        fs::read_dir(libraries).is_ok_and(|mut files| {
            files.any(|file| {
                file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
            })
        })
    }

    fn sources(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust")
    }

    fn has_sources(&self) -> bool {
        self.sources().join("library/Cargo.toml").exists()
    }

    /// Prepares `command`, a `cargo build`, to use this toolchain. The component gets the names in `remaps` for its source
    /// folders instead of their paths on this machine.
    pub fn prepare(&self, command: &mut Command, remaps: &[Remap]) {
        let mut flags = self.flags();
        flags.extend(remaps.iter().map(Remap::flag));
        flags.extend(
            registries()
                .iter()
                .map(|registry| remap(registry, "crates")),
        );
        self.compile_with(command, &flags);
        match &self.standard_library {
            StandardLibrary::Installed => {}
            StandardLibrary::Built { linker } => {
                build_library(command).env(LINKER, linker);
            }
            StandardLibrary::Shared { linker, .. } => {
                command.env(LINKER, linker);
            }
        }
    }

    /// Makes cargo use this compiler with these flags.
    fn compile_with(&self, command: &mut Command, flags: &[OsString]) {
        command.env("RUSTC", &self.rustc).env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags.join(&OsString::from("\u{1f}")),
        );
    }

    /// Flags of rustc for all crates.
    fn flags(&self) -> Vec<OsString> {
        let mut flags = vec![
            "-Ctarget-feature=+simd128".into(),
            remap(&self.sources(), "rust"),
        ];
        if let StandardLibrary::Shared { sysroot, .. } = &self.standard_library {
            let mut flag = OsString::from("--sysroot=");
            flag.push(sysroot);
            flags.push(flag);
        }
        flags
    }
}

/// Makes a `cargo build` build the standard library as well. Only unstable cargo has the option otherwise.
fn build_library(command: &mut Command) -> &mut Command {
    command
        .arg("-Zbuild-std=std,panic_abort")
        .env("RUSTC_BOOTSTRAP", "1")
}

fn remap(from: &Path, to: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(from);
    flag.push("=");
    flag.push(to);
    flag
}

/// Folders of cargo with the sources of dependencies, one for each registry. Empty if they are vendored.
fn registries() -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cargo")));
    let Some(Ok(folders)) = home.map(|home| fs::read_dir(home.join("registry/src"))) else {
        return Vec::new();
    };
    folders
        .filter_map(|folder| Some(folder.ok()?.path()))
        .collect()
}

/// LLVM's linker for Wasm, by its plain name or a versioned one.
fn linker() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let versioned = (LLVM_VERSION_MIN..=LLVM_VERSION_MAX)
        .rev()
        .map(|version| format!("wasm-ld-{version}"));
    std::iter::once("wasm-ld".to_owned())
        .chain(versioned)
        .find_map(|name| {
            env::split_paths(&path)
                .map(|folder| folder.join(&name))
                .find(|file| file.exists())
        })
}
