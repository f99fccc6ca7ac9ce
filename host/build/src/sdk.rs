//! The SDKs, in the checkout that this program was built from unless the command names another, and the toolchains
//! that were fetched into that checkout.

use std::path::{Path, PathBuf};

use crate::Language;

/// The checkout that this program was built from, as long as nobody moves it.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// No SDK.
#[derive(Debug, thiserror::Error)]
pub enum NoSdk {
    /// The folder given is none.
    #[error("{} is not the SDK: it holds no {mark}", folder.display())]
    NotThis {
        /// The folder.
        folder: PathBuf,
        /// What it lacks.
        mark: &'static str,
    },
    /// The SDK is made from the contract beside it.
    #[error(
        "{} stands alone: the SDK needs the folder wit/ of its checkout, at ../../wit",
        folder.display()
    )]
    Alone {
        /// The folder.
        folder: PathBuf,
    },
    /// The checkout has moved.
    #[error(
        "the checkout that opilio was built from is gone, and the SDK with it: clone the repository and name its folder sdk/{} \
         with --sdk",
        language.sdk()
    )]
    Gone {
        /// Whose SDK.
        language: Language,
    },
}

/// The folder of a language's SDK: the one given, or that of the checkout.
///
/// # Errors
/// It is not there.
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

/// Where `cargo xtask examples` puts what it fetches for a language: a virtual environment, a folder of Node's.
pub(crate) fn toolchain(language: Language) -> PathBuf {
    Path::new(CHECKOUT)
        .join("target/toolchains")
        .join(language.sdk())
}
