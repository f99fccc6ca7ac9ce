//! Prints the links that an extractor finds in files: `format-links PLUGIN MEDIA-TYPE FILE…`. Each line has file, hop, context,
//! reference, date of publication and date of change, separated by tabs. Dates are milliseconds since 1970; 0 without a date.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for measuring"
)]

use opilio_plugin::testing::document;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [plugin, media_type, files @ ..] = arguments.as_slice() else {
        panic!("usage: format-links PLUGIN MEDIA-TYPE FILE…");
    };
    let plugin = opilio_formats::plugins().configure(plugin, "{}").unwrap();
    for file in files {
        let document = document("http://example.org/dir/file")
            .media_type(media_type)
            .bytes(&std::fs::read(file).unwrap());
        for link in &plugin.extract(&[document])[0].links {
            let dates = link.details.as_ref().and_then(|details| details.dates);
            let published = dates.and_then(|dates| dates.published).unwrap_or_default();
            let modified = dates.and_then(|dates| dates.modified).unwrap_or_default();
            println!(
                "{file}\t{:?}\t{}\t{}\t{published}\t{modified}",
                link.hop, link.context, link.uri
            );
        }
    }
}
