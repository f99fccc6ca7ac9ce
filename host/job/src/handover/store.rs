//! A store for the files of a job: a bucket of S3-compatible storage, or a folder. A file counts as stored when its copy is
//! verified:
//!
//! - In a bucket, the server compares the SHA-256 of every request's body, and the finished object has the size and, in its
//!   metadata, the SHA-256 of the file. If the profile sets this, the object is read back.
//! - In a folder, the copy is forced to disk and read back.

use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::path::Path as ObjectPath;
use object_store::{
    Attribute, Attributes, BackoffConfig, GetOptions, ObjectStore, ObjectStoreExt as _,
    PutMultipartOptions, PutOptions, RetryConfig, WriteMultipart,
};
use opilio_archive::{Algorithm, Hasher};
use opilio_profile::{ArchiveStore, StoreBucket, StorePlace};
use tokio::io::AsyncReadExt as _;

use super::failure::{FileStoreError, failure, unreadable};
use super::folder_store::{FolderStore, Stored};
use super::requests::Connector;
use super::{Checksums, HandedOver, HandoverRecord, hex, name_in, path_in_store};
use crate::directory::name_of;

/// Size of a part. Files up to this size are sent in one request.
const PART_BYTES: usize = 8 << 20;

/// Most parts of an object (Amazon's limit is 10,000). Parts of larger files are larger.
const PARTS_MAX: u64 = 9_000;

/// Parts of a file that are sent at the same time.
const PARTS_AT_ONCE: usize = 4;

/// Name of the metadata field with the SHA-256 of the file, in hexadecimal.
const DIGEST_FIELD: &str = "sha256";

/// Repetitions of a single request. Longer outages are left to the queue of files.
const RETRY: RetryConfig = RetryConfig {
    backoff: BackoffConfig {
        init_backoff: Duration::from_millis(200),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    },
    max_retries: 2,
    retry_timeout: Duration::from_secs(60),
};

/// Store for the files of one job.
pub struct FileStore {
    pub(super) place: StoreLocation,
    /// URL of the store.
    url: String,
    job: PathBuf,
    /// Folder of the job in the store.
    folder: String,
}

pub(super) enum StoreLocation {
    Folder(FolderStore),
    Bucket(Bucket),
}

pub(super) struct Bucket {
    pub(super) store: Box<dyn ObjectStore>,
    /// Beginning of all keys; may be empty.
    prefix: String,
    reads_back: bool,
}

impl FileStore {
    /// Opens the store for a job. Sends no request.
    ///
    /// # Errors
    /// A key is missing, or the settings are not usable.
    pub fn open(settings: &ArchiveStore, job: &Path) -> Result<FileStore, FileStoreError> {
        FileStore::open_as(settings, job, &name_of(job))
    }

    /// Opens the store for a job whose files go to this folder of the store, such as `news/a-1`, in place of a folder with the
    /// job's name.
    ///
    /// # Errors
    /// As [`FileStore::open`].
    pub fn open_as(
        settings: &ArchiveStore,
        job: &Path,
        folder: &str,
    ) -> Result<FileStore, FileStoreError> {
        let place = match &settings.place {
            StorePlace::Folder(folder) => StoreLocation::Folder(FolderStore::new(folder)),
            StorePlace::Bucket(bucket) => StoreLocation::Bucket(Bucket {
                store: open_bucket(bucket)?,
                prefix: bucket.prefix.clone(),
                reads_back: settings.read_back,
            }),
        };
        Ok(FileStore {
            place,
            url: settings.place.url(),
            job: job.to_owned(),
            folder: folder.to_owned(),
        })
    }

    /// Returns the URL of the store.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL of a file's copy.
    pub fn url_of(&self, file: &Path) -> String {
        self.object_url(&self.path_of(file))
    }

    /// Returns the path of a file's copy in the store.
    fn path_of(&self, file: &Path) -> PathBuf {
        Path::new(&self.folder).join(path_in_store(&self.job, file))
    }

