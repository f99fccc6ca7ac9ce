//! A job of the cluster: its manifest, its files by digest, and its streams.

use std::collections::BTreeMap;
use std::io::Cursor;

use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::{
    self, GetErrorKind, InfoErrorKind, ObjectMetadata, ObjectStore,
};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, Stream};
use data_encoding::{BASE64URL, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

use crate::bucket::{Bucket, BucketError, creation_error};
use crate::config::check_name;
use crate::connection::ClusterConnection;
use crate::error::{ClusterError, jetstream_code};
use crate::nodes::Cluster;
use crate::partition::Partition;

/// Bucket of the manifests of all jobs, by name.
const JOBS_BUCKET: &str = "opilio_jobs";

/// Object store of the files of all jobs, by digest. It sends one message at a time and waits for the answer to each.
const FILES_STORE: &str = "opilio_files";

/// Version of a job's streams and messages.
const FORMAT: u32 = 1;

/// Most streams of one kind that a job may have.
const STREAMS_MAX: u16 = 256;

/// Largest file of a job. Profiles, seeds and components are smaller by far.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Size of the messages that a file is cut into. NATS accepts 1 MiB by default.
const CHUNK_BYTES: usize = 512 * 1024;

/// A job of the cluster.
#[derive(Clone)]
pub struct ClusterJob {
    pub(crate) cluster: Cluster,
    pub(crate) name: String,
    pub(crate) manifest: JobManifest,
    /// Parts, budgets, figures, and what each node has applied.
    pub(crate) state: Bucket,
    links: Vec<Stream<()>>,
    pub(crate) commands: Stream<()>,
}

/// Facts of a job that all nodes need. They never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobManifest {
    /// Version of streams and messages.
    pub format: u32,
    /// Number of streams for links. Each has one leader among the NATS servers.
    pub streams: u16,
    /// Files by name: profile, seeds, components.
    pub files: BTreeMap<String, StoredFile>,
}

/// The files with which a node starts a job, by name.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobInputs<'f> {
    /// Files that must be the same on all nodes.
    pub same: &'f [(&'f str, &'f [u8])],
    /// Further files. A job has those of the node that created it.
    pub more: &'f [(&'f str, &'f [u8])],
}

/// A file in the object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Its SHA-256, as hexadecimal digits, and its name in the object store.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// Limits of a job in JetStream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobStorage {
    /// Number of streams for links. Default 4: a stream stores about as much as one core and one disk can write.
    pub streams: u16,
    /// Largest size of all links together that their owners have not read. At the limit sending fails; nothing is thrown away.
    pub link_bytes_max: Option<u64>,
}

impl Default for JobStorage {
    fn default() -> Self {
        Self {
            streams: 4,
            link_bytes_max: None,
        }
    }
}

impl std::fmt::Debug for ClusterJob {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClusterJob")
            .field("name", &self.name)
            .field("manifest", &self.manifest)
            .finish_non_exhaustive()
    }
}

impl ClusterJob {
    /// Creates a job with these files. A creation that was cut short can be repeated.
    ///
    /// # Errors
    /// There is a job of this name, its name or its storage is invalid, or NATS fails.
    pub async fn create(
        cluster: &Cluster,
        name: &str,
        files: &[(&str, &[u8])],
        storage: JobStorage,
    ) -> Result<Self, ClusterError> {
        check_name("name of a job", name)?;
        let streams = storage.streams;
        if !(1..=STREAMS_MAX).contains(&streams) {
            return Err(ClusterError::Config(format!(
                "invalid number of streams {streams}; write 1 to {STREAMS_MAX}"
            )));
        }
        let jobs = jobs_bucket(cluster).await?;
        let known = jobs.read(name).await?;
        let exists = || ClusterError::JobExists {
            job: name.to_owned(),
        };
        if known.as_ref().is_some_and(|entry| entry.value.is_some()) {
            return Err(exists());
        }
        let store = files_store(cluster).await?;
        let mut manifest = JobManifest {
            format: FORMAT,
            streams,
            files: BTreeMap::new(),
        };
        for (file, content) in files {
            let stored = store_file(&store, content).await?;
            manifest.files.insert((*file).to_owned(), stored);
        }
        create_streams(cluster, name, storage).await?;
        let json = serde_json::to_vec(&manifest).unwrap_or_default();
        match jobs
            .write(name, json, known.map_or(0, |entry| entry.revision))
            .await
        {
            Ok(_) => Self::assemble(cluster, name, manifest).await,
            Err(BucketError::Conflict) => Err(exists()),
            Err(BucketError::Failed(error)) => Err(error),
        }
    }

