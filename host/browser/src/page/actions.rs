//! The view of a page that page behaviours get, and the actions that they can carry out.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::extraction::ScreenshotArea;
use super::{PageSession, scripts};
use crate::error::{PageCut, PageError};

/// Maximum length of a script's result, in characters of JSON.
const SCRIPT_RESULT_CHARS_MAX: usize = 1024 * 1024;

/// Time for which one frame is searched for an element, before the next frame is.
const SELECTOR_WAIT_OF_FRAME: Duration = Duration::from_millis(250);

/// Current state of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageView {
    /// URI, including changes by scripts.
    pub uri: String,
    /// Title.
    pub title: String,
    /// Number of elements, including those of open shadow roots.
    pub elements: u64,
    /// Length of the visible text in UTF-16 code units.
    pub text_length: u64,
    /// Height of the document in CSS pixels.
    pub scroll_height: u64,
    /// Pixels above the visible part.
    pub scroll_top: u64,
    /// Height of the window in CSS pixels.
    pub window_height: u64,
    /// Number of elements that match each selector, in all frames; `None` if the selector is invalid.
    pub counts: Vec<Option<u64>>,
    /// Number of requests in flight.
    pub requests_in_flight: usize,
    /// Time since the page was opened.
    pub time_used: Duration,
    /// Time until the page is cut.
    pub time_left: Duration,
    /// Number of actions that were carried out.
    pub steps: u32,
}

/// An action on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageAction {
    /// Scrolls the window.
    Scroll(ScrollTarget),
    /// Clicks visible elements, first those of the main frame.
    Click {
        /// CSS selector.
        selector: String,
        /// Regular expression with the flags `iu`, which must match in an element's text, label or value.
        text: Option<String>,
        /// Maximum number of elements.
        at_most: u32,
        /// `true` to leave out elements that an earlier action has clicked.
        only_new: bool,
    },
    /// Waits until an element matches, in any frame.
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
    /// Waits.
    Wait(Duration),
    /// Runs a script in the world of the page's own scripts: the body of an async function, whose result is returned as JSON. It
    /// may take three quarters of `command_time_max`.
    Evaluate {
        /// JavaScript, such as `return document.title`.
        script: String,
    },
    /// Takes a picture.
    Screenshot(ScreenshotArea),
}

