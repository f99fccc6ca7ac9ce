//! `needs-browser`: pages that show little until their scripts have run.
//!
//! The score of a page is the sum of the weights of its signs. No sign is enough by itself: an article may have more scripts
//! than text, and a page without text may consist of frames. A page without scripts of its own never needs a browser.

use opilio_plugin::prelude::*;

use crate::page_facts::{self, PageFacts};

/// Longest page that is read, in bytes.
const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Settings of `needs-browser`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Lowest score of a page that is rendered. Lower values render more pages.
    #[schemars(extend("x-opilio-overridable" = true), range(min = 1, max = 400))]
    pub threshold: u32,
    /// Most characters of visible text on a page that needs a browser. Longer pages have the score 0.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub text_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: 60,
            text_max: 1_500,
        }
    }
}

/// The configured plugin.
pub struct NeedsBrowser {
    settings: Settings,
}

impl Plugin for NeedsBrowser {
    const NAME: &'static str = "needs-browser";
    const SUMMARY: &'static str = "Accepts pages that show little until their scripts have run";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        if !(1..=400).contains(&settings.threshold) {
            let problem = "the threshold must be between 1 and 400";
            faults.push(SettingsFault::new("/threshold", problem));
        }
        none_or(faults, Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/html", "application/xhtml+xml"])
    }
}

impl Filter for NeedsBrowser {
    fn judge_candidate(&self, _: &Stage, _: CandidateView<'_>) -> Ruling {
        Ruling::pass()
    }

    fn judge_document(&self, _: &Stage, document: &Document, _: &Visit) -> Ruling {
        if document.length() > PAGE_BYTES_MAX {
            return Ruling::pass();
        }
        let facts = page_facts::read(&document.text());
        let Score { points, signs } = Score::of(&facts, self.settings.text_max as usize);
        let reason = format!("{points}:{}", signs.join("+"));
        match points >= i64::from(self.settings.threshold) {
            true => Ruling::accept(reason),
            false => Ruling {
                reason,
                ..Ruling::pass()
            },
        }
    }
}

/// The weighed signs of a page.
struct Score {
    points: i64,
    /// Names of the signs. Those against a browser begin with a minus.
    signs: Vec<&'static str>,
}

impl Score {
    fn of(facts: &PageFacts, text_max: usize) -> Score {
        if facts.scripts == 0 {
            return Score::zero("no-scripts");
        }
        if facts.text > text_max {
            return Score::zero("enough-text");
        }
        let mut score = Score {
            points: 0,
            signs: Vec::new(),
        };
        let content = facts.text - facts.navigation_text;
        match content {
            0 if facts.links == 0 && facts.media == 0 => score.add(true, 45, "nothing"),
            0 => score.add(true, 30, "no-text"),
            1..60 => score.add(true, 22, "little-text"),
            60..200 => score.add(true, 10, "some-text"),
            200..500 => score.add(true, -10, "-text"),
            _ => score.add(true, -30, "-text"),
        }
        score.add(facts.has_empty_root, 45, "empty-root");
        score.add(facts.has_empty_component, 35, "empty-component");
        score.add(facts.has_empty_main, 30, "empty-main");
        score.add(facts.has_templates, 40, "template");
        score.add(facts.demands_scripts, 30, "noscript-warning");
        score.add(facts.has_runtime, 40, "runtime");
        score.add(facts.has_generator, 25, "generator");
        score.add(facts.placeholders > 0, 20, "placeholder");
        score.add(facts.empty_places > 0, 15, "empty-place");
        score.add(facts.empty_places > 7, 10, "empty-places");
        score.add(facts.loads_data, 25, "loads-data");
        score.add(facts.writes_document, 20, "writes");
        score.add(facts.has_bundle, 20, "bundle");
        score.add(facts.has_canvas, 10, "canvas");
        score.add(facts.media > 2, -20, "-media");
        score.add(facts.links > 20, -10, "-links");
        score.add(facts.has_form, -30, "-form");
        score.add(facts.has_frames_or_redirect, -60, "-elsewhere");
        score
    }

    fn zero(sign: &'static str) -> Score {
        Score {
            points: 0,
            signs: vec![sign],
        }
    }

