// The records in answers of plugins, as in `wit/`: the type of each field, and its default.

import { bytes, cases, list, optional, record, text, precedence, s32, u32, u64, variant, flag } from "./wire.js";

const namedValue = record({ name: text, value: text });
const span = record({ offset: u64, length: u64 });

const hop = variant({
  link: null, embed: null, speculative: null, redirect: null, prerequisite: null, inferred: null, manifest: null,
  submit: null, other: text,
});
const details = record({
  submission: optional(record({ method: text, contentType: [text, ""], body: [bytes, []] })),
  dates: optional(record({ published: optional(u64), modified: optional(u64) })),
  attributes: [list(namedValue), []],
});
const link = record({
  uri: text,
  hop: [hop, "link"],
  context: [text, ""],
  base: optional(text),
  details: optional(details),
});
const content = variant({ "bytes-at": span, "text-at": span, text, bytes });
const fragment = record({ mediaType: text, content, context: [text, ""], base: optional(text) });

const extractionRecord = record({
  links: [list(link), []],
  fragments: [list(fragment), []],
  base: optional(text),
  finished: [flag, false],
  problem: optional(text),
});
/** Lowers an extraction. A list of links becomes an extraction. A missing value becomes an empty one. */
export function extraction(value, at) {
  if (value === undefined) return extractionRecord({}, at);
  return extractionRecord(Symbol.iterator in Object(value) ? { links: value } : value, at);
}

const verdict = variant({ accept: null, reject: null, pass: null, unchanged: null, retry: u64, other: text });
const rulingRecord = record({ verdict, reason: [text, ""] });
/** Lowers a ruling. A missing value becomes `pass`. */
export const ruling = (value, at) => rulingRecord(value ?? { verdict: "pass" }, at);

export const spans = list(span);
export const stripProblem = variant({ "too-large": u64, other: text });

const comparisonRecord = record({
  difference: optional(cases(["changed", "unchanged"])),
  fingerprint: optional(bytes),
  reason: [text, ""],
});
export const comparison = (value, at) => comparisonRecord(value ?? {}, at);

const waitRecord = record({ nextVisit: u64, askAgain: optional(u64) });
/** Lowers a wait. A number is the wait until the next visit. A missing value leaves the answer to the next evaluator. */
export const wait = optional((value, at) => waitRecord(typeof value === "number" ? { nextVisit: value } : value, at));

/** Lowers a precedence from 1, the highest, to 255. A missing value leaves the answer to the next plugin. */
export const rank = optional(precedence);

const line = record({ file: text, text });
export const observation = record({ memory: [bytes, []], lines: [list(line), []] });
export const reports = list(record({ file: text, content: text }));

const scrollTarget = variant({ top: null, bottom: null, to: u32, by: s32, element: text });
const action = variant({
  scroll: scrollTarget,
  click: record({ selector: text, text: optional(text), atMost: [u32, 1], onlyNew: [flag, false] }),
  "wait-for-selector": record({ selector: text, atMost: u64 }),
  "wait-for-network": u64,
  wait: u64,
  evaluate: text,
  screenshot: null,
});
const planRecord = record({
  actions: [list(action), []],
  count: [list(text), []],
  memory: [bytes, []],
  finished: [flag, false],
});
/** Lowers a step plan. A list of actions becomes the last step. A missing value becomes a last step without actions. */
export function stepPlan(value, at) {
  if (value === undefined || value === null) return planRecord({ finished: true }, at);
  return planRecord(Symbol.iterator in Object(value) ? { actions: value, finished: true } : value, at);
}

const openEnum = (names) => variant({ ...Object.fromEntries(names.map((name) => [name, null])), other: text });
export const descriptions = list(
  record({
    name: text,
    version: text,
    summary: text,
    kinds: list(openEnum([
      "extractor", "filter", "digest-stripper", "change-evaluator", "wait-evaluator", "precedence", "observer",
      "page-behavior",
    ])),
    handles: record({ mediaTypes: list(text), uris: list(text) }),
    settingsSchema: text,
    keeps: list(record({ name: text, keeper: openEnum(["uri", "site"]), version: u32 })),
    attributes: list(namedValue),
  }),
);
export const settingsFaults = list(record({ pointer: text, problem: text }));
