//! Plugins in C and C++: every source in the folder and its `src`, the SDK's beside them, and a module that needs no
//! WASI but what the C library wants of it. `compile_flags.txt`, which editors read too, has the flags, one a line.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BuildError, Language, component, program};

/// How to get a compiler, the one that needs the least first, in the version the examples are built with.
fn remedy(folder: &Path) -> String {
    let environment = folder.join(".venv");
    let environment = environment.display();
    format!(
        "`python3 -m venv {environment} && {environment}/bin/pip install ziglang==0.15.2` gets Zig's, which needs nothing else; \
         on Debian, `apt install clang lld wasi-libc libclang-rt-14-dev-wasm32`; or set WASI_SDK_PATH to a wasi-sdk"
    )
}

/// Where Debian's wasi-libc puts its headers.
const DEBIAN_WASI: &str = "/usr/include/wasm32-wasi";

/// A compiler for WebAssembly, with a C library.
struct Compiler {
    program: PathBuf,
    flags: Vec<OsString>,
    /// Zig is one program for both languages.
    is_zig: bool,
}

impl Compiler {
    /// A wasi-sdk that is named, Zig's, or Debian's clang.
    fn find(folder: &Path) -> Result<Self, BuildError> {
        if let Some(sdk) = env::var_os("WASI_SDK_PATH") {
            let sdk = PathBuf::from(sdk);
            return Ok(Self {
                program: sdk.join("bin/clang"),
                flags: vec!["--target=wasm32-wasip1".into()],
                is_zig: false,
            });
        }
        if let Some(program) = program::find(&["zig", "python-zig"], Language::C, folder) {
            return Ok(Self {
                program,
                flags: vec!["-target".into(), "wasm32-wasi".into()],
                is_zig: true,
            });
        }
        let clang = program::find(&["clang"], Language::C, folder)
            .filter(|_| Path::new(DEBIAN_WASI).is_dir());
        clang
            .map(|program| Self {
                program,
                flags: vec!["--target=wasm32-wasi".into()],
                is_zig: false,
            })
            .ok_or_else(|| BuildError::NoProgram {
                language: Language::C,
                missing: "a compiler of C and C++ for WebAssembly".to_owned(),
                remedy: remedy(folder),
            })
    }

    /// Runs it on files of one language.
    fn run<I, A>(&self, folder: &Path, of: Dialect, arguments: I) -> Result<(), BuildError>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        let program = match of {
            Dialect::Cpp if !self.is_zig => self.program.with_file_name("clang++"),
            _ => self.program.clone(),
        };
        let mut command = Command::new(&program);
        if self.is_zig {
            command.arg(match of {
                Dialect::C => "cc",
                Dialect::Cpp => "c++",
            });
        }
        let status = command
            .current_dir(folder)
            .args(&self.flags)
            .args(arguments)
            .status()
            .map_err(|source| BuildError::Run { program, source })?;
        match status.success() {
            true => Ok(()),
            false => Err(BuildError::Compile {
                folder: folder.to_owned(),
            }),
        }
    }
}

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    C,
    Cpp,
}

impl Dialect {
    fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "c" => Some(Self::C),
            "cc" | "cpp" | "cxx" => Some(Self::Cpp),
            _ => None,
        }
    }
}

/// Builds the component.
pub(crate) fn build(folder: &Path, sdk: &Path) -> Result<Vec<u8>, BuildError> {
    let own = [folder.to_owned(), folder.join("src")];
    let sources = files(&own, |file| Dialect::of(file).is_some());
    if sources.is_empty() {
        return Err(BuildError::NoSources {
            folder: folder.to_owned(),
            wanted: "a .c or .cpp file",
        });
    }
    let compiler = Compiler::find(folder)?;
    let ours = [sdk.join("src"), sdk.join("bindings")];
    let sdk_sources = files(&ours, |file| Dialect::of(file) == Some(Dialect::C));
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let flags = flags(folder)?;
    // What describes the component's type comes as an object of its own.
    let mut objects = files(&ours, |file| file.extension() == Some(OsStr::new("o")));
    let mut linked_as = Dialect::C;
    // The project's flags are for its own sources: what they ask of C++, the SDK's C is no part of.
    let of_project = sources.iter().map(|source| (source, flags.as_slice()));
    let of_sdk = sdk_sources.iter().map(|source| (source, [].as_slice()));
    for (at, (source, flags)) in of_project.chain(of_sdk).enumerate() {
        let object = scratch.path().join(format!("{at}.o"));
        let dialect = Dialect::of(source).unwrap_or(Dialect::C);
        let mut arguments: Vec<OsString> = vec!["-Os".into(), "-c".into()];
        if dialect == Dialect::Cpp {
            linked_as = Dialect::Cpp;
            // An exception has nobody to catch it across the border of a component.
            arguments.extend(["-fno-exceptions".into(), "-fno-rtti".into()]);
        }
        arguments.extend(flags.iter().cloned());
        for include in ["include", "bindings"] {
            arguments.push("-isystem".into());
            arguments.push(sdk.join(include).into());
        }
        arguments.extend([source.into(), "-o".into(), object.clone().into()]);
        compiler.run(folder, dialect, arguments)?;
        objects.push(object);
    }
    let module = scratch.path().join("module.wasm");
    let mut arguments: Vec<OsString> = vec!["-mexec-model=reactor".into()];
    arguments.extend(objects.into_iter().map(OsString::from));
    arguments.extend(["-o".into(), module.clone().into()]);
    compiler.run(folder, linked_as, arguments)?;
    let module = fs::read(&module).map_err(|source| BuildError::Read {
        file: module,
        source,
    })?;
    component::encode(&component::without_debug(&module)).map_err(|problem| BuildError::Module {
        folder: folder.to_owned(),
        problem,
    })
}

/// Those of `compile_flags.txt`, one a line.
fn flags(folder: &Path) -> Result<Vec<OsString>, BuildError> {
    let file = folder.join(Language::C.marks()[0]);
    let text = fs::read_to_string(&file).map_err(|source| BuildError::Read { file, source })?;
    let lines = text.lines().map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(OsString::from)
        .collect())
}

/// The files of some folders that are wanted, in the order of their names.
fn files(folders: &[PathBuf], wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| wanted(file))
        .collect();
    found.sort();
    found
}
