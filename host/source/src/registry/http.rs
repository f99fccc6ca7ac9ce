//! Asking one registry: requests with authorization, answers within limits, failures as sentences.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use opilio_fetch::{AddressClass, AddressPolicy};
use opilio_profile::Image;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, redirect};
use serde::Deserialize;
use url::Url;

use super::authorization::Authorization;
use super::{Access, RegistryError};

/// How long a connection may take to be there.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a registry may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long one request may take with its answer: the largest component at 2 Mbit/s.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(300);
/// Most redirects of one request. Registries send to where their blobs are, and that may send on once more.
const REDIRECTS_MAX: usize = 5;
/// Longest answer that says what is wrong.
const TROUBLE_BYTES_MAX: usize = 64 << 10;
/// Longest of that which is repeated, in characters.
const TOLD_CHARS_MAX: usize = 200;

/// One registry, asked for one image.
pub(super) struct Connection<'a> {
    image: &'a Image,
    access: &'a Access,
    client: Client,
    root: Url,
    near: Near,
    authorization: Option<Authorization>,
}

/// A request. It can be made again once the registry has said what authorization it wants.
pub(super) struct Ask {
    method: Method,
    url: Url,
    /// For sentences: `a manifest`.
    what: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Bytes>,
    pushes: bool,
}

impl Ask {
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

    /// Needs permission to write.
    pub(super) fn for_push(mut self) -> Self {
        self.pushes = true;
        self
    }
}

impl<'a> Connection<'a> {
    pub(super) fn new(image: &'a Image, access: &'a Access) -> Result<Self, RegistryError> {
        let plain = access.insecure || image.is_loopback();
        let setup = |problem: &dyn Error| RegistryError::Setup {
            problem: chain(problem),
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

    /// An address within the repository.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.root.clone();
        url.set_path(&format!("/v2/{}/{path}", self.image.repository()));
        url
    }

    /// Asks, with authorization once the registry has said which; an answer of another status than these is an error.
    pub(super) async fn expect(
        &mut self,
        ask: &Ask,
        statuses: &[StatusCode],
    ) -> Result<Response, RegistryError> {
        let mut response = self.send(ask).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let credentials = self.credentials()?;
            let authorization = Authorization::answering(
                self,
                response.headers(),
                credentials.as_ref(),
                ask.pushes,
            )
            .await?;
            if let Some(authorization) = authorization {
                self.authorization = Some(authorization);
                response = self.send(ask).await?;
            }
        }
        if statuses.contains(&response.status()) {
            return Ok(response);
        }
        Err(self.trouble(ask, response).await)
    }

    async fn send(&self, ask: &Ask) -> Result<Response, RegistryError> {
        let is_home = ask.url.origin() == self.root.origin();
        if !is_home {
            self.may_send_to(&ask.url)?;
        }
        let mut request = self.client.request(ask.method.clone(), ask.url.clone());
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &ask.body {
            request = request.body(body.clone());
        }
        // An upload may be sent elsewhere; what is secret between the registry and us is for nobody else.
        if let Some(authorization) = self.authorization.as_ref().filter(|_| is_home) {
            request = request.header(AUTHORIZATION, authorization.value()?);
        }
        request
            .send()
            .await
            .map_err(|problem| self.unreachable(problem))
    }

    /// The client that all requests of this connection go through, those for tokens included.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Refuses an address to which the registry sends, and which is nearer to this machine than the registry is.
    pub(super) fn may_send_to(&self, url: &Url) -> Result<(), RegistryError> {
        self.near.check(url).map_err(|class| RegistryError::Denied {
            image: Box::new(self.image.clone()),
            told: sends_to(url, class),
            remedy: "ask whoever runs the registry".to_owned(),
        })
    }

    /// Whether credentials may be sent there.
    pub(super) fn may_have_secrets(&self, url: &Url) -> bool {
        url.scheme() == "https" || (url.scheme() == "http" && self.root.scheme() == "http")
    }

    fn credentials(&self) -> Result<Option<docker_credential::DockerCredential>, RegistryError> {
        super::authorization::credentials(self.access.credentials.as_deref(), self.image.registry())
    }

    /// The whole of a body, if it is no longer than that.
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

    /// As much of a body as that, and whether there is more. The rest is not read. A body that ends before its time is as
    /// long as it is, for the caller to compare.
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
                    tracing::debug!(error = %chain(&problem), "a body ended before its time");
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
                "have this machine trust whoever issued its certificate"
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                "it does not speak HTTPS; where plain HTTP will do, say so (--insecure, in a profile insecure = true)"
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

