//! Rendering of a page in a browser: the choice of pages, and the use of the rendered document and its links. The driver has the
//! browser.
//!
//! A page is rendered after its post-fetch filters and before its comparison with the last version. So strippers and change
//! evaluators see the document that the browser showed. Extractors and archive filters see the plain document.

use std::collections::HashSet;

use opilio_profile::Render;
use opilio_uri::{Hop, Uri};

use crate::behaviors::behaviors;
use crate::capture::Body;
use crate::driver::{Driver, Lane, PageToRender, RenderResult, Rendering, Step};
use crate::extraction::Outlink;
use crate::pipeline::Pipeline;
use crate::plugin_view::PluginMemory;
use crate::reading::{self, Reading};
use crate::response::Response;

/// Media types that browsers show as pages with scripts.
const PAGE_TYPES: [&str; 2] = ["text/html", "application/xhtml+xml"];

impl Pipeline {
    /// Returns `true` if the page must be fetched with its body, because a browser renders it. A rendered page may differ although
    /// its document is unchanged. If render filters did not select the page before, they would give the same answer for the
    /// unchanged document.
    pub(crate) fn needs_body_for_browser(&self) -> bool {
        let record = &self.issue.record;
        if !PAGE_TYPES.contains(&record.media_type.as_str()) {
            return false;
        }
        let (settings, _) = self.for_response(&record.media_type);
        match settings.browser.render {
            Render::Never => false,
            Render::Auto => record.digests.is_of_rendering(),
            Render::Always => true,
        }
    }
}

/// Returns the setting that selects pages to render, if there is a browser and it can show this response as a page.
pub(crate) fn wanted<D: Driver>(pipeline: &Pipeline, driver: &D, response: &Response) -> Render {
    match driver.has_browser() && is_page(pipeline, response) {
        true => response.settings.browser.render,
        false => Render::Never,
    }
}

/// Renders the page if it is to be rendered, and reads it to its end.
pub(crate) async fn render<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    response: &Response,
    memory: &PluginMemory,
    mut reading: Reading,
) -> Result<(Reading, Rendering), D::Error> {
    if reading.to_render.is_none() {
        return Ok((reading, Rendering::default()));
    }
    driver.step(Step::Render);
    let visit = response.plugin_visit(pipeline, memory);
    let behaviors = behaviors(driver, &response.stacks.behave, &mut reading, &visit).await?;
    let page = PageToRender {
        exchange: &response.exchange,
        settings: &response.settings,
        behaviors: &behaviors,
        visit: &visit,
    };
    let mut rendering = driver.render(page).await?;
    driver.step(Step::Read);
    reading.annotations.append(&mut rendering.annotations);
    let (result, document) = (rendering.result, rendering.document.take());
    let read = move || reading.after_rendering(document);
    let mut reading = driver.run(Lane::Document, read).await?;
    if result == RenderResult::NotShown {
        // Links are missing, so the next visit fetches the page with its body, even if it is unchanged.
        reading.extracted_by = Some(reading::NOT_EXTRACTED);
    }
    Ok((reading, rendering))
}

impl Rendering {
    /// Merges the links of the rendered page into those of the plain page.
    pub(crate) fn add_links(&mut self, reading: &mut Reading, links_max: usize) {
        let links = &mut reading.extracted.links;
        merge(links, std::mem::take(&mut self.links), links_max);
        links.retain(|link| !is_requisite(link.hop) || !self.archived.contains(&link.uri));
    }
}

/// Returns `true` if the response is a whole page that a browser can show.
fn is_page(pipeline: &Pipeline, response: &Response) -> bool {
    let media_type = response.head.media_type().unwrap_or_default();
    response.body == Body::Fetched
        && response.head.status == 200
        && response.exchange.failure.is_none()
        && pipeline.issue.uri.is_http()
        && !pipeline.is_prerequisite()
        && PAGE_TYPES.contains(&media_type.as_str())
}

/// Returns `true` if the page itself requests the target of such a link when it is shown, if it uses the target at all.
fn is_requisite(hop: Hop) -> bool {
    matches!(hop, Hop::Embed | Hop::Speculative | Hop::Inferred)
}

/// Adds links that the page does not have yet, up to `links_max` in all.
fn merge(links: &mut Vec<Outlink>, more: Vec<Outlink>, links_max: usize) {
    let mut known: HashSet<(Uri, char)> = links
        .iter()
        .map(|link| (link.uri.clone(), link.hop.letter()))
        .collect();
    for link in more {
        if links.len() >= links_max {
            return;
        }
        if known.insert((link.uri.clone(), link.hop.letter())) {
            links.push(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(uri: &str, hop: Hop, context: &str) -> Outlink {
        Outlink {
            uri: Uri::parse(uri).unwrap(),
            hop,
            context: context.to_owned(),
            attributes: Vec::new(),
            modified: None,
        }
    }

    #[test]
    fn links_of_the_plain_page_come_first_and_once() {
        let mut links = vec![link("http://a.org/1", Hop::Link, "plain")];
        let rendered = ["http://a.org/1", "http://a.org/2", "http://a.org/3"];
        let rendered = rendered.map(|uri| link(uri, Hop::Link, "rendered"));
        merge(&mut links, rendered.to_vec(), 2);
        let merged: Vec<_> = links
            .iter()
            .map(|link| (link.uri.as_str(), link.context.as_str()))
            .collect();
        let expected = [("http://a.org/1", "plain"), ("http://a.org/2", "rendered")];
        assert_eq!(merged, expected);
    }
}
