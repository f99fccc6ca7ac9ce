//! `ip-set`: decides by the IP address of the server.
//!
//! Addresses are known from pre-fetch on. At the stage scope the filter has no opinion, so it belongs in the stack `pre-fetch`.

use std::net::IpAddr;

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;

/// Decides on servers whose address is in one of its networks.
pub struct IpSet {
    networks: Vec<Network>,
    decisions: Decisions,
}

/// Settings of `ip-set`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Addresses (`192.0.2.7`, `2001:db8::7`) and networks (`192.0.2.0/24`, `2001:db8::/32`).
    #[schemars(extend("x-opilio-overridable" = true))]
    pub addresses: Vec<String>,
    /// The decision on servers at these addresses.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other servers. Unknown addresses get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

/// A network: an address and the number of bits that count.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Network {
    /// The address; IPv4 as ::ffff:0:0/96 (RFC 4291 §2.5.5.2). All bits past the length are zero.
    address: u128,
    bits: u32,
    /// The network as in the settings, for the reason of a ruling.
    text: String,
}

impl Network {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (address, bits) = text
            .split_once('/')
            .map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.trim_matches(['[', ']']).parse().map_err(|_| {
            format!("`{text}` is not an address; write it like `192.0.2.7`, `192.0.2.0/24` or `2001:db8::/32`")
        })?;
        let (longest, offset) = match address {
            IpAddr::V4(_) => (32, 96),
            IpAddr::V6(_) => (128, 0),
        };
        let bits = match bits {
            None => longest,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|bits| *bits <= longest)
                .ok_or_else(|| {
                    format!("`{text}` needs a length from 0 to {longest} after its slash")
                })?,
        };
        let (number, bits) = (number_of(address), offset + bits);
        let address = number & mask(bits);
        if address != number {
            return Err(format!(
                "`{text}` has bits set after its length; clear them or give a longer length"
            ));
        }
        Ok(Self {
            address,
            bits,
            text: text.to_owned(),
        })
    }

    fn contains(&self, address: u128) -> bool {
        address & mask(self.bits) == self.address
    }
}

fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

/// Converts an address to a number. An IPv4 address is mapped to IPv6 first.
fn number_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Plugin for IpSet {
    const NAME: &'static str = "ip-set";
    const SUMMARY: &'static str =
        "Rejects or accepts servers at listed addresses or in listed networks.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self {
            networks: list::parse_each("addresses", &settings.addresses, Network::parse)?,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for IpSet {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let address = candidate.address().and_then(|text| text.parse().ok());
        let finding = match address {
            Some(address) if !self.networks.is_empty() => {
                let number = number_of(address);
                let mut networks = self.networks.iter();
                let network = networks.find(|network| network.contains(number));
                Finding::from_match(
                    network.map(|network| format!("{address} in {}", network.text)),
                    "in none of the networks",
                )
            }
            _ => Finding::Unknown,
        };
        self.decisions.rule(finding)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[track_caller]
    fn check(network: &str, address: &str, expected: bool) {
        let network = Network::parse(network).unwrap();
        assert_eq!(
            network.contains(number_of(address.parse().unwrap())),
            expected
        );
    }

    #[test]
    fn a_network_contains_its_addresses() {
        check("192.0.2.0/24", "192.0.2.255", true);
        check("192.0.2.0/24", "192.0.3.0", false);
        check("192.0.2.7", "192.0.2.7", true);
        check("192.0.2.7", "192.0.2.6", false);
        check("0.0.0.0/0", "255.255.255.255", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("192.0.2.0/24", "::ffff:192.0.2.9", true);
        check("2001:db8::/32", "2001:db8:ffff::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("::/0", "192.0.2.1", true);
        check("[::1]", "::1", true);
    }

    #[test]
    fn invalid_networks_are_refused() {
        for text in [
            "",
            "example.org",
            "192.0.2.0/33",
            "192.0.2.0/",
            "192.0.2.1/24",
            "2001:db8::/129",
            "192.0.2",
        ] {
            assert!(Network::parse(text).is_err(), "{text:?}");
        }
    }
}
