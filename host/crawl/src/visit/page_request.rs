//! One request of a rendered page: its parts as the browser sent them, the exchange with the server, and the channel of its
//! response to the browser.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use opilio_browser::{FetchRejection, PageBody};
use opilio_fetch::{
    Exchange, ExchangeProgress, HeadVerdict, PayloadTap, Request, RequestBody, ResponseHead,
};
use opilio_uri::Uri;
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::{MidFetch, Permit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{CrawlVisit, page_bodies};
use crate::error::Halt;

/// Maximum body of a request in bytes. Only uploads of users are larger.
const REQUEST_BODY_BYTES_MAX: usize = 16 << 20;

/// Maximum bytes of all requests in flight of a page. Without a limit, a page could fill the crawl's memory: it can abandon
/// requests while the crawl still waits for slow servers.
const REQUESTS_BYTES_MAX: usize = 64 << 20;

/// Headers of the browser that are replaced in the request to the server.
const OWN_HEADERS: [HeaderName; 4] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::COOKIE,
    header::CONTENT_TYPE,
];

/// A request, with its body.
pub(crate) struct PageRequest {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    /// Reserved part of the memory for requests of the page.
    _taken: ReservedMemory,
}

/// Memory for the requests of one page.
pub(crate) struct RequestMemory(Arc<Semaphore>);

/// A reserved part of this memory, until it is dropped.
#[derive(Default)]
struct ReservedMemory(Option<OwnedSemaphorePermit>);

/// The channel of a response to the browser. Dropping it ends the body.
pub(super) struct ResponseSender {
    head: Mutex<Option<HeadSender>>,
    payload: mpsc::Sender<Bytes>,
}

type HeadSender = oneshot::Sender<Result<ResponseHead, FetchRejection>>;

/// Returns `true` if exchanges with this method are archived. Responses to other methods have no content, and replay would show
/// them as the content of the URI.
pub(super) fn is_archived(method: &Method) -> bool {
    !matches!(*method, Method::HEAD | Method::OPTIONS)
}

impl PageRequest {
    /// Reads a request of the browser. It reserves memory of its page until it is dropped.
    pub(crate) async fn read(
        request: http::Request<PageBody>,
        room: &RequestMemory,
    ) -> Result<PageRequest, FetchRejection> {
        let (parts, body) = request.into_parts();
        let mut taken = ReservedMemory::default();
        let fields = parts.headers.iter();
        let fields = fields.map(|(name, value)| name.as_str().len() + value.len());
        room.take(fields.sum(), &mut taken)?;
        let uri = Uri::parse(&parts.uri.to_string());
        let uri = uri.map_err(|problem| FetchRejection::refused(problem.to_string()))?;
        Ok(PageRequest {
            method: parts.method,
            uri,
            headers: parts.headers,
            body: collect(body, room, &mut taken).await?,
            _taken: taken,
        })
    }

    /// Returns `true` if this is the request for the document of the page. Browsers may write a URI in another way than the crawl
    /// does, and may change to `https` by themselves.
    pub(super) fn is_for(&self, page: &Uri) -> bool {
        self.method == Method::GET
            && self.uri.scheme() == page.scheme()
            && self.uri.host() == page.host()
            && self.uri.port_or_default() == page.port_or_default()
    }

    /// Returns the request for the server. `decided` has its URI and addresses, and headers that the browser does not set.
    pub(crate) fn for_server(&self, decided: Request) -> Request {
        Request {
            method: Some(self.method.clone()),
            headers: self.headers(decided.headers),
            body: self.body(),
            tap: None,
            // The browser decides about this header, and its cache is empty.
            referer: None,
            if_none_match: None,
            if_modified_since: None,
            login: None,
            received: ExchangeProgress::default(),
            addresses: decided.addresses,
            uri: decided.uri,
        }
    }

