//! Registries: pulls and pushes components by the OCI distribution protocol.
//!
//! Requests use an HTTP client rather than a registry client. The one available (oci-client 0.18) reads manifests, tokens and
//! error pages of any length, and loses the reason why a token was refused. It also sends passwords for a token without TLS if a
//! registry asks for that. A pull is two requests and a push five.
//!
//! Answers of a registry are not trusted. Every body has a limit, and every digest is computed. Redirects are few, never lead
//! from HTTPS to plain HTTP, and never lead nearer to this machine than the registry is. Credentials go only to the registry
//! and, over HTTPS, to its token service.

mod authorization;
mod credentials;
mod http;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_profile::Image;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

use crate::about::{AboutProblem, ComponentMetadata};
use crate::blobs::COMPONENT_BYTES_MAX;
use crate::manifest::{Artifact, Layer, MANIFEST, MANIFEST_BYTES_MAX, Manifest, ManifestProblem};
use crate::sha256::Sha256;

use http::{Connection, RegistryRequest};

/// Settings for requests to registries.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The file with credentials, as `docker login` and `podman login` write it. `None` if there is no such file; then all
    /// requests are anonymous.
    pub credentials: Option<PathBuf>,
    /// `true` if plain HTTP is allowed for registries that are not on this machine.
    pub insecure: bool,
}

/// An image as its registry resolves it: its manifest, and the component that it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResolvedImage {
    pub(crate) manifest: Sha256,
    pub(crate) layer: Layer,
}

/// The result of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushResult {
    /// The image, bound to its manifest. It stays the same when the tag moves.
    pub image: Image,
    /// SHA-256 of the component, for the pin in a profile.
    pub sha256: Sha256,
}

/// An error of a registry. Each text begins with the image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The registry does not answer, not in time, or not in HTTP.
    #[error("cannot download {image}: its registry cannot be reached ({problem}); {remedy}")]
    Unreachable {
        /// The requested image.
        image: Box<Image>,
        /// The error.
        problem: String,
        /// Advice for the operator.
        remedy: &'static str,
    },
    /// Credentials are missing, wrong or insufficient.
    #[error("access to {image} was refused ({answer}): {remedy}")]
    Denied {
        /// The requested image.
        image: Box<Image>,
        /// The registry's answer.
        answer: String,
        /// Advice for the operator.
        remedy: String,
    },
    /// The registry does not have the image.
    #[error("{image} is not in its registry ({answer}); check repository and {}", if image.digest().is_some() { "digest" } else { "tag" })]
    NotFound {
        /// The requested image.
        image: Box<Image>,
        /// The registry's answer.
        answer: String,
    },
    /// The registry has an internal error, or limits our requests.
    #[error(
        "cannot download {image} now ({answer}); try again later, or ask the operator of the registry"
    )]
    Trouble {
        /// The requested image.
        image: Box<Image>,
        /// The registry's answer.
        answer: String,
    },
    /// Another answer that the protocol does not have.
    #[error(
        "cannot download {image}: its registry answers {answer} to {request}; check that it is an OCI registry"
    )]
    Unexpected {
        /// The requested image.
        image: Box<Image>,
        /// The request.
        request: &'static str,
        /// The registry's answer.
        answer: String,
    },
    /// The received bytes do not have their digest.
    #[error(
        "{image} is damaged: its {what} has sha256 {found}, not {expected}; do not use it, and ask the operator of the registry"
    )]
    Digest {
        /// The requested image.
        image: Box<Image>,
        /// Manifest or component.
        what: &'static str,
        /// The expected digest.
        expected: Sha256,
        /// The digest of the received bytes.
        found: Sha256,
    },
    /// The received component is shorter or longer than the manifest states.
    #[error(
        "{image} has {found} bytes instead of {expected}; try again, or ask the operator of the registry"
    )]
    Length {
        /// The requested image.
        image: Box<Image>,
        /// The length in the manifest.
        expected: u64,
        /// The received length; one past the limit if the rest was not read.
        found: u64,
    },
    /// A body longer than its limit.
    #[error(
        "cannot download {image}: its registry sends more than {max} bytes of {what}; ask the operator of the registry"
    )]
    TooLong {
        /// The requested image.
        image: Box<Image>,
        /// The kind of body.
        what: &'static str,
        /// The limit in bytes.
        max: usize,
    },
    /// The image is not a component.
    #[error("cannot use {image}: {problem}")]
    Manifest {
        /// The requested image.
        image: Box<Image>,
        /// The reason.
        problem: ManifestProblem,
    },
    /// The file to push is not a component.
    #[error("cannot push {path}: {problem}")]
    NotAComponent {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: AboutProblem,
    },
    /// A push needs a tag.
    #[error("{image} has no tag; give one, such as oci://{}/{}:1.0", image.registry(), image.repository())]
    NoTag {
        /// The image.
        image: Box<Image>,
    },
    /// The file with credentials cannot be used.
    #[error("cannot get credentials for {registry}: {problem}")]
    Credentials {
        /// The registry.
        registry: String,
        /// The cause.
        problem: String,
    },
    /// This machine cannot open connections.
    #[error("cannot set up requests to registries: {problem}")]
    Setup {
        /// The cause.
        problem: String,
    },
}

