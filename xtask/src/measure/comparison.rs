//! Compares the facts of two parsers about the same documents: the table, and every class of disagreement with samples.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use serde::Deserialize;

/// Longest printed value, in characters.
const SAMPLE_CHARACTERS: usize = 120;

/// The header of the table. [`Comparison::rows`] returns its rows.
pub(crate) const HEAD: &str = concat!(
    "kind    what    documents  refused      MB    judge     ours     both   recall precision\n",
    "------  ------  ---------  -------  ------  -------  -------  -------  ------- ---------"
);

/// A judge's facts about a document.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Facts {
    /// Lines that the extractor should report.
    #[serde(rename = "expected")]
    pub(crate) facts: Vec<String>,
    /// Lines that it may report.
    #[serde(default)]
    allowed: Vec<String>,
    /// Error of the judge's parser. Such a document is not compared.
    #[serde(default)]
    fault: Option<String>,
}

/// The comparison of one kind of document.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    documents: usize,
    /// Documents that the judge could not read, with the reasons.
    refused: Vec<String>,
    bytes: usize,
    counts: BTreeMap<String, Counts>,
    classes: BTreeMap<Disagreement, Vec<String>>,
}

#[derive(Debug, Default)]
struct Counts {
    expected: usize,
    ours: usize,
    /// Expected lines that were reported.
    found: usize,
    /// Reported lines that were expected or allowed.
    right: usize,
}

/// Common properties of the disagreements of one class.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Disagreement {
    /// Kind of the difference: "not reported" by us, or "reported alone".
    what: &'static str,
    class: String,
    hop: String,
    context: String,
}

impl Comparison {
    /// Compares the facts about one document.
    pub(crate) fn add(&mut self, name: &str, bytes: usize, ours: &[String], theirs: &Facts) {
        if let Some(fault) = &theirs.fault {
            self.refused.push(format!("{fault} in {name}"));
            return;
        }
        self.documents += 1;
        self.bytes += bytes;
        let allowed: HashSet<&String> = theirs.allowed.iter().collect();
        let mut missed: BTreeMap<&str, usize> = BTreeMap::new();
        for fact in &theirs.facts {
            *missed.entry(fact).or_default() += 1;
            self.counts(fact).expected += 1;
        }
        for fact in ours {
            let is_expected = match missed.get_mut(fact.as_str()) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    true
                }
                _ => false,
            };
            let is_right = is_expected || allowed.contains(fact);
            let counts = self.counts(fact);
            counts.ours += 1;
            counts.found += usize::from(is_expected);
            counts.right += usize::from(is_right);
            if !is_right {
                self.disagree("reported alone", name, fact);
            }
        }
        for (fact, left) in missed {
            for _ in 0..left {
                self.disagree("not reported", name, fact);
            }
        }
    }

    /// The rows of the table.
    pub(crate) fn rows(&self, kind: &str) -> String {
        let mut text = String::new();
        for (class, counts) in &self.counts {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{kind:<6}  {class:<6}  {:>9}  {:>7}  {:>6.1}  {:>7}  {:>7}  {:>7}  {:>7} {:>9}",
                self.documents,
                self.refused.len(),
                self.bytes as f64 / 1e6,
                counts.expected,
                counts.ours,
                counts.found,
                percent(counts.found, counts.expected),
                percent(counts.right, counts.ours),
            );
        }
        text
    }

    /// Every class of disagreement, the largest first.
    pub(crate) fn disagreements(&self, kind: &str, samples: usize) -> String {
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
        let mut text = String::new();
        if !self.refused.is_empty() {
            let _ = writeln!(
                text,
                "\n{kind}: not read by the judge, {}",
                self.refused.len()
            );
            list(&mut text, &self.refused, samples);
        }
        for (class, all) in classes {
            let Disagreement {
                what,
                class,
                hop,
                context,
            } = class;
            let _ = writeln!(
                text,
                "\n{kind}: {what}, {}: {class} {hop} {context}",
                all.len()
            );
            list(&mut text, all, samples);
        }
        text
    }

    fn counts(&mut self, fact: &str) -> &mut Counts {
        let class = fact.split('\t').next().unwrap_or_default();
        self.counts.entry(class.to_owned()).or_default()
    }

    fn disagree(&mut self, what: &'static str, name: &str, fact: &str) {
        let mut columns = fact.splitn(4, '\t').map(str::to_owned);
        let mut column = || columns.next().unwrap_or_default();
        let class = Disagreement {
            what,
            class: column(),
            hop: column(),
            context: column(),
        };
        let value: String = column().chars().take(SAMPLE_CHARACTERS).collect();
        let sample = format!("{value:?} in {name}");
        self.classes.entry(class).or_default().push(sample);
    }
}

/// Samples from all packages, not only from the first.
fn list(text: &mut String, all: &[String], samples: usize) {
    let step = (all.len() / samples.max(1)).max(1);
    for sample in all.iter().step_by(step).take(samples) {
        let _ = writeln!(text, "    {sample}");
    }
}

/// A percentage with two decimals, rounded down: 100 means all.
fn percent(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let hundredths = (part as u128 * 10_000) / whole as u128;
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn facts_are_compared_as_multisets() {
        let mut comparison = Comparison::default();
        let theirs = Facts {
            facts: lines(&[
                "link\tL\ta/@href\tx",
                "link\tL\ta/@href\tx",
                "link\tE\timg/@src\ty",
            ]),
            allowed: lines(&["link\tL\ta/@href\tz"]),
            fault: None,
        };
        let ours = lines(&[
            "link\tL\ta/@href\tx",
            "link\tL\ta/@href\tz",
            "link\tL\timg/@src\ty",
        ]);
        comparison.add("page", 10, &ours, &theirs);
        let counts = &comparison.counts["link"];
        assert_eq!((counts.expected, counts.ours), (3, 3));
        assert_eq!((counts.found, counts.right), (1, 2));
        assert_eq!(comparison.classes.len(), 3);
        assert!(comparison.rows("html").contains("33.33%    66.66%"));
        let text = comparison.disagreements("html", 3);
        assert!(
            text.contains("not reported, 1: link E img/@src\n    \"y\" in page"),
            "{text}"
        );
    }

    #[test]
    fn documents_that_the_judge_cannot_read_are_not_compared() {
        let mut comparison = Comparison::default();
        let refused = Facts {
            fault: Some("no page".to_owned()),
            ..Facts::default()
        };
        comparison.add("page", 10, &lines(&["link\tL\ta/@href\tx"]), &refused);
        assert!(comparison.counts.is_empty());
        assert_eq!((comparison.documents, comparison.refused.len()), (0, 1));
    }

    #[test]
    fn percentages_are_not_rounded_up() {
        assert_eq!(percent(99_999, 100_000), "99.99%");
        assert_eq!(percent(1, 1), "100.00%");
        assert_eq!(percent(0, 0), "-");
    }
}
