//! Messages as bytes: postcard, compressed by zstd.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum bytes of a message after decompression. Valid messages are within the limit of NATS; damaged ones may claim any size.
const DECODED_BYTES_MAX: usize = 64 << 20;

/// Compression level of zstd (3 is its default). Links of one site shrink to a quarter. Higher levels take longer than the fetch of
/// a page.
const LEVEL: i32 = 3;

/// Encodes a message.
pub(crate) fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Both steps cannot fail in memory: the types have known lengths, and the level is valid.
    let plain = postcard::to_stdvec(message).unwrap_or_default();
    zstd::bulk::compress(&plain, LEVEL).unwrap_or_default()
}

/// Decodes a message; `None` if it is not a message of this type.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let size = zstd::zstd_safe::get_frame_content_size(bytes).ok()??;
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size <= DECODED_BYTES_MAX)?;
    let plain = zstd::bulk::decompress(bytes, size).ok()?;
    postcard::from_bytes(&plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_messages_are_refused() {
        let message = (7_u64, "text".to_owned());
        let bytes = encode(&message);
        assert_eq!(decode(&bytes), Some(message));
        for wrong in [&b""[..], b"{}", &bytes[..bytes.len() - 1]] {
            assert_eq!(decode::<(u64, String)>(wrong), None);
        }
    }
}