    /// Returns the headers for the server: those of the browser, and those of `decided` that the browser does not set.
    fn headers(&self, decided: Vec<(String, String)>) -> Vec<(String, String)> {
        let sent: HashSet<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        let is_cookie = |name: &str| name.eq_ignore_ascii_case("cookie");
        let jar = decided.iter().find(|(name, _)| is_cookie(name));
        let cookies = self.cookies(jar.map(|(_, value)| value.as_str()));
        let missing = decided
            .iter()
            .filter(|(name, _)| !is_cookie(name) && !sent.contains(&*name.to_ascii_lowercase()))
            .cloned();
        let own = self
            .headers
            .iter()
            .filter(|(name, _)| !OWN_HEADERS.contains(name))
            .map(|(name, value)| (name.as_str().to_owned(), text(value)));
        let cookies = cookies.map(|cookies| ("Cookie".to_owned(), cookies));
        missing.chain(own).chain(cookies).collect()
    }

    /// Returns the cookies of the browser, and cookies of the crawl whose names the browser does not have.
    fn cookies(&self, of_crawl: Option<&str>) -> Option<String> {
        let own = self.headers.get_all(header::COOKIE).iter().map(text);
        let own: Vec<String> = own.collect();
        let mut cookies: BTreeMap<&str, &str> = BTreeMap::new();
        for list in of_crawl.into_iter().chain(own.iter().map(String::as_str)) {
            for cookie in list.split(';').map(str::trim).filter(|it| !it.is_empty()) {
                cookies.insert(cookie.split('=').next().unwrap_or_default(), cookie);
            }
        }
        let all: Vec<&str> = cookies.into_values().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn body(&self) -> Option<RequestBody> {
        let content_type = self.headers.get(header::CONTENT_TYPE).map(text);
        (!self.body.is_empty()).then(|| RequestBody {
            content_type: content_type.unwrap_or_default(),
            content: self.body.clone(),
        })
    }
}

impl Default for RequestMemory {
    fn default() -> RequestMemory {
        RequestMemory(Arc::new(Semaphore::new(REQUESTS_BYTES_MAX)))
    }
}

impl RequestMemory {
    /// Reserves memory for more bytes.
    fn take(&self, bytes: usize, taken: &mut ReservedMemory) -> Result<(), FetchRejection> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let more = self.0.clone().try_acquire_many_owned(bytes).map_err(|_| {
            let reason = format!("requests with more than {REQUESTS_BYTES_MAX} bytes in all");
            FetchRejection::refused(reason)
        })?;
        match &mut taken.0 {
            Some(before) => before.merge(more),
            None => taken.0 = Some(more),
        }
        Ok(())
    }
}

impl ResponseSender {
    /// Creates the channel of a response whose payload is sent to `payload`. Returns the receiver of the head.
    pub(super) fn new(
        payload: mpsc::Sender<Bytes>,
    ) -> (
        ResponseSender,
        oneshot::Receiver<Result<ResponseHead, FetchRejection>>,
    ) {
        let (sender, head) = oneshot::channel();
        let sender = ResponseSender {
            head: Mutex::new(Some(sender)),
            payload,
        };
        (sender, head)
    }

    /// Reports that there is no response, unless its head has been sent.
    pub(super) fn reject(&self, rejection: FetchRejection) {
        self.send(Err(rejection));
    }

    /// Resolves once the browser has dropped the request.
    pub(super) async fn gone(&self) {
        self.payload.closed().await;
    }

    /// Resolves once the browser has dropped the request, unless the head of the response has been sent.
    async fn gone_before_head(&self) {
        self.gone().await;
        let is_sent = self.lock().is_none();
        if is_sent {
            std::future::pending::<()>().await;
        }
    }

