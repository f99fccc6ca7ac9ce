//! The exports of a component, in any contract version: calls take and return types of the current contract. The callers check
//! questions and answers, once for all versions.

use std::collections::BTreeSet;

use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Result, Store};

use crate::bindings::exports::opilio::plugin::{
    change_evaluator, digest_stripper, extractor, filter, observer, page_behavior, precedence,
    setup, wait_evaluator,
};
use crate::call_state::CallState;
use crate::candidates::Candidates;
use crate::contract::Contract;
use crate::describe::Callable;
use crate::document::Document;
use crate::interface::{NotExported, exports, guest};
use crate::page::LoadedPage;
use crate::queue::Queue;
use crate::visit::Visit;
use crate::{
    Comparison, Description, Finished, Observation, Report, Ruling, SettingsFault, Span, Stage,
    StepPlan, StripProblem,
};
use crate::{v0_1, v0_2};

/// The functions of a component.
#[derive(Clone)]
pub(crate) enum Exports {
    V0_1(v0_1::Exports),
    V0_2(v0_2::Exports),
    Current(Current),
}

/// The functions of the current contract.
#[derive(Clone)]
pub(crate) struct Current {
    setup: setup::GuestIndices,
    extractor: Option<extractor::GuestIndices>,
    filter: Option<filter::GuestIndices>,
    digest_stripper: Option<digest_stripper::GuestIndices>,
    change_evaluator: Option<change_evaluator::GuestIndices>,
    wait_evaluator: Option<wait_evaluator::GuestIndices>,
    precedence: Option<precedence::GuestIndices>,
    observer: Option<observer::GuestIndices>,
    page_behavior: Option<page_behavior::GuestIndices>,
}

impl Exports {
    /// Finds the functions of a component with this contract version.
    pub(crate) fn new(contract: Contract, instance: &InstancePre<CallState>) -> Result<Self> {
        Ok(match contract {
            Contract::V0_1 => Self::V0_1(v0_1::Exports::new(instance)?),
            Contract::V0_2 => Self::V0_2(v0_2::Exports::new(instance)?),
            Contract::V0_3 => Self::Current(Current::new(instance)?),
        })
    }

    pub(crate) fn contract(&self) -> Contract {
        match self {
            Self::V0_1(_) => Contract::V0_1,
            Self::V0_2(_) => Contract::V0_2,
            Self::Current(_) => Contract::CURRENT,
        }
    }

    /// The kinds whose interfaces it exports.
    pub(crate) fn kinds(&self) -> BTreeSet<Callable> {
        let kinds = Callable::ALL.into_iter();
        match self {
            Self::V0_1(exports) => kinds.filter(|kind| exports.has(*kind)).collect(),
            Self::V0_2(exports) => kinds.filter(|kind| exports.has(*kind)).collect(),
            Self::Current(exports) => kinds.filter(|kind| exports.has(*kind)).collect(),
        }
    }

