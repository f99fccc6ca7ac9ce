//! Archives of a small web, judged by whoever reads archives: warcio, jwarc, cdxj-indexer, py-wacz, and pywb with
//! Chromium, in which every page must look as the live one did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use opilio_test_web::{Reply, Web, WebBuilder};

use super::{crawl, warcio_check};
use crate::command::{output, status};
use crate::registries;
use crate::repository::root;

/// Python packages of this judge. pywb brings warcio and cdxj-indexer in versions that suit it.
const PYTHON_PACKAGES: [&str; 6] = [
    "warcio==1.8.1",
    "cdxj-indexer==1.5.0",
    "wacz==0.6.0",
    "pywb==2.10.0",
    "playwright==1.65.2",
    // pywb asks for pkg_resources and does not say so.
    "setuptools<81",
];

/// The one of the Java world, and how its reader is fetched.
const JWARC: &str = "org.netpreserve:jwarc:0.31.1";
const JWARC_JAR: &str = "jwarc-0.31.1.jar";
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// The host of the web. `tests/judges/replay.py` knows what is on it.
const WWW: &str = "www.judge.localhost";

/// Where Chromium may be.
const CHROMIUM: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// How archives may be written, beside the default: a name, the settings, and whether other tools read them.
const VARIANTS: [(&str, &str, bool); 2] = [
    ("arc", "format = \"arc\"", true),
    ("zstd", "compression = \"zstd\"", false),
];

/// Crawls, and asks everybody.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) async fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let home = home.join("replay");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let jwarc = jwarc()?;
    let chromium = CHROMIUM
        .iter()
        .find(|path| Path::new(path).exists())
        .context("there is no Chromium; install the package chromium")?;

    let web = web().serve().await?;
    let origin = web.url(WWW, "");
    let job = home.join("job");
    let profile = home.join("profile.toml");
    fs::write(&profile, revisiting(&origin))?;
    crawl(opilio, &profile, &job).await?;
    for (name, settings, _) in VARIANTS {
        let profile = home.join(format!("{name}.toml"));
        fs::write(&profile, variant(&origin, settings))?;
        crawl(opilio, &profile, &home.join(name)).await?;
    }
    // What is replayed must come from the archive.
    drop(web);

    let warcs = job.join("warcs");
    status(Command::new(opilio).args(["warc", "check"]).arg(&job))?;
    let nothing = home.join("none.txt");
    fs::write(&nothing, "")?;
    status(
        Command::new(&python)
            .arg(root().join("tests/judges/judge_warcs.py"))
            .arg(&nothing)
            .arg(&warcs),
    )?;
    warcio_check(&python, &warcs)?;
    jwarc_check(&jwarc, &warcs)?;
    for (name, _, read_by_others) in VARIANTS {
        let directory = home.join(name).join("warcs");
        status(Command::new(opilio).args(["warc", "check"]).arg(&directory))?;
        if read_by_others {
            jwarc_check(&jwarc, &directory)?;
        }
    }
    let captures = cdxj(&python, opilio, &home, &warcs)?;
    package(&python, opilio, &home, &job)?;
    status(
        Command::new(&python)
            .arg(root().join("tests/judges/replay.py"))
            .arg(&warcs)
            .arg(&origin)
            .arg(chromium)
            .arg(&home),
    )?;
    println!(
        "replay: {captures} captures indexed alike; screenshots are in {}",
        home.display()
    );
    Ok(())
}

/// Our index, line by line, against that of cdxj-indexer; how many lines.
fn cdxj(python: &Path, opilio: &Path, home: &Path, warcs: &Path) -> Result<usize> {
    let ours = output(Command::new(opilio).args(["warc", "index"]).arg(warcs))?;
    let theirs = output(
        Command::new(python)
            .args(["-m", "cdxj_indexer.main", "--sort"])
            .args(archives(warcs)?),
    )?;
    let parsed = |text: &str| -> Result<Vec<(String, serde_json::Value)>> {
        text.lines()
            // Indexers of the Java world list look-ups under the host, as we do; this one under the URI.
            .filter(|line| !line.contains("\"dns:"))
            .map(|line| {
                let (key, fields) = line.split_once(" {").context("a line without fields")?;
                Ok((
                    key.to_owned(),
                    serde_json::from_str(&format!("{{{fields}"))?,
                ))
            })
            .collect()
    };
    let (mut ours_parsed, mut theirs_parsed) = (parsed(&ours)?, parsed(&theirs)?);
    let by_place = |(_, fields): &(String, serde_json::Value)| {
        (fields["filename"].to_string(), fields["offset"].to_string())
    };
    ours_parsed.sort_by_key(by_place);
    theirs_parsed.sort_by_key(by_place);
    if ours_parsed != theirs_parsed {
        fs::write(home.join("ours.cdxj"), &ours)?;
        fs::write(home.join("theirs.cdxj"), &theirs)?;
        bail!(
            "cdxj-indexer indexes otherwise: compare ours.cdxj and theirs.cdxj in {}",
            home.display()
        );
    }
    ensure!(
        ours_parsed.len() > 10,
        "an index of {} captures proves little",
        ours_parsed.len()
    );
    Ok(ours_parsed.len())
}