impl RegistryError {
    /// Returns `true` if a later attempt, or another source, may succeed: the image itself is not known to be wrong.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Trouble { .. })
    }
}

/// Resolves an image: looks up its manifest. Blocks.
pub(crate) fn look_up(image: &Image, access: &Access) -> Result<ResolvedImage, RegistryError> {
    http::on_a_thread(async || {
        let mut connection = Connection::new(image, access)?;
        fetch_manifest(&mut connection).await
    })
}

/// Pulls the component that a manifest names. Blocks.
pub(crate) fn pull(
    image: &Image,
    resolved: &ResolvedImage,
    access: &Access,
) -> Result<Vec<u8>, RegistryError> {
    http::on_a_thread(async || {
        let mut connection = Connection::new(image, access)?;
        fetch_layer(&mut connection, resolved.layer).await
    })
}

/// Pushes a component under the image's tag. Blobs that the registry already has are not sent again. Blocks.
pub(crate) fn push(
    path: &Path,
    component: &[u8],
    image: &Image,
    access: &Access,
    now: Timestamp,
) -> Result<PushResult, RegistryError> {
    if image.tag().is_none() {
        let image = Box::new(image.clone());
        return Err(RegistryError::NoTag { image });
    }
    let about =
        ComponentMetadata::read(component).map_err(|problem| RegistryError::NotAComponent {
            path: path.to_owned(),
            problem,
        })?;
    let title = path.file_name().map(|name| name.to_string_lossy());
    let title = title.as_deref().unwrap_or("component.wasm");
    let artifact = Artifact::new(component, &about, title, now).map_err(|problem| {
        let problem = problem.to_string();
        RegistryError::Setup { problem }
    })?;
    http::on_a_thread(async || {
        let mut connection = Connection::new(image, access)?;
        push_blob(&mut connection, component, artifact.layer_sha256).await?;
        push_blob(&mut connection, &artifact.config, artifact.config_sha256).await?;
        push_manifest(&mut connection, &artifact.manifest).await?;
        let manifest = Sha256::of(&artifact.manifest);
        Ok(PushResult {
            image: image.at(&manifest.to_string()),
            sha256: artifact.layer_sha256,
        })
    })
}

