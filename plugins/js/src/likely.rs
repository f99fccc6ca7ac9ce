//! Decides whether a string looks like a reference. The rules are strict: a script has a hundred strings for each reference,
//! and every wrong guess is a request to a server.

use crate::vocabulary::{is_namespace, is_web_ending};

/// Longest string that is examined, in bytes.
pub(crate) const REFERENCE_BYTES_MAX: usize = 4_096;

/// Other values that the script concatenates with a string.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Concatenation {
    /// `true` if a value precedes the string: `base + "…"`.
    pub before: bool,
    /// `true` if a value follows the string: `"…" + id`.
    pub after: bool,
}

/// The reference in a string; `None` if the string does not look like one.
pub(crate) fn reference(value: &str, concatenation: Concatenation) -> Option<String> {
    let value = value.trim_ascii();
    if value.len() < 2
        || value.len() > REFERENCE_BYTES_MAX
        || !value.bytes().all(is_reference_byte)
        || has_placeholder(value)
    {
        return None;
    }
    let (path, query) = split(value);
    let blank = value.contains(' ');
    if blank
        && (value.contains("  ")
            || query.contains(' ')
            || !path.contains('/')
            || !has_web_ending(path))
    {
        return None;
    }
    if let Some(rest) = without_scheme(value) {
        return is_absolute(value, rest, concatenation).then(|| value.to_owned());
    }
    if concatenation.before || (concatenation.after && !(query.is_empty() && has_web_ending(path)))
    {
        return None;
    }
    if let Some(rest) = value.strip_prefix("//") {
        return (!blank && host_and_rest(rest).is_some_and(|(host, _)| is_public_host(host)))
            .then(|| value.to_owned());
    }
    if !has_usual_characters(path) || !is_query(query) || is_local_path(path) {
        return None;
    }
    if let Some(rest) = path.strip_prefix('/') {
        return is_rooted(rest).then(|| value.to_owned());
    }
    if !blank && let Some(whole) = add_missing_scheme(value) {
        return Some(whole);
    }
    is_relative(path).then(|| value.to_owned())
}

/// Returns `true` for a module specifier of `import` that names a file: a path or an absolute reference, not a bare name.
pub(crate) fn is_module(value: &str) -> bool {
    value.len() <= REFERENCE_BYTES_MAX
        && value.bytes().all(|b| is_reference_byte(b) && b != b' ')
        && !has_placeholder(value)
        && (without_scheme(value)
            .is_some_and(|rest| host_and_rest(rest).is_some_and(|(host, _)| is_public_host(host)))
            || ["./", "../", "/"]
                .iter()
                .any(|start| value.starts_with(start) && value.len() > start.len()))
}

/// Returns `true` for a path that webpack appends to its public path: relative or from the root, with a known web ending.
pub(crate) fn is_asset(value: &str) -> bool {
    let (path, query) = split(value);
    value.len() <= REFERENCE_BYTES_MAX
        && value.bytes().all(|b| is_reference_byte(b) && b != b' ')
        && !has_placeholder(value)
        && has_usual_characters(path)
        && is_query(query)
        && has_web_ending(path)
}

/// Returns `true` if a string contains a placeholder such as `%s`, `:id` or `$1`, which the script replaces before a fetch.
pub(crate) fn has_placeholder(value: &str) -> bool {
    let bytes = value.as_bytes();
    memchr::memchr_iter(b'%', bytes).any(|at| {
        !bytes
            .get(at + 1..at + 3)
            .is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    }) || memchr::memchr_iter(b'$', bytes).any(|at| {
        bytes
            .get(at + 1)
            .is_none_or(|b| b.is_ascii_digit() || *b == b'{')
    }) || value.contains("/:")
}

/// Returns `true` if a reference may contain the byte. Blanks are invalid but occur in references. `'` is legal, but usually
/// belongs to code that builds a reference.
fn is_reference_byte(byte: u8) -> bool {
    byte >= b' '
        && byte != 0x7F
        && !matches!(
            byte,
            b'<' | b'>' | b'"' | b'\'' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`'
        )
}

/// Splits a reference into path and query. The query does not include `?` and the fragment.
fn split(value: &str) -> (&str, &str) {
    let value = value.split('#').next().unwrap_or_default();
    value.split_once('?').unwrap_or((value, ""))
}

/// The text after `http://`, `https://` or `ftp://`.
fn without_scheme(value: &str) -> Option<&str> {
    ["http://", "https://", "ftp://"].iter().find_map(|scheme| {
        value
            .get(..scheme.len())
            .filter(|start| start.eq_ignore_ascii_case(scheme))
            .map(|_| &value[scheme.len()..])
    })
}

/// Splits the text after the scheme into the host and everything after host and port.
fn host_and_rest(rest: &str) -> Option<(&str, &str)> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host = authority.rsplit('@').next()?;
    match host.split_once(':') {
        Some((host, port))
            if !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit()) =>
        {
            Some((host, rest))
        }
        Some(_) => None,
        None => Some((host, rest)),
    }
}

