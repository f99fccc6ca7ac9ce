// The daemon itself: what it is and may do, what its calendar will begin, what was done through it.

import { get } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count, when } from "../format.js";
import { badge, region } from "../job.js";
import { Table, facts } from "../table.js";
import { session } from "../session.js";

const ENTRIES = 200;

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
        ["Version", about.version],
        ["Began", when(about.began)],
        ["Process", String(about.pid)],
        ["Folder of jobs", h("span.mono", {}, about.jobs)],
        ["Jobs", count(about.job_count)],
        ["Jobs at once", count(about.jobs_at_once)],
        ["Bandwidth of all", about.bandwidth === null ? "as much as there is" : `${bytes(about.bandwidth)}/s`],
        ["Connections of all", about.connections === null ? "as many as their workers make" : count(about.connections)],
        ["Free on the disk", about.disk_free !== null && bytes(about.disk_free)],
        ["You are", session.who ? [session.who, " ", badge(session.role)] : about.authentication || "anybody: no token is needed here"],
      ]),
    ),
    about.calendar.length > 0 && calendar(about.calendar),
    session.role === "admin" && region("What was done", () => audit(page)).element,
  );
}

function calendar(entries) {
  const table = new Table({
    caption: "Calendar",
    key: (entry) => entry.name,
    columns: [
      { title: "Entry", isHead: true, cell: (entry) => entry.name },
      { title: "Profile", cell: (entry) => entry.profile },
      { title: "Next job", cell: (entry) => [entry.next ? when(entry.next) : "never again", entry.problem && h("div.hint", {}, entry.problem)] },
    ],
  });
  table.show(entries);
  return h("section", {}, h("h2", {}, "Calendar"), table.element);
}

async function audit(page) {
  const { entries } = await get("audit", { limit: ENTRIES }, page.signal);
  const table = new Table({
    caption: "What was done through the daemon, the latest first",
    empty: "Nothing has been done yet.",
    key: (entry) => JSON.stringify(entry),
    columns: [
      { title: "When", isHead: true, cell: (entry) => when(entry.at) },
      { title: "Who", cell: (entry) => entry.user ?? "–" },
      { title: "What", isWide: true, cell: (entry) => h("code", {}, `${entry.method} ${entry.path}`) },
      { title: "Result", cell: (entry) => `${entry.status}${entry.problem ? `: ${entry.problem}` : ""}` },
    ],
  });
  table.show(entries);
  return table.element;
}
