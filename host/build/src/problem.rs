//! Errors of a build: the missing part and how to get it, or the program that reported the error.

use std::io;
use std::path::PathBuf;

use crate::{Language, ModuleProblem, NoSdk, NoToolchain};

/// The reason why no component was built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No compiler was found.
    #[error(transparent)]
    Toolchain(#[from] NoToolchain),
    /// The folder has no project.
    #[error(
        "{} is not a plugin project: it has no Cargo.toml (Rust), package.json (JavaScript, TypeScript), pyproject.toml (Python), \
         go.mod (Go) or compile_flags.txt (C)",
        folder.display()
    )]
    NoProject {
        /// The folder.
        folder: PathBuf,
    },
    /// The project has nothing to compile.
    #[error("{} has nothing to build: it needs {wanted}", folder.display())]
    NoSources {
        /// The folder.
        folder: PathBuf,
        /// The expected files.
        wanted: &'static str,
    },
    /// The language's SDK was not found.
    #[error(transparent)]
    Sdk(#[from] NoSdk),
    /// A program is not installed.
    #[error("plugins in {} need {missing}: {remedy}", language.name())]
    NoProgram {
        /// The language.
        language: Language,
        /// The missing program.
        missing: String,
        /// Advice on getting it.
        remedy: String,
    },
    /// A tool is not installed. The SDK has reported it on standard error.
    #[error("a tool that plugins in {} need is missing", language.name())]
    NoTool {
        /// The language.
        language: Language,
    },
    /// A program cannot be started.
    #[error("cannot run {}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// No temporary folder can be created.
    #[error("cannot make a temporary folder")]
    Scratch(#[source] io::Error),
    /// cargo is not installed, or cannot be started.
    #[error("cannot run cargo; it comes with Rust, from https://rustup.rs or as the package cargo")]
    Cargo(#[source] io::Error),
    /// The compiler failed and has reported the reason on standard error.
    #[error("{} does not build", folder.display())]
    Compile {
        /// The folder.
        folder: PathBuf,
    },
    /// The build succeeds, but does not create a module.
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
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The module is not a plugin.
    #[error("{}", folder.display())]
    Module {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        #[source]
        problem: ModuleProblem,
    },
}
