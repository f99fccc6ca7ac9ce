//! Settings of the store that takes over the files of a job: a bucket of S3-compatible storage, or a shared folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::duration::DurationWritten;
use crate::secret::{SecretFile, SecretSource};

/// Most files that are uploaded at the same time. Each has up to four parts of 8 MiB in memory.
const UPLOADS_MAX: u32 = 16;

/// A store for the files of the job, outside of it. Each archive file is stored when it is closed, with its index. Logs and
/// reports are stored at the end of the crawl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ArchiveStoreFile {
    /// Place of the files: `"s3://BUCKET/PREFIX"`, or `"file:///FOLDER"` for a folder that exists, such as a mounted share. The
    /// name of the job and the file's path in the job follow. No default: files stay in the job.
    #[schemars(extend("examples" = ["s3://web-archive/crawls", "file:///mnt/archive"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// Address of S3-compatible storage other than Amazon's. No default: Amazon's address for the region.
    #[schemars(extend("examples" = ["https://s3.example.org"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,

    /// Region of the bucket. Default `"us-east-1"`: the name that storage without regions expects.
    pub region: String,

    /// Place of the access key. No default: keys are found as Amazon's tools find them, in the environment or by the role of the
    /// machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<SecretFile>,

    /// Place of the secret key. No default: see `access-key-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<SecretFile>,

    /// Place of the session token of temporary keys. No default: the keys are permanent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token: Option<SecretFile>,

    /// `true` if the job's own copy of an archive file is deleted once the file is in the store and verified. Its index stays.
    /// Default `false`: replay in the console, redaction and packages need the file.
    pub delete_local: bool,

    /// `true` if each file is read back from S3 and its SHA-256 compared before it counts as verified. Files in a folder are always
    /// read back. Default `false`: the server compares the SHA-256 of every part that it receives.
    pub read_back: bool,

    /// Files that are uploaded at the same time. Default `2`: the next file need not wait for the end of a large one.
    #[schemars(range(min = 1, max = 16))]
    pub uploads: u32,

    /// Pause after a failed upload before the file is tried again; each further pause is twice as long. Default `"10s"`: most
    /// failures of networks are short.
    pub retry_min: DurationWritten,

    /// Longest pause between two attempts. Default `"15m"`: the backlog shrinks soon after the store is back.
    pub retry_max: DurationWritten,

    /// Longest time at the end of a crawl for files that are not in the store yet. `opilio job handover` stores the rest later.
    /// Default `"10m"`: enough for a few gigabytes.
    pub finish_within: DurationWritten,
}

/// A store for the files of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveStore {
    /// Place of the files.
    pub place: StorePlace,
    /// `true` if local copies of archive files are deleted.
    pub delete_local: bool,
    /// `true` if files in a bucket are read back.
    pub read_back: bool,
    /// Files uploaded at the same time; at least 1.
    pub uploads: usize,
    /// First pause after a failure.
    pub retry_min: Duration,
    /// Longest pause after failures.
    pub retry_max: Duration,
    /// Longest time for outstanding files at the end.
    pub finish_within: Duration,
}

/// Place of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A folder of this machine, which has to exist.
    Folder(PathBuf),
    /// A bucket of S3-compatible storage.
    Bucket(StoreBucket),
}

/// A bucket of S3-compatible storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreBucket {
    /// Name of the bucket.
    pub name: String,
    /// Beginning of all keys, without `/` at either end; may be empty.
    pub prefix: String,
    /// Address of the storage; `None`: Amazon's.
    pub endpoint: Option<String>,
    /// Region of the bucket.
    pub region: String,
    /// The keys; `None`: as Amazon's tools find them.
    pub keys: Option<StoreKeys>,
}

/// Places of the keys for a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreKeys {
    /// Place of the access key.
    pub access_key_id: SecretSource,
    /// Place of the secret key.
    pub secret_access_key: SecretSource,
    /// Place of the session token, for temporary keys.
    pub session_token: Option<SecretSource>,
}

impl Default for ArchiveStoreFile {
    fn default() -> Self {
        Self {
            url: None,
            endpoint: None,
            region: "us-east-1".to_owned(),
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            delete_local: false,
            read_back: false,
            uploads: 2,
            retry_min: "10s".into(),
            retry_max: "15m".into(),
            finish_within: "10m".into(),
        }
    }
}

impl StorePlace {
    /// Returns the URL of the place, without `/` at its end.
    pub fn url(&self) -> String {
        match self {
            Self::Folder(folder) => format!("file://{}", folder.display()),
            Self::Bucket(StoreBucket { name, prefix, .. }) if prefix.is_empty() => {
                format!("s3://{name}")
            }
            Self::Bucket(StoreBucket { name, prefix, .. }) => format!("s3://{name}/{prefix}"),
        }
    }
}

