//! What belongs to visiting again, in one component because most of a component is what all have: when to come back
//! (`adaptive`, `fixed`, `feed-trigger`), whether there is anything new at the headers (`unchanged-headers`) and once the
//! bytes are known to differ (`strict`, `similar`). README.md says what each does; docs/CHANGE.md how they fit together.

pub mod adaptive;
pub mod feed_trigger;
pub mod fixed;
mod media_types;
pub mod similar;
pub mod strict;
pub mod unchanged_headers;

use adaptive::Adaptive;
use feed_trigger::FeedTrigger;
use fixed::Fixed;
use similar::Similar;
use strict::Strict;
use unchanged_headers::UnchangedHeaders;

opilio_plugin::export!(
    wait_evaluators: [Adaptive, Fixed, FeedTrigger],
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
