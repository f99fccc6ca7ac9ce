//! Precedence files: precedences that were made elsewhere, a URI and a number on each line.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opilio_uri::Uri;

use crate::check::{Part, quote};
use crate::fnv::fnv;

/// Most lines of a file. Each takes 16 bytes of memory.
const LINES_MAX: usize = 20_000_000;

/// Longest line in bytes: a URI of the longest kind, and a number.
const LINE_BYTES_MAX: u64 = 66 * 1024;

/// Most bad lines of one file that are reported.
const FAULTS_SHOWN_MAX: usize = 20;

/// Precedences by URI. It stores fingerprints of 64 bits: among twenty million URIs the chance that any two share one is one in a
/// hundred thousand.
#[derive(Debug, PartialEq, Eq)]
pub struct PrecedenceList {
    /// Entries, sorted by fingerprint.
    entries: Vec<(u64, u8)>,
    hash: u64,
}

/// The files that were read, by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    read: HashMap<PathBuf, Option<Arc<PrecedenceList>>>,
}

impl PrecedenceList {
    /// The precedence of exactly this normalised URI in the file; `None` if the file does not have the URI.
    pub fn precedence(&self, uri: &Uri) -> Option<u8> {
        let fingerprint = fingerprint(uri);
        let at = self
            .entries
            .binary_search_by_key(&fingerprint, |(fingerprint, _)| *fingerprint)
            .ok()?;
        Some(self.entries[at].1)
    }

    /// Number of URIs in the file.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if the file has no URIs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Files {
    /// Reads a file. `None` if the file has an error, which is then reported at the key.
    pub(crate) fn read(
        &mut self,
        part: &mut Part<'_, '_>,
        base: &Path,
        file: &str,
    ) -> Option<Arc<PrecedenceList>> {
        let path = base.join(file);
        if let Some(list) = self.read.get(&path) {
            return list.clone();
        }
        let list = match parse(&path) {
            Ok(list) => Some(Arc::new(list)),
            Err(problems) => {
                let shown = problems.join("; ");
                part.refuse(
                    "precedence-file",
                    format!("{}: {shown}", path.display()),
                    "a line has a URI, a blank and a number from 0 to 255",
                );
                None
            }
        };
        self.read.insert(path, list.clone());
        list
    }

    /// A number that changes with the content of any of the files.
    pub(crate) fn hash(&self) -> u64 {
        let mut paths: Vec<&PathBuf> = self.read.keys().collect();
        paths.sort();
        paths.iter().fold(0, |hash, path| {
            let list = self.read.get(*path).and_then(Option::as_ref);
            fnv(hash, &list.map_or(0, |list| list.hash).to_le_bytes())
        })
    }
}

fn parse(path: &Path) -> Result<PrecedenceList, Vec<String>> {
    let file = File::open(path).map_err(|problem| vec![format!("cannot be read: {problem}")])?;
    let mut reader = BufReader::new(file);
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    let mut hash = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(problem) => return Err(vec![format!("cannot be read: {problem}")]),
        }
        hash = fnv(hash, &line);
        match entry(&line) {
            Ok(None) => {}
            Ok(Some(_)) if entries.len() == LINES_MAX => {
                problems.push(format!("more than {LINES_MAX} lines"));
                break;
            }
            Ok(Some(entry)) => entries.push(entry),
            Err(problem) => problems.push(format!("line {number}: {problem}")),
        }
        if problems.len() == FAULTS_SHOWN_MAX || line.len() as u64 == LINE_BYTES_MAX {
            break;
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    // Of two lines for one URI the later counts.
    entries.reverse();
    entries.sort_by_key(|(fingerprint, _)| *fingerprint);
    entries.dedup_by_key(|(fingerprint, _)| *fingerprint);
    Ok(PrecedenceList { entries, hash })
}

/// Parses a line; `None` for an empty line or a comment.
fn entry(line: &[u8]) -> Result<Option<(u64, u8)>, String> {
    if line.len() as u64 == LINE_BYTES_MAX {
        return Err(format!("longer than {LINE_BYTES_MAX} bytes"));
    }
    let line = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (uri, number) = line
        .rsplit_once(char::is_whitespace)
        .ok_or_else(|| format!("no number after {}", quote(line)))?;
    let number = number
        .parse::<u8>()
        .map_err(|_| format!("not a number from 0 to 255: {}", quote(number)))?;
    let uri = Uri::parse(uri)
        .map_err(|problem| format!("not a URI: {}: {problem}", quote(uri.trim())))?;
    Ok(Some((fingerprint(&uri), number)))
}

fn fingerprint(uri: &Uri) -> u64 {
    // The hash is only in memory, so it may differ in the next version of the standard library.
    let mut hasher = DefaultHasher::new();
    uri.as_str().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<PrecedenceList, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ranks");
        std::fs::write(&path, text).unwrap();
        parse(&path)
    }

    #[test]
    fn a_line_is_a_uri_and_a_number() {
        let list =
            read(b"# ranks\nhttp://a.org/ 5\nHTTP://b.org\t7\r\n\nhttp://a.org/#x 6").unwrap();
        let precedence = |uri: &str| list.precedence(&Uri::parse(uri).unwrap());
        assert_eq!(list.len(), 2);
        assert_eq!(precedence("http://a.org/"), Some(6));
        assert_eq!(precedence("http://b.org/"), Some(7));
        assert_eq!(precedence("http://b.org/x"), None);
    }

    #[test]
    fn bad_lines_are_named() {
        let problems = read(b"http://a.org/\nhttp://a.org/ 256\nmailto:x 1\n\xff 1\n").unwrap_err();
        let expected = [
            "line 1: no number after \"http://a.org/\"",
            "line 2: not a number from 0 to 255: \"256\"",
            "line 3: not a URI: \"mailto:x\": ",
            "line 4: not UTF-8",
        ];
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.starts_with(expected), "{problem}");
        }
        assert_eq!(problems.len(), expected.len());
        assert_eq!(read(&b"x 1\n".repeat(100)).unwrap_err().len(), 20);
        assert_eq!(read(&vec![b'x'; 100_000]).unwrap_err().len(), 1);
    }

    #[test]
    fn the_hash_follows_the_contents() {
        let hash = |text: &[u8]| read(text).unwrap().hash;
        assert_eq!(hash(b"http://a.org/ 5"), hash(b"http://a.org/ 5"));
        assert_ne!(hash(b"http://a.org/ 5"), hash(b"http://a.org/ 6"));
    }
}
