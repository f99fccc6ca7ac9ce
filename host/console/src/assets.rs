//! The console's files, which are part of the binary: `assets/index.html` and the files that it loads. There is no build step:
//! browsers get the files of the folder unchanged. One more file, generated from the table that commands use, has the words for
//! fetch statuses.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use opilio_control::STATUS_WORDS;
use sha2::{Digest, Sha256};

/// A file of the console.
pub(crate) struct Asset {
    /// Path in requests, without the first slash; empty for the page itself.
    path: &'static str,
    media_type: &'static str,
    bytes: Bytes,
    /// A strong tag: the beginning of the hash of its bytes.
    etag: HeaderValue,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal $file:literal $media_type:expr;)*) => {
        [$(($path, $media_type, include_bytes!(concat!("../assets/", $file)).as_slice()),)*]
    };
}

/// All files of the folder, and the script with the words for statuses. A test compares the list with the folder.
static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = files! {
        "" "index.html" HTML;
        "assets/icon.svg" "icon.svg" SVG;
        "assets/base.css" "base.css" CSS;
        "assets/parts.css" "parts.css" CSS;
        "assets/forms.css" "forms.css" CSS;
        "assets/theme.js" "theme.js" SCRIPT;
        "assets/main.js" "main.js" SCRIPT;
        "assets/session.js" "session.js" SCRIPT;
        "assets/api.js" "api.js" SCRIPT;
        "assets/answers.js" "answers.js" SCRIPT;
        "assets/stream.js" "stream.js" SCRIPT;
        "assets/dom.js" "dom.js" SCRIPT;
        "assets/format.js" "format.js" SCRIPT;
        "assets/keys.js" "keys.js" SCRIPT;
        "assets/notice.js" "notice.js" SCRIPT;
        "assets/table.js" "table.js" SCRIPT;
        "assets/treemap.js" "treemap.js" SCRIPT;
        "assets/charts.js" "charts.js" SCRIPT;
        "assets/editor.js" "editor.js" SCRIPT;
        "assets/diff.js" "diff.js" SCRIPT;
        "assets/fields.js" "fields.js" SCRIPT;
        "assets/profile-editor.js" "profile-editor.js" SCRIPT;
        "assets/settings-form.js" "settings-form.js" SCRIPT;
        "assets/typed-fields.js" "typed-fields.js" SCRIPT;
        "assets/plugin-form.js" "plugin-form.js" SCRIPT;
        "assets/schema.js" "schema.js" SCRIPT;
        "assets/checkpoints.js" "checkpoints.js" SCRIPT;
        "assets/job.js" "job.js" SCRIPT;
        "assets/pictures.js" "pictures.js" SCRIPT;
        "assets/pages/admin.js" "pages/admin.js" SCRIPT;
        "assets/pages/alerts.js" "pages/alerts.js" SCRIPT;
        "assets/pages/compare.js" "pages/compare.js" SCRIPT;
        "assets/pages/compare-profiles.js" "pages/compare-profiles.js" SCRIPT;
        "assets/pages/crawl-log.js" "pages/crawl-log.js" SCRIPT;
        "assets/pages/files.js" "pages/files.js" SCRIPT;
        "assets/pages/frontier.js" "pages/frontier.js" SCRIPT;
        "assets/pages/history.js" "pages/history.js" SCRIPT;
        "assets/pages/hosts.js" "pages/hosts.js" SCRIPT;
        "assets/pages/jobs.js" "pages/jobs.js" SCRIPT;
        "assets/pages/live.js" "pages/live.js" SCRIPT;
        "assets/pages/logs.js" "pages/logs.js" SCRIPT;
        "assets/pages/new-job.js" "pages/new-job.js" SCRIPT;
        "assets/pages/overrides.js" "pages/overrides.js" SCRIPT;
        "assets/pages/plugin.js" "pages/plugin.js" SCRIPT;
        "assets/pages/plugins.js" "pages/plugins.js" SCRIPT;
        "assets/pages/profile.js" "pages/profile.js" SCRIPT;
        "assets/pages/profile-edit.js" "pages/profile-edit.js" SCRIPT;
        "assets/pages/profiles.js" "pages/profiles.js" SCRIPT;
        "assets/pages/queue.js" "pages/queue.js" SCRIPT;
        "assets/pages/reports.js" "pages/reports.js" SCRIPT;
        "assets/pages/seeds.js" "pages/seeds.js" SCRIPT;
        "assets/pages/settings.js" "pages/settings.js" SCRIPT;
        "assets/pages/uri.js" "pages/uri.js" SCRIPT;
        "assets/pages/uris.js" "pages/uris.js" SCRIPT;
    };
    let mut assets: Vec<Asset> = files
        .into_iter()
        .map(|(path, media_type, bytes)| Asset::new(path, media_type, Bytes::from_static(bytes)))
        .collect();
    assets.push(Asset::new(STATUS_SCRIPT, SCRIPT, status_script().into()));
    assets
});

