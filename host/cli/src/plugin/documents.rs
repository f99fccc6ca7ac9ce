//! Documents for trying a plugin: a file, standard input, a URL, the responses of a WARC file, all files of a folder.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use clap::Args;
use jiff::Timestamp;
use opilio_archive::{HTTP_RESPONSE, ReadError, Reader};
use opilio_crawl::sample::SampleResponse;
use opilio_fetch::robots::Robots;
use opilio_fetch::{AddressPolicy, Exchange, Fetcher, FetcherConfig, HeadVerdict, Request};
use opilio_uri::Uri;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{count, note};

/// Bytes of a page that are fetched: the number that plugins see with the default profile.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// Largest record of a WARC file that is read. Longer ones are skipped with a note.
const RECORD_BYTES_MAX: usize = 256 << 20;
/// Base URI of files without a URI of their own.
const DEFAULT_BASE: &str = "http://example.com/";

/// Source of documents.
#[derive(Clone, Debug, Args)]
pub(super) struct MaterialArgs {
    /// URI of the document, for files without a URI of their own [default: http://example.com/FILE].
    #[arg(long, value_name = "URI")]
    uri: Option<String>,
    /// Content-Type header of the document [default: guessed from the file name].
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// HTTP status of the document.
    #[arg(long, value_name = "N", default_value_t = 200)]
    status: u16,
    /// Fetch from this machine and from private networks, too.
    #[arg(long)]
    pub(super) private: bool,
}

/// One document, and its time.
#[derive(Clone)]
pub(super) struct TimedSample {
    pub(super) sample: SampleResponse,
    pub(super) at: Timestamp,
    /// File and offset, if there are several.
    pub(super) place: Option<String>,
}

/// Counts of the documents that were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadSummary {
    /// Documents passed on.
    pub(super) documents: u64,
    /// Damaged records. Each has been reported.
    damaged: u64,
    /// `true` if nothing could be read after a damaged record.
    ended_early: bool,
}

impl ReadSummary {
    /// Adds the result of another reading.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            documents: self.documents + other.documents,
            damaged: self.damaged + other.damaged,
            ended_early: self.ended_early || other.ended_early,
        }
    }

    /// Returns `true` if everything was read.
    pub(super) fn is_whole(self) -> bool {
        self.damaged == 0
    }

    /// Returns the text for a total; empty if everything was read.
    pub(super) fn as_text(self) -> String {
        let records = count(self.damaged, "damaged record", "damaged records");
        match (self.damaged, self.ended_early) {
            (0, _) => String::new(),
            (_, true) => format!("; reading ended early: {records}"),
            (_, false) => format!("; {records} skipped"),
        }
    }

    /// Returns the result as JSON.
    pub(super) fn as_json(self) -> Value {
        json!({"damaged_records": self.damaged, "ended_early": self.ended_early})
    }
}

impl MaterialArgs {
    /// Sets the type of standard input, if none is given, to the first that the plugin handles, with a note.
    pub(super) fn with_type_of_input(&self, what: &str, media_types: &[String]) -> Self {
        let mut args = self.clone();
        let first = media_types.iter().find(|one| !one.contains('*'));
        if let ("-", None, Some(first)) = (what, &self.content_type, first) {
            note(&format!(
                "standard input is read as {first}, which the plugin handles; --content-type TYPE sets another type"
            ));
            args.content_type = Some(first.clone());
        }
        args
    }
}

