//! Objects of a store that are not files of the job: snapshots of parts of a shared crawl. Each has a path in the store, and can be
//! read back and removed.

use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};

use object_store::ObjectStoreExt as _;
use tokio::io::AsyncWriteExt as _;

use super::Checksums;
use super::failure::{FileStoreError, failure};
use super::folder_store::FolderStore;
use super::store::{Bucket, FileStore, StoreLocation, verify};

impl FileStore {
    /// Stores a file under a path in the store, replaces an earlier object there, and verifies the copy.
    ///
    /// # Errors
    /// [`FileStoreError`]; the file can be stored later.
    pub async fn put_object(&self, file: &Path, path: &Path) -> Result<Checksums, FileStoreError> {
        let sums = self.checksums(file).await?;
        match &self.place {
            StoreLocation::Folder(folder) => folder.copy(file, path).await?,
            StoreLocation::Bucket(bucket) => bucket.upload(file, path, &sums).await?,
        }
        verify(self.stored(path).await?, &sums, &self.object_url(path))?;
        Ok(sums)
    }

    /// Writes the object under a path in the store to a file, and compares its SHA-256 (hexadecimal), if that is known.
    ///
    /// # Errors
    /// The store has no such object, it has another digest, or [`FileStoreError`].
    pub async fn get_object(
        &self,
        path: &Path,
        to: &Path,
        sha256: Option<&str>,
    ) -> Result<(), FileStoreError> {
        match &self.place {
            StoreLocation::Folder(folder) => folder.fetch(path, to).await?,
            StoreLocation::Bucket(bucket) => bucket.download(path, to).await?,
        }
        let sums = self.checksums(to).await?;
        match sha256.is_none_or(|expected| sums.sha256 == expected) {
            true => Ok(()),
            false => Err(FileStoreError::Unverified {
                url: self.object_url(path),
                found: format!("{} bytes, SHA-256 {}", sums.size, sums.sha256),
            }),
        }
    }

    /// Returns `true` if the store has an object under a path.
    ///
    /// # Errors
    /// The store refuses or fails.
    pub async fn has_object(&self, path: &Path) -> Result<bool, FileStoreError> {
        Ok(self.stored(path).await?.is_some())
    }

    /// Removes the object under a path in the store, if there is one.
    ///
    /// # Errors
    /// The store refuses or fails.
    pub async fn remove_object(&self, path: &Path) -> Result<(), FileStoreError> {
        match &self.place {
            StoreLocation::Folder(folder) => folder.remove(path).await,
            StoreLocation::Bucket(bucket) => {
                let removed = bucket.store.delete(&bucket.key(path)?).await;
                match removed {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                    Err(problem) => Err(failure(&problem)),
                }
            }
        }
    }

    /// Returns the URL of the object under a path in the store.
    pub fn object_url(&self, path: &Path) -> String {
        format!("{}/{}", self.url(), path.display())
    }
}

impl Bucket {
    async fn download(&self, path: &Path, to: &Path) -> Result<(), FileStoreError> {
        let found = self.store.get(&self.key(path)?).await;
        let mut stream = found.map_err(|problem| failure(&problem))?.into_stream();
        let unwritable = |source| FileStoreError::Folder {
            file: to.to_owned(),
            source,
        };
        let mut file = tokio::fs::File::create(to).await.map_err(unwritable)?;
        while let Some(bytes) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            let bytes = bytes.map_err(|problem| failure(&problem))?;
            file.write_all(&bytes).await.map_err(unwritable)?;
        }
        file.sync_all().await.map_err(unwritable)
    }
}

impl FolderStore {
    /// Copies the file under a path in the folder.
    async fn fetch(&self, path: &Path, to: &Path) -> Result<(), FileStoreError> {
        let copy = self.place_of(path)?;
        let target = to.to_owned();
        let copied = tokio::task::spawn_blocking(move || match std::fs::copy(&copy, &target) {
            Ok(_) => Ok(()),
            Err(source) => Err(FileStoreError::Folder { file: copy, source }),
        });
        in_thread(copied.await)
    }

    /// Removes the file under a path in the folder, and folders that are then empty.
    async fn remove(&self, path: &Path) -> Result<(), FileStoreError> {
        let (copy, depth) = (self.place_of(path)?, path.components().count());
        let removed = tokio::task::spawn_blocking(move || {
            match std::fs::remove_file(&copy) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(FileStoreError::Folder { file: copy, source });
                }
                _ => {}
            }
            let parents = copy.ancestors().skip(1).take(depth.saturating_sub(1));
            for parent in parents.map(PathBuf::from) {
                // A folder with other files stays.
                if std::fs::remove_dir(parent).is_err() {
                    break;
                }
            }
            Ok(())
        });
        in_thread(removed.await)
    }
}

fn in_thread(
    done: Result<Result<(), FileStoreError>, tokio::task::JoinError>,
) -> Result<(), FileStoreError> {
    done.map_err(|panic| FileStoreError::Store(panic.to_string()))?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::time::Duration;

    use opilio_profile::{ArchiveStore, StorePlace};

    use super::*;

    #[tokio::test]
    async fn an_object_is_read_back_unchanged_or_fails() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("store");
        fs::create_dir(&folder).unwrap();
        let settings = ArchiveStore {
            place: StorePlace::Folder(folder.clone()),
            delete_local: false,
            read_back: false,
            uploads: 1,
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(1),
            finish_within: Duration::from_secs(1),
        };
        let store = FileStore::open(&settings, home.path()).unwrap();
        let (file, copy) = (home.path().join("file"), home.path().join("copy"));
        let path = Path::new("news/a-1/snapshots/1/state/x");
        let mut digest = String::new();
        for text in ["one", "two"] {
            fs::write(&file, text).unwrap();
            digest = store.put_object(&file, path).await.unwrap().sha256;
        }
        store.get_object(path, &copy, Some(&digest)).await.unwrap();
        assert!(store.has_object(path).await.unwrap());
        assert_eq!(fs::read_to_string(&copy).unwrap(), "two");
        fs::write(folder.join(path), "bad").unwrap();
        let bad = store
            .get_object(path, &copy, Some(&digest))
            .await
            .unwrap_err();
        assert!(matches!(bad, FileStoreError::Unverified { .. }), "{bad:?}");

        fs::write(folder.join("news/a-1/kept"), "").unwrap();
        store.remove_object(path).await.unwrap();
        store.remove_object(path).await.unwrap();
        assert!(!store.has_object(path).await.unwrap());
        let gone = store
            .get_object(path, &copy, Some(&digest))
            .await
            .unwrap_err();
        assert!(matches!(gone, FileStoreError::Folder { .. }), "{gone:?}");
        assert!(!folder.join("news/a-1/snapshots").exists());
        assert!(folder.join("news/a-1/kept").exists());
    }
}
