//! Real documents of each kind, from Debian packages that have many of them by many authors.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use sha2::{Digest, Sha256};

use crate::debian;

/// A kind of document, with the extractor that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    Html,
    Css,
    Js,
    Json,
    Xml,
    Svg,
    Pdf,
}

impl Kind {
    /// All kinds, in the order of the table.
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Html,
        Kind::Css,
        Kind::Js,
        Kind::Json,
        Kind::Xml,
        Kind::Svg,
        Kind::Pdf,
    ];

    /// The name of the extractor for this kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Html => "html",
            Kind::Css => "css",
            Kind::Js => "js",
            Kind::Json => "json",
            Kind::Xml => "xml",
            Kind::Svg => "svg",
            Kind::Pdf => "pdf",
        }
    }

    /// The script with the third-party parser.
    pub(crate) fn judge(self) -> &'static str {
        match self {
            Kind::Html => "html.mjs",
            Kind::Css => "css.mjs",
            Kind::Js => "js.mjs",
            Kind::Json => "json_strings.py",
            Kind::Xml | Kind::Svg => "markup.py",
            Kind::Pdf => "pdf.py",
        }
    }

    fn endings(self) -> &'static [&'static str] {
        match self {
            Kind::Html => &["html", "htm"],
            Kind::Css => &["css"],
            Kind::Js => &["js", "mjs"],
            Kind::Json => &["json"],
            Kind::Xml => &["xml", "docbook", "page", "xsl"],
            Kind::Svg => &["svg"],
            Kind::Pdf => &["pdf"],
        }
    }

    fn packages(self) -> &'static [&'static str] {
        match self {
            Kind::Html => &[
                "apache2-doc",
                "cppreference-doc-en-html",
                "git-doc",
                "libboost1.81-doc",
                "octave-doc",
                "postgresql-doc-15",
                "python3.11-doc",
                "sqlite3-doc",
            ],
            Kind::Css => &[
                "ckeditor",
                "cppreference-doc-en-html",
                "dokuwiki",
                "libjs-codemirror",
                "libjs-dojo-dijit",
                "libjs-dojo-dojox",
                "libjs-highlight.js",
                "libjs-jquery-ui",
                "materia-gtk-theme",
                "mediawiki",
                "phpmyadmin",
                "request-tracker5",
                "roundcube-core",
                "wordpress",
            ],
            Kind::Js => &[
                "ckeditor",
                "dokuwiki",
                "libjs-codemirror",
                "libjs-dojo-dojox",
                "libjs-jquery-ui",
                "libjs-mathjax",
                "libjs-openlayers",
                "mediawiki",
                "phpmyadmin",
                "request-tracker5",
                "roundcube-core",
                "wordpress",
            ],
            Kind::Json => &[
                "dokuwiki",
                "iso-codes",
                "libjs-dojo-dojox",
                "mediawiki",
                "phpmyadmin",
                "wordpress",
            ],
            Kind::Xml => &[
                "docbook-xsl",
                "gnome-user-docs",
                "kate5-data",
                "kdoctools5",
                "libreoffice-common",
            ],
            Kind::Svg => &[
                "adwaita-icon-theme",
                "dokuwiki",
                "mediawiki",
                "openclipart-svg",
                "tango-icon-theme",
            ],
            Kind::Pdf => &[
                "texlive-humanities-doc",
                "texlive-latex-extra-doc",
                "texlive-latex-recommended-doc",
                "texlive-science-doc",
            ],
        }
    }
}

/// A file of a package.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    /// Root of the unpacked package.
    pub(crate) root: PathBuf,
    /// Package name and path in the package.
    pub(crate) name: String,
}

/// Selects the wanted number of documents with different content, in equal parts from all packages if they have enough. The
/// selection within a package is pseudo-random and always the same.
pub(crate) fn documents(kind: Kind, wanted: usize) -> Result<Vec<Document>> {
    let mut packages = Vec::new();
    for package in kind.packages() {
        let root = debian::unpacked(package)?;
        let mut paths = Vec::new();
        files(&root, kind.endings(), &mut paths)?;
        let mut paths: Vec<_> = paths
            .into_iter()
            .map(|path| {
                let inner = path.strip_prefix(&root).unwrap_or(&path);
                let name = format!("{package}/{}", inner.display());
                (Sha256::digest(&name), name, path)
            })
            .collect();
        // Sorted in reverse, because documents are taken from the end.
        paths.sort_by(|a, b| b.cmp(a));
        packages.push((root, paths));
    }
    let mut documents = Vec::new();
    let mut seen = HashSet::new();
    while documents.len() < wanted && packages.iter().any(|(_, paths)| !paths.is_empty()) {
        for (root, paths) in &mut packages {
            while documents.len() < wanted
                && let Some((_, name, path)) = paths.pop()
            {
                let content = fs::read(&path)?;
                if !content.is_empty() && seen.insert(Sha256::digest(&content)) {
                    let root = root.clone();
                    documents.push(Document { path, root, name });
                    break;
                }
            }
        }
    }
    documents.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(documents)
}

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        let ending = path.extension().and_then(|ending| ending.to_str());
        if kind.is_dir() {
            files(&path, endings, found)?;
        } else if kind.is_file() && ending.is_some_and(|ending| endings.contains(&ending)) {
            found.push(path);
        }
    }
    Ok(())
}
