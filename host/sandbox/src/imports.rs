//! The imports of the contract, for one call: its arguments, tables, log and counters. They give no access to the machine.

use wasmtime::component::{HasSelf, Linker, Resource};

use crate::answer_cache::{CandidatesField, DocumentField, VisitField};
use crate::bindings::opilio::plugin::{counters, documents, log, tables};
use crate::call_state::CallState;
use crate::candidates::{Candidates, Column};
use crate::document::Document;
use crate::kept_values::{KeptFor, SharedKeptValues};
use crate::log_line::LogLevel;
use crate::lookups;
use crate::owner::Owner;
use crate::queue::Queue;
use crate::types::opilio::plugin::types;
use crate::visit::{Visit, instant, millis};

/// Different counters that are summed up within a call before they reach the statistics.
const COUNTS_MAX: usize = 256;

/// Defines the imports.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type Own = HasSelf<CallState>;
    types::add_to_linker::<_, Own>(linker, |state| state)?;
    documents::add_to_linker::<_, Own>(linker, |state| state)?;
    tables::add_to_linker::<_, Own>(linker, |state| state)?;
    log::add_to_linker::<_, Own>(linker, |state| state)?;
    counters::add_to_linker::<_, Own>(linker, |state| state)
}

impl CallState {
    fn owner(&self) -> Owner<'_> {
        self.callee.owner()
    }

    /// Reads a document, and notes the value for remembered answers.
    fn of_document(
        &mut self,
        document: &Resource<Document>,
        question: impl FnOnce() -> DocumentField,
    ) -> wasmtime::Result<&Document> {
        let document = self.table.get(document)?;
        if let Some(trace) = &mut self.trace {
            trace.of_document(question(), document, self.callee.owner());
        }
        Ok(document)
    }

    /// Reads a visit, and notes the value for remembered answers.
    fn of_visit(
        &mut self,
        visit: &Resource<Visit>,
        question: impl FnOnce() -> VisitField,
    ) -> wasmtime::Result<&Visit> {
        let visit = self.table.get(visit)?;
        if let Some(trace) = &mut self.trace {
            trace.of_visit(question(), visit, self.callee.owner());
        }
        Ok(visit)
    }

    /// Reads candidates, and notes the values for remembered answers.
    fn of_candidates(
        &mut self,
        candidates: &Resource<Candidates>,
        question: CandidatesField,
    ) -> wasmtime::Result<&Candidates> {
        self.by_uri &= question.is_of_uri();
        let candidates = self.table.get(candidates)?;
        if let Some(trace) = &mut self.trace {
            trace.of_candidates(question, candidates);
        }
        Ok(candidates)
    }

    /// Reads a part of a visit that differs each time. The answer of this call cannot be remembered.
    fn of_this_visit(&mut self, visit: &Resource<Visit>) -> wasmtime::Result<&Visit> {
        self.mark_unrepeatable();
        Ok(self.table.get(visit)?)
    }

    fn keep(&mut self, kept: &SharedKeptValues, place: KeptFor, name: String, value: String) {
        self.mark_unrepeatable();
        if self.owner().set(kept, place, name, value).is_err() {
            self.kept_dropped += 1;
        }
    }
}

impl types::Host for CallState {}
impl documents::Host for CallState {}

