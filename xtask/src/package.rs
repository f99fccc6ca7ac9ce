//! `cargo xtask package`: packages for Debian and Fedora and a tarball, of one release binary, in `target/package`.
//!
//! Manual pages and completions are printed by the binary. `deploy/package/nfpm.yaml` lists the packages' files, and nfpm
//! writes both packages. All files have the time of the last commit, so that one commit always gives the same packages.

mod notices;
mod trial;

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::command::{self, output, status};
use crate::registries;
use crate::repository::root;

/// The Go module of nfpm.
const NFPM: &str = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0";

/// Shells with a completion script, and the name of the script's file.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "opilio.bash"),
    ("fish", "opilio.fish"),
    ("zsh", "_opilio"),
];

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Release binary to package [default: builds it].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Maintainer that the packages name [default: the author of the last commit].
    #[arg(long, value_name = "NAME <ADDRESS>")]
    maintainer: Option<String>,
    /// Lint the packages, and install, upgrade, remove and purge them in a new Debian root. Needs root.
    #[arg(long = "try")]
    with_trial: bool,
}

/// Data for the package descriptions.
struct Release {
    version: String,
    maintainer: String,
    libraries: Libraries,
    /// Seconds since 1970 of the last commit.
    time: String,
    /// Folder of the files that are generated for the packages.
    stage: PathBuf,
}

/// System libraries that a binary needs, as package dependencies.
#[derive(Debug, Default, PartialEq, Eq)]
struct Libraries {
    /// Newest version of glibc symbols, such as 2.34. `None` for a static binary.
    glibc: Option<(u32, u32)>,
    libgcc: bool,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(crate) fn run(options: &Options) -> Result<()> {
    let home = root().join("target/package");
    let stage = home.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    fs::create_dir_all(&stage)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => command::release("opilio")?,
    };
    let release = Release {
        version: version(&binary)?,
        maintainer: match &options.maintainer {
            Some(maintainer) => maintainer.clone(),
            None => commit("%an <%ae>")?,
        },
        libraries: libraries(&output(Command::new("objdump").arg("-p").arg(&binary))?)?,
        time: commit("%ct")?,
        stage,
    };
    release.fill_stage(&binary, &home)?;
    let nfpm = registries::go(NFPM)?;
    let mut written = vec![release.tarball(&home)?];
    for kind in ["deb", "rpm"] {
        written.push(release.package(&nfpm, kind, 1, &home)?);
    }
    fs::write(home.join("SHA256SUMS"), sums(&home, &written)?)?;
    for file in &written {
        let size = fs::metadata(file)?.len();
        println!("{}  {:.1} MB", file.display(), size as f64 / 1e6);
    }
    if options.with_trial {
        // A second release with the same files, to test upgrades.
        let next = home.join("next");
        fs::create_dir_all(&next)?;
        for kind in ["deb", "rpm"] {
            release.package(&nfpm, kind, 2, &next)?;
        }
        trial::run(&home, &written)?;
    }
    Ok(())
}

impl Release {
    /// Generates the files of the packages: the stripped binary, manual pages, completions, change logs and notices.
    fn fill_stage(&self, binary: &Path, home: &Path) -> Result<()> {
        let stage = &self.stage;
        let program = stage.join("opilio");
        // Debug symbols, for backtraces of crashes, are in a file of their own.
        let symbols = home.join(format!("opilio-{}-{ARCH}.debug", self.version));
        status(
            Command::new("objcopy")
                .arg("--only-keep-debug")
                .args([binary, &symbols]),
        )?;
        status(
            Command::new("objcopy")
                .arg("--strip-all")
                .args([binary, &program]),
        )?;
        let mut link = Command::new("objcopy");
        link.arg(format!("--add-gnu-debuglink={}", symbols.display()));
        status(link.arg(&program))?;

        let pages = stage.join("man1");
        status(Command::new(&program).args(["man", "--dir"]).arg(&pages))?;
        let pages: Vec<_> = fs::read_dir(&pages)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        for (shell, file) in SHELLS {
            let script = output(Command::new(&program).args(["completions", shell]))?;
            fs::write(stage.join(file), script)?;
        }
        let documents = stage.join("documents");
        fs::create_dir_all(&documents)?;
        let texts = ["changelog", "third-party.txt"].map(|name| documents.join(name));
        fs::copy(root().join("CHANGELOG.md"), &texts[0])?;
        fs::write(&texts[1], notices::third_party()?)?;
        let mut gzip = Command::new("gzip");
        status(gzip.args(["-9", "--no-name"]).args(pages).args(texts))?;
        Ok(fs::write(stage.join("changelog.yaml"), self.changelog()?)?)
    }

