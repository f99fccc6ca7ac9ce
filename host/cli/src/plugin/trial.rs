//! A plugin on trial: the answers of each of its kinds about a document, as items for display, counting and comparison.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use jiff::Timestamp;
use opilio_crawl::sample::{self, Links, Sample};
use opilio_profile::format_duration;
use opilio_sandbox::{
    Candidates, Comparison, ContentState, Difference, Document, Fault, Finished, Fragment,
    FragmentContent, Kind, NamedValue, Plugin, Ruling, Span, Stage, StripProblem, Verdict, Visit,
};
use opilio_uri::{HopPath, Uri};
use serde_json::{Value, json};

use super::material::Material;
use super::series::{Series, candidates};

/// Links of one document that are used, as in the default profile.
const LINKS_MAX: usize = 6_000;
/// Most events that an observer receives at once.
const EVENTS_MAX: usize = 256;
/// Characters of a document that are shown next to a span.
const EXCERPT_CHARS_MAX: usize = 60;

/// The kind of a plugin, as a command line has it.
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
}

impl KindName {
    /// All kinds, in the order of a document's stages.
    pub(super) const ALL: [Self; 7] = [
        Self::Filter,
        Self::DigestStripper,
        Self::ChangeEvaluator,
        Self::Extractor,
        Self::Precedence,
        Self::WaitEvaluator,
        Self::Observer,
    ];

    /// Returns the kind that the contract calls so.
    pub(super) fn of(kind: &Kind) -> Option<Self> {
        Some(match kind {
            Kind::Extractor => Self::Extractor,
            Kind::Filter => Self::Filter,
            Kind::DigestStripper => Self::DigestStripper,
            Kind::ChangeEvaluator => Self::ChangeEvaluator,
            Kind::WaitEvaluator => Self::WaitEvaluator,
            Kind::Precedence => Self::Precedence,
            Kind::Observer => Self::Observer,
            Kind::Other(_) => return None,
        })
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
            Self::Archive => Stage::Archive,
        }
    }
}

/// Call of a plugin.
#[derive(Debug, clap::Args)]
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
}

/// A plugin with everything that is needed to ask it about documents in turn.
pub(super) struct Trial {
    pub(super) plugin: Plugin,
    pub(super) kinds: Vec<KindName>,
    stage: StageName,
    hop_path: HopPath,
    now: Option<Timestamp>,
    /// Extractors for fragments, and for the candidates that filters and precedence plugins are asked about.
    extractors: Vec<Plugin>,
    /// Whether fragments go to these extractors as well.
    fragments: bool,
    series: Series,
    fingerprints: HashMap<Uri, Vec<u8>>,
    memory: Vec<u8>,
    events: Vec<Finished>,
}