impl ArchiveStoreFile {
    /// Returns the store, if the profile names one.
    pub(crate) fn check(
        &self,
        mut part: Part<'_, '_>,
        base: &Path,
        has_command: bool,
    ) -> Option<ArchiveStore> {
        let keys = self.check_keys(&mut part, base);
        if !(1..=UPLOADS_MAX).contains(&self.uploads) {
            let problem = format!("not a number from 1 to {UPLOADS_MAX}: {}", self.uploads);
            part.refuse("uploads", problem, "write 2");
        }
        let retry_min = part.positive_duration("retry-min", &self.retry_min);
        let retry_max = part.positive_duration("retry-max", &self.retry_max);
        if retry_max < retry_min {
            part.refuse(
                "retry-max",
                "shorter than retry-min".to_owned(),
                "write a longer pause",
            );
        }
        let finish_within = part.duration("finish-within", &self.finish_within);
        let Some(url) = &self.url else {
            self.refuse_without_url(&mut part);
            return None;
        };
        if self.delete_local && has_command {
            part.refuse(
                "delete-local",
                "archive.on-close may still need the file".to_owned(),
                "leave out on-close, or let its command delete the file",
            );
        }
        let place = self.place(url, keys, &mut part)?;
        Some(ArchiveStore {
            place,
            delete_local: self.delete_local,
            read_back: self.read_back,
            uploads: self.uploads.clamp(1, UPLOADS_MAX) as usize,
            retry_min,
            retry_max,
            finish_within,
        })
    }

    fn check_keys(&self, part: &mut Part<'_, '_>, base: &Path) -> Option<StoreKeys> {
        let mut read = |key, secret: &Option<SecretFile>| {
            let secret = secret.as_ref();
            secret.map(|secret| secret.check(key, part, base))
        };
        let access_key_id = read("access-key-id", &self.access_key_id);
        let secret_access_key = read("secret-access-key", &self.secret_access_key);
        let session_token = read("session-token", &self.session_token);
        match (access_key_id, secret_access_key) {
            (Some(access_key_id), Some(secret_access_key)) => Some(StoreKeys {
                access_key_id,
                secret_access_key,
                session_token,
            }),
            (None, None) if session_token.is_none() => None,
            (access, _) => {
                let missing = match access {
                    None => "access-key-id",
                    Some(_) => "secret-access-key",
                };
                part.refuse_whole(
                    format!("{missing} is missing"),
                    "write both access-key-id and secret-access-key, or neither",
                );
                None
            }
        }
    }

    fn refuse_without_url(&self, part: &mut Part<'_, '_>) {
        let useless = [
            ("endpoint", self.endpoint.is_some()),
            ("delete-local", self.delete_local),
            ("read-back", self.read_back),
        ];
        for (key, _) in useless.into_iter().filter(|(_, is_set)| *is_set) {
            part.refuse(
                key,
                "has no effect without url".to_owned(),
                "write url = \"s3://BUCKET/PREFIX\" too, or leave it out",
            );
        }
    }

    fn place(
        &self,
        url: &str,
        keys: Option<StoreKeys>,
        part: &mut Part<'_, '_>,
    ) -> Option<StorePlace> {
        let remedy = "write \"s3://BUCKET/PREFIX\" or \"file:///FOLDER\"";
        if let Some(folder) = url.strip_prefix("file://") {
            let folder = Path::new(folder);
            let plain = folder
                .components()
                .all(|it| !matches!(it, std::path::Component::ParentDir));
            if !folder.is_absolute() || !plain || url.contains(['%', '?', '#', '\0']) {
                part.refuse("url", format!("not a folder: {}", quote(url)), remedy);
                return None;
            }
            if self.endpoint.is_some() || keys.is_some() {
                let problem = "a folder has no endpoint and no keys".to_owned();
                part.refuse("url", problem, "leave endpoint and keys out");
            }
            // Without `/` at its end.
            return Some(StorePlace::Folder(folder.components().collect()));
        }
        let Some(rest) = url.strip_prefix("s3://") else {
            part.refuse("url", format!("not a store: {}", quote(url)), remedy);
            return None;
        };
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
        let in_prefix = |c: char| c.is_ascii_alphanumeric() || "-._~+=,@/".contains(c);
        let is_whole = prefix.is_empty()
            || prefix
                .split('/')
                .all(|step| !["", ".", ".."].contains(&step));
        if name.is_empty()
            || !name.chars().all(in_name)
            || !prefix.chars().all(in_prefix)
            || !is_whole
        {
            part.refuse(
                "url",
                format!("not a bucket and a prefix: {}", quote(url)),
                remedy,
            );
            return None;
        }
        if let Some(endpoint) = &self.endpoint {
            let is_http = ["http://", "https://"]
                .iter()
                .any(|scheme| endpoint.starts_with(scheme));
            if !is_http || opilio_uri::Uri::parse(endpoint).is_err() {
                part.refuse(
                    "endpoint",
                    format!("not an address: {}", quote(endpoint)),
                    "write one such as \"https://s3.example.org\"",
                );
            }
        }
        Some(StorePlace::Bucket(StoreBucket {
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            keys,
        }))
    }
}
