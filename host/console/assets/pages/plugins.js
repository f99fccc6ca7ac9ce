// The plugins of a job: stages, components, statistics, and the replacement of a plugin by another one.

import { Answers } from "../answers.js";
import { job as path, send } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count, duration, when, words } from "../format.js";
import { badge, heading, link, read, readPlugins } from "../job.js";
import { ask, done, failed, field } from "../notice.js";
import { Table } from "../table.js";

const EVERY = 5000;
/** Stages in the order in which a URI passes them. */
const STAGES = "scope precedence pre-fetch mid-fetch post-fetch render digest change pre-extract extract last-resort archive behave wait observe".split(" ");

/** Opens the page. */
export async function open(page) {
  const reports = new Answers((plugins) => table.show(plugins));
  const reload = () => reports.ask(readPlugins(page));
  const table = new Table({
    caption: "Plugins",
    empty: "No plugin has been called yet.",
    key: (plugin) => `${plugin.name} ${plugin.variant ?? ""}`,
    columns: [
      { title: "Plugin", isHead: true, cell: (plugin) => [link(page.job, "plugin", { name: plugin.name }, plugin.name), plugin.variant && h("div.hint", {}, `variant ${plugin.variant}`)] },
      { title: "Version", cell: (plugin) => [plugin.version, h("div.hint.mono", { title: plugin.component }, plugin.component.slice(0, 12))] },
      { title: "Calls", isNumber: true, cell: (plugin) => count(plugin.calls) },
      { title: "Errors", isNumber: true, cell: faults },
      { title: "Time", isNumber: true, cell: (plugin) => duration(plugin.times.total_s) },
      { title: "Median", isNumber: true, cell: (plugin) => duration(plugin.times.median_s) },
      { title: "p99", isNumber: true, cell: (plugin) => duration(plugin.times.p99_s) },
      { title: "Longest", isNumber: true, cell: (plugin) => duration(plugin.times.max_s) },
      { title: "Memory", isNumber: true, cell: (plugin) => bytes(plugin.memory_max) },
      { title: "Answers", isWide: true, cell: (plugin) => [tally({ ...plugin.outputs, ...plugin.counters }), correctedWaits(plugin)] },
      {
        title: "Actions",
        cell: (plugin) =>
          h("button.button.small", { type: "button", "data-needs": "admin", "aria-label": `Replace ${plugin.name}`, onclick: () => askToReplace(page, plugin, () => reload().catch(failed)) }, "Replace …"),
      },
    ],
  });
  const stacks = h("section.card", {}, h("h2", {}, "Stacks"), h("p.muted", {}, "Loading …"));
  const tables = h("section.card", { hidden: true });
  await reload();
  put(
    page.main,
    heading(page, "Plugins", h("button.button", { type: "button", onclick: () => reload().catch(failed) }, "Refresh")),
    table.element,
    stacks,
    tables,
  );
  readStacks(page, stacks).catch((problem) => put(stacks, h("h2", {}, "Stacks"), h("p.form-error", {}, problem.message)));
  readTables(page, tables).catch(() => undefined);
  const timer = setInterval(() => document.hidden || reload().catch(() => undefined), EVERY);
  page.signal.addEventListener("abort", () => clearInterval(timer));
}

/** The number of a plugin's errors by kind, and their effects. */
export function faults(plugin) {
  const all = Object.values(plugin.faults).reduce((sum, number) => sum + number, 0);
  if (all === 0 && !plugin.left_out_s && !plugin.lost_events) return "0";
  return [
    h("span.badge.bad", {}, count(all)),
    h("div.hint", {}, tally(plugin.faults)),
    plugin.left_out_s && h("div.warn-text", {}, `left out for ${duration(plugin.left_out_s)}`),
    plugin.lost_events > 0 && h("div.warn-text", {}, `${count(plugin.lost_events)} events lost`),
  ];
}

/** Kinds of corrected waits, as `opilio job plugins` names them. Only oscillating waits are an error of the evaluator. */
const CORRECTED = { zero: "of zero", "too-short": "raised to the shortest", "too-long": "cut to the longest" };

/** The corrected waits, if there are any. The limits are those of the profile. */
export function correctedWaits(plugin) {
  return Object.entries(plugin.odd_waits ?? {})
    .filter(([, number]) => number > 0)
    .map(([why, number]) => h(why in CORRECTED ? "div.hint" : "div.warn-text", {}, `${count(number)} ${number === 1 ? "wait" : "waits"} ${CORRECTED[why] ?? words(why)}`));
}

/** Counts with their names, as text. */
export function tally(counts) {
  const entries = Object.entries(counts);
  return entries.length === 0 ? "–" : entries.map(([name, number]) => `${words(name)} ${count(number)}`).join(", ");
}