async fn fetch_manifest(connection: &mut Connection<'_>) -> Result<ResolvedImage, RegistryError> {
    let image = Box::new(connection.image().clone());
    let name = image.digest().or(image.tag()).unwrap_or_default();
    let url = connection.url(&format!("manifests/{name}"));
    let request = RegistryRequest::new(Method::GET, url, "a manifest").header(ACCEPT, MANIFEST);
    let response = connection.expect(&request, &[StatusCode::OK]).await?;
    let stated = response.headers().get("docker-content-digest");
    let stated = stated.and_then(|digest| parse_digest(digest.to_str().ok()?));
    let bytes = connection
        .body(response, "a manifest", MANIFEST_BYTES_MAX)
        .await?;
    let manifest = Sha256::of(&bytes);
    // An image requested by digest must have it. One requested by tag must have the digest that the registry states.
    let expected = image.digest().and_then(parse_digest).or(stated);
    if let Some(expected) = expected.filter(|expected| *expected != manifest) {
        return Err(RegistryError::Digest {
            image,
            what: "manifest",
            expected,
            found: manifest,
        });
    }
    match Manifest::layer(&bytes) {
        Ok(layer) => Ok(ResolvedImage { manifest, layer }),
        Err(problem) => Err(RegistryError::Manifest { image, problem }),
    }
}

async fn fetch_layer(
    connection: &mut Connection<'_>,
    layer: Layer,
) -> Result<Vec<u8>, RegistryError> {
    let image = Box::new(connection.image().clone());
    let url = connection.url(&format!("blobs/sha256:{}", layer.sha256));
    let request = RegistryRequest::new(Method::GET, url, "a component");
    let response = connection.expect(&request, &[StatusCode::OK]).await?;
    let max = usize::try_from(layer.bytes.min(COMPONENT_BYTES_MAX)).unwrap_or(usize::MAX);
    let (bytes, more) = connection.bounded(response, max).await?;
    let expected = layer.bytes;
    let found = bytes.len() as u64 + u64::from(more);
    if found != expected {
        return Err(RegistryError::Length {
            image,
            expected,
            found,
        });
    }
    match Sha256::of(&bytes) {
        found if found == layer.sha256 => Ok(bytes),
        found => Err(RegistryError::Digest {
            image,
            what: "component",
            expected: layer.sha256,
            found,
        }),
    }
}

async fn push_blob(
    connection: &mut Connection<'_>,
    bytes: &[u8],
    sha256: Sha256,
) -> Result<(), RegistryError> {
    let url = connection.url(&format!("blobs/sha256:{sha256}"));
    let request = RegistryRequest::new(Method::HEAD, url, "whether a blob exists").for_push();
    let expected = [StatusCode::OK, StatusCode::NOT_FOUND];
    if connection.expect(&request, &expected).await?.status() == StatusCode::OK {
        return Ok(());
    }
    let url = connection.url("blobs/uploads/");
    let request = RegistryRequest::new(Method::POST, url, "the beginning of an upload")
        .header(CONTENT_LENGTH, "0")
        .for_push();
    let upload = connection.expect(&request, &[StatusCode::ACCEPTED]).await?;
    // Relative to the address that answered. It may lead elsewhere; then our credentials are not sent.
    let location = upload.headers().get(LOCATION);
    let location = location.and_then(|location| upload.url().join(location.to_str().ok()?).ok());
    let Some(mut location) = location else {
        return Err(RegistryError::Unexpected {
            image: Box::new(connection.image().clone()),
            request: "the beginning of an upload",
            answer: "without an upload location".to_owned(),
        });
    };
    location
        .query_pairs_mut()
        .append_pair("digest", &format!("sha256:{sha256}"));
    let request = RegistryRequest::new(Method::PUT, location, "an upload")
        .header(CONTENT_TYPE, "application/octet-stream")
        .body(bytes)
        .for_push();
    connection.expect(&request, &[StatusCode::CREATED]).await?;
    Ok(())
}

async fn push_manifest(
    connection: &mut Connection<'_>,
    manifest: &[u8],
) -> Result<(), RegistryError> {
    let tag = connection.image().tag().unwrap_or_default();
    let url: Url = connection.url(&format!("manifests/{tag}"));
    let request = RegistryRequest::new(Method::PUT, url, "a manifest")
        .header(CONTENT_TYPE, MANIFEST)
        .body(manifest)
        .for_push();
    connection.expect(&request, &[StatusCode::CREATED]).await?;
    Ok(())
}

fn parse_digest(digest: &str) -> Option<Sha256> {
    digest.strip_prefix("sha256:")?.parse().ok()
}
