//! Schemathesis sends the daemon's API requests that its description allows, and many that it does not, with an admin's token. No
//! request may cause a server error, no valid request may be refused, and every answer must match the description. Before that,
//! every operation is requested with each role and without a token, the description is validated, and clients in Python and
//! TypeScript are generated from it and used.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use crate::command::{output, status};
use crate::registries;
use crate::repository::root;

const PYTHON_PACKAGES: [&str; 4] = [
    "schemathesis==4.32.5",
    "requests==2.34.2",
    "openapi-spec-validator==0.9.0",
    "openapi-python-client==0.29.1",
];

const NODE_PACKAGES: [&str; 5] = [
    "@redocly/cli@2.77.0",
    "openapi-typescript@7.13.0",
    "openapi-fetch@0.17.0",
    "typescript@5.9.3",
    "@types/node@20",
];

/// The settings of openapi-python-client: no formatter, and payloads of captures as bytes.
const PYTHON_CLIENT: &str =
    r#"{"post_hooks": [], "content_type_overrides": {"*/*": "application/octet-stream"}}"#;

/// The settings of the TypeScript compiler.
const TYPESCRIPT: &str = r#"{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022", "types": ["node"]}}"#;

/// The checks. A valid request is accepted, or answered with 404 (not found) or 409 (not possible in the current state). The check
/// that wrong tokens are refused is omitted, because after some of them the daemon answers 429. `roles.py` tests the permissions of
/// roles.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method,positive_data_acceptance";

/// Phases of schemathesis. Stateful sequences are omitted: schemathesis guesses links between operations, and passes parameters
/// that the next operation does not have.
const PHASES: &str = "examples,coverage,fuzzing";

/// The existing jobs. A process runs the first one, paused, so that requests need not open it. The second one has no process;
/// requests stop, resume and delete it.
const JOBS: [&str; 2] = ["first", "second"];

/// Existing names for path parameters, so that requests find something.
const CONFIG: &str = r#"[parameters]
"path.job" = "first"
"path.file" = "job.log"

[[operations]]
include-name-regex = "(DELETE /api/v1/jobs/\\{job\\}|/stop|/resume)$"
[operations.parameters]
"path.job" = "second"

# Conditions and settings of profiles are a language of their own. The description has their fields, not their content.
[[operations]]
include-name-regex = "(PATCH .*/settings|(POST|PATCH) .*/overrides(/\\{id\\})?)$"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "422"]

# Changes of a text fit only some texts, and tags in If-Match only one version. Names of shipped profiles are taken, and a text may be
# good for one profile and not for another.
[[operations]]
include-name-regex = "(POST .*/profiles/form|(PUT|DELETE) .*/profiles/\\{profile\\}|POST /api/v1/jobs|POST .*/profiles(/\\{profile\\}/copy)?)$"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "412", "422"]

# The file has an end that the description does not know.
[[operations]]
include-name = "GET /api/v1/jobs/{job}/files/{kind}/{name}"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "416"]
"#;

/// Jobs that requests create are never started, since they would crawl.
const DAEMON: &str = "[limits]\ndisk-free = \"1000000TiB\"\n";

/// Roles that have a token.
const ROLES: [&str; 3] = ["viewer", "operator", "admin"];

/// Event streams, which do not end, and requests that start jobs.
const LEFT_OUT: &str = "events|/start$";

