// The current state of a job: figures, live charts, fetches in flight. A continuous crawl has figures for freshness, overdue visits
// and coverage in place of a progress bar, because it has no end.

import { Answers } from "../answers.js";
import { get, job as path } from "../api.js";
import { Checkpoints } from "../checkpoints.js";
import { h, put, setText } from "../dom.js";
import { Bars, Histogram, TimeChart } from "../charts.js";
import { bytes, count, duration, percent, rate, short, when } from "../format.js";
import { badge, heading, jobActions, link, place, read, readPlugins, statusText, uriLink } from "../job.js";
import { failed } from "../notice.js";
import { picture } from "../pictures.js";
import { follow } from "../stream.js";
import { Table } from "../table.js";

const EVERY = 3000;
const SHOWN = 10;
// Number of rendered pages that are shown, and the number of lines of crawl.log in which they are searched.
const PICTURES = 12;
const LINES = 60;
const SPANS = [
  [300, "5 minutes"],
  [3600, "an hour"],
  [86400, "a day"],
  [2592000, "a month"],
  [0, "all"],
];
const LATE = ["1 s", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d", "28 d", "more"];
const QUEUES = ["ready", "in_process", "snoozed", "inactive", "ineligible", "retired", "frozen"];
const OUTCOMES = "Succeeded URIs";
const CONTENT = ["new", "changed", "unchanged", "not_modified", "unknown"];

/** Opens the page. */
export async function open(page) {
  let span = Number(page.query.span ?? 300);
  const state = h("span", { role: "status" });
  const buttons = h("div.actions");
  const alerts = h("div");
  const why = h("p.muted", { hidden: true });
  const observed = h("p", { hidden: true });
  const tiles = new Tiles();
  const charts = new Charts(page.job);
  const flight = new Table({
    caption: "In flight",
    empty: "No current fetches.",
    key: (fetch) => fetch.uri,
    columns: [
      { title: "In flight", isHead: true, isWide: true, cell: (fetch) => uriLink(page.job, fetch.uri) },
      { title: "Worker", isNumber: true, cell: (fetch) => String(fetch.worker) },
      { title: "Step", cell: (fetch) => [fetch.step, ", since ", when(fetch.step_since, { isShort: true })] },
      { title: "Since", cell: (fetch) => when(fetch.since, { isShort: true }) },
    ],
  });
  const browsers = new Browsers(page.job);
  let lastState = "";
  const readAgain = () => (readStatus(), readCharts(), checkpoints.reload());
  const parts = new Parts(page);
  const checkpoints = new Checkpoints(page, readAgain);

  const showStatus = (status) => {
    const { overview } = status;
    if (overview.state !== lastState) {
      lastState = overview.state;
      put(state, badge(overview.state));
      put(buttons, jobActions(page.job, overview.state, () => (readStatus(), checkpoints.reload())));
      checkpoints.state(overview.state);
    }
    setText(why, overview.ended_why ?? "");
    why.hidden = !overview.ended_why;
    tiles.status(status);
    flight.show((status.in_flight ?? []).slice(0, 20));
    browsers.show(status.browsers);
    const active = overview.alerts;
    put(alerts, active > 0 && h("p.badge.bad", {}, link(page.job, "alerts", {}, `${count(active)} ${active === 1 ? "alert" : "alerts"}`)));
  };
  // An answer may be older than an event that came meanwhile. For a stopped job no later event would correct it.
  const statuses = new Answers(showStatus);
  const readStatus = () => statuses.ask(get(path(page.job), {}, page.signal)).catch(() => undefined);
  const since = () => (span === 0 ? undefined : new Date(Date.now() - span * 1000).toISOString());
  const series = new Answers(({ samples }) => {
    charts.series(samples);
    tiles.timeSeries(samples);
  });
  const readCharts = () =>
    Promise.allSettled([
      series.ask(read(page, "series", { since: since(), points: 240 })),
      read(page, "breakdown").then((breakdown) => charts.breakdown(breakdown)),
      readPlugins(page).then((plugins) => charts.plugins(plugins)),
    ]);

  const first = await get(path(page.job), {}, page.signal);
  showStatus(first);
  const isShared = Boolean(first.overview.cluster_job);
  const readParts = () => isShared && parts.reload().catch(() => undefined);
  const spans = h(
    "fieldset.spans",
    {},
    h("legend.unseen", {}, "Period of the charts"),
    SPANS.map(([seconds, words]) =>
      h(
        "button.button.small",
        {
          type: "button",
          "aria-pressed": String(seconds === span),
          onclick: (event) => {
            span = seconds;
            page.remember({ span: String(seconds) });
            for (const button of spans.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button === event.currentTarget));
            readCharts();
          },
        },
        words,
      ),
    ),
  );
  const [crumbs, head] = heading(page, page.job, buttons);
  head.firstElementChild.after(state, alerts);
  put(page.main, crumbs, head, why, tiles.element, spans, charts.element, observed, parts.element, h("section", {}, flight.element), browsers.element, browsers.pictures, checkpoints.element);
  follow(`jobs/${encodeURIComponent(page.job)}/events`, { status: (status) => statuses.showEvent(status), back: readAgain }, page.signal);
  const timer = setInterval(() => document.hidden || (readCharts(), readParts()), EVERY);
  page.signal.addEventListener("abort", () => clearInterval(timer));
  await Promise.all([readCharts(), readParts(), browsers.earlier(page).catch(failed), checkpoints.reload(), showObservers(page, observed)]);
}

