//! The REST interface of Heritrix 3, used by clients with which institutions control Heritrix: hapy-heritrix, and the
//! heritrix3-wrapper of NetarchiveSuite. Each takes jobs through all of their states.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use opilio_test_web::demo;

use crate::command::{output, status};
use crate::registries;
use crate::repository::root;

/// Packages that hapy-heritrix imports or needs for its installation. It uses a module that newer versions of setuptools lack.
const PYTHON_PACKAGES: [&str; 3] = ["requests==2.34.2", "setuptools<81", "wheel==0.45.1"];

const HAPY: &str = "hapy-heritrix";
const HAPY_VERSION: &str = "0.1.1";

/// The Maven plugin that fetches the wrapper and its dependencies.
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

const USER: &str = "judge";
const PASSWORD: &str = "lily of the valley";

/// The process of the daemon, killed when the judge ends.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Nothing to do if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs both clients against a daemon with a self-signed certificate, which Heritrix has too.
pub(super) async fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let home = home.join("heritrix");
    let run = home.join("run");
    if run.exists() {
        fs::remove_dir_all(&run)?;
    }
    fs::create_dir_all(run.join("profiles"))?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let hapy = hapy(&python, &home)?;
    let wrapper = wrapper(&home)?;
    let web = demo::web()
        .serve()
        .await
        .context("cannot serve the demo web on 127.0.0.1")?;

    let scripts = root().join("tests/judges/heritrix");
    let cxml = run.join("crawler-beans.cxml");
    let text = fs::read_to_string(scripts.join("crawler-beans.cxml"))?;
    fs::write(&cxml, text.replace("SEED", &web.url(demo::WWW, "/")))?;
    configure(&run)?;
    let mut token = Command::new(opilio);
    token.args(["token", "new", "judge", "--role", "viewer"]);
    output(token.args(["--config", "opilio.toml"]).current_dir(&run))?;
    let mut daemon = Daemon(
        Command::new(opilio)
            .args(["serve", "--config", "opilio.toml"])
            .current_dir(&run)
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let out = daemon
        .0
        .stdout
        .take()
        .context("the daemon has no standard output")?;
    let mut url = String::new();
    BufReader::new(out).read_line(&mut url)?;
    let url = url.trim().trim_end_matches('/').to_owned();
    let address = url
        .strip_prefix("https://")
        .and_then(|it| it.split_once(':'));
    let (host, port) = address.with_context(|| format!("the daemon printed {url:?}"))?;

    let jobs = run.join("jobs");
    let mut judges = [Command::new(&python), Command::new("java")];
    judges[0]
        .arg(scripts.join("life.py"))
        .args([&hapy, Path::new(&url)])
        .args([USER, PASSWORD])
        .args([&cxml, &jobs]);
    judges[1]
        .arg("-cp")
        .arg(wrapper)
        .arg(scripts.join("Life.java"))
        .args([host, port, USER, PASSWORD])
        .args([&cxml, &jobs]);
    for mut judge in judges {
        tokio::task::spawn_blocking(move || status(&mut judge)).await??;
    }
    Ok(())
}

/// Writes the daemon's configuration.
fn configure(run: &Path) -> Result<()> {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let own = rcgen::generate_simple_self_signed(names)?;
    fs::write(run.join("cert.pem"), own.cert.pem())?;
    fs::write(run.join("key.pem"), own.signing_key.serialize_pem())?;
    fs::write(run.join("password"), PASSWORD)?;
    secret(&run.join("key.pem"))?;
    secret(&run.join("password"))?;
    // The permission to connect to loopback comes from the daemon's configuration. Heritrix configurations have no such setting.
    fs::write(
        run.join("profiles/here.toml"),
        "[politeness]\ndelay-factor = 0.0\nmin-delay = \"0s\"\nmax-delay = \"0s\"\n\n[fetch]\nallow-addresses = [\"loopback\"]\n",
    )?;
    fs::write(
        run.join("opilio.toml"),
        format!(
            "listen = \"127.0.0.1:0\"\njobs = \"jobs\"\nprofiles = \"profiles\"\n\n[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n\n[heritrix]\nuser = \"{USER}\"\npassword-file = \"password\"\nprofile = \"here\"\n"
        ),
    )?;
    Ok(())
}

/// Only the owner may read the file; otherwise the daemon refuses it.
#[cfg(unix)]
fn secret(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(
        file,
        fs::Permissions::from_mode(0o600),
    )?)
}

#[cfg(not(unix))]
fn secret(_: &Path) -> Result<()> {
    Ok(())
}

/// The folder of hapy-heritrix. It is Python 2, and is converted only with the tool that Python includes.
fn hapy(python: &Path, home: &Path) -> Result<PathBuf> {
    let folder = home.join(format!("{HAPY}-{HAPY_VERSION}"));
    if folder.join("translated").exists() {
        return Ok(folder);
    }
    fs::create_dir_all(home)?;
    let mut download = Command::new(python);
    download.args(["-m", "pip", "download", "--quiet"]);
    download.arg("--disable-pip-version-check");
    download.args(["--no-deps", "--no-binary", ":all:", "--no-build-isolation"]);
    download.arg(format!("{HAPY}=={HAPY_VERSION}"));
    status(download.arg("--dest").arg(home))?;
    let archive = home.join(format!("{HAPY}-{HAPY_VERSION}.tar.gz"));
    let mut unpack = Command::new(python);
    unpack.args(["-m", "tarfile", "-e"]).arg(archive).arg(home);
    status(&mut unpack)?;
    let mut translate = Command::new(python);
    translate.args(["-W", "ignore", "-m", "lib2to3", "-w", "-n", "--no-diffs"]);
    translate.arg(folder.join("hapy"));
    translate.stdout(Stdio::null()).stderr(Stdio::null());
    status(&mut translate).context("Python up to 3.12 has lib2to3")?;
    fs::write(folder.join("translated"), "")?;
    Ok(folder)
}

/// The class path with the wrapper.
fn wrapper(home: &Path) -> Result<String> {
    let scripts = root().join("tests/judges/heritrix");
    let folder = home.join("wrapper");
    if !folder.join("logback.xml").exists() {
        fs::create_dir_all(&folder)?;
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "--file"]);
        maven.arg(scripts.join("pom.xml")).arg(MAVEN_COPY);
        maven.arg(format!("-DoutputDirectory={}", folder.display()));
        status(&mut maven)?;
        fs::copy(scripts.join("logback.xml"), folder.join("logback.xml"))?;
    }
    Ok(format!("{0}:{0}/*", folder.display()))
}
