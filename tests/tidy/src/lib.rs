//! House checks: tests that read the repository itself. Each failure shows the place of the error and how to fix it.
//!
//! | module | checks |
//! |---|---|
//! | `links` | links and anchors in Markdown files, and the table of contents in `docs/SUMMARY.md` |
//! | `named_files` | existence of the source files that CONTRIBUTING.md, ARCHITECTURE.md and GLOSSARY.md name |
//! | `doc_comments` | number of doc comments that open with a wh-word does not grow |
//! | `doc_examples` | crates have doctests if and only if they have examples in doc comments |
//! | `phrases` | number of "is none", "are none" and "is no X" in code, scripts and documentation does not grow |
//! | `file_lengths` | a Rust file over 600 lines gives a reason |
//! | `type_names` | no two crates have a public type of one name |
//! | `circles` | no file of a crate reaches itself through its imports |
//! | `clocks` | code that gets the time from its caller reads no clock |
//!
//! A check takes [`Source`](repository::Source) files as input, so its own tests can pass files that must fail. Three checks have a
//! count that may only decrease (see `ratchet`). The counts cover the whole repository, so moving code between crates does not
//! change them. `imports` and `tokens` read the code for `circles`.
//!
//! Run them alone with `cargo test -p opilio-tidy`. They have no dependencies and take a second.

#[cfg(test)]
mod circles;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod doc_comments;
#[cfg(test)]
mod doc_examples;
#[cfg(test)]
mod file_lengths;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod links;
#[cfg(test)]
mod named_files;
#[cfg(test)]
mod phrases;
#[cfg(test)]
mod ratchet;
#[cfg(test)]
mod recency;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod type_names;