    /// Whether the exports have the contract's types.
    pub(crate) fn check_types(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> Result<()> {
        match self {
            Self::V0_1(exports) => exports.check_types(store, instance),
            Self::V0_2(exports) => exports.check_types(store, instance),
            Self::Current(exports) => exports.check_types(store, instance),
        }
    }

    pub(crate) fn describe(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> Result<Vec<Description>> {
        match self {
            Self::V0_1(exports) => exports.describe(store, instance),
            Self::V0_2(exports) => exports.describe(store, instance),
            Self::Current(exports) => {
                let guest = exports.setup.load(&mut *store, instance)?;
                guest.call_describe(store)
            }
        }
    }

    pub(crate) fn configure(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        name: &str,
        settings: &str,
    ) -> Result<std::result::Result<(), Vec<SettingsFault>>> {
        match self {
            Self::V0_1(exports) => exports.configure(store, instance, name, settings),
            Self::V0_2(exports) => exports.configure(store, instance, name, settings),
            Self::Current(exports) => {
                let guest = exports.setup.load(&mut *store, instance)?;
                guest.call_configure(store, name, settings)
            }
        }
    }

    pub(crate) fn extract(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        documents: &[Resource<Document>],
    ) -> Result<Vec<extractor::Extraction>> {
        match self {
            Self::V0_1(exports) => exports.extract(store, instance, documents),
            Self::V0_2(exports) => exports.extract(store, instance, documents),
            Self::Current(exports) => guest!(exports, store, instance, extractor, Extractor)
                .call_extract(store, documents),
        }
    }

    pub(crate) fn judge_candidates(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        stage: &Stage,
        candidates: &Candidates,
    ) -> Result<Vec<Ruling>> {
        match self {
            Self::V0_1(exports) => exports.judge_candidates(store, instance, stage, candidates),
            Self::V0_2(exports) => {
                let candidates = lend(store, candidates.clone())?;
                exports.judge_candidates(store, instance, stage, candidates)
            }
            Self::Current(exports) => {
                let guest = guest!(exports, store, instance, filter, Filter);
                let candidates = lend(store, candidates.clone())?;
                guest.call_judge_candidates(store, stage, candidates)
            }
        }
    }

    pub(crate) fn judge_document(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        stage: &Stage,
        document: &Document,
        visit: &Visit,
    ) -> Result<Ruling> {
        let (document, visit) = (lend(store, document.clone())?, lend(store, visit.clone())?);
        match self {
            Self::V0_1(exports) => exports.judge_document(store, instance, stage, document, visit),
            Self::V0_2(exports) => exports.judge_document(store, instance, stage, document, visit),
            Self::Current(exports) => guest!(exports, store, instance, filter, Filter)
                .call_judge_document(store, stage, document, visit),
        }
    }

    pub(crate) fn strip(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        document: &Document,
    ) -> Result<std::result::Result<Vec<Span>, StripProblem>> {
        let document = lend(store, document.clone())?;
        match self {
            Self::V0_1(exports) => exports.strip(store, instance, document),
            Self::V0_2(exports) => exports.strip(store, instance, document),
            Self::Current(exports) => {
                guest!(exports, store, instance, digest_stripper, DigestStripper)
                    .call_strip(store, document)
            }
        }
    }

    pub(crate) fn evaluate(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        visit: &Visit,
    ) -> Result<Option<wait_evaluator::Wait>> {
        let visit = lend(store, visit.clone())?;
        match self {
            Self::V0_1(exports) => exports.evaluate(store, instance, visit),
            Self::V0_2(exports) => exports.evaluate(store, instance, visit),
            Self::Current(exports) => {
                guest!(exports, store, instance, wait_evaluator, WaitEvaluator)
                    .call_evaluate(store, visit)
            }
        }
    }

    pub(crate) fn compare(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        document: &Document,
        visit: &Visit,
        last: Option<&[u8]>,
    ) -> Result<Comparison> {
        let (document, visit) = (lend(store, document.clone())?, lend(store, visit.clone())?);
        match self {
            Self::V0_1(_) => Err(NotExported(Callable::ChangeEvaluator).into()),
            Self::V0_2(exports) => exports.compare(store, instance, document, visit, last),
            Self::Current(exports) => {
                guest!(exports, store, instance, change_evaluator, ChangeEvaluator)
                    .call_compare(store, document, visit, last)
            }
        }
    }

    pub(crate) fn rank_candidates(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        candidates: &Candidates,
        document: Option<&Document>,
    ) -> Result<Vec<Option<u8>>> {
        let candidates = lend(store, candidates.clone())?;
        let document = match document {
            Some(document) => Some(lend(store, document.clone())?),
            None => None,
        };
        match self {
            Self::V0_1(_) => Err(NotExported(Callable::Precedence).into()),
            Self::V0_2(exports) => exports.rank_candidates(store, instance, candidates, document),
            Self::Current(exports) => guest!(exports, store, instance, precedence, Precedence)
                .call_rank_candidates(store, candidates, document),
        }
    }

    pub(crate) fn rank_queue(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        queue: &Queue,
    ) -> Result<Option<u8>> {
        let queue = lend(store, queue.clone())?;
        match self {
            Self::V0_1(_) => Err(NotExported(Callable::Precedence).into()),
            Self::V0_2(exports) => exports.rank_queue(store, instance, queue),
            Self::Current(exports) => guest!(exports, store, instance, precedence, Precedence)
                .call_rank_queue(store, queue),
        }
    }

    pub(crate) fn observe(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        memory: &[u8],
        events: &[Finished],
    ) -> Result<Observation> {
        match self {
            Self::V0_1(_) => Err(NotExported(Callable::Observer).into()),
            Self::V0_2(exports) => exports.observe(store, instance, memory, events),
            Self::Current(exports) => guest!(exports, store, instance, observer, Observer)
                .call_observe(store, memory, events),
        }
    }

    pub(crate) fn report(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        memory: &[u8],
        now: u64,
    ) -> Result<Vec<Report>> {
        match self {
            Self::V0_1(_) => Err(NotExported(Callable::Observer).into()),
            Self::V0_2(exports) => exports.report(store, instance, memory, now),
            Self::Current(exports) => {
                guest!(exports, store, instance, observer, Observer).call_report(store, memory, now)
            }
        }
    }

    pub(crate) fn step(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        page: &LoadedPage,
        visit: &Visit,
        memory: &[u8],
    ) -> Result<StepPlan> {
        let (page, visit) = (lend(store, page.clone())?, lend(store, visit.clone())?);
        match self {
            Self::V0_1(_) | Self::V0_2(_) => Err(NotExported(Callable::PageBehavior).into()),
            Self::Current(exports) => guest!(exports, store, instance, page_behavior, PageBehavior)
                .call_step(store, page, visit, memory),
        }
    }
}

impl Current {
    fn new(instance: &InstancePre<CallState>) -> Result<Self> {
        macro_rules! found {
            ($kind:ident, $interface:ident) => {
                exports(instance, Contract::CURRENT, Callable::$kind)
                    .then(|| $interface::GuestIndices::new(instance))
                    .transpose()?
            };
        }
        Ok(Self {
            setup: setup::GuestIndices::new(instance)?,
            extractor: found!(Extractor, extractor),
            filter: found!(Filter, filter),
            digest_stripper: found!(DigestStripper, digest_stripper),
            change_evaluator: found!(ChangeEvaluator, change_evaluator),
            wait_evaluator: found!(WaitEvaluator, wait_evaluator),
            precedence: found!(Precedence, precedence),
            observer: found!(Observer, observer),
            page_behavior: found!(PageBehavior, page_behavior),
        })
    }

    fn has(&self, kind: Callable) -> bool {
        match kind {
            Callable::Extractor => self.extractor.is_some(),
            Callable::Filter => self.filter.is_some(),
            Callable::DigestStripper => self.digest_stripper.is_some(),
            Callable::ChangeEvaluator => self.change_evaluator.is_some(),
            Callable::WaitEvaluator => self.wait_evaluator.is_some(),
            Callable::Precedence => self.precedence.is_some(),
            Callable::Observer => self.observer.is_some(),
            Callable::PageBehavior => self.page_behavior.is_some(),
        }
    }

    fn check_types(&self, store: &mut Store<CallState>, instance: &Instance) -> Result<()> {
        self.setup.load(&mut *store, instance)?;
        macro_rules! check {
            ($($interface:ident),+) => {
                $(if let Some(indices) = &self.$interface {
                    indices.load(&mut *store, instance)?;
                })+
            };
        }
        check!(
            extractor,
            filter,
            digest_stripper,
            change_evaluator,
            wait_evaluator,
            precedence,
            observer,
            page_behavior
        );
        Ok(())
    }
}

/// Makes a borrowed handle of a value. The store owns the value until the call is over.
fn lend<T: Send + 'static>(store: &mut Store<CallState>, value: T) -> Result<Resource<T>> {
    let owned = store.data_mut().table.push(value)?;
    Ok(Resource::new_borrow(owned.rep()))
}
