//! Rendering of a page that has been fetched: a browser loads it, its requests are archived, and its document, links, text and
//! pictures are taken. If rendering fails, the plain capture of the page remains.

use std::sync::Arc;

use bytes::Bytes;
use opilio_archive::{Record, RecordId};
use opilio_browser::{
    BrowserError, BrowserPool, LoadResult, PageContent, PageCut, PageError, PageReport,
    PageSession, RenderedLink, ScreenshotArea,
};
use opilio_profile::ArchiveFormat;
use opilio_uri::{Hop, Uri};
use opilio_visit::extraction::Outlink;
use opilio_visit::{PageToRender, RenderResult, Rendering};

use super::CrawlVisit;
use super::behave::{BehaveError, BehaviorResults};
use super::page_requests::{PageNetwork, PageRequests};
use crate::behavior_steps::{BehaviorEnd, BehaviorRun};
use crate::browsers::page_settings;
use crate::error::Halt;
use crate::lanes::LanePanic;
use crate::records;
use crate::render_board::{PageActivity, PageOnBoard};
use crate::render_figures::RenderFigures;
use opilio_job::alerts::{AlertKind, Severity};

/// Number of browsers that try to render a page, one after the other. A second browser is used only if the first fails, or the page
/// crashes in it.
const TRIES_MAX: u32 = 2;

/// A page as a browser showed it.
struct ShownPage {
    load: LoadResult,
    behaviors: BehaviorResults,
    content: PageContent,
    document: Option<String>,
    view: Option<Bytes>,
    thumbnail: Option<Bytes>,
    report: PageReport,
}

/// The reason why no browser showed a page.
enum RenderFailure {
    /// No browser was available, or the browser failed.
    Browser(BrowserError),
    /// The page reached a limit at once.
    Cut(PageCut),
    /// A lane panicked under a behaviour.
    Lane(LanePanic),
}

