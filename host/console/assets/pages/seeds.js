// The seeds with their states, and the actions to add and remove seeds.

import { job as path, send } from "../api.js";
import { h, icon, put } from "../dom.js";
import { count, when } from "../format.js";
import { badge, fetchStatus, heading, read, statusText, uriLink } from "../job.js";
import { ask, failed, field } from "../notice.js";
import { Pages, Table } from "../table.js";

const SIZE = 50;

/** Opens the page. */
export async function open(page) {
  const table = new Table({
    caption: "Seeds",
    empty: "No seeds.",
    key: (seed) => seed.uri,
    columns: [
      { title: "Seed", isHead: true, isWide: true, cell: (seed) => uriLink(page.job, seed.uri) },
      { title: "Captured", cell: captured },
      { title: "Status", isNumber: true, cell: (seed) => fetchStatus(seed.status) },
      { title: "First capture", cell: (seed) => when(seed.first_captured, { isShort: true }) },
      { title: "Last fetched", cell: (seed) => when(seed.fetched, { isShort: true }) },
      { title: "Last change", cell: (seed) => when(seed.changed, { isShort: true }) },
      { title: "Next due", cell: (seed) => when(seed.due, { isShort: true }) },
      { title: "Pages", isNumber: true, cell: (seed) => count(seed.pages) },
      { title: "Visits", isNumber: true, cell: (seed) => count(seed.visits) },
      { title: "Redirects to", isWide: true, cell: (seed) => (seed.redirect ? redirect(page, seed) : "–") },
      { title: "Why not fetched", isWide: true, cell: (seed) => seed.why ?? "–" },
      { title: "From", cell: (seed) => seed.origin },
      {
        title: "Actions",
        cell: (seed) => h("button.button.small", { type: "button", "data-needs": "operator", onclick: () => askToRemove(page, seed.uri, () => pages.reload().catch(failed)) }, "Remove …"),
      },
    ],
  });
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows) => table.show(rows),
    load: async (after) => {
      const answer = await read(page, "seeds", { after, limit: SIZE });
      return { rows: answer.seeds, next: answer.after };
    },
  });
  await pages.first();
  put(
    page.main,
    heading(
      page,
      "Seeds",
      h("button.button", { type: "button", onclick: () => pages.reload().catch(failed) }, "Refresh"),
      h("button.button.primary", { type: "button", "data-needs": "operator", onclick: () => askToAdd(page, () => pages.reload().catch(failed)) }, icon("plus"), "Add seeds"),
    ),
    table.element,
    pages.element,
  );
}

function captured(seed) {
  if (!seed.captured) return badge(seed.status < 0 ? "failed" : seed.status ? "not archived" : "not yet");
  // `captured` is also true for captures of earlier visits, so "today" needs a visit of today that fetched the seed.
  const isToday = seed.crawled && seed.fetched && seed.fetched.slice(0, 10) === new Date().toISOString().slice(0, 10);
  return h("span.badge.good", {}, isToday ? "today" : "yes");
}

// The URI at which the redirects of a seed end, its fetch status and its first capture.
function redirect(page, { redirect: uri, redirect_status: status, redirect_first_captured: first }) {
  const details = [status ? `status ${statusText(status)}` : "not fetched"];
  if (first) details.push("first capture ", when(first, { isShort: true }));
  return [uriLink(page.job, uri), h("div.hint", {}, details.flatMap((part, n) => (n === 1 ? [", ", part] : [part])))];
}

function askToAdd(page, after) {
  const lines = h("textarea", { rows: 8, required: true, spellcheck: "false", placeholder: "https://example.org/\nexample.net\n+http://(org,example,archive," });
  ask({
    title: "Add seeds",
    text: "One per line, as in a seeds file. The scope includes their implied prefixes at once.",
    fields: [field("Seeds", lines)],
    yes: "Add",
    act: async () => {
      const answer = await send("POST", path(page.job, "seeds"), { seeds: lines.value.split("\n") });
      after();
      return `${count(answer.added)} added, ${count(answer.known)} already known; ${count(answer.prefixes)} prefixes added to the scope`;
    },
  });
}

function askToRemove(page, uri, after) {
  ask({
    title: "Remove the seed?",
    text: `${uri}: removes the seed, its scope prefix, and queued URIs found only through it.`,
    yes: "Remove",
    isDangerous: true,
    act: async () => {
      const answer = await send("POST", path(page.job, "seeds", "remove"), { uri });
      after();
      return answer?.result ?? "the seed was removed";
    },
  });
}
