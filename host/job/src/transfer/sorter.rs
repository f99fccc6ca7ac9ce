//! Sorting of more records than fit into memory: sorted runs in one unnamed temporary file, which are merged while they are read.
//!
//! Records are byte strings in the order of their bytes, so the caller puts the sort key first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Memory of a run in bytes, its index included, before the run is written to disk. 100 million lines of a journal make about 250
/// runs.
const RUN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes read ahead of each run during the merge: 250 runs take 8 MiB.
const READ_AHEAD_BYTES: usize = 32 * 1024;

/// A collector of records in any order.
pub struct Sorter {
    run: Run,
    run_bytes_max: usize,
    spilled: File,
    ends: Vec<u64>,
}

/// Records in memory, end to end.
#[derive(Default)]
pub struct Run {
    bytes: Vec<u8>,
    records: Vec<Range<usize>>,
}

impl Sorter {
    /// Creates a sorter with this folder for records that do not fit into memory. Its file has no name and disappears with the
    /// process.
    pub fn new(folder: &Path) -> io::Result<Sorter> {
        Sorter::with_runs_of(folder, RUN_BYTES_MAX)
    }

    fn with_runs_of(folder: &Path, run_bytes_max: usize) -> io::Result<Sorter> {
        Ok(Sorter {
            run: Run::default(),
            run_bytes_max,
            spilled: tempfile::tempfile_in(folder)?,
            ends: Vec::new(),
        })
    }

    /// Adds a record.
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        let start = self.run.bytes.len();
        self.run.bytes.extend_from_slice(record);
        self.run.records.push(start..self.run.bytes.len());
        if self.run.cost() >= self.run_bytes_max {
            self.spill()?;
        }
        Ok(())
    }

    /// Returns all records in order.
    pub fn sorted(mut self) -> io::Result<Sorted> {
        if self.ends.is_empty() {
            self.run.sort();
            return Ok(Sorted::Memory {
                run: self.run,
                next: 0,
            });
        }
        self.spill()?;
        // The memory of the last run is not needed while runs are merged.
        self.run = Run::default();
        let spilled = Arc::new(self.spilled);
        let mut runs = Vec::with_capacity(self.ends.len());
        let mut heads = BinaryHeap::with_capacity(self.ends.len());
        let mut start = 0;
        for end in self.ends {
            let mut run = SpilledRun {
                file: Arc::clone(&spilled),
                unread: start..end,
                ahead: Vec::new(),
                at: 0,
            };
            start = end;
            if let Some(head) = run.record()? {
                heads.push(Reverse((head, runs.len())));
                runs.push(run);
            }
        }
        Ok(Sorted::Merged { runs, heads })
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.run.records.is_empty() {
            return Ok(());
        }
        self.run.sort();
        let mut out = BufWriter::with_capacity(1024 * 1024, &self.spilled);
        let mut end = self.ends.last().copied().unwrap_or(0);
        for record in &self.run.records {
            let bytes = &self.run.bytes[record.clone()];
            out.write_all(&(bytes.len() as u64).to_le_bytes())?;
            out.write_all(bytes)?;
            end += 8 + bytes.len() as u64;
        }
        out.flush()?;
        drop(out);
        self.ends.push(end);
        self.run.bytes.clear();
        self.run.records.clear();
        Ok(())
    }
}

impl Run {
    fn cost(&self) -> usize {
        self.bytes.len() + self.records.len() * size_of::<Range<usize>>()
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.records
            .sort_unstable_by(|a, b| bytes[a.clone()].cmp(&bytes[b.clone()]));
    }
}

/// Records in order.
pub enum Sorted {
    /// All records fitted into memory.
    Memory {
        /// The records.
        run: Run,
        /// The number of the next one.
        next: usize,
    },
    /// The first record of each run, and the runs.
    Merged {
        /// The runs on disk.
        runs: Vec<SpilledRun>,
        /// The first record of each, with the number of its run.
        heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    },
}

impl Iterator for Sorted {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        match self {
            Sorted::Memory { run, next } => {
                let record = run.records.get(*next)?.clone();
                *next += 1;
                Some(Ok(run.bytes[record].to_vec()))
            }
            Sorted::Merged { runs, heads } => {
                let Reverse((record, from)) = heads.pop()?;
                match runs[from].record() {
                    Ok(Some(head)) => heads.push(Reverse((head, from))),
                    Ok(None) => {}
                    Err(error) => return Some(Err(error)),
                }
                Some(Ok(record))
            }
        }
    }
}

/// A sorted run on disk. All runs read through one handle, so each keeps its own position.
pub struct SpilledRun {
    file: Arc<File>,
    unread: Range<u64>,
    ahead: Vec<u8>,
    at: usize,
}

impl SpilledRun {
    fn record(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; 8];
        if self.ahead.len() == self.at && self.unread.is_empty() {
            return Ok(None);
        }
        self.read_exact(&mut length)?;
        let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
        let mut record = vec![0; length];
        self.read_exact(&mut record)?;
        Ok(Some(record))
    }
}

impl Read for SpilledRun {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.ahead.len() {
            let left = self.unread.end - self.unread.start;
            let bytes = left.min(READ_AHEAD_BYTES as u64);
            self.ahead.clear();
            self.at = 0;
            let mut file = &*self.file;
            file.seek(SeekFrom::Start(self.unread.start))?;
            file.take(bytes).read_to_end(&mut self.ahead)?;
            self.unread.start += self.ahead.len() as u64;
        }
        let count = into.len().min(self.ahead.len() - self.at);
        into[..count].copy_from_slice(&self.ahead[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(run_bytes_max: usize, records: &[Vec<u8>]) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::with_runs_of(folder.path(), run_bytes_max).unwrap();
        for record in records {
            sorter.push(record).unwrap();
        }
        let sorted: Vec<_> = sorter.sorted().unwrap().map(Result::unwrap).collect();
        let mut expected = records.to_vec();
        expected.sort();
        assert_eq!(sorted.len(), expected.len());
        assert!(sorted == expected, "runs of {run_bytes_max} bytes");
    }

    #[test]
    fn records_are_sorted_with_runs_of_any_size() {
        // Records of 0 to 6 kB and one larger than the read-ahead.
        let mut records: Vec<Vec<u8>> = (0..3_000_u32)
            .map(|number| {
                let hash = number.wrapping_mul(2_654_435_761);
                let mut record = hash.to_be_bytes()[..number as usize % 5].to_vec();
                record.resize(record.len() + number as usize % 97 * 64, b'x');
                record
            })
            .collect();
        records.push(vec![b'y'; 3 * READ_AHEAD_BYTES]);
        for run_bytes_max in [1, 10_000, 1_000_000, RUN_BYTES_MAX] {
            check(run_bytes_max, &records);
        }
        check(1, &[]);
        check(RUN_BYTES_MAX, &[Vec::new(), Vec::new()]);
    }
}