/// A package, and what py-wacz says of it.
fn package(python: &Path, opilio: &Path, home: &Path, job: &Path) -> Result<()> {
    let wacz = home.join("judged.wacz");
    status(
        Command::new(opilio)
            .arg("package")
            .arg(job)
            .arg("-o")
            .arg(&wacz)
            .args(["--title", "The judged", "--logs"]),
    )?;
    status(
        Command::new(python)
            .args(["-m", "wacz.main", "validate", "-f"])
            .arg(&wacz),
    )
}

/// Every record of every file, digests included.
fn jwarc_check(jwarc: &Path, directory: &Path) -> Result<()> {
    status(
        Command::new("java")
            .arg("-jar")
            .arg(jwarc)
            .arg("validate")
            .args(archives(directory)?),
    )
}

/// The files of a directory that are archives; indexes stand beside them.
fn archives(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.to_string_lossy().into_owned();
        if [".warc.gz", ".warc", ".arc.gz", ".arc"]
            .iter()
            .any(|ending| name.ends_with(ending))
        {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "no archive in {}", directory.display());
    Ok(files)
}

fn jwarc() -> Result<PathBuf> {
    let folder = root().join("target/judges/java");
    let jar = folder.join(JWARC_JAR);
    if !jar.exists() {
        fs::create_dir_all(&folder)?;
        status(
            Command::new("mvn")
                .args(["--quiet", "--batch-mode", MAVEN_COPY])
                .arg(format!("-Dartifact={JWARC}"))
                .arg(format!("-DoutputDirectory={}", folder.display())),
        )?;
    }
    Ok(jar)
}

/// Visits again and again, for a while.
fn revisiting(origin: &str) -> String {
    format!(
        r#"name = "judged"
strategy = "revisit"
seeds = ["{origin}/"]
{POLITENESS}
[plugins.adaptive]
component = "builtin:adaptive"
settings = {{ initial-wait = "1s", min-wait = "1s", max-wait = "1m", default-wait = "1s" }}

[revisit]
default-wait = "1s"
min-wait = "1s"
max-wait = "1m"

[archive.duplicates]
across-uris = true
size-min = "1B"

[limits]
time = "12s"
"#
    )
}

/// Visits once.
fn variant(origin: &str, settings: &str) -> String {
    format!(
        r#"name = "variant"
strategy = "snapshot"
seeds = ["{origin}/"]
{POLITENESS}
[archive]
{settings}
"#
    )
}

/// None to speak of, on loopback; and bodies that go through the disk.
const POLITENESS: &str = r#"
[politeness]
delay-factor = 0.0
min-delay = "0s"
max-delay = "0s"

[fetch]
allow-addresses = ["loopback"]
spool-memory = "64KiB"
body-max = "2MiB"

[dns]
hosts = { "*.localhost" = "127.0.0.1" }
"#;

