//! A registry on loopback that follows the OCI distribution protocol unless a test makes it fail. It stores pushed images in
//! memory, and records all requests with their authorization.

#![allow(clippy::unwrap_used, reason = "tests are its only users")]

use std::collections::HashMap;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use data_encoding::BASE64;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};

/// A registry. It stops when dropped.
pub struct Registry {
    state: Arc<State>,
    /// A runtime of its own, because callers may or may not be in one.
    runtime: Option<tokio::runtime::Runtime>,
}

struct State {
    /// `127.0.0.1:PORT`.
    host: String,
    kept: Mutex<RegistryContents>,
}

#[derive(Default)]
struct RegistryContents {
    blobs: HashMap<String, Bytes>,
    /// Manifests by repository and tag or digest.
    manifests: HashMap<(String, String), Bytes>,
    asked: Vec<RecordedRequest>,
    guard: Guard,
    trouble: Option<Trouble>,
    tokens: u32,
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The header `Authorization`.
    pub authorization: Option<String>,
}

/// Access rules of the registry.
#[derive(Clone, Default)]
pub enum Guard {
    /// No credentials are required.
    #[default]
    Open,
    /// Name and password, required for every request.
    Basic(&'static str, &'static str),
    /// A token for the repository. Anonymous clients get one for reading.
    TokensForAll,
    /// A token for the repository, in exchange for name and password.
    Tokens(&'static str, &'static str),
    /// A token for the repository, in exchange for a refresh token.
    TokensForRefresh(&'static str),
    /// The token service has this address.
    TokensAt(String),
}

/// Errors that the registry makes.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// Manifests are answered with this status and text.
    Manifest(StatusCode, String),
    /// The manifest does not match its digest.
    OtherManifest,
    /// Manifests are endless.
    EndlessManifest,
    /// Blobs have one changed byte.
    OtherBlob,
    /// Blobs are truncated.
    TornBlob,
    /// Blobs are endless.
    EndlessBlob,
    /// Blobs are answered with this status.
    Blob(StatusCode),
    /// Blobs are redirected to this address, followed by the digest.
    BlobsAt(String),
    /// Every request is redirected, for ever.
    Circle,
    /// The location of uploads is this address.
    UploadsAt(String),
    /// Uploads are answered with this status and text.
    Upload(StatusCode, String),
}

/// A body in pieces. The last one may be an error. If `repeat` is set, the body is endless.
struct Pieces {
    pieces: VecDeque<io::Result<Bytes>>,
    repeat: Option<Bytes>,
    is_flushed: bool,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        // Earlier pieces must be sent before the connection breaks.
        if matches!(self.pieces.front(), Some(Err(_))) && !self.is_flushed {
            self.is_flushed = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = self.pieces.pop_front();
        let next = next.or_else(|| self.repeat.clone().map(Ok));
        Poll::Ready(next.map(|piece| piece.map(Frame::data)))
    }
}

