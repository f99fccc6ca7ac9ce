//! Exit codes, as `opilio --help` documents them.

/// All went well.
pub(crate) const OK: u8 = 0;
/// The command cannot continue; nothing is lost.
pub(crate) const FAILED: u8 = 1;
/// The command line, the profile or a component is invalid, or a file that the command line names cannot be read or has
/// another format; nothing was created.
pub(crate) const USAGE: u8 = 2;
/// Another process has the job; nothing was done.
pub(crate) const IN_USE: u8 = 3;
/// A limit of the profile was reached before everything was fetched.
pub(crate) const LIMIT: u8 = 4;
/// The crawl is finished, and none of its seeds could be fetched.
pub(crate) const NO_SEED: u8 = 5;
/// The crawl has ended, and files of the job were not handed over.
pub(crate) const NOT_HANDED_OVER: u8 = 6;
