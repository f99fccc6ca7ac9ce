//! The policy for addresses that a fetch may connect to. It checks the address of every connection, after DNS. So no name,
//! redirect or new connection leads into the operator's own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The classes of addresses that the profile allows. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddressPolicy {
    /// Allow [`AddressClass::Private`] and [`AddressClass::Shared`].
    pub private: bool,
    /// Allow [`AddressClass::Loopback`].
    pub loopback: bool,
    /// Allow [`AddressClass::LinkLocal`].
    pub link_local: bool,
    /// Allow [`AddressClass::Metadata`].
    pub metadata: bool,
}

/// A special-purpose class of addresses (IANA special-purpose address registries).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// 127.0.0.0/8, ::1.
    Loopback,
    /// 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15, fc00::/7, fec0::/10.
    Private,
    /// 100.64.0.0/10 (RFC 6598): carriers' own networks.
    Shared,
    /// 169.254.0.0/16, fe80::/10.
    LinkLocal,
    /// Metadata services of clouds, which give a machine its secrets: [`METADATA_V4`] and [`METADATA_V6`]. They lie in the
    /// ranges above. They are a class of their own, so that no other class opens them.
    Metadata,
    /// 0.0.0.0/8, ::.
    Unspecified,
    /// 224.0.0.0/4, ff00::/8.
    Multicast,
    /// 240.0.0.0/4, broadcast included; 192.0.0.0/24.
    Reserved,
}

/// Metadata services. Those of most clouds (and their task credentials) have link-local addresses. The others are Alibaba's,
/// Oracle's (192.0.0.192) and Azure's wire server, whose public address leads nowhere else.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// Metadata services over IPv6: two of Amazon, one each of Google and Oracle.
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0xa9fe, 0xa9fe, 0xa9fe, 0xa9fe),
];

impl AddressPolicy {
    /// Allows every class that can be allowed.
    pub const ALL: AddressPolicy = AddressPolicy {
        private: true,
        loopback: true,
        link_local: true,
        metadata: true,
    };

    /// Checks whether the profile allows a connection to `address`.
    ///
    /// # Errors
    /// The class that forbids it. Unspecified, multicast and reserved addresses are never allowed: no server has one.
    pub fn check(self, address: IpAddr) -> Result<(), AddressClass> {
        let Some(class) = class_of(address) else {
            return Ok(());
        };
        let allowed = match class {
            AddressClass::Private | AddressClass::Shared => self.private,
            AddressClass::Loopback => self.loopback,
            AddressClass::LinkLocal => self.link_local,
            AddressClass::Metadata => self.metadata,
            AddressClass::Unspecified | AddressClass::Multicast | AddressClass::Reserved => false,
        };
        if allowed { Ok(()) } else { Err(class) }
    }
}

impl std::fmt::Display for AddressClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::Shared => "shared",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Metadata => "metadata",
            AddressClass::Unspecified => "unspecified",
            AddressClass::Multicast => "multicast",
            AddressClass::Reserved => "reserved",
        })
    }
}

/// The special class of an address; `None` for an ordinary one.
fn class_of(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

fn class_of_v4(address: Ipv4Addr) -> Option<AddressClass> {
    if METADATA_V4.contains(&address) {
        return Some(AddressClass::Metadata);
    }
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => AddressClass::Unspecified,
        (127, ..) => AddressClass::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (198, 18..=19, _) => AddressClass::Private,
        (100, 64..=127, _) => AddressClass::Shared,
        (169, 254, _) => AddressClass::LinkLocal,
        (224..=239, ..) => AddressClass::Multicast,
        (240..=255, ..) | (192, 0, 0) => AddressClass::Reserved,
        _ => return None,
    })
}

