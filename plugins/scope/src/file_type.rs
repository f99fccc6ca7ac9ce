//! `file-type`: images, audio, video and documents, by the extension of the path.
//!
//! Once there is a response, the server's media type decides instead, unless it is `application/octet-stream`.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::media_types::MediaTypes;
use crate::parts::Parts;

/// The media type of files that the server does not recognise.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Decides on files of the listed kinds.
pub struct FileType {
    kinds: Vec<Kind>,
    extensions: Vec<String>,
    media_types: MediaTypes,
    decisions: Decisions,
}

/// Settings of `file-type`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Kinds of files, each with its usual extensions and media types.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub kinds: Vec<Kind>,
    /// Further extensions, without the dot: `iso`. Case is ignored.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub extensions: Vec<String>,
    /// Further media types: `video/*`, `application/x-iso9660-image`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub media_types: Vec<String>,
    /// The decision on files of these kinds, extensions or media types.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other files. URIs with neither an extension nor a media type get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

/// A kind of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Images, including vector graphics and icons.
    Images,
    /// Audio files and playlists.
    Audio,
    /// Video files and playlists.
    Video,
    /// PDF, office documents and similar files; not web pages.
    Documents,
    /// Archives, disk images, programs and packages.
    Archives,
    /// Fonts.
    Fonts,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Documents => "documents",
            Self::Archives => "archives",
            Self::Fonts => "fonts",
        }
    }

    /// File extensions in lower case.
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Images => &[
                "apng", "avif", "bmp", "cur", "gif", "heic", "heif", "ico", "jfif", "jp2", "jpe",
                "jpeg", "jpg", "jxl", "pjpeg", "png", "psd", "svg", "svgz", "tif", "tiff", "webp",
                "xbm", "xpm",
            ],
            Self::Audio => &[
                "aac", "ac3", "aif", "aifc", "aiff", "amr", "au", "flac", "m3u", "m4a", "m4b",
                "mid", "midi", "mka", "mp2", "mp3", "mpa", "oga", "ogg", "opus", "pls", "ra",
                "ram", "snd", "spx", "wav", "weba", "wma",
            ],
            Self::Video => &[
                "3g2", "3gp", "asf", "asx", "avi", "divx", "f4v", "flv", "m2ts", "m3u8", "m4s",
                "m4v", "mkv", "mov", "mp4", "mpd", "mpe", "mpeg", "mpg", "mts", "ogm", "ogv", "qt",
                "rm", "rmvb", "smil", "ts", "vob", "webm", "wmv",
            ],
            Self::Documents => &[
                "csv", "djvu", "doc", "docm", "docx", "dot", "dotx", "eps", "epub", "fodt", "key",
                "mobi", "numbers", "odg", "odp", "ods", "odt", "pages", "pdf", "pps", "ppsx",
                "ppt", "pptm", "pptx", "ps", "rtf", "swf", "tex", "vsd", "wpd", "xls", "xlsm",
                "xlsx", "xps",
            ],
            Self::Archives => &[
                "7z", "apk", "appimage", "arj", "bin", "bz2", "cab", "cpio", "deb", "dmg", "exe",
                "gz", "img", "iso", "jar", "lha", "lz", "lz4", "lzma", "msi", "pkg", "rar", "rpm",
                "tar", "tbz", "tbz2", "tgz", "txz", "war", "whl", "xz", "z", "zip", "zst",
            ],
            Self::Fonts => &["eot", "otf", "pfb", "ttc", "ttf", "woff", "woff2"],
        }
    }

    /// Media types. One that ends in `/` matches all its subtypes.
    fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Images => &["image/"],
            Self::Audio => &["audio/"],
            Self::Video => &[
                "video/",
                "application/vnd.apple.mpegurl",
                "application/dash+xml",
                "application/smil",
            ],
            Self::Documents => &[
                "application/epub+zip",
                "application/msword",
                "application/pdf",
                "application/postscript",
                "application/rtf",
                "application/vnd.ms-excel",
                "application/vnd.ms-powerpoint",
                "application/vnd.oasis.opendocument.",
                "application/vnd.openxmlformats-officedocument.",
                "application/x-shockwave-flash",
                "text/csv",
                "text/rtf",
            ],
            Self::Archives => &[
                "application/gzip",
                "application/java-archive",
                "application/vnd.android.package-archive",
                "application/vnd.debian.binary-package",
                "application/vnd.rar",
                "application/x-7z-compressed",
                "application/x-bzip2",
                "application/x-debian-package",
                "application/x-gzip",
                "application/x-iso9660-image",
                "application/x-msdownload",
                "application/x-rar-compressed",
                "application/x-rpm",
                "application/x-tar",
                "application/x-xz",
                "application/zip",
                "application/zstd",
            ],
            Self::Fonts => &[
                "font/",
                "application/font-",
                "application/vnd.ms-fontobject",
                "application/x-font-",
            ],
        }
    }

    fn has_type(self, media_type: &str) -> bool {
        let mut types = self.media_types().iter();
        types.any(|known| match known.ends_with(['/', '.', '-']) {
            true => media_type.starts_with(known),
            false => media_type == *known,
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            extensions: Vec::new(),
            media_types: Vec::new(),
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for FileType {
    const NAME: &'static str = "file-type";
    const SUMMARY: &'static str =
        "Rejects or accepts images, audio, video, documents and other files.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let (extensions, media_types) = list::both(
            list::parse_each("extensions", &settings.extensions, parse_extension),
            MediaTypes::new("media-types", &settings.media_types),
        )?;
        Ok(Self {
            kinds: settings.kinds,
            extensions,
            media_types,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

fn parse_extension(text: &str) -> Result<String, String> {
    let is_invalid =
        text.is_empty() || text.contains(['.', '/', '*']) || text.contains(char::is_whitespace);
    match is_invalid {
        true => Err(format!(
            "`{text}` is not a file extension; write it like `iso`, without dot or star"
        )),
        false => Ok(text.to_ascii_lowercase()),
    }
}

impl Filter for FileType {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        self.decisions.rule(self.find_by_path(candidate.uri()))
    }

    fn judge_document(&self, _: &Stage, document: &Document, _: &Visit) -> Ruling {
        let media_type = document.media_type();
        let finding = match media_type == UNKNOWN_TYPE {
            true => self.find_by_path(&document.uri()),
            false => self.find_by_type(media_type, &document.uri()),
        };
        self.decisions.rule(finding)
    }
}

impl FileType {
    fn is_unset(&self) -> bool {
        self.kinds.is_empty() && self.extensions.is_empty() && self.media_types.is_empty()
    }

    fn find_by_path(&self, uri: &str) -> Finding {
        let Some(extension) = Parts::of(uri).extension() else {
            return Finding::Unknown;
        };
        if self.is_unset() {
            return Finding::Unknown;
        }
        let extension = extension.to_ascii_lowercase();
        let mut kinds = self.kinds.iter();
        if let Some(kind) = kinds.find(|kind| kind.extensions().contains(&extension.as_str())) {
            return Finding::matching(["extension .", &extension, " (", kind.name(), ")"].concat());
        }
        match self.extensions.contains(&extension) {
            true => Finding::matching(["extension .", &extension].concat()),
            false => Finding::not_matching(["extension .", &extension].concat()),
        }
    }

    /// Returns the finding by media type. An extension that the profile lists matches with any media type.
    fn find_by_type(&self, media_type: String, uri: &str) -> Finding {
        if self.is_unset() {
            return Finding::Unknown;
        }
        let listed = |extension: &str| self.extensions.contains(&extension.to_ascii_lowercase());
        let is_match = self.kinds.iter().any(|kind| kind.has_type(&media_type))
            || self.media_types.first_match(&media_type).is_some()
            || Parts::of(uri).extension().is_some_and(listed);
        match is_match {
            true => Finding::matching(media_type),
            false => Finding::not_matching(media_type),
        }
    }
}
