//! Seeds: the URIs and SURT prefixes with which a crawl begins. They are in the profile, in a separate file, or on the command
//! line.
//!
//! There is one on each line. `#` begins a comment, and `+` a SURT prefix that widens the scope without being fetched. A seed
//! without a scheme is read as `http://`.

use std::path::Path;

use opilio_uri::{Uri, implied_surt_prefix, surt_prefix_from_line};

use crate::check::{Part, quote};
use crate::diagnostic::{Diagnostic, Diagnostics, Level, TextPosition};
use crate::document::{Document, KeyOrValue};

/// Most errors of one seeds file that are reported one by one. A file of a million lines may be of the wrong kind.
const SEED_FAULTS_MAX: usize = 50;

/// Largest seeds file: some millions of seeds. A larger file is not a seeds file.
const SEEDS_BYTES_MAX: u64 = 1 << 30;

/// The file name in errors of seeds that were given outside of the profile, on the command line or over the API.
pub(crate) const GIVEN: &str = "seeds";

/// Example of a `+` line.
const SURT_EXAMPLE: &str = "write \"+http://(org,example,\" or \"+https://example.org/path/\"";

/// Seeds of a crawl.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seeds {
    /// Seeds to fetch first, in the order written, each URI once.
    pub list: Vec<Seed>,
    /// SURT prefixes that widen the scope without being fetched (`+`), each once.
    pub surt_prefixes: Vec<String>,
}

/// A URI that is fetched first.
#[derive(Debug, Clone, PartialEq)]
pub struct Seed {
    /// The URI.
    pub uri: Uri,
    /// The SURT prefix that it implies (glossary). It depends on the written form: `http://example.org` means the domain with all
    /// hosts below it, `http://example.org/` only that host.
    pub surt_prefix: String,
}

/// The content of one line.
pub(crate) enum Line {
    Nothing,
    Seed(Seed),
    SurtPrefix(String),
}

impl Seeds {
    /// Returns `true` if there are no URIs to fetch.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The SURT prefixes that seeds imply, and those written out. The filter `surt-scope` begins with them.
    pub fn scope(&self) -> Vec<String> {
        let implied = self.list.iter().map(|seed| &seed.surt_prefix);
        let mut prefixes: Vec<String> = implied.chain(&self.surt_prefixes).cloned().collect();
        prefixes.sort();
        prefixes.dedup();
        prefixes
    }

    /// Reads a list of seeds, one a line. `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> (Self, Diagnostics) {
        let mut seeds = Self::default();
        let mut faults = Diagnostics::default();
        let mut more = 0usize;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let trimmed = line.trim();
            let begin = start + (line.len() - line.trim_start().len());
            start += line.len();
            match read(trimmed) {
                Ok(read) => seeds.add(read),
                Err(_) if faults.len() >= SEED_FAULTS_MAX => more += 1,
                Err((problem, suggestion)) => faults.push(Diagnostic {
                    file: file.to_owned(),
                    place: Some(TextPosition::of(text, begin..begin + trimmed.len())),
                    pointer: String::new(),
                    level: Level::Error,
                    problem,
                    suggestion: Some(suggestion),
                }),
            }
        }
        if more > 0 {
            let problem = format!("{more} more lines are not seeds either");
            faults.push(Diagnostic {
                file: file.to_owned(),
                place: None,
                pointer: String::new(),
                level: Level::Error,
                problem,
                suggestion: None,
            });
        }
        seeds.dedup();
        (seeds, faults)
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Nothing => {}
            Line::Seed(seed) => self.list.push(seed),
            Line::SurtPrefix(prefix) => self.surt_prefixes.push(prefix),
        }
    }

    fn append(&mut self, mut others: Self) {
        self.list.append(&mut others.list);
        self.surt_prefixes.append(&mut others.surt_prefixes);
    }

    fn dedup(&mut self) {
        let mut seen = std::collections::HashSet::new();
        self.list
            .retain(|seed| seen.insert(seed.uri.as_str().to_owned()));
        let mut seen = std::collections::HashSet::new();
        self.surt_prefixes
            .retain(|prefix| seen.insert(prefix.clone()));
    }
}