    /// Creates a job with these files, or opens the job of this name if it has the same files. Files that the object store has lost
    /// are stored again.
    ///
    /// # Errors
    /// The job of this name has other files, or as [`Self::create`].
    pub async fn create_or_open(
        cluster: &Cluster,
        name: &str,
        inputs: JobInputs<'_>,
        storage: JobStorage,
    ) -> Result<Self, ClusterError> {
        let files = [inputs.same, inputs.more].concat();
        match Self::create(cluster, name, &files, storage).await {
            Err(ClusterError::JobExists { .. }) => {}
            created => return created,
        }
        let job = Self::open(cluster, name).await?;
        job.check_files(inputs.same)?;
        let store = files_store(cluster).await?;
        for (file, content) in files {
            if job.manifest.files.get(file) == Some(&digest(content)) {
                store_file(&store, content).await?;
            }
        }
        Ok(job)
    }

    /// The names of all jobs of a cluster, sorted.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn names(connection: &ClusterConnection) -> Result<Vec<String>, ClusterError> {
        let Some(jobs) = Bucket::find(&connection.data, JOBS_BUCKET).await? else {
            return Ok(Vec::new());
        };
        let entries = jobs.list(">").await?.into_iter();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.value.is_some())
            .map(|entry| entry.key)
            .collect();
        names.sort();
        Ok(names)
    }

    /// Checks that the job has these files.
    ///
    /// # Errors
    /// [`ClusterError::OtherFile`].
    pub fn check_files(&self, files: &[(&str, &[u8])]) -> Result<(), ClusterError> {
        for (file, content) in files {
            if self.manifest.files.get(*file) != Some(&digest(content)) {
                return Err(ClusterError::OtherFile {
                    job: self.name.clone(),
                    file: (*file).to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Opens a job that another node has created.
    ///
    /// # Errors
    /// There is no such job, it is of another version, or NATS fails.
    pub async fn open(cluster: &Cluster, name: &str) -> Result<Self, ClusterError> {
        check_name("name of a job", name)?;
        let unknown = || ClusterError::UnknownJob {
            job: name.to_owned(),
        };
        let entry = jobs_bucket(cluster)
            .await?
            .read(name)
            .await?
            .ok_or_else(unknown)?;
        let value = entry.value.ok_or_else(unknown)?;
        let malformed = || ClusterError::Malformed {
            kind: "manifest of a job",
            stream: format!("KV_{JOBS_BUCKET}"),
            sequence: entry.revision,
        };
        let manifest: JobManifest = serde_json::from_slice(&value).map_err(|_| malformed())?;
        if manifest.format != FORMAT {
            let found = manifest.format;
            return Err(ClusterError::Format {
                found,
                expected: FORMAT,
            });
        }
        if !(1..=STREAMS_MAX).contains(&manifest.streams) {
            return Err(malformed());
        }
        Self::assemble(cluster, name, manifest).await
    }

    async fn assemble(
        cluster: &Cluster,
        name: &str,
        manifest: JobManifest,
    ) -> Result<Self, ClusterError> {
        let connection = &cluster.connection;
        let (jetstream, replicas) = (&connection.data, connection.config.replicas);
        let mut links = Vec::new();
        for number in 0..manifest.streams {
            links.push(stream(jetstream, &link_stream_name(name, number)).await?);
        }
        Ok(Self {
            state: Bucket::open(jetstream, &format!("opilio_job_{name}"), STATE, replicas).await?,
            commands: stream(jetstream, &format!("opilio_{name}_commands")).await?,
            cluster: cluster.clone(),
            name: name.to_owned(),
            manifest,
            links,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its cluster.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its manifest.
    #[must_use]
    pub fn manifest(&self) -> &JobManifest {
        &self.manifest
    }

    /// Reads a file of the job.
    ///
    /// # Errors
    /// The job has no such file, its content does not have the digest of the manifest, or NATS fails.
    pub async fn read_file(&self, file: &str) -> Result<Vec<u8>, ClusterError> {
        let Some(stored) = self.manifest.files.get(file) else {
            return Err(ClusterError::Config(format!(
                "job {:?} has no file {file:?}",
                self.name
            )));
        };
        self.read_stored(file, stored).await
    }

    /// Stores a file that a command names.
    ///
    /// # Errors
    /// The file is too large, or NATS fails.
    pub async fn store_file(&self, content: &[u8]) -> Result<StoredFile, ClusterError> {
        store_file(&files_store(&self.cluster).await?, content).await
    }

    /// Reads a stored file. `file` is its name in errors.
    ///
    /// # Errors
    /// There is no such file, its content does not have the digest, or NATS fails.
    pub async fn read_stored(
        &self,
        file: &str,
        stored: &StoredFile,
    ) -> Result<Vec<u8>, ClusterError> {
        let store = files_store(&self.cluster).await?;
        let damaged = || ClusterError::Damaged {
            job: self.name.clone(),
            file: file.to_owned(),
            digest: stored.sha256.clone(),
        };
        let mut object = store
            .get(&stored.sha256)
            .await
            .map_err(|error| match error.kind() {
                GetErrorKind::NotFound => ClusterError::FileMissing {
                    job: self.name.clone(),
                    file: file.to_owned(),
                    digest: stored.sha256.clone(),
                },
                _ => ClusterError::of_request("a question for a file", error),
            })?;
        let mut content = Vec::new();
        // An object that is too long is damaged, and is not read to its end.
        let read = (&mut object)
            .take(stored.bytes.saturating_add(1).min(FILE_BYTES_MAX))
            .read_to_end(&mut content)
            .await;
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => damaged(),
            _ => ClusterError::of_request("a question for a file", error),
        })?;
        match digest(&content) == *stored {
            true => Ok(content),
            false => Err(damaged()),
        }
    }

    /// The stream and the subject of links into a partition.
    pub(crate) fn links(&self, partition: Partition) -> (&Stream<()>, String) {
        let number = self.stream(partition);
        let subject = format!("opilio.{}.links.{number}.{partition}", self.name);
        (&self.links[number], subject)
    }

    /// The number of the stream of links into a partition.
    pub(crate) fn stream(&self, partition: Partition) -> usize {
        partition.index() % self.links.len()
    }

    /// All streams of links.
    pub(crate) fn link_streams(&self) -> &[Stream<()>] {
        &self.links
    }

    pub(crate) fn command_subject(&self) -> String {
        format!("opilio.{}.commands", self.name)
    }
}

const STATE: &str = "Opilio: parts, budgets and nodes of a job";

async fn jobs_bucket(cluster: &Cluster) -> Result<Bucket, ClusterError> {
    let connection = &cluster.connection;
    let replicas = connection.config.replicas;
    Bucket::open(&connection.data, JOBS_BUCKET, "Opilio: jobs", replicas).await
}

async fn files_store(cluster: &Cluster) -> Result<ObjectStore, ClusterError> {
    let connection = &cluster.connection;
    object_store(&connection.data, FILES_STORE, connection.config.replicas).await
}

/// Opens an object store, or creates it.
async fn object_store(
    jetstream: &Context,
    name: &str,
    replicas: usize,
) -> Result<ObjectStore, ClusterError> {
    let error = match jetstream.get_object_store(name).await {
        Ok(store) => return Ok(store),
        Err(error) => error,
    };
    if jetstream_code(&error) != Some(10_059) {
        return Err(ClusterError::of_request("an object store", error));
    }
    let config = object_store::Config {
        bucket: name.to_owned(),
        num_replicas: replicas,
        ..object_store::Config::default()
    };
    let created = jetstream.create_object_store(config).await;
    created.map_err(|error| creation_error("an object store", replicas, error))
}

async fn stream(jetstream: &Context, name: &str) -> Result<Stream<()>, ClusterError> {
    let stream = jetstream.get_stream_no_info(name).await;
    stream.map_err(|error| ClusterError::of_request("a question for a stream", error))
}

fn link_stream_name(job: &str, number: u16) -> String {
    format!("opilio_{job}_links_{number}")
}

fn digest(content: &[u8]) -> StoredFile {
    StoredFile {
        sha256: HEXLOWER.encode(&Sha256::digest(content)),
        bytes: content.len() as u64,
    }
}

/// Stores a file under its digest, unless it is there. Another content of this name is replaced.
async fn store_file(store: &ObjectStore, content: &[u8]) -> Result<StoredFile, ClusterError> {
    let stored = digest(content);
    if stored.bytes > FILE_BYTES_MAX {
        let (bytes, max) = (content.len(), FILE_BYTES_MAX as usize);
        return Err(ClusterError::TooLarge { bytes, max });
    }
    // As object stores write the digest of a content.
    let written = format!("SHA-256={}", BASE64URL.encode(&Sha256::digest(content)));
    match store.info(&stored.sha256).await {
        Ok(info) if !info.deleted && info.digest.as_ref() == Some(&written) => return Ok(stored),
        Ok(_) => {}
        Err(error) if error.kind() == InfoErrorKind::NotFound => {}
        Err(error) => return Err(ClusterError::of_request("a question for a file", error)),
    }
    let metadata = ObjectMetadata {
        name: stored.sha256.clone(),
        chunk_size: Some(CHUNK_BYTES),
        ..ObjectMetadata::default()
    };
    let put = store.put(metadata, &mut Cursor::new(content)).await;
    put.map_err(|error| ClusterError::of_request("a file", error))?;
    Ok(stored)
}

async fn create_streams(
    cluster: &Cluster,
    job: &str,
    storage: JobStorage,
) -> Result<(), ClusterError> {
    let limit = storage.link_bytes_max;
    let share = limit.map_or(-1, |limit| {
        i64::try_from(limit / u64::from(storage.streams)).unwrap_or(i64::MAX)
    });
    for number in 0..storage.streams {
        let name = link_stream_name(job, number);
        let subject = format!("opilio.{job}.links.{number}.*");
        create_stream(cluster, name, subject, share).await?;
    }
    let (name, subject) = (
        format!("opilio_{job}_commands"),
        format!("opilio.{job}.commands"),
    );
    create_stream(cluster, name, subject, -1).await
}

async fn create_stream(
    cluster: &Cluster,
    name: String,
    subject: String,
    max_bytes: i64,
) -> Result<(), ClusterError> {
    let replicas = cluster.config().replicas;
    let config = stream::Config {
        name,
        subjects: vec![subject],
        max_bytes,
        // The default of NATS throws the oldest away, which here would lose URIs without a word.
        discard: DiscardPolicy::New,
        retention: RetentionPolicy::Limits,
        num_replicas: replicas,
        ..stream::Config::default()
    };
    let created = cluster.connection.data.create_stream(config).await;
    created
        .map(drop)
        .map_err(|error| creation_error("a stream", replicas, error))
}
