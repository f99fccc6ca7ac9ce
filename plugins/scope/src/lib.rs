//! Filters of URIs, in one component because they share most of their code: which URIs belong to the crawl
//! (`surt-scope`, `transclusion`, `prerequisite`, `accept`) and which do not (`hops`, `path-depth`, `repeating-path`,
//! `scheme`). README.md says what each does and how the default scope stacks them.

pub mod accept;
pub mod hops;
pub mod path_depth;
pub mod prefixes;
pub mod prerequisite;
pub mod repeating_path;
pub mod scheme;
pub mod surt_scope;
pub mod transclusion;

opilio_plugin::export!(filters: [
    surt_scope::SurtScope,
    hops::Hops,
    transclusion::Transclusion,
    path_depth::PathDepth,
    repeating_path::RepeatingPath,
    prerequisite::Prerequisite,
    scheme::Scheme,
    accept::Accept,
]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
