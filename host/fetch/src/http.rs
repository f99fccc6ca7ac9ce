//! HTTP exchanges: the connection, and the protocol on it.

use std::net::IpAddr;

use ::http::Method;
use jiff::Timestamp;

use crate::dial::{candidates, dial};
use crate::exchange::{Exchange, HeadVerdict, Request};
use crate::failure::{FetchFailure, Phase};
use crate::head::ResponseHead;
use crate::parts::Parts;
use crate::pool::ConnectionKey;
use crate::request::Prepared;
use crate::stream::{Connection, ConnectionProtocol, Server};
use crate::wire::Clock;
use crate::{h2, http1, ports};

/// Runs one exchange, on an idle connection or a new one.
pub(crate) async fn fetch(
    parts: &Parts,
    request: &Request,
    on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
) -> Exchange {
    let started = Timestamp::now();
    let clock = Clock::start(&parts.config);
    let mut exchange = match Prepared::new(&parts.config, request) {
        Ok(prepared) => fetch_prepared(parts, request, &prepared, clock, on_head).await,
        Err(failure) => Exchange::without_connection(failure),
    };
    exchange.started = started;
    exchange.duration = clock.elapsed();
    exchange
}

async fn fetch_prepared(
    parts: &Parts,
    request: &Request,
    prepared: &Prepared,
    clock: Clock,
    on_head: impl AsyncFnOnce(&ResponseHead) -> HeadVerdict,
) -> Exchange {
    let allowed = ports::check(&parts.config, &prepared.server, &[]);
    let addresses = allowed.and_then(|()| candidates(parts, &prepared.server, &request.addresses));
    let addresses = match addresses {
        Ok(addresses) => addresses,
        Err(failure) => return Exchange::without_connection(failure),
    };
    let mut on_head = Some(on_head);
    if parts.http2.has(&prepared.server) {
        return match dial(
            parts,
            &prepared.server,
            &addresses,
            ConnectionProtocol::Http2,
            &clock,
        )
        .await
        {
            Ok(connection) => h2::fetch(connection, parts, prepared, clock, &mut on_head).await,
            Err(failure) => Exchange::without_connection(failure),
        };
    }
    loop {
        let exchange = match connect(parts, &prepared.server, &addresses, clock).await {
            Ok(connection) => http1::fetch(connection, parts, prepared, clock, &mut on_head).await,
            Err(failure) => Exchange::without_connection(failure),
        };
        // Taken connections leave the pool, so the loop ends with a new one.
        if is_stale(&exchange) && matches!(prepared.method, Method::GET | Method::HEAD) {
            continue;
        }
        if !wants_http2(&exchange) {
            return exchange;
        }
        let Ok(connection) = dial(
            parts,
            &prepared.server,
            &addresses,
            ConnectionProtocol::Http2,
            &clock,
        )
        .await
        else {
            // The server does not speak HTTP/2 either.
            return exchange;
        };
        parts.http2.add(&prepared.server);
        return h2::fetch(connection, parts, prepared, clock, &mut on_head).await;
    }
}

/// Returns `true` if the server refused HTTP/1.1: in the handshake, by its status, by hanging up, or by sending frames at once.
fn wants_http2(exchange: &Exchange) -> bool {
    match &exchange.failure {
        Some(FetchFailure::NoHttp1 { .. }) => true,
        Some(
            FetchFailure::Empty
            | FetchFailure::NotHttp {
                phase: Phase::Head, ..
            },
        ) => exchange.tls.is_some() && !exchange.reused_connection,
        Some(_) => false,
        None => exchange.tls.is_some() && exchange.status() == http1::VERSION_NOT_SUPPORTED,
    }
}

/// Returns `true` if a kept connection ended before a byte came: the server had closed it and has not processed the request (RFC
/// 9112 §9.3.1). A form is not sent twice even so.
fn is_stale(exchange: &Exchange) -> bool {
    let nothing_came = exchange.wire.is_empty() && exchange.interim.is_empty();
    let dead = matches!(
        exchange.failure,
        Some(FetchFailure::Empty | FetchFailure::Lost { .. })
    );
    exchange.reused_connection && nothing_came && dead
}

/// Takes an idle connection, or opens a new one.
async fn connect(
    parts: &Parts,
    server: &Server,
    addresses: &[IpAddr],
    clock: Clock,
) -> Result<Connection, FetchFailure> {
    let key = ConnectionKey::new(&parts.config, server);
    if let Some(idle) = parts.pool.take(&key, addresses) {
        return Ok(idle);
    }
    dial(parts, server, addresses, ConnectionProtocol::Http1, &clock).await
}