    /// Stores a file, verifies the copy, and adds the file to the record. A copy that is in the store already is only verified.
    /// Another file under this URL is replaced in two cases only: the record lists it as an earlier state of the file, or
    /// `is_replaced` is set and this job has stored the file before.
    ///
    /// # Errors
    /// [`FileStoreError`]; the file can be stored later.
    pub async fn put(
        &self,
        file: &Path,
        record: &HandoverRecord,
        is_replaced: bool,
    ) -> Result<HandedOver, FileStoreError> {
        let at = Timestamp::now();
        let sums = self.checksums(file).await?;
        // The path in the folder, or the end of the key.
        let path = self.path_of(file);
        let url = self.url_of(file);
        let there = self.stored(&path).await?;
        // The store may have a log of another or an earlier job under the same name.
        let is_replaced = is_replaced && record.has_stored(file);
        let is_there = there.as_ref().is_some_and(|it| it.is_copy_of(&sums));
        if let Some(there) = there.filter(|_| !is_there && !is_replaced) {
            let digest = there.digest.as_ref();
            let is_earlier =
                digest.is_some_and(|digest| record.knows(file, &format!("sha256:{digest}")));
            if !is_earlier {
                return Err(FileStoreError::Conflict(url, there.to_string()));
            }
        }
        if !is_there {
            match &self.place {
                StoreLocation::Folder(folder) => folder.copy(file, &path).await?,
                StoreLocation::Bucket(bucket) => bucket.upload(file, &path, &sums).await?,
            }
            verify(self.stored(&path).await?, &sums, &url)?;
        }
        if let StoreLocation::Bucket(bucket) = &self.place
            && bucket.reads_back
        {
            verify(bucket.read(&path).await?, &sums, &url)?;
        }
        let stored = HandedOver {
            file: name_in(&self.job, file),
            size: sums.size,
            digest: format!("sha256:{}", sums.sha256),
            url: Some(url),
            // The time is taken before the file is read, so that a later change is detected.
            at,
        };
        record.add(stored.clone()).map_err(FileStoreError::Record)?;
        Ok(stored)
    }

    pub(super) async fn checksums(&self, file: &Path) -> Result<Checksums, FileStoreError> {
        let path = file.to_owned();
        let sums = tokio::task::spawn_blocking(move || Checksums::of(&path)).await;
        let sums = sums.map_err(|panic| FileStoreError::Store(panic.to_string()))?;
        sums.map_err(|source| unreadable(file, source))
    }

    /// Returns the copy of a file, if there is one.
    pub(super) async fn stored(&self, path: &Path) -> Result<Option<Stored>, FileStoreError> {
        match &self.place {
            StoreLocation::Folder(folder) => folder.read(path).await,
            StoreLocation::Bucket(bucket) => bucket.stored(path).await,
        }
    }
}

impl Bucket {
    pub(super) fn key(&self, path: &Path) -> Result<ObjectPath, FileStoreError> {
        let path = path.display();
        let key = match self.prefix.is_empty() {
            true => ObjectPath::parse(path.to_string()),
            false => ObjectPath::parse(format!("{}/{path}", self.prefix)),
        };
        key.map_err(|problem| FileStoreError::Store(problem.to_string()))
    }

    /// Returns the object, with the digest in its metadata.
    async fn stored(&self, path: &Path) -> Result<Option<Stored>, FileStoreError> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.store.get_opts(&self.key(path)?, options).await {
            Ok(found) => {
                let field = Attribute::Metadata(DIGEST_FIELD.into());
                let digest = found.attributes.get(&field);
                Ok(Some(Stored {
                    size: found.meta.size,
                    digest: digest.map(|digest| digest.to_string()),
                }))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(problem) => Err(failure(&problem)),
        }
    }

