//! Builds plugins in C and C++. It compiles all sources in the folder and its `src`, and those of the SDK. The result is a
//! module that needs no WASI except for the C library. `compile_flags.txt`, which editors read too, has one flag a line.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{self, SearchPath, in_shell};
use crate::{BuildError, Language, component, toolchains};

/// The advice to install a self-contained compiler, in the version that builds the examples. One installation is enough for all
/// projects.
fn zig(folder: &Path) -> String {
    let shared = toolchains::of(Language::C);
    let environment = in_shell(&shared.unwrap_or_else(|| folder.join(".venv")));
    format!(
        "`python3 -m venv {environment} && {environment}/bin/pip install ziglang==0.15.2` installs Zig's compiler, which needs no other program"
    )
}

/// A part that clang needs besides itself, in the order of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Libc,
    CompilerRt,
    Linker,
    Libcpp,
}

impl Part {
    /// The parts for linking a plugin.
    fn of(dialect: Dialect) -> &'static [Self] {
        const ALL: [Part; 4] = [Part::Libc, Part::CompilerRt, Part::Linker, Part::Libcpp];
        match dialect {
            Dialect::C => &ALL[..3],
            Dialect::Cpp => &ALL,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Libc => "wasi-libc",
            Self::CompilerRt => "compiler-rt for wasm32",
            Self::Linker => "wasm-ld",
            Self::Libcpp => "libc++ for wasm32",
        }
    }

    /// The clang option that prints the part's path. If clang lacks the part, it prints only a name, or a path without a file.
    fn path_option(self) -> &'static str {
        match self {
            Self::Libc => "-print-file-name=libc.a",
            Self::CompilerRt => "-print-libgcc-file-name",
            Self::Linker => "-print-prog-name=wasm-ld",
            Self::Libcpp => "-print-file-name=libc++.a",
        }
    }

    /// Debian's package of the part. Most packages belong to one version of clang.
    fn package(self, clang: &str) -> String {
        match self {
            Self::Libc => "wasi-libc".to_owned(),
            Self::CompilerRt => format!("libclang-rt-{clang}-dev-wasm32"),
            Self::Linker => "lld".to_owned(),
            Self::Libcpp => format!("libc++-{clang}-dev-wasm32"),
        }
    }

    fn is_installed(self, clang: &Path) -> bool {
        program::output_of(clang, &[CLANG_TARGET, self.path_option()])
            .is_some_and(|path| Path::new(&path).is_absolute() && Path::new(&path).is_file())
    }
}

/// Target name of the distributions' clang.
const CLANG_TARGET: &str = "--target=wasm32-wasi";

/// A compiler for WebAssembly, with a C library.
struct Compiler {
    program: PathBuf,
    flags: Vec<OsString>,
    /// `true` if the compiler is Zig, which is one program for both languages.
    is_zig: bool,
}

impl Compiler {
    /// Finds a compiler: the wasi-sdk in the environment, Zig's, or clang.
    fn find(folder: &Path, dialect: Dialect, search_path: &SearchPath) -> Result<Self, BuildError> {
        if let Some(sdk) = env::var_os("WASI_SDK_PATH") {
            let sdk = PathBuf::from(sdk);
            return Ok(Self {
                program: sdk.join("bin/clang"),
                flags: vec!["--target=wasm32-wasip1".into()],
                is_zig: false,
            });
        }
        if let Some(program) = search_path.find(&["zig", "python-zig"]) {
            return Ok(Self {
                program,
                flags: vec!["-target".into(), "wasm32-wasi".into()],
                is_zig: true,
            });
        }
        Self::clang(folder, dialect, search_path)
    }

    /// Finds clang with all its parts.
    fn clang(
        folder: &Path,
        dialect: Dialect,
        search_path: &SearchPath,
    ) -> Result<Self, BuildError> {
        let missing = |missing: String, apt: &str| BuildError::NoProgram {
            language: Language::C,
            missing,
            remedy: format!(
                "{}; on Debian, `apt install {apt}`; or set WASI_SDK_PATH to a wasi-sdk",
                zig(folder)
            ),
        };
        let Some(program) = search_path.find(&["clang"]) else {
            return Err(missing(
                "a compiler of C and C++ for WebAssembly".to_owned(),
                "clang lld wasi-libc libclang-rt-dev-wasm32 libc++-dev-wasm32",
            ));
        };
        let parts = Part::of(dialect).iter().copied();
        let lacking: Vec<Part> = parts.filter(|part| !part.is_installed(&program)).collect();
        if lacking.is_empty() {
            return Ok(Self {
                program,
                flags: vec![CLANG_TARGET.into()],
                is_zig: false,
            });
        }
        let version = program::output_of(&program, &["-dumpversion"]).unwrap_or_default();
        let version = program::version(&version)
            .first()
            .map_or_else(|| "NN".to_owned(), u32::to_string);
        let names: Vec<&str> = lacking.iter().map(|part| part.name()).collect();
        let packages: Vec<String> = lacking.iter().map(|part| part.package(&version)).collect();
        Err(missing(
            format!(
                "{}, which {} does not find",
                names.join(", "),
                program.display()
            ),
            &packages.join(" "),
        ))
    }