/// Path of the script with the words for fetch statuses. It is not a file of the folder.
const STATUS_SCRIPT: &str = "assets/status-words.js";

/// Returns a script that exports the words for fetch statuses, by status.
fn status_script() -> String {
    let rows = STATUS_WORDS.iter();
    let rows = rows.map(|(status, words)| format!("  \"{status}\": {words:?},\n"));
    let rows: String = rows.collect();
    format!("// Words for fetch statuses.\nexport const STATUS_WORDS = {{\n{rows}}};\n")
}

/// The file at a path without its first slash; the page itself at the empty path.
pub(crate) fn get(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

impl Asset {
    fn new(path: &'static str, media_type: &'static str, bytes: Bytes) -> Asset {
        let hash = Sha256::digest(&bytes);
        let tag = HEXLOWER.encode(&hash[..12]);
        let etag =
            HeaderValue::try_from(format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""));
        Asset {
            path,
            media_type,
            bytes,
            etag,
        }
    }

    /// Answers a request for the file. Browsers cache the file and revalidate it at each use. So no unchanged file is sent twice,
    /// and after an upgrade all files are of the same version.
    pub(crate) fn respond(&self, request: &HeaderMap) -> Response {
        let head = [
            (header::ETAG, self.etag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        if is_known(request, &self.etag) {
            return (StatusCode::NOT_MODIFIED, head).into_response();
        }
        let kind = HeaderValue::from_static(self.media_type);
        (head, [(header::CONTENT_TYPE, kind)], self.bytes.clone()).into_response()
    }
}

/// Returns `true` if the browser has the same bytes. The tag may be a weak one, because proxies that compress weaken tags.
fn is_known(request: &HeaderMap, etag: &HeaderValue) -> bool {
    let etag = etag.to_str().unwrap_or_default();
    request
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use opilio_control::JobState;

    use super::*;

    /// Files below a folder, with `/` between names.
    fn files(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let mut found = BTreeSet::new();
        files(Path::new("assets"), "", &mut found);
        let served: BTreeSet<String> = ASSETS
            .iter()
            .filter(|asset| asset.path != STATUS_SCRIPT)
            .map(|asset| match asset.path {
                "" => "index.html".to_owned(),
                path => path.trim_start_matches("assets/").to_owned(),
            })
            .collect();
        assert_eq!(served, found, "add the file to ASSETS, or remove it");
    }

    #[test]
    fn an_unchanged_file_is_sent_once() {
        let page = get("").unwrap();
        let first = page.respond(&HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].clone();
        let mut asked = HeaderMap::new();
        asked.insert(
            header::IF_NONE_MATCH,
            HeaderValue::try_from(format!("\"other\", W/{}", tag.to_str().unwrap())).unwrap(),
        );
        assert_eq!(page.respond(&asked).status(), StatusCode::NOT_MODIFIED);
        let other = get("assets/main.js").unwrap().respond(&asked);
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[test]
    fn the_list_of_jobs_offers_every_state() {
        let page = get("assets/pages/jobs.js").unwrap();
        let names = JobState::ALL.map(|state| format!("\"{}\"", state.name()));
        let list = format!("const STATES = [{}];", names.join(", "));
        let text = String::from_utf8_lossy(&page.bytes);
        assert!(text.contains(&list), "write into pages/jobs.js: {list}");
    }

    #[test]
    fn the_console_has_the_words_of_commands_for_statuses() {
        let script = get(STATUS_SCRIPT).unwrap();
        let text = String::from_utf8_lossy(&script.bytes);
        for row in [
            "  \"-2\": \"no connection to the server\",\n",
            "  \"404\": \"not found\",\n",
        ] {
            assert!(text.contains(row), "{text}");
        }
        let job = get("assets/job.js").unwrap();
        let import = "import { STATUS_WORDS } from \"./status-words.js\";";
        assert!(String::from_utf8_lossy(&job.bytes).contains(import));
    }

    /// The content security policy allows neither inline scripts nor resources of other servers.
    #[test]
    fn pages_have_no_inline_scripts_and_load_nothing_from_other_servers() {
        for asset in ASSETS.iter() {
            let text = String::from_utf8_lossy(&asset.bytes);
            let own = text.replace("http://www.w3.org/2000/svg", "");
            for wrong in ["innerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!own.contains(wrong), "{} has {wrong}", asset.path);
            }
            if asset.media_type == HTML {
                for wrong in [
                    "<style",
                    " style=",
                    " onclick=",
                    " onload=",
                    "<script>",
                    "//",
                ] {
                    assert!(!own.contains(wrong), "{} has {wrong}", asset.path);
                }
            }
            if asset.media_type == CSS {
                assert!(!own.contains("url("), "{} loads something", asset.path);
            }
        }
    }
}
