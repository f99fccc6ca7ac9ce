//! Sites of a setting: domains and SURT prefixes. SURT prefixes are compared as the scope compares them.

use opilio_plugin::prelude::*;

/// Sites of a setting.
#[derive(Debug, Clone)]
pub(crate) struct Sites {
    /// Lower-case, without leading or trailing dots.
    domains: Vec<String>,
    surts: Vec<String>,
}

/// Host and SURT of a document, both normalised.
pub(crate) struct Location {
    host: String,
    surt: String,
}

impl Sites {
    /// Parses domains and SURT prefixes. Adds a fault for each invalid one, with a JSON pointer to `domains` or `surts` below
    /// `pointer`.
    pub(crate) fn new(
        domains: &[String],
        surts: &[String],
        pointer: &str,
        faults: &mut Vec<SettingsFault>,
    ) -> Self {
        if domains.is_empty() && surts.is_empty() {
            let problem =
                "no sites; write `domains` or `surts`, or move the patterns to those for all sites";
            faults.push(SettingsFault::new(pointer, problem));
        }
        for (at, domain) in domains.iter().enumerate() {
            if domain.trim_matches('.').is_empty() || domain.contains(['/', ':', '*', ' ']) {
                let problem = format!("`{domain}` is not a domain; write it like `example.org`");
                faults.push(SettingsFault::new(
                    format!("{pointer}/domains/{at}"),
                    problem,
                ));
            }
        }
        for (at, surt) in surts.iter().enumerate() {
            if !surt.contains("://(") {
                let problem =
                    format!("`{surt}` is not a SURT prefix; write it like `http://(org,example,`");
                faults.push(SettingsFault::new(format!("{pointer}/surts/{at}"), problem));
            }
        }
        let lower = |text: &String| text.trim_matches('.').to_ascii_lowercase();
        Self {
            domains: domains.iter().map(lower).collect(),
            surts: surts.iter().map(|surt| normalise_surt(surt)).collect(),
        }
    }

    /// Returns `true` if the location is on one of the sites.
    pub(crate) fn contains(&self, location: &Location) -> bool {
        let is_below = |domain: &String| {
            location
                .host
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.domains.iter().any(is_below)
            || self
                .surts
                .iter()
                .any(|surt| location.surt.starts_with(surt))
    }
}

impl Location {
    /// The location of a URI, which the host has normalised.
    pub(crate) fn of(uri: &str) -> Self {
        let (scheme, rest) = uri.split_once("://").unwrap_or(("", uri));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let server = authority
            .rsplit_once('@')
            .map_or(authority, |(_, server)| server);
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if is_port(port) => (host, Some(port)),
            _ => (server, None),
        };
        let is_address =
            host.starts_with('[') || host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let mut surt = format!("{scheme}://(");
        if is_address {
            surt.push_str(host);
        } else {
            for label in host.rsplit('.') {
                surt.push_str(label);
                surt.push(',');
            }
        }
        if let Some(port) = port {
            surt.push(':');
            surt.push_str(port);
        }
        surt.push(')');
        surt.push_str(path);
        Self {
            host: host.to_ascii_lowercase(),
            surt: normalise_surt(&surt),
        }
    }
}

/// Lower-cases a SURT and replaces https by http, as scopes do.
fn normalise_surt(surt: &str) -> String {
    let lower = surt.to_ascii_lowercase();
    match lower.strip_prefix("https://") {
        Some(rest) => format!("http://{rest}"),
        None => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(domains: &[&str], surts: &[&str], uri: &str, expected: bool) {
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let mut faults = Vec::new();
        let sites = Sites::new(&texts(domains), &texts(surts), "", &mut faults);
        assert_eq!(faults, []);
        assert_eq!(
            sites.contains(&Location::of(uri)),
            expected,
            "{domains:?} {surts:?} {uri}"
        );
    }

    #[test]
    fn a_domain_includes_its_subdomains() {
        check(&["mbl.is"], &[], "http://www.mbl.is/", true);
        check(&["mbl.is"], &[], "https://mbl.is:8080", true);
        check(&["MBL.is."], &[], "http://user@mbl.is?x", true);
        check(&["mbl.is"], &[], "http://xmbl.is/", false);
        check(&["www.mbl.is"], &[], "http://mbl.is/", false);
    }

    #[test]
    fn prefixes_ignore_case_and_https() {
        check(&[], &["http://(is,mbl,"], "https://www.mbl.is/a", true);
        check(
            &[],
            &["https://(is,mbl,www,)/Frettir/"],
            "http://www.mbl.is/frettir/1",
            true,
        );
        check(
            &[],
            &["http://(is,mbl,www,)/frettir/"],
            "http://www.mbl.is/sport/1",
            false,
        );
        check(&[], &["http://(is,mbl,)"], "http://www.mbl.is/", false);
        check(&[], &["http://(is,mbl,:8080)"], "http://mbl.is:8080/", true);
        check(&[], &["http://(127.0.0.1)"], "http://127.0.0.1/", true);
    }
}
