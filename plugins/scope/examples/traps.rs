//! Prints the links of real pages that the trap filters reject: `cargo run --release -p opilio-scope --example traps < links`.
//!
//! Each line of the input is `page TAB link`, both absolute URIs. The links of one page must be in consecutive lines.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example")]

use std::collections::BTreeMap;
use std::io::BufRead;

use opilio_plugin::prelude::*;
use opilio_plugin::testing;

fn main() {
    let traps = [
        "query-trap",
        "session-trap",
        "calendar-trap",
        "repeating-path",
        "path-depth",
    ];
    let settings = |name: &str| match name {
        // Candidates have no time of visit, so the last year is set here.
        "calendar-trap" => r#"{"last-year": 2030}"#,
        _ => "{}",
    };
    let configured = traps.map(|name| {
        let plugin = opilio_scope::plugins().configure(name, settings(name));
        (name, plugin.unwrap())
    });
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut pages, mut links) = (0, 0);
    let mut judge = |page: &str, found: &mut Vec<Candidate>| {
        if found.is_empty() {
            return;
        }
        pages += 1;
        links += found.len();
        let candidates = testing::candidates(found.clone());
        for (name, plugin) in &configured {
            let rulings = plugin.judge_candidates(&Stage::Scope, &candidates);
            for (ruling, candidate) in rulings.iter().zip(found.iter()) {
                if ruling.verdict == Verdict::Reject {
                    *refused.entry(name).or_default() += 1;
                    println!("{name}\t{}\t{page}\t{}", ruling.reason, candidate.uri);
                }
            }
        }
        found.clear();
    };
    let (mut page, mut found) = (String::new(), Vec::new());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let Some((via, uri)) = line.split_once('\t') else {
            continue;
        };
        if via != page {
            judge(&page, &mut found);
            via.clone_into(&mut page);
        }
        found.push(Candidate {
            uri: uri.to_owned(),
            surt: surt(uri),
            hop_path: "L".to_owned(),
            via: Some(via.to_owned()),
            via_surt: Some(surt(via)),
            context: String::new(),
            seed: false,
            source: None,
            address: None,
            attributes: Vec::new(),
        });
    }
    judge(&page, &mut found);
    println!("{pages} pages, {links} links: {refused:?}");
}

/// Returns a simplified SURT form, enough to distinguish hosts.
fn surt(uri: &str) -> String {
    let (scheme, rest) = uri.split_once("://").unwrap_or(("", uri));
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let labels: String = host.rsplit('.').map(|label| format!("{label},")).collect();
    format!("{scheme}://({labels}){path}")
}
