//! The built-in page behaviours. They dismiss cookie banners, scroll, load more content, start media, and carry out actions
//! from a table. README.md describes each.
//!
//! A behaviour has no access to the page itself. It knows the numbers that the contract gives it (such as the height of the
//! page and counts of elements) and the results of its actions.

mod autoplay;
mod autoscroll;
mod consent;
mod load_more;
mod managers;
mod site_specific;
mod words;

pub use crate::autoplay::Autoplay;
pub use crate::autoscroll::Autoscroll;
pub use crate::consent::Consent;
pub use crate::load_more::LoadMore;
pub use crate::site_specific::SiteSpecific;

opilio_plugin::export!(page_behaviors: [Consent, Autoplay, Autoscroll, LoadMore, SiteSpecific]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
