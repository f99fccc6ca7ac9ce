//! Archive settings of a profile: the configuration of writers, and the description of the crawl in each file.

use std::path::Path;
use std::time::Duration;

use opilio_archive::{
    Algorithm, Compression, CrawlDocument, Durability, PluginInForce, RepairedFile, WarcInfo,
    WriterConfig, Writers,
};
use opilio_profile::{ArchiveCompression, ArchiveDigest, Profile};

use crate::error::CrawlError;

/// Workers that share one WARC file. More workers get a second file, because compression of a single file would delay them.
const WORKERS_PER_WRITER: usize = 32;

/// URI of the profile's record in each file. Tools skip this scheme when they look for pages.
const PROFILE_URI: &str = "metadata://opilio/profile.toml";

/// Opens the archive of a job, and repairs files that a killed process left there.
pub(crate) fn open(
    profile: &Profile,
    plugins: Vec<PluginInForce>,
    job: &Path,
) -> Result<(Writers, Vec<RepairedFile>), CrawlError> {
    let config = writer_config(profile, job)?;
    let writers = profile.archive.writers;
    let count = writers.unwrap_or_else(|| profile.workers.div_ceil(WORKERS_PER_WRITER));
    Ok(Writers::open(
        &config,
        &description(profile, plugins),
        count,
    )?)
}

/// Maximum of missing indexes that are written at the start and at the end of a crawl. A kill leaves fewer. Further indexes are
/// written while the crawl runs.
const INDEXED_AT_ONCE: usize = 64;

/// Writes missing indexes of finished files, if the profile enables indexes. A failure does not stop the crawl.
pub(crate) fn complete_indexes(config: &WriterConfig) {
    for directory in config.directories().filter(|_| config.index) {
        match opilio_archive::complete_indexes(directory, INDEXED_AT_ONCE) {
            Ok(0) => {}
            Ok(count) => tracing::warn!(
                "{count} archive files in {} had no index; it was written",
                directory.display()
            ),
            Err(problem) => tracing::warn!("cannot index an archive file: {problem}"),
        }
    }
}

/// Returns the configuration of the archive's writers.
pub fn writer_config(profile: &Profile, job: &Path) -> Result<WriterConfig, CrawlError> {
    let archive = &profile.archive;
    let level = archive.compression_level;
    let dictionary = match &archive.dictionary {
        None => None,
        Some(file) => {
            let read = std::fs::read(file).map_err(|source| CrawlError::Io {
                path: file.display().to_string(),
                source,
            })?;
            Some(read.into())
        }
    };
    let further = archive.more_directories.iter();
    let defaults = WriterConfig::new(job.join(&archive.directory));
    Ok(WriterConfig {
        further_directories: further.map(|directory| job.join(directory)).collect(),
        format: archive.format,
        prefix: archive.prefix.clone(),
        // The profile was checked before, so an invalid template here is an error of that check, which must not stop the crawl.
        template: archive.name.parse().unwrap_or(defaults.template.clone()),
        size_max: archive.size_max.bytes(),
        age_max: archive.age_max,
        compression: match archive.compression {
            ArchiveCompression::None => Compression::None,
            ArchiveCompression::Gzip => Compression::Gzip(level),
            ArchiveCompression::Zstd => Compression::Zstd(i32::try_from(level).unwrap_or(6)),
        },
        dictionary,
        digest: match archive.digest {
            ArchiveDigest::Sha1 | ArchiveDigest::Both => Algorithm::Sha1,
            ArchiveDigest::Sha256 => Algorithm::Sha256,
        },
        further_digest: (archive.digest == ArchiveDigest::Both).then_some(Algorithm::Sha256),
        index: archive.index,
        durability: match archive.fsync {
            None => Durability::Finished,
            Some(Duration::ZERO) => Durability::Capture,
            Some(interval) => Durability::Every(interval),
        },
        host: hostname(),
        ..defaults
    })
}

/// Returns the description of the crawl that each file contains.
pub(crate) fn description(profile: &Profile, plugins: Vec<PluginInForce>) -> WarcInfo {
    let operator = &profile.operator;
    WarcInfo {
        hostname: Some(hostname()),
        ip: own_address(),
        operator: operator.name.clone(),
        contact: operator.contact_url.clone(),
        organization: operator.organization.clone(),
        audience: operator.audience.clone(),
        is_part_of: Some(profile.name.clone()),
        description: profile.description.clone(),
        robots: Some(profile.settings().robots.policy.name().to_owned()),
        user_agent: Some(profile.user_agent.clone()),
        from: operator.from.clone(),
        plugins,
        documents: vec![CrawlDocument {
            target_uri: PROFILE_URI.to_owned(),
            content_type: "application/toml".to_owned(),
            content: profile.source_text().as_bytes().to_vec().into(),
        }],
        ..WarcInfo::new(format!("opilio/{}", env!("CARGO_PKG_VERSION")))
    }
}

/// Returns the machine's name, for file names and `warcinfo`.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME").map_err(std::io::Error::other));
    let name = name.map(|name| name.trim().to_owned()).unwrap_or_default();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

/// Returns the machine's address on the network interface of its default route. The target is an address for documentation (RFC
/// 5737). Connecting a datagram socket sends nothing.
fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}
