//! A trial of a plugin: it is called as each of its kinds about one document after another. `opilio_crawl::sample` makes the calls,
//! and describes how they differ from those of a crawl.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use jiff::Timestamp;
use opilio_crawl::sample::{ContentState, SampleResponse, SampleVisit, SampleVisits};
use opilio_profile::parse_duration;
use opilio_sandbox::{
    Candidates, Comparison, Document, Extraction, Fault, Finished, Kind, Limits, LoadedPage,
    Plugin, Ruling, Span, Stage, StepPlan, StripProblem, Visit, Wait,
};
use opilio_uri::{HopPath, Uri};
use serde_json::json;

use super::answer::{
    Item, of_comparison, of_fragment, of_links, of_plan, of_ranks, of_ruling, of_rulings, of_span,
    of_wait,
};
use super::documents::TimedSample;
use super::workbench::limits;

/// Most events that an observer receives at once.
const EVENTS_MAX: usize = 256;
/// Window, time and steps of a page that no browser has loaded.
const WINDOW_HEIGHT: u64 = 800;
const PAGE_TIME: Duration = Duration::from_secs(90);
const PAGE_STEPS: u32 = 99;

/// The kind of a plugin, as a value on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub(super) enum KindName {
    /// Finds links and fragments.
    Extractor,
    /// Accepts or rejects candidates or documents.
    Filter,
    /// Names the parts that do not count when versions are compared.
    DigestStripper,
    /// Decides whether a document has changed.
    ChangeEvaluator,
    /// Sets the wait until the next visit.
    WaitEvaluator,
    /// Ranks URIs and queues.
    Precedence,
    /// Reports on finished URIs.
    Observer,
    /// Operates pages in a browser.
    PageBehavior,
}

impl KindName {
    /// All kinds, in the order of a document's stages.
    pub(super) const ALL: [Self; 8] = [
        Self::Filter,
        Self::PageBehavior,
        Self::DigestStripper,
        Self::ChangeEvaluator,
        Self::Extractor,
        Self::Precedence,
        Self::WaitEvaluator,
        Self::Observer,
    ];

    /// Converts a kind of the contract.
    pub(super) fn of(kind: &Kind) -> Option<Self> {
        Some(match kind {
            Kind::Extractor => Self::Extractor,
            Kind::Filter => Self::Filter,
            Kind::DigestStripper => Self::DigestStripper,
            Kind::ChangeEvaluator => Self::ChangeEvaluator,
            Kind::WaitEvaluator => Self::WaitEvaluator,
            Kind::Precedence => Self::Precedence,
            Kind::Observer => Self::Observer,
            Kind::PageBehavior => Self::PageBehavior,
            Kind::Other(_) => return None,
        })
    }

    /// Returns `true` if plugins of this kind are called about the links of a document, not about the document itself.
    fn is_about_links(self, stage: StageName) -> bool {
        let of_links = matches!(stage, StageName::Scope | StageName::PreFetch);
        self == Self::Precedence || (self == Self::Filter && of_links)
    }

    /// Returns its name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Extractor => "extractor",
            Self::Filter => "filter",
            Self::DigestStripper => "digest-stripper",
            Self::ChangeEvaluator => "change-evaluator",
            Self::WaitEvaluator => "wait-evaluator",
            Self::Precedence => "precedence",
            Self::Observer => "observer",
            Self::PageBehavior => "page-behavior",
        }
    }
}

/// Stage at which a filter is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StageName {
    /// The filter decides which links of the document are in scope.
    Scope,
    /// The filter decides which links of the document may be fetched.
    PreFetch,
    /// The filter decides by the headers whether the body is fetched.
    MidFetch,
    /// The filter judges the document.
    PostFetch,
    /// The filter decides whether links are extracted from the document.
    Extract,
    /// The filter decides whether a browser renders the document.
    Render,
    /// The filter decides whether the document is archived.
    Archive,
}

impl StageName {
    fn stage(self) -> Stage {
        match self {
            Self::Scope => Stage::Scope,
            Self::PreFetch => Stage::PreFetch,
            Self::MidFetch => Stage::MidFetch,
            Self::PostFetch => Stage::PostFetch,
            Self::Extract => Stage::Extract,
            Self::Render => Stage::Render,
            Self::Archive => Stage::Archive,
        }
    }
}

