//! The steps of one behaviour on one page: its views of the page, its actions in the browser, and their results.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use opilio_browser::{
    ActionResult, PageAction, PageError, PageSession, PageView, ScreenshotArea, ScrollTarget,
};
use opilio_sandbox::{BehaviorAction, BehaviorResult, LoadedPage, ScrollPosition, StepPlan};
use serde::Serialize;

/// The progress of a page behaviour on a page.
pub(crate) struct BehaviorSteps {
    steps_max: u32,
    /// Number of steps that were planned.
    steps: u32,
    /// The last plan. Its actions are removed when they are carried out.
    plan: StepPlan,
    results: Vec<BehaviorResult>,
    /// `true` if pictures are archived.
    takes_pictures: bool,
    /// The last picture that the behaviour took.
    picture: Option<Bytes>,
}

/// One behaviour on one page, as `urn:pageinfo:` records list it.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct BehaviorRun {
    /// Its name in the profile.
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) steps: u32,
    pub(crate) end: BehaviorEnd,
}

/// The end of a behaviour on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BehaviorEnd {
    /// The behaviour had finished.
    Finished,
    /// The behaviour reached `browser.page-steps`.
    Steps,
    /// The page reached its limit of time or actions.
    Page,
    /// A call of the plugin failed.
    Fault,
}

impl BehaviorSteps {
    /// A behaviour before its first step.
    pub(crate) fn new(steps_max: u32, takes_pictures: bool) -> BehaviorSteps {
        BehaviorSteps {
            steps_max,
            steps: 0,
            plan: StepPlan {
                actions: Vec::new(),
                count: Vec::new(),
                memory: Vec::new(),
                finished: false,
            },
            results: Vec::new(),
            takes_pictures,
            picture: None,
        }
    }

    /// Number of steps that were planned.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns `true` if the behaviour has finished.
    pub(crate) fn has_finished(&self) -> bool {
        self.plan.finished
    }

    /// Returns `true` if there may be a next step.
    pub(crate) fn may_continue(&self) -> bool {
        !self.plan.finished && self.steps < self.steps_max
    }

    /// Returns the behaviour's memory for the next step.
    pub(crate) fn memory(&self) -> &[u8] {
        &self.plan.memory
    }

    /// The last picture that the behaviour took.
    pub(crate) fn take_picture(&mut self) -> Option<Bytes> {
        self.picture.take()
    }

    /// Returns the results of the actions that were carried out last.
    pub(crate) fn results(&self) -> &[BehaviorResult] {
        &self.results
    }

    /// Returns the page as the next step sees it.
    ///
    /// # Errors
    /// The page reached a limit, or the browser failed.
    pub(crate) async fn view_page(
        &mut self,
        session: &mut PageSession,
    ) -> Result<LoadedPage, PageError> {
        let view = session.view(&self.plan.count).await?;
        Ok(LoadedPage {
            results: self.results.clone(),
            step: self.steps,
            steps_left: self.steps_max.saturating_sub(self.steps + 1),
            ..loaded_page(view, &self.plan.count)
        })
    }

    /// Carries out the plan of a step.
    ///
    /// # Errors
    /// The page reached a limit, or the browser failed.
    pub(crate) async fn carry_out(
        &mut self,
        session: &mut PageSession,
        plan: StepPlan,
    ) -> Result<(), PageError> {
        self.steps += 1;
        self.plan = plan;
        self.results.clear();
        for action in std::mem::take(&mut self.plan.actions) {
            let result = self.act(session, &action).await?;
            self.results.push(result);
        }
        Ok(())
    }

