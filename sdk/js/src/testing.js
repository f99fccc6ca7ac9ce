// Plugins natively, under `node --test`: documents and visits to call them with, and the cases of a folder, the same that
// `opilio plugin test` puts to the component. Cases are JSON under the contract's names; `sdk/rust/README.md` has the format.

import { deepStrictEqual } from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { component } from "./component.js";
import { candidatesHandle, documentHandle, doubleHost, queueHandle, stage, visitHandle } from "./double.js";
import { connect } from "./host.js";
import { filled } from "./settings.js";
import { Candidates, Document, Queue, Visit } from "./views.js";
import { plain } from "./wire.js";

export const document = (facts) => new Document(documentHandle(facts));
export const visit = (facts) => new Visit(visitHandle(facts));
export const queue = (facts) => new Queue(queueHandle(facts));
export const candidates = (list) => new Candidates(candidatesHandle(list));

/** What the plugin gets as its last argument, for these settings. Throws what `configure` throws. */
export function configured(plugin, settings = {}) {
  const values = filled(plugin.settings ?? {}, settings);
  return plugin.configure ? plugin.configure(values) : values;
}

/** Puts a host in place for direct calls of a plugin: what it logs and counts, and the tables it finds. */
export function host(tables = {}) {
  const host = doubleHost();
  host.rows = tables;
  connect(host);
  return host;
}

/** Runs every case of a folder; throws with all that differ, and says how many there are. Every plugin must have a case. */
export function checkCases(plugins, folder) {
  const cases = readCases(folder);
  const faults = cases.flatMap((one) => {
    try {
      return differs(one, ask(plugins, one, folder));
    } catch (problem) {
      return `${one.id}: ${problem.stack}`;
    }
  });
  for (const { name } of [plugins].flat()) {
    if (!cases.some((one) => one.plugin === name)) faults.push(`${name} has no case`);
  }
  if (faults.length > 0) throw new Error(`${faults.length} of ${cases.length} cases:\n${faults.join("\n")}`);
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
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice) throw new Error(`${folder}: duplicate case id ${twice}`);
  return cases;
}

/** The answer to a case, as JSON under the contract's names. */
function ask(plugins, { plugin, settings = {}, tables = {}, call }, folder) {
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

/** What differs, with both sides. Reasons and problems count only where they are expected. */
function differs({ id, call, expected }, answer) {
  const shown = [without(expected, expected), without(answer, expected)].map(bare);
  try {
    deepStrictEqual(shown[1], shown[0]);
    return [];
  } catch {
    return [`${id} (${Object.keys(call)[0]}): expected ${JSON.stringify(expected)}\nanswered ${JSON.stringify(answer)}`];
  }
}

function without(answer, expected) {
  if (Array.isArray(answer)) return answer.map((item, index) => without(item, expected?.[index]));
  if (typeof answer !== "object" || answer === null) return answer;
  const free = ["reason", "problem"].filter((name) => expected?.[name] === undefined && !("links" in answer));
  return Object.fromEntries(Object.entries(answer).filter(([name]) => !free.includes(name)));
}

/** Fields at their defaults may be left out. */
function bare(value) {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(bare);
  if (typeof value !== "object" || value === null) return value;
  const empty = (field) =>
    field === null || field === 0 || field === "" || field === false || (Array.isArray(field) && field.length === 0);
  const fields = Object.entries(value).map(([name, field]) => [name, bare(field)]);
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

/** Arguments in camelCase, but for names that are values: those of what was kept and of measures. */
function camel(args) {
  const values = camelNames(args);
  for (const [name, facts] of Object.entries(args)) {
    const of = name === "documents" ? facts.map((one, index) => [one, values.documents[index]]) : [[facts, values[name]]];
    for (const [given, made] of of) {
      for (const verbatim of ["kept", "measures"]) if (given?.[verbatim]) made[verbatim] = given[verbatim];
    }
  }
  return values;
}