    /// Reads an object, if there is one, and returns its size and digest.
    async fn read(&self, path: &Path) -> Result<Option<Stored>, FileStoreError> {
        let found = match self.store.get(&self.key(path)?).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|problem| failure(&problem))?,
        };
        let mut stream = found.into_stream();
        let (mut hasher, mut size) = (Hasher::new(Algorithm::Sha256), 0);
        while let Some(bytes) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            let bytes = bytes.map_err(|problem| failure(&problem))?;
            size += bytes.len() as u64;
            hasher.update(&bytes);
        }
        Ok(Some(Stored {
            size,
            digest: Some(hex(hasher)),
        }))
    }

    pub(super) async fn upload(
        &self,
        file: &Path,
        path: &Path,
        sums: &Checksums,
    ) -> Result<(), FileStoreError> {
        let key = &self.key(path)?;
        let mut attributes = Attributes::new();
        let field = Attribute::Metadata(DIGEST_FIELD.into());
        attributes.insert(field, sums.sha256.clone().into());
        let opened = tokio::fs::File::open(file).await;
        let mut source = opened.map_err(|source| unreadable(file, source))?;
        let mut hasher = Hasher::new(Algorithm::Sha256);
        let part_bytes = PART_BYTES.max((sums.size / PARTS_MAX) as usize);
        let first = next_part(&mut source, part_bytes, &mut hasher);
        let first = first.await.map_err(|source| unreadable(file, source))?;
        let is_only = first.len() as u64 == sums.size;
        if is_only {
            if hex(hasher) != sums.sha256 {
                return Err(FileStoreError::Changed(file.to_owned()));
            }
            let options = PutOptions {
                attributes,
                ..PutOptions::default()
            };
            let put = self.store.put_opts(key, first.into(), options).await;
            return put.map(|_| ()).map_err(|problem| failure(&problem));
        }
        let options = PutMultipartOptions {
            attributes,
            ..PutMultipartOptions::default()
        };
        let begun = self.store.put_multipart_opts(key, options).await;
        let begun = begun.map_err(|problem| failure(&problem))?;
        let mut upload = WriteMultipart::new_with_chunk_size(begun, part_bytes);
        match send(&mut upload, first, &mut source, part_bytes, &mut hasher).await {
            Ok(()) if hex(hasher) == sums.sha256 => {
                let finished = upload.finish().await;
                finished.map(|_| ()).map_err(|problem| failure(&problem))
            }
            sent => {
                // Parts of an unfinished upload would occupy space in the bucket. An error of this call is ignored in favour of the
                // first error.
                let _ = upload.abort().await;
                match sent {
                    Ok(()) => Err(FileStoreError::Changed(file.to_owned())),
                    Err(SendError::Read(source)) => Err(unreadable(file, source)),
                    Err(SendError::Store(problem)) => Err(failure(&problem)),
                }
            }
        }
    }
}

/// Compares the copy of a file with its checksums.
pub(super) fn verify(
    found: Option<Stored>,
    sums: &Checksums,
    url: &str,
) -> Result<(), FileStoreError> {
    let found = match found {
        Some(copy) if copy.is_copy_of(sums) => return Ok(()),
        Some(other) => other.to_string(),
        None => "not found".to_owned(),
    };
    let url = url.to_owned();
    Err(FileStoreError::Unverified { url, found })
}

enum SendError {
    Read(io::Error),
    Store(object_store::Error),
}

/// Sends all parts of a file. The first part was read already.
async fn send(
    upload: &mut WriteMultipart,
    first: Bytes,
    source: &mut tokio::fs::File,
    part_bytes: usize,
    hasher: &mut Hasher,
) -> Result<(), SendError> {
    let mut part = first;
    while !part.is_empty() {
        let room = upload.wait_for_capacity(PARTS_AT_ONCE).await;
        room.map_err(SendError::Store)?;
        upload.put(part);
        let next = next_part(source, part_bytes, hasher).await;
        part = next.map_err(SendError::Read)?;
    }
    Ok(())
}

/// Reads the next part; it is shorter at the end of the file.
async fn next_part(
    source: &mut tokio::fs::File,
    part_bytes: usize,
    hasher: &mut Hasher,
) -> io::Result<Bytes> {
    let mut part = Vec::new();
    source
        .take(part_bytes as u64)
        .read_to_end(&mut part)
        .await?;
    hasher.update(&part);
    Ok(part.into())
}

