//! Blocked ports: those of mail, shells, IRC and other services. A link to such a port would make the crawler send text that
//! the server may take for its own protocol.

use crate::config::FetcherConfig;
use crate::failure::FetchFailure;
use crate::stream::Server;

/// The Fetch Standard's bad ports (§2.9, "Port blocking"), in order.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Returns `true` if a port is that of another service than HTTP, and the profile does not allow it.
#[must_use]
pub fn is_bad_port(port: u16, allowed: &[u16]) -> bool {
    BAD_PORTS.binary_search(&port).is_ok() && !allowed.contains(&port)
}

/// Fails if a URI names a bad port that is neither its scheme's own nor allowed by the profile.
///
/// # Errors
/// [`FetchFailure::PortRefused`].
pub(crate) fn check(
    config: &FetcherConfig,
    server: &Server,
    own: &[u16],
) -> Result<(), FetchFailure> {
    let port = server.port;
    match is_bad_port(port, &config.allow_ports) && !own.contains(&port) {
        true => Err(FetchFailure::PortRefused { port }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(port: u16, own: &[u16], allowed: &[u16]) -> bool {
        let mut config = FetcherConfig::new("test", "");
        config.allow_ports = allowed.to_vec();
        let server = Server {
            tls: false,
            host: "site.test".to_owned(),
            port,
        };
        check(&config, &server, own).is_err()
    }

    #[test]
    fn ports_of_other_services_are_refused() {
        assert!(BAD_PORTS.is_sorted());
        for port in [22, 25, 6667, 10080] {
            assert!(refused(port, &[], &[]), "{port}");
            assert!(refused(port, &[21], &[26]), "{port}");
        }
        for port in [80, 443, 8080, 8443, 10081, 65535] {
            assert!(!refused(port, &[], &[]), "{port}");
        }
    }

    #[test]
    fn ports_of_the_scheme_and_allowed_ports_are_not_refused() {
        assert!(!refused(21, &[21, 990], &[]));
        assert!(!refused(22, &[], &[22]));
    }
}
