//! Serves the files of a directory under several host names, for tests with real pages by other authors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::{Reply, Site};

/// A directory whose files are in memory.
#[derive(Clone)]
pub struct Directory {
    files: Arc<Vec<(String, &'static str, Bytes)>>,
}

impl Directory {
    /// Reads every file below `root`. Symbolic links that leave `root` are not followed.
    ///
    /// # Errors
    /// A file or folder cannot be read.
    pub fn read(root: &Path) -> io::Result<Directory> {
        let root = root.canonicalize()?;
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let Ok(real) = path.canonicalize() else {
                    continue;
                };
                if !real.starts_with(&root) {
                    continue;
                }
                if real.is_dir() {
                    if !path.is_symlink() {
                        folders.push(path);
                    }
                } else {
                    files.push((
                        target(&root, &path),
                        media_type(&path),
                        Bytes::from(fs::read(&real)?),
                    ));
                }
            }
        }
        files.sort();
        Ok(Directory {
            files: Arc::new(files),
        })
    }

    /// Targets (paths) of all files, sorted.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(target, ..)| target.as_str())
    }

    /// The content of one file.
    pub fn content(&self, target: &str) -> Option<&Bytes> {
        let place = self
            .files
            .binary_search_by(|(name, ..)| name.as_str().cmp(target))
            .ok()?;
        Some(&self.files[place].2)
    }

    /// Serves the files on a site; `/folder/` answers with its `index.html`.
    pub fn serve(&self, site: &mut Site) {
        let directory = self.clone();
        site.rest(move |seen| directory.reply(&seen.target));
    }

    /// Like [`serve`](Directory::serve), with an ETag for each file, and 304 to a client that has it.
    pub fn serve_with_validators(&self, site: &mut Site) {
        let directory = self.clone();
        site.rest(move |seen| {
            let reply = directory.reply(&seen.target);
            if reply.status != 200 {
                return reply;
            }
            // The files never change, so their lengths are sufficient as validators.
            let tag = format!("\"{}\"", reply.body.len());
            let known = seen.headers.get(http::header::IF_NONE_MATCH);
            match known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
                true => Reply {
                    status: 304,
                    headers: vec![("etag", tag)],
                    ..Reply::ok("", Bytes::new())
                },
                false => reply.with("etag", tag),
            }
        });
    }

    fn reply(&self, target: &str) -> Reply {
        let path = target.split('?').next().unwrap_or_default();
        let path = percent_decode(path);
        let path = if path.ends_with('/') {
            format!("{path}index.html")
        } else {
            path
        };
        match self
            .files
            .binary_search_by(|(name, ..)| name.as_str().cmp(&path))
        {
            Ok(place) => Reply::ok(self.files[place].1, self.files[place].2.clone()),
            Err(_) => Reply::status(404),
        }
    }
}

fn target(root: &Path, path: &Path) -> String {
    let relative: PathBuf = path.strip_prefix(root).unwrap_or(path).to_owned();
    let mut target = String::new();
    for part in relative.components() {
        target.push('/');
        target.push_str(&part.as_os_str().to_string_lossy());
    }
    target
}

fn percent_decode(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) if byte == b'%' => {
                bytes.push(value);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn media_type(path: &Path) -> &'static str {
    match path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default()
    {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" => "application/json",
        "png" => "image/png",
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}
