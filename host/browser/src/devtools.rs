//! DevTools over a pipe: JSON messages that end with a zero byte, commands with their answers, and events.
//!
//! Chromium reads descriptor 3 and writes descriptor 4 (`--remote-debugging-pipe`). So no port is open that a page or another user
//! could reach, and Chromium ends when the pipe is closed. Messages are [`Value`]s, because this crate needs only some thirty of
//! the protocol's 1,500 types (decision 58).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};
use tokio::io::{BufReader, Take};
use tokio::sync::{mpsc, oneshot, watch};

/// Maximum bytes of a message. Longer ones are dropped unread, because pages can make the browser send strings of any length.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum events that wait for the page's observer. At this number, nothing is read from the browser.
const EVENTS_WAITING_MAX: usize = 1024;

/// A connection to a browser. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct DevTools {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Vec<u8>>,
    closed: watch::Receiver<bool>,
}

/// A message of the browser that is not the answer to a command.
#[derive(Debug)]
pub(crate) struct Event {
    /// Session of a page or frame; `None` for the browser.
    pub session: Option<String>,
    pub method: String,
    pub params: Value,
}

/// Reason for which a command has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandFailure {
    /// The browser has ended.
    Closed,
    /// The browser has refused the command with this message.
    Refused(String),
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Value, String>>>,
    observer: Option<mpsc::Sender<Event>>,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DevTools {
    /// Connects over the two ends of the pipe, until the browser closes them.
    pub(crate) fn connect(
        input: impl AsyncWrite + Unpin + Send + 'static,
        output: impl AsyncRead + Unpin + Send + 'static,
    ) -> DevTools {
        let shared = Arc::new(Shared::default());
        let (commands, queue) = mpsc::unbounded_channel();
        let (close, closed) = watch::channel(false);
        tokio::spawn(write_all(input, queue));
        let reading = shared.clone();
        tokio::spawn(async move {
            read_all(&reading, output).await;
            let mut state = reading.lock();
            state.is_closed = true;
            state.waiting.clear();
            state.observer = None;
            close.send_replace(true);
        });
        DevTools {
            shared,
            commands,
            closed,
        }
    }

    /// Sends a command and waits for its result.
    pub(crate) async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, CommandFailure> {
        let (answer, result) = oneshot::channel();
        let id = {
            let mut state = self.shared.lock();
            if state.is_closed {
                return Err(CommandFailure::Closed);
            }
            state.last_id += 1;
            let id = state.last_id;
            state.waiting.insert(id, answer);
            id
        };
        let _waiting = Waiting {
            shared: &self.shared,
            id,
        };
        self.write(id, session, method, params);
        match result.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(message)) => Err(CommandFailure::Refused(message)),
            Err(_) => Err(CommandFailure::Closed),
        }
    }

    /// Sends a command whose result does not matter.
    pub(crate) fn send(&self, session: Option<&str>, method: &str, params: Value) {
        let id = {
            let mut state = self.shared.lock();
            state.last_id += 1;
            state.last_id
        };
        self.write(id, session, method, params);
    }

    fn write(&self, id: u64, session: Option<&str>, method: &str, params: Value) {
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        // The reader detects the end of the browser.
        let _ = self.commands.send(bytes);
    }

    /// Directs all events to a new observer. A browser has one page, so one observer, at a time.
    pub(crate) fn observe(&self) -> mpsc::Receiver<Event> {
        let (observer, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let mut state = self.shared.lock();
        if !state.is_closed {
            state.observer = Some(observer);
        }
        events
    }

    /// Resolves once the browser has closed the pipe.
    pub(crate) async fn closed(&self) {
        let mut closed = self.closed.clone();
        // The end of the reader also means that the pipe is closed.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Returns `true` if the browser has closed the pipe.
    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }
}

/// Removes a command that is no longer waited for, when this is dropped.
struct Waiting<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.lock().waiting.remove(&self.id);
    }
}

