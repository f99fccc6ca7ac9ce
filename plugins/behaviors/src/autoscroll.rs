//! `autoscroll`: scrolls to the end of a page until it no longer grows.
//!
//! Each step scrolls window by window, because some images are only loaded when they become visible. Then it waits for the
//! network. Some pages request more content only after a moment, so the behaviour checks the end of the page several times.
//! Finally it scrolls back to the top, because pictures of the page show the window.

use opilio_plugin::prelude::*;

/// Largest number of windows that one step scrolls. With the wait, a step has far fewer than the 100 actions that are allowed.
const STEP_WINDOWS_MAX: u64 = 20;

/// Wait at the end of the page before the next check, in milliseconds.
const PAUSE: u64 = 500;

/// Largest distance in pixels that counts as the end of the page. Heights are rounded.
const END_TOLERANCE: u64 = 2;

/// The configured plugin.
pub struct Autoscroll(Settings);

/// Settings of `autoscroll`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Largest number of windows to scroll. The rest of a longer page is not scrolled.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-opilio-overridable" = true))]
    pub windows: u32,
    /// Longest time for scrolling, including waits.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub time: Period,
    /// Longest wait for the network after each step.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub wait: Period,
    /// Number of further checks at the end of the page. If the page has not grown after these, it counts as complete.
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
    /// Time used on the page when the first step began, in milliseconds.
    began: u64,
    /// Number of windows scrolled.
    windows: u64,
    /// Number of checks at the end without growth.
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
        let (window, bottom) = (
            page.window_height().max(1),
            page.scroll_top() + page.window_height(),
        );
        let left = page.scroll_height().saturating_sub(bottom);
        let is_at_end = left <= END_TOLERANCE;
        let spent = page.time_used().saturating_sub(progress.began);
        let windows_left = u64::from(settings.windows).saturating_sub(progress.windows);
        if page.step() == 0 && is_at_end {
            return StepPlan::finish();
        }
        let is_limit_reached = spent >= settings.time.milliseconds() || page.steps_left() == 0;
        let is_complete = is_at_end && progress.looks >= settings.patience;
        if is_limit_reached || is_complete || (windows_left == 0 && !is_at_end) {
            return StepPlan {
                actions: vec![Action::Scroll(ScrollTarget::Top)],
                ..StepPlan::finish()
            };
        }
        let mut actions = Vec::new();
        if is_at_end {
            // Some pages load more only if the end is reached again, so it scrolls up first.
            progress.looks += 1;
            let up = i32::try_from(window / 2).unwrap_or(i32::MAX);
            actions.push(Action::Scroll(ScrollTarget::By(-up)));
            actions.push(Action::scroll_to_end());
            actions.push(Action::Wait(PAUSE));
        } else {
            progress.looks = 0;
            let windows = left
                .div_ceil(window)
                .min(STEP_WINDOWS_MAX)
                .min(windows_left);
            progress.windows += windows;
            let down = i32::try_from(window).unwrap_or(i32::MAX);
            actions.extend((0..windows).map(|_| Action::Scroll(ScrollTarget::By(down))));
            count("windows", windows);
        }
        actions.push(Action::WaitForNetwork(settings.wait.milliseconds()));
        StepPlan::then(actions).remember(&progress)
    }
}
