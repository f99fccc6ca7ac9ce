//! One index (CDXJ) of many archive files, merged from the indexes beside them.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::catalogue::of;
use crate::cdxj::{CdxjEntry, index_path, open_index_path};
use crate::name::final_path;
use crate::sorted_lines::{Lines, Sorter, Source, line, merge};

/// The indexes of archive files, which are read as one index.
pub struct MergedIndex {
    indexes: Vec<PathBuf>,
    /// Captures that are in none of these indexes.
    more: Sorter,
}

impl MergedIndex {
    /// Returns an index without captures. Merging many indexes needs temporary files, which are in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            indexes: Vec::new(),
            more: Sorter::new(folder),
        }
    }

    /// Adds the index beside an archive file, which may be finished or being written. Returns `false` if there is no index. The
    /// archive file itself need not exist.
    pub fn add_index_of(&mut self, archive: &Path) -> bool {
        let candidates = match final_path(archive) {
            // The file may have been finished after the directory was read.
            Some(finished) => vec![open_index_path(&finished), index_path(&finished)],
            None => vec![index_path(archive)],
        };
        let found = candidates.into_iter().find(|index| index.is_file());
        self.indexes.extend(found.clone());
        found.is_some()
    }

    /// Adds entries in any order.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn add(&mut self, entries: impl IntoIterator<Item = CdxjEntry>) -> io::Result<()> {
        let mut lines = entries.into_iter().map(|entry| entry.to_string());
        lines.try_for_each(|line| self.more.add(line))
    }

    /// Passes all lines to `take` in order, without duplicates. Many indexes are merged through temporary files.
    ///
    /// # Errors
    /// An index cannot be read or is not sorted, a temporary file cannot be written, or `take` fails.
    pub fn each_line(self, take: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let indexes = self.indexes.into_iter();
        let indexes = indexes.map(|index| Box::new(move || lines(&index)) as Source);
        let folder = self.more.folder().to_owned();
        merge(indexes.chain(self.more.sources()).collect(), &folder, take)
    }
}

/// The lines of an index in order.
fn lines(index: &Path) -> io::Result<Lines> {
    let is_open = index.extension().is_some_and(|it| it == "open");
    let file = match File::open(index) {
        // The file was finished meanwhile.
        Err(missing) if missing.kind() == io::ErrorKind::NotFound && is_open => {
            return lines(&index.with_extension(""));
        }
        file => file.map_err(|problem| of(index, problem))?,
    };
    let (name, mut source) = (index.to_owned(), BufReader::new(file));
    let lines = std::iter::from_fn(move || {
        let next = next(&mut source, is_open).map_err(|problem| of(&name, problem));
        next.transpose()
    });
    if is_open {
        // Its lines are in the order of writing.
        let mut lines = lines.collect::<io::Result<Vec<String>>>()?;
        lines.sort_unstable();
        return Ok(Box::new(lines.into_iter().map(Ok)));
    }
    let (name, mut last) = (index.to_owned(), String::new());
    Ok(Box::new(lines.map(move |line| {
        let line = line?;
        if line < last {
            let unsorted = "not sorted; `opilio warc index --beside` writes it anew";
            return Err(of(
                &name,
                io::Error::new(io::ErrorKind::InvalidData, unsorted),
            ));
        }
        last.clone_from(&line);
        Ok(line)
    })))
}

/// The next line with a capture. In an index that is being written, a line without its end is left out.
fn next(source: &mut BufReader<File>, is_open: bool) -> io::Result<Option<String>> {
    loop {
        let bytes = line(source)?;
        if bytes.is_empty() || is_open && !bytes.ends_with(b"\n") {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        if !text.is_empty() && !text.starts_with(['!', ' ']) {
            return Ok(Some(text.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Merges the indexes of archives with these names, or returns the error.
    fn merged(folder: &Path, archives: &[&str]) -> io::Result<Vec<String>> {
        let mut index = MergedIndex::new(&std::env::temp_dir());
        for archive in archives {
            assert!(index.add_index_of(&folder.join(archive)), "{archive}");
        }
        let mut lines = Vec::new();
        index.each_line(|line| {
            lines.push(line.to_owned());
            Ok(())
        })?;
        Ok(lines)
    }

    #[test]
    fn finished_and_open_indexes_are_merged() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a.cdxj", "!OpenWayback-CDXJ 1.0\nb 2026 {}\nd 2026 {}\n");
        write("b.cdxj", "a 2026 {}\r\nb 2026 {}\nc 2026 {}");
        write("c.cdxj.open", "f 2026 {}\ne 2026 {}\ng 20");
        let archives = ["a.warc.gz", "b.arc", "c.warc.gz.open"];
        let lines = merged(folder.path(), &archives).unwrap();
        let expected = ["a", "b", "c", "d", "e", "f"].map(|key| format!("{key} 2026 {{}}"));
        assert_eq!(lines, expected);
        let mut index = MergedIndex::new(&std::env::temp_dir());
        assert!(!index.add_index_of(&folder.path().join("d.warc.gz")));
    }

    #[test]
    fn an_index_that_is_not_sorted_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.cdxj"), "b 2026 {}\na 2026 {}\n").unwrap();
        let problem = merged(folder.path(), &["a.warc"]).unwrap_err().to_string();
        assert!(problem.contains("a.cdxj: not sorted"), "{problem}");
    }
}
