// The queues of a job: filtered by state, sorted, found by name; one page at a time.

import { get, job as path, send } from "../api.js";
import { h, id, put } from "../dom.js";
import { count, duration, when, words } from "../format.js";
import { badge, chooser, heading, place, queueLink, read } from "../job.js";
import { ask, done, failed, field } from "../notice.js";
import { Pages, Table } from "../table.js";

const SIZE = 50;
const STATES = ["ready", "in-process", "snoozed", "inactive", "ineligible", "retired", "frozen", "exhausted"];
const SORTS = [
  ["name", "by name"],
  ["size", "most URIs first"],
  ["due", "next due first"],
];

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const table = new Table({
    caption: "Queues",
    empty: () => (query.state ? `No queue is ${words(query.state)}.` : query.from ? "No queues after this name." : "No queues."),
    key: (queue) => queue.queue,
    columns: [
      { title: "Queue", isHead: true, isWide: true, cell: (queue) => queueLink(page.job, queue.queue) },
      { title: "State", cell: (queue) => badge(queue.state) },
      { title: "Ready", isNumber: true, cell: (queue) => count(queue.ready) },
      { title: "Waiting", isNumber: true, cell: (queue) => count(queue.waiting) },
      { title: "In process", isNumber: true, cell: (queue) => count(queue.in_process) },
      { title: "Next due", cell: (queue) => when(nextDue(queue), { isShort: true }) },
      { title: "Finished", isNumber: true, cell: (queue) => count(queue.finished) },
      { title: "Failures", isNumber: true, cell: (queue) => count(queue.failures) },
      { title: "Crawl-delay", isNumber: true, cell: (queue) => (queue.crawl_delay_s ? duration(queue.crawl_delay_s) : "–") },
    ],
  });
  const note = h("p.hint");
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows, { about }) => {
      put(note, about);
      table.show(rows);
    },
    load: async (after) => {
      // Only the order of names can begin at any place. Every other order sorts all queues for each request.
      const isByName = !query.sort || query.sort === "name";
      const answer = await read(page, "queues", { state: query.state, sort: query.sort, after: after ?? (isByName ? query.from : undefined), limit: SIZE });
      const about = isByName
        ? query.from && [`From ${query.from}. `, h("button.bare.link", { type: "button", onclick: () => change({ from: "" }) }, "From the beginning")]
        : answer.queues.length === SIZE && `The first ${SIZE}; sort by name to page through all queues.`;
      return { rows: answer.queues, next: answer.after, about };
    },
  });
  const change = (changed) => {
    page.remember(changed);
    pages.first().catch(failed);
  };
  // Opens the queue with the given name. If there is none, lists the queues from the place of that name in the order of names.
  const seek = async () => {
    const given = name.value.trim();
    if (!given) return change({ from: "" });
    const isThere = await get(path(page.job, "queues", given), {}, page.signal).then(
      () => true,
      (problem) => {
        if (problem.status === 404) return false;
        throw problem;
      },
    );
    if (isThere) location.hash = place(page.job, "queue", { name: given });
    else {
      order.querySelector("select").value = "name";
      change({ from: given, sort: "" });
    }
  };
  const name = h("input", { type: "search", "data-search": true, spellcheck: "false", autocapitalize: "off", placeholder: "org,example," });
  const order = chooser("Order", SORTS, query.sort || "name", (value) => change({ sort: value }));
  const find = h(
    "form.grow",
    {
      role: "search",
      onsubmit: (event) => {
        event.preventDefault();
        seek().catch(failed);
      },
    },
    field("Queue name, or its beginning", name),
  );
  await pages.first();
  put(
    page.main,
    heading(
      page,
      "Frontier",
      h("button.button", { type: "button", "data-needs": "operator", onclick: () => askFloor(page) }, "Precedence floor"),
      h("button.button", { type: "button", "data-needs": "operator", onclick: () => askToWake(page, () => pages.reload().catch(failed)) }, "Wake all"),
      h("button.button", { type: "button", onclick: () => pages.reload().catch(failed) }, "Refresh"),
    ),
    h(
      "div.toolbar",
      {},
      find,
      h("div.field", {}, h("span", { "aria-hidden": "true" }, " "), h("button.button", { type: "button", onclick: () => find.requestSubmit() }, "Open")),
      chooser("State", [["", "all"], ...STATES.map((state) => [state, words(state)])], query.state ?? "", (value) => change({ state: value })),
      order,
    ),
    note,
    table.element,
    pages.element,
  );
}

/** The time at which a queue issues its next URI. */
export function nextDue(queue) {
  return queue.wake ?? queue.next_ready ?? queue.next_due;
}

// Asks before it wakes queues, as `opilio frontier wake --all` does.
function askToWake(page, after) {
  ask({
    title: "Wake all queues whose delay is too long?",
    text: "If the clock of the machine was ahead, delays can be longer than politeness and back-off allow. These queues then wait as after one request.",
    yes: "Wake all",
    act: async () => {
      const answer = await send("POST", path(page.job, "wake"));
      after();
      return answer?.result ?? "done";
    },
  });
}

function askFloor(page) {
  const floor = h("input", { type: "number", min: 0, max: 255, id: id("floor") });
  ask({
    title: "Precedence floor",
    text: "Queues with this precedence or a higher number issue no URIs while this process runs. Leave the field empty to let all queues issue URIs.",
    fields: [field("Floor", floor)],
    yes: "Set",
    act: async () => {
      const answer = await send("POST", path(page.job, "floor"), { floor: floor.value === "" ? null : Number(floor.value) });
      return answer?.result ?? "the floor was set";
    },
  });
}

/** Sends a command and shows its result. */
export async function runCommand(page, parts, body, after) {
  try {
    const answer = await send("POST", path(page.job, ...parts), body);
    done(answer?.result ?? "done");
    after();
  } catch (problem) {
    failed(problem);
  }
}
