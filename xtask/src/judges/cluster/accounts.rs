//! Compares the archives and the web's own log with the pages of the web.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use opilio_test_web::{SeenRequest, Web};
use serde_json::Value;

use super::{DELAY, TIME_TO_LIVE};

/// Resolution of the crawler's clock. A measured delay may be shorter by less than this.
const TICK: Duration = Duration::from_millis(1);

/// An archive of a part. A part that moved has several.
pub(super) struct PartArchive {
    pub(super) part: String,
    /// Folder of WARC and CDXJ files.
    pub(super) folder: PathBuf,
}

/// Time in which a part had lost its lease because its machine was disconnected.
pub(super) struct LeaseLoss {
    pub(super) part: String,
    pub(super) from: Instant,
    pub(super) to: Instant,
}

impl PartArchive {
    /// Returns all archives of a job in the folder to which its nodes hand over files, `PART-NUMBER/warcs`.
    pub(super) fn in_store(job: &Path) -> Result<Vec<PartArchive>> {
        let mut archives = Vec::new();
        for entry in fs::read_dir(job)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (part, _) = name
                .rsplit_once('-')
                .with_context(|| format!("{name} in {} is not of a part", job.display()))?;
            archives.push(PartArchive {
                part: part.to_owned(),
                folder: entry.path().join("warcs"),
            });
        }
        archives.sort_by(|one, other| one.folder.cmp(&other.folder));
        Ok(archives)
    }

    /// Number of captures of each page, from the CDXJ files.
    fn captures(&self) -> Result<BTreeMap<String, usize>> {
        let mut captures = BTreeMap::new();
        let files = fs::read_dir(&self.folder);
        let files = files.with_context(|| format!("cannot read {}", self.folder.display()))?;
        for entry in files {
            let file = entry?.path();
            if file.extension().is_none_or(|ending| ending != "cdxj") {
                continue;
            }
            for line in fs::read_to_string(&file)?.lines() {
                // Key, time, fields.
                let fields = line.splitn(3, ' ').nth(2);
                let fields = fields.with_context(|| format!("{}: {line}", file.display()))?;
                let fields: Value = serde_json::from_str(fields)?;
                let url = fields["url"].as_str().unwrap_or_default();
                if url.starts_with("http") && !url.ends_with("/robots.txt") {
                    *captures.entry(url.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(captures)
    }
}

/// Compares the archives and the web's own log with the pages of the web. At most so many pages may be fetched twice: those that
/// were in flight when processes were killed.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn check_pages(
    archives: &[PartArchive],
    expected: &BTreeSet<String>,
    web: &Web,
    most: usize,
) -> Result<()> {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    let mut both = 0;
    for archive in archives {
        let captures = archive.captures()?;
        println!(
            "part {}: {} pages in {}",
            archive.part,
            captures.len(),
            archive.folder.display()
        );
        for (uri, count) in captures {
            let known = all.entry(uri).or_default();
            both += usize::from(*known > 0);
            *known += count;
        }
    }
    let missing: Vec<&String> = expected
        .iter()
        .filter(|uri| !all.contains_key(*uri))
        .collect();
    let unexpected: Vec<&String> = all.keys().filter(|uri| !expected.contains(*uri)).collect();
    ensure!(
        missing.is_empty() && unexpected.is_empty(),
        "missing {}: {:?}; unexpected {}: {:?}",
        missing.len(),
        missing.first(),
        unexpected.len(),
        unexpected.first()
    );
    let repeated: usize = all.values().map(|count| count - 1).sum();
    let again = |seen: &&SeenRequest| seen.visit > 1 && seen.target != "/robots.txt";
    let fetched_again = web.requests().iter().filter(again).count();
    if repeated.max(fetched_again) > most || both > 0 {
        bail!(
            "{repeated} pages were archived and {fetched_again} were fetched again, at most {most} are allowed; {both} pages are in two archives"
        );
    }
    println!(
        "cluster: all {} pages are archived; {repeated} were archived and {fetched_again} fetched again (at most {most} were in flight \
         when a process was killed), no page is in two archives",
        expected.len()
    );
    Ok(())
}

/// Finds pairs of requests to a host that are closer than the delay.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn check_delays(web: &Web) -> Result<()> {
    let mut requests = web.requests();
    requests.sort_by_key(|seen| seen.came);
    let mut last: BTreeMap<&str, Instant> = BTreeMap::new();
    let mut shortest = Duration::MAX;
    for seen in &requests {
        if let Some(before) = last.insert(&seen.host, seen.came) {
            let interval = seen.came - before;
            ensure!(
                interval + TICK > DELAY,
                "{}{} came {interval:?} after the request before it; the delay is {DELAY:?}",
                seen.host,
                seen.target
            );
            shortest = shortest.min(interval);
        }
    }
    println!(
        "cluster: {} requests, the shortest time between two to a host is {shortest:?}",
        requests.len()
    );
    Ok(())
}

/// Finds requests of parts whose machine was disconnected for longer than their lease.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn check_lease_losses(
    archives: &[PartArchive],
    web: &Web,
    lease_losses: &[LeaseLoss],
) -> Result<()> {
    let requests = web.requests();
    for loss in lease_losses {
        let mut hosts = BTreeSet::new();
        for archive in archives.iter().filter(|it| it.part == loss.part) {
            let captures = archive.captures()?;
            let names = captures.keys().filter_map(|uri| host_of(uri));
            hosts.extend(names.map(str::to_owned));
        }
        ensure!(!hosts.is_empty(), "part {} has no sites", loss.part);
        let forbidden = requests
            .iter()
            .find(|seen| (loss.from..loss.to).contains(&seen.came) && hosts.contains(&seen.host));
        if let Some(seen) = forbidden {
            bail!(
                "part {} requested {}{} though its machine was cut off {:?} before, for longer than its lease",
                loss.part,
                seen.host,
                seen.target,
                seen.came - loss.from + TIME_TO_LIVE
            );
        }
    }
    println!(
        "cluster: no requests by parts that had lost their lease ({} times)",
        lease_losses.len()
    );
    Ok(())
}

fn host_of(uri: &str) -> Option<&str> {
    uri.split(['/', ':']).nth(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_in_the_store_are_found_with_their_pages() {
        let job = tempfile::tempdir().unwrap();
        let line = |url: &str| format!("key 20261127000000 {{\"url\":\"{url}\"}}\n");
        let pages = [
            "http://a/",
            "http://a/1",
            "http://a/",
            "http://a/robots.txt",
        ];
        for name in ["b-2", "part-1-1", "b-1"] {
            let warcs = job.path().join(name).join("warcs");
            fs::create_dir_all(&warcs).unwrap();
            fs::write(warcs.join("x.cdxj"), pages.map(line).concat()).unwrap();
            fs::write(warcs.join("x.warc.gz"), "").unwrap();
        }
        let archives = PartArchive::in_store(job.path()).unwrap();
        let parts: Vec<&str> = archives.iter().map(|archive| &*archive.part).collect();
        assert_eq!(parts, ["b", "b", "part-1"]);
        let captures = archives[2].captures().unwrap();
        let counts: Vec<(&str, usize)> = captures.iter().map(|(url, n)| (&**url, *n)).collect();
        assert_eq!(counts, [("http://a/", 2), ("http://a/1", 1)]);
        assert_eq!(
            host_of("http://www.site0.localhost:80/1.html"),
            Some("www.site0.localhost")
        );
    }
}
