//! Contract 0.2.0, which components from before 0.3.0 use. This module only converts types. Limits, checks and policy are the same
//! for every version, and are in other modules.
//!
//! 0.3.0 added a kind, a stage and a resource. The types of the other interfaces are the same in both, so their functions are called
//! with the current types. wasmtime compares types by their structure when it looks a function up.

use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower,
    Resource, TypedFunc,
};
use wasmtime::{Result, Store};

use crate::bindings::exports::opilio::plugin::{extractor, wait_evaluator};
use crate::call_state::CallState;
use crate::candidates::Candidates;
use crate::contract::Contract;
use crate::describe::Callable;
use crate::document::Document;
use crate::interface::{NotExported, exports, guest};
use crate::queue::Queue;
use crate::visit::Visit;
use crate::{
    Comparison, Description, Finished, Observation, Report, Ruling, SettingsFault, Span, Stage,
    StripProblem,
};

mod bindings;
mod conv;
mod imports;

use bindings::exports::opilio::plugin::{filter, setup};
pub(crate) use imports::link;

/// The functions of a component.
#[derive(Clone)]
pub(crate) struct Exports {
    setup: setup::GuestIndices,
    filter: Option<filter::GuestIndices>,
    extract: Option<ComponentExportIndex>,
    strip: Option<ComponentExportIndex>,
    compare: Option<ComponentExportIndex>,
    evaluate: Option<ComponentExportIndex>,
    rank_candidates: Option<ComponentExportIndex>,
    rank_queue: Option<ComponentExportIndex>,
    observe: Option<ComponentExportIndex>,
    report: Option<ComponentExportIndex>,
}

/// Arguments and results of the functions that are called with the current types.
type Extract<'a> = TypedFunc<(&'a [Resource<Document>],), (Vec<extractor::Extraction>,)>;
type Strip = TypedFunc<(Resource<Document>,), (std::result::Result<Vec<Span>, StripProblem>,)>;
type Compare<'a> =
    TypedFunc<(Resource<Document>, Resource<Visit>, Option<&'a [u8]>), (Comparison,)>;
type Evaluate = TypedFunc<(Resource<Visit>,), (Option<wait_evaluator::Wait>,)>;
type RankCandidates =
    TypedFunc<(Resource<Candidates>, Option<Resource<Document>>), (Vec<Option<u8>>,)>;
type RankQueue = TypedFunc<(Resource<Queue>,), (Option<u8>,)>;
type Observe<'a> = TypedFunc<(&'a [u8], &'a [Finished]), (Observation,)>;
type ReportFunction<'a> = TypedFunc<(&'a [u8], u64), (Vec<Report>,)>;

impl Exports {
    pub(crate) fn new(instance: &InstancePre<CallState>) -> Result<Self> {
        let component = instance.component();
        let found = |kind, function| find(component, kind, function);
        Ok(Self {
            setup: setup::GuestIndices::new(instance)?,
            filter: exports(instance, Contract::V0_2, Callable::Filter)
                .then(|| filter::GuestIndices::new(instance))
                .transpose()?,
            extract: found(Callable::Extractor, "extract"),
            strip: found(Callable::DigestStripper, "strip"),
            compare: found(Callable::ChangeEvaluator, "compare"),
            evaluate: found(Callable::WaitEvaluator, "evaluate"),
            rank_candidates: found(Callable::Precedence, "rank-candidates"),
            rank_queue: found(Callable::Precedence, "rank-queue"),
            observe: found(Callable::Observer, "observe"),
            report: found(Callable::Observer, "report"),
        })
    }

    pub(crate) fn has(&self, kind: Callable) -> bool {
        match kind {
            Callable::Extractor => self.extract.is_some(),
            Callable::Filter => self.filter.is_some(),
            Callable::DigestStripper => self.strip.is_some(),
            Callable::ChangeEvaluator => self.compare.is_some(),
            Callable::WaitEvaluator => self.evaluate.is_some(),
            Callable::Precedence => self.rank_candidates.is_some() && self.rank_queue.is_some(),
            Callable::Observer => self.observe.is_some() && self.report.is_some(),
            Callable::PageBehavior => false,
        }
    }

