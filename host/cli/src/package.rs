//! `opilio package`: archives, their index and a list of pages in one WACZ file.

mod title;

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use opilio_archive::wacz::{About, Contents, Page, pack};
use opilio_archive::{Fields, ReadError, Reader, StoredRecord, WARC_FIELDS};
use opilio_crawl::is_job;

use crate::warc::{archives, note, places, row::Row};
use crate::{exit, terminal};

/// Longest metadata block that is searched for the role of a capture in the crawl.
const METADATA_BYTES_MAX: usize = 16 << 20;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The package leaves out files that end in .open, because a crawl is writing them; stop the crawl to include them. Pages are
HTML documents with status 200, seeds and the targets of their redirects first. The output file gets its name when it is
complete.")]
pub(crate) struct PackageArgs {
    /// Jobs, archives (.warc, .warc.gz), or directories of archives.
    #[arg(required = true, value_name = "JOB|WARC|DIR")]
    what: Vec<PathBuf>,
    /// WACZ file to write.
    #[arg(long, short, value_name = "FILE.wacz")]
    output: PathBuf,
    /// Title of the package.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Description of the package.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Include the crawl.log of a job. It lists every URI that the crawl requested, failures included.
    #[arg(long)]
    logs: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &PackageArgs) -> Result<u8> {
    let mut files = archives(&args.what)?;
    let open = |file: &Path| file.extension().is_some_and(|ending| ending == "open");
    for file in files.iter().filter(|file| open(file)) {
        note(&format!(
            "left out {}, which a crawl is writing",
            file.display()
        ));
    }
    files.retain(|file| !open(file));
    ensure!(!files.is_empty(), "no archives to pack");
    let logs = match args.logs {
        true => logs(&args.what)?,
        false => Vec::new(),
    };
    let pages = pages(&files)?;
    let (found, seeds) = (pages.len(), pages.iter().filter(|page| page.seed).count());
    let contents = Contents {
        archives: files,
        pages,
        logs,
        about: About {
            title: args.title.clone(),
            description: args.description.clone(),
            created: Timestamp::now(),
            software: format!("opilio {}", env!("CARGO_PKG_VERSION")),
        },
    };
    let packed = pack(&args.output, &contents)?;
    let path = args.output.display();
    let line = match args.json {
        true => serde_json::json!({
            "file": path.to_string(),
            "bytes": packed.bytes,
            "archives": packed.archives,
            "captures": packed.captures,
            "pages": found,
            "seeds": seeds,
        })
        .to_string(),
        false => format!(
            "{path}: {} archives, {} captures, {found} pages, {seeds} of them seeds, {} bytes",
            packed.archives, packed.captures, packed.bytes
        ),
    };
    writeln!(std::io::stdout(), "{}", terminal::line(&line))?;
    Ok(exit::OK)
}

/// Returns the logs of the jobs among the arguments.
fn logs(what: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let jobs: Vec<&PathBuf> = what.iter().filter(|path| is_job(path)).collect();
    let [job] = jobs.as_slice() else {
        bail!("--logs needs exactly one job, got {}", jobs.len());
    };
    let log = places(job)?.logs.join("crawl.log");
    ensure!(log.is_file(), "{} not found", log.display());
    Ok(vec![log])
}

/// Returns the pages of archives, each with its capture, and which of them are seeds.
fn pages(files: &[PathBuf]) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    let mut seeds = HashSet::new();
    for file in files {
        let mut reader = Reader::open(file)?;
        while let Some(mut record) = reader.next_record().map_err(|e| unreadable(file, e))? {
            match record.headers().kind() {
                "response" => pages.extend(page(&mut record)?),
                "metadata" => {
                    let about = record.headers().first("WARC-Concurrent-To");
                    if let Some(about) = about.map(id_of)
                        && is_seed(&mut record)?
                    {
                        seeds.insert(about);
                    }
                }
                _ => {}
            }
            record.finish().map_err(|e| unreadable(file, e))?;
        }
    }
    for page in &mut pages {
        page.seed = seeds.contains(&page.id);
    }
    Ok(pages)
}

fn unreadable(file: &Path, problem: ReadError) -> anyhow::Error {
    anyhow::Error::new(problem).context(format!(
        "cannot pack {}; `opilio warc check` lists its errors",
        file.display()
    ))
}

/// Returns the page of a response; none if the response is not a page.
fn page(record: &mut StoredRecord<'_>) -> Result<Option<Page>> {
    let (row, start) = Row::with_start(record)?;
    let is_html = matches!(
        row.media_type.as_deref(),
        Some("text/html" | "application/xhtml+xml")
    );
    if row.status != Some(200) || !is_html {
        return Ok(None);
    }
    let headers = row.headers;
    let id = headers.first("WARC-Record-ID").map(id_of);
    let url = headers.target_uri().map(str::to_owned);
    let (Some(id), Some(url), Some(date)) = (id, url, headers.date()) else {
        return Ok(None);
    };
    Ok(Some(Page {
        id,
        url,
        ts: format!("{date:.3}"),
        title: title::of(record, &start, row.content_type.as_deref())
            .context("cannot read a page")?,
        seed: false,
    }))
}

/// Whether a metadata record describes a seed, or a URI that redirects led to from a seed.
fn is_seed(record: &mut StoredRecord<'_>) -> Result<bool> {
    if record.headers().first("Content-Type") != Some(WARC_FIELDS) {
        return Ok(false);
    }
    let fields = Fields::parse(&record.block(METADATA_BYTES_MAX)?);
    let is_seed = fields.iter().any(|(name, value)| match name {
        "seed" => true,
        "hopsFromSeed" => !value.is_empty() && value.chars().all(|hop| hop == 'R'),
        _ => false,
    });
    Ok(is_seed)
}

/// Converts a record id to the id of a page: without brackets and scheme.
fn id_of(id: &str) -> String {
    let bare = id.trim_matches(['<', '>']);
    bare.strip_prefix("urn:uuid:").unwrap_or(bare).to_owned()
}
