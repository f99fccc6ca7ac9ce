//! Compares the components of the default profile's plugins with the same plugins called natively: `cargo run --release -p
//! opilio-sandbox --example plugin_cost -- FILE|FOLDER…`. Every page goes through the extractors, with its fragments, and through
//! the filters after the fetch. The component's call and the native call alternate, so that other load on the machine affects both.
//! The fastest of the rounds counts for each call.
#![allow(clippy::print_stdout, reason = "a program that prints")]

mod pages;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use opilio_plugin::{Configured, Plugins, testing};
use opilio_sandbox::{Candidate, Document, Engine, EngineConfig, Plugin, Stage, Visit};

use pages::{Failure, MEDIA_TYPE, URI, document, read, shipped};

/// Times that each call is made in each way.
const ROUNDS: usize = 7;
/// Levels of nested fragments that are extracted.
const DEPTH_MAX: usize = 4;
/// A plugin's name, and the crate that its component is built from.
type Shipped = (&'static str, fn() -> Plugins);

/// Extractors of HTML and of the fragments in it.
const EXTRACTORS: [Shipped; 5] = [
    ("http", opilio_http_links::plugins),
    ("html", opilio_html::plugins),
    ("css", opilio_css::plugins),
    ("js", opilio_js::plugins),
    ("json", opilio_formats::plugins),
];
/// Filters of responses.
const FILTERS: [Shipped; 3] = [
    ("bot-walls", opilio_walls::plugins),
    ("soft-404", opilio_walls::plugins),
    ("needs-browser", opilio_walls::plugins),
];

/// A plugin in both forms, and the sum of its least times.
struct Measured {
    name: &'static str,
    component: Plugin,
    native: Configured,
    calls: u64,
    as_component: Duration,
    natively: Duration,
}

fn main() -> Result<(), Failure> {
    let mut pages = Vec::new();
    for path in std::env::args().skip(1) {
        read(Path::new(&path), &mut pages)?;
    }
    let engine = Engine::new(EngineConfig::default())?;
    let load = |(name, plugins): &Shipped| -> Result<Measured, Failure> {
        Ok(Measured {
            name,
            component: shipped(&engine, name)?,
            native: plugins()
                .configure(name, "{}")
                .map_err(|faults| format!("{name}: {faults:?}"))?,
            calls: 0,
            as_component: Duration::ZERO,
            natively: Duration::ZERO,
        })
    };
    let mut extractors: Vec<Measured> = EXTRACTORS.iter().map(load).collect::<Result<_, _>>()?;
    let mut filters: Vec<Measured> = FILTERS.iter().map(load).collect::<Result<_, _>>()?;
    for page in &pages {
        let page = document(page);
        extract(&mut extractors, &page)?;
        judge(&mut filters, &page)?;
    }
    extractors.append(&mut filters);
    print(&extractors, pages.len());
    Ok(())
}

/// Calls every extractor with the page and with its fragments.
fn extract(extractors: &mut [Measured], page: &Document) -> Result<(), Failure> {
    let mut level = vec![page.clone()];
    for _ in 0..=DEPTH_MAX {
        let mut by_type: BTreeMap<String, Vec<Document>> = BTreeMap::new();
        for document in level.drain(..) {
            let media_type = document.media_type().to_owned();
            by_type.entry(media_type).or_default().push(document);
        }
        for (media_type, documents) in by_type {
            for extractor in extractors.iter_mut() {
                if !extractor.component.handles(&media_type, URI) {
                    continue;
                }
                let native: Vec<_> = documents.iter().map(natively).collect();
                let found = extractor.both(
                    |plugin| Ok(plugin.extract(documents.clone())?),
                    |plugin| drop(plugin.extract(&native)),
                )?;
                for (document, extraction) in documents.iter().zip(found) {
                    let inner = extraction.fragments.iter();
                    level.extend(inner.filter_map(|inner| document.fragment_of(inner).ok()));
                }
            }
        }
    }
    Ok(())
}

/// Calls every filter with the response.
fn judge(filters: &mut [Measured], page: &Document) -> Result<(), Failure> {
    let visit = Visit {
        status: page.status(),
        media_type: MEDIA_TYPE.to_owned(),
        ..Visit::of(
            Candidate::seed(
                URI.to_owned(),
                "http://(org,example,)/folder/page.html".to_owned(),
            ),
            jiff::Timestamp::UNIX_EPOCH,
        )
    };
    let (native, native_visit) = (
        natively(page),
        testing::visit(testing::VisitFacts::default()),
    );
    for filter in filters {
        filter.both(
            |plugin| Ok(plugin.judge_document(Stage::PostFetch, page, &visit)?),
            |plugin| {
                drop(plugin.judge_document(
                    &opilio_plugin::Stage::PostFetch,
                    &native,
                    &native_visit,
                ))
            },
        )?;
    }
    Ok(())
}

impl Measured {
    /// Makes a call in both forms alternately, and adds the least time of each.
    fn both<T>(
        &mut self,
        mut as_component: impl FnMut(&Plugin) -> Result<T, Failure>,
        mut natively: impl FnMut(&Configured),
    ) -> Result<T, Failure> {
        let (mut least_native, mut least_component) = (Duration::MAX, Duration::MAX);
        let mut answer = None;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            natively(&self.native);
            least_native = least_native.min(began.elapsed());
            let began = Instant::now();
            answer = Some(as_component(&self.component)?);
            least_component = least_component.min(began.elapsed());
        }
        self.calls += 1;
        self.natively += least_native;
        self.as_component += least_component;
        answer.ok_or_else(|| "no round".into())
    }
}

/// The document in the form that the native plugin takes.
fn natively(document: &Document) -> opilio_plugin::Document {
    let mut draft = testing::document(URI)
        .media_type(document.media_type())
        .charset("utf-8");
    if let Some(context) = document.fragment() {
        draft = draft.fragment(context);
    }
    draft.text(document.text())
}

fn print(measured: &[Measured], pages: usize) {
    println!(
        "{:<12}{:>14}{:>14}{:>16}{:>8}{:>14}",
        "plugin", "calls a page", "native µs", "component µs", "ratio", "sandbox µs"
    );
    let line = |name: &str, calls: u64, natively: Duration, as_component: Duration| {
        let a_page = |time: Duration| time.as_secs_f64() * 1e6 / pages as f64;
        println!(
            "{name:<12}{:>14.2}{:>14.1}{:>16.1}{:>8.2}{:>14.1}",
            calls as f64 / pages as f64,
            a_page(natively),
            a_page(as_component),
            as_component.as_secs_f64() / natively.as_secs_f64(),
            a_page(as_component.saturating_sub(natively)),
        );
    };
    for one in measured {
        line(one.name, one.calls, one.natively, one.as_component);
    }
    line(
        "all, a page",
        measured.iter().map(|one| one.calls).sum(),
        measured.iter().map(|one| one.natively).sum(),
        measured.iter().map(|one| one.as_component).sum(),
    );
}