impl CrawlVisit<'_> {
    /// Renders the page of this visit, and archives its requests, text and pictures.
    pub(super) async fn render_page(&self, page: PageToRender<'_>) -> Result<Rendering, Halt> {
        let network = &self.context.network;
        let settings = &page.settings.browser;
        let requests = PageRequests::new(self, page.exchange, settings.requests_per_server);
        let requests = Arc::new(requests);
        let cut = network.fetchers.base().abort_handle();
        let showing = Box::pin(self.show(page, &requests));
        let shown = self.flight.aside(cut.unless_made(showing)).await;
        requests.on_board.begins(PageActivity::Archiving);
        let archived = requests.finish().await?;
        let mut rendering = Rendering {
            archived,
            ..Rendering::default()
        };
        let board = &network.browsers.board;
        match shown.ok_or(Halt::Stopped)? {
            Ok(mut shown) => {
                self.context.clear(AlertKind::Browser, "");
                rendering.annotations.push(shown.annotation());
                rendering.annotations.extend(shown.web_sockets());
                rendering.annotations.extend(shown.requests_past_limit());
                board.count(|figures| shown.count_in(figures));
                let runs = shown.behaviors.runs.iter();
                rendering
                    .annotations
                    .extend(runs.map(BehaviorRun::annotation));
                self.context.failures(&shown.behaviors.failures)?;
                rendering.links = shown.links();
                rendering.document = shown.document_to_compare();
                // ARC files have no records about pages.
                if shown.has_document() && !self.writes_arc() {
                    rendering.records = self.records_about(page, &shown);
                }
                if !shown.has_document() {
                    rendering.result = RenderResult::NotShown;
                }
            }
            Err(RenderFailure::Cut(cut)) => {
                rendering.result = RenderResult::NotShown;
                board.count(|figures| count_cut(cut, figures));
                let cut = cut_name(cut);
                rendering.annotations.push(format!("notRendered:{cut}"));
            }
            Err(RenderFailure::Lane(panic)) => return Err(panic.into()),
            Err(RenderFailure::Browser(error)) => {
                rendering.result = RenderResult::NotShown;
                board.count(|figures| figures.count_not_rendered(|by| &mut by.browser));
                let problem = opilio_stacks::chain(&error);
                let message = format!("pages are archived without rendering: {problem}");
                self.context
                    .raise(AlertKind::Browser, "", Severity::Warning, &message);
                let kind = error_name(&error);
                rendering.annotations.push(format!("notRendered:{kind}"));
            }
        }
        Ok(rendering)
    }

    /// Shows the page in a browser. If the browser fails, or the page crashes, another browser tries once more.
    async fn show(
        &self,
        page: PageToRender<'_>,
        requests: &Arc<PageRequests>,
    ) -> Result<ShownPage, RenderFailure> {
        let pool = self.context.network.browsers.pool().await;
        let pool = pool.map_err(RenderFailure::Browser)?;
        let board = &self.context.network.browsers.board;
        let mut tries = 1;
        loop {
            requests.begin();
            let shown = self.show_in(&pool, page, requests).await;
            if let Err(RenderFailure::Browser(
                BrowserError::Crashed { .. } | BrowserError::Hung { .. },
            )) = shown
            {
                board.count(|figures| figures.crashes += 1);
            }
            match shown {
                Err(RenderFailure::Browser(error)) if tries < TRIES_MAX && may_pass(&error) => {
                    tracing::debug!(uri = self.uri(), %error, "another browser tries the page");
                }
                // The machine may have lacked memory temporarily.
                Err(RenderFailure::Cut(cut @ PageCut::Crashed)) if tries < TRIES_MAX => {
                    board.count(|figures| figures.crashes += 1);
                    tracing::debug!(uri = self.uri(), %cut, "another browser tries the page");
                }
                done => return done,
            }
            tries += 1;
        }
    }

    async fn show_in(
        &self,
        pool: &BrowserPool,
        page: PageToRender<'_>,
        requests: &Arc<PageRequests>,
    ) -> Result<ShownPage, RenderFailure> {
        let on_board = &requests.on_board;
        on_board.begins(PageActivity::Waiting);
        let network = Arc::new(PageNetwork(Arc::downgrade(requests)));
        let settings = page_settings(&page.settings.browser);
        let session = PageSession::open_for(pool, network, settings).await;
        let mut session = session.map_err(RenderFailure::Browser)?;
        on_board.begins(PageActivity::Loading);
        let seen = self.load_and_take(&mut session, page, on_board).await;
        let report = session.close().await;
        let board = &self.context.network.browsers.board;
        board.count(|figures| figures.count_closed(&report));
        match seen {
            Ok(seen) => Ok(ShownPage { report, ..seen }),
            Err(BehaveError::Page(PageError::Cut(cut))) => {
                // A page without actions left still has time for its links and text. Then `cut` is the limit that ended it.
                let reached = report.cut.filter(|it| *it != PageCut::Steps);
                Err(RenderFailure::Cut(reached.unwrap_or(cut)))
            }
            Err(BehaveError::Page(PageError::Browser(error))) => Err(RenderFailure::Browser(error)),
            Err(BehaveError::Page(_)) => Err(RenderFailure::Browser(BrowserError::Closed)),
            Err(BehaveError::Lane(panic)) => Err(RenderFailure::Lane(panic)),
        }
    }

    /// Loads the page, runs the behaviours on it, and takes its document, links, text and pictures. The report is that of a page
    /// that has just been opened.
    async fn load_and_take(
        &self,
        session: &mut PageSession,
        page: PageToRender<'_>,
        on_board: &PageOnBoard,
    ) -> Result<ShownPage, BehaveError> {
        let load = match session.load(self.uri()).await {
            // The page is taken in its present state.
            Err(PageError::Cut(PageCut::Time)) => LoadResult::NotIdle,
            load => load?,
        };
        let mut shown = ShownPage {
            load,
            behaviors: BehaviorResults::default(),
            content: PageContent::default(),
            document: None,
            view: None,
            thumbnail: None,
            report: PageReport::default(),
        };
        if !shown.has_document() {
            return Ok(shown);
        }
        shown.behaviors = self.behave(session, page, on_board).await?;
        on_board.begins(PageActivity::Extraction);
        shown.content = session.extract().await?;
        shown.document = unless_refused(session.document().await)?.flatten();
        if page.settings.browser.screenshots {
            // A page without a picture can still have links and text.
            shown.view = match shown.behaviors.picture.take() {
                Some(picture) => Some(picture),
                None => unless_refused(session.screenshot(ScreenshotArea::View).await)?,
            };
            let thumbnail = session.screenshot(ScreenshotArea::Thumbnail).await;
            shown.thumbnail = unless_refused(thumbnail)?;
        }
        Ok(shown)
    }

    /// Returns `true` if the archive has ARC files.
    pub(super) fn writes_arc(&self) -> bool {
        self.pipeline.profile.archive.format == ArchiveFormat::Arc
    }

    fn uri(&self) -> &str {
        self.pipeline.issue.uri.as_str()
    }

    /// Returns the records about the rendered page, as Browsertrix writes them: `urn:pageinfo:` and, by the settings, pictures and
    /// text.
    fn records_about(&self, page: PageToRender<'_>, shown: &ShownPage) -> Vec<Record> {
        let (uri, date) = (self.uri(), records::date_of(page.exchange));
        let id = RecordId::random().0.to_string();
        let facts = records::page_info(uri, date, &id, &shown.report, &shown.behaviors.runs);
        let mut parts = vec![("pageinfo", "application/json", Bytes::from(facts))];
        parts.extend(shown.view.clone().map(|view| ("view", "image/png", view)));
        let thumbnail = shown.thumbnail.clone();
        parts.extend(thumbnail.map(|picture| ("thumbnail", "image/jpeg", picture)));
        if page.settings.browser.text {
            parts.push(("text", "text/plain", shown.content.text.clone().into()));
        }
        let records: Vec<Record> = parts
            .into_iter()
            .map(|(kind, media_type, content)| Record {
                extra: vec![
                    ("WARC-Resource-Type".to_owned(), kind.to_owned()),
                    ("WARC-Page-ID".to_owned(), id.clone()),
                ],
                ..Record::resource(
                    RecordId::random(),
                    date,
                    format!("urn:{kind}:{uri}"),
                    media_type,
                    content.into(),
                )
            })
            .collect();
        records::in_passing(records, &self.pipeline.issue.uri)
    }
}

