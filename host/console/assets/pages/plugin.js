// One plugin of a job: its calls, its recent errors with the commands that repeat them, its settings, tables and reports.

import { Answers } from "../answers.js";
import { address, job as path } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count, duration, when, words } from "../format.js";
import { heading, link, read, readPlugins, uriLink } from "../job.js";
import { failed } from "../notice.js";
import { Table, facts } from "../table.js";
import { askToReplace, correctedWaits, faults, tableOf, tally } from "./plugins.js";

const EVERY = 5000;
/** Interval at which the settings are read: any operator may change them, or replace the plugin. */
const SETTINGS_EVERY = 30000;
/** The file of replacements, as the origin of settings. */
const REPLACEMENTS = "plugins.json";
const ERRORS_MAX = 50;
/** Length, in characters, of the summary of an error. */
const MESSAGE_MAX = 160;

/** Opens the page. */
export async function open(page) {
  const { name } = page.query;
  const state = h("div.card");
  const errors = errorTable(page);
  const answers = new Answers(([plugins, { recordings, total }]) => {
    const own = plugins.filter((plugin) => plugin.name === name);
    put(state, own.length > 0 ? own.map(statistics) : h("p.nothing", {}, "The plugin has not been called yet."));
    errors.show(recordings);
    more.hidden = total <= recordings.length;
    more.textContent = `${count(total - recordings.length)} older recordings are on the page Files.`;
  });
  const reload = () => answers.ask(Promise.all([readPlugins(page), read(page, "recordings", { plugin: name, limit: ERRORS_MAX })]));
  const more = h("p.hint", { hidden: true });
  const part = (title, ...content) => h("section.card", {}, h("h2", {}, title), content);
  const settings = part("Settings");
  const tables = h("section.card", { hidden: true });
  const reports = h("section.card", { hidden: true });
  const all = () => Promise.all([reload(), details(page, name, settings, tables, reports)]).catch(failed);
  await reload();
  const replace = h("button.button", { type: "button", "data-needs": "admin", onclick: () => askToReplace(page, { name }, all) }, "Replace …");
  const [crumbs, head] = heading(page, name, h("button.button", { type: "button", onclick: all }, "Refresh"), replace);
  crumbs.append(" / ", link(page.job, "plugins", {}, "Plugins"));
  put(
    page.main,
    crumbs,
    head,
    state,
    part(
      "Recorded calls",
      h(
        "p.hint",
        {},
        "The first failed calls of each kind are recorded. To repeat a call, run its command in the folder of the job, or download the recording and give its path. With --component the command calls another version of the plugin. All errors are in the log ",
        link(page.job, "logs", { file: "runtime-errors.log", grep: ` ${name} ` }, "runtime-errors.log"),
        ".",
      ),
      errors.element,
      more,
    ),
    settings,
    tables,
    reports,
  );
  details(page, name, settings, tables, reports).catch(failed);
  const every = (pause, act) => {
    const timer = setInterval(() => document.hidden || act().catch(() => undefined), pause);
    page.signal.addEventListener("abort", () => clearInterval(timer));
  };
  every(EVERY, reload);
  every(SETTINGS_EVERY, () => showSettings(page, name, settings));
}

function statistics(plugin) {
  return facts([
    ["Variant", plugin.variant],
    ["Version", plugin.version],
    ["Component", h("span.mono", { title: plugin.component }, plugin.component.slice(0, 12))],
    ["Calls", count(plugin.calls)],
    ["Errors", faults(plugin)],
    ["Time", duration(plugin.times.total_s)],
    ["Median", duration(plugin.times.median_s)],
    ["p99", duration(plugin.times.p99_s)],
    ["Longest", duration(plugin.times.max_s)],
    ["Memory", bytes(plugin.memory_max)],
    ["Answers", [tally({ ...plugin.outputs, ...plugin.counters }), correctedWaits(plugin)], true],
  ]);
}