/// Returns `true` if an absolute reference is one to fetch; `rest` is the text after its scheme.
fn is_absolute(value: &str, rest: &str, concatenation: Concatenation) -> bool {
    let Some((host, rest_of_uri)) = host_and_rest(rest) else {
        return false;
    };
    if !is_public_host(host) || is_namespace(host, rest_of_uri) {
        return false;
    }
    let (path, query) = split(value);
    // `"http://example.org" + path` is a site; `"http://example.org/item/" + id` is incomplete.
    !concatenation.after || rest_of_uri.is_empty() || (query.is_empty() && has_web_ending(path))
}

/// Returns `true` if a host is public: at least two labels with a plausible top-level domain, or a public IPv4 address.
fn is_public_host(host: &str) -> bool {
    /// Longest host, in bytes: the limit of DNS.
    const HOST_BYTES_MAX: usize = 253;
    if host.len() > HOST_BYTES_MAX {
        return false;
    }
    let labels: Vec<&str> = host.split('.').collect();
    // `www.com`, or a part of a host such as `//www.youtube`, to which a script appends the rest.
    if labels.len() == 2 && labels[0].eq_ignore_ascii_case("www") {
        return false;
    }
    let are_labels = labels.iter().all(|label| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b >= 0x80)
    });
    if !are_labels || labels.len() < 2 {
        return false;
    }
    let last = labels[labels.len() - 1];
    if labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok()) {
        return !matches!(labels[0], "0" | "10" | "127") && !host.starts_with("192.168.");
    }
    (last.len() >= 2
        && last
            .chars()
            .all(|c| c.is_ascii_alphabetic() || !c.is_ascii()))
        || last
            .get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
}

/// Returns `true` if the path has only characters that are usual in paths. In scripts, others mean a pattern or code.
fn has_usual_characters(path: &str) -> bool {
    path.bytes().all(|b| {
        b.is_ascii_alphanumeric()
            || b >= 0x80
            || matches!(
                b,
                b'/' | b'.' | b'-' | b'_' | b'~' | b'%' | b'@' | b',' | b'=' | b'+' | b' ' | b'&'
            )
    }) && !path.contains("...")
}

/// Returns `true` if a query is empty, `a=b`, or a hash or version that bypasses caches.
fn is_query(query: &str) -> bool {
    query.is_empty()
        || (query.contains('=') && !query.starts_with('='))
        || (query.bytes().any(|b| b.is_ascii_digit())
            && query
                .bytes()
                .all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b'-' | b'_' | b'v')))
}

/// Returns `true` if a path from the root looks like one of a site; `rest` is the text after the first slash.
fn is_rooted(rest: &str) -> bool {
    let has_valid_start = rest.starts_with(|c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '~' | '%' | '@' | '-' | '.')
    });
    let letters = rest.chars().filter(|c| c.is_alphabetic()).count();
    let segments = rest
        .split('/')
        .filter(|segment| !segment.is_empty())
        .count();
    has_valid_start
        && !rest.ends_with(['.', ',', '=', '&', '+', ' '])
        && !rest.contains("//")
        // Excludes `/g`, `/1/2`, `/2024`.
        && letters >= 2
        && segments >= 1
}

/// Returns `true` if a string looks like a relative path, judging by its file ending.
fn is_relative(path: &str) -> bool {
    if !has_web_ending(path) || path.contains("//") {
        return false;
    }
    let plain = path.trim_start_matches("./").trim_start_matches("../");
    let file = plain.rsplit('/').next().unwrap_or_default();
    let has_valid_start = plain
        .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '%' | '~' | '@' | '-'));
    if !has_valid_start || file.starts_with(['.', ' ', ',', '+']) || plain.contains(['&', '+']) {
        return false;
    }
    let is_alone = plain.len() == path.len() && !plain.contains('/');
    if !is_alone {
        return true;
    }
    !file.contains([' ', ',', '=', '@']) && !is_project_name(file) && !is_code(file)
}