    async fn act(
        &mut self,
        session: &mut PageSession,
        action: &BehaviorAction,
    ) -> Result<BehaviorResult, PageError> {
        let action = match action_of(action) {
            Ok(PageAction::Screenshot(_)) if !self.takes_pictures => {
                let reason = "the profile archives no pictures (browser.screenshots)";
                return Ok(BehaviorResult::Refused(reason.to_owned()));
            }
            Ok(action) => action,
            Err(unknown) => return Ok(unknown),
        };
        Ok(match session.act(&action).await? {
            ActionResult::Done => BehaviorResult::Done,
            ActionResult::Clicked(elements) => BehaviorResult::Clicked(elements),
            ActionResult::NoElement => BehaviorResult::NoElement,
            ActionResult::Invalid(problem) => BehaviorResult::Invalid(problem),
            ActionResult::NotIdle => BehaviorResult::NotIdle,
            ActionResult::Value(json) => BehaviorResult::Value(json),
            ActionResult::Exception(text) => BehaviorResult::Exception(text),
            ActionResult::Picture(picture) => {
                self.picture = Some(picture);
                BehaviorResult::Done
            }
        })
    }
}

impl BehaviorRun {
    /// Returns the annotation for `crawl.log`: name and number of steps, and the kind of the end unless the behaviour has finished.
    pub(crate) fn annotation(&self) -> String {
        let end = match self.end {
            BehaviorEnd::Finished => "",
            BehaviorEnd::Steps => ":steps",
            BehaviorEnd::Page => ":page",
            BehaviorEnd::Fault => ":fault",
        };
        format!("behaved:{}:{}{end}", self.name, self.steps)
    }
}

/// Returns the page as a behaviour sees it, without the steps so far.
fn loaded_page(view: PageView, selectors: &[String]) -> LoadedPage {
    let counted = selectors.iter().zip(view.counts);
    let counts: BTreeMap<String, u64> = counted
        .filter_map(|(selector, count)| Some((selector.clone(), count?)))
        .collect();
    LoadedPage {
        uri: view.uri,
        title: view.title,
        elements: view.elements,
        text_length: view.text_length,
        scroll_height: view.scroll_height,
        scroll_top: view.scroll_top,
        window_height: view.window_height,
        counts,
        requests_in_flight: u32::try_from(view.requests_in_flight).unwrap_or(u32::MAX),
        time_used: view.time_used,
        time_left: view.time_left,
        ..LoadedPage::default()
    }
}

/// Converts an action to the browser's type. The error is the result for an action that this version does not support.
fn action_of(action: &BehaviorAction) -> Result<PageAction, BehaviorResult> {
    let unknown = |name: &str| {
        let reason = format!("this version of opilio does not know `{name}`");
        Err(BehaviorResult::Refused(reason))
    };
    Ok(match action {
        BehaviorAction::Scroll(position) => PageAction::Scroll(match position {
            ScrollPosition::Top => ScrollTarget::Top,
            ScrollPosition::Bottom => ScrollTarget::Bottom,
            ScrollPosition::To(pixels) => ScrollTarget::To(*pixels),
            ScrollPosition::By(pixels) => ScrollTarget::By(*pixels),
            ScrollPosition::Element(selector) => ScrollTarget::Element(selector.clone()),
            ScrollPosition::Other(name) => return unknown(name),
        }),
        BehaviorAction::Click(click) => PageAction::Click {
            selector: click.selector.clone(),
            text: click.text.clone(),
            at_most: click.at_most,
            only_new: click.only_new,
        },
        BehaviorAction::WaitForSelector(wait) => PageAction::WaitForSelector {
            selector: wait.selector.clone(),
            time_max: Duration::from_millis(wait.at_most),
        },
        BehaviorAction::WaitForNetwork(time) => PageAction::WaitForNetwork {
            time_max: Duration::from_millis(*time),
        },
        BehaviorAction::Wait(time) => PageAction::Wait(Duration::from_millis(*time)),
        BehaviorAction::Evaluate(script) => PageAction::Evaluate {
            script: script.clone(),
        },
        BehaviorAction::Screenshot => PageAction::Screenshot(ScreenshotArea::View),
        BehaviorAction::Other(name) => return unknown(name),
    })
}
