// Compares two crawls: this job or one of its checkpoints with another job or checkpoint.

import { Answers } from "../answers.js";
import { get, job as path } from "../api.js";
import { h, put } from "../dom.js";
import { count, utc } from "../format.js";
import { choice, failed, field } from "../notice.js";
import { fetchStatus, heading, read, statusText, uriLink } from "../job.js";
import { Pages, Table } from "../table.js";

const SIZE = 100;
const JOBS = 1000;
const LISTS = [
  ["changed", "URIs with other content"],
  ["only-a", "URIs only in the first"],
  ["only-b", "URIs only in the second"],
  ["status", "URIs with another status"],
];

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const { jobs } = await get("jobs", { limit: JOBS }, page.signal);
  const names = jobs.map((one) => one.name).sort();
  const checkpointsOf = async (job) => {
    const { checkpoints } = await get(path(job, "checkpoints"), { limit: 200 }, page.signal);
    return [["", "as of now"], ...checkpoints.filter((checkpoint) => checkpoint.is_whole).map((checkpoint) => [checkpoint.name, `${checkpoint.name} (${utc(checkpoint.made)})`])];
  };
  const own = await checkpointsOf(page.job);
  const first = choice({}, own, query.checkpoint ?? "");
  const other = choice({}, names.map((name) => [name, name === page.job ? `${name} (this job)` : name]), query.with || page.job);
  let second = choice({}, await checkpointsOf(other.value), query.with_checkpoint ?? (other.value === page.job ? (own[1]?.[0] ?? "") : ""));
  const list = choice({}, LISTS, query.list ?? "changed");
  const secondField = h("div.field");
  const putSecond = () => put(secondField, ...field("Second: state", second).childNodes);
  const states = new Answers((options) => {
    second = choice({}, options, "");
    putSecond();
  });
  other.addEventListener("change", () => states.ask(checkpointsOf(other.value)).catch(failed));
  putSecond();
  const results = h("div");
  const visit = (one) => fetchStatus(one?.status);
  const table = new Table({
    caption: "Differing URIs",
    empty: "No URIs of this kind.",
    key: (row) => row.uri,
    columns: [
      { title: "URI", isHead: true, isWide: true, cell: (row) => uriLink(page.job, row.uri) },
      { title: "First: status", isNumber: true, cell: (row) => visit(row.a) },
      { title: "Second: status", isNumber: true, cell: (row) => visit(row.b) },
      { title: "First: digest", isWide: true, cell: (row) => digest(row.a) },
      { title: "Second: digest", isWide: true, cell: (row) => digest(row.b) },
    ],
  });
  const selection = () => ({ with: query.with, checkpoint: query.checkpoint, with_checkpoint: query.with_checkpoint, list: query.list || "changed" });
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows, answer) => {
      put(results, answer.summary);
      table.show(rows);
    },
    load: async (after) => {
      const answer = await read(page, "compare", { ...selection(), after, limit: SIZE });
      return { rows: answer.uris, next: answer.after, summary: summary(answer) };
    },
  });
  const compared = h("section", { hidden: true }, results, h("h2", {}, "Differing URIs"), table.element, pages.element);
  const problem = h("p.form-error", { role: "alert" });
  const button = h("button.button.primary", { type: "submit" }, "Compare");
  const show = async () => {
    put(problem);
    button.disabled = true;
    try {
      await pages.first();
      compared.hidden = false;
    } catch (cause) {
      if (cause.name !== "AbortError") put(problem, cause.message);
    } finally {
      button.disabled = false;
    }
  };
  put(
    page.main,
    heading(page, "Compare"),
    h("p.muted", {}, "Compares the last visit of each URI. It reads all URIs of both sides, which takes some seconds for a million."),
    h(
      "form.toolbar",
      {
        onsubmit: (event) => {
          event.preventDefault();
          page.remember({ with: other.value === page.job ? "" : other.value, checkpoint: first.value, with_checkpoint: second.value, list: list.value });
          show();
        },
      },
      field(`First: ${page.job}`, first),
      field("Second: job", other),
      secondField,
      field("List", list),
      button,
    ),
    problem,
    compared,
  );
  if (query.with || query.checkpoint || query.with_checkpoint) await show();
}

function digest(visit) {
  const text = visit?.stripped_digest ?? visit?.payload_digest;
  return text ? h("code", {}, text.replace("sha1:", "")) : "–";
}

function summary(answer) {
  const name = (side) => (side.checkpoint ? `${side.job}, checkpoint ${side.checkpoint}` : `${side.job} as of now`);
  const tile = (title, value, detail) => h("div", {}, h("dt", {}, title), h("dd", {}, h("span", {}, value), detail && h("small", {}, detail)));
  return [
    h(
      "dl.tiles",
      { "aria-label": "Figures" },
      tile("First", count(answer.a.visited), `URIs visited by ${name(answer.a)}`),
      tile("Second", count(answer.b.visited), `URIs visited by ${name(answer.b)}`),
      tile("First only", count(answer.only_a)),
      tile("Second only", count(answer.only_b)),
      tile("Both", count(answer.both)),
      tile("Other content", count(answer.changed), "of both"),
      tile("Another status", count(answer.other_status), "of both"),
    ),
    h(
      "div.grid",
      {},
      counts("By status", "Status", answer.statuses, (row) => statusText(row.status)),
      counts("By media type", "Media type", answer.media_types, (row) => row.media_type),
      counts("Hosts whose counts differ", "Host", answer.hosts, (row) => row.host),
    ),
  ];
}

function counts(caption, title, rows, nameOf) {
  const table = new Table({
    caption,
    empty: "No differences.",
    key: nameOf,
    columns: [
      { title, isHead: true, cell: nameOf },
      { title: "First", isNumber: true, cell: (row) => count(row.a) },
      { title: "Second", isNumber: true, cell: (row) => count(row.b) },
      { title: "Difference", isNumber: true, cell: (row) => `${row.b >= row.a ? "+" : "−"}${count(Math.abs(row.b - row.a))}` },
    ],
  });
  table.show(rows);
  return h("section.card", {}, h("h2", {}, caption), table.element);
}
