// The visits in crawl.log, searched by column in all files of the log. For each page of results the daemon reads a part of the log,
// so a page may have fewer rows than its limit.

import { h, put, setText } from "../dom.js";
import { bytes, duration, utc } from "../format.js";
import { chooser, fetchStatus, heading, link, read, uriLink } from "../job.js";
import { failed, field } from "../notice.js";
import { Pages, Table } from "../table.js";

const SIZE = 100;
const ORDERS = [
  ["", "newest first"],
  ["oldest-first", "oldest first"],
];

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const text = (name, placeholder) => h("input", { name, value: query[name] ?? "", spellcheck: "false", autocapitalize: "off", placeholder });
  const grep = h("input", { type: "search", name: "grep", "data-search": true, value: query.grep ?? "", spellcheck: "false", autocapitalize: "off", placeholder: "regular expression" });
  const inputs = {
    grep,
    status: text("status", "404, 5xx, -2"),
    host: text("host", "www.example.org"),
    media_type: text("media_type", "text/html, image/*"),
    plugin: text("plugin", "adaptive"),
    since: h("input", { type: "datetime-local", name: "since", step: 1, value: query.since ?? "" }),
    until: h("input", { type: "datetime-local", name: "until", step: 1, value: query.until ?? "" }),
  };
  const note = h("p.muted", { role: "status" });
  const table = new Table({
    caption: "Visits",
    empty: () => (pages.next === null ? "No matching visits." : "No matching visits in this part of the log. “Next” continues the search."),
    key: (row) => row.line,
    columns: [
      { title: "Logged (UTC)", isHead: true, cell: (row) => h("time", { datetime: row.logged }, utc(row.logged).replace(" UTC", "")) },
      { title: "Status", isNumber: true, cell: (row) => fetchStatus(row.status, link(page.job, "uris", { status: String(row.status) }, String(row.status))) },
      { title: "URI", isWide: true, cell: (row) => uriLink(page.job, row.uri) },
      { title: "Size", isNumber: true, cell: (row) => bytes(row.size) },
      { title: "Media type", cell: (row) => row.media_type },
      { title: "Duration", isNumber: true, cell: (row) => (row.took_ms === null ? "–" : duration(row.took_ms / 1000)) },
      { title: "Hops", cell: (row) => row.hop_path ?? "seed" },
      { title: "Annotations", isWide: true, cell: (row) => (row.annotations.length === 0 ? "–" : row.annotations.join(", ")) },
    ],
  });
  // Bytes of the log that were searched before each page of results, by the page's cursor.
  const before = new Map();
  const conditions = () => ({
    ...Object.fromEntries(["grep", "status", "host", "media_type", "plugin", "order"].map((name) => [name, query[name]])),
    since: utcTime(query.since),
    until: utcTime(query.until),
  });
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows, answer) => {
      if (answer.next) before.set(answer.next, answer.examined);
      setText(note, answer.next ? `${bytes(Math.min(answer.examined, answer.size))} of ${bytes(answer.size)} searched so far` : `${bytes(answer.size)} searched`);
      table.show(rows);
    },
    load: async (after) => {
      const answer = await read(page, "crawl-log", { ...conditions(), after, limit: SIZE });
      return { rows: answer.visits, next: answer.after, examined: (before.get(after) ?? 0) + answer.examined, size: answer.size };
    },
  });
  // Invalid conditions are reported beside the fields.
  const show = async () => {
    try {
      await pages.first();
    } catch (problem) {
      if (problem.status !== 422) throw problem;
      table.show([]);
      pages.element.hidden = true;
      setText(note, problem.message);
    }
  };
  const change = (changed) => {
    page.remember(changed);
    show().catch(failed);
  };
  await show();
  const searched = field("Lines with", grep);
  searched.classList.add("grow");
  put(
    page.main,
    heading(page, "Crawl log", h("button.button", { type: "button", onclick: () => show().catch(failed) }, "Refresh")),
    h(
      "form.toolbar",
      {
        role: "search",
        onsubmit: (event) => {
          event.preventDefault();
          change(Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value.trim()])));
        },
      },
      searched,
      field("Status", inputs.status),
      field("Host", inputs.host),
      field("Media type", inputs.media_type),
      field("Plugin", inputs.plugin),
      field("Since (UTC)", inputs.since),
      field("Until (UTC)", inputs.until),
      chooser("Order", ORDERS, query.order ?? "", (order) => change({ order })),
      h("button.button.primary", { type: "submit" }, "Search"),
    ),
    note,
    table.element,
    pages.element,
  );
}

// The time in a field, which has no time zone, as UTC.
function utcTime(value) {
  if (!value) return undefined;
  const date = new Date(`${value}Z`);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
