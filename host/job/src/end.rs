//! The reason why a crawl ended.

/// The reason why a crawl ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// No URIs are left to fetch.
    Finished,
    /// An operator stopped it.
    Stopped,
    /// The system asked it to end, for example before a shutdown.
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
    /// It cannot continue; the text has the reason and the remedy.
    Halted(String),
}

impl End {
    /// Whether a limit of the profile was reached: there may be more to fetch.
    pub fn is_limit(&self) -> bool {
        match self {
            End::DocumentLimit
            | End::ByteLimit
            | End::Quota(_)
            | End::ArchiveLimit
            | End::TimeLimit => true,
            End::Finished | End::Stopped | End::Terminated | End::Halted(_) => false,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            End::Finished => "finished: nothing is left to fetch",
            End::Stopped => "stopped; the same command goes on from here",
            End::Terminated => "ended by the system; the same command goes on from here",
            End::DocumentLimit => "limit of documents reached; the same command goes on from here",
            End::ByteLimit => "limit of bytes reached; the same command goes on from here",
            End::Quota(which) => {
                return write!(f, "quota of the crawl reached: {which}; raised, the same command goes on from here");
            }
            End::ArchiveLimit => {
                "the archive has the size that archive.max-total-bytes allows; raised, the same command goes on from here"
            }
            End::TimeLimit => "limit of time reached; the same command goes on from here",
            End::Halted(why) => return write!(f, "halted: {why}"),
        })
    }
}
