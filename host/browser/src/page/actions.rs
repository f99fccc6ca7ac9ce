//! The view that behaviours have of a page, and the actions that they can take.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::extraction::ScreenshotArea;
use super::{PageSession, scripts};
use crate::error::{PageCut, PageError};

/// Longest result of a script, in characters of JSON.
const SCRIPT_RESULT_CHARS_MAX: usize = 1024 * 1024;

/// A page as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageView {
    /// URI, with changes that scripts made.
    pub uri: String,
    /// Title.
    pub title: String,
    /// Elements, those of open shadow roots included.
    pub elements: u64,
    /// Characters of visible text (UTF-16).
    pub text_length: u64,
    /// Height of the document in CSS pixels.
    pub scroll_height: u64,
    /// Pixels above the visible part.
    pub scroll_top: u64,
    /// Elements that match each selector, in all frames; `None`: the selector is invalid.
    pub counts: Vec<Option<u64>>,
    /// Requests in flight.
    pub requests_in_flight: usize,
    /// Time since the page was opened.
    pub time_used: Duration,
    /// Actions that were carried out.
    pub steps: u32,
}

/// Something to do to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageAction {
    /// Scrolls the window.
    Scroll(ScrollTarget),
    /// Clicks the first element that matches a selector, in the first frame that has one.
    Click {
        /// CSS selector.
        selector: String,
    },
    /// Waits until an element matches, in the page's own frame.
    WaitForSelector {
        /// CSS selector.
        selector: String,
        /// Longest wait.
        time_max: Duration,
    },
    /// Waits until the network is idle.
    WaitForNetwork {
        /// Longest wait.
        time_max: Duration,
    },
    /// Runs a script among the page's own: the body of an async function, whose result is returned as JSON. It may take
    /// three quarters of `command_time_max`.
    Evaluate {
        /// JavaScript, such as `return document.title`.
        script: String,
    },
    /// Takes a picture.
    Screenshot(ScreenshotArea),
}

/// A place to scroll to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrollTarget {
    /// The beginning of the document.
    Top,
    /// The end of the document as it is now.
    Bottom,
    /// So many CSS pixels further; negative: back.
    By(i32),
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionResult {
    /// It is done.
    Done,
    /// No element matches the selector, or none did in time.
    NoElement,
    /// The selector is invalid.
    InvalidSelector,
    /// The network did not become idle in time.
    NotIdle,
    /// The script's result as JSON.
    Value(String),
    /// The script's exception.
    Exception(String),
    /// A picture.
    Picture(Bytes),
}

/// Longest text of an exception.
const EXCEPTION_CHARS_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameView {
    uri: String,
    title: String,
    elements: u64,
    text: u64,
    scroll_height: u64,
    scroll_top: u64,
    counts: Vec<Option<u64>>,
}

impl PageSession {
    /// The page as it is now, with the number of elements for each selector.
    ///
    /// # Errors
    /// The page reached a limit, or the browser failed.
    pub async fn view(&mut self, selectors: &[String]) -> Result<PageView, PageError> {
        let mut view = PageView {
            counts: vec![Some(0); selectors.len()],
            requests_in_flight: self.requests_in_flight(),
            time_used: self.opened.elapsed(),
            steps: self.steps,
            ..PageView::default()
        };
        for (number, frame) in self.frames().await?.iter().enumerate() {
            let seen = self.run(frame, scripts::VIEW, &[json!(selectors)]).await?;
            let seen = seen.and_then(|it| serde_json::from_value::<FrameView>(it).ok());
            let Some(seen) = seen else { continue };
            for (count, more) in view.counts.iter_mut().zip(seen.counts) {
                *count = count.zip(more).map(|(count, more)| count + more);
            }
            view.elements += seen.elements;
            view.text_length += seen.text;
            if number == 0 {
                view.uri = seen.uri;
                view.title = seen.title;
                view.scroll_height = seen.scroll_height;
                view.scroll_top = seen.scroll_top;
            }
        }
        Ok(view)
    }