/// Passes every document on, in the order found. Unreadable ones are reported and skipped.
pub(super) fn each(
    what: &str,
    args: &MaterialArgs,
    runtime: &Handle,
    take: &mut dyn FnMut(TimedSample) -> Result<()>,
) -> Result<ReadSummary> {
    let now = Timestamp::now();
    let mut reading = ReadSummary::default();
    let mut documents = 0;
    let mut take = |material| {
        documents += 1;
        take(material)
    };
    if what.starts_with("http://") || what.starts_with("https://") {
        let sample = runtime.block_on(fetch(what, args.private))?;
        let place = None;
        take(TimedSample {
            sample,
            at: now,
            place,
        })?;
    } else if what == "-" {
        let mut content = Vec::new();
        std::io::stdin()
            .read_to_end(&mut content)
            .context("cannot read standard input")?;
        let uri = address(args, None)?;
        take(of_content(uri, None, content, args, now))?;
    } else {
        let path = Path::new(what);
        let files = files(path)?;
        let many = path.is_dir();
        for file in &files {
            if is_warc(file)? {
                each_record(file, &mut take, &mut reading)?;
                continue;
            }
            let content =
                fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let inside = file.strip_prefix(path).ok().filter(|_| many);
            let name = inside.map(Path::to_owned).or_else(|| {
                let name = file.file_name()?;
                Some(PathBuf::from(name))
            });
            let uri = address(args, name.as_deref())?;
            let mut material = of_content(uri, Some(file), content, args, now);
            material.place = many.then(|| file.display().to_string());
            take(material)?;
        }
    }
    Ok(ReadSummary {
        documents,
        ..reading
    })
}

/// Returns the given URI, or one made from the name of the file.
fn address(args: &MaterialArgs, name: Option<&Path>) -> Result<Uri> {
    let base = args.uri.as_deref().unwrap_or(DEFAULT_BASE);
    let uri = Uri::parse(base).with_context(|| format!("invalid --uri {base}"))?;
    let several = name.is_some_and(|name| name.components().count() > 1);
    match name {
        Some(name) if args.uri.is_none() || several => {
            let name = name.to_string_lossy().replace('\\', "/");
            Ok(uri.join(&name).unwrap_or(uri))
        }
        _ => Ok(uri),
    }
}

fn of_content(
    uri: Uri,
    file: Option<&Path>,
    content: Vec<u8>,
    args: &MaterialArgs,
    at: Timestamp,
) -> TimedSample {
    let by_name = file.and_then(|file| mime_guess::from_path(file).first_raw());
    let content_type = args.content_type.as_deref().or(by_name);
    let content = Bytes::from(content);
    TimedSample {
        sample: SampleResponse::of_content(uri, args.status, content_type, content),
        at,
        place: None,
    }
}

/// Returns the file, or all files of a folder and its subfolders, by name.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_warc(file: &Path) -> Result<bool> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // A file that is being written has the extension `.open`.
    let name = name.strip_suffix(".open").unwrap_or(&name);
    let endings = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];
    if endings.iter().any(|ending| name.ends_with(ending)) {
        return Ok(true);
    }
    let mut head = [0; 9];
    let read = fs::File::open(file)
        .and_then(|mut file| file.read(&mut head))
        .with_context(|| format!("cannot read {}", file.display()))?;
    let head = &head[..read];
    Ok(head.starts_with(b"WARC/") || head == b"filedesc:")
}