    /// The change log of the packages, in the format of nfpm: YAML, of which JSON is a subset.
    fn changelog(&self) -> Result<String> {
        let mut date = Command::new("date");
        date.args(["--utc", "--date", &format!("@{}", self.time)]);
        let date = output(date.arg("+%Y-%m-%dT%H:%M:%SZ"))?;
        let note = format!("Release {}. Its changes are in changelog.gz.", self.version);
        let entry = json!({
            "semver": format!("{}-1", self.version),
            "date": date.trim(),
            "packager": self.maintainer,
            "deb": {"urgency": "medium", "distributions": ["unstable"]},
            "changes": [{"note": note}],
        });
        Ok(json!([entry]).to_string())
    }

    /// Writes a package of one kind into a folder.
    fn package(&self, nfpm: &Path, kind: &str, release: u32, folder: &Path) -> Result<PathBuf> {
        let glibc = self.libraries.glibc;
        let of = |format: &dyn Fn((u32, u32)) -> String| glibc.map(format).unwrap_or_default();
        let debian = of(&|(major, minor)| format!("libc6 (>= {major}.{minor})"));
        let libgcc = |name: &str| match self.libraries.libgcc {
            true => name.to_owned(),
            false => String::new(),
        };
        let rpm = of(&|(major, minor)| format!("libc.so.6(GLIBC_{major}.{minor})(64bit)"));
        let (arch, rpm_arch) = match ARCH {
            "x86_64" => ("amd64", "x86_64"),
            "aarch64" => ("arm64", "aarch64"),
            other => bail!("no packages for {other}: they are made for x86_64 and aarch64"),
        };
        let file = folder.join(match kind {
            "deb" => format!("opilio_{}-{release}_{arch}.deb", self.version),
            _ => format!("opilio-{}-{release}.{rpm_arch}.rpm", self.version),
        });
        let mut write = Command::new(nfpm);
        write.current_dir(root());
        write.args(["package", "--config", "deploy/package/nfpm.yaml"]);
        write.args(["--packager", kind, "--target"]).arg(&file);
        write.env("ARCH", arch).env("VERSION", &self.version);
        write.env("RELEASE", release.to_string());
        write.env("MAINTAINER", &self.maintainer);
        write.env("SOURCE_DATE_EPOCH", &self.time);
        write.env("DEB_LIBC", debian);
        write.env("DEB_LIBGCC", libgcc("libgcc-s1"));
        write.env("RPM_LIBC", rpm);
        write.env("RPM_LIBGCC", libgcc("libgcc_s.so.1()(64bit)"));
        output(&mut write)?;
        Ok(file)
    }