impl Registry {
    /// A registry without access control.
    pub fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let state = Arc::new(State {
            host: listener.local_addr().unwrap().to_string(),
            kept: Mutex::default(),
        });
        runtime.spawn(serve(listener, state.clone()));
        Self {
            state,
            runtime: Some(runtime),
        }
    }

    /// A registry with these access rules.
    pub fn guarded(guard: Guard) -> Self {
        let registry = Self::open();
        registry.guard(guard);
        registry
    }

    /// Sets the access rules for later requests.
    pub fn guard(&self, guard: Guard) {
        self.state.kept.lock().unwrap().guard = guard;
    }

    /// Makes this error from now on.
    pub fn trouble(&self, trouble: Trouble) {
        self.state.kept.lock().unwrap().trouble = Some(trouble);
    }

    /// Makes no more errors.
    pub fn recover(&self) {
        self.state.kept.lock().unwrap().trouble = None;
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> &str {
        &self.state.host
    }

    /// The reference to an image in this registry, such as `plugins/stories:1.0`, as a profile has it.
    pub fn image(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.host())
    }

    /// Stores a manifest without a request.
    pub fn put_manifest(&self, repository: &str, name: &str, manifest: &str) {
        let mut kept = self.state.kept.lock().unwrap();
        let bytes = Bytes::from(manifest.to_owned());
        kept.manifests
            .insert((repository.to_owned(), name.to_owned()), bytes);
    }

    /// Takes all requests since the last call.
    pub fn asked(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut self.state.kept.lock().unwrap().asked)
    }

    /// Takes all requests since the last call, as `METHOD path`.
    pub fn requests(&self) -> Vec<String> {
        self.asked()
            .into_iter()
            .map(|asked| format!("{} {}", asked.method, asked.path))
            .collect()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // The runtime is dropped on a thread that may block, because the caller's may not. The listener is closed when this
        // returns.
        if let Some(runtime) = self.runtime.take() {
            let _ = std::thread::spawn(move || drop(runtime)).join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, state: Arc<State>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let state = state.clone();
                async move { Ok::<_, Infallible>(state.answer(request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            // Some tests break connections on purpose, so errors are ignored.
            let _ = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Response<Pieces> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes());
        let authorization = head.headers.get("authorization");
        let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
        let mut kept = self.kept.lock().unwrap();
        kept.asked.push(RecordedRequest {
            method: head.method.clone(),
            path: head.uri.to_string(),
            authorization: authorization.clone(),
        });
        let body = body.unwrap_or_default();
        let query = head.uri.query().unwrap_or_default();
        let query: HashMap<String, String> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let path = head.uri.path();
        if path == "/token" {
            return kept.token(&query, &body, authorization.as_deref());
        }
        if let Some(Trouble::Circle) = kept.trouble {
            return redirect(&format!("http://{}{path}", self.host));
        }
        if let Some(refusal) = kept.refusal(&head.method, authorization.as_deref(), &self.host) {
            return refusal;
        }
        let Some((repository, kind, name)) = parts(path) else {
            return complete_response(StatusCode::NOT_FOUND, "");
        };
        match (head.method, kind) {
            (Method::GET, "manifests") => kept.manifest(repository, name),
            (Method::PUT, "manifests") => {
                kept.manifests
                    .insert((repository.to_owned(), name.to_owned()), body.clone());
                let digest = digest_of(&body);
                kept.manifests.insert((repository.to_owned(), digest), body);
                complete_response(StatusCode::CREATED, "")
            }
            (Method::HEAD, "blobs") => match kept.blobs.contains_key(name) {
                true => complete_response(StatusCode::OK, ""),
                false => complete_response(StatusCode::NOT_FOUND, ""),
            },
            (Method::GET, "blobs") => kept.blob(name),
            (Method::POST, "blobs") => {
                if let Some(Trouble::Upload(status, text)) = &kept.trouble {
                    return complete_response(*status, text);
                }
                let location = match &kept.trouble {
                    Some(Trouble::UploadsAt(address)) => address.clone(),
                    // The location is relative and has a query. Both are allowed.
                    _ => format!("/v2/{repository}/blobs/uploads/1?state=begun"),
                };
                let mut answer = complete_response(StatusCode::ACCEPTED, "");
                answer
                    .headers_mut()
                    .insert("location", location.parse().unwrap());
                answer
            }
            (Method::PUT, "blobs") => {
                let digest = &query["digest"];
                assert_eq!(*digest, digest_of(&body));
                kept.blobs.insert(digest.clone(), body);
                complete_response(StatusCode::CREATED, "")
            }
            _ => complete_response(StatusCode::METHOD_NOT_ALLOWED, ""),
        }
    }
}

impl RegistryContents {
    fn manifest(&self, repository: &str, name: &str) -> Response<Pieces> {
        match &self.trouble {
            Some(Trouble::Manifest(status, text)) => return complete_response(*status, text),
            Some(Trouble::EndlessManifest) => return endless_response(),
            _ => {}
        }
        let key = (repository.to_owned(), name.to_owned());
        let Some(manifest) = self.manifests.get(&key) else {
            let text = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
            return complete_response(StatusCode::NOT_FOUND, text);
        };
        let digest = digest_of(manifest);
        let text = match &self.trouble {
            Some(Trouble::OtherManifest) => [manifest, b" ".as_slice()].concat(),
            _ => manifest.to_vec(),
        };
        let mut answer = complete_response(StatusCode::OK, text);
        let headers = answer.headers_mut();
        headers.insert("docker-content-digest", digest.parse().unwrap());
        answer
    }

    fn blob(&self, digest: &str) -> Response<Pieces> {
        let Some(blob) = self.blobs.get(digest) else {
            return complete_response(StatusCode::NOT_FOUND, "");
        };
        match &self.trouble {
            Some(Trouble::Blob(status)) => complete_response(*status, ""),
            Some(Trouble::BlobsAt(address)) => redirect(&format!("{address}{digest}")),
            Some(Trouble::EndlessBlob) => endless_response(),
            Some(Trouble::OtherBlob) => {
                let mut other = blob.to_vec();
                other[8] ^= 1;
                complete_response(StatusCode::OK, other)
            }
            Some(Trouble::TornBlob) => {
                let half = blob.slice(..blob.len() / 2);
                let broken = io::Error::new(io::ErrorKind::ConnectionReset, "broken");
                let mut answer = Response::new(Pieces {
                    pieces: [Ok(half), Err(broken)].into(),
                    repeat: None,
                    is_flushed: false,
                });
                let length = blob.len().to_string().parse().unwrap();
                answer.headers_mut().insert("content-length", length);
                answer
            }
            _ => complete_response(StatusCode::OK, blob.clone()),
        }
    }

    /// The answer to a client without permission.
    fn refusal(
        &self,
        method: &Method,
        authorization: Option<&str>,
        host: &str,
    ) -> Option<Response<Pieces>> {
        let action = match *method {
            Method::GET | Method::HEAD => "pull",
            _ => "pull,push",
        };
        let (expected, challenge) = match &self.guard {
            Guard::Open => return None,
            Guard::Basic(name, password) => {
                let pair = BASE64.encode(format!("{name}:{password}").as_bytes());
                (format!("Basic {pair}"), "Basic realm=\"tests\"".to_owned())
            }
            Guard::TokensAt(realm) => (String::new(), format!("Bearer realm=\"{realm}\"")),
            _ => (
                format!("Bearer token-for-{action}"),
                format!(
                    "Bearer realm=\"http://{host}/token\",service=\"tests\",scope=\"repository:p:{action}\""
                ),
            ),
        };
        let is_enough =
            |given: &str| given == expected || given.starts_with(&format!("{expected},"));
        if authorization.is_some_and(is_enough) {
            return None;
        }
        let text = r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
        let mut answer = complete_response(StatusCode::UNAUTHORIZED, text);
        let headers = answer.headers_mut();
        headers.insert("www-authenticate", challenge.parse().unwrap());
        Some(answer)
    }

    fn token(
        &mut self,
        query: &HashMap<String, String>,
        body: &[u8],
        authorization: Option<&str>,
    ) -> Response<Pieces> {
        let form: HashMap<String, String> =
            url::form_urlencoded::parse(body).into_owned().collect();
        let is_authorised = match &self.guard {
            Guard::TokensForAll => query["scope"].ends_with(":pull"),
            Guard::Tokens(name, password) => {
                let pair = BASE64.encode(format!("{name}:{password}").as_bytes());
                authorization == Some(&format!("Basic {pair}"))
            }
            Guard::TokensForRefresh(token) => {
                form.get("refresh_token").map(String::as_str) == Some(token)
                    && form.get("grant_type").map(String::as_str) == Some("refresh_token")
            }
            _ => false,
        };
        if !is_authorised {
            let text = r#"{"errors":[{"code":"DENIED","message":"not\u001b[31m you"}]}"#;
            return complete_response(StatusCode::UNAUTHORIZED, text);
        }
        self.tokens += 1;
        let scope = query.get("scope").or(form.get("scope")).unwrap();
        let action = scope.rsplit(':').next().unwrap();
        let token = format!(r#"{{"token":"token-for-{action}","expires_in":60}}"#);
        complete_response(StatusCode::OK, token)
    }
}

/// The digest in the form of registries: `sha256:` and hexadecimal digits.
fn digest_of(bytes: &[u8]) -> String {
    let hex = data_encoding::HEXLOWER.encode(&Sha256::digest(bytes));
    format!("sha256:{hex}")
}

/// Repository, kind and name of `/v2/REPOSITORY/KIND/NAME`.
fn parts(path: &str) -> Option<(&str, &str, &str)> {
    let rest = path.strip_prefix("/v2/")?;
    ["manifests", "blobs"].into_iter().find_map(|kind| {
        let (repository, name) = rest.split_once(&format!("/{kind}/"))?;
        Some((repository, kind, name))
    })
}

fn complete_response(status: StatusCode, body: impl AsRef<[u8]>) -> Response<Pieces> {
    let body = Bytes::copy_from_slice(body.as_ref());
    let length = body.len().to_string().parse().unwrap();
    let mut answer = Response::new(Pieces {
        pieces: [Ok(body)].into(),
        repeat: None,
        is_flushed: false,
    });
    *answer.status_mut() = status;
    answer.headers_mut().insert("content-length", length);
    answer
}

fn endless_response() -> Response<Pieces> {
    Response::new(Pieces {
        pieces: VecDeque::new(),
        repeat: Some(Bytes::from_static(&[b' '; 64 << 10])),
        is_flushed: false,
    })
}

fn redirect(to: &str) -> Response<Pieces> {
    let mut answer = complete_response(StatusCode::TEMPORARY_REDIRECT, "");
    answer.headers_mut().insert("location", to.parse().unwrap());
    answer
}
