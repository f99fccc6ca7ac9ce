// The daemon itself: who may do what, what was done, what is planned.

import { get } from "../api.js";
import { h, put } from "../dom.js";
import { region } from "../job.js";
import { duration, when, words } from "../format.js";
import { Table, facts } from "../table.js";
import { session } from "../session.js";

/** Opens the page. */
export async function open(page) {
  const about = await get("daemon", {}, page.signal);
  put(
    page.main,
    h("div.head", {}, h("h1", {}, "Daemon")),
    h(
      "section.card",
      {},
      facts([
        ["You are", session.who && `${session.who} (${session.role})`],
        ...Object.entries(about)
          .filter(([, value]) => value !== null && typeof value !== "object")
          .map(([name, value]) => [words(name.replace(/_s$/, "")), shown(name, value)]),
      ]),
    ),
    region("What was done", () => audit(page)).element,
  );
}

function shown(name, value) {
  if (name.endsWith("_s")) return duration(value);
  if (/^\d{4}-\d\d-\d\dT/.test(value)) return when(value);
  return String(value);
}

async function audit(page) {
  const { entries } = await get("audit", { tail: 200 }, page.signal);
  const table = new Table({
    caption: "What was done through the daemon, the last first",
    empty: "Nothing has been done yet.",
    key: (entry) => JSON.stringify(entry),
    columns: [
      { title: "When", isHead: true, cell: (entry) => when(entry.at) },
      { title: "Who", cell: (entry) => entry.user ?? entry.who ?? "–" },
      { title: "What", isWide: true, cell: (entry) => h("code", {}, entry.what ?? `${entry.method} ${entry.path}`) },
      { title: "Result", cell: (entry) => String(entry.result ?? entry.status ?? "–") },
    ],
  });
  table.show([...entries].reverse());
  return table.element;
}
