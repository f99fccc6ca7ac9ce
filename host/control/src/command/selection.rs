//! Selections that commands name: of URIs and of hosts.

use std::fmt;

use opilio_job::transfer::{Outcomes, Selection, StateSelector};
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::{ControlError, ErrorKind};

/// Selection of URIs. URIs must match all conditions; without conditions, all URIs are selected.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    utoipa::IntoParams,
)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UriSelection {
    /// SURT prefix of the URIs, such as `http://(org,example,`.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1)]
    pub surt: Option<String>,
    /// Regular expression that URIs must contain a match of.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, format = "regex")]
    #[param(format = "regex")]
    pub regex: Option<String>,
    /// Host of the URIs, without its subdomains.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, format = "host")]
    #[param(format = "host")]
    pub host: Option<String>,
    /// Fetch statuses of the last visit or attempt, separated by commas: `404`, `5xx`, `500-599`, `-2`.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, format = "statuses")]
    #[param(format = "statuses")]
    pub status: Option<String>,
    /// State of the URIs: their place, or the result of their last completed visit.
    #[serde(default)]
    #[schema(value_type = StateSelector, required = false)]
    #[param(inline)]
    pub state: Option<StateSelector>,
    /// Media type of the URIs, such as `text/html` or `image/*`; `no-type` selects URIs without a media type.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, format = "media-type")]
    #[param(format = "media-type")]
    pub media_type: Option<String>,
}

/// Returns a condition, unless it is empty: forms also send fields that are not filled in.
fn non_empty(condition: Option<&String>) -> Option<&str> {
    condition
        .map(String::as_str)
        .filter(|text| !text.is_empty())
}

impl UriSelection {
    /// Returns `true` if it has no conditions, so that it selects all URIs.
    pub fn is_everything(&self) -> bool {
        let Self {
            surt,
            regex,
            host,
            status,
            state,
            media_type,
        } = self;
        let texts = [surt, regex, host, status, media_type];
        state.is_none()
            && texts
                .into_iter()
                .all(|text| non_empty(text.as_ref()).is_none())
    }

    /// Converts to a selection of the frontier's records.
    pub(crate) fn selection(&self) -> Result<Selection, ControlError> {
        let expression = self.regex.as_deref().map(Regex::new).transpose();
        let expression = expression.map_err(|problem| {
            let text = problem.to_string();
            let last = text.lines().last().unwrap_or_default();
            let reason = last.strip_prefix("error: ").unwrap_or(last);
            ControlError::new(
                ErrorKind::Request,
                format!("invalid regular expression: {reason}"),
            )
        })?;
        let request = |problem: String| ControlError::new(ErrorKind::Request, problem);
        let statuses = non_empty(self.status.as_ref());
        let statuses = statuses.map(Outcomes::statuses).transpose();
        let statuses = statuses.map_err(|part| {
            request(format!(
                "invalid status {part:?}; write a status, a class or a range, such as 404, 5xx, 500-599 or -2"
            ))
        })?;
        let media_type = non_empty(self.media_type.as_ref()).map(str::to_ascii_lowercase);
        if let Some(invalid) = media_type.as_deref().filter(|text| !is_media_type(text)) {
            return Err(request(format!(
                "invalid media type {invalid:?}; write a type such as text/html, image/* or no-type"
            )));
        }
        let selection = Selection::new(self.surt.as_deref().unwrap_or_default(), expression)
            .with_outcomes(Outcomes {
                statuses: statuses.unwrap_or_default(),
                state: self.state,
                media_type,
            });
        let Some(host) = non_empty(self.host.as_ref()) else {
            return Ok(selection);
        };
        selection.with_host(host).ok_or_else(|| {
            request(format!(
                "invalid host {host:?}; write a host name without scheme, port and path, such as www.example.org"
            ))
        })
    }
}

/// Returns `true` if a text is a media type without parameters, a group of them, or the name of a missing one.
fn is_media_type(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.contains(['/', '*', ';', ' ']);
    text == "no-type"
        || text
            .split_once('/')
            .is_some_and(|(kind, part)| is_part(kind) && (part == "*" || is_part(part)))
}

impl fmt::Display for UriSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(surt) = &self.surt {
            write!(f, " --surt {surt:?}")?;
        }
        if let Some(regex) = &self.regex {
            write!(f, " --regex {regex:?}")?;
        }
        if let Some(host) = &self.host {
            write!(f, " --host {host:?}")?;
        }
        if let Some(status) = &self.status {
            write!(f, " --status {status:?}")?;
        }
        if let Some(state) = self.state {
            write!(f, " --state {}", state.name())?;
        }
        if let Some(media_type) = &self.media_type {
            write!(f, " --media-type {media_type:?}")?;
        }
        Ok(())
    }
}

/// Order of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostSort {
    /// By bytes of content.
    #[default]
    Bytes,
    /// By documents.
    Documents,
    /// By errors.
    Errors,
    /// By the time of the last visit.
    LastVisit,
    /// By the estimated freshness. It reads the records of all hosts, which takes some seconds for a million URIs.
    Freshness,
    /// By name.
    Name,
}

impl HostSort {
    /// All orders.
    pub const ALL: [HostSort; 6] = [
        HostSort::Bytes,
        HostSort::Documents,
        HostSort::Errors,
        HostSort::LastVisit,
        HostSort::Freshness,
        HostSort::Name,
    ];

    /// Returns the order's name.
    pub fn name(self) -> &'static str {
        match self {
            HostSort::Bytes => "bytes",
            HostSort::Documents => "documents",
            HostSort::Errors => "errors",
            HostSort::LastVisit => "last-visit",
            HostSort::Freshness => "freshness",
            HostSort::Name => "name",
        }
    }
}

/// Hosts that a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSelection {
    /// Order of the hosts. Every order except by name begins with the largest.
    #[serde(default)]
    pub sort: HostSort,
    /// `true` if the order is reversed.
    #[serde(default)]
    pub reverse: bool,
    /// Text that the names of hosts contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// `true` if hosts without errors are left out.
    #[serde(default)]
    pub with_errors: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_selection_is_refused_in_one_sentence() {
        let refused = |which: UriSelection| which.selection().unwrap_err().to_string();
        let text = |text: &str| Some(text.to_owned());
        let regex = UriSelection {
            regex: text("a(b"),
            ..UriSelection::default()
        };
        assert_eq!(refused(regex), "invalid regular expression: unclosed group");
        let status = UriSelection {
            status: text("404,many"),
            ..UriSelection::default()
        };
        assert!(refused(status).starts_with("invalid status \"many\";"));
        let media_type = UriSelection {
            media_type: text("html"),
            ..UriSelection::default()
        };
        assert!(refused(media_type).starts_with("invalid media type \"html\";"));
        let host = UriSelection {
            host: text("a.org/x"),
            ..UriSelection::default()
        };
        assert!(refused(host).starts_with("invalid host \"a.org/x\";"));
    }

    #[test]
    fn a_selection_of_empty_conditions_selects_everything() {
        let empty = UriSelection {
            surt: Some(String::new()),
            regex: Some(String::new()),
            host: Some(String::new()),
            status: Some(String::new()),
            state: None,
            media_type: Some(String::new()),
        };
        assert!(empty.is_everything());
        assert!(empty.selection().is_ok());
        let status = UriSelection {
            status: Some("404".to_owned()),
            ..UriSelection::default()
        };
        assert!(!status.is_everything());
    }
}
