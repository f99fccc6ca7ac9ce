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

/// Words for statuses, in ascending order. Those of HTTP are the phrases of RFC 9110, RFC 6585 and RFC 7725. A response that is
/// the document itself (200, 206) needs none.
pub const STATUS_WORDS: &[(i32, &str)] = &[
    (-9998, "forbidden by robots.txt"),
    (-7000, "cancelled by an operator"),
    (-6000, "deleted by an operator"),
    (-5004, "a quota was reached"),
    (-5003, "a quota was reached"),
    (-5002, "refused by a filter"),
    (-5001, "refused by a setting or a filter"),
    (-5000, "out of scope"),
    (-3000, "Opilio failed on this URI"),
    (-404, "the server closed the connection without an answer"),
    (-63, "a prerequisite could not be queued"),
    (-62, "a prerequisite could not be fetched"),
    (-61, "robots.txt could not be fetched"),
    (-9, "no TLS session"),
    (-8, "a filter requested more retries than are allowed"),
    (-7, "URI cannot be fetched"),
    (-6, "the host has no address"),
    (-5, "a plugin or the scratch directory failed"),
    (-4, "timeout"),
    (-3, "connection lost, or the answer is not HTTP"),
    (-2, "no connection to the server"),
    (-1, "DNS look-up failed"),
    (0, "not fetched yet"),
    (1, "name looked up"),
    (204, "no content"),
    (300, "multiple choices"),
    (301, "moved permanently"),
    (302, "found"),
    (303, "see other"),
    (304, "not modified"),
    (307, "temporary redirect"),
    (308, "permanent redirect"),
    (400, "bad request"),
    (401, "unauthorized"),
    (402, "payment required"),
    (403, "forbidden"),
    (404, "not found"),
    (405, "method not allowed"),
    (406, "not acceptable"),
    (407, "proxy authentication required"),
    (408, "request timeout"),
    (410, "gone"),
    (414, "URI too long"),
    (416, "range not satisfiable"),
    (421, "misdirected request"),
    (429, "too many requests"),
    (431, "request header fields too large"),
    (451, "unavailable for legal reasons"),
    (500, "internal server error"),
    (501, "not implemented"),
    (502, "bad gateway"),
    (503, "service unavailable"),
    (504, "gateway timeout"),
    (505, "HTTP version not supported"),
];

/// Returns the words for a status; `None` if it has none.
fn known_words(status: i32) -> Option<&'static str> {
    let found = STATUS_WORDS.binary_search_by_key(&status, |(status, _)| *status);
    found.ok().map(|at| STATUS_WORDS[at].1)
}

/// Describes a fetch status in a few words of a sentence.
pub fn status_words(status: i32) -> String {
    match known_words(status) {
        _ if status >= 100 => format!("status {status}"),
        Some(words) => words.to_owned(),
        None => format!("fetch status {status}"),
    }
}

/// Describes a fetch status for a table: its number, with the words for it.
pub fn labelled_status(status: i32) -> String {
    match known_words(status) {
        Some(words) => format!("{status} {words}"),
        None => status.to_string(),
    }
}

/// Returns the operator's remedy for a fetch status; `None` if nothing can be done, or if the status does not show the cause.
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
    fn a_status_without_words_is_shown_as_a_number() {
        assert_eq!(status_words(-2), "no connection to the server");
        assert_eq!(status_words(404), "status 404");
        assert_eq!(status_words(-50), "fetch status -50");
    }

    #[test]
    fn a_status_in_a_table_is_followed_by_its_words() {
        assert!(STATUS_WORDS.is_sorted_by_key(|(status, _)| *status));
        for (status, expected) in [
            (-9998, "-9998 forbidden by robots.txt"),
            (-2, "-2 no connection to the server"),
            (1, "1 name looked up"),
            (200, "200"),
            (404, "404 not found"),
            (505, "505 HTTP version not supported"),
            (599, "599"),
        ] {
            assert_eq!(labelled_status(status), expected);
        }
    }
}
