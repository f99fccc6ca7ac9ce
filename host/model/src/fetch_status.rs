//! Fetch statuses in words, for reports and explanations. `docs/OPERATING.md` lists all statuses under "Status codes".

/// Returns `true` if a status is a response that counts as fetched: a look-up, or a response that is not an error of client or
/// server.
pub fn is_fetched(status: i32) -> bool {
    status > 0 && !is_error_response(status)
}

/// Returns `true` if a status is an error response of a server: 4xx or 5xx.
pub fn is_error_response(status: i32) -> bool {
    (400..600).contains(&status)
}

/// Describes a fetch status in a few words.
pub fn status_words(status: i32) -> String {
    let words = match status {
        1 => "name looked up",
        0 => "not fetched yet",
        -1 => "DNS look-up failed",
        -2 => "no connection to the server",
        -3 => "connection lost, or the answer is not HTTP",
        -4 => "timeout",
        -5 => "a plugin or the scratch directory failed",
        -6 => "the host has no address",
        -7 => "URI cannot be fetched",
        -8 => "a filter requested more retries than are allowed",
        -9 => "no TLS session",
        -61 => "robots.txt could not be fetched",
        -62 => "a prerequisite could not be fetched",
        -63 => "a prerequisite could not be queued",
        -404 => "the server closed the connection without an answer",
        -3000 => "Opilio failed on this URI",
        -5000 => "out of scope",
        -5001 => "refused by a setting or a filter",
        -5002 => "refused by a filter",
        -5003 | -5004 => "a quota was reached",
        -6000 => "deleted by an operator",
        -7000 => "cancelled by an operator",
        -9998 => "forbidden by robots.txt",
        100.. => return format!("status {status}"),
        _ => return format!("fetch status {status}"),
    };
    words.to_owned()
}

/// Returns the operator's remedy for a fetch status; `None` if there is nothing to do, or if the status does not tell.
pub fn status_remedy(status: i32) -> Option<&'static str> {
    Some(match status {
        -1 | -6 => "check the host name, then the name servers (dns.servers)",
        -2 => "check the server, the network, and fetch.proxy",
        -3 | -404 => "try the URI with another client",
        -4 => "if the server is slow, raise fetch.response-timeout or fetch.total-timeout",
        -5 => "see runtime-errors.log",
        -7 => "correct or remove the seed",
        -9 => "fetch.tls-trust decides whether an invalid certificate stops a fetch",
        -61 => "check the server; robots.policy decides whether robots.txt is needed",
        -62 => "see the lines of its dns: and login URIs in crawl.log",
        -63 => "shorten the login's URI in the profile",
        -3000 => "report the err= text in crawl.log",
        -5002 => "change the filter",
        -5003 | -5004 => "raise the quota",
        -6000 | -7000 => "`opilio frontier force JOB URI` queues it again",
        -9998 => "ask the site, or set robots.policy",
        401 => "give the crawl a password ([credentials.NAME])",
        403 | 429 => "ask the site whether it blocks crawlers",
        404 | 410 => "correct or remove the seed",
        500..600 => "the server has an error; try again later",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_below_400_counts_as_fetched_and_nothing_else() {
        for (status, expected) in [
            (200, true),
            (304, true),
            (1, true),
            (2001, true),
            (404, false),
            (503, false),
            (0, false),
            (-2, false),
        ] {
            assert_eq!(is_fetched(status), expected, "{status}");
        }
    }

    #[test]
    fn a_status_without_words_of_its_own_is_shown_as_a_number() {
        assert_eq!(status_words(-2), "no connection to the server");
        assert_eq!(status_words(404), "status 404");
        assert_eq!(status_words(-50), "fetch status -50");
    }
}
