//! The `office` extractor: links in documents from word processors, spreadsheets and presentations (OOXML, OpenDocument), and
//! in books (EPUB).
//!
//! References between parts of the package are left out, because the parts have no URIs on the web.

use opilio_plugin::prelude::*;

use crate::markup::{Markup, Token, local_part};
use crate::{Results, package, recognise, reference};

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct Office;

impl Plugin for Office {
    const NAME: &'static str = "office";
    const SUMMARY: &'static str = "Links in office documents and books: OOXML, OpenDocument, EPUB";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
            "application/vnd.openxmlformats-officedocument.presentationml.template",
            "application/vnd.ms-word.document.macroenabled.12",
            "application/vnd.ms-excel.sheet.macroenabled.12",
            "application/vnd.ms-powerpoint.presentation.macroenabled.12",
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.text-template",
            "application/vnd.oasis.opendocument.spreadsheet",
            "application/vnd.oasis.opendocument.presentation",
            "application/vnd.oasis.opendocument.graphics",
            // Sent by servers that do not know the newer types.
            "application/msword",
            "application/vnd.ms-excel",
            "application/vnd.ms-powerpoint",
            "application/epub+zip",
            "application/zip",
            "application/octet-stream",
        ])
    }
}

impl Extractor for Office {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() || !package::is_package(document) {
            return Extraction::default();
        }
        let mut found = Results::default();
        let mut is_office = false;
        let problem = package::read(
            document,
            |name| kind(name).is_some(),
            |name, text| {
                is_office = true;
                match kind(name) {
                    Some(Part::Relationships) => relationships(text, &mut found),
                    Some(Part::Fields) => fields(text, &mut found),
                    Some(Part::OpenDocument) => references(text, true, &mut found),
                    Some(Part::Page) => references(text, false, &mut found),
                    None => {}
                }
            },
        );
        // Any other archive is left to other extractors.
        if !is_office {
            return Extraction::default();
        }
        recognise(document, Self::NAME);
        found.into_extraction(problem)
    }
}

/// Kinds of parts that may refer to resources outside the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// OOXML: the references of another part.
    Relationships,
    /// OOXML: the text of a word processor, whose fields may be links.
    Fields,
    /// OpenDocument: text, styles or metadata.
    OpenDocument,
    /// EPUB: a page of a book, or the list of its parts.
    Page,
}

fn kind(name: &str) -> Option<Part> {
    let lower = name.to_ascii_lowercase();
    let (folder, file) = lower.rsplit_once('/').unwrap_or(("", &lower));
    match lower.rsplit_once('.')?.1 {
        "rels" => Some(Part::Relationships),
        "xml" if folder == "word" => Some(Part::Fields),
        "xml" if matches!(file, "content.xml" | "styles.xml" | "meta.xml") => {
            Some(Part::OpenDocument)
        }
        "xhtml" | "html" | "htm" | "opf" => Some(Part::Page),
        _ => None,
    }
}

/// Reads `<Relationship Type="…/hyperlink" Target="http://…" TargetMode="External"/>`.
fn relationships(text: &str, found: &mut Results) {
    let mut markup = Markup::new(text);
    while let Some(token) = markup.next() {
        let Token::Start(tag) = token else { continue };
        let is_external = tag
            .attribute("TargetMode")
            .is_some_and(|mode| mode.eq_ignore_ascii_case("external"));
        if tag.local_name() != "Relationship" || !is_external {
            continue;
        }
        let kind = tag.attribute("Type").unwrap_or_default();
        let kind = kind.rsplit('/').next().unwrap_or_default();
        let hop = if kind == "hyperlink" {
            Hop::Link
        } else {
            Hop::Embed
        };
        if let Some(target) = tag.attribute("Target").filter(|target| is_outside(target)) {
            found.push(Link::new(target, hop, format!("office/{kind}")));
        }
    }
}

/// Returns `false` for a file on the author's machine or local network.
fn is_outside(target: &str) -> bool {
    let lower = target.get(..5).unwrap_or(target).to_ascii_lowercase();
    !lower.starts_with("file:") && !target.contains('\\') && lower.get(1..2) != Some(":")
}