    fn add(&mut self, holds: bool, points: i64, sign: &'static str) {
        if holds {
            self.points += points;
            self.signs.push(sign);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_plugin::testing::{VisitFacts, document, visit};

    use super::*;

    fn judge(html: &str) -> Ruling {
        let page = document("http://e.org/a")
            .media_type("text/html")
            .text(html);
        let plugin = NeedsBrowser::new(Settings::default()).unwrap();
        plugin.judge_document(&Stage::Render, &page, &visit(VisitFacts::default()))
    }

    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(judge(html).reason, expected, "{html}");
    }

    #[test]
    fn a_page_without_scripts_of_its_own_needs_no_browser() {
        check("<div id=root></div>", "0:no-scripts");
        check(
            "<div id=root></div><script src=//www.googletagmanager.com/gtm.js></script><script type=application/ld+json>{}</script>",
            "0:no-scripts",
        );
        check(
            "<!DOCTYPE html><div id=root></div><script src=/a.js></script>",
            "90:nothing+empty-root",
        );
    }

    #[test]
    fn hidden_text_does_not_count() {
        let words = "word ".repeat(400);
        let page = |begin: &str, end: &str| {
            format!("{begin}{words}{end}<script src=/static/main.1f.js></script>")
        };
        check(&page("<p>", "</p>"), "0:enough-text");
        for (begin, end) in [
            ("<head><title>", "</title></head>"),
            ("<noscript>", "</noscript>"),
            ("<template>", "</template>"),
            ("<div hidden><p>", "</div>"),
            ("<style>", "</style>"),
            ("<!-- ", "-->"),
        ] {
            check(&page(begin, end), "65:nothing+bundle");
        }
        // Text in a menu is not content.
        let menu = page("<nav>", "</nav>").replace("word ", "x ");
        check(&menu, "65:nothing+bundle");
    }

    #[test]
    fn missing_end_tags_do_not_hide_the_content_of_a_root() {
        let script = "<script type=module src=/assets/index.js></script>";
        let filled = format!(
            "<div id=app><ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul></div>{script}"
        );
        check(&filled, "50:no-text+bundle");
        check(
            &format!("<div id=app><p><span></div>{script}"),
            "110:nothing+empty-root+bundle",
        );
        check(
            &format!("<p>{script}<div id=app>"),
            "110:nothing+empty-root+bundle",
        );
    }

    /// The weights were chosen by the pages at even positions of each folder, sorted by name. The other pages test the weights.
    #[test]
    fn pages_of_the_corpus_are_classified() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
        let mut report = String::new();
        let mut all = Counts::default();
        for (name, first) in [("even", 0), ("odd", 1)] {
            let mut counts = Counts::default();
            for (folder, needs_browser) in [("plain", false), ("rendered", true)] {
                let files = std::fs::read_dir(format!("{corpus}/{folder}")).unwrap();
                let mut files: Vec<_> = files.map(|it| it.unwrap().path()).collect();
                files.sort();
                for file in files.iter().skip(first).step_by(2) {
                    let ruling = judge(&std::fs::read_to_string(file).unwrap());
                    let is_accepted = ruling.verdict == Verdict::Accept;
                    counts.add(needs_browser, is_accepted);
                    all.add(needs_browser, is_accepted);
                    if needs_browser != is_accepted {
                        report += &format!("{}: {}\n", file.display(), ruling.reason);
                    }
                }
            }
            report += &format!("{name}: {}\n", counts.text());
        }
        report += &format!("all: {}\n", all.text());
        #[expect(clippy::print_stdout, reason = "docs/BROWSER.md has these figures")]
        {
            println!("{report}");
        }
        assert!(all.precision() >= 0.98 && all.recall() >= 0.94, "{report}");
    }

    /// Numbers of pages by need and verdict.
    #[derive(Default)]
    struct Counts {
        found: u32,
        missed: u32,
        mistaken: u32,
        passed: u32,
    }

    impl Counts {
        fn add(&mut self, needs_browser: bool, is_accepted: bool) {
            *match (needs_browser, is_accepted) {
                (true, true) => &mut self.found,
                (true, false) => &mut self.missed,
                (false, true) => &mut self.mistaken,
                (false, false) => &mut self.passed,
            } += 1;
        }

        fn precision(&self) -> f64 {
            f64::from(self.found) / f64::from(self.found + self.mistaken)
        }

        fn recall(&self) -> f64 {
            f64::from(self.found) / f64::from(self.found + self.missed)
        }

        fn text(&self) -> String {
            let Counts {
                found,
                missed,
                mistaken,
                passed,
            } = self;
            let (precision, recall) = (self.precision(), self.recall());
            format!(
                "{found} found, {missed} missed, {mistaken} mistaken, {passed} passed; precision {precision:.3}, recall {recall:.3}"
            )
        }
    }
}
