//! SDKs as they are packed for a registry: what is installed of them builds a project where there is no checkout.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use opilio_build::Language;

use super::crawl::fresh;
use super::projects::{self, Project};
use super::steps::{Steps, quietly};

/// Adds a step for each language that has registries for such.
pub(super) fn sdks(steps: &mut Steps, opilio: &Path, home: &Path) {
    type Pack = fn(&Path, &Path) -> Result<()>;
    let all: [(&str, Language, Pack); 2] = [
        ("js", Language::JavaScript, javascript),
        ("python", Language::Python, python),
    ];
    for (language, of, pack) in all {
        let (opilio, folder) = (opilio.to_owned(), home.join("packed").join(language));
        steps.add(of.name(), "the SDK as it is packed", move || {
            fresh(&folder)?;
            let checkout = projects::checkout(&folder.join("checkout"), of)?;
            let project = Project::for_packed(&folder, language);
            project.make(&opilio, None)?;
            pack(&checkout.join("sdk").join(language), &project.folder)?;
            // Where the contract came from, if not out of the package.
            fs::remove_dir_all(&checkout)?;
            quietly(
                Command::new(&opilio)
                    .args(["plugin", "test"])
                    .arg(&project.folder),
            )
        });
    }
}

fn javascript(sdk: &Path, project: &Path) -> Result<()> {
    let npm = |command: &str| {
        let mut npm = Command::new("npm");
        npm.args(["--silent", "--no-audit", "--no-fund", command]);
        npm
    };
    let mut pack = npm("pack");
    quietly(pack.arg("--pack-destination").arg(project).current_dir(sdk))?;
    let packed = fs::read_dir(project)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|file| file.extension().is_some_and(|of| of == "tgz"))
        .context("npm pack has packed nothing")?;
    quietly(npm("install").arg(packed).current_dir(project))?;
    quietly(npm("run").arg("build").current_dir(project))
}

fn python(sdk: &Path, project: &Path) -> Result<()> {
    let environment = project.join(".venv");
    let mut make = Command::new("python3");
    quietly(make.args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");
    let mut install = Command::new(&python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    quietly(install.arg(format!("{}[build]", sdk.display())))?;
    let mut build = Command::new(&python);
    build.args(["-m", "opilio_plugin", "build"]).arg(project);
    quietly(build.current_dir(project))
}