/// Call of a plugin.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct QuestionArgs {
    /// Call the plugin only as this kind [default: all its kinds].
    #[arg(long, value_enum, value_name = "KIND")]
    pub(super) kind: Option<KindName>,
    /// Stage at which filters are called.
    #[arg(long, value_enum, value_name = "STAGE", default_value = "scope")]
    stage: StageName,
    /// Hop path of the document whose links are judged.
    #[arg(long, value_name = "PATH", default_value = "")]
    hop_path: String,
    /// Time of the visit, such as 2026-11-21T12:00:00Z [default: now, or the time of the capture].
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// Longest time of a call, as `limits.time` of a plugin in a profile [default: that of a profile, 2s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    time: Option<Duration>,
}

pub(super) fn duration(written: &str) -> Result<Duration, String> {
    parse_duration(written).map_err(|_| "write a duration such as 500ms or 2s".to_owned())
}

impl QuestionArgs {
    /// Returns the limits of the plugin's calls.
    pub(super) fn limits(&self) -> Limits {
        let limits = limits();
        Limits {
            time: self.time.unwrap_or(limits.time),
            ..limits
        }
    }
}

/// A plugin and the state for calling it about one document after another.
pub(super) struct Trial {
    pub(super) plugin: Plugin,
    pub(super) kinds: Vec<KindName>,
    stage: StageName,
    now: Option<Timestamp>,
    /// Extractors for fragments, and for the candidates of filters and precedence plugins.
    extractors: Vec<Plugin>,
    /// `true` if fragments go to these extractors as well.
    fragments: bool,
    visits: SampleVisits,
    memory: Vec<u8>,
    events: Vec<Finished>,
}

/// A document as a page that no browser has loaded.
fn unseen(document: &Document) -> LoadedPage {
    LoadedPage {
        uri: document.uri().to_owned(),
        window_height: WINDOW_HEIGHT,
        time_left: PAGE_TIME,
        steps_left: PAGE_STEPS,
        ..LoadedPage::default()
    }
}

/// All questions about one document.
pub(super) struct Prepared {
    pub(super) visit: SampleVisit,
    candidates: Candidates,
}

/// One question, as the plugin gets it.
pub(super) struct Question {
    kind: KindName,
    document: Document,
    visit: Visit,
}

impl Question {
    /// Decodes the text of the document. Otherwise the first call would do so.
    pub(super) fn decode(&self) {
        self.document.text();
    }
}

/// An answer as the plugin gave it.
pub(super) enum Reply {
    Extracted(Vec<Extraction>),
    Rulings(Vec<Ruling>),
    Ruling(Ruling),
    Stripped(Result<Vec<Span>, StripProblem>),
    Compared(Comparison),
    Wait(Option<Wait>),
    Ranks(Vec<Option<u8>>),
    Planned(StepPlan),
    Observed,
}

/// The answer of one kind.
pub(super) struct Outcome {
    pub(super) kind: KindName,
    pub(super) found: Result<Vec<Item>, Fault>,
    /// Remarks on the answer: truncated or unreadable parts.
    pub(super) remarks: Vec<String>,
    /// Notes and annotations that the plugin left.
    pub(super) left: Vec<String>,
}

impl Trial {
    /// Creates a trial. Built-in extractors are needed for questions about candidates or fragments.
    pub(super) fn new(
        plugin: Plugin,
        args: &QuestionArgs,
        fragments: bool,
        extractors: impl FnOnce() -> Result<Vec<Plugin>>,
    ) -> Result<Self> {
        let has = plugin.description().kinds.iter();
        let has: Vec<KindName> = has.filter_map(KindName::of).collect();
        let kinds: Vec<KindName> = KindName::ALL
            .into_iter()
            .filter(|kind| has.contains(kind) && args.kind.is_none_or(|asked| asked == *kind))
            .collect();
        if kinds.is_empty() {
            let words: Vec<&str> = has.into_iter().map(KindName::word).collect();
            bail!(
                "{} is not of the kind given with --kind; its kinds: {}",
                plugin.name(),
                words.join(", ")
            );
        }
        let hop_path = HopPath::parse(&args.hop_path)
            .map_err(|problem| anyhow::anyhow!("--hop-path: {problem}"))?;
        let needs_links = kinds.iter().any(|kind| kind.is_about_links(args.stage));
        let extractors = match needs_links || fragments {
            true => extractors()?,
            false => Vec::new(),
        };
        let of_links = if needs_links { &*extractors } else { &[] };
        Ok(Self {
            plugin,
            kinds,
            stage: args.stage,
            now: args.now,
            visits: SampleVisits::new(of_links, hop_path)?,
            extractors,
            fragments,
            memory: Vec::new(),
            events: Vec::new(),
        })
    }