/// All questions about one document.
pub(super) struct Prepared {
    pub(super) sample: Sample,
    pub(super) visit: Visit,
    pub(super) candidates: Candidates,
    last: Option<Vec<u8>>,
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

/// A part of an answer: a link, a span, a ruling.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// The noun under which it is counted, such as `links`.
    pub(super) what: &'static str,
    /// The cells of a table row.
    pub(super) cells: Vec<String>,
    pub(super) json: Value,
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
        let of_candidates = matches!(args.stage, StageName::Scope | StageName::PreFetch);
        let needs_links = kinds.contains(&KindName::Precedence)
            || (kinds.contains(&KindName::Filter) && of_candidates);
        let hop_path = HopPath::parse(&args.hop_path)
            .map_err(|problem| anyhow::anyhow!("--hop-path: {problem}"))?;
        Ok(Self {
            plugin,
            kinds,
            stage: args.stage,
            hop_path,
            now: args.now,
            extractors: match needs_links || fragments {
                true => extractors()?,
                false => Vec::new(),
            },
            fragments,
            series: Series::default(),
            fingerprints: HashMap::new(),
            memory: Vec::new(),
            events: Vec::new(),
        })
    }

    /// Whether the plugin handles this document.
    pub(super) fn handles(&self, sample: &Sample) -> bool {
        let media_type = sample.head.media_type();
        let media_type = media_type.as_deref().unwrap_or("application/octet-stream");
        self.plugin.handles(media_type, sample.uri.as_str())
    }

    /// Prepares all questions about a document. Each document counts as a visit.
    pub(super) fn prepare(&mut self, mut material: Material) -> Prepared {
        material.at = self.now.unwrap_or(material.at);
        let visit = self.series.visit(&material);
        let sample = material.sample;
        let found = match self.extractors.is_empty() {
            true => Links::default(),
            false => sample::links(&self.extractors, &sample.document(), LINKS_MAX),
        };
        let candidates = candidates(&sample, &found, &self.hop_path);
        let last = self.fingerprints.get(&sample.uri).cloned();
        Prepared {
            sample,
            visit,
            candidates,
            last,
        }
    }

    /// Makes the calls of one kind and nothing else, for measuring.
    pub(super) fn call(
        &self,
        kind: KindName,
        prepared: &Prepared,
        document: &Document,
    ) -> Result<(), Fault> {
        let Prepared {
            visit, candidates, ..
        } = prepared;
        let plugin = &self.plugin;
        match kind {
            KindName::Extractor => plugin.extract(vec![document.clone()]).map(drop),
            KindName::Filter => match self.stage {
                StageName::Scope | StageName::PreFetch => plugin
                    .judge_candidates(self.stage.stage(), candidates)
                    .map(drop),
                _ => plugin
                    .judge_document(self.stage.stage(), document, visit)
                    .map(drop),
            },
            KindName::DigestStripper => plugin.strip(document).map(drop),
            KindName::ChangeEvaluator => plugin
                .compare(document, visit, prepared.last.as_deref())
                .map(drop),
            KindName::WaitEvaluator => plugin.evaluate(visit).map(drop),
            KindName::Precedence => plugin.rank_candidates(candidates, Some(document)).map(drop),
            KindName::Observer => {
                let event = event(prepared);
                plugin.observe(&self.memory, &[event]).map(drop)
            }
        }
    }

    /// Asks all questions about a document.
    pub(super) fn ask(&mut self, prepared: &Prepared) -> Vec<Outcome> {
        self.kinds
            .clone()
            .into_iter()
            .filter_map(|kind| self.ask_as(kind, prepared))
            .collect()
    }

    fn ask_as(&mut self, kind: KindName, prepared: &Prepared) -> Option<Outcome> {
        let Prepared {
            sample,
            visit,
            candidates,
            last,
        } = prepared;
        let document = match (kind, self.stage) {
            (KindName::Filter, StageName::MidFetch) => headers_alone(sample),
            _ => sample.document(),
        };
        let mut visit = visit.clone();
        visit.notes = document.notes().clone();
        let mut remarks = Vec::new();
        let plugin = &self.plugin;
        let found = match kind {
            KindName::Extractor => self.extract(&document, &mut remarks),
            KindName::Filter => match self.stage {
                StageName::Scope | StageName::PreFetch => plugin
                    .judge_candidates(self.stage.stage(), candidates)
                    .map(|rulings| of_rulings(candidates, &rulings)),
                _ => plugin
                    .judge_document(self.stage.stage(), &document, &visit)
                    .map(|ruling| vec![of_ruling(None, &ruling)]),
            },
            KindName::DigestStripper => plugin.strip(&document).map(|spans| match spans {
                Ok(spans) => spans.iter().map(|span| of_span(span, &document)).collect(),
                Err(problem) => {
                    remarks.push(match problem {
                        StripProblem::TooLarge(max) => {
                            format!("the document is larger than the limit of {max} bytes")
                        }
                        StripProblem::Other(problem) => problem,
                    });
                    Vec::new()
                }
            }),
            // The bytes are the same: a crawl does not ask then.
            KindName::ChangeEvaluator if visit.state == ContentState::Unchanged => return None,
            KindName::ChangeEvaluator => {
                plugin
                    .compare(&document, &visit, last.as_deref())
                    .map(|comparison| {
                        let items = vec![of_comparison(&comparison)];
                        if let Some(fingerprint) = comparison.fingerprint {
                            self.fingerprints.insert(sample.uri.clone(), fingerprint);
                        }
                        items
                    })
            }
            KindName::WaitEvaluator => plugin.evaluate(&visit).map(|wait| {
                let shown = |wait: Duration| format_duration(wait);
                wait.into_iter()
                    .map(|wait| {
                        let ask_again = wait.ask_again.map(shown);
                        let mut cells = vec![shown(wait.next_visit)];
                        cells.extend(
                            ask_again
                                .as_ref()
                                .map(|again| format!("ask again in {again}")),
                        );
                        let json = json!({"wait": shown(wait.next_visit), "ask_again": ask_again});
                        Item {
                            what: "waits",
                            cells,
                            json,
                        }
                    })
                    .collect()
            }),
            KindName::Precedence => {
                plugin
                    .rank_candidates(candidates, Some(&document))
                    .map(|ranks| {
                        let pairs = candidates.iter().zip(ranks);
                        pairs
                            .filter_map(|(candidate, rank)| Some((candidate, rank?)))
                            .map(|(candidate, rank)| Item {
                                what: "ranks",
                                cells: vec![rank.to_string(), candidate.uri.clone()],
                                json: json!({"precedence": rank, "uri": candidate.uri}),
                            })
                            .collect()
                    })
            }
            KindName::Observer => {
                self.events.push(event(prepared));
                if self.events.len() < EVENTS_MAX {
                    return None;
                }
                return self.observe();
            }
        };
        let left = left(&document);
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
    fn extract(&self, document: &Document, remarks: &mut Vec<String>) -> Result<Vec<Item>, Fault> {
        let first = self.plugin.extract(vec![document.clone()])?;
        let fragments = first.into_iter().flat_map(|one| one.fragments);
        let fragments: Vec<Fragment> = fragments.collect();
        let own = sample::links(std::slice::from_ref(&self.plugin), document, LINKS_MAX);
        let mut items = of_links(own, None, remarks);
        for fragment in &fragments {
            items.push(of_fragment(fragment));
            if !self.fragments {
                continue;
            }
            match document.fragment_of(fragment) {
                Ok(inner) => {
                    let others = sample::links(&self.extractors, &inner, LINKS_MAX);
                    items.extend(of_links(others, Some(&fragment.context), remarks));
                }
                Err(problem) => remarks.push(problem.to_string()),
            }
        }
        Ok(items)
    }
}

