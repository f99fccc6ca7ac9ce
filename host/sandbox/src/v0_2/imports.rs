//! The imports of contract 0.2.0: each does the same as the current import of that name.

use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::opilio::plugin::{counters, documents, log, tables};
use crate::bindings::opilio::plugin::{
    counters as today_counters, documents as today, log as today_log, tables as today_tables,
};
use crate::call_state::CallState;
use crate::candidates::Candidates;
use crate::document::Document;
use crate::log_line::LogLevel;
use crate::queue::Queue;
use crate::types::opilio::plugin::types::{
    Candidate, ContentState, Header, KeptValue, Neighbourhood, PastVisit, Signal,
};
use crate::visit::Visit;

/// Defines the imports. `types` needs no definition: it has no functions.
pub(crate) fn link(linker: &mut Linker<CallState>) -> Result<()> {
    type Own = HasSelf<CallState>;
    documents::add_to_linker::<_, Own>(linker, |state| state)?;
    tables::add_to_linker::<_, Own>(linker, |state| state)?;
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
        attribute(name: String) -> Option<KeptValue>;
        set_attribute(name: String, value: String) -> ();
        site_value(name: String) -> Option<KeptValue>;
        set_site_value(name: String, value: String) -> ();
    }
}

impl documents::HostCandidates for CallState {
    as_today! { HostCandidates, Candidates:
        length() -> u32;
        uris() -> String;
        surts() -> String;
        hop_paths() -> String;
        contexts() -> String;
        vias() -> String;
        via_surts() -> String;
        sources() -> String;
        seeds() -> Vec<bool>;
        addresses() -> String;
        get(index: u32) -> Candidate;
    }
}

impl documents::HostQueue for CallState {
    as_today! { HostQueue, Queue:
        name() -> String;
        queued() -> u64;
        succeeded() -> u64;
        failed() -> u64;
        bytes() -> u64;
        best() -> Option<u8>;
        base() -> u8;
        now() -> u64;
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
        attribute(name: String) -> Option<KeptValue>;
        set_attribute(name: String, value: String) -> ();
        site_value(name: String) -> Option<KeptValue>;
        set_site_value(name: String, value: String) -> ();
        note(name: String) -> Option<String>;
    }
}

impl tables::Host for CallState {
    fn kind_of(&mut self, table: String) -> Result<Option<tables::Kind>> {
        let kind = today_tables::Host::kind_of(self, table)?;
        Ok(kind.map(|kind| match kind {
            today_tables::Kind::SurtPrefixes => tables::Kind::SurtPrefixes,
            today_tables::Kind::Regexes => tables::Kind::Regexes,
            today_tables::Kind::KeyValues => tables::Kind::KeyValues,
            today_tables::Kind::Other(name) => tables::Kind::Other(name),
        }))
    }

    fn find(&mut self, table: String, key: String) -> Result<Option<tables::Row>> {
        let row = today_tables::Host::find(self, table, key)?;
        Ok(row.map(|today_tables::Row { key, value }| tables::Row { key, value }))
    }

    fn find_candidates(
        &mut self,
        table: String,
        candidates: Resource<Candidates>,
    ) -> Result<Vec<bool>> {
        today_tables::Host::find_candidates(self, table, candidates)
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
