//! The text form of numbers that plugins keep with URIs and sites: decimal, separated by spaces.

use std::fmt::Write as _;

pub(crate) fn join(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut text = String::new();
    for number in numbers {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{space}{number}");
    }
    text
}

/// Parses numbers. Invalid ones count as 0.
pub(crate) fn parse(text: &str) -> impl Iterator<Item = u32> {
    text.split(' ').map(|number| number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_reverses_joining() {
        let text = join([7, 0, u32::MAX]);
        assert_eq!(text, "7 0 4294967295");
        assert_eq!(parse(&text).collect::<Vec<_>>(), [7, 0, u32::MAX]);
        assert_eq!(parse("1 x").collect::<Vec<_>>(), [1, 0]);
    }
}
