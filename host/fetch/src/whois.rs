//! WHOIS (RFC 3912): one line to port 43, and the answer up to the end of the connection.
//!
//! `whois://server/query` asks that server. `whois:query` asks IANA, which refers to another server. Referrals are not
//! followed here: an extractor finds them in the answer, and they become URIs of their own.

use jiff::Timestamp;
use opilio_uri::Uri;
use percent_encoding::percent_decode_str;

use crate::exchange::{Exchange, Request};
use crate::failure::FetchFailure;
use crate::head::ResponseHead;
use crate::parts::Parts;
use crate::ports;
use crate::stream::Server;
use crate::transfer::{Content, Conversation, TransferFacts, connect};
use crate::wire::Clock;

/// Server for URIs without one: it refers to the registry that knows the answer.
pub const WHOIS_SERVER: &str = "whois.iana.org";

/// The status of an answer, as Heritrix logs it.
pub const WHOIS_OK: u16 = 2001;

/// The scheme's default port.
const WHOIS_PORT: u16 = 43;

/// Longest query; names and addresses are far shorter.
const QUERY_BYTES_MAX: usize = 512;

/// The host that a `whois` URI asks: its own, or IANA's.
pub fn whois_host(uri: &Uri) -> &str {
    uri.host().unwrap_or(WHOIS_SERVER)
}

/// The query of a `whois` URI, decoded.
fn query_of(uri: &Uri) -> Option<String> {
    let query = match uri.host() {
        Some(_) => uri.path().strip_prefix('/').unwrap_or(uri.path()),
        None => uri.path(),
    };
    let query = percent_decode_str(query).decode_utf8_lossy().into_owned();
    let fits = !query.is_empty() && query.len() <= QUERY_BYTES_MAX;
    (fits && !query.chars().any(char::is_control)).then_some(query)
}

pub(crate) async fn fetch(parts: &Parts, request: &Request) -> Exchange {
    let (started, clock) = (Timestamp::now(), Clock::start(&parts.config));
    let mut content = Content::new(parts, request.received.clone());
    let mut facts = TransferFacts::default();
    facts.failure = query(parts, &clock, request, &mut content, &mut facts)
        .await
        .err();
    if content.length() > 0 {
        facts.head = Some(head());
    } else if facts.failure.is_none() {
        facts.failure = Some(FetchFailure::Empty);
    }
    content.into_exchange(started, &clock, facts)
}

async fn query(
    parts: &Parts,
    clock: &Clock,
    request: &Request,
    content: &mut Content,
    facts: &mut TransferFacts,
) -> Result<(), FetchFailure> {
    let query = query_of(&request.uri).ok_or_else(|| FetchFailure::Unfetchable {
        uri: request.uri.as_str().to_owned(),
        reason: format!(
            "its query is empty, longer than {QUERY_BYTES_MAX} bytes, or has a control character"
        ),
    })?;
    let server = Server {
        tls: false,
        host: whois_host(&request.uri).to_owned(),
        port: request.uri.port_or_default(),
    };
    ports::check(&parts.config, &server, &[WHOIS_PORT])?;
    let connection = connect(parts, &server, &request.addresses, clock).await?;
    facts.peer = connection.peer;
    let mut conversation = Conversation::new(connection.stream, request.received.clone());
    conversation.send_line(parts, clock, &query).await?;
    facts.conversation = conversation.transcript.clone();
    let mut stream = conversation.take_stream()?;
    content.receive(parts, clock, &mut stream).await?;
    facts.time_to_head = Some(clock.elapsed());
    Ok(())
}

fn head() -> ResponseHead {
    ResponseHead {
        version: "WHOIS".to_owned(),
        status: WHOIS_OK,
        reason: String::new(),
        headers: vec![("Content-Type".to_owned(), "text/plain".to_owned())],
        length: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, host: &str, query: Option<&str>) {
        let uri = Uri::parse(uri).unwrap();
        assert_eq!(whois_host(&uri), host);
        assert_eq!(query_of(&uri).as_deref(), query);
    }

    #[test]
    fn both_forms_name_a_server_and_a_query() {
        check("whois:example.org", WHOIS_SERVER, Some("example.org"));
        check(
            "whois://whois.example.org/a.example",
            "whois.example.org",
            Some("a.example"),
        );
        check(
            "whois://whois.example.org/n%20192.0.2.1",
            "whois.example.org",
            Some("n 192.0.2.1"),
        );
    }

    #[test]
    fn a_query_is_one_line() {
        check("whois://whois.example.org/", "whois.example.org", None);
        check(
            "whois://whois.example.org/a%0D%0Ab",
            "whois.example.org",
            None,
        );
    }
}