/// Passes every response of a WARC or ARC file on.
fn each_record(
    file: &Path,
    take: &mut dyn FnMut(TimedSample) -> Result<()>,
    reading: &mut ReadSummary,
) -> Result<()> {
    let mut reader = Reader::open(file)?;
    loop {
        let mut record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            Err(problem @ ReadError::Damaged { .. }) => {
                match skip_damage(&mut reader, problem, reading)? {
                    true => continue,
                    false => return Ok(()),
                }
            }
            Err(problem) => return Err(problem.into()),
        };
        let headers = record.headers();
        let is_http = headers.first("content-type").is_some_and(|content_type| {
            content_type.starts_with(HTTP_RESPONSE) || content_type.starts_with("application/http")
        });
        if headers.kind() != "response" || !is_http {
            continue;
        }
        let place = format!("{}+{}", file.display(), record.offset());
        let at = headers.date().unwrap_or(Timestamp::UNIX_EPOCH);
        let target = headers.target_uri().unwrap_or_default().to_owned();
        let Ok(uri) = Uri::parse(&target) else {
            note(&format!(
                "{place}: skipped, because {target:?} is not a URI that can be crawled"
            ));
            continue;
        };
        if record.block_left() > RECORD_BYTES_MAX as u64 {
            let bytes = record.block_left();
            note(&format!(
                "{place}: skipped, because the record is too large ({bytes} bytes, at most {RECORD_BYTES_MAX})"
            ));
            continue;
        }
        let message = match record.block(RECORD_BYTES_MAX) {
            Ok(message) => message,
            Err(problem @ ReadError::Damaged { .. }) => {
                match skip_damage(&mut reader, problem, reading)? {
                    true => continue,
                    false => return Ok(()),
                }
            }
            Err(problem) => return Err(problem.into()),
        };
        match SampleResponse::of_message(uri, &message) {
            Some(sample) => take(TimedSample {
                sample,
                at,
                place: Some(place),
            })?,
            None => note(&format!(
                "{place}: skipped, because the record is not an HTTP response"
            )),
        }
    }
}

/// Reports damage and seeks the next record. Returns `true` if there is one.
fn skip_damage(reader: &mut Reader, problem: ReadError, reading: &mut ReadSummary) -> Result<bool> {
    note(&format!("{:#}", anyhow::Error::new(problem)));
    reading.damaged += 1;
    let has_more = reader.resync()?.is_some();
    reading.ended_early |= !has_more;
    Ok(has_more)
}

/// Makes one polite fetch: robots.txt comes first, redirects are not followed.
async fn fetch(url: &str, private: bool) -> Result<SampleResponse> {
    let uri = Uri::parse(url).with_context(|| format!("cannot fetch {url}"))?;
    let scratch = tempfile::tempdir().context("cannot create a temporary directory")?;
    let agent = format!("opilio/{} (plugin run)", env!("CARGO_PKG_VERSION"));
    let mut config = FetcherConfig::new(agent.as_str(), scratch.path());
    if private {
        config.addresses = AddressPolicy {
            metadata: false,
            ..AddressPolicy::ALL
        };
    }
    config.body_bytes_max = Some(BODY_BYTES_MAX);
    let fetcher = Fetcher::new(config)?;
    if let Some(robots_txt) = uri.robots_txt() {
        let exchange = exchange(&fetcher, &robots_txt).await?;
        if let (Some(failure), None) = (&exchange.failure, &exchange.head) {
            bail!("cannot fetch {robots_txt}: {failure}{}", advice(private));
        }
        let body = exchange.content(BODY_BYTES_MAX).content;
        let robots = Robots::from_response(exchange.status(), &body);
        ensure!(
            robots.verdict(&agent, uri.path_and_query()).is_allowed(),
            "{robots_txt} forbids {uri}; save the page with a browser and pass the file"
        );
    }
    let exchange = exchange(&fetcher, &uri).await?;
    if let Some(failure) = &exchange.failure {
        match &exchange.head {
            Some(_) => note(&format!("{uri}: {failure}")),
            None => bail!("cannot fetch {uri}: {failure}{}", advice(private)),
        }
    }
    let sample = SampleResponse::of_exchange(uri, exchange);
    sample.with_context(|| format!("no response from {url}"))
}

fn advice(private: bool) -> &'static str {
    match private {
        false => " (--private allows fetches from this machine and private networks)",
        true => "",
    }
}

async fn exchange(fetcher: &Fetcher, uri: &Uri) -> Result<Exchange> {
    let host = uri.host().unwrap_or_default();
    let resolution = fetcher
        .resolve(host, Timestamp::now())
        .await
        .with_context(|| format!("cannot resolve {host}"))?;
    let request = Request::new(uri.clone(), resolution.addresses);
    Ok(fetcher.http(request, async |_| HeadVerdict::Continue).await)
}
