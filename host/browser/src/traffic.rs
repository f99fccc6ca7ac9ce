//! Requests of one page: finished requests with their results, and requests in flight.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, header};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum bytes of a URI and of a method that a page may request. Longer ones could fill the memory of the crawl.
const URI_BYTES_MAX: usize = 16 * 1024;

/// Maximum length of a media type: two names of 127 characters (RFC 6838 §4.2).
const MEDIA_TYPE_BYTES_MAX: usize = 255;

/// One request of a page, as listed in `urn:pageinfo:` records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageResource {
    /// Request method.
    pub method: String,
    /// Absolute URI.
    pub uri: String,
    /// HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// Media type of the response, without parameters. `None` if there is no valid one.
    pub media_type: Option<String>,
    /// Use of the response in the page (`Sec-Fetch-Dest`), such as `image`. Chromium sends it for https and loopback only.
    pub destination: Option<String>,
    /// Bytes of the body that the page has received, with content coding.
    pub received: u64,
    /// The end of the request.
    pub result: ResourceResult,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceResult {
    /// The request has not ended.
    InFlight,
    /// The response is complete.
    Complete,
    /// The browser cancelled the request, or the response was interrupted.
    Cancelled,
    /// The request has no response, for this reason.
    Rejected(String),
    /// A WebSocket was opened.
    WebSocket,
}

/// Requests of one page. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct PageTraffic {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    requests_max: usize,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    resources: Vec<PageResource>,
    /// Number of requests that must end before the network is idle.
    in_flight: usize,
    last_change: Instant,
    /// Number of requests beyond the limit.
    refused: u64,
    /// Failed requests. Chromium repeats some of them on a new connection.
    rejected: HashSet<(Method, String)>,
}

/// One request in flight. Dropping it ends the request as cancelled.
#[derive(Debug)]
pub(crate) struct InFlight {
    shared: Arc<Shared>,
    index: usize,
    /// `true` if the network is not idle before the request has ended.
    counts: bool,
    is_ended: bool,
}

impl PageTraffic {
    pub(crate) fn new(requests_max: usize) -> PageTraffic {
        PageTraffic {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    resources: Vec::new(),
                    in_flight: 0,
                    last_change: Instant::now(),
                    refused: 0,
                    rejected: HashSet::new(),
                }),
                requests_max,
                changed: watch::Sender::new(()),
            }),
        }
    }

    /// Begins a request. `Err` has the reason for which it is refused.
    pub(crate) fn begin<B>(&self, request: &Request<B>) -> Result<InFlight, String> {
        let uri = request.uri().to_string();
        let mut state = self.shared.lock();
        if state
            .rejected
            .contains(&(request.method().clone(), uri.clone()))
        {
            return Err("it has failed before".to_owned());
        }
        let lengths = [
            ("URI", uri.len()),
            ("method", request.method().as_str().len()),
        ];
        if let Some((part, length)) = lengths.into_iter().find(|it| it.1 > URI_BYTES_MAX) {
            state.refused += 1;
            return Err(format!("{part} of {length} bytes"));
        }
        if state.resources.len() >= self.shared.requests_max {
            state.refused += 1;
            return Err(format!("limit of {} requests", self.shared.requests_max));
        }
        let index = state.resources.len();
        state.resources.push(PageResource {
            method: request.method().to_string(),
            uri,
            status: None,
            media_type: None,
            destination: text(request.headers(), "sec-fetch-dest"),
            received: 0,
            result: ResourceResult::InFlight,
        });
        state.in_flight += 1;
        self.shared.touch(state);
        Ok(InFlight {
            shared: self.shared.clone(),
            index,
            counts: true,
            is_ended: false,
        })
    }

    /// Returns the number of requests that the page waits for. Event streams and WebSockets do not count, because they do not end.
    pub(crate) fn in_flight(&self) -> usize {
        self.shared.lock().in_flight
    }

    /// Returns the number of requests beyond the limit.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.lock().refused
    }

    /// Returns all requests so far, in the order in which they began.
    pub(crate) fn resources(&self) -> Vec<PageResource> {
        self.shared.lock().resources.clone()
    }

    /// Waits until no request was in flight for this time, counted from the call.
    pub(crate) async fn idle(&self, quiet: Duration) {
        let began = Instant::now();
        let mut changed = self.shared.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let (in_flight, quiet_at) = {
                let state = self.shared.lock();
                (state.in_flight, state.last_change.max(began) + quiet)
            };
            if in_flight > 0 {
                // The sender lives as long as `self`.
                let _ = changed.changed().await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep_until(quiet_at) => return,
                _ = changed.changed() => {}
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self, mut state: MutexGuard<'_, State>) {
        state.last_change = Instant::now();
        drop(state);
        self.changed.send_replace(());
    }
}