    pub(crate) fn check_types(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> Result<()> {
        self.setup.load(&mut *store, instance)?;
        if let Some(filter) = &self.filter {
            filter.load(&mut *store, instance)?;
        }
        macro_rules! check {
            ($($function:ident: $type:ty),+ $(,)?) => {
                $(if let Some(index) = &self.$function {
                    let _: $type = instance.get_typed_func(&mut *store, index)?;
                })+
            };
        }
        check!(
            extract: Extract<'_>,
            strip: Strip,
            compare: Compare<'_>,
            evaluate: Evaluate,
            rank_candidates: RankCandidates,
            rank_queue: RankQueue,
            observe: Observe<'_>,
            report: ReportFunction<'_>,
        );
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

    pub(crate) fn judge_candidates(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        stage: &Stage,
        candidates: Resource<Candidates>,
    ) -> Result<Vec<Ruling>> {
        let guest = guest!(self, store, instance, filter, Filter);
        let rulings = guest.call_judge_candidates(store, &stage.into(), candidates)?;
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

    pub(crate) fn extract(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        documents: &[Resource<Document>],
    ) -> Result<Vec<extractor::Extraction>> {
        let index = self.extract.as_ref();
        call(store, instance, index, Callable::Extractor, (documents,))
    }

    pub(crate) fn strip(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        document: Resource<Document>,
    ) -> Result<std::result::Result<Vec<Span>, StripProblem>> {
        let index = self.strip.as_ref();
        call(
            store,
            instance,
            index,
            Callable::DigestStripper,
            (document,),
        )
    }

    pub(crate) fn compare(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        document: Resource<Document>,
        visit: Resource<Visit>,
        last: Option<&[u8]>,
    ) -> Result<Comparison> {
        let index = self.compare.as_ref();
        let arguments = (document, visit, last);
        call(store, instance, index, Callable::ChangeEvaluator, arguments)
    }

    pub(crate) fn evaluate(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        visit: Resource<Visit>,
    ) -> Result<Option<wait_evaluator::Wait>> {
        let index = self.evaluate.as_ref();
        call(store, instance, index, Callable::WaitEvaluator, (visit,))
    }

    pub(crate) fn rank_candidates(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        candidates: Resource<Candidates>,
        document: Option<Resource<Document>>,
    ) -> Result<Vec<Option<u8>>> {
        let index = self.rank_candidates.as_ref();
        let arguments = (candidates, document);
        call(store, instance, index, Callable::Precedence, arguments)
    }

    pub(crate) fn rank_queue(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        queue: Resource<Queue>,
    ) -> Result<Option<u8>> {
        let index = self.rank_queue.as_ref();
        call(store, instance, index, Callable::Precedence, (queue,))
    }

    pub(crate) fn observe(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        memory: &[u8],
        events: &[Finished],
    ) -> Result<Observation> {
        let index = self.observe.as_ref();
        let arguments = (memory, events);
        call(store, instance, index, Callable::Observer, arguments)
    }

    pub(crate) fn report(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        memory: &[u8],
        now: u64,
    ) -> Result<Vec<Report>> {
        let index = self.report.as_ref();
        call(store, instance, index, Callable::Observer, (memory, now))
    }
}

/// Finds a function in the interface of a kind.
fn find(component: &Component, kind: Callable, function: &str) -> Option<ComponentExportIndex> {
    let interface = Contract::V0_2.interface(kind.name());
    let interface = component.get_export_index(None, interface.as_str())?;
    component.get_export_index(Some(&interface), function)
}

/// Calls a function whose types are those of the current contract.
fn call<P, R>(
    store: &mut Store<CallState>,
    instance: &Instance,
    function: Option<&ComponentExportIndex>,
    kind: Callable,
    arguments: P,
) -> Result<R>
where
    P: ComponentNamedList + Lower,
    (R,): ComponentNamedList + Lift,
    R: Send + Sync + 'static,
{
    let function = function.ok_or(NotExported(kind))?;
    let function: TypedFunc<P, (R,)> = instance.get_typed_func(&mut *store, function)?;
    let (answer,) = function.call(store, arguments)?;
    Ok(answer)
}
