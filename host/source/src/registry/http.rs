//! Requests to one registry: limits on answers, and readable errors.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use docker_credential::DockerCredential;
use opilio_fetch::{AddressClass, AddressPolicy};
use opilio_model::error_chain;
use opilio_profile::Image;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, redirect};
use serde::Deserialize;
use url::Url;

use super::{Access, RegistryError, credentials};

/// Longest time to open a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest silence of a registry.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Longest time of one request with its answer: the largest component at 2 Mbit/s.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(300);
/// Maximum redirects of one request. Registries redirect to their blob storage, which may redirect once more.
const REDIRECTS_MAX: usize = 5;
/// Longest body of an error answer.
const TROUBLE_BYTES_MAX: usize = 64 << 10;
/// Longest part of it in our error text, in characters.
const TOLD_CHARS_MAX: usize = 200;

/// A connection to one registry for one image.
pub(super) struct Connection<'a> {
    image: &'a Image,
    access: &'a Access,
    client: Client,
    root: Url,
    near: Near,
    /// The value of the header `Authorization`, once the registry has asked for it.
    authorization: Option<HeaderValue>,
}

/// A request. It can be repeated once the registry has asked for authorization.
pub(super) struct RegistryRequest {
    method: Method,
    url: Url,
    /// Name of the requested thing for error texts: `a manifest`.
    what: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Bytes>,
    pub(super) pushes: bool,
}

impl RegistryRequest {
    pub(super) fn new(method: Method, url: Url, what: &'static str) -> Self {
        Self {
            method,
            url,
            what,
            headers: Vec::new(),
            body: None,
            pushes: false,
        }
    }

    pub(super) fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    pub(super) fn body(mut self, bytes: &[u8]) -> Self {
        self.body = Some(Bytes::copy_from_slice(bytes));
        self
    }

    /// Marks the request as needing write permission.
    pub(super) fn for_push(mut self) -> Self {
        self.pushes = true;
        self
    }
}

impl<'a> Connection<'a> {
    pub(super) fn new(image: &'a Image, access: &'a Access) -> Result<Self, RegistryError> {
        let plain = access.insecure || image.is_loopback();
        let setup = |problem: &dyn Error| RegistryError::Setup {
            problem: error_chain(problem),
        };
        let scheme = if plain { "http" } else { "https" };
        let root = format!("{scheme}://{}/v2/", image.registry());
        let root = Url::parse(&root).map_err(|problem| setup(&problem))?;
        let near = Near::of(&addresses(&root), image.is_loopback());
        let client =
            client(image.is_loopback(), plain, near).map_err(|problem| setup(problem.as_ref()))?;
        Ok(Self {
            image,
            access,
            client,
            root,
            near,
            authorization: None,
        })
    }

