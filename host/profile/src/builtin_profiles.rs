//! The built-in profiles, embedded in the binary from `profiles/`.

/// Name and text of each built-in profile.
const READY: [(&str, &str); 8] = [
    ("default", include_str!("../../../profiles/default.toml")),
    ("snapshot", include_str!("../../../profiles/snapshot.toml")),
    (
        "continuous",
        include_str!("../../../profiles/continuous.toml"),
    ),
    ("focused", include_str!("../../../profiles/focused.toml")),
    ("broad", include_str!("../../../profiles/broad.toml")),
    ("news", include_str!("../../../profiles/news.toml")),
    (
        "heritrix-scope",
        include_str!("../../../profiles/heritrix-scope.toml"),
    ),
    ("demo", include_str!("../../../profiles/demo.toml")),
];

/// The names of the built-in profiles.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    READY.iter().map(|(name, _)| *name)
}

/// The text of a built-in profile.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    READY
        .iter()
        .find(|(ready, _)| *ready == name)
        .map(|(_, text)| *text)
}

/// Returns `true` if this is the text of a built-in profile.
pub(crate) fn is_text(text: &str) -> bool {
    READY.iter().any(|(_, ready)| *ready == text)
}
