// Common parts of a job's pages: the heading, the state as a badge, the actions on the whole job, links.

import { Answers } from "./answers.js";
import { get, job as path, send } from "./api.js";
import { h, icon, id, put } from "./dom.js";
import { words } from "./format.js";
import { ask, choice, done, failed, field } from "./notice.js";
import { STATUS_WORDS } from "./status-words.js";

const KINDS = {
  running: "good",
  ready: "good",
  "in-process": "good",
  succeeded: "good",
  accept: "good",
  live: "good",
  working: "good",
  pausing: "warn",
  drained: "warn",
  slow: "warn",
  riding: "warn",
  paused: "warn",
  ending: "warn",
  waiting: "info",
  queued: "info",
  snoozed: "info",
  starting: "info",
  "being taken over": "info",
  warning: "warn",
  retired: "warn",
  frozen: "warn",
  exhausted: "warn",
  crashed: "bad",
  damaged: "bad",
  gone: "bad",
  full: "bad",
  failed: "bad",
  error: "bad",
  critical: "bad",
  reject: "bad",
};

/** A state as one word, with a colour that only repeats the word. */
export function badge(state) {
  return h("span.badge", { class: KINDS[state] }, words(state));
}

/** A fetch status with its meaning; a dash if there is no status. */
export function statusText(status) {
  if (!status) return "–";
  const words = STATUS_WORDS[status];
  return words ? `${status} ${words}` : String(status);
}

/** A fetch status in a table, with its meaning below it. `number` is shown in place of the number, for example a link. */
export function fetchStatus(status, number = String(status)) {
  if (!status) return "–";
  const words = STATUS_WORDS[status];
  return [number, words && h("div.hint", {}, words)];
}

/** The address of a page of a job. */
export function place(job, page = "", query = {}) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/jobs/${encodeURIComponent(job)}${page && `/${page}`}${[...search].length > 0 ? `?${search}` : ""}`;
}

/** A link to a page of a job. */
export function link(job, page, query, text) {
  return h("a", { href: place(job, page, query) }, text);
}

/** A link from a URI to its page. */
export function uriLink(job, uri, text = uri) {
  return h("a.mono", { href: place(job, "uri", { uri }) }, text);
}

/** A link from a queue to its page. */
export function queueLink(job, name) {
  return name ? h("a.mono", { href: place(job, "queue", { name }) }, name) : "–";
}

/** The heading of a page of a job. */
export function heading(page, title, ...actions) {
  return [
    h("p.crumbs", {}, h("a", { href: "#/" }, "Jobs"), title !== page.job && [" / ", link(page.job, "", {}, page.job)]),
    h("div.head", {}, h("h1", {}, title), h("div.actions", {}, actions)),
  ];
}

/** True if no process runs the job, and none is starting or waiting for its start. */
export function isAtRest(state) {
  return !["running", "pausing", "paused", "starting", "waiting", "ending"].includes(state);
}

/** Buttons for actions on a whole job, as its state allows; `after` runs after each action. */
export function jobActions(name, state, after) {
  const run = async (button, what, text) => {
    button.disabled = true;
    try {
      const answer = await send("POST", path(name, what));
      done(answer?.result ?? text);
      after();
    } catch (problem) {
      failed(problem);
    } finally {
      button.disabled = false;
    }
  };
  const button = (glyph, label, what, text) => {
    const made = h("button.button", { type: "button", "data-needs": "operator", onclick: () => run(made, what, text) }, icon(glyph), label);
    return made;
  };
  const isRunning = ["running", "pausing", "paused"].includes(state);
  const isWanted = isRunning || ["starting", "waiting"].includes(state);
  const rests = isAtRest(state);
  return [
    state === "running" && button("pause", "Pause", "pause", "pausing"),
    ["paused", "pausing"].includes(state) && button("play", "Resume", "resume", "resumed"),
    isRunning && button("flag", "Checkpoint", "checkpoint", "a checkpoint was made"),
    isWanted && h("button.button", { type: "button", "data-needs": "operator", onclick: () => askToStop(name, after) }, icon("stop"), "Stop"),
    rests && state !== "damaged" && button("play", "Start", "start", "starting"),
    h("button.button", { type: "button", "data-needs": "operator", onclick: () => askToClone(name) }, icon("copy"), "Clone"),
    rests && h("button.button.danger", { type: "button", "data-needs": "admin", onclick: () => askToDelete(name) }, icon("bin"), "Delete"),
  ];
}

function askToStop(name, after) {
  ask({
    title: `Stop ${name}?`,
    text: "Current fetches finish first. You can start the job again later to resume it.",
    yes: "Stop",
    act: async () => {
      const answer = await send("POST", path(name, "stop"));
      after();
      return answer?.result ?? "stopping";
    },
  });
}

/** Asks for a name and makes a job with the same profile and seeds. */
export function askToClone(name) {
  const newName = h("input", { name: "name", required: true, value: `${name}-2`, autocomplete: "off", pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*" });
  ask({
    title: `Clone ${name}`,
    text: "The new job has the same profile and seeds, but none of the crawl data.",
    fields: [field("Name of the new job", newName)],
    yes: "Clone",
    act: async () => {
      const made = await send("POST", path(name, "clone"), { name: newName.value.trim() });
      location.hash = place(made?.name ?? newName.value.trim());
      return `${made?.name ?? newName.value.trim()} was created`;
    },
  });
}

function askToDelete(name) {
  const typed = h("input", { name: "typed", autocomplete: "off", required: true });
  const archive = h("input", { type: "checkbox", id: id("archive") });
  ask({
    title: `Delete ${name}?`,
    text: "Queues and crawl history are deleted for good. Archive, logs, reports, profile and seeds are kept unless you choose otherwise.",
    fields: [
      field("Type the name of the job to confirm", typed),
      h("div.check", {}, archive, h("label", { for: archive.id }, "Delete archive, logs, reports, profile and seeds, too")),
    ],
    yes: "Delete",
    isDangerous: true,
    act: async () => {
      if (typed.value.trim() !== name) throw new Error(`the name is not ${name}`);
      await send("DELETE", path(name), undefined, archive.checked ? { archive: true } : {});
      location.hash = "#/";
      return `${name} was deleted`;
    },
  });
}

/** Reads a part of a job. */
export function read(page, part, query) {
  return get(path(page.job, ...part.split("/")), query, page.signal);
}

/** Reads the statistics of the job's plugins. */
export async function readPlugins(page) {
  return (await read(page, "plugins")).plugins;
}

/** A text field for searches; the key `/` moves the focus to it. */
export function search(label, value, oninput, hint) {
  const input = h("input", { type: "search", value: value ?? "", "data-search": true, spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  let timer;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => oninput(input.value.trim()), 250);
  });
  const made = field(label, input, hint);
  made.classList.add("grow");
  return made;
}

/** A select; `onchange` gets each new value. */
export function chooser(label, options, value, onchange) {
  const select = choice({}, options, value);
  select.addEventListener("change", () => onchange(select.value));
  return field(label, select);
}

/** A region of a page with its own loading: it shows the error if `load` fails, and can be loaded again. */
export function region(title, load) {
  const body = h("div", {}, h("p.muted", {}, "Loading …"));
  const name = id("region");
  const element = h("section.card", { "aria-labelledby": name }, h("h2", { id: name }, title), body);
  const contents = new Answers((content) => put(body, content));
  const reload = async () => {
    try {
      await contents.ask(load());
    } catch (problem) {
      if (problem.name === "AbortError") return;
      put(body, h("p.form-error", {}, problem.message));
    }
  };
  reload();
  return { element, reload };
}
