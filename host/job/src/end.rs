//! The reason why a crawl ended.

/// The reason why a crawl ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// No URIs are left to fetch.
    Finished,
    /// No URIs are left to fetch, and no seed could be fetched. The text has the number of seeds, or the reason for the only one.
    NoSeedFetched(String),
    /// An operator stopped it.
    Stopped,
    /// The system terminated it, for example before a shutdown.
    Terminated,
    /// The profile's limit on documents was reached.
    DocumentLimit,
    /// The profile's limit on bytes was reached.
    ByteLimit,
    /// A quota of the whole crawl was reached, by its name in the profile.
    Quota(&'static str),
    /// The archive files have reached the size limit of the profile.
    ArchiveLimit,
    /// The profile's limit on time was reached.
    TimeLimit,
    /// The crawl cannot continue; the text has the reason and the remedy.
    Halted(String),
}

impl End {
    /// Returns `true` if a limit of the profile was reached: there may be more to fetch.
    pub fn is_limit(&self) -> bool {
        match self {
            End::DocumentLimit
            | End::ByteLimit
            | End::Quota(_)
            | End::ArchiveLimit
            | End::TimeLimit => true,
            End::Finished
            | End::NoSeedFetched(_)
            | End::Stopped
            | End::Terminated
            | End::Halted(_) => false,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            End::Finished => "finished: no URIs left",
            End::NoSeedFetched(why) => return write!(f, "finished without a result: {why}"),
            End::Stopped => "stopped",
            End::Terminated => "terminated by the system",
            End::DocumentLimit => "document limit reached",
            End::ByteLimit => "byte limit reached",
            End::Quota(which) => {
                return write!(
                    f,
                    "quota of the crawl reached: {which}; raise it to resume the crawl"
                );
            }
            End::ArchiveLimit => "archive.max-total-bytes reached; raise it to resume the crawl",
            End::TimeLimit => "time limit reached",
            End::Halted(why) => return write!(f, "halted: {why}"),
        })
    }
}
