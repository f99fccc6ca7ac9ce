//! Messages and sizes of a crawl of ten billion URIs in parts, with the real batching and compression of links. The web is modelled
//! by the constants of this file.

use std::time::Duration;

use opilio_cluster::partition::PartitionCount;
use opilio_cluster::{LinkAdmission, LinkBatcher, LinkSource, SentMessage};

use crate::network::Random;

/// URIs that the crawl fetches.
const URIS: f64 = 1e10;

/// Duration of the crawl.
const DAYS: f64 = 30.0;

/// Links of a page to other parts.
const FOREIGN_LINKS: u64 = 10;

/// Percentage of these links that lead to popular URIs: home pages, social media, libraries.
const POPULAR_PERCENT: u64 = 60;

/// Number of popular URIs.
const POPULAR_URIS: u64 = 200_000;

/// Pages of one part that are simulated.
const PAGES: u64 = 200_000;

/// Bytes of a URI's record in the frontier's store; see "Frontier" in `docs/PERFORMANCE.md`.
const RECORD_BYTES: f64 = 250.0;

/// Time between two snapshots of a part.
const SNAPSHOT_HOURS: f64 = 6.0;

/// Prints the table of a crawl with this number of parts.
pub(crate) fn print(parts: u16) {
    let count = PartitionCount::new(parts.next_power_of_two()).unwrap_or_default();
    // The links of the process of part 0. The inbox of a part has the part's number.
    let inboxes: Vec<_> = (0..parts)
        .filter_map(|part| count.partition(part))
        .collect();
    let (own, others) = (inboxes[0], &inboxes[1..]);
    let pages_per_second = URIS / (DAYS * 86_400.0);
    let seconds = PAGES as f64 / (pages_per_second / f64::from(parts));
    let mut random = Random(7);
    let mut batcher = LinkBatcher::default();
    let mut totals = Totals::default();
    for page in 0..PAGES {
        let now = Duration::from_secs_f64(seconds / PAGES as f64 * page as f64);
        let source = LinkSource {
            partition: own,
            entry: page,
        };
        for _ in 0..FOREIGN_LINKS {
            let number = match random.chance(POPULAR_PERCENT) {
                // The minimum of three numbers makes some URIs far more popular than others.
                true => random
                    .below(POPULAR_URIS)
                    .min(random.below(POPULAR_URIS))
                    .min(random.below(POPULAR_URIS)),
                false => POPULAR_URIS + random.next() % 1_000_000_000,
            };
            let link = uri(&mut Random(number), number);
            let inbox = others[(number % others.len() as u64) as usize];
            if batcher.add(inbox, link, source, now) == LinkAdmission::Queued {
                totals.sent += 1;
            }
        }
        for batch in batcher.take_due(now) {
            totals.messages += 1;
            totals.link_bytes += compressed(&batch.links.concat());
            let sequence = totals.messages;
            let message = SentMessage {
                sequence,
                digest: 0,
            };
            batcher.store(&batch, message);
            batcher.confirm(|_| true, sequence);
        }
    }
    let cluster = |count: u64| count as f64 / seconds * f64::from(parts);
    let per_page = |count: u64| count as f64 / PAGES as f64;
    println!("| a crawl of 10 billion URIs in {DAYS} days | {parts} parts |");
    println!("|---|---|");
    println!("| pages a second, all parts | {pages_per_second:.0} |");
    println!("| URIs of a part | {:.0} |", URIS / f64::from(parts));
    println!(
        "| links of a page to other parts that were not sent before | {:.1} of {FOREIGN_LINKS} |",
        per_page(totals.sent)
    );
    println!(
        "| messages with links a second | {:.0} |",
        cluster(totals.messages)
    );
    println!(
        "| links in a message | {:.2} |",
        totals.sent as f64 / totals.messages as f64
    );
    println!(
        "| bytes of links a page | {:.0} |",
        per_page(totals.link_bytes)
    );
    println!(
        "| snapshot of a part in the end, before compression | {:.0} MB |",
        URIS / f64::from(parts) * RECORD_BYTES / 1e6
    );
    println!(
        "| whole snapshots every {SNAPSHOT_HOURS} hours, bytes a second of all parts in the end | {:.0} MB |",
        URIS * RECORD_BYTES / (SNAPSHOT_HOURS * 3_600.0) / 1e6
    );
}

#[derive(Default)]
struct Totals {
    sent: u64,
    messages: u64,
    link_bytes: u64,
}

/// A URI of usual length.
fn uri(random: &mut Random, number: u64) -> Vec<u8> {
    let words = [
        "news", "article", "2026", "category", "archive", "people", "about", "images", "index",
        "page",
    ];
    let mut text = format!("https://www.site-{}.example/", number % 50_000_000);
    for _ in 0..2 + random.below(3) {
        text.push_str(words[random.below(10) as usize]);
        text.push('/');
    }
    text.push_str(&format!("{:x}.html\n", random.below(1 << 32)));
    text.into_bytes()
}

/// Size after compression, as messages are compressed.
fn compressed(bytes: &[u8]) -> u64 {
    zstd::bulk::compress(bytes, 3).map_or(0, |bytes| bytes.len() as u64)
}