impl documents::HostDocument for CallState {
    fn uri(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self
            .of_document(&document, || DocumentField::Uri)?
            .uri()
            .to_owned())
    }

    fn base(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self.of_document(&document, || DocumentField::Base)?.base())
    }

    fn status(&mut self, document: Resource<Document>) -> wasmtime::Result<i32> {
        let document = self.of_document(&document, || DocumentField::Status)?;
        Ok(document.status())
    }

    fn headers(&mut self, document: Resource<Document>) -> wasmtime::Result<Vec<types::Header>> {
        Ok(self
            .of_document(&document, || DocumentField::Headers)?
            .headers()
            .to_vec())
    }

    fn header(
        &mut self,
        document: Resource<Document>,
        name: String,
    ) -> wasmtime::Result<Vec<String>> {
        let document = self.of_document(&document, || DocumentField::Header(name.clone()))?;
        Ok(document.values_of(&name).cloned().collect())
    }

    fn media_type(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self
            .of_document(&document, || DocumentField::MediaType)?
            .media_type()
            .to_owned())
    }

    fn charset(&mut self, document: Resource<Document>) -> wasmtime::Result<Option<String>> {
        Ok(self
            .of_document(&document, || DocumentField::Charset)?
            .charset()
            .map(|charset| charset.name().to_ascii_lowercase()))
    }

    fn fragment(&mut self, document: Resource<Document>) -> wasmtime::Result<Option<String>> {
        Ok(self
            .of_document(&document, || DocumentField::Fragment)?
            .fragment()
            .map(str::to_owned))
    }

    fn length(&mut self, document: Resource<Document>) -> wasmtime::Result<u64> {
        Ok(self
            .of_document(&document, || DocumentField::Length)?
            .content()
            .len() as u64)
    }

    fn read(
        &mut self,
        document: Resource<Document>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Vec<u8>> {
        let document = self.of_document(&document, || DocumentField::Read { offset, length })?;
        Ok(document.part(offset, length).to_vec())
    }

    fn text(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self
            .of_document(&document, || DocumentField::Text)?
            .text()
            .to_owned())
    }

    fn note(
        &mut self,
        document: Resource<Document>,
        name: String,
    ) -> wasmtime::Result<Option<String>> {
        Ok(self
            .of_document(&document, || DocumentField::Note(name.clone()))?
            .notes()
            .get(&name))
    }

    fn set_note(
        &mut self,
        document: Resource<Document>,
        name: String,
        value: String,
    ) -> wasmtime::Result<()> {
        self.mark_unrepeatable();
        self.table
            .get(&document)?
            .notes()
            .set(name, value, &self.callee.limits);
        Ok(())
    }

    fn annotate(
        &mut self,
        document: Resource<Document>,
        annotation: String,
    ) -> wasmtime::Result<()> {
        self.mark_unrepeatable();
        self.table.get(&document)?.notes().annotate(
            &self.callee.name,
            &annotation,
            &self.callee.limits,
        );
        Ok(())
    }

    fn attribute(
        &mut self,
        document: Resource<Document>,
        name: String,
    ) -> wasmtime::Result<Option<types::KeptValue>> {
        let document = self.of_document(&document, || DocumentField::Attribute(name.clone()))?;
        let kept = document.kept().clone();
        Ok(self.owner().get(&kept, KeptFor::Uri, &name).map(Into::into))
    }

    fn set_attribute(
        &mut self,
        document: Resource<Document>,
        name: String,
        value: String,
    ) -> wasmtime::Result<()> {
        let kept = self.table.get(&document)?.kept().clone();
        self.keep(&kept, KeptFor::Uri, name, value);
        Ok(())
    }

    fn site_value(
        &mut self,
        document: Resource<Document>,
        name: String,
    ) -> wasmtime::Result<Option<types::KeptValue>> {
        let document = self.of_document(&document, || DocumentField::SiteValue(name.clone()))?;
        let kept = document.kept().clone();
        Ok(self
            .owner()
            .get(&kept, KeptFor::Site, &name)
            .map(Into::into))
    }

    fn set_site_value(
        &mut self,
        document: Resource<Document>,
        name: String,
        value: String,
    ) -> wasmtime::Result<()> {
        let kept = self.table.get(&document)?.kept().clone();
        self.keep(&kept, KeptFor::Site, name, value);
        Ok(())
    }

    fn drop(&mut self, document: Resource<Document>) -> wasmtime::Result<()> {
        self.table.delete(document)?;
        Ok(())
    }
}

impl documents::HostVisit for CallState {
    fn candidate(&mut self, visit: Resource<Visit>) -> wasmtime::Result<types::Candidate> {
        Ok(self
            .of_visit(&visit, || VisitField::Candidate)?
            .candidate
            .clone())
    }

    fn now(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(instant(self.of_this_visit(&visit)?.now))
    }

    fn status(&mut self, visit: Resource<Visit>) -> wasmtime::Result<i32> {
        Ok(self.of_visit(&visit, || VisitField::Status)?.status)
    }

    fn media_type(&mut self, visit: Resource<Visit>) -> wasmtime::Result<String> {
        Ok(self
            .of_visit(&visit, || VisitField::MediaType)?
            .media_type
            .clone())
    }