// The parts of a shared crawl, with their sum.
class Parts {
  constructor(page) {
    this.page = page;
    this.total = h("p");
    this.table = new Table({
      caption: "Parts of the crawl",
      key: (part) => part.name,
      columns: [
        { title: "Part", isHead: true, cell: (part) => [part.name, part.name === this.own && h("div.hint", {}, "this job")] },
        { title: "Node", cell: (part) => part.node ?? "–" },
        { title: "State", cell: stateOfPart },
        { title: "Queued", isNumber: true, cell: (part) => figure(part, "queued", count) },
        { title: "Fetched", isNumber: true, cell: (part) => figure(part, "fetched", count) },
        { title: "Content", isNumber: true, cell: (part) => figure(part, "bytes", bytes) },
        { title: "Messages with links", isNumber: true, cell: (part) => count(part.inbox) },
        { title: "Pending commands", isNumber: true, cell: (part) => count(part.commands) },
        { title: "On this node since", cell: (part) => (part.since ? [when(part.since, { isShort: true }), part.epoch > 1 && h("div.hint", {}, `moved ${count(part.epoch - 1)} times`)] : "–") },
        { title: "Snapshot", cell: (part) => (part.snapshot ? when(part.snapshot.made, { isShort: true }) : "–") },
      ],
    });
    this.element = h("section", { hidden: true }, h("h2", {}, "All nodes"), this.total, this.table.element);
  }

  async reload() {
    const { crawl, own, total, parts } = await read(this.page, "parts");
    this.own = own;
    const sum = `${count(total.discovered)} URIs known, ${count(total.queued)} queued, ${count(total.fetched)} fetched, ${bytes(total.bytes)}`;
    setText(this.total, `Crawl ${crawl} of all nodes: ${sum}. The figures and charts above are those of this node.`);
    this.table.show(parts);
    this.element.hidden = false;
  }
}

// During a takeover the part's state is that of the takeover: the process does not crawl yet, although its session reports a state.
function stateOfPart({ takeover, failed_takeover: failure, remedy, state, is_at_rest: isAtRest, figures }) {
  return [
    badge(takeover ? "being taken over" : isAtRest && state === "running" ? "at rest" : state),
    !takeover && figures?.is_paused && [" ", badge("paused")],
    takeover && h("div.hint", {}, `by ${takeover.node}, since `, when(takeover.since, { isShort: true })),
    failure && h("div.hint", {}, `takeover by ${failure.node} failed `, when(failure.at, { isShort: true }), `: ${failure.problem}`),
    remedy && h("div.hint", {}, remedy),
  ];
}

function figure(part, name, words) {
  return part.figures ? words(part.figures[name]) : "–";
}

// Links to the reports of observers.
async function showObservers(page, element) {
  const { reports } = await read(page, "observers").catch(() => ({ reports: [] }));
  if (reports.length === 0) return;
  const links = reports.map((report) => link(page.job, "reports", { kind: `${report.observer}/${report.file}` }, `${report.observer}: ${report.file}`));
  put(element, "Reports of observers: ", links.flatMap((one, n) => (n === 0 ? [one] : [", ", one])));
  element.hidden = false;
}

const ACTIVITIES = { waiting: "waits for a browser", loading: "loading", extraction: "extracting links, text and pictures", archiving: "archiving its requests" };

