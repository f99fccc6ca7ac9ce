// All jobs with their states: searched, filtered and sorted, and updated while the page is open.

import { get } from "../api.js";
import { h, icon, put, setText } from "../dom.js";
import { bytes, count, rate, when, words } from "../format.js";
import { badge, chooser, jobActions, link, search } from "../job.js";
import { follow } from "../stream.js";
import { Pages, Table } from "../table.js";

const SIZE = 50;
const STATES = ["new", "waiting", "starting", "running", "pausing", "paused", "ending", "stopped", "finished", "failed", "crashed", "damaged"];

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const summary = h("p.muted", { role: "status" });
  const table = new Table({
    caption: "Jobs",
    empty: () => (query.search || query.state ? "No matching jobs." : "No jobs yet. Create one from a profile."),
    key: (job) => job.name,
    onsort: (sort, isDescending) => change({ sort: isDescending ? `-${sort}` : sort }),
    columns: [
      { title: "Job", sort: "name", isHead: true, isWide: true, cell: (job) => link(job.name, "", {}, job.name) },
      { title: "State", sort: "state", cell: state },
      { title: "Profile", cell: (job) => job.profile ?? "–" },
      { title: "URIs/s", isNumber: true, cell: (job) => (job.state === "running" ? rate(job.uris_per_second) : "–") },
      { title: "URIs", sort: "uris", isDescendingFirst: true, isNumber: true, cell: (job) => count(job.uris) },
      { title: "Queued", sort: "queued", isDescendingFirst: true, isNumber: true, cell: (job) => count(job.queued) },
      { title: "Content", sort: "bytes", isDescendingFirst: true, isNumber: true, cell: (job) => bytes(job.bytes) },
      { title: "Alerts", isNumber: true, cell: (job) => (job.alerts ? link(job.name, "alerts", {}, h("span.badge.bad", {}, count(job.alerts))) : "–") },
      { title: "Started", sort: "started", isDescendingFirst: true, cell: (job) => when(job.started, { isShort: true }) },
      { title: "Actions", cell: (job) => menu(job.name, () => table.row(job.name)?.state, () => pages.reload()) },
    ],
  });
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows, { total }) => {
      setText(summary, `${count(total)} ${total === 1 ? "job" : "jobs"}`);
      table.show(rows);
    },
    load: async (after) => {
      const answer = await get("jobs", { search: query.search, state: query.state, sort: query.sort, after, limit: SIZE }, page.signal);
      return { rows: answer.jobs, next: answer.after, total: answer.total };
    },
  });
  const change = (changed) => {
    page.remember(changed);
    return pages.first().catch(() => undefined);
  };
  if (query.sort) table.sorted(query.sort.replace("-", ""), query.sort.startsWith("-"));

  await pages.first();
  put(
    page.main,
    h("div.head", {}, h("h1", {}, "Jobs"), summary, h("div.actions", {}, h("a.button.primary", { href: "#/new", "data-needs": "operator" }, icon("plus"), "New job"))),
    h(
      "div.toolbar",
      {},
      search("Search", query.search, (value) => change({ search: value })),
      chooser("State", [["", "all"], ...STATES.map((name) => [name, words(name)])], query.state ?? "", (value) => change({ state: value })),
    ),
    table.element,
    pages.element,
  );

  // One event stream reports changes of all jobs. The page then reloads its rows, at most every two seconds.
  let isDue = true;
  const reload = () => {
    if (!isDue || document.hidden) return;
    isDue = false;
    setTimeout(() => (isDue = true), 2000);
    pages.reload().catch(() => undefined);
  };
  follow("events", { jobs: reload, back: reload }, page.signal);
}

function state(job) {
  const share = [job.share?.bytes_per_second && `at most ${bytes(job.share.bytes_per_second)}/s`, job.share?.connections && `${count(job.share.connections)} connections`].filter(Boolean).join(", ");
  const why = [job.ended_why, job.schedule && `crawls ${job.schedule}`, share].filter(Boolean).join("; ");
  return [badge(job.state), why && h("div.hint", {}, why)];
}

/** A menu with the actions on a job, because a row of buttons for each job would be too much. Its entries depend on the state at
 * the moment when the menu is opened. */
function menu(name, state, after) {
  const list = h("div.actions");
  const summary = h("summary", { "aria-label": `Actions for ${name}` }, "Actions");
  const details = h("details.menu", { "data-needs": "operator" }, summary, list);
  const close = () => {
    details.open = false;
    summary.focus();
    after();
  };
  details.addEventListener("toggle", () => {
    put(list, details.open && jobActions(name, state(), close));
  });
  return details;
}

