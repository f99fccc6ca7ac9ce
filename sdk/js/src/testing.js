// Native tests of plugins, for example with `node --test`: documents, visits and pages to call them with, and the cases of a
// folder. `opilio plugin test` runs the same cases on the component. docs/PLUGINS.md has their format.

import { deepStrictEqual } from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { component } from "./component.js";
import { candidatesHandle, documentHandle, doubleHost, pageHandle, queueHandle, stage, visitHandle } from "./double.js";
import { connect } from "./host.js";
import { withDefaults } from "./settings.js";
import { Candidates, Document, Page, Queue, Visit } from "./views.js";
import { plain } from "./wire.js";

export const document = (facts) => new Document(documentHandle(facts));
export const visit = (facts) => new Visit(visitHandle(facts));
export const queue = (facts) => new Queue(queueHandle(facts));
export const page = (facts) => new Page(pageHandle(facts));
export const candidates = (list) => new Candidates(candidatesHandle(list));

/** Returns the last argument of the plugin's functions for these settings. Exceptions of `configure` pass through. */
export function configured(plugin, settings = {}) {
  const values = withDefaults(plugin.settings ?? {}, settings);
  return plugin.configure ? plugin.configure(values) : values;
}

/** Installs a test host for direct calls of a plugin, with these tables. It collects log lines and counters. */
export function host(tables = {}) {
  const host = doubleHost();
  host.rows = tables;
  connect(host);
  return host;
}

/** Runs the cases of a folder and returns their number. Throws an error that lists all failures. Every plugin must have a case. */
export function checkCases(plugins, folder) {
  const cases = readCases(folder);
  const faults = cases.flatMap((one) => {
    try {
      return difference(one, runCase(plugins, one, folder));
    } catch (problem) {
      return `${one.id}: ${problem.stack}`;
    }
  });
  for (const { name } of [plugins].flat()) {
    if (!cases.some((one) => one.plugin === name)) faults.push(`${name} has no case`);
  }
  if (faults.length > 0) throw new Error(`${faults.length} failures in ${cases.length} cases:\n${faults.join("\n")}`);
  return cases.length;
}

function readCases(folder) {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json")).sort();
  const cases = files.flatMap((file) => {
    try {
      return JSON.parse(readFileSync(join(folder, file), "utf8"));
    } catch (problem) {
      throw new Error(`${join(folder, file)}: ${problem.message}`);
    }
  });
  const ids = cases.map((one) => one.id);
  const duplicate = ids.find((id, index) => ids.indexOf(id) !== index);
  if (duplicate) throw new Error(`${folder}: duplicate case id ${duplicate}`);
  return cases;
}

/** Returns the answer to a case, as JSON with the contract's names. */
function runCase(plugins, { plugin, settings = {}, tables = {}, call }, folder) {
  const [name, given] = Object.entries(call)[0];
  const args = camel(given);
  const host = doubleHost();
  const exports = component(plugins, host);
  try {
    exports.setup.configure(plugin, JSON.stringify(settings));
  } catch (faults) {
    if (name === "configure" && Array.isArray(faults)) return kebab(plain(faults));
    throw Array.isArray(faults) ? new Error(`the plugin rejects its settings: ${JSON.stringify(faults)}`) : faults;
  }
  host.rows = tables;
  const page = (facts) => documentHandle(withFile(facts, folder));
  const answers = {
    configure: () => [],
    extract: () => exports.extractor.extract(args.documents.map(page)),
    "judge-candidates": () =>
      exports.filter.judgeCandidates(stage(args.stage), candidatesHandle(args.candidates)),
    "judge-document": () => exports.filter.judgeDocument(stage(args.stage), page(args.document), visitHandle(args.visit)),
    strip: () => {
      try {
        return { ok: exports.digestStripper.strip(page(args.document)) };
      } catch (problem) {
        if (problem instanceof Error) throw problem;
        return { error: problem };
      }
    },
    compare: () =>
      exports.changeEvaluator.compare(
        page(args.document), visitHandle(args.visit), args.last && Uint8Array.from(args.last)),
    evaluate: () => exports.waitEvaluator.evaluate(visitHandle(args.visit)),
    "rank-candidates": () =>
      exports.precedence.rankCandidates(candidatesHandle(args.candidates), args.document && page(args.document)),
    "rank-queue": () => exports.precedence.rankQueue(queueHandle(args.queue)),
    observe: () => exports.observer.observe(Uint8Array.from(args.memory ?? []), args.events.map(finished)),
    report: () => exports.observer.report(Uint8Array.from(args.memory ?? []), args.now ?? 0),
    step: () =>
      exports.pageBehavior.step(pageHandle(args.page), visitHandle(args.visit), Uint8Array.from(args.memory ?? [])),
  };
  if (!answers[name]) throw new Error(`unknown call: ${name}`);
  return kebab(plain(answers[name]()));
}

const finished = (event) => ({
  at: 0, uri: "", status: 0, mediaType: "", state: "new", hopPath: "", queue: "", annotations: [], attributes: [], ...event,
});

function withFile(facts = {}, folder) {
  return facts.file ? { ...facts, bytes: readFileSync(join(folder, facts.file)) } : facts;
}

/**
 * Returns a list with the description of the difference, or an empty list if the answer is as expected. Reasons and problems are
 * compared only if the case expects them.
 */
function difference({ id, call, expected }, answer) {
  const [wanted, got] = [expected, answer].map((value) => withoutDefaults(withoutFreeTexts(value, expected)));
  try {
    deepStrictEqual(got, wanted);
    return [];
  } catch {
    return [`${id} (${Object.keys(call)[0]}): expected ${JSON.stringify(expected)}\nanswered ${JSON.stringify(answer)}`];
  }
}

/** Removes reasons and problems that the case does not expect. */
function withoutFreeTexts(answer, expected) {
  if (Array.isArray(answer)) return answer.map((item, index) => withoutFreeTexts(item, expected?.[index]));
  if (typeof answer !== "object" || answer === null) return answer;
  const free = ["reason", "problem"].filter((name) => expected?.[name] === undefined && !("links" in answer));
  return Object.fromEntries(Object.entries(answer).filter(([name]) => !free.includes(name)));
}

/** Removes fields at their defaults, which cases may leave out. */
function withoutDefaults(value) {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (typeof value !== "object" || value === null) return value;
  const empty = (field) =>
    field === null || field === 0 || field === "" || field === false || (Array.isArray(field) && field.length === 0);
  const fields = Object.entries(value).map(([name, field]) => [name, withoutDefaults(field)]);
  return Object.fromEntries(fields.filter(([name, field]) => !empty(field) && !(name === "hop" && field === "link")));
}

const renamed = (rename) => {
  const walk = (value) => {
    if (value instanceof Uint8Array) return [...value];
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [rename(name), walk(field)]));
  };
  return walk;
};
const kebab = renamed((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
const camelNames = renamed((name) => name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase()));

/** Returns arguments in camelCase. Names of kept values and measures, and selectors, stay as they are. */
function camel(args) {
  const values = camelNames(args);
  for (const [name, facts] of Object.entries(args)) {
    const of = name === "documents" ? facts.map((one, index) => [one, values.documents[index]]) : [[facts, values[name]]];
    for (const [given, made] of of) {
      for (const verbatim of ["kept", "measures", "counts"]) if (given?.[verbatim]) made[verbatim] = given[verbatim];
    }
  }
  return values;
}
