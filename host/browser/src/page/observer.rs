//! Events of a page: loads, crashes, dialogs, windows, downloads, and attempts to navigate away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::devtools::{DevTools, Event};
use crate::error::PageCut;

/// Maximum URIs that are kept of each kind. Further ones are dropped.
const URIS_MAX: usize = 1000;

/// Maximum bytes of a URI that is kept.
const URI_BYTES_MAX: usize = 16 * 1024;

/// Maximum observed frames in separate processes.
const FRAME_SESSIONS_MAX: usize = 100;

/// Maximum reloads by the page itself. Some pages set a cookie and reload.
const RELOADS_MAX: u32 = 3;

/// The events of one page. Clones share them.
#[derive(Clone)]
pub(crate) struct Observer {
    shared: Arc<Mutex<Observation>>,
    changed: watch::Sender<()>,
}

/// State of a page according to its events.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    /// The main frame.
    pub main_frame: String,
    /// The session of the page.
    pub session: String,
    /// The URI of the current document.
    pub uri: String,
    /// `true` if the document's load event has fired.
    pub is_loaded: bool,
    /// The reason for which the page was cut.
    pub cut: Option<PageCut>,
    /// Sessions of frames in separate processes.
    pub frames: BTreeSet<String>,
    /// Targets of other windows, by session.
    windows: BTreeMap<String, String>,
    /// URIs of windows that the page tried to open.
    pub pop_ups: Vec<String>,
    /// URIs of downloads that the page, or an action on it, tried to start.
    pub downloads: Vec<String>,
    /// URIs of documents to which the page tried to navigate.
    pub departures: Vec<String>,
    /// Number of dismissed dialogs.
    pub dialogs: u32,
    /// The document that may load.
    navigation: Navigation,
}

/// The document that the page may load.
#[derive(Debug, Default)]
struct Navigation {
    /// URI of the document, without fragment, after redirects; `None` before the first request.
    allowed: Option<String>,
    reloads: u32,
}

/// A command that responds to an event.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    session: Option<String>,
    method: &'static str,
    params: Value,
}

impl Observer {
    pub(crate) fn new(session: &str, main_frame: &str) -> Observer {
        Observer {
            shared: Arc::new(Mutex::new(Observation {
                session: session.to_owned(),
                main_frame: main_frame.to_owned(),
                ..Observation::default()
            })),
            changed: watch::Sender::new(()),
        }
    }

    /// Returns the current state.
    pub(crate) fn facts(&self) -> MutexGuard<'_, Observation> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` returns a value.
    pub(crate) async fn until<T>(&self, ready: impl Fn(&Observation) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(value) = ready(&self.facts()) {
                return value;
            }
            // The sender lives as long as `self`.
            let _ = changed.changed().await;
        }
    }

    /// Ends the page for this reason, unless it has ended already.
    pub(crate) fn cut(&self, cut: PageCut) {
        self.facts().cut.get_or_insert(cut);
        self.changed.send_replace(());
    }

    /// Processes events until the browser has ended.
    pub(crate) async fn observe(self, devtools: DevTools, mut events: mpsc::Receiver<Event>) {
        while let Some(event) = events.recv().await {
            let replies = self.facts().apply(event);
            let devtools = devtools.clone();
            let answer = async move {
                for reply in replies {
                    let session = reply.session.as_deref();
                    // Errors are ignored: the target may have been closed, and the end of the browser is detected elsewhere.
                    let _ = devtools.call(session, reply.method, reply.params).await;
                }
            };
            // The commands of one event are sent in order. Later events do not wait for them, because the answer of a command may
            // arrive after other events.
            tokio::spawn(answer);
            self.changed.send_replace(());
        }
    }
}

impl Observation {
    /// Records that the document of the page is a file to download.
    pub(super) fn note_download(&mut self) {
        if let Some(uri) = self.navigation.allowed.clone() {
            keep(&mut self.downloads, uri);
        }
    }