function errorTable(page) {
  return new Table({
    caption: "Recorded calls",
    empty: "No recorded calls.",
    key: (call) => call.file,
    columns: [
      { title: "Time", isHead: true, cell: (call) => when(call.at, { isShort: true }) },
      { title: "Call", cell: (call) => [words(call.call), h("div.hint", {}, `version ${call.version}`)] },
      { title: "About", isWide: true, cell: (call) => (/^[a-z]+:/.test(call.subject ?? "") ? uriLink(page.job, call.subject) : (call.subject ?? "–")) },
      {
        title: "Error, and the command that repeats the call",
        isWide: true,
        cell: (call) => [
          call.error ? errorOf(call.error) : "none: the plugin answered",
          h("div", {}, h("code.command", {}, call.replay)),
          h("div", {}, h("a", { href: address(path(page.job, "files", "recording", call.file)), download: call.file }, "Download the recording")),
        ],
      },
    ],
  });
}

function errorOf({ kind, message, backtrace, log }) {
  const whole = `${words(kind)}: ${message}`;
  // A message may contain a stack trace of the plugin.
  const short = whole.length > MESSAGE_MAX ? `${whole.slice(0, MESSAGE_MAX)}…` : whole;
  const more = [...(short === whole ? [] : [message]), ...backtrace.map((frame) => `at ${frame}`), ...log.map((line) => `log: ${line}`)];
  if (more.length === 0) return short;
  return h("details", {}, h("summary", {}, short), h("pre.lines.small.is-wrapped", { tabindex: "0", "aria-label": "Frames and log lines" }, more.join("\n")));
}

// Shows the component, the stages and the settings that are in force. Returns the settings and the stages.
async function showSettings(page, name, element) {
  const { settings } = await read(page, "settings");
  const own = settings.filter((setting) => setting.key.startsWith(`plugins.${name}.`));
  const stages = settings.filter((setting) => setting.key.startsWith("stacks.") && Array.isArray(setting.value) && setting.value.some((entry) => (entry.plugin ?? entry) === name));
  const stage = ({ key }) => words(key.replace("stacks.", ""));
  put(
    element,
    h("h2", {}, "Settings"),
    facts([
      ["Stages", stages.map(stage).join(", ") || "none"],
      ...own.map((setting) => [h("code", {}, setting.key.slice(`plugins.${name}.`.length)), [h("code", {}, setting.toml), setting.file === REPLACEMENTS && h("div.hint", {}, "set by the replacement")]]),
    ]),
    own.length === 0 && h("p.hint", {}, "The profile sets nothing for this plugin."),
  );
  return { own, stages };
}

async function details(page, name, element, tablesElement, reportsElement) {
  const { own, stages } = await showSettings(page, name, element);
  // Only a running job has tables.
  const { tables } = await read(page, "tables").catch(() => ({ tables: [] }));
  // A table belongs to the plugin if one of the plugin's settings has its name.
  const texts = new Set(own.flatMap((setting) => leaves(setting.value)));
  const used = tables.filter((table) => texts.has(table.name));
  tablesElement.hidden = used.length === 0;
  if (used.length > 0) {
    const shown = tableOf(used);
    put(tablesElement, h("h2", {}, "Tables"), shown.element);
    shown.show(used);
  }
  if (!stages.some(({ key }) => key === "stacks.observe")) return;
  reportsElement.hidden = false;
  // Without a process the reports are those of the last one.
  const answer = await read(page, "observers").catch(() => null);
  if (!answer) {
    put(reportsElement, h("h2", {}, "Reports"), h("p.hint", {}, "No process runs the job. Reports of the last process are among its ", link(page.job, "files", { kind: "report" }, "files"), "."));
    return;
  }
  const written = answer.reports.filter((report) => report.observer === name);
  put(
    reportsElement,
    h("h2", {}, "Reports"),
    written.length === 0 && h("p.nothing", {}, "No reports yet."),
    written.map(({ file, content }) => [h("h3", {}, file), h("pre.lines", { tabindex: "0", "aria-label": file }, content || "The report is empty.")]),
  );
}

function leaves(value) {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [];
}
