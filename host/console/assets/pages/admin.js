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
        ["Concurrent jobs", count(about.jobs_at_once)],
        ["Bandwidth of all jobs", about.bandwidth === null ? "no limit" : `${bytes(about.bandwidth)}/s`],
        ["Connections of all jobs", about.connections === null ? "no limit" : count(about.connections)],
        ["Free disk space", about.disk_free !== null && bytes(about.disk_free)],
        ["Signed in as", session.who ? [session.who, " ", badge(session.role)] : about.authentication || "anyone (no token required)"],
      ]),
    ),
    about.calendar.length > 0 && calendar(about.calendar),
    session.role === "admin" && region("Audit log", () => audit(page)).element,
  );
}

function calendar(entries) {
  const table = new Table({
    caption: "Calendar",
    key: (entry) => entry.name,
    columns: [
      { title: "Entry", isHead: true, cell: (entry) => entry.name },
      { title: "Profile", cell: (entry) => entry.profile },
      { title: "Next job", cell: (entry) => [entry.next ? when(entry.next) : "none", entry.problem && h("div.hint", {}, entry.problem)] },
    ],
  });
  table.show(entries);
  return h("section", {}, h("h2", {}, "Calendar"), table.element);
}

async function audit(page) {
  const { entries } = await get("audit", { limit: ENTRIES }, page.signal);
  const table = new Table({
    caption: "Audit log, newest first",
    empty: "No entries.",
    key: (entry) => JSON.stringify(entry),
    columns: [
      { title: "When", isHead: true, cell: (entry) => when(entry.at) },
      { title: "User", cell: (entry) => entry.user ?? "–" },
      { title: "Request", isWide: true, cell: (entry) => h("code", {}, `${entry.method} ${entry.path}`) },
      { title: "Result", cell: (entry) => `${entry.status}${entry.problem ? `: ${entry.problem}` : ""}` },
    ],
  });
  table.show(entries);
  return table.element;
}
