// One queue: its state and figures, its URIs in the order of issue, and the commands of operators.

import { Answers } from "../answers.js";
import { get, job as path, send } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count, duration, when, words } from "../format.js";
import { badge, fetchStatus, heading, link, uriLink } from "../job.js";
import { ask, failed, field } from "../notice.js";
import { Pages, Table, facts } from "../table.js";
import { nextDue, runCommand } from "./frontier.js";

const SIZE = 50;
const EVERY = 3000;
const KNOWN = new Set([
  ..."queue state ready waiting in_process precedence next_ready wake failures crawl_delay_s group finished fetched succeeded".split(" "),
  ..."novel bytes novel_bytes run_time_s spent retired_by last_failure last_failure_words".split(" "),
]);

/** Opens the page. */
export async function open(page) {
  const { name } = page.query;
  const state = h("div.card");
  const buttons = h("div.actions");
  const table = new Table({
    caption: `URIs of ${name}, in the order of issue`,
    empty: "The queue is empty.",
    key: (uri) => uri.uri,
    columns: [
      { title: "URI", isHead: true, isWide: true, cell: (uri) => uriLink(page.job, uri.uri) },
      { title: "Due", cell: (uri) => (uri.is_ready ? badge("ready") : when(uri.due, { isShort: true })) },
      { title: "Directive", cell: (uri) => words(uri.directive) },
      { title: "Precedence", isNumber: true, cell: (uri) => count(uri.precedence) },
      { title: "Last status", isNumber: true, cell: (uri) => fetchStatus(uri.status) },
      { title: "Visits", isNumber: true, cell: (uri) => count(uri.visits ?? 0) },
    ],
  });
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows) => table.show(rows),
    load: async (after) => {
      const answer = await get(path(page.job, "queues", name, "uris"), { after, limit: SIZE }, page.signal);
      return { rows: answer.uris, next: answer.after };
    },
  });
  let shown = "";
  const show = (queue) => {
    const now = JSON.stringify(queue);
    if (now === shown) return;
    shown = now;
    put(state, queueFacts(queue));
    // Buttons are replaced only if the state has changed, so that a button does not vanish while it is being pressed.
    if (queue.state !== lastState) put(buttons, actions(page, queue, reload));
    lastState = queue.state;
  };
  let lastState;
  const reload = async () => {
    try {
      await load();
      await pages.reload();
    } catch (problem) {
      failed(problem);
    }
  };
  const states = new Answers(show);
  const load = () => states.ask(get(path(page.job, "queues", name), {}, page.signal));

  await load();
  await pages.first();
  const [crumbs, head] = heading(page, name, buttons);
  crumbs.append(" / ", link(page.job, "frontier", {}, "Frontier"));
  put(page.main, crumbs, head, state, h("section", {}, h("h2", {}, "URIs"), table.element, pages.element));
  const timer = setInterval(() => document.hidden || load().catch(() => undefined), EVERY);
  page.signal.addEventListener("abort", () => clearInterval(timer));
}

function queueFacts(queue) {
  return facts([
    ["State", [badge(queue.state), queue.retired_by && ` by ${queue.retired_by}`]],
    ["Next due", when(nextDue(queue))],
    ["Ready", count(queue.ready)],
    ["Waiting", count(queue.waiting)],
    ["In process", count(queue.in_process)],
    ["Precedence", count(queue.precedence)],
    ["Back-offs in a row", [count(queue.failures), queue.last_failure_words && `; last failure: ${queue.last_failure_words}`]],
    ["Crawl-delay of robots.txt", queue.crawl_delay_s && duration(queue.crawl_delay_s)],
    ["Server group", queue.group],
    ["Finished visits", count(queue.finished)],
    ["Fetched", count(queue.fetched)],
    ["Succeeded", count(queue.succeeded)],
    ["New or changed", count(queue.novel)],
    ["Content", queue.bytes !== undefined && `${bytes(queue.bytes)}, ${bytes(queue.novel_bytes)} of it new`],
    ["Fetch time", queue.run_time_s !== undefined && duration(queue.run_time_s)],
    ["Cost", queue.spent !== undefined && count(queue.spent)],
    ...Object.entries(queue)
      .filter(([key, value]) => !KNOWN.has(key) && typeof value !== "object")
      .map(([key, value]) => [words(key), String(value)]),
  ]);
}

function actions(page, queue, reload) {
  const button = (label, what, question) =>
    h(
      "button.button",
      {
        type: "button",
        "data-needs": "operator",
        onclick: () =>
          ask({
            title: `${label} ${queue.queue}?`,
            text: question,
            yes: label,
            act: async () => {
              const answer = await send("POST", path(page.job, "queues", queue.queue, what));
              reload();
              return answer?.result ?? "done";
            },
          }),
      },
      label,
    );
  return [
    queue.state === "frozen"
      ? button("Thaw", "thaw", "The queue issues URIs again.")
      : button("Freeze", "freeze", "The queue issues no URIs until it is thawed, but accepts new ones."),
    queue.state === "retired"
      ? button("Unretire", "unretire", "The queue issues URIs again.")
      : button("Retire", "retire", "The queue issues no URIs until it is unretired, but accepts new ones."),
    h("button.button", { type: "button", "data-needs": "operator", onclick: () => runCommand(page, ["queues", queue.queue, "wake"], undefined, reload) }, "Wake"),
    h("button.button", { type: "button", "data-needs": "operator", onclick: () => askPrecedence(page, queue, reload) }, "Precedence"),
  ];
}

function askPrecedence(page, queue, reload) {
  const precedence = h("input", { type: "number", min: 0, max: 255, value: queue.precedence ?? "" });
  ask({
    title: `Precedence of ${queue.queue}`,
    text: "0 goes first. Leave the field empty for the precedence in the settings.",
    fields: [field("Precedence", precedence)],
    yes: "Set",
    act: async () => {
      const body = { precedence: precedence.value === "" ? null : Number(precedence.value) };
      const answer = await send("POST", path(page.job, "queues", queue.queue, "precedence"), body);
      reload();
      return answer?.result ?? "the precedence was set";
    },
  });
}
