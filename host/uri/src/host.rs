//! Host names: their validity, their reversed labels in SURT, and their registrable domain.

use std::net::Ipv4Addr;

/// Longest host name, in bytes, without the trailing dot of the root (RFC 1035 §2.3.4: 255 octets on the wire).
pub const HOST_BYTES_MAX: usize = 253;

/// Longest label of a host name in bytes (RFC 1035 §2.3.4).
pub const LABEL_BYTES_MAX: usize = 63;

/// The reason why a host name cannot belong to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostFault {
    /// The host is missing.
    #[error("no host")]
    Empty,
    /// Two dots in a row, or a dot at the start.
    #[error("an empty label")]
    EmptyLabel,
    /// A label longer than [`LABEL_BYTES_MAX`].
    #[error("a label of {length} bytes, more than {LABEL_BYTES_MAX}")]
    LongLabel {
        /// Bytes of the label.
        length: usize,
    },
    /// A name longer than [`HOST_BYTES_MAX`].
    #[error("{length} bytes, more than {HOST_BYTES_MAX}")]
    Long {
        /// Bytes of the name without its trailing dot.
        length: usize,
    },
    /// A character other than letters, digits, hyphen and underscore.
    #[error("the character {0:?}")]
    Character(char),
}

/// Checks a lower-case ASCII name. Underscores and hyphens are allowed anywhere, because such servers exist. All other
/// characters except letters and digits are refused: no name server answers for them, and SURT gives them a meaning.
pub(crate) fn check_name(name: &str) -> Result<(), HostFault> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        return Err(HostFault::Empty);
    }
    let mut label = 0;
    for character in name.chars() {
        match character {
            '.' if label == 0 => return Err(HostFault::EmptyLabel),
            '.' => label = 0,
            'a'..='z' | '0'..='9' | '-' | '_' => {
                label += 1;
                if label > LABEL_BYTES_MAX {
                    let length = name.split('.').map(str::len).max().unwrap_or(label);
                    return Err(HostFault::LongLabel { length });
                }
            }
            other => return Err(HostFault::Character(other)),
        }
    }
    if label == 0 {
        return Err(HostFault::EmptyLabel);
    }
    if name.len() > HOST_BYTES_MAX {
        return Err(HostFault::Long { length: name.len() });
    }
    Ok(())
}

/// Returns `true` if a host is an address rather than a name. An address is never reversed and has no domain.
pub(crate) fn is_address(host: &str) -> bool {
    match host.as_bytes().first() {
        Some(b'[') => true,
        Some(b'0'..=b'9') => host.parse::<Ipv4Addr>().is_ok(),
        _ => false,
    }
}

/// Appends the labels of `host` from the right, each followed by a comma: `www.example.org` → `org,example,www,`.
/// Addresses are appended unchanged. The trailing dot of the root is left out.
pub(crate) fn push_reversed(out: &mut String, host: &str) {
    if is_address(host) {
        out.push_str(host);
        return;
    }
    for label in host.strip_suffix('.').unwrap_or(host).rsplit('.') {
        out.push_str(label);
        out.push(',');
    }
}

/// Appends the host of a reversed one, the inverse of [`push_reversed`], for names and addresses alike.
pub(crate) fn push_restored(out: &mut String, reversed: &str) {
    match reversed.strip_suffix(',') {
        None => out.push_str(reversed),
        Some(labels) => {
            for (index, label) in labels.rsplit(',').enumerate() {
                if index > 0 {
                    out.push('.');
                }
                out.push_str(label);
            }
        }
    }
}

/// The registrable domain of a host: its public suffix and one label more. `None` for addresses and public suffixes.
pub(crate) fn registrable(host: &str) -> Option<&str> {
    if is_address(host) {
        return None;
    }
    psl::domain_str(host.strip_suffix('.').unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Result<(), HostFault>) {
        assert_eq!(check_name(name), expected, "{name:?}");
    }

    #[test]
    fn names_of_real_servers_pass() {
        for name in [
            "a",
            "example.org",
            "x_y.2u.com",
            "-a-.b",
            "example.org.",
            "xn--bcher-kva.example",
        ] {
            check(name, Ok(()));
        }
        check(&"a".repeat(63), Ok(()));
    }

    #[test]
    fn a_refusal_names_its_reason() {
        check("", Err(HostFault::Empty));
        check(".", Err(HostFault::Empty));
        check(".a", Err(HostFault::EmptyLabel));
        check("a..b", Err(HostFault::EmptyLabel));
        check("a..", Err(HostFault::EmptyLabel));
        check("a\"b", Err(HostFault::Character('"')));
        check("a,b", Err(HostFault::Character(',')));
        check("a%20", Err(HostFault::Character('%')));
        check(&"a".repeat(64), Err(HostFault::LongLabel { length: 64 }));
        check(&"ab.".repeat(90), Err(HostFault::Long { length: 269 }));
    }

    #[test]
    fn labels_are_reversed_and_restored() {
        for (host, reversed) in [
            ("www.example.org", "org,example,www,"),
            ("localhost", "localhost,"),
            ("127.2.34.5", "127.2.34.5"),
            ("[::1]", "[::1]"),
        ] {
            let (mut there, mut back) = (String::new(), String::new());
            push_reversed(&mut there, host);
            push_restored(&mut back, &there);
            assert_eq!((there.as_str(), back.as_str()), (reversed, host));
        }
    }

    #[test]
    fn the_domain_is_the_public_suffix_and_one_label() {
        for (host, domain) in [
            ("www.example.co.uk", Some("example.co.uk")),
            ("example.org.", Some("example.org")),
            ("co.uk", None),
            ("10.0.0.1", None),
            ("[::1]", None),
            (
                "www.xn--85x722f.xn--55qx5d.cn",
                Some("xn--85x722f.xn--55qx5d.cn"),
            ),
        ] {
            assert_eq!(registrable(host), domain, "{host}");
        }
    }
}
