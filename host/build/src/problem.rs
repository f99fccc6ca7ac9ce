//! Why a project made no component: what is missing, and how to get it, or who has said what is wrong.

use std::io;
use std::path::PathBuf;

use crate::{Language, ModuleProblem, NoSdk, NoToolchain};

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Nothing to compile with.
    #[error(transparent)]
    Toolchain(#[from] NoToolchain),
    /// No project here.
    #[error(
        "{} is no plugin's project: it has no Cargo.toml (Rust), package.json (JavaScript, TypeScript), pyproject.toml (Python), \
         go.mod (Go) or compile_flags.txt (C)",
        folder.display()
    )]
    NoProject {
        /// The folder.
        folder: PathBuf,
    },
    /// A project without anything to compile.
    #[error("{} has nothing to build: it needs {wanted}", folder.display())]
    NoSources {
        /// The folder.
        folder: PathBuf,
        /// What is looked for.
        wanted: &'static str,
    },
    /// The language's SDK is not there.
    #[error(transparent)]
    Sdk(#[from] NoSdk),
    /// A program is not installed.
    #[error("plugins in {} need {missing}: {remedy}", language.name())]
    NoProgram {
        /// The language.
        language: Language,
        /// What is missing.
        missing: String,
        /// How to get it.
        remedy: String,
    },
    /// The SDK has said on standard error what is not installed.
    #[error("a tool that plugins in {} need is missing", language.name())]
    NoTool {
        /// The language.
        language: Language,
    },
    /// A program is there and does not start.
    #[error("cannot run {}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// There is no place for what is made on the way.
    #[error("cannot make a temporary folder")]
    Scratch(#[source] io::Error),
    /// cargo is not installed, or cannot be started.
    #[error("cannot run cargo; it comes with Rust, from https://rustup.rs or as the package cargo")]
    Cargo(#[source] io::Error),
    /// The compiler has said why on standard error.
    #[error("{} does not build", folder.display())]
    Compile {
        /// The folder.
        folder: PathBuf,
    },
    /// It builds, and no module comes of it.
    #[error(
        "{} makes no WebAssembly module: its Cargo.toml needs [lib] crate-type = [\"cdylib\", \"rlib\"]",
        folder.display()
    )]
    NoModule {
        /// The folder.
        folder: PathBuf,
    },
    /// The module that cargo made cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The module.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The module is no plugin.
    #[error("{}", folder.display())]
    Module {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        problem: ModuleProblem,
    },
}