/** The pages in browsers now, and pages that were rendered last. */
class Browsers {
  constructor(job) {
    this.job = job;
    this.isAtWork = false;
    this.shown = new Map();
    this.figures = h("p.muted");
    this.table = new Table({
      caption: "Pages in browsers",
      empty: "No page in a browser.",
      key: (one) => `${one.uri} ${one.since}`,
      columns: [
        { title: "In browsers", isHead: true, isWide: true, cell: (one) => uriLink(job, one.uri) },
        { title: "Activity", cell: (one) => (one.behavior ? `${one.behavior}, step ${count(one.step)}` : ACTIVITIES[one.activity]) },
        { title: "Since", cell: (one) => when(one.activity_since, { isShort: true }) },
        { title: "Started", cell: (one) => when(one.since, { isShort: true }) },
        { title: "Requests", isNumber: true, cell: (one) => count(one.requests) },
        { title: "Refused", isNumber: true, cell: (one) => count(one.refused) },
      ],
    });
    this.element = h("section", { hidden: true }, this.table.element, this.figures);
    this.list = h("ul.pictures");
    this.pictures = h("section.card", { hidden: true }, h("h2", {}, "Rendered last"), this.list);
  }

  show(browsers) {
    this.isAtWork = Boolean(browsers);
    this.element.hidden = !browsers;
    if (!browsers) return;
    const { pages, figures, last } = browsers;
    this.table.show(pages);
    this.showPictures(last);
    const cut = figures.cut_by_time + figures.cut_by_steps + figures.cut_by_requests + figures.cut_by_crash;
    const crashes = figures.crashes === 1 ? "crash" : "crashes";
    setText(
      this.figures,
      `This process: ${count(figures.rendered)} pages rendered, ${count(cut)} of them cut; ${count(figures.not_rendered)} not rendered; ` +
        `${count(figures.crashes)} ${crashes}; ${count(figures.requests)} requests, ${count(figures.refused)} of them refused.`,
    );
  }

  /** Shows the pages that an earlier process rendered last, from the last lines of crawl.log about rendered pages. */
  async earlier(page) {
    if (this.isAtWork) return;
    const { visits } = await read(page, "crawl-log", { grep: "rendered", limit: LINES });
    // A process has started meanwhile.
    if (this.isAtWork) return;
    const rendered = visits.filter((visit) => visit.annotations.some((one) => /^rendered(:|$)/.test(one)));
    this.showPictures([...new Set(rendered.map((visit) => visit.uri))].slice(0, PICTURES));
  }

  // Existing pictures are kept, except those of pages that were rendered again, which have moved to the front.
  showPictures(uris) {
    const before = this.shown;
    if (uris.join(" ") === [...before.keys()].join(" ")) return;
    const places = [...before.keys()];
    this.shown = new Map(
      uris.map((uri, n) => {
        const stays = before.has(uri) && n >= places.indexOf(uri);
        return [uri, stays ? before.get(uri) : picture({ job: this.job, uri, caption: uriLink(this.job, uri) })];
      }),
    );
    this.pictures.hidden = uris.length === 0;
    put(this.list, [...this.shown.values()]);
  }
}

/** The figures. */
class Tiles {
  constructor() {
    this.figures = new Map();
    this.element = h("dl.tiles", { "aria-label": "Figures" });
    this.set("URIs/s", "–", "over ten seconds");
    this.set("Content/s", "–", "over ten seconds");
  }

  set(name, value, detail = "") {
    let figure = this.figures.get(name);
    if (!figure) {
      figure = { value: h("span"), detail: h("small") };
      this.figures.set(name, figure);
      this.element.append(h("div", {}, h("dt", {}, name), h("dd", {}, figure.value, figure.detail)));
    }
    setText(figure.value, value);
    setText(figure.detail, detail);
  }

  remove(name) {
    this.figures.get(name)?.value.closest("dl > div").remove();
    this.figures.delete(name);
  }

