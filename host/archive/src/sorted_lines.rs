//! Sorts and merges lines of text, even if they do not fit into memory, and searches sorted lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::cdxj::LINE_BYTES_MAX;

/// Maximum bytes of lines that are sorted in memory. Further lines are sorted with temporary files.
const SORTED_BYTES_MAX: usize = 256 << 20;

/// Maximum sources that are merged at once; each may be an open file. More sources are merged in steps, with temporary files.
const SOURCES_MAX: usize = 256;

/// Lines in order, without line ends.
pub(crate) type Lines = Box<dyn Iterator<Item = io::Result<String>>>;

/// Lines in order that are opened when they are needed.
pub(crate) type Source = Box<dyn FnOnce() -> io::Result<Lines>>;

/// Sorts lines.
pub(crate) struct Sorter {
    /// Folder of the temporary files.
    folder: PathBuf,
    lines: Vec<String>,
    bytes: usize,
    runs: Vec<File>,
}

impl Sorter {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            lines: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
        }
    }

    /// The folder of the temporary files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn add(&mut self, line: String) -> io::Result<()> {
        self.bytes += line.len();
        self.lines.push(line);
        match self.bytes > SORTED_BYTES_MAX {
            true => self.end_run(),
            false => Ok(()),
        }
    }

    /// Moves the lines in memory, sorted, to a temporary file.
    fn end_run(&mut self) -> io::Result<()> {
        self.lines.sort_unstable();
        let lines = self.lines.drain(..);
        let run = temporary(&self.folder, |run| {
            lines.into_iter().try_for_each(|it| writeln!(run, "{it}"))
        })?;
        self.runs.push(run);
        self.bytes = 0;
        Ok(())
    }

    /// The lines as sources to merge.
    pub(crate) fn sources(mut self) -> impl Iterator<Item = Source> {
        self.lines.sort_unstable();
        let lines = self.lines.into_iter().map(Ok);
        let in_memory: Source = Box::new(|| Ok(Box::new(lines) as Lines));
        self.runs.into_iter().map(source).chain([in_memory])
    }
}

/// Passes all lines of the sources to `take` in order, without duplicates. Temporary files are in `folder`.
pub(crate) fn merge(
    mut sources: Vec<Source>,
    folder: &Path,
    take: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    while sources.len() > SOURCES_MAX {
        let mut left = sources.into_iter();
        let mut runs = Vec::new();
        while left.len() > 0 {
            let batch = left.by_ref().take(SOURCES_MAX).collect();
            let run = temporary(folder, |run| {
                merge_at_once(batch, |line| writeln!(run, "{line}"))
            })?;
            runs.push(source(run));
        }
        sources = runs;
    }
    merge_at_once(sources, take)
}

fn merge_at_once(
    sources: Vec<Source>,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    let sources: io::Result<Vec<Lines>> = sources.into_iter().map(|open| open()).collect();
    let mut sources = sources?;
    let mut next = BinaryHeap::new();
    for (index, source) in sources.iter_mut().enumerate() {
        if let Some(line) = source.next() {
            next.push(Reverse((line?, index)));
        }
    }
    let mut last: Option<String> = None;
    while let Some(Reverse((line, index))) = next.pop() {
        if let Some(line) = sources[index].next() {
            next.push(Reverse((line?, index)));
        }
        if last.as_ref() != Some(&line) {
            take(&line)?;
        }
        last = Some(line);
    }
    Ok(())
}

/// Writes a temporary file, and returns it at its beginning.
fn temporary(
    folder: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let mut file = BufWriter::new(tempfile::tempfile_in(folder)?);
    write(&mut file)?;
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn source(run: File) -> Source {
    Box::new(|| Ok(Box::new(BufReader::new(run).lines()) as Lines))
}

/// The offset of the first line of a sorted file that is not smaller than the key.
pub(crate) fn bisect(index: &mut BufReader<File>, length: u64, key: &[u8]) -> io::Result<u64> {
    // Lines that begin before `low` are smaller than the key. Lines that begin at `high` or later are not.
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut start = middle;
        if middle > 0 {
            index.seek(SeekFrom::Start(middle - 1))?;
            start = middle - 1 + line(index)?.len() as u64;
        } else {
            index.seek(SeekFrom::Start(0))?;
        }
        if start >= high {
            high = middle;
            continue;
        }
        let line = line(index)?;
        if line.as_slice() < key {
            low = start + line.len() as u64;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Reads the next line, with its end.
pub(crate) fn line(index: &mut BufReader<File>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    index.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sources: Vec<Source>, expected: &[&str]) {
        let mut lines = Vec::new();
        let take = |line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        merge(sources, &std::env::temp_dir(), take).unwrap();
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_that_do_not_fit_into_memory_are_sorted() {
        let mut sorter = Sorter::new(&std::env::temp_dir());
        for (index, line) in ["d", "b", "a", "c", "b"].into_iter().enumerate() {
            sorter.add(line.to_owned()).unwrap();
            if index % 2 == 1 {
                sorter.end_run().unwrap();
            }
        }
        check(sorter.sources().collect(), &["a", "b", "c", "d"]);
    }

    #[test]
    fn more_sources_than_open_files_are_merged() {
        let expected: Vec<String> = (0..3 * SOURCES_MAX).map(|at| format!("{at:04}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let sources = expected.iter().rev().map(|line| {
            let line = (*line).to_owned();
            Box::new(|| Ok(Box::new([Ok(line)].into_iter()) as Lines)) as Source
        });
        check(sources.collect(), &expected);
    }
}
