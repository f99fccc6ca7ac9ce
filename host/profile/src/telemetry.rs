//! Traces: the collector that receives them, and the share of URIs that is traced.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::duration::DurationWritten;

/// Path of a collector for OTLP over HTTP, which is added to the written address.
const TRACES: &str = "/v1/traces";

/// Traces in the form of OpenTelemetry: the steps of a URI's processing, with the duration of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TelemetryFile {
    /// Address of a collector for OTLP over HTTP; `/v1/traces` is added. No default: no traces are sent.
    #[schemars(extend("examples" = ["http://127.0.0.1:4318"]))]
    pub otlp: Option<String>,

    /// Share of URIs that is traced, from 0 to 1. Default `0.01`: shows where time goes without overloading a collector.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample: f64,

    /// Longest time that the collector may take for a batch of traces; then the batch is dropped. Default `"10s"`: the usual
    /// timeout of OTLP exporters. The crawl never waits for it.
    pub timeout: DurationWritten,
}

/// Target of traces, and the share of URIs that is traced.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// URL for traces, with its path; `None`: nothing is traced.
    pub traces: Option<String>,
    /// The share of URIs, from 0 to 1.
    pub sample: f64,
    /// Longest time that the collector may take for a batch of them.
    pub timeout: Duration,
}

impl Default for TelemetryFile {
    fn default() -> Self {
        Self {
            otlp: None,
            sample: 0.01,
            timeout: "10s".into(),
        }
    }
}

impl TelemetryFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Telemetry {
        let traces = self.otlp.as_deref().map(traces_address);
        if let (Some(Err(problem)), Some(written)) = (&traces, &self.otlp) {
            let problem = format!("{problem}: {}", quote(written));
            part.refuse(
                "otlp",
                problem,
                "write one such as \"http://127.0.0.1:4318\"",
            );
        }
        Telemetry {
            traces: traces.and_then(Result::ok),
            sample: self.sample,
            timeout: part.positive_duration("timeout", &self.timeout),
        }
    }
}

/// The URL for traces, from the address of a collector.
///
/// # Errors
/// The text is not an address, or has a password, which must not be in a file that jobs copy.
pub fn traces_address(written: &str) -> Result<String, &'static str> {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| written.strip_prefix(scheme));
    let Some(rest) = rest.filter(|_| opilio_uri::Uri::parse(written).is_ok()) else {
        return Err("not an address");
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err("an address with a password (which belongs in OTEL_EXPORTER_OTLP_HEADERS)");
    }
    let written = written.trim_end_matches('/');
    Ok(match written.ends_with(TRACES) {
        true => written.to_owned(),
        false => format!("{written}{TRACES}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_added_once() {
        for (written, posted) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://otel.example.org/in/",
                "https://otel.example.org/in/v1/traces",
            ),
            ("http://c:4318/v1/traces", "http://c:4318/v1/traces"),
        ] {
            assert_eq!(traces_address(written).as_deref(), Ok(posted));
        }
        for bad in [
            "",
            "otel:4318",
            "grpc://a",
            "http://",
            "http://me:secret@a/",
        ] {
            assert!(traces_address(bad).is_err(), "{bad}");
        }
    }
}
