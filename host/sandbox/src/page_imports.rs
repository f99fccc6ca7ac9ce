//! The resource `page`, for one call.

use wasmtime::component::Resource;

use crate::bindings::opilio::plugin::documents::{ActionResult, HostPage};
use crate::call_state::CallState;
use crate::page::LoadedPage;
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
        Ok(self.table.get(&page)?.results.clone())
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
