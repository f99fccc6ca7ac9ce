//! `export!`, and the exports of a component. They call the plugin that `configure` stored.

/// Makes a component of plugins, listed by kind. A plugin of several kinds is in several lists.
///
/// ```ignore
/// opilio_plugin::export!(filters: [Hops, PathDepth], extractors: [Feed]);
/// ```
///
/// The macro also defines `pub fn plugins() -> Plugins`, for tests and benchmarks.
#[macro_export]
macro_rules! export {
    ($($kind:ident: [$($plugin:ty),+ $(,)?]),+ $(,)?) => {
        /// The plugins of this component.
        #[must_use]
        pub fn plugins() -> $crate::Plugins {
            let plugins = $crate::Plugins::new(env!("CARGO_PKG_VERSION"));
            $($(let plugins = $crate::__add!(plugins, $kind, $plugin);)+)+
            plugins
        }

        /// The plugins' names in a custom section, one per line, for tools that do not run the component.
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            const NAMES: &[&str] = &[$($(<$plugin as $crate::Plugin>::NAME),+),+];
            #[used]
            #[unsafe(link_section = "opilio:plugins")]
            static SECTION: [u8; $crate::lines_length(NAMES)] = $crate::lines(NAMES);
        };

        #[cfg(target_arch = "wasm32")]
        #[doc(hidden)]
        pub struct OpilioComponent;

        #[cfg(target_arch = "wasm32")]
        impl $crate::Component for OpilioComponent {
            fn plugins() -> $crate::Plugins {
                plugins()
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::bindings::setup::export!(OpilioComponent with_types_in $crate::bindings::setup);
        $(
            #[cfg(target_arch = "wasm32")]
            $crate::__export_kind!($kind);
        )+
    };
}

/// Length of [`lines`].
#[doc(hidden)]
#[must_use]
pub const fn lines_length(texts: &[&str]) -> usize {
    let (mut length, mut at) = (0, 0);
    while at < texts.len() {
        length += texts[at].len() + 1;
        at += 1;
    }
    length
}

/// Joins texts, with a line feed after each.
#[doc(hidden)]
#[must_use]
pub const fn lines<const LENGTH: usize>(texts: &[&str]) -> [u8; LENGTH] {
    let mut lines = [b'\n'; LENGTH];
    let (mut written, mut at) = (0, 0);
    while at < texts.len() {
        let text = texts[at].as_bytes();
        let mut byte = 0;
        while byte < text.len() {
            lines[written + byte] = text[byte];
            byte += 1;
        }
        written += text.len() + 1;
        at += 1;
    }
    lines
}

#[doc(hidden)]
#[macro_export]
macro_rules! __add {
    ($plugins:ident, extractors, $plugin:ty) => {
        $plugins.extractor::<$plugin>()
    };
    ($plugins:ident, filters, $plugin:ty) => {
        $plugins.filter::<$plugin>()
    };
    ($plugins:ident, digest_strippers, $plugin:ty) => {
        $plugins.digest_stripper::<$plugin>()
    };
    ($plugins:ident, change_evaluators, $plugin:ty) => {
        $plugins.change_evaluator::<$plugin>()
    };
    ($plugins:ident, precedences, $plugin:ty) => {
        $plugins.precedence::<$plugin>()
    };
    ($plugins:ident, observers, $plugin:ty) => {
        $plugins.observer::<$plugin>()
    };
    ($plugins:ident, wait_evaluators, $plugin:ty) => {
        $plugins.wait_evaluator::<$plugin>()
    };
    ($plugins:ident, page_behaviors, $plugin:ty) => {
        $plugins.page_behavior::<$plugin>()
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_kind {
    (extractors) => {
        $crate::bindings::extractor::export!(OpilioComponent with_types_in $crate::bindings::extractor);
    };
    (filters) => {
        $crate::bindings::filter::export!(OpilioComponent with_types_in $crate::bindings::filter);
    };
    (digest_strippers) => {
        $crate::bindings::digest_stripper::export!(OpilioComponent with_types_in $crate::bindings::digest_stripper);
    };
    (change_evaluators) => {
        $crate::bindings::change_evaluator::export!(OpilioComponent with_types_in $crate::bindings::change_evaluator);
    };
    (precedences) => {
        $crate::bindings::precedence::export!(OpilioComponent with_types_in $crate::bindings::precedence);
    };
    (observers) => {
        $crate::bindings::observer::export!(OpilioComponent with_types_in $crate::bindings::observer);
    };
    (wait_evaluators) => {
        $crate::bindings::wait_evaluator::export!(OpilioComponent with_types_in $crate::bindings::wait_evaluator);
    };
    (page_behaviors) => {
        $crate::bindings::page_behavior::export!(OpilioComponent with_types_in $crate::bindings::page_behavior);
    };
}

#[cfg(target_arch = "wasm32")]
mod component {
    use std::cell::OnceCell;

    use crate::bindings::{
        change_evaluator, digest_stripper, extractor, filter, observer, page_behavior, precedence,
        setup, wait_evaluator,
    };
    use crate::{
        CandidatesHandle, Comparison, Component, Configured, Description, Document, Extraction,
        Finished, Observation, Page, Queue, Report, Ruling, SettingsFault, Span, Stage, StepPlan,
        StripProblem, Visit, Wait,
    };

    thread_local! {
        static CONFIGURED: OnceCell<Configured> = const { OnceCell::new() };
    }

    fn configured<T>(call: impl FnOnce(&Configured) -> T) -> T {
        CONFIGURED.with(|plugin| match plugin.get() {
            Some(plugin) => call(plugin),
            None => panic!("called before `configure`"),
        })
    }

    /// Upper limit of the memory that a call on an ordinary page allocates, in bytes.
    const HEAP_BYTES: usize = 512 * 1024;
    /// Size of one allocation, small enough to come from the heap.
    const BLOCK_BYTES: usize = 32 * 1024;

    /// Grows the heap in advance. Every call begins with the memory that `configure` left, so calls rarely need to grow it.
    fn reserve_heap() {
        let blocks: Vec<Vec<u8>> = (0..HEAP_BYTES / BLOCK_BYTES)
            .map(|_| Vec::with_capacity(BLOCK_BYTES))
            .collect();
        std::hint::black_box(blocks);
    }

    /// Logs the message of a panic, which would otherwise be lost with the trap.
    fn log_panics() {
        std::panic::set_hook(Box::new(|panic| crate::error(panic.to_string())));
    }

    impl<C: Component> setup::exports::opilio::plugin::setup::Guest for C {
        fn describe() -> Vec<Description> {
            C::plugins().describe()
        }

        fn configure(name: String, settings: String) -> Result<(), Vec<SettingsFault>> {
            log_panics();
            let plugin = C::plugins().configure(&name, &settings)?;
            reserve_heap();
            CONFIGURED
                .with(|configured| configured.set(plugin))
                .map_err(|_| vec![SettingsFault::new("", "configured twice")])
        }
    }

    impl<C: Component> extractor::exports::opilio::plugin::extractor::Guest for C {
        fn extract(documents: Vec<Document>) -> Vec<Extraction> {
            configured(|plugin| plugin.extract(&documents))
        }
    }

    impl<C: Component> filter::exports::opilio::plugin::filter::Guest for C {
        fn judge_candidates(stage: Stage, candidates: &CandidatesHandle) -> Vec<Ruling> {
            configured(|plugin| plugin.judge_candidates(&stage, candidates))
        }

        fn judge_document(stage: Stage, document: &Document, visit: &Visit) -> Ruling {
            configured(|plugin| plugin.judge_document(&stage, document, visit))
        }
    }

    impl<C: Component> digest_stripper::exports::opilio::plugin::digest_stripper::Guest for C {
        fn strip(document: &Document) -> Result<Vec<Span>, StripProblem> {
            configured(|plugin| plugin.strip(document))
        }
    }

    impl<C: Component> change_evaluator::exports::opilio::plugin::change_evaluator::Guest for C {
        fn compare(document: &Document, visit: &Visit, last: Option<Vec<u8>>) -> Comparison {
            configured(|plugin| plugin.compare(document, visit, last.as_deref()))
        }
    }

    impl<C: Component> precedence::exports::opilio::plugin::precedence::Guest for C {
        fn rank_candidates(
            candidates: &CandidatesHandle,
            document: Option<&Document>,
        ) -> Vec<Option<u8>> {
            configured(|plugin| plugin.rank_candidates(candidates, document))
        }

        fn rank_queue(queue: &Queue) -> Option<u8> {
            configured(|plugin| plugin.rank_queue(queue))
        }
    }

    impl<C: Component> observer::exports::opilio::plugin::observer::Guest for C {
        fn observe(memory: Vec<u8>, events: Vec<Finished>) -> Observation {
            configured(|plugin| plugin.observe(&memory, &events))
        }

        fn report(memory: Vec<u8>, now: u64) -> Vec<Report> {
            configured(|plugin| plugin.report(&memory, now))
        }
    }

    impl<C: Component> wait_evaluator::exports::opilio::plugin::wait_evaluator::Guest for C {
        fn evaluate(visit: &Visit) -> Option<Wait> {
            configured(|plugin| plugin.evaluate(visit))
        }
    }

    impl<C: Component> page_behavior::exports::opilio::plugin::page_behavior::Guest for C {
        fn step(page: &Page, visit: &Visit, memory: Vec<u8>) -> StepPlan {
            configured(|plugin| plugin.step(page, visit, &memory))
        }
    }
}