    fn state(&mut self, visit: Resource<Visit>) -> wasmtime::Result<types::ContentState> {
        Ok(self.of_visit(&visit, || VisitField::State)?.state.into())
    }

    fn size(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Option<u64>> {
        Ok(self.of_visit(&visit, || VisitField::Size)?.size)
    }

    fn last_wait(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Option<u64>> {
        Ok(self
            .of_visit(&visit, || VisitField::LastWait)?
            .last_wait
            .map(millis))
    }

    fn overdue(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(millis(self.of_this_visit(&visit)?.overdue))
    }

    fn visits(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.of_this_visit(&visit)?.visits)
    }

    fn versions(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.of_visit(&visit, || VisitField::Versions)?.versions)
    }

    fn history(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Vec<types::PastVisit>> {
        let history = &self.of_this_visit(&visit)?.history;
        Ok(history.iter().map(Into::into).collect())
    }

    fn validator(
        &mut self,
        visit: Resource<Visit>,
        name: String,
    ) -> wasmtime::Result<Option<String>> {
        let visit = self.of_visit(&visit, || VisitField::Validator(name.clone()))?;
        Ok(visit.validator(&name).cloned())
    }

    fn outlinks(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.of_visit(&visit, || VisitField::Outlinks)?.outlinks)
    }

    fn inlinks(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.of_visit(&visit, || VisitField::Inlinks)?.inlinks)
    }

    fn signals(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Vec<types::Signal>> {
        let visit = self.of_visit(&visit, || VisitField::Signals)?;
        Ok(visit.signals.clone())
    }

    fn neighbourhood(
        &mut self,
        visit: Resource<Visit>,
    ) -> wasmtime::Result<Vec<types::Neighbourhood>> {
        Ok(self.of_this_visit(&visit)?.neighbourhood.clone())
    }

    fn measure(&mut self, visit: Resource<Visit>, name: String) -> wasmtime::Result<Option<f64>> {
        Ok(self.of_this_visit(&visit)?.measures.get(&name).copied())
    }

    fn attribute(
        &mut self,
        visit: Resource<Visit>,
        name: String,
    ) -> wasmtime::Result<Option<types::KeptValue>> {
        let visit = self.of_visit(&visit, || VisitField::Attribute(name.clone()))?;
        let kept = visit.kept.clone();
        Ok(self.owner().get(&kept, KeptFor::Uri, &name).map(Into::into))
    }

    fn set_attribute(
        &mut self,
        visit: Resource<Visit>,
        name: String,
        value: String,
    ) -> wasmtime::Result<()> {
        let kept = self.table.get(&visit)?.kept.clone();
        self.keep(&kept, KeptFor::Uri, name, value);
        Ok(())
    }

    fn site_value(
        &mut self,
        visit: Resource<Visit>,
        name: String,
    ) -> wasmtime::Result<Option<types::KeptValue>> {
        let visit = self.of_visit(&visit, || VisitField::SiteValue(name.clone()))?;
        let kept = visit.kept.clone();
        Ok(self
            .owner()
            .get(&kept, KeptFor::Site, &name)
            .map(Into::into))
    }

    fn set_site_value(
        &mut self,
        visit: Resource<Visit>,
        name: String,
        value: String,
    ) -> wasmtime::Result<()> {
        let kept = self.table.get(&visit)?.kept.clone();
        self.keep(&kept, KeptFor::Site, name, value);
        Ok(())
    }

    fn note(&mut self, visit: Resource<Visit>, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self
            .of_visit(&visit, || VisitField::Note(name.clone()))?
            .notes
            .get(&name))
    }

    fn drop(&mut self, visit: Resource<Visit>) -> wasmtime::Result<()> {
        self.table.delete(visit)?;
        Ok(())
    }
}

impl CallState {
    fn column(
        &mut self,
        candidates: &Resource<Candidates>,
        column: Column,
    ) -> wasmtime::Result<String> {
        let candidates = self.of_candidates(candidates, CandidatesField::Column(column))?;
        Ok(candidates.column(column).to_owned())
    }
}

impl documents::HostCandidates for CallState {
    fn length(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<u32> {
        let candidates = self.of_candidates(&candidates, CandidatesField::Length)?;
        Ok(u32::try_from(candidates.len())?)
    }

    fn uris(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::Uris)
    }

