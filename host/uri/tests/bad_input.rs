//! Unusual and invalid URIs from pages: each is refused with a reason or normalised, in linear time.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::error::Error;
use std::time::{Duration, Instant};

use opilio_uri::{
    Canonicaliser, Rule, URI_BYTES_MAX, Uri, cdx_key, implied_surt_prefix, surt_of,
    surt_prefix_from_line,
};

/// The message and its causes, as in the log of refused URIs.
fn reason(error: &dyn Error) -> String {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        reason += &format!(": {next}");
        cause = next.source();
    }
    reason
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    let error = Uri::parse(text).unwrap_err();
    assert_eq!(reason(&error), expected);
    // Refused URIs are logged, and pages may contain many of them. So messages are short.
    assert!(reason(&error).len() < 600);
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let uri = Uri::parse(text).unwrap();
    assert_eq!(uri.as_str(), expected, "{text:?}");
    assert_eq!(Uri::from_key(&uri.key()).unwrap(), uri);
}

#[test]
fn long_uris() {
    let uri_of_length = |length: usize| format!("http://a.org/{}", "x".repeat(length - 13));
    check(&uri_of_length(URI_BYTES_MAX), &uri_of_length(URI_BYTES_MAX));
    check_refused(
        &uri_of_length(URI_BYTES_MAX + 1),
        "65537 bytes, more than 65536",
    );
    check_refused(
        &uri_of_length(10_000_000),
        "10000000 bytes, more than 65536",
    );
    // Within the limit as written, but beyond it with encoded blanks.
    check_refused(
        &format!("http://a.org/{}x", " ".repeat(30_000)),
        "90014 bytes, more than 65536",
    );
    // Blanks around the URI do not count. Dot segments and fragments count, because they have to be parsed.
    check(
        &format!("{}http://a.org/", " ".repeat(100_000)),
        "http://a.org/",
    );
    check(
        &format!("http://a.org/{}", "a/../".repeat(10_000)),
        "http://a.org/",
    );
    check_refused(
        &format!("http://a.org/#{}", "f".repeat(70_000)),
        "70014 bytes, more than 65536",
    );
    check_refused(
        &format!("dns:{}", "a".repeat(70_000)),
        "70004 bytes, more than 65536",
    );
    let base = Uri::parse(&uri_of_length(60_000)).unwrap();
    assert_eq!(
        reason(&base.join(&format!("?{}", "q".repeat(10_000))).unwrap_err()),
        "70001 bytes, more than 65536"
    );
    check_refused(
        &format!("{}:x", "s".repeat(70_000)),
        &format!("scheme \"{}\" is not crawled", "s".repeat(80)),
    );
}

#[test]
fn hosts_that_cannot_exist() {
    let shown = |host: &str| host.chars().take(80).collect::<String>();
    let many = vec!["a"; 10_000].join(".");
    check_refused(
        &format!("http://{many}/"),
        &format!(
            "host {:?} cannot exist: 19999 bytes, more than 253",
            shown(&many)
        ),
    );
    let long = "a".repeat(64);
    check_refused(
        &format!("http://{long}.org/"),
        &format!("host \"{long}.org\" cannot exist: a label of 64 bytes, more than 63"),
    );
    check_refused(
        "http://a..org/",
        "host \"a..org\" cannot exist: an empty label",
    );
    check_refused(
        "http://.a.org/",
        "host \".a.org\" cannot exist: an empty label",
    );
    check_refused("http://./", "host \".\" cannot exist: no host");
    check_refused(
        "http://a,b.org/",
        "host \"a,b.org\" cannot exist: the character ','",
    );
    check_refused(
        "http://a'b.org/",
        "host \"a'b.org\" cannot exist: the character '\\''",
    );
    check_refused("http://", "invalid URI \"http://\": empty host");
    check_refused("http:", "invalid URI \"http:\": empty host");
    check_refused("http://?q", "invalid URI \"http://?q\": empty host");
    check_refused("http://u:p@/", "invalid URI \"http://u:p@/\": empty host");
    check_refused(
        "http://a b.org/",
        "invalid URI \"http://a b.org/\": invalid international domain name",
    );
    check("http://a.org./", "http://a.org./");
    check("http://a_b.org/", "http://a_b.org/");
}

#[test]
fn invalid_percent_encodings() {
    check("http://a.org/%", "http://a.org/%");
    check("http://a.org/%%%2f%g0%2", "http://a.org/%%%2F%g0%2");
    check("http://a.org/?%&%zz=%c", "http://a.org/?%&%zz=%c");
    check("http://a.org/%u0061", "http://a.org/%u0061");
    check("http://a.org/%252e%252e/", "http://a.org/%252e%252e/");
    check("http://a.org/b/%2e%2E/c", "http://a.org/c");
    check("http://%61.org/", "http://a.org/");
    check_refused(
        "http://%zz.org/",
        "invalid URI \"http://%zz.org/\": invalid international domain name",
    );
    check_refused(
        "http://a%2fb.org/",
        "invalid URI \"http://a%2fb.org/\": invalid international domain name",
    );
    check_refused(
        "http://a%00.org/",
        "invalid URI \"http://a%00.org/\": invalid international domain name",
    );
    check("http://u%3@a.org/", "http://u%3@a.org/");
}

