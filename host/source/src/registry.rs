//! Registries: pull a component from one, push one to it, by the OCI distribution protocol.
//!
//! Written over an HTTP client rather than over a client for registries: the one that there is (oci-client 0.18) reads
//! manifests, tokens and error pages of any length, loses the reason why a token was refused, and sends passwords for a
//! token without TLS where a registry says so. A pull is two requests and a push five.
//!
//! What a registry answers is a stranger's word: every body has a limit, every digest is computed, redirects are few and
//! never lead from HTTPS to plain HTTP, it sends nowhere nearer to this machine than it is itself, and credentials go to the registry and, over HTTPS, to where it sends for tokens.

mod authorization;
mod http;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_profile::Image;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

use crate::about::{About, AboutProblem};
use crate::blobs::COMPONENT_BYTES_MAX;
use crate::manifest::{Artifact, Layer, MANIFEST, MANIFEST_BYTES_MAX, Manifest, ManifestProblem};
use crate::sha256::Sha256;

use http::{Ask, Connection};

/// By which way registries are asked.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The file with credentials, as `docker login` and `podman login` write it; none where there is no such file and
    /// everybody is anonymous.
    pub credentials: Option<PathBuf>,
    /// Whether plain HTTP will do for registries that are not on this machine.
    pub insecure: bool,
}

/// What an image is now: its manifest, and the component that it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meaning {
    pub(crate) manifest: Sha256,
    pub(crate) layer: Layer,
}

/// What was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The image, bound to its manifest: what stays the same when the tag moves.
    pub image: Image,
    /// SHA-256 of the component: what a profile pins.
    pub sha256: Sha256,
}

/// Why a registry gives or takes nothing. Each begins with the image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Nobody answers, or not in time, or not in HTTP.
    #[error("{image} cannot be had: its registry cannot be reached ({problem}); {remedy}")]
    Unreachable {
        /// What was wanted.
        image: Box<Image>,
        /// What happened.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Credentials are missing, wrong, or do not suffice.
    #[error("{image} is refused ({told}): {remedy}")]
    Denied {
        /// What was wanted.
        image: Box<Image>,
        /// What the registry says.
        told: String,
        /// What to do.
        remedy: String,
    },
    /// The registry does not have it.
    #[error("{image} is not in its registry ({told}); check repository and {}", if image.digest().is_some() { "digest" } else { "tag" })]
    NotFound {
        /// What was wanted.
        image: Box<Image>,
        /// What the registry says.
        told: String,
    },
    /// The registry has trouble of its own, or enough of us.
    #[error(
        "{image} cannot be had now ({told}); try again later, or ask whoever runs the registry"
    )]
    Trouble {
        /// What was wanted.
        image: Box<Image>,
        /// What the registry says.
        told: String,
    },
    /// Any other answer that the protocol has no place for.
    #[error(
        "{image} cannot be had: its registry answers {told} to {request}; check that it is an OCI registry"
    )]
    Unexpected {
        /// What was wanted.
        image: Box<Image>,
        /// What was asked.
        request: &'static str,
        /// What the registry says.
        told: String,
    },
    /// What came is not what its digest says.
    #[error(
        "{image} is damaged: its {what} has sha256 {found}, not {expected}; do not use it, ask whoever runs the registry"
    )]
    Digest {
        /// What was wanted.
        image: Box<Image>,
        /// Manifest or component.
        what: &'static str,
        /// What it should be.
        expected: Sha256,
        /// What came.
        found: Sha256,
    },
    /// What came is shorter or longer than its manifest says.
    #[error(
        "{image} came with {found} bytes in place of {expected}; try again, or ask whoever runs the registry"
    )]
    Length {
        /// What was wanted.
        image: Box<Image>,
        /// What the manifest says.
        expected: u64,
        /// What came; one past the limit when the rest was not waited for.
        found: u64,
    },
    /// A body that is longer than such bodies are.
    #[error(
        "{image} cannot be had: its registry sends more than {max} bytes of {what}; ask whoever runs it"
    )]
    TooLong {
        /// What was wanted.
        image: Box<Image>,
        /// Of what.
        what: &'static str,
        /// How many are read.
        max: usize,
    },
    /// What is there is not a component.
    #[error("{image} cannot be used: {problem}")]
    Manifest {
        /// What was wanted.
        image: Box<Image>,
        /// Why not.
        problem: ManifestProblem,
    },
    /// What should be pushed is not a component.
    #[error("{path} cannot be pushed: it is {problem}")]
    NotAComponent {
        /// The file.
        path: PathBuf,
        /// What it is.
        problem: AboutProblem,
    },
    /// A push needs a name that people can use.
    #[error("{image} names no tag: say what to call it, such as oci://{}/{}:1.0", image.registry(), image.repository())]
    NoTag {
        /// The name.
        image: Box<Image>,
    },
    /// The file with credentials cannot be used.
    #[error("credentials for {registry} cannot be had: {problem}")]
    Credentials {
        /// The registry.
        registry: String,
        /// Why not.
        problem: String,
    },
    /// This machine cannot make connections.
    #[error("cannot ask registries: {problem}")]
    Setup {
        /// Why not.
        problem: String,
    },
}