    /// Processes one event, and returns the commands that respond to it.
    fn apply(&mut self, event: Event) -> Vec<Reply> {
        let is_page = event.session.as_deref() == Some(&self.session);
        let params = &event.params;
        match event.method.as_str() {
            "Page.loadEventFired" if is_page => self.is_loaded = true,
            "Page.frameNavigated" if is_page => self.navigated(&params["frame"]),
            "Page.navigatedWithinDocument" if params["frameId"] == self.main_frame => {
                self.uri = text(params, "url");
            }
            "Page.windowOpen" => keep(&mut self.pop_ups, text(params, "url")),
            "Browser.downloadWillBegin" => keep(&mut self.downloads, text(params, "url")),
            "Page.javascriptDialogOpening" => {
                self.dialogs += 1;
                return vec![Reply {
                    session: event.session,
                    method: "Page.handleJavaScriptDialog",
                    params: json!({"accept": false}),
                }];
            }
            "Inspector.targetCrashed" if is_page => {
                self.cut.get_or_insert(PageCut::Crashed);
            }
            "Target.attachedToTarget" => return self.attached(params),
            "Target.detachedFromTarget" => {
                let session = text(params, "sessionId");
                self.frames.remove(&session);
                self.windows.remove(&session);
            }
            "Fetch.requestPaused" if is_page => return vec![self.decide(event.session, params)],
            "Fetch.requestPaused" => return self.close_window(event.session, params),
            _ => {}
        }
        Vec::new()
    }

    fn navigated(&mut self, frame: &Value) {
        if frame["id"] == self.main_frame {
            self.is_loaded = false;
            self.uri = text(frame, "url") + frame["urlFragment"].as_str().unwrap_or("");
        }
    }

    /// Continues the page itself, pauses requests of other windows, and observes frames in separate processes.
    fn attached(&mut self, params: &Value) -> Vec<Reply> {
        let session = text(params, "sessionId");
        let target = &params["targetInfo"];
        let reply = |method, params| Reply {
            session: Some(session.clone()),
            method,
            params,
        };
        match target["type"].as_str() {
            Some("page") if target["targetId"] == self.main_frame => {
                vec![reply("Runtime.runIfWaitingForDebugger", json!({}))]
            }
            // A new window waits, and so does its opener. The window continues, and each of its requests will fail.
            Some("page") => {
                self.windows
                    .insert(session.clone(), text(target, "targetId"));
                vec![
                    reply("Fetch.enable", json!({})),
                    reply("Runtime.runIfWaitingForDebugger", json!({})),
                ]
            }
            Some("iframe") if self.frames.len() < FRAME_SESSIONS_MAX => {
                self.frames.insert(session.clone());
                vec![
                    reply("Page.enable", json!({})),
                    reply("Target.setAutoAttach", auto_attach()),
                ]
            }
            _ => Vec::new(),
        }
    }

    /// Fails a request of another window, then closes the window. If the window were closed first, the request would be sent.
    fn close_window(&self, session: Option<String>, params: &Value) -> Vec<Reply> {
        let target = session.as_ref().and_then(|it| self.windows.get(it));
        let close = target.map(|target| Reply {
            session: None,
            method: "Target.closeTarget",
            params: json!({"targetId": target}),
        });
        let fail = Reply {
            session: session.clone(),
            method: "Fetch.failRequest",
            params: json!({"requestId": params["requestId"], "errorReason": "BlockedByClient"}),
        };
        [Some(fail), close].into_iter().flatten().collect()
    }

    /// Decides whether a document may load. Documents of frames may load. The main document may load once, and reload a few times.
    fn decide(&mut self, session: Option<String>, params: &Value) -> Reply {
        let request = text(params, "requestId");
        let go_on = |allowed: bool| match allowed {
            true => Reply {
                session: session.clone(),
                method: "Fetch.continueRequest",
                params: json!({"requestId": request}),
            },
            // The request is aborted, and the page keeps its document.
            false => Reply {
                session: session.clone(),
                method: "Fetch.failRequest",
                params: json!({"requestId": request, "errorReason": "Aborted"}),
            },
        };
        if params["frameId"] != self.main_frame {
            return go_on(true);
        }
        let uri = text(&params["request"], "url");
        let is_redirect = params["redirectedRequestId"].is_string();
        let Navigation { allowed, reloads } = &mut self.navigation;
        let may = match allowed {
            None => true,
            Some(_) if is_redirect => true,
            Some(allowed) if *allowed == uri && *reloads < RELOADS_MAX => {
                *reloads += 1;
                true
            }
            Some(_) => false,
        };
        match may {
            true => *allowed = Some(uri),
            false => keep(&mut self.departures, uri),
        }
        go_on(may)
    }
}