#[test]
fn bytes_that_are_not_utf8() {
    // ISO-8859-1, lone surrogates, overlong and cut-off UTF-8: only the server knows their meaning, so they stay unchanged.
    for path in [
        "%E4",
        "%ED%A0%80",
        "%ED%B0%80",
        "%C0%AF",
        "%F4%90%80%80",
        "%E2%82",
        "%FF%FE",
    ] {
        let uri = format!("http://a.org/{path}?{path}");
        check(&uri, &uri);
        let canonical = Canonicaliser::default().apply(&Uri::parse(&uri).unwrap());
        assert_eq!(canonical, uri.to_lowercase());
        check_refused(
            &format!("http://{path}.org/"),
            &format!("invalid URI \"http://{path}.org/\": invalid international domain name"),
        );
    }
    // The replacement character that a decoder writes for such bytes is valid in a path, but not in a host name.
    check("http://a.org/\u{fffd}", "http://a.org/%EF%BF%BD");
    check_refused(
        "http://\u{fffd}.org/",
        "invalid URI \"http://\u{fffd}.org/\": invalid international domain name",
    );
}

#[test]
fn control_characters() {
    check(
        "http://a.org/\0b\u{1}\u{1b}[31m\u{7f}\u{80}",
        "http://a.org/%00b%01%1B[31m%7F%C2%80",
    );
    check(
        "http://a.org/?\0\u{7f}\"<>",
        "http://a.org/?%00%7F%22%3C%3E",
    );
    check("\u{0}\u{1f} http://a.org/\u{0}", "http://a.org/");
    check("ht\ntp:/\t/a.o\rrg/b\nc", "http://a.org/bc");
    check(
        "http://a.org/\u{202e}gpj.exe",
        "http://a.org/%E2%80%AEgpj.exe",
    );
    check_refused(
        "http://a\0b.org/",
        "invalid URI \"http://a\\0b.org/\": invalid international domain name",
    );
    check_refused(
        "http://a\u{7f}.org/",
        "invalid URI \"http://a\\u{7f}.org/\": invalid international domain name",
    );
    check_refused("\0", "\"\" has no scheme");
}

#[test]
fn international_names() {
    check("http://BÜCHER.example/", "http://xn--bcher-kva.example/");
    check("http://ａ．ｏｒｇ/", "http://a.org/");
    check("http://a\u{ad}b.org/", "http://ab.org/");
    check("http://例子。测试/", "http://xn--fsqu00a.xn--0zwm56d/");
    // Invalid A-labels are accepted if the whole host is ASCII (whatwg/url#914).
    check(
        "http://xn--zzzzzzzzz999999999/",
        "http://xn--zzzzzzzzz999999999/",
    );
    for host in [
        "xn--a.\u{fc}",
        "xn--\u{fc}",
        "\u{200d}a.org",
        "\u{301}a.org",
        "\u{5d0}1a.org",
        "a\u{2488}b.org",
    ] {
        check_refused(
            &format!("http://{host}/"),
            &format!(
                "invalid URI {:?}: invalid international domain name",
                format!("http://{host}/")
            ),
        );
    }
    // The label is too long only in its encoded form.
    let label = "ü".repeat(60);
    check_refused(
        &format!("http://{label}.org/"),
        &format!(
            "host \"xn--tda{}.org\" cannot exist: a label of 66 bytes, more than 63",
            "a".repeat(59)
        ),
    );
}

#[test]
fn addresses() {
    check("http://[::1]/", "http://[::1]/");
    check("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/");
    check("http://[::FFFF:1.2.3.4]/", "http://[::ffff:102:304]/");
    check(
        "http://[2001:DB8:0:0:1:0:0:1]/",
        "http://[2001:db8::1:0:0:1]/",
    );
    check("http://0x7f.0.0.01/", "http://127.0.0.1/");
    check("http://2130706433/", "http://127.0.0.1/");
    check("http://1.2.3.4./", "http://1.2.3.4/");
    check("http://１.2.3.4/", "http://1.2.3.4/");
    for host in [
        "[::1",
        "[1::2::3]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[:::1]",
        "[12345::]",
        "[1:2:3:4:5:6:7:8:9]",
        "[]",
        "[v1.a]",
        "[::1.2.3.256]",
    ] {
        check_refused(
            &format!("http://{host}/"),
            &format!("invalid URI \"http://{host}/\": invalid IPv6 address"),
        );
    }
    check("http://1.2.3.0x/", "http://1.2.3.0/");
    for host in ["256.1.1.1", "1.2.3.4.5", "4294967296", "a.1", "1.2.3.08"] {
        let text = format!("http://{host}/");
        check_refused(
            &text,
            &format!("invalid URI {text:?}: invalid IPv4 address"),
        );
    }
    check_refused(
        "http://[::1]x/",
        "invalid URI \"http://[::1]x/\": invalid IPv6 address",
    );
}

