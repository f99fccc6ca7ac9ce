//! The resource `page`, for one call.

use wasmtime::component::Resource;

use crate::bindings::opilio::plugin::documents::{ActionResult, HostPage};
use crate::call_state::CallState;
use crate::page::{BehaviorResult, LoadedPage};
use crate::visit::millis;

impl HostPage for CallState {
    fn uri(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<String> {
        Ok(self.table.get(&page)?.uri.clone())
    }

    fn title(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<String> {
        Ok(self.table.get(&page)?.title.clone())
    }

    fn elements(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&page)?.elements)
    }

    fn text_length(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&page)?.text_length)
    }

    fn scroll_height(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&page)?.scroll_height)
    }

    fn scroll_top(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&page)?.scroll_top)
    }

    fn window_height(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&page)?.window_height)
    }

    fn count(
        &mut self,
        page: Resource<LoadedPage>,
        selector: String,
    ) -> wasmtime::Result<Option<u64>> {
        Ok(self.table.get(&page)?.counts.get(&selector).copied())
    }

    fn results(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<Vec<ActionResult>> {
        let results = self.table.get(&page)?.results.iter().cloned();
        Ok(results.map(ActionResult::from).collect())
    }

    fn requests_in_flight(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&page)?.requests_in_flight)
    }

    fn time_used(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u64> {
        Ok(millis(self.table.get(&page)?.time_used))
    }

    fn time_left(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u64> {
        Ok(millis(self.table.get(&page)?.time_left))
    }

    fn step(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&page)?.step)
    }

    fn steps_left(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&page)?.steps_left)
    }

    fn drop(&mut self, page: Resource<LoadedPage>) -> wasmtime::Result<()> {
        self.table.delete(page)?;
        Ok(())
    }
}

impl From<BehaviorResult> for ActionResult {
    fn from(result: BehaviorResult) -> Self {
        match result {
            BehaviorResult::Done => Self::Done,
            BehaviorResult::Clicked(elements) => Self::Clicked(elements),
            BehaviorResult::Value(json) => Self::Value(json),
            BehaviorResult::NoElement => Self::NoElement,
            BehaviorResult::NotIdle => Self::NotIdle,
            BehaviorResult::Invalid(problem) => Self::Invalid(problem),
            BehaviorResult::Exception(text) => Self::Exception(text),
            BehaviorResult::Refused(reason) => Self::Refused(reason),
            BehaviorResult::Other(name) => Self::Other(name),
        }
    }
}
