//! Which addresses may be connected to at all. Asked with the address of every connection, after DNS, so that no name,
//! redirect or reconnect leads into the operator's own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the profile allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Allow loopback, private, shared and link-local addresses (cloud metadata services answer on the last).
    /// Default: false.
    pub private: bool,
}

/// What an address is for, where it is not for everybody (IANA special-purpose address registries).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// 127.0.0.0/8, ::1.
    Loopback,
    /// 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15, fc00::/7, fec0::/10.
    Private,
    /// 100.64.0.0/10 (RFC 6598): carriers, and some clouds' metadata.
    Shared,
    /// 169.254.0.0/16, fe80::/10: clouds' metadata.
    LinkLocal,
    /// 0.0.0.0/8, ::.
    Unspecified,
    /// 224.0.0.0/4, ff00::/8.
    Multicast,
    /// 240.0.0.0/4, broadcast included; 192.0.0.0/24.
    Reserved,
}

impl AddressPolicy {
    /// Whether `address` may be connected to.
    ///
    /// # Errors
    /// The class that forbids it. Unspecified, multicast and reserved addresses are never allowed: nobody serves there.
    pub fn check(self, address: IpAddr) -> Result<(), AddressClass> {
        match class_of(address) {
            None => Ok(()),
            Some(
                AddressClass::Loopback
                | AddressClass::Private
                | AddressClass::Shared
                | AddressClass::LinkLocal,
            ) if self.private => Ok(()),
            Some(class) => Err(class),
        }
    }
}

impl std::fmt::Display for AddressClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::Shared => "shared",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Unspecified => "unspecified",
            AddressClass::Multicast => "multicast",
            AddressClass::Reserved => "reserved",
        })
    }
}

/// The special class of an address; none for an ordinary one.
fn class_of(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

fn class_of_v4(address: Ipv4Addr) -> Option<AddressClass> {
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

/// The IPv4 address that packets to this IPv6 address end at: mapped, compatible, NAT64 (RFC 6052), 6to4 (RFC 3056).
fn embedded_v4(s: [u16; 8]) -> Option<Ipv4Addr> {
    let (high, low) = match s {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => (high, low),
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[track_caller]
    fn check(address: &str, public: bool, private: bool) {
        let ip = address.parse().unwrap();
        let open = |private| AddressPolicy { private }.check(ip).is_ok();
        assert_eq!((open(false), open(true)), (public, private), "{address}");
    }

    #[test]
    fn ordinary_addresses_are_open_to_all() {
        for address in [
            "93.184.216.34",
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "192.0.2.1",
            "2606:4700::1111",
            "::ffff:93.184.216.34",
            "64:ff9b::5db8:d822",
        ] {
            check(address, true, true);
        }
    }

    #[test]
    fn ones_own_network_is_open_by_policy_alone() {
        for address in [
            "127.0.0.1",
            "127.255.1.2",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "198.18.0.1",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "fec0::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
        ] {
            check(address, false, true);
        }
    }

    #[test]
    fn what_nobody_serves_on_is_never_open() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "ff02::1",
            "::ffff:0.0.0.0",
        ] {
            check(address, false, false);
        }
    }
}