/// Returns a part of a page, or `None` if the page does not provide it.
fn unless_refused<T>(part: Result<T, PageError>) -> Result<Option<T>, PageError> {
    match part {
        Ok(part) => Ok(Some(part)),
        Err(PageError::Browser(BrowserError::Refused { message, .. })) => {
            tracing::debug!(message, "a part of a page is missing");
            Ok(None)
        }
        Err(PageError::Cut(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl ShownPage {
    /// Returns `true` if the browser showed a document.
    fn has_document(&self) -> bool {
        matches!(self.load, LoadResult::Idle | LoadResult::NotIdle)
    }

    /// Returns the document, if the page was loaded completely. A page that was cut shows only a part, which differs at each visit.
    fn document_to_compare(&mut self) -> Option<Bytes> {
        let is_whole = matches!(self.report.cut, None | Some(PageCut::Steps));
        self.document.take().filter(|_| is_whole).map(Bytes::from)
    }

    fn annotation(&self) -> String {
        match (&self.load, self.report.cut) {
            (LoadResult::Failed(error), _) => format!("notRendered:{error}"),
            (LoadResult::Download, _) => "notRendered:download".to_owned(),
            (_, Some(cut)) => format!("rendered:{}", cut_name(cut)),
            (LoadResult::NotIdle, None) => "rendered:notIdle".to_owned(),
            (LoadResult::Idle, None) => "rendered".to_owned(),
        }
    }

    /// Returns the annotation of a page that tried to open WebSockets, which are refused. It may show less than in a visitor's
    /// browser.
    fn web_sockets(&self) -> Option<String> {
        let resources = self.report.resources.iter();
        let refused = resources
            .filter(|it| records::is_web_socket(&it.uri))
            .count();
        (refused > 0).then(|| format!("webSocketsRefused:{refused}"))
    }

    /// Returns the annotation of a page with requests beyond its limits. It may lack parts that visitors see.
    fn requests_past_limit(&self) -> Option<String> {
        let refused = self.report.requests_refused;
        (refused > 0).then(|| format!("pageRequestsRefused:{refused}"))
    }

    fn count_in(&self, figures: &mut RenderFigures) {
        if !self.has_document() {
            return figures.count_not_rendered(|by| &mut by.no_page);
        }
        figures.rendered += 1;
        if self.report.cut.is_some_and(is_crash) {
            figures.cut_by_crash += 1;
            figures.crashes += 1;
            return;
        }
        let runs = &self.behaviors.runs;
        let cut = match (&self.load, self.report.cut) {
            (LoadResult::NotIdle, _) | (_, Some(PageCut::Time)) => &mut figures.cut_by_time,
            (_, Some(PageCut::Steps)) => &mut figures.cut_by_steps,
            _ if runs.iter().any(|run| run.end == BehaviorEnd::Steps) => &mut figures.cut_by_steps,
            _ if self.report.requests_refused > 0 => &mut figures.cut_by_requests,
            _ => return,
        };
        *cut += 1;
    }

    /// Returns the links of the page, and the URIs that it tried to open in another window, to download, or to navigate to.
    fn links(&self) -> Vec<Outlink> {
        let of_document = self.content.links.iter().map(|link| {
            let RenderedLink {
                uri,
                element,
                attribute,
                ..
            } = link;
            let hop = match element.as_str() {
                "a" | "area" => Hop::Link,
                _ => Hop::Embed,
            };
            (uri.as_str(), hop, format!("{element}/@{attribute}"))
        });
        let wanted = [
            ("window.open", &self.report.pop_ups),
            ("download", &self.report.downloads),
            ("location", &self.report.departures),
        ];
        let wanted = wanted.into_iter().flat_map(|(context, uris)| {
            let link = move |uri: &String| (uri.clone(), context.to_owned());
            uris.iter().map(link)
        });
        let wanted: Vec<(String, String)> = wanted.collect();
        let wanted = wanted
            .iter()
            .map(|(uri, context)| (uri.as_str(), Hop::Link, context.clone()));
        of_document
            .chain(wanted)
            .filter_map(|(uri, hop, context)| {
                Some(Outlink {
                    uri: Uri::parse(uri).ok()?,
                    hop,
                    context,
                    attributes: Vec::new(),
                    modified: None,
                })
            })
            .collect()
    }
}

/// Returns `true` if another browser may succeed. A browser that does not start, or has no port, may lack processes or descriptors
/// only temporarily.
fn may_pass(error: &BrowserError) -> bool {
    matches!(
        error,
        BrowserError::Crashed { .. }
            | BrowserError::Hung { .. }
            | BrowserError::Refused { .. }
            | BrowserError::Answer { .. }
            | BrowserError::DoesNotStart { .. }
            | BrowserError::ProxyPort { .. }
    )
}

fn error_name(error: &BrowserError) -> &'static str {
    match error {
        BrowserError::NotFound { .. } | BrowserError::NotChromium { .. } => "noChromium",
        BrowserError::TooOld { .. } => "oldChromium",
        BrowserError::SandboxRefused { .. } => "sandboxRefused",
        BrowserError::DoesNotStart { .. } => "doesNotStart",
        BrowserError::Crashed { .. } => "crashed",
        BrowserError::Hung { .. } => "hung",
        BrowserError::ProxyNotUsed { .. } => "proxyNotUsed",
        _ => "browserFailed",
    }
}

/// Counts a page that reached a limit before its links and text were taken.
fn count_cut(cut: PageCut, figures: &mut RenderFigures) {
    figures.count_not_rendered(|by| match cut {
        PageCut::Time | PageCut::Steps => &mut by.time,
        PageCut::Memory => &mut by.memory,
        PageCut::Crashed => &mut by.page_crashed,
        PageCut::Unresponsive => &mut by.unresponsive,
    });
    figures.crashes += u64::from(is_crash(cut));
}

/// Returns `true` if the page itself has crashed. Otherwise it has only reached a limit on time or actions.
fn is_crash(cut: PageCut) -> bool {
    matches!(
        cut,
        PageCut::Memory | PageCut::Crashed | PageCut::Unresponsive
    )
}

fn cut_name(cut: PageCut) -> &'static str {
    match cut {
        PageCut::Time => "time",
        PageCut::Memory => "memory",
        PageCut::Steps => "steps",
        PageCut::Crashed => "pageCrashed",
        PageCut::Unresponsive => "unresponsive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a page with this result of loading, and with a behaviour that ended in this way.
    fn shown(load: LoadResult, end: Option<BehaviorEnd>, report: PageReport) -> ShownPage {
        let runs = end.into_iter().map(|end| BehaviorRun {
            name: "autoscroll".to_owned(),
            version: "1.0.0".to_owned(),
            steps: 1,
            end,
        });
        ShownPage {
            load,
            behaviors: BehaviorResults {
                runs: runs.collect(),
                ..BehaviorResults::default()
            },
            content: PageContent::default(),
            document: None,
            view: None,
            thumbnail: None,
            report,
        }
    }

    fn cut_by(cut: PageCut) -> PageReport {
        PageReport {
            cut: Some(cut),
            ..PageReport::default()
        }
    }

    #[track_caller]
    fn check(shown: &ShownPage, outcome: &str) {
        let mut figures = RenderFigures::default();
        shown.count_in(&mut figures);
        let outcomes = figures.outcomes();
        let counted: Vec<_> = outcomes.iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [&(outcome, 1)]);
    }

    #[test]
    fn a_page_is_counted_by_the_limit_that_it_reached() {
        let (whole, idle) = (PageReport::default(), LoadResult::Idle);
        let past_limit = PageReport {
            requests_refused: 2,
            ..PageReport::default()
        };
        let steps = Some(BehaviorEnd::Steps);
        let of =
            |load: &LoadResult, end, report: &PageReport| shown(load.clone(), end, report.clone());
        check(&of(&idle, Some(BehaviorEnd::Finished), &whole), "complete");
        check(&of(&LoadResult::NotIdle, steps, &whole), "cut-by-time");
        check(&of(&idle, steps, &cut_by(PageCut::Time)), "cut-by-time");
        check(&of(&idle, steps, &past_limit), "cut-by-steps");
        check(&of(&idle, None, &cut_by(PageCut::Steps)), "cut-by-steps");
        check(&of(&idle, None, &past_limit), "cut-by-requests");
        check(
            &of(&LoadResult::NotIdle, None, &cut_by(PageCut::Memory)),
            "cut-by-crash",
        );
        check(&of(&LoadResult::Download, None, &whole), "no-page");
        let failed = LoadResult::Failed("net::ERR_EMPTY_RESPONSE".to_owned());
        check(&of(&failed, None, &whole), "no-page");
    }

    #[test]
    fn each_browser_error_has_an_annotation_and_temporary_errors_are_retried() {
        let text = String::new;
        let path = std::path::PathBuf::new;
        let cause = || std::io::Error::other("a cause");
        let (looked, version, during) = (text(), text(), text());
        let after = std::time::Duration::ZERO;
        for (error, name, is_tried_again) in [
            (BrowserError::NotFound { looked }, "noChromium", false),
            (
                BrowserError::TooOld {
                    path: path(),
                    version,
                    version_min: 120,
                },
                "oldChromium",
                false,
            ),
            (
                BrowserError::DoesNotStart {
                    path: path(),
                    status: text(),
                    stderr: text(),
                },
                "doesNotStart",
                true,
            ),
            (
                BrowserError::SandboxRefused {
                    path: path(),
                    stderr: text(),
                },
                "sandboxRefused",
                false,
            ),
            (
                BrowserError::Crashed {
                    during: text(),
                    status: text(),
                    stderr: text(),
                },
                "crashed",
                true,
            ),
            (BrowserError::Hung { during, after }, "hung", true),
            (
                BrowserError::ProxyNotUsed { error: text() },
                "proxyNotUsed",
                false,
            ),
            (
                BrowserError::ProxyPort { source: cause() },
                "browserFailed",
                true,
            ),
            (
                BrowserError::Folder {
                    folder: path(),
                    source: cause(),
                },
                "browserFailed",
                false,
            ),
        ] {
            assert_eq!(error_name(&error), name, "{error}");
            assert_eq!(may_pass(&error), is_tried_again, "{error}");
        }
    }

    #[test]
    fn crashes_are_counted_before_and_after_links_are_taken() {
        for (cut, crashes) in [
            (PageCut::Time, 0),
            (PageCut::Steps, 0),
            (PageCut::Memory, 1),
            (PageCut::Crashed, 1),
            (PageCut::Unresponsive, 1),
        ] {
            let mut before = RenderFigures::default();
            count_cut(cut, &mut before);
            let mut after = RenderFigures::default();
            shown(LoadResult::Idle, None, cut_by(cut)).count_in(&mut after);
            assert_eq!((before.not_rendered, before.crashes), (1, crashes), "{cut}");
            assert_eq!((after.rendered, after.crashes), (1, crashes), "{cut}");
        }
    }

    #[test]
    fn requests_past_the_limit_of_a_page_are_annotated() {
        let report = PageReport {
            requests_refused: 2,
            ..PageReport::default()
        };
        let page = shown(LoadResult::Idle, None, report);
        assert_eq!(
            page.requests_past_limit().as_deref(),
            Some("pageRequestsRefused:2")
        );
        let page = shown(LoadResult::Idle, None, PageReport::default());
        assert_eq!(page.requests_past_limit(), None);
    }
}
