//! Telemetry of the process: diagnostics on standard error, and traces for an OpenTelemetry collector.
//!
//! Traces are the spans that all crates make with `tracing`. They are switched off until a profile or the daemon's settings name
//! a collector. A span that is switched off costs one comparison.

use std::fmt;
use std::future::Future;
use std::io::IsTerminal;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use opentelemetry::trace::{SpanBuilder, Tracer, TracerProvider as _};
use opentelemetry::{Context, KeyValue, global};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, Span};
use tokio::runtime::Handle;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

use crate::live;

/// The traced spans: those of Opilio's crates and the messages of plugins, at this level.
const TRACED: (&str, LevelFilter) = ("opilio", LevelFilter::INFO);

/// Longest time for sending the last traces when the process ends.
const GRACE: Duration = Duration::from_secs(5);

/// Longest answer of a collector that is read. Answers are short; a longer one is cut off.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Format of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

/// The process's diagnostics and traces.
pub(crate) struct Telemetry {
    /// The filter for the spans that are traced.
    filter: reload::Handle<Targets, Registry>,
    provider: Arc<OnceLock<SdkTracerProvider>>,
    tracer: LateTracer,
}

/// A tracer that is set once the settings are known.
#[derive(Clone, Default)]
struct LateTracer(Arc<OnceLock<SdkTracer>>);

/// Sends traces with the HTTP client of the other requests, on the runtime of the process. The thread that sends traces has no
/// runtime.
struct Poster {
    client: reqwest::Client,
    runtime: Handle,
}

impl Telemetry {
    /// Writes diagnostics to standard error from now on: warnings by default, more with `RUST_LOG`.
    pub(crate) fn start(format: LogFormat) -> Telemetry {
        let wanted = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
        let tracer = LateTracer::default();
        let (filter, handle) = reload::Layer::new(Targets::new());
        let traces = tracing_opentelemetry::layer()
            .with_tracer(tracer.clone())
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(filter);
        let lines = tracing_subscriber::fmt::layer().with_writer(|| live::Diagnostics);
        let lines = match format {
            LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
            LogFormat::Json => lines.json().boxed(),
        };
        tracing_subscriber::registry()
            .with(traces)
            .with(lines.with_filter(wanted))
            .init();
        Telemetry {
            filter: handle,
            provider: Arc::default(),
            tracer,
        }
    }

    /// Sends traces from now on, if the settings name a collector. `what` are the attributes of all traces: names and values.
    pub(crate) fn trace(
        &self,
        settings: &opilio_profile::Telemetry,
        what: &[(&'static str, String)],
    ) -> Result<()> {
        let Some(address) = &settings.traces else {
            return Ok(());
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Poster {
                client: opilio_crawl::http_client(address, settings.timeout)
                    .map_err(anyhow::Error::msg)?,
                runtime: Handle::current(),
            })
            .with_endpoint(address)
            .with_timeout(settings.timeout)
            .build()
            .context("cannot send traces")?;
        let of_process = [
            ("service.name", "opilio".to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        let resource = of_process.iter().chain(what);
        let resource = resource.map(|(name, value)| KeyValue::new(*name, value.clone()));
        let by_share = Sampler::TraceIdRatioBased(settings.sample);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(by_share)))
            .with_resource(Resource::builder().with_attributes(resource).build())
            .build();
        // Set once: a process runs one crawl, or the daemon.
        let _ = self.tracer.0.set(provider.tracer("opilio"));
        let _ = self.provider.set(provider);
        global::set_text_map_propagator(TraceContextPropagator::new());
        let (target, level) = TRACED;
        self.filter
            .reload(Targets::new().with_target(target, level))
            .context("cannot switch on traces")
    }

    /// Sends the remaining traces.
    pub(crate) fn finish(&self) {
        if let Some(provider) = self.provider.get()
            && let Err(problem) = provider.shutdown_with_timeout(GRACE)
        {
            tracing::warn!("cannot send the last traces: {problem}");
        }
    }
}

impl Tracer for LateTracer {
    type Span = Span;

    fn build_with_context(&self, builder: SpanBuilder, parent: &Context) -> Span {
        match self.0.get() {
            Some(tracer) => tracer.build_with_context(builder, parent),
            // Spans are dropped before the tracer is set.
            None => SdkTracerProvider::builder()
                .with_sampler(Sampler::AlwaysOff)
                .build()
                .tracer("opilio")
                .build_with_context(builder, parent),
        }
    }
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Poster")
    }
}

impl HttpClient for Poster {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let posting = self.runtime.spawn(async move {
            let mut answer = client.execute(request.try_into()?).await?;
            let mut body = Vec::new();
            while let Some(part) = answer.chunk().await? {
                let room = ANSWER_BYTES_MAX - body.len();
                body.extend_from_slice(&part[..part.len().min(room)]);
                if part.len() > room {
                    break;
                }
            }
            let mut response = Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                *headers = std::mem::take(answer.headers_mut());
            }
            Ok::<_, HttpError>(response.body(Bytes::from(body))?)
        });
        Box::pin(async move { posting.await? })
    }
}