  status(status) {
    const { statistics } = status;
    this.set("URIs known", count(statistics.discovered), `${count(statistics.refused)} rejected by the scope`);
    this.set("Queued", count(statistics.queued), `${count(statistics.in_process)} in process`);
    const { visits } = status;
    this.remove(visits ? OUTCOMES : "Documents");
    if (visits) {
      this.set("Documents", count(visits.documents), `${count(visits.error_responses + visits.no_response)} failed (${count(visits.error_responses)} error responses), ${count(visits.disregarded)} disregarded`);
    } else {
      // Visits are counted only by a process. For a stopped job these are numbers of URIs.
      this.set(OUTCOMES, count(statistics.succeeded), `by their last visit; ${count(statistics.failed)} failed, ${count(statistics.disregarded)} disregarded, ${count(statistics.prerequisites)} prerequisites`);
    }
    const content = statistics.bytes;
    this.set("Content", bytes(content.novel + content.unchanged + content.unknown), `${bytes(content.novel)} of it new`);
    const found = statistics.revisits;
    const revisits = found.changed + found.unchanged + found.not_modified + found.unknown;
    const pages = status.census?.pages;
    if (pages) {
      this.set("Freshness", pages.freshness === null || pages.freshness === undefined ? "–" : percent(pages.freshness), `estimated from ${count(pages.estimated)} pages`);
      this.set("Overdue", count(pages.due), `of ${count(pages.visited + pages.unvisited)} pages`);
      this.set("Coverage", percent(pages.coverage), `${count(pages.unvisited)} not visited yet`);
    }
    if (revisits > 0) this.set("Revisits", count(revisits), `${percent(found.changed / revisits)} found a change`);
    const { bytes_per_second: most = null, connections = null } = status.share ?? {};
    if (most !== null || connections !== null) {
      const taken = connections === null ? "no limit of connections" : `${count(status.taken.connections)} of ${count(connections)} connections`;
      this.set("Share", most === null ? "no limit" : `${bytes(most)}/s`, taken);
    }
    const run = statistics.run_time_s;
    this.set("Crawl time", duration(Math.round(run)), status.elapsed_s ? `this process ${duration(Math.round(status.elapsed_s))}` : "");
  }

  timeSeries(samples) {
    const last = samples.at(-1);
    const before = samples.findLast((sample) => last && new Date(last.at) - new Date(sample.at) >= 9500) ?? samples[0];
    const seconds = last ? (new Date(last.at) - new Date(before.at)) / 1000 : 0;
    const isNow = last && Date.now() - new Date(last.at) < 60000;
    this.set("URIs/s", isNow && seconds > 0 ? rate((last.uris - before.uris) / seconds) : "–", "over ten seconds");
    this.set("Content/s", isNow && seconds > 0 ? `${bytes((last.bytes - before.bytes) / seconds)}/s` : "–", "over ten seconds");
  }
}

/** The charts. */
class Charts {
  constructor(job) {
    this.job = job;
    const perSecond = (value) => `${rate(value)}/s`;
    this.throughput = new TimeChart({ title: "URIs per second", series: ["URIs"], kind: "area", format: perSecond, axis: short });
    this.content = new TimeChart({ title: "Content per second", series: ["content"], kind: "area", format: (value) => `${bytes(value)}/s`, axis: bytes, step: 1024 });
    this.news = new TimeChart({
      title: "Results of visits",
      series: CONTENT.map((name) => name.replace("_", " ")),
      kind: "area",
      format: perSecond,
      axis: short,
    });
    this.stock = new TimeChart({ title: "URIs", series: ["known", "queued", "succeeded"], format: count, axis: short });
    this.queues = new TimeChart({ title: "Queues by state", series: QUEUES.map((name) => name.replace("_", " ")), kind: "area", format: count, axis: short });
    this.trouble = new TimeChart({
      title: "Errors per minute",
      series: ["failures", "retries", "plugin errors"],
      format: rate,
      axis: short,
    });
    this.overdue = new Histogram({ title: "Delay of revisits, up to", format: count, axis: short });
    this.statuses = new Bars({ title: "Fetch status", format: count });
    this.types = new Bars({ title: "Media types", format: count });
    this.hosts = new Bars({ title: "Busiest hosts", format: count });
    this.pluginTime = new Bars({ title: "Time in plugins", format: duration });
    this.element = h(
      "div.grid",
      {},
      [
        this.throughput,
        this.content,
        this.news,
        this.queues,
        this.stock,
        this.trouble,
        this.overdue,
        this.statuses,
        this.types,
        this.pluginTime,
        this.hosts,
      ].map((chart) => chart.element),
    );
  }