/// Returns `true` if a file name is a dotted name in code that only looks like a file.
fn is_code(file: &str) -> bool {
    /// First parts of token names in syntax highlighters: `comment.end.xml`.
    const SCOPES: [&str; 14] = [
        "comment",
        "constant",
        "entity",
        "invalid",
        "keyword",
        "markup",
        "meta",
        "punctuation",
        "source",
        "storage",
        "string",
        "support",
        "text",
        "variable",
    ];
    let parts: Vec<&str> = file.split('.').collect();
    let (Some(first), Some(ending)) = (parts.first(), parts.last()) else {
        return false;
    };
    let is_capital = |part: &&str| part.starts_with(char::is_uppercase);
    let has_lower = |part: &str| part.contains(char::is_lowercase);
    // `xml.etree.ElementTree.doc`: a member of a class of a module, in an index of symbols.
    (!is_capital(first) && parts.iter().skip(1).any(is_capital))
        // `Format.GeoJSON`, `OpenLayers.Format.XML`: classes. `PHOTO.JPG` is a file.
        || (is_capital(ending) && (has_lower(ending) || (parts.len() > 2 && has_lower(first))))
        // `org.w3c.svg`: a package.
        || (parts.len() > 2 && (SCOPES.contains(first) || matches!(*first, "com" | "net" | "org")))
}

/// Returns `true` if a file name is a project name such as `Node.js` or `PIXI.js`. `Vue.min.js` and `MathMenu.js` are files.
fn is_project_name(file: &str) -> bool {
    let stem = file.strip_suffix(".js").unwrap_or_default();
    let rest = stem.trim_start_matches(char::is_uppercase);
    (stem.starts_with(char::is_uppercase)
        && !stem.contains(['.', '-', '_'])
        && (rest.is_empty()
            || (rest.len() + 1 == stem.len() && !rest.contains(char::is_uppercase))))
        || matches!(file, "node.js" | "package.json" | "tsconfig.json")
}

/// Returns `true` if a path is one on the machine that built or runs the script: a system file, or a module of a bundler.
fn is_local_path(path: &str) -> bool {
    const FOLDERS: [&str; 12] = [
        "/../",
        "/bin/bash",
        "/bin/sh",
        "/dev/null",
        "/etc/",
        "/proc/",
        "/tmp/",
        "/usr/bin/",
        "/usr/lib/",
        "/usr/local/",
        "/usr/share/",
        "/var/",
    ];
    FOLDERS.iter().any(|folder| path.starts_with(folder))
        || path.split('/').any(|segment| segment == "node_modules")
}

/// Adds the scheme to a reference without one: a likely host and a path, such as `www.example.org/x` or `example.org/x`. A host
/// alone is not enough: `jquery.com` is also a name in text.
fn add_missing_scheme(value: &str) -> Option<String> {
    /// Top-level domains under which names in scripts are hosts. Those that are also file endings or words in code (`.md`,
    /// `.py`, `.io`, `.name`) are left out.
    const TOP_LEVELS: [&str; 25] = [
        "com", "org", "net", "edu", "gov", "mil", "info", "biz", "eu", "de", "fr", "uk", "nl",
        "se", "dk", "fi", "ch", "es", "cz", "jp", "cn", "ru", "br", "au", "ca",
    ];
    let (host, path) = value.split_at(value.find('/')?);
    if path.len() < 2 || !is_public_host(host) || host.contains('_') {
        return None;
    }
    let (name, top_level) = host.rsplit_once('.')?;
    let is_www = name.starts_with("www.");
    let is_known = TOP_LEVELS
        .iter()
        .any(|known| top_level.eq_ignore_ascii_case(known))
        && name.len() >= 2;
    (is_www || is_known).then(|| format!("http://{value}"))
}

