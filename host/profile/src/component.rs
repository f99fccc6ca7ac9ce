//! References to components, in a profile or on a command line: built in, a file, a folder, or an image in a registry. This
//! module only parses the text; `opilio-source` loads the component.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::check::quote;

/// Prefix of a component that is embedded in the binary.
const BUILTIN: &str = "builtin:";
/// Prefix of an image in a registry.
const OCI: &str = "oci://";
/// Longest tag, in characters, by the OCI distribution specification.
const TAG_CHARS_MAX: usize = 128;
/// Longest name of host and repository together, in bytes: the limit of registries.
const NAME_BYTES_MAX: usize = 255;

/// The origin of a component, and its plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ComponentReference {
    /// Embedded in the binary, by the plugin's name.
    Builtin(String),
    /// A file, or a folder in which one of the files with the extension `wasm` has the plugin.
    File {
        /// Absolute, or relative to the current folder.
        path: PathBuf,
        /// The plugin; `None` if the component should have only one.
        plugin: Option<String>,
    },
    /// An image in a registry.
    Image {
        /// Its name.
        image: Image,
        /// The plugin; `None` if the component should have only one.
        plugin: Option<String>,
    },
}

/// The name of an image: `oci://registry/repository:tag`, `oci://registry/repository@sha256:…`, or with both. With both the digest
/// decides and the tag is a comment. Registry and tag have no defaults, so an archived name identifies the component even years
/// later.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Image {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Reason for which a text does not name a component, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentProblem {
    /// The problem, with the text.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl fmt::Display for ComponentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem, self.remedy)
    }
}

impl std::error::Error for ComponentProblem {}

impl ComponentReference {
    /// Parses a reference; relative paths start at `base`. It does not check that the component exists.
    ///
    /// # Errors
    /// The problem with the text.
    pub fn parse(written: &str, base: &Path) -> Result<Self, ComponentProblem> {
        let trimmed = written.trim();
        if let Some(name) = trimmed.strip_prefix(BUILTIN) {
            return Ok(Self::Builtin(name.to_owned()));
        }
        let (place, plugin) = match trimmed.rsplit_once('#') {
            Some((place, plugin)) => (place, Some(plugin.to_owned())),
            None => (trimmed, None),
        };
        let component = if place.starts_with(OCI) {
            let image = Image::parse(place)?;
            Self::Image { image, plugin }
        } else if place.is_empty() || place.contains("://") || place.contains('\0') {
            return Err(ComponentProblem {
                problem: format!("not a component: {}", quote(written)),
                remedy: "write \"builtin:NAME\", a path such as \"./my-plugin.wasm\", or \
                         \"oci://registry/repository:tag\""
                    .to_owned(),
            });
        } else {
            let path = base.join(place);
            Self::File { path, plugin }
        };
        if component
            .plugin()
            .is_some_and(|plugin| !is_plugin_name(plugin))
        {
            return Err(ComponentProblem {
                problem: format!("not a plugin name after #: {}", quote(written)),
                remedy: "write it as the component describes it: \"./my-plugin.wasm#name\""
                    .to_owned(),
            });
        }
        Ok(component)
    }

    /// The plugin of the component; `None` if the component should have only one.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        match self {
            Self::Builtin(name) => Some(name),
            Self::File { plugin, .. } | Self::Image { plugin, .. } => plugin.as_deref(),
        }
    }
}

impl fmt::Display for ComponentReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin(name) => return write!(f, "{BUILTIN}{name}"),
            Self::File { path, .. } => write!(f, "{}", path.display())?,
            Self::Image { image, .. } => write!(f, "{image}")?,
        }
        match self.plugin() {
            Some(plugin) => write!(f, "#{plugin}"),
            None => Ok(()),
        }
    }
}

