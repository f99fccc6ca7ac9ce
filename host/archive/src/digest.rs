//! Labelled digests as WARC writes them: `sha1:` and 32 characters of base32, `sha256:` and 64 of hexadecimal.
//!
//! Indexes and replay tools compare SHA-1; SHA-256 is optional. This module does not decide which bytes (block or payload) a
//! digest covers.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha1::Digest as _;

/// A digest with its algorithm.
///
/// Formatted and serialised as `sha1:` and RFC 4648 base32 in upper case, which indexes compare, or as `sha256:` and
/// hexadecimal in lower case. Base32 of 256 bits ends in padding. A labelled digest is a token, which cannot have `=`, and
/// without padding warcio and jwarc take it for another digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Digest {
    /// 160 bits.
    Sha1([u8; 20]),
    /// 256 bits.
    Sha256([u8; 32]),
}

/// The algorithm of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// Expected by WARC tools: CDX indexes and deduplication compare it.
    #[default]
    Sha1,
    /// An algorithm without known collisions. Readers that verify accept it; indexes may not match it.
    Sha256,
}

/// Computes a digest piece by piece.
#[derive(Clone, Debug)]
pub struct Hasher(State);

#[derive(Clone, Debug)]
enum State {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

/// The reason why a text is not a known digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The text has no `label:` in front.
    #[error("no digest algorithm in {0:?}")]
    Label(String),
    /// A label other than `sha1` and `sha256`.
    #[error("unknown digest algorithm {0:?}")]
    Algorithm(String),
    /// Neither base32 nor hexadecimal of the right length.
    #[error("{0:?} is neither base32 nor hexadecimal of the right length")]
    Value(String),
}

impl Digest {
    /// The digest of the given bytes.
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The SHA-1 digest of the given bytes.
    pub fn sha1(bytes: &[u8]) -> Digest {
        Digest::of(Algorithm::Sha1, bytes)
    }

    /// The algorithm of the digest.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Digest::Sha1(_) => Algorithm::Sha1,
            Digest::Sha256(_) => Algorithm::Sha256,
        }
    }

    /// The bare bytes: 20 or 32.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Digest::Sha1(bytes) => bytes,
            Digest::Sha256(bytes) => bytes,
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Digest::Sha1(bytes) => write!(f, "sha1:{}", BASE32_NOPAD.encode(bytes)),
            Digest::Sha256(bytes) => write!(f, "sha256:{}", HEXLOWER.encode(bytes)),
        }
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
        })
    }
}

/// Parses base32 (either case, padded or not) and hexadecimal, which some tools write.
impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        let (label, value) = text
            .split_once(':')
            .ok_or_else(|| DigestError::Label(text.to_owned()))?;
        match label.to_ascii_lowercase().as_str() {
            "sha1" | "sha-1" => decode(value).map(Digest::Sha1),
            "sha256" | "sha-256" => decode(value).map(Digest::Sha256),
            _ => Err(DigestError::Algorithm(label.to_owned())),
        }
    }
}

fn decode<const N: usize>(value: &str) -> Result<[u8; N], DigestError> {
    let fault = || DigestError::Value(value.to_owned());
    let decoded = if value.len() == 2 * N {
        HEXLOWER_PERMISSIVE.decode(value.as_bytes())
    } else {
        BASE32_NOPAD.decode(value.trim_end_matches('=').to_ascii_uppercase().as_bytes())
    };
    decoded
        .map_err(|_| fault())?
        .try_into()
        .map_err(|_| fault())
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl Hasher {
    /// Creates a hasher without input.
    pub fn new(algorithm: Algorithm) -> Hasher {
        Hasher(match algorithm {
            Algorithm::Sha1 => State::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha1(state) => state.update(bytes),
            State::Sha256(state) => state.update(bytes),
        }
    }

    /// The digest of all added bytes.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha1(state) => Digest::Sha1(state.finalize().into()),
            State::Sha256(state) => Digest::Sha256(state.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, DigestError>) {
        let digest = text.parse::<Digest>();
        assert_eq!(
            digest.map(|digest| digest.to_string()),
            expected.map(str::to_owned)
        );
    }

    const EMPTY: &str = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

    #[test]
    fn the_digest_of_empty_input_is_the_well_known_one() {
        assert_eq!(Digest::sha1(b"").to_string(), EMPTY);
        assert_eq!(
            Digest::of(Algorithm::Sha256, b"").to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn base32_and_hexadecimal_are_read() {
        check(EMPTY, Ok(EMPTY));
        check("SHA1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj", Ok(EMPTY));
        check("sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709", Ok(EMPTY));
        check("sha1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709", Ok(EMPTY));
        let sha256 = Digest::of(Algorithm::Sha256, b"").to_string();
        let base32 = "sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ";
        check(base32, Ok(&sha256));
        check(&format!("{base32}===="), Ok(&sha256));
    }

    #[test]
    fn anything_else_is_refused() {
        check(
            "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            Err(DigestError::Label(
                "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".into(),
            )),
        );
        check(
            "md5:1B2M2Y8AsgTpgAmY7PhCfg==",
            Err(DigestError::Algorithm("md5".into())),
        );
        for value in [
            "",
            "=",
            "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBY",
            "ü",
            "0I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
        ] {
            check(
                &format!("sha1:{value}"),
                Err(DigestError::Value(value.into())),
            );
        }
    }

    #[test]
    fn pieces_make_the_same_digest_as_the_whole() {
        let mut hasher = Hasher::new(Algorithm::Sha1);
        hasher.update(b"ab");
        hasher.update(b"c");
        assert_eq!(hasher.finish(), Digest::sha1(b"abc"));
    }
}