fn open_bucket(bucket: &StoreBucket) -> Result<Box<dyn ObjectStore>, FileStoreError> {
    let builder = match &bucket.keys {
        // The environment variables and roles of Amazon's tools apply.
        None => AmazonS3Builder::from_env(),
        Some(keys) => {
            let builder = AmazonS3Builder::new()
                .with_access_key_id(keys.access_key_id.read()?)
                .with_secret_access_key(keys.secret_access_key.read()?);
            match &keys.session_token {
                Some(token) => builder.with_token(token.read()?),
                None => builder,
            }
        }
    };
    let mut builder = builder
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_checksum_algorithm(Checksum::SHA256)
        .with_retry(RETRY)
        .with_http_connector(Connector {
            address: bucket.endpoint.clone().unwrap_or_default(),
        });
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"));
    }
    let store = builder.build().map_err(|problem| failure(&problem))?;
    Ok(Box::new(store))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;

    use super::*;

    fn settings(folder: &Path) -> ArchiveStore {
        ArchiveStore {
            place: StorePlace::Folder(folder.to_owned()),
            delete_local: false,
            read_back: false,
            uploads: 1,
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(1),
            finish_within: Duration::from_secs(1),
        }
    }

    #[tokio::test]
    async fn a_file_is_copied_once_and_another_file_is_never_replaced() {
        let (folder, parent) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let job = parent.path().join("news");
        fs::create_dir_all(job.join("warcs")).unwrap();
        let file = job.join("warcs/WEB-1~a~0.warc.gz");
        // Three parts.
        let content: Vec<u8> = (0..(2 * PART_BYTES + 5)).map(|at| (at / 7) as u8).collect();
        fs::write(&file, &content).unwrap();
        let record = HandoverRecord::open(&job).unwrap();
        let store = FileStore::open(&settings(folder.path()), &job).unwrap();

        let stored = store.put(&file, &record, false).await.unwrap();
        let copy = folder.path().join("news/warcs/WEB-1~a~0.warc.gz");
        let url = format!("file://{}", copy.display());
        assert_eq!(stored.url.as_deref(), Some(&*url));
        assert_eq!(stored.file, "warcs/WEB-1~a~0.warc.gz");
        assert_eq!(fs::read(&copy).unwrap(), content);
        let written = fs::metadata(&copy).unwrap().modified().unwrap();
        store.put(&file, &record, false).await.unwrap();
        assert_eq!(fs::metadata(&copy).unwrap().modified().unwrap(), written);

        // A redacted file replaces its earlier state.
        fs::write(&file, "redacted").unwrap();
        store.put(&file, &record, false).await.unwrap();
        assert_eq!(fs::read(&copy).unwrap(), b"redacted");

        fs::write(&copy, "of someone else").unwrap();
        let refused = store.put(&file, &record, false).await.unwrap_err();
        assert!(matches!(refused, FileStoreError::Conflict(..)), "{refused}");
        assert_eq!(fs::read(&copy).unwrap(), b"of someone else");
        store.put(&file, &record, true).await.unwrap();
        assert_eq!(fs::read(&copy).unwrap(), b"redacted");
    }

    #[tokio::test]
    async fn a_folder_that_is_not_mounted_is_not_created() {
        let parent = tempfile::tempdir().unwrap();
        let (job, folder) = (parent.path().join("job"), parent.path().join("share"));
        fs::create_dir(&job).unwrap();
        fs::write(job.join("a"), "a").unwrap();
        let record = HandoverRecord::open(&job).unwrap();
        let store = FileStore::open(&settings(&folder), &job).unwrap();
        let refused = store.put(&job.join("a"), &record, false).await.unwrap_err();
        assert!(matches!(refused, FileStoreError::NoFolder(_)), "{refused}");
        assert!(!folder.exists());
    }
}