    fn surts(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::Surts)
    }

    fn hop_paths(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::HopPaths)
    }

    fn contexts(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::Contexts)
    }

    fn vias(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::Vias)
    }

    fn via_surts(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::ViaSurts)
    }

    fn sources(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::Sources)
    }

    fn addresses(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<String> {
        self.column(&candidates, Column::Addresses)
    }

    fn seeds(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<Vec<bool>> {
        let candidates = self.of_candidates(&candidates, CandidatesField::Seeds)?;
        Ok(candidates.iter().map(|candidate| candidate.seed).collect())
    }

    fn get(
        &mut self,
        candidates: Resource<Candidates>,
        index: u32,
    ) -> wasmtime::Result<types::Candidate> {
        let candidates = self.of_candidates(&candidates, CandidatesField::One(index))?;
        match candidates.get(index as usize) {
            Some(candidate) => Ok(candidate.clone()),
            None => Err(wasmtime::Error::msg(format!(
                "requested candidate {index} of {}, counted from 0",
                candidates.len()
            ))),
        }
    }

    fn drop(&mut self, candidates: Resource<Candidates>) -> wasmtime::Result<()> {
        self.table.delete(candidates)?;
        Ok(())
    }
}

impl documents::HostQueue for CallState {
    fn name(&mut self, queue: Resource<Queue>) -> wasmtime::Result<String> {
        Ok(self.table.get(&queue)?.name.clone())
    }

    fn queued(&mut self, queue: Resource<Queue>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&queue)?.queued)
    }

    fn succeeded(&mut self, queue: Resource<Queue>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&queue)?.succeeded)
    }

    fn failed(&mut self, queue: Resource<Queue>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&queue)?.failed)
    }

    fn bytes(&mut self, queue: Resource<Queue>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&queue)?.bytes)
    }

    fn best(&mut self, queue: Resource<Queue>) -> wasmtime::Result<Option<u8>> {
        Ok(self.table.get(&queue)?.best)
    }

    fn base(&mut self, queue: Resource<Queue>) -> wasmtime::Result<u8> {
        Ok(self.table.get(&queue)?.base)
    }

    fn now(&mut self, queue: Resource<Queue>) -> wasmtime::Result<u64> {
        Ok(instant(self.table.get(&queue)?.now))
    }

    fn drop(&mut self, queue: Resource<Queue>) -> wasmtime::Result<()> {
        self.table.delete(queue)?;
        Ok(())
    }
}

impl tables::Host for CallState {
    fn kind_of(&mut self, table: String) -> wasmtime::Result<Option<tables::Kind>> {
        let found = self.tables().get(&table);
        Ok(found.map(|found| {
            lookups::note_kind(&table, found);
            found.kind()
        }))
    }

    fn find(&mut self, table: String, key: String) -> wasmtime::Result<Option<tables::Row>> {
        Ok(self.tables().get(&table).and_then(|found| {
            let row = found.find(&key);
            lookups::note_row(&table, found, row.as_ref());
            row
        }))
    }

    fn find_candidates(
        &mut self,
        table: String,
        candidates: Resource<Candidates>,
    ) -> wasmtime::Result<Vec<bool>> {
        let candidates = self.table.get(&candidates)?.clone();
        Ok(match self.tables().get(&table) {
            Some(found) => {
                lookups::note_rows(&table, found, &candidates);
                found.find_candidates(&candidates)
            }
            None => vec![false; candidates.len()],
        })
    }
}

impl log::Host for CallState {
    fn write(&mut self, level: LogLevel, message: String) -> wasmtime::Result<()> {
        self.log_line(level, &message);
        Ok(())
    }
}

impl counters::Host for CallState {
    fn count(&mut self, name: String, n: u64) -> wasmtime::Result<()> {
        self.by_uri = false;
        if let Some((_, sum)) = self.counts.iter_mut().find(|(known, _)| *known == name) {
            *sum = sum.saturating_add(n);
        } else if self.counts.len() < COUNTS_MAX {
            self.counts.push((name, n));
        } else if let Some((last, sum)) = self.counts.last_mut() {
            last.clear();
            last.push_str(crate::statistics::OTHER_COUNTER);
            *sum = sum.saturating_add(n);
        }
        Ok(())
    }
}
