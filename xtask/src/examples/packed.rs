//! The SDKs' packages for registries: an installed package must be able to build a project outside of this repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use opilio_build::{Language, SDK_FOLDER};

use super::crawl::make_empty_folder;
use super::projects::Project;
use super::steps::{Steps, run_quietly};
use crate::sdks;

/// Adds a step for each language that has a package registry.
pub(super) fn sdks(steps: &mut Steps, opilio: &Path, home: &Path) {
    type Install = fn(&Path, &Path) -> Result<()>;
    let all: [(&str, Language, Install); 2] = [
        ("js", Language::JavaScript, javascript),
        ("python", Language::Python, python),
    ];
    for (language, of, install) in all {
        let (opilio, folder) = (opilio.to_owned(), home.join("packed").join(language));
        steps.add(of.name(), "the SDK as it is packed", move || {
            make_empty_folder(&folder)?;
            let project = Project::for_packed(&folder, language);
            project.make(&opilio)?;
            fs::remove_dir_all(project.folder.join(SDK_FOLDER))?;
            let packages = folder.join("packages");
            install(&sdks::pack(of, &packages)?, &project.folder)?;
            run_quietly(
                Command::new(&opilio)
                    .args(["plugin", "test"])
                    .arg(&project.folder),
            )
        });
    }
}

fn javascript(package: &Path, project: &Path) -> Result<()> {
    let npm = |command: &str| {
        let mut npm = Command::new("npm");
        npm.args(["--silent", "--no-audit", "--no-fund", command]);
        npm
    };
    run_quietly(npm("install").arg(package).current_dir(project))?;
    run_quietly(npm("run").arg("build").current_dir(project))
}

fn python(package: &Path, project: &Path) -> Result<()> {
    let environment = project.join(".venv");
    let mut make = Command::new("python3");
    run_quietly(make.args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");
    let mut install = Command::new(&python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    run_quietly(install.arg(format!("{}[build]", package.display())))?;
    let mut build = Command::new(&python);
    build.args(["-m", "opilio_plugin", "build"]).arg(project);
    run_quietly(build.current_dir(project))
}