    pub(super) fn image(&self) -> &'a Image {
        self.image
    }

    /// The URL of a path within the repository.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.root.clone();
        url.set_path(&format!("/v2/{}/{path}", self.image.repository()));
        url
    }

    /// Sends a request once. Only the registry itself gets the authorization of this connection.
    pub(super) async fn send(&self, request: &RegistryRequest) -> Result<Response, RegistryError> {
        let is_home = request.url.origin() == self.root.origin();
        if !is_home {
            self.may_send_to(&request.url)?;
        }
        let mut builder = self
            .client
            .request(request.method.clone(), request.url.clone());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        // An upload may go to another server, which must not get the registry's credentials.
        if let Some(authorization) = self.authorization.as_ref().filter(|_| is_home) {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        builder
            .send()
            .await
            .map_err(|problem| self.unreachable(problem))
    }

    /// Sends this value of the header `Authorization` with later requests.
    pub(super) fn authorize(&mut self, value: HeaderValue) {
        self.authorization = Some(value);
    }

    /// The client for all requests of this connection, including those for tokens.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Refuses an address given by the registry that is nearer to this machine than the registry is.
    pub(super) fn may_send_to(&self, url: &Url) -> Result<(), RegistryError> {
        self.near.check(url).map_err(|class| RegistryError::Denied {
            image: Box::new(self.image.clone()),
            answer: sends_to(url, class),
            remedy: "ask the operator of the registry".to_owned(),
        })
    }

    /// Returns `true` if credentials may be sent to this URL.
    pub(super) fn may_have_secrets(&self, url: &Url) -> bool {
        url.scheme() == "https" || (url.scheme() == "http" && self.root.scheme() == "http")
    }

    pub(super) fn credentials(&self) -> Result<Option<DockerCredential>, RegistryError> {
        credentials::read(self.access.credentials.as_deref(), self.image.registry())
    }

    /// Reads a whole body of at most `max` bytes.
    pub(super) async fn body(
        &self,
        response: Response,
        what: &'static str,
        max: usize,
    ) -> Result<Vec<u8>, RegistryError> {
        let (bytes, more) = self.bounded(response, max).await?;
        if more {
            return Err(RegistryError::TooLong {
                image: Box::new(self.image.clone()),
                what,
                max,
            });
        }
        Ok(bytes)
    }

    /// Reads at most `max` bytes of a body, and returns whether there are more. The rest is not read. A body that ends early is
    /// returned as it is, for the caller to compare.
    pub(super) async fn bounded(
        &self,
        mut response: Response,
        max: usize,
    ) -> Result<(Vec<u8>, bool), RegistryError> {
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    let room = max - bytes.len();
                    if chunk.len() > room {
                        bytes.extend_from_slice(&chunk[..room]);
                        return Ok((bytes, true));
                    }
                    bytes.extend_from_slice(&chunk);
                }
                Ok(None) => return Ok((bytes, false)),
                Err(problem) if problem.is_timeout() => return Err(self.unreachable(problem)),
                Err(problem) if problem.is_body() || problem.is_decode() => {
                    tracing::debug!(error = %error_chain(&problem), "a body ended before its time");
                    return Ok((bytes, false));
                }
                Err(problem) => return Err(self.unreachable(problem)),
            }
        }
    }

    pub(super) fn unreachable(&self, problem: reqwest::Error) -> RegistryError {
        let problem = problem.without_url();
        let remedy = match tls_problem(&problem) {
            Some(rustls::Error::InvalidCertificate(_)) => {
                "make this machine trust the issuer of its certificate"
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                "it does not support HTTPS; allow plain HTTP if it is acceptable (--insecure, in a profile insecure = true)"
            }
            _ => "check the name and the network",
        };
        let problem = if problem.is_timeout() {
            "no answer in time".to_owned()
        } else {
            innermost(&problem)
        };
        RegistryError::Unreachable {
            image: Box::new(self.image.clone()),
            problem,
            remedy,
        }
    }

    /// Converts an unexpected answer into an error.
    pub(super) async fn trouble(
        &self,
        request: &RegistryRequest,
        response: Response,
    ) -> RegistryError {
        let image = Box::new(self.image.clone());
        let status = response.status();
        let wait = response.headers().get(RETRY_AFTER);
        let wait = wait.and_then(|wait| wait.to_str().ok()?.parse::<u64>().ok());
        let mut answer = self.describe_answer(response).await;
        if let Some(seconds) = wait {
            answer.push_str(&format!(", wait {seconds} s"));
        }
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => RegistryError::Denied {
                image,
                answer,
                remedy: self.remedy(request.pushes),
            },
            StatusCode::NOT_FOUND => RegistryError::NotFound { image, answer },
            StatusCode::TOO_MANY_REQUESTS => RegistryError::Trouble { image, answer },
            status if status.is_server_error() => RegistryError::Trouble { image, answer },
            _ => RegistryError::Unexpected {
                image,
                request: request.what,
                answer,
            },
        }
    }

    /// Advice for an operator whose request was refused.
    pub(super) fn remedy(&self, pushes: bool) -> String {
        let registry = self.image.registry();
        let credentials = self.access.credentials.as_deref();
        let known = matches!(self.credentials(), Ok(Some(_)));
        match credentials {
            Some(path) if known => format!(
                "the credentials for {registry} in {} do not allow to {}; ask the operator of the registry",
                path.display(),
                if pushes { "write there" } else { "read it" },
            ),
            Some(path) => format!(
                "log in with `docker login {registry}`, which writes {}, or name another such file with --credentials",
                path.display()
            ),
            None => "pass a file of credentials with --credentials".to_owned(),
        }
    }

    /// The status and, if the registry gives one, its message: at most a sentence, without control characters.
    pub(super) async fn describe_answer(&self, response: Response) -> String {
        let status = response.status();
        let read = self.bounded(response, TROUBLE_BYTES_MAX).await;
        let body = read.map(|(bytes, _)| bytes).unwrap_or_default();
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(ErrorBody { errors }) if !errors.is_empty() => {
                let ErrorEntry { code, message } = &errors[0];
                let mut text: String = format!("{status}: {code} {message}")
                    .chars()
                    .map(|c| if c.is_control() { ' ' } else { c })
                    .take(TOLD_CHARS_MAX)
                    .collect();
                text.truncate(text.trim_end().len());
                text
            }
            _ => status.to_string(),
        }
    }
}

/// The nearness of a registry, which limits where it may send this machine for tokens, blobs and uploads. A distant registry
/// could otherwise make this machine send requests within networks that the registry cannot reach.
#[derive(Debug, Clone, Copy)]
struct Near(AddressPolicy);

impl Near {
    /// The nearness of a registry with these addresses.
    fn of(addresses: &[IpAddr], is_loopback: bool) -> Self {
        let classes = addresses
            .iter()
            .map(|address| AddressPolicy::default().check(*address));
        let mut near = AddressPolicy::default();
        // Linux connects the unspecified address to this machine.
        let here = [Err(AddressClass::Loopback), Err(AddressClass::Unspecified)];
        let private = [Err(AddressClass::Private), Err(AddressClass::Shared)];
        for class in classes {
            near.loopback |= here.contains(&class);
            near.private |= private.contains(&class);
            near.link_local |= class == Err(AddressClass::LinkLocal);
        }
        near.loopback |= is_loopback;
        near.private |= near.loopback;
        Self(near)
    }

