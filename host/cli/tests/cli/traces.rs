//! Traces as an OpenTelemetry collector receives them: of the processing of a URI, and of a request to the daemon.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opilio_stories::{CLOSED_PORT, html, site, until};
use prost::Message as _;

use crate::command::{Home, WWW};
use crate::serve::Daemon;

/// A collector on this machine.
struct Collector {
    address: SocketAddr,
    parcels: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

/// A span in a form that is convenient for assertions.
#[derive(Clone, Debug)]
struct Span {
    name: String,
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    attributes: BTreeMap<String, String>,
    resource: BTreeMap<String, String>,
    nanoseconds: u64,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let parcels: Arc<Mutex<Vec<_>>> = Arc::default();
        let received = parcels.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, received) = (stream.unwrap(), received.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some((head, body)) = request(&mut reader) {
                        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
                        assert!(head.contains("application/x-protobuf"), "{head}");
                        let parcel = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
                        received.lock().unwrap().push(parcel);
                        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        Collector { address, parcels }
    }

    fn spans(&self) -> Vec<Span> {
        let parcels = self.parcels.lock().unwrap();
        let of_resources = parcels.iter().flat_map(|parcel| &parcel.resource_spans);
        let mut spans = Vec::new();
        for of_resource in of_resources {
            let resource = of_resource.resource.as_ref().unwrap();
            let resource = values(&resource.attributes);
            for span in of_resource.scope_spans.iter().flat_map(|it| &it.spans) {
                spans.push(Span {
                    name: span.name.clone(),
                    trace: span.trace_id.clone(),
                    id: span.span_id.clone(),
                    parent: span.parent_span_id.clone(),
                    attributes: values(&span.attributes),
                    resource: resource.clone(),
                    nanoseconds: span.end_time_unix_nano - span.start_time_unix_nano,
                });
            }
        }
        spans
    }
}

/// Reads a request and returns its head and body.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn values(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let known = attributes.iter().filter_map(|attribute| {
        let value = attribute.value.as_ref()?.value.as_ref()?;
        Some((attribute.key.clone(), text(value)))
    });
    known.collect()
}