// The stages of plugins and the plugins' settings are settings of the job.
async function readStacks(page, element) {
  const { settings } = await read(page, "settings");
  const place = ({ key }) => STAGES.indexOf(key.replace("stacks.", "")) >>> 0;
  const stacks = settings.filter((setting) => setting.key.startsWith("stacks.")).sort((a, b) => place(a) - place(b));
  const own = settings.filter((setting) => /^plugins\./.test(setting.key));
  put(
    element,
    h("h2", {}, "Stacks"),
    h(
      "dl.stacks",
      {},
      stacks.filter(hasPlugins).map((setting) => h("div", {}, h("dt", {}, stageName(setting)), h("dd", {}, h("ol.stack", {}, setting.value.map((name) => h("li", {}, stackName(name))))))),
    ),
    stacks.some((setting) => !hasPlugins(setting)) &&
      h("p.hint", {}, "Stages without plugins: ", stacks.filter((setting) => !hasPlugins(setting)).map(stageName).join(", "), "."),
    own.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, `Components and settings of plugins (${count(own.length)})`),
        h("dl.facts", {}, own.map((setting) => h("div", {}, h("dt", {}, h("code", {}, setting.key)), h("dd", {}, h("code", {}, setting.toml))))),
      ),
  );
}

function hasPlugins({ value }) {
  return Array.isArray(value) && value.length > 0;
}

function stageName({ key }) {
  return words(key.replace("stacks.", ""));
}

function stackName(entry) {
  return typeof entry === "string" ? entry : (entry.plugin ?? JSON.stringify(entry));
}

async function readTables(page, element) {
  const { tables } = await read(page, "tables");
  if (tables.length === 0) return;
  const shown = tableOf(tables);
  shown.show(tables);
  element.hidden = false;
  const reload = h(
    "button.button",
    {
      type: "button",
      "data-needs": "operator",
      onclick: async () => {
        try {
          await send("POST", path(page.job, "tables", "reload"));
          done("the files were reloaded");
          await readTables(page, element);
        } catch (problem) {
          failed(problem);
        }
      },
    },
    "Reload files",
  );
  put(element, h("h2", {}, "Tables"), shown.element, h("div.actions", {}, reload));
}

/** A list of look-up tables with their properties. */
export function tableOf(tables) {
  const names = [...new Set(tables.flatMap((table) => Object.keys(table)))];
  return new Table({
    caption: "Look-up tables of plugins",
    key: (table) => table.name ?? JSON.stringify(table),
    columns: names.map((name, n) => ({ title: words(name), isHead: n === 0, cell: (table) => value(name, table[name]) })),
  });
}

function value(name, is) {
  if (is === null || is === undefined) return "–";
  if (typeof is === "number") return count(is);
  if (/^\d{4}-\d\d-\d\dT/.test(is)) return when(is, { isShort: true });
  return typeof is === "object" ? JSON.stringify(is) : badgeOr(is);
}

function badgeOr(text) {
  return ["failed", "ready", "error"].includes(text) ? badge(text) : String(text);
}

/** Asks for a new component of a plugin; `after` runs when it was replaced. */
export function askToReplace(page, plugin, after) {
  const component = h("input", { required: true, spellcheck: "false", autocapitalize: "off", placeholder: "builtin:html, registry.example.org/html:1.2 or /srv/plugins/html.wasm" });
  const sha256 = h("input", { spellcheck: "false", pattern: "[0-9a-fA-F]{64}", autocomplete: "off" });
  const settings = h("textarea", { rows: 4, spellcheck: "false", placeholder: '{ "initial-wait": "1h" }' });
  ask({
    title: `Replace ${plugin.name}`,
    text: "The new component is checked and configured, and replaces the plugin between two documents. If a check fails, nothing changes. Visits in process finish with the old plugin.",
    fields: [
      field("Component", component, "As in profiles. A path refers to the machine that crawls."),
      field("Expected SHA-256 of the file", sha256, "Optional; recommended for files."),
      field("New settings (JSON)", settings, "Leave the field empty to keep the current settings."),
    ],
    yes: "Replace",
    act: async () => {
      const body = { component: component.value.trim() };
      if (sha256.value.trim()) body.sha256 = sha256.value.trim();
      if (settings.value.trim()) {
        try {
          body.settings = JSON.parse(settings.value);
        } catch (problem) {
          throw new Error(`the settings are not JSON: ${problem.message}`);
        }
      }
      const answer = await send("POST", path(page.job, "plugins", plugin.name, "replace"), body);
      after();
      return answer?.result ?? `${plugin.name} was replaced`;
    },
  });
}
