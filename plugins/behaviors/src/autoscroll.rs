//! `autoscroll`: scrolls to the end of a page until it no longer grows.
//!
//! Each step scrolls window by window, so that images that load in sight are loaded, and then waits for the network. Some pages take a
//! moment before they ask for more; at the end the behaviour therefore waits and looks again. It finally returns to the top, which
//! pictures of the page show.

use opilio_plugin::prelude::*;

/// Windows that one step scrolls. Together with the wait a step has fewer than 100 actions.
const WINDOWS_OF_STEP: u64 = 20;

/// Wait at the end of the page before it is looked at again, in milliseconds.
const PAUSE: u64 = 500;

/// Pixels that the end may be away: heights are rounded.
const ROUNDING: u64 = 2;

/// The configured plugin.
pub struct Autoscroll(Settings);

/// Settings of `autoscroll`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Most windows to scroll. A longer page is left where it is then.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-opilio-overridable" = true))]
    pub windows: u32,
    /// Longest time of scrolling, waits included.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub time: Period,
    /// Longest wait for the network after each step.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub wait: Period,
    /// Times that the end of the page is looked at again before the page counts as complete.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub patience: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            windows: 200,
            time: Period::seconds(45),
            wait: Period::seconds(5),
            patience: 2,
        }
    }
}

/// The state between steps.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Progress {
    /// Time at which the first step began, as time used of the page.
    began: u64,
    windows: u64,
    /// Looks at the end without growth.
    looks: u32,
}

impl Plugin for Autoscroll {
    const NAME: &'static str = "autoscroll";
    const SUMMARY: &'static str = "Scrolls to the end of a page until it no longer grows.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self(settings))
    }
}

impl PageBehavior for Autoscroll {
    fn step(&self, page: &Page, _visit: &Visit, memory: &[u8]) -> StepPlan {
        let settings = &self.0;
        let mut progress: Progress = recall(memory);
        if page.step() == 0 {
            progress.began = page.time_used();
        }
        let (window, seen) = (
            page.window_height().max(1),
            page.scroll_top() + page.window_height(),
        );
        let left = page.scroll_height().saturating_sub(seen);
        let is_at_end = left <= ROUNDING;
        let spent = page.time_used().saturating_sub(progress.began);
        let windows_left = u64::from(settings.windows).saturating_sub(progress.windows);
        if page.step() == 0 && is_at_end {
            return StepPlan::finish();
        }
        let is_over = spent >= settings.time.milliseconds() || page.steps_left() == 0;
        let is_complete = is_at_end && progress.looks >= settings.patience;
        if is_over || is_complete || (windows_left == 0 && !is_at_end) {
            return StepPlan {
                actions: vec![Action::Scroll(ScrollTarget::Top)],
                ..StepPlan::finish()
            };
        }
        let mut actions = Vec::new();
        if is_at_end {
            // Some pages look for the end only when it is reached anew.
            progress.looks += 1;
            let up = i32::try_from(window / 2).unwrap_or(i32::MAX);
            actions.push(Action::Scroll(ScrollTarget::By(-up)));
            actions.push(Action::scroll_to_end());
            actions.push(Action::Wait(PAUSE));
        } else {
            progress.looks = 0;
            let windows = left.div_ceil(window).min(WINDOWS_OF_STEP).min(windows_left);
            progress.windows += windows;
            let down = i32::try_from(window).unwrap_or(i32::MAX);
            actions.extend((0..windows).map(|_| Action::Scroll(ScrollTarget::By(down))));
            count("windows", windows);
        }
        actions.push(Action::WaitForNetwork(settings.wait.milliseconds()));
        StepPlan::then(actions).remember(&progress)
    }
}
