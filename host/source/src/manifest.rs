//! The form of a component in a registry: the CNCF's Wasm artifact. It is an OCI image manifest with a configuration of its
//! own type and the component as its only layer. `wkg` writes and reads the same.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::about::ComponentMetadata;
use crate::blobs::COMPONENT_BYTES_MAX;
use crate::sha256::Sha256;

/// An OCI image manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Largest manifest that registries must accept, and the largest that is read. The manifest of a component has a kilobyte.
pub(crate) const MANIFEST_BYTES_MAX: usize = 4 << 20;

/// Media types of an index: several manifests under one name, one for each platform. Components have no platform.
const INDEX: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// Media type of a Wasm artifact's configuration, which distinguishes it from a container image.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Media type of the layer: a component, unpacked.
const LAYER: &str = "application/wasm";

/// The manifest of a Wasm artifact. Further fields are ignored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The description of a blob in a manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The layer with the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) sha256: Sha256,
    pub(crate) bytes: u64,
}

/// The configuration of a Wasm artifact.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    architecture: &'a str,
    os: &'a str,
    layer_digests: [String; 1],
    component: ConfigComponent<'a>,
}

/// The description of the component in the configuration.
#[derive(Debug, Serialize)]
struct ConfigComponent<'a> {
    exports: &'a [String],
    imports: &'a [String],
}

/// The parts of a push, each as the bytes that its digest covers.
pub(crate) struct Artifact {
    pub(crate) config: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) config_sha256: Sha256,
    pub(crate) layer_sha256: Sha256,
}

/// The reason why a manifest is not that of a component.
#[derive(Debug, thiserror::Error)]
pub enum ManifestProblem {
    /// The manifest cannot be parsed.
    #[error("cannot read its manifest ({0}); ask the operator of the registry")]
    Malformed(String),
    /// An index of several manifests.
    #[error(
        "it is an index of images for several platforms, which components do not have; push it with `opilio plugin push` or `wkg oci push`"
    )]
    Index,
    /// Another kind of image, most often for containers.
    #[error(
        "not a component: its configuration has type {0:?} instead of {CONFIG:?}; push it with `opilio plugin push` or `wkg oci push`"
    )]
    Config(String),
    /// Another number of layers than one.
    #[error(
        "it has {0} layers instead of one; push it with `opilio plugin push` or `wkg oci push`"
    )]
    Layers(usize),
    /// A layer that is not a component.
    #[error(
        "its layer has type {0:?} instead of {LAYER:?}; push it with `opilio plugin push` or `wkg oci push`"
    )]
    Layer(String),
    /// A digest other than SHA-256.
    #[error(
        "the digest of its layer, {0:?}, is not a SHA-256; push it with `opilio plugin push` or `wkg oci push`"
    )]
    Digest(String),
    /// A component larger than the maximum.
    #[error("it has {0} bytes; components have at most {COMPONENT_BYTES_MAX}")]
    TooLarge(u64),
}

