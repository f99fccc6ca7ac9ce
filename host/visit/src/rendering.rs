//! Rendering of a page in a browser: which pages are rendered, and what becomes of their links. The driver has the browser.

use std::collections::HashSet;

use opilio_profile::{EffectiveSettings, Render};
use opilio_uri::{Hop, Uri};

use crate::capture::Body;
use crate::driver::{Driver, PageToRender, Step};
use crate::extraction::FoundLink;
use crate::pipeline::Pipeline;
use crate::reading::Reading;
use crate::response::Response;

/// Media types that browsers show as pages with scripts.
const PAGE_TYPES: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// Returns `true` if pages of these settings are rendered, as far as that depends on settings.
#[must_use]
pub fn renders(settings: &EffectiveSettings) -> bool {
    settings.browser.render == Render::Always
}

/// Renders the page if its settings ask for that, and merges its links into those of the plain page.
pub(crate) async fn render<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    response: &Response,
    reading: &mut Reading,
    annotations: &mut Vec<String>,
) -> Result<(), D::Error> {
    if !renders(&response.settings) || !is_page(pipeline, response) {
        return Ok(());
    }
    driver.step(Step::Render);
    let page = PageToRender {
        exchange: &response.exchange,
        settings: &response.settings,
        is_archived: reading.archive,
    };
    let rendering = driver.render(page).await?;
    driver.step(Step::Read);
    annotations.extend(rendering.annotations);
    let links = &mut reading.extracted.links;
    merge(links, rendering.links, pipeline.profile.limits.outlinks);
    links.retain(|link| !is_requisite(link.hop) || !rendering.archived.contains(&link.uri));
    Ok(())
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

/// Returns `true` if the target of such a link is requested by the page itself, if it is used at all.
fn is_requisite(hop: Hop) -> bool {
    matches!(hop, Hop::Embed | Hop::Speculative | Hop::Inferred)
}

/// Adds links that the page does not have yet, up to `links_max` in all.
fn merge(links: &mut Vec<FoundLink>, more: Vec<FoundLink>, links_max: usize) {
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

    fn link(uri: &str, hop: Hop, context: &str) -> FoundLink {
        FoundLink {
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