#[test]
fn ports() {
    check("http://a.org:/", "http://a.org/");
    check("http://a.org:00080/", "http://a.org/");
    check("http://a.org:65535/", "http://a.org:65535/");
    check_refused("http://a.org:0/", "port 0");
    check_refused("ftps://a.org:0/", "port 0");
    for port in [
        "65536",
        "99999999999999999999",
        "-1",
        "+80",
        "8o",
        "80:80",
        "\u{661}",
    ] {
        let text = format!("http://a.org:{port}/");
        let expected = format!("invalid URI {text:?}: invalid ");
        let error = reason(&Uri::parse(&text).unwrap_err());
        assert!(error.starts_with(&expected), "{error}");
    }
}

/// Longest time of a function for a text of the maximum length of a URI. Linear functions take milliseconds, even unoptimised.
/// Quadratic ones (4 thousand million steps) take longer than this limit, which leaves room for a busy machine.
const TIME_MAX: Duration = Duration::from_secs(10);

#[test]
fn every_function_takes_linear_time() {
    let pieces = [
        "a",
        "/",
        "//",
        ".",
        "..",
        "/..",
        "/./",
        "/a/..",
        "@",
        ":",
        "u:p@",
        "%",
        "%2",
        "%25",
        "%2e%2e/",
        "%C3",
        "ä",
        "\u{301}",
        "?",
        "&",
        "=",
        "&a=b",
        "&http://a/b",
        "?u=http://a.org/",
        ";",
        ";jsessionid=",
        "/;jsessionid=1",
        "(4hqa0555fwsecu455xqckv45)/",
        "S(",
        "www.",
        "www1.",
        "a.",
        "xn--",
        "xn--a.",
        "[",
        "[::",
        "1.",
        "0x",
        ",",
        ")",
        "(",
        "#",
        "\t",
        " ",
        "\0",
        "\\",
        "sid=0123456789abcdef0123456789abcdef&",
        "cfid=1&cftoken=2&",
        "PHPSESSID=",
        ".aspx",
        "aspsessionid",
        "\u{fffd}",
        "İ",
    ];
    let befores = [
        "",
        "http://",
        "http://a.org/",
        "http://a.org/?",
        "dns:",
        "ftps://a@",
    ];
    let rules: Vec<Rule> = Canonicaliser::default()
        .rules()
        .iter()
        .cloned()
        .chain([
            Rule::named("strip-www").unwrap(),
            Rule::named("strip-extra-slashes").unwrap(),
            Rule::regex("(.*)(/[^/]*)*(;.*)?[?](.*)(a|b)*", "$1$3").unwrap(),
        ])
        .collect();
    let base = Uri::parse(&format!("http://a.org/{}", "d/".repeat(30_000))).unwrap();
    let mut slowest = (Duration::ZERO, String::new());
    let mut timed = |what: &str, text: &str, work: &dyn Fn()| {
        let began = Instant::now();
        work();
        let took = began.elapsed();
        if took > slowest.0 {
            slowest = (
                took,
                format!("{what} {:?}", text.chars().take(60).collect::<String>()),
            );
        }
    };
    for piece in pieces {
        for before in befores {
            let text = format!(
                "{before}{}",
                piece.repeat((URI_BYTES_MAX - before.len()) / piece.len())
            );
            timed("parse", &text, &|| drop(Uri::parse(&text)));
            timed("join", &text, &|| drop(base.join(&text)));
            timed("seed", &text, &|| drop(Uri::parse_seed(&text)));
            timed("prefix", &text, &|| {
                drop((implied_surt_prefix(&text), surt_prefix_from_line(&text)))
            });
            timed("surt", &text, &|| drop(surt_of(&text)));
            timed("CDX key", &text, &|| drop(cdx_key(&text)));
            timed("key", &text, &|| drop(Uri::from_key(&text)));
            for rule in &rules {
                timed(rule.name(), &text, &|| drop(rule.apply(&text)));
            }
            if let Ok(uri) = Uri::parse(&text) {
                timed("forms", &text, &|| {
                    drop((
                        uri.surt(),
                        uri.key(),
                        uri.robots_txt(),
                        Uri::from_key(&uri.key()),
                    ))
                });
            }
        }
    }
    assert!(slowest.0 < TIME_MAX, "{slowest:?}");
}

#[test]
fn every_rule_takes_linear_time() {
    const LENGTH: usize = 1024 * 1024;
    for (before, piece, after) in [
        ("http://a.org/", "(4hqa0555fwsecu455xqckv45)/", "b.aspx"),
        ("http://a.org/", ";jsessionid=1/", ""),
        ("http://a.org/", "//", ""),
        ("http://", "www.", "a.org/"),
        ("http://", "@", "a.org/"),
        (
            "http://a.org/?",
            "sid=0123456789abcdef0123456789abcdef&",
            "",
        ),
        ("http://a.org/?", "cfid=1&cftoken=2&", ""),
        ("http://a.org/?", "&", "a"),
    ] {
        let text = [before, &piece.repeat(LENGTH / piece.len()), after].concat();
        for rule in Canonicaliser::default().rules() {
            let began = Instant::now();
            drop(rule.apply(&text));
            assert!(began.elapsed() < TIME_MAX, "{rule} {piece}");
        }
    }
}
