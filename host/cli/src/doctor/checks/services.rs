//! Services of the system that a crawl uses: names, clock, certificates, and Chromium.

use std::time::Duration;

use indicatif::HumanDuration;

use crate::doctor::environment::{Certificates, Chromium, Clock, Lookup};
use crate::doctor::finding::{Finding, error, ok, warning};

/// A look-up that takes longer delays every new host.
const LOOKUP_SLOW: Duration = Duration::from_secs(1);

pub(super) fn names(lookup: &Lookup) -> Finding {
    const NAME: &str = "dns";
    let Lookup {
        host,
        servers,
        answer,
    } = lookup;
    let servers = match servers.is_empty() {
        true => "no name server configured".to_owned(),
        false => format!("name servers {}", servers.join(", ")),
    };
    match answer {
        Err(problem) => error(
            NAME,
            format!("{problem}; {servers}"),
            "correct /etc/resolv.conf or dns.servers of the profile; --resolve HOST looks up another host",
        ),
        Ok(answer) => {
            let found = format!(
                "{host} has {} addresses, answered in {} ms; {servers}",
                answer.addresses.len(),
                answer.time.as_millis()
            );
            match answer.time > LOOKUP_SLOW {
                true => warning(
                    NAME,
                    found,
                    "use a caching name server on this machine or near it (dns.servers)",
                ),
                false => ok(NAME, found),
            }
        }
    }
}

pub(super) fn clock(clock: &Clock) -> Finding {
    const NAME: &str = "clock";
    let service = "run a time service, such as chrony or systemd-timesyncd: WARC dates and visits depend on the clock";
    match (clock.since_program, clock.is_synchronised) {
        (Some(since), _) if since.is_negative() => error(
            NAME,
            format!(
                "behind by {} or more: this program was installed later",
                HumanDuration(since.unsigned_abs())
            ),
            service,
        ),
        (_, Some(true)) => ok(NAME, "synchronised"),
        (_, Some(false)) => warning(NAME, "the kernel reports no synchronisation", service),
        (_, None) => ok(NAME, "not reported by the system"),
    }
}

pub(super) fn certificates(certificates: &Certificates) -> Finding {
    const NAME: &str = "certificates";
    let Certificates { roots, problems } = certificates;
    let found = format!("{roots} root certificates of the system");
    match (roots, problems.first()) {
        (0, _) => error(
            NAME,
            format!("{found}, so every https site fails with -9"),
            "install ca-certificates, or set SSL_CERT_FILE",
        ),
        (_, Some(problem)) => warning(
            NAME,
            format!("{found}; {} cannot be read: {problem}", problems.len()),
            "install ca-certificates again, or correct SSL_CERT_FILE and SSL_CERT_DIR",
        ),
        (_, None) => ok(NAME, found),
    }
}

pub(super) fn chromium(chromium: &Chromium) -> Finding {
    const NAME: &str = "chromium";
    match (&chromium.found, chromium.is_needed) {
        (Ok(found), _) => ok(NAME, found),
        (Err(problem), true) => error(
            NAME,
            problem,
            "install Chromium, set browser.executable, or set browser.render to \"never\"",
        ),
        (Err(problem), false) => ok(
            NAME,
            format!(
                "not needed by this profile, which renders no pages (browser.render): {problem}"
            ),
        ),
    }
}
