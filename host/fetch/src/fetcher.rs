//! The fetcher: the entry point of this crate. A crawl has one.

use std::sync::Arc;

use jiff::Timestamp;

use crate::abort::Abort;
use crate::config::{FetcherBuildError, FetcherConfig};
use crate::dns::Resolution;
use crate::exchange::{Exchange, HeadVerdict, Request};
use crate::failure::FetchFailure;
use crate::head::ResponseHead;
use crate::parts::Parts;
use crate::throttle::Throttle;
use crate::{ftp, http, whois};

/// Resolves names and fetches URIs. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Fetcher {
    parts: Arc<Parts>,
}

impl Fetcher {
    /// Reads `/etc/hosts` and root certificates. It opens no socket.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn new(config: FetcherConfig) -> Result<Self, FetcherBuildError> {
        let parts = Parts::new(config)?;
        Ok(Fetcher {
            parts: Arc::new(parts),
        })
    }

    /// Creates a fetcher with other settings. It shares connections, scratch space, [`Self::throttle`] and
    /// [`Self::abort_handle`] with this one. `scratch_dir` and the limits for all streams together in `config` are ignored. If
    /// `hosts` and `name_servers` are the same, their set-up is shared too.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn with(&self, config: FetcherConfig) -> Result<Self, FetcherBuildError> {
        let parts = self.parts.with(config)?;
        Ok(Fetcher {
            parts: Arc::new(parts),
        })
    }

    #[cfg(test)]
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// A handle that ends all exchanges early.
    pub fn abort_handle(&self) -> Abort {
        self.parts.cut.clone()
    }

    /// The limits for all exchanges together.
    pub fn throttle(&self) -> Throttle {
        self.parts.throttle.clone()
    }

    /// The configuration of this fetcher.
    pub fn config(&self) -> &FetcherConfig {
        &self.parts.config
    }

    /// Looks up a host as a URI names it: a name, or an address (IPv6 in brackets or not). `now` dates the record.
    ///
    /// # Errors
    /// [`FetchFailure::NoAddress`] and [`FetchFailure::Lookup`], both −1, the latter also if the answer takes longer than
    /// `total_timeout`; [`FetchFailure::Stopped`]. The address policy is checked when connecting, not here.
    pub async fn resolve(&self, host: &str, now: Timestamp) -> Result<Resolution, FetchFailure> {
        let limit = self.parts.config.total_timeout;
        let answer = tokio::time::timeout(limit, self.parts.names.resolve(host, now));
        let answer = self.parts.cut.unless_made(answer).await;
        answer.ok_or(FetchFailure::Stopped)?.unwrap_or_else(|_| {
            Err(FetchFailure::Lookup {
                host: host.to_owned(),
                reason: format!("no answer after {limit:?}"),
            })
        })
    }

    /// Fetches one URI. Redirects are not followed. `on_head` is called once the head of the final response is complete,
    /// whatever its status. Until it answers, the server waits.
    ///
    /// The result is always an [`Exchange`]; [`Exchange::status`] has its status.
    pub async fn http(
        &self,
        request: Request,
        on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
    ) -> Exchange {
        http::fetch(&self.parts, &request, on_head).await
    }

    /// Fetches one `ftp` or `ftps` URI: a file, or the listing of a directory. `on_head` is called before the content comes.
    /// The exchange's `request_bytes` are the FTP conversation, and its status is that of the server's last reply.
    pub async fn ftp(
        &self,
        request: Request,
        on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
    ) -> Exchange {
        ftp::fetch(&self.parts, &request, on_head).await
    }

    /// Queries one `whois` URI. The status of an answer is [`WHOIS_OK`](crate::WHOIS_OK).
    pub async fn whois(&self, request: Request) -> Exchange {
        whois::fetch(&self.parts, &request).await
    }
}
