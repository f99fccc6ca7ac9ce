//! Page behaviours: plugins that operate a loaded page, step by step, before its links, text and pictures are taken.
//!
//! A behaviour runs on a plugin lane, and its actions run in the browser. When a behaviour fails or reaches a limit, the next one
//! follows, and the page is taken in its present state.

use bytes::Bytes;
use opilio_browser::{PageCut, PageError, PageSession};
use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_visit::PageToRender;

use super::CrawlVisit;
use crate::behavior_steps::{BehaviorEnd, BehaviorRun, BehaviorSteps};
use crate::lanes::LanePanic;
use crate::render_board::PageOnBoard;

/// The results of all behaviours of a page.
#[derive(Default)]
pub(super) struct BehaviorResults {
    /// The behaviours that were called, in order.
    pub runs: Vec<BehaviorRun>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
    /// The last picture that a behaviour took.
    pub picture: Option<Bytes>,
}

/// The reason why the page cannot be used after its behaviours.
pub(super) enum BehaveError {
    /// The page or its browser has crashed or was closed.
    Page(PageError),
    /// A lane panicked.
    Lane(LanePanic),
}

impl From<PageError> for BehaveError {
    fn from(error: PageError) -> BehaveError {
        BehaveError::Page(error)
    }
}

impl CrawlVisit<'_> {
    /// Runs the behaviours on the page, one after the other.
    pub(super) async fn behave(
        &self,
        session: &mut PageSession,
        page: PageToRender<'_>,
        on_board: &PageOnBoard,
    ) -> Result<BehaviorResults, BehaveError> {
        let mut behaviors = BehaviorResults::default();
        let browser = &page.settings.browser;
        for staged in page.behaviors {
            let mut steps = BehaviorSteps::new(browser.page_steps, browser.screenshots);
            let operating = self.operate(session, staged, page, &mut steps, on_board);
            let ended = operating.await;
            behaviors.picture = steps.take_picture().or(behaviors.picture);
            let run = |end| BehaviorRun {
                name: staged.name.to_string(),
                version: staged.plugin.version().to_owned(),
                steps: steps.steps(),
                end,
            };
            match ended {
                Ok(None) if steps.has_finished() => behaviors.runs.push(run(BehaviorEnd::Finished)),
                Ok(None) if !steps.may_continue() => behaviors.runs.push(run(BehaviorEnd::Steps)),
                // The behaviour was left out, because its breaker is open.
                Ok(None) if steps.steps() == 0 => {}
                Ok(None) => behaviors.runs.push(run(BehaviorEnd::Fault)),
                Ok(Some(failure)) => {
                    behaviors.runs.push(run(BehaviorEnd::Fault));
                    behaviors.failures.push(failure);
                }
                Err(BehaveError::Page(PageError::Cut(PageCut::Time | PageCut::Steps))) => {
                    behaviors.runs.push(run(BehaviorEnd::Page));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(behaviors)
    }

    /// Runs one behaviour on the page until it ends. Returns the plugin error, if a call failed.
    async fn operate(
        &self,
        session: &mut PageSession,
        staged: &Staged,
        page: PageToRender<'_>,
        steps: &mut BehaviorSteps,
        on_board: &PageOnBoard,
    ) -> Result<Option<Failure>, BehaveError> {
        while steps.may_continue() {
            on_board.step(&staged.name, steps.steps() + 1);
            let seen = steps.view_page(session).await?;
            let (staged, visit) = (staged.clone(), page.visit.clone());
            let memory = steps.memory().to_vec();
            let step = move |_| staged.step(&seen, &visit, &memory);
            let planned = self.context.lanes.document(self.site(), 0, step).await;
            match planned.map_err(BehaveError::Lane)? {
                Ok(plan) => steps.carry_out(session, plan).await?,
                Err(unanswered) => return Ok(unanswered.failure()),
            }
        }
        Ok(None)
    }
}
