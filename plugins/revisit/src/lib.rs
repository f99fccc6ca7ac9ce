//! What belongs to visiting again, in one component because most of a component is what all have: when to come back
//! (`adaptive`, `poisson`, `budgeted`, `fixed`, `feed-trigger`), whether there is anything new at the headers (`unchanged-headers`) and once the
//! bytes are known to differ (`strict`, `similar`). README.md says what each does; docs/CHANGE.md how they fit together.

pub mod adaptive;
pub mod budgeted;
mod experience;
pub mod feed_trigger;
mod finds;
pub mod fixed;
mod index;
mod media_types;
mod numbers;
pub mod poisson;
mod promise;
mod rate;
mod rhythm;
pub mod similar;
mod spread;
pub mod strict;
mod told;
pub mod unchanged_headers;
mod words;

use adaptive::Adaptive;
use budgeted::Budgeted;
use feed_trigger::FeedTrigger;
use fixed::Fixed;
use poisson::Poisson;
use similar::Similar;
use strict::Strict;
use unchanged_headers::UnchangedHeaders;

opilio_plugin::export!(
    wait_evaluators: [Adaptive, Poisson, Budgeted, Fixed, FeedTrigger],
    filters: [UnchangedHeaders],
    change_evaluators: [Strict, Similar],
);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
