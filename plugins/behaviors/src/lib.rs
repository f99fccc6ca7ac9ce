//! Page behaviours that ship: they dismiss cookie banners, scroll, load more content, start media, and carry out actions from a
//! table. README.md describes each.
//!
//! A behaviour sees a page only through the numbers of the contract. Anything else it learns from the results of its actions.

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