/// Returns the parameters with which frames in separate processes are attached.
pub(crate) fn auto_attach() -> Value {
    json!({
        "autoAttach": true,
        "waitForDebuggerOnStart": false,
        "flatten": true,
        "filter": [{"type": "iframe", "exclude": false}],
    })
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn keep(uris: &mut Vec<String>, uri: String) {
    let is_new = || !uris.contains(&uri);
    if uris.len() < URIS_MAX && uri.len() <= URI_BYTES_MAX && !uri.is_empty() && is_new() {
        uris.push(uri);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation() -> Observation {
        Observation {
            main_frame: "F".to_owned(),
            session: "S".to_owned(),
            ..Observation::default()
        }
    }

    fn event(method: &str, params: Value) -> Event {
        Event {
            session: Some("S".to_owned()),
            method: method.to_owned(),
            params,
        }
    }

    /// Returns `true` if a document may load.
    fn may_load(page: &mut Observation, frame: &str, uri: &str, is_redirect: bool) -> bool {
        let redirected = is_redirect.then_some("N");
        let params = json!({"requestId": "R", "frameId": frame, "request": {"url": uri},
            "redirectedRequestId": redirected});
        let replies = page.apply(event("Fetch.requestPaused", params));
        replies[0].method == "Fetch.continueRequest"
    }

    #[test]
    fn a_page_loads_and_reloads_and_cannot_navigate_away() {
        let mut page = observation();
        assert!(may_load(&mut page, "F", "http://a.test/", false));
        assert!(may_load(&mut page, "F", "http://a.test/en", true));
        assert!(may_load(&mut page, "G", "http://frame.test/", false));
        assert!(!may_load(&mut page, "F", "http://b.test/", false));
        for _ in 0..RELOADS_MAX {
            assert!(may_load(&mut page, "F", "http://a.test/en", false));
        }
        assert!(!may_load(&mut page, "F", "http://a.test/en", false));
        assert_eq!(page.departures, ["http://b.test/", "http://a.test/en"]);
    }

    #[test]
    fn a_new_document_is_not_loaded_before_its_load_event() {
        let mut page = observation();
        let loaded = || event("Page.loadEventFired", json!({}));
        page.apply(loaded());
        assert!(page.is_loaded);
        let frame = json!({"frame": {"id": "F", "url": "http://a.test/", "urlFragment": "#x"}});
        page.apply(event("Page.frameNavigated", frame));
        assert!(!page.is_loaded);
        assert_eq!(page.uri, "http://a.test/#x");
        page.apply(Event {
            session: Some("another frame".to_owned()),
            ..loaded()
        });
        assert!(!page.is_loaded);
    }

    #[test]
    fn requests_of_other_windows_fail_and_the_windows_are_closed() {
        let mut page = observation();
        let window = json!({"sessionId": "W", "targetInfo": {"type": "page", "targetId": "T"}});
        let methods = |replies: Vec<Reply>| -> Vec<(bool, &str)> {
            let methods = replies.iter().map(|it| (it.session.is_some(), it.method));
            methods.collect()
        };
        let replies = page.apply(event("Target.attachedToTarget", window));
        let held = [
            (true, "Fetch.enable"),
            (true, "Runtime.runIfWaitingForDebugger"),
        ];
        assert_eq!(methods(replies), held);
        let request = Event {
            session: Some("W".to_owned()),
            ..event("Fetch.requestPaused", json!({"requestId": "R"}))
        };
        let closed = [(true, "Fetch.failRequest"), (false, "Target.closeTarget")];
        assert_eq!(methods(page.apply(request)), closed);
    }

    #[test]
    fn a_dialog_is_dismissed_where_it_opened() {
        let mut page = observation();
        let dialog = event("Page.javascriptDialogOpening", json!({"message": "?"}));
        let replies = page.apply(dialog);
        assert_eq!(replies[0].method, "Page.handleJavaScriptDialog");
        assert_eq!(replies[0].session.as_deref(), Some("S"));
        assert_eq!(page.dialogs, 1);
    }
}
