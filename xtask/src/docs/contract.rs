//! `docs/CONTRACT.md`: the contract as a page with one section for each interface, from the files in `wit/`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The files, in the order of the page.
const FILES: [&str; 4] = ["exports.wit", "imports.wit", "types.wit", "worlds.wit"];

/// The page.
pub(super) fn page(root: &Path) -> Result<String> {
    let mut version = "";
    let texts = FILES
        .iter()
        .map(|file| {
            fs::read_to_string(root.join("wit").join(file))
                .with_context(|| format!("reading wit/{file}"))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut items = Vec::new();
    for (file, text) in FILES.into_iter().zip(&texts) {
        let (package, rest) = text
            .split_once(";\n")
            .with_context(|| format!("wit/{file} names no package"))?;
        version = package.trim_start_matches("package ");
        items.extend(
            items_of(rest)
                .with_context(|| format!("wit/{file}"))?
                .into_iter()
                .map(|item| (file, item)),
        );
    }
    let mut page = format!(
        "# The contract\n\n<!-- written by `cargo xtask docs` from wit/ -->\n\nThe exports and imports of a plugin, `{version}`. \
         [PLUGINS.md](PLUGINS.md) says when each is called and how answers combine. SDKs and toolchains read the files in \
         [`wit/`](../wit).\n\n| item | file | summary |\n|---|---|---|\n"
    );
    for (file, item) in &items {
        writeln!(
            page,
            "| [{}](#{}) | `{file}` | {} |",
            item.title(),
            item.anchor(),
            item.summary()
        )?;
    }
    write!(page, "\n{}", include_str!("contract_notes.md"))?;
    for (_, item) in &items {
        let doc = item.doc.join("\n");
        write!(
            page,
            "\n## {}\n\n{doc}\n\n```wit\n{}\n```\n",
            item.title(),
            item.text
        )?;
    }
    Ok(page)
}

/// An interface or a world.
struct Item<'t> {
    /// Its comment, without comment marks.
    doc: Vec<&'t str>,
    /// `interface` or `world`.
    sort: &'t str,
    name: &'t str,
    /// The source text, without the comment.
    text: String,
}

impl Item<'_> {
    fn title(&self) -> String {
        format!("{} {}", self.sort, self.name)
    }

    fn anchor(&self) -> String {
        format!("{}-{}", self.sort, self.name)
    }

    /// The first sentence of its comment.
    fn summary(&self) -> String {
        let doc = self.doc.join(" ");
        doc.split_once(". ")
            .map_or(doc.clone(), |(first, _)| format!("{first}."))
    }
}

/// Items at the outermost level of a file.
fn items_of(text: &str) -> Result<Vec<Item<'_>>> {
    let mut items = Vec::new();
    let mut doc = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("///") {
            doc.push(comment.trim());
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let Some((sort, name)) = line
            .strip_suffix(" {")
            .and_then(|head| head.split_once(' '))
        else {
            bail!("{line:?} begins neither an interface nor a world");
        };
        let inner: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
        items.push(Item {
            doc: std::mem::take(&mut doc),
            sort,
            name,
            text: format!("{line}\n{}\n}}", inner.join("\n")),
        });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_page_is_current() {
        let root = crate::repository::root();
        let found = fs::read_to_string(root.join("docs/CONTRACT.md")).unwrap();
        assert!(
            found == page(&root).unwrap(),
            "docs/CONTRACT.md is older than wit/; run `cargo xtask docs`"
        );
    }

    #[test]
    fn an_item_has_its_comment_and_source_text() {
        let items = items_of(
            "\n/// Finds links. Often.\ninterface extractor {\n    /// One.\n    f: func();\n}\n",
        )
        .unwrap();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].title(), "interface extractor");
        assert_eq!(items[0].summary(), "Finds links.");
        assert_eq!(
            items[0].text,
            "interface extractor {\n    /// One.\n    f: func();\n}"
        );
        assert!(items_of("use other;\n").is_err());
    }
}