fn headers_alone(sample: &Sample) -> Document {
    let mut sample = sample.clone();
    sample.content = bytes::Bytes::new();
    sample.document()
}

fn left(document: &Document) -> Vec<String> {
    let notes = document.notes().all().into_iter();
    let notes = notes.map(|(name, value)| format!("note {name} = {value}"));
    let annotations = document.notes().annotations().into_iter();
    notes
        .chain(annotations.map(|annotation| format!("annotation {}", annotation.text)))
        .collect()
}

fn of_links(links: Links, inside: Option<&str>, remarks: &mut Vec<String>) -> Vec<Item> {
    let Links {
        links,
        refused,
        dropped,
        faults,
        problems,
    } = links;
    remarks.extend(problems);
    remarks.extend(faults.iter().map(ToString::to_string));
    if dropped > 0 {
        remarks.push(format!(
            "dropped {dropped} links or fragments above the limits"
        ));
    }
    let within = |context: String| match inside {
        Some(inside) => format!("{inside} {context}"),
        None => context,
    };
    let found = links.into_iter().map(|link| {
        let context = within(link.context);
        let hop = link.hop.letter().to_string();
        let modified = link.modified.map(|at| at.to_string());
        let mut cells = vec![hop.clone(), link.uri.as_str().to_owned(), context.clone()];
        let attributes = link.attributes.iter();
        let pairs: Vec<String> = attributes
            .map(|NamedValue { name, value }| format!("{name}={value}"))
            .chain(modified.iter().map(|at| format!("modified={at}")))
            .collect();
        if !pairs.is_empty() {
            cells.push(pairs.join(" "));
        }
        let json = json!({
            "uri": link.uri, "hop": hop, "context": context, "modified": modified,
            "attributes": link.attributes.iter()
                .map(|one| json!({"name": one.name, "value": one.value}))
                .collect::<Value>(),
        });
        Item {
            what: "links",
            cells,
            json,
        }
    });
    let refused = refused.into_iter().map(|(reference, problem)| Item {
        what: "refused",
        json: json!({"reference": reference, "refused": problem}),
        cells: vec!["-".to_owned(), reference, problem],
    });
    found.chain(refused).collect()
}