    /// Carries out an action.
    ///
    /// # Errors
    /// The page reached a limit, such as that of actions, or the browser failed.
    pub async fn act(&mut self, action: &PageAction) -> Result<ActionResult, PageError> {
        if self.steps >= self.settings.steps_max {
            return Err(self.reach(PageCut::Steps));
        }
        self.steps += 1;
        match action {
            PageAction::Scroll(target) => self.scroll(*target).await,
            PageAction::Click { selector } => self.click(selector).await,
            PageAction::WaitForSelector { selector, time_max } => {
                self.wait_for_selector(selector, *time_max).await
            }
            PageAction::WaitForNetwork { time_max } => self.wait_for_network(*time_max).await,
            PageAction::Evaluate { script } => self.evaluate(script).await,
            PageAction::Screenshot(area) => {
                Ok(ActionResult::Picture(self.take_picture(*area).await?))
            }
        }
    }

    async fn scroll(&mut self, target: ScrollTarget) -> Result<ActionResult, PageError> {
        let (name, pixels) = match target {
            ScrollTarget::Top => ("top", 0),
            ScrollTarget::Bottom => ("bottom", 0),
            ScrollTarget::By(pixels) => ("by", pixels),
        };
        let frame = self.main_frame().await?;
        let arguments = [json!(name), json!(pixels)];
        self.run(&frame, scripts::SCROLL, &arguments).await?;
        Ok(ActionResult::Done)
    }

    async fn click(&mut self, selector: &str) -> Result<ActionResult, PageError> {
        for frame in self.frames().await? {
            let clicked = self.run(&frame, scripts::CLICK, &[json!(selector)]).await?;
            match clicked.as_ref().and_then(Value::as_str) {
                Some("clicked") => return Ok(ActionResult::Done),
                Some("invalid") => return Ok(ActionResult::InvalidSelector),
                _ => {}
            }
        }
        Ok(ActionResult::NoElement)
    }

    async fn wait_for_selector(
        &mut self,
        selector: &str,
        time_max: Duration,
    ) -> Result<ActionResult, PageError> {
        let end = Instant::now() + time_max;
        loop {
            let frame = self.main_frame().await?;
            let left = end.saturating_duration_since(Instant::now());
            let part = left.min(self.settings.command_time_max / 2);
            let part = u64::try_from(part.as_millis()).unwrap_or(u64::MAX);
            let arguments = [json!(selector), json!(part)];
            let waited = self.run(&frame, scripts::WAIT, &arguments).await?;
            match waited.as_ref().and_then(Value::as_str) {
                Some("found") => return Ok(ActionResult::Done),
                Some("invalid") => return Ok(ActionResult::InvalidSelector),
                // Without a result, the page was replaced in the meantime.
                _ if Instant::now() >= end => return Ok(ActionResult::NoElement),
                _ => {}
            }
        }
    }

    async fn wait_for_network(&mut self, time_max: Duration) -> Result<ActionResult, PageError> {
        let traffic = self.traffic.clone();
        let idle_time = self.settings.idle_time;
        let end = (Instant::now() + time_max).min(self.deadline);
        match self.wait(traffic.idle(idle_time), end).await {
            Ok(()) => Ok(ActionResult::Done),
            Err(PageError::Cut(PageCut::Time)) if end < self.deadline => Ok(ActionResult::NotIdle),
            Err(error) => Err(error),
        }
    }

    async fn evaluate(&mut self, script: &str) -> Result<ActionResult, PageError> {
        let time_max = self.settings.command_time_max.as_millis() * 3 / 4;
        let expression = format!(
            "(async () => {{
                const late = new Promise((_, no) =>
                    setTimeout(() => no(new Error('no result after {time_max} ms')), {time_max}));
                const value = await Promise.race([(async () => {{ {script}\n }})(), late]);
                const text = JSON.stringify(value) ?? 'null';
                if (text.length > {SCRIPT_RESULT_CHARS_MAX}) throw new RangeError('the result is too long');
                return text;
            }})()"
        );
        let params = json!({
            "expression": expression,
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
        });
        let session = self.session.clone();
        let answer = self.call(&session, "Runtime.evaluate", params).await?;
        if let Some(problem) = answer.get("exceptionDetails") {
            let description = problem["exception"]["description"].as_str();
            let text = description.or(problem["text"].as_str()).unwrap_or_default();
            let text = text.chars().take(EXCEPTION_CHARS_MAX).collect();
            return Ok(ActionResult::Exception(text));
        }
        let text = answer["result"]["value"].as_str().unwrap_or("null");
        Ok(ActionResult::Value(text.to_owned()))
    }
}
