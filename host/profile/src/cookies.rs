//! Cookie settings: whether cookies are kept, and the initial ones.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;

/// Cookies: whether they are kept, and the initial ones. A job keeps its cookies when it is stopped and resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CookiesFile {
    /// `true` if cookies that servers set are kept and sent back (RFC 6265bis). Default `true`: many sites redirect clients without
    /// cookies in circles.
    pub accept: bool,

    /// Most cookies of one host name; beyond it the oldest are removed. Default `50`: the minimum that RFC 6265bis §6.1
    /// requires.
    #[schemars(range(min = 1, max = 300))]
    pub per_host: u32,

    /// A file with initial cookies, in Netscape's format, relative to the profile; read at each start, when it has changed.
    /// No default: the crawl starts without cookies.
    #[schemars(extend("examples" = ["cookies.txt"]))]
    pub load: Option<String>,

    /// A file in the job's directory to which all cookies are written when the crawl ends, in the same format. No default:
    /// cookies are not written.
    #[schemars(extend("examples" = ["cookies.txt"]))]
    pub save: Option<String>,
}

/// Cookies: whether they are kept, and the initial ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookies {
    /// `true` if cookies that servers set are kept and sent back.
    pub accept: bool,
    /// Most cookies of one host name; at least 1.
    pub per_host: usize,
    /// A file with initial cookies.
    pub load: Option<PathBuf>,
    /// A file name in the job's directory.
    pub save: Option<PathBuf>,
}

impl Default for CookiesFile {
    fn default() -> Self {
        Self {
            accept: true,
            per_host: 50,
            load: None,
            save: None,
        }
    }
}

impl CookiesFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>, folder: &Path) -> Cookies {
        let load = self.load.as_ref().map(|load| {
            let file = folder.join(load);
            if load.is_empty() || !file.is_file() {
                let problem = format!("there is no file {}", file.display());
                part.refuse(
                    "load",
                    problem,
                    "write the path of a cookie file, from the profile's folder",
                );
            }
            file
        });
        let save = self.save.as_ref().map(|save| {
            if save.is_empty() || save.contains(['/', '\\', '\0']) || save.starts_with('.') {
                let problem = format!("not a file name: {}", crate::check::quote(save));
                part.refuse(
                    "save",
                    problem,
                    "write one such as \"cookies.txt\"; it is written to the job's directory",
                );
            }
            PathBuf::from(save)
        });
        Cookies {
            accept: self.accept,
            per_host: self.per_host as usize,
            load,
            save,
        }
    }
}