/// Crawls a page and the pages that it links to with settings of the profile for telemetry. Returns the received spans.
async fn traced(telemetry: impl FnOnce(SocketAddr) -> String) -> (Vec<Span>, String) {
    let (home, collector) = (Home::new(), Collector::start());
    let web = site(WWW)
        .page("/", html("<a href='/leaf.html'>a leaf</a>"))
        .page("/leaf.html", html("nothing"))
        .serve()
        .await;
    let telemetry = telemetry(collector.address);
    home.profile(&format!("name = 'traced'\n{telemetry}"));
    let seed = web.url(WWW, "/");
    home.run(&[
        "crawl", "p.toml", "--seed", &seed, "--job", "job", "--quiet",
    ])
    .code(0);
    (collector.spans(), web.url(WWW, "/leaf.html"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uri_can_be_followed_from_its_fetch_to_the_frontier() {
    let (spans, leaf) =
        traced(|to| format!("telemetry = {{ otlp = 'http://{to}/', sample = 1.0 }}")).await;
    let root = spans
        .iter()
        .find(|span| span.attributes.get("url.full") == Some(&leaf))
        .unwrap_or_else(|| panic!("{spans:?}"));
    assert_eq!((root.name.as_str(), root.parent.len()), ("uri", 0));
    assert_eq!(root.attributes["opilio.status"], "200");
    assert_eq!(root.attributes["opilio.hop_path"], "L");
    assert_eq!(root.resource["service.name"], "opilio");
    assert_eq!(root.resource["opilio.job_name"], "traced");

    let of_leaf: Vec<&Span> = spans.iter().filter(|it| it.trace == root.trace).collect();
    let parent = |name: &str| {
        let child = of_leaf.iter().find(|span| span.name == name);
        let child = child.unwrap_or_else(|| panic!("no {name}: {of_leaf:?}"));
        let parent = of_leaf.iter().find(|span| span.id == child.parent);
        parent.map(|parent| parent.name.as_str())
    };
    for (child, within) in [
        ("fetch", "uri"),
        ("request", "fetch"),
        ("body", "fetch"),
        ("plugin", "uri"),
        ("write", "uri"),
        ("finish", "uri"),
    ] {
        assert_eq!(parent(child), Some(within), "{child}");
    }
    let called: Vec<&str> = of_leaf
        .iter()
        .filter_map(|span| Some(span.attributes.get("opilio.plugin")?.as_str()))
        .collect();
    assert!(called.contains(&"html"), "{called:?}");
    let within = of_leaf.iter().filter(|span| span.parent == root.id);
    let longest = within.map(|span| span.nanoseconds).max().unwrap();
    assert!(root.nanoseconds >= longest);
    // DNS look-up and connection belong to the trace of the first request to the server.
    for (span, expected) in [("dns", None), ("connect", Some(WWW))] {
        let found = spans.iter().find(|it| it.name == span).unwrap();
        let address = found.attributes.get("server.address").map(String::as_str);
        assert_eq!(address, expected, "{span}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_without_sampling_or_without_a_collector() {
    let (spans, _) =
        traced(|to| format!("telemetry = {{ otlp = 'http://{to}', sample = 0.0 }}")).await;
    assert_eq!(spans.len(), 0, "{spans:?}");
    let (spans, _) = traced(|_| String::new()).await;
    assert_eq!(spans.len(), 0, "{spans:?}");
}

#[test]
fn an_unreachable_collector_does_not_delay_a_crawl() {
    let (home, nobody) = (Home::new(), format!("127.0.0.1:{CLOSED_PORT}"));
    home.profile(&format!(
        "name = 'traced'\nseeds = ['http://127.0.0.1:9/']\ntelemetry = {{ otlp = 'http://{nobody}', sample = 1.0 }}"
    ));
    home.run(&["crawl", "p.toml", "--job", "job", "--quiet"])
        .code(5);
    home.profile("telemetry = { otlp = 'collector:4317', sample = 2.0 }");
    let faults = home.run(&["profile", "check", "p.toml"]).code(2).out;
    assert!(faults.contains("not an address"), "{faults}");
    assert!(faults.contains("must be at most 1.0"), "{faults}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_the_daemon_belongs_to_the_trace_of_its_caller() {
    let (home, collector) = (Home::new(), Collector::start());
    home.file(
        "opilio.toml",
        format!("[telemetry]\notlp = 'http://{}'\n", collector.address),
    );
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let caller = format!("traceparent: 00-{trace}-b7ad6b7169203331-01\r\n");
    let answer = daemon.call("GET", "/api/v1/jobs/nowhere", None, &caller);
    assert_eq!(answer.status, 404);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let of_caller = || {
        let spans = collector.spans().into_iter();
        spans
            .filter(|span| hex(&span.trace) == trace)
            .collect::<Vec<_>>()
    };
    until("the trace has arrived", || !of_caller().is_empty()).await;
    let spans = of_caller();
    let request = spans.iter().find(|span| span.name.starts_with("GET "));
    let request = request.unwrap();
    assert_eq!(hex(&request.parent), "b7ad6b7169203331");
    assert_eq!(request.name, "GET /api/v1/jobs/{job}");
    assert_eq!(request.attributes["http.response.status_code"], "404");
}

#[test]
fn diagnostics_are_json_if_that_is_requested() {
    let home = Home::new();
    home.profile("name = 'noisy'\nseeds = ['http://127.0.0.1:9/']");
    let crawl = ["crawl", "p.toml", "--job", "job", "--quiet"];
    let arguments = [&crawl[..], &["--log-format", "json"]].concat();
    let output = home
        .opilio(&arguments)
        .env("RUST_LOG", "info")
        .output()
        .unwrap();
    let output = String::from_utf8(output.stderr).unwrap();
    let line = output.lines().find(|line| line.starts_with('{'));
    let line: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
    assert_eq!(line["level"], "INFO");
    assert!(line["fields"]["message"].is_string(), "{line}");
}