impl Image {
    /// Parses `oci://registry/repository`, with `:tag`, `@sha256:…` or both after it.
    ///
    /// # Errors
    /// The problem with the text.
    pub fn parse(written: &str) -> Result<Self, ComponentProblem> {
        let refuse = |problem: &str, remedy: &str| ComponentProblem {
            problem: format!("{problem}: {}", quote(written)),
            remedy: remedy.to_owned(),
        };
        let Some(rest) = written.strip_prefix(OCI) else {
            return Err(refuse(
                "not an image in a registry",
                "write \"oci://registry/repository:tag\"",
            ));
        };
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err(refuse(
                "not a digest after @",
                "write @sha256: and 64 lower-case hexadecimal digits, as registries and `opilio plugin push` print them",
            ));
        }
        let Some((registry, path)) = rest.split_once('/') else {
            return Err(refuse(
                "no repository in",
                "write \"oci://registry/repository:tag\"",
            ));
        };
        if !is_registry(registry) {
            return Err(refuse(
                "not a registry's name in",
                "write a host name, with a port if need be, such as \"oci://registry.example.org:5000/plugins/stories:1.0\"",
            ));
        }
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if !repository.split('/').all(is_repository_part)
            || registry.len() + 1 + repository.len() > NAME_BYTES_MAX
        {
            return Err(refuse(
                "not a repository's name in",
                "write lower-case words, digits, and single . _ - between them, joined by /",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(refuse(
                "not a tag in",
                "write at most 128 letters, digits and . _ -, not beginning with . or -",
            ));
        }
        if tag.is_none() && digest.is_none() {
            return Err(refuse(
                "neither tag nor digest in",
                "add the version, \":tag\" or \"@sha256:…\"; there is no default version",
            ));
        }
        Ok(Self {
            registry: registry.to_ascii_lowercase(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }

    /// Host, with the port if one is written.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Path of the repository within the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if one is written.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest of the manifest with its algorithm, `sha256:…`, if one is written.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The same image, bound to a manifest by its SHA-256 (64 hexadecimal digits). It stays the same when the tag moves.
    #[must_use]
    pub fn at(&self, sha256: &str) -> Self {
        Self {
            digest: Some(format!("sha256:{sha256}")),
            ..self.clone()
        }
    }

    /// Returns `true` if the registry is on this machine. Plain HTTP to it cannot be intercepted on a network.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = match self.registry.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.registry,
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.ends_with(".localhost")
            || bare
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{OCI}{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Image {
    type Error = ComponentProblem;

    fn try_from(written: String) -> Result<Self, Self::Error> {
        Self::parse(&written)
    }
}

impl From<Image> for String {
    fn from(image: Image) -> Self {
        image.to_string()
    }
}

/// Returns `true` if a text is a name of a plugin or instance: lower-case words joined by hyphens.
pub(crate) fn is_plugin_name(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.len() <= 64 && name.split('-').all(word)
}

/// Returns `true` if a text is a host name or address, with or without port.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((address, port)) = rest.split_once(']') else {
                return false;
            };
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            (
                "",
                port.strip_prefix(':').or((!port.is_empty()).then_some("")),
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let is_host = text.starts_with('[') || host.split('.').all(label);
    let is_port = port.is_none_or(|port| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    is_host && is_port
}

/// Returns `true` if a text matches `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`, by the OCI distribution specification.
fn is_repository_part(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut separators = part
        .split(|c: char| c.is_ascii() && is_word(c as u8))
        .filter(|separator| !separator.is_empty());
    part.bytes().next().is_some_and(is_word)
        && part.bytes().next_back().is_some_and(is_word)
        && separators.all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

/// Returns `true` if a text matches `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
fn is_tag(tag: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    tag.len() <= TAG_CHARS_MAX
        && tag
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && tag.bytes().all(inner)
}

/// Returns `true` if a text is a SHA-256 digest. Every registry supports this algorithm, and pins use it.
fn is_digest(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:9da5b3ad9d659c648084c39cfa0d512288d26a2145949795e1daafc3d4deb05e";

    #[track_caller]
    fn image(written: &str) -> Image {
        Image::parse(written).unwrap_or_else(|problem| panic!("{problem}"))
    }

    #[track_caller]
    fn check_refused(written: &str, problem: &str) {
        let found = ComponentReference::parse(written, Path::new("")).unwrap_err();
        assert!(found.problem.contains(problem), "{found}");
    }

    #[test]
    fn an_image_is_parsed_and_formatted_unchanged() {
        for (written, registry, repository, tag, digest) in [
            (
                "oci://r.example/p:1.0".to_owned(),
                "r.example",
                "p",
                Some("1.0"),
                None,
            ),
            (
                format!("oci://r.example:5000/a/b-c/d__e@{DIGEST}"),
                "r.example:5000",
                "a/b-c/d__e",
                None,
                Some(DIGEST),
            ),
            (
                format!("oci://[::1]:5000/p:v_1@{DIGEST}"),
                "[::1]:5000",
                "p",
                Some("v_1"),
                Some(DIGEST),
            ),
            (
                "oci://localhost/p:latest".to_owned(),
                "localhost",
                "p",
                Some("latest"),
                None,
            ),
        ] {
            let image = image(&written);
            assert_eq!(
                (
                    image.registry(),
                    image.repository(),
                    image.tag(),
                    image.digest()
                ),
                (registry, repository, tag, digest)
            );
            assert_eq!(image.to_string(), written);
        }
    }

    #[test]
    fn an_invalid_image_is_refused_with_the_reason() {
        check_refused("oci://r.example", "no repository");
        check_refused("oci://r.example/p", "neither tag nor digest");
        check_refused("oci:///p:1", "not a registry's name");
        check_refused("oci://r.example:port/p:1", "not a registry's name");
        check_refused("oci://r.example:/p:1", "not a registry's name");
        check_refused("oci://r.example:99999/p:1", "not a registry's name");
        check_refused("oci://[::1/p:1", "not a registry's name");
        check_refused("oci://[::1]5000/p:1", "not a registry's name");
        check_refused("oci://user@r.example/p:1", "not a digest");
        check_refused("oci://-r.example/p:1", "not a registry's name");
        check_refused("oci://r.example/Plugins:1", "not a repository's name");
        check_refused("oci://r.example/a//b:1", "not a repository's name");
        check_refused("oci://r.example/a..b:1", "not a repository's name");
        check_refused("oci://r.example/é:1", "not a repository's name");
        check_refused("oci://r.example/../v2:1", "not a repository's name");
        check_refused(
            &format!("oci://r.example/{}:1", "a".repeat(300)),
            "not a repository's name",
        );
        check_refused("oci://r.example/p:", "not a tag");
        check_refused("oci://r.example/p:-1", "not a tag");
        check_refused(
            &format!("oci://r.example/p:{}", "1".repeat(129)),
            "not a tag",
        );
        check_refused("oci://r.example/p:1?a=b", "not a tag");
        check_refused("oci://r.example/p@sha256:12", "not a digest");
        check_refused(
            &format!("oci://r.example/p@{}", DIGEST.to_ascii_uppercase()),
            "not a digest",
        );
        check_refused("oci://r.example/p:1#Name", "not a plugin name");
        check_refused("https://r.example/p.wasm", "not a component");
        check_refused("#name", "not a component");
        check_refused("", "not a component");
    }

    #[test]
    fn a_plugin_is_named_after_the_hash() {
        let component =
            |written: &str| ComponentReference::parse(written, Path::new("/base")).unwrap();
        assert_eq!(
            component("builtin:html"),
            ComponentReference::Builtin("html".into())
        );
        let ComponentReference::File { path, plugin } = component("./folder#stories") else {
            panic!("no file")
        };
        assert_eq!(
            (path, plugin.as_deref()),
            ("/base/./folder".into(), Some("stories"))
        );
        let written = "oci://r.example/p:1#stories";
        assert_eq!(component(written).plugin(), Some("stories"));
        assert_eq!(component(written).to_string(), written);
    }

    #[test]
    fn loopback_is_recognised_by_name_and_by_address() {
        for (registry, loopback) in [
            ("localhost", true),
            ("localhost:5000", true),
            ("registry.localhost:5000", true),
            ("127.0.0.1:5000", true),
            ("127.9.9.9", true),
            ("[::1]:5000", true),
            ("[::1]", true),
            ("[2001:db8::1]:5000", false),
            ("10.0.0.1:5000", false),
            ("localhost.example", false),
            ("127.0.0.1.example", false),
        ] {
            assert_eq!(
                image(&format!("oci://{registry}/p:1")).is_loopback(),
                loopback,
                "{registry}"
            );
        }
    }

    #[test]
    fn a_tag_is_bound_to_a_manifest() {
        let bound = image("oci://r.example/p:1").at(&DIGEST[7..]);
        assert_eq!(bound.to_string(), format!("oci://r.example/p:1@{DIGEST}"));
    }
}