    fn send(&self, head: Result<ResponseHead, FetchRejection>) {
        let sender = self.lock().take();
        if let Some(sender) = sender {
            // The browser may have closed the connection.
            let _ = sender.send(head);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<HeadSender>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CrawlVisit<'_> {
    /// Makes the exchange for a request of this page, with mid-fetch filters. Returns `None` if the browser dropped the request
    /// before anything was received.
    ///
    /// Cookies and passwords of the crawl are sent to the page's own site only, like cookies in browsers that servers do not
    /// declare for other sites. Otherwise, any page could act on other sites with the crawl's logins.
    pub(super) async fn exchange_for_page(
        &self,
        page: &Uri,
        request: &PageRequest,
        permit: &Permit,
        sender: &ResponseSender,
    ) -> Result<Option<(Exchange, MidFetch)>, Halt> {
        self.until_allowed().await?;
        let memory = match self.pipeline.stacks.mid_fetch.is_empty() {
            true => PluginMemory::default(),
            false => opilio_visit::memory(&self.pipeline, self)?,
        };
        let network = &self.context.network;
        let uri = &self.pipeline.issue.uri;
        let is_same_site = is_same_site(page, uri);
        let method = request.method.as_str();
        let known = is_same_site.then(|| network.credentials.authorization(method, uri));
        let mut decided = self.request(uri, permit, known.flatten());
        if !is_same_site {
            decided
                .headers
                .retain(|(name, _)| !name.eq_ignore_ascii_case("cookie"));
        }
        let server_request = Request {
            tap: Some(PayloadTap::new(sender.payload.clone())),
            ..request.for_server(decided)
        };
        let fetcher = network.fetchers.of(&self.pipeline.settings.fetch);
        let fetcher = fetcher.map_err(|problem| Halt::Fetcher(opilio_stacks::chain(&problem)))?;
        // The first address is the one that the fetcher tries first.
        let address = server_request.addresses.first().map(ToString::to_string);
        let mid_fetch = Mutex::new(MidFetch::default());
        let on_head = async |head: &ResponseHead| {
            let filters = self
                .call_mid_fetch_filters(head, address.clone(), &memory)
                .await;
            let answer = match &filters.verdict {
                Some(verdict) => {
                    sender.reject(FetchRejection::refused(verdict.reason()));
                    HeadVerdict::Abort {
                        reason: verdict.reason().to_owned(),
                    }
                }
                None => {
                    sender.send(Ok(head.clone()));
                    HeadVerdict::Continue
                }
            };
            *mid_fetch.lock().unwrap_or_else(PoisonError::into_inner) = filters;
            answer
        };
        let exchange = tokio::select! {
            exchange = Box::pin(fetcher.http(server_request, on_head)) => Some(exchange),
            () = sender.gone_before_head() => None,
        };
        let mid_fetch = mid_fetch.into_inner();
        let mid_fetch = mid_fetch.unwrap_or_else(PoisonError::into_inner);
        Ok(exchange.map(|exchange| (exchange, mid_fetch)))
    }
}

/// Returns `true` if both hosts have the same registrable domain, or are equal.
fn is_same_site(page: &Uri, target: &Uri) -> bool {
    fn site(uri: &Uri) -> Option<&str> {
        uri.registrable_domain().or_else(|| uri.host())
    }
    site(page).is_some() && site(page) == site(target)
}

/// Reads the whole body of a request.
async fn collect(
    mut body: PageBody,
    room: &RequestMemory,
    taken: &mut ReservedMemory,
) -> Result<Bytes, FetchRejection> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|problem| FetchRejection::failed(problem.to_string()))?;
        let data: &[u8] = frame.data_ref().map_or(&[][..], |data| data);
        room.take(data.len(), taken)?;
        bytes.extend_from_slice(data);
        if bytes.len() > REQUEST_BODY_BYTES_MAX {
            let reason = format!("a request with more than {REQUEST_BODY_BYTES_MAX} bytes");
            return Err(FetchRejection::refused(reason));
        }
    }
    Ok(bytes.into())
}

/// Returns the response of a finished exchange.
pub(crate) fn plain_response(
    exchange: &Exchange,
) -> Result<http::Response<PageBody>, FetchRejection> {
    let Some(head) = &exchange.head else {
        return Err(FetchRejection::failed("no response"));
    };
    let mut response = response(head, page_bodies::recorded(exchange.payload.clone()))?;
    // The response may have been truncated.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    Ok(response)
}

/// Returns a response for the browser.
pub(super) fn response(
    head: &ResponseHead,
    body: PageBody,
) -> Result<http::Response<PageBody>, FetchRejection> {
    let mut response = http::Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(head.status)
        .map_err(|problem| FetchRejection::failed(problem.to_string()))?;
    for (name, value) in &head.headers {
        // Bytes outside ASCII were read as ISO-8859-1. Fields that HTTP does not allow are left out.
        let bytes: Vec<u8> = value
            .chars()
            .filter_map(|it| u8::try_from(it).ok())
            .collect();
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&bytes)) {
            response.headers_mut().append(name, value);
        }
    }
    Ok(response)
}