fn class_of_v6(address: Ipv6Addr) -> Option<AddressClass> {
    let s = address.segments();
    if METADATA_V6.contains(&address) {
        return Some(AddressClass::Metadata);
    }
    if address.is_unspecified() {
        return Some(AddressClass::Unspecified);
    }
    if address.is_loopback() {
        return Some(AddressClass::Loopback);
    }
    if let Some(embedded) = embedded_v4(s) {
        return class_of_v4(embedded);
    }
    Some(match s[0] {
        0xfc00..=0xfdff | 0xfec0..=0xfeff => AddressClass::Private,
        0xfe80..=0xfebf => AddressClass::LinkLocal,
        0xff00..=0xffff => AddressClass::Multicast,
        // RFC 8215: translation within one network.
        0x0064 if s[1] == 0xff9b && s[2] == 1 => AddressClass::Private,
        _ => return None,
    })
}

/// The IPv4 address at which packets to this IPv6 address end: mapped, compatible, translated (RFC 2765), NAT64 (RFC 6052),
/// 6to4 (RFC 3056), ISATAP (RFC 5214). Teredo (RFC 4380) inverts it.
fn embedded_v4(s: [u16; 8]) -> Option<Ipv4Addr> {
    let (high, low) = match s {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => (high, low),
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        [0x2001, 0, _, _, _, _, high, low] => (!high, !low),
        [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: AddressPolicy = AddressPolicy {
        private: false,
        loopback: false,
        link_local: false,
        metadata: false,
    };

    /// Checks that `NONE` refuses the addresses for this class, and that only permission for this class allows them.
    #[track_caller]
    fn check(class: AddressClass, own: AddressPolicy, addresses: &[&str]) {
        let others = AddressPolicy {
            private: !own.private,
            loopback: !own.loopback,
            link_local: !own.link_local,
            metadata: !own.metadata,
        };
        for address in addresses {
            let ip = address.parse().unwrap();
            assert_eq!(NONE.check(ip), Err(class), "{address}");
            assert_eq!(own.check(ip), Ok(()), "{address}");
            assert_eq!(others.check(ip), Err(class), "{address}");
        }
    }

    #[test]
    fn ordinary_addresses_are_always_allowed() {
        for address in [
            "93.184.216.34",
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "192.0.2.1",
            "168.63.129.17",
            "2606:4700::1111",
            "::ffff:93.184.216.34",
            "64:ff9b::5db8:d822",
            "2001:0:5ef5:79fb::a247:27dd",
        ] {
            assert_eq!(NONE.check(address.parse().unwrap()), Ok(()), "{address}");
        }
    }

    #[test]
    fn internal_addresses_are_allowed_by_their_class_only() {
        let private = AddressPolicy {
            private: true,
            ..NONE
        };
        let private_addresses = [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.18.0.1",
            "fd00:ec2::255",
            "fec0::1",
            "::ffff:10.0.0.1",
            "64:ff9b:1::1",
            "2002:c0a8:101::1",
            "2001:0:5ef5:79fb::f5ff:fffe",
            "2001:db8::5efe:10.0.0.1",
        ];
        check(AddressClass::Private, private, &private_addresses);
        check(
            AddressClass::Shared,
            private,
            &["100.64.0.1", "100.100.100.201"],
        );
        let loopback = AddressPolicy {
            loopback: true,
            ..NONE
        };
        let loopback_addresses = [
            "127.0.0.1",
            "127.255.1.2",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fe80::200:5efe:127.0.0.1",
        ];
        check(AddressClass::Loopback, loopback, &loopback_addresses);
        let link_local = AddressPolicy {
            link_local: true,
            ..NONE
        };
        let link_local_addresses = ["169.254.1.1", "fe80::1", "::ffff:169.254.1.1"];
        check(AddressClass::LinkLocal, link_local, &link_local_addresses);
    }

    #[test]
    fn metadata_services_are_allowed_by_their_class_only() {
        let metadata = AddressPolicy {
            metadata: true,
            ..NONE
        };
        let addresses = [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
        ];
        check(AddressClass::Metadata, metadata, &addresses);
    }

    #[test]
    fn unspecified_multicast_and_reserved_addresses_are_never_allowed() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.8",
            "ff02::1",
            "::ffff:0.0.0.0",
        ] {
            let address = address.parse().unwrap();
            assert!(AddressPolicy::ALL.check(address).is_err(), "{address}");
        }
    }
}
