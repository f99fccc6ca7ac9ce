// The definition of a plugin, as `plugin({…})` gets it: checks, and the description of the contract.

import { schemaOf } from "./settings.js";

/** The kinds, each with its functions. A plugin with one of them is of that kind. */
export const KINDS = {
  extractor: ["extract"],
  filter: ["judgeCandidate", "judgeCandidates", "judgeDocument"],
  "digest-stripper": ["strip"],
  "change-evaluator": ["compare"],
  "wait-evaluator": ["evaluate"],
  precedence: ["rankCandidate", "rankCandidates", "rankQueue"],
  observer: ["observe", "report"],
  "page-behavior": ["step"],
};
const FACTS = ["name", "version", "summary", "handles", "settings", "keeps", "attributes", "configure"];

/** The kinds of a plugin, from its functions. */
export const kindsOf = (plugin) =>
  Object.keys(KINDS).filter((kind) => KINDS[kind].some((name) => name in plugin));

/** Makes a plugin. The default export of a module is one plugin or a list. */
export function plugin(definition) {
  const known = [...FACTS, ...Object.values(KINDS).flat()];
  const unknown = Object.keys(definition).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new TypeError(`a plugin has no ${unknown[0]}; it may have ${known.join(", ")}`);
  for (const name of ["name", "summary"]) {
    if (typeof definition[name] !== "string") throw new TypeError(`a plugin needs a ${name}, which is a text`);
  }
  if (kindsOf(definition).length === 0) {
    throw new TypeError(`${definition.name} does nothing: it has none of ${Object.values(KINDS).flat().join(", ")}`);
  }
  return definition;
}

/** Returns the plugin's part of the answer of `setup.describe`, in plain values. */
export function describe({ name, version = "0.0.0", summary, handles = {}, settings = {}, keeps = [], attributes = [], ...rest }) {
  return {
    name,
    version,
    summary,
    kinds: kindsOf(rest),
    handles: { mediaTypes: handles.mediaTypes ?? [], uris: handles.uris ?? [] },
    settingsSchema: JSON.stringify(schemaOf(settings)),
    keeps,
    attributes,
  };
}
