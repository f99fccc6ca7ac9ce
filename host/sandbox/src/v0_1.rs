//! Contract 0.1.0, which components from before 0.2.0 use. This module only converts types. Limits, checks and policy are the
//! same for every version, and are in other modules.

use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Result, Store};

use crate::answer_cache::CandidatesField;
use crate::bindings::exports::opilio::plugin::{
    extractor as today_extractor, wait_evaluator as today_wait_evaluator,
};
use crate::call_state::CallState;
use crate::candidates::Candidates;
use crate::contract::Contract;
use crate::describe::Callable;
use crate::document::Document;
use crate::interface::{NotExported, exports, guest};
use crate::visit::Visit;
use crate::{Description, Ruling, SettingsFault, Span, Stage, StripProblem};

mod bindings;
mod conv;
mod imports;

use bindings::exports::opilio::plugin::{
    digest_stripper, extractor, filter, setup, wait_evaluator,
};
pub(crate) use imports::link;

/// The functions of a component.
#[derive(Clone)]
pub(crate) struct Exports {
    setup: setup::GuestIndices,
    extractor: Option<extractor::GuestIndices>,
    filter: Option<filter::GuestIndices>,
    digest_stripper: Option<digest_stripper::GuestIndices>,
    wait_evaluator: Option<wait_evaluator::GuestIndices>,
}

impl Exports {
    pub(crate) fn new(instance: &InstancePre<CallState>) -> Result<Self> {
        macro_rules! found {
            ($kind:ident, $interface:ident) => {
                exports(instance, Contract::V0_1, Callable::$kind)
                    .then(|| $interface::GuestIndices::new(instance))
                    .transpose()?
            };
        }
        Ok(Self {
            setup: setup::GuestIndices::new(instance)?,
            extractor: found!(Extractor, extractor),
            filter: found!(Filter, filter),
            digest_stripper: found!(DigestStripper, digest_stripper),
            wait_evaluator: found!(WaitEvaluator, wait_evaluator),
        })
    }

    pub(crate) fn has(&self, kind: Callable) -> bool {
        match kind {
            Callable::Extractor => self.extractor.is_some(),
            Callable::Filter => self.filter.is_some(),
            Callable::DigestStripper => self.digest_stripper.is_some(),
            Callable::WaitEvaluator => self.wait_evaluator.is_some(),
            Callable::ChangeEvaluator
            | Callable::Precedence
            | Callable::Observer
            | Callable::PageBehavior => false,
        }
    }

    pub(crate) fn check_types(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> Result<()> {
        self.setup.load(&mut *store, instance)?;
        macro_rules! check {
            ($($interface:ident),+) => {
                $(if let Some(indices) = &self.$interface {
                    indices.load(&mut *store, instance)?;
                })+
            };
        }
        check!(extractor, filter, digest_stripper, wait_evaluator);
        Ok(())
    }

    pub(crate) fn describe(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> Result<Vec<Description>> {
        let guest = self.setup.load(&mut *store, instance)?;
        let plugins = guest.call_describe(store)?;
        Ok(plugins.into_iter().map(Into::into).collect())
    }

    pub(crate) fn configure(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        name: &str,
        settings: &str,
    ) -> Result<std::result::Result<(), Vec<SettingsFault>>> {
        let guest = self.setup.load(&mut *store, instance)?;
        let configured = guest.call_configure(store, name, settings)?;
        Ok(configured.map_err(|faults| faults.into_iter().map(Into::into).collect()))
    }

    pub(crate) fn extract(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        documents: &[Resource<Document>],
    ) -> Result<Vec<today_extractor::Extraction>> {
        let guest = guest!(self, store, instance, extractor, Extractor);
        let extractions = guest.call_extract(store, documents)?;
        Ok(extractions.into_iter().map(Into::into).collect())
    }

    pub(crate) fn judge_candidates(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        stage: &Stage,
        candidates: &Candidates,
    ) -> Result<Vec<Ruling>> {
        // The candidates are passed by value, so the guest need not ask for any.
        store.data_mut().by_uri = false;
        if let Some(trace) = &mut store.data_mut().trace {
            trace.of_candidates(CandidatesField::All, candidates);
        }
        let guest = guest!(self, store, instance, filter, Filter);
        let rulings = guest.call_judge_candidates(store, &stage.into(), candidates.as_slice())?;
        Ok(rulings.into_iter().map(Into::into).collect())
    }

    pub(crate) fn judge_document(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        stage: &Stage,
        document: Resource<Document>,
        visit: Resource<Visit>,
    ) -> Result<Ruling> {
        let guest = guest!(self, store, instance, filter, Filter);
        let ruling = guest.call_judge_document(store, &stage.into(), document, visit)?;
        Ok(ruling.into())
    }

    pub(crate) fn strip(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        document: Resource<Document>,
    ) -> Result<std::result::Result<Vec<Span>, StripProblem>> {
        let guest = guest!(self, store, instance, digest_stripper, DigestStripper);
        Ok(guest.call_strip(store, document)?.map_err(Into::into))
    }

    pub(crate) fn evaluate(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        visit: Resource<Visit>,
    ) -> Result<Option<today_wait_evaluator::Wait>> {
        let guest = guest!(self, store, instance, wait_evaluator, WaitEvaluator);
        Ok(guest.call_evaluate(store, visit)?.map(Into::into))
    }
}