fn of_fragment(fragment: &Fragment) -> Item {
    let (place, bytes) = match &fragment.content {
        FragmentContent::BytesAt(span) => (
            format!("bytes {}+{}", span.offset, span.length),
            span.length,
        ),
        FragmentContent::TextAt(span) => {
            (format!("text {}+{}", span.offset, span.length), span.length)
        }
        FragmentContent::Text(text) => (format!("{} bytes of text", text.len()), text.len() as u64),
        FragmentContent::Bytes(bytes) => (format!("{} bytes", bytes.len()), bytes.len() as u64),
    };
    Item {
        what: "fragments",
        cells: vec![
            "fragment".to_owned(),
            format!("{}, {place}", fragment.media_type),
            fragment.context.clone(),
        ],
        json: json!({
            "fragment": fragment.media_type, "place": place, "bytes": bytes,
            "context": fragment.context, "base": fragment.base,
        }),
    }
}

fn of_rulings(candidates: &Candidates, rulings: &[Ruling]) -> Vec<Item> {
    let pairs = candidates.iter().zip(rulings);
    pairs
        .map(|(candidate, ruling)| of_ruling(Some(&candidate.uri), ruling))
        .collect()
}

fn of_ruling(uri: Option<&str>, ruling: &Ruling) -> Item {
    let (what, verdict) = match &ruling.verdict {
        Verdict::Accept => ("accepted", "accept".to_owned()),
        Verdict::Reject => ("rejected", "reject".to_owned()),
        Verdict::Pass => ("passed", "pass".to_owned()),
        Verdict::Unchanged => ("unchanged", "unchanged".to_owned()),
        Verdict::Retry(after) => {
            let after = format_duration(Duration::from_millis(*after));
            ("retried", format!("retry after {after}"))
        }
        Verdict::Other(name) => ("passed", name.clone()),
    };
    let mut cells = vec![verdict.clone()];
    cells.extend(uri.map(str::to_owned));
    cells.push(ruling.reason.clone());
    Item {
        what,
        cells,
        json: json!({"uri": uri, "verdict": verdict, "reason": ruling.reason}),
    }
}

fn of_span(span: &Span, document: &Document) -> Item {
    let start = usize::try_from(span.offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(span.length).unwrap_or(usize::MAX));
    let bytes = document.content().get(start..end).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    let mut excerpt: String = text
        .chars()
        .take(EXCERPT_CHARS_MAX)
        .collect::<String>()
        .escape_debug()
        .to_string();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        excerpt.push('…');
    }
    Item {
        what: "spans",
        cells: vec![
            span.offset.to_string(),
            format!("+{}", span.length),
            excerpt.clone(),
        ],
        json: json!({"offset": span.offset, "length": span.length, "text": excerpt}),
    }
}

fn of_comparison(comparison: &Comparison) -> Item {
    let (what, verdict) = match comparison.difference {
        Some(Difference::Changed) => ("changed", "changed"),
        Some(Difference::Unchanged) => ("unchanged", "unchanged"),
        None => ("passed", "pass"),
    };
    let fingerprint = comparison.fingerprint.as_ref().map(Vec::len);
    let mut cells = vec![verdict.to_owned(), comparison.reason.clone()];
    cells.extend(fingerprint.map(|bytes| format!("fingerprint of {bytes} bytes")));
    Item {
        what,
        cells,
        json: json!({"difference": verdict, "reason": comparison.reason, "fingerprint_bytes": fingerprint}),
    }
}

fn event(prepared: &Prepared) -> Finished {
    let Prepared { sample, visit, .. } = prepared;
    Finished {
        at: u64::try_from(visit.now.as_millisecond()).unwrap_or(0),
        uri: sample.uri.as_str().to_owned(),
        status: visit.status,
        media_type: visit.media_type.clone(),
        size: visit.size,
        took: None,
        state: visit.state,
        hop_path: visit.candidate.hop_path.clone(),
        via: None,
        source: None,
        queue: sample.uri.surt_authority(),
        digest: None,
        annotations: sample.annotations.clone(),
        attributes: Vec::new(),
    }
}
