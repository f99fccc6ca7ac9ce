//! Cookies of the job: a jar for each registrable domain. The jars are in the frontier's store, so that a killed crawl keeps its
//! sessions when it is resumed. Memory holds a limited number of jars.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use opilio_fetch::ResponseHead;
use opilio_fetch::cookies::{Cookie, Jar, jar_name, read_netscape};
use opilio_frontier::SharedFrontier;
use opilio_uri::Uri;

use crate::servers::{keep, stored};

/// Maximum of cookie text held in memory, in bytes. Beyond it, all jars are dropped from memory, and needed jars are read from the
/// store.
const BYTES_HELD_MAX: usize = 32 << 20;

/// Size of a jar without the text of its cookies, in bytes.
const JAR_BYTES: usize = 256;

/// Key in the store for the digest of the cookie file that was read last.
const FILE_KEY: &str = "cookie-file";

/// Prefix of a jar's name in the store.
const JAR_KEY: &str = "cookies:";

/// All cookies of the job.
#[derive(Default)]
pub(crate) struct Cookies {
    held: Mutex<CachedJars>,
}

#[derive(Default)]
struct CachedJars {
    jars: HashMap<String, Jar>,
    bytes: usize,
}

impl Cookies {
    /// Returns the Cookie header for a request.
    pub(crate) fn header(
        &self,
        frontier: &SharedFrontier,
        uri: &Uri,
        now: Timestamp,
    ) -> Option<String> {
        let name = jar_name(uri.host()?);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.jar(frontier, &name).header(uri, now)
    }

    /// Stores the cookies that a response sets.
    pub(crate) fn receive(
        &self,
        frontier: &SharedFrontier,
        uri: &Uri,
        head: &ResponseHead,
        per_host: usize,
        now: Timestamp,
    ) -> Result<(), opilio_frontier::FrontierError> {
        let (Some(host), Some(_)) = (uri.host(), head.first("set-cookie")) else {
            return Ok(());
        };
        let name = jar_name(host);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut jar = held.jar(frontier, &name).clone();
        let mut is_changed = false;
        for header in head.all("set-cookie") {
            match jar.receive(uri, header, per_host, now) {
                Ok(()) => is_changed = true,
                Err(problem) => tracing::debug!(%uri, "cookie dropped: {problem}"),
            }
        }
        if is_changed {
            held.put(frontier, name, jar)?;
        }
        Ok(())
    }

    /// Loads the cookies of a file, unless it was read before and has not changed since. Returns the number of cookies and the
    /// errors of malformed lines; `None` if the file was not read again.
    pub(crate) fn load(
        &self,
        frontier: &SharedFrontier,
        text: &str,
        per_host: usize,
        now: Timestamp,
    ) -> Result<Option<(usize, Vec<String>)>, opilio_frontier::FrontierError> {
        let digest = opilio_fetch::PayloadDigest::of(text.as_bytes()).0;
        if stored::<[u8; 20]>(frontier, FILE_KEY) == Some(digest) {
            return Ok(None);
        }
        let (cookies, problems) = read_netscape(text, now);
        let count = cookies.len();
        let mut by_jar: HashMap<String, Vec<Cookie>> = HashMap::new();
        for cookie in cookies {
            let jar = jar_name(cookie.domain());
            by_jar.entry(jar).or_default().push(cookie);
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, cookies) in by_jar {
            let mut jar = held.jar(frontier, &name).clone();
            for cookie in cookies {
                jar.put(cookie, per_host, now);
            }
            held.put(frontier, name, jar)?;
        }
        keep(frontier, FILE_KEY, &digest)?;
        let problems = problems.iter().map(ToString::to_string).collect();
        Ok(Some((count, problems)))
    }

    /// Writes all cookies to a file in Netscape's format, which other tools read. The file is written whole or not at all.
    pub(crate) fn save(
        frontier: &SharedFrontier,
        file: &Path,
        now: Timestamp,
    ) -> Result<(), SaveProblem> {
        let frontier = frontier.lock();
        let mut text = "# Netscape HTTP Cookie File\n".to_owned();
        for (_, bytes) in frontier.caller_values(JAR_KEY)? {
            let Ok(jar) = postcard::from_bytes::<Jar>(&bytes) else {
                continue;
            };
            for line in jar.cookies(now).filter_map(Cookie::netscape) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        let partial = file.with_extension("partial");
        std::fs::write(&partial, text)?;
        std::fs::rename(&partial, file)?;
        Ok(())
    }
}

/// Error of saving cookies.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveProblem {
    #[error("cannot read the cookies")]
    Frontier(#[from] opilio_frontier::FrontierError),
    #[error("cannot write the file")]
    Io(#[from] std::io::Error),
}

impl CachedJars {
    fn jar(&mut self, frontier: &SharedFrontier, name: &str) -> &Jar {
        if !self.jars.contains_key(name) {
            let jar: Jar = stored(frontier, &key(name)).unwrap_or_default();
            self.hold(name.to_owned(), jar);
        }
        self.jars.entry(name.to_owned()).or_default()
    }

    fn put(
        &mut self,
        frontier: &SharedFrontier,
        name: String,
        jar: Jar,
    ) -> Result<(), opilio_frontier::FrontierError> {
        keep(frontier, &key(&name), &jar)?;
        self.hold(name, jar);
        Ok(())
    }

    fn hold(&mut self, name: String, jar: Jar) {
        let bytes = jar.bytes() + JAR_BYTES;
        if self.bytes + bytes > BYTES_HELD_MAX {
            self.jars.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some(old) = self.jars.insert(name, jar) {
            self.bytes -= (old.bytes() + JAR_BYTES).min(self.bytes);
        }
    }
}

fn key(name: &str) -> String {
    format!("{JAR_KEY}{name}")
}
