//! Search for leaks in a crawl: figures that grow with the number of pages.

use anyhow::{Result, ensure};

/// Rows of the table of one crawl.
const ROWS: usize = 10;

/// Figures of a crawl at one time.
#[derive(Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) rendered: usize,
    pub(super) memory: u64,
    pub(super) descriptors: usize,
    pub(super) browser_processes: usize,
    pub(super) browser_memory: u64,
    /// Folders of browsers, and spool files.
    pub(super) left: usize,
}

/// The maximum of each figure in each tenth of the pages.
fn parts(samples: &[Sample]) -> Vec<Sample> {
    let all = samples.last().map_or(0, |it| it.rendered).max(1);
    let mut parts = vec![Sample::default(); ROWS];
    for sample in samples.iter().filter(|it| it.rendered > 0) {
        let part = &mut parts[((sample.rendered - 1) * ROWS / all).min(ROWS - 1)];
        *part = Sample {
            rendered: part.rendered.max(sample.rendered),
            memory: part.memory.max(sample.memory),
            descriptors: part.descriptors.max(sample.descriptors),
            browser_processes: part.browser_processes.max(sample.browser_processes),
            browser_memory: part.browser_memory.max(sample.browser_memory),
            left: part.left.max(sample.left),
        };
    }
    parts
}

/// Formats the maximum of each figure, by the number of rendered pages.
pub(super) fn table(samples: &[Sample]) -> String {
    let mut text =
        "most until  opilio MB  descriptors  browser processes  browsers MB  files\n".to_owned();
    for part in parts(samples) {
        text += &format!(
            "{:>10} {:>10} {:>12} {:>18} {:>12} {:>6}\n",
            part.rendered,
            part.memory / 1_000_000,
            part.descriptors,
            part.browser_processes,
            part.browser_memory / 1_000_000,
            part.left,
        );
    }
    text
}

/// A figure of a sample.
type Figure = fn(&Sample) -> u64;

/// Compares the second half of a crawl with the first. No figure may have grown by more than its allowance for normal variation.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn judge(samples: &[Sample], browsers: usize) -> Result<()> {
    let parts = parts(samples);
    let (first, second) = parts.split_at(ROWS / 2);
    let most = |parts: &[Sample], figure: Figure| parts.iter().map(figure).max();
    // While a browser is replaced, the old and the new one both count.
    let of_a_browser = 12;
    let figures: [(&str, Figure, u64); 5] = [
        ("bytes of memory of opilio", |it| it.memory, 64 << 20),
        ("descriptors", |it| it.descriptors as u64, 32),
        (
            "processes of browsers",
            |it| it.browser_processes as u64,
            of_a_browser,
        ),
        (
            "bytes of memory of browsers",
            |it| it.browser_memory,
            512 << 20,
        ),
        ("files", |it| it.left as u64, browsers as u64 + 8),
    ];
    for (name, figure, more) in figures {
        let (before, after) = (most(first, figure), most(second, figure));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        ensure!(
            after <= before + before / 10 + more,
            "{name} grew from {before} in the first half of the pages to {after} in the second: a leak"
        );
    }
    println!(
        "no leaks: no figure of the second half exceeds that of the first by more than its allowance"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(memory: impl Fn(u64) -> u64) -> Vec<Sample> {
        let samples = (1..=1000).map(|rendered| Sample {
            rendered: rendered as usize,
            memory: memory(rendered),
            ..Sample::default()
        });
        samples.collect()
    }

    #[test]
    fn only_growth_with_the_pages_is_a_leak() {
        let leak = samples(|page| (100 << 20) + page * (1 << 20));
        assert!(judge(&leak, 2).is_err());
        let busy = samples(|page| (100 << 20) + (page % 7) * (10 << 20));
        assert!(judge(&busy, 2).is_ok());
    }
}
