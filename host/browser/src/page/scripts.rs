//! Scripts that run in the page in an isolated world: they can access its document, and the page cannot access them.

use serde_json::{Value, json};

use super::PageSession;
use crate::error::{BrowserError, PageError};

/// Maximum frames in which scripts run.
const FRAMES_MAX: usize = 100;

/// Name of the world.
const WORLD: &str = "opilio";

/// Functions that all scripts share. They call methods of prototypes, because an element with the name of a method hides the
/// method.
const PRELUDE: &str = include_str!("scripts/prelude.js");

/// The view of a frame. Arguments: selectors.
pub(super) const VIEW: &str = include_str!("scripts/view.js");

/// Links and text of a frame. Arguments: maximum number of links, maximum length of a link, maximum characters of text.
pub(super) const EXTRACT: &str = include_str!("scripts/extract.js");

/// The document of a frame as HTML. Argument: maximum number of characters.
pub(super) const DOCUMENT: &str = include_str!("scripts/document.js");

/// Clicks elements. Arguments: a selector, a regular expression or null, whether only new elements are clicked, maximum number of
/// elements.
pub(super) const CLICK: &str = include_str!("scripts/click.js");

/// Waits for an element. Arguments: a selector, milliseconds.
pub(super) const WAIT: &str = include_str!("scripts/wait.js");

/// Scrolls. Arguments: `to`, `by` or `bottom`, and pixels; or `element` and a selector.
pub(super) const SCROLL: &str = include_str!("scripts/scroll.js");

/// A frame of the page, in which scripts can run.
#[derive(Clone, Debug)]
pub(super) struct FrameWorld {
    pub session: String,
    pub context: Value,
}

impl PageSession {
    /// Returns the main frame, followed by all others.
    pub(super) async fn frames(&mut self) -> Result<Vec<FrameWorld>, PageError> {
        let mut sessions = vec![self.session.clone()];
        sessions.extend(self.observer.facts().frames.iter().cloned());
        let mut worlds = Vec::new();
        for session in sessions {
            let tree = self.call(&session, "Page.getFrameTree", json!({})).await;
            let Some(tree) = unless_gone(tree)? else {
                continue;
            };
            let mut trees = vec![&tree["frameTree"]];
            while let Some(tree) = trees.pop() {
                let children = tree["childFrames"].as_array();
                trees.extend(children.into_iter().flatten());
                if worlds.len() >= FRAMES_MAX {
                    break;
                }
                let params = json!({"frameId": tree["frame"]["id"], "worldName": WORLD});
                let world = self.call(&session, "Page.createIsolatedWorld", params);
                if let Some(world) = unless_gone(world.await)? {
                    worlds.push(FrameWorld {
                        session: session.clone(),
                        context: world["executionContextId"].clone(),
                    });
                }
            }
        }
        Ok(worlds)
    }

    /// Returns the main frame.
    pub(super) async fn main_frame(&mut self) -> Result<FrameWorld, PageError> {
        let session = self.session.clone();
        let frame = self.observer.facts().main_frame.clone();
        let params = json!({"frameId": frame, "worldName": WORLD});
        let world = self.call(&session, "Page.createIsolatedWorld", params);
        let context = world.await?["executionContextId"].clone();
        Ok(FrameWorld { session, context })
    }

    /// Runs a script in a frame. `None` if the frame no longer exists, or the script failed in it.
    pub(super) async fn run(
        &mut self,
        frame: &FrameWorld,
        script: &str,
        arguments: &[Value],
    ) -> Result<Option<Value>, PageError> {
        let arguments: Vec<Value> = arguments.iter().map(|it| json!({"value": it})).collect();
        let params = json!({
            "functionDeclaration":
                format!("function (...args) {{ {PRELUDE}\nreturn ({script})(...args); }}"),
            "executionContextId": frame.context,
            "arguments": arguments,
            "returnByValue": true,
            "awaitPromise": true,
            "userGesture": true,
        });
        let answer = self.call(&frame.session, "Runtime.callFunctionOn", params);
        let Some(answer) = unless_gone(answer.await)? else {
            return Ok(None);
        };
        if let Some(problem) = answer.get("exceptionDetails") {
            let problem = &problem["exception"]["description"];
            tracing::debug!(%problem, "a script failed in a frame");
            return Ok(None);
        }
        Ok(Some(answer["result"]["value"].clone()))
    }
}

/// Converts a refused command to `None`, because a frame that was removed meanwhile refuses every command.
fn unless_gone(answer: Result<Value, PageError>) -> Result<Option<Value>, PageError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(PageError::Browser(BrowserError::Refused { method, message })) => {
            tracing::debug!(method, message, "a frame is gone");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