/// A position to scroll to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrollTarget {
    /// The beginning of the document.
    Top,
    /// The current end of the document.
    Bottom,
    /// This number of CSS pixels from the beginning.
    To(u32),
    /// This number of CSS pixels further; back if it is negative.
    By(i32),
    /// The first element that matches a selector, in the main frame.
    Element(String),
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionResult {
    /// The action was carried out.
    Done,
    /// Number of clicked elements; at least one.
    Clicked(u32),
    /// No element matches the selector, or none matched in time.
    NoElement,
    /// The selector or regular expression is invalid, for this reason.
    Invalid(String),
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
    /// Returns the current state of the page, with the number of elements for each selector.
    ///
    /// # Errors
    /// The page reached a limit, or the browser failed.
    pub async fn view(&mut self, selectors: &[String]) -> Result<PageView, PageError> {
        let mut view = PageView {
            counts: vec![Some(0); selectors.len()],
            requests_in_flight: self.requests_in_flight(),
            time_used: self.opened.elapsed(),
            time_left: self.time_left(),
            window_height: u64::from(self.settings.viewport.height),
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
    /// The page reached a limit, such as the limit of actions, or the browser failed.
    pub async fn act(&mut self, action: &PageAction) -> Result<ActionResult, PageError> {
        if self.steps >= self.settings.steps_max {
            return Err(self.record_limit(PageCut::Steps));
        }
        self.steps += 1;
        match action {
            PageAction::Scroll(target) => self.scroll(target).await,
            PageAction::Click {
                selector,
                text,
                at_most,
                only_new,
            } => {
                let arguments = [json!(selector), json!(text), json!(only_new)];
                self.click(arguments, *at_most).await
            }
            PageAction::WaitForSelector { selector, time_max } => {
                self.wait_for_selector(selector, *time_max).await
            }
            PageAction::WaitForNetwork { time_max } => self.wait_for_network(*time_max).await,
            PageAction::Wait(time) => self.wait_for(*time).await,
            PageAction::Evaluate { script } => self.evaluate(script).await,
            PageAction::Screenshot(area) => {
                Ok(ActionResult::Picture(self.take_picture(*area).await?))
            }
        }
    }

    async fn scroll(&mut self, target: &ScrollTarget) -> Result<ActionResult, PageError> {
        let arguments = match target {
            ScrollTarget::Top => [json!("to"), json!(0)],
            ScrollTarget::Bottom => [json!("bottom"), json!(0)],
            ScrollTarget::To(pixels) => [json!("to"), json!(pixels)],
            ScrollTarget::By(pixels) => [json!("by"), json!(pixels)],
            ScrollTarget::Element(selector) => [json!("element"), json!(selector)],
        };
        let frame = self.main_frame().await?;
        let scrolled = self.run(&frame, scripts::SCROLL, &arguments).await?;
        let scrolled = scrolled.unwrap_or_default();
        Ok(match (scrolled["invalid"].as_str(), scrolled.as_str()) {
            (Some(problem), _) => ActionResult::Invalid(problem.to_owned()),
            (None, Some("missing")) => ActionResult::NoElement,
            (None, _) => ActionResult::Done,
        })
    }

    /// Clicks elements of all frames, in total at most `at_most`.
    async fn click(
        &mut self,
        [selector, text, only_new]: [Value; 3],
        at_most: u32,
    ) -> Result<ActionResult, PageError> {
        let mut clicked = 0;
        for frame in self.frames().await? {
            let left = json!(at_most - clicked);
            let arguments = [selector.clone(), text.clone(), only_new.clone(), left];
            // Without a result, the frame was replaced in the meantime.
            let done = self.run(&frame, scripts::CLICK, &arguments).await?;
            let done = done.unwrap_or_default();
            if let Some(problem) = done["invalid"].as_str() {
                return Ok(ActionResult::Invalid(problem.to_owned()));
            }
            let more = done["clicked"].as_u64().unwrap_or(0);
            clicked += u32::try_from(more).unwrap_or(0).min(at_most - clicked);
            if clicked >= at_most {
                break;
            }
        }
        Ok(match clicked {
            0 => ActionResult::NoElement,
            _ => ActionResult::Clicked(clicked),
        })
    }

    async fn wait_for_selector(
        &mut self,
        selector: &str,
        time_max: Duration,
    ) -> Result<ActionResult, PageError> {
        let end = self.end_of(time_max);
        loop {
            // The main frame has no event for new elements of other frames, so all frames are searched, each for a short time.
            for frame in self.frames().await? {
                let left = end.saturating_duration_since(Instant::now());
                let part = left.min(SELECTOR_WAIT_OF_FRAME);
                let part = u64::try_from(part.as_millis()).unwrap_or(u64::MAX);
                let arguments = [json!(selector), json!(part)];
                let waited = self.run(&frame, scripts::WAIT, &arguments).await?;
                // Without a result, the frame was replaced in the meantime.
                let waited = waited.unwrap_or_default();
                if let Some(problem) = waited["invalid"].as_str() {
                    return Ok(ActionResult::Invalid(problem.to_owned()));
                }
                if waited.as_str() == Some("found") {
                    return Ok(ActionResult::Done);
                }
            }
            if Instant::now() >= end {
                return Ok(ActionResult::NoElement);
            }
        }
    }

    async fn wait_for(&mut self, time: Duration) -> Result<ActionResult, PageError> {
        let end = self.end_of(time);
        match self.wait(std::future::pending::<()>(), end).await {
            Err(PageError::Cut(PageCut::Time)) if end < self.deadline => Ok(ActionResult::Done),
            waited => waited.map(|()| ActionResult::Done),
        }
    }

    /// Returns the end of a wait that begins now; at most the end of the page's time.
    fn end_of(&self, time: Duration) -> Instant {
        let end = Instant::now().checked_add(time);
        end.unwrap_or(self.deadline).min(self.deadline)
    }

    async fn wait_for_network(&mut self, time_max: Duration) -> Result<ActionResult, PageError> {
        let traffic = self.traffic.clone();
        let idle_time = self.settings.idle_time;
        let end = self.end_of(time_max);
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
