//! Tracks whether a position is inside SVG or MathML. Links depend on no other part of a tree builder. Inside SVG and MathML,
//! `<![CDATA[` opens a CDATA section, and `<title/>` or `<script/>` close themselves.

/// Deepest nesting that is tracked. Deeper elements are ignored.
const DEPTH_MAX: usize = 256;

/// The open SVG and MathML elements, and the elements in them that contain HTML again.
#[derive(Debug, Default)]
pub(crate) struct ForeignContent {
    open: Vec<&'static str>,
}

const ROOTS: [&str; 2] = ["svg", "math"];

/// Elements whose content follows the rules of HTML again.
const INTEGRATION_POINTS: [&str; 9] = [
    "foreignobject",
    "desc",
    "title",
    "annotation-xml",
    "mi",
    "mo",
    "mn",
    "ms",
    "mtext",
];

/// HTML start tags that end SVG and MathML anywhere (HTML standard §13.2.6.5), sorted.
const BREAKOUTS: &[&str] = &[
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];

impl ForeignContent {
    /// Returns `true` if the position is inside SVG or MathML, and not in an HTML part of them.
    #[inline]
    pub(crate) fn inside(&self) -> bool {
        self.open.last().is_some_and(|name| ROOTS.contains(name))
    }

    /// Processes a start tag; `name` is in lower case. Returns whether the element belongs to SVG or MathML. This includes
    /// `title` in `svg`, although its content is HTML again.
    #[inline]
    pub(crate) fn start(&mut self, name: &str, self_closing: bool) -> bool {
        let root = find_name(&ROOTS, name);
        if root.is_none() && !self.inside() {
            return false;
        }
        if BREAKOUTS.binary_search(&name).is_ok() {
            self.break_out();
            return false;
        }
        if !self_closing && self.open.len() < DEPTH_MAX {
            self.open
                .extend(root.or_else(|| find_name(&INTEGRATION_POINTS, name)));
        }
        true
    }

    /// Closes SVG and MathML elements up to the innermost element that contains HTML.
    fn break_out(&mut self) {
        while self.inside() {
            self.open.pop();
        }
    }

    /// Processes an end tag; `name` is in lower case.
    #[inline]
    pub(crate) fn end(&mut self, name: &str) {
        if self.open.is_empty() {
            return;
        }
        if ROOTS.contains(&name) {
            if let Some(at) = self.open.iter().rposition(|open| *open == name) {
                self.open.truncate(at);
            }
        } else if self.open.last() == Some(&name) {
            self.open.pop();
        } else if matches!(name, "br" | "p") {
            self.break_out();
        }
    }
}

fn find_name(names: &[&'static str], name: &str) -> Option<&'static str> {
    names.iter().find(|known| **known == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tags: &str, expected: bool) {
        let mut foreign = ForeignContent::default();
        for tag in tags.split(' ') {
            match (tag.strip_prefix('/'), tag.strip_suffix('/')) {
                (Some(name), _) => foreign.end(name),
                (None, Some(name)) => _ = foreign.start(name, true),
                (None, None) => _ = foreign.start(tag, false),
            }
        }
        assert_eq!(foreign.inside(), expected, "{tags}");
    }

    #[test]
    fn positions_inside_svg_and_mathml_are_recognised() {
        check("svg", true);
        check("svg g path/", true);
        check("svg/", false);
        check("svg /svg", false);
        check("svg foreignobject", false);
        check("svg foreignobject /foreignobject", true);
        check("svg foreignobject svg", true);
        check("svg foreignobject svg /svg", false);
        check("svg title /title", true);
        check("svg g p", false);
        check("svg foreignobject p", false);
        check("math mi p /mi", true);
        check("svg g /g /svg /svg", false);
        check("svg g /p", false);
        check("svg title /p", false);
    }

    #[test]
    fn elements_of_svg_and_mathml_are_recognised() {
        for (before, name, expected) in [
            ("", "svg", true),
            ("", "title", false),
            ("svg", "title", true),
            ("svg title", "title", false),
            ("svg foreignobject", "style", false),
            ("math", "script", true),
            ("svg", "p", false),
        ] {
            let mut foreign = ForeignContent::default();
            for tag in before.split_whitespace() {
                foreign.start(tag, false);
            }
            assert_eq!(foreign.start(name, false), expected, "{before} {name}");
        }
    }

    #[test]
    fn tables_are_sorted() {
        assert!(BREAKOUTS.is_sorted());
    }
}
