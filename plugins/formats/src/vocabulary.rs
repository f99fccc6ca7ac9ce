//! Word lists for guessing references: file endings on the web, and names of vocabularies.
//!
//! `json`, `xml` and others in this component use them. `js` includes this file, so it has no dependencies.

/// Endings of files served on the web that are seldom endings of other words, sorted.
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

/// Whether it is the ending of a web file; case is ignored.
pub(crate) fn is_web_ending(ending: &str) -> bool {
    WEB_ENDINGS
        .binary_search(&ending.to_ascii_lowercase().as_str())
        .is_ok()
}

/// Whether it is a vocabulary's name, which looks like a URI but is compared as text.
pub(crate) fn is_namespace(host: &str, behind: &str) -> bool {
    let host = host.to_ascii_lowercase();
    match host.strip_prefix("www.").unwrap_or(&host) {
        // `/1999/xhtml`, `/2000/svg`, `/XML/1998/namespace`, `/ns/…`; not `/TR/…` and `/XML/`, which are documents.
        "w3.org" => {
            let first = behind.split('/').nth(1).unwrap_or_default();
            behind.starts_with("/XML/1998")
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
            // Licences are documents; the vocabulary of Creative Commons is not one.
            !behind.starts_with("/licenses/") && !behind.starts_with("/publicdomain/")
        }
        "inkscape.org" => behind.starts_with("/namespaces"),
        "sitemaps.org" | "google.com" => behind.starts_with("/schemas"),
        "facebook.com" => behind.starts_with("/2008/fbml"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_sorted() {
        assert!(WEB_ENDINGS.is_sorted());
        assert!(is_web_ending("HTML") && !is_web_ending("exempel"));
    }

    #[test]
    fn names_of_vocabularies_are_no_documents() {
        for (host, behind) in [
            ("www.w3.org", "/1999/xhtml"),
            ("w3.org", "/XML/1998/namespace"),
            ("Schema.org", "/Person"),
            ("creativecommons.org", "/ns#"),
        ] {
            assert!(is_namespace(host, behind), "{host}{behind}");
        }
        for (host, behind) in [
            ("www.w3.org", "/TR/html4/"),
            ("www.w3.org", "/XML/"),
            ("creativecommons.org", "/licenses/by/4.0/"),
            ("example.org", "/ns"),
        ] {
            assert!(!is_namespace(host, behind), "{host}{behind}");
        }
    }
}
