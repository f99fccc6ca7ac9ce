//! The hand-over of a job's files to S3. A third-party server (moto) checks signatures, and third-party readers (boto3, warcio)
//! read the uploaded files. The script also configures wrong keys, stops the server, and kills crawls.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use opilio_test_web::{Gate, Reply, Site, Web};

use crate::command::status;
use crate::registries;
use crate::repository::root;

const PYTHON_PACKAGES: [&str; 2] = ["moto[s3,server,iam]==5.2.5", "warcio==1.8.1"];

const HOST: &str = "www.judge.localhost";

/// Pages that each crawl finds. There are enough that files are closed before and after each delayed page.
const PAGES: usize = 400;

/// Pages that are delayed until the script releases them, so that no crawl ends earlier, at any speed of the machine.
const HELD: [usize; 2] = [PAGES / 2, PAGES - 1];

/// Size of a large file: more than two parts of an upload.
const BIG_BYTES: usize = 20 << 20;

/// Serves a web, and runs the script that crawls it into S3.
pub(super) async fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let run = home.join("handover");
    if run.exists() {
        fs::remove_dir_all(&run)?;
    }
    fs::create_dir_all(&run)?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let mut web = Web::builder();
    let site = web.site(HOST);
    let links: String = (0..PAGES)
        .map(|page| format!("<a href='/{page}.html'>{page}</a> "))
        .collect();
    site.page("/", Reply::html(format!("{links}<img src='/big.bin'>")));
    for page in 0..PAGES {
        site.page(&format!("/{page}.html"), text(page));
    }
    hold_back(site);
    let big = noise(PAGES, BIG_BYTES);
    site.page("/big.bin", Reply::ok("application/octet-stream", big));
    let web = web.serve().await.context("cannot serve a web")?;
    let mut script = Command::new(python);
    script
        .arg(root().join("tests/judges/handover.py"))
        .args([opilio, &run])
        .arg(web.url(HOST, "/"))
        // The first page and the big file.
        .arg((PAGES + 2).to_string())
        .args(HELD.map(|page| page.to_string()));
    tokio::task::spawn_blocking(move || status(&mut script)).await?
}

fn text(page: usize) -> Reply {
    Reply::html(format!("<p>{}", noise(page, 6_000)))
}

/// After a request for `/hold`, these pages are served only after a request for `/open/NUMBER`.
fn hold_back(site: &mut Site) {
    let gates: Arc<Mutex<HashMap<usize, Gate>>> = Arc::default();
    let held = gates.clone();
    site.answer("/hold", move |_| {
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend(HELD.map(|page| (page, Gate::closed())));
        Reply::status(200)
    });
    for page in HELD {
        let held = gates.clone();
        site.answer(&format!("/{page}.html"), move |_| {
            let held = held.lock().unwrap_or_else(PoisonError::into_inner);
            match held.get(&page) {
                Some(gate) => text(page).behind(gate),
                None => text(page),
            }
        });
        let held = gates.clone();
        site.answer(&format!("/open/{page}"), move |_| {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(gate) = held.remove(&page) {
                gate.open();
            }
            Reply::status(200)
        });
    }
}

/// Text that hardly compresses.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u64;
    let letters = std::iter::from_fn(|| {
        // Knuth's MMIX random generator.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some(char::from(b'0' + ((state >> 57) as u8) % 64))
    });
    letters
        .take(length)
        .map(|it| if it == '<' || it == '&' { '-' } else { it })
        .collect()
}