/// Reads ` HYPERLINK "http://…" ` in the instructions of fields, which may be spread over several runs.
fn fields(text: &str, found: &mut Results) {
    const CODE: &str = "HYPERLINK \"";
    let mut markup = Markup::new(text);
    let mut instructions = String::new();
    while let Some(token) = markup.next() {
        match token {
            Token::End(name) if name == "instrText" => instructions.push_str(markup.text()),
            Token::Start(tag) if tag.local_name() == "fldSimple" => {
                instructions.push_str(&tag.attribute("instr").unwrap_or_default());
            }
            _ => {}
        }
    }
    for after in instructions.split(CODE).skip(1) {
        let target = after.split('"').next().unwrap_or_default();
        if is_outside(target) {
            found.push(Link::new(target, Hop::Link, "office/HYPERLINK"));
        }
    }
}

/// Reads references of OpenDocument and of pages. Relative references stay in the package and are skipped. In OpenDocument
/// (`has_outer_folder`), those that begin with `../` refer to files beside the package.
fn references(text: &str, has_outer_folder: bool, found: &mut Results) {
    let mut markup = Markup::new(text);
    while let Some(token) = markup.next() {
        let Token::Start(tag) = token else { continue };
        let element = tag.local_name().to_owned();
        for (name, value) in tag.attributes() {
            if !matches!(local_part(name), "href" | "src") {
                continue;
            }
            let value = value.trim();
            let outside = match value.strip_prefix("../").filter(|_| has_outer_folder) {
                // The package counts as a folder, so the rest is relative to the document's URI.
                Some(rest) => rest,
                None if reference::is_public_uri(value) => value,
                None => continue,
            };
            let hop = match element.as_str() {
                "a" | "area" | "title" | "base" => Hop::Link,
                _ => Hop::Embed,
            };
            found.push(Link::new(
                outside,
                hop,
                format!("{element}/@{}", local_part(name)),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use opilio_plugin::testing::document;
    use proptest::prelude::*;

    use super::*;

    /// Returns a ZIP archive of these parts.
    fn zip(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut archive, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in parts {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(content).unwrap();
            let packed = encoder.finish().unwrap();
            let at = u32::try_from(archive.len()).unwrap();
            let mut sizes = vec![8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            sizes.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
            sizes.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
            sizes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
            sizes.extend([0, 0]);
            archive.extend(b"PK\x03\x04\x14\0\0\0");
            archive.extend(&sizes);
            archive.extend(name.as_bytes());
            archive.extend(&packed);
            directory.extend(b"PK\x01\x02\x14\0\x14\0\0\0");
            directory.extend(&sizes);
            directory.extend([0; 10]);
            directory.extend(at.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let at = u32::try_from(archive.len()).unwrap();
        archive.extend(&directory);
        archive.extend(b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0");
        archive.extend(at.to_le_bytes());
        archive.extend([0, 0]);
        archive
    }

    fn extract(bytes: &[u8]) -> Extraction {
        let document = document("http://e.org/x.docx")
            .media_type("application/zip")
            .bytes(bytes);
        Office.extract(&document)
    }

    #[track_caller]
    fn check(parts: &[(&str, &str)], expected: &[(&str, Hop)]) {
        let parts: Vec<_> = parts
            .iter()
            .map(|(name, text)| (*name, text.as_bytes()))
            .collect();
        let extraction = extract(&zip(&parts));
        let found: Vec<_> = extraction
            .links
            .iter()
            .map(|link| (link.uri.as_str(), link.hop.clone()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(extraction.problem, None);
    }

    #[test]
    fn relationships_and_fields_of_ooxml() {
        check(
            &[
                ("[Content_Types].xml", "<Types/>"),
                (
                    "word/_rels/document.xml.rels",
                    "<Relationships><Relationship Type='http://x/hyperlink' Target='http://e.org/a?b&amp;c' TargetMode='External'/>\
                     <Relationship Type='http://x/image' Target='http://e.org/d.png' TargetMode='External'/>\
                     <Relationship Type='http://x/image' Target='media/e.png'/>\
                     <Relationship Type='http://x/hyperlink' Target='file:///C:/f' TargetMode='External'/>\
                     <Relationship Type='http://x/hyperlink' Target='C:/g' TargetMode='External'/>\
                     <Relationship Type='http://x/hyperlink' Target='mailto:a@e.org' TargetMode='External'/></Relationships>",
                ),
                (
                    "word/document.xml",
                    "<w:p><w:instrText> HYPERLINK \"http://e.org/</w:instrText><w:instrText>g\" </w:instrText>\
                     <w:fldSimple w:instr='HYPERLINK \"http://e.org/h\"'/></w:p>",
                ),
            ],
            &[
                ("http://e.org/a?b&c", Hop::Link),
                ("http://e.org/d.png", Hop::Embed),
                ("http://e.org/g", Hop::Link),
                ("http://e.org/h", Hop::Link),
            ],
        );
    }

    #[test]
    fn opendocument_references_outside_the_package() {
        check(
            &[(
                "content.xml",
                "<text:a xlink:href='http://e.org/a'/><text:a xlink:href='../b.odt'/><text:a xlink:href='#c'/>\
                 <draw:image xlink:href='Pictures/d.png'/><draw:image xlink:href='http://e.org/e.png'/>",
            )],
            &[
                ("http://e.org/a", Hop::Link),
                ("b.odt", Hop::Link),
                ("http://e.org/e.png", Hop::Embed),
            ],
        );
    }

    #[test]
    fn pages_of_books() {
        check(
            &[(
                "OEBPS/1.xhtml",
                "<a href='http://e.org/a'/><a href='2.xhtml'/><img src='../b.png'/>",
            )],
            &[("http://e.org/a", Hop::Link)],
        );
    }

    /// Returns an archive of one part, with its sizes and positions in the fields of ZIP64.
    fn zip64(name: &str, content: &[u8]) -> Vec<u8> {
        let archive = zip(&[(name, content)]);
        let directory = memchr::memmem::find(&archive, b"PK\x01\x02").unwrap();
        let end = memchr::memmem::rfind(&archive, b"PK\x05\x06").unwrap();
        let (mut large, header) = (archive[..directory].to_vec(), &archive[directory..end]);
        let number = |at: usize| {
            let four = header[at..at + 4].try_into().unwrap();
            u64::from(u32::from_le_bytes(four)).to_le_bytes()
        };
        large.extend(&header[..20]);
        large.extend([0xFF; 8]);
        large.extend(&header[28..30]);
        large.extend([32, 0]);
        large.extend(&header[32..42]);
        large.extend([0xFF; 4]);
        large.extend(name.as_bytes());
        // Another extra field comes first.
        large.extend([9, 0, 0, 0, 1, 0, 24, 0]);
        for at in [24, 20, 42] {
            large.extend(number(at));
        }
        let directory_end = large.len() as u64;
        large.extend(b"PK\x06\x06");
        large.extend([0; 44]);
        large.extend((directory as u64).to_le_bytes());
        large.extend(b"PK\x06\x07\0\0\0\0");
        large.extend(directory_end.to_le_bytes());
        large.extend([1, 0, 0, 0]);
        large.extend(b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\0\0");
        large
    }

    #[test]
    fn zip64_archives_are_read() {
        let large = zip64("content.xml", b"<a xlink:href='http://e.org/a'/>");
        let extraction = extract(&large);
        assert_eq!(extraction.links.len(), 1, "{extraction:?}");
        assert_eq!(extraction.problem, None);
        for length in 0..large.len() {
            extract(&large[..length]);
        }
    }

    #[test]
    fn other_archives_are_ignored() {
        assert_eq!(
            extract(&zip(&[("a.txt", b"http://e.org/")])),
            Extraction::default()
        );
        assert_eq!(extract(b"PK\x03"), Extraction::default());
    }

    #[test]
    fn a_long_part_is_read_to_the_limit() {
        let mut part = vec![b' '; 8 * 1024 * 1024];
        part.extend(b"<text:a xlink:href='http://e.org/a'/>");
        let last: &[u8] = b"<text:a xlink:href='http://e.org/b'/>";
        let extraction = extract(&zip(&[("content.xml", &part), ("styles.xml", last)]));
        assert_eq!(extraction.links.len(), 1);
        assert!(extraction.problem.unwrap().contains("content.xml"));
    }

    #[test]
    fn a_zip_bomb_is_unpacked_to_the_limit() {
        let spaces = vec![b' '; 9 * 1024 * 1024];
        let parts: Vec<(&str, &[u8])> = vec![("content.xml", &spaces); 12];
        let bomb = zip(&parts);
        assert!(bomb.len() < 200_000);
        assert!(extract(&bomb).problem.is_some());
    }

    proptest! {
        #[test]
        fn damaged_archives_cause_no_panic(at in 0usize..400, value in any::<u8>(), length in 0usize..400) {
            let mut bytes = zip(&[("content.xml", b"<a href='http://e.org/'/>"), ("_rels/.rels", b"<a/>")]);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            extract(&bytes);
            bytes.truncate(length);
            extract(&bytes);
        }
    }
}