    /// Returns `true` if the plugin is asked about this document or its links.
    pub(super) fn handles(&self, sample: &SampleResponse) -> bool {
        let media_type = sample.media_type();
        self.kinds
            .iter()
            .any(|kind| self.handles_as(*kind, &media_type, &sample.uri))
    }

    /// Returns `true` if a crawl would call the plugin as this kind. Links are selected by their own URIs.
    fn handles_as(&self, kind: KindName, media_type: &str, uri: &Uri) -> bool {
        kind.is_about_links(self.stage) || self.plugin.handles(media_type, uri.as_str())
    }

    /// Prepares all questions about a document. Each document counts as a visit once [`Trial::finish_visit`] has been called.
    pub(super) fn prepare(&self, sample: TimedSample) -> Prepared {
        let at = self.now.unwrap_or(sample.at);
        let visit = self.visits.visit(sample.sample, at);
        let links = visit.candidates();
        let handled = links
            .iter()
            .filter(|link| self.plugin.handles_uri(&link.uri));
        Prepared {
            candidates: handled.cloned().collect(),
            visit,
        }
    }

    /// Counts the document as a visit: the next one of its URI comes after it.
    pub(super) fn finish_visit(&mut self, prepared: &Prepared) {
        self.visits.finish(&prepared.visit);
    }

    /// Returns the question to the plugin as this kind.
    pub(super) fn question(&self, kind: KindName, prepared: &Prepared) -> Question {
        let visit = &prepared.visit;
        let (document, visit) = match kind {
            KindName::Filter => visit.before_filter(&self.stage.stage()),
            KindName::WaitEvaluator => (visit.document(), visit.before_wait()),
            _ => visit.before_comparison(),
        };
        Question {
            kind,
            document,
            visit,
        }
    }

    /// Makes one call and nothing else, for measuring.
    pub(super) fn call(&self, question: &Question, prepared: &Prepared) -> Result<Reply, Fault> {
        let Question {
            kind,
            document,
            visit,
        } = question;
        let (plugin, candidates) = (&self.plugin, &prepared.candidates);
        let stage = self.stage.stage();
        Ok(match kind {
            KindName::Extractor => Reply::Extracted(plugin.extract(vec![document.clone()])?),
            KindName::Filter if kind.is_about_links(self.stage) => {
                Reply::Rulings(plugin.judge_candidates(stage, candidates)?)
            }
            KindName::Filter => Reply::Ruling(plugin.judge_document(stage, document, visit)?),
            KindName::DigestStripper => Reply::Stripped(plugin.strip(document)?),
            KindName::ChangeEvaluator => {
                let last = prepared.visit.last_fingerprint();
                Reply::Compared(plugin.compare(document, visit, last)?)
            }
            KindName::WaitEvaluator => Reply::Wait(plugin.evaluate(visit)?),
            KindName::Precedence => {
                Reply::Ranks(plugin.rank_candidates(candidates, Some(document))?)
            }
            KindName::PageBehavior => Reply::Planned(plugin.step(&unseen(document), visit, &[])?),
            KindName::Observer => {
                let event = prepared.visit.event();
                plugin.observe(&self.memory, &[event])?;
                Reply::Observed
            }
        })
    }

