//! A third-party registry (Debian's `docker-registry`) and a third-party client (`wkg`). `wkg` reads the images that `opilio plugin
//! push` writes, and the other way round: with a password, over plain HTTP on loopback, and over TLS on another address.

use std::fs;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::command::{output, status};
use crate::repository::root;

/// The client. It is built without optimisation and debug information, which takes a few minutes at first.
const WKG: &str = "0.16.1";
/// User name and password for the registry, and the line of its password file, which must use bcrypt.
const NAME: &str = "author";
const PASSWORD: &str = "secret";
const PASSWORD_LINE: &str = "author:$2b$05$LTtsizXNt6fGWhI4ifZHcOYXKriiZPKOgcDIvVYFRXmqm9usqHxTS";
/// `NAME:PASSWORD` in base64, in the form that `docker login` writes.
const PAIR: &str = "YXV0aG9yOnNlY3JldA==";
/// Longest wait until the registry answers.
const PATIENCE: Duration = Duration::from_secs(180);

/// A registry that is running.
struct Registry {
    process: Child,
    /// `ADDRESS:PORT`.
    host: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended already; the test has noticed that.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the judge in a folder of its own.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let wkg = wkg(home)?;
    install_registry()?;
    let folder = home.join("registry");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("passwords"), PASSWORD_LINE)?;
    push_and_pull(&folder, opilio, &wkg)?;
    println!("registry: wkg reads what opilio pushes, and opilio what wkg pushes, byte for byte");
    match outward_address() {
        Some(address) => {
            over_tls(&folder, opilio, address)?;
            println!(
                "registry: pushed and pulled over TLS; not without trust, not without a password"
            );
        }
        None => {
            println!("registry: this machine has no address but loopback, so TLS is not tested")
        }
    }
    Ok(())
}

/// Tests on loopback, over plain HTTP, with a password.
fn push_and_pull(folder: &Path, opilio: &Path, wkg: &Path) -> Result<()> {
    let registry = serve(folder, "127.0.0.1".parse()?, "")?;
    let credentials = credentials(folder, &registry.host)?;
    let anonymous = no_credentials(folder)?;
    let components = root().join("plugins/builtin/components");
    let (ours, theirs) = (components.join("css.wasm"), components.join("js.wasm"));
    let got = folder.join("got.wasm");

    let name = format!("{}/plugins/css:1.0", registry.host);
    let image = format!("oci://{name}");
    status(
        opilio_plugin(opilio, folder, "push")
            .arg(&ours)
            .arg(&image)
            .arg(&credentials),
    )?;
    status(
        wkg_oci(wkg, "pull", &registry.host)
            .arg(&name)
            .arg("--output")
            .arg(&got),
    )?;
    same(&ours, &got)?;

    let name = format!("{}/plugins/js:1.0", registry.host);
    let image = format!("oci://{name}");
    status(wkg_oci(wkg, "push", &registry.host).arg(&name).arg(&theirs))?;
    let mut pull = opilio_plugin(opilio, folder, "pull");
    let printed_text = output(pull.arg(&image).arg(&credentials).arg("--output").arg(&got))?;
    same(&theirs, &got)?;

    // The printed name has the digest that the registry computed of the manifest, and refers to the same image.
    let bound = printed_text
        .split('"')
        .find(|text| text.contains("@sha256:"));
    let bound = bound
        .with_context(|| format!("no image bound to a manifest is named in:\n{printed_text}"))?;
    let other_store = folder.join("another-store");
    let mut pull = opilio_plugin(opilio, &other_store, "pull");
    status(pull.arg(bound).arg(&credentials))?;

    let mut pull = opilio_plugin(opilio, folder, "pull");
    check_failure(pull.arg(&image).arg(&anonymous), "was refused")?;
    let mut pull = opilio_plugin(opilio, folder, "pull");
    let missing = format!("oci://{}/plugins/js:2.0", registry.host);
    check_failure(
        pull.arg(missing).arg(&credentials),
        "is not in its registry",
    )
}

/// Tests on an address that other machines may reach, where plain HTTP is not allowed by default.
fn over_tls(folder: &Path, opilio: &Path, address: IpAddr) -> Result<()> {
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    status(
        Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=registry",
            ])
            .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-addext", &format!("subjectAltName=IP:{address}")])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .stderr(Stdio::null()),
    )?;
    let tls = format!(
        "  tls: {{certificate: {}, key: {}}}\n",
        certificate.display(),
        key.display()
    );
    let registry = serve(folder, address, &tls)?;
    let credentials = credentials(folder, &registry.host)?;
    let anonymous = no_credentials(folder)?;
    let image = format!("oci://{}/plugins/css:tls", registry.host);
    let file = root().join("plugins/builtin/components/css.wasm");
    let trusting = |what: &str| {
        let mut command = opilio_plugin(opilio, folder, what);
        command.env("SSL_CERT_FILE", &certificate);
        command
    };
    let mut push = opilio_plugin(opilio, folder, "push");
    check_failure(push.arg(&file).arg(&image).arg(&credentials), "certificate")?;
    status(trusting("push").arg(&file).arg(&image).arg(&credentials))?;
    status(trusting("pull").arg(&image).arg(&credentials))?;
    check_failure(trusting("pull").arg(&image).arg(&anonymous), "was refused")
}

