//! Mid-fetch filters, which are called when the headers of a response have arrived.

use std::sync::Arc;

use bytes::Bytes;
use opilio_fetch::ResponseHead;
use opilio_sandbox::{Document, Stage, Verdict, Visit};
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;

use crate::document_filters::{self, FilterRejection};
use crate::driver::{Driver, Lane};
use crate::pipeline::Pipeline;
use crate::plugin_view::{self, PluginMemory};

/// The answer of mid-fetch filters.
#[derive(Default)]
pub struct MidFetch {
    /// The verdict that ends the fetch; `None` if the fetch continues.
    pub verdict: Option<HeaderVerdict>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
}

/// A verdict of mid-fetch filters that ends the fetch.
pub enum HeaderVerdict {
    /// A filter rejects the response.
    Rejected(FilterRejection),
    /// The headers prove that nothing has changed. The text has the filter and its reason.
    Unchanged(String),
}

impl HeaderVerdict {
    /// The filter and its reason.
    pub fn reason(&self) -> &str {
        match self {
            HeaderVerdict::Rejected(FilterRejection { because, .. }) => because,
            HeaderVerdict::Unchanged(reason) => reason,
        }
    }
}

/// Calls the mid-fetch filters on the headers that were received from `address`.
///
/// # Errors
/// Returns the errors of the driver.
pub async fn judge_head<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    head: &ResponseHead,
    address: Option<String>,
    memory: &PluginMemory,
) -> Result<MidFetch, D::Error> {
    if pipeline.stacks.mid_fetch.is_empty() {
        return Ok(MidFetch::default());
    }
    let (document, visit) = pipeline.at_head(head, address, memory);
    let stacks = pipeline.stacks.clone();
    let judge = move || {
        // There is no content yet, so guards are called again on the whole document later.
        let guards = Guards::default();
        let stack = &stacks.mid_fetch;
        let mut judged =
            document_filters::judge_document(stack, &Stage::MidFetch, &document, &visit, &guards);
        judged.failures.extend(guards.take_failures());
        judged
    };
    let judged = driver.run(Lane::Header, judge).await?;
    let verdict = match judged.verdict {
        Verdict::Reject => Some(HeaderVerdict::Rejected(FilterRejection {
            status: judged.status,
            because: judged.reason,
        })),
        // The answer "unchanged" is ignored for a URI that was never archived. It is also ignored for a page that must be extracted
        // again because extractors have changed or failed, and for a page that a browser renders.
        Verdict::Unchanged
            if pipeline.issue.record.archived.is_some()
                && pipeline.is_extracted()
                && !pipeline.needs_body_for_browser() =>
        {
            Some(HeaderVerdict::Unchanged(judged.reason))
        }
        _ => None,
    };
    Ok(MidFetch {
        verdict,
        failures: judged.failures,
    })
}

impl Pipeline {
    /// Returns the document without content, and the visit, as mid-fetch filters see them.
    pub fn at_head(
        &self,
        head: &ResponseHead,
        address: Option<String>,
        memory: &PluginMemory,
    ) -> (Document, Visit) {
        let document = self.document(head, Bytes::new(), None, memory);
        let (status, media_type) = (head.status.into(), head.media_type());
        let mut visit = plugin_view::visit(&self.issue, self.started, status, media_type, memory);
        visit.candidate.address = address;
        (document, visit)
    }
}
