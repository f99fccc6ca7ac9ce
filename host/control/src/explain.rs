//! Explanation of a URI: the job's settings for it, and the present answers of its plugins.

use std::sync::Arc;

use jiff::Timestamp;
use opilio_frontier::UriRecord;
use opilio_uri::{HopPath, Uri};

use super::answer::Respond;
use super::command::read_uri;
use super::{Command, CommandResponse, ControlError, ErrorKind, JobAdmin};
use crate::explain_uri::{self, ExplainRequest, Known};
use opilio_visit::budget::{Budget, UriInQueue};

impl JobAdmin<'_> {
    pub(super) fn explain(
        &self,
        command: &Command,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let Command::Explain {
            uri,
            via,
            hops,
            source,
            media_type,
            at,
        } = command
        else {
            return Ok(String::new());
        };
        let uri = read_uri(uri)?;
        let via = via.as_deref().map(read_uri).transpose()?;
        let source = source.as_deref().map(read_uri).transpose()?;
        let hops = hops.as_deref().map(|hops| {
            HopPath::parse(hops).map_err(|problem| {
                ControlError::new(
                    ErrorKind::Request,
                    format!("invalid hop path {hops:?}: {problem}"),
                )
            })
        });
        let mut hops = hops.transpose()?;
        let (mut via, mut source) = (via, source.map(|uri| uri.as_str().to_owned()));
        let mut media_type = media_type.clone();
        let record = self.frontier().record(&uri)?;
        // Uses the path on which the URI was found, unless the command names another one.
        if let Some(record) = &record {
            if via.is_none() && hops.is_none() && source.is_none() {
                via = record.via.as_deref().and_then(|via| Uri::parse(via).ok());
                hops = Some(record.hop_path.clone());
                source = record.source.clone();
            }
            let known = Some(&record.media_type).filter(|known| !known.is_empty());
            media_type = media_type.or(known.cloned());
        }
        let asked = ExplainRequest {
            uri: &uri,
            via: via.as_ref(),
            hops: hops.unwrap_or_default(),
            source: source.as_deref(),
            media_type: media_type.as_deref(),
            now: at.unwrap_or_else(Timestamp::now),
        };
        let known = self.known(&asked, record)?;
        let explained = match self.running {
            None => {
                let prefixes = super::seed::prefixes(self.job)
                    .map_err(|(path, problem)| ControlError::file(&path, &problem))?;
                let prefixes: Vec<String> = prefixes.iter().map(str::to_owned).collect();
                explain_uri::explain_at_rest(self.job, self.profile, &prefixes, &asked, &known)
                    .map_err(|problem| ControlError::failure(&problem))?
            }
            Some(running) => {
                let stacks = running.context.stacks();
                let profile = Arc::clone(self.profile);
                let explain = || explain_uri::explained(&profile, &stacks, &asked, &known);
                opilio_stacks::on_plugin_thread("explain", explain)
                    .map_err(|problem| ControlError::new(ErrorKind::Failure, problem))?
            }
        };
        respond(CommandResponse::Explained(Box::new(explained)));
        Ok(String::new())
    }

    /// Returns the facts about a URI that wait evaluators receive in addition to those in `asked`.
    fn known(
        &self,
        asked: &ExplainRequest<'_>,
        record: Option<UriRecord>,
    ) -> Result<Known, ControlError> {
        let subject = explain_uri::subject(self.profile, asked, record.as_ref());
        let place = UriInQueue {
            queue: &subject.queue,
            precedence: subject.precedence,
            queued: None,
        };
        let measures = match self.running {
            Some(running) => {
                // The budget is locked before the frontier, never after it.
                let mut budget = running.context.budget();
                budget.measures(&self.frontier(), place, asked.now)?
            }
            None => {
                let frontier = self.frontier();
                Budget::open(&frontier, asked.now)?.measures(&frontier, place, asked.now)?
            }
        };
        Ok(Known {
            record,
            site: self.frontier().site(asked.uri)?,
            measures,
        })
    }
}