    /// Checks whether a registry may send us to this URL. A name without an address here can only be resolved by a proxy.
    fn check(self, url: &Url) -> Result<(), AddressClass> {
        let mut addresses = addresses(url).into_iter();
        addresses.try_for_each(|address| self.0.check(address))
    }
}

fn sends_to(url: &Url, class: AddressClass) -> String {
    let origin = url.origin().ascii_serialization();
    format!("the registry refers to {origin}, a {class} address, but has no such address itself")
}

/// The addresses of a URL's host. Blocks, which is harmless on a thread of its own.
fn addresses(url: &Url) -> Vec<IpAddr> {
    let found = url.socket_addrs(|| None).unwrap_or_default();
    found.into_iter().map(|address| address.ip()).collect()
}

/// The error body of a registry.
#[derive(Debug, Deserialize)]
struct ErrorBody {
    errors: Vec<ErrorEntry>,
}

#[derive(Debug, Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// Runs `work` in an async runtime on a thread of its own, because callers may or may not be in a runtime.
pub(super) fn on_a_thread<T, F>(work: F) -> Result<T, RegistryError>
where
    F: AsyncFnOnce() -> Result<T, RegistryError> + Send,
    T: Send,
{
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|problem| RegistryError::Setup {
                problem: problem.to_string(),
            })?;
        runtime.block_on(work())
    };
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Creates the client: rustls with ring and the operating system's roots, as everywhere in Opilio. The proxy comes from the
/// environment, as for other tools, except for registries on this machine.
fn client(is_loopback: bool, plain: bool, near: Near) -> Result<Client, Box<dyn Error>> {
    let mut roots = rustls::RootCertStore::empty();
    if !plain {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "cannot read some of the platform's root certificates");
        }
        roots.add_parsable_certificates(found.certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("opilio/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME_MAX)
        .read_timeout(SILENCE_MAX)
        .timeout(REQUEST_TIME_MAX)
        .referer(false)
        .redirect(redirect::Policy::custom(move |attempt| {
            follow(attempt, near)
        }));
    if is_loopback {
        client = client.no_proxy();
    }
    Ok(client.build()?)
}

fn follow(attempt: redirect::Attempt<'_>, near: Near) -> redirect::Action {
    let from_https = attempt
        .previous()
        .last()
        .is_some_and(|url| url.scheme() == "https");
    if attempt.previous().len() > REDIRECTS_MAX {
        attempt.error(format!("more than {REDIRECTS_MAX} redirects"))
    } else if from_https && attempt.url().scheme() != "https" {
        attempt.error("a redirect leads from HTTPS to plain HTTP")
    } else if let Err(class) = near.check(attempt.url()) {
        let problem = sends_to(attempt.url(), class);
        attempt.error(problem)
    } else {
        attempt.follow()
    }
}

/// The TLS error among the causes of an error, if there is one.
fn tls_problem<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // `source` of an I/O error skips the error inside it and returns that one's source.
        let inner = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// The innermost cause: the outer errors only report that sending failed.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use opilio_test_registry::{Guard, Registry};

    use super::*;

    #[test]
    fn a_registry_cannot_redirect_to_nearer_addresses() {
        let (world, intranet, here) = ("192.0.2.1", "10.1.2.3", "127.0.0.1");
        for (registry, to, expected) in [
            (world, "https://198.51.100.1/", true),
            (world, "https://127.0.0.1/", false),
            (world, "https://localhost/", false),
            (world, "https://[::ffff:127.0.0.1]/", false),
            (world, "https://10.1.2.3/", false),
            (world, "https://169.254.169.254/", false),
            (world, "https://0.0.0.0/", false),
            (intranet, "https://10.9.9.9/", true),
            (intranet, "https://127.0.0.1/", false),
            (here, "http://127.0.0.1:5001/", true),
            (here, "http://10.1.2.3/", true),
            (here, "http://169.254.169.254/", false),
        ] {
            let near = Near::of(&[registry.parse().unwrap()], false);
            let found = near.check(&Url::parse(to).unwrap());
            assert_eq!(found.is_ok(), expected, "{registry} {to}: {found:?}");
        }
    }

    #[test]
    fn a_remote_registry_cannot_name_a_local_token_service() {
        let (registry, within) = (Registry::open(), Registry::open());
        registry.guard(Guard::TokensAt(format!(
            "http://{}/internal",
            within.host()
        )));
        let image = Image::parse(&registry.image("a/b:1")).unwrap();
        let access = Access::default();
        let answer = on_a_thread(async || {
            let mut connection = Connection::new(&image, &access)?;
            // Simulates a distant registry, which tests must not contact.
            connection.near = Near(AddressPolicy::default());
            let request =
                RegistryRequest::new(Method::GET, connection.url("manifests/1"), "a manifest");
            connection
                .expect(&request, &[StatusCode::OK])
                .await
                .map(drop)
        });
        let problem = answer.unwrap_err().to_string();
        assert!(problem.contains("a loopback address"), "{problem}");
        assert_eq!(within.requests(), Vec::<String>::new());
    }
}
