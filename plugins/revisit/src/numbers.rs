//! Numbers as they are kept with URIs and sites: decimal, separated by spaces.

use std::fmt::Write as _;

pub(crate) fn written(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut text = String::new();
    for number in numbers {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{space}{number}");
    }
    text
}

/// Parses numbers. Invalid ones count as 0.
pub(crate) fn read(text: &str) -> impl Iterator<Item = u32> {
    text.split(' ').map(|number| number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let text = written([7, 0, u32::MAX]);
        assert_eq!(text, "7 0 4294967295");
        assert_eq!(read(&text).collect::<Vec<_>>(), [7, 0, u32::MAX]);
        assert_eq!(read("1 x").collect::<Vec<_>>(), [1, 0]);
    }
}