/// The process of the daemon or the crawl, killed when the judge ends.
struct ProcessGuard(Child);

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        // Nothing to do if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs schemathesis against a daemon with two jobs.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let home = home.join("api");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let seed = "http://nowhere.localhost/";
    for job in JOBS {
        let job = format!("jobs/{job}");
        let mut make = Command::new(opilio);
        make.args(["job", "new", &job, "--profile", "default", "--seed", seed]);
        status(make.current_dir(&home))?;
    }
    fs::write(home.join("schemathesis.toml"), CONFIG)?;
    fs::write(home.join("opilio.toml"), DAEMON)?;
    let mut tokens = Vec::new();
    for role in ROLES {
        let mut token = Command::new(opilio);
        token.args(["token", "new", role, "--role", role]);
        let token = output(token.current_dir(&home))?;
        tokens.push(token.trim().to_owned());
    }
    let mut daemon = ProcessGuard(
        Command::new(opilio)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(&home)
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
    let url = url.trim().trim_end_matches('/');
    let _crawl = ProcessGuard(
        Command::new(opilio)
            .args(["crawl", "jobs/first/profile.toml", "--job", "jobs/first"])
            .args(["--paused", "--quiet"])
            .current_dir(&home)
            .spawn()?,
    );
    let mut roles = Command::new(&python);
    roles
        .arg(root().join("tests/judges/api/roles.py"))
        .args([url, "first", "jobs/.opilio/audit.jsonl"])
        .args(&tokens);
    status(roles.current_dir(&home))?;
    clients(
        &home,
        &python,
        &[url, &tokens[ROLES.len() - 1], JOBS[0], JOBS[1]],
    )?;
    let mut judge = Command::new(python.with_file_name("st"));
    judge
        .env(
            "SCHEMATHESIS_HOOKS",
            root().join("tests/judges/api/formats.py"),
        )
        .args(["run", &format!("{url}/api/v1/openapi.json")])
        .args([
            "--header",
            &format!("Authorization: Bearer {}", tokens[ROLES.len() - 1]),
        ])
        .args(["--exclude-path-regex", LEFT_OUT, "--checks", CHECKS])
        .args(["--phases", PHASES])
        .args([
            // A fixed seed, so that the requests are the same each time.
            "--generation-deterministic",
            "--max-examples",
            "10",
            "--request-timeout",
            "60",
            "--no-color",
        ]);
    status(judge.current_dir(&home))?;
    println!(
        "api: no request made the daemon fail, none that fits its description was refused, and every answer is as described"
    );
    Ok(())
}

/// Validates the description, generates clients in Python and TypeScript from it, and runs a test with each against the daemon.
fn clients(home: &Path, python: &Path, story: &[&str]) -> Result<()> {
    let description = root().join("docs/openapi.json");
    let stories = root().join("tests/judges/api");
    status(Command::new(python.with_file_name("openapi-spec-validator")).arg(&description))?;

    fs::write(home.join("client.json"), PYTHON_CLIENT)?;
    let mut generate = Command::new(python.with_file_name("openapi-python-client"));
    generate.arg("generate").arg("--path").arg(&description);
    generate.args(["--fail-on-warning", "--config", "client.json"]);
    status(generate.args(["--output-path", "client"]).current_dir(home))?;
    let mut script = Command::new(python);
    script.arg(stories.join("client.py")).args(story);
    status(script.env("PYTHONPATH", home.join("client")))?;

    let node = registries::node(&NODE_PACKAGES)?;
    let program = |name: &str| Command::new(node.join("node_modules/.bin").join(name));
    // Only the rules of the specification: missing descriptions of responses and repeated operation ids are errors.
    let mut lint = program("redocly");
    lint.args(["lint", "--extends", "spec"]).arg(&description);
    lint.env("REDOCLY_TELEMETRY", "off");
    status(lint.env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true"))?;
    let project = node.join("api");
    fs::create_dir_all(&project)?;
    fs::write(project.join("package.json"), r#"{"type": "module"}"#)?;
    fs::write(project.join("tsconfig.json"), TYPESCRIPT)?;
    fs::copy(stories.join("client.ts"), project.join("client.ts"))?;
    let mut generate = program("openapi-typescript");
    generate.arg(&description).arg("--output");
    status(generate.arg(project.join("opilio.ts")))?;
    status(program("tsc").arg("--project").arg(&project))?;
    status(
        Command::new("node")
            .arg(project.join("client.js"))
            .args(story),
    )
}
