//! House checks: tests that read the repository itself. Each failure says where the fault is and how to fix it.
//!
//! | module | checks |
//! |---|---|
//! | `links` | links and anchors in Markdown files, and the table of contents in `docs/SUMMARY.md` |
//! | `named_files` | source files that the glossary and the architecture page name |
//! | `doc_comments` | doc comments that open with a wh-word do not become more |
//! | `doc_examples` | crates with examples in doc comments have doctests |
//! | `phrases` | "is none", "are none" and "is no X" do not become more |
//! | `file_lengths` | a Rust file over 600 lines gives a reason |
//! | `type_names` | no two crates have a public type of one name |
//! | `circles` | no file of a crate reaches itself through its imports |
//! | `clocks` | code that gets the time from its caller reads no clock |
//!
//! A check takes [`Source`](repository::Source) files, so its own tests give it files that must fail. Three checks hold a
//! count that may only fall (see `ratchet`). The counts are for the whole repository: moving code between crates changes
//! none of them. `imports` and `tokens` read the code for `circles`.
//!
//! Run them alone with `cargo test -p opilio-tidy`; they depend on nothing and take a second.

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
