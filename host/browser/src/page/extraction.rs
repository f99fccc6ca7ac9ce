//! Links, text and pictures of a rendered page.

use bytes::Bytes;
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PageSession, field, scripts};
use crate::error::{BrowserError, PageError};

/// Maximum links of a page. Further ones are counted and dropped.
const LINKS_MAX: usize = 20_000;

/// Maximum bytes of a link. Longer links are counted and dropped.
const LINK_BYTES_MAX: usize = 16 * 1024;

/// Width of a thumbnail in pixels, as Browsertrix has it.
const THUMBNAIL_WIDTH: f64 = 640.0;

/// Quality of a thumbnail (JPEG, 0 to 100).
const THUMBNAIL_QUALITY: u32 = 75;

/// Maximum height of a picture of a whole page in CSS pixels: Chromium's limit of a surface.
const PICTURE_HEIGHT_MAX: f64 = 16_384.0;

/// Content of a rendered page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageContent {
    /// URI, with changes that scripts made.
    pub uri: String,
    /// Title.
    pub title: String,
    /// Links of all frames, in their order.
    pub links: Vec<RenderedLink>,
    /// Number of links beyond the limits of number and length.
    pub links_dropped: u64,
    /// Visible text, first of the main frame.
    pub text: String,
    /// `true` if the text was cut at the limit.
    pub is_text_cut: bool,
}

/// A link in a rendered document, resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RenderedLink {
    /// Absolute URI.
    pub uri: String,
    /// Element, such as `a` or `img`.
    pub element: String,
    /// Attribute, such as `href` or `srcset`.
    pub attribute: String,
    /// URI of the document that contains the link.
    pub document: String,
}

/// The part of a page that a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenshotArea {
    /// The window, as PNG.
    View,
    /// The whole document, as PNG, as far as Chromium can draw it.
    Document,
    /// The window, scaled down, as JPEG.
    Thumbnail,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameContent {
    uri: String,
    title: String,
    links: Vec<FrameLink>,
    dropped: u64,
    text: String,
    is_text_cut: bool,
}

#[derive(Deserialize)]
struct FrameLink {
    uri: String,
    element: String,
    attribute: String,
}

impl PageSession {
    /// Returns links and visible text of all frames. Extraction has its own time limit, so that it also works for a page that was
    /// cut by its time limit. Closed shadow roots are not read.
    ///
    /// # Errors
    /// The page does not answer any longer, or the browser failed.
    pub async fn extract(&mut self) -> Result<PageContent, PageError> {
        self.begin_extraction();
        let mut content = PageContent::default();
        for (number, frame) in self.frames().await?.iter().enumerate() {
            let left = self.settings.text_bytes_max - content.text.len();
            let links_left = LINKS_MAX.saturating_sub(content.links.len());
            let arguments = [json!(links_left), json!(LINK_BYTES_MAX), json!(left)];
            let found = self.run(frame, scripts::EXTRACT, &arguments).await?;
            let found = found.and_then(|it| serde_json::from_value::<FrameContent>(it).ok());
            let Some(found) = found else { continue };
            content.add(found, number == 0, self.settings.text_bytes_max);
        }
        Ok(content)
    }

    /// Returns the document of the main frame as HTML, for a comparison with another visit: with open shadow roots, and without
    /// scripts, styles and parts that these change constantly. Runs of blanks become one. `None` if the document has more
    /// characters than [`document_characters_max`](crate::BrowserSettings::document_characters_max), or its script failed.
    ///
    /// # Errors
    /// The page does not answer any longer, or the browser failed.
    pub async fn document(&mut self) -> Result<Option<String>, PageError> {
        self.begin_extraction();
        let frame = self.main_frame().await?;
        let max = json!(self.settings.document_characters_max);
        let document = self.run(&frame, scripts::DOCUMENT, &[max]).await?;
        Ok(document.and_then(|it| it.as_str().map(str::to_owned)))
    }

    /// Takes a picture, within the time for extraction.
    ///
    /// # Errors
    /// The page does not answer any longer, or the browser failed.
    pub async fn screenshot(&mut self, area: ScreenshotArea) -> Result<Bytes, PageError> {
        self.begin_extraction();
        self.take_picture(area).await
    }

    pub(super) async fn take_picture(&mut self, area: ScreenshotArea) -> Result<Bytes, PageError> {
        let session = self.session.clone();
        let viewport = self.settings.viewport;
        let (width, height) = (f64::from(viewport.width), f64::from(viewport.height));
        let params = match area {
            ScreenshotArea::View => json!({"format": "png"}),
            ScreenshotArea::Document => {
                let method = "Page.getLayoutMetrics";
                let metrics = self.call(&session, method, json!({})).await?;
                let whole = metrics["cssContentSize"]["height"].as_f64();
                let height = whole.unwrap_or(height).min(PICTURE_HEIGHT_MAX);
                json!({
                    "format": "png",
                    "captureBeyondViewport": true,
                    "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
                })
            }
            ScreenshotArea::Thumbnail => {
                let scale = (THUMBNAIL_WIDTH / (width * viewport.scale)).min(1.0);
                let metrics = self
                    .call(&session, "Page.getLayoutMetrics", json!({}))
                    .await?;
                let shown = &metrics["cssVisualViewport"];
                json!({
                    "format": "jpeg",
                    "quality": THUMBNAIL_QUALITY,
                    "clip": {"x": shown["pageX"], "y": shown["pageY"], "width": width, "height": height, "scale": scale},
                })
            }
        };
        let method = "Page.captureScreenshot";
        let answer = self.call(&session, method, params).await?;
        let data = field(method, &answer, "data")?;
        let picture = BASE64.decode(data.as_bytes());
        let picture = picture.map_err(|problem| BrowserError::Answer {
            method: method.to_owned(),
            field: format!("data ({problem})"),
        })?;
        Ok(picture.into())
    }
}

impl PageContent {
    fn add(&mut self, frame: FrameContent, is_main: bool, text_bytes_max: usize) {
        let document = frame.uri;
        let links = frame.links.into_iter().map(|link| RenderedLink {
            uri: link.uri,
            element: link.element,
            attribute: link.attribute,
            document: document.clone(),
        });
        self.links.extend(links);
        self.links_dropped += frame.dropped;
        if !self.text.is_empty() && !frame.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&frame.text);
        self.is_text_cut |= frame.is_text_cut || self.text.len() > text_bytes_max;
        self.text
            .truncate(self.text.floor_char_boundary(text_bytes_max));
        if is_main {
            self.uri = document;
            self.title = frame.title;
        }
    }
}