impl InFlight {
    /// Records the head of the response.
    pub(crate) fn head<B>(&mut self, response: &Response<B>) {
        let media_type = text(response.headers(), header::CONTENT_TYPE.as_str());
        let media_type = media_type.map(|it| match it.split_once(';') {
            Some((essence, _)) => essence.trim().to_ascii_lowercase(),
            None => it.trim().to_ascii_lowercase(),
        });
        let media_type = media_type.filter(|it| it.len() <= MEDIA_TYPE_BYTES_MAX);
        let is_endless = media_type.as_deref() == Some("text/event-stream");
        let mut state = self.shared.lock();
        let resource = &mut state.resources[self.index];
        resource.status = Some(response.status().as_u16());
        resource.media_type = media_type;
        drop(state);
        if is_endless {
            self.stop_counting();
        }
    }

    /// Records bytes of the body.
    pub(crate) fn received(&self, bytes: usize) {
        self.shared.lock().resources[self.index].received += bytes as u64;
    }

    /// Records that the response is complete.
    pub(crate) fn complete(&mut self) {
        self.end(ResourceResult::Complete);
    }

    /// Records that there is no response.
    pub(crate) fn reject(mut self, reason: String) {
        let mut state = self.shared.lock();
        let resource = &state.resources[self.index];
        let method = resource.method.parse().unwrap_or_default();
        let failed = (method, resource.uri.clone());
        state.rejected.insert(failed);
        drop(state);
        self.end(ResourceResult::Rejected(reason));
    }

    /// Records that a WebSocket was opened.
    pub(crate) fn become_web_socket(mut self) {
        self.end(ResourceResult::WebSocket);
    }

    fn end(&mut self, result: ResourceResult) {
        if !std::mem::replace(&mut self.is_ended, true) {
            self.shared.lock().resources[self.index].result = result;
            self.stop_counting();
        }
    }

    fn stop_counting(&mut self) {
        if std::mem::replace(&mut self.counts, false) {
            let mut state = self.shared.lock();
            state.in_flight -= 1;
            self.shared.touch(state);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.end(ResourceResult::Cancelled);
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_millis(20);

    fn request(uri: &str) -> Request<()> {
        Request::get(uri).body(()).expect("a valid URI")
    }

    #[tokio::test]
    async fn the_network_is_idle_after_a_quiet_time_without_requests() {
        let traffic = PageTraffic::new(10);
        let mut first = traffic.begin(&request("http://a.test/")).expect("allowed");
        let mut idle = std::pin::pin!(traffic.idle(QUIET));
        let still_waits = tokio::time::timeout(2 * QUIET, &mut idle).await;
        assert!(still_waits.is_err(), "it is idle with a request in flight");
        let completed = Instant::now();
        first.complete();
        idle.await;
        assert!(completed.elapsed() >= QUIET, "{:?}", completed.elapsed());
    }

    #[tokio::test]
    async fn the_network_can_be_idle_during_an_event_stream() {
        let traffic = PageTraffic::new(10);
        let mut stream = traffic.begin(&request("http://a.test/")).expect("allowed");
        assert_eq!(traffic.in_flight(), 1);
        let response = Response::builder().header("content-type", "text/event-stream; charset=x");
        stream.head(&response.body(()).expect("a valid head"));
        assert_eq!(traffic.in_flight(), 0);
        traffic.idle(QUIET).await;
        drop(stream);
        assert_eq!(traffic.resources()[0].result, ResourceResult::Cancelled);
        assert_eq!(traffic.in_flight(), 0);
    }

    #[tokio::test]
    async fn requests_beyond_the_limit_and_repeated_failed_requests_are_refused() {
        let traffic = PageTraffic::new(2);
        let first = traffic.begin(&request("http://a.test/")).expect("allowed");
        first.reject("refused: robots.txt".to_owned());
        let again = traffic.begin(&request("http://a.test/"));
        assert_eq!(again.err().as_deref(), Some("it has failed before"));
        let _second = traffic.begin(&request("http://a.test/2")).expect("allowed");
        let third = traffic.begin(&request("http://a.test/3"));
        assert_eq!(third.err().as_deref(), Some("limit of 2 requests"));
        let long = "x".repeat(URI_BYTES_MAX);
        let long = traffic.begin(&request(&format!("http://a.test/{long}")));
        assert_eq!(long.err().as_deref(), Some("URI of 16398 bytes"));
        let long = Request::builder().method("X".repeat(URI_BYTES_MAX + 1).as_str());
        let long = traffic.begin(&long.uri("http://a.test/").body(()).expect("a valid method"));
        assert_eq!(long.err().as_deref(), Some("method of 16385 bytes"));
        assert_eq!(traffic.refused(), 3);
    }

    #[tokio::test]
    async fn media_types_that_are_too_long_are_not_kept() {
        let traffic = PageTraffic::new(2);
        for (media_type, kept) in [
            ("Text/HTML ; charset=x".to_owned(), Some("text/html")),
            ("x".repeat(MEDIA_TYPE_BYTES_MAX + 1), None),
        ] {
            let request = request(&format!("http://a.test/{}", media_type.len()));
            let mut in_flight = traffic.begin(&request).expect("allowed");
            let response = Response::builder().header("content-type", media_type);
            in_flight.head(&response.body(()).expect("a valid head"));
            let last = traffic.resources().pop().expect("a request");
            assert_eq!(last.media_type.as_deref(), kept);
        }
    }
}