/// One of everything that may be replayed wrongly.
fn web() -> WebBuilder {
    let mut web = Web::builder();
    let site = web.site(WWW);
    site.page(
        "/",
        page(
            "The judged",
            r#"<link rel="stylesheet" href="/style.css"><h1>The judged</h1><p>A page.</p>
<img id="picture" src="/picture.png" alt=""><div id="scripted"></div><script src="/app.js"></script>
<a href="/moved">1</a> <a href="/zipped.html">2</a> <a href="/brotli.html">3</a> <a href="/chunked.html">4</a>
<a href="/caf%C3%A9.html">5</a> <a href="/original.html">6</a> <a href="/copy.html">7</a> <a href="/same.html">8</a>
<a href="/still.html">9</a> <a href="/missing.html">10</a> <a href="/large.bin">11</a> <a href="/cut.bin">12</a>"#,
        ),
    );
    site.page("/picture.png", Reply::ok("image/png", PICTURE));
    site.page(
        "/style.css",
        Reply::ok(
            "text/css",
            "@import \"more.css\";\nh1 { color: rgb(1, 2, 3) }\n",
        ),
    );
    site.page(
        "/more.css",
        Reply::ok("text/css", "p { color: rgb(4, 5, 6) }\n"),
    );
    site.page(
        "/app.js",
        Reply::ok(
            "text/javascript",
            "document.querySelector('#scripted').textContent = 'written by a script';\n",
        ),
    );
    site.page("/moved", Reply::redirect(302, "/moved-here.html"));
    site.page("/moved-here.html", page("Moved", "<p>At last.</p>"));
    site.page(
        "/zipped.html",
        Reply::ok("text/html", ZIPPED).with("content-encoding", "gzip"),
    );
    site.page(
        "/brotli.html",
        Reply::ok("text/html", BROTLI).with("content-encoding", "br"),
    );
    site.page(
        "/chunked.html",
        page("Chunked", &"<p>Bit by bit.</p>\n".repeat(40)).chunked(97),
    );
    site.page("/caf%C3%A9.html", page("Café", "<p>Ein Stück Käse.</p>"));
    for path in ["/original.html", "/copy.html"] {
        site.page(path, page("Two", "<p>There are two of me.</p>"));
    }
    site.page("/same.html", page("Same", "<p>Never anything new.</p>"));
    site.answer("/still.html", |seen| {
        match seen.headers.get("if-none-match") {
            Some(_) => Reply {
                status: 304,
                ..Reply::ok("text/html", "").with("etag", "\"still\"")
            },
            None => page("Still", "<p>Not modified.</p>").with("etag", "\"still\""),
        }
    });
    site.page(
        "/large.bin",
        Reply::ok("application/octet-stream", vec![7; 1_000_000]),
    );
    site.page(
        "/cut.bin",
        Reply::ok("application/octet-stream", vec![8; 5_000_000]),
    );
    web
}

fn page(title: &str, body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>{body}</body></html>\n"
    ))
}

/// A page, packed with gzip.
const ZIPPED: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x25, 0x8d, 0x31, 0x0e, 0x80, 0x20,
    0x10, 0x04, 0x7b, 0x5f, 0x71, 0xd2, 0x2b, 0xad, 0xc5, 0x71, 0xad, 0xa5, 0x6f, 0x40, 0x39, 0x85,
    0x04, 0x85, 0xe8, 0x59, 0xe8, 0xeb, 0xc5, 0x50, 0xed, 0x24, 0x33, 0xc9, 0x62, 0xeb, 0xd2, 0x22,
    0x4f, 0x66, 0xf0, 0xb2, 0x47, 0x6a, 0xf0, 0x1f, 0x88, 0xf6, 0xd8, 0x8c, 0xe2, 0x43, 0x11, 0x7a,
    0xb6, 0x8e, 0x70, 0x67, 0xb1, 0xb0, 0x78, 0x7b, 0x5e, 0x2c, 0x46, 0xdd, 0xb2, 0x76, 0x43, 0x71,
    0x12, 0x24, 0x32, 0x8d, 0x6f, 0xc8, 0xa8, 0x2b, 0xa3, 0xae, 0xfd, 0x9c, 0xdc, 0x43, 0x98, 0x69,
    0xba, 0x05, 0xd2, 0x0a, 0x5b, 0x49, 0x7a, 0xd4, 0xb9, 0xf8, 0x6a, 0x74, 0x7d, 0xfb, 0x00, 0x74,
    0x5a, 0x28, 0xa8, 0x7e, 0x00, 0x00, 0x00,
];

/// A page, packed with brotli.
const BROTLI: &[u8] = &[
    0x1b, 0x81, 0x00, 0x00, 0x2c, 0x0e, 0xec, 0x98, 0x0e, 0x38, 0x52, 0x2c, 0xcd, 0x35, 0xba, 0xde,
    0x94, 0x2f, 0x62, 0x70, 0x5d, 0xe6, 0xf6, 0x26, 0xa7, 0x7d, 0x44, 0xd2, 0xd8, 0x26, 0x8f, 0x82,
    0x50, 0xba, 0xf0, 0xd0, 0x39, 0xe5, 0xc0, 0xbd, 0x96, 0x60, 0x62, 0x51, 0x97, 0x9f, 0xf4, 0x9e,
    0xc3, 0xe3, 0x74, 0x28, 0x21, 0xed, 0x5e, 0x23, 0x27, 0x37, 0x63, 0x2e, 0x66, 0x0c, 0x15, 0xaf,
    0xf8, 0xfe, 0x82, 0xad, 0x81, 0xd9, 0x07, 0x29, 0x26, 0x7c, 0xb0, 0x25, 0x10,
];

/// A picture of three by two pixels.
const PICTURE: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0xb8, 0x1f, 0x39,
    0xc6, 0x00, 0x00, 0x00, 0x0e, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x64, 0x62, 0x66,
    0x00, 0x62, 0x00, 0x00, 0x34, 0x00, 0x0d, 0x73, 0x23, 0x87, 0xf0, 0x00, 0x00, 0x00, 0x00, 0x49,
    0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