/// Reads all seeds: of the profile, of its seeds file, of the command line.
pub(crate) fn check(
    mut part: Part<'_, '_>,
    written: &[String],
    file: Option<&str>,
    base: &Path,
    given: &[String],
) -> (Seeds, Diagnostics) {
    let mut seeds = Seeds::default();
    let mut faults = Diagnostics::default();
    let mut list = part.part("seeds");
    for (index, text) in written.iter().enumerate() {
        match read(text.trim()) {
            Ok(Line::Nothing) => {
                list.refuse(
                    &index.to_string(),
                    format!("not a seed: {}", quote(text)),
                    "write an http or https URL",
                );
            }
            Ok(_) if has_password(text) => list.refuse(
                &index.to_string(),
                "a password would be archived with the profile".to_owned(),
                "leave it out, and write a table under [credentials]",
            ),
            Ok(line) => seeds.add(line),
            Err((problem, suggestion)) => list.refuse(&index.to_string(), problem, &suggestion),
        }
    }
    if let Some(file) = file {
        let path = base.join(file);
        match read_file(&path) {
            Ok(text) => {
                let (more, others) = Seeds::parse(&path.display().to_string(), &text);
                seeds.append(more);
                faults.append(others);
            }
            Err(problem) => {
                let problem = format!(
                    "seeds file {} {problem}",
                    quote(&path.display().to_string())
                );
                part.refuse("seeds-file", problem, "the path is relative to the profile");
            }
        }
    }
    let (more, others) = Seeds::parse(GIVEN, &given.join("\n"));
    seeds.append(more);
    faults.append(others);
    seeds.dedup();
    (seeds, faults)
}

/// An error for a profile without seeds.
pub(crate) fn none_given(document: &Document) -> Diagnostic {
    let pointer = if document.has("/seeds") {
        "/seeds"
    } else {
        "/seeds-file"
    };
    let mut fault = document.fault(
        pointer,
        KeyOrValue::Key,
        Level::Error,
        "there are no seeds".to_owned(),
    );
    fault.suggestion = Some(
        "write seeds = [\"https://www.example.org/\"], seeds-file = \"seeds.txt\", or pass --seed URL"
            .to_owned(),
    );
    fault
}

pub(crate) fn read(line: &str) -> Result<Line, (String, String)> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(Line::Nothing);
    }
    let right = "write an http or https URL, such as \"https://www.example.org/\"".to_owned();
    if line.starts_with('+') {
        let prefix = surt_prefix_from_line(line).map_err(|problem| {
            (
                format!("not a SURT prefix: {}: {problem}", quote(line)),
                SURT_EXAMPLE.to_owned(),
            )
        })?;
        return Ok(prefix.map_or(Line::Nothing, Line::SurtPrefix));
    }
    // A comment after a URL; a fragment has no blank before it.
    let text = line
        .split_once(" #")
        .map_or(line, |(text, _)| text)
        .trim_end();
    let fault = |problem| {
        (
            format!("not a seed: {}: {problem}", quote(text)),
            right.clone(),
        )
    };
    let uri = Uri::parse_seed(text).map_err(fault)?;
    if uri.scheme() == "dns" {
        let problem = format!("a look-up is not a seed: {}", quote(text));
        return Err((problem, "write the URL of a page on that host".to_owned()));
    }
    let is_word = |host: &str| !host.contains(['.', ':']) && host != "localhost";
    if Uri::parse(text).is_err() && uri.host().is_some_and(is_word) {
        return Err((
            format!("not a seed: {}: its host has no dot", quote(text)),
            format!(
                "if it is a host of your network, write {}",
                quote(uri.as_str())
            ),
        ));
    }
    let surt_prefix = implied_surt_prefix(text).map_err(fault)?;
    let uri = uri.without_userinfo();
    Ok(Line::Seed(Seed { uri, surt_prefix }))
}

/// Returns `true` if a seed has user name and password, which are removed from it.
fn has_password(text: &str) -> bool {
    let uri = Uri::parse_seed(text.trim());
    uri.is_ok_and(|uri| uri.userinfo().is_some_and(|it| it.contains(':')))
}

fn read_file(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path)
        .map_err(|problem| format!("cannot be read: {problem}"))?
        .len();
    if length > SEEDS_BYTES_MAX {
        return Err(format!("is larger than 1GiB: {length} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|problem| format!("cannot be read: {problem}"))?;
    // Byte order marks come from editors on other systems.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    String::from_utf8(bytes.to_vec()).map_err(|problem| format!("is not UTF-8: {problem}"))
}
