// The hosts of a job: bytes, documents, errors, and the freshness of pages. The table shows one page at a time; the treemap shows
// the largest hosts, and the others as one tile.

import { Answers } from "../answers.js";
import { h, id, put, setText } from "../dom.js";
import { bytes, count, percent, when } from "../format.js";
import { chooser, heading, link, place, read } from "../job.js";
import { failed, field } from "../notice.js";
import { Pages, Table } from "../table.js";
import { Treemap } from "../treemap.js";

const SIZE = 50;
const TILES = 80;
/** Values for the sizes of tiles: field of a host, label. */
const MEASURES = [
  ["bytes", "Bytes"],
  ["documents", "Documents"],
  ["errors", "Errors"],
];
const KINDS = [
  ["few", "under 1 % errors"],
  ["some", "1 % to 10 % errors"],
  ["many", "over 10 % errors"],
  ["rest", "all other hosts"],
];

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const search = h("input", { type: "search", "data-search": true, value: query.search ?? "", spellcheck: "false", autocapitalize: "off", placeholder: "example.org" });
  const withErrors = h("input", { type: "checkbox", id: id("errors"), checked: query.errors === "yes" });
  const totals = h("p.muted", { role: "status" });
  const format = (value) => (measure() === "bytes" ? bytes(value) : count(value));
  const treemap = new Treemap({ title: "Map of hosts", legend: KINDS, format, open: (tile) => (location.hash = tile.href) });
  const measure = () => (MEASURES.some(([name]) => name === query.size) ? query.size : "bytes");
  const sort = () => query.sort || "bytes";
  const selected = () => ({ search: query.search, with_errors: query.errors === "yes" || undefined });
  const column = (name, title, cell) => ({ title, sort: name, isNumber: true, isDescendingFirst: true, cell });
  const table = new Table({
    caption: "Hosts",
    empty: () => (query.search || query.errors ? "No matching hosts." : "No visits yet."),
    key: (row) => row.host,
    onsort: (name, isDescending) => {
      // Names are sorted upwards, all other columns downwards.
      const isUsual = isDescending === (name !== "name");
      change({ sort: name === "bytes" ? "" : name, reverse: isUsual ? "" : "yes" }, false);
    },
    columns: [
      { title: "Host", sort: "name", isHead: true, isWide: true, cell: (row) => hostLink(page.job, row.host) },
      column("documents", "Documents", (row) => count(row.documents)),
      column("bytes", "Bytes", (row) => bytes(row.bytes)),
      column("errors", "Errors", (row) => errors(page.job, row)),
      { title: "Disallowed by robots.txt", isNumber: true, cell: (row) => count(row.robots) },
      column("freshness", "Freshness", (row) => freshness(row)),
      { title: "Overdue", isNumber: true, cell: (row) => (row.pages ? count(row.pages.due) : "–") },
      column("last-visit", "Last visit", (row) => when(row.last_visit, { isShort: true })),
    ],
  });
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows, { sums }) => {
      setText(totals, `${count(sums.hosts)} hosts: ${count(sums.documents)} documents, ${bytes(sums.bytes)}, ${count(sums.errors)} errors`);
      table.show(rows);
    },
    load: async (after) => {
      const answer = await read(page, "hosts", { ...selected(), sort: sort(), reverse: query.reverse === "yes" || undefined, after, limit: SIZE });
      return { rows: answer.hosts, next: answer.after, sums: answer.totals };
    },
  });
  const maps = new Answers(({ size, hosts, totals: sums }) => {
    const tiles = hosts.map((row) => ({ name: row.host, value: row[size], kind: kind(row), detail: `${count(row.documents)} documents, ${count(row.errors)} errors`, href: place(page.job, "crawl-log", { host: row.host }) }));
    const rest = sums[size] - hosts.reduce((sum, row) => sum + row[size], 0);
    if (rest > 0) tiles.push({ name: `${count(sums.hosts - hosts.length)} other hosts`, value: rest, kind: "rest" });
    treemap.update(tiles.sort((a, b) => b.value - a.value));
  });
  const draw = () => {
    const size = measure();
    return maps.ask(read(page, "hosts", { ...selected(), sort: size, limit: TILES }).then((answer) => ({ size, ...answer })));
  };
  const load = () => Promise.all([pages.first(), draw()]);
  const change = (changed, isMap = true) => {
    page.remember(changed);
    (isMap ? load() : pages.first()).catch(failed);
  };
  withErrors.addEventListener("change", () => change({ errors: withErrors.checked ? "yes" : "" }));
  table.sorted(sort(), (sort() !== "name") !== (query.reverse === "yes"));
  await load();
  const searched = field("Hosts with", search);
  searched.classList.add("grow");
  put(
    page.main,
    heading(page, "Hosts", h("button.button", { type: "button", onclick: () => load().catch(failed) }, "Refresh")),
    h(
      "form.toolbar",
      {
        role: "search",
        onsubmit: (event) => {
          event.preventDefault();
          change({ search: search.value.trim() });
        },
      },
      searched,
      h("button.button", { type: "submit" }, "Search"),
      h("div.check", {}, withErrors, h("label", { for: withErrors.id }, "Only hosts with errors")),
      chooser("Size of tiles", MEASURES, measure(), (size) => {
        page.remember({ size: size === "bytes" ? "" : size });
        draw().catch(failed);
      }),
    ),
    treemap.element,
    totals,
    table.element,
    pages.element,
  );
}

function hostLink(job, host) {
  return link(job, "crawl-log", { host }, host);
}

function errors(job, row) {
  if (row.errors === 0) return "0";
  return link(job, "crawl-log", { host: row.host, status: "4xx,5xx,-3999--1" }, count(row.errors));
}

function freshness({ pages }) {
  if (!pages || pages.freshness === undefined || pages.freshness === null) return "–";
  return pages.is_partial ? [percent(pages.freshness), h("div.hint", {}, "from the first 2,000 URIs")] : percent(pages.freshness);
}

function kind(row) {
  const all = row.documents + row.errors;
  const share = all === 0 ? 0 : row.errors / all;
  return share > 0.1 ? "many" : share >= 0.01 ? "some" : "few";
}