async fn write_all(
    mut input: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    while let Some(message) = queue.recv().await {
        if input.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn read_all(shared: &Shared, output: impl AsyncRead + Unpin) {
    let mut output = BufReader::with_capacity(64 * 1024, output).take(MESSAGE_BYTES_MAX);
    let mut message = Vec::new();
    while read_message(&mut output, &mut message).await {
        let Some(Value::Object(mut fields)) = parse(&message) else {
            continue;
        };
        // The buffer is released, because a large message such as a screenshot would occupy its memory until the browser ends.
        message = Vec::new();
        let id = fields.get("id").and_then(Value::as_u64);
        if let Some(id) = id {
            let answer = shared.lock().waiting.remove(&id);
            let result = match fields.remove("error") {
                None => Ok(fields.remove("result").unwrap_or_default()),
                Some(error) => Err(error["message"].as_str().unwrap_or("no reason").to_owned()),
            };
            if let Some(answer) = answer {
                let _ = answer.send(result);
            }
            continue;
        }
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let Some(method) = text(fields.remove("method")) else {
            continue;
        };
        let event = Event {
            session: text(fields.remove("sessionId")),
            method,
            params: fields.remove("params").unwrap_or_default(),
        };
        let observer = shared.lock().observer.clone();
        if let Some(observer) = observer
            && observer.send(event).await.is_err()
        {
            shared.lock().observer = None;
        }
    }
}

/// Parses a message. Strings of pages may contain half a surrogate pair, which is valid in JavaScript but not in JSON.
fn parse(message: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(message) {
        return Some(value);
    }
    let repaired = replace_lone_surrogates(&String::from_utf8_lossy(message));
    serde_json::from_str(&repaired).ok()
}

/// Replaces escapes of unpaired surrogates by the escape of U+FFFD.
fn replace_lone_surrogates(json: &str) -> String {
    /// The code unit of an escape at the start of the text.
    fn escaped_unit(text: &str) -> Option<u16> {
        u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
    }
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let next = rest.get(6..).and_then(escaped_unit);
        let length = match (escaped_unit(rest), next) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(0xD800..0xE000), _) => {
                repaired.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            // Skips an escape of one character, which may be a backslash.
            (None, _) => rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at),
        };
        repaired.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    repaired + rest
}

/// Reads one message without its zero byte. A message that is too long is replaced by an empty one. Returns `false` at the end.
async fn read_message<R: AsyncRead + Unpin>(
    output: &mut Take<BufReader<R>>,
    message: &mut Vec<u8>,
) -> bool {
    message.clear();
    let mut is_too_long = false;
    loop {
        output.set_limit(MESSAGE_BYTES_MAX);
        match output.read_until(0, message).await {
            Ok(1..) if message.last() == Some(&0) => {
                message.pop();
                if is_too_long {
                    message.clear();
                }
                return true;
            }
            Ok(1..) if message.len() as u64 >= MESSAGE_BYTES_MAX => {
                is_too_long = true;
                message.clear();
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection to a browser that sends these messages and reads nothing.
    fn connect(messages: &[&str]) -> DevTools {
        let mut bytes = Vec::new();
        for message in messages {
            bytes.extend_from_slice(message.as_bytes());
            bytes.push(0);
        }
        let (stays_open, output) = tokio::io::duplex(64);
        tokio::spawn(async move {
            let mut stays_open = stays_open;
            let _ = stays_open.write_all(&bytes).await;
            std::future::pending::<()>().await;
        });
        DevTools::connect(tokio::io::sink(), output)
    }

    #[test]
    fn unpaired_surrogates_are_replaced() {
        let parse = |json: &str| parse(json.as_bytes());
        assert_eq!(parse(r#""a\ud800b""#), Some(json!("a\u{FFFD}b")));
        assert_eq!(
            parse(r#""\udc00\ud83d\ude00""#),
            Some(json!("\u{FFFD}\u{1F600}"))
        );
        assert_eq!(parse(r#""\ud800\\ud800""#), Some(json!("\u{FFFD}\\ud800")));
        assert_eq!(parse("{"), None);
    }

    #[tokio::test]
    async fn answers_are_matched_to_commands_by_number() {
        let browser = connect(&[
            r#"{"id":2,"error":{"code":-1,"message":"no such page"}}"#,
            "not JSON",
            r#"{"id":1,"result":{"product":"Chrome/156"}}"#,
        ]);
        let (first, second) = tokio::join!(
            browser.call(None, "Browser.getVersion", json!({})),
            browser.call(Some("S"), "Page.enable", json!({})),
        );
        assert_eq!(first, Ok(json!({"product": "Chrome/156"})));
        assert_eq!(
            second,
            Err(CommandFailure::Refused("no such page".to_owned()))
        );
    }

    #[tokio::test]
    async fn waiting_commands_fail_when_the_browser_ends() {
        let (input, output) = tokio::io::duplex(64);
        let browser = DevTools::connect(tokio::io::sink(), output);
        let call = browser.call(None, "Browser.getVersion", json!({}));
        let (result, ()) = tokio::join!(call, async { drop(input) });
        assert_eq!(result, Err(CommandFailure::Closed));
        assert_eq!(
            browser.call(None, "Browser.close", json!({})).await,
            Err(CommandFailure::Closed)
        );
    }

    #[tokio::test]
    async fn a_message_beyond_the_limit_is_dropped_and_the_next_is_read() {
        let (mut input, output) = tokio::io::duplex(1024 * 1024);
        let browser = DevTools::connect(tokio::io::sink(), output);
        let write = async move {
            let block = vec![b'x'; 1024 * 1024];
            for _ in 0..=MESSAGE_BYTES_MAX / (1024 * 1024) {
                input.write_all(&block).await.expect("the reader reads on");
            }
            let answer = b"\0{\"id\":1,\"result\":7}\0";
            input.write_all(answer).await.expect("the reader reads on");
            input
        };
        let call = browser.call(None, "Page.enable", json!({}));
        let (result, _input) = tokio::join!(call, write);
        assert_eq!(result, Ok(json!(7)));
    }
}
