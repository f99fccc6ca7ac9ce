//! The imports of contract 0.1.0: each does the same as the current import of that name.

use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::opilio::plugin::{counters, documents, log};
use crate::bindings::opilio::plugin::{
    counters as today_counters, documents as today, log as today_log,
};
use crate::call_state::CallState;
use crate::document::Document;
use crate::log_line::LogLevel;
use crate::types::opilio::plugin::types::{
    Candidate, ContentState, Header, Neighbourhood, PastVisit, Signal,
};
use crate::visit::Visit;

/// Defines the imports. `types` needs no definition: it has no functions.
pub(crate) fn link(linker: &mut Linker<CallState>) -> Result<()> {
    type Own = HasSelf<CallState>;
    documents::add_to_linker::<_, Own>(linker, |state| state)?;
    log::add_to_linker::<_, Own>(linker, |state| state)?;
    counters::add_to_linker::<_, Own>(linker, |state| state)
}

macro_rules! as_today {
    ($today:ident, $resource:ident: $($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        $(fn $method(&mut self, this: Resource<$resource> $(, $argument: $type)*) -> Result<$answer> {
            today::$today::$method(self, this $(, $argument)*)
        })+

        fn drop(&mut self, this: Resource<$resource>) -> Result<()> {
            today::$today::drop(self, this)
        }
    };
}

impl documents::Host for CallState {}

impl documents::HostDocument for CallState {
    as_today! { HostDocument, Document:
        uri() -> String;
        base() -> String;
        status() -> i32;
        headers() -> Vec<Header>;
        header(name: String) -> Vec<String>;
        media_type() -> String;
        charset() -> Option<String>;
        fragment() -> Option<String>;
        length() -> u64;
        read(offset: u64, length: u32) -> Vec<u8>;
        text() -> String;
        note(name: String) -> Option<String>;
        set_note(name: String, value: String) -> ();
        annotate(annotation: String) -> ();
    }
}

impl documents::HostVisit for CallState {
    as_today! { HostVisit, Visit:
        candidate() -> Candidate;
        now() -> u64;
        status() -> i32;
        media_type() -> String;
        state() -> ContentState;
        size() -> Option<u64>;
        last_wait() -> Option<u64>;
        overdue() -> u64;
        visits() -> u64;
        versions() -> u64;
        history() -> Vec<PastVisit>;
        validator(name: String) -> Option<String>;
        outlinks() -> u64;
        inlinks() -> u64;
        signals() -> Vec<Signal>;
        neighbourhood() -> Vec<Neighbourhood>;
        measure(name: String) -> Option<f64>;
    }
}

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        let level = match level {
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        today_log::Host::write(self, level, message)
    }
}

impl counters::Host for CallState {
    fn count(&mut self, name: String, n: u64) -> Result<()> {
        today_counters::Host::count(self, name, n)
    }
}