/// Starts a registry for this folder that requires the password.
fn serve(folder: &Path, address: IpAddr, more: &str) -> Result<Registry> {
    let port = TcpListener::bind((address, 0))?.local_addr()?.port();
    let host = format!("{address}:{port}");
    let config = folder.join("registry.yml");
    let text = format!(
        "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
         storage: {{filesystem: {{rootdirectory: {}}}}}\n\
         auth: {{htpasswd: {{realm: judges, path: {}}}}}\n\
         http:\n  addr: \"{host}\"\n  secret: judges\n{more}",
        folder.join("data").display(),
        folder.join("passwords").display(),
    );
    fs::write(&config, text)?;
    let log = fs::File::create(folder.join("registry.log"))?;
    let process = Command::new("docker-registry")
        .arg("serve")
        .arg(&config)
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot run docker-registry")?;
    let mut registry = Registry { process, host };
    let started = Instant::now();
    while std::net::TcpStream::connect(&registry.host).is_err() {
        if let Some(ended) = registry.process.try_wait()? {
            let log = fs::read_to_string(folder.join("registry.log"))?;
            bail!("docker-registry ended with {ended}:\n{log}");
        }
        ensure!(
            started.elapsed() < PATIENCE,
            "docker-registry does not answer"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(registry)
}

/// The command-line option that gives the password.
fn credentials(folder: &Path, host: &str) -> Result<String> {
    let path = folder.join("config.json");
    let text = format!(r#"{{"auths": {{"{host}": {{"auth": "{PAIR}"}}}}}}"#);
    fs::write(&path, text)?;
    Ok(format!("--credentials={}", path.display()))
}

/// The command-line option that gives a file without passwords.
fn no_credentials(folder: &Path) -> Result<String> {
    let path = folder.join("no-credentials.json");
    fs::write(&path, "{}")?;
    Ok(format!("--credentials={}", path.display()))
}

/// A command `opilio plugin WHAT` whose data, with the store of components, is below this folder.
fn opilio_plugin(opilio: &Path, folder: &Path, what: &str) -> Command {
    let mut command = Command::new(opilio);
    command.env("XDG_DATA_HOME", folder).args(["plugin", what]);
    command
}

fn wkg_oci(wkg: &Path, what: &str, host: &str) -> Command {
    let mut command = Command::new(wkg);
    command.args(["oci", what, "--insecure", host]);
    command.args(["-u", NAME, "-p", PASSWORD]);
    command
}

fn same(a: &Path, b: &Path) -> Result<()> {
    let same = fs::read(a)? == fs::read(b)?;
    ensure!(same, "{} and {} differ", a.display(), b.display());
    Ok(())
}

/// Checks that the command fails with this text in its output.
fn check_failure(command: &mut Command, expected: &str) -> Result<()> {
    let done = command.output()?;
    let printed_text = String::from_utf8_lossy(&done.stderr);
    ensure!(
        !done.status.success(),
        "the command did not fail: {command:?}"
    );
    ensure!(
        printed_text.contains(expected),
        "{expected:?} is not in: {printed_text}"
    );
    Ok(())
}

/// An address of this machine that is not loopback. No packet is sent to find it.
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

fn install_registry() -> Result<()> {
    let installed = Command::new("docker-registry").arg("--version").output();
    if installed.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    let install = "apt-get update -qq && apt-get install -y -qq docker-registry >/dev/null";
    status(Command::new("sh").args(["-c", install]))
        .context("install Debian's package docker-registry")
}

/// Builds the client from its package, unless this version is installed already.
fn wkg(home: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (root, objects) = (home.join("wkg"), home.join("wkg-target"));
    let mut install = Command::new(cargo);
    install
        .args(["install", "wkg", "--version", WKG])
        .args(["--locked", "--debug", "--quiet", "--root"])
        .arg(&root)
        .env("CARGO_TARGET_DIR", &objects)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    status(&mut install)?;
    if objects.exists() {
        // Removes more than a gigabyte of build files.
        fs::remove_dir_all(&objects)?;
    }
    Ok(root.join("bin/wkg"))
}