    /// Calls the plugin once for each of its kinds that handles the document.
    pub(super) fn call_all_kinds(&mut self, prepared: &mut Prepared) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for kind in self.kinds.clone() {
            let visit = &prepared.visit;
            let media_type = visit.document().media_type().to_owned();
            if self.handles_as(kind, &media_type, visit.uri()) {
                outcomes.extend(self.call_as(kind, prepared));
            }
        }
        self.finish_visit(prepared);
        outcomes
    }

    fn call_as(&mut self, kind: KindName, prepared: &mut Prepared) -> Option<Outcome> {
        match kind {
            // The bytes are the same as at the last visit: a crawl does not call the change evaluator.
            KindName::ChangeEvaluator if prepared.visit.state() == ContentState::Unchanged => {
                return None;
            }
            KindName::Observer => {
                self.events.push(prepared.visit.event());
                if self.events.len() < EVENTS_MAX {
                    return None;
                }
                return self.observe();
            }
            _ => {}
        }
        let question = self.question(kind, prepared);
        let before = left(&question.document);
        let mut remarks = Vec::new();
        let reply = self.call(&question, prepared);
        if kind == KindName::ChangeEvaluator {
            let comparison = match &reply {
                Ok(Reply::Compared(comparison)) => Some(comparison),
                _ => None,
            };
            prepared.visit.compared(comparison);
        }
        let found = reply.map(|reply| match reply {
            Reply::Extracted(extractions) => {
                self.extracted(&question.document, extractions, prepared, &mut remarks)
            }
            Reply::Rulings(rulings) => of_rulings(&prepared.candidates, &rulings),
            Reply::Ruling(ruling) => vec![of_ruling(None, &ruling)],
            Reply::Stripped(Ok(spans)) => spans
                .iter()
                .map(|span| of_span(span, &question.document))
                .collect(),
            Reply::Stripped(Err(problem)) => {
                remarks.push(match problem {
                    StripProblem::TooLarge(max) => {
                        format!("the document is larger than the limit of {max} bytes")
                    }
                    StripProblem::Other(problem) => problem,
                });
                Vec::new()
            }
            Reply::Compared(comparison) => vec![of_comparison(&comparison)],
            Reply::Wait(wait) => wait.iter().map(of_wait).collect(),
            Reply::Ranks(ranks) => of_ranks(&prepared.candidates, ranks),
            Reply::Planned(plan) => {
                remarks
                    .push("first step, without a browser; use --page URL for all steps".to_owned());
                of_plan(&plan)
            }
            Reply::Observed => Vec::new(),
        });
        let mut left = left(&question.document);
        // Plugins of one visit share their notes. Those of an earlier kind have been shown.
        left.retain(|line| !before.contains(line));
        Some(Outcome {
            kind,
            found,
            remarks,
            left,
        })
    }

    /// Passes the remaining events to an observer, and asks for its reports.
    pub(super) fn finish(&mut self) -> Vec<Outcome> {
        if !self.kinds.contains(&KindName::Observer) {
            return Vec::new();
        }
        let mut outcomes: Vec<Outcome> = self.observe().into_iter().collect();
        let now = self.now.unwrap_or_else(Timestamp::now);
        let reports = self.plugin.report(&self.memory, now).map(|reports| {
            let item = |report: &opilio_sandbox::Report| Item {
                what: "reports",
                cells: vec![report.file.clone(), report.content.clone()],
                json: json!({"file": report.file, "content": report.content}),
            };
            reports.iter().map(item).collect()
        });
        outcomes.push(Outcome {
            kind: KindName::Observer,
            found: reports,
            remarks: Vec::new(),
            left: Vec::new(),
        });
        outcomes
    }

    fn observe(&mut self) -> Option<Outcome> {
        let events = std::mem::take(&mut self.events);
        if events.is_empty() {
            return None;
        }
        let found = self.plugin.observe(&self.memory, &events).map(|seen| {
            self.memory = seen.memory;
            let lines = seen.lines.into_iter();
            lines
                .map(|line| Item {
                    what: "lines",
                    json: json!({"file": line.file, "text": line.text}),
                    cells: vec![line.file, line.text],
                })
                .collect()
        });
        Some(Outcome {
            kind: KindName::Observer,
            found,
            remarks: Vec::new(),
            left: Vec::new(),
        })
    }

    /// Returns links as in a crawl, and the fragments. On request, the built-in extractors process the fragments.
    fn extracted(
        &self,
        document: &Document,
        extractions: Vec<Extraction>,
        prepared: &Prepared,
        remarks: &mut Vec<String>,
    ) -> Vec<Item> {
        let visit = &prepared.visit;
        let own = visit.extract(std::slice::from_ref(&self.plugin), document);
        let mut items = of_links(own, None, remarks);
        let fragments = extractions.into_iter().flat_map(|one| one.fragments);
        for fragment in fragments {
            items.push(of_fragment(&fragment));
            if !self.fragments {
                continue;
            }
            match document.fragment_of(&fragment) {
                Ok(inner) => {
                    let others = visit.extract(&self.extractors, &inner);
                    items.extend(of_links(others, Some(&fragment.context), remarks));
                }
                Err(problem) => remarks.push(problem.to_string()),
            }
        }
        items
    }
}

fn left(document: &Document) -> Vec<String> {
    let notes = document.notes().all().into_iter();
    let notes = notes.map(|(name, value)| format!("note {name} = {value}"));
    let annotations = document.notes().annotations().into_iter();
    notes
        .chain(annotations.map(|annotation| format!("annotation {}", annotation.text)))
        .collect()
}
