//! What a job makes of a URI, its plugins asked as they are now.

use std::sync::Arc;

use jiff::Timestamp;
use opilio_uri::{HopPath, Uri};

use super::perform::{Say, read_uri};
use super::{Answer, Command, ControlError, Desk, Fault};
use crate::explain::{self, Asked};

impl Desk<'_> {
    pub(super) fn explain(&self, command: &Command, say: Say<'_>) -> Result<String, ControlError> {
        let Command::Explain {
            uri,
            via,
            hops,
            source,
            media_type,
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
                    Fault::Request,
                    format!("{hops:?} is no hop path: {problem}"),
                )
            })
        });
        let mut hops = hops.transpose()?;
        let (mut via, mut source) = (via, source.map(|uri| uri.as_str().to_owned()));
        // As it was found, unless the question says how it would be found.
        if via.is_none()
            && hops.is_none()
            && source.is_none()
            && let Some(record) = self.frontier().record(&uri)?
        {
            via = record.via.as_deref().and_then(|via| Uri::parse(via).ok());
            hops = Some(record.hop_path);
            source = record.source;
        }
        let asked = Asked {
            uri: &uri,
            via: via.as_ref(),
            hops: hops.unwrap_or_default(),
            source: source.as_deref(),
            media_type: media_type.as_deref(),
            now: Timestamp::now(),
        };
        let explained = match self.running {
            None => {
                let prefixes = super::seed::prefixes(self.job)
                    .map_err(|(path, problem)| ControlError::file(&path, &problem))?;
                let prefixes: Vec<String> = prefixes.iter().map(str::to_owned).collect();
                explain::explain_at_rest(self.job, self.profile, &prefixes, &asked)
                    .map_err(|problem| ControlError::failure(&problem))?
            }
            Some(running) => {
                let stacks = running.context.stacks();
                let profile = Arc::clone(self.profile);
                crate::lanes::beside("explain", || explain::explained(&profile, &stacks, &asked))
                    .map_err(|problem| ControlError::new(Fault::Failure, problem))?
            }
        };
        say(Answer::Explained(Box::new(explained)));
        Ok(String::new())
    }
}
