//! The page behaviours to call on a rendered page. The driver has the browser and calls them.

use opilio_sandbox::Visit;
use opilio_stacks::Staged;

use crate::driver::{Driver, Lane};
use crate::reading::Reading;

/// Returns the page behaviours of a stack that handle the page and whose guards accept it.
pub(crate) async fn behaviors<D: Driver>(
    driver: &D,
    stack: &[Staged],
    reading: &mut Reading,
    visit: &Visit,
) -> Result<Vec<Staged>, D::Error> {
    let document = &reading.document;
    let handles = |staged: &&Staged| staged.plugin.handles(document.media_type(), document.uri());
    let mut behaviors: Vec<Staged> = stack.iter().filter(handles).cloned().collect();
    if behaviors.iter().all(|staged| staged.guards.is_empty()) {
        return Ok(behaviors);
    }
    let (document, visit) = (document.clone(), visit.clone());
    let guards = std::mem::take(&mut reading.guards);
    let admit = move || {
        behaviors.retain(|staged| guards.admit(staged, &document, &visit));
        (behaviors, guards)
    };
    let (behaviors, guards) = driver.run(Lane::Document, admit).await?;
    reading.guards = guards;
    driver.failed(&reading.guards.take_failures())?;
    Ok(behaviors)
}