    /// Writes a tarball with the same files, for systems that support neither package format.
    fn tarball(&self, home: &Path) -> Result<PathBuf> {
        let name = format!("opilio-{}-{ARCH}-linux", self.version);
        let folder = home.join(&name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let needs = match self.libraries.glibc {
            Some((major, minor)) => {
                format!("It needs glibc {major}.{minor} or newer, and libgcc.")
            }
            None => "It needs no library.".to_owned(),
        };
        let parts = [
            (self.stage.join("opilio"), "bin/opilio"),
            (self.stage.join("man1"), "share/man/man1"),
            (
                self.stage.join("opilio.bash"),
                "share/bash-completion/completions/opilio",
            ),
            (
                self.stage.join("opilio.fish"),
                "share/fish/vendor_completions.d/opilio.fish",
            ),
            (
                self.stage.join("_opilio"),
                "share/zsh/site-functions/_opilio",
            ),
            (
                self.stage.join("documents/third-party.txt.gz"),
                "share/doc/opilio/third-party.txt.gz",
            ),
            (root().join("CHANGELOG.md"), "share/doc/opilio/CHANGELOG.md"),
            (root().join("LICENSE"), "share/doc/opilio/LICENSE"),
            (
                root().join("deploy/README.md"),
                "share/doc/opilio/INSTALL.md",
            ),
            (
                root().join("deploy/opilio.service"),
                "share/opilio/opilio.service",
            ),
            (
                root().join("deploy/opilio.toml"),
                "share/opilio/opilio.toml",
            ),
            (
                root().join("deploy/package/sysusers.conf"),
                "share/opilio/sysusers.conf",
            ),
            (
                root().join("deploy/package/tmpfiles.conf"),
                "share/opilio/tmpfiles.conf",
            ),
        ];
        for (from, to) in parts {
            let to = folder.join(to);
            fs::create_dir_all(to.parent().context("a path in the tarball")?)?;
            status(Command::new("cp").arg("-r").args([from, to]))?;
        }
        let readme = format!(
            "Opilio {}\n\nbin/opilio runs from any folder. {needs}\nTo install it for all users: cp -r bin share /usr/local/\nTo run the daemon under systemd, read *Tarball* in share/doc/opilio/INSTALL.md.\n",
            self.version
        );
        fs::write(folder.join("README"), readme)?;
        let file = home.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args([
            "--create",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ]);
        tar.args(["--mode=u+rwX,go+rX,go-w", "--use-compress-program=gzip -9n"]);
        tar.arg(format!("--mtime=@{}", self.time))
            .arg("--file")
            .arg(&file);
        status(tar.arg("--directory").arg(home).arg(&name))?;
        fs::remove_dir_all(folder)?;
        Ok(file)
    }
}

/// A fact about the last commit, by a placeholder of `git log`.
fn commit(fact: &str) -> Result<String> {
    let mut log = Command::new("git");
    log.args(["log", "-1", &format!("--format={fact}")]);
    Ok(output(log.current_dir(root()))?.trim().to_owned())
}

/// The version that a binary reports.
fn version(binary: &Path) -> Result<String> {
    let version_text = output(Command::new(binary).arg("--version"))?;
    let version = version_text.trim().strip_prefix("opilio ");
    version.map(str::to_owned).with_context(|| {
        format!(
            "{} --version printed {version_text:?}, not a version of opilio",
            binary.display()
        )
    })
}

/// Reads the output of `objdump -p`.
///
/// # Errors
/// The binary needs a library for which the packages name no dependency.
fn libraries(headers: &str) -> Result<Libraries> {
    let lines = || headers.lines().map(str::trim);
    let mut libraries = Libraries::default();
    for library in lines().filter_map(|line| line.strip_prefix("NEEDED")) {
        match library.trim() {
            "libgcc_s.so.1" => libraries.libgcc = true,
            "libc.so.6" | "libm.so.6" | "libdl.so.2" | "libpthread.so.0" => {}
            loader if loader.starts_with("ld-linux") => {}
            other => bail!("the binary needs {other}: add it to Libraries in xtask/src/package.rs"),
        }
    }
    let versions = lines().filter_map(|line| line.rsplit_once("GLIBC_")?.1.split_once('.'));
    let versions = versions.filter_map(|(major, minor)| {
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    libraries.glibc = versions.max();
    Ok(libraries)
}

/// The content of `SHA256SUMS`, in the format of `sha256sum`.
fn sums(home: &Path, files: &[PathBuf]) -> Result<String> {
    let mut names = BTreeSet::new();
    for file in files {
        names.insert(file.strip_prefix(home)?);
    }
    output(Command::new("sha256sum").args(names).current_dir(home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_binary() {
        let headers = "
Dynamic Section:
  NEEDED               libgcc_s.so.1
  NEEDED               libc.so.6

Version References:
  required from libc.so.6:
    0x09691974 0x00 03 GLIBC_2.3.4
    0x069691b4 0x00 02 GLIBC_2.34
    0x069691b2 0x00 05 GLIBC_2.32
  required from libgcc_s.so.1:
    0x0b792650 0x00 04 GCC_3.0
";
        let expected = Libraries {
            glibc: Some((2, 34)),
            libgcc: true,
        };
        assert_eq!(libraries(headers).unwrap(), expected);
        assert_eq!(libraries("").unwrap(), Libraries::default());
        let problem = libraries("  NEEDED               libssl.so.3").unwrap_err();
        assert!(problem.to_string().contains("libssl.so.3"), "{problem}");
    }
}