  series(samples) {
    const gaps = gapsOf(samples);
    const steps = samples.slice(1).map((sample, n) => ({ sample, before: samples[n], time: Date.parse(sample.at) }));
    // Samples have counters, so the events of a period are a difference. It is never negative, even if the clock was set back.
    const over = (names, per) =>
      steps.map(({ sample, before, time }, n) => {
        if (gaps.has(n + 1)) return { time, values: names.map(() => null) };
        const seconds = Math.max(0.001, (time - Date.parse(before.at)) / 1000);
        return { time, values: names.map((name) => (Math.max(0, sample[name] - before[name]) / seconds) * per) };
      });
    this.throughput.update(over(["uris"], 1));
    this.content.update(over(["bytes"], 1));
    this.news.update(over(CONTENT, 1));
    this.trouble.update(mergePoints(over(["failures", "retries", "faults"], 60)));
    const levels = (names, of) =>
      samples.flatMap((sample, n) => {
        const time = Date.parse(sample.at);
        const point = { time, values: names.map((name) => of(sample)?.[name] ?? null) };
        return gaps.has(n) ? [{ time: time - 1, values: names.map(() => null) }, point] : [point];
      });
    this.stock.update(levels(["discovered", "queued", "succeeded"], (sample) => sample));
    // The first samples are taken more often than queues are counted.
    const counted = samples.some((sample) => sample.queues);
    this.queues.update(counted ? levels(QUEUES, (sample) => sample.queues) : []);
    const last = samples.at(-1);
    this.overdue.update(LATE.map((name, n) => ({ name, value: last?.overdue?.[n] ?? 0 })));
  }

  breakdown({ statuses = [], media_types: types = [], hosts = [] }) {
    const most = (list) => [...list].sort((a, b) => b.uris - a.uris).slice(0, SHOWN);
    // Each bar links to the URIs that it counts, except bars that add up several media types, or look-ups.
    const uris = (query) => place(this.job, "uris", query);
    this.statuses.update(
      most(statuses).map((row) => ({
        name: statusText(row.status),
        value: row.uris,
        detail: bytes(row.bytes),
        kind: row.status < 0 || row.status >= 400 ? "bad" : "c1",
        href: uris({ status: row.status }),
      })),
    );
    this.types.update(
      most(types).map((row) => ({ name: row.media_type, value: row.uris, detail: bytes(row.bytes), href: /\/|^no-type$/.test(row.media_type) ? uris({ media_type: row.media_type }) : undefined })),
    );
    this.hosts.update(hosts.slice(0, SHOWN).map((row) => ({ name: row.host, value: row.responses.uris, detail: bytes(row.responses.bytes), href: /:$/.test(row.host) ? undefined : uris({ host: row.host }) })));
  }

  plugins(plugins) {
    const called = plugins.filter((plugin) => plugin.calls > 0).sort((a, b) => b.times.total_s - a.times.total_s);
    this.pluginTime.update(
      called.slice(0, SHOWN).map((plugin) => {
        const faults = Object.values(plugin.faults).reduce((sum, number) => sum + number, 0);
        return {
          name: plugin.variant ? `${plugin.name} (${plugin.variant})` : plugin.name,
          value: plugin.times.total_s,
          detail: `${count(plugin.calls)} calls${faults > 0 ? `, ${count(faults)} errors` : ""}`,
          kind: faults > 0 ? "bad" : "c1",
        };
      }),
    );
  }
}

/** Gaps in which no process measured: the indexes of samples whose distance from the sample before is much longer than usual. */
export function gapsOf(samples) {
  const times = samples.map((sample) => Date.parse(sample.at));
  const steps = times.slice(1).map((time, n) => time - times[n]);
  const found = new Set();
  steps.forEach((step, n) => {
    // Timers may be late, and samples of the past are further apart.
    const usual = Math.max(steps[n - 1] ?? 0, steps[n + 1] ?? 0, 1000);
    if (step > 3 * usual) found.add(n + 1);
  });
  return found;
}

// Averages neighbouring points: rare events would be a row of spikes if points are only seconds apart.
function mergePoints(points) {
  const size = Math.ceil(points.length / 40);
  const found = [];
  for (let n = 0; n < points.length; n += size) {
    const part = points.slice(n, n + size);
    found.push({
      time: part.at(-1).time,
      values: part[0].values.map((_, i) => {
        const measured = part.map((point) => point.values[i]).filter((value) => value !== null);
        return measured.length === 0 ? null : measured.reduce((sum, value) => sum + value, 0) / measured.length;
      }),
    });
  }
  return found;
}
