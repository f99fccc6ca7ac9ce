//! Tests without a sandbox: the SDKs' own tests, and the golden cases of a project as its author runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use opilio_build::Language;

use super::steps::{Steps, run_quietly};
use super::{sharing_crates, sorted};
use crate::repository::root;

/// Compiles the SDK of C with all warnings. The cases of other projects are linked with the resulting objects.
pub(super) fn sdk_of_c(steps: &mut Steps) {
    steps.add("C", "the SDK without warnings", c_sdk);
}

/// Tests the SDK of JavaScript. It builds components that try to leave the sandbox or cause plugin errors.
pub(super) fn sdk_of_javascript(steps: &mut Steps, opilio: &Path) {
    let sdk = root().join("sdk/js");
    for file in sorted(&sdk.join("test")).unwrap_or_default() {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !name.ends_with(".test.mjs") {
            continue;
        }
        let program = opilio.to_owned();
        steps.add("JavaScript", format!("the SDK's {name}"), move || {
            let mut test = Command::new("node");
            test.args(["--test", "--test-reporter=spec"]).arg(&file);
            run_quietly(test.env("OPILIO", &program))
        });
    }
    steps.add(
        "TypeScript",
        "the contract's types are those of the contract",
        move || {
            let mut check = Command::new("node");
            check.arg(sdk.join("types/generate.mjs")).arg("--check");
            run_quietly(&mut check)
        },
    );
}

/// Object files of the SDK of C and its test runner, to be linked with each tested project.
fn c_objects() -> PathBuf {
    root().join("target/toolchains/sdk-c-tests")
}

fn cc(arguments: &[&str]) -> Command {
    let mut compile = Command::new("cc");
    compile.args(arguments);
    compile
}

fn c_sdk() -> Result<()> {
    let (sdk, objects) = (root().join("sdk/c"), c_objects());
    if objects.exists() {
        fs::remove_dir_all(&objects)?;
    }
    fs::create_dir_all(&objects)?;
    let strict = ["-std=c11", "-Wall", "-Wextra", "-Werror"];
    let mut compile = cc(&strict);
    compile.arg("-I").arg(sdk.join("include"));
    compile.arg("-isystem").arg(sdk.join("bindings")).arg("-c");
    compile.args(sources(&sdk.join("src"), "c")?);
    compile.args(sources(&sdk.join("testing"), "c")?);
    run_quietly(compile.current_dir(&objects))?;
    for (name, folder) in [("sdk-test", "test"), ("headline", "test/headline")] {
        let program = objects.join(name);
        let mut compile = cc(&strict);
        compile.arg("-I").arg(sdk.join("include"));
        compile.arg("-isystem").arg(sdk.join("bindings"));
        compile.args(sources(&sdk.join(folder), "c")?);
        compile.args(sources(&objects, "o")?);
        run_quietly(compile.arg("-o").arg(&program))?;
        // Paths of the cases are relative to the project's folder.
        let place = if name == "headline" {
            sdk.join(folder)
        } else {
            sdk.clone()
        };
        run_quietly(Command::new(program).current_dir(place))?;
    }
    Ok(())
}

fn sources(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = sorted(folder)?;
    found.retain(|file| file.extension().is_some_and(|of| of == ending));
    Ok(found)
}

/// Runs the cases of a project with the test runner of its language.
pub(super) fn cases(folder: &Path) -> Result<()> {
    let mut test = match Language::of(folder) {
        Some(Language::Rust) => {
            let mut test = opilio_build::cargo();
            test.args(["test", "--quiet"]);
            sharing_crates(&mut test);
            test
        }
        Some(Language::Go) => {
            let mut test = Command::new("go");
            test.args(["test", "./..."]);
            test
        }
        Some(Language::C) if folder.join("Makefile").is_file() => {
            let mut test = Command::new("make");
            test.args(["--silent", "test"]);
            test
        }
        Some(Language::C) => return c_cases(folder),
        Some(Language::JavaScript | Language::TypeScript) => {
            let mut test = Command::new("node");
            test.arg(root().join("sdk/js/bin/opilio-plugin.mjs"));
            test.arg("test").arg(folder);
            test
        }
        Some(Language::Python) => {
            let mut test = Command::new("python3");
            test.args(["-m", "opilio_plugin", "test"]).arg(folder);
            test.env("PYTHONPATH", root().join("sdk/python"));
            test
        }
        None => anyhow::bail!("{} is not a project", folder.display()),
    };
    run_quietly(test.current_dir(folder))
}

/// Runs the cases of a C project without a Makefile: compiles its sources and links them with the SDK's objects.
fn c_cases(folder: &Path) -> Result<()> {
    let scratch = c_objects().join("cases");
    fs::create_dir_all(&scratch)?;
    let program = scratch.join(folder.file_name().unwrap_or_default());
    let plain = sources(folder, "c")?;
    let mut compile = Command::new(if plain.is_empty() { "c++" } else { "cc" });
    compile.arg("@compile_flags.txt").args(plain);
    compile.args(sources(folder, "cpp")?);
    compile.args(sources(&c_objects(), "o")?);
    run_quietly(compile.arg("-o").arg(&program).current_dir(folder))?;
    run_quietly(Command::new(program).current_dir(folder))
}