impl Manifest {
    /// The layer with the component that a manifest names.
    pub(crate) fn layer(bytes: &[u8]) -> Result<Layer, ManifestProblem> {
        let malformed =
            |problem: serde_json::Error| ManifestProblem::Malformed(problem.to_string());
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(malformed)?;
        let media_type = value.get("mediaType").and_then(serde_json::Value::as_str);
        if media_type.is_some_and(|found| INDEX.contains(&found))
            || value.get("manifests").is_some()
        {
            return Err(ManifestProblem::Index);
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(malformed)?;
        if manifest.config.media_type != CONFIG {
            return Err(ManifestProblem::Config(short(manifest.config.media_type)));
        }
        let [layer] = manifest.layers.as_slice() else {
            return Err(ManifestProblem::Layers(manifest.layers.len()));
        };
        if layer.media_type != LAYER {
            return Err(ManifestProblem::Layer(short(layer.media_type.clone())));
        }
        if layer.size > COMPONENT_BYTES_MAX {
            return Err(ManifestProblem::TooLarge(layer.size));
        }
        let hex = layer.digest.strip_prefix("sha256:");
        let Some(Ok(sha256)) = hex.map(str::parse) else {
            return Err(ManifestProblem::Digest(short(layer.digest.clone())));
        };
        let bytes = layer.size;
        Ok(Layer { sha256, bytes })
    }
}

impl Artifact {
    /// Creates the artifact of this component. Tools use `title` as file name when they pull it.
    pub(crate) fn new(
        component: &[u8],
        about: &ComponentMetadata,
        title: &str,
        created: Timestamp,
    ) -> Result<Self, serde_json::Error> {
        let layer_sha256 = Sha256::of(component);
        let config = serde_json::to_vec(&Config {
            created,
            author: about.authors.as_deref(),
            architecture: "wasm",
            // The definition of the artifact has this value for every component, whether or not it uses WASI.
            os: "wasip2",
            layer_digests: [format!("sha256:{layer_sha256}")],
            component: ConfigComponent {
                exports: &about.exports,
                imports: &about.imports,
            },
        })?;
        let config_sha256 = Sha256::of(&config);
        let manifest = serde_json::to_vec(&Manifest {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            config: Descriptor {
                media_type: CONFIG.to_owned(),
                digest: format!("sha256:{config_sha256}"),
                size: config.len() as u64,
                annotations: BTreeMap::new(),
            },
            layers: vec![Descriptor {
                media_type: LAYER.to_owned(),
                digest: format!("sha256:{layer_sha256}"),
                size: component.len() as u64,
                annotations: BTreeMap::from([annotation("title", title)]),
            }],
            annotations: annotations(about),
        })?;
        Ok(Self {
            config,
            manifest,
            config_sha256,
            layer_sha256,
        })
    }
}

/// Annotations that registries show, from the component's description of itself.
fn annotations(about: &ComponentMetadata) -> BTreeMap<String, String> {
    [
        ("version", &about.version),
        ("description", &about.description),
        ("authors", &about.authors),
        ("licenses", &about.licenses),
        ("source", &about.source),
        ("url", &about.homepage),
        ("revision", &about.revision),
    ]
    .into_iter()
    .filter_map(|(name, text)| Some(annotation(name, text.as_deref()?)))
    .collect()
}

fn annotation(name: &str, text: &str) -> (String, String) {
    (format!("org.opencontainers.image.{name}"), text.to_owned())
}

/// Shortens third-party text for an error message.
fn short(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(100) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn artifact() -> Artifact {
        let about = ComponentMetadata {
            exports: vec!["opilio:plugin/setup@0.3.0".into()],
            imports: vec!["opilio:plugin/log@0.3.0".into()],
            version: Some("1.2.3".into()),
            authors: Some("A Library".into()),
            ..ComponentMetadata::default()
        };
        Artifact::new(b"component", &about, "stories.wasm", Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn an_artifact_follows_the_cncf_definition() {
        let artifact = artifact();
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let digest = format!("sha256:{}", Sha256::of(b"component"));
        assert_eq!(
            read(&artifact.config),
            json!({
                "created": "1970-01-01T00:00:00Z",
                "author": "A Library",
                "architecture": "wasm",
                "os": "wasip2",
                "layerDigests": [digest],
                "component": {
                    "exports": ["opilio:plugin/setup@0.3.0"],
                    "imports": ["opilio:plugin/log@0.3.0"],
                },
            })
        );
        assert_eq!(
            read(&artifact.manifest),
            json!({
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {
                    "mediaType": "application/vnd.wasm.config.v0+json",
                    "digest": format!("sha256:{}", Sha256::of(&artifact.config)),
                    "size": artifact.config.len(),
                },
                "layers": [{
                    "mediaType": "application/wasm",
                    "digest": digest,
                    "size": 9,
                    "annotations": { "org.opencontainers.image.title": "stories.wasm" },
                }],
                "annotations": {
                    "org.opencontainers.image.authors": "A Library",
                    "org.opencontainers.image.version": "1.2.3",
                },
            })
        );
    }

    #[test]
    fn the_component_of_a_manifest_is_its_layer() {
        let layer = Manifest::layer(&artifact().manifest).unwrap();
        let sha256 = Sha256::of(b"component");
        assert_eq!(layer, Layer { sha256, bytes: 9 });
    }

    /// Checks the problem with the manifest of `artifact` after one value was replaced.
    #[track_caller]
    fn refused(pointer: &str, value: Value, problem: &str) {
        let mut manifest: Value = serde_json::from_slice(&artifact().manifest).unwrap();
        *manifest.pointer_mut(pointer).unwrap() = value;
        let found = Manifest::layer(manifest.to_string().as_bytes()).unwrap_err();
        assert!(found.to_string().contains(problem), "{found}");
    }

    #[test]
    fn a_manifest_of_something_else_is_refused() {
        let image = "application/vnd.oci.image.config.v1+json";
        refused("/config/mediaType", json!(image), image);
        let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
        refused("/layers/0/mediaType", json!(tar), tar);
        refused("/layers", json!([]), "0 layers");
        refused("/mediaType", json!(INDEX[0]), "an index of images");
        refused("/layers/0/digest", json!("sha512:00"), "is not a SHA-256");
        refused(
            "/layers/0/size",
            json!(COMPONENT_BYTES_MAX + 1),
            "67108865 bytes",
        );
        refused("/layers/0/size", json!(-1), "cannot read");
        let found = Manifest::layer(b"<html>").unwrap_err();
        assert!(matches!(found, ManifestProblem::Malformed(_)), "{found}");
    }
}
