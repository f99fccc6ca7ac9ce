//! Filters that share one component because they share most of their code. Most judge URIs: scope rules and crawler traps. Some
//! judge responses by status, type, size and content. README.md describes each filter.

pub mod accept;
pub mod broad;
pub mod byte_size;
pub mod calendar_trap;
pub mod content_length;
pub mod content_regex;
pub mod content_type;
pub mod decision;
pub mod domain;
pub mod domain_crossing;
pub mod file_type;
pub mod hop_path;
pub mod hops;
pub mod host;
pub mod ip_set;
pub mod list;
pub mod media_types;
pub mod parts;
pub mod path;
pub mod path_depth;
pub mod patterns;
pub mod prefixes;
pub mod prerequisite;
pub mod query_trap;
pub mod regex_list;
pub mod repeating_path;
pub mod scheme;
pub mod seed;
pub mod session_trap;
pub mod sibling_trap;
pub mod source_seed;
pub mod status;
pub mod surt_scope;
pub mod transclusion;
pub mod via_surt;

opilio_plugin::export!(filters: [
    surt_scope::SurtScope,
    domain::Domain,
    host::Hosts,
    path::Folders,
    broad::Broad,
    accept::Accept,
    seed::Seed,
    seed::RedirectedSeed,
    prerequisite::Prerequisite,
    transclusion::Transclusion,
    hops::Hops,
    hop_path::HopPath,
    via_surt::ViaSurt,
    source_seed::SourceSeed,
    domain_crossing::DomainCrossing,
    regex_list::RegexList,
    file_type::FileType,
    scheme::Scheme,
    path_depth::PathDepth,
    repeating_path::RepeatingPath,
    query_trap::QueryTrap,
    session_trap::SessionTrap,
    calendar_trap::CalendarTrap,
    sibling_trap::SiblingTrap,
    ip_set::IpSet,
    status::Status,
    content_type::ContentType,
    content_length::ContentLength,
    content_regex::ContentRegex,
]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
