//! Lists for guessing references: file endings on the web, and hosts of vocabulary names.
//!
//! `json`, `xml` and others in this component use them. The `js` plugin includes this file, so it may not depend on other files.

/// File endings that are common on the web but rare at the end of other values with a dot, sorted.
const WEB_ENDINGS: &[&str] = &[
    "aac",
    "asp",
    "aspx",
    "atom",
    "avi",
    "avif",
    "bmp",
    "bz2",
    "cfm",
    "cgi",
    "css",
    "csv",
    "cur",
    "dcr",
    "do",
    "doc",
    "docx",
    "eot",
    "epub",
    "exe",
    "flac",
    "flv",
    "geojson",
    "gif",
    "glb",
    "gltf",
    "gpx",
    "gz",
    "htm",
    "html",
    "ico",
    "ics",
    "jar",
    "jp2",
    "jpe",
    "jpeg",
    "jpg",
    "js",
    "json",
    "jsonld",
    "jsp",
    "jspx",
    "jxl",
    "kml",
    "kmz",
    "m3u8",
    "m4a",
    "m4s",
    "m4v",
    "map",
    "mid",
    "mjs",
    "mkv",
    "mov",
    "mp3",
    "mp4",
    "mpd",
    "mpeg",
    "mpg",
    "odp",
    "ods",
    "odt",
    "oga",
    "ogg",
    "ogv",
    "opus",
    "otf",
    "pdf",
    "php",
    "php3",
    "php5",
    "phtml",
    "pl",
    "png",
    "ppt",
    "pptx",
    "ps",
    "rar",
    "rdf",
    "rss",
    "rtf",
    "shtml",
    "svg",
    "svgz",
    "swf",
    "tar",
    "tgz",
    "tif",
    "tiff",
    "topojson",
    "ts",
    "ttf",
    "txt",
    "vtt",
    "wasm",
    "wav",
    "weba",
    "webm",
    "webmanifest",
    "webp",
    "wmv",
    "woff",
    "woff2",
    "xhtml",
    "xls",
    "xlsx",
    "xml",
    "xsd",
    "xsl",
    "xslt",
    "xspf",
    "zip",
];

/// Returns `true` for a file ending that is common on the web, in any case.
pub(crate) fn is_web_ending(ending: &str) -> bool {
    WEB_ENDINGS
        .binary_search(&ending.to_ascii_lowercase().as_str())
        .is_ok()
}

/// Returns `true` if a URI of this host and path is the name of a vocabulary. Such names are compared as text and need not have a
/// document.
pub(crate) fn is_namespace(host: &str, path: &str) -> bool {
    let host = host.to_ascii_lowercase();
    match host.strip_prefix("www.").unwrap_or(&host) {
        // `/1999/xhtml`, `/2000/svg`, `/XML/1998/namespace`, `/ns/…`; not `/TR/…` and `/XML/`, which are documents.
        "w3.org" => {
            let first = path.split('/').nth(1).unwrap_or_default();
            path.starts_with("/XML/1998")
                || matches!(first, "ns" | "xmlns")
                || (first.len() == 4 && first.bytes().all(|b| b.is_ascii_digit()))
        }
        "schema.org"
        | "purl.org"
        | "ogp.me"
        | "xmlns.com"
        | "ns.adobe.com"
        | "rdfs.org"
        | "rdf.data-vocabulary.org"
        | "schemas.xmlsoap.org"
        | "schemas.microsoft.com"
        | "schemas.openxmlformats.org"
        | "schemas.google.com"
        | "schemas.android.com"
        | "relaxng.org"
        | "docbook.org"
        | "xml.apache.org"
        | "sodipodi.sourceforge.net"
        | "json-schema.org"
        | "base.google.com"
        | "search.yahoo.com"
        | "java.sun.com"
        | "xmlns.jcp.org"
        | "opengis.net"
        | "schemas.live.com"
        | "creativecommons.org" => {
            // The licences of Creative Commons are documents.
            !path.starts_with("/licenses/") && !path.starts_with("/publicdomain/")
        }
        "inkscape.org" => path.starts_with("/namespaces"),
        "sitemaps.org" | "google.com" => path.starts_with("/schemas"),
        "facebook.com" => path.starts_with("/2008/fbml"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_sorted_and_case_is_ignored() {
        assert!(WEB_ENDINGS.is_sorted());
        assert!(is_web_ending("HTML") && !is_web_ending("exempel"));
    }

    #[test]
    fn names_of_vocabularies_are_recognised() {
        for (host, path) in [
            ("www.w3.org", "/1999/xhtml"),
            ("w3.org", "/XML/1998/namespace"),
            ("Schema.org", "/Person"),
            ("creativecommons.org", "/ns#"),
        ] {
            assert!(is_namespace(host, path), "{host}{path}");
        }
        for (host, path) in [
            ("www.w3.org", "/TR/html4/"),
            ("www.w3.org", "/XML/"),
            ("creativecommons.org", "/licenses/by/4.0/"),
            ("example.org", "/ns"),
        ] {
            assert!(!is_namespace(host, path), "{host}{path}");
        }
    }
}