/// Returns `true` if the path names a file with an ending that is usual on the web.
fn has_web_ending(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    let Some((stem, ending)) = file.rsplit_once('.') else {
        return false;
    };
    // `.ts`, `.do` and `.pl` mean source files or code unless the path has a folder.
    let is_doubtful =
        matches!(ending, "ts" | "do" | "pl" | "map" | "ps" | "mid") && !path.contains('/');
    !stem.trim_matches(['.', ' ']).is_empty() && !is_doubtful && is_web_ending(ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn yes(value: &str) {
        assert_eq!(
            reference(value, Concatenation::default()).as_deref(),
            Some(value)
        );
    }

    #[track_caller]
    fn no(value: &str) {
        assert_eq!(reference(value, Concatenation::default()), None, "{value}");
    }

    #[test]
    fn absolute_references() {
        yes("http://example.com");
        yes("https://www.example.com/about/");
        yes("HTTP://Example.com:8080/x?y#z");
        yes("http://a.example.com/combiner/c?js=analytics/sOmni.js,analytics/zf.js");
        yes(
            "http://l.example.com/jn/util/anysize/74*74c-86400,http%3A%2F%2Fl.example.com%2Fa%2F74.jpg",
        );
        yes("http://192.0.2.1/x");
        yes("http://bücher.example/ü");
        yes("//cdn.example.com/lib.js");
        yes("ftp://ftp.example.org/pub/");
        yes("http://www.w3.org/TR/html4/");
        yes("https://www.w3.org/XML/");
        no("https://ssl.");
        no("//www.youtube");
        no("http://www.");
        no("http://");
        no("http://localhost:3000/x");
        no("http://example/x");
        no("http://127.0.0.1/x");
        no("http://example.com/intent/user?screen_name='+p.user+'");
        no("http://example.com/{id}");
        no("http://example.com/%s/x");
        no("http://example.com/users/:id");
        no("http://example.com/$1");
        no("see http://example.com/");
        no("//div[@id='x']");
        no("// a comment");
        no("//");
    }

    #[test]
    fn namespaces_are_not_references() {
        no("http://www.w3.org/1999/xhtml");
        no("http://www.w3.org/2000/svg");
        no("http://www.w3.org/XML/1998/namespace");
        no("https://schema.org");
        no("http://schema.org/Person");
        no("http://ns.adobe.com/xap/1.0/");
        no("http://purl.org/dc/elements/1.1/");
        no("http://www.inkscape.org/namespaces/inkscape");
    }

    #[test]
    fn rooted_paths() {
        yes("/static/");
        yes("/api/v1/items?page=1");
        yes("/images/photo.jpg");
        yes("/login");
        yes("/good/query/string.html?foo=bar#with-good-hash-fragment");
        yes("/good/query/value/with/url-escaping.html?foo=bar%20bar");
        yes("/sites/prb/Public Comment Emails PDF/OpenRecordsLaw_1r71vq4i.pdf");
        yes("/style.css?1234");
        yes("/~user/x");
        no("/query/string/without/equals.html?foo");
        no("/sites/prb/Public Comment Emails PDF/OpenRecordsLaw_1r71vq4i.bad");
        no("/sites/prb/Public Comment Emails PDF/OpenRecordsLaw_1r71vq4i");
        no("/g");
        no("/2024");
        no("/12/31");
        no("/>");
        no("/*");
        no("/");
        no("/users/:id");
        no("/[a-z]+/");
        no("/a b/");
        no("/path/*.js");
        no("/foo(bar)");
        no("/../node_modules/util/util.js");
        no("/../jshint/src/lex.js");
        no("/bin/bash");
        no("/etc/passwd.txt");
    }

    #[test]
    fn relative_paths_need_an_ending() {
        yes("photo.jpg");
        yes("./photo.jpg");
        yes("../a/photo.JPG");
        yes("static/media/logo.5d5d9eef.svg");
        yes("list.php?page=2");
        yes("jquery.min.js");
        no("a/b");
        no("text/javascript");
        no("image/svg+xml");
        no("application/x-shockwave-flash");
        no("audio/x-pn-realaudio-plugin");
        no("12/31/2024");
        no("3.14157");
        no("0.99");
        no("1.2.3");
        no("use strict");
        no(";overlay.style.width=viewport_dimensions.width+");
        no("Node.js");
        no("foo.bar");
        no("xml.etree.ElementTree.doc");
        yes("Annual.Report.pdf");
        no(".jpg");
        no("*.jpg");
        no("%s.png");
        no("./src/index");
        yes("MathMenu.js");
        yes("DSC0001.JPG");
        no("PIXI.js");
        no("OpenLayers.Format.GeoJSON");
        no("OpenLayers.Format.XML");
        no("OpenLayers.Map");
        no("keyword.operator.attribute-equals.xml");
        no("org.w3c.svg");
        yes("text.html");
        no("node_modules/lodash/index.js");
        no("e.pageX");
        no(".example.com");
        no("cdn.example.com");
        no("user@example.com");
        no("yyyy/mm/dd");
    }

    #[test]
    fn hosts_with_a_path_get_a_scheme() {
        assert_eq!(
            reference("example.org/outlink", Concatenation::default()).as_deref(),
            Some("http://example.org/outlink")
        );
        assert_eq!(
            reference("www.example.is/x", Concatenation::default()).as_deref(),
            Some("http://www.example.is/x")
        );
        no("socket.io/client");
        no("this.value/2");
        no("example.org/");
    }

    #[test]
    fn concatenated_strings_count_only_if_complete() {
        let continued = Concatenation {
            after: true,
            ..Concatenation::default()
        };
        assert!(reference("/js/lib.js", continued).is_some());
        assert!(reference("http://example.org", continued).is_some());
        assert!(reference("http://example.org/item/", continued).is_none());
        assert!(reference("/item/", continued).is_none());
        assert!(reference("/x.html?id=", continued).is_none());
        let continues = Concatenation {
            before: true,
            ..Concatenation::default()
        };
        assert!(reference("/x.html", continues).is_none());
        assert!(reference("https://example.org/x", continues).is_some());
    }

    #[test]
    fn modules_are_paths_or_absolute_references() {
        for name in ["./a.js", "../b", "/c.mjs", "https://esm.example.org/x"] {
            assert!(is_module(name), "{name}");
        }
        for name in ["react", "@scope/x", "", "./", "node:fs", "lodash/fp"] {
            assert!(!is_module(name), "{name}");
        }
    }
}
