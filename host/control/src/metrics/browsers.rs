//! Metrics of browsers. A process that has had no page to render has none of them.

use opilio_crawl::render_board::BrowsersStatus;
use opilio_job::exposition::{Metric, MetricSample};

use super::Figures;

/// Metrics of a job's browsers, in the order of `docs/METRICS.md`.
pub(super) const BROWSER_METRICS: [Metric<Figures>; 8] = [
    Metric::gauge(
        "opilio_browsers_running",
        "Browsers that run, those without a page included.",
        |job| sole(job, |browsers| browsers.processes.running as f64),
    ),
    Metric::counter(
        "opilio_browser_starts_total",
        "Starts of browsers since the process started, by their success.",
        |job| {
            by(job, "outcome", |browsers| {
                let processes = &browsers.processes;
                vec![
                    ("started", processes.started),
                    ("failed", processes.failed_starts),
                ]
            })
        },
    ),
    Metric::counter(
        "opilio_browser_crashes_total",
        "Crashes and hangs of browsers and pages since the process started, pages past the limit of memory included.",
        |job| sole(job, |browsers| browsers.figures.crashes as f64),
    ),
    Metric::gauge(
        "opilio_browser_pages",
        "Pages that have a browser or wait for one, by activity.",
        |job| {
            by(job, "activity", |browsers| {
                browsers.activities.named().into()
            })
        },
    ),
    Metric::counter(
        "opilio_renderings_total",
        "Pages to be rendered since the process started, by outcome.",
        |job| {
            by(job, "outcome", |browsers| {
                browsers.figures.outcomes().into()
            })
        },
    ),
    Metric::counter(
        "opilio_rendering_seconds_total",
        "Time since the process started that pages had a browser, in seconds.",
        |job| sole(job, |browsers| browsers.figures.rendering_s),
    ),
    Metric::counter(
        "opilio_browser_requests_total",
        "Requests of pages in browsers since the process started, by outcome.",
        |job| {
            by(job, "outcome", |browsers| {
                browsers.figures.request_outcomes().into()
            })
        },
    ),
    Metric::counter(
        "opilio_browser_requests_refused_total",
        "Refused requests of pages in browsers since the process started, by the rule that refused them.",
        |job| {
            by(job, "rule", |browsers| {
                browsers.figures.refused_by.named().into()
            })
        },
    ),
];

fn sole(job: &Figures, figure: fn(&BrowsersStatus) -> f64) -> Vec<MetricSample> {
    MetricSample::optional(job.status.browsers.as_ref().map(figure))
}

fn by(
    job: &Figures,
    label: &'static str,
    counts: fn(&BrowsersStatus) -> Vec<(&'static str, u64)>,
) -> Vec<MetricSample> {
    let browsers = job.status.browsers.as_ref();
    MetricSample::by(label, browsers.into_iter().flat_map(counts))
}

#[cfg(test)]
mod tests {
    use opilio_crawl::render_board::PagesByActivity;
    use opilio_crawl::render_figures::{
        BrowserProcesses, NotRenderedPages, PageRequestEnds, PageRequestRefusals, RenderFigures,
    };
    use opilio_job::exposition::Exposition;

    use super::super::tests::figures;
    use super::*;

    /// The metrics of a job with these browsers.
    fn exposed(browsers: Option<BrowsersStatus>) -> String {
        let mut job = figures();
        job.status.browsers = browsers;
        let mut text = Exposition::default();
        text.add(&BROWSER_METRICS, &[("job_name", "a")], &job);
        text.finish()
    }

    #[test]
    fn browsers_have_metrics_by_outcome_activity_and_rule() {
        let text = exposed(Some(BrowsersStatus {
            processes: BrowserProcesses {
                running: 2,
                started: 3,
                failed_starts: 1,
            },
            activities: PagesByActivity {
                waiting: 4,
                ..PagesByActivity::default()
            },
            figures: RenderFigures {
                rendered: 5,
                cut_by_time: 2,
                not_rendered: 1,
                not_rendered_by: NotRenderedPages {
                    memory: 1,
                    ..NotRenderedPages::default()
                },
                crashes: 1,
                rendering_s: 12.5,
                requests: 9,
                requests_by: PageRequestEnds {
                    archived: 5,
                    duplicate: 1,
                    ..PageRequestEnds::default()
                },
                refused: 3,
                refused_by: PageRequestRefusals {
                    robots: 2,
                    web_sockets: 1,
                    ..PageRequestRefusals::default()
                },
                ..RenderFigures::default()
            },
            ..BrowsersStatus::default()
        }));
        for line in [
            "opilio_browsers_running{job_name=\"a\"} 2",
            "opilio_browser_starts_total{job_name=\"a\",outcome=\"failed\"} 1",
            "opilio_browser_crashes_total{job_name=\"a\"} 1",
            "opilio_browser_pages{job_name=\"a\",activity=\"waiting\"} 4",
            "opilio_renderings_total{job_name=\"a\",outcome=\"complete\"} 3",
            "opilio_renderings_total{job_name=\"a\",outcome=\"cut-by-time\"} 2",
            "opilio_renderings_total{job_name=\"a\",outcome=\"memory\"} 1",
            "opilio_rendering_seconds_total{job_name=\"a\"} 12.5",
            "opilio_browser_requests_total{job_name=\"a\",outcome=\"duplicate\"} 1",
            "opilio_browser_requests_total{job_name=\"a\",outcome=\"refused\"} 3",
            "opilio_browser_requests_refused_total{job_name=\"a\",rule=\"robots\"} 2",
            "opilio_browser_requests_refused_total{job_name=\"a\",rule=\"web-sockets\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }

    #[test]
    fn a_process_that_renders_nothing_has_no_metrics_of_browsers() {
        assert_eq!(exposed(None), "");
    }
}
