//! Plans of page behaviours, and their memory.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Action, Click, ScrollTarget, SelectorWait, StepPlan, error};

impl StepPlan {
    /// A plan with these actions, and a next step after them.
    #[must_use]
    pub fn then(actions: Vec<Action>) -> Self {
        Self {
            actions,
            ..Self::default()
        }
    }

    /// A plan that ends the behaviour.
    #[must_use]
    pub fn finish() -> Self {
        Self {
            finished: true,
            ..Self::default()
        }
    }

    /// Names selectors that the host counts for the next step.
    #[must_use]
    pub fn count(mut self, selectors: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.count = selectors.into_iter().map(Into::into).collect();
        self
    }

    /// Passes a value to the next step, where [`recall`] returns it.
    #[must_use]
    pub fn remember(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(memory) => self.memory = memory,
            Err(problem) => error(format!("the memory cannot be written as JSON: {problem}")),
        }
        self
    }
}

/// Returns the value that the last step passed on with [`StepPlan::remember`]. Returns the default at the first step, and if the
/// memory is not a value of this type.
#[must_use]
pub fn recall<T: DeserializeOwned + Default>(memory: &[u8]) -> T {
    serde_json::from_slice(memory).unwrap_or_default()
}

impl Action {
    /// Scrolls to the end of the page.
    #[must_use]
    pub fn scroll_to_end() -> Self {
        Self::Scroll(ScrollTarget::Bottom)
    }

    /// Clicks the first element that matches a selector.
    pub fn click(selector: impl Into<String>) -> Self {
        Self::Click(Click {
            selector: selector.into(),
            at_most: 1,
            ..Click::default()
        })
    }

    /// Waits until an element matches, at most for this number of milliseconds.
    pub fn wait_for(selector: impl Into<String>, at_most: u64) -> Self {
        Self::WaitForSelector(SelectorWait {
            selector: selector.into(),
            at_most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_returns_the_remembered_value() {
        let plan = StepPlan::finish().remember(&(3_u8, "x".to_owned()));
        assert_eq!(recall::<(u8, String)>(&plan.memory), (3, "x".to_owned()));
        assert_eq!(recall::<(u8, String)>(b""), (0, String::new()));
    }
}
