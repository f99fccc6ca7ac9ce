//! The `whois` extractor: referrals to other servers, in the formats of WHOIS servers.

use opilio_plugin::prelude::*;

use crate::Results;
use crate::content::content;

/// Names of fields with a referral, in lower case.
const REFERRALS: [&str; 5] = [
    "refer",
    "whois",
    "whois server",
    "registrar whois server",
    "referralserver",
];

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct Whois;

impl Plugin for Whois {
    const NAME: &'static str = "whois";
    const SUMMARY: &'static str = "Servers that a WHOIS answer refers to";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles {
            media_types: vec!["text/plain".to_owned()],
            uris: vec!["^whois:".to_owned()],
        }
    }
}

impl Extractor for Whois {
    fn extract(&self, document: &Document) -> Extraction {
        let uri = document.uri();
        let (own_server, query) = server_and_query(&uri);
        let content = content(document);
        let mut found = Results::default();
        for server in content.text.lines().filter_map(referral) {
            if !server.eq_ignore_ascii_case(own_server) {
                let uri = format!("whois://{server}/{query}");
                found.push(Link::new(uri, Hop::Redirect, "whois/refer"));
            }
        }
        found.into_extraction(content.problem)
    }
}

/// Splits a `whois` URI into server and query. The server is empty if the URI does not name one.
fn server_and_query(uri: &str) -> (&str, &str) {
    let rest = uri.strip_prefix("whois:").unwrap_or(uri);
    match rest.strip_prefix("//") {
        None => ("", rest),
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
    }
}

/// Returns the server that a line refers to: a host, and a port if the line has one.
fn referral(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().to_ascii_lowercase();
    let value = value.trim();
    let value = value.strip_prefix("whois://").unwrap_or(value);
    let server = value.trim_end_matches(['/', '.']);
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
    let is_server = server.contains('.') && server.bytes().all(is_host);
    (REFERRALS.contains(&name.as_str()) && is_server).then_some(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referrals_of_different_servers() {
        for (line, server) in [
            ("refer:        whois.nic.example", Some("whois.nic.example")),
            (
                "   Registrar WHOIS Server: whois.registrar.example",
                Some("whois.registrar.example"),
            ),
            (
                "ReferralServer:  whois://whois.ripe.example:43/",
                Some("whois.ripe.example:43"),
            ),
            ("Whois Server:", None),
            ("refer: see our page", None),
            ("Name Server: ns1.example.org", None),
            ("refer: http://a.example/", None),
        ] {
            assert_eq!(referral(line), server, "{line}");
        }
    }

    #[test]
    fn uris_with_and_without_a_server() {
        assert_eq!(server_and_query("whois:a.example"), ("", "a.example"));
        assert_eq!(
            server_and_query("whois://w.example/a.example"),
            ("w.example", "a.example")
        );
    }
}