impl RegistryError {
    /// Whether it may go better later, or elsewhere: nothing is known to be wrong with the image.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Trouble { .. })
    }
}

/// What an image is now, by its manifest. Blocks.
pub(crate) fn look_up(image: &Image, access: &Access) -> Result<Meaning, RegistryError> {
    http::on_a_thread(async || {
        let mut connection = Connection::new(image, access)?;
        fetch_manifest(&mut connection).await
    })
}

/// The component that a manifest names. Blocks.
pub(crate) fn pull(
    image: &Image,
    meaning: &Meaning,
    access: &Access,
) -> Result<Vec<u8>, RegistryError> {
    http::on_a_thread(async || {
        let mut connection = Connection::new(image, access)?;
        fetch_layer(&mut connection, meaning.layer).await
    })
}

/// Pushes a component under the image's tag. What is there already is not sent again. Blocks.
pub(crate) fn push(
    path: &Path,
    component: &[u8],
    image: &Image,
    access: &Access,
    now: Timestamp,
) -> Result<Pushed, RegistryError> {
    if image.tag().is_none() {
        let image = Box::new(image.clone());
        return Err(RegistryError::NoTag { image });
    }
    let about = About::read(component).map_err(|problem| RegistryError::NotAComponent {
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
        Ok(Pushed {
            image: image.at(&manifest.to_string()),
            sha256: artifact.layer_sha256,
        })
    })
}

async fn fetch_manifest(connection: &mut Connection<'_>) -> Result<Meaning, RegistryError> {
    let image = Box::new(connection.image().clone());
    let name = image.digest().or(image.tag()).unwrap_or_default();
    let url = connection.url(&format!("manifests/{name}"));
    let ask = Ask::new(Method::GET, url, "a manifest").header(ACCEPT, MANIFEST);
    let response = connection.expect(&ask, &[StatusCode::OK]).await?;
    let said = response.headers().get("docker-content-digest");
    let said = said.and_then(|digest| parse_digest(digest.to_str().ok()?));
    let bytes = connection
        .body(response, "a manifest", MANIFEST_BYTES_MAX)
        .await?;
    let manifest = Sha256::of(&bytes);
    // What was asked for by digest must have it; what was asked for by tag, the one that the registry says it has.
    let expected = image.digest().and_then(parse_digest).or(said);
    if let Some(expected) = expected.filter(|expected| *expected != manifest) {
        return Err(RegistryError::Digest {
            image,
            what: "manifest",
            expected,
            found: manifest,
        });
    }
    match Manifest::layer(&bytes) {
        Ok(layer) => Ok(Meaning { manifest, layer }),
        Err(problem) => Err(RegistryError::Manifest { image, problem }),
    }
}

async fn fetch_layer(
    connection: &mut Connection<'_>,
    layer: Layer,
) -> Result<Vec<u8>, RegistryError> {
    let image = Box::new(connection.image().clone());
    let url = connection.url(&format!("blobs/sha256:{}", layer.sha256));
    let ask = Ask::new(Method::GET, url, "a component");
    let response = connection.expect(&ask, &[StatusCode::OK]).await?;
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
    let there = connection.url(&format!("blobs/sha256:{sha256}"));
    let ask = Ask::new(Method::HEAD, there, "whether a blob is there").for_push();
    let either = [StatusCode::OK, StatusCode::NOT_FOUND];
    if connection.expect(&ask, &either).await?.status() == StatusCode::OK {
        return Ok(());
    }
    let url = connection.url("blobs/uploads/");
    let ask = Ask::new(Method::POST, url, "the beginning of an upload")
        .header(CONTENT_LENGTH, "0")
        .for_push();
    let begun = connection.expect(&ask, &[StatusCode::ACCEPTED]).await?;
    // Relative to the address that answered; may lead elsewhere, then without our credentials.
    let location = begun.headers().get(LOCATION);
    let location = location.and_then(|location| begun.url().join(location.to_str().ok()?).ok());
    let Some(mut location) = location else {
        return Err(RegistryError::Unexpected {
            image: Box::new(connection.image().clone()),
            request: "the beginning of an upload",
            told: "without saying where to".to_owned(),
        });
    };
    location
        .query_pairs_mut()
        .append_pair("digest", &format!("sha256:{sha256}"));
    let ask = Ask::new(Method::PUT, location, "an upload")
        .header(CONTENT_TYPE, "application/octet-stream")
        .body(bytes)
        .for_push();
    connection.expect(&ask, &[StatusCode::CREATED]).await?;
    Ok(())
}

async fn push_manifest(
    connection: &mut Connection<'_>,
    manifest: &[u8],
) -> Result<(), RegistryError> {
    let tag = connection.image().tag().unwrap_or_default();
    let url: Url = connection.url(&format!("manifests/{tag}"));
    let ask = Ask::new(Method::PUT, url, "a manifest")
        .header(CONTENT_TYPE, MANIFEST)
        .body(manifest)
        .for_push();
    connection.expect(&ask, &[StatusCode::CREATED]).await?;
    Ok(())
}

fn parse_digest(digest: &str) -> Option<Sha256> {
    digest.strip_prefix("sha256:")?.parse().ok()
}
