//! The folders of the SDKs and of their toolchains. They are in the checkout that this program was built from, unless the
//! command names another SDK.

use std::path::{Path, PathBuf};

use crate::Language;

/// The checkout that this program was built from. The path is valid only until the checkout is moved.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The SDK was not found.
#[derive(Debug, thiserror::Error)]
pub enum NoSdk {
    /// The given folder is not an SDK.
    #[error("{} is not the SDK: it holds no {mark}", folder.display())]
    NotThis {
        /// The folder.
        folder: PathBuf,
        /// The file that it lacks.
        mark: &'static str,
    },
    /// The SDK lacks the contract, which it needs beside it.
    #[error(
        "{} stands alone: the SDK needs the folder wit/ of its checkout, at ../../wit",
        folder.display()
    )]
    Alone {
        /// The folder.
        folder: PathBuf,
    },
    /// The checkout was moved or removed.
    #[error(
        "the checkout that opilio was built from is gone, and the SDK with it: clone the repository and name its folder sdk/{} \
         with --sdk",
        language.sdk()
    )]
    Gone {
        /// The language of the SDK.
        language: Language,
    },
}

/// The folder of a language's SDK: the one given, or that of the checkout.
///
/// # Errors
/// It does not exist.
pub fn sdk(language: Language, given: Option<&Path>) -> Result<PathBuf, NoSdk> {
    let of_checkout = || Path::new(CHECKOUT).join("sdk").join(language.sdk());
    let folder = given.map_or_else(of_checkout, Path::to_owned);
    let mark = mark(language);
    let found = folder
        .canonicalize()
        .ok()
        .filter(|folder| folder.join(mark).is_file());
    match (found, given) {
        (Some(found), _) if found.join("../../wit").is_dir() => Ok(found),
        (Some(folder), _) => Err(NoSdk::Alone { folder }),
        (None, Some(_)) => Err(NoSdk::NotThis { folder, mark }),
        (None, None) => Err(NoSdk::Gone { language }),
    }
}

/// A file that only the SDK has.
fn mark(language: Language) -> &'static str {
    match language {
        Language::Rust => "Cargo.toml",
        Language::C => "include/opilio.h",
        Language::Go => "go.mod",
        Language::JavaScript | Language::TypeScript | Language::Python => "recipe.json",
    }
}

/// The folder in which `cargo xtask examples` installs a language's tools: a virtual environment or a Node folder.
pub(crate) fn toolchain(language: Language) -> PathBuf {
    Path::new(CHECKOUT)
        .join("target/toolchains")
        .join(language.sdk())
}