    /// What an answer that was not hoped for means.
    async fn trouble(&self, ask: &Ask, response: Response) -> RegistryError {
        let image = Box::new(self.image.clone());
        let status = response.status();
        let wait = response.headers().get(RETRY_AFTER);
        let wait = wait.and_then(|wait| wait.to_str().ok()?.parse::<u64>().ok());
        let mut told = self.told(response).await;
        if let Some(seconds) = wait {
            told.push_str(&format!(", wait {seconds} s"));
        }
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => RegistryError::Denied {
                image,
                told,
                remedy: self.remedy(ask.pushes),
            },
            StatusCode::NOT_FOUND => RegistryError::NotFound { image, told },
            StatusCode::TOO_MANY_REQUESTS => RegistryError::Trouble { image, told },
            status if status.is_server_error() => RegistryError::Trouble { image, told },
            _ => RegistryError::Unexpected {
                image,
                request: ask.what,
                told,
            },
        }
    }

    /// What whoever is refused can do.
    pub(super) fn remedy(&self, pushes: bool) -> String {
        let registry = self.image.registry();
        let credentials = self.access.credentials.as_deref();
        let known = matches!(self.credentials(), Ok(Some(_)));
        match credentials {
            Some(path) if known => format!(
                "the credentials for {registry} in {} do not suffice to {}; ask whoever runs it",
                path.display(),
                if pushes { "write there" } else { "read it" },
            ),
            Some(path) => format!(
                "log in with `docker login {registry}`, which writes {}, or name another such file with --credentials",
                path.display()
            ),
            None => "name a file with credentials with --credentials".to_owned(),
        }
    }

    /// Status and, where the registry says more, what it says: at most a sentence, without what terminals obey.
    pub(super) async fn told(&self, response: Response) -> String {
        let status = response.status();
        let read = self.bounded(response, TROUBLE_BYTES_MAX).await;
        let body = read.map(|(bytes, _)| bytes).unwrap_or_default();
        match serde_json::from_slice::<Troubles>(&body) {
            Ok(Troubles { errors }) if !errors.is_empty() => {
                let Trouble { code, message } = &errors[0];
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

/// How near a registry is: to where it may send for tokens, blobs and uploads. One that is elsewhere could have this machine
/// ask within networks that it cannot reach itself.
#[derive(Debug, Clone, Copy)]
struct Near(AddressPolicy);

impl Near {
    /// Of a registry with these addresses.
    fn of(addresses: &[IpAddr], is_loopback: bool) -> Self {
        let classes = addresses
            .iter()
            .map(|address| AddressPolicy::default().check(*address));
        let mut near = AddressPolicy::default();
        // Linux takes what is unspecified for itself.
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

    /// Whether a registry may send there. What has no address here is a proxy's to find, or nobody's.
    fn check(self, url: &Url) -> Result<(), AddressClass> {
        let mut addresses = addresses(url).into_iter();
        addresses.try_for_each(|address| self.0.check(address))
    }
}

fn sends_to(url: &Url, class: AddressClass) -> String {
    let origin = url.origin().ascii_serialization();
    format!("the registry sends to {origin}, a {class} address, and has none itself")
}

/// The addresses of a URL's host. Blocks, which is no harm on a thread of one's own.
fn addresses(url: &Url) -> Vec<IpAddr> {
    let found = url.socket_addrs(|| None).unwrap_or_default();
    found.into_iter().map(|address| address.ip()).collect()
}

/// How registries say what is wrong.
#[derive(Debug, Deserialize)]
struct Troubles {
    errors: Vec<Trouble>,
}

#[derive(Debug, Deserialize)]
struct Trouble {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// Runs this in an async runtime of its own, on a thread of its own: callers may or may not be in one.
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

/// rustls with ring and the operating system's roots, as everywhere in Opilio. A proxy is taken from the environment, as
/// operators set it for all their tools, save for registries on this machine.
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
        let told = sends_to(attempt.url(), class);
        attempt.error(told)
    } else {
        attempt.follow()
    }
}

/// What TLS has to complain of, if that is it.
fn tls_problem<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The source of an error of the system is not the error that it holds, but that one's source.
        let held = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        next = match held {
            Some(held) => Some(held),
            None => error.source(),
        };
    }
    None
}

/// An error and its causes on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The cause of all causes: the layers above it say only that sending did not work.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_test_registry::{Guard, Registry};

    use super::*;

    #[test]
    fn a_registry_sends_nowhere_nearer_than_it_is() {
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
    fn a_registry_elsewhere_has_nobody_here_asked_for_a_token() {
        let (registry, within) = (Registry::open(), Registry::open());
        registry.guard(Guard::TokensAt(format!(
            "http://{}/internal",
            within.host()
        )));
        let image = Image::parse(&registry.image("a/b:1")).unwrap();
        let access = Access::default();
        let answer = on_a_thread(async || {
            let mut connection = Connection::new(&image, &access)?;
            // Stands in for a registry that is elsewhere, which no test may ask.
            connection.near = Near(AddressPolicy::default());
            let ask = Ask::new(Method::GET, connection.url("manifests/1"), "a manifest");
            connection.expect(&ask, &[StatusCode::OK]).await.map(drop)
        });
        let problem = answer.unwrap_err().to_string();
        assert!(problem.contains("a loopback address"), "{problem}");
        assert_eq!(within.requests(), Vec::<String>::new());
    }
}