/// Returns a header's value, with bytes outside ASCII as ISO-8859-1.
fn text(value: &HeaderValue) -> String {
    value
        .as_bytes()
        .iter()
        .map(|byte| char::from(*byte))
        .collect()
}

#[cfg(test)]
mod tests {
    use opilio_browser::full_body;

    use super::*;

    async fn request(headers: &[(&str, &str)], body: &str) -> PageRequest {
        let mut request = http::Request::post("https://a.org/api");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(full_body(body.to_owned())).unwrap();
        read(request).await.unwrap()
    }

    async fn read(request: http::Request<PageBody>) -> Result<PageRequest, FetchRejection> {
        PageRequest::read(request, &RequestMemory::default()).await
    }

    #[tokio::test]
    async fn headers_of_the_browser_take_precedence_and_missing_ones_come_from_the_crawl() {
        let sent = [
            ("host", "a.org"),
            ("content-length", "2"),
            ("content-type", "application/json"),
            ("user-agent", "Chrome"),
            ("cookie", "b=2; c=3"),
        ];
        let request = request(&sent, "{}").await;
        let decided = [
            ("User-Agent", "profile"),
            ("X-Archive", "yes"),
            ("Cookie", "a=1; b=0"),
        ];
        let decided = decided.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = request.headers(decided.to_vec());
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let expected = [
            ("X-Archive", "yes"),
            ("user-agent", "Chrome"),
            ("Cookie", "a=1; b=2; c=3"),
        ];
        assert_eq!(headers, expected);
        let body = request.body().unwrap();
        assert_eq!(body.content_type, "application/json");
        assert_eq!(body.content, "{}");
    }

    #[test]
    fn hosts_with_one_registrable_domain_are_the_same_site() {
        let are = |page: &str, target: &str| {
            let parse = |host: &str| Uri::parse(&format!("https://{host}/")).unwrap();
            is_same_site(&parse(page), &parse(target))
        };
        assert!(are("www.a.co.uk", "api.a.co.uk:8443"));
        assert!(!are("www.a.co.uk", "b.co.uk"));
        assert!(are("192.0.2.1", "192.0.2.1:8443"));
        assert!(!are("192.0.2.1", "192.0.2.2"));
    }

    #[tokio::test]
    async fn a_request_with_an_endless_body_is_refused() {
        let body = full_body(vec![0; REQUEST_BODY_BYTES_MAX + 1]);
        let request = http::Request::post("https://a.org/").body(body).unwrap();
        let read = read(request).await.map(drop);
        assert!(
            matches!(read, Err(FetchRejection::Refused { .. })),
            "{read:?}"
        );
    }

    #[tokio::test]
    async fn requests_in_flight_share_the_memory_limit_of_their_page() {
        let room = RequestMemory::default();
        let read = async || {
            let body = full_body(vec![0; REQUEST_BODY_BYTES_MAX]);
            let request = http::Request::post("https://a.org/").body(body).unwrap();
            PageRequest::read(request, &room).await
        };
        let mut under_way = Vec::new();
        for _ in 0..REQUESTS_BYTES_MAX / REQUEST_BODY_BYTES_MAX {
            under_way.push(read().await.unwrap());
        }
        let next = read().await.map(drop);
        assert!(
            matches!(next, Err(FetchRejection::Refused { .. })),
            "{next:?}"
        );
        under_way.pop();
        read().await.map(drop).unwrap();
    }

    #[tokio::test]
    async fn only_a_get_on_the_same_server_is_a_request_for_the_page_itself() {
        let page = |uri: &str| Uri::parse(uri).unwrap();
        let get = http::Request::get("http://a.org/x%7Cy").body(full_body(""));
        let get = read(get.unwrap()).await.unwrap();
        assert!(get.is_for(&page("http://a.org/x|y")));
        assert!(!get.is_for(&page("https://a.org/x|y")));
        assert!(!get.is_for(&page("http://b.org/")));
        assert!(!request(&[], "").await.is_for(&page("https://a.org/api")));
    }
}
