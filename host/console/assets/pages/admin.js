// The daemon: its version and limits, the nodes of its cluster, its calendar, the audit log.

import { get, send } from "../api.js";
import { h, put, setText } from "../dom.js";
import { bytes, count, when } from "../format.js";
import { badge, region } from "../job.js";
import { ask, done, failed } from "../notice.js";
import { Table, facts } from "../table.js";
import { session } from "../session.js";

const ENTRIES = 200;
const EVERY = 5000;

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
        ["Started", when(about.began)],
        ["Process", String(about.pid)],
        ["Folder of jobs", h("span.mono", {}, about.jobs)],
        ["Jobs", count(about.job_count)],
        ["Concurrent jobs, at most", count(about.jobs_at_once)],
        ["Bandwidth limit of all jobs", about.bandwidth === null ? "no limit" : `${bytes(about.bandwidth)}/s`],
        ["Connection limit of all jobs", about.connections === null ? "no limit" : count(about.connections)],
        ["Free disk space", about.disk_free !== null && bytes(about.disk_free)],
        ["Node", about.node && [about.node.name, " ", badge(about.node.state)]],
        ["Signed in as", session.who ? [session.who, " ", badge(session.role)] : about.authentication || "anyone (no token required)"],
      ]),
    ),
    about.node && nodes(page),
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

function nodes(page) {
  let own;
  const table = new Table({
    caption: "Nodes of the cluster, by name",
    key: (node) => node.name,
    columns: [
      { title: "Node", isHead: true, cell: (node) => [node.name, node.name === own && h("div.hint", {}, "this daemon")] },
      { title: "State", cell: (node) => [badge(node.state), node.is_drained && [" ", badge("drained")], node.is_leader && " leader"] },
      { title: "Version", cell: (node) => node.version },
      { title: "Joined", cell: (node) => when(node.since, { isShort: true }) },
      { title: "Session renewed", cell: (node) => when(node.renewed, { isShort: true }) },
      { title: "Clock difference", isNumber: true, cell: (node) => `${Math.round(node.clock_skew_s * 1000)} ms` },
      { title: "Actions", cell: (node) => (node.state === "live" ? drainButton(node, table, load) : removeButton(node, load)) },
    ],
  });
  const load = async () => {
    const answer = await get("nodes", {}, page.signal);
    own = answer.own;
    table.show(answer.nodes);
    return table.element;
  };
  const timer = setInterval(() => document.hidden || load().catch(() => undefined), EVERY);
  page.signal.addEventListener("abort", () => clearInterval(timer));
  return region("Nodes of the cluster", load).element;
}

function drainButton(node, table, load) {
  const text = (isDrained) => (isDrained ? "End draining" : "Drain");
  const drain = async () => {
    const { is_drained: isDrained } = table.row(node.name);
    try {
      const { result } = await send(isDrained ? "DELETE" : "POST", `${path(node)}/drain`);
      done(result);
      await load();
      // The table does not update a cell that has the focus.
      setText(button, text(!isDrained));
    } catch (problem) {
      failed(problem, isDrained ? "Cannot end the draining" : "Cannot drain the node");
    }
  };
  const button = h("button.button.small", { type: "button", "data-needs": "operator", onclick: drain }, text(node.is_drained));
  return button;
}

function removeButton(node, load) {
  const remove = () =>
    ask({
      title: `Remove node ${node.name}?`,
      text: "It disappears from the list. If it comes back, it is listed again.",
      yes: "Remove",
      isDangerous: true,
      act: async () => {
        await send("DELETE", path(node));
        await load();
        return `Node ${node.name}: removed`;
      },
    });
  return h("button.button.small", { type: "button", "data-needs": "admin", onclick: remove }, "Remove …");
}

function path(node) {
  return `nodes/${encodeURIComponent(node.name)}`;
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
