//! Reads the files of `deploy/` with the tools of operators: compose-go, which Docker Compose uses, kustomize and
//! kubernetes-validate, and nats-server. No machine is started.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::command::{output, status};
use crate::registries;
use crate::repository::root;

/// The Go module of kustomize.
const KUSTOMIZE: &str = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1";

/// The Python package of kubernetes-validate, with the schemas of a version of Kubernetes.
const KUBERNETES_VALIDATE: &str = "kubernetes-validate==1.37.0";

/// Variables that operators set.
const VARIABLES: [(&str, &str); 2] = [("NAME", "nats-1"), ("NATS_PASSWORD", "secret")];

/// Checks the compose file, the manifests, and the configurations of NATS.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(crate) fn judge(home: &Path) -> Result<()> {
    compose()?;
    println!("compose-go: passed");
    manifests(home)?;
    println!("kubernetes-validate: passed");
    let found = Command::new("nats-server")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    match found {
        Ok(_) => {
            nats_configurations()?;
            println!("nats-server: passed");
        }
        Err(problem) => {
            let is_optional = std::env::var_os("OPILIO_NATS_REQUIRED").is_none();
            ensure!(is_optional, "cannot run nats-server: {problem}");
            println!("skipped: cannot run nats-server: {problem}");
        }
    }
    Ok(())
}

/// Loads the compose file as `docker compose` does.
fn compose() -> Result<()> {
    let mut load = Command::new("go");
    load.current_dir(root().join("tests/judges/compose"));
    load.args(["run", "."]);
    load.arg(root().join("deploy/cluster/compose.yaml"));
    status(load.envs(VARIABLES))
}

/// Renders the Kubernetes manifests as `kubectl apply -k` does, and validates them by the schemas of the API server.
fn manifests(home: &Path) -> Result<()> {
    let rendered = home.join("kubernetes.yaml");
    let kustomize = registries::go(KUSTOMIZE)?;
    let python = registries::python(&[KUBERNETES_VALIDATE])?;
    for folder in ["deploy/kubernetes", "deploy/cluster/kubernetes"] {
        let mut kustomize = Command::new(&kustomize);
        kustomize.arg("build").arg(root().join(folder));
        fs::write(&rendered, output(&mut kustomize)?)?;
        let mut validate = Command::new(python.with_file_name("kubernetes-validate"));
        status(validate.arg("--strict").arg(&rendered))?;
    }
    Ok(())
}

/// Checks the configurations of nats-server with its own parser, without starting it.
fn nats_configurations() -> Result<()> {
    for folder in ["deploy/cluster", "deploy/cluster/kubernetes"] {
        let mut test = Command::new("nats-server");
        test.arg("-t").arg("-c");
        test.arg(root().join(folder).join("nats.conf"));
        status(test.envs(VARIABLES))?;
    }
    Ok(())
}
