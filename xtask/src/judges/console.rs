//! The web console in Chromium, with a daemon that crawls. Tests every page and every action: with the keyboard, on a phone screen,
//! in light and dark mode, with axe-core, with a thousand jobs, and while the daemon restarts. A package is handed over to S3
//! (moto), and two nodes share a crawl. Screenshots are written to `target/console`.

// No component of its own, because it would have to be compiled for this judge.
#[allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "what the stories need and the judge does not"
)]
#[path = "../../../tests/stories/src/guests.rs"]
mod guests;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use opilio_test_nats::NatsServer;
use opilio_test_web::{Gate, Reply, demo};

use super::replay::chromium;
use crate::command::status;
use crate::registries;
use crate::repository::root;

const PYTHON_PACKAGES: [&str; 2] = ["playwright==1.65.2", "moto[s3,server]==5.2.5"];

/// The accessibility checker.
const AXE: &str = "axe-core@4.14.1";

/// A server that delays its responses, in addition to the hosts of the demo web.
const HELD: &str = "held.harvest.localhost";

/// Sites of the shared crawl, one for each of its parts. `tests/judges/console/nodes.py` has the same list.
const SHARED: [&str; 3] = ["maps.localhost", "letters.localhost", "books.localhost"];

/// Number of pages to which the first page of such a site links.
const SHARED_PAGES: usize = 12;

/// Serves the demo web and runs the browser tests of the console.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) async fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let home = home.join("console");
    let screenshots = root().join("target/console");
    for folder in [&home, &screenshots] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
    }
    // Plugins whose pages show data. `tests/judges/console/plugin_pages.py` has the same list.
    fs::write(home.join("counter.wasm"), guests::counter())?;
    fs::write(
        home.join("broken.wasm"),
        guests::extractor(guests::Misdeed::Traps),
    )?;
    let nats = NatsServer::start()
        .context("nats-server is not in the path: CONTRIBUTING.md says how to install it")?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let axe = registries::node(&[AXE])?.join("node_modules/axe-core/axe.min.js");
    let mut web = demo::web();
    // A page that is requested once is delayed for ever.
    web.site(HELD).page(
        "/page.html",
        Reply::html("<p>At last.</p>").behind(&Gate::of(2)),
    );
    for host in SHARED {
        let links: String = (0..SHARED_PAGES)
            .map(|page| format!("<a href='/{page}.html'>{page}</a> "))
            .collect();
        let site = web.site(host);
        site.page("/", Reply::html(links));
        for page in 0..SHARED_PAGES {
            let text = format!("<p>Page {page} of {host}.");
            site.page(&format!("/{page}.html"), Reply::html(text));
        }
    }
    let web = web
        .serve()
        .await
        .context("cannot serve the demo web on 127.0.0.1")?;
    let seed = web.url(demo::WWW, "/");
    let mut judge = Command::new(python);
    judge
        .arg(root().join("tests/judges/console/judge.py"))
        .args([opilio, chromium()?, &axe, &home, &screenshots])
        .arg(seed)
        .arg(format!("127.0.0.1:{}", nats.port));
    tokio::task::spawn_blocking(move || status(&mut judge)).await??;
    println!(
        "console: every page and action works; screenshots are in {}",
        screenshots.display()
    );
    Ok(())
}