    /// Runs the compiler on files of one language.
    fn run<I, A>(&self, folder: &Path, dialect: Dialect, arguments: I) -> Result<(), BuildError>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        let program = match dialect {
            Dialect::Cpp if !self.is_zig => self.program.with_file_name("clang++"),
            _ => self.program.clone(),
        };
        let mut command = Command::new(&program);
        if self.is_zig {
            command.arg(match dialect {
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

/// The language of a file.
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
pub(crate) fn build(
    folder: &Path,
    sdk: &Path,
    search_path: &SearchPath,
) -> Result<Vec<u8>, BuildError> {
    let own = [folder.to_owned(), folder.join("src")];
    let sources = files(&own, |file| Dialect::of(file).is_some());
    if sources.is_empty() {
        return Err(BuildError::NoSources {
            folder: folder.to_owned(),
            wanted: "a .c or .cpp file",
        });
    }
    let is_cpp = |source: &PathBuf| Dialect::of(source) == Some(Dialect::Cpp);
    let linked_as = match sources.iter().any(is_cpp) {
        true => Dialect::Cpp,
        false => Dialect::C,
    };
    let compiler = Compiler::find(folder, linked_as, search_path)?;
    let ours = [sdk.join("src"), sdk.join("bindings")];
    let sdk_sources = files(&ours, |file| Dialect::of(file) == Some(Dialect::C));
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let flags = flags(folder)?;
    // The description of the component's type is an object file of the SDK.
    let mut objects = files(&ours, |file| file.extension() == Some(OsStr::new("o")));
    // The project's flags apply only to its own sources. Flags for C++ would not fit the SDK's C.
    let of_project = sources.iter().map(|source| (source, flags.as_slice()));
    let of_sdk = sdk_sources.iter().map(|source| (source, [].as_slice()));
    for (at, (source, flags)) in of_project.chain(of_sdk).enumerate() {
        let object = scratch.path().join(format!("{at}.o"));
        let dialect = Dialect::of(source).unwrap_or(Dialect::C);
        let mut arguments: Vec<OsString> = vec!["-Os".into(), "-c".into()];
        if dialect == Dialect::Cpp {
            // Nothing can catch an exception across the border of a component.
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

/// The flags in `compile_flags.txt`, one a line.
fn flags(folder: &Path) -> Result<Vec<OsString>, BuildError> {
    let file = folder.join(Language::C.marks()[0]);
    let text = fs::read_to_string(&file).map_err(|source| BuildError::Read { file, source })?;
    let lines = text.lines().map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(OsString::from)
        .collect())
}

/// The wanted files of some folders, in the order of their names.
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

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::program::fake;

    /// The error on a system whose only compiler is a clang with these parts; `None` if the parts are enough.
    fn problem_of(dialect: Dialect, found: &[Part]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("part");
        fs::write(&part, "").unwrap();
        let answers: String = Part::of(Dialect::Cpp)
            .iter()
            .map(|wanted| {
                let answer = match found.contains(wanted) {
                    true => part.clone(),
                    false => PathBuf::from("a-name-alone"),
                };
                format!("*{}) echo {};;\n", wanted.path_option(), answer.display())
            })
            .collect();
        fake(
            folder.path(),
            "clang",
            &format!("case \"$*\" in -dumpversion) echo 14.0.6;;\n{answers} esac"),
        );
        let search_path =
            SearchPath::among(&folder.path().join("project"), [folder.path().to_owned()]);
        let compiler = Compiler::clang(Path::new("/p"), dialect, &search_path);
        let problem = compiler.err()?.to_string();
        Some(problem.replace(&folder.path().display().to_string(), "PATH"))
    }

    #[test]
    fn missing_parts_of_clang_are_named_with_their_packages() {
        use Part::{CompilerRt, Libc, Libcpp, Linker};
        let zig = zig(Path::new("/p"));
        assert!(
            zig.contains("/bin/pip install ziglang==0.15.2` installs Zig's"),
            "{zig}"
        );
        let check = |dialect, found: &[Part], parts: &str, packages: &str| {
            assert_eq!(
                problem_of(dialect, found).unwrap(),
                format!(
                    "plugins in C need {parts}, which PATH/clang does not find: {zig}; on Debian, `apt install {packages}`; \
                     or set WASI_SDK_PATH to a wasi-sdk"
                )
            );
        };
        check(
            Dialect::C,
            &[],
            "wasi-libc, compiler-rt for wasm32, wasm-ld",
            "wasi-libc libclang-rt-14-dev-wasm32 lld",
        );
        check(Dialect::C, &[Libc, CompilerRt], "wasm-ld", "lld");
        check(
            Dialect::Cpp,
            &[Libc, CompilerRt, Linker],
            "libc++ for wasm32",
            "libc++-14-dev-wasm32",
        );
        assert_eq!(problem_of(Dialect::C, &[Libc, CompilerRt, Linker]), None);
        assert_eq!(
            problem_of(Dialect::Cpp, &[Libc, CompilerRt, Linker, Libcpp]),
            None
        );
    }

    #[test]
    fn without_a_compiler_all_suitable_ones_are_named() {
        let nowhere = SearchPath::among(Path::new("/p"), []);
        let missing = Compiler::clang(Path::new("/my plugins"), Dialect::C, &nowhere);
        let problem = missing.err().unwrap().to_string();
        let zig = zig(Path::new("/my plugins"));
        assert!(
            problem.starts_with(&format!(
                "plugins in C need a compiler of C and C++ for WebAssembly: {zig}"
            )),
            "{problem}"
        );
        assert!(
            problem.contains("apt install clang lld wasi-libc"),
            "{problem}"
        );
    }
}
